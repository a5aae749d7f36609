"""Sample sizes and memory limits of a numeric audit.

Apart from the engine, which ``auditor check`` must not import.
"""

from __future__ import annotations

from auditor.schemes.base.noise_law import NoiseLaw

KEEP_BYTES = 2**29
"""Copies up to this size stay in memory; larger ones are drawn again, block by block."""
CHUNK_VALUES = 2**15
"""Errors held at once: 256 KB, for a core's own cache."""
REDRAWS = 39
"""Redraws of moments. They all miss an event of probability 1/20 in 13 % of audits; ten would miss it
in 60 %."""
ROWS_AGAIN, MOST_AGAIN = 4_000, 20_000
"""Records of a large table that are perturbed again, for error bars: where errors over more records
are steadier, and elsewhere."""
RUNS, HELD_DRAWS = 8, 3
"""Runs of neighbouring records among them, and draws of each on which fitted attacks are held
fixed: 16 degrees of freedom."""
TREE_ROWS, FEWEST_TREE_ROWS = 20_000, 400
"""Most and fewest rows for trees: about a second for two attributes of three copies."""
TREE_FITS, TREE_TARGETS = 8, 16
"""Coalitions for which trees are fitted, the largest first, and their attributes in total. Eight
learners each take a second for three columns and a minute for forty."""
TREE_WORK, TREE_COLUMNS = 2**22, 32
"""Most rows times attributes times columns for trees, and most differences as features."""
FOLDS = 10
"""Folds of chosen rows, to be resampled (``auditor.audit.numeric.redraws``)."""
KEPT_APART = 256
"""Columns up to which moments of row groups are always kept: half a megabyte each."""


def trees_shown(rows: int, width: int, copies: int) -> tuple[int, int]:
    """Numbers of a coalition's copies and of rows for trees.

    Examples
    --------
    >>> trees_shown(20_000, 2, 5), trees_shown(20_000, 2, 30), trees_shown(20_000, 30, 3)
    ((5, 20000), (17, 20000), (2, 1941))
    """
    shown = min(copies, max(2, 1 + TREE_COLUMNS // width))
    return shown, max(FEWEST_TREE_ROWS, min(rows, TREE_WORK // (width * (width * shown + 12))))


def groups_apart(law: NoiseLaw | None, pooling: bool) -> bool:
    """Whether error bars or pooling need moments of row groups.

    Parameters
    ----------
    law : NoiseLaw or None
        Before copies were transformed.
    pooling : bool
        Whether an expectation is about pooling.
    """
    return pooling or law is None or not law.tells_spread
