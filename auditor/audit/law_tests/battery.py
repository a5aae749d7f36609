"""Tests of scores that are independent and uniform under the law.

The Rosenblatt transform turns a release into scores ``u``, one row per record (rosenblatt1952).
Under the law they are independent, uniform on (0, 1), and independent of the originals.

| symbol | meaning | under the law |
| --- | --- | --- |
| ``u`` | scores, shape (n, d) | uniform on (0, 1), independent |
| ``g = Φ⁻¹(u)`` | normal scores: direction and size of the noise | N(0, 1) |
| ``w = Φ⁻¹(|2u − 1|)`` | normal scores of the size alone | N(0, 1) |
| ``c_l = √2 cos(π l u)`` | cosines | mean 0, variance 1, ``E exp(λ c_l) ≤ exp(λ²/2)`` |
| ``a`` | a function of the originals, or of other columns' scores | fixed, given the other columns |
| ``x`` | exponent: each p-value is at most ``e^(−x)`` | |

| test | departure | p-value |
| --- | --- | --- |
| ``distribution`` | a column is not uniform | ``2 exp(−2 n D²)`` (massart1990) |
| ``moments`` | mean, variance or drift of a column | ``Σ g / √n`` is N(0, 1), ``Σ g²`` is χ²(n), of k runs ``Σ (Σ g)²/n_k`` is χ²(k) |
| ``sizes near 0`` | too many small sizes in a column, or a row without noise | binomial; ``n · max(s)^k`` of k sizes |
| ``correlations`` | between columns, and with the originals | ``Σ a g / ‖a‖`` is N(0, 1) |
| ``functions`` | between functions of two or three columns, and of originals | ``P(|Σ a c| ≥ t ‖a‖) ≤ 2 exp(−t²/2)`` |
| ``other rows`` | with scores and originals at any distance, forwards and backwards | ``P(gᵀA g ≥ 2F√x + 2‖A‖x) ≤ e^(−x)`` (laurent2000) |
| ``periods`` | a period in mean or size | periodogram ordinates are exponential |
| ``repeats`` | sizes that come again | binomial (hoeffding1956) |

All p-values are exact or bounds for any originals.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base import scipy
from auditor.base.types import Array, Indices, Names, unprinted
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import column_ranks
from auditor.results.records import LawTest

MOST_COLUMNS, LAGGED_COLUMNS, FEW_COLUMNS = 24, 12, 6
"""Columns for correlations, for distances between rows, and for functions. More are added up in
groups."""
MOST_ORIGINALS = 4
"""Original columns that functions are computed of, and that order the rows."""
RUNS, COSINES, BLOCK = 16, 12, 2**12
TAILS = 0.05, 0.01
"""Shares of the lowest and of the highest originals."""
NEAR = 4
"""Rows within which a row is a neighbour."""
SMALL = 2.0 ** -np.arange(7, 29, 7)
"""Sizes below which sizes are counted."""
LEAST_CELL = 2.0**-50
SIZES = "", "the size of "
"""Names of direction and size."""
NO_SIZE = math.inf
"""``telling`` of a test for departures without one size: it does not limit the resolution of the
expectation."""


@unprinted
class Scores:
    """Uniform scores of a release.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Uniform on (0, 1) under the law.
    names : sequence of str
        The d columns in messages: "noise of copy 1 ('age')".
    grain : ndarray of shape (d,)
        Largest difference of two scores of one noise value; 1 where scores are randomised.
    groups : ndarray of shape (d,)
        Copy number by column.
    """

    values: Array
    names: Names
    grain: Array
    groups: Indices

    @cached_property
    def g(self) -> Array:
        """Normal scores, finite."""
        return normal(self.values)

    @property
    def size(self) -> Array:
        """Size of the noise, uniform on (0, 1)."""
        return np.abs(2.0 * self.values - 1.0)

    @cached_property
    def w(self) -> Array:
        """Normal scores of the size alone, cut off at 8 deviations."""
        return np.clip(normal(self.size), -8.0, 8.0)


class Finding(NamedTuple):
    """Largest exponent of some comparisons, before correction."""

    x: float
    observed: float
    expected: float
    where: str
    tests: int = 1


NOTHING = Finding(0.0, 0.0, 0.0, "nothing is compared:", 0)


def as_test(
    statistic: str, found: Sequence[Finding], rows: int, telling: float = NO_SIZE
) -> LawTest:
    """Test corrected for the number of comparisons (Bonferroni)."""
    worst, tests = max(found), max(1, sum(one.tests for one in found))
    p = min(1.0, tests * math.exp(-worst.x))
    return LawTest(statistic, p, tests, rows, *worst[1:4], telling)


def largest(x: Array, observed: Array, expected: float, where: str, *names: Names) -> Finding:
    """Comparison with the largest exponent.

    Parameters
    ----------
    x, observed : ndarray of any shape
        Exponents, and figures for the message.
    where : str
        With a place ``{}`` for a name along each axis of ``names``.
    """
    if x.size == 0:
        return NOTHING
    place = peak(x)
    labels = (of[i] for of, i in zip(names, place, strict=False))
    return Finding(float(x[place]), float(observed[place]), expected, where.format(*labels), x.size)


def peak(values: Array) -> tuple[int, ...]:
    """Place of the largest value."""
    return tuple(map(int, np.unravel_index(values.argmax(), values.shape)))


def spread(count: int, most: int) -> list[int]:
    """Evenly spread places, at most so many.

    Examples
    --------
    >>> spread(9, 3), spread(2, 3)
    ([0, 4, 8], [0, 1])
    """
    return np.rint(np.linspace(0, count - 1, min(count, most))).astype(int).tolist()


def normal(u: Array) -> Array:
    """Normal scores, finite."""
    return scipy.special.ndtri(np.clip(u, 1e-300, 1.0 - 2.0**-53))


def normal_exponent(z: Array) -> Array:
    """Exponent of N(0, 1) values, two-sided."""
    return -scipy.special.log_ndtr(-np.abs(z)) - math.log(2.0)


def chaos_exponent(S: Array, F_squared: Array | float) -> Array:
    """X of ``|S| = 2F√x + 2x``, two-sided."""
    root = (np.sqrt(F_squared + 2.0 * np.abs(S)) - np.sqrt(F_squared)) / 2.0
    return np.square(root) - math.log(2.0)


def log_p(p: Array | float) -> Array:
    """−ln p."""
    with np.errstate(divide="ignore"):
        return -np.log(p)


def battery(
    scores: Scores, originals: Array, names: Names, own: Scores | None = None
) -> list[LawTest]:
    """One test a statistic.

    Parameters
    ----------
    scores : Scores
        All columns are independent under the law.
    originals : ndarray of shape (n, N)
        Only the order within a column is used.
    names : sequence of str
        The N original columns.
    own : Scores, optional
        Scores in natural coordinates, which may be dependent, for moments and sizes near 0.

    Returns
    -------
    list of LawTest
        With p-values for all comparisons of a test; empty below three rows or without columns.
    """
    n, d = scores.values.shape
    if n < 3 or d == 0:
        return []
    every = scores
    if d > 1:
        length = scipy.special.chdtr(d, np.square(scores.g).sum(axis=1))
        every = Scores(
            np.column_stack([scores.values, length]),
            [*scores.names, "the length of a row's noise"],
            np.append(scores.grain, 1.0),
            np.append(scores.groups, -1),
        )
    ranks = np.clip(column_ranks(originals) - 0.5 / n, 0.5 / n, 1.0 - 0.5 / n)
    varied = np.flatnonzero(np.ptp(ranks, axis=0) > 0)
    ranks, names = ranks[:, varied], [repr(names[place]) for place in varied.tolist()]
    few = spread(len(names), MOST_ORIGINALS)
    some, some_names = ranks[:, few], [names[place] for place in few]
    lagged = added_up(scores, LAGGED_COLUMNS)
    ordered = orders(lagged, some, some_names)
    found = [
        distribution_test(every),
        moments_test([every] if own is None else [every, own]),
        small_sizes_test(scores, own),
        correlations_test(added_up(scores, MOST_COLUMNS), every, ranks, names),
        functions_test(added_up(scores, FEW_COLUMNS), some, some_names),
        other_rows_test(ordered, lagged.names, some, some_names),
        periods_test(ordered, lagged.names),
        repeats_test(scores),
    ]
    return [test for test in found if test is not None]


def added_up(scores: Scores, most: int) -> Scores:
    """At most ``most`` columns; more are added up in groups.

    A group's normal scores are added up with random signs. The sums are independent and N(0, 1).
    """
    d = scores.values.shape[1]
    if d <= most:
        return scores
    rng = stream(0, "signed groups of columns")
    group = rng.permutation(d) % most
    weights = (group[:, None] == np.arange(most)) * rng.choice([-1.0, 1.0], d)[:, None]
    weights /= np.linalg.norm(weights, axis=0)
    names = [f"a signed sum of {size} columns" for size in np.bincount(group).tolist()]
    return Scores(scipy.special.ndtr(scores.g @ weights), names, np.ones(most), np.arange(most))


def distribution_test(scores: Scores) -> LawTest:
    """Test that each column is uniform, by Kolmogorov's distance."""
    n = len(scores.values)
    # half the time of doubles; their rounding is counted with the grain
    ordered, step = np.sort(scores.values.T.astype(np.float32), axis=1), np.arange(n) / n
    D = np.maximum((ordered - step).max(axis=1), (step + 1.0 / n - ordered).max(axis=1))
    D = np.maximum(D - np.where(scores.grain < 1.0, scores.grain, 0.0) - 2.0**-24, 0.0)
    where = "the largest distance from the law's distribution function, of {}, is"
    found = largest(2.0 * n * D**2 - math.log(2.0), D, 0.0, where, scores.names)
    return as_test("distribution", [found], n, 1.0)


def moments_test(parts: Sequence[Scores]) -> LawTest:
    """Test the mean, variance and drift of each column's normal scores.

    The drift is tested by the means of runs of rows.
    """
    n, found, chdtr, chdtrc = len(parts[0].values), [], scipy.special.chdtr, scipy.special.chdtrc
    runs, in_units = min(RUNS, n), "in units of the law's, is"
    starts = np.arange(runs) * n // runs
    of_mean = "the mean of {}, in the law's deviations, is"
    of_runs = f"the variance of the means of {runs} runs of rows of {{}}, {in_units}"
    for scores in parts:
        mean, square = scores.g.mean(axis=0), np.square(scores.g).sum(axis=0)
        sums = np.add.reduceat(scores.g, starts, axis=0)
        drift = (sums**2 / np.diff(starts, append=n)[:, None]).sum(axis=0)
        of_square = log_p(2.0 * np.minimum(chdtr(n, square), chdtrc(n, square)))
        found += [
            largest(normal_exponent(mean * math.sqrt(n)), mean, 0.0, of_mean, scores.names),
            largest(of_square, square / n, 1.0, f"the variance of {{}}, {in_units}", scores.names),
            largest(log_p(chdtrc(runs, drift)), drift / runs, 1.0, of_runs, scores.names),
        ]
    return as_test("moments", found, n, 1.0)


def small_sizes_test(scores: Scores, own: Scores | None) -> LawTest:
    """Test for small sizes by column, and for rows with little noise.

    A size is below ``w`` with chance ``w``. The largest of a row's k sizes, to the power k, is
    uniform.
    """
    n, found, sizes = len(scores.values), list[Finding](), [f"{w:.1g}" for w in SMALL]
    for part in (scores,) if own is None else (scores, own):
        counts = np.stack([(part.size < w).sum(axis=0) for w in SMALL])
        chance = np.where(part.grain < 1.0, np.minimum(1.0, SMALL[:, None] + 4.0 * part.grain), 1.0)
        p = scipy.special.betainc(np.maximum(counts, 1), n - counts + 1.0, chance)
        x, where = log_p(np.where(counts > 0, p, 1.0)), "the share of sizes below {} in {} is"
        found.append(largest(x, counts / n, 0.0, where, sizes, part.names))
    for group in np.unique(scores.groups).tolist():
        columns = np.flatnonzero((scores.groups == group) & (scores.grain < 2.0**-10))
        if k := columns.size:
            smallest = float(scores.size[:, columns].max(axis=1).min())
            least = max(smallest, 8.0 * float(scores.grain[columns].max()))
            labels = " and ".join(scores.names[c] for c in columns.tolist()[:2])
            where = f"the least size in a row of {labels} is"
            exponent = -k * math.log(least) - math.log(n)
            found.append(Finding(exponent, least, float(n) ** (-1.0 / k), where))
    return as_test("sizes near 0", found, n)


def correlations_test(scores: Scores, every: Scores, ranks: Array, names: Names) -> LawTest:
    """Test correlations between columns, and with the originals.

    Originals are compared by ranks, distances from the median, both tails and the row number.
    """
    n, d = scores.values.shape
    ranks, names = np.column_stack([ranks, (np.arange(n) + 0.5) / n]), [*names, "the row number"]
    kinds = {"{}": normal(ranks), "the distance of {} from its median": np.abs(2.0 * ranks - 1.0)}
    for share in TAILS:
        for end, side in (("lowest", ranks), ("highest", 1.0 - ranks)):
            kinds[f"{{}} in its {end} {share:.0%}"] = side < share
    data = np.hstack(list(kinds.values()))
    data -= data.mean(axis=0)
    labels = [kind.format(name) for kind in kinds for name in names]
    sizes = [f"the size of {name}" for name in scores.names]
    own = [*scores.names, *sizes]
    both, column, found = np.hstack([scores.g, scores.w]), np.arange(2 * d) % d, list[Finding]()
    for given, g, left, right in (
        (both, both, own, own),
        (data, np.hstack([every.g, scores.w]), labels, [*every.names, *sizes]),
    ):
        z = given.T @ g / _length(given)[:, None]
        if given is both:  # each pair of columns once
            z[column[:, None] >= column] = 0.0
        where = "{1} is correlated with {0}: r ="
        found.append(largest(normal_exponent(z), z / _length(g), 0.0, where, left, right))
    return as_test("correlations", found, n, 1.0)


def functions_test(scores: Scores, ranks: Array, names: Names) -> LawTest | None:
    """Test correlations of functions of each column with other functions.

    Functions of a column are cosines. The others are cosines of originals and of other columns, and
    products of two cosines.
    """
    n, d = scores.values.shape
    labels = [*names, *scores.names]
    if len(labels) < 2:
        return None
    waves = _cosines(np.hstack([ranks, scores.values]))
    waves[: len(names)] -= waves[: len(names)].mean(axis=2, keepdims=True)
    i, j = np.array(pairs := list(combinations(range(len(labels)), 2))).T
    squares = sums = np.zeros(1)
    for first in range(0, n, BLOCK):
        some = waves[..., first : first + BLOCK]
        products = some[i, :2, None] * some[j, None, :2]
        left = np.concatenate([each.reshape(-1, some.shape[2]) for each in (some, products)])
        squares = squares + np.einsum("kn,kn->k", left, left)
        sums = sums + left @ some[len(names) :].reshape(-1, some.shape[2]).T
    arguments: list[tuple[int, ...]] = [(i,) for i in range(len(labels)) for _ in range(COSINES)]
    arguments += [pair for pair in pairs for _ in range(4)]
    of = [" and ".join(labels[i] for i in each) for each in arguments]
    own = np.array([[len(names) + a in each for a in range(d)] for each in arguments])
    length = np.sqrt(np.where(squares > 1e-6 * n, squares, np.inf))
    most = np.abs(sums).reshape(len(of), d, COSINES).max(axis=2)
    z = np.where(own, 0.0, most / length[:, None])
    where = "a function of {1} is correlated with one of {0}: r ="
    found = largest(z**2 / 2.0 - math.log(2.0), z / math.sqrt(n), 0.0, where, of, scores.names)
    return as_test("functions", [found._replace(tests=COSINES * int((~own).sum()))], n)


def _cosines(u: Array) -> NDArray[np.float32]:
    """Cosines of columns, shape (d, ``COSINES``, n)."""
    turns = np.array(math.pi * u.T, np.float32, order="C")[:, None]
    return math.sqrt(2.0) * np.cos(np.arange(1, COSINES + 1, dtype=np.float32)[:, None] * turns)


def _length(a: Array) -> Array:
    length = np.linalg.norm(a, axis=0)
    return np.where(length > 1e-6 * math.sqrt(len(a)), length, np.inf)


# -- between rows


class Order(NamedTuple):
    """Fourier transforms of directions and sizes in one order of rows."""

    name: str
    rows: int
    parts: Sequence[NDArray[np.complex64]]


def orders(scores: Scores, ranks: Array, names: Names) -> list[Order]:
    """File's order and the order of each original column."""
    n = len(scores.values)
    while scipy.fft.next_fast_len(n, real=True) > n:
        n -= 1
    found = [("", np.arange(n))]
    for name, column in zip(names, ranks.T, strict=True):
        found.append((f", in the order of {name}", column[:n].argsort(kind="stable")))
    parts = [np.ascontiguousarray(v[:n].T, dtype=np.float32) for v in (scores.g, scores.w)]
    return [
        Order(name, n, [scipy.fft.rfft(part[:, rows]) for part in parts]) for name, rows in found
    ]


def other_rows_test(
    ordered: Sequence[Order], columns: Names, ranks: Array, names: Names
) -> LawTest:
    """Test correlations with other rows, at every distance."""
    n, found = ordered[0].rows, list[Finding]()
    end = min(NEAR + 1, n)
    edges, near = (0, end, max(end, n - NEAR), n), math.log(n / (4.0 * NEAR))

    def add(
        S: Array, exponent: Callable[[Array], Array], of: Names, where: str, scale: float
    ) -> None:
        for (start, stop), weight in zip(
            pairwise(edges), (near, -math.log(2.0), near), strict=True
        ):
            if start < stop:
                b, i = peak(np.abs(S[:, start:stop]))
                figure, text = S[b, start + i], where.format(of[b], _away(start + i, n))
                text = text.replace(f"with {of[b]} ", "with its own value ")
                x, tests = float(exponent(figure)) + weight, len(S) * (stop - start)
                found.append(Finding(x, float(figure) / scale, 0.0, text, tests))

    chaos = partial(chaos_exponent, F_squared=n / 2.0)
    for order in ordered:
        for F, size in zip(order.parts, SIZES, strict=True):
            own = [size + name for name in columns]
            for a, first in enumerate(own):
                last = a + 1 if order.name else len(own)
                S = scipy.fft.irfft(F[a:last] * F[a].conj(), n)
                S[:, 0], S[0, n // 2 + 1 :] = 0.0, 0.0  # a column's lag of n − k is its lag of k
                if n % 2 == 0:
                    S[0, n // 2] /= 2.0  # these pairs occur twice
                add(S, chaos, own[a:], f"{{}} is correlated with {first} {{}}{order.name}: r =", n)
                if not order.name:
                    S = scipy.fft.irfft(F[a:] * F[a], n)
                    b, k = peak(np.abs(S))
                    x = chaos_exponent(np.maximum(np.abs(S[b, k]) - 2.0, 0.0), n / 2.0 if b else n)
                    where = f"{own[a + b]} is correlated with {first} in reverse order of rows: r ="
                    found.append(Finding(float(x), float(S[b, k] / n), 0.0, where, S.size))
    ranks = ranks[:n]
    kinds = (normal(ranks), ""), (np.abs(2.0 * ranks - 1.0), "the distance from its median of ")
    for F, size, (data, far) in zip(ordered[0].parts, SIZES, kinds, strict=True):
        data, own = data - data.mean(axis=0), [size + name for name in columns]
        A = scipy.fft.rfft((data / _length(data)).T.astype(np.float32))
        for waves, name in zip(A, names, strict=True):
            z = scipy.fft.irfft(F * waves.conj(), n)
            z[:, 0] = 0.0  # correlations with a row's own original are another test's
            where = f"{{}} is correlated with {far}{name} {{}}: r ="
            add(z, normal_exponent, own, where, math.sqrt(n))
    return as_test("other rows", found, n)


def _away(lag: int, n: int) -> str:
    """Name the distance to the row ``lag`` rows earlier on a circle."""
    rows, side = (lag, "earlier") if 2 * lag <= n else (n - lag, "later")
    return f"{rows} row{'s' * (rows > 1)} {side}"


def periods_test(ordered: Sequence[Order], names: Names) -> LawTest:
    """Test for periods of directions and sizes in every order of rows.

    Each ordinate of the periodogram of n normal scores is exponential with mean 1. The last of an
    even number of rows is χ²(1).
    """
    n, found = ordered[0].rows, list[Finding]()
    for order in ordered:
        for F, size in zip(order.parts, SIZES, strict=True):
            x = np.square(np.abs(F[:, 1:])) / n
            if n % 2 == 0:
                x[:, -1] = normal_exponent(np.sqrt(x[:, -1]))
            a, k = peak(x)
            period = f"a period of {n / (1 + k):.5g} rows{order.name}"
            where = f"{size}{names[a]} has {period}, of amplitude"
            found.append(Finding(float(x[a, k]), math.sqrt(x[a, k] / n), 0.0, where, x.size))
    return as_test("periods", found, n, math.sqrt(2.0))


def repeats_test(scores: Scores) -> LawTest | None:
    """Test the number of repeated sizes in all columns.

    Of m equal cells wider than the grain, the i-th size falls into a taken one with a chance of at
    most
    (i − 1)/m. A binomial with the mean chance bounds the tail (hoeffding1956).
    """
    n = len(scores.values)
    cells = np.floor(1.0 / np.maximum(8.0 * scores.grain, LEAST_CELL))
    fine = np.flatnonzero(cells > 4 * n * len(cells))
    if not fine.size:
        return None
    m = float(cells[fine].min())
    ordered = np.sort(np.floor(scores.size[:, fine] * m), axis=None)
    count = len(ordered)
    repeats, chance = int((ordered[1:] == ordered[:-1]).sum()), (count - 1) / (2.0 * m)
    p = 1.0
    if repeats >= count * chance + 1.0:
        p = float(scipy.special.betainc(repeats, count - repeats + 1, min(1.0, chance)))
    where = "the share of sizes that come again is"
    return as_test("repeats", [Finding(float(log_p(p)), repeats / count, chance, where)], n)
