"""Columns that copies show beside the audited ones, and means of cells among equal values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import FEWEST_EACH, Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array, Indices

MOST_MEANS = 64
"""Pairs of a shown column and a cell."""


@register
class ShownColumns(Feature):
    """Unaudited columns of the copies, and each cell's mean among records with equal values."""

    name = "shown-columns"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        for k, (name, values) in enumerate(shown.beside):
            codes = values.dtype.kind in "iu"
            if not codes or len(values) >= FEWEST_EACH * len(np.unique(values)):
                yield f"column {name!r}", partial(beside, k)
            if codes:
                for c in range(min(shown.flat.shape[1], MOST_MEANS // len(shown.beside))):
                    yield f"mean of cell {c} by {name!r}", partial(group_mean, k, c)


def beside(k: int, shown: Shown) -> Array | Indices:
    """Return one shown column."""
    return shown.beside[k][1]


def group_mean(k: int, c: int, shown: Shown) -> Array:
    """Return the mean of a cell among the records with an equal code, shape (n,)."""
    codes, cell = shown.beside[k][1], shown.flat[:, c]
    counts = np.bincount(codes)
    return np.asarray((np.bincount(codes, cell) / np.maximum(counts, 1))[codes])
