"""How much an audit of numbers looks at, and what it keeps in memory: all that its plan needs to know of those who carry it out.

Apart from them, since ``auditor check`` would wait for their import, and it takes as long as all
that it does besides.
"""

from __future__ import annotations

from auditor.schemes.base.noise_law import NoiseLaw

HEADS_BYTES = 2**24
"""The first records of all blocks of a table in its file are kept up to this size, from one pass or
release to the next."""
KEEP_BYTES = 2**29
"""Copies up to this size stay in memory for row-level work; larger ones are drawn again, block by
block."""
CHUNK_VALUES = 2**15
"""Errors held at once: 256 KB, so that every step of their counting finds them in a core's own
cache, in memory used before."""
REDRAWS = 39
"""Of moments. What happens in one draw of twenty is missed by all of 39 in 13 of 100 audits; by all
of ten it would be in 60."""
MOST_TAUGHT = 20_000
"""Records from all over the table that teach what copies without a law tell of the originals, and
are judged."""
TREE_ROWS, FEWEST_TREE_ROWS = 20_000, 1_000
"""Rows that trees are taught and judged on: about a second for two attributes of three copies.
Fewer than the least tell nothing."""
TREE_FITS, TREE_TARGETS = 8, 16
"""Coalitions that are looked at, the widest first; and their attributes together. Eight learners each take a second for three columns and a
minute for forty: of a table with more attributes than that none is looked at."""
TREE_WORK, TREE_COLUMNS = 2**22, 32
"""Rows times attributes times columns that trees go through at most, and differences that they are
shown."""
FOLDS = 10
"""Parts that chosen rows are dealt into, so that an attack can be fitted again to other rows like
them (``redraws``)."""
KEPT_APART = 256
"""Columns up to which moments of row groups are kept apart whether anybody needs it or not: half a
megabyte each."""


def trees_shown(rows: int, width: int, copies: int) -> tuple[int, int]:
    """Return how many of a coalition's copies trees are shown, and at most how many of so many rows, of attributes from 1.

    Examples
    --------
    >>> trees_shown(20_000, 2, 5), trees_shown(20_000, 2, 30), trees_shown(20_000, 30, 3)
    ((5, 20000), (17, 20000), (2, 1941))
    """
    shown = min(copies, max(2, 1 + TREE_COLUMNS // width))
    return shown, max(FEWEST_TREE_ROWS, min(rows, TREE_WORK // (width * (width * shown + 12))))


def groups_apart(law: NoiseLaw | None, pooling: bool) -> bool:
    """Return whether moments of row groups are wanted apart, and not just of all rows: for error bars, or for what pooling buys.

    Parameters
    ----------
    law : NoiseLaw or None
        Of the noise, or of what there was before copies were transformed.
    pooling : bool
        Whether an expectation asks what pooling buys.
    """
    return pooling or law is None or not law.tells_spread
