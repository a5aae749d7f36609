"""Plan of a run: cells, rows, and an estimate of time and memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.request import release_copies
from auditor.audit.workload import workload
from auditor.data.table import Table
from auditor.errors import shortened
from auditor.process.containment import contained
from auditor.process.environment import KEPT_BYTES, available, free, may_fork, processors
from auditor.runs.check import Tables
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scenario.read import at_point
from auditor.text.durations import duration

SECONDS_PER_RUN, SECONDS_PER_CELL = 1.0, 1e-4
"""To start, read the scenario and write results; for the records of one cell."""
WORTH_SHARING = 2.0
"""Least seconds of work for several processes by default."""
MOST_SCHEMES = 40
LONGEST_SWEEP = 80
"""Characters of the list of a swept path's values."""


class Line(NamedTuple):
    """Plan of one scheme at one sweep point."""

    scheme: str
    rows: int
    width: int
    copies: int
    replicates: int
    coalitions: int
    cells: int
    values: int
    memory: int
    work: float
    results: int = 0
    engine: str = "numeric"


def memory_of(lines: Sequence[Line]) -> int:
    """Return the bytes of one process without results; freed memory of each engine may stay."""
    engines = {line.engine for line in lines}
    return max(line.memory for line in lines) + 2 * KEPT_BYTES * (len(engines) - 1)


def outline(scenario: Scenario, tables: Tables) -> str:
    """Return the plan as text, for the tables of ``check_data``."""
    lines = plan_lines(scenario, tables)
    cells, values = sum(line.cells for line in lines), sum(line.values for line in lines)
    took = duration(seconds_of(lines))
    memory, there, now = memory_of(lines) + sum(line.results for line in lines), available(), free()
    replicates = {line.replicates for line in lines}
    releases = f"{len(lines)} releases × {min(replicates)} replicates"
    if len(replicates) > 1:
        total = sum(line.replicates for line in lines)
        releases = f"{len(lines)} releases, {total:,} with their replicates"
    text = [
        f"{scenario.name}: {scenario.title}",
        f"  valid; {releases}, {cells:,} cells, {len(scenario.judged)} expectations",
        f"  about {values:,} values to draw, {took} on one core; {memory / 2**20:,.0f} MB of memory in each worker process",
    ]
    if memory > there:
        text.append(
            f"  WARNING: that is more than the {there / 2**20:,.0f} MB that there are; audit fewer rows, copies or coalitions"
        )
    elif memory > now:
        text.append(
            f"  WARNING: that is more than the {now / 2**20:,.0f} MB free now; end other programs, or audit less at a time"
        )
    if scenario.budget is not None:
        out = "; ".join(scenario.left_out) or "nothing"
        text.append(f"  budget of {scenario.budget:g} s leaves out: {out}")
    for path, swept in scenario.sweep.items():
        listed = shortened(json.dumps(swept, ensure_ascii=False), LONGEST_SWEEP)
        count = f"{len(swept)} {'value' if len(swept) == 1 else 'values'}"
        text.append(f"  swept: {path} over {count}: {listed}")
    schemes = list(dict.fromkeys(line.scheme for line in lines))
    for name in schemes[:MOST_SCHEMES]:
        text.append(_folded(name, [line for line in lines if line.scheme == name]))
    if len(schemes) > MOST_SCHEMES:
        text.append(f"  … and {len(schemes) - MOST_SCHEMES} more")
    return "\n".join(text)


def seconds_of(lines: Sequence[Line]) -> float:
    """Return the estimated time of a run on one core."""
    return SECONDS_PER_RUN + sum(line.work + line.cells * SECONDS_PER_CELL for line in lines)


def _folded(scheme: str, lines: Sequence[Line]) -> str:
    """Return the plan of one scheme over all sweep points in a line."""
    rows, width, copies, coalitions = (
        _span([getattr(line, name) for line in lines])
        for name in ("rows", "width", "copies", "coalitions")
    )
    several = len(lines) > 1
    where, in_all = (f" at {len(lines)} sweep points", " in all") if several else ("", "")
    cells = f"{sum(line.cells for line in lines):,} cells{in_all}"
    return f"  {scheme}{where}: {rows} rows × {width}, {copies} copies, {coalitions} coalitions, {cells}"


def _span(numbers: Sequence[int]) -> str:
    """Write the span of some numbers.

    Examples
    --------
    >>> _span([3, 3]), _span([1000, 20, 300])
    ('3', '20 to 1,000')
    """
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def workers_worth(scenario: Scenario, tables: Tables) -> int:
    """Return the default number of processes.

    One per processor for a long run, if half of the free memory suffices. One if forks are not
    possible, or a plugin fails, which the run will record.
    """
    with contained():
        work = seconds_of(lines := plan_lines(scenario, tables)) - SECONDS_PER_RUN
        if work >= WORTH_SHARING and may_fork():
            return max(1, min(processors(), free() // (2 * memory_of(lines))))
    return 1


def plan_lines(scenario: Scenario, tables: Tables) -> list[Line]:
    """Return the plan of every release, for the tables of ``check_data``."""
    return [
        line_of(here, point, use, table)
        for point, table in tables
        for here in [at_point(scenario, point)]
        for use in here.schemes
    ]


def line_of(here: Scenario, point: dict[str, Any], use: SchemeUse, table: Table) -> Line:
    """Return the plan of one release of a scenario at a sweep point."""
    copies, replicates = release_copies(use, here), here.replicates_of(use)
    coalitions = len(expand_all(here.coalitions, copies, here.seed))
    judged = tuple(one for one in here.judged if one.asks_pooling(use.id, point))
    work = workload(replace(here, judged=judged), table, use, copies)
    return Line(
        scheme=use.id,
        rows=table.rows,
        width=work.width,
        copies=copies,
        replicates=replicates,
        coalitions=coalitions,
        cells=coalitions * len(here.knowledge) * len(here.attacks) * replicates,
        values=work.values,
        memory=work.memory,
        work=work.seconds,
        results=work.results * replicates,
        engine=registry.get("scheme", use.name).engine,
    )
