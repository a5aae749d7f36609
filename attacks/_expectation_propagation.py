"""Normal-mixture posterior under any noise, by expectation propagation.

Noise is independent between attributes. Each likelihood is replaced by the normal factor that
preserves mass, mean and variance given all other factors.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``L_a(x)`` | likelihood of attribute a's value, log-linear between knots | | ``_channel`` |
| ``C, h, p`` | ``C exp(h x − p x²/2)``, which replaces ``L_a`` in component k | (K, n), (N, K, n), (N, K, n) | minka2001 |
| ``α, m, V`` | the prior's weights, means and covariances | (K,), (K, N), (K, N, N) | bovy2011 |
| ``q`` | posterior probability of each component, given a row | (K, n) | bovy2011 |
| ``b`` | ``m + B (h − p m)``: posterior mean in the component | (N, K, n) | |
| ``B`` | ``(V⁻¹ + diag p)⁻¹``: its posterior covariance | (N, N, K, n) | |
| ``m_c, v_c`` | mean and variance of attribute a given all factors but ``L_a`` | (K, n) | minka2001 |
| ``c(l)`` | ``Σ_k q_k N(l; m_c, v_c)`` at points of an attribute, ``q`` without ``L_a`` | (n, L) | |
| ``h(l)`` | weight of a point, by EM from ``c L_a`` and ``c`` (``_lattice``) | (L,) | |
| ``x̂`` | ``Σ_l l h c L_a / Σ_l h c L_a`` | (n,) | |
| risk | ``−Σ_a log (Σ_l h c L_a / Σ_l h c)``: pseudo-likelihood of attributes given all others | (n,) | |

*Approximate* if attributes depend on one another within a component. Lattice noise is treated
as continuous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.linear_algebra import clip_to_psd, quotient
from auditor.numerics.truncated_normal import cut_normal, matched, propagated
from auditor.plugin import Array, Arrays, unprinted

from ._channel import LEAST, Channel, Overlap, Product, by_attribute
from ._deconvolution import GRAIN, Mixture, Moments, NoisyRows, normalised
from ._lattice import (
    BROAD,
    FITTED_ROWS,
    FLOOR,
    LEAST_WIDTH,
    MOST_POINTS,
    Heaps,
    alternate,
    filled_steps,
    gains,
    learnt,
)

ROUNDS = 2
"""Rounds over all attributes. A third gains nothing (three clusters in two attributes, Laplace
noise)."""
WIDEST = 1e4
"""Largest ratio of cavity variance to likelihood variance. Beyond it rounding would spoil the
moments; only the slope counts."""
NEARLY_NORMAL = 1.0 / 16.0
"""Excess kurtosis below which Skellam noise is treated as normal: a variance of 16 squared
steps."""
WIDER = 8
"""Factor of the rows in a piece: fewer, longer calls are 2.7 times as fast (Laplace, 4 components)."""
THINNEST = 1e6
"""Largest ratio of likelihood variance to cavity variance. It bounds how narrow an atom may be."""


LOWEST = -700.0
"""Least log-density of a component at a point."""


class Likelihood(NamedTuple):
    """One attribute's likelihood in n rows, log-linear in P pieces.

    ``exp(height + slope·x)`` from ``low`` to ``high``, shapes (P, 1, n).

    ``centre, std``: of a normal about as wide, shapes (n,).
    """

    low: Array
    high: Array
    height: Array
    slope: Array
    centre: Array
    std: Array

    @classmethod
    def of(cls, channel: Channel, copies: Array, origin: float, unit: float) -> Likelihood:
        """Likelihood of ``(x − origin)/unit``.

        Given copies of shape (n, k).
        """
        if isinstance(channel, Overlap):
            low, high = ((end - origin) / unit for end in channel.overlap(copies))
            width = np.maximum(high - low, 1e-6 * channel.noise.std / unit)
            flat = 0.0 * low[None, None]
            centre, std = (low + high) / 2.0, width / np.sqrt(12.0)
            return cls(low[None, None], high[None, None], flat, flat, centre, std)
        assert isinstance(channel, Product)
        knots = channel.knots(copies)
        log_f = np.maximum(channel.log_likelihood(copies, knots), LEAST).T[:, None].copy()
        t = (knots.T[:, None] - origin) / unit
        slope = quotient(np.diff(log_f, axis=0), np.diff(t, axis=0))
        low, high = t[:-1].copy(), t[1:].copy()
        low[0], high[-1] = -np.inf, np.inf
        centre, variance = channel.normal_like(copies)
        std = np.full(len(knots), np.sqrt(variance) / unit)
        height = log_f[:-1] - slope * t[:-1]
        return cls(low, high, height, slope, (centre - origin) / unit, std)

    def at(self, points: Array) -> Array:
        """Logarithms at points, shape (n, L): the least of the concave pieces."""
        x = points[:, None, None]
        found = (self.height[:, 0] + self.slope[:, 0] * x).min(axis=1)
        possible = (self.low[0, 0] <= x[:, 0]) & (x[:, 0] <= self.high[-1, 0])
        return np.where(possible, found, LEAST).T

    def tilted(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Log-mass, mean and variance of ``N(x; mean, variance) L(x)``.

        Shapes (K, n).
        """
        shifted = mean + self.slope * variance
        log_mass, inside, spread = cut_normal(shifted, variance, self.low, self.high)
        log_w = self.height + self.slope * (mean + 0.5 * self.slope * variance) + log_mass
        # scipy's logsumexp is ten times slower on a few pieces
        w, log_total = normalised(log_w)
        found = (w * inside).sum(axis=0)
        return log_total, found, (w * (spread + (inside - found) ** 2)).sum(axis=0)

    def matched(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """``log C``, ``h``, ``p`` of the matched normal, shapes (K, n)."""
        v_c = np.clip(variance, self.std**2 / THINNEST, self.std**2 * WIDEST)
        m_c = self.centre + (mean - self.centre) * np.minimum(1.0, v_c / np.maximum(variance, v_c))
        log_Z, found, v = self.tilted(m_c, v_c)
        return matched(log_Z, found, np.maximum(v, 1e-9 * v_c), m_c, v_c)


def _is_normal(channel: Channel) -> bool:
    return channel.exact or (
        channel.noise.distribution == "skellam" and channel.noise.excess_kurtosis < NEARLY_NORMAL
    )


class Found(NamedTuple):
    """Posterior of n rows: ``q``, log-likelihoods, (n,), ``b``, ``B``, and ``m_c, v_c`` by attribute."""

    q: Array
    log_likelihood: Array
    b: Array
    B: Array
    cavities: dict[int, tuple[Array, Array]]


@unprinted
class RowsInAnyNoise(NoisyRows):
    """Rows observed through noise of any law, independent between attributes.

    A likelihood is None if it is normal or the value exact.
    """

    error: ClassVar[float] = 0.005
    """Error of expectation propagation. Without this margin, normal data would favour more
    components."""
    most_steps: ClassVar[int] = 5
    """Few: EM starts from the mixture fitted under normal noise."""

    own_start: ClassVar[bool] = False

    likelihoods: tuple[Likelihood | None, ...]

    @classmethod
    def of(
        cls, found: Sequence[Channel], copies: Arrays, origin: Array, unit: Array
    ) -> RowsInAnyNoise:
        """Rows ``(x − origin)/unit`` observed through N channels.

        Copies have shape (n, N).
        """
        given = list(zip(found, by_attribute(copies), origin, unit, strict=True))
        likelihoods = tuple(
            None if _is_normal(channel) else Likelihood.of(channel, y, o, one)
            for channel, y, o, one in given
        )
        centres, variances = zip(
            *(channel.normal_like(y) for channel, y, _, _ in given), strict=True
        )
        s = np.array(variances) / unit**2
        kurtosis = [0.0 if channel.exact else channel.noise.excess_kurtosis for channel in found]
        return cls(
            (np.stack(centres, axis=1) - origin) / unit, s, np.array(kurtosis) * s**2, likelihoods
        )

    def part(self, where: NDArray[np.generic] | slice) -> RowsInAnyNoise:
        parts = (
            None if each is None else Likelihood(*(array[..., where] for array in each))
            for each in self.likelihoods
        )
        return RowsInAnyNoise(self.u[where], self.s, self.fourth, tuple(parts))

    def posteriors(self, prior: Mixture) -> Iterator[tuple[RowsInAnyNoise, Found]]:
        """Yield pieces of the rows, and their posteriors."""
        # EM leaves variances below 0 in atoms, for which no factor would be updated
        V = clip_to_psd(prior.covariances) + GRAIN * np.eye(self.s.size)
        prior = replace(prior, covariances=V)
        pieces = [len(each.low) for each in self.likelihoods if each is not None]
        for part in self.pieces(prior.size * max([self.s.size**2, *pieces]) // WIDER):
            assert isinstance(part, RowsInAnyNoise)
            yield part, posterior(prior, part, ROUNDS)

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        q, log_likelihood = zip(*(found[:2] for _, found in self.posteriors(prior)), strict=True)
        return np.concatenate(q, axis=1), np.concatenate(log_likelihood)

    def moments(self, prior: Mixture) -> Moments:
        parts = []
        for _, (q, log, b, B, _) in self.posteriors(prior):
            d = b.swapaxes(0, 1) - prior.means[:, :, None]
            weighed = q[:, None] * d
            second = weighed @ d.mT + np.einsum("kn,abkn->kab", q, B)
            parts.append((q.sum(axis=1), weighed.sum(axis=2), second, log.sum()))
        total, first, second, log_likelihood = (sum(part) for part in zip(*parts, strict=True))
        return Moments(total, first, second, float(log_likelihood))


def posterior(prior: Mixture, rows: RowsInAnyNoise, rounds: int) -> Found:
    """Posterior of n rows by expectation propagation."""
    u, s, V = rows.u, rows.s, prior.covariances
    # from normal noise only: a normal instead of Laplace would move an outlying row too far
    start = np.array([each is None for each in rows.likelihoods]) / np.maximum(s, GRAIN)
    (K, n), M, m = (prior.size, len(u)), np.eye(len(s)) + V * start, prior.means.T[:, :, None]
    # (V⁻¹ + diag p)⁻¹ for any V, per component, then per row
    B = np.linalg.solve(M, V)
    p = start[:, None, None]
    known = (
        np.tile(p * u.T[:, None], (1, K, 1)),
        np.tile(p, (1, K, n)),
        np.einsum("kba,bkn->akn", B, p * (u.T[:, None] - m)),
        np.repeat(np.moveaxis(B, 0, 2)[..., None], n, axis=3),
        np.repeat(np.linalg.slogdet(M)[1][:, None], n, axis=1),
    )
    likelihoods = {a: each for a, each in enumerate(rows.likelihoods) if each is not None}
    cavities = dict[int, tuple[Array, Array]]()

    def match(a: int, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        cavities[a] = mean, variance
        return likelihoods[a].matched(mean, variance)

    log_q, moved, covariances = propagated(m, known, match, [*likelihoods] * rounds, GRAIN)
    log_q += np.log(np.maximum(prior.weights, np.finfo(float).tiny))[:, None]
    return Found(*normalised(log_q), m + moved, covariances, cavities)


@unprinted
class Reweighted:
    """Posterior means under a mixture whose margins have weights, ``heaps``, as in ``_lattice``."""

    prior: Mixture
    heaps: Heaps

    @classmethod
    def fitted(
        cls, origin: Array, steps: Array, prior: Mixture, rows: RowsInAnyNoise
    ) -> Reweighted:
        """Weights that raise the likelihood of held-out rows.

        At points ``steps·k − origin``, of steps that follow the noise where none is coarse.
        """
        rows = rows.part(slice(None, None, max(1, len(rows.u) // FITTED_ROWS)))
        squares = np.diagonal(prior.covariances, axis1=1, axis2=2) + prior.means**2
        V = prior.weights @ squares
        narrow = V < LEAST_WIDTH**2 * rows.s
        wide = broadened(prior, np.where(narrow, V, (np.ptp(rows.u, axis=0) / 2.0) ** 2))
        points, heaps = dict[int, Array](), Heaps()
        for a, likelihood in enumerate(rows.likelihoods):
            if likelihood is not None and not narrow[a]:
                step = filled_steps(steps[a], likelihood.std[0])
                step *= np.maximum(1.0, np.ceil(np.ptp(rows.u[:, a]) / step / (MOST_POINTS - 2)))
                k = np.rint((rows.u[:, a] + origin[a]) / step)
                points[a] = step * np.arange(k.min(), k.max() + 2.0) - origin[a]
        held = [
            [at_points(*part, a, x) for a, x in points.items()] for part in rows.posteriors(wide)
        ]
        for (a, x), *parts in zip(points.items(), *held, strict=True):
            p, f = (np.concatenate(part) for part in zip(*parts, strict=True))
            h = learnt(p, f, alternate(len(p)))
            if h is not None:
                heaps[a] = x, h
        return cls(wide if heaps else prior, heaps)

    def mean(self, rows: RowsInAnyNoise) -> Array:
        """``Σ_k q_k b_k``, or ``Σ_l l h p / Σ_l h p`` with weights, shape (n, N)."""
        means = []
        for part, found in rows.posteriors(self.prior):
            x = (found.q * found.b).sum(axis=1).T
            for a, (points, h) in self.heaps.items():
                p = at_points(part, found, a, points)[0]
                total = p @ h
                np.divide(p @ (h * points), total, out=x[:, a], where=total > FLOOR)
            means.append(x)
        return np.concatenate(means)

    def risk(self, rows: RowsInAnyNoise) -> Array:
        """Minus the log-likelihoods of each attribute given all others, summed, (n,)."""
        risks = []
        for part, found in rows.posteriors(self.prior):
            total = np.zeros(len(part.u))
            for a in found.cavities:
                total += without(part, found, a)[1]
                if a in self.heaps:
                    points, h = self.heaps[a]
                    total -= gains(*at_points(part, found, a, points), h)
            risks.append(total)
        return np.concatenate(risks)


def broadened(prior: Mixture, V: Array) -> Mixture:
    """Add a component of weight ``BROAD`` and variances (N,)."""
    return Mixture(
        np.append(prior.weights * (1.0 - BROAD), BROAD),
        np.vstack([prior.means, prior.weights @ prior.means]),
        np.concatenate([prior.covariances, np.diag(V)[None]]),
    )


def without(rows: RowsInAnyNoise, found: Found, a: int) -> tuple[Array, Array]:
    """``q`` without attribute a, (K, n), and minus its log-likelihood given all others."""
    likelihood = rows.likelihoods[a]
    assert likelihood is not None
    log_q = np.log(np.maximum(found.q, FLOOR)) - likelihood.tilted(*found.cavities[a])[0]
    # of an excluded component only q's rounding error is left
    return normalised(np.where(found.q > FLOOR, log_q, -np.inf))


def at_points(rows: RowsInAnyNoise, found: Found, a: int, points: Array) -> tuple[Array, Array]:
    """``p = c(l) L_a(l) / ∫ c(x) L_a(x) dx`` and ``c`` at attribute a's points, (n, L).

    ``c = Σ_k q_k N(l; m_c, v_c)``, of components as wide as in ``_lattice``, each of sum 1.
    """
    likelihood, (q, evidence) = rows.likelihoods[a], without(rows, found, a)
    assert likelihood is not None
    mean, variance = (each[..., None] for each in found.cavities[a])
    wide = np.maximum(variance, (LEAST_WIDTH * (points[1] - points[0])) ** 2)
    # numpy's exponentials are slow below the least normal number
    density = np.exp(np.maximum(-0.5 * (points - mean) ** 2 / wide, LOWEST))
    c = np.einsum("kn,knl->nl", q / density.sum(axis=2), density)
    return c * np.exp(likelihood.at(points) + evidence[:, None]), c
