"""Coverage of 95 % intervals of attacks on categories.

`python -m benchmarks.coverage_categories [--write PAGE]`. ``--save FILE`` keeps measured lines, and
a later run continues from it; `--only "series iris"` measures a part.

A figure is about one table. Its interval is about other draws of the noise, and of the rows from
which an adversary learns. So a real, skewed table is released many times, and each interval is
compared with the mean over all draws.

Cells that are equal in 19 draws of 20 or more are left out, for example the gain from multilevel
copies or a rare breach. Their interval is one value, equal to nearly every draw but not to the
mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.request import ReleaseRequest
from auditor.audit.engine import audit_release
from auditor.results.records import Measurement
from auditor.runs.check import table_of
from auditor.scenario.read import read_scenario

Cell = tuple[str, str, tuple[int, ...]]

TABLES: dict[str, dict[str, Any]] = {
    "cps salary, 10 classes": {
        "source": "cps",
        "columns": ["salary"],
        "rows": 1500,
        "bin": {"salary": {"equal-width": 10}},
    },
    "cps household size": {
        "source": "cps",
        "columns": ["household_size"],
        "rows": 800,
        "categorical": ["household_size"],
    },
    "wisconsin mitoses": {
        "source": "wisconsin",
        "columns": ["mitoses"],
        "categorical": ["mitoses"],
    },
    "iris petal length, 8 classes": {
        "source": "iris",
        "columns": ["petal_length"],
        "bin": {"petal_length": {"equal-width": 8}},
    },
}
"""Three in four salaries are in the lowest class, mitoses are 1 in five of six; classes that few
records or nobody have."""
LEVELS = (0.5, 0.25)
SCHEMES, ADDITIVE = ("uniform", "uniform-multilevel"), ("independent", "corner-wave")
LOW, HIGH = 0.925, 0.985
"""Coverage that is called right."""
EVERY_ROW = "estimated from every row"
METRICS = (
    "reconstruction_probability",
    "posterior_max",
    "accuracy",
    "normalized_error",
    "rho_breach",
    "collusion_gain",
)
ALL = "all"


class Family(NamedTuple):
    """Attacks measured together, with knowledge, tables and releases."""

    knowledge: list[Any]
    attacks: list[Any]
    draws: int
    schemes: tuple[str, ...] = (*SCHEMES, *ADDITIVE)
    levels: tuple[float, ...] = LEVELS
    tables: tuple[str, ...] = tuple(TABLES)


*_, LONG, SHORT = TABLES
ANY, FOUR = ("perfect", "uniform-prior"), (0.7, 0.5, 0.35, 0.25)
POSTERIOR: list[Any] = [
    "posterior",
    {"name": "posterior", "id": "posterior, inversion", "prior": "inversion"},
]
FAMILIES = {
    "priors": Family(
        [
            "perfect",
            "uniform-prior",
            {"estimated": {"rows": 100}},
            EVERY_ROW,
            {"known-records": 50},
        ],
        POSTERIOR,
        80,
    ),
    "rows": Family([{"estimated": {"rows": 25}}], POSTERIOR, 200),
    "series": Family([*ANY], ["serial-posterior"], 12, ("uniform",), FOUR, (*TABLES,)[:3]),
    "short": Family([*ANY], ["serial-posterior"], 60, ("uniform",), FOUR, (SHORT,)),
}
"""Releases enough for a thousand figures of each kind. A chain is learnt from 512 records or more,
which takes two seconds a release."""


class Coverage(NamedTuple):
    """Intervals that hold the mean, and stated error over true spread.

    The ratio is a geometric mean over cells.
    """

    attack: str
    knowledge: str
    table: str
    metric: str
    coverage: float
    intervals: int
    ratio: float


def measured(
    name: str, family: Family, draws: int | None = None, seed: int = 2012
) -> Iterator[Coverage]:
    """Yield the coverage of every attack, knowledge and metric on one table."""
    cells: dict[tuple[str, str, str], dict[Cell, list[Measurement]]] = {}
    for record in drawn(TABLES[name], family, draws or family.draws, seed):
        if record.metric in METRICS and record.status == "ok" and record.ci_low is not None:
            for metric in (record.metric, ALL):
                line = cells.setdefault(
                    (record.attack or "", named(record.knowledge or ""), metric), {}
                )
                line.setdefault((record.scheme, record.metric, record.coalition), []).append(record)
    for (attack, knowledge, metric), found in sorted(cells.items()):
        parts = [part for part in map(held, found.values()) if part[0].size]
        if parts:
            inside = np.concatenate([part for part, _ in parts])
            ratio = float(np.exp(np.mean([np.log(max(ratio, 1e-9)) for _, ratio in parts])))
            yield Coverage(
                attack, knowledge, name, metric, float(inside.mean()), inside.size, ratio
            )


def named(knowledge: str) -> str:
    """Return a state of knowledge with one name for tables of any length."""
    rows = knowledge.removeprefix("estimated(rows=").removesuffix(")")
    return "estimated(all rows)" if rows.isdigit() and int(rows) > 100 else knowledge


def held(group: Sequence[Measurement]) -> tuple[NDArray[np.bool_], float]:
    """Return which intervals hold the mean, and error over true spread."""
    value, error, low, high = np.array(
        [(r.value, r.std_error, r.ci_low, r.ci_high) for r in group]
    ).T
    if np.mean(np.abs(value - np.median(value)) < 1e-9) >= 0.95:
        return np.empty(0, dtype=np.bool_), 1.0
    return np.asarray((low <= value.mean()) & (value.mean() <= high)), float(
        error.mean() / value.std(ddof=1)
    )


def drawn(data: dict[str, Any], family: Family, draws: int, seed: int) -> Iterator[Measurement]:
    """Yield the measurements of all draws of one table.

    Releases are uniform, and additive if numbers are cut into classes.
    """
    schemes = [name for name in family.schemes if "bin" in data or name not in ADDITIVE]
    document = {
        "seed": seed,
        "data": data,
        "attacks": family.attacks,
        "coalitions": ["subsets"],
        "schemes": [{"name": name, "levels": [*family.levels]} for name in schemes],
        "measures": ["rho-breach"],
    }
    n = table_of(read_scenario(document))[0].rows
    scenario = read_scenario(
        document
        | {
            "knowledge": [
                {"estimated": {"rows": n}} if k == EVERY_ROW else k for k in family.knowledge
            ]
        }
    )
    table, _ = table_of(scenario)
    for replicate in range(1, draws + 1):
        for use in scenario.schemes:
            yield from audit_release(
                ReleaseRequest(scenario, {}, table, use, replicate)
            ).measurements


PAGE = """\
# Calibration of the error bars of `posterior` and `serial-posterior`

<!-- Written by `python -m benchmarks.coverage_categories --write docs/evidence/calibration-posterior.md`; do not edit. -->

Four real tables ({tables}) were each released
{draws[0]} times for `posterior`, {draws[1]} times where it learns a prior from 25 rows,
by {schemes}.
For `serial-posterior` four uniform copies were made {draws[2]} times of each of the first three tables and {draws[3]} times of the fourth,
which is too short to learn a chain from.
An interval should hold the mean over those releases 95 times in 100. Intervals of one release share its noise.
*error / spread* is the mean stated standard error over
the standard deviation between releases. **Bold** is coverage outside 92.5 to 98.5 %. Figures that are the same in 19 releases of 20 are
left out.

## All tables together

{pooled}

## By table, all metrics

{single}
"""
HEAD = ["attack", "knowledge", "table", "metric", "coverage", "intervals", "error / spread"]


def pooled(found: Sequence[Coverage]) -> Iterator[Coverage]:
    """Yield lines of all tables; their ratio is the tables' geometric mean."""
    lines: dict[tuple[str, str, str], list[Coverage]] = {}
    for line in found:
        lines.setdefault((line.attack, line.knowledge, line.metric), []).append(line)
    for (attack, knowledge, metric), parts in lines.items():
        count = sum(part.intervals for part in parts)
        coverage = sum(part.intervals * part.coverage for part in parts) / count
        yield Coverage(
            attack,
            knowledge,
            ALL,
            metric,
            coverage,
            count,
            float(np.exp(np.mean([np.log(part.ratio) for part in parts]))),
        )


def told(found: Iterable[Coverage]) -> str:
    """Return lines as a Markdown table."""
    rows_ = [f"| {' | '.join(HEAD)} |", "| --- | --- | --- | --- | ---: | ---: | ---: |"]
    for line in found:
        share = (
            f"{line.coverage:.3f}" if LOW <= line.coverage <= HIGH else f"**{line.coverage:.3f}**"
        )
        rows_.append(
            f"| {' | '.join(line[:4])} | {share} | {line.intervals:,} | {line.ratio:.2f} |"
        )
    return "\n".join(rows_)


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and write the page with ``--write``.

    Status 1 if a line of a thousand intervals lies outside 92.5 to 98.5 %.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        help="part of «family table», as «series iris»; families are priors, rows, series and short",
    )
    parser.add_argument(
        "--draws", type=int, help="releases of each table instead of the usual number"
    )
    parser.add_argument(
        "--save", type=Path, help="where measured lines are kept as JSON, and taken from"
    )
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    kept: dict[str, list[Coverage]] = {}
    if given.save and given.save.exists():
        kept = {
            name: [Coverage(*line) for line in lines]
            for name, lines in json.loads(given.save.read_text()).items()
        }
    names = {
        f"{name} {table}": (table, family)
        for name, family in FAMILIES.items()
        for table in family.tables
    }
    for name, (table, family) in names.items():
        if name not in kept and given.only in name:
            kept[name] = list(measured(table, family, given.draws))
            if given.save:
                given.save.write_text(json.dumps(kept, indent=0) + "\n")
    single = [line for name in names for line in kept.get(name, [])]
    whole = sorted(pooled(single))
    schemes = f"{' and '.join(SCHEMES)}, and where numbers are cut into classes by {' and '.join(ADDITIVE)}"
    tables = told(whole), told(line for line in single if line.metric == ALL)
    draws = [given.draws or family.draws for family in FAMILIES.values()]
    text = PAGE.format(
        draws=draws, tables=", ".join(TABLES), schemes=schemes, pooled=tables[0], single=tables[1]
    )
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    return int(
        any(
            line.intervals >= 1000 and not LOW <= line.coverage <= HIGH
            for line in [*whole, *single]
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
