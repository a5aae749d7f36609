"""Algorithm ``multi-pert`` of xiao2009 (Figure 3), update corrected.

A tuple's compressed history (section 6) lists its values by falling retention, ``⟨p, Y⟩`` only
where the value changes. The value at a released level is the entry of the smallest ``p`` that is at
least the level. Expected space ``O(n + m)``.

The printed update inserts ``⟨p, Y⟩`` where Y differs from its left neighbour, and drops the next
element on the right if it equals Y. It misses an *implicit* right neighbour ``⟨p_r, Y_r⟩``, equal
to the left one. If Y differs from both, the look-up at ``p_r`` would return Y, never released at
that level. Here ``⟨p_r, Y_r⟩`` is explicit after the update if and only if ``Y_r ≠ Y``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.schemes.replacement.draws import Draws, code_type, coins
from auditor.types import Array, Codes


class Gap(NamedTuple):
    """Place of an unreleased level in the histories; arrays of shape (n,)."""

    high: float | None
    low: float | None
    """The released levels next above and next below."""
    after: NDArray[np.int64]
    """Place in the flat arrays where an element of the level belongs."""
    explicit: NDArray[np.bool_]
    """Whether the element at that place belongs to the level next below."""
    left: Codes | None
    """Values at the released level next above."""
    right: Codes | None
    """Values at the released level next below, equal to ``left`` unless explicit."""


class History:
    """Compressed histories of n tuples in flat arrays.

    Attributes
    ----------
    levels : list of float
        Retention probabilities released, ascending, each once.
    """

    def __init__(self, n: int, size: int) -> None:
        self.levels: list[float] = []
        self._p: NDArray[np.float64] = np.empty(0)
        self._y: Codes = np.empty(0, dtype=code_type(size))
        self._start = np.zeros(n + 1, dtype=np.int64)

    @property
    def elements(self) -> int:
        """Number of elements of all tuples."""
        return int(self._p.size)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of elements of each tuple, shape (n,)."""
        return np.diff(self._start)

    def place(self, level: float) -> NDArray[np.int64]:
        """Return each tuple's element at a released level, as array places."""
        held = np.zeros(self._p.size + 1, dtype=np.int64)
        np.cumsum(self._p >= level, out=held[1:])
        return self._start[:-1] + held[self._start[1:]] - held[self._start[:-1]] - 1

    def value(self, level: float) -> Codes:
        """Return the values at a released level, shape (n,)."""
        return self._y[self.place(level)]

    def holds(self, level: float) -> bool:
        """Return whether a level was released, in ``O(log m)``."""
        place = bisect_left(self.levels, level)
        return place < len(self.levels) and self.levels[place] == level

    def neighbours(self, level: float) -> tuple[float | None, float | None]:
        """Return the released levels next above and next below."""
        place = bisect_left(self.levels, level)
        return self.levels[place] if place < len(self.levels) else None, self.levels[
            place - 1
        ] if place else None

    def gap(self, level: float) -> Gap:
        """Return the history's neighbours of an unreleased level."""
        high, low = self.neighbours(level)
        after = self._start[:-1] if high is None else self.place(high) + 1
        explicit = np.zeros(after.size, dtype=bool)
        inside = np.flatnonzero(after < self._start[1:])
        explicit[inside] = self._p[after[inside]] == low  # False for all if no level is below
        left = None if high is None else self._y[after - 1]
        return Gap(
            high, low, after, explicit, left, None if low is None else self._y[after - ~explicit]
        )

    def record(self, level: float, values: Codes, gap: Gap) -> None:
        """Insert a new copy into the histories."""
        explicit = np.ones(values.size, dtype=bool) if gap.left is None else values != gap.left
        drop = restore = np.zeros(values.size, dtype=bool)
        if gap.right is not None:
            drop, restore = self._repair(values, gap.right, gap.explicit)
        kept = np.ones(self._p.size, dtype=bool)
        kept[gap.after[drop]] = False
        moved = np.concatenate([[0], np.cumsum(explicit.astype(np.int64) + restore - drop)])
        place = gap.after + moved[:-1]  # of the new element, if any; the restored one follows
        new, restored = place[explicit], (place + explicit)[restore]
        self._start = self._start + moved
        held = np.ones(self._start[-1], dtype=bool)
        held[new] = held[restored] = False
        p, y = np.empty(held.size), np.empty(held.size, dtype=self._y.dtype)
        p[held], y[held] = self._p[kept], self._y[kept]
        p[new], y[new] = level, values[explicit]
        if gap.right is not None:
            p[restored], y[restored] = gap.low, gap.right[restore]
        self._p, self._y = p, y
        self.levels.insert(bisect_left(self.levels, level), level)

    def _repair(
        self, values: Codes, right: Codes, was_explicit: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        same = values == right
        return was_explicit & same, ~was_explicit & ~same


class MultiPert:
    """Algorithm ``multi-pert`` for one table, for levels in any order.

    Replacements are drawn uniformly, or from ``pi``.
    """

    history_class = History

    def __init__(self, original: Codes, size: int, pi: Array | None = None) -> None:
        self._original = original
        self._size, self._pi = size, pi
        self.history = self.history_class(original.size, size)

    def release(self, level: float, draws: Draws) -> Codes:
        """Return the copy at a level, shape (n,), and store it.

        A repeated level returns the existing copy.
        """
        history = self.history
        if history.holds(level):
            return history.value(level)
        gap = history.gap(level)
        source = self._original if gap.left is None else gap.left
        values = draws.pick(
            source,
            gap.right,
            *coins(1.0 if gap.high is None else gap.high, level, gap.low, self._size, self._pi),
        )
        history.record(level, values, gap)
        return values
