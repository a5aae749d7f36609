"""One battery of tests of scores that are independent and uniform if a scheme's law is true.

The Rosenblatt transform turns a release into scores ``u``, one row per record (rosenblatt1952). If the stated law is true, all scores are
independent, uniform on (0, 1), and independent of the originals. Numbers and categories share every test.

| symbol | meaning | under the law |
| --- | --- | --- |
| ``u`` | scores, shape (n, d) | uniform on (0, 1), independent |
| ``g = Φ⁻¹(u)`` | normal scores: direction and size of the noise | N(0, 1) |
| ``w = Φ⁻¹(|2u − 1|)`` | normal scores of the size alone | N(0, 1) |
| ``c_l = √2 cos(π l u)`` | cosines | mean 0, variance 1, ``E exp(λ c_l) = I_0(√2 λ) ≤ exp(λ²/2)`` |
| ``a`` | a function of the originals, or of other columns' scores | fixed, given the other columns |

| test | departure | p-value |
| --- | --- | --- |
| ``distribution`` | a column is not uniform | ``2 exp(−2 n D²)`` (massart1990) |
| ``moments`` | mean or variance of a column | ``Σ g / √n`` is N(0, 1), ``Σ g²`` is χ²(n) |
| ``correlations`` | between columns, and with the originals | ``Σ a g / ‖a‖`` is N(0, 1) |
| ``functions`` | between functions of two or three columns, and of originals | ``P(|Σ a c| ≥ t ‖a‖) ≤ 2 exp(−t²/2)`` |
| ``other rows`` | with another row's score or original, at any distance | Gaussian chaos: ``P(gᵀA g ≥ 2F√x + 2x) ≤ e^(−x)`` |
| ``periods`` | a period in mean or size | periodogram ordinates are exponential |
| ``repeats`` | scores, sizes or whole rows that come again | binomial (hoeffding1956) |
| ``rows without noise`` | one row without noise | ``n · max(s)^k`` of k sizes |
| ``learned`` | a score, a size or a product that a ridge regression predicts out of sample | N(0, 1) given the features |

All p-values but the last are exact or bounds at any number of rows, whatever the originals are. The last is used from 256 rows on; it is
exact where features are functions of the originals, and a martingale's limit where they are earlier scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import column_ranks, tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.types import Array

MOST_COLUMNS = 64
"""Columns that correlations are computed of; more are added up in groups."""
FEW_COLUMNS = 6
"""Columns that all functions, lags and predictors are computed of; more are added up in groups: 0.2 seconds for 20,000 rows."""
MOST_ORIGINALS = 4
"""Original columns that functions are computed of, and in whose order rows are compared."""
LEARNED_ROWS = 20_000
COSINES, BINS, LAGS, BLOCK = 16, 24, 6, 256
NEAR = 8
"""Rows within which a row is near: half of the chance of a false alarm in ``other rows`` is spent on these."""
SMALLEST = 2.0**-50
NO_SIZE = math.inf
"""``telling`` of a test whose departures have no single size, so that it does not limit what the expectation could miss."""


class Scores(NamedTuple):
    """Uniform scores of a release.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Uniform on (0, 1) if the law is true.
    names : sequence of str
        The d columns, as a message names them: "noise of copy 1 ('age')".
    grain : ndarray of shape (d,)
        Largest difference of two scores that stand for the same noise; 1 where scores are randomised.
    groups : ndarray of shape (d,)
        Number of the copy that each column is of.
    """

    values: Array
    names: Sequence[str]
    grain: Array
    groups: NDArray[np.intp]

    def of(self, columns: NDArray[np.intp]) -> Scores:
        """Return some of the columns."""
        names = [self.names[column] for column in columns.tolist()]
        return Scores(self.values[:, columns], names, self.grain[columns], self.groups[columns])


class Largest(NamedTuple):
    """The least p-value among some comparisons, not yet corrected for their number."""

    p: float
    observed: float
    expected: float
    where: str

    def as_test(self, statistic: str, tests: int, rows: int, telling: float = 1.0) -> LawTest:
        """Return it corrected for the number of comparisons (Bonferroni)."""
        return LawTest(statistic, min(1.0, max(1, tests) * self.p), max(1, tests), rows, self.observed, self.expected, self.where, telling)


def battery(scores: Scores, originals: Array, names: Sequence[str], own: Scores | None = None) -> list[LawTest]:
    """Return one test a statistic.

    Parameters
    ----------
    scores : Scores
        All columns are independent if the law is true.
    originals : ndarray of shape (n, N)
        Only the order of values within a column is used.
    names : sequence of str
        The N original columns.
    own : Scores, optional
        Scores in other coordinates: each column is uniform and independent of the originals, but columns depend on one another.

    Returns
    -------
    list of LawTest
        Each p-value is for all comparisons of the test. Empty if there are fewer than three rows or no column.
    """
    n, d = scores.values.shape
    if n < 3 or d == 0:
        return []
    every = scores if own is None else _joined(scores, own)
    ranks = np.clip(column_ranks(originals) - 0.5 / n, 0.5 / n, 1.0 - 0.5 / n)
    varied = np.flatnonzero(np.ptp(ranks, axis=0) > 0)
    ranks, names = ranks[:, varied], [repr(names[place]) for place in varied.tolist()]
    few = _evenly(len(names), MOST_ORIGINALS)
    some, some_names = ranks[:, few], [names[place] for place in few.tolist()]
    wide, narrow = added_up(scores, MOST_COLUMNS), added_up(scores, FEW_COLUMNS)
    found = [
        distribution_test(every),
        moments_test(every),
        correlations_test(wide, None if own is None else own.of(_evenly(len(own.names), MOST_COLUMNS)), ranks, names),
        functions_test(narrow, some, some_names),
        other_rows_test(narrow, some, some_names),
        periods_test(narrow, some, some_names),
        repeats_test(every, d),
        without_noise_test(scores),
        learned_test(narrow, some),
    ]
    return [test for test in found if test is not None]


def _joined(one: Scores, other: Scores) -> Scores:
    values, grain, groups = (np.concatenate(pair, axis=-1) for pair in zip(one[::2] + one[3:], other[::2] + other[3:], strict=True))
    return Scores(values, [*one.names, *other.names], grain, groups)


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of the places 0 … count − 1, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp)) if count else np.zeros(0, dtype=np.intp)


def added_up(scores: Scores, most: int) -> Scores:
    """Return at most so many columns: if there are more, sums of disjoint groups of normal scores with random signs.

    The sums are independent and N(0, 1), as the groups share no column.
    """
    n, d = scores.values.shape
    if d <= most:
        return scores
    rng, g = stream(0, "signed groups of columns"), normal(scores.values)
    group, sign = rng.permutation(d) % most, rng.choice([-1.0, 1.0], d)
    weights = (group[:, None] == np.arange(most)) * sign[:, None]
    weights /= np.linalg.norm(weights, axis=0)
    names = [f"a signed sum of {int((group == k).sum())} columns" for k in range(most)]
    return Scores(scipy.special.ndtr(g @ weights), names, np.ones(most), np.arange(most))


def normal(u: Array) -> Array:
    """Return normal scores, finite."""
    return np.asarray(scipy.special.ndtri(np.clip(u, 1e-300, 1.0 - 2.0**-53)))


def sizes(u: Array) -> Array:
    """Return normal scores of the size alone, cut off at 8 deviations: noise of exactly 0 has none."""
    return np.clip(normal(np.abs(2.0 * u - 1.0)), -8.0, 8.0)


# -- one column at a time -----------------------------------------------------------------------------------------------


def distribution_test(scores: Scores) -> LawTest:
    """Test that each column is uniform, by Kolmogorov's distance."""
    n, d = scores.values.shape
    ordered = np.sort(scores.values, axis=0)
    step = np.arange(n)[:, None] / n
    distance = np.maximum((ordered - step).max(axis=0), (step + 1.0 / n - ordered).max(axis=0))
    distance = np.maximum(distance - np.where(scores.grain < 1.0, scores.grain, 0.0), 0.0)
    worst = int(distance.argmax())
    D = float(distance[worst])
    where = f"the largest distance from the law's distribution function, of {scores.names[worst]}, is"
    return Largest(2.0 * math.exp(-2.0 * n * D**2), D, 0.0, where).as_test("distribution", d, n)


def moments_test(scores: Scores) -> LawTest:
    """Test the mean and the variance of each column's normal scores."""
    n, d = scores.values.shape
    g = normal(scores.values)
    mean, square = g.mean(axis=0), np.square(g).sum(axis=0)
    of_mean = 2.0 * scipy.special.ndtr(-np.abs(mean) * math.sqrt(n))
    of_variance = 2.0 * np.minimum(scipy.special.chdtr(n, square), scipy.special.chdtrc(n, square))
    a, b = int(of_mean.argmin()), int(of_variance.argmin())
    found = [Largest(float(of_mean[a]), float(mean[a]), 0.0, f"the mean of {scores.names[a]}, in the law's deviations, is"),
             Largest(float(of_variance[b]), float(square[b] / n), 1.0, f"the variance of {scores.names[b]}, in units of the law's, is")]  # fmt: skip
    return min(found).as_test("moments", 2 * d, n)


# -- between columns, and with the originals ----------------------------------------------------------------------------


def correlations_test(scores: Scores, own: Scores | None, ranks: Array, names: Sequence[str]) -> LawTest | None:
    """Test correlations of directions and sizes between columns, and with where a record lies and how far out."""
    n, d = scores.values.shape
    g, data = np.hstack([normal(scores.values), sizes(scores.values)]), _centred(np.hstack([normal(ranks), np.abs(2.0 * ranks - 1.0)]))
    of_data = [*names, *(f"the distance of {name} from its median" for name in names)]
    of_noise = [*scores.names, *(f"the size of {name}" for name in scores.names)]
    z = (g / _length(g)).T @ g
    column = np.arange(2 * d) % d
    z[column[:, None] >= column] = 0.0  # each pair of columns once
    found, tests = [_largest_correlation(z, n, of_noise, of_noise)], 2 * d * (d - 1)
    for one, labels in ((g, of_noise),) if own is None else ((g, of_noise), (normal(own.values), list(own.names))):
        found.append(_largest_correlation((data / _length(data)).T @ one, n, of_data, labels))
        tests += data.shape[1] * one.shape[1]
    return min(found).as_test("correlations", tests, n) if tests else None


def _largest_correlation(z: Array, n: int, rows: Sequence[str], columns: Sequence[str]) -> Largest:
    """Return the largest of some N(0, 1) statistics, ``z = r √n``."""
    if z.size == 0:
        return Largest(1.0, 0.0, 0.0, "no correlation is computed:")
    a, b = np.unravel_index(int(np.abs(z).argmax()), z.shape)
    where = f"{columns[int(b)]} is correlated with {rows[int(a)]}: r ="
    return Largest(2.0 * tail(abs(float(z[a, b]))), float(z[a, b]) / math.sqrt(n), 0.0, where)


def functions_test(scores: Scores, ranks: Array, names: Sequence[str]) -> LawTest | None:
    """Test correlations of cosines of each column with functions of the originals and of one or two other columns."""
    (n, d), N = scores.values.shape, ranks.shape[1]
    cosines = [_cosines(column, COSINES) for column in scores.values.T]
    parts: list[tuple[Array, str, tuple[int, ...]]] = []  # functions, what they are of, and the columns that they involve
    low = []
    for rank, name in zip(ranks.T, names, strict=True):
        waves = _cosines(rank, BINS)
        low.append((waves[:, :2], name))
        parts.append((waves, name, ()))
    parts += [(_products(a, b), f"{x} and {y}", ()) for (a, x), (b, y) in combinations(low, 2)]
    for a in range(d):
        parts.append((cosines[a], scores.names[a], (a,)))
        parts += [(_products(one, cosines[a][:, :2]), f"{name} and {scores.names[a]}", (a,)) for one, name in low]
    parts += [(_products(cosines[a][:, :2], cosines[b][:, :2]), f"{scores.names[a]} and {scores.names[b]}", (a, b))
              for a, b in combinations(range(d), 2)]  # fmt: skip
    worst, tests, right = Largest(1.0, 0.0, 0.0, ""), 0, np.hstack(cosines)
    for functions, name, involved in parts:
        left = _centred(functions) if not involved else functions
        z = np.abs((left / _length(left)).T @ right).reshape(-1, d, COSINES).max(axis=(0, 2))
        others = [c for c in range(d) if c not in involved]
        tests += functions.shape[1] * COSINES * len(others)
        for c in others:
            p = 2.0 * math.exp(-float(z[c]) ** 2 / 2.0)
            if p < worst.p:
                worst = Largest(p, float(z[c]) / math.sqrt(n), 0.0, f"a function of {scores.names[c]} is correlated with one of {name}: r =")
    return worst.as_test("functions", tests, n, NO_SIZE) if N or d > 1 else None


def _cosines(u: Array, count: int) -> NDArray[np.float32]:
    """Return ``√2 cos(π l u)`` for l = 1 … count, shape (n, count), by Chebyshev's recurrence."""
    first = np.cos(math.pi * u)
    found = [np.full_like(u, 1.0), first]
    for _ in range(count - 1):
        found.append(2.0 * first * found[-1] - found[-2])
    return np.asarray(math.sqrt(2.0) * np.stack(found[1:], axis=1), dtype=np.float32)


def _products(a: Array, b: Array) -> Array:
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), -1))


def _centred(a: Array) -> Array:
    return np.asarray(a - a.mean(axis=0))


def _length(a: Array) -> Array:
    """Return the length of each column; infinite of one without any."""
    length = np.linalg.norm(a, axis=0)
    return np.where(length > 1e-6 * math.sqrt(len(a)), length, np.inf)


# -- between rows -------------------------------------------------------------------------------------------------------


def orders(ranks: Array, names: Sequence[str], n: int) -> list[tuple[str, NDArray[np.intp]]]:
    """Return the orders that rows are compared in: of the file, and of each original column."""
    return [("", np.arange(n)), *((f", in the order of {name}", column.argsort(kind="stable"))
                                  for name, column in zip(names, ranks.T, strict=True))]  # fmt: skip


def other_rows_test(scores: Scores, ranks: Array, names: Sequence[str]) -> LawTest | None:
    """Test correlations of directions and sizes with another row's, at every distance, forwards and backwards, and with originals.

    For S = Σ g_i h_(i+k) over m pairs of rows, ``S = vᵀA v`` with v normal, ``‖A‖ ≤ 1`` and ``F² = ‖A‖_F² = m/2``, but ``m`` if all
    pairs are of one column and occur twice. Then ``P(S ≥ 2F√x + 2x) ≤ e^(−x)`` (laurent2000).
    """
    n, d = scores.values.shape
    size, k = scipy.fft.next_fast_len(2 * n, real=True), np.arange(n)
    after, backwards = n - k, np.minimum(np.arange(2 * n - 1) + 1, 2 * n - 1 - np.arange(2 * n - 1))
    near, far = _Lags(), _Lags()
    for order_name, order in orders(ranks, names, n):
        for values, what in ((normal(scores.values), ""), (sizes(scores.values), "the size of ")):
            F = scipy.fft.rfft(np.ascontiguousarray(values[order].T, dtype=np.float32), size)
            for a in range(d):
                for b in range(a, d):
                    both = scipy.fft.irfft(np.stack([F[a] * F[b].conj(), F[a] * F[b]]), size)
                    sums = [(both[0, 1:n], after[1:], 1, "later"), (both[1, : 2 * n - 1], backwards, 0, "mirrored")]
                    if a != b:
                        sums.append((both[0, : size - n : -1], after[1:], 1, "earlier"))
                    for S, pairs, first, side in sums:
                        near_rows = NEAR if first else 0
                        label = (what, scores.names[a], scores.names[b], side, order_name)
                        twice = 2.0 if a == b and not first else 1.0
                        near.see(S[:near_rows], pairs[:near_rows], first, label, twice)
                        far.see(S[near_rows:], pairs[near_rows:], first + near_rows, label, twice)
    parts = [(near.x, near), (far.x, far)]
    p, worst = min(((2.0 * 2.0 * lags.tests * math.exp(-x), lags) for x, lags in parts), key=lambda one: one[0])
    found = [Largest(min(1.0, p), worst.r, 0.0, worst.where())]
    if ranks.shape[1]:
        found.append(_other_originals(scores, ranks, names))
    return min(found)._replace(p=min(1.0, len(found) * min(found).p)).as_test("other rows", 1, n)._replace(tests=max(1, near.tests))


class _Lags:
    """The largest sum over pairs of rows that was seen, by the exponent x of its p-value."""

    def __init__(self) -> None:
        self.x, self.r, self.tests, self.lag = 0.0, 0.0, 0, 0
        self.label = ("", "no column", "no column", "later", "")

    def see(self, S: Array, pairs: Array, first: int, label: tuple[str, str, str, str, str], twice: float) -> None:
        """Look at sums of one pair of columns at lags ``first``, ``first + 1`` and so on."""
        if not len(S):
            return
        self.tests += len(S)
        F = np.sqrt(pairs * twice / 2.0)
        root = (np.sqrt(F * F + 2.0 * np.abs(S)) - F) / 2.0
        place = int(root.argmax())
        x = float(root[place]) ** 2
        if x > self.x:
            self.x, self.r, self.lag, self.label = x, float(S[place] / pairs[place]), first + place, label

    def where(self) -> str:
        """Say which it is."""
        what, a, b, side, order = self.label
        other = "its own value" if a == b else f"{what}{b}"
        if side == "mirrored":
            return f"{what}{a} is correlated with {other} in reverse order of rows{order}: r ="
        return f"{what}{a} is correlated with {other} {self.lag} row{'s' * (self.lag > 1)} {'earlier' if side == 'later' else 'later'}{order}: r ="


def _other_originals(scores: Scores, ranks: Array, names: Sequence[str]) -> Largest:
    """Return the largest correlation of scores with another row's original: ``Σ a_(i+k) g_i / ‖a‖``, zeros beyond the ends."""
    n, d = scores.values.shape
    size = scipy.fft.next_fast_len(2 * n, real=True)
    worst, tests = Largest(1.0, 0.0, 0.0, ""), 0
    for data, noise, what in ((normal(ranks), normal(scores.values), ""), (np.abs(2.0 * ranks - 1.0), sizes(scores.values), "the size of ")):
        a = _centred(data)
        A, Z = (scipy.fft.rfft(np.ascontiguousarray(one.T, dtype=np.float32), size) for one in (a / _length(a), noise))
        for of_data, name in zip(A, names, strict=True):
            S = scipy.fft.irfft(of_data * Z.conj(), size)
            S[:, 0] = 0.0  # the row's own original is another test's
            tests += 2 * d * n
            column, lag = np.unravel_index(int(np.abs(S).argmax()), S.shape)
            z, away = float(S[column, lag]), int(lag)
            p = 2.0 * tail(abs(z))
            if p < worst.p:
                apart = f"{away} rows later" if away <= n else f"{size - away} rows earlier"
                worst = Largest(p, z / math.sqrt(n), 0.0, f"{what}{scores.names[int(column)]} is correlated with {name} {apart}: r =")
    return worst._replace(p=min(1.0, tests * worst.p))


def periods_test(scores: Scores, ranks: Array, names: Sequence[str]) -> LawTest | None:
    """Test for periods in direction and size, in file order and in the order of each original column.

    Each ordinate of the periodogram of n normal scores is exponential with mean 1; the last of an even number is χ²(1).
    """
    n, d = scores.values.shape
    worst, tests = Largest(1.0, 0.0, 0.0, ""), 0
    for order_name, order in orders(ranks, names, n):
        for values, what in ((normal(scores.values), ""), (sizes(scores.values), "the size of ")):
            power = np.abs(scipy.fft.rfft(np.ascontiguousarray(values[order].T), axis=1)[:, 1:]) ** 2 / n
            if n % 2 == 0:  # brought to the ordinate of the same chance
                power[:, -1] = -scipy.special.log_ndtr(-np.sqrt(power[:, -1])) - math.log(2.0)
            tests += power.size
            a, k = np.unravel_index(int(power.argmax()), power.shape)
            p = math.exp(-float(power[a, k]))
            if p < worst.p:
                where = f"{what}{scores.names[int(a)]} has a period of {n / (1 + int(k)):.5g} rows{order_name}, of amplitude"
                worst = Largest(p, math.sqrt(float(power[a, k]) / n), 0.0, where)
    return worst.as_test("periods", tests, n, math.sqrt(2.0))


def repeats_test(scores: Scores, independent: int) -> LawTest | None:
    """Test how many sizes come again: in one column, among all independent columns, and in whole rows.

    A size is put into one of m equal cells, each wider than the grain. The i-th size falls into a taken cell with a chance of (i − 1)/m at
    most, so that the number of repeats has no heavier a tail than a binomial one with the mean chance (hoeffding1956).

    Parameters
    ----------
    scores : Scores
    independent : int
        How many of the columns, the first ones, are independent of one another.
    """
    n = len(scores.values)
    s = np.abs(2.0 * scores.values - 1.0)
    cells = np.floor(1.0 / np.maximum(8.0 * scores.grain, SMALLEST)).astype(np.int64)
    fine = np.flatnonzero(cells > 4 * n)
    tried = [((s[:, a] * cells[a]).astype(np.int64), float(cells[a]), f"of {scores.names[a]}") for a in fine.tolist()]
    several = fine[fine < independent]
    if several.size > 1:
        m = cells[several].min()
        tried.append(((s[:, several] * m).astype(np.int64).ravel(), float(m), "of all columns"))
    code, total = np.zeros(n, dtype=np.int64), 1.0
    for a in np.argsort(-cells[:independent], kind="stable").tolist():
        m = int(min(cells[a], 2**62 / total))
        if m > 4:
            code, total = code * m + (s[:, a] * m).astype(np.int64), total * m
    if total > 4 * n and not fine.size:
        tried.append((code, total, "of whole rows"))
    found = [_repeated(values, m, which) for values, m, which in tried]
    return min(found).as_test("repeats", len(found), n, NO_SIZE) if found else None


def _repeated(cells: NDArray[np.int64], m: float, which: str) -> Largest:
    count = len(cells)
    ordered = np.sort(cells)
    repeats, chance = int((ordered[1:] == ordered[:-1]).sum()), (count - 1) / (2.0 * m)
    p = float(scipy.special.betainc(repeats, count - repeats + 1, min(1.0, chance))) if repeats >= count * chance + 1.0 else 1.0
    return Largest(p, repeats / count, chance, f"the share of sizes that come again, {which}, is")


def without_noise_test(scores: Scores) -> LawTest | None:
    """Test the row with least noise in each copy: the largest of its k sizes, to the power k, is uniform."""
    n, found = len(scores.values), []
    for group in np.unique(scores.groups).tolist():
        columns = np.flatnonzero((scores.groups == group) & (scores.grain < 2.0**-10))
        if columns.size:
            least = np.abs(2.0 * scores.values[:, columns] - 1.0).max(axis=1)
            size = max(float(least.min()), 8.0 * float(scores.grain[columns].max()))
            where = f"the largest size of {' and '.join(scores.names[c] for c in columns.tolist()[:2])} in row {int(least.argmin()) + 1} is"
            found.append(Largest(min(1.0, n * size**columns.size), size, float(n) ** (-1.0 / columns.size), where))
    return min(found).as_test("rows without noise", len(found), n, NO_SIZE) if found else None


# -- prediction ---------------------------------------------------------------------------------------------------------


def learned_test(scores: Scores, ranks: Array) -> LawTest | None:
    """Test whether a ridge regression predicts scores, sizes or products from the originals, neighbours, earlier scores and place.

    It is fitted on every other block of rows. On the others, ``T = Σ s f / √(Σ f²)`` with predictions f is N(0, 1); for a product
    ``s = g_a g_b`` it is ``Σ s f / √(Σ (f g_a)²)``.
    """
    u, ranks = scores.values[:LEARNED_ROWS], ranks[:LEARNED_ROWS]
    n, d = u.shape
    if n < 2 * BLOCK:
        return None
    g, w = np.clip(normal(u), -8.0, 8.0), sizes(u)
    i, j = np.triu_indices(d, 1)
    targets = np.hstack([g, w, g[:, i] * g[:, j]])
    given = np.hstack([np.ones((n, 2 * d)), g[:, i]])
    labels = [*scores.names, *(f"the size of {name}" for name in scores.names)]
    labels += [f"the product of {scores.names[a]} and {scores.names[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)]
    features, row = dictionary(g, ranks), np.arange(n)
    fitted, tested = (row // BLOCK % 2 == 0) & (row % BLOCK >= LAGS), row // BLOCK % 2 == 1
    A, B = features[fitted], features[tested]
    mean, deviation = A.mean(axis=0), np.maximum(A.std(axis=0), 0.02)
    A, B = (A - mean) / deviation, (B - mean) / deviation
    values, vectors = np.linalg.eigh(A.T @ A)
    C = vectors.T @ (A.T @ np.clip(targets[fitted], -4.0, 4.0))
    penalties = (0.05, 0.5, 5.0)
    worst = Largest(1.0, 0.0, 0.0, "")
    for penalty in penalties:
        f = B @ (vectors @ (C / (np.maximum(values, 0.0) + penalty * len(A))[:, None]))
        V = np.square(f * given[tested]).sum(axis=0)
        T = (targets[tested] * f).sum(axis=0) / np.sqrt(np.maximum(V, np.square(f).sum(axis=0) / 4.0) + 1e-300)
        best = int(T.argmax())
        p = tail(float(T[best]))
        if p < worst.p:
            r = float(np.corrcoef(f[:, best], targets[tested][:, best])[0, 1])
            worst = Largest(p, r, 0.0, f"{labels[best]} is predicted out of sample from originals, earlier rows and place: r =")
    return worst.as_test("learned", len(penalties) * targets.shape[1], n, NO_SIZE)


def dictionary(g: Array, ranks: Array) -> Array:
    """Return functions of a row's originals, of its neighbours' originals, of earlier rows' scores, and of its place, shape (n, p)."""
    n, N = ranks.shape
    R, place = normal(ranks), np.arange(n)[:, None] / n
    parts = [place, place**2, *(f(2.0 * np.pi * k * place) for k in (1, 2, 3, 5) for f in (np.sin, np.cos)), R]
    parts += [np.eye(BINS)[np.minimum((column * BINS).astype(np.intp), BINS - 1)] for column in ranks.T]
    parts += [R[:, [i]] * R[:, [j]] for i in range(N) for j in range(i + 1)]
    parts += [f(_shifted(g, k)) for k in range(1, LAGS + 1) for f in (_same, _square)]
    parts += [f(_shifted(R, k)) for k in (-3, -2, -1, 1, 2, 3) for f in (_same, _square)]
    return np.hstack(parts)


def _same(values: Array) -> Array:
    return values


def _square(values: Array) -> Array:
    return np.asarray(np.minimum(values**2, 9.0) - 1.0)


def _shifted(values: Array, k: int) -> Array:
    """Return the values of k rows earlier, 0 beyond the ends."""
    found = np.zeros_like(values)
    if k > 0:
        found[k:] = values[:-k]
    else:
        found[:k] = values[-k:]
    return found
