"""Tests of scores that are independent and uniform under the law.

The Rosenblatt transform turns a release into scores ``u``, one row per record (rosenblatt1952). If
the stated law is true, all scores are independent, uniform on (0, 1), and independent of the
originals. Numbers and categories share every test.

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
| ``moments`` | mean, variance or drift of a column | ``Σ g / √n`` is N(0, 1), ``Σ g²`` is χ²(n), of k runs ``Σ (Σ g)²/n_k`` is χ²(k) |
| ``correlations`` | between columns, and with the originals | ``Σ a g / ‖a‖`` is N(0, 1) |
| ``functions`` | between functions of two or three columns, and of originals | ``P(|Σ a c| ≥ t ‖a‖) ≤ 2 exp(−t²/2)`` |
| ``neighbouring rows`` | with a neighbour's score or original | ``P(gᵀA g ≥ 2F√x + 2‖A‖x) ≤ e^(−x)`` (laurent2000) |
| ``other rows`` | the same at any distance | the same |
| ``periods`` | a period in mean or size | periodogram ordinates are exponential |
| ``repeats`` | scores, sizes or whole rows that come again | binomial (hoeffding1956) |
| ``rows without noise`` | one row without noise | ``n · max(s)^k`` of k sizes |
| ``learned`` | a score, a size or a product that a ridge regression predicts out of sample | N(0, 1) given the features |

All p-values but the last are exact or bounds at any number of rows, for any originals. The last is
used from 256 rows on; it is exact where features are functions of the originals, and a martingale's
limit where they are earlier scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import column_ranks, tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.types import Array

MOST_COLUMNS = 24
"""Columns that correlations, and each column's own lags, are computed of; more are added up in
groups."""
FEW_COLUMNS = 6
"""Columns that all functions, lags and predictors are computed of; more are added up in groups: 0.2
seconds for 20,000 rows."""
MOST_ORIGINALS = 4
"""Original columns that functions are computed of, and that order the rows for comparison."""
LEARNED_ROWS = 12_000
RUNS = 16
COSINES, BINS, LAGS, BLOCK, CHUNK = 12, 24, 6, 256, 4096
NEAR = 4
"""Rows within which a row is a neighbour."""
SMALLEST = 2.0**-50
NO_SIZE = math.inf
"""``telling`` of a test for departures without one size: it does not limit the resolution of the
expectation."""


@dataclass(frozen=True)
class Scores:
    """Uniform scores of a release.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Uniform on (0, 1) if the law is true.
    names : sequence of str
        The d columns, as a message names them: "noise of copy 1 ('age')".
    grain : ndarray of shape (d,)
        Largest difference of two scores of the same noise; 1 where scores are randomised.
    groups : ndarray of shape (d,)
        Number of the copy that each column is of.
    """

    values: Array = field(repr=False)
    names: Sequence[str]
    grain: Array
    groups: NDArray[np.intp]

    @cached_property
    def g(self) -> Array:
        """Normal scores, finite."""
        return normal(self.values)

    @cached_property
    def w(self) -> Array:
        """Normal scores of the size alone, cut off at 8 deviations."""
        return np.clip(normal(np.abs(2.0 * self.values - 1.0)), -8.0, 8.0)

    def of(self, columns: NDArray[np.intp]) -> Scores:
        """Return some of the columns."""
        names = [self.names[column] for column in columns.tolist()]
        return Scores(self.values[:, columns], names, self.grain[columns], self.groups[columns])

    def joined(self, other: Scores | None) -> Scores:
        """Return the columns of both."""
        if other is None:
            return self
        names, pairs = [*self.names, *other.names], (self, other)
        values, grain, groups = (
            np.concatenate([getattr(one, part) for one in pairs], axis=-1)
            for part in ("values", "grain", "groups")
        )
        return Scores(values, names, grain, groups)


class Largest(NamedTuple):
    """The least p-value among comparisons, not corrected for their number."""

    p: float
    observed: float
    expected: float
    where: str

    def as_test(self, statistic: str, tests: int, rows: int, telling: float = 1.0) -> LawTest:
        """Return it corrected for the number of comparisons (Bonferroni)."""
        return LawTest(
            statistic,
            min(1.0, max(1, tests) * self.p),
            max(1, tests),
            rows,
            self.observed,
            self.expected,
            self.where,
            telling,
        )


def battery(
    scores: Scores, originals: Array, names: Sequence[str], own: Scores | None = None
) -> list[LawTest]:
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
        Scores in other coordinates: each column is uniform and independent of the originals, but
        columns depend on one another.

    Returns
    -------
    list of LawTest
        Each p-value is for all comparisons of the test. Empty if there are fewer than three rows or
        no column.
    """
    n, d = scores.values.shape
    if n < 3 or d == 0:
        return []
    own = lengths(scores).joined(own) if d > 1 else own
    every = scores.joined(own)
    ranks = np.clip(column_ranks(originals) - 0.5 / n, 0.5 / n, 1.0 - 0.5 / n)
    varied = np.flatnonzero(np.ptp(ranks, axis=0) > 0)
    ranks, names = ranks[:, varied], [repr(names[place]) for place in varied.tolist()]
    few = _evenly(len(names), MOST_ORIGINALS)
    some, some_names = ranks[:, few], [names[place] for place in few.tolist()]
    wide, narrow = added_up(scores, MOST_COLUMNS), added_up(scores, FEW_COLUMNS)
    rows, in_file = orders(narrow, some, some_names), orders(wide, some[:, :0], [])[0]
    found = [
        distribution_test(every),
        moments_test(every),
        correlations_test(
            wide,
            None if own is None else own.of(_evenly(len(own.names), MOST_COLUMNS)),
            ranks,
            names,
        ),
        functions_test(narrow, some, some_names),
        neighbours_test(wide, ranks, names),
        other_rows_test(wide, in_file, narrow, rows, some, some_names),
        periods_test(narrow, rows),
        repeats_test(every, d),
        without_noise_test(scores),
        learned_test(narrow, some),
    ]
    return [test for test in found if test is not None]


def _evenly(count: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of the places 0 … count − 1, evenly spread."""
    return (
        np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))
        if count
        else np.zeros(0, dtype=np.intp)
    )


def added_up(scores: Scores, most: int) -> Scores:
    """Return at most ``most`` columns, more of them added up in groups.

    A group's normal scores are added up with random signs. The sums are independent and N(0, 1), as
    groups share no column.
    """
    d = scores.values.shape[1]
    if d <= most:
        return scores
    rng = stream(0, "signed groups of columns")
    group = rng.permutation(d) % most
    sign = np.where(np.bincount(group)[group] > 1, rng.choice([-1.0, 1.0], d), 1.0)
    weights = (group[:, None] == np.arange(most)) * sign[:, None]
    weights /= np.linalg.norm(weights, axis=0)
    members = [np.flatnonzero(group == k).tolist() for k in range(most)]
    names = [
        scores.names[some[0]] if len(some) == 1 else f"a signed sum of {len(some)} columns"
        for some in members
    ]
    return Scores(scipy.special.ndtr(scores.g @ weights), names, np.ones(most), np.arange(most))


def normal(u: Array) -> Array:
    """Return normal scores, finite."""
    return np.asarray(scipy.special.ndtri(np.clip(u, 1e-300, 1.0 - 2.0**-53)))


# -- one column at a time
# -----------------------------------------------------------------------------------------------


def distribution_test(scores: Scores) -> LawTest:
    """Test that each column is uniform, by Kolmogorov's distance."""
    n, d = scores.values.shape
    ordered = np.sort(scores.values, axis=0)
    step = np.arange(n)[:, None] / n
    distance = np.maximum((ordered - step).max(axis=0), (step + 1.0 / n - ordered).max(axis=0))
    distance = np.maximum(distance - np.where(scores.grain < 1.0, scores.grain, 0.0), 0.0)
    worst = int(distance.argmax())
    D = float(distance[worst])
    where = (
        f"the largest distance from the law's distribution function, of {scores.names[worst]}, is"
    )
    return Largest(2.0 * math.exp(-2.0 * n * D**2), D, 0.0, where).as_test("distribution", d, n)


def moments_test(scores: Scores) -> LawTest:
    """Test the mean, variance and drift of each column's normal scores.

    The drift is tested by the means of runs of rows.
    """
    n, d = scores.values.shape
    mean, square = scores.g.mean(axis=0), np.square(scores.g).sum(axis=0)
    runs = min(RUNS, n)
    starts = np.arange(runs) * n // runs
    drift = (
        np.square(np.add.reduceat(scores.g, starts, axis=0)) / np.diff(starts, append=n)[:, None]
    ).sum(axis=0)
    of_mean = 2.0 * scipy.special.ndtr(-np.abs(mean) * math.sqrt(n))
    of_variance = 2.0 * np.minimum(scipy.special.chdtr(n, square), scipy.special.chdtrc(n, square))
    of_drift = scipy.special.chdtrc(runs, drift)
    found = []
    for p, observed, expected, what in (
        (of_mean, mean, 0.0, "the mean of {}, in the law's deviations, is"),
        (of_variance, square / n, 1.0, "the variance of {}, in units of the law's, is"),
        (
            of_drift,
            drift / runs,
            1.0,
            f"the variance of the means of {runs} runs of rows of {{}}, in units of the law's, is",
        ),
    ):
        worst = int(p.argmin())
        found.append(
            Largest(
                float(p[worst]), float(observed[worst]), expected, what.format(scores.names[worst])
            )
        )
    return min(found).as_test("moments", 3 * d, n)


def lengths(scores: Scores) -> Scores:
    """Return the score of each row's length: ``Σ g²`` is χ²(d)."""
    d = scores.values.shape[1]
    u = scipy.special.chdtr(d, np.square(scores.g).sum(axis=1))
    return Scores(u[:, None], ["the length of a row's noise"], np.ones(1), np.full(1, -1))


# -- between columns, and with the originals
# ----------------------------------------------------------------------------


def correlations_test(
    scores: Scores, own: Scores | None, ranks: Array, names: Sequence[str]
) -> LawTest | None:
    """Test correlations between columns, and with the originals.

    Directions, sizes and squares are compared, and originals by their ranks and their distances
    from the median. The row number counts as an original column: noise may drift along the file.
    """
    n, d = scores.values.shape
    ranks, names = np.column_stack([ranks, (np.arange(n) + 0.5) / n]), [*names, "the row number"]
    g, data = (
        np.hstack([scores.g, scores.w]),
        _centred(np.hstack([normal(ranks), np.abs(2.0 * ranks - 1.0)])),
    )
    of_data = [*names, *(f"the distance of {name} from its median" for name in names)]
    of_noise = [*scores.names, *(f"the size of {name}" for name in scores.names)]
    z = (g / _length(g)).T @ g
    column = np.arange(2 * d) % d
    z[column[:, None] >= column] = 0.0  # each pair of columns once
    found, tests = (
        [_largest_correlation(z, g, of_noise, of_noise), _squares(scores)],
        5 * d * (d - 1) // 2,
    )
    for one, labels in (
        ((g, of_noise),) if own is None else ((g, of_noise), (own.g, list(own.names)))
    ):
        found.append(_largest_correlation((data / _length(data)).T @ one, one, of_data, labels))
        tests += data.shape[1] * one.shape[1]
    return min(found).as_test("correlations", tests, n) if tests else None


def _squares(scores: Scores) -> Largest:
    """Return the largest correlation of squares.

    Given a, ``Σ a_i (g_i² − 1)`` is a Gaussian chaos with A = diag(a).
    """
    Q = np.square(np.clip(scores.g, -8.0, 8.0)) - 1.0
    length = np.linalg.norm(Q, axis=0)
    S = Q.T @ Q
    S[np.tril_indices(len(S))] = 0.0
    r = S / np.outer(np.maximum(length, 1e-30), np.maximum(length, 1e-30))
    a, b = (int(place) for place in np.unravel_index(int(np.abs(r).argmax()), r.shape))
    chances = [
        _chaos(abs(float(S[a, b])), float(length[c]) ** 2, float(np.abs(Q[:, c]).max()))
        for c in (a, b)
    ]
    where = (
        f"the square of {scores.names[a]} is correlated with the square of {scores.names[b]}: r ="
    )
    return (
        Largest(2.0 * 2.0 * min(chances), float(r[a, b]), 0.0, where)
        if a != b
        else Largest(1.0, 0.0, 0.0, "no pair is correlated:")
    )


def _largest_correlation(
    z: Array, of: Array, rows: Sequence[str], columns: Sequence[str]
) -> Largest:
    """Return the largest of some N(0, 1) statistics ``z = r ‖of‖``."""
    if z.size == 0:
        return Largest(1.0, 0.0, 0.0, "no correlation is computed:")
    a, b = (int(place) for place in np.unravel_index(int(np.abs(z).argmax()), z.shape))
    r = float(z[a, b] / _length(of)[b])
    return Largest(
        2.0 * tail(abs(float(z[a, b]))), r, 0.0, f"{columns[b]} is correlated with {rows[a]}: r ="
    )


def functions_test(scores: Scores, ranks: Array, names: Sequence[str]) -> LawTest | None:
    """Test correlations of functions of each column with other functions.

    Functions of a column are cosines. The others are cosines of originals and of other columns, and
    products of two cosines.
    """
    n, d = scores.values.shape
    cosines, waves = (
        [_cosines(column, COSINES) for column in each.T] for each in (scores.values, ranks)
    )
    waves = [wave - wave.mean(axis=0) for wave in waves]
    # Functions, names of their arguments, and a bit for each column of scores that they involve.
    single = [
        *((wave, name, 0) for wave, name in zip(waves, names, strict=True)),
        *((c, name, 1 << a) for a, (c, name) in enumerate(zip(cosines, scores.names, strict=True))),
    ]
    pairs = list(combinations(single, 2))
    of = [name for _, name, _ in single for _ in range(COSINES)] + [
        f"{x} and {y}" for (_, x, _), (_, y, _) in pairs for _ in range(4)
    ]
    bits = [i for *_, i in single for _ in range(COSINES)] + [
        i | j for (*_, i), (*_, j) in pairs for _ in range(4)
    ]
    involved = np.array(bits)[:, None] >> np.arange(d) & 1 == 1
    sums, squares = np.zeros((len(of), d * COSINES)), np.zeros(len(of))
    for rows in (slice(start, start + CHUNK) for start in range(0, n, CHUNK)):
        products = [
            (a[rows, :2, None] * b[rows, None, :2]).reshape(-1, 4) for (a, *_), (b, *_) in pairs
        ]
        left = np.hstack([*(function[rows] for function, *_ in single), *products])
        sums += left.T @ np.hstack([c[rows] for c in cosines])
        squares += np.einsum("nk,nk->k", left, left)
    z = (
        np.abs(sums).reshape(len(of), d, COSINES).max(axis=2)
        / np.sqrt(np.where(squares > 1e-6 * n, squares, np.inf))[:, None]
    )
    z[involved] = 0.0
    a, c = (int(place) for place in np.unravel_index(int(z.argmax()), z.shape))
    where = f"a function of {scores.names[c]} is correlated with one of {of[a]}: r ="
    largest = Largest(
        2.0 * math.exp(-(float(z[a, c]) ** 2) / 2.0), float(z[a, c]) / math.sqrt(n), 0.0, where
    )
    return (
        largest.as_test("functions", COSINES * int((~involved).sum()), n, NO_SIZE)
        if len(single) > 1
        else None
    )


def _cosines(u: Array, count: int) -> NDArray[np.float32]:
    """Return ``√2 cos(π l u)``, l = 1 … count, by Chebyshev's recurrence."""
    found = np.empty((count + 1, len(u)), dtype=np.float32)
    found[0], found[1] = 1.0, np.cos(math.pi * u)
    for k in range(2, count + 1):
        found[k] = 2.0 * found[1] * found[k - 1] - found[k - 2]
    return np.asarray(np.float32(math.sqrt(2.0)) * found[1:].T)


def _centred(a: Array) -> Array:
    return np.asarray(a - a.mean(axis=0))


def _length(a: Array) -> Array:
    """Return the length of each column; infinite of one without any."""
    length = np.sqrt(np.einsum("nk,nk->k", a, a))
    return np.where(length > 1e-6 * math.sqrt(len(a)), length, np.inf)


# -- between rows
# -------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """Scores in one order of rows, and their Fourier transforms.

    The number of rows is the largest that suits the transform.
    """

    name: str
    g: NDArray[np.float32]
    w: NDArray[np.float32]
    of_g: NDArray[np.complex64]
    of_w: NDArray[np.complex64]


def orders(scores: Scores, ranks: Array, names: Sequence[str]) -> list[Order]:
    """Return the file's order and that of each original column."""
    n = len(scores.values)
    while scipy.fft.next_fast_len(n, real=True) > n:
        n -= 1
    found = [("", np.arange(n))]
    found += [
        (f", in the order of {name}", column[:n].argsort(kind="stable"))
        for name, column in zip(names, ranks.T, strict=True)
    ]
    g, w = (np.ascontiguousarray(values[:n].T, dtype=np.float32) for values in (scores.g, scores.w))
    return [
        Order(name, g[:, rows], w[:, rows], *(scipy.fft.rfft(values[:, rows]) for values in (g, w)))
        for name, rows in found
    ]


def neighbours_test(scores: Scores, ranks: Array, names: Sequence[str]) -> LawTest:
    """Test correlations with neighbours' scores and originals.

    ``S = Σ g_i h_(i−k)`` is a Gaussian chaos with ``‖A‖ ≤ 1`` and ``F² = n/2``; with an original a,
    ``Σ a_(i−k) g_i / ‖a‖`` is N(0, 1).
    """
    n, d = scores.values.shape
    found, tests = [Largest(1.0, 0.0, 0.0, "no neighbour is correlated:")], 0
    for v, data, what, far in (
        (scores.g, normal(ranks), "", ""),
        (scores.w, np.abs(2.0 * ranks - 1.0), "the size of ", "the distance from its median of "),
    ):
        data = _centred(data)
        data = data / _length(data)
        for k in range(1, min(NEAR, n - 1) + 1):
            S = v[:-k].T @ v[k:]
            a, b = (int(place) for place in np.unravel_index(int(np.abs(S).argmax()), S.shape))
            where = f"{what}{scores.names[b]} is correlated with {'its own value' if a == b else what + scores.names[a]} {_away(k, n)}: r ="
            found.append(
                Largest(
                    2.0 * _chaos(abs(float(S[a, b])), n / 2.0), float(S[a, b]) / (n - k), 0.0, where
                )
            )
            tests += S.size + 2 * data.shape[1] * d
            for z, lag in ((data[:-k].T @ v[k:], k), (data[k:].T @ v[:-k], n - k)) if names else ():
                a, b = (int(place) for place in np.unravel_index(int(np.abs(z).argmax()), z.shape))
                where = f"{what}{scores.names[b]} is correlated with {far}{names[a]} {_away(lag, n)}: r ="
                found.append(
                    Largest(
                        2.0 * tail(abs(float(z[a, b]))), float(z[a, b]) / math.sqrt(n), 0.0, where
                    )
                )
    return min(found).as_test("neighbouring rows", tests, n)


def other_rows_test(
    wide: Scores,
    in_file: Order,
    narrow: Scores,
    rows: Sequence[Order],
    ranks: Array,
    names: Sequence[str],
) -> LawTest:
    """Test correlations with other rows' scores and originals.

    Every distance is tested, forwards and backwards, of directions and of sizes. Rows lie on a
    circle. ``S = Σ g_i h_(i+k)`` over n pairs of rows is a Gaussian chaos ``vᵀA v`` with ``‖A‖ ≤
    1`` and ``F² = ‖A‖_F² = n/2``. In reverse order, ``Σ g_i h_(k−i)``, pairs of one column occur
    twice: ``F² = n``, and at most two rows meet themselves.

    Parameters
    ----------
    wide, in_file : Scores and Order
        Columns for lags with themselves and with originals, in file order.
    narrow, rows : Scores and sequence of Order
        Columns for lags with one another, in every order.
    ranks, names : ndarray of shape (n, N) and sequence of str
        Of the originals.
    """
    n = in_file.g.shape[1]
    found, tests = [Largest(1.0, 0.0, 0.0, "no row is correlated:")], 0
    for columns, order, all_pairs in [(wide, in_file, False)] * (wide is not narrow) + [
        (narrow, order, True) for order in rows
    ]:
        for v, F, what in ((order.g, order.of_g, ""), (order.w, order.of_w, "the size of ")):
            for a in range(len(F)):
                last = len(F) if all_pairs else a + 1
                # of columns a, a + 1, …, which come k rows later
                S = scipy.fft.irfft(F[a:last] * F[a].conj(), n)
                S[:, 0], S[0, n // 2 + 1 :] = 0.0, 0.0  # a column's lag of n − k is its lag of k
                if n % 2 == 0:
                    S[0, n // 2] /= 2.0  # these pairs occur twice
                b, lag = (
                    int(place) for place in np.unravel_index(int(np.abs(S).argmax()), S.shape)
                )
                found.append(
                    _lagged(
                        v, a, a + b, lag, abs(float(S[b, lag])), columns.names, what, order.name
                    )
                )
                tests += 2 * S.size
                if order.name:
                    continue
                S = scipy.fft.irfft(F[a:last] * F[a], n)
                b, lag = (
                    int(place) for place in np.unravel_index(int(np.abs(S).argmax()), S.shape)
                )
                p = _chaos(abs(float(S[b, lag])) - 2.0, n if b == 0 else n / 2.0)
                where = f"{what}{columns.names[a]} is correlated with {what}{columns.names[a + b]} in reverse order of rows: r ="
                found.append(Largest(p, float(S[b, lag]) / n, 0.0, where))
                tests += 2 * S.size
    for data, F, what, far in (
        (normal(ranks), in_file.of_g, "", ""),
        (
            np.abs(2.0 * ranks - 1.0),
            in_file.of_w,
            "the size of ",
            "the distance from its median of ",
        ),
    ):
        data = _centred(data[:n])
        A = scipy.fft.rfft((data / _length(data)).T.astype(np.float32))
        for place, name in enumerate(names):
            z = scipy.fft.irfft(F * A[place].conj(), n)
            z[:, 0] = 0.0  # correlations with a row's own original are another test's
            a, lag = (int(place) for place in np.unravel_index(int(np.abs(z).argmax()), z.shape))
            where = f"{what}{wide.names[a]} is correlated with {far}{name} {_away(lag, n)}: r ="
            found.append(
                Largest(tail(abs(float(z[a, lag]))), float(z[a, lag]) / math.sqrt(n), 0.0, where)
            )
            tests += 2 * z.size
    return min(found).as_test("other rows", tests, n, NO_SIZE)


def _lagged(
    v: NDArray[np.float32],
    a: int,
    b: int,
    lag: int,
    S: float,
    names: Sequence[str],
    what: str,
    order: str,
) -> Largest:
    """Return the finding for column b at ``lag`` rows after column a."""
    n = v.shape[1]
    shift = lag if 2 * lag <= n else lag - n
    early, late = (v[a, : n - shift], v[b, shift:]) if shift > 0 else (v[a, -shift:], v[b, :shift])
    r = float(
        np.mean(early * late) / max(1e-30, float(np.sqrt(np.mean(early**2) * np.mean(late**2))))
    )
    other = "its own value" if a == b else what + names[a]
    return Largest(
        _chaos(S, n / 2.0),
        r,
        0.0,
        f"{what}{names[b]} is correlated with {other} {_away(lag, n)}{order}: r =",
    )


def _away(lag: int, n: int) -> str:
    """Name the distance to the row ``lag`` rows earlier on a circle."""
    rows, side = (lag, "earlier") if 2 * lag <= n else (n - lag, "later")
    return f"{rows} row{'s' * (rows > 1)} {side}"


def _chaos(S: float, F_squared: float, norm: float = 1.0) -> float:
    """Return ``e^(−x)`` for ``S = 2F√x + 2‖A‖x``."""
    return math.exp(
        -(
            (
                (math.sqrt(F_squared + 2.0 * norm * max(S, 0.0)) - math.sqrt(F_squared))
                / (2.0 * norm)
            )
            ** 2
        )
    )


def periods_test(scores: Scores, rows: Sequence[Order]) -> LawTest:
    """Test for periods of directions and sizes in every order of rows.

    Each ordinate of the periodogram of n normal scores is exponential with mean 1; the last of an
    even number is χ²(1).
    """
    n = rows[0].g.shape[1]
    worst, tests = Largest(1.0, 0.0, 0.0, "no period is long enough:"), 0
    for order in rows:
        for F, what in ((order.of_g, ""), (order.of_w, "the size of ")):
            power = np.abs(F[:, 1:]) ** 2 / n
            if n % 2 == 0:  # brought to the ordinate of the same chance
                power[:, -1] = -scipy.special.log_ndtr(-np.sqrt(power[:, -1])) - math.log(2.0)
            tests += power.size
            a, k = np.unravel_index(int(power.argmax()), power.shape)
            where = f"{what}{scores.names[int(a)]} has a period of {n / (1 + int(k)):.5g} rows{order.name}, of amplitude"
            worst = min(
                worst,
                Largest(
                    math.exp(-float(power[a, k])), math.sqrt(float(power[a, k]) / n), 0.0, where
                ),
            )
    return worst.as_test("periods", tests, n, math.sqrt(2.0))


def repeats_test(scores: Scores, independent: int) -> LawTest | None:
    """Test the number of repeated sizes in columns and in whole rows.

    A size is put into one of m equal cells, each wider than the grain. The i-th size falls into a
    taken cell with a chance of (i − 1)/m at most, so that the number of repeats has no heavier a
    tail than a binomial one with the mean chance (hoeffding1956).

    Parameters
    ----------
    scores : Scores
    independent : int
        Number of columns, from the first on, that are independent of one another.
    """
    n = len(scores.values)
    s = np.abs(2.0 * scores.values - 1.0)
    cells = np.floor(1.0 / np.maximum(8.0 * scores.grain, SMALLEST)).astype(np.int64)
    fine = np.flatnonzero(cells > 4 * n)
    tried = [
        ((s[:, a] * cells[a]).astype(np.int64), float(cells[a]), f"of {scores.names[a]}")
        for a in fine.tolist()
    ]
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
    p = (
        float(scipy.special.betainc(repeats, count - repeats + 1, min(1.0, chance)))
        if repeats >= count * chance + 1.0
        else 1.0
    )
    return Largest(p, repeats / count, chance, f"the share of sizes that come again, {which}, is")


def without_noise_test(scores: Scores) -> LawTest | None:
    """Test the row with least noise in each copy.

    The largest of a row's k sizes, to the power k, is uniform.
    """
    n, found = len(scores.values), []
    for group in np.unique(scores.groups).tolist():
        columns = np.flatnonzero((scores.groups == group) & (scores.grain < 2.0**-10))
        if columns.size:
            least = np.abs(2.0 * scores.values[:, columns] - 1.0).max(axis=1)
            size = max(float(least.min()), 8.0 * float(scores.grain[columns].max()))
            where = f"the least size in a row of {' and '.join(scores.names[c] for c in columns.tolist()[:2])} is"
            found.append(
                Largest(
                    min(1.0, n * size**columns.size), size, float(n) ** (-1.0 / columns.size), where
                )
            )
    return min(found).as_test("rows without noise", len(found), n, NO_SIZE) if found else None


# -- prediction
# ---------------------------------------------------------------------------------------------------------


def learned_test(scores: Scores, ranks: Array) -> LawTest | None:
    """Test whether a ridge regression predicts scores out of sample.

    Targets are scores, sizes and products. Features are originals, neighbours, earlier scores and
    the place in the file.

    It is fitted on every other block of rows. On the others, ``T = Σ s f / √(Σ f²)`` with
    predictions f is N(0, 1); for a product ``s = g_a g_b`` it is ``Σ s f / √(Σ (f g_a)²)``.
    """
    g, w, ranks = (
        np.clip(scores.g[:LEARNED_ROWS], -8.0, 8.0),
        scores.w[:LEARNED_ROWS],
        ranks[:LEARNED_ROWS],
    )
    n, d = g.shape
    if n < 2 * BLOCK:
        return None
    i, j = np.triu_indices(d, 1)
    targets = np.hstack([g, w, g[:, i] * g[:, j]])
    given = np.hstack([np.ones((n, 2 * d)), g[:, i]])
    labels = [*scores.names, *(f"the size of {name}" for name in scores.names)]
    labels += [
        f"the product of {scores.names[a]} and {scores.names[b]}"
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    features, row = dictionary(g, ranks), np.arange(n)
    fitted, tested = (row // BLOCK % 2 == 0) & (row % BLOCK >= LAGS), row // BLOCK % 2 == 1
    A, B = features[fitted], features[tested]
    mean, deviation = A.mean(axis=0), np.maximum(A.std(axis=0), 0.02)
    A, B = (A - mean) / deviation, (B - mean) / deviation
    values, vectors = np.linalg.eigh((A.T @ A).astype(np.float64))
    C = vectors.T @ (A.T @ np.clip(targets[fitted], -4.0, 4.0).astype(np.float32))
    penalties = (0.05, 0.5, 5.0)
    worst = Largest(1.0, 0.0, 0.0, "")
    for penalty in penalties:
        f = B @ (vectors @ (C / (np.maximum(values, 0.0) + penalty * len(A))[:, None])).astype(
            np.float32
        )
        V = np.square(f * given[tested]).sum(axis=0)
        T = (targets[tested] * f).sum(axis=0) / np.sqrt(
            np.maximum(V, np.square(f).sum(axis=0) / 4.0) + 1e-300
        )
        best = int(T.argmax())
        p = tail(float(T[best]))
        if p < worst.p:
            r = float(np.corrcoef(f[:, best], targets[tested][:, best])[0, 1])
            worst = Largest(
                p,
                r,
                0.0,
                f"{labels[best]} is predicted out of sample from originals, earlier rows and place: r =",
            )
    return worst.as_test("learned", len(penalties) * targets.shape[1], n, NO_SIZE)


def dictionary(g: Array, ranks: Array) -> NDArray[np.float32]:
    """Return features: originals, neighbours, earlier scores and place."""
    n, N = ranks.shape
    R, place = normal(ranks).astype(np.float32), np.arange(n, dtype=np.float32)[:, None] / n
    G = g.astype(np.float32)
    parts = [
        place,
        place**2,
        *(f(2.0 * np.pi * k * place) for k in (1, 2, 3, 5) for f in (np.sin, np.cos)),
        R,
    ]
    parts += [
        np.eye(BINS, dtype=np.float32)[np.minimum((column * BINS).astype(np.intp), BINS - 1)]
        for column in ranks.T
    ]
    parts += [R[:, [i]] * R[:, [j]] for i in range(N) for j in range(i + 1)]
    parts += [f(_shifted(G, k)) for k in range(1, LAGS + 1) for f in (_same, _square)]
    parts += [f(_shifted(R, k)) for k in (-3, -2, -1, 1, 2, 3) for f in (_same, _square)]
    return np.hstack(parts)


def _same(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values


def _square(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.minimum(values * values, np.float32(9.0)) - np.float32(1.0))


def _shifted(values: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """Return the values of k rows earlier, 0 beyond the ends."""
    found = np.zeros_like(values)
    if k > 0:
        found[k:] = values[:-k]
    else:
        found[:k] = values[-k:]
    return found
