"""Distribution of one attribute's noise in one copy.

| distribution | density or probability at t | excess kurtosis | source |
| --- | --- | --- | --- |
| ``gaussian`` | ``φ(t/s)/s`` | 0 | |
| ``uniform`` | ``1/(2√3 s)`` on ±√3·s | −6/5 | agrawal2000 |
| ``laplace`` | ``e^{−|t|/b}/(2b)``, ``s² = 2b²`` | 3 | |
| ``geometric`` | ``(1 − q)/(1 + q)·q^{|k|} = tanh(λ/2)·e^{−λ|k|}``, ``v = 2q/(1 − q)²`` | ``3 + 1/v`` | ghosh2009 |
| ``skellam`` | ``e^{−v} I_k(v)`` | ``1/v`` | skellam1946 |

``s``: standard deviation, data units. ``geometric`` and ``skellam`` lie on a lattice: ``t =
k·unit`` with k whole, and ``v = (s/unit)²``. All are symmetric about 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from auditor.base.types import Array
from auditor.process.deferred import scipy

Distribution = Literal["gaussian", "uniform", "laplace", "geometric", "skellam"]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)
EXACT_TAIL = 1e4
"""Variance up to which Skellam tails are exact; beyond, relative error 1e-7 to 20 deviations.
"""
SQRT3 = float(np.sqrt(3.0))
LATTICE: frozenset[Distribution] = frozenset({"geometric", "skellam"})
"""Distributions on a lattice."""


def geometric_rate(v: float) -> float:
    """``λ = −ln q`` of two-sided geometric noise of variance v > 0.

    Solves ``v = 2q/(1 − q)² = 1/(2 sinh²(λ/2))``, in squared units, for any q.

    Examples
    --------
    >>> round(float(np.exp(-geometric_rate(4.0))), 12)
    0.5
    """
    return float(2.0 * np.arcsinh(1.0 / np.sqrt(2.0 * v)))


@dataclass(frozen=True)
class NoiseDensity:
    """Noise of one attribute.

    Attributes
    ----------
    distribution
        One of ``DISTRIBUTIONS``.
    std
        Standard deviation, in data units; > 0.
    unit
        Lattice step of lattice noise, in data units.
    """

    distribution: Distribution
    std: float
    unit: float = 1.0

    @property
    def on_lattice(self) -> bool:
        """Whether values are whole multiples of ``unit``."""
        return self.distribution in LATTICE

    @property
    def reach(self) -> float:
        """Half the width of the uniform distribution, ``√3·std``."""
        return SQRT3 * self.std

    @property
    def excess_kurtosis(self) -> float:
        """Fourth cumulant over the squared variance."""
        return excess_kurtosis(self.distribution, (self.std / self.unit) ** 2)

    def pdf(self, t: Array) -> Array:
        """Density at t, or the probability of t on a lattice."""
        return np.exp(self.log_pdf(t))

    def log_pdf(self, t: Array) -> Array:
        """Logarithm of ``pdf``; −∞ only where noise is impossible."""
        with np.errstate(divide="ignore", over="ignore"):
            return _LOG_DENSITY[self.distribution](
                np.asarray(t, dtype=np.float64), self.std, self.unit
            )

    def log_pdf_of_differences(self, y: Array, x: Array) -> Array:
        """``log_pdf(y − x)``, broadcast; exact on a lattice."""
        if self.distribution == "skellam":
            k_y, k_x = y / self.unit, x / self.unit
            if (k_y == np.rint(k_y)).all() and (k_x == np.rint(k_x)).all():
                return log_skellam(k_y - k_x, (self.std / self.unit) ** 2)
        return self.log_pdf(y - x)

    def cdf(self, t: Array) -> Array:
        """Distribution function at t, with half of a lattice point."""
        if self.distribution == "uniform":
            return np.clip(0.5 + 0.5 * t / self.reach, 0.0, 1.0)
        tail = self._tail(t)
        return np.where(t > 0, 1.0 - tail, tail)

    def likelihood(self, y: Array, edges: Array, midpoints: bool = False) -> Array:
        """Likelihood of values given bins, shape (len(y), B).

        Bin averages, or at midpoints.
        """
        if midpoints:
            return self.pdf(y[:, None] - (edges[:-1] + edges[1:]) / 2.0)
        found = self.between(y[:, None] - edges)
        found /= np.diff(edges)
        return found

    def between(self, t: Array) -> Array:
        """Probability between neighbours of t, along the last axis."""
        if self.distribution == "uniform":
            return -np.diff(self.cdf(t), axis=-1)
        # above the mean a difference of two F near 1 would round to 0
        tail = np.copysign(self._tail(t), t)
        found = tail[..., 1:] - tail[..., :-1]
        found += ~np.signbit(t[..., :-1]) & np.signbit(t[..., 1:])
        return found

    def _tail(self, t: Array) -> Array:
        return _TAIL[self.distribution](np.abs(t), self.std, self.unit)


def excess_kurtosis(distribution: Distribution, v: float) -> float:
    """Excess kurtosis at variance ``v``, in squared lattice units."""
    return {
        "gaussian": 0.0,
        "uniform": -6.0 / 5.0,
        "laplace": 3.0,
        "geometric": 3.0 + 1.0 / v,
        "skellam": 1.0 / v,
    }[distribution]


def _log_gaussian(t: Array, s: float, unit: float) -> Array:
    z = t / s
    return -0.5 * z * z - np.log(s * np.sqrt(2.0 * np.pi))


def _log_laplace(t: Array, s: float, unit: float) -> Array:
    b = s / np.sqrt(2.0)
    return -np.abs(t) / b - np.log(2.0 * b)


def _log_geometric(t: Array, s: float, unit: float) -> Array:
    k, on = _multiples(t, unit)
    rate = geometric_rate((s / unit) ** 2)
    return np.where(on, np.log(np.tanh(rate / 2.0)) - rate * np.abs(k), -np.inf)


FAR = 1e4
"""Size of (k, v) from which ``I_k(v)`` is its uniform expansion, relative error 0.1/(k² + v²)^1.5;
scipy's fails there.
"""


def _log_skellam(t: Array, s: float, unit: float) -> Array:
    k, on = _multiples(t, unit)
    return np.where(on, log_skellam(k, (s / unit) ** 2), -np.inf)


MOST_TABLED = 2**21
"""Entries of the largest table."""
WORTH_A_TABLE = 64
"""Most table entries per value looked up in one call.
"""


@lru_cache(maxsize=8)
def _skellam_table(v: float, size: int) -> Array:
    found = _log_bessel(np.arange(float(size)), v)
    found.setflags(write=False)
    return found


def log_skellam(k: Array, v: float) -> Array:
    """``log e^{−v} I_k(v)`` for whole k."""
    k = np.abs(k)
    most = float(k.max(initial=0.0)) + 1.0
    if most <= min(MOST_TABLED, WORTH_A_TABLE * k.size):
        return np.take(_skellam_table(v, 1 << int(most).bit_length()), k.astype(np.intp))
    return _log_bessel(k, v)


def _log_bessel(k: Array, v: float) -> Array:
    """``log e^{−v} I_k(v)``; for large k Debye's expansion (DLMF 10.41.3)."""
    R = np.hypot(k, v)
    p2 = (k / R) ** 2
    U_1 = (3.0 - 5.0 * p2) / (24.0 * R)
    U_2 = (81.0 - 462.0 * p2 + 385.0 * p2 * p2) / (1152.0 * R * R)
    exponent = k * k / (R + v) - k * np.arcsinh(k / v)
    far = exponent - 0.5 * np.log(2.0 * np.pi * R) + np.log1p(U_1 + U_2)
    if v >= FAR:
        return far
    with np.errstate(divide="ignore"):
        near = np.log(scipy.special.ive(k, v))
    return np.where((R < FAR) & np.isfinite(near), near, far)


def _each_once(function: Callable[[Array], Array], k: Array) -> Array:
    most = float(k.max(initial=0.0)) + 1.0
    return function(np.arange(most))[k.astype(np.intp)] if k.size > most else function(k)


def _multiples(t: Array, unit: float) -> tuple[Array, Array]:
    scaled = t / unit
    k = np.rint(scaled)
    scaled -= k
    return k, np.asarray(np.abs(scaled) < 1e-6 * np.maximum(1.0, np.abs(k)))


def _geometric_tail(t: Array, s: float, unit: float) -> Array:
    """``P(K > k) = q^{k+1}/(1 + q)``, plus ``P(K = k)/2`` on the lattice."""
    k, on = _multiples(t, unit)
    rate = geometric_rate((s / unit) ** 2)
    beyond = np.exp(-rate * (np.where(on, k, np.floor(t / unit)) + 1.0)) / (1.0 + np.exp(-rate))
    return beyond + 0.5 * np.exp(_log_geometric(t, s, unit))


def _skellam_tail(t: Array, s: float, unit: float) -> Array:
    """``P(K > k)`` by non-central χ² (Johnson 1959)."""
    k, on = _multiples(t, unit)
    v = (s / unit) ** 2
    at = np.where(on, k, np.floor(t / unit))
    if v > EXACT_TAIL:
        return _saddle_point_tail(at, v) - np.where(
            on, 0.0, 0.5 * np.exp(_log_skellam(at * unit, s, unit))
        )
    return _each_once(
        lambda k: np.asarray(scipy.special.chndtr(v, 2.0 * (k + 1.0), v)), at
    ) + 0.5 * np.exp(_log_skellam(t, s, unit))


def _saddle_point_tail(k: Array, v: float) -> Array:
    """``P(K > k) + P(K = k)/2`` for k ≥ 0 by the saddle point.

    ``Φ(−w) + φ(w)·(coth(s/2)/(2√κ) − 1/w)`` with ``s = arsinh(k/v)``, ``κ = √(k² + v²)``: the mean of the
    lattice forms of Lugannani & Rice 1980 for ``P(K ≥ k)`` and ``P(K > k)``.
    """
    w = _signed_root(k, v)
    far = np.maximum(w, 1e-3)  # closer to 0 both terms equal 1 up to a share of w/v
    add = (
        0.5 / (np.tanh(np.arcsinh(k / v) / 2.0) + (w < 1e-3)) / np.sqrt(np.hypot(k, v)) - 1.0 / far
    )
    return scipy.special.ndtr(-w) + np.where(
        w < 1e-3, 0.0, np.exp(-0.5 * w * w) / np.sqrt(2.0 * np.pi) * add
    )


def _signed_root(k: Array, v: float) -> Array:
    """``w = √(2(k·arsinh(k/v) + v − √(k² + v²)))`` for k ≥ 0."""
    return np.sqrt(2.0 * np.clip(k * np.arcsinh(k / v) - k * k / (np.hypot(k, v) + v), 0.0, None))


_LOG_DENSITY: dict[Distribution, Callable[[Array, float, float], Array]] = {
    "gaussian": _log_gaussian,
    "uniform": lambda t, s, unit: np.where(
        np.abs(t) <= SQRT3 * s, -np.log(2.0 * SQRT3 * s), -np.inf
    ),
    "laplace": _log_laplace,
    "geometric": _log_geometric,
    "skellam": _log_skellam,
}
_TAIL: dict[Distribution, Callable[[Array, float, float], Array]] = {
    "gaussian": lambda t, s, unit: np.asarray(scipy.special.ndtr(t / -s)),
    "laplace": lambda t, s, unit: np.asarray(0.5 * np.exp(-t / (s / np.sqrt(2.0)))),
    "geometric": _geometric_tail,
    "skellam": _skellam_tail,
}
