"""First and second moments of original and copies together: one pass over the rows, after which no linear attack needs them.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | a row of ``[X, Y_1 … Y_M]`` less the table's mean, ``mu_X``, in every part | (d,), d = (M+1)N |
| ``t`` | ``Σ v`` over rows | (d,) |
| ``P`` | ``Σ v vᵀ`` over rows | (d, d) |

Sums of row groups add up, so blocks may be done in any order and by anybody. The mean is taken off *before* the products are
formed: at an offset of 10⁷ an uncentred float64 covariance is noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.blocks import pieces
from auditor.noise import attribute_index

Array = NDArray[np.float64]


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

    def covariance(self, divisor: int | None = None) -> Array:
        """Return the covariance, shape (d, d); divisor n unless told."""
        centred = self.products - np.outer(self.total, self.total) / self.count
        return centred / (divisor or self.count)

    def of_copies(self, copies: Sequence[int], width: int) -> Moments:
        """Return the moments of some copies alone, dropping the original; copy numbers count from 1."""
        index = attribute_index(copies, width) + width
        return Moments(self.count, self.total[index], self.products[np.ix_(index, index)])


class Awaited(Moments):
    """Moments that are taken when somebody first looks at them: an attack that knows all it needs spares the pass.

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
    """Moments that others are added to, in place: of a million columns' products only these are kept."""

    def __init__(self) -> None:
        self._count = 0
        self._total: Array | None = None
        self._products: Array | None = None

    def add(self, part: Moments) -> None:
        """Add the moments of other rows."""
        self._count += part.count
        if self._total is None or self._products is None:
            self._total, self._products = part.total.copy(), part.products.copy()
        else:
            self._total += part.total
            self._products += part.products

    def moments(self) -> Moments:
        """Return what was added so far; something must have been."""
        assert self._total is not None
        assert self._products is not None
        return Moments(self._count, self._total, self._products)


def of_rows(parts: Sequence[Array], centre: Array) -> Moments:
    """Return the moments of some tables' rows side by side, piece by piece: no memory that grows with the rows.

    Parameters
    ----------
    parts : sequence of ndarrays of shape (n, N)
    centre : ndarray of shape (N,)
    """
    n, N = parts[0].shape
    cuts = pieces(0, n, N)
    memory = np.empty(max(b - a for a, b in cuts) * len(parts) * N)
    return Moments.merge(
        Moments.of(stack([part[a:b] for part in parts], centre, stacking(b - a, N, len(parts), memory))) for a, b in cuts
    )


NARROW = 16
"""Attributes below which stacked rows are kept column by column: a row of one table is then too short a run to copy at speed."""


def stacking(rows: int, width: int, parts: int, memory: Array | None = None) -> Array:
    """Return memory for ``stack``, shape (rows, d), of so many tables side by side.

    Parameters
    ----------
    memory : ndarray of shape (any,), optional
        Of rows·d values at least, used again from piece to piece: touching fresh memory costs more than the arithmetic.
    """
    d = parts * width
    held = np.empty(rows * d) if memory is None else memory[: rows * d]
    return held.reshape(d, rows).T if width < NARROW else held.reshape(rows, d)


def stack(parts: Sequence[Array], centre: Array, out: Array) -> Array:
    """Write ``[x, y_1 … y_M]`` less the centre, side by side, and return it.

    Parameters
    ----------
    parts : sequence of ndarrays of shape (b, N)
    centre : ndarray of shape (N,)
        The table's mean.
    out : ndarray of shape (b, d)
        From ``stacking``.
    """
    N = parts[0].shape[1]
    if out.flags.f_contiguous:
        for place, part in enumerate(parts):
            for column in range(N):
                np.subtract(part[:, column], centre[column], out=out[:, place * N + column])
        return out
    if len(parts) == 1:
        subtract_row(parts[0], centre, out)
        return out
    np.concatenate(parts, axis=1, out=out)
    subtract_row(out, np.tile(centre, len(parts)), out)
    return out


RUN = 16
"""Rows done at once when one row is taken off all: numpy's inner loop is then that much longer."""


def subtract_row(rows: Array, row: Array, out: Array) -> None:
    """Write ``rows − row``, shape (b, N), to ``out``, which may be ``rows`` itself."""
    if not (rows.flags.c_contiguous and out.flags.c_contiguous):
        np.subtract(rows, row, out=out)
        return
    b, N = rows.shape
    whole = b - b % RUN
    np.subtract(rows[:whole].reshape(-1, RUN * N), np.tile(row, RUN), out=out[:whole].reshape(-1, RUN * N))
    np.subtract(rows[whole:], row, out=out[whole:])
