"""Matching rows: records that show the same value, and means within a shown column."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array, Indices

MOST_NAMES = 0.75
"""Different values of a column, as a share of its records, up to which they are codes."""


@register
class Matching(Feature):
    """Codes of equal cells, the number of equal cells, and means of the other records of a group."""

    name = "matching"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        codes = [c for c in range(min(shown.flat.shape[1], 2 * MOST_PAIRED)) if repeats(shown, c)]
        for c in codes:
            yield f"value of cell {c}", partial(code, c)
            yield f"records with the value of cell {c}", partial(frequency, c)
            for other in range(min(shown.flat.shape[1], MOST_PAIRED)):
                if other != c:
                    yield (
                        f"mean of cell {other} in the group of cell {c}",
                        partial(group_mean, other, c),
                    )
                    yield (
                        f"cell {other} less its mean in the group of cell {c}",
                        partial(less_group_mean, other, c),
                    )


def repeats(shown: Shown, c: int) -> bool:
    """Return whether values of a cell come often enough to be codes."""
    return len(np.unique(shown.flat[:, c])) <= MOST_NAMES * len(shown.flat)


def code(c: int, shown: Shown) -> Indices:
    """Return the number of each cell's value."""
    return np.unique(shown.flat[:, c], return_inverse=True)[1].ravel()


def frequency(c: int, shown: Shown) -> Array:
    """Return the number of records with the same cell."""
    which = code(c, shown)
    return np.bincount(which)[which].astype(np.float64)


def group_mean(other: int, c: int, shown: Shown) -> Array:
    """Return the mean cell of the other records with the same value of cell c; of a record that is alone the mean of all."""
    y, which = shown.flat[:, other], code(c, shown)
    counts = np.bincount(which)[which] - 1
    return np.where(
        counts > 0, (np.bincount(which, y)[which] - y) / np.maximum(counts, 1), y.mean()
    )


def less_group_mean(other: int, c: int, shown: Shown) -> Array:
    """Return a cell less this mean."""
    return shown.flat[:, other] - group_mean(other, c, shown)
