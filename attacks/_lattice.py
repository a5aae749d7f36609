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
public. Attributes are reweighted one at a time, together by expectation propagation (minka2001), or
alone; under one normal also independent components ``R v`` by FastICA. ``averaged`` weighs all means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.numerics.truncated_normal import matched, propagated
from auditor.plugin import Array, Pair, scipy, unprinted

from ._deconvolution import (
    CHUNK_VALUES,
    GRAIN,
    Mixture,
    NoisyRows,
    Posterior,
    long_tailed,
    normalised,
)
from ._fits import fitted_once
from .ica import TRIED_REST, TRIED_STEPS, fixed_point, orthogonal

FINEST, MOST_POINTS = 6.0, 128
"""Most steps per deviation of the noise, and most points of an attribute."""
CONTINUOUS = 2.0
"""Points per deviation of the noise without a coarse step. Sums are then integrals to 1e-8."""
LEAST_WIDTH = 0.2
"""Least deviation of a component, in steps, so that an atom reaches its nearest point."""
FITTED_ROWS, JUDGED_ROWS = 1_500, 4_000
"""Rows that weights of several coordinates are fitted to, and rows that means are weighed on."""
LIKELIER, MOST_STEPS, EARLY, GAIN = 0.5, 60, 0.1, 0.003
"""Standard errors of likelihood that weights must gain, most EM steps, and the log-likelihoods that a
step must gain."""
LONGER, LONGEST = 1.5, 16.0
"""Growth of EM's step, and its most, as a power of EM's ratio."""
FINE = 8.0
"""Points per deviation of the noise between which means of one direction are linear."""
REACH = 4.0
"""Deviations of the noise from a value to the farthest point that it can have."""
BROAD = 1e-3
"""Weight of a component that reaches all points, where a normal prior would vanish."""
ROUNDS, LEAST_SPREAD = 2, 1e-4
"""Rounds of expectation propagation, and least remaining share of a variance."""
PROBE = 0.3
"""Step of numerical slopes, in deviations of the noise; shorter ones miss jumps."""
SLIGHT, LEAST_GAIN, ENOUGH = 0.05, 0.01, 1.0
"""Weight of a mean, and relative gain, below which it is not worth its time; standard errors of gain
that suffice: one far row gains about one."""
FIRM = 1e4
"""Weight of an equation that must hold."""
NORMAL, SURE_OF = 3.0, 2.0
"""Standard errors of kurtosis within which components are not sought, and that an error must fall."""
FAINT, LEAST, FLOOR = 1e-300, -80.0, 1e-12
"""Least chance; least log-density, above numbers that take numpy a hundred times as long; and least
sum of densities. A row beyond the points keeps the mixture's mean."""

Heaps = dict[int, Pair]
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

    def mean(self, v: Array) -> Array:
        """``x̂``, shape (b, N)."""
        if self.jointly:
            width = len(self.A) * len(self.heaps) * self.posterior.size
            parts = evenly(0, len(v), width, 4 * CHUNK_VALUES)
            return np.concatenate([self._together(v[start:stop]) for start, stop in parts])
        x = self.mu + self.posterior.mean(v) @ self.A.T
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
            B[:, j, j] = np.maximum(B[:, j, j], (LEAST_WIDTH * (np.diff(points).min())) ** 2)
        zero, rows = np.zeros((len(A), len(m), len(v))), [*self.heaps]
        # rows of attributes with weights suffice
        B = np.moveaxis(B[:, rows], 0, 2)[..., None]
        known = zero, zero, zero, np.repeat(B, len(v), 3), zero[0]

        def match(j: int, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
            points, h = self.heaps[j]
            x = points - self.mu[j]
            off = (x[:, None, None] - mean) ** 2
            p, log_Z = normalised(np.log(h)[:, None, None] - off * (0.5 / variance))
            first, second = np.tensordot([x, x * x], p, 1)
            spread = np.maximum(second - first**2, LEAST_SPREAD * variance)
            return matched(log_Z - 0.5 * np.log(variance), first, spread, mean, variance)

        b = np.moveaxis(A @ m + gain @ (v.T - m), 1, 0)
        least = GRAIN * (A**2).sum(axis=1)
        log_mass, moved, _ = propagated(b, known, match, rows * ROUNDS, least, rows)
        q, _ = normalised(np.log(np.maximum(self.posterior.chances(v)[0], FAINT)) + log_mass)
        return self.mu + (q * (b + moved)).sum(axis=1).T

    def moments(self, v: Array) -> Pair:
        """Posterior means and variances, shapes (b, N)."""
        x, variance = np.empty((2, len(v), len(self.A)))

        def place(where: Array | slice, j: int, q: Array, b: Array, std: Array) -> None:
            x[where, j] = mean = (q * b).sum(axis=1)
            variance[where, j] = (q * (b**2 + std**2)).sum(axis=1) - mean**2

        for j, a in enumerate(self.A):
            place(slice(None), j, *(part.T for part in self.posterior.along(v, a)[:3]))
            if j in self.heaps:
                points, h = self.heaps[j]
                points = points - self.mu[j]
                p = h * densities(widened(self.posterior, self.A, j, points), v, a, points)[0]
                total = p.sum(axis=1)
                near = total > FLOOR
                place(near, j, p[near] / total[near, None], points, np.zeros(1))
        return self.mu + x, variance

    def risk(self, rows: NoisyRows) -> Array:
        """Each row's estimated squared error over the noise's, summed, shape (b,).

        ``Σ_j ((x̂_j − y_j)² + 2 Var_j)/S_jj − 1``: unbiased, as the derivative of a posterior mean
        along the noise's covariance is a posterior variance (stein1981).
        """
        noise, (x, variance) = self.A**2 @ self.posterior.noise, self.moments(rows.u)
        seen, off = noise > 0.0, x - self.mu - rows.u @ self.A.T
        return ((off**2 + 2.0 * variance)[:, seen] / noise[seen] - 1.0).sum(axis=1)


@unprinted
class Margins:
    """Posterior means of attributes, ``mu + B c``, from independent directions ``c = R v``.

    Attributes
    ----------
    R : ndarray of shape (C, r)
    B : ndarray of shape (N, C)
    mu : ndarray of shape (N,)
    each : list of C OnLattices
        Posterior of each direction, given the direction's copy alone.
    """

    R: Array
    B: Array
    mu: Array
    each: list[OnLattices]

    @classmethod
    def of(
        cls,
        R: Array,
        B: Array,
        mu: Array,
        steps: Iterable[Array | Heaps],
        prior: Mixture,
        rows: NoisyRows,
    ) -> Margins:
        """Weights of each direction learnt from rows; C ``steps``."""
        each, one, zero = list[OnLattices](), np.eye(1), np.zeros(1)
        for a, step in zip(R, steps, strict=True):
            V = (prior.covariances @ a @ a)[:, None, None]
            along = Mixture(prior.weights, prior.means @ a[:, None], V)
            seen = NoisyRows(rows.u @ a[:, None], np.array([a**2 @ rows.s]), zero)
            each.append(reweighted(one, zero, step, along, seen))
        return cls(R, B, mu, each)

    def mean(self, v: Array) -> Array:
        return self.mu + self._along(v, OnLattices.mean)[0] @ self.B.T

    def _along(self, v: Array, of: Callable[[OnLattices, Array], Array | Pair]) -> Array:
        """Mean, or mean and variance, of each direction, shape (1 or 2, b, C)."""
        each = zip(self.R, self.each, strict=True)
        return np.stack([interpolated(one, v @ a, of) for a, one in each], axis=2)

    def moments(self, v: Array, s: Array) -> Pair:
        """Posterior means, and their derivatives times the noise, shapes (b, N).

        ``Var_c / noise_c`` is a direction's derivative, ``R S Aᵀ`` its noise's covariance with the
        attributes' noise, and ``A = B R``.
        """
        c, variance = self._along(v, OnLattices.moments)
        noise = np.maximum(self.R**2 @ s, FAINT)
        shared = self.B.T * (self.R * s @ (self.B @ self.R).T)
        return self.mu + c @ self.B.T, variance / noise @ shared


def interpolated(
    one: OnLattices, y: Array, of: Callable[[OnLattices, Array], Array | Pair]
) -> Array:
    """``of`` one direction, linear between points if these are fewer than values."""
    count = FINE * np.ptp(y) / max(float(np.sqrt(one.posterior.noise[0])), FAINT) if len(y) else 0.0
    table = y if count >= len(y) else np.linspace(y.min(), y.max(), int(count) + 2)
    found = np.reshape(of(one, table[:, None]), (-1, len(table)))
    return found if table is y else np.stack([np.interp(y, table, part) for part in found])


@unprinted
class Averaged:
    """Averages of posterior means, ``each`` with weights of shape (E, N).

    ``first`` is the mean under the mixture.
    """

    first: OnLattices
    each: list[OnLattices | Margins]
    weights: Array

    def mean(self, v: Array) -> Array:
        shares = zip(self.each, self.weights, strict=True)
        return np.sum([w * one.mean(v) for one, w in shares if w.any()], axis=0)

    def again(self, start: Mixture, prior: Mixture, rows: NoisyRows) -> Averaged:
        """Fit to other copies, with the same weights."""
        each, old = list[OnLattices | Margins](), self.first.posterior.prior
        for one, w in zip(self.each, self.weights, strict=True):
            if one is not self.first and not w.any():
                each.append(one)
            elif isinstance(one, Margins):
                heaps, wide = [own.heaps for own in one.each], long_tailed(start, rows)
                each.append(Margins.of(one.R, one.B, one.mu, heaps, wide, rows))
            else:
                own = prior if one.posterior.prior is old else start
                found = reweighted(one.A, one.mu, one.heaps, own, rows)
                each.append(replace(found, jointly=one.jointly))
        first = each[0]
        assert isinstance(first, OnLattices)
        return Averaged(first, each, self.weights)


def fitted_heaps(
    posterior: Posterior, v: Array, A: Array, mu: Array, steps: Array | Heaps
) -> Heaps:
    """Weights of attributes that raise held-out likelihood, or on the points of heaps."""
    heaps, shown, noise = Heaps(), v, np.sqrt(A**2 @ posterior.noise)
    if not len(v) or not noise.any():
        return heaps
    if v.shape[1] == 1:
        v, halves = binned(v, float(np.sqrt(posterior.noise[0])) / FINE)
    else:
        shown = v = v[:: max(1, len(v) // FITTED_ROWS)]
        halves = alternate(len(v))
    before = posterior.chances(v)[1]
    if isinstance(steps, dict):
        tried = {j: points for j, (points, _) in steps.items()}
    else:
        chosen = (noise**2 > GRAIN * (A**2).sum(axis=1)) & (FINEST * steps > noise)
        tried = {
            j: occupied(mu[j] + shown @ A[j], steps[j], noise[j])
            for j in np.flatnonzero(chosen).tolist()
        }
    for j, points in tried.items():
        if len(points) < 2:
            continue
        wide = widened(posterior, A, j, points - mu[j])
        prior = wide.without(posterior.noise > 0.0)
        p, after = densities(wide, v, A[j], points - mu[j])
        f, _ = densities(prior, v[:1] if posterior.noise.all() else v, A[j], points - mu[j])
        again = isinstance(steps, dict)
        h = weights(p, f, halves.sum(axis=0))[0] if again else learnt(p, f, halves, after - before)
        if h is not None:
            heaps[j] = points, h
    return heaps


def occupied(y: Array, step: float, noise: float) -> Array:
    """Multiples of a step within ``REACH`` deviations of the noise of most values."""
    k, counts = np.unique(np.rint(y / step), return_counts=True)
    reach, total = np.ceil(REACH * noise / step), np.append(0, counts.cumsum())
    near = np.unique(k[:, None] + np.arange(-reach, reach + 1.0))
    near = near[(near >= k[0]) & (near <= k[-1])]
    rows = (
        total[np.searchsorted(k, near + reach, "right")] - total[np.searchsorted(k, near - reach)]
    )
    return step * np.sort(near[np.argsort(-rows, kind="stable")[:MOST_POINTS]])


def alternate(n: int) -> Array:
    """Counts of rows in two halves, (2, n)."""
    return np.eye(2)[:, np.arange(n) % 2]


def binned(v: Array, width: float) -> Pair:
    """Means of rows of one coordinate in bins, (B, 1), and their counts by half, (2, B)."""
    _, at = np.unique(np.rint(v[:, 0] / width), return_inverse=True)
    halves = np.stack([np.bincount(at, half).astype(float) for half in alternate(len(v))])
    return (np.bincount(at, v[:, 0]) / halves.sum(axis=0))[:, None], halves


def learnt(p: Array, f: Array, halves: Array, before: Array | float = 0.0) -> Array | None:
    """Weights if they, after gains ``before``, raise the likelihood of held-out rows.

    ``halves`` counts rows. The likelier of early and late stopping.
    """
    gained = np.zeros((2, 2, len(p))) + before
    for taught, judged in enumerate((1, 0)):
        few, seen = (np.flatnonzero(halves[half]) for half in (taught, judged))
        of_few, of_seen = (f[rows] if len(f) > 1 else f for rows in (few, seen))
        each = weights(p[few], of_few, halves[taught, few])
        for found, h in zip(gained[:, judged], each, strict=True):
            found[seen] += gains(p[seen], of_seen, h)
    total = halves.sum()
    first, second = (np.einsum("ehn,hn->e", part, halves) / total for part in (gained, gained**2))
    best = int(first.argmax())
    sure = first[best] > LIKELIER * np.sqrt(max(second[best] - first[best] ** 2, 0.0) / total)
    return weights(p, f, halves.sum(axis=0))[best] if sure else None


def filled_steps(steps: Array | float, noise: Array | float) -> Array:
    """Steps, (N,), that follow the noise's deviation where none is coarse."""
    return np.where(FINEST * steps > noise, steps, noise / CONTINUOUS)


def reweighted(
    A: Array, mu: Array, steps: Array | Heaps, prior: Mixture, rows: NoisyRows
) -> OnLattices:
    """Posterior means under weights learnt from rows."""
    posterior = Posterior(prior, rows.s)
    return OnLattices(posterior, A, mu, fitted_heaps(posterior, rows.u, A, mu, steps))


def averaged(
    A: Array,
    mu: Array,
    steps: Array,
    start: Mixture,
    prior: Mixture,
    rows: NoisyRows,
    rng: np.random.Generator,
) -> Averaged:
    """Averages of least estimated squared error, by attribute.

    Of posterior means under the mixture, one normal, ``start``, each attribute alone, independent
    components by FastICA, and all attributes' weights together.
    """
    first = reweighted(A, mu, steps, prior, rows)
    few = rows.part(slice(None, None, max(1, len(rows.u) // JUDGED_ROWS)))
    R = independent_axes(few.u, rng)
    if prior is start and not first.heaps and R is None:
        return Averaged(first, [first], np.ones((1, len(A))))
    noise, wide = A**2 @ rows.s, long_tailed(start, rows)
    each: list[OnLattices | Margins] = [
        first,
        OnLattices(Posterior(start, rows.s), A, mu, {}),
        Margins.of(A, np.eye(len(A)), mu, filled_steps(steps, np.sqrt(noise))[:, None], wide, rows),
    ]
    if R is not None:
        fine = filled_steps(0.0, np.sqrt(R**2 @ rows.s))[:, None]
        each.append(Margins.of(R, A @ R.T, mu, fine, wide, rows))
    v = few.u
    found = [one.moments(v, rows.s) if isinstance(one, Margins) else one.moments(v) for one in each]
    errors, slopes = (np.array(part) for part in zip(*found, strict=True))
    errors -= mu + v @ A.T

    def weighed() -> Pair:
        """Weights of the means, and each entry's gain over the first."""
        w = least_risk(errors, slopes.mean(axis=1))
        w = np.where(w < SLIGHT, 0.0, w)
        w /= w.sum(axis=0)
        mixed, slope = (np.einsum("en,ebn->bn", w, part) for part in (errors, slopes))
        gain = errors[0] ** 2 - mixed**2 + 2.0 * (slopes[0] - slope)
        most, sure = np.maximum(slopes[1].mean(axis=0), FAINT), gain.std(axis=0)
        left = (errors[0] ** 2 + 2.0 * slopes[0]).mean(axis=0) - noise
        least = LEAST_GAIN * np.clip(left, 0.0, most)
        least = np.maximum(ENOUGH * sure / np.sqrt(len(gain)), least)
        unsure = gain.mean(axis=0) < least
        return np.where(unsure, np.eye(len(w))[:, :1], w), np.where(unsure, 0.0, gain)

    w, gain = weighed()
    thin = slice(None, None, max(1, len(v) // FITTED_ROWS))
    v, errors, slopes = v[thin], errors[:, thin], slopes[:, thin]
    step = PROBE * np.sqrt(rows.s) * rng.standard_normal(v.shape)
    for one in [first] if prior is start else [first, reweighted(A, mu, steps, start, few)]:
        if one.heaps:
            # expectation propagation is not a posterior mean: its slopes are numerical (ramani2008)
            each.append(replace(one, jointly=True))
            x = each[-1].mean(v)
            slope = (each[-1].mean(v + step) - x) * (step @ A.T) / PROBE**2
            errors = np.concatenate([errors, [x - mu - v @ A.T]])
            slopes = np.concatenate([slopes, [slope]])
    if len(each) > len(w):
        together, gained = weighed()
        more = (gained - gain[thin])[:, noise > 0.0] @ (1.0 / noise[noise > 0.0])
        if more.mean() > SURE_OF * more.std() / np.sqrt(more.size):
            w = together
    return Averaged(first, each[: len(w)], w)


def least_risk(errors: Array, slopes: Array) -> Array:
    """Nonnegative weights of least risk, shape (E, N), sums 1.

    Risk of weights w is ``wᵀGw + 2 cᵀw`` plus a constant.

    Parameters
    ----------
    errors : ndarray of shape (E, n, N)
        Estimates less the copy: ``G`` is their mean product, by attribute.
    slopes : ndarray of shape (E, N)
        ``c``: mean derivatives with respect to the copy, times the noise.
    """
    E, _, N = errors.shape
    weights = np.empty((E, N))
    for a in range(N):
        G = errors[:, :, a] @ errors[:, :, a].T / errors.shape[1]
        scale = np.trace(G) + FAINT
        L = np.linalg.cholesky(G / scale + 1e-9 * np.eye(E))
        c = (slopes[:, a] - slopes[:, a].mean()) / scale
        # wᵀGw + 2 cᵀw + … = ‖Lᵀw + L⁻¹c‖², and Σ w = 1 nearly
        sides = np.append(-np.linalg.solve(L, c), FIRM)
        weights[:, a] = scipy.optimize.nnls(np.vstack([L.T, np.full(E, FIRM)]), sides)[0]
    return weights / weights.sum(axis=0)


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
    step, along = np.diff(points).min(), prior.covariances @ a @ a
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


def densities(posterior: Posterior, v: Array, a: Array, points: Array) -> Pair:
    """Densities of ``aᵀx`` at points given rows v, shape (b, L), times the step.

    And the rows' log-likelihoods.
    """
    q, b, std, log_likelihood = posterior.along(v, a)
    found, step, s = np.empty((len(v), len(points))), np.diff(points).min(), std[:, None]
    scale = np.log(np.maximum(q, FAINT) * step / np.sqrt(2.0 * np.pi) / s)
    # log q_k N(l; b_k, s_k²) is linear in 1, l and l²
    factors = np.stack([scale - 0.5 * (b / s) ** 2, b / s**2, 0.0 * b - 0.5 / s**2], axis=2)
    shown = np.vander(points, 3, increasing=True).T
    for start, stop in evenly(0, len(v), len(q) * len(points), CHUNK_VALUES):
        log_p = factors[:, start:stop] @ shown
        few = np.maximum(log_p, LEAST, out=np.empty(log_p.shape, np.float32), casting="same_kind")
        np.exp(few, out=few).sum(axis=0, out=found[start:stop])
    return found, log_likelihood


def gains(p: Array, f: Array, h: Array) -> Array:
    """Each row's gain of log-likelihood, shape (n,)."""
    return np.log(np.maximum(p @ h, FLOOR)) - np.log(np.maximum(f @ h, FLOOR))


def weights(p: Array, f: Array, counts: Array) -> Pair:
    """``h``, shape (L,), from 1 upwards in likelihood, stopped early and late.

    ``counts`` are of each row, (n,); ``f`` has one row if all are equal. One more row by the mixture
    keeps unseen points possible. Steps lengthen until one lowers the likelihood.
    """
    h = kept = ratio = np.ones(p.shape[1])
    early, last, power = None, -np.inf, 1.0
    times = counts if len(f) > 1 else counts.sum(keepdims=True)
    one = times @ f / counts.sum() + FLOOR
    for _ in range(MOST_STEPS):
        of_p, of_f = (np.maximum(e @ h, FLOOR) for e in (p, f))
        found = float(counts @ np.log(of_p) - times @ np.log(of_f))
        if found < last and power > 1.0:
            h, power = kept * ratio, 1.0
            continue
        if early is None and found - last < EARLY:
            early = kept
        if found - last < GAIN:
            break
        last, kept = found, h
        # products: ten times as fast
        ratio = (counts / of_p @ p + one / h) / (times / of_f @ f + one)
        h = np.minimum(np.maximum(h * ratio**power, FLOOR), 1.0 / FLOOR)
        power = min(LONGER * power, LONGEST)
    return (kept if early is None else early), kept
