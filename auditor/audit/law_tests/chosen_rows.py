"""Rows that are tested one by one, and the precision of their values.

Values are precise to the copies' grid, or to their last bit. *Not checked*: rows not chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from auditor.base.types import Array, Flags, Indices

EPS, EPS_SINGLE = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
ROUNDING = 8 * EPS
"""Rounding of a value of the noise, relative to the largest value of the data and the copies."""
VALUES_AT_MOST, SQUARES_AT_MOST = 2**17, 2**20
"""Values of noise that are tested row by row, some 0.2 seconds, and rows times the squared number
of values in each."""
FEWEST_ROWS = 2**12
MOST_COORDINATES = 256
"""Copies times attributes that are looked at row by row."""
MOST_DIGITS = 12
RUN, RUNS = 64, 8
"""Fewest rows that are tested in one run, so that neighbours are among them, and runs of a block,
so that distant rows are, too."""
GRID_ROWS = 256
"""Rows that the grid of copies is found from."""
FRACTIONS = np.concatenate([np.arange(1.0, 10_001.0), 10.0 ** np.arange(5, 10)])
"""Numbers of parts of 1 that a grid may have."""


class Rows(NamedTuple):
    """Rows that are tested, best in column-major order.

    Attributes
    ----------
    x : ndarray of shape (n, N)
    noise : ndarray of shape (n, M, N)
    grain : ndarray of shape (M, N)
        Precision of noise values.
    """

    x: Array
    noise: Array
    grain: Array


def some_copies(copies: int, width: int, coordinates: int) -> list[int]:
    """Numbers of the copies that are tested, evenly spread."""
    most = max(1, coordinates // width)
    return sorted(
        {1 + round(place) for place in np.linspace(0, copies - 1, min(copies, most)).tolist()}
    )


def rows_wanted(rows: int, values: int) -> int:
    """Number of rows that are tested, by values in a row."""
    return min(rows, max(FEWEST_ROWS, min(VALUES_AT_MOST // values, SQUARES_AT_MOST // values**2)))


def runs(length: int, wanted: int) -> Indices:
    """Rows of a block that are tested: evenly spread runs."""
    if wanted >= length:
        return np.arange(length)
    run = min(length, max(RUN, wanted // RUNS))
    starts = np.linspace(0, length - run, max(2, round(wanted / run))).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(run))


def rows_of(
    blocks: Iterable[tuple[Array, Sequence[Array]]], chosen: Sequence[int], on_grid: bool
) -> Rows:
    """Rows of some blocks together, of some copies.

    Parameters
    ----------
    chosen : sequence of int
        Numbers of the copies.
    on_grid : bool
        Whether copies may be on a grid; not after a transformation.
    """
    every = list(blocks)
    x = np.empty((every[0][0].shape[1], sum(len(x) for x, _ in every)))
    y = np.empty((len(chosen), *x.shape))
    np.concatenate([x.T for x, _ in every], axis=1, out=x)
    for place, copy in enumerate(chosen):
        np.concatenate([copies[copy - 1].T for _, copies in every], axis=1, out=y[place])
    largest = np.maximum(_largest(x), _largest(y))
    grain = np.broadcast_to(ROUNDING * len(x) * largest.max(), largest.shape)
    if on_grid:
        flat = y.reshape(largest.size, -1)
        some = flat[
            :, np.linspace(0, flat.shape[1] - 1, min(flat.shape[1], GRID_ROWS)).astype(np.intp)
        ]
        # a sorted column's last digits are worth more at its end
        some[:, 0] = flat[np.arange(largest.size), np.abs(flat).argmax(axis=1)]
        grain = np.maximum(ROUNDING * largest, grids(some.T).reshape(largest.shape))
    y -= x
    return Rows(x.T, y.transpose(2, 0, 1), grain)


def _largest(values: Array) -> Array:
    return np.maximum(values.max(axis=-1), -values.min(axis=-1))


def grids(values: Array) -> Array:
    """Spacing of each column's grid, 0 for 0 alone.

    Grids are binary fractions, and multiples of 1/q for whole q up to 10,000 and powers of ten up
    to 10⁹. Single precision and significant digits count as the largest value's grid.
    """
    values = values[:GRID_ROWS]  # few rows may look coarser, never finer
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(
        whole == 0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    ).min(axis=0)
    largest = np.abs(values).max(axis=0)
    eps = np.where((np.ldexp(mantissa, 24) % 1.0 == 0.0).all(axis=0), EPS_SINGLE, EPS)
    spacing = np.where(
        np.isinf(lowest), 0.0, np.maximum.reduce([lowest, eps / 2.0 * largest, _last_digit(values)])
    )
    return np.maximum(
        spacing, [_parts(column, float(bit)) for column, bit in zip(values.T, eps, strict=True)]
    )


def _parts(column: Array, eps: float) -> float:
    """Spacing of multiples of 1/q with the least q, else 0.

    Values with a last bit near 1/q are passed over.
    """
    some = column[:: max(1, len(column) // 4)]
    for q in FRACTIONS[_multiples(some, FRACTIONS, eps, column)]:
        if _multiples(column, q[None], eps, column)[0]:
            steps = np.rint(column * q)
            return float(np.gcd.reduce(steps[np.abs(steps) < 2.0**62].astype(np.int64)) / q)
    return 0.0


def _multiples(values: Array, q: Array, eps: float, column: Array) -> Flags:
    scaled = values[:, None] * q
    rounding = 4.0 * eps * np.abs(scaled) + 64.0 * EPS * np.abs(column).max() * q
    known = rounding < 2.0**-5
    return ((np.abs(scaled - np.rint(scaled)) <= rounding) | ~known).all(axis=0) & (
        2 * known.sum(axis=0) >= len(values)
    )


def _last_digit(values: Array) -> Array:
    size = np.abs(values)
    decade = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    worth = np.zeros(values.shape[1])
    for digits in range(MOST_DIGITS, 0, -1):
        scaled = size / 10.0 ** np.clip(decade - digits + 1, -300, 300)
        so_few = (np.abs(scaled - np.rint(scaled)) <= 8.0 * EPS * scaled).all(axis=0)
        worth = np.where(so_few, 10.0 ** np.clip(decade.max(axis=0) - digits + 1, -300, 300), worth)
    return np.asarray(worth)
