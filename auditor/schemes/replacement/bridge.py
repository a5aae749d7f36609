"""Bridge sampler: a new copy from its two neighbours, all copies stored.

The law of ``multi-pert`` without its history: given its neighbours a new copy is independent of all
others (xiao2009, Lemma 1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from auditor.schemes.replacement.draws import Draws, coins
from auditor.types import Array, Codes


class Bridge:
    """Released copies of one table, and the draw of the next.

    Parameters
    ----------
    original : ndarray of shape (n,)
    size : int
        ``s``.
    levels, copies : sequences
        Released before.
    pi : ndarray of shape (s,), optional
        ``π``, uniform by default; ``draws`` must use it too.
    """

    def __init__(
        self,
        original: Codes,
        size: int,
        levels: Sequence[float] = (),
        copies: Sequence[Codes] = (),
        pi: Array | None = None,
    ) -> None:
        self._original = original
        self._size, self._pi = size, pi
        self._levels: list[float] = []
        self._copies: list[Codes] = []
        for level, copy in zip(levels, copies, strict=True):
            self.keep(level, copy)

    def release(self, level: float, draws: Draws) -> Codes:
        """Return the copy at a level, shape (n,).

        A repeated level returns the existing copy.
        """
        place = bisect_left(self._levels, level)
        if place < len(self._levels) and self._levels[place] == level:
            return self._copies[place]
        high, left = (
            (self._levels[place], self._copies[place])
            if place < len(self._levels)
            else (1.0, self._original)
        )
        low, right = (self._levels[place - 1], self._copies[place - 1]) if place else (None, None)
        copy = draws.pick(left, right, *coins(high, level, low, self._size, self._pi))
        self.keep(level, copy)
        return copy

    def keep(self, level: float, copy: Codes) -> None:
        """Store a released copy."""
        place = bisect_left(self._levels, level)
        if place == len(self._levels) or self._levels[place] != level:
            self._levels.insert(place, level)
            self._copies.insert(place, copy)
