"""Feature families that read the cells of one record."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from auditor.audit.insider.feature import FEW, MOST_PAIRED, Columns, Feature, Known, Shown
from auditor.audit.measures.released_as_is import HEAPED, most_shown
from auditor.base import scipy
from auditor.base.types import Array, Indices
from auditor.registry import register


@register
class Cells(Feature):
    """Each cell, the value that most copies show, and its number of copies."""

    name = "cells"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        for c in range(min(shown.flat.shape[1], 64)):
            yield f"cell {c}", partial(lambda c, s: s.flat[:, c], c)
        for j in range(min(shown.cells.shape[2], MOST_PAIRED) if shown.cells.shape[1] > 1 else 0):
            yield (
                f"value of attribute {j} that most copies show",
                partial(lambda j, s: most_shown(s.filled[:, :, j])[0], j),
            )
            yield (
                f"copies that agree on attribute {j}",
                partial(lambda j, s: most_shown(s.filled[:, :, j])[1].astype(np.float64), j),
            )
            yield f"value of attribute {j} where copies agree", partial(agreed_where_two_agree, j)


def agreed_where_two_agree(j: int, shown: Shown) -> Array:
    """Agreed value less its mean; 0 if no copies agree."""
    value, number = most_shown(shown.filled[:, :, j])
    return np.where(number > 1, value - value.mean(), 0.0)


@register
class Combinations(Feature):
    """Differences, lengths and products of differences, ratios and products."""

    name = "combinations"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        series = shown.series.shape[1]
        for c in range(series):
            yield f"series {c}", partial(lambda c, s: s.series[:, c], c)
            yield f"size of series {c}", partial(size, c)
        for c in range(min(shown.flat.shape[1], MOST_PAIRED)):
            if (shown.flat[:, c] > 0).all():
                yield (
                    f"logarithm of cell {c}",
                    partial(lambda c, s: np.log(np.maximum(s.flat[:, c], 1e-300)), c),
                )
        differences = min(shown.differences.shape[1], MOST_PAIRED)
        for a, b in combinations(range(differences), 2):
            yield (
                f"product of differences {a} and {b}",
                partial(lambda a, b, s: s.differences[:, a] * s.differences[:, b], a, b),
            )
        if differences:
            yield "length of all differences", length
        for a, b in combinations(range(min(shown.flat.shape[1], MOST_PAIRED)), 2):
            yield f"ratio of cells {a} and {b}", partial(ratio, a, b)
            yield f"ratio of cells {b} and {a}", partial(ratio, b, a)
            yield (
                f"product of cells {a} and {b}",
                partial(lambda a, b, s: s.flat[:, a] * s.flat[:, b], a, b),
            )


def size(c: int, shown: Shown) -> Array:
    """Distance from the median."""
    v = shown.series[:, c]
    return np.abs(v - np.median(v[:: max(1, len(v) // 1000)]))


def length(shown: Shown) -> Array:
    """Length of all differences, each in its own deviations."""
    return ((shown.differences / np.maximum(shown.differences.std(axis=0), 1e-300)) ** 2).sum(
        axis=1
    )


def ratio(a: int, b: int, shown: Shown) -> Array:
    """Ratio of two cells; 0 for a divisor of rounding."""
    y, z = shown.flat[:, a], shown.flat[:, b]
    return np.divide(y, z, out=np.zeros_like(y), where=np.abs(z) > 1e-12 * np.abs(z).max())


@register
class Blanks(Feature):
    """Cells that are blank, or common enough for a filling or a bound."""

    name = "blanks"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        if np.isnan(shown.cells).any():
            yield "pattern of blanks", pattern
        for c in range(min(shown.flat.shape[1], 64)):
            if special(c, shown).any():
                yield f"cell {c} is a filling", partial(special, c)
                yield f"cell {c} where it is no filling", partial(unfilled, c)


def pattern(shown: Shown) -> Indices:
    """A record's blank cells as a number."""
    blank = np.isnan(shown.cells.reshape(len(shown.cells), -1))
    return np.unique(blank, axis=0, return_inverse=True)[1].ravel()


def special(c: int, shown: Shown) -> Indices:
    """Indicators of blank cells, or of at most two heaped values."""
    y = shown.flat[:, c]
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    heaped = counts >= max(2.0, HEAPED * len(y))
    blank = np.isnan(shown.cells.reshape(len(y), -1)[:, c])
    return np.asarray(
        blank | (heaped[which.ravel()] if 1 <= heaped.sum() <= 2 else False), dtype=np.intp
    )


def unfilled(c: int, shown: Shown) -> Array:
    """Cell less its mean, 0 where it is a filling."""
    y = shown.flat[:, c]
    return np.where(special(c, shown) > 0, 0.0, y - y.mean())


POWERS, MOST_SERIES = 10, 12
"""Most powers of ten as moduli, and columns that they are tried on."""


@register
class Residues(Feature):
    """Remainders by powers of ten, of sums of ranks, and exclusive or."""

    name = "residues"

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        for c, v in enumerate(shown.series.T[:MOST_SERIES]):
            top = int(np.floor(np.log10(np.ptp(v)))) if np.ptp(v) > 0 else 0
            for power in range(top, top - POWERS, -1):
                yield f"remainder of series {c} by 10^{power}", partial(remainder, c, power)
        for a, b in combinations(range(min(shown.differences.shape[1], MOST_PAIRED)), 2):
            for sign in (1, -1):
                yield (
                    f"ranks of differences {a} and {b} added modulo 1 ({sign:+d})",
                    partial(
                        lambda a, b, sign, s: (s.ranks[:, a] + sign * s.ranks[:, b]) % 1.0,
                        a,
                        b,
                        sign,
                    ),
                )
        for a, b in combinations(range(min(shown.cells.shape[1], FEW)), 2):
            for j in range(min(shown.cells.shape[2], FEW)):
                yield (
                    f"exclusive or of copies {a} and {b} in attribute {j}",
                    partial(exclusive_or, a, b, j),
                )


def remainder(c: int, power: int, shown: Shown) -> Array:
    """Remainder of a column by a power of ten; 0 where a double cannot hold it."""
    v = shown.series[:, c]
    # Divide first, because powers below 1 are no sums of powers of two.
    parts = np.mod(v, 10.0**power) if power >= 0 else v * 10.0**-power
    if power >= 0:
        return parts
    rounded = 4.0 * np.finfo(np.float64).eps * np.abs(parts).max()
    # Moved up by more than rounding, equal remainders share one step of 1/1024.
    return (
        np.floor(np.mod(parts + rounded, 1.0) * 1024.0)
        if rounded < 1.0 / 4096.0
        else np.zeros_like(v)
    )


def exclusive_or(a: int, b: int, j: int, shown: Shown) -> Array:
    """Exclusive or of two copies' cells; 0 unless whole numbers."""
    y, z = shown.filled[:, a, j], shown.filled[:, b, j]
    whole = all(
        0 <= part.min() and part.max() < 2.0**53 and (part == np.floor(part)).all()
        for part in (y, z)
    )
    return (
        (y.astype(np.int64) ^ z.astype(np.int64)).astype(np.float64) if whole else np.zeros_like(y)
    )


@register
class Steps(Feature):
    """Remainders by the largest common divisor of noise differences."""

    name, learns = "steps", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        x = known.x[:, known.attribute]
        there = np.flatnonzero(np.isfinite(x))
        for c in range(shown.series.shape[1] if len(there) else 0):
            for sign in (1, -1):
                apart = x[there] - sign * shown.series[there, c]
                if step := common_step(apart - apart[0]):
                    shift = float((apart[0] - known.least) % step)
                    yield (
                        f"remainder of series {c} by {sign * step:g}",
                        partial(shifted_remainder, c, sign, shift, step),
                    )


def shifted_remainder(c: int, sign: int, shift: float, step: float, shown: Shown) -> Array:
    """Remainder of a shifted column."""
    return np.mod(sign * shown.series[:, c] + shift, step)


def common_step(values: Array) -> float:
    """Largest common divisor of values, with up to six decimals, or 0.

    Examples
    --------
    >>> common_step(np.array([0.0, 0.5, -2.0])), common_step(np.array([0.0, 300.0, 800.0])), common_step(np.array([0.0, np.pi]))
    (0.5, 100.0, 0.0)
    """
    for unit in 10.0 ** np.arange(7):
        scaled = values * unit
        whole = np.round(scaled)
        size = np.abs(whole)
        if (
            size.max(initial=0.0) < 2.0**53
            and (np.abs(scaled - whole) <= 1e-6 + 1e-12 * size).all()
        ):
            return float(np.gcd.reduce(whole.astype(np.int64)) / unit)
    return 0.0


GRID = 2**16
"""Points of the grid that a column's values are put on."""
SURE = 5.0
"""Amount by which the largest of m exponential powers exceeds ln m once in 150 times."""


@register
class Bands(Feature):
    """The wave's phase along a column that predicts the residual best."""

    name, learns = "bands", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        there, left = known.residual
        scale = float((left**2).sum())
        for c in range(min(shown.series.shape[1], 2 * MOST_PAIRED) if scale > 0 else 0):
            d = shown.series[there, c]
            low, high = d.min(), d.max()
            if high > low:
                places = ((d - low) * ((GRID - 1) / (high - low))).astype(np.intp)
                power = (
                    np.abs(scipy.fft.rfft(np.bincount(places, left, GRID).astype(np.float32))) ** 2
                    / scale
                )
                power[:8] = 0.0
                if (f := int(power.argmax())) and power[f] - np.log(GRID / 2) > SURE:
                    yield (
                        f"band of series {c}",
                        partial(lambda c, f, s: (s.series[:, c] * f) % 1.0, c, f / (high - low)),
                    )


@register
class Signs(Feature):
    """The product of signs, sizes and parities that predicts best."""

    name, learns = "signs", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the column."""
        there, left = known.residual
        above = shown.bits
        if not left.any():
            return
        pattern = above[there] @ (1 << np.arange(above.shape[1]))
        sums = walsh(np.bincount(pattern, left, 1 << above.shape[1]).astype(np.float64)[None])[0]
        power = sums**2 / (2.0 * (left**2).sum())
        power[0] = 0.0
        product = int(power.argmax())
        if power[product] - above.shape[1] * np.log(2.0) > SURE:
            yield "product of signs", partial(parity, product)


def parity(product: int, shown: Shown) -> Indices:
    """Whether an even number of the bits in a product are set."""
    above = shown.bits
    return (above & (((product >> np.arange(above.shape[1])) & 1) > 0)).sum(axis=1) % 2


def walsh(sums: Array) -> Array:
    """Walsh–Hadamard transform of each row: its sums with every product of signs."""
    H, length = (
        scipy.linalg.hadamard(1 << (sums.shape[1].bit_length() // 2)).astype(np.float64),
        sums.shape[1],
    )
    rest = scipy.linalg.hadamard(length // len(H)).astype(np.float64)
    return (rest @ sums.reshape(len(sums), len(rest), len(H)) @ H).reshape(len(sums), -1)
