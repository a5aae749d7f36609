"""What the audit of a release takes, before it is run: values to draw, memory, time.

What is large is counted, and what comes and goes within a step is a rule of thumb: of memory rather too much, by half at most (tests hold
that), for tables in memory and in files. Of categories it is a function of the domain, the copies and the block, and not of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from auditor import registry
from auditor.adversary.attack import LinearAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.base.release import HEADS_BYTES, KEEP_BYTES, make_scheme
from auditor.audit.categorical.posterior_pass import BLOCK_NUMBERS, MOST_OUTCOMES, QUANTITIES
from auditor.audit.categorical.release import KEEP_BYTES as KEEP_CODES
from auditor.audit.cost import categorical_seconds, numeric_seconds, tree_fits
from auditor.audit.counts.outcome_counts import FEWEST_PENDING, MOST_CELLS, PASS_CELLS, possible_cells
from auditor.audit.drawn_law.chosen_rows import MOST_COORDINATES, rows_wanted
from auditor.audit.numeric.gather import MOST_SHUFFLED
from auditor.audit.numeric.reconstruct import CHUNK_VALUES
from auditor.audit.pooling.matching_records import MOST_LABELLED, MOST_NUMBERS
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.columns.quantiles import MOST_HELD
from auditor.data.formats.parts import BATCH_ROWS
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.results.metrics import ALWAYS
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.replacement.base import categories_of

ROW_MEASURES = {"within", "exact", "error-distribution", "error-quantiles", "interval-privacy"}
"""Measures for which linear attacks, too, go through the rows."""
PROCESS_BYTES = 160
"""A tuple's events and snapshots in the replacement process, at most."""
MERGE_BYTES = 48
"""A key that is counted: it, its count, and what sorting new ones in takes."""


MOMENTS_BESIDE = 10
"""Moments beside those of all groups: their sum, the law, correlations of the noise and the like (measured at 1,000 and 3,000 columns)."""
NUMBERS_LOADED, CATEGORIES_LOADED = 270 * 2**20, 200 * 2**20
"""Resident memory of a process with what an engine loads, after a small audit (measured: 224 without trees, 206)."""
TREES_LOADED, TREE_BYTES = 70 * 2**20, 500
"""Of boosted trees: their library, and for each value of the copies they are shown what they may read from it (measured: 350 to 600)."""
MARGIN = 1.1
"""Rather too much than too little: libraries differ that much from machine to machine."""
RECORD_BYTES = 600
"""A row of results, from the maps that its figures come from to the files that it is written to (measured at 65,535 coalitions: 570)."""


@dataclass(frozen=True)
class Workload:
    """What one release takes in one replicate.

    Attributes
    ----------
    width : int
        Columns that are perturbed.
    values : int
        Values to draw.
    seconds, once : float
        On one core, in every replicate, and besides in the first (`auditor.audit.cost`).
    memory : int
        Bytes at the peak of one process, interpreter and libraries included.
    """

    width: int
    values: int
    seconds: float
    memory: int
    once: float = 0.0


def numeric_workload(here: Scenario, table: Table, use: SchemeUse, copies: int, coalitions: int) -> Workload:
    """Return what a release of so many copies of numbers takes, attacked by so many coalitions."""
    values = table.rows * table.width * copies
    seconds, once = numeric_seconds(here, use, table.rows, table.width, copies)
    memory = NUMBERS_LOADED + _numeric_memory(here, table, use, copies, coalitions)
    return Workload(table.width, values, seconds, int(MARGIN * memory), once)


def categorical_workload(here: Scenario, table: Table, use: SchemeUse, copies: int, coalitions: int) -> Workload:
    """Return what a release of so many copies of categories takes, attacked by so many coalitions."""
    data = categories_of(table)
    seconds = categorical_seconds(here, use, data.rows, data.size, copies)
    memory = CATEGORIES_LOADED + _categorical_memory(here, table, data, copies)
    return Workload(len(data.names), data.rows * copies, seconds, int(MARGIN * memory))


def _numeric_memory(here: Scenario, table: Table, use: SchemeUse, copies: int, coalitions: int) -> int:
    n, N, M = table.rows, table.width, copies
    scheme = make_scheme(use, here.base)
    block = row_blocks(n, N)[0][1] * 8
    d = (M + 1) * N
    cells = coalitions * len(here.attacks) * len(here.knowledge)
    records = RECORD_BYTES * cells * (N + 1) * len(ALWAYS)
    moments = 8 * d * d * (1 + moment_groups(n, N, d)[-1][-1][0] + MOMENTS_BESIDE)
    record = scheme.blank(1, N).nbytes
    undone = M * N if scheme.has_matrices else 0
    blocks = block * (M * record // 8 + undone + 5 * N)
    fits, taken = tree_fits(here, n, N, M)
    shown = min(taken, rows_wanted(n, min(M * N, MOST_COORDINATES))) if table.streamed else taken
    trees, learner = (TREE_BYTES * shown * N * M, TREES_LOADED) if fits else (0, 0)
    rowwise = [not issubclass(registry.get("attack", attack.name), LinearAttack) for attack in here.attacks]
    counted = {measure.name for measure in here.measures}
    linear_rows = CHUNK_VALUES * 8 * 4 if counted & ROW_MEASURES and not all(rowwise) else 0
    each_row = 3 * coalitions * N * block if any(rowwise) else 0
    whole = n * N * 8 * (1 + M) if here.utility is not None or scheme.needs_table else 0
    if table.streamed:
        return records + moments + blocks + max(linear_rows, each_row, trees) + learner + whole + BATCH_ROWS * N * 8 * 4 + HEADS_BYTES
    kept = n * M * record
    copies_kept = kept if kept <= KEEP_BYTES else 0
    return records + moments + blocks + max(linear_rows, each_row, trees) + learner + 3 * n * N * 8 + copies_kept


def _categorical_memory(here: Scenario, table: Table, data: CategoricalTable, copies: int) -> int:
    needed = {copy for coalition in expand_all(here.coalitions, copies, here.seed) for copy in coalition}
    sizes = sorted(len(coalition) for coalition in expand_all(here.coalitions, copies, here.seed)) + [1] * len(needed)
    n, s = data.rows, data.size
    block = row_blocks(n, BLOCK_WIDTH)[0][1]
    item = data.code_type.itemsize
    drawing = block * (PROCESS_BYTES + item * (len(needed) + 3) + 8 * 8)
    posteriors = 8 * 6 * max(BLOCK_NUMBERS, 64 * s)
    pairs = len(needed) * min(n, s * s) * 16
    dense = 8 * 4 * s * s  # of one copy at a time, for the test of its law
    sums = len(sizes) * len(here.knowledge) * len(here.attacks) * QUANTITIES * 2 * s * 8 * 2
    few = sum(min(n, s ** (k + 1)) for k in sizes if s ** (k + 1) <= MOST_OUTCOMES) * 16
    closed = 8 * 12 * MOST_OUTCOMES
    chosen = 8 * min(n, MOST_SHUFFLED) if any(isinstance(state, (Estimated, KnownRecords)) for state in here.knowledge) else 0
    trials = here.measure("empirical-epsilon")
    tried = 0 if trials is None else int(trials.options["trials"]) * (PROCESS_BYTES * 2 + 16)
    work: int = drawing + posteriors + pairs + few + sums + max(dense, closed, tried, _counted(here, n, s, sizes)) + chosen
    if any("quantile" in rule for rule in here.data.bins.values()) and data.streamed:
        work = max(work, 8 * 5 * min(n, MOST_HELD))
    return work if data.streamed else work + _held(table, data, len(needed))


def _counted(here: Scenario, n: int, s: int, sizes: list[int]) -> int:
    """What outcomes of coalitions take while they are counted, in one pass."""
    several = [k for k in sizes if k > 1]
    cells = 0
    if any(use.expectation.needs_pooling for use in here.judged) and several:
        most = [min(n, possible_cells(n, s, k) * 32, MOST_NUMBERS) for k in several if k <= MOST_LABELLED]
        cells = max([min(sum(most), max(PASS_CELLS, max(most, default=0))), FEWEST_PENDING])
    if here.measure("belief-gap") is not None and several:
        most = [min(possible_cells(n, s, k), MOST_CELLS) for k in several]
        cells = max(cells, min(sum(most), max(PASS_CELLS, *most)))
    return math.ceil(cells * MERGE_BYTES)


def _held(table: Table, data: CategoricalTable, copies: int) -> int:
    """What a table in memory and its copies take."""
    kept = data.rows * copies * data.code_type.itemsize
    return data.rows * (3 * 8 * table.width + 2 * data.code_type.itemsize) + (kept if kept <= KEEP_CODES else 0)
