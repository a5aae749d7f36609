"""Exact quantiles of a column read block by block, equal to numpy's.

A quantile lies between two order statistics. Values are counted between *splitters* from a sample.
Each order statistic is then a splitter, or lies between two; the few values in between are read
again and sorted. If they are many, some become splitters too. Each step is one pass, three in all
except for adversarial columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array

Read = Callable[[], Iterable[Array]]
"""Yields the column's values, block by block, from the start at every call."""

MOST_HELD = 2**20
"""Values held at once, eight megabytes."""


def quantiles(read: Read, rows: int, probabilities: Array) -> Array:
    """Return quantiles of a column of finite numbers, shape (q,).

    Parameters
    ----------
    read : callable
        Yields the column's values, block by block.
    rows : int
        ``n``.
    probabilities : ndarray of shape (q,)
        In [0, 1].

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> p = np.linspace(0, 1, 8)
    >>> bool((quantiles(lambda: np.split(x, 10), 1000, p) == np.quantile(x, p)).all())
    True
    """
    # numpy's linear method: between the two neighbouring ranks
    virtual = probabilities * (rows - 1)
    low = np.floor(virtual).astype(np.int64)
    high = np.minimum(low + 1, rows - 1)
    ranks = np.unique(np.concatenate([low, high]))
    found = order_statistics(read, rows, ranks)
    a, b, t = found[np.searchsorted(ranks, low)], found[np.searchsorted(ranks, high)], virtual - low
    gap = b - a
    # numpy's interpolation: from the nearer end, so that it never exceeds the other
    return np.where(t >= 0.5, b - gap * (1 - t), a + gap * t)


def order_statistics(read: Read, rows: int, ranks: NDArray[np.int64]) -> Array:
    """Return the values of ascending, distinct ranks (from 0), shape (r,)."""
    splitters = np.unique(np.concatenate(list(_strided(read(), -(-rows // MOST_HELD)))))
    while True:
        below = _counts(read(), splitters)
        cell = np.searchsorted(below, ranks, side="right") - 1
        wanted = np.zeros(2 * splitters.size + 1, dtype=bool)
        wanted[cell] = True
        wanted[1::2] = False  # these ranks are splitters themselves
        inside = int(np.diff(below)[wanted].sum())
        if inside <= MOST_HELD:
            break
        more = _strided(
            (part[wanted[_cell_of(part, splitters)]] for part in read()), -(-inside // MOST_HELD)
        )
        splitters = np.unique(np.concatenate([splitters, *more]))
    values = (
        np.sort(np.concatenate([part[wanted[_cell_of(part, splitters)]] for part in read()]))
        if inside
        else np.empty(0)
    )
    found = np.empty(ranks.size)
    exact = cell % 2 == 1
    found[exact] = splitters[cell[exact] // 2]
    # held values in earlier cells
    before = np.concatenate([[0], np.cumsum(np.where(wanted, np.diff(below), 0))])
    found[~exact] = values[before[cell[~exact]] + ranks[~exact] - below[cell[~exact]]]
    return found


def _cell_of(values: Array, splitters: Array) -> NDArray[np.intp]:
    """Return 2i + 1 for splitter i, 2i for a value just below it."""
    place = np.searchsorted(splitters, values)
    same = splitters[np.minimum(place, splitters.size - 1)] == values
    return np.asarray(2 * place + (same & (place < splitters.size)), dtype=np.intp)


def _counts(parts: Iterable[Array], splitters: Array) -> NDArray[np.int64]:
    """Return the number of values in earlier cells, per cell, and the total."""
    counts = np.zeros(2 * splitters.size + 1, dtype=np.int64)
    for part in parts:
        counts += np.bincount(_cell_of(part, splitters), minlength=counts.size)
    return np.concatenate([[0], np.cumsum(counts)])


def _strided(parts: Iterable[Array], stride: int) -> Iterator[Array]:
    skip = 0
    for part in parts:
        yield part[skip::stride].copy()
        skip = (skip - part.size) % stride
