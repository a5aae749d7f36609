"""Detection of faulty noise and false alarms of `noise-follows-law`.

`python -m benchmarks.law_detection > docs/evidence/faults.md` writes the page.

`--rows 1000,10000`, `--releases 3`, `--honest 1000` and `--only TEXT` choose the cases.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from auditor import registry
from auditor.errors import DataError
from auditor.results.evidence import LawTest
from tests.audit.law_faults import FAULTS, GRIDS, HONEST, KINDS, honest

HEADING = """# Planted faults

<!-- Written by `python -m benchmarks.law_detection > docs/evidence/faults.md`; do not edit. -->

p-values of faulty noise after Holm's correction, with the test that finds it. In italics: not found at 10⁻⁴. [The method](../method.md)
explains the tests, [mistakes](mistakes.md) lists copies without a law, [mended](mended.md) the faults of the program.
"""
LEVEL = 1e-4
"""Chance of a false «fails» at which `noise-follows-law` decides."""
ALARM_LEVELS = (0.05, 0.01, 1e-4)
ROWS_OF_HONEST = (3, 4, 7, 10, 25, 50, 100, 300, 1000, 3000)
WIDEST = 1000
"""Rows of tables with 24 columns."""


def detection(rows: Sequence[int], releases: int, only: str) -> Iterator[str]:
    """Yield a table of median p-values of the faults."""
    yield "| fault | " + " | ".join(f"{n:,} rows" for n in rows) + " |"
    yield "| --- |" + " --- |" * len(rows)
    found = np.zeros(len(rows), dtype=int)
    for name, fault in FAULTS.items():
        if only not in name:
            continue
        cells = []
        for place, n in enumerate(rows):
            least = sorted(
                (holm_least(fault.tests(n, seed)) for seed in range(1, releases + 1)),
                key=lambda one: one[0],
            )
            p, test = least[len(least) // 2]
            found[place] += p <= LEVEL
            cells.append(f"{p:.0e} {test.statistic}" if p <= LEVEL else f"*{p:.0e}*")
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield "| found | " + " | ".join(str(count) for count in found) + " |"


def false_alarms(releases: int, seed: int) -> Iterator[str]:
    """Yield a table of the shares of small p-values of honest releases."""
    rng, p, refused = np.random.default_rng(seed), defaultdict[str, list[float]](list), 0
    for k in range(releases):
        scheme, levels, parameters = HONEST[rng.integers(len(HONEST))]
        kind, grid = KINDS[rng.integers(len(KINDS))], list(GRIDS)[rng.integers(len(GRIDS))]
        n = min(int(rng.choice(ROWS_OF_HONEST)), WIDEST if kind == "wide" else 10**9)
        plugin = registry.get("scheme", scheme)
        # no grid is looked for in these
        exact = plugin.on_lattice or scheme == "multiplicative-noise"
        try:
            tests = honest(
                scheme, levels, parameters, kind, n, seed * 10**6 + k, "none" if exact else grid
            )
        except DataError:  # a column that is constant in so few rows
            refused += 1
            continue
        for test in tests:
            p[test.statistic].append(test.p)
        if tests:
            p["all together (Holm)"].append(holm_least(tests)[0])
    yield f"{releases:,} releases, {refused} refused for a constant column."
    yield ""
    yield (
        "| statistic | releases | " + " | ".join(f"p ≤ {level:g}" for level in ALARM_LEVELS) + " |"
    )
    yield "| --- | --- |" + " --- |" * len(ALARM_LEVELS)
    for statistic, values in sorted(p.items()):
        shares = [f"{np.mean(np.array(values) <= level):.4f}" for level in ALARM_LEVELS]
        yield f"| {statistic} | {len(values):,} | " + " | ".join(shares) + " |"


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--releases", type=int, default=1)
    parser.add_argument("--honest", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEADING)
    for line in detection(
        [int(n) for n in arguments.rows.split(",")], arguments.releases, arguments.only
    ):
        print(line, flush=True)
    print("\n## False alarms\n")
    for line in false_alarms(arguments.honest, arguments.seed):
        print(line, flush=True)


def holm_least(tests: Sequence[LawTest]) -> tuple[float, LawTest]:
    """Return the least p-value after Holm's correction, and its test."""
    least = min(tests, key=lambda test: test.p)
    return min(1.0, len(tests) * least.p), least


if __name__ == "__main__":
    main()
