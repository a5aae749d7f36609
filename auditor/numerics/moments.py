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

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.blocks import evenly
from auditor.types import Array


@dataclass(frozen=True, eq=False)
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
"""Columns are filled up to a multiple: of 11 BLAS takes half as long again as of 12."""

BAND, SMALL_OUTPUT, SMALL_WORK = 8, 1_200, 10**6
"""Columns multiplied by others at a time; numbers in a product, and multiplications for it, up to which OpenBLAS multiplies rows where they
lie. Of larger ones it copies both factors into an order of its own first, which for so few columns takes as long as the product."""

ALIGNED = 8
"""Values that a core loads at a time, where it can: from a place that is no multiple of theirs it takes a fifth longer to multiply."""


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


class Stack:
    """Lays rows of tables side by side, ``[x, y_1 … y_M]``, and adds up their moments.

    All stacks of a thread lay their rows in the same memory: ``rows`` are to be asked for before another is added to.

    A piece is laid out in the order that is quickest to copy and multiply: by rows, or of narrow tables by columns. The centre is taken off
    every row or, where the data are near 0 anyway (``NEAR``), off the sums. A column of ones beside the others makes their products with it
    the totals ``t``. Up to some hundred columns are multiplied a few at a time, by themselves and those that follow, a slab of rows at a
    time (``BAND``, ``SMALL_WORK``).

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
        self._by_row, d = centre.size > (SHORT if self._later else NARROW), self._centre.size
        self._banded = BAND * (d + 1) <= SMALL_OUTPUT
        self._below = np.tril_indices(d if self._banded else 0, -1)
        # One table that fills its columns is not copied to have ones, nor are many columns made more.
        ones = d % LANES > 0 or (self._banded and tables > 1)
        self._size, self._used = d + ones + -(d + ones) % LANES, d + ones
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
        d, products = self._centre.size, self._multiplied()
        # A product with ones: the sum over rows at half the time of a reduction along the outer axis.
        total = products[:d, d] if products.shape[1] > d else np.ones(len(self._rows)) @ self._rows
        first = self._count == 0
        self._count += len(self._rows)
        self._total = total if first else self._total + total
        self._products = products[:d, :d] if first else np.add(self._products, products[:d, :d], out=self._products)

    def _multiplied(self) -> Array:
        """Return products of the piece's columns with each other and with ones, if it has any; below the diagonal some may be missing."""
        if self._places is None or self._places.slabs is None or self._rows is not self._places.rows:
            return np.asarray(self._rows.T @ self._rows)
        slabs, products = self._places.slabs[:, : self._used], np.zeros((self._centre.size, self._used))
        for first in range(0, len(products), BAND):
            band = slice(first, min(first + BAND, len(products)))
            np.matmul(slabs[:, band], slabs[:, first:].transpose(0, 2, 1)).sum(axis=0, out=products[band, first:])
        return products

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
        if self._banded:
            P = P.copy()
            P[self._below] = P.T[self._below]
        if not self._later:
            return Moments(n, t, P)
        # Σ (r − c)(r − c)ᵀ = Σ r rᵀ − (c uᵀ + u cᵀ) with u = Σ r − n c/2
        off = np.outer(c, t - n / 2 * c)
        off += off.T
        return Moments(n, t - n * c, np.subtract(P, off, out=off))

    def _laid(self, parts: Sequence[Array]) -> Array:
        """Return the piece side by side, shape (b, size)."""
        b, d = len(parts[0]), self._centre.size
        slabs = math.ceil(b * min(d, BAND) * self._used / SMALL_WORK) if self._banded else 0
        most = (b + slabs * ALIGNED) * self._size
        if _ROOM.values.size < most:
            memory = np.empty(most + ALIGNED)
            _ROOM.values = memory[-memory.ctypes.data // memory.itemsize % ALIGNED :]
        if self._places is None or self._places.values is not _ROOM.values or len(self._places.rows) != b:
            self._places = _Places.of(_ROOM.values, b, self._size, self._width, len(parts), self._by_row, slabs)
        rows = self._places.rows
        if _ROOM.laid != (self, b) or not self._later:
            rows[:, d : d + 1] = 1.0
            rows[:, d + 1 :] = 0.0
            self._places.beyond[...] = 0.0
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
    """Where a piece of so many rows is laid.

    Attributes
    ----------
    values : ndarray of shape (any,)
        The memory it is a stretch of.
    rows : ndarray of shape (b, size)
        All rows.
    tables : list of ndarrays of shape (b, N)
        Each table's columns of them.
    items : list of ndarrays of shape (b, 1)
        Each table's rows as one item each, if rows lie one after the other.
    slabs : ndarray of shape (s, size, r) or None
        Columns cut evenly into runs of rows, which end beyond the piece.
    beyond : ndarray of shape (s·r − b, size)
        What lies beyond it.
    """

    values: Array
    rows: Array
    tables: list[Array]
    items: list[NDArray[np.void]]
    slabs: Array | None
    beyond: Array

    @classmethod
    def of(cls, values: Array, height: int, size: int, width: int, tables: int, by_row: bool, slabs: int) -> _Places:
        """Divide a stretch of memory up; into no slabs where their number is 0."""
        room = slabs * ALIGNED * math.ceil(height / slabs / ALIGNED) if slabs else height
        held = values[: room * size].reshape(room, size) if by_row else values[: room * size].reshape(size, room).T
        rows = held[:height]
        parts = [rows[:, place * width : (place + 1) * width] for place in range(tables)]
        item = np.dtype((np.void, rows.itemsize * width))
        items = [part.view(item) for part in parts] if by_row else []
        cut = held.T.reshape(size, slabs, -1).transpose(1, 0, 2) if slabs else None
        return cls(values, rows, parts, items, cut, held[height:])


RUN = 512
"""Values done at once when one row is taken off all: numpy's inner loop, whose start costs as much as a few dozen values, is that long."""


def whole_runs(rows: int, width: int) -> tuple[int, int]:
    """Return how many of so many rows fill whole runs, and how many rows a run has."""
    run = max(1, RUN // width)
    return rows - rows % run, run


def subtract_row(rows: Array, row: Array, out: Array) -> None:
    """Write ``rows − row``, shape (b, N), to ``out``, which may be ``rows`` itself."""
    by_run(np.subtract, rows, row, out)


def by_run(operation: np.ufunc, rows: Array, row: Array, out: Array) -> None:
    """Write what an operation makes of every row and one row, value by value, shape (b, N): several at a time if they lie in a row."""
    if not (rows.flags.c_contiguous and out.flags.c_contiguous):
        operation(rows, row, out=out)
        return
    b, N = rows.shape
    whole, run = whole_runs(b, N)
    operation(rows[:whole].reshape(-1, run * N), np.tile(row, run), out=out[:whole].reshape(-1, run * N))
    operation(rows[whole:], row, out=out[whole:])


def neighbours(index: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Return ascending places one after the other as a slice, through which an array is seen and not copied; others as they are.

    Coalitions of copies 1 to k are such: to cut their moments out, k² numbers each, took longer than all that was done with them.
    """
    run = index.size > 0 and index[-1] - index[0] == index.size - 1 and bool((index[1:] > index[:-1]).all())
    return slice(int(index[0]), int(index[-1]) + 1) if run else index


def square(index: NDArray[np.intp] | slice) -> tuple[Any, Any]:
    """Return what takes the rows and the columns at some places out of a square matrix."""
    return (index, index) if isinstance(index, slice) else (index[:, None], index)


def stacked(groups: Sequence[Moments], columns: NDArray[np.intp] | slice) -> tuple[Array, Array, Array]:
    """Return counts, totals and products of some columns of G groups, shapes (G,), (G, c) and (G, c, c); of one group maybe no copies."""
    if len(groups) == 1:
        (only,) = groups
        return np.array([float(only.count)]), only.total[columns][None], only.products[square(columns)][None]
    counts, totals = np.array([float(group.count) for group in groups]), np.array([group.total[columns] for group in groups])
    return counts, totals, np.array([group.products[square(columns)] for group in groups])


def attribute_index(copies: Sequence[int], width: int) -> NDArray[np.intp]:
    """Return the places of some copies' attributes among the stacked copies ``[Y_1 … Y_M]``, shape (kN,)."""
    first = (np.asarray(copies, dtype=np.intp) - 1) * width
    return (first[:, None] + np.arange(width)).ravel()
