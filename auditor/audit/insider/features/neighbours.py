"""Cells of neighbouring rows, in the order of the file and in the order of a copy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array

BESIDE = 1, 2, 4, 10
"""Rows on either side whose mean is taken."""


@register
class Neighbours(Feature):
    """Cells and differences of the rows before and after, and the mean of near rows, whichever side is nearer."""

    name = "neighbours"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        for c in range(min(shown.series.shape[1], 2 * MOST_PAIRED)):
            for k in (-1, 1):
                yield f"series {c}, {-k:+d} rows", partial(rolled, c, k)
                yield f"size of series {c}, {-k:+d} rows", partial(rolled_size, c, k)
            for rows in BESIDE:
                yield f"mean of series {c} over {rows} rows", partial(nearer_mean, c, rows)
                yield (
                    f"series {c} less its mean over {rows} rows",
                    partial(less_nearer_mean, c, rows),
                )
            for other in range(len(shown.orders)):
                yield (
                    f"series {c} next in the order of cell {other}",
                    partial(next_in_order, c, other),
                )


def rolled(c: int, k: int, shown: Shown) -> Array:
    """Return the column of another row."""
    return np.roll(shown.series[:, c], k)


def rolled_size(c: int, k: int, shown: Shown) -> Array:
    """Return its size."""
    return np.abs(rolled(c, k, shown))


def less_nearer_mean(c: int, rows: int, shown: Shown) -> Array:
    """Return a column less ``nearer_mean``."""
    return shown.series[:, c] - nearer_mean(c, rows, shown)


def nearer_mean(c: int, rows: int, shown: Shown) -> Array:
    """Return the mean over the rows before or after, whichever is nearer to the record's own cell: at the edge of a block one side is."""
    y = shown.series[:, c]
    before, after = mean_before(y, rows), mean_before(y[::-1], rows)[::-1]
    return np.where(np.abs(y - before) < np.abs(y - after), before, after)


def mean_before(y: Array, rows: int) -> Array:
    """Return the mean of so many cells before each; at the start of those there are, or the cell itself.

    Examples
    --------
    >>> mean_before(np.array([0.0, 8.0, 1.0, 3.0]), 2).tolist()
    [0.0, 0.0, 4.0, 4.5]
    """
    places, sums = np.arange(len(y)), np.concatenate([[0.0], np.cumsum(y)])
    count = np.minimum(places, rows)
    return np.where(count > 0, sums[places] - sums[places - count], y) / np.maximum(count, 1)


def next_in_order(c: int, other: int, shown: Shown) -> Array:
    """Return the mean of a column over the two records beside each one in the order of a cell."""
    order = shown.orders[other]
    y, found = shown.series[order, c], np.empty(len(order))
    found[order] = (np.roll(y, 1) + np.roll(y, -1)) / 2.0
    return found
