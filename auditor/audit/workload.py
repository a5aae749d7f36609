"""Estimate of time and memory for the audit of one release.

Time is rows × copies × attacks at a fixed nominal speed, one core of some 2.5 GHz. Attacks state
their own cost (``Attack.cost``). Shipped scenarios are within a factor of 3 (evidence/times.md).
Memory counts large arrays and adds a margin: at least the measured peak, at most 2.5 times as much.

*Not counted*: third-party plugins beyond their stated cost, and waits for disks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack, expand_all
from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.numeric.error_tally import ROWS_AGAIN
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.process.containment import contained
from auditor.process.environment import KEPT_BYTES
from auditor.results.records import FEWEST_REPLICATES
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scenario.read_plugins import applies
from auditor.schemes.base.scheme import Scheme, by_engine
from auditor.schemes.replacement.base import categories_of

Try = tuple[Attack, Knowledge, int]
"""An attack, a state of knowledge that it can use, and its number of coalitions."""

# -- seconds
RELEASE, VALUE, PRODUCT = 0.015, 1e-7, 1e-10
"""A release and its tests; a value drawn, read and tested; a product of second moments."""
ATTEMPT, COALITION, WEIGHT, SOLVE = 4e-3, 5e-5, 5e-8, 1.5e-9
"""A linear attack; its coalition; a weight of one copy; an entry of the matrix to solve for."""
LEARNT, APPLIED = 20_000, 1e-7
"""Most rows that attacks learn from; seconds per value of the other rows."""
DRAWS, REDRAWN = 10, 40
"""Releases for the error bar of an attack on rows, and of estimated knowledge."""
INSIDER, INSIDER_ROW = 0.05, 1.5e-5
"""The insider learner of one attribute, and per row of at most `LEARNT`."""
FOLD, FOLD_ROW, CODE, RECORD, CHANCE = 2e-3, 5e-6, 1.5e-7, 2.5e-7, 1.5e-9
"""A fold of ``utility`` and its record; categories: a code, a record of a coalition, and one chance."""

# -- bytes
LOADED, MARGIN = 200 * 2**20, 1.6
"""A process with its libraries (measured: 154 to 180 MB); for learners and short-lived arrays."""
INSIDER_BYTES = 120 * 2**20
RECORD_BYTES, MEMBER_BYTES, FIGURES = 1500, 56, 6
"""A row of results; a copy named by a coalition; figures of one attribute."""
KEEP_BYTES, TESTED_VALUES, FITTED_COLUMN = 2**29, 2**20, 350_000
"""Copies kept in memory at most; values of tested noise; an attack on rows, per attribute."""
CELLS, CELL_BYTES, EVENT_BYTES, SCORED = 2**22, 48, 160, 2**21
"""Categories: most counted cells, their bytes, a record's events in the process, tested codes."""


class Workload(NamedTuple):
    """Columns, values to draw, nominal seconds and peak bytes of a release.

    ``results`` are the bytes of its rows of results.
    """

    width: int
    values: int
    seconds: float
    memory: int
    results: int
    coalitions: int
    engine: str


def workload(
    here: Scenario, table: Table, use: SchemeUse, copies: int, pooling: bool = False
) -> Workload:
    """Work of one release in all its replicates.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    plugin = registry.get("scheme", use.name)
    categorical = by_engine({"numeric": False, "categorical": True}, plugin)
    tried = list(tries(here, use, copies))
    asked = expand_all(here.coalitions, copies, here.seed)
    width, size = table.width, 0
    rows = min(table.rows, here.data.rows or table.rows)
    if categorical:
        data = categories_of(table)
        width, size = len(data.names), data.size
        memory = _category_bytes(here, table, size, max(map(len, asked), default=1), pooling)
    else:
        memory = _number_bytes(here, table, use, copies, tried)
    memory += LOADED + max((attack.cost_under(None).memory for attack, *_ in tried), default=0)
    memory += INSIDER_BYTES * (not plugin.makes_copies)
    memory += 0 if table.keys is None else 4 * sum(map(sys.getsizeof, table.keys.cells))
    figures = RECORD_BYTES * FIGURES * (width + 1) * sum(count for *_, count in tried)
    results = figures + MEMBER_BYTES * sum(map(len, asked))
    replicates = here.replicates_of(use)
    made = copies
    if categorical and getattr(use.parameters, "implementation", "process") == "process":
        made = len({copy for coalition in asked for copy in coalition})
        made += copies // 256
    seconds = replicates * _seconds(here, use, tried, rows, width, size, made)
    seconds += pooling * width * (INSIDER + INSIDER_ROW * min(rows, LEARNT)) * min(copies - 1, 8)
    values = rows * (1 if categorical else width) * copies * replicates
    memory, results = int(MARGIN * memory), int(MARGIN * results)
    return Workload(width, values, seconds, memory, results, len(asked), plugin.engine)


def tries(here: Scenario, use: SchemeUse, copies: int) -> Iterator[Try]:
    """Yield attacks with their usable knowledge against a scheme."""
    family = registry.get("scheme", use.name).family
    asked = expand_all(here.coalitions, copies, here.seed)
    for one in here.attacks:
        if (attack := _made("attack", one)) is None:
            continue
        attack = attack.form()
        tried = {coalition for coalition in asked if one.tries(coalition, copies)}
        needed = len(tried | {(copy,) for coalition in tried for copy in coalition})
        for knowledge in here.knowledge:
            if applies(attack, family, knowledge):
                yield attack, knowledge, needed


def _made(kind: str, use: PluginUse | SchemeUse) -> Any:
    with contained():
        return registry.get(kind, use.name)(use.parameters)
    return None


def _seconds(
    here: Scenario, use: SchemeUse, tried: list[Try], n: int, N: int, s: int, M: int
) -> float:
    """Seconds of one replicate; ``s`` values of categories, 0 for numbers."""
    scheme: Scheme | None = _made("scheme", use)
    law = None if scheme is None else scheme.distribution
    levels = () if use.levels is None else use.levels.resolve(here.seed)
    making = scheme.making_seconds(levels, n, N) if scheme is not None and levels else 0.0
    replicated = here.replicates >= FEWEST_REPLICATES
    # fits to a large table are held, unless more records steady no error
    steady = n > ROWS_AGAIN and not (scheme is not None and scheme.has_matrices)
    draws = 1.0 if replicated or steady else DRAWS
    drawn = CODE * n * (M + 1) if s else VALUE * n * N * (M + 1) + PRODUCT * n * (N * (M + 1)) ** 2
    seconds = RELEASE + making + drawn
    for attack, knowledge, coalitions in tried:
        cost, linear = attack.cost_under(law), isinstance(attack, LinearAttack)
        if linear:
            each = COALITION + SOLVE * N**3 + WEIGHT * M * N**2
            known = isinstance(knowledge, Perfect) or not attack.knowledge or replicated
            again = 1.0 if known else REDRAWN
        elif s and not attack.serial:
            each, again = n * (RECORD + CHANCE * s), 1.0
        else:
            learnt = cost.fit + cost.row * min(n, LEARNT) + APPLIED * max(0, n - LEARNT)
            each, again = (N if not s else 1) * learnt, draws
        seconds += ATTEMPT + again * coalitions * each
    if here.utility is not None:
        folds = M * len(here.utility.models) * here.utility.folds
        seconds += folds * (FOLD + FOLD_ROW * n)
    return seconds


def _number_bytes(here: Scenario, table: Table, use: SchemeUse, M: int, tried: list[Try]) -> int:
    n, N = table.rows, table.width
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    block, record = row_blocks(n, N)[0][1] * 8, scheme.blank(1, N).nbytes
    held = n * M * record
    drawn = held if held <= KEEP_BYTES and not table.streamed else block * M * record // 8
    on_rows = max(
        (count for one, _, count in tried if not isinstance(one, LinearAttack)), default=0
    )
    linear = max((count for one, _, count in tried if isinstance(one, LinearAttack)), default=0)
    rows = 20 * n * N
    if table.streamed:
        from auditor.data.formats.parts import BATCH_ROWS  # start-up

        whole = here.utility is not None or scheme.needs_table
        rows = 32 * BATCH_ROWS * N + 8 * n * N * (1 + M) * whole
    columns = (M + 1) * N
    estimated = any(not isinstance(knowledge, Perfect) for _, knowledge, _ in tried)
    groups = 2 + moment_groups(n, N, columns)[-1][-1][0] + 28 * estimated
    used = drawn + rows + 5 * N * block + 64 * min(n * N * M, TESTED_VALUES)
    used += 24 * N * M * N * linear + on_rows * N * (4 * block + FITTED_COLUMN)
    used += 8 * columns**2 * groups
    return used + min(used, 2 * KEPT_BYTES)  # freed memory may stay (``keep_freed_memory``)


def _category_bytes(here: Scenario, table: Table, s: int, largest: int, pooling: bool) -> int:
    data = categories_of(table)
    n, item, copies = data.rows, data.code_type.itemsize, max(1, largest)
    work = row_blocks(n, BLOCK_WIDTH)[0][1] * (EVENT_BYTES + item * (copies + 3))
    work += 32 * copies * min(n, s * s) + 48 * max(2**18, 64 * s)
    cells = min(CELLS, 32 * n) * (pooling or here.measure("belief-gap") is not None)
    work += max(32 * s * s, 48 * min(SCORED, n * copies), 96 * 2**18, CELL_BYTES * cells)
    if any(not isinstance(state, Perfect) for state in here.knowledge):
        work += 8 * min(n, 2**24)
    if data.streamed:
        return work
    return work + n * (24 * table.width + item * (2 + copies))
