"""Discrete random numbers from uniform and exponential ones.

Geometric, Poisson, Skellam and other log-concave numbers, from any kind of stream.

| symbol | meaning | source |
| --- | --- | --- |
| ``u, w`` | uniform on [0, 1), multiples of 2⁻⁵³ | |
| ``E`` | exponential of mean 1 | |
| ``D(k, m)`` | ``k ln(k/m) + m − k``, the deviance in ``e^{−m} m^k/k! = e^{−D(k, m) − δ(k)}/√(2πk)`` | Loader 2000 |
| ``a, b, v_r`` | constants of the hat in transformed rejection | Hörmann 1993, PTRS |

Without normal approximations. Errors are the 53 bits of uniform numbers, so inversion never returns
values of probability below some 2⁻⁵³, and the rounding of logarithms, a relative 1e-14. Both kinds
of stream use this code, so copies do not depend on numpy's version. Numbers are whole float64,
exact to 2⁵³.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array
from auditor.process.deferred import scipy

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
    return np.floor(rng.standard_exponential(size) / rate)


def log_poisson(k: Array, mean: Array) -> Array:
    """Return ``ln(e^{−m} m^k/k!)`` to a relative 1e-14.

    By Loader's saddle point, which avoids cancellation.

    Examples
    --------
    >>> float(log_poisson(np.array(2.0), np.array(1.0)))  # e^{−1}/2
    -1.6931471805599454
    """
    few, n = k < STIRLING_FROM, np.maximum(k, STIRLING_FROM)
    r = 1.0 / (n * n)
    delta = (
        1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - r / 1188.0) * r) * r) * r
    ) / n
    direct = scipy.special.xlogy(k, mean) - mean - scipy.special.gammaln(k + 1.0)
    by_saddle_point = -_deviance(n, mean) - delta - 0.5 * np.log(2.0 * np.pi * n)
    return np.where(few, direct, by_saddle_point)


def _deviance(k: Array, m: Array) -> Array:
    """Return ``D(k, m) = (k − m)·v + 2k (artanh v − v)``.

    With ``v = (k − m)/(k + m)``; near the mean the bracket is its series.
    """
    v = (k - m) / (k + m)
    near = np.abs(v) <= 0.1
    s = np.where(near, v * v, 0.0)
    series = v * s * np.polyval([1.0 / power for power in range(15, 1, -2)], s)
    with np.errstate(divide="ignore"):  # a mean of 0: v = 1, and the probability 0
        bracket = np.where(near, series, np.arctanh(v) - v)
    return (k - m) * v + 2.0 * k * bracket


def poisson(rng: Rng, mean: Array) -> Array:
    """Return Poisson numbers of these means, shape (n,), from 0 to 2⁵²."""
    large = mean >= LARGE_MEAN
    found = np.empty(len(mean))
    found[~large] = _poisson_inverted(rng, mean[~large])
    found[large] = _poisson_rejected(rng, mean[large])
    return found


def skellam(rng: Rng, v: float, size: int) -> Array:
    """Return differences of two Poisson numbers of mean v/2 each, (size,).

    By a table for small v.
    """
    if v > LARGEST_TABLE:
        mean = np.full(size, v / 2.0)
        return _poisson_rejected(rng, mean) - _poisson_rejected(rng, mean)
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


def log_concave(rng: Rng, start: Array, log_p: Callable[[Array, Places], Array]) -> Array:
    """Return draws from n log-concave laws on the whole numbers, shape (n,).

    By rejection (Devroye 1987): of a mode m with ``p = P(m)``,
    ``P(m + x) ≤ p·min(1, e^{1 − p|x|})``. About five rounds.

    Parameters
    ----------
    start : ndarray of shape (n,)
        A whole number near each mode.
    log_p : callable
        ``log_p(k, at)``: log-probabilities of numbers k under the laws at places ``at``.
    """
    mode, every = start.copy(), np.arange(len(start))
    for step in (1.0, -1.0):
        climbing = every
        while climbing.size:
            here = mode[climbing]
            higher = log_p(here + step, climbing) > log_p(here, climbing)
            climbing = climbing[higher]
            mode[climbing] += step
    top = log_p(mode, every)
    p, found, todo = np.exp(top), np.empty(len(start)), every
    while todo.size:
        w, n = 1.0 + p[todo] / 2.0, len(todo)
        y = np.where(
            rng.random(n) * (1.0 + w) < w, rng.random(n) * w, w + rng.standard_exponential(n)
        )
        side = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        k = mode[todo] + side * np.rint(y / p[todo])
        hat = np.minimum(0.0, w - y) + top[todo]
        kept = np.log1p(-rng.random(n)) + hat <= log_p(k, todo)
        found[todo[kept]] = k[kept]
        todo = todo[~kept]
    return found


def _poisson_inverted(rng: Rng, mean: Array) -> Array:
    """Return Poisson numbers of small means by inversion from 0 up."""
    left, p, k = rng.random(len(mean)), np.exp(-mean), 0
    found, at = np.zeros(len(mean)), np.arange(len(mean))
    while at.size:
        found[at] = k
        k += 1
        following = p * mean[at] / k
        further = (left >= p) & (following > IMPOSSIBLE)
        at, left, p = at[further], (left - p)[further], following[further]
    return found


def _poisson_rejected(rng: Rng, mean: Array) -> Array:
    """Return Poisson numbers of means ≥ 10 by rejection (Hörmann 1993, PTRS).

    ``k = ⌊(2a/(½ − |u|) + b) u + m + 0.43⌋`` of u uniform on ±½ is accepted if
    ``w/(a/(½ − |u|)² + b)`` is at most ``P(k)/(1.1239 + 1.1328/(b − 3.4))``. If ``|u| ≤ 0.43``,
    that probability is at least ``v_r``: in eight of ten cases without a logarithm.
    """
    found, todo, m = np.empty(len(mean)), np.arange(len(mean)), mean
    while todo.size:
        b = 0.931 + 2.53 * np.sqrt(m)
        a, v_r = -0.059 + 0.02483 * b, 0.9277 - 3.6224 / (b - 2.0)
        u, w = rng.random(len(todo)) - 0.5, 1.0 - rng.random(len(todo))
        edge = np.maximum(0.5 - np.abs(u), 2.0**-54)
        whole = np.floor(m)  # added last: a large mean leaves no bits for the rest
        k = np.floor((2.0 * a / edge + b) * u + ((m - whole) + 0.43)) + whole
        kept = (edge >= 0.07) & (w <= v_r)
        slow = np.flatnonzero(~kept & (k >= 0))
        a, b, edge = a[slow], b[slow], edge[slow]
        least = np.log(w[slow] * (1.1239 + 1.1328 / (b - 3.4)) / (a / edge**2 + b))
        kept[slow] = least <= log_poisson(k[slow], m[slow])
        found[todo[kept]] = k[kept]
        todo, m = todo[~kept], m[~kept]
    return found
