"""Rank swapping: each column's values in ascending order, every one exchanged with another not far from it in rank.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``p``, the share of the records that a value's rank may change by | scalar in [0, 1] | moore1996 |
| ``w`` | ``⌊p n⌋`` | scalar | |
| ``i ↔ j`` | from the lowest rank up: i, if it is not exchanged yet, with a j drawn from those of ``i + 1 … i + w`` that are not | | |

Every column keeps its values exactly, and so all that hangs on one column alone; correlations suffer. A value is known to an interval of
ranks, ``2w`` wide, and the middle of a crowded column is a narrow one. Copies are drawn anew: pooled, the intervals meet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.level_checks import check_shares
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array, Indices

SWAP, SHIFT = 5e-7, 2e-11
"""Seconds to exchange a value with one of those that are free, and, for each rank of the window, to close the gap that it leaves."""


@register
class RankSwapping(MaskedScheme):
    """Each column's values exchanged with others at most a share p of all ranks away (level = p), anew in every copy."""

    name = "rank-swapping"
    claims = "Nothing under collusion: a value's rank lies where all its intervals meet. Every column keeps its values."
    reference = "moore1996; hundepool2012, chapter 3"
    assumes = "Values that are near in rank are not near in size, and recipients never pool their copies."
    level_of_original = 0.0
    trial_levels = (0.05, 0.2, 0.1)

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse a level that is no share."""
        check_shares(levels, "p, the share of all ranks that a value may move", zero=True, one=True)

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        """Return what the exchanges take, which are made one after another."""
        return sum((SWAP + SHIFT * level * rows) * rows * width for level in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return the table, each column swapped by itself."""
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            order = np.argsort(x, kind="stable")
            Y[order, j] = x[order[partners(len(x), int(level * len(x)), rng)]]
        return Y


def partners(n: int, window: int, rng: Rng) -> Indices:
    """Return the rank that every rank is exchanged with, shape (n,), at most ``window`` away; its own where none is left."""
    other, u = np.arange(n), rng.random(n).tolist()
    # Ranks that are free, in ascending order, from `free[first]` to the end of its window. One list slides over all ranks: looking for
    # those that are free in every window anew takes a hundred times as long where windows are wide.
    free, first, end = list[int](), 0, 0
    while first < len(free) or end < n:
        i = free[first] if first < len(free) else end
        stop = min(i + window + 1, n)
        free.extend(range(end, stop))
        first, end = first + 1, max(end, stop)
        if first < len(free):
            j = free.pop(first + int(u[i] * (len(free) - first)))
            other[i], other[j] = j, i
    return other
