"""Rows whose noise is looked at one by one: which, and how well each of their values is known.

Values are known to no better than the copies' grid, or their last bit, and are taken as off by that much. *Not checked*: rows not chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 8 * EPS
"""Of a value of the noise, beside the largest of the data's and the copies' values: what few additions leave."""
VALUES_AT_MOST = 2**18
"""Values of noise that are looked at row by row, about an eighth of a second; rows of many copies are fewer."""
FEWEST_ROWS, MOST_ROWS = 2**12, 2**17
MOST_COORDINATES = 256
"""Copies times attributes that are looked at row by row."""
RUN = 64
"""Rows that are looked at in one run, so that neighbours are among them."""
GRID_ROWS = 256
"""Rows that tell the grid that copies lie on."""


class Rows(NamedTuple):
    """Rows that are looked at.

    Attributes
    ----------
    x : ndarray of shape (n, N)
    noise : ndarray of shape (n, M, N)
    grain : ndarray of shape (M, N)
        How well each value of the noise is known.
    """

    x: Array
    noise: Array
    grain: Array


def rows_wanted(rows: int, values: int) -> int:
    """Return how many of a table's rows are looked at, whose noise has so many values each."""
    return min(rows, max(FEWEST_ROWS, min(MOST_ROWS, VALUES_AT_MOST // values)))


def runs(length: int, wanted: int) -> NDArray[np.intp]:
    """Return which rows of a block are looked at: runs of neighbours, evenly from its first row to its last."""
    if wanted >= length:
        return np.arange(length)
    starts = np.linspace(0, length - RUN, max(2, round(wanted / RUN))).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(min(RUN, length)))


def rows_of(blocks: Iterable[tuple[Array, Sequence[Array]]], chosen: Sequence[int], on_grid: bool) -> Rows:
    """Return the rows of some blocks together, of some copies.

    Parameters
    ----------
    blocks : iterable of (rows of the original, rows of every copy)
    chosen : sequence of int
        Numbers of the copies.
    on_grid : bool
        Whether copies may have been rounded to a grid; not if they were transformed back since.
    """
    kept = [(x, np.stack([copies[copy - 1] for copy in chosen], axis=1)) for x, copies in blocks]
    x, y = np.concatenate([x for x, _ in kept]), np.concatenate([y for _, y in kept])
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(y).max(axis=0))
    if not on_grid:
        return Rows(x, y - x[:, None], np.broadcast_to(ROUNDING * x.shape[1] * largest.max(), largest.shape))
    return Rows(x, y - x[:, None], np.maximum(ROUNDING * largest, grids(y.reshape(len(y), -1)).reshape(largest.shape)))


def grids(values: Array) -> Array:
    """Return the spacing of the grid of whole, decimal or binary fractions that each column lies on, 0 for 0 alone, shape (k,)."""
    values = values[:GRID_ROWS]  # of few rows it may be found coarser than it is, never finer
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53)).min(axis=0)
    spacing = np.where(np.isinf(lowest), 0.0, lowest)
    for digits in range(10):
        for column in np.flatnonzero(_on(values, digits)).tolist():
            step = float(np.gcd.reduce(np.rint(values[:, column] * 10.0**digits).astype(np.int64)))
            spacing[column] = max(spacing[column], step / 10.0**digits)
    return np.asarray(spacing)


def _on(values: Array, digits: int) -> NDArray[np.bool_]:
    """Return which columns are whole multiples of ``10^−digits``, but for the last bit."""
    scaled = values * 10.0**digits
    near = np.abs(scaled - np.rint(scaled)) <= 2 * EPS * np.abs(scaled)
    return np.asarray((near & (np.abs(scaled) < 2.0**45)).all(axis=0))
