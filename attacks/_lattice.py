"""Posterior means of attributes under a mixture whose margins are reweighted.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``l`` | points: multiples of the attribute's step, or of half the noise's deviation | (L,) | |
| ``p_i(l)`` | density at l of the mixture's posterior given row i | (n, L) | bovy2011 |
| ``f_i(l)`` | likewise given only the noise-free entries of the row | (n, L) | |
| ``h(l)`` | weight of a point: the prior is ``∝ h f_i`` | (L,) | |
| gain | ``Σ_i log Σ_l h p_i − log Σ_l h f_i``, log-likelihood over the mixture's | scalar | |
| step | ``h ← (Σ_i h p_i / Σ h p_i + f) / (Σ_i f_i / Σ h f_i + f)``, f the mean ``f_i`` | (L,) | |
| ``x̂`` | ``Σ_l l h p_i / Σ_l h p_i`` | (n,) | |
| risk | ``Σ_j ((x̂_j − y_j)² + 2 Var_j) / S_jj − 1``: unbiased squared error | (n,) | stein1981 |

For one component of independent attributes, ``h f`` is the nonparametric maximum likelihood estimate
of each distribution. Components narrower than a fifth of the step are widened; each keeps
its weight on the points. Weights must raise the likelihood of held-out rows. A step counts as public.
Attributes are reweighted one at a time. Under one normal, independent components ``R v`` found by
FastICA may take their place, as noise whose covariance follows the data's is independent in them too.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import quotient
from auditor.plugin import Array, unprinted

from ._deconvolution import CHUNK_VALUES, GRAIN, Mixture, NoisyRows, Posterior
from ._fastica import TRIED_REST, TRIED_STEPS, fixed_point, orthogonal
from ._fits import fitted_once

FINEST, MOST_POINTS = 6.0, 128
"""Most steps per deviation of the noise, and most points of an attribute."""
CONTINUOUS = 2.0
"""Points per deviation of the noise without a coarse step. Sums are then integrals to 1e-8."""
LEAST_WIDTH = 0.2
"""Least deviation of a component, in steps, so that an atom reaches its nearest point."""
FITTED_ROWS, MOST_STEPS, GAIN = 1_500, 60, 0.1
"""Rows that weights are fitted to, most EM steps, and the log-likelihood that a step must gain."""
BROAD = 1e-3
"""Weight of a component that reaches all points, where a normal prior would vanish."""
NORMAL = 3.0
"""Standard errors of skewness and kurtosis within which components are not sought."""
FAINT, FLOOR = 1e-300, 1e-12
"""Least density, above numbers that take numpy a hundred times as long, and least sum of densities.
A row beyond the points keeps the mixture's mean."""

Heaps = dict[int, tuple[Array, Array]]
"""Attribute with weights → its points, in data units, and their weights ``h``."""


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
            for start, stop in evenly(0, len(v), len(h), 16 * CHUNK_VALUES):
                p, _ = densities(wide, v[start:stop], self.A[j], points - self.mu[j])
                total, first = p @ h, p @ (h * points)
                np.divide(first, total, out=x[start:stop, j], where=total > FLOOR)
        return x

    def moments(self, v: Array) -> tuple[Array, Array]:
        """Return posterior means, relative to ``mu``, and variances, shapes (b, N)."""
        found = np.empty((2, len(v), len(self.A)))
        for j, a in enumerate(self.A):
            if j in self.heaps:
                points, h = self.heaps[j]
                points = points - self.mu[j]
                q, b = (
                    h * densities(widened(self.posterior, self.A, j, points), v, a, points)[0],
                    points,
                )
                q, std = q / np.maximum(q.sum(axis=1, keepdims=True), FLOOR), np.zeros(1)
            else:
                q, b, std = (part.T for part in self.posterior.along(v, a)[:3])
            found[0, :, j] = x = (q * b).sum(axis=1)
            found[1, :, j] = (q * (b**2 + std**2)).sum(axis=1) - x**2
        return found[0], found[1]

    def risk(self, rows: NoisyRows) -> Array:
        """Return each row's estimated squared error over the noise's, summed, shape (b,)."""
        return unbiased_risk(rows, self.A, *self.moments(rows.u))


@unprinted
class Unmixed:
    """Posterior means of attributes ``mu + A v`` by those of independent components ``R v``.

    Attributes
    ----------
    components : OnLattices
        Its ``A`` is ``R``, shape (r, r), orthogonal.
    A : ndarray of shape (N, r)
    mu : ndarray of shape (N,)
    """

    components: OnLattices
    A: Array
    mu: Array

    @property
    def posterior(self) -> Posterior:
        return self.components.posterior

    @property
    def back(self) -> Array:
        """From components to attributes, shape (N, r)."""
        return self.A @ self.components.A.T

    @property
    def parameters(self) -> Array:
        """Number of fitted coefficients of each attribute's mean, shape (N,)."""
        return quotient(self.back**2 @ self.components.parameters, (self.back**2).sum(axis=1))

    def mean(self, v: Array, _: Array | None = None) -> Array:
        return self.mu + self.components.mean(v) @ self.back.T

    def risk(self, rows: NoisyRows) -> Array:
        s, variance = self.components.moments(rows.u)
        return unbiased_risk(rows, self.A, s @ self.back.T, variance @ (self.back**2).T)


def unbiased_risk(rows: NoisyRows, A: Array, x: Array, variance: Array) -> Array:
    """Return ``Σ_j ((x̂_j − y_j)² + 2 Var_j)/S_jj − 1`` of attributes ``A v``, shape (b,).

    Unbiased, as the derivative of a posterior mean along the noise's covariance is a posterior
    variance (stein1981).
    """
    noise = A**2 @ rows.s
    seen = noise > 0.0
    found = ((x - rows.u @ A.T) ** 2 + 2.0 * variance)[:, seen] / noise[seen] - 1.0
    return np.asarray(found.sum(axis=1))


def fitted_heaps(posterior: Posterior, v: Array, A: Array, mu: Array, steps: Array) -> Heaps:
    """Return weights of attributes that raise the likelihood of held-out rows."""
    heaps, v = Heaps(), v[:: max(1, len(v) // FITTED_ROWS)]
    if not len(v):
        return heaps
    before, noise = posterior.chances(v)[1], np.sqrt(A**2 @ posterior.noise)
    for j in np.flatnonzero((noise > 0.0) & (FINEST * steps > noise)).tolist():
        y = mu[j] + v @ A[j]
        first, last = np.rint(np.array([y.min(), y.max()]) / steps[j])
        if not 0 < last - first < MOST_POINTS:
            continue
        points = steps[j] * np.arange(first, last + 1)
        wide = widened(posterior, A, j, points - mu[j])
        prior = wide.without(posterior.noise > 0.0)
        p, after = densities(wide, v, A[j], points - mu[j])
        f, _ = densities(prior, v[:1] if posterior.noise.all() else v, A[j], points - mu[j])
        h = learnt(p, f, after - before)
        if h is not None:
            heaps[j] = points, h
    return heaps


def learnt(p: Array, f: Array, before: Array | float = 0.0) -> Array | None:
    """Return weights if they, after gains ``before``, raise the likelihood of held-out rows."""
    gained = np.zeros(len(p)) + before
    for taught, judged in ((0, 1), (1, 0)):
        of_taught, of_judged = (f[i::2] if len(f) > 1 else f for i in (taught, judged))
        h = weights(p[taught::2], of_taught)
        gained[judged::2] += gains(p[judged::2], of_judged, h)
    return weights(p, f) if gained.mean() > gained.std() / np.sqrt(gained.size) else None


def filled_steps(steps: Array | float, noise: Array | float) -> Array:
    """Return steps, (N,), that follow the noise's deviation where none is coarse."""
    return np.where(FINEST * steps > noise, steps, noise / CONTINUOUS)


def reweighted(A: Array, mu: Array, steps: Array, prior: Mixture, rows: NoisyRows) -> OnLattices:
    """Return posterior means under weights learnt from rows."""
    posterior = Posterior(prior, rows.s)
    return OnLattices(posterior, A, mu, fitted_heaps(posterior, rows.u, A, mu, steps))


def on_best_axes(
    W: Array, A: Array, mu: Array, steps: Array, prior: Mixture, rows: NoisyRows
) -> OnLattices | Unmixed:
    """Return posterior means under weights of attributes.

    Or of components by FastICA from W, if their ``risk`` under one normal is less.
    """
    found = reweighted(A, mu, steps, prior, rows)
    if prior.size > 1 or not 1 < len(W) < len(rows.u):
        return found
    few = rows.part(slice(None, None, max(1, len(rows.u) // FITTED_ROWS)))
    u = (few.u - few.u.mean(axis=0)).T
    whitening = np.linalg.inv(np.linalg.cholesky(np.cov(u) + GRAIN * np.eye(len(u))))
    if looks_normal(whitening @ u):
        return found
    R = orthogonal(fixed_point(whitening @ u, W, TRIED_STEPS, TRIED_REST)[0] @ whitening)
    zero, noise = np.zeros(len(R)), np.sqrt(R**2 @ rows.s)
    each: tuple[OnLattices | Unmixed, ...] = (
        found,
        Unmixed(reweighted(R, zero, filled_steps(zero, noise), prior, few), A, mu),
    )
    return min(each, key=lambda placed: float(placed.risk(few).mean()))


def looks_normal(z: Array) -> bool:
    """Whether white rows, (r, n), have a normal's skewness and kurtosis (mardia1970)."""
    r, n = z.shape
    G, terms = z.T @ z, r * (r + 1.0) * (r + 2.0) / 6.0
    skewness = ((G * G * G).sum() / n / 6.0 - terms) / np.sqrt(2.0 * terms)
    kurtosis = ((np.diag(G) ** 2).mean() - r * (r + 2.0)) / np.sqrt(8.0 * r * (r + 2.0) / n)
    return bool(max(skewness, abs(kurtosis)) < NORMAL)


def widened(posterior: Posterior, A: Array, j: int, points: Array) -> Posterior:
    """Widen components that keep their weights on attribute j's points.

    ``points`` are relative to ``mu``.
    """
    a, prior = A[j], posterior.prior
    d = fitted_once(lambda: np.linalg.pinv(A), "inverse", A)[:, j]
    step, along = points[1] - points[0], prior.covariances @ a @ a
    variance = np.maximum(along, (LEAST_WIDTH * step) ** 2)
    V = prior.covariances + (variance - along)[:, None, None] * np.outer(d, d)
    z = (points - (prior.means @ a)[:, None]) / np.sqrt(variance)[:, None]
    share = step * np.exp(-0.5 * z * z).sum(axis=1) / np.sqrt(2.0 * np.pi * variance)
    alpha = prior.weights / np.maximum(share, FLOOR)
    alpha = np.append(alpha / alpha.sum() * (1.0 - BROAD), BROAD)
    broad = prior.weights @ prior.covariances.reshape(len(z), -1)
    broad = broad.reshape(V.shape[1:]) + (np.ptp(points) / 2.0) ** 2 * np.outer(d, d)
    means = np.vstack([prior.means, prior.weights @ prior.means])
    return Posterior(Mixture(alpha, means, np.concatenate([V, broad[None]])), posterior.noise)


def densities(posterior: Posterior, v: Array, a: Array, points: Array) -> tuple[Array, Array]:
    """Return densities of ``aᵀx`` at points given rows v, shape (b, L), times the step.

    And the rows' log-likelihoods.
    """
    q, b, std, log_likelihood = posterior.along(v, a)
    found, step, s = np.empty((len(v), len(points))), points[1] - points[0], std[:, None]
    scale = np.log(np.maximum(q, FAINT) * step / np.sqrt(2.0 * np.pi) / s)
    # log q_k N(l; b_k, s_k²) is linear in 1, l and l²
    factors = np.stack([scale - 0.5 * (b / s) ** 2, b / s**2, 0.0 * b - 0.5 / s**2], axis=2)
    shown = np.vander(points, 3, increasing=True).T
    for start, stop in evenly(0, len(v), len(q) * len(points), CHUNK_VALUES):
        log_p = np.maximum(factors[:, start:stop] @ shown, np.log(FAINT))
        np.exp(log_p, out=log_p).sum(axis=0, out=found[start:stop])
    return found, log_likelihood


def gains(p: Array, f: Array, h: Array) -> Array:
    """Return each row's gain of log-likelihood, shape (n,)."""
    return np.log(np.maximum(p @ h, FLOOR)) - np.log(np.maximum(f @ h, FLOOR))


def weights(p: Array, f: Array) -> Array:
    """Return ``h``, shape (L,), from 1 upwards in likelihood.

    ``f`` has one row if all rows' are equal. One more row, whose value follows the mixture, keeps
    unseen points possible.
    """
    h, last, one = np.ones(p.shape[1]), -np.inf, f.mean(axis=0) + FLOOR
    for _ in range(MOST_STEPS):
        found = gains(p, f, h).sum()
        if found - last < GAIN:
            break
        last = found
        # products: sums of divided matrices take ten times as long
        shown, expected = (len(p) / len(e) / np.maximum(e @ h, FLOOR) @ e for e in (p, f))
        h = (h * shown + one) / (expected + one)
    return h
