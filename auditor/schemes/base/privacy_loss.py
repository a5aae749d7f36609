"""What one change of a record costs under each kind of noise, in the figures that differential privacy is stated in.

| symbol | meaning | source |
| --- | --- | --- |
| ``μ`` | copies of two records are no easier to tell apart than ``N(0, 1)`` and ``N(μ, 1)``: μ-Gaussian differential privacy | dong2022 |
| ``ε`` | largest log-ratio of chances of any output under two records | |
| ``(ε, δ)`` | ``P(E|x) ≤ e^ε P(E|x') + δ`` for every event E | dwork2006 |
| ``ρ`` | Rényi divergence of order α at most ``αρ`` for every α > 1: zero-concentrated differential privacy | bun2016 |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy  # its parts are imported when they are first used

from auditor.types import Array

LARGEST = 1e12
"""An ε beyond it says nothing, and exceeds what roots are sought in."""
TAIL_STEPS = 40
"""Of Skellam noise: multiples of its unit beyond twelve deviations and the change itself that are still summed; the rest is below 1e-30."""
ORDERS = np.array([*range(2, 64), *(round(2 ** (k / 4)) for k in range(24, 49))], dtype=np.float64)
"""Orders of Rényi divergence that an ε is sought over: whole ones, as the bound for Skellam noise is proved for these."""
MOST_SUMMED = 10**5
"""Probabilities of Skellam noise that are summed to find δ; beyond, Bessel functions lose digits, and a bound takes their place."""


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function is 0 that has another sign at either end, by Brent's method.

    Raises
    ------
    ValueError
        It has the same sign at both.
    """
    from scipy.optimize import brentq  # a fifth of a second to import, which audits without bounds would pay for

    return float(brentq(f, low, high, xtol=1e-13, rtol=1e-14))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the least δ at which μ-Gaussian differential privacy is (ε, δ): ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)``.

    Exact for Gaussian noise (balle2018, Theorem 8), and for whatever is μ-Gaussian an upper bound (dong2022, Corollary 2.13).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first, second = scipy.special.log_ndtr(mu / 2.0 - epsilon / mu), scipy.special.log_ndtr(-mu / 2.0 - epsilon / mu)
    return float(-np.exp(first) * np.expm1(min(0.0, epsilon + second - first)))  # a difference of two near numbers would lose a small δ


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least ε ≥ 0 at which μ-Gaussian differential privacy is (ε, δ), for δ in (0, 1)."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # Φ(μ/2 − ε/μ) ≥ δ(ε), and Φ(−z) ≤ e^{−z²/2}: at z = √(2 ln 1/δ) the first is at most δ.
    high = mu * (mu / 2.0 + math.sqrt(2.0 * math.log(1.0 / delta)))
    if not high <= LARGEST:
        return math.inf
    return root(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high)


def gaussian_of_pure(epsilon: float) -> float:
    """Return the least μ such that everything ε-differentially private is μ-Gaussian: ``2 Φ⁻¹(e^ε/(1 + e^ε))``.

    The trade-off of errors that ε allows runs in straight lines from (0, 1) and (1, 0) to ``a = 1/(1 + e^ε)`` on the diagonal. That of μ
    is convex and joins the same ends, so it lies below as soon as it passes through or below (a, a), that is ``Φ(−μ/2) ≤ a``.
    """
    return float(-2.0 * scipy.special.ndtri_exp(-np.logaddexp(0.0, epsilon)))


def laplace_epsilon(pure: float, delta: float) -> float:
    """Return the least ε at which one value with Laplace noise, ε-private at ``pure``, is (ε, δ): exactly ``pure + 2 ln(1 − δ)``."""
    return max(0.0, pure + 2.0 * math.log1p(-delta))


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Return an ε at which ρ-zero-concentrated differential privacy is (ε, δ): ``ρ + 2 √(ρ ln 1/δ)`` (bun2016, Proposition 1.3)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def skellam_renyi(d: Array, v: Array, order: Array) -> Array:
    """Return a bound on Rényi divergences, of whole orders ≥ 2, of values with Skellam noise of variances v, changed by d units each.

    ``D_α ≤ α d²/(2v) + min(((2α − 1) d² + 6d)/(4v²), 3d/(2v))`` (agarwal2021, Theorem 3.5).
    """
    return np.asarray(order * d * d / (2.0 * v) + np.minimum(((2.0 * order - 1.0) * d * d + 6.0 * d) / (4.0 * v * v), 1.5 * d / v))


def renyi_epsilon(order: Array, divergence: Array, delta: float) -> Array:
    """Return the ε at which a bound on one Rényi divergence gives (ε, δ), for each order (canonne2020, Proposition 12)."""
    return np.asarray(np.maximum(0.0, divergence + np.log1p(-1.0 / order) - np.log(delta * order) / (order - 1.0)))


def skellam_bound(changes: Sequence[tuple[float, float]], delta: float) -> float:
    """Return an ε at which several values with Skellam noise are (ε, δ); ``changes``: units and variance of each. Divergences add up."""
    d, v = np.array(changes, dtype=np.float64).T
    return float(renyi_epsilon(ORDERS, skellam_renyi(d, v, ORDERS[:, None]).sum(axis=1), delta).min())


def skellam_delta(steps: int, v: float, epsilon: float) -> float:
    """Return the least δ at which one value with Skellam noise, changed by d whole units, is (ε, δ): ``Σ_k (P(k) − e^ε P(k − d))₊``."""
    reach = math.ceil(12.0 * math.sqrt(v)) + abs(steps) + TAIL_STEPS
    k = np.arange(-reach, reach + 1)
    return float(np.maximum(0.0, scipy.special.ive(np.abs(k), v) - math.exp(epsilon) * scipy.special.ive(np.abs(k - steps), v)).sum())


def skellam_epsilon(steps: int, v: float, delta: float) -> float:
    """Return the least ε ≥ 0 at which one value with Skellam noise, changed by so many whole units, is (ε, δ); see ``skellam_delta``."""
    if skellam_delta(steps, v, 0.0) <= delta:
        return 0.0
    high = skellam_bound([(steps, v)], delta)
    if high > 700.0 or 24.0 * math.sqrt(v) + 3 * steps > MOST_SUMMED:  # e^ε overflows, or the sum is too long
        return high
    return root(lambda epsilon: skellam_delta(steps, v, epsilon) - delta, 0.0, high)
