"""Estimated beside true times of the scenarios that ship: `python -m benchmarks.estimates RESULTS [--write docs/times.md]`.

RESULTS is a folder that `auditor run scenarios/*.yaml -o RESULTS` wrote on a machine with nothing else to do. Exit status 1 if an estimate
of ten seconds or more, or of a run that takes as long, is off by more than a factor of three.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from auditor.results.model import AuditResult
from auditor.runs.plan import plan_lines, seconds_of
from auditor.scenario.read import read_scenario

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
FACTOR, LONG = 3.0, 10.0
INTRODUCTION = """\
# How long the scenarios take

<!-- Written by `python -m benchmarks.estimates RESULTS --write docs/times.md` after `auditor run scenarios/*.yaml -o RESULTS`. -->

What `auditor check` says before a run, and what the run took on one core, in seconds; the page and the start are not counted. The
estimate is meant to tell seconds from minutes.

| scenario | estimated | took | factor |
| --- | ---: | ---: | ---: |
"""


def rows(results: Path) -> list[tuple[str, float, float]]:
    """Return each scenario with its estimate and its time."""
    found = []
    for path in sorted(SCENARIOS.glob("*.yaml")):
        if (results / path.stem / "results.json").exists():
            took = AuditResult.load(results / path.stem).provenance.duration
            found.append((path.stem, seconds_of(list(plan_lines(read_scenario(path)))), took))
    return found


def off(estimated: float, took: float) -> float:
    """Return the factor between them, at least 1."""
    return max(estimated, took) / max(1e-9, min(estimated, took))


def main(arguments: list[str]) -> int:
    """Print the table, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    found = rows(given.results)
    table = "".join(f"| `{name}` | {estimated:.1f} | {took:.1f} | {off(estimated, took):.1f} |\n" for name, estimated, took in found)
    long = [off(estimated, took) for _, estimated, took in found if max(estimated, took) >= LONG]
    told = f"{len(found)} scenarios; of those of ten seconds or more the worst is off by a factor of {max(long):.1f}."
    text = f"{INTRODUCTION}{table}\n{told}\n"
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text)
    return 0 if max(long) <= FACTOR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
