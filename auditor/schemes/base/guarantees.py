"""Differential privacy of a coalition's copies, from the noise law.

| symbol | meaning | source |
| --- | --- | --- |
| ``Δ`` | change of one record, ``|Δ_j| ≤ high_j − low_j``; d units on a lattice | |
| ``C`` | ``(Hᵀ K_Z⁺ H)⁻¹``, H stacked identities: noise covariance of the best combination | |
| ``Q`` | ``diag(spans) C⁻¹ diag(spans)``: ``vᵀQv`` is the squared length of corner v | |
| ``μ`` | ``max_Δ √(Δᵀ C⁻¹ Δ)``: telling records apart is as hard as ``N(0, 1)`` from ``N(μ, 1)`` | dong2022 |
| ``ε`` | largest log-ratio of any output's probabilities under two records | |
| ``(ε, δ)`` | ``P(E|x) ≤ e^ε P(E|x') + δ`` for every event E | dwork2006 |
| ``ρ`` | Rényi divergence of order α at most ``αρ`` for every α > 1 | bun2016 |

The length is convex: its maximum is at a corner. Of one process the least perturbed copy counts.
Over independent copies ``μ²`` and ε add up (dong2022, Corollary 3.3). With ``serial:``, ``K_Z`` is
conditional on the noise of other records.

*Not checked*: that ``K_Z`` is public and does not depend on the record, as with ``noise: bounds``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from auditor.base import scipy
from auditor.base.types import Array, Flags, Levels
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import EPS, in_own_units, is_diagonal
from auditor.numerics.statistics import root
from auditor.schemes.base.noise_density import LATTICE, NoiseDensity, geometric_rate
from auditor.schemes.base.noise_law import (
    BITS,
    DenseNoise,
    KroneckerNoise,
    NoiseLaw,
    makes_useless,
    one_suffices,
    psd_root,
)

LARGEST = 1e12
"""Largest ε searched for."""
TAIL_STEPS = 40
"""Lattice points summed beyond twelve deviations and the change; the rest is below 1e-30.
"""
MOST_SUMMED = 10**5
"""Most Skellam probabilities summed; beyond, the μ bound is larger by a share of ``1/(3v)``.
"""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Least δ at which μ-Gaussian privacy is (ε, δ).

    ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)``: exact for Gaussian noise (balle2018, Theorem 8), else an
    upper bound (dong2022, Corollary 2.13).

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
    return float(-np.exp(first) * np.expm1(min(0.0, epsilon + second - first)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Least ε ≥ 0 at which μ-Gaussian privacy is (ε, δ), 0 < δ < 1."""
    # Φ(μ/2 − ε/μ) ≥ δ(ε), and Φ(−z) ≤ e^{−z²/2}: at z = √(2 ln 1/δ) the first is at most δ.
    high = mu * (mu / 2.0 + math.sqrt(2.0 * math.log(1.0 / delta)))
    if not high <= LARGEST:
        return math.inf
    return root(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high)


def shift_mu(noise: NoiseDensity, change: float) -> float:
    """Least μ of Laplace, geometric or Skellam noise.

    Infinite above about 74. ``y ≥ t`` errs with probabilities ``1 − F(t)`` and ``F(t − Δ)``: ``μ =
    max_t z(t) − z(t − Δ)``. z is odd and flattens outwards, so ``t = Δ/2``.

    Parameters
    ----------
    change
        Δ ≥ 0 in data units; whole on a lattice.

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
    """Least ρ of one value with geometric noise, ``q = e^{−rate}``.

    ``pure`` is its ε; rate 0 is Laplace noise. ρ is the divergence of order 1, ``ε − (1 −
    e^{−ε})·λ/sinh λ``, because ``D_α/α`` falls with α. ``E e^{(α − ½)L}`` under the middle measure
    ``√(pq)`` has imaginary zeros only (Pólya 1918; Eneström and Kakeya on a lattice). So ``log Π (1
    + u/y_k²)`` is concave in ``u = (α − ½)²``, and ``D_α/α`` is its slope from ``u = ¼``.
    """
    factor = -2.0 * rate * math.exp(-rate) / math.expm1(-2.0 * rate) if rate > 0.0 else 1.0
    return pure + math.expm1(-pure) * factor


def laplace_epsilon(pure: float, delta: float) -> float:
    """Least ε of Laplace noise: ``pure + 2 ln(1 − δ)``."""
    return max(0.0, pure + 2.0 * math.log1p(-delta))


def concentrated_epsilon(rho: float, delta: float) -> float:
    """``ρ + 2 √(ρ ln 1/δ)``, ε at δ (bun2016, Proposition 1.3)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def is_summed(d: int, v: float) -> bool:
    """Whether Skellam noise of variance v, shifted by d, is cheap to sum."""
    return 24.0 * math.sqrt(v) + 3.0 * d <= MOST_SUMMED


def _skellam(d: int, v: float) -> tuple[Array, Array]:
    reach = math.ceil(12.0 * math.sqrt(v)) + d + TAIL_STEPS
    k, noise = np.arange(-reach, reach + 1.0), NoiseDensity("skellam", math.sqrt(v))
    return noise.log_pdf(k), noise.log_pdf(k - d)


def skellam_rho(d: int, v: float) -> float:
    """Least ρ of one value with Skellam noise, changed by d units.

    ``D_α/α`` at order 1, ``Σ_k P(k) ln P(k)/P(k − d)``, taken as the supremum. Unproved; verified
    for d from 1 to 30, v from 0.01 to 9,000 and orders to 100. ``agarwal2021``'s bound lies above.
    """
    p, q = _skellam(d, v)
    return float(0.5 * ((np.exp(p) - np.exp(q)) * (p - q)).sum())


def skellam_delta(d: int, v: float, epsilon: float) -> float:
    """``δ`` of Skellam noise changed by d: ``Σ_k (P(k − d) − e^ε P(k))₊``."""
    q, p = _skellam(d, v)
    return float(-(np.exp(p) * np.expm1(np.minimum(0.0, epsilon + q - p))).sum())


@lru_cache(maxsize=2**12)
def skellam_epsilon(d: int, v: float, delta: float) -> float:
    """Least ε ≥ 0 of ``skellam_delta``."""
    most = concentrated_epsilon(skellam_rho(d, v), delta)
    return root(lambda epsilon: skellam_delta(d, v, epsilon) - delta, 0.0, most)


MOST_CORNERS = 20
"""Most attributes for an exhaustive search."""
BOX = "an upper bound: over the corners of more than 20 attributes the largest length is bounded, not found"


@dataclass(frozen=True)
class Length:
    """Largest Mahalanobis length of a change; ``note`` if only a bound."""

    value: float
    corner: Array = field(repr=False)
    note: str = ""

    def over(self, deviation: float) -> Length:
        """Length under noise of ``deviation`` times the size."""
        return Length(
            self.value / deviation if deviation > 0.0 else math.inf, self.corner, self.note
        )


@dataclass(frozen=True)
class Filled:
    """Cells that hold a column's mean.

    A change of one record by Δ moves each filled cell of column j by at most ``Δ_j / present_j``.

    Attributes
    ----------
    pairs : (N, N)
        Records with both cells filled.
    present : (N,)
    """

    pairs: Array = field(repr=False)
    present: Array = field(repr=False)

    @classmethod
    def of(cls, blanks: Flags | None) -> Filled | None:
        """Filled cells by indicator of blanks, (n, N)."""
        if blanks is None:
            return None
        cells = blanks.astype(float)
        return cls(cells.T @ cells, len(cells) - cells.sum(axis=0))

    def factor(self, records: int) -> Array:
        """Factor of Q for some records, shape (N, N)."""
        return records + records**2 * self.pairs / np.outer(self.present, self.present)


def largest_length(C: Array, spans: Array, factor: Array | float = 1.0) -> Length:
    """Largest ``√(Δᵀ C⁻¹ Δ)`` over the box ``|Δ_j| ≤ spans_j``.

    ``factor`` multiplies Q entry by entry. Infinite where C is singular. Rounding never overstates
    privacy.
    """
    N = len(C)
    scaled, size = in_own_units(C)
    values, vectors = np.linalg.eigh(scaled)
    values = values - (BITS * N * EPS * values[-1] if N > 1 else 0.0)
    if (np.diag(C) <= 0.0).any() or values[0] <= 0.0:
        return Length(math.inf, spans)
    u = spans / size
    Q = factor * np.outer(u, u) * ((vectors / values) @ vectors.T)
    if N <= MOST_CORNERS:
        signs = _worst_corner(Q)
        return Length(math.sqrt(float(signs @ Q @ signs)), signs * spans)
    diagonal, off = np.diag(Q), Q - np.diag(np.diag(Q))
    highest = (
        float(np.abs(Q).sum()),
        float(diagonal.sum() + N * np.linalg.eigvalsh(off)[-1]),
        N * float(np.linalg.eigvalsh(Q)[-1]),
    )
    return Length(math.sqrt(min(highest)), _climbed(Q) * spans, BOX if off.any() else "")


def _worst_corner(Q: Array) -> Array:
    """Signs v, shape (N,), with the largest ``vᵀ Q v``, exhaustively.

    In halves a and b, ``vᵀQv = aᵀQ_aa a + 2 aᵀQ_ab b + bᵀQ_bb b``: one matrix product.
    """
    N = len(Q)
    half = N // 2
    a, b = _signs(half), _signs(N - half)
    b = b[b[:, -1] > 0]
    squares = [
        np.einsum("ki,ij,kj->k", s, block, s)
        for s, block in ((a, Q[:half, :half]), (b, Q[half:, half:]))
    ]
    lengths = squares[0][:, None] + 2.0 * a @ Q[:half, half:] @ b.T + squares[1]
    i, j = np.unravel_index(int(np.argmax(lengths)), lengths.shape)
    return np.concatenate([a[i], b[j]])


def _signs(n: int) -> Array:
    return np.asarray(1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1))


def _climbed(Q: Array) -> Array:
    """Signs of a long corner by coordinate ascent: a lower bound."""
    v = np.where(Q[int(np.argmax(np.diag(Q)))] < 0, -1.0, 1.0)
    for _ in range(10 * len(Q)):
        gain = -4.0 * v * (Q @ v) + 4.0 * np.diag(Q)
        j = int(np.argmax(gain))
        if gain[j] <= 1e-12 * abs(float(v @ Q @ v)):
            break
        v[j] = -v[j]
    return v


def combined_noise(R: Array, N: int) -> Array:
    """``C = (Hᵀ K⁺ H)⁻¹``, shape (N, N), from a root ``K = R Rᵀ``.

    K, of k copies, may be singular. C is their mean noise's residual covariance after regression on
    the copies' differences.
    """
    k = len(R) // N
    blocks = R.reshape(k, N, -1)
    mean, differences = blocks.mean(axis=0), (blocks[1:] - blocks[:1]).reshape((k - 1) * N, -1)
    size = np.linalg.norm(differences, axis=1)
    scale = np.sqrt(np.clip(np.einsum("il,il->i", R, R), 0.0, None)).max(initial=0.0)
    told = differences[size > BITS * len(R) * EPS * scale]
    if len(told) == 0:
        return mean @ mean.T
    _, s, Vt = np.linalg.svd(told / np.linalg.norm(told, axis=1)[:, None], full_matrices=False)
    Vt = Vt[s > len(R) * EPS * s[0]]
    rest = mean - (mean @ Vt.T) @ Vt
    # once more, against rounding
    rest -= (rest @ Vt.T) @ Vt
    rest[np.abs(rest) <= BITS * len(R) * EPS * np.abs(mean).max(axis=1, keepdims=True)] = 0.0
    return rest @ rest.T


BY_VALUE = "an upper bound, from the figures of each value"
NO_NOISE = "infinite: a combination of the copies is free of noise"
UNBOUNDED = "infinite: the ratio of chances has no bound"
APART = (
    "infinite: some outputs tell two records apart for certain; the chance of one is at most {:.3g}"
)
FAR = "infinite: beyond some 74, up to where μ is computed"
UNSTATED = "infinite: none is stated of such noise whose values hang together"
FILLED = "infinite: none is stated where blanks hold the mean, except of Gaussian and Laplace noise"
WHOLE = 1e-9
"""Rounding tolerance of a whole number of units."""


@dataclass(frozen=True)
class Figure:
    """One figure of a guarantee, infinite if none."""

    value: float
    note: str = ""


Guarantee = dict[str, Figure]
"""By metric: ``gaussian_dp`` (μ), ``concentrated_dp`` (ρ), ``epsilon`` (pure), ``epsilon_at_delta``
(at the stated δ).
"""


@dataclass(frozen=True)
class Guarantees:
    """Guarantees of coalitions' copies.

    Attributes
    ----------
    spans : (N,)
        Largest change by attribute, > 0.
    delta
        In (0, 1).
    records
        Most records of one protected unit.
    """

    law: NoiseLaw
    spans: Array = field(repr=False)
    delta: float
    records: int = 1
    filled: Filled | None = field(default=None, repr=False)
    """Cells that hold a mean."""

    def of(self, copies: Sequence[int]) -> Guarantee:
        """Guarantee of a coalition, by copy numbers from 1."""
        if self.filled is not None and (
            self.law.distribution not in ("gaussian", "laplace") or self._is_serial
        ):
            return _nothing(FILLED)
        if self.law.distribution == "gaussian":
            return self._gaussian(self.length(copies))
        law, levels, kind = self._product, self.counted(copies), self.law.distribution
        if min(levels) <= 0.0 or (np.diag(law.shape) <= 0.0).any():
            return _nothing(NO_NOISE)
        if not law.one_process and not is_diagonal(law.level_covariance):
            return _nothing(UNSTATED)
        if kind == "uniform":
            return self._uniform(levels)
        if not is_diagonal(law.shape):
            return _nothing(UNSTATED)
        return self._values(levels)

    @property
    def _product(self) -> KroneckerNoise:
        assert isinstance(self.law, KroneckerNoise)
        return self.law

    @cached_property
    def changes(self) -> Array:
        """Largest possible change of each attribute, (N,), whole on a lattice."""
        units = (
            self.law.units
            if isinstance(self.law, KroneckerNoise) and self.law.distribution in LATTICE
            else None
        )
        return self.spans if units is None else np.floor(self.spans / units + WHOLE) * units

    def counted(self, copies: Sequence[int]) -> list[float]:
        """Levels that count: one process's least, else all."""
        law = self._product
        levels = [float(law.level_covariance[copy - 1, copy - 1]) for copy in copies]
        return [min(levels)] if law.one_process else levels

    def length(self, copies: Sequence[int]) -> Length:
        """Largest Mahalanobis length of a change under Gaussian noise."""
        if isinstance(self.law, DenseNoise):
            return largest_length(self._combined(copies), self.spans, self._factor)
        index = np.asarray(copies, dtype=int) - 1
        _, v = best_unbiased_combination(self.law.level_covariance[np.ix_(index, index)])
        left = 1.0 if self.law.serial is None else 1.0 / self.law.serial.precision
        return self._length.over(math.sqrt(max(0.0, left * float(v))))

    @cached_property
    def _length(self) -> Length:
        return largest_length(self._product.shape, self.spans, self._factor)

    @property
    def _is_serial(self) -> bool:
        return self.law.serial is not None

    @property
    def _factor(self) -> Array | float:
        if self.filled is not None:
            return self.filled.factor(self.records)
        return float(self.records**2 if self._is_serial else self.records)

    def _combined(self, copies: Sequence[int]) -> Array:
        assert isinstance(self.law, DenseNoise)
        N = self.law.width
        if one_suffices(self._useless, copies):
            best = min(copies, key=lambda copy: float(np.trace(self.law.of([copy]).covariance)))
            return self.law.of([best]).covariance
        return combined_noise(self.law.of(copies).passed_root, N)

    @cached_property
    def _useless(self) -> Flags:
        return makes_useless(self.law)

    def _gaussian(self, found: Length) -> Guarantee:
        mu, note = found.value, found.note
        if math.isinf(mu):
            return _nothing(NO_NOISE)
        return {
            "gaussian_dp": Figure(mu, note),
            "concentrated_dp": Figure(mu * mu / 2.0, note),
            "epsilon": Figure(math.inf, UNBOUNDED),
            "epsilon_at_delta": Figure(gaussian_epsilon(mu, self.delta), note),
        }

    def _values(self, levels: Levels) -> Guarantee:
        moves = [(j, float(change), self.records) for j, change in enumerate(self.changes)]
        if self.filled is not None:  # all records of a unit move a filled cell together
            shifts = self.records * self.changes / self.filled.present
            moves += [
                (j, float(shifts[j]), int(k)) for j, k in enumerate(self.filled.pairs.diagonal())
            ]
        each = [
            (times, *loss(self._product.density_at(level, j), change))
            for level in levels
            for j, change, times in moves
            if times
        ]
        pure = math.fsum(times * e for times, e, _, _ in each)
        mu = math.sqrt(math.fsum(times * m**2 for times, _, m, _ in each))
        rho = math.fsum(times * r for times, _, _, r in each)
        several = len(each) > 1 or self.records > 1
        at_delta = min(
            pure, gaussian_epsilon(mu, self.delta), concentrated_epsilon(rho, self.delta)
        )
        if math.isinf(at_delta):
            return _nothing(FAR)
        return {
            "gaussian_dp": Figure(mu, FAR if math.isinf(mu) else BY_VALUE if several else ""),
            "concentrated_dp": Figure(rho),
            "epsilon": Figure(pure, UNBOUNDED if math.isinf(pure) else ""),
            "epsilon_at_delta": Figure(at_delta, BY_VALUE)
            if several
            else self._one_at_delta(levels[0], pure, at_delta),
        }

    def _one_at_delta(self, level: float, pure: float, bound: float) -> Figure:
        noise = self._product.density_at(level, 0)
        if noise.distribution == "laplace":
            return Figure(laplace_epsilon(pure, self.delta))
        d, v = round(float(self.changes[0]) / noise.unit), (noise.std / noise.unit) ** 2
        if noise.distribution == "skellam" and is_summed(d, v):
            return Figure(skellam_epsilon(d, v, self.delta))
        return Figure(bound, BY_VALUE)

    def _uniform(self, levels: Levels) -> Guarantee:
        """Guarantee of a matrix times independent numbers on ±√3.

        Overlapping outputs are equally likely; others disclose the record.
        """
        root, apart = psd_root(self._product.shape), 1.0
        if np.linalg.cond(root) < 1.0 / EPS:
            moved = np.abs(np.linalg.inv(root)) @ self.spans / (2.0 * math.sqrt(3.0))
            shares = np.outer(1.0 / np.sqrt(np.asarray(levels)), moved)
            apart = (
                float(-np.expm1(self.records * np.log1p(-shares).sum()))
                if (shares < 1.0).all()
                else 1.0
            )
        note = APART.format(apart)
        return _nothing(note) | {
            "epsilon_at_delta": Figure(0.0) if apart <= self.delta else Figure(math.inf, note)
        }


@lru_cache(maxsize=2**12)
def loss(noise: NoiseDensity, change: float) -> tuple[float, float, float]:
    """Least ε, μ and ρ of one value, for a change in data units."""
    mu, rate = shift_mu(noise, change), 0.0
    if noise.distribution == "skellam":
        d, v = round(change / noise.unit), (noise.std / noise.unit) ** 2
        return math.inf, mu, skellam_rho(d, v) if is_summed(d, v) else mu * mu / 2.0
    if noise.distribution == "geometric":
        rate = geometric_rate((noise.std / noise.unit) ** 2)
        pure = change / noise.unit * rate
    else:
        pure = change * math.sqrt(2.0) / noise.std  # Δ/b
    return pure, mu, geometric_rho(pure, rate)


def _nothing(note: str) -> Guarantee:
    return {
        metric: Figure(math.inf, note)
        for metric in ("gaussian_dp", "concentrated_dp", "epsilon", "epsilon_at_delta")
    }
