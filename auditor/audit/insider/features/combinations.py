"""Differences, ratios and products of copies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array


@register
class Combinations(Feature):
    """Differences of copies, lengths and products of differences, ratios and products of two cells."""

    name = "combinations"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        series = shown.series.shape[1]
        for c in range(series):
            yield f"series {c}", partial(one, c)
            yield f"size of series {c}", partial(size, c)
        for c in range(min(shown.flat.shape[1], MOST_PAIRED)):
            if (shown.flat[:, c] > 0).all():
                yield f"logarithm of cell {c}", partial(logarithm, c)
        differences = min(shown.differences.shape[1], MOST_PAIRED)
        for a, b in combinations(range(differences), 2):
            yield f"product of differences {a} and {b}", partial(product, a, b)
        if differences:
            yield "length of all differences", length
        for a, b in combinations(range(min(shown.flat.shape[1], MOST_PAIRED)), 2):
            yield f"ratio of cells {a} and {b}", partial(ratio, a, b)
            yield f"ratio of cells {b} and {a}", partial(ratio, b, a)
            yield f"product of cells {a} and {b}", partial(product_of_cells, a, b)


def one(c: int, shown: Shown) -> Array:
    """Return one column of the series."""
    return shown.series[:, c]


def size(c: int, shown: Shown) -> Array:
    """Return its distance from its median."""
    v = shown.series[:, c]
    return np.abs(v - np.median(v[:: max(1, len(v) // 1000)]))


def logarithm(c: int, shown: Shown) -> Array:
    """Return the logarithm of a cell."""
    return np.log(np.maximum(shown.flat[:, c], 1e-300))


def product(a: int, b: int, shown: Shown) -> Array:
    """Return the product of two differences."""
    return shown.differences[:, a] * shown.differences[:, b]


def product_of_cells(a: int, b: int, shown: Shown) -> Array:
    """Return the product of two cells."""
    return shown.flat[:, a] * shown.flat[:, b]


def length(shown: Shown) -> Array:
    """Return the length of all differences, each in its own deviations."""
    return ((shown.differences / np.maximum(shown.differences.std(axis=0), 1e-300)) ** 2).sum(
        axis=1
    )


def ratio(a: int, b: int, shown: Shown) -> Array:
    """Return the ratio of two cells; 0 where the second is 0 but for rounding."""
    y, z = shown.flat[:, a], shown.flat[:, b]
    return np.divide(y, z, out=np.zeros_like(y), where=np.abs(z) > 1e-12 * np.abs(z).max())
