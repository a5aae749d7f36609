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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
        rest = iter(parts)
        first = next(rest)
        count, total, products = first.count, first.total.copy(), first.products.copy()
        for part in rest:
            count += part.count
            total += part.total
            products += part.products
        return cls(count, total, products)

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


def stack(x: Array, copies: Sequence[Array], centre: Array, out: Array) -> Array:
    """Write ``[x, y_1 … y_M]`` less the centre, side by side, and return it.

    Parameters
    ----------
    x : ndarray of shape (b, N)
    copies : sequence of M ndarrays of shape (b, N)
    centre : ndarray of shape (N,)
        The table's mean.
    out : ndarray of shape (≥ b, (M+1)N)
        Reused from block to block: touching fresh memory costs more than the arithmetic.
    """
    b, N = x.shape
    rows = out[:b]
    for place, part in enumerate((x, *copies)):
        subtract_row(part, centre, rows[:, place * N : (place + 1) * N])
    return rows


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
