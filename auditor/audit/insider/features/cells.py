"""Feature families that read the cells of one record."""

from functools import cache, partial
from itertools import combinations, permutations

import numpy as np

from auditor.audit.insider.feature import FEW, MOST_PAIRED, Columns, Feature, Known, Shown, each
from auditor.audit.measures.released_as_is import HEAPED, most_shown
from auditor.base import scipy
from auditor.base.types import Array, Indices
from auditor.data.columns.scan import Grid
from auditor.registry import register


@register
class Cells(Feature):
    """Each cell, the value that most copies show, and its number of copies."""

    name = "cells"

    def columns(self, shown: Shown, known: Known) -> Columns:
        yield from each("cell", lambda c, s: s.flat[:, c], range(min(shown.flat.shape[1], 64)))
        several = shown.cells.shape[1] > 1
        attributes = range(several * min(shown.cells.shape[2], MOST_PAIRED))
        yield from each("agreed value", agreed, range(3), attributes)


def agreed(which: int, j: int, shown: Shown) -> Array:
    """Agreed value, its number of copies, and the value less its mean, 0 if no copies agree."""
    value, number = most_shown(shown.filled[:, :, j])
    where = np.where(number > 1, value - value.mean(), 0.0)
    return np.asarray((value, number, where)[which], dtype=np.float64)


@register
class Combinations(Feature):
    """Differences, lengths and products of differences, ratios and products."""

    name = "combinations"

    def columns(self, shown: Shown, known: Known) -> Columns:
        few = range(min(shown.flat.shape[1], MOST_PAIRED))
        differences = range(min(shown.differences.shape[1], MOST_PAIRED))
        series = range(shown.series.shape[1])
        positive = [c for c in few if (shown.flat[:, c] > 0).all()]
        yield from each("series", lambda c, s: s.series[:, c], series)
        yield from each("size of series", size, series)
        yield from each(
            "logarithm", lambda c, s: np.log(np.maximum(s.flat[:, c], 1e-300)), positive
        )
        yield from each(
            "product of differences",
            lambda pair, s: s.differences[:, pair].prod(axis=1),
            combinations(differences, 2),
        )
        if differences:
            yield "length of all differences", length
        yield from each("ratio", lambda pair, s: ratio(*s.flat[:, pair].T), permutations(few, 2))
        yield from each(
            "product", lambda pair, s: s.flat[:, pair].prod(axis=1), combinations(few, 2)
        )


def size(c: int, shown: Shown) -> Array:
    """Distance from the median."""
    v = shown.series[:, c]
    return np.abs(v - np.median(v[:: max(1, len(v) // 1000)]))


def length(shown: Shown) -> Array:
    """Length of all differences, each in its own deviations."""
    d = shown.differences
    return ((d / np.maximum(d.std(axis=0), 1e-300)) ** 2).sum(axis=1)


def ratio(y: Array, z: Array) -> Array:
    """Ratio of two columns; 0 for a divisor of rounding."""
    return np.divide(y, z, out=np.zeros_like(y), where=np.abs(z) > 1e-12 * np.abs(z).max())


@register
class Blanks(Feature):
    """Cells that are blank, or common enough for a filling or a bound."""

    name = "blanks"

    def columns(self, shown: Shown, known: Known) -> Columns:
        if np.isnan(shown.cells).any():
            yield "pattern of blanks", pattern
        few = range(min(shown.flat.shape[1], 64))
        filled = [c for c in few if special(c, shown).any()]
        yield from each("filling", special, filled)
        yield from each("no filling", unfilled, filled)


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
    few = heaped[which.ravel()] & (heaped.sum() <= 2)
    return np.asarray(blank | few, dtype=np.intp)


def unfilled(c: int, shown: Shown) -> Array:
    """Cell less its mean, 0 where it is a filling."""
    y = shown.flat[:, c]
    return np.where(special(c, shown) > 0, 0.0, y - y.mean())


POWERS, MOST_SERIES = 10, 12
"""Most powers of ten as moduli, and columns tried."""


@register
class Residues(Feature):
    """Remainders by powers of ten, of sums of ranks, and exclusive or."""

    name = "residues"

    def columns(self, shown: Shown, known: Known) -> Columns:
        for c, v in enumerate(shown.series.T[:MOST_SERIES]):
            top = int(np.floor(np.log10(np.ptp(v)))) if np.ptp(v) > 0 else 0
            yield from each("remainder", remainder, [c], range(top, top - POWERS, -1))
        differences = range(min(shown.differences.shape[1], MOST_PAIRED))
        yield from each(
            "ranks of two differences added modulo 1",
            lambda pair, sign, s: s.ranks[:, pair] @ [1, sign] % 1.0,
            combinations(differences, 2),
            (1, -1),
        )
        copies, attributes = (range(min(many, FEW)) for many in shown.cells.shape[1:])
        yield from each("exclusive or", exclusive_or, combinations(copies, 2), attributes)


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


def exclusive_or(pair: tuple[int, int], j: int, shown: Shown) -> Array:
    """Exclusive or of two copies' cells; 0 unless whole numbers."""
    y = shown.filled[:, pair, j]
    whole = 0 <= y.min() and y.max() < 2.0**53 and (y == np.floor(y)).all()
    a, b = y.astype(np.int64).T if whole else np.zeros(y.T.shape, dtype=np.int64)
    return (a ^ b).astype(np.float64)


@register
class Steps(Feature):
    """Remainders by the largest common divisor of noise differences."""

    name, learns = "steps", True

    def columns(self, shown: Shown, known: Known) -> Columns:
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
    grid = Grid()
    for some in (values[:64], values):  # few show that most columns have no step
        grid.add(some)
    return 0.0 if np.isnan(grid.step) else grid.step


GRID, FINEST, NEAREST = 2**16, 2**22, 33
"""Points of the grid that a column's values are put on: by default, at most, and frequencies that
are tried around the strongest.
"""
SURE = 5.0
"""Amount by which the largest of m exponential powers exceeds ln m once in 150 times."""


@register
class Bands(Feature):
    """The wave's phase along a cell or shown number that predicts the residual best."""

    name, learns, of_codes = "bands", True, True

    def columns(self, shown: Shown, known: Known) -> Columns:
        there, left = known.residual
        for c in range(min(shown.series.shape[1], 2 * MOST_PAIRED)):
            if f := wave(shown.series[there, c], left):
                yield f"band of series {c}", partial(lambda c, f, s: s.series[:, c] * f % 1.0, c, f)
        for k in [k for k, (_, v) in enumerate(shown.beside) if v.dtype.kind == "f"][:MOST_PAIRED]:
            if f := wave(shown.beside[k][1][there], left):
                yield f"band of column {k}", partial(lambda k, f, s: s.beside[k][1] * f % 1.0, k, f)


def wave(v: Array, y: Array) -> float:
    """Frequency along v at which centred y is strongest, 0 if none exceeds chance.

    Examples
    --------
    >>> days = np.arange(300.0)
    >>> round(7 * wave(days, days % 7 - 3.0), 3), wave(days, days % 2 * 0.0)
    (1.0, 0.0)
    """
    v, scale = v - v.min(), float((y**2).sum())
    if not (scale and v.any()):
        return 0.0
    step = common_step(v)
    if step * FINEST <= v.max():
        step = float(v.max()) / (GRID - 1)
    places = (v / step + 1e-6).astype(np.intp)
    size = 1 << int(places.max()).bit_length()
    power = np.abs(scipy.fft.rfft(np.bincount(places, y, size).astype(np.float32))) ** 2 / scale
    power[:8] = 0.0
    strongest = int(power.argmax())
    if power[strongest] - np.log(size / 2) <= SURE:
        return 0.0
    near = (strongest + np.linspace(-0.5, 0.5, NEAREST)) / (size * step)
    return float(max(near, key=lambda f: abs(np.exp(2j * np.pi * f * v) @ y)))


@register
class Signs(Feature):
    """The product of signs, sizes and parities that predicts best."""

    name, learns = "signs", True

    def columns(self, shown: Shown, known: Known) -> Columns:
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
    length = sums.shape[1]
    short = 1 << (length.bit_length() // 2)
    H, rest = (scipy.linalg.hadamard(n).astype(np.float64) for n in (short, length // short))
    return (rest @ sums.reshape(len(sums), -1, short) @ H).reshape(len(sums), -1)


MOST_RESIDUES, SURELY = 128, 6.0
"""Largest modulus, and least normal deviate of a relation."""


@register
class Relations(Feature):
    """``u + a v`` or ``u vᵃ`` of whole columns, modulo u's range."""

    name, learns, of_codes = "relations", True, True

    def columns(self, shown: Shown, known: Known) -> Columns:
        there, left = known.residual
        whole = [c for c, v in enumerate(shown.leading.T) if not (v % 1.0).any()][:MOST_PAIRED]
        for pair in permutations(whole if left.any() else (), 2):
            low, high = (edge(shown.leading[:, pair[0]]) for edge in (np.min, np.max))
            for m in sorted({high + 1 - low, high + 1} & {*range(3, MOST_RESIDUES)}):
                for of in residues(int(m)):
                    u, v = whole_pair(pair, of, shown)[:, there]
                    if a := multiple(u, v, int(of.max()) + 1, left):
                        yield f"{a} of {pair} by {m:g} {of[-1]}", partial(related, pair, of, a)


@cache
def residues(m: int) -> list[Indices]:
    """Residues modulo m and, for a prime, discrete logarithms, with 0 for 0.

    Examples
    --------
    >>> [of.tolist() for m in (4, 5) for of in residues(m)]
    [[0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 0, 1, 3, 2]]
    """
    found = [np.arange(m)]
    for g in range(2, m):
        powers = [pow(g, k, m) for k in range(m - 1)]
        if len({0, *powers}) == m:
            return [*found, np.array([0, *np.argsort(powers)])]
    return found


def whole_pair(pair: tuple[int, int], of: Indices, shown: Shown) -> Indices:
    """Residues or logarithms of leading columns, (2, n)."""
    return of[(shown.leading[:, pair].T % len(of)).astype(np.intp)]


def multiple(u: Indices, v: Indices, m: int, left: Array) -> int:
    """Number a whose ``u + a v`` surely predicts best, or 0."""
    sums = np.bincount(u * m + v, left, m * m).reshape(m, m)
    power = np.abs(scipy.fft.fft2(sums)) ** 2 / (left**2).sum()
    t = np.arange(1, m)[:, None]
    along = power[t, t * np.arange(1, m) % m].sum(axis=0)
    return (along.max() > m + SURELY * np.sqrt(2.0 * m)) * (1 + int(along.argmax()))


def related(pair: tuple[int, int], of: Indices, a: int, shown: Shown) -> Indices:
    """``u + a v`` of residues."""
    return whole_pair(pair, of, shown).T @ [1, a] % (of.max() + 1)
