"""What a run would do, before it is done: cells, rows, and an estimate of work and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor import registry
from auditor.adversary.attack import LinearAttack
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.release import KEEP_BYTES, make_scheme, release_levels
from auditor.audit.numeric.reconstruct import CHUNK_VALUES
from auditor.data.formats.parts import BATCH_ROWS
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.runs.categorical_memory import is_uniform, working_bytes
from auditor.runs.check import check_data
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scenario.read import at_point

SECONDS_PER_NORMAL = 1.2e-8
"""Measured here for drawing and adding one normal variate (NUMBERS: 7.5 ns to draw, 1.1 to 1.2 times that in all)."""
ROW_MEASURES = {"within", "error-distribution", "error-quantiles", "interval-privacy"}
"""Measures for which linear attacks, too, go through the rows."""
SECONDS_PER_RECORD, SECONDS_PER_CHANCE = 3e-8, 2e-9
"""Upper figures for one record of one coalition's categories: counting it, and one value's chance in its posterior."""
SECONDS_PER_COALITION = 1e-4
"""An upper figure for one linear attack on one coalition of a few copies, its records included."""


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
    seconds = sum(line.work for line in lines) + cells * SECONDS_PER_COALITION
    head = [
        f"{scenario.name}: {scenario.title}",
        f"  valid; {_releases(lines)}, {cells:,} cells, {len(scenario.judged)} expectations",
        f"  about {values:,} values to draw, {max(1, round(seconds))} s on one core; "
        f"{max(line.memory for line in lines) / 2**20:,.0f} MB of memory in each worker process",
    ]
    body = [f"  {line.where}: {line.rows:,} rows × {line.width}, {line.copies} copies, {line.coalitions:,} coalitions, {line.cells:,} cells"
            for line in lines[:40]]  # fmt: skip
    more = [f"  … and {len(lines) - 40} more"] if len(lines) > 40 else []
    return "\n".join(head + body + more)


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
            levels = release_levels(use, here)
            coalitions = len(expand_all(here.coalitions, len(levels), here.seed))
            cells = coalitions * len(here.knowledge) * len(here.attacks) * here.replicates
            n, M = table.rows, len(levels)
            N = len(table.categorical.names) if table.categorical is not None and is_uniform(use.name) else table.width
            name = f"{use.id}{f' at {where}' if where else ''}"
            memory = working_memory(here, table, use, M, coalitions)
            values = n * M * here.replicates if is_uniform(use.name) else n * N * M * here.replicates
            work = values * SECONDS_PER_NORMAL
            if is_uniform(use.name) and table.categorical is not None:
                work += n * cells * (SECONDS_PER_RECORD + SECONDS_PER_CHANCE * table.categorical.size)
            lines.append(Line(name, n, N, M, here.replicates, coalitions, cells, values, memory, work))
    return lines


INTERPRETER = 230 * 2**20
"""Resident memory of one process with numpy, scipy, pandas, scikit-learn and pyarrow loaded and nothing done yet (measured: 215 MiB)."""


def working_memory(here: Scenario, table: Table, use: SchemeUse, copies: int, coalitions: int) -> int:
    """Return bytes at the peak of one worker process, the interpreter included, for one release.

    An estimate: what is large is counted, and what comes and goes within a step by rule of thumb. Within a factor of 1.6 of what
    was measured (tests hold that) for tables in memory and in files.
    """
    if table.categorical is not None and is_uniform(use.name):
        return INTERPRETER + working_bytes(here, table, table.categorical, copies)
    n, N, M = table.rows, table.width, copies
    scheme = make_scheme(use, here.base)
    block = row_blocks(n, N)[0][1] * 8
    d = (M + 1) * N
    moments = 8 * d * d * 3 * max(group for parts in moment_groups(n, N) for group, _, _ in parts)
    blocks = block * (M * scheme.output_width(N) + d + 4 * N)
    rowwise = [not issubclass(registry.get("attack", attack.name), LinearAttack) for attack in here.attacks]
    counted = {measure.name for measure in here.measures}
    linear_rows = CHUNK_VALUES * 8 * 4 if counted & ROW_MEASURES and not all(rowwise) else 0
    each_row = 3 * coalitions * N * block if any(rowwise) else 0
    whole = n * N * 8 * (1 + M) if here.utility is not None or hasattr(scheme, "table") else 0
    if table.streamed:
        return INTERPRETER + moments + blocks + max(linear_rows, each_row) + whole + BATCH_ROWS * N * 8 * 4
    kept = n * M * scheme.output_width(N) * 8
    copies_kept = kept if kept <= KEEP_BYTES else 0
    return INTERPRETER + moments + blocks + max(linear_rows, each_row) + 3 * n * N * 8 + copies_kept
