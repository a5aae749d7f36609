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

*Approximate* if attributes depend on one another within a component. Two rounds nearly reach the
limit. Lattice noise is treated as continuous.
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
        """Return the likelihood of ``(x − origin)/unit``.

        Given copies of shape (n, k).
        """
        if isinstance(channel, Overlap):
            low, high = ((end - origin) / unit for end in channel.overlap(copies))
            width, flat = np.maximum(high - low, 1e-6 * channel.noise.std / unit), 0.0 * low
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

    def tilted(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Return log-mass, mean and variance of ``N(x; mean, variance) L(x)``.

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
        """Return ``log C``, ``h``, ``p`` of the matched normal, shapes (K, n)."""
        v_c = np.clip(variance, self.std**2 / THINNEST, self.std**2 * WIDEST)
        m_c = self.centre + (mean - self.centre) * np.minimum(1.0, v_c / np.maximum(variance, v_c))
        log_Z, found, v = self.tilted(m_c, v_c)
        return matched(log_Z, found, np.maximum(v, 1e-9 * v_c), m_c, v_c)


def _is_normal(channel: Channel) -> bool:
    return channel.exact or (
        channel.noise.distribution == "skellam" and channel.noise.excess_kurtosis < NEARLY_NORMAL
    )


class Found(NamedTuple):
    """Posterior of n rows: ``q``, log-likelihoods, (n,), ``b`` and ``B``."""

    q: Array
    log_likelihood: Array
    b: Array
    B: Array


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

    likelihoods: tuple[Likelihood | None, ...]

    @classmethod
    def of(
        cls, found: Sequence[Channel], copies: Arrays, origin: Array, unit: Array
    ) -> RowsInAnyNoise:
        """Return rows ``(x − origin)/unit`` observed through N channels.

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

    def _posteriors(self, prior: Mixture) -> Iterator[Found]:
        # EM leaves variances below 0 in atoms, for which no factor would be updated
        V = clip_to_psd(prior.covariances) + GRAIN * np.eye(self.s.size)
        prior = replace(prior, covariances=V)
        pieces = [len(each.low) for each in self.likelihoods if each is not None]
        for part in self.pieces(prior.size * max([self.s.size**2, *pieces]) // WIDER):
            assert isinstance(part, RowsInAnyNoise)
            yield posterior(prior, part, ROUNDS)

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        q, log_likelihood, _, _ = zip(*self._posteriors(prior), strict=True)
        return np.concatenate(q, axis=1), np.concatenate(log_likelihood)

    def moments(self, prior: Mixture) -> Moments:
        parts = []
        for q, log, b, B in self._posteriors(prior):
            d = b.swapaxes(0, 1) - prior.means[:, :, None]
            weighed = q[:, None] * d
            second = weighed @ d.mT + np.einsum("kn,abkn->kab", q, B)
            parts.append((q.sum(axis=1), weighed.sum(axis=2), second, log.sum()))
        total, first, second, log_likelihood = (sum(part) for part in zip(*parts, strict=True))
        return Moments(total, first, second, float(log_likelihood))

    def mean(self, prior: Mixture) -> Array:
        """Return ``Σ_k q_k b_k``, shape (n, N)."""
        return np.concatenate([(q * b).sum(axis=1).T for q, _, b, _ in self._posteriors(prior)])


def posterior(prior: Mixture, rows: RowsInAnyNoise, rounds: int) -> Found:
    """Return the posterior of n rows by expectation propagation."""
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
    log_q, moved, covariances = propagated(
        m, known, lambda a, *cavity: likelihoods[a].matched(*cavity), [*likelihoods] * rounds, GRAIN
    )
    log_q += np.log(np.maximum(prior.weights, np.finfo(float).tiny))[:, None]
    return Found(*normalised(log_q), m + moved, covariances)
