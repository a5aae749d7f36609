"""Privacy loss of one change of a record, for each kind of noise.

| symbol | meaning | source |
| --- | --- | --- |
| ``μ`` | distinguishing two records is as hard as ``N(0, 1)`` from ``N(μ, 1)``, or harder: μ-Gaussian differential privacy | dong2022 |
| ``ε`` | largest log-ratio of the probabilities of any output under two records | |
| ``(ε, δ)`` | ``P(E|x) ≤ e^ε P(E|x') + δ`` for every event E | dwork2006 |
| ``ρ`` | Rényi divergence of order α at most ``αρ`` for every α > 1: zero-concentrated differential privacy | bun2016 |
| ``F, z`` | distribution function of the noise, and ``z = Φ⁻¹(F)`` | |
| ``d`` | a change, in units of noise on a lattice | |

A value's noise is symmetric and its likelihood ratio is monotone, so the most powerful tests have
the form ``y ≥ t``.
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
"""Largest ε searched for; larger values carry no information."""
TAIL_STEPS = 40
"""Lattice points summed beyond twelve deviations and the change, for Skellam noise; the rest is
below 1e-30.
"""
MOST_SUMMED = 10**5
"""Most Skellam probabilities summed; beyond, the μ bound is used, which is larger by a share of
``1/(3v)``.
"""


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that changes sign, by Brent's method.

    Raises
    ------
    ValueError
        Both ends have equal signs.
    """
    # a fifth of a second to import, and audits without bounds do not need it
    from scipy.optimize import brentq

    return float(brentq(f, low, high, xtol=1e-13, rtol=1e-14))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the least δ at which μ-Gaussian privacy is (ε, δ).

    ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)``: exact for Gaussian noise (balle2018, Theorem 8), else an
    upper bound for every μ-Gaussian mechanism (dong2022, Corollary 2.13).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    first = scipy.special.log_ndtr(mu / 2.0 - epsilon / mu)
    second = scipy.special.log_ndtr(-mu / 2.0 - epsilon / mu)
    # a difference of two near numbers would lose a small δ
    return float(-np.exp(first) * np.expm1(min(0.0, epsilon + second - first)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least ε ≥ 0 at which μ-Gaussian privacy is (ε, δ), 0 < δ < 1."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    # Φ(μ/2 − ε/μ) ≥ δ(ε), and Φ(−z) ≤ e^{−z²/2}: at z = √(2 ln 1/δ) the first is at most δ.
    high = mu * (mu / 2.0 + math.sqrt(2.0 * math.log(1.0 / delta)))
    if not high <= LARGEST:
        return math.inf
    return root(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high)


def shift_mu(noise: NoiseDensity, change: float) -> float:
    """Return the least μ of one value with discrete or Laplace noise.

    For Laplace, geometric and Skellam noise; infinite above about 74. The test ``y ≥ t`` errs with
    probabilities ``1 − F(t)`` and ``F(t − Δ)``, so ``μ = max_t z(t) − z(t − Δ)``. Between two
    lattice tests errors are linear, and Gaussian errors lie below. z is odd and flattens outwards
    (tails heavier than Gaussian), so the maximum is at the middle, ``t = Δ/2``.

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
    if noise.on_lattice:  # values t − ½ between two lattice points: t and d − t + 1
        d = round(change / noise.unit)
        ends = (np.array([d // 2, (d - 1) // 2]) * 2.0 + 1.0) * noise.unit
    return max(0.0, -float(scipy.special.ndtri(noise.cdf(-ends / 2.0)).sum()))


def geometric_rho(pure: float, rate: float = 0.0) -> float:
    """Return the least ρ of one value with geometric noise, ``q = e^{−rate}``.

    ``pure`` is its ε; at rate 0 the noise is Laplace. ρ is the divergence of order 1,
    ``ε − (1 − e^{−ε})·λ/sinh λ``, because ``D_α/α`` falls with α. ``E e^{(α − ½)L}`` under the
    middle measure ``√(pq)`` is a sum of ``cosh`` whose weights never fall up to ``L = ε``, so all
    its zeros are imaginary (Pólya 1918; Eneström and Kakeya on a lattice). The logarithm of
    ``Π (1 + u/y_k²)`` is concave in ``u = (α − ½)²``, and ``D_α/α`` is its slope from ``u = ¼``.
    """
    # sinh would overflow
    factor = -2.0 * rate * math.exp(-rate) / math.expm1(-2.0 * rate) if rate > 0.0 else 1.0
    return pure + math.expm1(-pure) * factor


def laplace_epsilon(pure: float, delta: float) -> float:
    """Return the least ε at which Laplace noise is (ε, δ), for one value.

    Exactly ``pure + 2 ln(1 − δ)``, with ``pure`` its ε at δ = 0.
    """
    return max(0.0, pure + 2.0 * math.log1p(-delta))


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Return ε of ρ-zero-concentrated privacy at δ: ``ρ + 2 √(ρ ln 1/δ)``.

    Source: bun2016, Proposition 1.3.
    """
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def is_summed(d: int, v: float) -> bool:
    """Whether Skellam noise of variance v, shifted by d, is cheap to sum."""
    return 24.0 * math.sqrt(v) + 3.0 * d <= MOST_SUMMED


def _skellam(d: int, v: float) -> tuple[Array, Array]:
    """Return ``ln P(k)`` and ``ln P(k − d)`` of Skellam noise."""
    reach = math.ceil(12.0 * math.sqrt(v)) + d + TAIL_STEPS
    k, noise = np.arange(-reach, reach + 1.0), NoiseDensity("skellam", math.sqrt(v))
    return noise.log_pdf(k), noise.log_pdf(k - d)


def skellam_rho(d: int, v: float) -> float:
    """Return the least ρ of one value with Skellam noise, changed by d units.

    The supremum of ``D_α/α`` over orders α is the limit at order 1, ``Σ_k P(k) ln P(k)/P(k − d)``.
    No proof is known to us. Verified numerically for d from 1 to 30, v from 0.01 to 9,000 and
    orders to 100. ``agarwal2021``'s bound lies above.
    """
    p, q = _skellam(d, v)
    # mean of both directions, which are equal: no term is below 0
    return float(0.5 * ((np.exp(p) - np.exp(q)) * (p - q)).sum())


def skellam_delta(d: int, v: float, epsilon: float) -> float:
    """Return the least δ at which Skellam noise is (ε, δ), for one value.

    Changed by d units; exactly ``Σ_k (P(k − d) − e^ε P(k))₊``.
    """
    q, p = _skellam(d, v)
    return float(-(np.exp(p) * np.expm1(np.minimum(0.0, epsilon + q - p))).sum())


@lru_cache(maxsize=2**12)
def skellam_epsilon(d: int, v: float, delta: float) -> float:
    """Return the least ε ≥ 0 at which Skellam noise is (ε, δ).

    For one value, changed by d units; see ``skellam_delta``.
    """
    if skellam_delta(d, v, 0.0) <= delta:
        return 0.0
    high = concentrated_epsilon(skellam_rho(d, v), delta)
    return root(lambda epsilon: skellam_delta(d, v, epsilon) - delta, 0.0, high)
