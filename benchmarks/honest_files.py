"""Verdicts of `no-collusion-gain` on honest copies from files without a law.

`python -m benchmarks.honest_files > docs/evidence/honest.md` writes the page; `--each 11` and
`--all 2` set the numbers of releases of each table, `--jobs 2` the processes. Copies are nested, so
that the true gain of pooling is 0.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import auditor
from tests.audit.law_faults import table

KINDS = ("one", "skewed", "heavy", "sorted", "rounded", "heaped", "series")
SCHEMES = ("corner-wave", "laplace-multilevel")
ROWS, LEVELS, HIDDEN = 5_000, (0.5, 1.0), 2**50
"""Rows, levels, and an offset of seeds that nobody guesses."""
HEADING = """# Honest files

<!-- Written by `python -m benchmarks.honest_files --each {each} --all {all} > docs/evidence/honest.md`; do not edit. -->

Verdicts of `no-collusion-gain` on two nested copies from files, without a stated law, of {rows:,} rows and two columns.
The first three columns count releases that the insider learner judges alone. The others count releases that all attacks judge
(`knowledge: perfect`, `attacks: all`), insiders who know the noise among them.

| table | holds | undecided | fails | all attacks: holds | undecided | fails |
| --- | --: | --: | --: | --: | --: | --: |"""
LEARNER = {"attacks": ["ndr"], "knowledge": [{"estimated": {"rows": 1_000}}]}
EVERY = {"attacks": "all", "knowledge": ["perfect"]}


def verdict(X: np.ndarray, copies: Sequence[np.ndarray], adversary: dict[str, Any]) -> str:
    """Return the verdict on copies from files."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{number}.csv") for number in range(1 + len(copies))]
        for file, rows in zip(files, (X, *copies), strict=True):
            np.savetxt(file, rows, delimiter=",", header="a,b", comments="", fmt="%.17g")
        result = auditor.run(
            {
                "schema": 1,
                "title": "honest files",
                "data": {"source": files[0]},
                **adversary,
                "schemes": [{"name": "published", "copies": files[1:]}],
                "coalitions": ["all"],
                "expect": ["no-collusion-gain"],
            }
        )
        return result.expectations[0].status


def honest(kind: str, adversary: dict[str, Any], seed: int) -> str:
    """Return the verdict on one release of a table."""
    warnings.simplefilter("ignore")
    X = table(kind, ROWS, seed)
    X = np.column_stack([X, table("skewed", ROWS, seed)])[:, :2]
    scheme = SCHEMES[seed % len(SCHEMES)]
    made = auditor.perturb(X, scheme=scheme, levels=list(LEVELS), seed=HIDDEN + seed)
    return verdict(X, made.copies, adversary)


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=11)
    parser.add_argument("--all", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    print(HEADING.format(rows=ROWS, each=asked.each, all=asked.all))
    total = [Counter[str](), Counter[str]()]
    with ProcessPoolExecutor(asked.jobs) as pool:
        runs = [
            [
                pool.map(partial(honest, kind, adversary), range(count))
                for adversary, count in ((LEARNER, asked.each), (EVERY, asked.all))
            ]
            for kind in KINDS
        ]
        for kind, statuses in zip(KINDS, runs, strict=True):
            found = [Counter(each) for each in statuses]
            total = [a + b for a, b in zip(total, found, strict=True)]
            print(line(kind, found), flush=True)
    print(line("all", total))


def line(name: str, found: Sequence[Counter[str]]) -> str:
    """Return a line of the table."""
    counts = [str(each[status]) for each in found for status in ("holds", "undecided", "fails")]
    return f"| {name} | {' | '.join(counts)} |"


if __name__ == "__main__":
    main()
