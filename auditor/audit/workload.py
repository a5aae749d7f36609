"""Estimate of time and memory for the audit of one release.

Time is rows × copies × attacks at a fixed nominal speed, one core of some 2.5 GHz. Attacks state
their own cost (``Attack.cost``). Memory counts the large arrays and adds a margin. Most shipped
scenarios take a third to three times the estimate (evidence/times.md), at most the memory.

*Not counted*: third-party plugins beyond their stated cost, and waits for disks.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack, expand_all
from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.request import release_copies
from auditor.audit.measures.every_cell import OWN_RECORDS
from auditor.audit.numeric.error_tally import FEWEST_HELD, KEEP_BYTES
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.process.containment import contained
from auditor.results.records import FEWEST_REPLICATES
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scenario.read_plugins import applies
from auditor.schemes.base.scheme import Scheme, by_engine
from auditor.schemes.replacement.base import categories_of

Try = tuple[Attack, Knowledge, int]
"""An attack, a state of knowledge that it can use, and its number of coalitions."""

# seconds
RELEASE, VALUE = 5e-3, 1.5e-7
ATTEMPT, COALITION, WEIGHT = 4e-3, 5e-5, 5e-8  # a linear attack, and a weight of one copy
LEARNT, APPLIED = 20_000, 1e-7  # most rows to learn from, and a value of the other rows
DRAWS, REDRAWN = 10, 40  # releases for error bars of attacks on rows, and of estimated knowledge
INSIDER, INSIDER_ROW = 0.05, 1.5e-5  # the insider learner of one attribute
LAWLESS = 7  # more seconds of that learner without a law
FOLD, FOLD_ROW = 2e-3, 5e-6  # of ``utility``
RECORD, CHANCE = 2.5e-7, 1.5e-9  # categories: a coalition's record and its chances
# bytes
LOADED, LEARNERS, MARGIN = 160 * 2**20, 64 * 2**20, 1.4  # libraries; for short-lived arrays
FIGURES, FITTED = 9_000, 350_000  # of a coalition and attribute; FITTED by an attack on rows
CODED, TESTED, MOST_TESTED = 40, 64, 2**20  # a code that is read; a value that is tested


class Workload(NamedTuple):
    """Columns, values to draw, nominal seconds and peak bytes of a release."""

    width: int
    values: int
    seconds: float
    memory: int
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
    width, size, made = table.width, 0, copies
    rows = min(table.rows, here.data.rows or table.rows)
    if categorical:
        data = categories_of(table)
        width, size = len(data.names), data.size
        if getattr(use.parameters, "implementation", "process") == "process":
            made = len({copy for coalition in asked for copy in coalition}) + copies // 256
    replicates = here.replicates_of(use)
    seconds = replicates * _seconds(here, use, tried, rows, width, size, made)
    seconds += pooling * width * _insider(rows) * min(copies - 1, 8)
    values = rows * (1 if categorical else width) * copies * replicates
    memory = CODED * (row_blocks(rows, BLOCK_WIDTH)[0][1] * made + width * rows)
    memory = memory if categorical else _number_bytes(here, table, use, tried)
    memory += TESTED * min(values // replicates, MOST_TESTED)
    memory += max((attack.cost_under(None).memory for attack, *_ in tried), default=0)
    memory += FIGURES * (width + 1) * replicates * sum(count for *_, count in tried)
    linear = all(isinstance(attack, LinearAttack) for attack, *_ in tried)
    stated = linear and not pooling and plugin.makes_copies and plugin.adds_noise
    memory = int(MARGIN * (LOADED + memory + (0 if stated else LEARNERS)))
    return Workload(width, values, seconds, memory, len(asked), plugin.engine)


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


def _insider(rows: int) -> float:
    return INSIDER + INSIDER_ROW * min(rows, LEARNT)


def _seconds(
    here: Scenario, use: SchemeUse, tried: list[Try], n: int, N: int, s: int, M: int
) -> float:
    """Seconds of one replicate; ``s`` values of categories, 0 for numbers."""
    scheme: Scheme | None = _made("scheme", use)
    if scheme is None:
        return RELEASE
    levels = () if use.levels is None else use.levels.resolve(here.seed)
    replicated = here.replicates >= FEWEST_REPLICATES
    # fits to a large table are held, unless more records steady no error
    stated = scheme.distribution != "unstated"
    held = replicated or (n > FEWEST_HELD and stated and not scheme.has_matrices and not s)
    seconds = RELEASE + (scheme.making_seconds(levels, n, N) if levels else 0.0)
    seconds += VALUE * n * (M + 1) * (1 if s else N)
    for attack, knowledge, coalitions in tried:
        if isinstance(attack, LinearAttack):
            each = COALITION + WEIGHT * M * N**2
            known = isinstance(knowledge, Perfect) or not attack.knowledge or replicated
            again = 1.0 if known else REDRAWN
        elif s and not attack.serial:
            each, again = n * (RECORD + CHANCE * s), 1.0
        else:
            cost = attack.cost_under(scheme.distribution)
            learnt = cost.fit + cost.row * min(n, LEARNT) + APPLIED * max(0, n - LEARNT)
            learnt *= n <= cost.most
            # attributes share much of the work
            each, again = (1 if s else (2 * N) ** 0.5) * learnt, 1.0 if held else DRAWS
        seconds += ATTEMPT + again * coalitions * each
    lawless = not (scheme.distribution and stated)
    lawless = lawless and not (scheme.has_matrices or (s and scheme.makes_copies))
    lawless = lawless and n >= OWN_RECORDS * (N * M + 1)
    if lawless and any(isinstance(knowledge, Perfect) for knowledge in here.knowledge):
        seconds += N * (M + 1) * LAWLESS * _insider(n)
    if here.utility and here.utility.target:
        folds = M * len(here.utility.models) * here.utility.folds
        seconds += folds * (FOLD + FOLD_ROW * n)
    return seconds


def _number_bytes(here: Scenario, table: Table, use: SchemeUse, tried: list[Try]) -> int:
    n, N = table.rows, table.width
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    M, block = release_copies(use, here), row_blocks(n, N)[0][1]
    held = n * M * scheme.blank(1, N).nbytes
    whole = here.utility is not None or scheme.needs_table
    kept = whole if table.streamed else held <= KEEP_BYTES
    used = held if kept else block * held // n
    used += 20 * N * (2 * block + (n if whole or not table.streamed else 2**16))
    fits = ((24 * M * N if isinstance(one, LinearAttack) else FITTED, k) for one, _, k in tried)
    used += N * max((size * count for size, count in fits), default=0)
    estimated = any(not isinstance(knowledge, Perfect) for _, knowledge, _ in tried)
    groups = 2 + moment_groups(n, N, (M + 1) * N)[-1][-1][0] + 28 * estimated
    used += 8 * ((M + 1) * N) ** 2 * groups
    return used + min(used, 2**25)  # freed memory may stay (``keep_freed_memory``)
