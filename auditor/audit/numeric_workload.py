"""What the audit of a release of numbers takes, before it is run; see ``auditor.audit.workload``."""

from __future__ import annotations

from auditor.adversary.attack import LinearAttack
from auditor.audit.base.uses import make_scheme
from auditor.audit.cost import MARGIN, Workload, numeric_seconds, tree_fits, tries
from auditor.audit.drawn_law.chosen_rows import MOST_COORDINATES, rows_wanted
from auditor.audit.numeric.limits import CHUNK_VALUES, HEADS_BYTES, KEEP_BYTES
from auditor.data.formats.parts import BATCH_ROWS
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.results.metrics import ALWAYS
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme

ROW_MEASURES = {"within", "exact", "error-distribution", "error-quantiles", "interval-privacy"}
"""Measures for which linear attacks, too, go through the rows."""
MOMENTS_BESIDE = 10
"""Moments beside those of all groups: their sum, the law, correlations of the noise and the like (measured at 1,000 and 3,000 columns)."""
LOADED = 255 * 2**20
"""Resident memory of a process with what the engine loads, after a small audit (measured: 200 to 224 with the page)."""
LEARNERS = 90 * 2**20
"""Of scikit-learn, where it is asked for, with what it imports of SciPy (measured: 60 to 150)."""
TREES_GROWN, TREE_BYTES = 50 * 2**20, 500
"""Of boosted trees: their histograms, and for each value of the copies they are shown what they may read from it (measured: 350 to 600)."""
RECORD_BYTES = 600
"""A row of results, from the maps that its figures come from to the files that it is written to (measured at 65,535 coalitions: 570)."""
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


def numeric_workload(here: Scenario, table: Table, use: SchemeUse, copies: int, coalitions: int) -> Workload:
    """Return what a release of so many copies of numbers takes, attacked by so many coalitions."""
    values = table.rows * table.width * copies
    seconds, once = numeric_seconds(here, use, table.rows, table.width, copies)
    learns = here.utility is not None or here.measure("geometry") is not None
    memory = LOADED + LEARNERS * learns + _numeric_memory(here, table, use, copies, coalitions)
    return Workload(table.width, values, seconds, int(MARGIN * memory), once)


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
    trees, learner = (TREE_BYTES * shown * N * M, TREES_GROWN) if fits else (0, 0)
    rowwise = [needed for attack, _, needed in tries(here, use, copies) if not isinstance(attack, LinearAttack)]
    counted = {measure.name for measure in here.measures}
    linear_rows = CHUNK_VALUES * 8 * 4 if counted & ROW_MEASURES else 0
    each_row = 3 * max(rowwise, default=0) * N * block
    whole = n * N * 8 * (1 + M) if here.utility is not None or scheme.needs_table else 0
    if table.streamed:
        return records + moments + blocks + max(linear_rows, each_row, trees) + learner + whole + BATCH_ROWS * N * 8 * 4 + HEADS_BYTES
    kept = n * M * record
    copies_kept = kept if kept <= KEEP_BYTES else 0
    return records + moments + blocks + max(linear_rows, each_row, trees) + learner + 3 * n * N * 8 + copies_kept
