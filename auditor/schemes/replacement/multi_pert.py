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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Codes
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, stream_of
from auditor.schemes.replacement.draws import Draws, code_type, coins


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


@dataclass(frozen=True, eq=False)
class History:
    """Compressed histories of n tuples in flat arrays.

    Attributes
    ----------
    levels : tuple of float
        Retention probabilities released, ascending, each once.
    p, y : ndarrays of shape (elements,)
        Level and value of every element, tuple by tuple, levels falling.
    start : ndarray of shape (n + 1,)
        Place of each tuple's first element.
    """

    levels: tuple[float, ...]
    p: Array
    y: Codes
    start: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, size: int) -> Self:
        """Return the histories before the first release."""
        return cls((), np.empty(0), np.empty(0, code_type(size)), np.zeros(n + 1, dtype=np.int64))

    def _place(self, level: float) -> NDArray[np.int64]:
        """Return the array places of each tuple's element at a released level."""
        held = np.concatenate([[0], np.cumsum(self.p >= level)])
        return np.asarray(self.start[:-1] + held[self.start[1:]] - held[self.start[:-1]] - 1)

    def value(self, level: float) -> Codes:
        """Return the values at a released level, shape (n,)."""
        return self.y[self._place(level)]

    def gap(self, level: float) -> Gap:
        """Return the history's neighbours of an unreleased level."""
        place = bisect_left(self.levels, level)
        high = self.levels[place] if place < len(self.levels) else None
        low = self.levels[place - 1] if place else None
        after = self.start[:-1] if high is None else self._place(high) + 1
        explicit = np.zeros(after.size, dtype=bool)
        inside = np.flatnonzero(after < self.start[1:])
        explicit[inside] = self.p[after[inside]] == low  # False for all if no level is below
        left = None if high is None else self.y[after - 1]
        right = None if low is None else self.y[after - ~explicit]
        return Gap(high, low, after, explicit, left, right)

    def record(self, level: float, values: Codes, gap: Gap) -> Self:
        """Return the histories with a new copy."""
        explicit = np.ones(values.size, dtype=bool) if gap.left is None else values != gap.left
        drop = restore = np.zeros(values.size, dtype=bool)
        if gap.right is not None:
            drop, restore = self._repair(values, gap.right, gap.explicit)
        kept = np.ones(self.p.size, dtype=bool)
        kept[gap.after[drop]] = False
        moved = np.concatenate([[0], np.cumsum(explicit.astype(np.int64) + restore - drop)])
        place = gap.after + moved[:-1]  # of the new element, if any; the restored one follows
        new, restored = place[explicit], (place + explicit)[restore]
        start = self.start + moved
        held = np.ones(start[-1], dtype=bool)
        held[new] = held[restored] = False
        p, y = np.empty(held.size), np.empty(held.size, dtype=self.y.dtype)
        p[held], y[held] = self.p[kept], self.y[kept]
        p[new], y[new] = level, values[explicit]
        if gap.right is not None:
            p[restored], y[restored] = gap.low, gap.right[restore]
        return type(self)(tuple(sorted((*self.levels, level))), p, y, start)

    def _repair(
        self, values: Codes, right: Codes, was_explicit: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        same = values == right
        return was_explicit & same, ~was_explicit & ~same


class MultiPertCopies(Copies):
    """The paper's algorithm on compressed histories, for levels in any order.

    It also continues a release whose ``copies`` at ``levels`` were made elsewhere: given its
    neighbours a new copy is independent of all others (xiao2009, Lemma 1).
    """

    history_class = History

    def __init__(
        self,
        original: Codes,
        size: int,
        key: Key,
        pi: Array | None = None,
        levels: Sequence[float] = (),
        copies: Sequence[Codes] = (),
    ) -> None:
        super().__init__(original, size, key, pi)
        self.history = self.history_class.empty(self.original.size, size)
        for level, copy in zip(levels, copies, strict=True):
            super().skip(level)
            if level not in self.history.levels:
                self.history = self.history.record(level, copy, self.history.gap(level))

    def skip(self, level: float, key: Key | None = None) -> None:
        super().skip(level, key)
        rng = stream_of(key or self.key, len(self.levels))
        self.release(level, Draws(rng, self.size, self.pi))

    def release(self, level: float, draws: Draws) -> Codes:
        """Return the copy at a level, shape (n,), and store it.

        A repeated level returns the existing copy.
        """
        if level not in self.history.levels:
            gap = self.history.gap(level)
            source = self.original if gap.left is None else gap.left
            high = 1.0 if gap.high is None else gap.high
            coin = coins(high, level, gap.low, self.size, self.pi)
            values = draws.pick(source, gap.right, *coin)
            self.history = self.history.record(level, values, gap)
        return self.history.value(level)

    def copy(self, number: int) -> Codes:
        return self.history.value(self.levels[number - 1])

    def history_sizes(self) -> NDArray[np.integer[Any]]:
        return np.diff(self.history.start)
