"""Blocks of category codes, and counts of combinations of values.

Counts are whole numbers, so sums do not depend on the order or the number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Codes
from auditor.schemes.replacement.base import Copies

Keys = NDArray[Any]
"""One per combination: an integer, or a record of several integers if needed."""

LARGEST_WORD = 2**62
CELLS_A_KEY = 4
"""Up to this ratio of the largest key to the number of keys, a bincount is ten times faster than a
sort."""
FEWEST_PENDING = 2**17
"""Fewest keys that are merged into the sorted ones at once."""
MOST_CELLS = 2**22
"""Records whose outcomes are counted, from the first on: 64 MB for one coalition."""
PASS_CELLS = 2**22
"""The limit for all coalitions that are counted in one pass."""


@dataclass(repr=False)
class CodeBlock:
    """One block of records, with copies made on request.

    Attributes
    ----------
    index, first : int
        Numbers of the block and of its first record.
    x : ndarray of shape (b,)
        Originals.
    copy : callable
        Returns the values of a copy by number, shape (b,).
    made : Copies or None
        Generators of the copies; None if the copies were kept from an earlier pass.
    seconds : float
        Time of the requests.
    """

    index: int
    first: int
    x: Codes
    copy: Callable[[int], Codes]
    made: Copies | None = None
    seconds: float = 0.0


class Packing:
    """Combinations of small numbers as keys, ordered by column.

    Parameters
    ----------
    radices : sequence of int
        One more than each column's largest number.

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
        """Whether a combination needs several integers."""
        return len(self._words) > 1

    def pack(self, columns: Sequence[NDArray[np.integer[Any]]]) -> Keys:
        """Return the keys of b combinations, given as columns of shape (b,)."""
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
        """Return the columns of keys."""
        columns = []
        for k, radices in enumerate(self._words):
            word, found = keys if self.dtype.names is None else keys[f"w{k}"], []
            for radix in reversed(radices):
                word, column = np.divmod(word, radix)
                found.append(column)
            columns += found[::-1]
        return columns


def different(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Return the distinct keys, ascending, and their counts.

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
    """Counts by key."""

    def __init__(self, dtype: np.dtype[Any] | None = None) -> None:
        self._keys: Keys = np.empty(0, dtype=np.dtype(np.int64) if dtype is None else dtype)
        self._counts = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Keys, NDArray[np.int64]]] = []

    def take(self, keys: Keys) -> None:
        """Count keys, shape (b,), one per record."""
        self._wait(*different(keys))

    def add(self, other: Counts) -> None:
        """Add other counts."""
        self._wait(*other.all())

    def _wait(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        self._waiting.append((keys, counts))
        if sum(keys.size for keys, _ in self._waiting) > max(FEWEST_PENDING, self._keys.size // 2):
            self.all()

    def all(self) -> tuple[Keys, NDArray[np.int64]]:
        """Return the distinct keys, ascending, and their counts."""
        if self._waiting:
            keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
            counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
            # perhaps millions of keys: release old keys first
            self._keys, self._counts, self._waiting = keys[:0], counts[:0], []
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            del order
            first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
            self._keys = keys[first]
            self._counts = np.add.reduceat(counts, first) if first.size else counts
        return self._keys, self._counts

    def dense(self, size: int) -> NDArray[np.int64]:
        """Return the counts of keys 0 to ``size − 1``, shape (size,)."""
        keys, counts = self.all()
        found = np.zeros(size, dtype=np.int64)
        found[keys] = counts
        return found


def possible_cells(rows: int, size: int, copies: int) -> int:
    """Return the largest number of combinations of outcome and original value."""
    return int(min(rows, size ** (copies + 1)))


def batches(costs: Sequence[tuple[Any, int]]) -> list[list[Any]]:
    """Divide items with costs into passes, in order, each within ``PASS_CELLS`` if possible."""
    dealt: list[list[Any]] = []
    left = 0
    for item, cost in costs:
        if not dealt or cost > left:
            dealt.append([])
            left = PASS_CELLS
        dealt[-1].append(item)
        left -= cost
    return dealt
