"""Recording steps of a table's columns, for noise on that lattice."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from auditor.data.columns.resolution import Grid
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.types import Array


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recording steps of one table's columns.

    Attributes
    ----------
    attributes : tuple of N str
    steps : ndarray of shape (N,)
        Greatest step that divides all of a column's values; NaN if none.
    largest : ndarray of shape (N,)
        Largest absolute value.
    """

    attributes: tuple[str, ...]
    steps: Array = field(repr=False)
    largest: Array = field(repr=False)


def recorded(table: Table) -> Recorded:
    """Return the recording steps of a table's columns.

    Standardised columns have none. A column of zeros has step 1. Cells equal to the column's mean
    may be imputed; they are ignored if no step fits them.
    """
    largest = np.maximum(np.abs(table.scan.low), np.abs(table.scan.high))
    if table.standardized:
        return Recorded(table.attributes, np.full(table.width, np.nan), largest)
    steps = table.resolution.steps.copy()
    for j in np.flatnonzero(np.isnan(steps)):
        steps[j] = 1.0 if largest[j] == 0 else _step_but_for_the_mean(table, int(j))
    return Recorded(table.attributes, steps, largest)


def _step_but_for_the_mean(table: Table, j: int) -> float:
    grid, mean = Grid(), float(table.scan.mean[j])
    spread = float(table.scan.high[j] - table.scan.low[j])
    for a, b in row_blocks(table.rows, table.width):
        x = table.read(a, b)[:, j]
        grid.add(x[np.abs(x - mean) > 1e-9 * spread])
        if grid.continuous:
            break
    return grid.step
