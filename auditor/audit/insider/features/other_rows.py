"""Feature families that read other rows, shown columns and places."""

import math
from functools import partial
from itertools import combinations, permutations, product

import numpy as np

from auditor.audit.insider.feature import (
    FEW,
    MOST_NAMES,
    MOST_PAIRED,
    NEAR,
    REACH,
    Columns,
    Feature,
    Known,
    Shown,
    each,
    mean,
    mean_of_others,
    of_nearest,
    rule,
)
from auditor.audit.insider.features.cells import ratio
from auditor.base import scipy
from auditor.base.types import Array, Indices
from auditor.data.columns.kinds import characters, many_alike
from auditor.numerics.statistics import BY_CHANCE, quantile, standard_ranks
from auditor.registry import register

BESIDE = 1, 2, 4, 10
"""Rows on either side that are averaged."""


@register
class Neighbours(Feature):
    """Cells and differences of adjacent rows, and the nearer mean of near rows."""

    name = "neighbours"

    def columns(self, shown: Shown, known: Known) -> Columns:
        series = range(min(shown.series.shape[1], 2 * MOST_PAIRED))
        near = series, (-1, 1)
        yield from each("near row", lambda c, k, s: np.roll(s.series[:, c], k), *near)
        yield from each("size", lambda c, k, s: np.abs(np.roll(s.series[:, c], k)), *near)
        yield from each("mean of near rows", nearer_mean, series, BESIDE)
        yield from each(
            "rest", lambda c, k, s: s.series[:, c] - nearer_mean(c, k, s), series, BESIDE
        )
        orders = range(len(shown.orders))
        yield from each("next in order", next_in_order, series, orders[: 2 * FEW + 1], (-1, 1))
        for other, c in product(orders, range(shown.leading.shape[1])):
            if np.diff(y := shown.leading[shown.orders[other], c]).std() < y.std():
                yield from each("step", step, [c], [other], (0, 1))


def step(c: int, other: int, after: int, shown: Shown) -> Array:
    """Step of a leading column from the row before, or to the row after, in some order.

    Such steps of a running total are its parts. Read in orders with steps smaller than deviations.
    """
    order = shown.orders[other]
    y, found = shown.leading[order, c], np.empty(len(order))
    found[order] = np.diff(y, prepend=y[0], append=y[-1])[after : after + len(y)]
    return found


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


def next_in_order(c: int, other: int, before: int, shown: Shown) -> Array:
    """Mean of a column over the next record and ``before`` in the order of a cell."""
    order = shown.orders[other]
    y, found = shown.series[order, c], np.empty(len(order))
    found[order] = (np.roll(y, before) + np.roll(y, -1)) / 2.0
    return found


@register
class Matching(Feature):
    """Codes and counts of equal cells, and means of records with an equal cell or shown code."""

    name = "matching"

    def columns(self, shown: Shown, known: Known) -> Columns:
        few = range(min(shown.flat.shape[1], MOST_PAIRED))
        codes = [c for c in range(min(shown.flat.shape[1], 2 * MOST_PAIRED)) if repeats(shown, c)]
        yield from each("value", code, codes)
        yield from each("records with the value", frequency, codes)
        for c in codes:
            others = [other for other in few if other != c]
            yield from each("group's mean", group_mean, [c], others)
            yield from each("rest", lambda c, o, s: s.flat[:, o] - group_mean(c, o, s), [c], others)


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


def group_mean(c: int, other: int, shown: Shown) -> Array:
    """Mean of a cell over other records with an equal cell c, or over all."""
    return mean_of_others(code(c, shown), shown.flat[:, other])


PERIODS, SHORT = 33, 128
"""Least row number without a remainder of its own, and rows of short stretches, for noise of changing frequency."""


@register
class Gates(Feature):
    """Columns without cells: place, row numbers' remainders, shown columns and their rows."""

    name, divides, of_codes = "gates", True, True

    def columns(self, shown: Shown, known: Known) -> Columns:
        yield "place", lambda s: scores(np.arange(len(s.cells)))
        yield from each("row", lambda k, s: np.arange(len(s.cells)) % k, range(2, PERIODS))
        values = [v for _, v in shown.beside]
        numbers = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
        codes = [k for k, v in enumerate(values) if v.dtype.kind in "iu" and many_alike(v)]
        whole = [k for k in numbers if (values[k] % 1.0 == 0.0).all()]
        yield from each("column", lambda k, s: s.beside[k][1], [*numbers, *codes])
        yield from each("last digit", lambda k, s: (s.beside[k][1] % 10.0).astype(np.intp), whole)
        near = [*numbers, *codes], (-1, 1)
        yield from each("near row", lambda k, r, s: np.roll(s.beside[k][1], r), *near)
        yield from each("codes", lambda g, s: g, [group for _, group in shown.groups])
        yield from each("link", lambda rows, s: (rows < 0) * 1, shown.links)


@register
class Periodic(Feature):
    """Periodic parts of cells, in the whole file and in short stretches."""

    name = "periodic"

    def columns(self, shown: Shown, known: Known) -> Columns:
        few = range(min(shown.series.shape[1], MOST_PAIRED)), (False, True)
        yield from each("periodic part", periodic, *few)
        yield from each("rest", lambda c, short, s: s.series[:, c] - periodic(c, short, s), *few)


def scores(order: Indices) -> Array:
    """Normal scores of an order, shape (n,)."""
    places = order.argsort(kind="stable").argsort(kind="stable")
    return scipy.special.ndtri((places + 0.5) / len(order))


def periodic(c: int, short: bool, shown: Shown) -> Array:
    """Part of a column at frequencies that exceed its periodogram.

    Or of overlapping stretches, weighted by (1 − cos)/2.
    """
    y, half = shown.series[:, c] - shown.series[:, c].mean(), SHORT // 2
    if not short:
        return standing_out(y[None], len(y))[0]
    padded = np.pad(y, (half, half - len(y) % half + half))
    frames = np.lib.stride_tricks.sliding_window_view(padded, SHORT)[::half]
    part = standing_out(frames * np.sin(np.pi * np.arange(SHORT) / SHORT) ** 2, len(y))
    return (part[:-1, half:] + part[1:, :half]).ravel()[: len(y)]


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
    """Products and ratios of unaudited columns, and means by value."""

    name, of_codes = "shown-columns", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        numbers = [k for k, (_, v) in enumerate(shown.beside) if v.dtype.kind == "f"]
        most = max(1, MOST_MEANS // max(1, len(shown.groups)))
        groups, few = [group for _, group in shown.groups], range(shown.flat.shape[1])
        yield from each("mean", lambda g, c, s: mean(g, s.flat[:, c]), groups, few[:most])
        yield from each(
            "mean in other records",
            lambda g, k, s: mean_of_others(g, s.beside[k][1]),
            groups,
            [k for k, (_, v) in enumerate(shown.beside) if v.dtype.kind != "U"][:most],
        )
        yield from each(
            "product",
            lambda pair, s: s.beside[pair[0]][1] * s.beside[pair[1]][1],
            combinations(numbers[:FEW], 2),
        )
        yield from each("ratio", ratio_beside, permutations(numbers[:FEW], 2))


def ratio_beside(pair: tuple[int, int], shown: Shown) -> Array:
    """Ratio of two shown numbers."""
    y, z = (shown.beside[k][1].astype(np.float64) for k in pair)
    return ratio(y, z)


@register
class NearPlaces(Feature):
    """Mean cells of the nearest records by shown numbers, such as coordinates."""

    name, of_codes = "near-places", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        columns, sets = range(min(shown.series.shape[1], MOST_PAIRED)), range(len(shown.near))
        yield from each("mean of nearest", mean_of_nearest, columns, sets, (NEAR // 4, NEAR))


def mean_of_nearest(c: int, some: int, rows: int, shown: Shown) -> Array:
    """Mean of a column over the nearest rows by some shown numbers, with the row itself."""
    return shown.series[shown.near[some][:, :rows], c].mean(axis=1)


@register
class NearRecords(Feature):
    """Mean originals of the nearest records by shown numbers."""

    name, learns, of_codes = "near-records", True, True

    def columns(self, shown: Shown, known: Known) -> Columns:
        there, x = np.isfinite(known.left), known.x[:, known.attribute]
        for near, (which, y) in product(shown.near, (("value", x), ("residual", known.left))):
            guess = of_nearest(near, np.where(there, y, 0.0), there, shown.units)
            yield f"{which} of nearest", partial(lambda v, s: v, guess)


@register
class LinkedRows(Feature):
    """Leading columns of the rows that shown columns refer to."""

    name, of_codes = "linked-rows", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        yield from each("linked", linked, range(shown.leading.shape[1]), shown.links)


def linked(c: int, rows: Indices, shown: Shown) -> Array:
    """Leading column in linked rows; its mean without a link."""
    y = shown.leading[:, c]
    return np.where(rows < 0, y.mean(), y[rows])


PENALTY, ALPHABET = 0.01, 64
"""Ridge penalty on the square of a character's effect; most codes of a place, else remainders."""


@register
class Characters(Feature):
    """Least squares on the characters at each place of a shown text."""

    name, learns, of_codes = "characters", True, True

    def columns(self, shown: Shown, known: Known) -> Columns:
        there, left = known.residual
        x = known.x[there, known.attribute]
        y = np.column_stack([x - x.mean(), left])
        for name, text in shown.beside:
            if text.dtype.kind == "U":
                places = characters(text) % ALPHABET
                ends = np.concatenate([[0], np.cumsum(places.max(axis=0) + 1)])
                n, p = places.shape
                row, column = np.repeat(np.arange(n), p), (places + ends[:-1]).ravel()
                A = scipy.sparse.csr_array((np.ones(n * p), (row, column)), (n, ends[-1]))
                G = (A[there].T @ A[there]).toarray() + PENALTY * np.eye(ends[-1])
                for which, guess in zip(
                    ("value", "residual"), (A @ np.linalg.solve(G, A[there].T @ y)).T, strict=True
                ):
                    yield f"characters of {name!r}, {which}", partial(lambda v, s: v, guess)


# -- Moved rows: cells of the row where a record went. A record is at a common distance, forwards or
# from the end (``distances``), or as far from a near record's place as other records k rows apart
# (``rule``).

CHOSEN_BY = 33
"""Rows by which one of some distances is chosen."""
MOST_DISTANCES = 8
"""Five rows with one noise value have four distances either way."""


@register
class MovedRows(Feature):
    """Cells at common distances, and where a record's neighbours say that it went."""

    name, learns = "moved-rows", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        n = len(shown.flat)
        there = np.isfinite(known.left)
        x = np.zeros((n, 1))
        x[there] = standard_ranks(known.x[there][:, [known.attribute]])
        cells, numbers = shown.flat.shape[1], range(shown.numbers.shape[1])
        for c in [*numbers[: min(cells, MOST_PAIRED)], *numbers[cells : cells + MOST_PAIRED]]:
            y = shown.number_ranks[:, [c]]
            if places := [step * (np.arange(n) + k) % n for step, k in distances(x, y)]:
                alike = [(x * y[each])[:, 0] for each in places]
                agree = np.abs(scipy.ndimage.uniform_filter1d(alike, CHOSEN_BY, axis=1))
                place = np.take_along_axis(np.array(places), agree.argmax(axis=0)[None], axis=0)[0]
                yield f"cell {c} where near rows went", partial(at_place, c, place)
        width = shown.cells.shape[2]
        for copy, q in known.moved:
            place = followed(q)
            for c in range(copy * width, copy * width + min(width, MOST_PAIRED)):
                yield f"cell {c} where the record went", partial(at_place, c, place)


def followed(q: Array) -> Indices:
    """Each record's place by the commonest rule, from the nearest known place."""
    (_, k, d), n = rule(q), len(q)
    place, t = np.arange(n, dtype=np.float64), np.arange(n)
    for m in sorted(range(-REACH, REACH + 1), key=abs, reverse=True):
        near = np.where((0 <= t + m * k) & (t + m * k < n), q[(t + m * k) % n] - m * d, np.nan)
        there = (0 <= near) & (near < n)
        place[there] = near[there]
    return place.astype(np.intp)


def distances(x: Array, y: Array) -> list[tuple[int, int]]:
    """Distances at which rows of y follow rows of x beyond chance.

    Parameters
    ----------
    x, y : ndarray of shape (n, q)
        Centred columns.

    Returns
    -------
    list of (s, k)
        With the largest ``S = |Σ_t x_t · y_(s (t + k))|``, rows counted modulo n, s = 1 or −1, above
        the lower of Bernstein's bound, with the mean square v over all distances, and ``√v (z + κ z³/24)``
        (Cornish and Fisher), with a normal quantile z and a bound κ of S's excess kurtosis.
    """
    n = len(x)
    F, G = np.fft.rfft(x, axis=0).conj(), np.fft.rfft(y, axis=0)
    S = np.abs([np.fft.irfft((F * part).sum(axis=1), n) for part in (G, G.conj())])
    S[0, 0] = 0.0
    sizes, v = [np.linalg.norm(part, axis=1) for part in (x, y)], float(np.square(S).mean()) or 1.0
    looks, z = math.log(2 * n / BY_CHANCE), quantile(1.0 - BY_CHANCE / (4 * n))
    bernstein = math.sqrt(2.0 * v * looks) + sizes[0].max() * sizes[1].max() * looks / 1.5
    kappa = n * (sizes[0] ** 4).mean() / v * (sizes[1] ** 4).mean() / v
    least = min(bernstein, math.sqrt(v) * (z + kappa * z**3 / 24.0))
    turned, k = np.unravel_index(np.argsort(-S, axis=None)[:MOST_DISTANCES], S.shape)
    beyond = S[turned, k] > least
    return list(zip((1 - 2 * turned[beyond]).tolist(), k[beyond].tolist(), strict=True))


def at_place(c: int, place: Indices, shown: Shown) -> Array:
    """Cell or shown number of the rows at some places."""
    return shown.numbers[place, c]
