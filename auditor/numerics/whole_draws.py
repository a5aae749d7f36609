"""Discrete random numbers from uniform and exponential ones.

Exact down to probabilities of about 2⁻⁵³, for any version of numpy. Numbers are whole float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeAlias

import numpy as np

from auditor.base import scipy
from auditor.base.types import Array, Indices

Places: TypeAlias = Indices

LARGEST_TABLE = 2.0**12
"""Largest variance for tabled Skellam numbers: some 1,200 probabilities.
"""


class Rng(Protocol):
    """A random stream: numpy's generator, or the cipher's."""

    def random(self, size: int, /) -> Array:
        """Numbers uniform on [0, 1), shape (size,)."""

    def standard_exponential(self, size: int, /) -> Array:
        """Exponential numbers of mean 1, shape (size,)."""


def geometric(rng: Rng, rate: float, size: int) -> Array:
    """Numbers with ``P(k) = (1 − q) q^k``, ``q = e^{−rate}``, (size,)."""
    return np.floor(rng.standard_exponential(size) / rate)


def poisson(rng: Rng, mean: Array) -> Array:
    """Poisson numbers, shape (n,), of means from 0 to 10⁶."""

    def log_p(k: Array, at: Places) -> Array:
        possible = np.maximum(k, 0.0)
        found = scipy.special.xlogy(possible, mean[at]) - scipy.special.gammaln(possible + 1.0)
        return np.where(k < 0, -np.inf, found - mean[at])

    return log_concave(rng, np.floor(mean), log_p)


def skellam(rng: Rng, v: float, size: int) -> Array:
    """Differences of two Poisson numbers of mean v/2, shape (size,).

    From a table.
    """
    total, guide = _skellam_table(v)
    u = rng.random(size)
    place = guide[(u * (len(guide) - 1)).astype(int)]
    todo = np.flatnonzero(total[place] <= u)
    # the guide is a lower bound of the place
    while todo.size:
        place[todo] += 1
        todo = todo[total[place[todo]] <= u[todo]]
    return (place + 1) // 2 * np.where(place % 2, 1.0, -1.0)


@lru_cache(maxsize=256)
def _skellam_table(v: float) -> tuple[Array, Places]:
    """Sums of ``e^{−v} I_k(v)`` over k = 0, 1, −1, 2 …, and a guide."""
    p = scipy.special.ive(np.arange(np.ceil(10.0 * np.sqrt(v)) + 40.0), v)
    total = np.cumsum(np.concatenate([p[:1], np.repeat(p[1:], 2)]))
    total = total[: int((total < total[-1]).sum()) + 1]
    cells = 4 * len(total)
    guide = np.searchsorted(total[:-1], np.arange(cells + 1) / cells, side="right")
    total[-1] = 1.0
    return total, guide


def log_concave(rng: Rng, start: Array, log_p: Callable[[Array, Places], Array]) -> Array:
    """Draws from n log-concave laws on the whole numbers, shape (n,).

    By rejection (Devroye 1987): of a mode m with ``p = P(m)``, ``P(m + x) ≤ p·min(1, e^{1 − p|x|})``.
    ``start`` is near each mode; ``log_p(k, at)`` has the log-probabilities at places ``at``.
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
