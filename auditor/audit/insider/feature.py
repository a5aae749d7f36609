"""Base of feature families: shown cells, and columns computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Indices
from auditor.numerics.statistics import column_ranks
from auditor.registry import Plugin

MOST_SERIES = 32
"""Columns of ``Shown.series`` at most: families look at each of them in dozens of ways."""
MOST_PAIRED, FEW = 8, 4
"""Columns, or copies, that are combined two by two; and fewer where three are."""
ROUNDING = 2.0**-48
"""Deviation of a difference of two copies, relative to their largest value, up to which it is
rounding."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Cells that a coalition shows of every record, in the order of the file.

    Attributes
    ----------
    cells : ndarray of shape (n, k, N)
        Of k copies of N attributes; NaN where a cell is blank.
    keys : ndarray of shape (n,), optional
        Rank of each record's public key.
    unmix : ndarray of shape (N, N), optional
        Matrix that makes the noise of different attributes independent.
    beside : sequence of (name, ndarray of shape (n,))
        Shown columns that are not audited: numbers, codes without an order (integers), or text.
    """

    cells: Array
    keys: Indices | None = None
    unmix: Array | None = None
    beside: Sequence[tuple[str, NDArray[Any]]] = ()

    @cached_property
    def flat(self) -> Array:
        """Cells of one record side by side, blanks filled with column means, shape (n, kN)."""
        flat = self.cells.reshape(len(self.cells), -1)
        blank = np.isnan(flat)
        if not blank.any():
            return flat
        mean = np.where(blank, 0.0, flat).sum(axis=0) / np.maximum((~blank).sum(axis=0), 1)
        return np.where(blank, mean, flat)

    @cached_property
    def filled(self) -> Array:
        """Cells with blanks filled, shape (n, k, N)."""
        return self.flat.reshape(self.cells.shape)

    @cached_property
    def orders(self) -> list[Indices]:
        """Rows in the order of each of the first cells."""
        return [column.argsort(kind="stable") for column in self.flat.T[:FEW]]

    @cached_property
    def differences(self) -> Array:
        """Differences of successive copies, then from the first, shape (n, d); 0 for rounding."""
        few = self.filled[:, :MOST_PAIRED]
        pairs = [(c, c - 1) for c in range(1, few.shape[1])] + [
            (c, 0) for c in range(2, few.shape[1])
        ]
        found = [np.empty((len(few), 0))]
        for later, earlier in pairs:
            apart = few[:, later] - few[:, earlier]
            largest = np.abs(few[:, later]).max(axis=0)
            found.append(np.where(apart.std(axis=0) > ROUNDING * largest, apart, 0.0))
        return np.hstack(found)

    @cached_property
    def ranks(self) -> Array:
        """Ranks of the first differences, as shares, shape (n, at most ``MOST_PAIRED``)."""
        few = self.differences[:, :MOST_PAIRED]
        return column_ranks(few) if few.shape[1] else few

    @cached_property
    def series(self) -> Array:
        """Some cells, differences, unmixed differences and all cells, shape (n, at most ``MOST_SERIES``)."""
        width, d = self.cells.shape[2], self.differences
        parts = [self.flat[:, :MOST_PAIRED], d]
        if self.unmix is not None and 1 < width <= d.shape[1]:
            parts += [part @ self.unmix.T for part in np.hsplit(d, d.shape[1] // width)]
        return np.hstack([*parts, self.flat[:, MOST_PAIRED:]])[:, :MOST_SERIES]


class Known(NamedTuple):
    """Originals that a family may learn from, NaN in rows that are kept for testing.

    Attributes
    ----------
    attribute : int
        The attribute that is predicted.
    x : ndarray of shape (n, N)
        Original records.
    ranks : ndarray of shape (n, N)
        Rank of each original in its column, as a share.
    least : float
        Least value of the predicted attribute in the table.
    left : ndarray of shape (n,)
        Residual of the predicted attribute after the first prediction.
    """

    attribute: int
    x: Array
    ranks: Array
    least: float
    left: Array

    @property
    def residual(self) -> tuple[Indices, Array]:
        """Rows with a known residual, and these residuals less their mean."""
        there = np.flatnonzero(np.isfinite(self.left))
        return there, self.left[there] - self.left[there].mean()

    def only(self, rows: Indices) -> Known:
        """Return what is known when only some rows are."""
        kept = np.zeros(len(self.left), dtype=bool)
        kept[rows] = True
        x, ranks = (np.where(kept[:, None], part, np.nan) for part in (self.x, self.ranks))
        return Known(self.attribute, x, ranks, self.least, np.where(kept, self.left, np.nan))


Column = Callable[[Shown], Array | Indices]
"""Computes one column of shape (n,) from any cells of the same records. Integers are codes without
an order."""
Columns = Iterator[tuple[str, Column]]
"""Columns with their names."""


class Feature(Plugin):
    """Base of every feature family: columns that may help to predict an original."""

    kind = "feature"
    learns: ClassVar[bool] = False
    """Whether the columns depend on the originals: they are then learnt from some records and
    tested on others."""

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield columns with their names.

        Parameters
        ----------
        known : Known
            Only families that state ``learns`` may read it.
        """
        raise NotImplementedError
