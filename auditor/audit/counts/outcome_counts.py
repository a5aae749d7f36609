"""How often combinations of values were met: whole numbers, which add up to the same whatever the order and whoever counted them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[Any]
"""One for each combination: an integer, or a record of several where one would not do."""

LARGEST_WORD = 2**62
CELLS_A_KEY = 4
"""Where keys are this many times their number at most, going through all of them is less work than
sorting those that there are."""
FEWEST_PENDING = 2**17
"""Keys that wait to be sorted in, at least: sorting a few into many costs as much as sorting
many."""


class Packing:
    """Combinations of small numbers as one key each, in the order of their columns.

    Parameters
    ----------
    radices : sequence of int
        For each column, one more than its largest number.

    Examples
    --------
    >>> packing = Packing([3, 10])
    >>> packing.pack([np.array([2]), np.array([7])]).tolist(), [c.tolist() for c in packing.unpack(np.array([27]))]
    ([27], [[2], [7]])
    """

    def __init__(self, radices: Sequence[int]) -> None:
        self._words: list[list[int]] = [[]]
        for radix in radices:
            if math.prod(self._words[-1]) * radix > LARGEST_WORD:
                self._words.append([])
            self._words[-1].append(radix)
        names = [f"w{k}" for k in range(len(self._words))]
        self.dtype = (
            np.dtype(np.int64)
            if len(names) == 1
            else np.dtype([(name, np.int64) for name in names])
        )

    @property
    def wide(self) -> bool:
        """Whether one integer does not hold a combination."""
        return len(self._words) > 1

    def pack(self, columns: Sequence[NDArray[np.integer[Any]]]) -> Keys:
        """Return the keys of b combinations, given as one array of shape (b,) a column."""
        words, rest = [], iter(columns)
        for radices in self._words:
            word = np.zeros(columns[0].shape, dtype=np.int64)
            for radix in radices:
                word *= radix
                word += next(rest)
            words.append(word)
        if len(words) == 1:
            return words[0]
        keys: Keys = np.empty(columns[0].size, dtype=self.dtype)
        for name, word in zip(self.dtype.names or (), words, strict=True):
            keys[name] = word
        return keys

    def unpack(self, keys: Keys) -> list[NDArray[np.int64]]:
        """Return the columns of some keys."""
        columns = []
        for k, radices in enumerate(self._words):
            word, found = keys if self.dtype.names is None else keys[f"w{k}"], []
            for radix in reversed(radices):
                word, column = np.divmod(word, radix)
                found.append(column)
            columns += found[::-1]
        return columns


def different(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the different keys, ascending, and how often each is there: counted where they are small, as sorting takes ten times as long.

    Examples
    --------
    >>> [found.tolist() for found in different(np.array([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    if keys.dtype.names is None and keys.size and keys.max() < CELLS_A_KEY * keys.size:
        counts = np.bincount(keys)
        found = np.flatnonzero(counts)
        return found, counts[found]
    return np.unique(keys, return_counts=True)


class Counts:
    """How often each key was met."""

    def __init__(self, dtype: np.dtype[Any] | None = None) -> None:
        self._keys: Keys = np.empty(0, dtype=np.dtype(np.int64) if dtype is None else dtype)
        self._counts = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Keys, NDArray[np.int64]]] = []

    def take(self, keys: Keys) -> None:
        """Count keys, shape (b,), one a record."""
        self._wait(*different(keys))

    def add(self, other: Counts) -> None:
        """Add what others counted."""
        self._wait(*other.all())

    def _wait(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        self._waiting.append((keys, counts))
        if sum(keys.size for keys, _ in self._waiting) > max(FEWEST_PENDING, self._keys.size // 2):
            self.all()

    def all(self) -> tuple[Keys, NDArray[np.int64]]:
        """Return the different keys, ascending, and how often each was met."""
        if self._waiting:
            keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
            counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
            # there may be millions: nothing is held twice for long
            self._keys, self._counts, self._waiting = keys[:0], counts[:0], []
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            counts = counts[order]
            del order
            first = (
                np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
                if keys.size
                else np.empty(0, dtype=np.intp)
            )
            self._keys, self._counts = (
                keys[first],
                np.add.reduceat(counts, first) if first.size else counts,
            )
        return self._keys, self._counts

    def dense(self, size: int) -> NDArray[np.int64]:
        """Return the counts of keys 0 to ``size − 1``, shape (size,)."""
        keys, counts = self.all()
        found = np.zeros(size, dtype=np.int64)
        found[keys] = counts
        return found


def chosen(keys: Keys, halvings: int) -> NDArray[np.bool_]:
    """Return which keys belong to a sample of 1 in ``2^halvings`` of all there can be: the same in every run, and as good as random."""
    words = [keys] if keys.dtype.names is None else [keys[name] for name in keys.dtype.names]
    mixed = np.zeros(keys.shape, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words:  # the finalizer of splitmix64
            mixed = (mixed ^ word.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
    return np.asarray(
        mixed < np.uint64(2 ** (64 - halvings) - 1) if halvings else np.ones(keys.shape, dtype=bool)
    )


MOST_CELLS = 2**22
"""Combinations of outcome and original value that are counted for one coalition: 64 MB of keys and counts. Of a longer table a sample of
the outcomes is, all records of an outcome or none."""
PASS_CELLS = 2**22
"""The same for all coalitions that are counted in one pass over the table."""


def halvings_for(rows: int, size: int, copies: int) -> int:
    """Return how often the outcomes must be halved for no more than ``MOST_CELLS`` combinations to be counted: by shape alone."""
    return max(0, math.ceil(math.log2(possible_cells(rows, size, copies) / MOST_CELLS)))


def possible_cells(rows: int, size: int, copies: int) -> int:
    """Return how many combinations of outcome and original value there can be in so many rows."""
    return int(min(rows, size ** (copies + 1)))


def batches(costs: Sequence[tuple[Any, int]]) -> list[list[Any]]:
    """Deal items with their costs into passes, in order, each within ``PASS_CELLS`` if it has more than one."""
    dealt: list[list[Any]] = []
    left = 0
    for item, cost in costs:
        if not dealt or cost > left:
            dealt.append([])
            left = PASS_CELLS
        dealt[-1].append(item)
        left -= cost
    return dealt
