"""Stated bounds of columns, for the largest change of one record.

A bound is external knowledge (ages lie between 0 and 120), since the table's extremes are values of
records. Messages count the records outside and show no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from auditor.base.errors import DataError
from auditor.base.text import counted, listed, nearest, quoted
from auditor.base.types import Array, Indices
from auditor.data.columns.scan import Grid
from auditor.data.table import Table

Bounds = Mapping[str, tuple[float, float]]
"""Column → its lowest and highest value."""


def check_bounds(table: Table, bounds: Bounds) -> None:
    """Refuse bounds that do not fit a table's numeric columns.

    Raises
    ------
    DataError
        A column is unknown or has no bounds, or records lie outside.
    """
    if not bounds:
        return
    for name in bounds:
        if name not in table.attributes:
            raise DataError(
                f"there is no audited column of numbers {quoted(name)}{nearest(name, table.attributes)}",
                ("bounds", name),
            )
    unstated = [name for name in table.attributes if name not in bounds]
    if unstated:
        raise DataError(
            f"bounds must name every column of numbers, as a guarantee is of whole records; {listed(unstated)} has none"
        )
    low, high = np.array([bounds[name] for name in table.attributes]).T
    if ((table.scan.low < low) | (table.scan.high > high)).any():
        outside = _outside(table, low, high)
        j = int(np.argmax(outside > 0))
        more = (
            f", and so do {listed(np.array(table.attributes)[j + 1 :][outside[j + 1 :] > 0])}"
            if outside[j + 1 :].any()
            else ""
        )
        told = f"column {quoted(table.attributes[j])} has {counted(int(outside[j]), 'record')} outside the stated bounds{more}"
        raise DataError(
            f"{told}; widen them, or clip the data beforehand", ("bounds", table.attributes[j])
        )


def _outside(table: Table, low: Array, high: Array) -> Indices:
    found = [np.count_nonzero((x < low) | (x > high), axis=0) for x in table.blocks()]
    return np.asarray(np.sum(found, axis=0))


def spans(attributes: tuple[str, ...], bounds: Bounds) -> Array | None:
    """Return the largest change of one record, ``Δ = high − low``, shape (N,).

    None without bounds.
    """
    if not bounds or not attributes:
        return None
    return np.array([bounds[name][1] - bounds[name][0] for name in attributes])


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recording steps (NaN if none) and largest absolute values, shape (N,)."""

    attributes: tuple[str, ...]
    steps: Array = field(repr=False)
    largest: Array = field(repr=False)


def recorded(table: Table) -> Recorded:
    """Return the recording steps of a table's columns.

    Standardised columns have none. A column of zeros has step 1. Cells equal to the mean may be imputed;
    they are ignored if no step fits them.
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
    for x in (block[:, j] for block in table.blocks()):
        grid.add(x[np.abs(x - mean) > 1e-9 * spread])
        if grid.continuous:
            break
    return grid.step
