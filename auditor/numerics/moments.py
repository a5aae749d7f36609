"""Joint first and second moments of original and copies, in one pass.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | a row of ``[X, Y_1 … Y_M]`` less the table's mean, ``mu_X``, in every part | (d,), d = (M+1)N |
| ``t`` | ``Σ v`` over rows | (d,) |
| ``P`` | ``Σ v vᵀ`` over rows | (d, d) |

Moments of row groups add up, so any process may handle a block. Rows are centred *before* products:
at an offset of 10⁸ deviations the uncentred formula ``Σ x² − n x̄²`` is lost to rounding.
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
    """Sums over some rows, about a fixed centre (the table's mean).

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
        """Return the moments of centred rows, shape (b, d)."""
        # A product with ones: half the time of a reduction along the outer axis.
        return cls(rows.shape[0], np.ones(rows.shape[0]) @ rows, rows.T @ rows)

    @classmethod
    def merge(cls, parts: Iterable[Moments]) -> Moments:
        """Return the sum of the moments of row groups, in order, one at a time."""
        sums = Sums()
        for part in parts:
            sums.add(part)
        return sums.moments()

    def __sub__(self, part: Moments) -> Moments:
        """Return the moments without a part of the rows."""
        return Moments(
            self.count - part.count, self.total - part.total, self.products - part.products
        )

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
        return np.asarray(
            (np.diag(self.products) - self.total * self.total / self.count) / self.count
        )

    def covariance(self, divisor: int | None = None) -> Array:
        """Return the covariance, shape (d, d); divisor n by default."""
        centred = self.products - np.outer(self.total, self.total) / self.count
        return centred / (divisor or self.count)

    def of_copies(self, copies: Sequence[int], width: int) -> Moments:
        """Return the moments of some copies, without the original.

        Copy numbers count from 1.
        """
        found = self.parts([copy + 1 for copy in copies], width)
        # a copy, so that the receiver gets no view of the original
        return Moments(found.count, found.total.copy(), found.products.copy())

    def parts(self, places: Sequence[int], width: int) -> Moments:
        """Return the moments of some of the stacked parts, numbered from 1.

        Unchanged if there are no columns.
        """
        if self.size == 0:
            return self
        index = neighbours(attribute_index(places, width))
        return Moments(self.count, self.total[index], self.products[square(index)])


class Awaited(Moments):
    """Moments computed on first use.

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
    """Moments summed in place, to hold one set of products only.

    With one part, that part itself.
    """

    def __init__(self) -> None:
        self._count = 0
        self._total: Array | None = None
        self._products: Array | None = None
        self._mine = False  # whether the sums belong to this object, not to a part

    def add(self, part: Moments) -> None:
        """Add the moments of other rows."""
        self._count += part.count
        if self._total is None or self._products is None:
            self._total, self._products = part.total, part.products
        elif self._mine:
            self._total += part.total
            self._products += part.products
        else:
            self._total, self._products, self._mine = (
                self._total + part.total,
                self._products + part.products,
                True,
            )

    def moments(self) -> Moments:
        """Return the sum so far of at least one part."""
        assert self._total is not None
        assert self._products is not None
        return Moments(self._count, self._total, self._products)


def of_rows(parts: Sequence[Array], centre: Array, deviation: Array | None = None) -> Moments:
    """Return the joint moments of some tables' rows, piece by piece.

    Memory does not grow with the rows.

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
    """Return ``[x, y_1 … y_M]`` less the centre, shape (b, d)."""
    return np.concatenate(parts, axis=1) - np.tile(centre, len(parts))


LAID_VALUES = 3 * 2**17
"""Values in a stacked piece: three megabytes, which fit the cache."""
FEWEST_LAID = 512
"""Fewest rows per piece: adding its products costs as much as multiplying some 300 rows."""

NARROW = 15
"""Most attributes for column-wise stacking: rows are too short for fast loops."""

SHORT = 4
"""Most attributes for which a row is too short to be copied as one item."""

NEAR = 3.0
"""Centres within this number of deviations are subtracted from sums, at a cost of ``log10(1 +
NEAR²)`` digits, one at most.
"""

LANES = 4
"""Columns are padded to a multiple: BLAS needs half as long again for 11 as for 12."""

BAND, SMALL_OUTPUT, SMALL_WORK = 8, 1_200, 10**6
"""Columns per product; output size and multiplications up to which OpenBLAS multiplies rows in
place. Above, it first copies both factors, which for few columns costs as much as the product.
"""

ALIGNED = 8
"""Values per aligned load: unaligned data multiply a fifth slower."""


class _Room(threading.local):
    """A thread's reused memory for stacked rows, since allocation is slow.

    Attributes
    ----------
    values : ndarray of shape (any,)
    laid : tuple
        Owner and number of the last rows.
    """

    values: Array = np.empty(0)
    laid: tuple[Stack | None, int] = (None, 0)


_ROOM = _Room()


class Stack:
    """Stacks rows of tables, ``[x, y_1 … y_M]``, and sums their moments.

    All stacks of a thread share memory, so read ``rows`` before another stack is used.

    A piece is laid out by rows, or for narrow tables by columns, whichever is faster. The centre is
    subtracted from every row or, for data near 0 (``NEAR``), from the sums. A column of ones yields
    the totals ``t``. Up to some hundred columns are multiplied in bands and slabs of rows
    (``BAND``, ``SMALL_WORK``).

    Parameters
    ----------
    centre : ndarray of shape (N,)
        The table's mean.
    tables : int
        Number of tables.
    deviation : ndarray of shape (N,), optional
        The table's standard deviations; without them the centre is subtracted from every row. Of
        the table, not of the rows, so all pieces are treated equally.
    """

    def __init__(self, centre: Array, tables: int, deviation: Array | None = None) -> None:
        self._width, self._centre = centre.size, np.tile(centre, tables)
        self._later = deviation is not None and bool((np.abs(centre) <= NEAR * deviation).all())
        self._by_row, d = centre.size > (SHORT if self._later else NARROW), self._centre.size
        self._banded = BAND * (d + 1) <= SMALL_OUTPUT
        self._below = np.tril_indices(d if self._banded else 0, -1)
        # A single full table is not copied for ones, and wide columns are not padded.
        ones = d % LANES > 0 or (self._banded and tables > 1)
        self._size, self._used = d + ones + -(d + ones) % LANES, d + ones
        self._rows: Array = np.empty((0, self._size))
        self._places: _Places | None = None
        self._count, self._total, self._products = (
            0,
            np.zeros(self._centre.size),
            np.zeros((self._centre.size,) * 2),
        )

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Divide rows ``start`` to ``stop`` evenly into pieces to add."""
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
        # A product with ones: half the time of a reduction along the outer axis.
        total = products[:d, d] if products.shape[1] > d else np.ones(len(self._rows)) @ self._rows
        first = self._count == 0
        self._count += len(self._rows)
        self._total = total if first else self._total + total
        self._products = (
            products[:d, :d]
            if first
            else np.add(self._products, products[:d, :d], out=self._products)
        )

    def _multiplied(self) -> Array:
        """Return products of the piece's columns, above the diagonal at least."""
        if (
            self._places is None
            or self._places.slabs is None
            or self._rows is not self._places.rows
        ):
            return np.asarray(self._rows.T @ self._rows)
        slabs, products = (
            self._places.slabs[:, : self._used],
            np.zeros((self._centre.size, self._used)),
        )
        for first in range(0, len(products), BAND):
            band = slice(first, min(first + BAND, len(products)))
            np.matmul(slabs[:, band], slabs[:, first:].transpose(0, 2, 1)).sum(
                axis=0, out=products[band, first:]
            )
        return products

    def lay(self, parts: Sequence[Array]) -> None:
        """Load a piece for ``rows``, without adding it."""
        alone = len(parts) == 1 and self._later and parts[0].flags.c_contiguous
        self._rows = parts[0] if alone else self._laid(parts)

    def rows(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Array:
        """Return some rows of the last piece, centred, shape (r, d)."""
        rows: Array = self._rows[chosen][:, : self._centre.size]
        return rows - self._centre if self._later else rows

    def moments(self) -> Moments:
        """Return the centred moments added since the last call; not empty."""
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
        b, d = len(parts[0]), self._centre.size
        slabs = math.ceil(b * min(d, BAND) * self._used / SMALL_WORK) if self._banded else 0
        most = (b + slabs * ALIGNED) * self._size
        if _ROOM.values.size < most:
            memory = np.empty(most + ALIGNED)
            _ROOM.values = memory[-memory.ctypes.data // memory.itemsize % ALIGNED :]
        if (
            self._places is None
            or self._places.values is not _ROOM.values
            or len(self._places.rows) != b
        ):
            self._places = _Places.of(
                _ROOM.values, b, self._size, self._width, len(parts), self._by_row, slabs
            )
        rows = self._places.rows
        if _ROOM.laid != (self, b) or not self._later:
            rows[:, d : d + 1] = 1.0
            rows[:, d + 1 :] = 0.0
            self._places.beyond[...] = 0.0
            _ROOM.laid = self, b
        if self._by_row and not self._later and self._size == self._width:
            # a single full table: no copy, centred in place
            subtract_row(parts[0], self._centre, rows)
            return rows
        if self._by_row:
            for part, here, items in zip(
                parts, self._places.tables, self._places.items, strict=True
            ):
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
    """Memory layout of a piece of rows.

    Attributes
    ----------
    values : ndarray of shape (any,)
        The memory that contains it.
    rows : ndarray of shape (b, size)
        All rows.
    tables : list of ndarrays of shape (b, N)
        Each table's columns.
    items : list of ndarrays of shape (b, 1)
        Each table's rows as one item each, if rows are contiguous.
    slabs : ndarray of shape (s, size, r) or None
        Columns divided evenly into runs of rows, padded beyond the piece.
    beyond : ndarray of shape (s·r − b, size)
        The padding.
    """

    values: Array
    rows: Array
    tables: list[Array]
    items: list[NDArray[np.void]]
    slabs: Array | None
    beyond: Array

    @classmethod
    def of(
        cls,
        values: Array,
        height: int,
        size: int,
        width: int,
        tables: int,
        by_row: bool,
        slabs: int,
    ) -> _Places:
        room = slabs * ALIGNED * math.ceil(height / slabs / ALIGNED) if slabs else height
        held = (
            values[: room * size].reshape(room, size)
            if by_row
            else values[: room * size].reshape(size, room).T
        )
        rows = held[:height]
        parts = [rows[:, place * width : (place + 1) * width] for place in range(tables)]
        item = np.dtype((np.void, rows.itemsize * width))
        items = [part.view(item) for part in parts] if by_row else []
        cut = held.T.reshape(size, slabs, -1).transpose(1, 0, 2) if slabs else None
        return cls(values, rows, parts, items, cut, held[height:])


RUN = 512
"""Values per inner loop when one row is subtracted from all; the loop's start costs as much as a
few dozen values.
"""


def whole_runs(rows: int, width: int) -> tuple[int, int]:
    """Return the number of rows that fill whole runs, and rows per run."""
    run = max(1, RUN // width)
    return rows - rows % run, run


def subtract_row(rows: Array, row: Array, out: Array) -> None:
    """Write ``rows − row``, shape (b, N), to ``out`` (may be ``rows``)."""
    by_run(np.subtract, rows, row, out)


def by_run(operation: np.ufunc, rows: Array, row: Array, out: Array) -> None:
    """Write an elementwise operation of every row and one row, shape (b, N).

    Several rows at a time if contiguous.
    """
    if not (rows.flags.c_contiguous and out.flags.c_contiguous):
        operation(rows, row, out=out)
        return
    b, N = rows.shape
    whole, run = whole_runs(b, N)
    operation(
        rows[:whole].reshape(-1, run * N), np.tile(row, run), out=out[:whole].reshape(-1, run * N)
    )
    operation(rows[whole:], row, out=out[whole:])


def neighbours(index: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Return consecutive ascending places as a slice; others unchanged.

    A slice avoids copies of k² moments per coalition of copies 1 to k.
    """
    run = (
        index.size > 0
        and index[-1] - index[0] == index.size - 1
        and bool((index[1:] > index[:-1]).all())
    )
    return slice(int(index[0]), int(index[-1]) + 1) if run else index


def square(index: NDArray[np.intp] | slice) -> tuple[Any, Any]:
    """Return the index of a square submatrix."""
    return (index, index) if isinstance(index, slice) else (index[:, None], index)


def stacked(
    groups: Sequence[Moments], columns: NDArray[np.intp] | slice
) -> tuple[Array, Array, Array]:
    """Return counts, totals and products of some columns of G groups.

    Shapes (G,), (G, c) and (G, c, c); views for one group.
    """
    if len(groups) == 1:
        (only,) = groups
        return (
            np.array([float(only.count)]),
            only.total[columns][None],
            only.products[square(columns)][None],
        )
    counts, totals = (
        np.array([float(group.count) for group in groups]),
        np.array([group.total[columns] for group in groups]),
    )
    return counts, totals, np.array([group.products[square(columns)] for group in groups])


def attribute_index(copies: Sequence[int], width: int) -> NDArray[np.intp]:
    """Return the places of some copies' attributes in ``[Y_1 … Y_M]``, (kN,)."""
    first = (np.asarray(copies, dtype=np.intp) - 1) * width
    return (first[:, None] + np.arange(width)).ravel()
