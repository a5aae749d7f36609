"""How the rows of a table are cut into blocks, stripes and row groups: by the table's shape alone, whatever the number of workers.

| cut | what it is for | size |
| --- | --- | --- |
| block | read, drawn and attacked at once; has a random stream of its own | 2¹⁸ values |
| stripe | whole blocks: the least share of a pass that a worker is given | 1 to 16 blocks |
| row group | moments kept apart, for the jackknife | 32 to 64 in a table, or 64 runs of stripes |
| piece, chunk | stays in the cache while it is worked on | 2¹⁶ to 2¹⁸ values |

Noise is keyed by block, and floating-point sums depend on their order, so these cuts are part of what a seed means: with other cuts the
same seed would draw other copies, and sums would end in other bits.
"""

from __future__ import annotations

import itertools
import math

BLOCK_VALUES = 2**18
"""Values (rows × attributes) in a block: large enough that seeding a stream is 5 % of filling it, small enough for the cache."""

CHUNK_VALUES = 2**18
"""Values in a piece that stays in the cache (two megabytes) while it is centred, multiplied and written."""

PIECE_VALUES = 2**16
"""Values of one table in a piece that many tables are read beside: half a megabyte, so that a core's own cache keeps one."""

JACKKNIFE_GROUPS = 32
"""Groups of rows for jackknife errors: their variance is known to 1/sqrt(2·31) = 13 %, and t(31) is close to normal."""

FEWEST_GROUPS = 8
"""Groups where each takes much memory: intervals by t(7) cover as often, and are a sixth wider."""
MOST_PRODUCTS = 2**25
"""Products in the moments of all groups, 256 MiB: of fewer than 724 columns all groups are kept."""


def row_blocks(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the ``(start, stop)`` of every block of a table with that many rows and attributes.

    Examples
    --------
    >>> row_blocks(100_000, 8)
    [(0, 32768), (32768, 65536), (65536, 98304), (98304, 100000)]
    """
    size = block_rows(width)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def block_rows(width: int) -> int:
    """Return how many rows every block but the last one has, of a table with that many attributes."""
    return max(64, BLOCK_VALUES // max(1, width))


STRIPES = 64
"""Up to so many blocks each is a stripe of its own; more blocks make so many stripes, or a multiple, of ``MOST_BLOCKS`` at most."""
MOST_BLOCKS = 16
"""Blocks of the longest stripe: some four million values, half a second of work."""


def stripes(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the ``(first, stop)`` block numbers of every stripe: the least that one worker is given, and sums are added up for.

    A cut by shape alone, as that into blocks: sums over a stripe are taken in order by one worker, then those of all stripes in order,
    so that no figure depends on which worker took which stripe.

    Examples
    --------
    >>> stripes(100_000, 8)
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    >>> len(stripes(20_000_000, 4)), stripes(20_000_000, 4)[:2], len(stripes(200_000_000, 4))
    (64, [(0, 4), (4, 9)], 192)
    """
    count = len(row_blocks(rows, width))
    return _split(0, count, min(count, STRIPES * math.ceil(count / (STRIPES * MOST_BLOCKS))))


def chunks(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the ``(start, stop)`` of pieces small enough for the cache, for work whose result does not depend on the cut."""
    size = max(64, CHUNK_VALUES // max(1, width))
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def pieces(start: int, stop: int, width: int) -> list[tuple[int, int]]:
    """Cut rows ``start`` to ``stop`` evenly into pieces that stay in the cache while their moments are taken."""
    return evenly(start, stop, width, PIECE_VALUES)


def evenly(start: int, stop: int, width: int, values: int) -> list[tuple[int, int]]:
    """Cut rows ``start`` to ``stop`` evenly into pieces of about so many values (rows × attributes), 64 rows at least."""
    size = max(64, values // max(1, width))
    return _split(start, stop, max(1, round((stop - start) / size)))


def row_groups(rows: int, width: int) -> list[list[tuple[int, int]]]:
    """Return, block by block, the contiguous row groups that moments are kept for.

    About ``min(rows, 32)`` groups, and one for each block once there are more blocks than that: a group never lies in two blocks, so that
    a block can be worked on without its neighbours.
    """
    blocks = row_blocks(rows, width)
    target = rows / min(rows, JACKKNIFE_GROUPS)
    return [_split(start, stop, max(1, round((stop - start) / target))) for start, stop in blocks]


def block_head(rows: int, width: int, wanted: int) -> int | None:
    """Return how many records from the start of every block make up some ``wanted`` of a table's; None for all of them.

    Records from all over the table, and the same ones in every run. Where neighbours are alike they say less than as many at random.

    Examples
    --------
    >>> block_head(100_000, 2, 262_144), block_head(20_000_000, 4, 262_144)
    (None, 859)
    """
    if rows <= wanted:
        return None
    start, stop = row_blocks(rows, width)[0]
    return math.ceil(wanted * (stop - start) / rows)


def moment_groups(rows: int, width: int, columns: int = 0) -> list[list[tuple[int, int, int]]]:
    """Return, block by block, ``(group, start, stop)`` of the row groups that joint moments are kept for.

    Those of ``row_groups`` while there are few blocks; of more than ``STRIPES`` blocks, groups are runs of as many whole stripes each, and
    there are exactly ``STRIPES`` of them, so that what is kept does not grow with the table. Where moments of so many ``columns`` are
    large, neighbouring groups are one, evenly: no more are left than ``MOST_PRODUCTS`` has room for, and ``FEWEST_GROUPS`` at the least.
    """
    cuts, lines = row_groups(rows, width), stripes(rows, width)
    if len(cuts) <= STRIPES:
        numbers = itertools.count()
        found = [[(next(numbers), a, b) for a, b in parts] for parts in cuts]
    else:
        together = len(lines) // STRIPES
        group = [number // together for number, cut in enumerate(lines) for _ in range(*cut)]
        found = [[(group[block], a, b) for a, b in parts] for block, parts in enumerate(cuts)]
    count, most = found[-1][-1][0] + 1, max(FEWEST_GROUPS, MOST_PRODUCTS // max(1, columns**2))
    return found if count <= most else [[(number * most // count, a, b) for number, a, b in parts] for parts in found]


def _split(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    cuts = [start + math.floor((stop - start) * k / parts) for k in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]
