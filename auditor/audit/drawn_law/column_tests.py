"""Tests of noise column by column, whatever its law was: what they find and their p-values stand in ``auditor.audit.drawn_law.rows``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.audit.drawn_law.chosen_rows import EPS
from auditor.audit.drawn_law.columns import DENSITY, Columns
from auditor.numerics.statistics import correlation_tail, tail, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array

CELLS = 256
"""Places at which a distribution is compared with the law's."""
MOST_CROWDED = 0.5
"""Share of honest values that may lie within reach of another by chance, for repeats to be told from them."""
MOST_SIDES = 6
"""Combinations that rows are compared in: of more a repeat might lie in two cells, for the bounds of one of them."""
MOST_BESIDE, MOST_OTHERS = 32, 4
"""Columns of noise, and attributes of other records, that are looked at: some ten milliseconds together."""
FAR = 6.0
"""Deviations at which scores of sizes are cut off: next to no noise of copies on a grid has a size of 0, whose score would be −37."""
NEAR = 8
"""Rows within which a record is near."""
SMALL = (2.0**-7, 2.0**-14, 2.0**-21, 2.0**-28, 2.0**-40)
LARGE = (2.0**-7, 2.0**-12)


def distribution_test(columns: Columns, law: NoiseLaw) -> LawTest | None:
    """Return the test of Kolmogorov's distances, each taken at ``CELLS`` places: no more than the whole distance, and no sort."""
    n, C = columns.v.shape
    cells = (np.minimum((column * CELLS).astype(np.intp), CELLS - 1) for column in columns.v.T)
    shares = np.array([np.bincount(column, minlength=CELLS) for column in cells]).cumsum(axis=1) / n
    gap = np.abs(shares - np.arange(1, CELLS + 1) / CELLS).max(axis=1)
    gap = np.clip(gap - DENSITY[law.distribution] * columns.grain, 0.0, None)
    place = int(gap.argmax())
    p = 2.0 * C * math.exp(-2.0 * n * float(gap[place]) ** 2)
    where = f"the largest distance from the law's distribution function, of {columns.names[place]}, is"
    return LawTest("distribution", min(1.0, p), C, n, float(gap[place]), 0.0, where)


def size_test(columns: Columns, law: NoiseLaw) -> LawTest | None:
    """Return the test of how many values are near 0, and of how many are far from it."""
    n, C = columns.v.shape
    blur = 2.0 * DENSITY[law.distribution] * columns.grain + 4 * EPS
    found: list[tuple[Array, NDArray[np.intp], float, str]] = []
    for share, met in zip(SMALL, below(columns.size, SMALL), strict=True):
        p = np.where(share >= 8.0 * blur, at_least(met, n, np.minimum(1.0, share + blur)), 1.0)
        found.append((p, met, share, "the share of values with next to no noise"))
    for share, met in zip(LARGE, below(1.0 - columns.size, LARGE), strict=True):
        more = at_least(met, n, np.minimum(1.0, share + blur))
        fewer = 1.0 - at_least(met + 1, n, np.maximum(0.0, share - blur))
        found.append((np.minimum(1.0, 2.0 * np.minimum(more, fewer)), met, share, "the share of values with most noise"))
    p, met, share, what = min(found, key=lambda one: float(one[0].min()))
    place, tests = int(p.argmin()), len(found) * C
    where = f"{what}, of {columns.names[place]}, is"
    return LawTest("size", min(1.0, tests * float(p[place])), tests, n, float(met[place] / n), share, where)


def below(values: Array, bounds: Sequence[float]) -> list[NDArray[np.intp]]:
    """Return how many values of each column are below each of some falling bounds, shapes (C,)."""
    n, C = values.shape
    place = np.flatnonzero(values.T < bounds[0])
    few, column = values.T.ravel()[place], place // n
    return [np.bincount(column[few < bound], minlength=C) for bound in bounds]


def at_least(met: NDArray[np.integer], n: int, chance: Array) -> Array:
    """Return ``P(B ≥ met)`` of binomial B."""
    chances = scipy.special.betainc(np.maximum(met, 1), np.maximum(n - met + 1, 1), chance)
    return np.asarray(np.where(met > n, 0.0, np.where(met > 0, chances, 1.0)))


def repeats_test(columns: Columns, joint: Columns | None, law: NoiseLaw) -> LawTest | None:
    """Return the test of how many values have the size of another one, in their column or anywhere among whitened combinations.

    Where rows are too many for the digits of a single value, as of copies in single precision, that of rows that are alike as a whole.
    """
    one = _repeats(columns.size, _reach(columns, law), columns.names)
    among = whole = None
    if joint is not None:  # its columns are independent of one another: all values in one
        every = "all combinations of copies and attributes"
        among = _repeats(joint.size.T.reshape(-1, 1), _reach(joint, law).max(keepdims=True), [every], 0.1)
        whole = _repeated_rows(joint, law) if one is None else None
    found = [test for test in (one, among, whole) if test is not None]
    if not found:
        return None
    worst, tests = min(found, key=lambda test: test.p), len(found)
    return worst._replace(p=min(1.0, tests * worst.p), tests=sum(test.tests for test in found), rows=len(columns.t))


def _repeats(size: Array, reach: Array, names: Sequence[str], crowded: float = 0.01) -> LawTest | None:
    """Return the test of how many values of a column have the size of another one of it, to as many digits as are known.

    Of honest values at most a share ``crowded`` does, or, where rows are many for their digits, as of copies on a public grid, up to
    ``MOST_CROWDED``. Of few the Poisson count is known, being at least that of the spacings. Of many the Chernoff bound of independent
    counts holds, as spacings of uniform values are negatively associated (Joag-Dev & Proschan 1983): each is within reach of the next
    with a chance of ``1 − (1 − reach)ⁿ ≤ n · reach``.
    """
    n = len(size)
    fine = np.flatnonzero(n * reach <= MOST_CROWDED)
    if not fine.size:
        return None
    met = np.array([np.count_nonzero(np.diff(_in_order(size[:, column])) <= reach[column]) for column in fine.tolist()])
    expected = float(n) ** 2 * reach[fine]
    few = np.where(met > 0, scipy.special.gammainc(np.maximum(met, 1), expected), 1.0)  # P(Poisson ≥ met)
    share, by_chance = met / n, expected / n
    divergence = scipy.special.rel_entr(share, by_chance) + scipy.special.rel_entr(1.0 - share, 1.0 - by_chance)
    apart = np.where(share > by_chance, divergence, 0.0)
    p = np.where(by_chance <= crowded, few, np.exp(-n * apart))
    place = int(p.argmin())
    where = f"the share of values that have the size of another, of {names[fine[place]]}, is"
    return LawTest("repeats", min(1.0, fine.size * float(p[place])), fine.size, n, float(met[place] / n), float(expected[place] / n), where)


def _in_order(shares: Array) -> Array:
    """Return values from 0 to 1 in order: by their first 16 bits, which are counted, and then they nearly are, for a quarter of a sort."""
    nearly = shares[(shares * (2**16 - 1)).astype(np.uint16).argsort(kind="stable")]
    nearly.sort(kind="stable")
    return nearly


def _repeated_rows(joint: Columns, law: NoiseLaw) -> LawTest | None:
    """Return the test of how many pairs of rows have the same sizes in several combinations, which are independent, at once.

    Sizes are uniform, so cells of one size are equally likely, and whether two rows share one is independent from pair to pair. The number
    of pairs that do has then a variance below its mean E, and ``P(count ≥ c) ≤ E/(c − E)²`` (Chebyshev). A cell is much wider than values
    are known to, so that few repeats lie in two.
    """
    n = len(joint.t)
    side = 4.0 * _reach(joint, law)
    order = np.argsort(side, kind="stable")[:MOST_SIDES]
    order = order[side[order] < 0.1]
    if not order.size:
        return None
    cells = np.floor(1.0 / side[order])
    alike = np.unique(np.floor(joint.size[:, order] * cells).astype(np.int64), axis=0, return_counts=True)[1].astype(np.float64)
    pairs, expected = float((alike * (alike - 1.0)).sum() / 2.0), n * (n - 1.0) / 2.0 / float(np.prod(cells))
    p = min(1.0, expected / (pairs - expected) ** 2) if pairs > expected else 1.0
    where = "the number of pairs of rows alike in all their noise, over that of rows, is"
    return LawTest("repeats", p, 1, n, pairs / n, expected / n, where)


def _reach(columns: Columns, law: NoiseLaw) -> Array:
    """Return how far apart the sizes of a column may be that are the same as far as is known."""
    return np.asarray(8.0 * DENSITY[law.distribution] * columns.grain + 8 * EPS)


def neighbours_test(g: Array, w: Array) -> LawTest | None:
    """Return the test of correlations with the row before: all pairs of columns, and sizes; pairs of rows that share none, both ways."""
    n = len(g) - len(g) % 2
    if n < 4:
        return None
    z = []
    (g_even, g_odd), (w_even, w_odd) = ([np.ascontiguousarray(one.T[:, start:n:2]).T for start in (0, 1)] for one in (g, w))
    for a, b, c, d in ((g_even, g_odd, w_even, w_odd), (g_odd[:-1], g_even[1:], w_odd[:-1], w_even[1:])):
        z += [(a.T @ b / _length(a)[:, None]).ravel(), np.einsum("nc,nc->c", c, d) / _length(c)]
    return normal_test("neighbouring rows", np.concatenate(z), n, "a correlation of a row's noise with that of the row before is")


def on_the_data_test(x: Array, g: Array, w: Array) -> LawTest | None:
    """Return the test of correlations of noise, and of its size, with where a record lies, how far out, and over all attributes.

    Any function of the data will do; these are bounded, so that no outlier drowns the others.
    """
    side = _sides(x)
    a = _varied(np.hstack([side, np.abs(side), np.abs(side).sum(axis=1, keepdims=True)]))
    if a is None:
        return None
    z = np.concatenate([(a.T @ g).ravel(), (a.T @ w).ravel()])
    return normal_test("dependence on the data", z, len(x), "a correlation of the noise, or of its size, with where a record lies is")


def other_rows_test(x: Array, g: Array, w: Array, names: Sequence[str]) -> LawTest | None:
    """Return the test of correlations of noise with where other records lie, and of its size with how far out, at every distance of rows.

    ``Σ_i a_(i+h) g_i / ‖a‖`` is N(0, 1) for every function a of the data, as are rows g; at all h by Fourier transforms, of rows laid in a
    circle with 0 between the last and the first, which makes the variance no larger. Half of the chance of a false alarm is that of the
    ``NEAR`` rows either way, of which alone the number of tests says what could hide.

    Parameters
    ----------
    x : ndarray of shape (n, N)
    g, w : ndarrays of shape (n, C)
        Scores of noise and of its size, of columns with the ``names``; looked at are ``MOST_BESIDE`` at most, evenly among all.
    names : sequence of str
    """
    n, side, chosen = len(x), _sides(x), _evenly(len(names))
    length = scipy.fft.next_fast_len(n, real=True)
    near = np.abs(np.arange(length) - length / 2) >= length / 2 - NEAR  # before, or further on
    tests, most = np.zeros(2, dtype=np.intp), [(0.0, 0, 0), (0.0, 0, 0)]
    for data, noise in ((side[:, :MOST_OTHERS], g), (np.abs(side).sum(axis=1, keepdims=True), np.clip(w, -FAR, FAR))):
        a = _varied(data)
        if a is None:
            continue
        A, Z = (scipy.fft.rfft(np.ascontiguousarray(one.T, dtype=np.float32), length) for one in (a, noise[:, chosen]))
        for column, of_noise in zip(chosen.tolist(), Z, strict=True):
            z = np.abs(scipy.fft.irfft(A * of_noise.conj(), length)).max(axis=0)
            for k, lags in enumerate((near, ~near)):
                lag = int(np.where(lags, z, -1.0).argmax())
                most[k] = max(most[k], (float(z[lag]), column, lag))
                tests[k] += len(A) * np.count_nonzero(lags)
    if not tests.any():
        return None
    p, (z_most, column, lag) = min((4.0 * of * tail(one[0]), one) for one, of in zip(most, tests.tolist(), strict=True) if of)
    away = f"{lag} rows further on" if 2 * lag <= length else f"{length - lag} rows before"
    where = f"a correlation of the noise of {names[column]}, or of its size, with where the record {away} lies is"
    return LawTest("data of other rows", min(1.0, p), 2 * int(tests[0]), n, z_most / math.sqrt(n), 0.0, where)


def pairs_on_the_data_test(x: Array, e: Array) -> LawTest | None:
    """Return the test of correlations of products of two combinations' noise with where a record lies.

    Each noise may be independent of the data, and of the other, and the sign of their product a record's side of the mean: whoever holds
    both copies sees by their difference which. Given the data and ``e_i``, ``Σ a e_i e_k / √(Σ a² e_i²)`` is N(0, 1).

    Parameters
    ----------
    x : ndarray of shape (n, N)
    e : ndarray of shape (n, C)
        Scores of combinations that are independent by law.
    """
    a, C = _varied(_sides(x)[:, :MOST_OTHERS]), e.shape[1]
    if a is None or C < 2:
        return None
    z = []
    for column in a.T:
        ae = e * column[:, None]
        z.append(((ae.T @ e) / _length(ae)[:, None])[np.triu_indices(C, 1)])
    where = "a correlation of where a record lies with the product of noise in two copies or attributes is"
    return normal_test("pairs and the data", np.concatenate(z), len(x), where)


def waves_test(x: Array, v: Array, names: Sequence[str], attributes: Sequence[str]) -> LawTest:
    """Return the test that noise makes no wave along the rows, in their order or in that of an attribute.

    Noise that is a function of the record, or of the row's number, is random to every other test if only it turns fast enough: as many
    times as a tenth of the rows, say. ``t = |Σ exp(2πi (v − f r))|² / n``, r a row's place in an order, has the bound of ``wave_tail``
    at any frequency f, as phases v are uniform and independent given the order.

    Parameters
    ----------
    x : ndarray of shape (n, N)
    v : ndarray of shape (n, C)
        Uniform by law, of columns with the ``names``; looked at are ``MOST_BESIDE`` at most, evenly among all.
    names, attributes : sequences of str
    """
    n, chosen = len(x), _evenly(len(names))
    length = scipy.fft.next_fast_len(n)
    angle = (2.0 * np.pi * v.T[chosen]).astype(np.float32)
    wave = np.cos(angle) + 1j * np.sin(angle)
    orders = [("the rows", np.arange(n))]
    orders += [(repr(name), np.argsort(column)) for name, column in zip(attributes[:MOST_OTHERS], x.T[:MOST_OTHERS], strict=True)]
    worst = (0.0, "", "")
    for name, order in orders:
        t = np.abs(scipy.fft.fft(wave[:, order], length)).max(axis=1)
        column = int(t.argmax())
        worst = max(worst, (float(t[column]) ** 2 / n, names[chosen[column]], name))
    t_most, noise, along = worst
    tests = len(orders) * len(chosen) * length
    where = f"the length of a wave that the noise of {noise} makes along {along} is"
    return LawTest("waves", min(1.0, tests * wave_tail(t_most)), tests, n, math.sqrt(t_most / n), 0.0, where, math.sqrt(2.0))


def _sides(x: Array) -> Array:
    """Return where records lie, bounded: ``d/(d̄ + |d|)`` of the distance ``d`` from the mean, ``d̄`` its mean size; shape (n, N)."""
    d = x - x.mean(axis=0)
    usual = np.abs(d).mean(axis=0)
    return np.asarray(d / (np.where(usual > 0, usual, 1.0) + np.abs(d)))


def _evenly(columns: int) -> NDArray[np.intp]:
    """Return the places of ``MOST_BESIDE`` of so many columns at most, evenly among all."""
    return np.linspace(0, columns - 1, min(columns, MOST_BESIDE)).round().astype(np.intp)


def _varied(a: Array) -> Array | None:
    """Return the columns that vary, of mean 0 and length 1; None of none."""
    a = a - a.mean(axis=0)
    norm = np.sqrt(np.square(a).sum(axis=0))
    varied = norm > 1e-9 * math.sqrt(len(a))
    return a[:, varied] / norm[varied] if varied.any() else None


def _length(columns: Array) -> Array:
    """Return the length of each column; of a copy without any noise 1: it is 0, where 0/0 would be larger than no bound."""
    length = np.sqrt(np.einsum("nc,nc->c", columns, columns))
    return np.where(length > 0, length, 1.0)


def normal_test(statistic: str, z: Array, n: int, where: str) -> LawTest:
    """Return the test that each of these is N(0, 1), stated as a correlation."""
    worst = float(np.abs(z).max())
    return LawTest(statistic, min(1.0, 2.0 * z.size * tail(worst)), z.size, n, worst / math.sqrt(n), 0.0, where)


def joint_test(u: Array, w: Array) -> LawTest | None:
    """Return the test that whitened noise, and its size, of one combination foretells no other's."""
    n, C = u.shape
    if C < 2 or n < 4:
        return None
    of_u, of_w = _length(u), _length(w)
    r = np.stack([w.T @ w / np.outer(of_w, of_w), u.T @ w / np.outer(of_u, of_w)])
    r[:, np.arange(C), np.arange(C)] = 0.0
    worst = min(float(np.abs(r).max()), 1.0 - 1e-15)
    tests = C * (C - 1) // 2 + C * (C - 1)
    p = min(1.0, 2.0 * tests * correlation_tail(worst, n))
    return LawTest("joint law", p, tests, n, worst, 0.0, "a correlation of the sizes of noise in two copies or attributes is")
