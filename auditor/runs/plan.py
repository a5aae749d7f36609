"""What a run would do, before it is done: cells, rows, and an estimate of work and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.adversary.coalitions import expand_all
from auditor.audit.base.release import release_copies
from auditor.audit.engine import engine_of
from auditor.runs.check import check_data
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

INTERPRETER = 230 * 2**20
"""Resident memory of one process with numpy, scipy, pandas, scikit-learn and pyarrow loaded and nothing done yet (measured: 215 MiB)."""
SECONDS_PER_RUN, SECONDS_PER_CELL = 0.5, 1e-4
"""To start, read the scenario and write results; and for the records of one cell."""


@dataclass(frozen=True)
class Line:
    """The plan of one scheme at one sweep point."""

    where: str
    rows: int
    width: int
    copies: int
    replicates: int
    coalitions: int
    cells: int
    values: int
    memory: int
    work: float


def outline(scenario: Scenario) -> str:
    """Return the plan in words; loads the data and checks the scenario against them.

    Raises
    ------
    AuditorError
        The data cannot be audited as asked.
    """
    lines = list(plan_lines(scenario))
    cells, values = sum(line.cells for line in lines), sum(line.values for line in lines)
    seconds = SECONDS_PER_RUN + sum(line.work for line in lines) + cells * SECONDS_PER_CELL
    head = [
        f"{scenario.name}: {scenario.title}",
        f"  valid; {_releases(lines)}, {cells:,} cells, {len(scenario.judged)} expectations",
        f"  about {values:,} values to draw, {duration(seconds)} on one core; "
        f"{max(line.memory for line in lines) / 2**20:,.0f} MB of memory in each worker process",
    ]
    body = [f"  {line.where}: {line.rows:,} rows × {line.width}, {line.copies} copies, {line.coalitions:,} coalitions, {line.cells:,} cells"
            for line in lines[:40]]  # fmt: skip
    more = [f"  … and {len(lines) - 40} more"] if len(lines) > 40 else []
    return "\n".join(head + body + more)


def duration(seconds: float) -> str:
    """Write how long something takes, as roughly as it is known.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.2, 41.7, 100.0, 4000.0, 20_000.0)]
    ['1 s', '42 s', '2 minutes', '67 minutes', '5.6 hours']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _releases(lines: Sequence[Line]) -> str:
    replicates = {line.replicates for line in lines}
    if len(replicates) == 1:
        return f"{len(lines)} releases × {replicates.pop()} replicates"
    return f"{len(lines)} releases, {sum(line.replicates for line in lines):,} with their replicates"


def plan_lines(scenario: Scenario) -> list[Line]:
    """Return the plan of every release."""
    lines = []
    for point, table in check_data(scenario):
        here = at_point(scenario, point)
        where = ", ".join(f"{path}={value}" for path, value in point.items())
        for use in here.schemes:
            copies, replicates = release_copies(use, here), here.replicates_of(use)
            coalitions = len(expand_all(here.coalitions, copies, here.seed))
            cells = coalitions * len(here.knowledge) * len(here.attacks) * replicates
            work = engine_of(use).workload(here, table, use, copies, coalitions)
            lines.append(Line(
                where=f"{use.id}{f' at {where}' if where else ''}", rows=table.rows, width=work.width, copies=copies,
                replicates=replicates, coalitions=coalitions, cells=cells,
                values=work.values * replicates, memory=INTERPRETER + work.memory, work=work.seconds * replicates + work.once,
            ))  # fmt: skip
    return lines
