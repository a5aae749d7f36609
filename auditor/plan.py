"""What a run would do, before it is done: cells, rows, and an estimate of work and memory."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.audit import release_levels
from auditor.blocks import row_blocks, row_groups
from auditor.feasibility import check_data
from auditor.scenario.coalitions import expand_all
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

SECONDS_PER_NORMAL = 1.2e-8
"""Measured here for drawing and adding one normal variate (NUMBERS: 7.5 ns to draw, 1.1 to 1.2 times that in all)."""
SECONDS_PER_COALITION = 1e-4
"""An upper figure for one linear attack on one coalition of a few copies, its records included."""


@dataclass(frozen=True)
class Line:
    """The plan of one scheme at one sweep point."""

    where: str
    rows: int
    width: int
    copies: int
    coalitions: int
    cells: int
    values: int
    memory: int


def outline(scenario: Scenario) -> str:
    """Return the plan in words; loads the data and checks the scenario against them.

    Raises
    ------
    AuditorError
        The data cannot be audited as asked.
    """
    lines = list(plan_lines(scenario))
    cells, values = sum(line.cells for line in lines), sum(line.values for line in lines)
    seconds = values * SECONDS_PER_NORMAL + cells * SECONDS_PER_COALITION
    head = [
        f"{scenario.name}: {scenario.title}",
        f"  valid; {len(lines)} releases × {scenario.replicates} replicates, {cells:,} cells, {len(scenario.expect)} expectations",
        f"  about {values:,} values to draw, {max(1, round(seconds))} s on one core; "
        f"{max(line.memory for line in lines) / 2**20:,.0f} MB of working memory a worker",
    ]
    body = [f"  {line.where}: {line.rows:,} rows × {line.width}, {line.copies} copies, {line.coalitions:,} coalitions, {line.cells:,} cells"
            for line in lines[:40]]  # fmt: skip
    more = [f"  … and {len(lines) - 40} more"] if len(lines) > 40 else []
    return "\n".join(head + body + more)


def plan_lines(scenario: Scenario) -> list[Line]:
    """Return the plan of every release."""
    lines = []
    for point, table in check_data(scenario):
        here = at_point(scenario, point)
        where = ", ".join(f"{path}={value}" for path, value in point.items())
        for use in here.schemes:
            levels = release_levels(use, here)
            coalitions = len(expand_all(here.coalitions, len(levels), here.seed))
            cells = coalitions * len(here.knowledge) * len(here.attacks) * here.replicates
            n, N, M = table.rows, table.width, len(levels)
            name = f"{use.id}{f' at {where}' if where else ''}"
            lines.append(Line(name, n, N, M, coalitions, cells, n * N * M * here.replicates, working_memory(n, N, M)))
    return lines


def working_memory(n: int, N: int, M: int) -> int:
    """Return bytes of moments, and of copies kept or blocks drawn, for one release."""
    from auditor.audit import KEEP_BYTES

    blocks = row_blocks(n, N)
    d = (M + 1) * N
    groups = sum(len(cuts) for cuts in row_groups(n, N))
    copies = n * N * M * 8
    return 8 * d * d * groups + (copies if copies <= KEEP_BYTES else M * (blocks[0][1]) * N * 8) + n * N * 8
