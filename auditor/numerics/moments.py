"""First and second moments of original and copies together: one pass over the rows, after which no linear attack needs them.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | a row of ``[X, Y_1 … Y_M]`` less the table's mean, ``mu_X``, in every part | (d,), d = (M+1)N |
| ``t`` | ``Σ v`` over rows | (d,) |
| ``P`` | ``Σ v vᵀ`` over rows | (d, d) |

Moments of row groups are sums, so those of any union are sums of sums, and blocks may be worked on by any process. The mean is taken off
*before* the products are formed: at an offset of 10⁸ deviations an uncentred covariance in doubles, ``Σ x² − n x̄²``, is only rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.blocks import evenly
from auditor.types import Array


@dataclass(frozen=True)
class Moments:
    """Sums over some rows, about a fixed centre (the table's mean in every part).

    Attributes
    ----------
    count : int
        Number of rows.
    total : ndarray of shape (d,)
        ``t``.
    products : ndarray of shape (d, d)
        ``P``.
    """

    count: int
    total: Array = field(repr=False)
    products: Array = field(repr=False)

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Return the moments of rows of shape (b, d) that are centred already."""
        # A product with ones: the sum over rows at half the time of a reduction along the outer axis.
        return cls(rows.shape[0], np.ones(rows.shape[0]) @ rows, rows.T @ rows)

    @classmethod
    def merge(cls, parts: Iterable[Moments]) -> Moments:
        """Return the moments of several row groups together, added in the order given; one is held at a time."""
        sums = Sums()
        for part in parts:
            sums.add(part)
        return sums.moments()

    def __sub__(self, part: Moments) -> Moments:
        """Return the moments of the rows without those of a part of them."""
        return Moments(self.count - part.count, self.total - part.total, self.products - part.products)

    @property
    def size(self) -> int:
        """Number of columns ``d``."""
        return self.total.size

    @property
    def mean(self) -> Array:
        """Mean about the centre, shape (d,)."""
        return self.total / self.count

    @property
    def variances(self) -> Array:
        """Diagonal of the covariance, divisor n, shape (d,)."""
        return np.asarray((np.diag(self.products) - self.total * self.total / self.count) / self.count)

    def covariance(self, divisor: int | None = None) -> Array:
        """Return the covariance, shape (d, d); divisor n by default."""
        centred = self.products - np.outer(self.total, self.total) / self.count
        return centred / (divisor or self.count)

    def of_copies(self, copies: Sequence[int], width: int) -> Moments:
        """Return the moments of some copies alone, dropping the original; copy numbers count from 1."""
        found = self.parts([copy + 1 for copy in copies], width)
        return Moments(found.count, found.total.copy(), found.products.copy())  # whoever is given them gets no window on the original

    def parts(self, places: Sequence[int], width: int) -> Moments:
        """Return the moments of some of the parts that stand side by side, numbered from 1; the same where there are no columns at all."""
        if self.size == 0:
            return self
        index = neighbours(attribute_index(places, width))
        return Moments(self.count, self.total[index], self.products[square(index)])


class Awaited(Moments):
    """Moments that are taken when they are first asked for: an attack that needs none saves the pass.

    Parameters
    ----------
    take : callable
        Returns them.
    """

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


class Sums:
    """Moments that others are added to, in place: of a million columns' products only these are kept. Of one part they are that part."""

    def __init__(self) -> None:
        self._count = 0
        self._total: Array | None = None
        self._products: Array | None = None
        self._mine = False  # whether these are sums made here, and not a part that is somebody's

    def add(self, part: Moments) -> None:
        """Add the moments of other rows."""
        self._count += part.count
        if self._total is None or self._products is None:
            self._total, self._products = part.total, part.products
        elif self._mine:
            self._total += part.total
            self._products += part.products
        else:
            self._total, self._products, self._mine = self._total + part.total, self._products + part.products, True

    def moments(self) -> Moments:
        """Return what was added so far; something must have been."""
        assert self._total is not None
        assert self._products is not None
        return Moments(self._count, self._total, self._products)


def of_rows(parts: Sequence[Array], centre: Array, deviation: Array | None = None) -> Moments:
    """Return the moments of some tables' rows side by side, piece by piece: no memory that grows with the rows.

    Parameters
    ----------
    parts : sequence of ndarrays of shape (n, N)
    centre : ndarray of shape (N,)
    deviation : ndarray of shape (N,), optional
        As for ``Stack``.
    """
    stack = Stack(centre, len(parts), deviation)
    for a, b in stack.pieces(0, len(parts[0])):
        stack.add([part[a:b] for part in parts])
    return stack.moments()


def centred(parts: Sequence[Array], centre: Array) -> Array:
    """Return ``[x, y_1 … y_M]`` less the centre, side by side, shape (b, d)."""
    return np.concatenate(parts, axis=1) - np.tile(centre, len(parts))


LAID_VALUES = 3 * 2**17
"""Values laid side by side at a time: three megabytes, which stay in the cache while they are multiplied."""
FEWEST_LAID = 512
"""Rows laid at a time at the least: their products are added to those before them, which takes as long as to multiply some 300 rows."""

NARROW = 15
"""Attributes up to which rows less the centre are laid column by column: one table's row is then too short a run to work on at speed."""

SHORT = 4
"""Attributes up to which a table's row is too short to be copied as one item."""

NEAR = 3.0
"""Centres up to so many standard deviations from 0 are taken off the sums: that costs ``log10(1 + NEAR²)`` digits, one at most."""

LANES = 4
"""BLAS works on so many columns at a time: a product of 11 columns takes half as long again as one of 12."""


class _Room(threading.local):
    """A thread's memory for rows side by side, used again and again: touching fresh memory costs more than the arithmetic.

    Attributes
    ----------
    values : ndarray of shape (any,)
    laid : tuple
        Whose rows were laid there last, and how many.
    """

    values: Array = np.empty(0)
    laid: tuple[Stack | None, int] = (None, 0)


_ROOM = _Room()


def forget_room() -> None:
    """Give a thread's memory for rows side by side back: it is a few megabytes, and kept till the thread ends."""
    _ROOM.values, _ROOM.laid = np.empty(0), (None, 0)


class Stack:
    """Lays rows of tables side by side, ``[x, y_1 … y_M]``, and adds up their moments.

    All stacks of a thread lay their rows in the same memory: ``rows`` are to be asked for before another is added to.

    A piece is laid out in the order that is quickest to copy and multiply: by rows, or of narrow tables by columns. The centre is taken off
    every row or, where the data are near 0 anyway (``NEAR``), off the sums. Columns are filled up to a multiple of ``LANES``; the first of
    those added holds ones, whose products with the others are the totals ``t``.

    Parameters
    ----------
    centre : ndarray of shape (N,)
        The table's mean.
    tables : int
        Tables side by side.
    deviation : ndarray of shape (N,), optional
        The table's standard deviations: without them the centre is taken off every row. A function of the table and not of the rows
        that come, so that every piece is done alike.
    """

    def __init__(self, centre: Array, tables: int, deviation: Array | None = None) -> None:
        self._width, self._centre = centre.size, np.tile(centre, tables)
        self._later = deviation is not None and bool((np.abs(centre) <= NEAR * deviation).all())
        self._by_row = centre.size > (SHORT if self._later else NARROW)
        self._size = self._centre.size + -self._centre.size % LANES
        self._rows: Array = np.empty((0, self._size))
        self._places: _Places | None = None
        self._count, self._total, self._products = 0, np.zeros(self._centre.size), np.zeros((self._centre.size,) * 2)

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut rows ``start`` to ``stop`` evenly into pieces that are best added one by one."""
        return evenly(start, stop, self._size, max(LAID_VALUES, FEWEST_LAID * self._size))

    def add(self, parts: Sequence[Array]) -> None:
        """Add a piece.

        Parameters
        ----------
        parts : sequence of ndarrays of shape (b, N)
            Rows of every table.
        """
        self.lay(parts)
        rows = self._rows
        d, products = self._centre.size, rows.T @ rows
        # A product with ones: the sum over rows at half the time of a reduction along the outer axis.
        total = products[d, :d] if rows.shape[1] > d else np.ones(len(rows)) @ rows
        first = self._count == 0
        self._count += len(rows)
        self._total = total if first else self._total + total
        self._products = products[:d, :d] if first else np.add(self._products, products[:d, :d], out=self._products)

    def lay(self, parts: Sequence[Array]) -> None:
        """Take up a piece, so that ``rows`` gives some of it, and add nothing."""
        alone = len(parts) == 1 and self._later and parts[0].flags.c_contiguous
        self._rows = parts[0] if alone else self._laid(parts)

    def rows(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Array:
        """Return some rows of the last piece, less the centre, shape (r, d)."""
        rows: Array = self._rows[chosen][:, : self._centre.size]
        return rows - self._centre if self._later else rows

    def moments(self) -> Moments:
        """Return the moments about the centre of what was added since they were asked for last; something must have been."""
        n, t, P, c = self._count, self._total, self._products, self._centre
        self._count = 0
        if not self._later:
            return Moments(n, t, P)
        # Σ (r − c)(r − c)ᵀ = Σ r rᵀ − (c uᵀ + u cᵀ) with u = Σ r − n c/2
        off = np.outer(c, t - n / 2 * c)
        off += off.T
        return Moments(n, t - n * c, np.subtract(P, off, out=off))

    def _laid(self, parts: Sequence[Array]) -> Array:
        """Return the piece side by side, shape (b, size)."""
        b, d = len(parts[0]), self._centre.size
        if _ROOM.values.size < b * self._size:
            _ROOM.values = np.empty(b * self._size)
        if self._places is None or self._places.values is not _ROOM.values or self._places.height != b:
            self._places = _Places.of(_ROOM.values, b, self._size, self._width, len(parts), self._by_row)
        rows = self._places.rows
        if _ROOM.laid != (self, b) or not self._later:
            rows[:, d : d + 1] = 1.0
            rows[:, d + 1 :] = 0.0
            _ROOM.laid = self, b
        if self._by_row and not self._later and self._size == self._width:
            subtract_row(parts[0], self._centre, rows)  # one table that fills its columns: no copy to take the centre off
            return rows
        if self._by_row:
            for part, here, items in zip(parts, self._places.tables, self._places.items, strict=True):
                if part.flags.c_contiguous and part.dtype == rows.dtype:
                    items[...] = part.view(items.dtype)
                else:
                    here[...] = part
            if not self._later:
                subtract_row(rows, np.append(self._centre, np.zeros(self._size - d)), rows)
            return rows
        for part, here in zip(parts, self._places.tables, strict=True):
            if self._later:
                here[...] = part
            else:
                for column in range(self._width):
                    np.subtract(part[:, column], self._centre[column], out=here[:, column])
        return rows


class _Places(NamedTuple):
    """Where a piece of so many rows is laid: all rows, each table's columns of them, and each table's rows as one item each."""

    values: Array
    height: int
    rows: Array
    tables: list[Array]
    items: list[NDArray[np.void]]

    @classmethod
    def of(cls, values: Array, height: int, size: int, width: int, tables: int, by_row: bool) -> _Places:
        """Divide a stretch of memory up."""
        held = values[: height * size]
        rows = held.reshape(height, size) if by_row else held.reshape(size, height).T
        parts = [rows[:, place * width : (place + 1) * width] for place in range(tables)]
        item = np.dtype((np.void, rows.itemsize * width))
        return cls(values, height, rows, parts, [part.view(item) for part in parts] if by_row else [])


RUN = 512
"""Values done at once when one row is taken off all: numpy's inner loop, whose start costs as much as a few dozen values, is that long."""


def whole_runs(rows: int, width: int) -> tuple[int, int]:
    """Return how many of so many rows fill whole runs, and how many rows a run has."""
    run = max(1, RUN // width)
    return rows - rows % run, run


def subtract_row(rows: Array, row: Array, out: Array) -> None:
    """Write ``rows − row``, shape (b, N), to ``out``, which may be ``rows`` itself."""
    if not (rows.flags.c_contiguous and out.flags.c_contiguous):
        np.subtract(rows, row, out=out)
        return
    b, N = rows.shape
    whole, run = whole_runs(b, N)
    np.subtract(rows[:whole].reshape(-1, run * N), np.tile(row, run), out=out[:whole].reshape(-1, run * N))
    np.subtract(rows[whole:], row, out=out[whole:])


def neighbours(index: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Return ascending places one after the other as a slice, through which an array is seen and not copied; others as they are.

    Coalitions of copies 1 to k are such: to cut their moments out, k² numbers each, took longer than all that was done with them.
    """
    run = index.size > 0 and index[-1] - index[0] == index.size - 1 and bool((index[1:] > index[:-1]).all())
    return slice(int(index[0]), int(index[-1]) + 1) if run else index


def square(index: NDArray[np.intp] | slice) -> tuple[Any, Any]:
    """Return what takes the rows and the columns at some places out of a square matrix."""
    return (index, index) if isinstance(index, slice) else (index[:, None], index)


def attribute_index(copies: Sequence[int], width: int) -> NDArray[np.intp]:
    """Return the places of some copies' attributes among the stacked copies ``[Y_1 … Y_M]``, shape (kN,)."""
    first = (np.asarray(copies, dtype=np.intp) - 1) * width
    return (first[:, None] + np.arange(width)).ravel()
