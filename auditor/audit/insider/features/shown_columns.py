"""Columns that copies show beside the audited ones, and means of cells among equal values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations

import numpy as np

from auditor.audit.insider.feature import FEW, Column, Feature, Known, Shown, many_alike
from auditor.registry import register
from auditor.types import Array, Indices

MOST_MEANS = 64
"""Pairs of a shown column and a cell."""


@register
class ShownColumns(Feature):
    """Unaudited columns, their products and ratios, and means of cells among equal values."""

    name = "shown-columns"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        for k, (name, values) in enumerate(shown.beside):
            codes = values.dtype.kind in "iu"
            if not codes or many_alike(values):
                yield f"column {name!r}", partial(beside, k)
            if codes:
                for c in range(min(shown.flat.shape[1], MOST_MEANS // len(shown.beside))):
                    yield f"mean of cell {c} by {name!r}", partial(group_mean, k, c)
        numbers = [k for k, (_, v) in enumerate(shown.beside) if v.dtype.kind == "f"]
        for a, b in permutations(numbers[:FEW], 2):
            if a < b:
                yield f"product of columns {a} and {b}", partial(product, a, b)
            yield f"ratio of columns {a} and {b}", partial(ratio, a, b)


def beside(k: int, shown: Shown) -> Array | Indices:
    """Return one shown column."""
    return shown.beside[k][1]


def product(a: int, b: int, shown: Shown) -> Array:
    """Return the product of two shown numbers."""
    return np.asarray(shown.beside[a][1] * shown.beside[b][1], dtype=np.float64)


def ratio(a: int, b: int, shown: Shown) -> Array:
    """Return the ratio of two shown numbers; 0 where the second is 0."""
    y, z = (shown.beside[k][1].astype(np.float64) for k in (a, b))
    return np.divide(y, z, out=np.zeros_like(y), where=z != 0)


def group_mean(k: int, c: int, shown: Shown) -> Array:
    """Return the mean of a cell among the records with an equal code, shape (n,)."""
    codes, cell = shown.beside[k][1], shown.flat[:, c]
    counts = np.bincount(codes)
    return (np.bincount(codes, cell) / np.maximum(counts, 1))[codes]
