"""What the audit of a release of numbers takes, before it is run; see ``auditor.audit.workload``."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import registry
from auditor.adversary.attack import LinearAttack
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.audit.base.uses import make_scheme, release_levels
from auditor.audit.cost import (
    MARGIN,
    Try,
    Workload,
    numeric_seconds,
    process_bytes,
    results_bytes,
    tree_fits,
    tries,
)
from auditor.audit.law_tests.chosen_rows import MOST_COORDINATES, rows_wanted, some_copies
from auditor.audit.numeric.limits import (
    CHUNK_VALUES,
    FOLDS,
    HEADS_BYTES,
    KEEP_BYTES,
    KEPT_APART,
    groups_apart,
)
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.process.memory import KEPT_BYTES
from auditor.results.metrics import ALWAYS
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme, table_moments

ROW_MEASURES = {"within", "exact", "error-distribution", "error-quantiles", "interval-privacy"}
"""Measures for which linear attacks, too, go through the rows."""
TREE_BYTES, FITTED_COLUMN = 100, 350_000
"""Of boosted trees, for each value of the copies; and of a fitted attack that is not linear, for
each attribute of a coalition."""
TABLES, MOMENTS_BESIDE, MAPS, TESTED = 2.5, 1, 3, 8
"""Arrays as large as the table, as the moments of all rows, as all maps, and as the noise that is looked at row by row: those that there
are at once. These four, and the next, are fitted together to the peaks of 24 whole runs with their pages, of 2 to 1,000 copies and 2 to
500 attributes (all within 1.0 to 1.5)."""
INSIDER = 120 * 2**20
"""Of scikit-learn, and of the first draws of known generators, where copies come from files."""
REDRAWN = 18
"""Arrays as large as the moments, where they are drawn again for what was estimated; beside those
of each part of what was chosen."""
BIN_BYTES = 250
"""Of a bin of a spread of errors, from its count to the file (measured: 227)."""
MOST_MOMENT_BYTES = 4 * 2**30
"""For the joint moments of a release: of the copies that numbers can be audited in at once."""


def check_size(scheme: Scheme, table: Table, copies: int) -> None:
    """Refuse a release whose moments would not fit: they grow with the square of copies × attributes, not with rows.

    Raises
    ------
    AuditorError
        Saying what it would need.
    """
    width = table.width
    if width == 0:
        raise AuditorError("the table has no column of numbers to add noise to")
    joint = copies if scheme.output_width(width) == width else 0
    columns = (joint + 1) * width
    size = 8 * columns**2 * (1 + moment_groups(table.rows, width, columns)[-1][-1][0])
    if size > MOST_MOMENT_BYTES:
        raise AuditorError(
            f"{copies:,} copies of {width} attributes need {size / 2**30:,.1f} GiB for their joint moments, more than the "
            f"{MOST_MOMENT_BYTES / 2**30:.0f} GiB allowed; audit fewer copies at a time"
        )


def numeric_workload(here: Scenario, table: Table, use: SchemeUse, copies: int) -> Workload:
    """Return what a release of so many copies of numbers takes."""
    values = table.rows * table.width * copies
    tried = list(tries(here, use, copies))
    seconds, once = numeric_seconds(here, use, tried, table.rows, table.width, copies)
    imported = max((attack.cost_under(None).memory for attack, *_ in tried), default=0)
    insider = 0 if registry.get("scheme", use.name).makes_copies else INSIDER
    memory = (
        process_bytes(table) + imported + insider + _numeric_memory(here, table, use, copies, tried)
    )
    spread = here.measure("error-distribution")
    bins = 0 if spread is None else table.width * int(spread.options["bins"])
    results = results_bytes(
        here, tried, copies, (table.width + 1) * len(ALWAYS)
    ) + BIN_BYTES * bins * sum(held for *_, held in tried)
    return Workload(table.width, values, seconds, int(MARGIN * memory), once, int(MARGIN * results))


def _numeric_memory(
    here: Scenario, table: Table, use: SchemeUse, copies: int, tried: Sequence[Try]
) -> float:
    n, N, M = table.rows, table.width, copies
    scheme = make_scheme(use, here.base)
    block = row_blocks(n, N)[0][1] * 8
    record = scheme.blank(1, N).nbytes
    kept = n * M * record
    drawn = kept if kept <= KEEP_BYTES and not table.streamed else block * (M * record // 8)
    undone = M * N if scheme.has_matrices else 0
    fits, shown, taken = tree_fits(here, n, N, M)
    taken = min(taken, rows_wanted(n, min(M * N, MOST_COORDINATES))) if table.streamed else taken
    trees = TREE_BYTES * taken * N * shown if fits else 0
    tested = N * len(some_copies(M, N, MOST_COORDINATES))
    looked_at = TESTED * 8 * tested * rows_wanted(n, tested)
    maps = (
        MAPS
        * 8
        * N
        * M
        * N
        * max(
            (needed for attack, _, needed in tried if isinstance(attack, LinearAttack)), default=0
        )
    )
    linear_rows = (
        CHUNK_VALUES * 8 * 4 if {measure.name for measure in here.measures} & ROW_MEASURES else 0
    )
    on_rows = max(
        (needed for attack, _, needed in tried if not isinstance(attack, LinearAttack)), default=0
    )
    each_row = 4 * on_rows * N * block + FITTED_COLUMN * N * on_rows
    whole = n * N * 8 * (1 + M) if here.utility is not None or scheme.needs_table else 0
    rows = TABLES * n * N * 8
    if table.streamed:
        # for start-up: of tables that stay in their files alone
        from auditor.data.formats.parts import BATCH_ROWS

        rows = BATCH_ROWS * N * 8 * 4 + HEADS_BYTES + whole
    working = max(linear_rows, each_row, trees)
    used = (
        drawn
        + block * (undone + 5 * N)
        + looked_at
        + maps
        + working
        + rows
        + _moments(here, table, use, M, tried)
    )
    # what was freed may stay, unused (``keep_freed_memory``)
    return used + min(used, 2 * KEPT_BYTES)


def _moments(here: Scenario, table: Table, use: SchemeUse, M: int, tried: Sequence[Try]) -> int:
    """Return the bytes of moments, of all rows or of each group, and of those drawn again for what is estimated."""
    n, N = table.rows, table.width
    d = (M + 1) * N
    scheme, levels = make_scheme(use, here.base), release_levels(use, here)
    law = None if scheme.has_matrices else scheme.law(levels, table_moments(table).scale)
    pooling = any(judged.expectation.needs_pooling for judged in here.judged)
    apart = groups_apart(law, pooling) or d <= KEPT_APART
    groups = moment_groups(n, N, d)[-1][-1][0] + 1 if apart else 1
    chosen = any(isinstance(knowledge, (Estimated, KnownRecords)) for _, knowledge, _ in tried)
    again = (FOLDS + REDRAWN) * chosen
    return 8 * d * d * (groups + MOMENTS_BESIDE + again)
