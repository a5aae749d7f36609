"""Joint first and second moments of original and copies, in one pass.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | a row of ``[X, Y_1 … Y_M]`` less the table's mean, ``mu_X``, in every part | (d,), d = (M+1)N |
| ``t`` | ``Σ v`` over rows | (d,) |
| ``P`` | ``Σ v vᵀ`` over rows | (d, d) |

Moments of row groups add up. Rows are centred *before* products, against rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np

from auditor.base.types import Array, Arrays, Flags, Indices, unprinted
from auditor.numerics.blocks import evenly


@unprinted
class Moments:
    """Sums over some rows, about a fixed centre (the table's mean).

    Attributes
    ----------
    total : (d,)
    products : (d, d)
    """

    count: int
    total: Array
    products: Array

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Moments of centred rows, shape (b, d)."""
        # a product with ones halves the time
        return cls(rows.shape[0], np.ones(rows.shape[0]) @ rows, rows.T @ rows)

    @classmethod
    def merge(cls, parts: Iterable[Moments]) -> Moments:
        """Sum of one or more moments, in order."""
        return reduce(
            lambda a, b: cls(a.count + b.count, a.total + b.total, a.products + b.products), parts
        )

    def __sub__(self, part: Moments) -> Moments:
        return Moments(
            self.count - part.count, self.total - part.total, self.products - part.products
        )

    @property
    def size(self) -> int:
        """``d``."""
        return self.total.size

    @property
    def mean(self) -> Array:
        """Mean about the centre, shape (d,)."""
        return self.total / self.count

    @property
    def variances(self) -> Array:
        """Diagonal of the covariance, divisor n, shape (d,)."""
        return (np.diag(self.products) - self.total * self.total / self.count) / self.count

    def covariance(self, divisor: int | None = None) -> Array:
        """Covariance, shape (d, d); divisor n by default."""
        centred = self.products - np.outer(self.total, self.total) / self.count
        return centred / (divisor or self.count)

    def of_copies(self, copies: Sequence[int], width: int) -> Moments:
        """Moments of some copies, by number from 1, alone."""
        found = self.parts([copy + 1 for copy in copies], width)
        # no view of the original
        return Moments(found.count, found.total.copy(), found.products.copy())

    def parts(self, places: Sequence[int], width: int) -> Moments:
        """Moments of some of the stacked parts, numbered from 1."""
        if self.size == 0:
            return self
        index = neighbours(attribute_index(places, width))
        return Moments(self.count, self.total[index], self.products[square(index)])


class Awaited(Moments):
    """Moments computed by ``take`` on first use."""

    def __init__(self, take: Callable[[], Moments]) -> None:
        object.__setattr__(self, "_take", take)

    @cached_property
    def _taken(self) -> Moments:
        take: Callable[[], Moments] = self.__dict__["_take"]
        return take()

    @property
    def count(self) -> int:
        """Number of rows."""
        return self._taken.count

    @property
    def total(self) -> Array:
        """``t``."""
        return self._taken.total

    @property
    def products(self) -> Array:
        """``P``."""
        return self._taken.products


def of_rows(parts: Arrays, centre: Array) -> Moments:
    """Joint moments of tables' rows, (n, N), piece by piece."""
    stack = Stack(centre, len(parts))
    for a, b in stack.pieces(0, len(parts[0])):
        stack.add([part[a:b] for part in parts])
    return stack.moments()


def centred(parts: Arrays, centre: Array) -> Array:
    """``[x, y_1 … y_M]`` less the centre, shape (b, d)."""
    return np.concatenate(parts, axis=1) - np.tile(centre, len(parts))


LAID_VALUES = 3 * 2**16
"""Values in a stacked piece, which fit the cache."""


class Stack:
    """Sums centred moments of stacked rows ``[x, y_1 … y_M]`` of tables."""

    def __init__(self, centre: Array, tables: int) -> None:
        self._centre, self._columns = centre[:, None], np.empty((tables * centre.size, 0))
        self._parts: list[Moments] = []

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Divide rows ``start`` to ``stop`` evenly into pieces."""
        return evenly(start, stop, len(self._columns), LAID_VALUES)

    def add(self, parts: Arrays) -> None:
        """Add a piece: rows of every table, shapes (b, N)."""
        self.lay(parts)
        columns = self._columns
        piece = Moments(columns.shape[1], columns.sum(axis=1), columns @ columns.T)
        self._parts = [Moments.merge([*self._parts, piece])]

    def lay(self, parts: Arrays) -> None:
        """Load a piece for ``rows``, without adding it."""
        d, b = len(self._columns), len(parts[0])
        if self._columns.shape[1] != b:
            self._columns = np.empty((d, b))
        for part, columns in zip(parts, np.split(self._columns, len(parts)), strict=True):
            np.subtract(part.T, self._centre, out=columns)

    def rows(self, chosen: Indices | Flags) -> Array:
        """Some rows of the last piece, shape (r, d)."""
        return np.ascontiguousarray(self._columns[:, chosen].T)

    def moments(self) -> Moments:
        """Moments added since the last call; not empty."""
        (found,), self._parts = self._parts, []
        return found


def neighbours(index: Indices) -> Indices | slice:
    """Consecutive ascending places as a slice; others unchanged."""
    run = (
        index.size > 0
        and index[-1] - index[0] == index.size - 1
        and bool((index[1:] > index[:-1]).all())
    )
    return slice(int(index[0]), int(index[-1]) + 1) if run else index


def square(index: Indices | slice) -> tuple[Any, Any]:
    """Index of a square submatrix."""
    return (index, index) if isinstance(index, slice) else (index[:, None], index)


def attribute_index(copies: Sequence[int], width: int) -> Indices:
    """Places of copies' attributes in ``[Y_1 … Y_M]``, (kN,)."""
    first = (np.asarray(copies, dtype=int) - 1) * width
    return (first[:, None] + np.arange(width)).ravel()
