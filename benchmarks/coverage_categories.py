"""How often intervals of ``posterior`` hold the truth: `python -m benchmarks.coverage_categories [draws] [--write PAGE]`.

A figure is about one table, and its interval about other draws of the noise and of the rows an adversary learns from. So the same real,
skewed table is released many times, and every interval is asked whether it holds the mean over all draws.

Left out are cells that are the same in 19 draws of 20 or more (the gain from multilevel copies, a breach that hardly ever happens): their
interval is that one value, which is what nearly every draw shows, though not exactly the mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.request import ReleaseRequest
from auditor.audit.engine import audit_release
from auditor.results.records import Measurement
from auditor.runs.tables import table_of
from auditor.scenario.read import read_scenario

Cell = tuple[str, str, tuple[int, ...]]

TABLES: dict[str, dict[str, Any]] = {
    "cps salary, 10 classes": {"source": "cps", "columns": ["salary"], "rows": 1500, "bin": {"salary": {"equal-width": 10}}},
    "cps household size": {"source": "cps", "columns": ["household_size"], "rows": 800, "categorical": ["household_size"]},
    "wisconsin mitoses": {"source": "wisconsin", "columns": ["mitoses"], "categorical": ["mitoses"]},
    "iris petal length, 8 classes": {"source": "iris", "columns": ["petal_length"], "bin": {"petal_length": {"equal-width": 8}}},
}
"""Three in four salaries are in the lowest class, mitoses are 1 in five of six; classes that few records or nobody have."""
LEVELS, DRAWS = [0.5, 0.25], 80
SCHEMES, ADDITIVE = ["uniform", "uniform-multilevel"], ["independent", "corner-wave"]
LOW, HIGH = 0.925, 0.985
"""Coverage that is called right."""
EVERY_ROW = "estimated from every row"
KNOWLEDGE: list[Any] = [
    "perfect", "uniform-prior", {"estimated": {"rows": 25}}, {"estimated": {"rows": 100}}, EVERY_ROW, {"known-records": 50},
]  # fmt: skip
ATTACKS: list[Any] = ["posterior", {"name": "posterior", "id": "posterior, inversion", "prior": "inversion"}]
METRICS = ("reconstruction_probability", "posterior_max", "accuracy", "normalized_error", "rho_breach", "collusion_gain")


ALL = "all"


class Coverage(NamedTuple):
    """One line of the table: how many intervals hold the mean, and the mean stated error over the true spread (geometric mean of cells)."""

    attack: str
    knowledge: str
    table: str
    metric: str
    coverage: float
    intervals: int
    ratio: float


def rows(draws: int = DRAWS, tables: Sequence[str] = tuple(TABLES), seed: int = 2012) -> list[Coverage]:
    """Return the coverage of every attack, knowledge, table and metric, and of all metrics, over so many draws of each release."""
    return [line for table in tables for line in _table_rows(table, draws, seed)]


def _table_rows(name: str, draws: int, seed: int) -> Iterator[Coverage]:
    cells: dict[tuple[str, str, str], dict[Cell, list[Measurement]]] = {}
    for record in drawn(TABLES[name], draws, seed):
        if record.metric in METRICS and record.status == "ok" and record.ci_low is not None:
            for metric in (record.metric, ALL):
                line = cells.setdefault((record.attack or "", named(record.knowledge or ""), metric), {})
                line.setdefault((record.scheme, record.metric, record.coalition), []).append(record)
    for (attack, knowledge, metric), found in sorted(cells.items()):
        parts = [part for part in map(held, found.values()) if part[0].size]
        if parts:
            inside = np.concatenate([part for part, _ in parts])
            ratio = float(np.exp(np.mean([np.log(max(ratio, 1e-9)) for _, ratio in parts])))
            yield Coverage(attack, knowledge, name, metric, float(inside.mean()), inside.size, ratio)


def named(knowledge: str) -> str:
    """Return a state of knowledge by the same name for tables of any length."""
    rows = knowledge.removeprefix("estimated(rows=").removesuffix(")")
    return "estimated(all rows)" if rows.isdigit() and int(rows) > 100 else knowledge


def held(group: Sequence[Measurement]) -> tuple[NDArray[np.bool_], float]:
    """Return for each draw of one cell whether its interval holds the mean over draws, and the mean stated error over the true spread."""
    value, error, low, high = np.array([(r.value, r.std_error, r.ci_low, r.ci_high) for r in group]).T
    if np.mean(np.abs(value - np.median(value)) < 1e-9) >= 0.95:
        return np.empty(0, dtype=np.bool_), 1.0
    return np.asarray((low <= value.mean()) & (value.mean() <= high)), float(error.mean() / value.std(ddof=1))


def drawn(data: dict[str, Any], draws: int, seed: int) -> Iterator[Measurement]:
    """Yield the measurements of all draws of one table's releases: uniform ones and, where numbers are cut into classes, additive ones."""
    schemes = [*SCHEMES, *(ADDITIVE if "bin" in data else [])]
    document = {
        "seed": seed, "data": data, "attacks": ATTACKS, "coalitions": ["subsets"],
        "schemes": [{"name": name, "levels": LEVELS} for name in schemes], "measures": ["rho-breach"],
    }  # fmt: skip
    n = table_of(read_scenario(document))[0].rows
    scenario = read_scenario(document | {"knowledge": [{"estimated": {"rows": n}} if k == EVERY_ROW else k for k in KNOWLEDGE]})
    table, _ = table_of(scenario)
    for replicate in range(1, draws + 1):
        for use in scenario.schemes:
            yield from audit_release(ReleaseRequest(scenario, {}, table, use, replicate)).measurements


PAGE = """\
# Calibration of the error bars of `posterior`

<!-- Written by `python -m benchmarks.coverage_categories {draws} --write docs/calibration-posterior.md`; do not edit. -->

Four real tables ({tables}) were each released {draws} times,
by {schemes}; an interval should hold the mean
over those releases 95 times in 100. Intervals of one release share its noise. *error / spread* is the mean stated standard error over
the standard deviation between releases. **Bold** is coverage outside 92.5 to 98.5 %. Figures that are the same in 19 releases of 20 are
left out.

## All tables together

{pooled}

## By table, all metrics

{single}
"""
HEAD = ["attack", "knowledge", "table", "metric", "coverage", "intervals", "error / spread"]


def pooled(found: Sequence[Coverage]) -> Iterator[Coverage]:
    """Yield lines of all tables together; their ratio is the geometric mean of the tables'."""
    lines: dict[tuple[str, str, str], list[Coverage]] = {}
    for line in found:
        lines.setdefault((line.attack, line.knowledge, line.metric), []).append(line)
    for (attack, knowledge, metric), parts in lines.items():
        count = sum(part.intervals for part in parts)
        coverage = sum(part.intervals * part.coverage for part in parts) / count
        yield Coverage(attack, knowledge, ALL, metric, coverage, count, float(np.exp(np.mean([np.log(part.ratio) for part in parts]))))


def told(found: Iterable[Coverage]) -> str:
    """Return lines as a Markdown table."""
    rows_ = [f"| {' | '.join(HEAD)} |", "| --- | --- | --- | --- | ---: | ---: | ---: |"]
    for line in found:
        share = f"{line.coverage:.3f}" if LOW <= line.coverage <= HIGH else f"**{line.coverage:.3f}**"
        rows_.append(f"| {' | '.join(line[:4])} | {share} | {line.intervals:,} | {line.ratio:.2f} |")
    return "\n".join(rows_)


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and write the page if asked to; status 1 if any line of a thousand intervals lies outside 92.5 to 98.5 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("draws", nargs="?", type=int, default=DRAWS)
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    single = rows(given.draws)
    whole = list(pooled(single))
    schemes = f"{' and '.join(SCHEMES)}, and where numbers are cut into classes by {' and '.join(ADDITIVE)}"
    tables = told(whole), told(line for line in single if line.metric == ALL)
    text = PAGE.format(draws=given.draws, tables=", ".join(TABLES), schemes=schemes, pooled=tables[0], single=tables[1])
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    return int(any(line.intervals >= 1000 and not LOW <= line.coverage <= HIGH for line in [*whole, *single]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
