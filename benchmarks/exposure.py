"""Verdicts of ``exposure`` on honest and leaking releases, and coverage of its intervals.

Run ``python -m benchmarks.exposure --write docs/evidence/exposure.md``; ``--help`` lists the
numbers of releases. Honest releases are made by ``auditor new`` and ``auditor.run``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import auditor
from auditor.errors import AuditorWarning
from benchmarks.leaks import KINDS, verdict

SEED = 2**42 + 7
METRICS = ("normalized_error", "median_error_ratio", "close")
COMMAND = "python -m benchmarks.exposure --write docs/evidence/exposure.md"


def honest(rows: int, number: int) -> str:
    """Return the worst status of all expectations of a new scenario on a normal table."""
    with tempfile.TemporaryDirectory() as folder:
        return _status(rows, number, Path(folder))


def _status(rows: int, number: int, folder: Path) -> str:
    rng = np.random.default_rng([SEED, rows, number])
    width = 2 + number % 3
    X = rng.normal(size=(rows, width)) @ rng.normal(size=(width, width))
    if number % 4 == 3:
        X = np.exp(0.5 * X / X.std(axis=0))
    X = X / X.std(axis=0) * 10 ** rng.integers(0, 4, width) + 50
    pd.DataFrame(X.round(2), columns=list("abcd")[:width]).to_csv(folder / "t.csv", index=False)
    new = ["-m", "auditor", "new", str(folder / "s.yaml"), "--data", str(folder / "t.csv")]
    subprocess.run([sys.executable, *new], check=True, capture_output=True)
    found = {record.status for record in auditor.run(folder / "s.yaml").expectations}
    return next(status for status in ("fails", "undecided", "holds") if status in found)


def tables(n: int) -> dict[str, np.ndarray]:
    """Return four skewed tables of two columns."""
    rng = np.random.default_rng(SEED)
    return {
        "log-normal": rng.lognormal(0, 1, (n, 2)),
        "Pareto, index 3": rng.pareto(3.0, (n, 2)),
        "30 % zeros": np.where(rng.random((n, 2)) < 0.3, 0, rng.lognormal(0, 1, (n, 2))),
        "chi-square, 1 degree": rng.chisquare(1, (n, 2)),
    }


def coverage(X: np.ndarray, attack: str, draws: int) -> dict[str, float]:
    """Return the share of draws whose interval holds the mean over draws, by metric."""
    values = {"x": X[:, 0].tolist(), "y": X[:, 1].tolist()}
    found = defaultdict(list)
    for draw in range(draws):
        result = auditor.run(
            {
                "schema": 1,
                "title": "coverage",
                "seed": SEED + 1_000 * draw,
                "data": {"source": "inline", "values": values},
                "schemes": [{"name": "corner-wave", "levels": [1.0]}],
                "knowledge": ["perfect"],
                "coalitions": ["all"],
                "attacks": [attack],
                "measures": ["closeness"],
            }
        )
        for one in result.measurements:
            if one.metric in METRICS and one.attribute != "*":
                found[one.metric, one.attribute].append((one.value, one.ci_low, one.ci_high))
    covered = defaultdict(list)
    for (metric, _), intervals in found.items():
        value, low, high = np.array(intervals, dtype=np.float64).T
        covered[metric].append(np.mean((low <= value.mean()) & (value.mean() <= high)))
    return {metric: float(np.mean(each)) for metric, each in covered.items()}


def page(counts: dict[int, int], leaks: int, draws: int) -> Iterator[str]:
    """Yield the lines of the evidence page."""
    yield "# Verdicts of exposure\n"
    yield f"<!-- Written by `{COMMAND}`; do not edit. -->\n"
    yield f"Honest releases by `auditor new` and `auditor run`, {sum(counts.values())} in total.\n"
    yield "| records | releases | holds | undecided | fails |\n| --: | --: | --: | --: | --: |"
    for rows, count in counts.items():
        found = Counter(honest(rows, number) for number in range(count))
        shown = " | ".join(str(found[status]) for status in ("holds", "undecided", "fails"))
        yield f"| {rows:,} | {count} | {shown} |"
    yield f"\nLeaking releases of {len(KINDS)} kinds (`benchmarks/leaks.py`), {leaks} of each.\n"
    yield "| kind | holds | undecided | fails |\n| :-- | --: | --: | --: |"
    for place, kind in enumerate(KINDS if leaks else ()):
        statuses = Counter[str]()
        for number in range(leaks):
            with tempfile.TemporaryDirectory() as folder:
                leak = kind(np.random.default_rng([SEED, place, number]))
                statuses[verdict(leak, Path(folder)).status] += 1
        shown = " | ".join(str(statuses[one]) for one in ("holds", "undecided", "fails"))
        name = (kind.__doc__ or "").rstrip(".")
        yield f"| {name} | {shown} |"
    yield f"\nCoverage of 95 % intervals over {draws} draws, two columns of 500 records.\n"
    yield "| table | attack | " + " | ".join(f"`{one}`" for one in METRICS) + " |"
    yield "| :-- | :-- | --: | --: | --: |"
    for name, X in tables(500).items() if draws else ():
        for attack in ("llse", "mixture-estimate"):
            found = coverage(X, attack, draws)
            shown = " | ".join(f"{100 * found[metric]:.1f} %" for metric in METRICS)
            yield f"| {name} | {attack} | {shown} |"


def main() -> None:
    """Write the page, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--honest", default="300:60,1000:100,5000:30,50000:10")
    parser.add_argument("--leaks", type=int, default=3)
    parser.add_argument("--draws", type=int, default=200)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", AuditorWarning)
    counts = {int(a): int(b) for a, b in (one.split(":") for one in asked.honest.split(",") if one)}
    lines = []
    for line in page(counts, asked.leaks, asked.draws):
        lines.append(line)
        asked.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
