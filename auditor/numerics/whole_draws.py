"""Discrete random numbers from uniform and exponential ones.

Geometric, Poisson, binomial, Skellam and Bessel numbers, from any kind of stream.

| symbol | meaning | source |
| --- | --- | --- |
| ``u, w`` | uniform on [0, 1), multiples of 2⁻⁵³ | |
| ``E`` | exponential of mean 1 | |
| ``D(k, m)`` | ``k ln(k/m) + m − k``, the deviance in ``e^{−m} m^k/k! = e^{−D(k, m) − δ(k)}/√(2πk)`` | Loader 2000 |
| ``a, b, α, v_r`` | constants of the hat in transformed rejection | Hörmann 1993, PTRS and BTRS |

Without normal approximations. Errors are the 53 bits of uniform numbers, so inversion never returns
values of probability below some 2⁻⁵³, and the rounding of logarithms, a relative 1e-14. Both kinds
of stream use this code, so copies do not depend on numpy's version. Numbers are whole float64,
exact to 2⁵³.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.types import Array

Places: TypeAlias = NDArray[np.intp]

LARGE_MEAN = 10.0
"""Least mean for transformed rejection (Hörmann 1993); smaller ones use inversion."""
IMPOSSIBLE = 2.0**-60
"""Probability below which inversion stops: less than the resolution of 53 bits."""
LARGEST_TABLE = 2.0**12
"""Largest variance for tabled Skellam numbers: some 1,200 probabilities, computed in half a
millisecond.
"""
STIRLING_FROM = 16.0
"""Value from which five terms of Stirling's series are exact to 1e-15."""


class Rng(Protocol):
    """A random stream: numpy's generator, or the cipher's."""

    def random(self, size: int, /) -> Array:
        """Return numbers uniform on [0, 1), shape (size,)."""

    def standard_exponential(self, size: int, /) -> Array:
        """Return exponential numbers of mean 1, shape (size,)."""


def geometric(rng: Rng, rate: float, size: int) -> Array:
    """Return numbers with ``P(k) = (1 − q) q^k``, ``q = e^{−rate}``, (size,).

    The whole part of ``E/rate``.
    """
    return np.asarray(np.floor(rng.standard_exponential(size) / rate))


def log_poisson(k: Array, mean: Array | float) -> Array:
    """Return ``ln(e^{−m} m^k/k!)`` to a relative 1e-14.

    By Loader's saddle point, which avoids cancellation.

    Examples
    --------
    >>> float(log_poisson(np.array(2.0), 1.0))  # e^{−1}/2
    -1.6931471805599454
    """
    k, m = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(mean, dtype=np.float64))
    found, few = np.empty(k.shape), k < STIRLING_FROM
    if few.all():  # the common case for small means, without copies of its parts
        return np.asarray(scipy.special.xlogy(k, m) - m - scipy.special.gammaln(k + 1.0))
    found[few] = scipy.special.xlogy(k[few], m[few]) - m[few] - scipy.special.gammaln(k[few] + 1.0)
    n, m = k[~few], m[~few]
    r = 1.0 / (n * n)
    delta = (
        1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - r / 1188.0) * r) * r) * r
    ) / n
    found[~few] = -_deviance(n, m) - delta - 0.5 * np.log(2.0 * np.pi * n)
    return found


def _deviance(k: Array, m: Array) -> Array:
    """Return ``D(k, m) = (k − m)·v + 2k (artanh v − v)``.

    With ``v = (k − m)/(k + m)``; near the mean the bracket is its series.
    """
    v = (k - m) / (k + m)
    s = v * v
    series = np.full_like(v, 1.0 / 15.0)
    for power in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series *= s
        series += 1.0 / power
    bracket = v * s * series
    far = np.abs(v) > 0.1
    with np.errstate(divide="ignore"):  # a mean of 0: v = 1, and the probability 0
        bracket[far] = np.arctanh(v[far]) - v[far]
    return np.asarray((k - m) * v + 2.0 * k * bracket)


def poisson(rng: Rng, mean: Array) -> Array:
    """Return Poisson numbers of these means, shape (n,), from 0 to 2⁵²."""
    mean = np.asarray(mean, dtype=np.float64)
    large = mean >= LARGE_MEAN
    if large.all():
        return _poisson_rejected(rng, mean, len(mean))
    found = np.empty(len(mean))
    few = mean[~large]
    found[~large] = _inverted(rng, np.exp(-few), lambda k, at: few[at] / k)
    found[large] = _poisson_rejected(rng, mean[large], int(large.sum()))
    return found


def binomial(rng: Rng, n: Array, p: float) -> Array:
    """Return binomial numbers of n trials with probability p, shape (b,).

    n is whole, up to 2⁵³.
    """
    if p > 0.5:
        return np.asarray(n - binomial(rng, n, 1.0 - p))
    large = n * p >= LARGE_MEAN
    found = np.empty(len(n))
    few, odds = n[~large], p / (1.0 - p)
    found[~large] = _inverted(
        rng, np.exp(few * np.log1p(-p)), lambda k, at: (few[at] - (k - 1)) / k * odds
    )
    if large.any():
        found[large] = _binomial_rejected(rng, n[large], p)
    return found


def skellam(rng: Rng, v: float, size: int) -> Array:
    """Return differences of two Poisson numbers of mean v/2 each, (size,).

    By a table for small v.
    """
    if v > LARGEST_TABLE:
        return _poisson_rejected(rng, v / 2.0, size) - _poisson_rejected(rng, v / 2.0, size)
    total, guide = _skellam_table(v)
    u = rng.random(size)
    place = guide[(u * (len(guide) - 1)).astype(np.intp)]
    todo = np.flatnonzero(total[place] <= u)
    # the guide is a lower bound of the place: one in some ten needs a further step
    while todo.size:
        place[todo] += 1
        todo = todo[total[place[todo]] <= u[todo]]
    return np.asarray((place + 1) // 2 * np.where(place % 2, 1.0, -1.0))


@lru_cache(maxsize=256)
def _skellam_table(v: float) -> tuple[Array, Places]:
    """Return sums of ``e^{−v} I_k(v)`` over k = 0, 1, −1, 2 …, and a guide.

    The guide holds the first place for each of many equal cells of [0, 1]. Small probabilities are
    added last, and the last sum exceeds every uniform number.
    """
    p = scipy.special.ive(np.arange(np.ceil(10.0 * np.sqrt(v)) + 40.0), v)
    total = np.cumsum(np.concatenate([p[:1], np.repeat(p[1:], 2)]))
    total = total[: int((total < total[-1]).sum()) + 1]
    cells = 4 * len(total)
    guide = np.searchsorted(total[:-1], np.arange(cells + 1) / cells, side="right")
    total[-1] = 1.0
    return total, guide


def bessel(rng: Rng, difference: Array, v: float) -> Array:
    """Return the lesser of two Poisson numbers of mean v/2, shape (b,).

    Given their difference ``d ≥ 0``: ``P(n) ∝ (v/2)^{2n}/(n! (n + d)!)``. With
    ``m(m + d) = (v/2)²`` this is the Poisson probability of n at mean m, times the probability of
    ``n + d`` at mean ``m + d``, with equal modes in n. So n is drawn from the first, and accepted
    in proportion to the second.

    Source: Yuan & Kalbfleisch 2000 for the law; the rejection is ours.
    """
    mean = 0.5 * v * v / (np.hypot(difference, v) + difference)
    mode = np.floor(mean + difference)
    found = np.empty(len(difference))
    todo = np.arange(len(difference))
    while todo.size:
        d, m = difference[todo], mean[todo]
        n = poisson(rng, m)
        kept = np.log1p(-rng.random(len(n))) <= log_poisson(n + d, m + d) - log_poisson(
            mode[todo], m + d
        )
        found[todo[kept]] = n[kept]
        todo = todo[~kept]
    return found


def _inverted(rng: Rng, first: Array, ratio: Callable[[int, Places], Array]) -> Array:
    """Return numbers by inversion from 0 up.

    Given ``P(0)``, shape (n,), and the ratio ``P(k)/P(k − 1)`` at some of the n places.
    """
    left, p, k = rng.random(len(first)), first, 0
    found = np.zeros(len(first))
    at = np.arange(len(first))
    while at.size:
        found[at] = k
        k += 1
        following = p * ratio(k, at)
        further = (left >= p) & (following > IMPOSSIBLE)
        at, left, p = at[further], (left - p)[further], following[further]
    return found


def _poisson_rejected(rng: Rng, mean: Array | float, size: int) -> Array:
    """Return Poisson numbers of means ≥ 10 by rejection (Hörmann, PTRS)."""
    b = 0.931 + 2.53 * np.sqrt(mean)
    hat = _Hat(-0.059 + 0.02483 * b, b, mean, 0.43, 0.9277 - 3.6224 / (b - 2.0))

    def limit(k: Array, at: Places) -> Array:
        return np.asarray(
            log_poisson(k, _at(mean, at)) - np.log(1.1239 + 1.1328 / (_at(b, at) - 3.4))
        )

    return _rejected(rng, size, hat, limit)


def _binomial_rejected(rng: Rng, n: Array, p: float) -> Array:
    """Return binomial numbers, p ≤ ½, means ≥ 10, by rejection (BTRS)."""
    mean = n * p
    deviation = np.sqrt(mean * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    hat = _Hat(-0.0873 + 0.0248 * b + 0.01 * p, b, mean, 0.5, 0.92 - 4.2 / b)

    def limit(k: Array, at: Places) -> Array:
        n_, mean_ = n[at], mean[at]
        mode = np.floor((n_ + 1.0) * p)
        # C(n, k) p^k (1−p)^{n−k} is, up to a factor of n alone, a product of two Poisson
        # probabilities
        found = _log_two_poisson(k, n_ - k, mean_, n_ - mean_) - _log_two_poisson(
            mode, n_ - mode, mean_, n_ - mean_
        )
        return found - np.log((2.83 + 5.1 / b[at]) * deviation[at])

    return _rejected(rng, len(n), hat, limit)


def _log_two_poisson(k: Array, other: Array, mean_k: Array, mean_other: Array) -> Array:
    both = log_poisson(k, mean_k) + log_poisson(np.maximum(other, 0.0), mean_other)
    return np.asarray(np.where(other >= 0, both, -np.inf))


class _Hat(NamedTuple):
    """The hat of a transformed rejection: numbers, or of shape (n,).

    ``k = ⌊(2a/(½ − |u|) + b) u + mean + offset⌋`` of u uniform on ±½. If ``|u| ≤ 0.43``, its
    acceptance probability is at least ``squeeze``.
    """

    a: Array | float
    b: Array | float
    mean: Array | float
    offset: float
    squeeze: Array | float

    def at(self, places: Places) -> _Hat:
        return _Hat(*(_at(part, places) for part in self))


def _rejected(rng: Rng, size: int, hat: _Hat, limit: Callable[[Array, Places], Array]) -> Array:
    """Return numbers of shape (size,) by transformed rejection.

    k is accepted if ``w/(a/(½ − |u|)² + b)`` is at most ``e^limit(k)``; in eight of ten cases the
    squeeze decides without a logarithm.
    """
    found, todo, here = np.empty(size), np.arange(size), hat
    while todo.size:
        u, w = rng.random(len(todo)) - 0.5, 1.0 - rng.random(len(todo))
        edge = np.maximum(0.5 - np.abs(u), 2.0**-54)
        whole = np.floor(here.mean)  # added last: a large mean leaves no bits for the rest
        k = (
            np.floor((2.0 * here.a / edge + here.b) * u + ((here.mean - whole) + here.offset))
            + whole
        )
        kept = (edge >= 0.07) & (w <= here.squeeze)
        slow = np.flatnonzero(~kept & (k >= 0))
        a, b, *_ = here.at(slow)
        kept[slow] = np.log(w[slow] / (a / edge[slow] ** 2 + b)) <= limit(k[slow], todo[slow])
        found[todo[kept]] = k[kept]
        todo = todo[~kept]
        here = hat.at(todo)
    return found


def _at(part: Array | float, at: Places) -> Any:
    return part if np.ndim(part) == 0 else np.asarray(part)[at]
