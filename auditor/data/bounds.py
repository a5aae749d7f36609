"""Stated bounds of columns: the largest change of one record.

Privacy guarantees depend on them. A bound is external knowledge (ages lie between 0 and 120). The
table's own extremes are values of records. Records outside are refused; messages count them and
show no value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from auditor.data.table import Table
from auditor.errors import DataError
from auditor.numerics.blocks import row_blocks
from auditor.text.column_names import counted, listed, nearest, quoted

Bounds = Mapping[str, tuple[float, float]]
"""Column → its lowest and highest value."""


def check_bounds(table: Table, bounds: Bounds) -> None:
    """Refuse bounds that do not fit a table's numeric columns.

    Every column needs bounds, and every record must satisfy them.

    Raises
    ------
    DataError
        A column is unknown or has no bounds, or records lie outside. No message holds a value from
        the table.
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


def _outside(table: Table, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.intp]:
    found = np.zeros(table.width, dtype=np.intp)
    for start, stop in row_blocks(table.rows, table.width):
        x = table.read(start, stop)
        found += np.count_nonzero((x < low) | (x > high), axis=0)
    return found


def spans(attributes: tuple[str, ...], bounds: Bounds) -> NDArray[np.float64] | None:
    """Return the largest change of one record, ``Δ = high − low``, shape (N,).

    None without bounds.
    """
    if not bounds or not attributes:
        return None
    return np.array([bounds[name][1] - bounds[name][0] for name in attributes])
