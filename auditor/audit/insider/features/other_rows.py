"""Feature families that read other rows, shown columns and places."""

from __future__ import annotations

from functools import partial
from itertools import permutations

import numpy as np

from auditor.audit.insider.feature import (
    FEW,
    MOST_NAMES,
    MOST_PAIRED,
    Columns,
    Feature,
    Known,
    Shown,
    mean,
    mean_of_others,
)
from auditor.base import scipy
from auditor.base.types import Array, Indices
from auditor.data.copies import characters, many_alike
from auditor.numerics.statistics import BY_CHANCE
from auditor.registry import register

BESIDE = 1, 2, 4, 10
"""Rows on either side that are averaged."""


@register
class Neighbours(Feature):
    """Cells and differences of adjacent rows, and the nearer mean of near rows."""

    name = "neighbours"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        for c in range(min(shown.series.shape[1], 2 * MOST_PAIRED)):
            for k in (-1, 1):
                yield (
                    f"series {c}, {-k:+d} rows",
                    partial(lambda c, k, s: np.roll(s.series[:, c], k), c, k),
                )
                yield (
                    f"size of series {c}, {-k:+d} rows",
                    partial(lambda c, k, s: np.abs(np.roll(s.series[:, c], k)), c, k),
                )
            for rows in BESIDE:
                yield f"mean of series {c} over {rows} rows", partial(nearer_mean, c, rows)
                yield (
                    f"series {c} less its mean over {rows} rows",
                    partial(lambda c, k, s: s.series[:, c] - nearer_mean(c, k, s), c, rows),
                )
            for other in range(len(shown.orders)):
                yield (
                    f"series {c} next in the order of cell {other}",
                    partial(next_in_order, c, other),
                )


def nearer_mean(c: int, rows: int, shown: Shown) -> Array:
    """Mean of the rows before or after, whichever is nearer to the cell."""
    y = shown.series[:, c]
    before, after = mean_before(y, rows), mean_before(y[::-1], rows)[::-1]
    return np.where(np.abs(y - before) < np.abs(y - after), before, after)


def mean_before(y: Array, rows: int) -> Array:
    """Mean of up to ``rows`` cells before each, else the cell.

    Examples
    --------
    >>> mean_before(np.array([0.0, 8.0, 1.0, 3.0]), 2).tolist()
    [0.0, 0.0, 4.0, 4.5]
    """
    places, sums = np.arange(len(y)), np.concatenate([[0.0], np.cumsum(y)])
    count = np.minimum(places, rows)
    return np.where(count > 0, sums[places] - sums[places - count], y) / np.maximum(count, 1)


def next_in_order(c: int, other: int, shown: Shown) -> Array:
    """Mean of a column over both neighbours in the order of a cell."""
    order = shown.orders[other]
    y, found = shown.series[order, c], np.empty(len(order))
    found[order] = (np.roll(y, 1) + np.roll(y, -1)) / 2.0
    return found


@register
class Matching(Feature):
    """Codes and numbers of equal cells, and means of a group's other records."""

    name = "matching"

    def columns(self, shown: Shown, known: Known) -> Columns:
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
                        partial(lambda o, c, s: s.flat[:, o] - group_mean(o, c, s), other, c),
                    )


def repeats(shown: Shown, c: int) -> bool:
    """Whether values repeat often enough to be codes."""
    return len(np.unique(shown.flat[:, c])) <= MOST_NAMES * len(shown.flat)


def code(c: int, shown: Shown) -> Indices:
    """Number of each cell's value."""
    return np.unique(shown.flat[:, c], return_inverse=True)[1].ravel()


def frequency(c: int, shown: Shown) -> Array:
    """Number of records with the same cell."""
    which = code(c, shown)
    return np.bincount(which)[which].astype(np.float64)


def group_mean(other: int, c: int, shown: Shown) -> Array:
    """Mean cell of other records with an equal cell c, or of all."""
    y, which = shown.flat[:, other], code(c, shown)
    counts = np.bincount(which)[which] - 1
    return np.where(
        counts > 0, (np.bincount(which, y)[which] - y) / np.maximum(counts, 1), y.mean()
    )


SHORT = 128
"""Rows of short stretches, for noise of changing frequency."""


@register
class Place(Feature):
    """Normal scores of place and key, and periodic parts of cells."""

    name = "place"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        yield "place", lambda s: scores(np.arange(len(s.cells)))
        if shown.keys is not None:
            yield "key", lambda s: scores(np.arange(len(s.cells)) if s.keys is None else s.keys)
        for c in range(min(shown.series.shape[1], MOST_PAIRED)):
            for which, part in (("", periodic), (" in short stretches", periodic_in_stretches)):
                yield f"periodic part of series {c}{which}", partial(part, c)
                yield (
                    f"series {c} less its periodic part{which}",
                    partial(lambda part, c, s: s.series[:, c] - part(c, s), part, c),
                )


def scores(order: Indices) -> Array:
    """Normal scores of an order, shape (n,)."""
    places = order.argsort(kind="stable").argsort(kind="stable")
    return scipy.special.ndtri((places + 0.5) / len(order))


def periodic(c: int, shown: Shown) -> Array:
    """Part of a column at frequencies that exceed its periodogram."""
    y = shown.series[:, c] - shown.series[:, c].mean()
    return standing_out(y[None], len(y))[0]


def periodic_in_stretches(c: int, shown: Shown) -> Array:
    """Periodic part of overlapping stretches, weighted by (1 − cos)/2."""
    y, half = shown.series[:, c] - shown.series[:, c].mean(), SHORT // 2
    padded = np.pad(y, (half, half - len(y) % half + half))
    frames = np.stack(
        [padded[start : start + SHORT] for start in range(0, len(padded) - half, half)]
    )
    short = standing_out(frames * np.sin(np.pi * np.arange(SHORT) / SHORT) ** 2, len(y))
    return (short[:-1, half:] + short[1:, :half]).ravel()[: len(y)]


def standing_out(frames: Array, n: int) -> Array:
    """Part of each stretch, (w, rows), too strong for white noise of n rows."""
    F = np.fft.rfft(frames, axis=1)
    power = np.abs(F) ** 2
    usual = np.maximum(np.median(power, axis=1, keepdims=True), np.median(power))
    F[power <= usual / np.log(2.0) * np.log(n / BY_CHANCE)] = 0.0
    return np.fft.irfft(F, frames.shape[1], axis=1)


MOST_MEANS = 128
"""Most pairs of a group and a column."""


@register
class ShownColumns(Feature):
    """Unaudited columns, adjacent rows, products, ratios, and means by value."""

    name = "shown-columns"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        numbers = [k for k, (_, v) in enumerate(shown.beside) if v.dtype.kind == "f"]
        for k, (name, values) in enumerate(shown.beside):
            if k in numbers or (values.dtype.kind in "iu" and many_alike(values)):
                yield f"column {name!r}", partial(lambda k, s: s.beside[k][1], k)
        groups = shown.groups
        for name, codes in groups:
            most = max(1, MOST_MEANS // len(groups))
            for c in range(min(shown.flat.shape[1], most)):
                yield (
                    f"mean of cell {c} by {name}",
                    partial(lambda g, c, s: mean(g, s.flat[:, c]), codes, c),
                )
            for k in numbers[:most]:
                yield (
                    f"mean of column {k} in other records by {name}",
                    partial(lambda g, k, s: mean_of_others(g, s.beside[k][1]), codes, k),
                )
        for a, b in permutations(numbers[:FEW], 2):
            if a < b:
                yield (
                    f"product of columns {a} and {b}",
                    partial(lambda a, b, s: s.beside[a][1] * s.beside[b][1], a, b),
                )
            yield f"ratio of columns {a} and {b}", partial(ratio, a, b)
        for k in numbers:
            for step in (-1, 1):
                yield (
                    f"column {k}, {-step:+d} rows",
                    partial(lambda k, step, s: np.roll(s.beside[k][1], step), k, step),
                )


def ratio(a: int, b: int, shown: Shown) -> Array:
    """Ratio of two shown numbers; 0 where the second is 0."""
    y, z = (shown.beside[k][1].astype(np.float64) for k in (a, b))
    return np.divide(y, z, out=np.zeros_like(y), where=z != 0)


DAMPED = 0.1
"""Square root of the ridge penalty on the effect of a character."""


@register
class Characters(Feature):
    """Least squares on the characters at each place of a shown text."""

    name, learns = "characters", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        there, left = known.residual
        x = known.x[there, known.attribute]
        for name, text in shown.beside:
            if text.dtype.kind == "U":
                places = characters(text)
                ends = np.concatenate([[0], np.cumsum(places.max(axis=0) + 1)])
                n, p = places.shape
                row, column = np.repeat(np.arange(n), p), (places + ends[:-1]).ravel()
                A = scipy.sparse.csr_array((np.ones(n * p), (row, column)), (n, ends[-1]))
                for which, y in (("value", x - x.mean()), ("residual", left)):
                    guess = A @ scipy.sparse.linalg.lsqr(A[there], y, DAMPED)[0]
                    yield f"characters of {name!r}, {which}", partial(lambda v, s: v, guess)
