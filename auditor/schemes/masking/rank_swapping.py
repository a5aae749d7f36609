"""Rank swapping: values of a column exchanged with others of similar rank.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``p``, largest change of a value's rank, as a share of the records | scalar in [0, 1] | moore1996 |
| ``w`` | ``⌊p n⌋`` | scalar | |
| ``i ↔ j`` | from the lowest rank up: a free i is exchanged with a random free j among ``i + 1 … i + w`` | | |

Every column keeps its distribution exactly; correlations shrink. A value is known to an interval of
``2w`` ranks, which is narrow in the middle of a dense column. Copies are independent, so pooling
intersects the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.scheme import check_shares
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array, Indices

SWAP, SHIFT = 5e-7, 2e-11
"""Seconds per exchange, and per rank of the window to close its gap."""


@register
class RankSwapping(MaskedScheme):
    """Values swapped with others at most a share p of ranks away (level p).

    Each column separately, independent in every copy.
    """

    name = "rank-swapping"
    claims = "Nothing under collusion: a value's rank lies in the intersection of all intervals. Every column keeps its values."
    reference = "moore1996; hundepool2012, chapter 3"
    assumes = "Values of similar rank differ in size, and recipients never pool their copies."
    level_of_original = 0.0
    trial_levels = (0.05, 0.2, 0.1)

    def check_levels(self, levels: Sequence[float]) -> None:
        check_shares(levels, "p, the share of all ranks that a value may move", zero=True, one=True)

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        return sum((SWAP + SHIFT * level * rows) * rows * width for level in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            order = np.argsort(x, kind="stable")
            Y[order, j] = x[order[partners(len(x), int(level * len(x)), rng)]]
        return Y


def partners(n: int, window: int, rng: Rng) -> Indices:
    """Return the rank that every rank is exchanged with, shape (n,).

    At most ``window`` away; its own rank if none is free.
    """
    other, u = np.arange(n), rng.random(n).tolist()
    # Free ranks, ascending, from `free[first]` to the end of the window. One list slides over all
    # ranks: a new search per window is a hundred times as slow for wide windows.
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
