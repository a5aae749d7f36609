"""Verdicts of `no-collusion-gain` on honest copies from files without a law.

`python -m benchmarks.honest_files > docs/evidence/honest.md` writes the page; `--each 11` sets the
number of releases of each table, `--jobs 2` the processes. Copies are nested, so that the true gain of pooling is 0.
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

import numpy as np

import auditor
from tests.audit.law_faults import table

KINDS = ("one", "skewed", "heavy", "sorted", "rounded", "heaped", "series")
SCHEMES = ("corner-wave", "laplace-multilevel")
ROWS, LEVELS, HIDDEN = 5_000, (0.5, 1.0), 2**50
"""Rows, levels, and an offset of seeds that nobody guesses."""
HEADING = """# Honest files

<!-- Written by `python -m benchmarks.honest_files > docs/evidence/honest.md`; do not edit. -->

Verdicts of `no-collusion-gain` on two nested copies from files, without a stated law, of {rows:,} rows and two columns.
The insider learner decides. Attacks that know the originals' law are left out.

| table | holds | undecided | fails |
| --- | --: | --: | --: |"""


def verdict(X: np.ndarray, copies: Sequence[np.ndarray]) -> str:
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
                "attacks": ["ndr"],
                "knowledge": [{"estimated": {"rows": 1_000}}],  # none of the insider's attacks
                "schemes": [{"name": "published", "copies": files[1:]}],
                "coalitions": ["all"],
                "expect": ["no-collusion-gain"],
            }
        )
        return result.expectations[0].status


def honest(kind: str, seed: int) -> str:
    """Return the verdict on one release of a table."""
    warnings.simplefilter("ignore")
    X = table(kind, ROWS, seed)
    X = np.column_stack([X, table("skewed", ROWS, seed)])[:, :2]
    scheme = SCHEMES[seed % len(SCHEMES)]
    made = auditor.perturb(X, scheme=scheme, levels=list(LEVELS), seed=HIDDEN + seed)
    return verdict(X, made.copies)


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=11)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    print(HEADING.format(rows=ROWS))
    total = Counter[str]()
    with ProcessPoolExecutor(asked.jobs) as pool:
        runs = [pool.map(partial(honest, kind), range(asked.each)) for kind in KINDS]
        for kind, statuses in zip(KINDS, runs, strict=True):
            found = Counter(statuses)
            total += found
            print(line(kind, found), flush=True)
    print(line("all", total))


def line(name: str, found: Counter[str]) -> str:
    """Return a line of the table."""
    return f"| {name} | {found['holds']} | {found['undecided']} | {found['fails']} |"


if __name__ == "__main__":
    main()
