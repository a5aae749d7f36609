"""Verdicts of ``exposure`` on honest and leaking releases, and coverage of its intervals.

Run ``python -m benchmarks.exposure --write docs/evidence/exposure.md``; ``--help`` lists the
numbers of releases. Honest releases are made by ``auditor new`` and ``auditor.run``. Finished cases
are kept as JSON lines in ``--save FILE``, and a later run continues.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor
from auditor.base import AuditorWarning
from auditor.cli import main as command
from benchmarks.leaks import KINDS, Leak, verdict

SEED = 2**42 + 7
METRICS = ("normalized_error", "median_error_ratio", "close")
COMMAND = "python -m benchmarks.exposure --write docs/evidence/exposure.md"
ATTACKS = ("llse", "mixture-estimate")
Once = Callable[[str, Callable[[], Any]], Any]
"""Returns a case's outcome by its name; calls the function unless the outcome is kept."""


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
    with redirect_stdout(StringIO()), suppress(SystemExit):
        command(["new", str(folder / "s.yaml"), "--data", str(folder / "t.csv")])
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


def intervals(X: np.ndarray, draw: int) -> list[list[Any]]:
    """Return rows of attack, metric, attribute, value and interval of one draw."""
    values = {"x": X[:, 0].tolist(), "y": X[:, 1].tolist()}
    result = auditor.run(
        {
            "schema": 1,
            "title": "coverage",
            "seed": SEED + 1_000 * draw,
            "data": {"source": "inline", "values": values},
            "schemes": [{"name": "corner-wave", "levels": [1.0]}],
            "knowledge": ["perfect"],
            "coalitions": ["all"],
            "attacks": list(ATTACKS),
            "measures": ["closeness"],
        }
    )
    return [
        [one.attack, one.metric, one.attribute, one.value, one.ci_low, one.ci_high]
        for one in result.measurements
        if one.metric in METRICS and one.attribute != "*"
    ]


def coverage(rows: list[list[Any]]) -> dict[tuple[str, str], float]:
    """Return the share of draws with the mean over draws in the interval."""
    found, covered = defaultdict(list), defaultdict(list)
    for attack, metric, attribute, *interval in rows:
        found[attack, metric, attribute].append(interval)
    for (attack, metric, _), each in found.items():
        value, low, high = np.array(each, dtype=np.float64).T
        covered[attack, metric].append(np.mean((low <= value.mean()) & (value.mean() <= high)))
    return {each: float(np.mean(shares)) for each, shares in covered.items()}


def leaking(kind: Callable[[np.random.Generator], Leak], number: int) -> str:
    """Return the status of ``exposure`` of a leaking release."""
    with tempfile.TemporaryDirectory() as folder:
        leak = kind(np.random.default_rng([SEED, *kind.__name__.encode(), number]))
        return str(verdict(leak, Path(folder)).status)


def page(once: Once, counts: dict[int, int], leaks: int, draws: int) -> Iterator[str]:
    """Yield the lines of the evidence page."""
    yield "# Verdicts of exposure\n"
    yield f"<!-- Written by `{COMMAND}`; do not edit. -->\n"
    yield f"Honest releases by `auditor new` and `auditor run`, {sum(counts.values())} in total.\n"
    yield "| records | releases | holds | undecided | fails |\n| --: | --: | --: | --: | --: |"
    for rows, count in counts.items():
        statuses = [
            once(f"honest {rows} {k}", lambda k=k, rows=rows: honest(rows, k)) for k in range(count)
        ]
        yield f"| {rows:,} | {count} | {_counted(statuses)} |"
    yield f"\nLeaking releases of {len(KINDS)} kinds (`benchmarks/leaks.py`), {leaks} of each.\n"
    yield "| kind | holds | undecided | fails |\n| :-- | --: | --: | --: |"
    for kind in KINDS if leaks else ():
        statuses = [
            once(f"{kind.__name__} {k}", lambda k=k, kind=kind: leaking(kind, k))
            for k in range(leaks)
        ]
        yield f"| {(kind.__doc__ or '').rstrip('.')} | {_counted(statuses)} |"
    yield f"\nCoverage of 95 % intervals over {draws} draws, two columns of 500 records.\n"
    yield "| table | attack | " + " | ".join(f"`{one}`" for one in METRICS) + " |"
    yield "| :-- | :-- | --: | --: | --: |"
    for name, X in tables(500).items() if draws else ():
        cases = [once(f"{name} {k}", lambda k=k, X=X: intervals(X, k)) for k in range(draws)]
        found = coverage([row for case in cases for row in case])
        for attack in ATTACKS:
            shown = " | ".join(f"{100 * found[attack, metric]:.1f} %" for metric in METRICS)
            yield f"| {name} | {attack} | {shown} |"


def _counted(statuses: list[str]) -> str:
    return " | ".join(str(statuses.count(one)) for one in ("holds", "undecided", "fails"))


def main() -> None:
    """Write the page, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--save", type=Path, help="finished cases, as JSON lines")
    parser.add_argument("--honest", default="300:60,1000:100,5000:30,50000:10")
    parser.add_argument("--leaks", type=int, default=3)
    parser.add_argument("--draws", type=int, default=200)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", AuditorWarning)
    counts = {int(a): int(b) for a, b in (one.split(":") for one in asked.honest.split(",") if one)}
    kept = {}
    if asked.save and asked.save.exists():
        kept = dict(map(json.loads, asked.save.read_text(encoding="utf-8").splitlines()))

    def once(case: str, outcome: Callable[[], Any]) -> Any:
        if case not in kept:
            kept[case] = outcome()
            if asked.save:
                with asked.save.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([case, kept[case]]) + "\n")
        return kept[case]

    lines = []
    for line in page(once, counts, asked.leaks, asked.draws):
        lines.append(line)
        asked.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
