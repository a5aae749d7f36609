"""Estimated and true times of the shipped scenarios.

`python -m benchmarks.estimates RESULTS [--write docs/evidence/times.md]`. RESULTS is a folder that
`auditor run scenarios/*.yaml --workers 1 -o RESULTS` wrote on an idle machine. Exit status 1 if an
estimate is wrong by a factor above 3.5, as machines differ by two.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from auditor.results.model import AuditResult
from auditor.runs.check import check_data
from auditor.runs.plan import plan_lines, seconds_of
from auditor.scenario.read import read_scenario

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
FACTOR = 3.5
INTRODUCTION = """\
# How long the scenarios take

<!-- Written by `python -m benchmarks.estimates RESULTS --write docs/evidence/times.md` after `auditor run scenarios/*.yaml -j 1` -->

What `auditor check` says before a run, and what the run took on one core, in seconds; the page and the start are not counted. Like
`check`, which says no less than a second, the factor counts what is shorter as a second.

| scenario | estimated | took | factor |
| --- | ---: | ---: | ---: |
"""


def rows(results: Path) -> list[tuple[str, float, float]]:
    """Return each scenario with its estimate and its time."""
    found = []
    for path in sorted(SCENARIOS.glob("*.yaml")):
        if (results / path.stem / "results.json").exists():
            took = AuditResult.load(results / path.stem).provenance.duration
            found.append(
                (
                    path.stem,
                    seconds_of(plan_lines(scenario := read_scenario(path), check_data(scenario))),
                    took,
                )
            )
    return found


def off(estimated: float, took: float) -> float:
    """Return the factor between both times, at least 1, in units of a second."""
    return max(estimated, took, 1.0) / max(min(estimated, took), 1.0)


def main(arguments: list[str]) -> int:
    """Print the table, and write the page with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    found = rows(given.results)
    table = "".join(
        f"| `{name}` | {estimated:.1f} | {took:.1f} | {off(estimated, took):.1f} |\n"
        for name, estimated, took in found
    )
    worst = max(off(estimated, took) for _, estimated, took in found)
    told = f"{len(found)} scenarios; the worst is off by a factor of {worst:.1f}."
    text = f"{INTRODUCTION}{table}\n{told}\n"
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text)
    return 0 if worst <= FACTOR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
