"""Combine copies into one and filter it; reconstruct one distribution.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``w`` | weights, sum 1, that minimise ``wᵀ Sigma w``; equal without a law | (k,) | |
| ``y`` | ``Σ w_i y_i``: the combined copy | (N,) | |
| ``Sigma_r`` | covariance of its noise, ``v·K_0`` | (N, N) | huang2005 (14) |
| ``x̂`` | ``m + F(y − m)``, F the filter | (N,) | liu2008, Protocols 2 and 3, with ERRATA's mean |
| ``π_b`` | probability that ``x`` lies in bin b | (B,) | |
| ``c_m`` | count in cell m, ``n`` in all | (m,) | |
| ``L_mb`` | likelihood of cell m given bin b, at midpoints (iteration) or averaged (EM) | (m, B) | |
| step | ``π_b ← (π_b/n) Σ_m c_m L_mb / Σ_b' L_mb' π_b'`` | | agrawal2000; agrawal2001 |

Iterations stop early, since convergence makes spikes.
"""

from typing import Literal

import numpy as np

from auditor.adversary.attack import Affine
from auditor.adversary.knowledge import Perfect
from auditor.adversary.view import View
from auditor.base import NotApplicable, scipy
from auditor.base.types import Array, unprinted
from auditor.numerics.linear_algebra import clip_to_psd
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise

CovarianceSource = Literal["knowledge", "copies"]


def combined_noise(view: View, covariance: Array) -> Array:
    """``Sigma_r``, the noise covariance of ``Σ w_i y_i``, shape (N, N).

    ``v/(1+v)`` of ``covariance``, (N, N), with unknown ``K_X`` and noise ``v·K_X``.
    ``NotApplicable`` without a law.
    """
    if view.law is None:
        raise NotApplicable("needs the law of the noise, which these copies come without")
    if not isinstance(view.law, KroneckerNoise):
        W = view.averaging
        return W @ view.law.covariance @ W.T
    return noise_of(view, view.law, np.asarray(view.combined_variance), covariance)


def noise_of(view: View, law: KroneckerNoise, v: Array, covariance: Array) -> Array:
    """``combined_noise`` of noise multiples ``v``, shape (..., N, N)."""
    if law.follows_data and not isinstance(view.knowledge, Perfect):
        return covariance * (v / (1.0 + v))
    return v * law.shape


def estimated_covariance(covariance: Array, Sigma_r: Array) -> Array:
    """``Cov(Y) − Sigma_r``, shape (N, N), with eigenvalues ≥ 0.

    Source: huang2005, Theorems 5.1 and 8.2; ERRATA sets negative eigenvalues to 0.
    """
    return clip_to_psd(covariance - Sigma_r, covariance)


def filter_map(view: View, F: Array, mean: Array, fixed: bool) -> Affine:
    """``x̂ = m + F(Σ w_i y_i − m)`` as a map of the stacked copies.

    ``fixed``: F, (N, N), and m, (N,), depend on the law alone.
    """
    m = mean - view.centre
    return Affine((F[:, None, :] * view.weights[:, None]).reshape(len(F), -1), m - F @ m, fixed)


Method = Literal["em", "iteration"]

MOST_STEPS = 2000
LEAST_LIKELIHOOD = 1e-250
"""Likelihood below which a cell is impossible under every bin."""
GAIN = 0.1
"""Least gain in log-likelihood of an EM step, in nats."""
CHI_SQUARE_SHARE = 0.01
"""Least change of a step, as a share of the χ² test's 95 % point (agrawal2000)."""


@unprinted
class Histogram:
    """Histogram: a distribution flat within bins.

    Attributes
    ----------
    edges : (B + 1,)
        Ascending, in data units.
    mass : (B,)
        Probabilities, sum 1.
    """

    edges: Array
    mass: Array

    @property
    def midpoints(self) -> Array:
        """Midpoints of the bins, shape (B,)."""
        return (self.edges[:-1] + self.edges[1:]) / 2.0

    @property
    def density(self) -> Array:
        """Density in each bin, shape (B,)."""
        return self.mass / np.diff(self.edges)


def reconstruct(
    y: Array,
    counts: Array,
    edges: Array,
    noise: NoiseDensity,
    method: Method = "em",
    steps: int = MOST_STEPS,
) -> Histogram:
    """Distribution of original values, given perturbed counts.

    Parameters
    ----------
    y, counts : (m,)
        Midpoints of the cells, narrow relative to the noise (*not checked*), and ``c_m``.
    edges : (B + 1,)
        Of the original values.
    method : 'em' or 'iteration'
    steps
        Most steps.

    Notes
    -----
    Source: agrawal2000, agrawal2001. Impossible cells are omitted; flat if all are.
    """
    y, c = y[counts > 0], counts[counts > 0]
    L = noise.likelihood(y, edges, midpoints=method == "iteration")
    possible = L.max(axis=1) > LEAST_LIKELIHOOD
    L, c = L[possible], c[possible]
    n, B = float(c.sum()), len(edges) - 1
    mass = np.diff(edges) / (edges[-1] - edges[0])
    if n == 0:
        return Histogram(edges, mass)
    enough = CHI_SQUARE_SHARE * float(scipy.special.chdtri(max(1, B - 1), 0.05))
    last = -np.inf
    for _ in range(steps):
        mixed = L @ mass
        likelihood = float(c @ np.log(mixed))
        new = mass * (L.T @ (c / mixed)) / n
        new /= new.sum()
        change = n * float(((new - mass) ** 2 / np.maximum(mass, 1e-300)).sum())
        mass = new
        if (method == "em" and likelihood - last < GAIN) or (
            method == "iteration" and change < enough
        ):
            break
        last = likelihood
    return Histogram(edges, mass)
