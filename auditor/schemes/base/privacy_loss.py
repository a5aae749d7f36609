"""What one change of a record costs under each kind of noise, in the figures that differential privacy is stated in.

| symbol | meaning | source |
| --- | --- | --- |
| ``μ`` | copies of two records are no easier to tell apart than ``N(0, 1)`` and ``N(μ, 1)``: μ-Gaussian differential privacy | dong2022 |
| ``ε`` | largest log-ratio of chances of any output under two records | |
| ``(ε, δ)`` | ``P(E|x) ≤ e^ε P(E|x') + δ`` for every event E | dwork2006 |
| ``ρ`` | Rényi divergence of order α at most ``αρ`` for every α > 1: zero-concentrated differential privacy | bun2016 |
| ``F, z`` | distribution function of the noise, and ``z = Φ⁻¹(F)`` | |
| ``d`` | a change, in units of noise on a lattice | |

A value's noise is symmetric, and the ratio of its chances here and there grows with where it is seen: the best tests ask whether ``y ≥ t``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from auditor.process.deferred import scipy
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.types import Array

LARGEST = 1e12
"""An ε beyond it says nothing, and exceeds what roots are sought in."""
TAIL_STEPS = 40
"""Of Skellam noise: multiples of its unit beyond twelve deviations and the change itself that are still summed; the rest is below 1e-30."""
MOST_SUMMED = 10**5
"""Probabilities of Skellam noise that are summed; beyond, what μ bounds takes their place, which is then over by ``1/(3v)`` of it."""


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


def shift_mu(noise: NoiseDensity, change: float) -> float:
    """Return the least μ of which one value with Laplace, geometric or Skellam noise is μ-Gaussian; infinite from some 74 on.

    The test ``y ≥ t`` errs with probabilities ``1 − F(t)`` and ``F(t − Δ)``, so that ``μ = max_t z(t) − z(t − Δ)``; between two such tests
    errors run straight, and Gaussian ones below. As z is odd, and flatter the farther out (these tails are heavier than Gaussian), the
    largest is the one about the middle, ``t = Δ/2``.

    Parameters
    ----------
    noise : NoiseDensity
    change : float
        Δ ≥ 0 in data units; on a lattice a whole number of its units.

    Examples
    --------
    >>> round(shift_mu(NoiseDensity("laplace", 2**0.5), 1.0), 6)  # scale 1, ε = 1: −2 Φ⁻¹(e^{−1/2}/2)
    1.030064
    """
    ends = np.array([change, change])
    if noise.on_lattice:  # values t − ½ that lie between two of the lattice: t and d − t + 1
        d = round(change / noise.unit)
        ends = (np.array([d // 2, (d - 1) // 2]) * 2.0 + 1.0) * noise.unit
    return max(0.0, -float(scipy.special.ndtri(noise.cdf(-ends / 2.0)).sum()))


def geometric_rho(pure: float, rate: float = 0.0) -> float:
    """Return the least ρ of one value with geometric noise, ε-private at ``pure``, ``q = e^{−rate}``; of Laplace noise at rate 0.

    The divergence of order 1, ``ε − (1 − e^{−ε})·λ/sinh λ``: with growing order ``D_α/α`` falls. ``E e^{(α − ½)L}`` of the middle measure
    ``√(pq)`` is a sum of ``cosh`` whose weights never fall up to ``L = ε``, so that all its zeros are imaginary (Pólya 1918; Eneström and
    Kakeya on a lattice), and the logarithm of ``Π (1 + u/y_k²)`` is concave in ``u = (α − ½)²``; ``D_α/α`` is its slope from ``u = ¼``.
    """
    factor = -2.0 * rate * math.exp(-rate) / math.expm1(-2.0 * rate) if rate > 0.0 else 1.0  # sinh would overflow
    return pure + math.expm1(-pure) * factor


def laplace_epsilon(pure: float, delta: float) -> float:
    """Return the least ε at which one value with Laplace noise, ε-private at ``pure``, is (ε, δ): exactly ``pure + 2 ln(1 − δ)``."""
    return max(0.0, pure + 2.0 * math.log1p(-delta))


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Return an ε at which ρ-zero-concentrated differential privacy is (ε, δ): ``ρ + 2 √(ρ ln 1/δ)`` (bun2016, Proposition 1.3)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def is_summed(d: int, v: float) -> bool:
    """Whether probabilities of Skellam noise of variance v, changed by d units, are few enough to be summed."""
    return 24.0 * math.sqrt(v) + 3.0 * d <= MOST_SUMMED


def _skellam(d: int, v: float) -> tuple[Array, Array]:
    """Return ``ln P(k)`` and ``ln P(k − d)`` of Skellam noise of variance v, for all k that count."""
    reach = math.ceil(12.0 * math.sqrt(v)) + d + TAIL_STEPS
    k, noise = np.arange(-reach, reach + 1.0), NoiseDensity("skellam", math.sqrt(v))
    return noise.log_pdf(k), noise.log_pdf(k - d)


def skellam_rho(d: int, v: float) -> float:
    """Return the least ρ of one value with Skellam noise of variance v, changed by d units: the supremum of ``D_α/α`` over orders α.

    It is the limit at order 1, ``Σ_k P(k) ln P(k)/P(k − d)``: at each greater order there is less. No proof of that is known to us; it was
    computed for d from 1 to 30, v from 0.01 to 9,000 and orders to 100 (a test does so again). ``agarwal2021``'s bound lies above.
    """
    p, q = _skellam(d, v)
    return float(0.5 * ((np.exp(p) - np.exp(q)) * (p - q)).sum())  # of both directions, which are equal: no term is below 0


def skellam_delta(d: int, v: float, epsilon: float) -> float:
    """Return the least δ at which one value with Skellam noise, changed by d units, is (ε, δ): ``Σ_k (P(k − d) − e^ε P(k))₊``, exactly."""
    q, p = _skellam(d, v)
    return float(-(np.exp(p) * np.expm1(np.minimum(0.0, epsilon + q - p))).sum())


@lru_cache(maxsize=2**12)
def skellam_epsilon(d: int, v: float, delta: float) -> float:
    """Return the least ε ≥ 0 at which one value with Skellam noise, changed by d units, is (ε, δ); see ``skellam_delta``."""
    if skellam_delta(d, v, 0.0) <= delta:
        return 0.0
    high = concentrated_epsilon(skellam_rho(d, v), delta)
    return root(lambda epsilon: skellam_delta(d, v, epsilon) - delta, 0.0, high)
