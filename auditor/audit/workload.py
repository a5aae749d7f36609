"""Estimates of time and memory for the audit of one release.

They are made before it is run.

Each kind of work has a constant, measured once on one core of some 2.5 GHz; an attack states its own
(``Attack.cost``). Times of shipped scenarios are within a factor of 3.5 (evidence/times.md). Memory
counts large arrays and adds a margin: at most 2.5 times the measured peak, as tests hold. *Not
counted*: third-party plugins beyond the cost that they state, and waits for disks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect
from auditor.audit.base.uses import make_scheme, release_levels
from auditor.audit.law_tests.chosen_rows import MOST_COORDINATES, rows_wanted, some_copies
from auditor.audit.numeric.limits import (
    CHUNK_VALUES,
    FEWEST_TREE_ROWS,
    FOLDS,
    KEEP_BYTES,
    KEPT_APART,
    MOST_TAUGHT,
    REDRAWS,
    ROWS_AGAIN,
    TREE_FITS,
    TREE_ROWS,
    TREE_TARGETS,
    groups_apart,
    trees_shown,
)
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import BLOCK_VALUES, moment_groups, row_blocks
from auditor.process.containment import contained
from auditor.process.memory import KEPT_BYTES
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.metrics import ALWAYS
from auditor.results.records import FEWEST_REPLICATES
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scenario.read_plugins import applies
from auditor.schemes.base.scheme import Scheme, by_engine, table_moments
from auditor.schemes.replacement.base import categories_of
from auditor.types import Coalition

Try = tuple[Attack, Knowledge, int]
"""An attack, a state of knowledge that it can use, and its number of coalitions."""

# -- seconds
NORMAL = 1.2e-8
"""To draw and add one normal variate."""
READ, PRODUCT = 9e-8, 1e-10
"""To read one value and test its copies; to add one product to the second moments."""
RELEASE, ATTEMPT, ERRORS = 4e-3, 1e-3, 2e-4
"""A release; a linear attack on it; its errors in one attribute."""
COALITION, SOLVE, WEIGHT, REDRAWN = 5e-5, 1.5e-9, 5e-8, 1.5e-7
"""A coalition in one draw; an entry of the matrix to solve for; a weight of one copy's attribute; a
product of second moments that is drawn again."""
FITTED_ROWS, APPLIED = 20_000, 1e-7
"""Most rows that attacks learn from; seconds per value of the other rows."""
GUESS, GUESSED = 3e-5, 5e-9
"""To draw one guess of an attack and count its hits, and per value guessed."""
TREE, TREE_VALUE = 0.1, 4e-7
"""Boosted trees for one attribute of a coalition, twice, and per value shown to them."""
FITTED_CELL = 1.3e-7
"""To fit one original value to one cell of a copy without a stated law."""
SEEDS = 3.5
"""To draw the first values of all guessable seeds, for copies from files."""
GEOMETRY, FOLD, FOLD_ROW = 0.04, 1e-3, 3e-6
"""Distances and clusters of one copy; a model of the ``utility`` section on one fold, and per row."""
COPY, CODE, RECORD, CHANCE, HISTORY = 2.5e-3, 6.5e-8, 9e-8, 1e-9, 6e-10
"""Categories: tests of a copy; a code of a copy; per record and coalition its count, and one value's
chance; an element of a history."""

# -- bytes
RECORD_BYTES, MEMBER_BYTES, BIN_BYTES = 1500, 56, 250
"""A row of results, a copy named by a coalition, a bin of a spread of errors (measured: 1,310 to
1,450, and 227)."""
LOADED = 200 * 2**20
"""A process with the engine and its libraries (measured: 154 to 180 MB)."""
KEY_TEXTS = 4
"""Copies of the text of record keys (measured: 3.5)."""
MARGIN = 1.6
"""For learners, rare libraries and short-lived arrays."""
ROW_MEASURES = {"within", "exact", "error-distribution", "error-quantiles", "interval-privacy"}
"""Measures for which linear attacks, too, go through the rows."""
TREE_BYTES, FITTED_COLUMN = 100, 350_000
"""Boosted trees, per value of the copies; a row attack, per attribute of a coalition."""
TABLES, MOMENTS_BESIDE, MAPS, TESTED, REDRAWN_MOMENTS = 2.5, 1, 3, 8, 18
"""Arrays as large as the table, the moments, all maps, the tested noise, and the moments that are
drawn again. Fitted together to the peaks of 24 whole runs (all within 1.0 to 1.5)."""
INSIDER = 120 * 2**20
"""scikit-learn, and draws of known generators, for copies from files."""
MOST_MOMENT_BYTES = 4 * 2**30
PROCESS_BYTES, MERGE_BYTES = 160, 48
"""Categories: a record's events in the replacement process; a key that is counted."""
POSTERIORS, OUTCOMES, QUANTITIES, CELLS = 2**18, 2**18, 8, 2**22
"""Limits of the categorical engine: numbers of a block of posteriors, outcomes in closed forms,
quantities per record, cells of a pass."""
CHOSEN, QUANTILE_ROWS = 2**24, 2**20
"""Rows that are shuffled, or held for quantiles, at most."""
FIGURES = 12
"""Rows of results of one coalition of categories."""


class Workload(NamedTuple):
    """Work of one release in one replicate.

    Attributes
    ----------
    width : int
        Columns that are perturbed.
    values : int
        Values to draw.
    seconds, once : float
        On one core, in every replicate, and in the first alone.
    memory : int
        Peak bytes of one process, without the rows of results.
    results : int
        Peak bytes of the rows of results, in the process that writes them.
    """

    width: int
    values: int
    seconds: float
    memory: int
    once: float = 0.0
    results: int = 0


def check_size(scheme: Scheme, table: Table, copies: int) -> None:
    """Refuse numbers with joint moments that do not fit into memory.

    They grow with the square of copies × attributes.

    Raises
    ------
    AuditorError
        With the memory that they need.
    PluginError
        The scheme names an unknown engine.
    """
    if by_engine({"numeric": False, "categorical": True}, scheme):
        return
    width = table.width
    if width == 0:
        raise AuditorError("the table has no column of numbers to add noise to")
    columns = width * (1 + copies * (scheme.output_width(width) == width))
    size = 8 * columns**2 * (1 + moment_groups(table.rows, width, columns)[-1][-1][0])
    if size > MOST_MOMENT_BYTES:
        raise AuditorError(
            f"{copies:,} copies of {width} attributes need {size / 2**30:,.1f} GiB for their joint moments, more than the "
            f"{MOST_MOMENT_BYTES / 2**30:.0f} GiB allowed; audit fewer copies at a time"
        )


def workload(here: Scenario, table: Table, use: SchemeUse, copies: int) -> Workload:
    """Return the work of one release, by rules of thumb.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    categorical = by_engine(
        {"numeric": False, "categorical": True}, registry.get("scheme", use.name)
    )
    tried = list(tries(here, use, copies))
    tries_held = sum(coalitions for *_, coalitions in tried)
    asked = expand_all(here.coalitions, copies, here.seed)
    once, extra = 0.0, 0
    memory = float(LOADED)
    if table.keys is not None:
        memory += KEY_TEXTS * sum(map(sys.getsizeof, table.keys.cells))
    if categorical:
        data = categories_of(table)
        width, values, figures = len(data.names), data.rows * copies, FIGURES
        seconds = categorical_seconds(here, use, tried, data.rows, data.size, copies)
        memory += _category_bytes(here, table, asked)
    else:
        width, values = table.width, table.rows * table.width * copies
        figures = (width + 1) * len(ALWAYS)
        seconds, once = numeric_seconds(here, use, tried, table.rows, width, copies)
        memory += max((attack.cost_under(None).memory for attack, *_ in tried), default=0)
        memory += 0 if registry.get("scheme", use.name).makes_copies else INSIDER
        memory += _number_bytes(here, table, use, copies, tried)
        spread = here.measure("error-distribution")
        if spread is not None:
            extra = BIN_BYTES * width * int(spread.options["bins"]) * tries_held
    results = RECORD_BYTES * tries_held * figures + MEMBER_BYTES * sum(map(len, asked)) + extra
    return Workload(width, values, seconds, int(MARGIN * memory), once, int(MARGIN * results))


def tries(here: Scenario, use: SchemeUse, copies: int) -> Iterator[Try]:
    """Yield the attacks with the states of knowledge that they can use against a scheme."""
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
    """Return a plugin; None if it cannot be made, which the audit reports."""
    with contained():
        return registry.get(kind, use.name)(use.parameters)
    return None


# -- time ------------------------------------------------------------------------------------------


def numeric_seconds(
    here: Scenario, use: SchemeUse, tried: Iterable[Try], rows: int, width: int, copies: int
) -> tuple[float, float]:
    """Return seconds for a release of numbers: in every replicate, and in the first alone."""
    scheme: Scheme | None = _made("scheme", use)
    levels = () if use.levels is None else use.levels.resolve(here.seed)
    columns, law = width * (copies + 1), None if scheme is None else scheme.distribution
    replicated = here.replicates >= FEWEST_REPLICATES
    drawn = NORMAL * rows * width * copies
    if scheme is not None and levels:
        drawn += scheme.making_seconds(levels, rows, width)
    passes = drawn + READ * rows * columns + PRODUCT * rows * columns**2
    share = 1.0 if rows * width <= BLOCK_VALUES else ROWS_AGAIN / rows
    draws = 1 + (0 if replicated else ROW_REDRAWS) * share
    seconds = RELEASE + passes
    if (
        scheme is not None
        and scheme.makes_copies
        and not (scheme.adds_noise or scheme.has_matrices)
    ):
        seconds += (draws - 1) * passes  # redraws of the release, for error bars of linear attacks
    for attack, knowledge, coalitions in tried:
        if isinstance(attack, LinearAttack):
            known = isinstance(knowledge, Perfect) or not attack.knowledge or replicated
            again = 0 if known else REDRAWS
            each = COALITION + SOLVE * width**3 + WEIGHT * copies * width**2
            seconds += ATTEMPT + ERRORS * width + each * coalitions * (1 + again)
            seconds += REDRAWN * columns**2 * again
        else:
            seconds += draws * (coalitions * fit_seconds(attack, rows, width, law) + drawn)
    if law is None and any(isinstance(knowledge, Perfect) for knowledge in here.knowledge):
        held = width * copies * (2 if copies > 1 else 1)  # every copy alone, and all together
        seconds += FITTED_CELL * min(rows, MOST_TAUGHT) * width * held
    if here.measure("geometry") is not None:
        seconds += GEOMETRY * copies
    if here.utility is not None:
        folds = copies * len(here.utility.models) * here.utility.folds
        seconds += folds * (FOLD + FOLD_ROW * rows)
    from_files = scheme is not None and not scheme.makes_copies
    return seconds, tree_seconds(here, rows, width, copies) + SEEDS * from_files


def fit_seconds(attack: Attack, rows: int, width: int, distribution: str | None = None) -> float:
    """Return seconds to fit an attack to one coalition's copies and run it over all rows."""
    cost = attack.cost_under(distribution)
    learnt, guesses = min(rows, FITTED_ROWS), getattr(attack.parameters, "guesses", 0)
    guessed = guesses * (GUESS + GUESSED * rows * width)
    return guessed + width * (cost.fit + cost.row * learnt + APPLIED * (rows - learnt))


def tree_seconds(here: Scenario, rows: int, width: int, copies: int) -> float:
    """Return seconds of the insider learner, if an expectation asks about pooling."""
    fits, shown, taken = _tree_fits(here, rows, width, copies)
    return fits * TREE * width + min(fits, 2) * TREE_VALUE * taken * width * (width * shown + 12)


def _tree_fits(here: Scenario, rows: int, width: int, copies: int) -> tuple[int, int, int]:
    """Return the insider learner's coalitions, copies of the widest one, and rows."""
    asked = any(judged.expectation.needs_pooling for judged in here.judged)
    fits = min(copies - 1, TREE_FITS, TREE_TARGETS // max(1, width))
    fits = fits if asked and rows >= FEWEST_TREE_ROWS else 0
    return fits, *trees_shown(min(rows, TREE_ROWS), max(1, width), copies)


def categorical_seconds(
    here: Scenario, use: SchemeUse, tried: Iterable[Try], rows: int, size: int, copies: int
) -> float:
    """Return seconds for a release of categories with ``size`` values, in every replicate."""
    draws = 1 if here.replicates >= FEWEST_REPLICATES else 1 + ROW_REDRAWS
    asked = expand_all(here.coalitions, copies, here.seed)
    held = len({copy for coalition in asked for copy in coalition})
    by_process = getattr(use.parameters, "implementation", "process") == "process"
    made = held if by_process else copies  # other copies are not made, unless for their neighbours
    seconds = RELEASE + COPY * held + CODE * rows * (made + 1)
    if here.measure("history-size") is not None:
        seconds += HISTORY * rows * copies
    for attack, _, coalitions in tried:
        each = rows * (RECORD + CHANCE * size)
        if attack.serial:
            each = draws * fit_seconds(attack, rows, 1)
        seconds += ATTEMPT + coalitions * each
    return seconds


# -- memory ----------------------------------------------------------------------------------------


def _number_bytes(
    here: Scenario, table: Table, use: SchemeUse, M: int, tried: Iterable[Try]
) -> float:
    n, N = table.rows, table.width
    scheme = make_scheme(use, here.base)
    block, record = row_blocks(n, N)[0][1] * 8, scheme.blank(1, N).nbytes
    kept = n * M * record
    drawn = kept if kept <= KEEP_BYTES and not table.streamed else block * (M * record // 8)
    undone = M * N if scheme.has_matrices else 0
    fits, shown, taken = _tree_fits(here, n, N, M)
    if table.streamed:
        taken = min(taken, rows_wanted(n, min(M * N, MOST_COORDINATES)))
    trees = TREE_BYTES * taken * N * shown if fits else 0
    tested = N * len(some_copies(M, N, MOST_COORDINATES))
    linear, on_rows = (
        max(
            (count for attack, _, count in tried if isinstance(attack, LinearAttack) == each),
            default=0,
        )
        for each in (True, False)
    )
    counted = {measure.name for measure in here.measures} & ROW_MEASURES
    working = max(
        CHUNK_VALUES * 8 * 4 if counted else 0,
        4 * on_rows * N * block + FITTED_COLUMN * N * on_rows,
        trees,
    )
    rows: float = TABLES * n * N * 8
    if table.streamed:
        from auditor.data.formats.parts import BATCH_ROWS  # start-up

        whole = n * N * 8 * (1 + M) if here.utility is not None or scheme.needs_table else 0
        rows = BATCH_ROWS * N * 8 * 4 + whole
    used: float = drawn + block * (undone + 5 * N) + TESTED * 8 * tested * rows_wanted(n, tested)
    used += MAPS * 8 * N * M * N * linear + working + rows
    # moments, by group if needed, and of redraws for estimated knowledge
    columns, levels = (M + 1) * N, release_levels(use, here)
    law = None if scheme.has_matrices else scheme.law(levels, table_moments(table).scale)
    pooling = any(judged.expectation.needs_pooling for judged in here.judged)
    apart = groups_apart(law, pooling) or columns <= KEPT_APART
    groups = moment_groups(n, N, columns)[-1][-1][0] + 1 if apart else 1
    if any(isinstance(knowledge, (Estimated, KnownRecords)) for _, knowledge, _ in tried):
        groups += FOLDS + REDRAWN_MOMENTS
    used += 8 * columns**2 * (groups + MOMENTS_BESIDE)
    return used + min(used, 2 * KEPT_BYTES)  # freed memory may stay (``keep_freed_memory``)


def _category_bytes(here: Scenario, table: Table, asked: list[Coalition]) -> float:
    # start-up
    from auditor.audit.law_tests.categorical import SCORE_BYTES, scored_copies, scored_rows

    data = categories_of(table)
    n, s, item = data.rows, data.size, data.code_type.itemsize
    held = sorted({copy for coalition in asked for copy in coalition})
    sizes = [*map(len, asked), *[1] * len(held)]
    drawing = row_blocks(n, BLOCK_WIDTH)[0][1] * (PROCESS_BYTES + item * (len(held) + 3) + 64)
    pairs = len(held) * min(n, s * s) * 16 * 2  # with the original, and with the copy before
    sums = len(sizes) * len(here.knowledge) * len(here.attacks) * QUANTITIES * 2 * s * 8 * 2
    few = sum(min(n, s ** (k + 1)) for k in sizes if s ** (k + 1) <= OUTCOMES) * 16
    scored = len(scored_copies(held, n))
    scores = SCORE_BYTES * (scored + 1) * sum(b - a for a, b in scored_rows(scored, n))
    cells = sum(min(n, 32 * min(n, s ** (k + 1))) for k in sizes if k > 1)
    pooling = any(judged.expectation.needs_pooling for judged in here.judged)
    counts = MERGE_BYTES * min(cells, CELLS) * (pooling or here.measure("belief-gap") is not None)
    trials = here.measure("empirical-epsilon")
    tried = 0 if trials is None else int(trials.options["trials"]) * (PROCESS_BYTES * 2 + 16)
    work: float = drawing + pairs + sums + few + 8 * 6 * max(POSTERIORS, 64 * s)
    work += max(8 * 4 * s * s, 8 * 12 * OUTCOMES, tried, scores, counts)
    if any(isinstance(state, (Estimated, KnownRecords)) for state in here.knowledge):
        work += 8 * min(n, CHOSEN)
    if data.streamed:
        binned = any("quantile" in rule for rule in here.data.bins.values())
        return max(work, 8 * 5 * min(n, QUANTILE_ROWS)) if binned else work
    kept = n * len(held) * item
    return work + n * (3 * 8 * table.width + 2 * item) + (kept if kept <= KEEP_BYTES else 0)
