"""Posterior means of attributes under a mixture with reweighted margins.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``l`` | points: multiples of the attribute's step, or of half the noise's deviation | (L,) | |
| ``p_i(l)`` | density at l of the mixture's posterior given row i | (n, L) | bovy2011 |
| ``f_i(l)`` | density given only the row's noise-free entries | (n, L) | |
| ``h(l)`` | weight of a point: the prior is ``∝ h f_i`` | (L,) | |
| gain | ``Σ_i log Σ_l h p_i − log Σ_l h f_i``, log-likelihood over the mixture's | scalar | |
| step | ``h ← (Σ_i h p_i / Σ h p_i + f) / (Σ_i f_i / Σ h f_i + f)``, f the mean ``f_i`` | (L,) | |
| ``x̂`` | ``Σ_l l h p_i / Σ_l h p_i`` | (n,) | |
| risk | ``Σ_j ((x̂_j − y_j)² + 2 Var_j) / S_jj − 1``: unbiased squared error | (n,) | stein1981 |

For one component of independent attributes, ``h f`` is the nonparametric maximum likelihood
estimate of each distribution. Components narrower than a fifth of the step are widened; each keeps
its weight on the points. Weights must raise the likelihood of held-out rows. A step counts as
public. Attributes are reweighted one at a time, or together by expectation propagation (minka2001).
Under one normal, independent components ``R v`` by FastICA may replace attributes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.numerics.truncated_normal import matched, propagated
from auditor.plugin import Array, unprinted

from ._deconvolution import CHUNK_VALUES, GRAIN, Mixture, NoisyRows, Posterior, normalised
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
ROUNDS, LEAST_SPREAD = 2, 1e-4
"""Rounds of expectation propagation, and least remaining share of a variance."""
PROBE = 1e-3
"""Step of numerical derivatives, in deviations of the noise."""
NORMAL, SURE_OF = 3.0, 2.0
"""Standard errors of kurtosis within which components are not sought, and that an error must fall."""
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
    jointly : bool
        Whether every attribute's weights count for all others, by expectation propagation.
    """

    posterior: Posterior
    A: Array
    mu: Array
    heaps: Heaps
    jointly: bool = False

    @property
    def parameters(self) -> Array:
        """Number of fitted coefficients of each attribute's mean, shape (N,)."""
        heaps = [len(self.heaps[j][1]) if j in self.heaps else 0 for j in range(len(self.A))]
        return self.posterior.parameters + np.array(heaps)

    def mean(self, v: Array, mean: Array | None = None) -> Array:
        """``x̂``, shape (b, N); ``mean`` is the mixture's, if at hand."""
        if self.jointly:
            parts = evenly(0, len(v), self.A.size * self.posterior.size, CHUNK_VALUES)
            return np.concatenate([self._together(v[start:stop]) for start, stop in parts])
        x = self.mu + (self.posterior.mean(v) if mean is None else mean) @ self.A.T
        for j, (points, h) in self.heaps.items():
            wide = widened(self.posterior, self.A, j, points - self.mu[j])
            for start, stop in evenly(0, len(v), len(h), 16 * CHUNK_VALUES):
                p, _ = densities(wide, v[start:stop], self.A[j], points - self.mu[j])
                total, first = p @ h, p @ (h * points)
                np.divide(first, total, out=x[start:stop, j], where=total > FLOOR)
        return x

    def _together(self, v: Array) -> Array:
        prior, gain, A = self.posterior.prior, self.A @ self.posterior.gain, self.A
        m, B = prior.means[:, :, None], (A - gain) @ prior.covariances @ A.T
        for j, (points, _) in self.heaps.items():
            B[:, j, j] = np.maximum(B[:, j, j], (LEAST_WIDTH * (points[1] - points[0])) ** 2)
        zero = np.zeros((len(A), len(m), len(v)))
        known = zero, zero, zero, np.repeat(np.moveaxis(B, 0, 2)[..., None], len(v), 3), zero[0]

        def match(j: int, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
            points, h = self.heaps[j]
            x = points - self.mu[j]
            log_p = -0.5 * (x - mean[..., None]) ** 2 / variance[..., None]
            p, log_Z = normalised(np.moveaxis(log_p + np.log(h), 2, 0))
            first, second = np.tensordot([x, x * x], p, 1)
            spread = np.maximum(second - first**2, LEAST_SPREAD * variance)
            return matched(log_Z - 0.5 * np.log(variance), first, spread, mean, variance)

        b = np.moveaxis(A @ m + gain @ (v.T - m), 1, 0)
        order, least = [*self.heaps] * ROUNDS, GRAIN * (A**2).sum(axis=1)
        log_mass, moved, _ = propagated(b, known, match, order, least)
        q, _ = normalised(np.log(np.maximum(self.posterior.chances(v)[0], FAINT)) + log_mass)
        return self.mu + (q * (b + moved)).sum(axis=1).T

    def risk(self, rows: NoisyRows) -> Array:
        """Each row's estimated squared error over the noise's, summed, shape (b,).

        ``Σ_j ((x̂_j − y_j)² + 2 Var_j)/S_jj − 1``: unbiased, as the derivative of a posterior mean
        along the noise's covariance is a posterior variance (stein1981).
        """
        v, noise = rows.u, self.A**2 @ self.posterior.noise
        found = np.zeros(len(v))
        for j in np.flatnonzero(noise > 0.0).tolist():
            y = v @ self.A[j]
            if j in self.heaps:
                points, h = self.heaps[j]
                points = points - self.mu[j]
                wide = widened(self.posterior, self.A, j, points)
                q, b = h * densities(wide, v, self.A[j], points)[0], points
                q, std = q / np.maximum(q.sum(axis=1, keepdims=True), FLOOR), np.zeros(1)
            else:
                q, b, std = (part.T for part in self.posterior.along(v, self.A[j])[:3])
            x = (q * b).sum(axis=1)
            variance = (q * (b**2 + std**2)).sum(axis=1) - x**2
            found += ((x - y) ** 2 + 2.0 * variance) / noise[j] - 1.0
        return found


@unprinted
class Unmixed:
    """Posterior means of attributes, ``mu + A v``, from means of independent components ``R v``.

    ``components`` have ``R``, shape (r, r) and orthogonal, as their ``A``.
    """

    components: OnLattices
    A: Array
    mu: Array

    @property
    def posterior(self) -> Posterior:
        return self.components.posterior

    @property
    def parameters(self) -> Array:
        """Mean number of fitted coefficients of a component's mean."""
        return np.asarray(self.components.parameters.mean())

    def mean(self, v: Array, _: Array | None = None) -> Array:
        return self.mu + self.components.mean(v) @ self.components.A @ self.A.T


def fitted_heaps(posterior: Posterior, v: Array, A: Array, mu: Array, steps: Array) -> Heaps:
    """Weights of attributes that raise the likelihood of held-out rows."""
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
    """Weights if they, after gains ``before``, raise the likelihood of held-out rows."""
    gained = np.zeros(len(p)) + before
    for taught, judged in ((0, 1), (1, 0)):
        of_taught, of_judged = (f[i::2] if len(f) > 1 else f for i in (taught, judged))
        h = weights(p[taught::2], of_taught)
        gained[judged::2] += gains(p[judged::2], of_judged, h)
    return weights(p, f) if gained.mean() > gained.std() / np.sqrt(gained.size) else None


def filled_steps(steps: Array | float, noise: Array | float) -> Array:
    """Steps, (N,), that follow the noise's deviation where none is coarse."""
    return np.where(FINEST * steps > noise, steps, noise / CONTINUOUS)


def reweighted(A: Array, mu: Array, steps: Array, prior: Mixture, rows: NoisyRows) -> OnLattices:
    """Posterior means under weights learnt from rows."""
    posterior = Posterior(prior, rows.s)
    return OnLattices(posterior, A, mu, fitted_heaps(posterior, rows.u, A, mu, steps))


Placed = OnLattices | Unmixed


def best_placed(
    A: Array,
    mu: Array,
    steps: Array,
    start: Mixture,
    prior: Mixture,
    rows: NoisyRows,
    rng: np.random.Generator,
) -> Placed:
    """Posterior means of least squared error.

    Under weights of attributes one at a time, of all, or of components by FastICA under one
    normal, ``start``. Slopes along a random step of the noise give an unbiased estimate of the
    squared error (ramani2008), which must surely fall.
    """
    one = reweighted(A, mu, steps, prior, rows)
    few = rows.part(slice(None, None, max(1, len(rows.u) // FITTED_ROWS)))
    found: Placed = one
    others: list[Placed] = [replace(one, jointly=True)] if one.heaps else []
    R = independent_axes(few.u, rng)
    if R is not None:
        zero, noise = np.zeros(len(R)), np.sqrt(R**2 @ rows.s)
        components = reweighted(R, zero, filled_steps(zero, noise), start, few)
        others.append(Unmixed(components, A, mu))
    v, noise = few.u, A**2 @ rows.s
    seen = noise > 0.0
    step = PROBE * np.sqrt(rows.s) * rng.standard_normal(v.shape)

    def error(placed: Placed) -> Array:
        x = placed.mean(v)
        slope = (placed.mean(v + step) - x) * (step @ A.T) / PROBE**2
        return ((x - mu - v @ A.T) ** 2 + 2.0 * slope)[:, seen] @ (1.0 / noise[seen])

    least = error(found) if others else np.empty(0)
    for other in others:
        gain = least - error(other)
        if gain.mean() > SURE_OF * gain.std() / np.sqrt(gain.size):
            found, least = other, least - gain
    return found


def independent_axes(v: Array, rng: np.random.Generator) -> Array | None:
    """Rotations to components by FastICA, (r, r).

    None if rows, (n, r), are few or have a normal's kurtosis (mardia1970).
    """
    n, r = v.shape
    if not 1 < r < n:
        return None
    u = (v - v.mean(axis=0)).T
    whitening = np.linalg.inv(np.linalg.cholesky(np.cov(u) + GRAIN * np.eye(r)))
    z = whitening @ u
    # E |z|⁴ of a normal is r(r + 2), with variance 8 r(r + 2)/n
    off = ((z * z).sum(axis=0) ** 2).mean() - r * (r + 2.0)
    if abs(off) < NORMAL * np.sqrt(8.0 * r * (r + 2.0) / n):
        return None
    start = orthogonal(rng.standard_normal((r, r)))
    return orthogonal(fixed_point(z, start, TRIED_STEPS, TRIED_REST)[0] @ whitening)


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
    """Densities of ``aᵀx`` at points given rows v, shape (b, L), times the step.

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
    """Each row's gain of log-likelihood, shape (n,)."""
    return np.log(np.maximum(p @ h, FLOOR)) - np.log(np.maximum(f @ h, FLOOR))


def weights(p: Array, f: Array) -> Array:
    """``h``, shape (L,), from 1 upwards in likelihood.

    ``f`` has one row if all are equal. One more row by the mixture keeps unseen points possible.
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
