"""``multi-pert`` of xiao2009 (Figure 3), on the compressed history of its section 6 with the update put right.

A tuple's history lists its values by falling retention, ``⟨p, Y⟩`` only where the value changes; the value at a level released
before is that of the smallest ``p`` in the history that is at least the level. Expected space ``O(n + m)``.

The printed update inserts ``⟨p, Y⟩`` where Y differs from its left neighbour and drops the next element on the right where that equals
Y. It forgets a right neighbour ``⟨p_r, Y_r⟩`` that is *implicit*, being equal to the left one: when Y differs from both, the look-up at
``p_r`` would return Y, a value never released there. Here ``⟨p_r, Y_r⟩`` is explicit after the update if and only if ``Y_r ≠ Y``.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from auditor.schemes.replacement.draws import Draws, code_type, coins
from auditor.types import Array, Codes


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
        """Elements held for all tuples."""
        return int(self._p.size)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Elements held for each tuple, shape (n,)."""
        return np.diff(self._start)

    def place(self, level: float) -> NDArray[np.int64]:
        """Return, for each tuple, where in the flat arrays the element is that holds its value at a released level."""
        held = np.zeros(self._p.size + 1, dtype=np.int64)
        np.cumsum(self._p >= level, out=held[1:])
        return self._start[:-1] + held[self._start[1:]] - held[self._start[:-1]] - 1

    def value(self, level: float) -> Codes:
        """Return the values at a level that was released, shape (n,)."""
        return self._y[self.place(level)]

    def holds(self, level: float) -> bool:
        """Return whether a level was released, in ``O(log m)``."""
        place = bisect_left(self.levels, level)
        return place < len(self.levels) and self.levels[place] == level

    def neighbours(self, level: float) -> tuple[float | None, float | None]:
        """Return the released levels next above and next below."""
        place = bisect_left(self.levels, level)
        return self.levels[place] if place < len(self.levels) else None, self.levels[place - 1] if place else None

    def record(self, level: float, values: Codes, left: Codes | None, right: Codes | None) -> None:
        """Take a new copy into the histories; ``left`` and ``right`` are the values at the neighbouring released levels."""
        n = values.size
        _, low = self.neighbours(level)
        explicit = np.ones(n, dtype=bool) if left is None else values != left
        drop, restore = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        after = self._start[:-1] if left is None else self.place(level) + 1
        if right is not None and low is not None:
            was_explicit = explicit_at(self._p, after, self._start[1:], low)
            drop, restore = self._repair(values, right, was_explicit)
        self._rewrite(after, level, values, explicit, low, right, drop, restore)
        self.levels.insert(bisect_left(self.levels, level), level)

    def _repair(self, values: Codes, right: Codes, was_explicit: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where the right neighbour's element goes, and where it must be made explicit."""
        same = values == right
        return was_explicit & same, ~was_explicit & ~same

    def _rewrite(
        self, after: NDArray[np.int64], level: float, values: Codes, explicit: NDArray[np.bool_], low: float | None,
        right: Codes | None, drop: NDArray[np.bool_], restore: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        keep = np.ones(self._p.size, dtype=bool)
        keep[after[drop]] = False
        gone = np.concatenate([[0], np.cumsum(~keep)])
        p, y = self._p[keep], self._y[keep]
        where = after - gone[after]
        places = np.concatenate([where[explicit], where[restore]])
        new_p = np.concatenate([np.full(int(explicit.sum()), level), np.full(int(restore.sum()), low if low is not None else 0.0)])
        new_y = np.concatenate([values[explicit], values[restore] if right is None else right[restore]])
        # np.insert keeps the order of equal places: the new element first, the restored one behind it
        self._p, self._y = np.insert(p, places, new_p), np.insert(y, places, new_y)
        change = explicit.astype(np.int64) + restore - drop
        self._start = self._start + np.concatenate([[0], np.cumsum(change)])


def explicit_at(p: NDArray[np.float64], after: NDArray[np.int64], stop: NDArray[np.int64], level: float) -> NDArray[np.bool_]:
    """Return whether the element at ``after``, if a tuple has one there, is that of the given level."""
    inside = after < stop
    found = np.zeros(after.size, dtype=bool)
    found[inside] = p[after[inside]] == level
    return found


class MultiPert:
    """Algorithm ``multi-pert`` for one table: requests at any level, in any order; replacements are drawn uniformly, or from ``pi``."""

    history_class = History

    def __init__(self, original: Codes, size: int, pi: Array | None = None) -> None:
        self._original = original
        self._size, self._pi = size, pi
        self.history = self.history_class(original.size, size)

    def release(self, level: float, draws: Draws) -> Codes:
        """Return the copy at a level, shape (n,), and remember it; a level asked for twice gives the same copy."""
        history = self.history
        if history.holds(level):
            return history.value(level)
        high, low = history.neighbours(level)
        left = None if high is None else history.value(high)
        right = None if low is None else history.value(low)
        source = self._original if left is None else left
        values = draws.pick(source, right, *coins(1.0 if high is None else high, level, low, self._size, self._pi))
        history.record(level, values, left, right)
        return values
