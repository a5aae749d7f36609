"""Recording steps of columns: whole numbers, cents, halves, fives.

| symbol | meaning |
| --- | --- |
| ``k`` | fewest decimal places that write all values, at most six |
| ``s`` | ``gcd(x·10^k) / 10^k``: the greatest step that divides all values |

A column without a step is continuous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from auditor.base.types import Array

MOST_PLACES = 6
SLACK = 1e-6
"""Tolerance of a whole multiple, in steps, for rounding of reading and scaling."""
LARGEST = 1e12
"""In units of the last decimal place: up to this value doubles are ten thousand times finer."""
COUNTED_VALUES = 2**22
"""Sample for the most frequent value, evenly spread: 32 MB, standard error below 0.1 % for ten
columns.
"""


@dataclass(frozen=True, eq=False)
class Resolution:
    """Recording steps of the columns.

    Attributes
    ----------
    steps : ndarray of shape (N,)
        > 0, in the table's units; NaN for a continuous column.
    commonest : ndarray of shape (N,)
        Share of the records with the most frequent value: the success of a guess without knowledge.
        NaN for a continuous column.
    """

    steps: Array = field(repr=False)
    commonest: Array = field(repr=False)


@dataclass
class Grid:
    """Greatest common step of the values so far, in last decimal places."""

    places: int = 0
    unit: int = 0
    continuous: bool = False

    def add(self, x: Array) -> None:
        """Add some values, shape (b,)."""
        for places in range(self.places, MOST_PLACES + 1) if not self.continuous else ():
            u = x * 10.0**places
            size, whole = np.abs(u), np.rint(u)
            if (
                size.max(initial=0.0) <= LARGEST
                and (np.abs(u - whole) <= SLACK + 4.0 * np.finfo(np.float64).eps * size).all()
            ):
                self.unit = math.gcd(
                    self.unit * 10 ** (places - self.places),
                    int(np.gcd.reduce(whole.astype(np.int64))),
                )
                self.places = places
                return
        self.continuous = True

    @property
    def step(self) -> float:
        """The step in units of the values; NaN if none."""
        return math.nan if self.continuous or self.unit == 0 else self.unit / 10.0**self.places


def resolution(blocks: Callable[[], Iterable[Array]], rows: int, width: int) -> Resolution:
    """Return the resolution of a table from its blocks of shape (b, N).

    Examples
    --------
    >>> x = np.array([[20.0, 0.25, 0.1234567], [30.0, 1.5, 3.0], [30.0, 0.75, 3.0]])
    >>> resolution(lambda: [x], 3, 3).steps.tolist()
    [10.0, 0.25, nan]
    """
    every = max(1, math.ceil(rows * width / COUNTED_VALUES))
    grids, held, before = [Grid() for _ in range(width)], [], 0
    for x in blocks():
        for grid, column in zip(grids, x.T, strict=True):
            grid.add(column)
        held.append(x[-before % every :: every])
        before += len(x)
    steps, sample = np.array([grid.step for grid in grids]), np.concatenate(held)
    return Resolution(
        steps,
        np.array([_commonest(column, step) for column, step in zip(sample.T, steps, strict=True)]),
    )


def _commonest(column: Array, step: float) -> float:
    return (
        math.nan
        if math.isnan(step)
        else float(np.unique(np.rint(column / step), return_counts=True)[1].max() / len(column))
    )
