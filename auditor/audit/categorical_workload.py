"""What the audit of a release of categories takes, before it is run; see ``auditor.audit.workload``."""

from __future__ import annotations

import math

from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.categorical.posterior_pass import BLOCK_NUMBERS, MOST_OUTCOMES, QUANTITIES
from auditor.audit.categorical.release import KEEP_BYTES
from auditor.audit.cost import (
    MARGIN,
    Workload,
    categorical_seconds,
    process_bytes,
    results_bytes,
    tries,
)
from auditor.audit.counts.outcome_counts import (
    FEWEST_PENDING,
    MOST_CELLS,
    PASS_CELLS,
    possible_cells,
)
from auditor.audit.law_tests.categorical import SCORE_BYTES, scored_copies, scored_rows
from auditor.audit.numeric.known_rows import MOST_SHUFFLED
from auditor.audit.pooling.matching_records import MOST_LABELLED, MOST_NUMBERS
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.columns.quantiles import MOST_HELD
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.replacement.base import categories_of

PROCESS_BYTES = 160
"""A tuple's events and snapshots in the replacement process, at most."""
MERGE_BYTES = 48
"""A key that is counted: it, its count, and what sorting new ones in takes."""
FIGURES = 12
"""Rows of results of one coalition, where nothing more is asked for."""


def categorical_workload(here: Scenario, table: Table, use: SchemeUse, copies: int) -> Workload:
    """Return what a release of so many copies of categories takes."""
    data = categories_of(table)
    tried = list(tries(here, use, copies))
    seconds = categorical_seconds(here, use, tried, data.rows, data.size, copies)
    memory = process_bytes(table) + _categorical_memory(here, table, data, copies)
    results = results_bytes(here, tried, copies, FIGURES)
    return Workload(
        len(data.names),
        data.rows * copies,
        seconds,
        int(MARGIN * memory),
        results=int(MARGIN * results),
    )


def _categorical_memory(here: Scenario, table: Table, data: CategoricalTable, copies: int) -> int:
    needed = {
        copy for coalition in expand_all(here.coalitions, copies, here.seed) for copy in coalition
    }
    sizes = sorted(
        len(coalition) for coalition in expand_all(here.coalitions, copies, here.seed)
    ) + [1] * len(needed)
    n, s = data.rows, data.size
    block = row_blocks(n, BLOCK_WIDTH)[0][1]
    item = data.code_type.itemsize
    drawing = block * (PROCESS_BYTES + item * (len(needed) + 3) + 8 * 8)
    posteriors = 8 * 6 * max(BLOCK_NUMBERS, 64 * s)
    pairs = len(needed) * min(n, s * s) * 16 * 2  # given the original, and given the copy before
    scored = len(scored_copies(sorted(needed), n))
    scores = (
        SCORE_BYTES * (scored + 1) * sum(stop - start for start, stop in scored_rows(scored, n))
    )
    dense = 8 * 4 * s * s  # of one copy at a time, for the test of its law
    sums = len(sizes) * len(here.knowledge) * len(here.attacks) * QUANTITIES * 2 * s * 8 * 2
    few = sum(min(n, s ** (k + 1)) for k in sizes if s ** (k + 1) <= MOST_OUTCOMES) * 16
    closed = 8 * 12 * MOST_OUTCOMES
    chosen = (
        8 * min(n, MOST_SHUFFLED)
        if any(isinstance(state, (Estimated, KnownRecords)) for state in here.knowledge)
        else 0
    )
    trials = here.measure("empirical-epsilon")
    tried = 0 if trials is None else int(trials.options["trials"]) * (PROCESS_BYTES * 2 + 16)
    work: int = (
        drawing
        + posteriors
        + pairs
        + few
        + sums
        + max(dense, closed, tried, scores, _counted(here, n, s, sizes))
        + chosen
    )
    if any("quantile" in rule for rule in here.data.bins.values()) and data.streamed:
        work = max(work, 8 * 5 * min(n, MOST_HELD))
    return work if data.streamed else work + _held(table, data, len(needed))


def _counted(here: Scenario, n: int, s: int, sizes: list[int]) -> int:
    """What outcomes of coalitions take while they are counted, in one pass."""
    several = [k for k in sizes if k > 1]
    cells = 0
    if any(use.expectation.needs_pooling for use in here.judged) and several:
        most = [
            min(n, possible_cells(n, s, k) * 32, MOST_NUMBERS)
            for k in several
            if k <= MOST_LABELLED
        ]
        cells = max([min(sum(most), max(PASS_CELLS, max(most, default=0))), FEWEST_PENDING])
    if here.measure("belief-gap") is not None and several:
        most = [min(possible_cells(n, s, k), MOST_CELLS) for k in several]
        cells = max(cells, min(sum(most), max(PASS_CELLS, *most)))
    return math.ceil(cells * MERGE_BYTES)


def _held(table: Table, data: CategoricalTable, copies: int) -> int:
    """What a table in memory and its copies take."""
    kept = data.rows * copies * data.code_type.itemsize
    return data.rows * (3 * 8 * table.width + 2 * data.code_type.itemsize) + (
        kept if kept <= KEEP_BYTES else 0
    )
