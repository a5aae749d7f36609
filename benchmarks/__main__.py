"""Measure everything, write docs/evidence/performance.md and its charts, and exit 1 when a bar is missed by more than 5 %.

`python -m benchmarks` runs it all; further words go to pytest: `python -m benchmarks -k filters`,
which writes nothing."""

import sys

import pytest

from benchmarks import FOLDER


def main(arguments: list[str]) -> int:
    """Run the benchmarks under pytest."""
    page = [] if arguments else ["--write-page"]
    return int(
        pytest.main(
            [
                str(FOLDER),
                "--ignore-glob=*.yaml",
                "--benchmark-only",
                "--benchmark-quiet",
                *page,
                *arguments,
            ]
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
