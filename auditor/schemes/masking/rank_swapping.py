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
from auditor.schemes.masking.masked import MaskedScheme, check_shares
from auditor.types import Array, Indices


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

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return the table, each column swapped by itself."""
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            order = np.argsort(x, kind="stable")
            Y[order, j] = x[order[partners(len(x), int(level * len(x)), rng)]]
        return Y


def partners(n: int, window: int, rng: Rng) -> Indices:
    """Return the rank that every rank is exchanged with, shape (n,), at most ``window`` away; its own where none is left."""
    other, free, u = np.arange(n), np.ones(n, dtype=bool), rng.random(n)
    for i in range(n):
        if not free[i]:
            continue
        choice = i + 1 + np.flatnonzero(free[i + 1 : i + 1 + window])
        if choice.size:
            j = choice[int(u[i] * choice.size)]
            other[i], other[j], free[j] = j, i, False
    return other
