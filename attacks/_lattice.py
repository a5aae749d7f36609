"""Posterior means of attributes recorded in steps, with heaps.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``l`` | lattice points: multiples of the step | (L,) | |
| ``p_i(l)`` | density at l of the mixture's posterior given row i | (n, L) | bovy2011 |
| ``f_i(l)`` | likewise given only the noise-free entries of the row | (n, L) | |
| ``h(l)`` | weight of a point: the prior is ``∝ h f_i`` | (L,) | |
| gain | ``Σ_i log Σ_l h p_i − log Σ_l h f_i``, log-likelihood over the mixture's | scalar | |
| step | ``h ← Σ_i (h p_i / Σ h p_i) / Σ_i (f_i / Σ h f_i)``: no step lowers the gain | (L,) | |
| ``x̂`` | ``Σ_l l h p_i / Σ_l h p_i`` | (n,) | |

Components narrower than a fifth of the step are widened; each keeps its weight on the points. Heaps
must raise the likelihood of held-out rows. A step counts as public. Attributes are placed one at a
time. Steps much finer than the noise are left out.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.plugin import Array, unprinted

from ._deconvolution import CHUNK_VALUES, GAIN, Mixture, Posterior

FINEST, MOST_POINTS = 6.0, 128
"""Most steps per deviation of the noise, and most points of a lattice."""
LEAST_WIDTH = 0.2
"""Least deviation of a component, in steps, so that an atom reaches its nearest point."""
FITTED_ROWS, MOST_STEPS = 5_000, 60
FLOOR = 1e-12
"""Least sum of densities. A row off the lattice keeps the mixture's mean."""

Heaps = dict[int, tuple[Array, Array]]
"""Attribute with a lattice → its points, in data units, and their weights ``h``."""


@unprinted
class OnLattices:
    """Posterior means in data units.

    Attributes
    ----------
    posterior : Posterior
        Given rows ``v`` of shape (b, r).
    A : ndarray of shape (N, r)
        Attributes are ``mu + A v``.
    mu : ndarray of shape (N,)
    heaps : Heaps
    """

    posterior: Posterior
    A: Array
    mu: Array
    heaps: Heaps

    @property
    def parameters(self) -> Array:
        """Number of fitted coefficients of each attribute's mean, shape (N,)."""
        heaps = [len(self.heaps[j][1]) if j in self.heaps else 0 for j in range(len(self.A))]
        return self.posterior.parameters + np.array(heaps)

    def mean(self, v: Array, mean: Array | None = None) -> Array:
        """Return ``x̂``, shape (b, N); ``mean`` is the mixture's, if at hand."""
        x = self.mu + (self.posterior.mean(v) if mean is None else mean) @ self.A.T
        for j, (points, h) in self.heaps.items():
            wide = widened(self.posterior, self.A, j, points - self.mu[j])
            for start, stop in evenly(0, len(v), wide.size * len(h), CHUNK_VALUES):
                p = h * densities(wide, v[start:stop], self.A[j], points - self.mu[j])
                total = p.sum(axis=1)
                np.divide(p @ points, total, out=x[start:stop, j], where=total > FLOOR)
        return x


def fitted_heaps(posterior: Posterior, v: Array, A: Array, mu: Array, steps: Array) -> Heaps:
    """Return lattices and heaps that raise the likelihood of rows ``v``."""
    heaps = Heaps()
    if not len(v):
        return heaps
    noise, rows = np.sqrt(A**2 @ posterior.noise), v[:: max(1, len(v) // FITTED_ROWS)]
    for j in np.flatnonzero((noise > 0.0) & (FINEST * steps > noise)).tolist():
        y = mu[j] + v @ A[j]
        first, last = np.rint(np.array([y.min(), y.max()]) / steps[j])
        if not 0 < last - first < MOST_POINTS:
            continue
        points = steps[j] * np.arange(first, last + 1)
        wide = widened(posterior, A, j, points - mu[j])
        prior = wide.without(posterior.noise > 0.0)
        p, f = (densities(each, rows, A[j], points - mu[j]) for each in (wide, prior))
        gained = wide.chances(rows)[1] - posterior.chances(rows)[1]
        for half in (0, 1):
            h = weights(p[half::2], f[half::2])
            gained[1 - half :: 2] += gains(p[1 - half :: 2], f[1 - half :: 2], h)
        if gained.mean() > gained.std() / np.sqrt(gained.size):
            heaps[j] = points, weights(p, f)
    return heaps


def widened(posterior: Posterior, A: Array, j: int, points: Array) -> Posterior:
    """Widen components that keep their weights on attribute j's points.

    ``points`` are relative to ``mu``.
    """
    a, d, prior = A[j], np.linalg.pinv(A)[:, j], posterior.prior
    step, along = points[1] - points[0], prior.covariances @ a @ a
    variance = np.maximum(along, (LEAST_WIDTH * step) ** 2)
    V = prior.covariances + (variance - along)[:, None, None] * np.outer(d, d)
    z = (points - (prior.means @ a)[:, None]) / np.sqrt(variance)[:, None]
    share = step * np.exp(-0.5 * z * z).sum(axis=1) / np.sqrt(2.0 * np.pi * variance)
    alpha = prior.weights / np.maximum(share, FLOOR)
    return Posterior(Mixture(alpha / alpha.sum(), prior.means, V), posterior.noise)


def densities(posterior: Posterior, v: Array, a: Array, points: Array) -> Array:
    """Return densities of ``aᵀx`` at points given rows v, shape (b, L), times the step."""
    q, mean, std = posterior.along(v, a)
    found, step = np.zeros((len(v), len(points))), points[1] - points[0]
    for q_k, b_k, s_k in zip(q, mean, std, strict=True):
        z = (points - b_k[:, None]) / s_k
        found += (q_k * step / (np.sqrt(2.0 * np.pi) * s_k))[:, None] * np.exp(-0.5 * z * z)
    return found


def gains(p: Array, f: Array, h: Array) -> Array:
    """Return each row's gain of log-likelihood, shape (n,)."""
    return np.log(np.maximum(p @ h, FLOOR)) - np.log(np.maximum(f @ h, FLOOR))


def weights(p: Array, f: Array) -> Array:
    """Return ``h``, shape (L,), from 1 upwards in likelihood."""
    h, last = np.ones(p.shape[1]), -np.inf
    for _ in range(MOST_STEPS):
        found = gains(p, f, h).sum()
        if found - last < GAIN:
            break
        last = found
        shown, expected = (
            (each / np.maximum(each @ h, FLOOR)[:, None]).sum(axis=0) + FLOOR for each in (p, f)
        )
        h = h * shown / expected
    return h
