"""Differential privacy of a coalition's copies, from the noise law.

| symbol | meaning | source |
| --- | --- | --- |
| ``Δ`` | change of one record, ``|Δ_j| ≤ high_j − low_j``; d units on a lattice | |
| ``C`` | ``v K_0``: noise covariance of the best combination of Gaussian copies | |
| ``Q`` | ``diag(spans) C⁻¹ diag(spans)``: ``vᵀQv`` is the squared length of corner v | |
| ``μ`` | ``max_Δ √(Δᵀ C⁻¹ Δ)``: telling records apart is as hard as ``N(0, 1)`` from ``N(μ, 1)`` | dong2022 |
| ``ε`` | largest log-ratio of any output's probabilities under two records | |
| ``(ε, δ)`` | ``P(E|x) ≤ e^ε P(E|x') + δ`` for every event E | dwork2006 |

The length is convex: its maximum is at a corner. Of one process the least perturbed copy counts.
Over independent copies ``μ²`` and ε add up (dong2022, Corollary 3.3). With ``serial:``, ``K_Z`` is
conditional on the noise of other records.

Noise that mixes shapes across copies has no guarantee.

*Not checked*: that ``K_Z`` is public and does not depend on the record, as with ``noise: bounds``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property, lru_cache

import numpy as np

from auditor.base import scipy
from auditor.base.types import Array, Flags, Levels, frozen
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import EPS, in_own_units, is_diagonal
from auditor.numerics.statistics import root
from auditor.schemes.base.noise_density import LATTICE, NoiseDensity, geometric_rate
from auditor.schemes.base.noise_law import BITS, KroneckerNoise, NoiseLaw

LARGEST = 1e12
"""Largest ε searched for."""


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
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
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


def laplace_epsilon(pure: float, delta: float) -> float:
    """Least ε of Laplace noise: ``pure + 2 ln(1 − δ)``."""
    return max(0.0, pure + 2.0 * math.log1p(-delta))


MOST_CORNERS = 20
"""Most attributes for an exhaustive search."""
BOX = "an upper bound: over the corners of more than 20 attributes the largest length is bounded, not found"


@frozen
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


@frozen
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
        # v and −v are as long
        corners = 1.0 - 2.0 * ((np.arange(2 ** (N - 1))[:, None] >> np.arange(N)) & 1)
        squares = np.einsum("ki,ki->k", corners @ Q, corners)
        longest = corners[squares.argmax()]
        return Length(math.sqrt(squares.max()), longest * spans)
    diagonal, off = np.diag(Q), Q - np.diag(np.diag(Q))
    highest = (
        float(np.abs(Q).sum()),
        float(diagonal.sum() + N * np.linalg.eigvalsh(off)[-1]),
        N * float(np.linalg.eigvalsh(Q)[-1]),
    )
    longest = np.where(np.linalg.eigh(Q)[1][:, -1] < 0, -1.0, 1.0)
    return Length(math.sqrt(min(highest)), longest * spans, BOX if off.any() else "")


BY_VALUE = "an upper bound, from the figures of each value"
NO_NOISE = "infinite: a combination of the copies is free of noise"
UNBOUNDED = "infinite: the ratio of chances has no bound"
APART = "infinite: some outputs tell two records apart for certain"
FAR = "infinite: beyond some 74, up to where μ is computed"
UNSTATED = "infinite: none is stated of such noise whose values hang together"
FILLED = "infinite: none is stated where blanks hold the mean, except of Gaussian and Laplace noise"
WHOLE = 1e-9
"""Rounding tolerance of a whole number of units."""


@frozen
class Figure:
    """One figure of a guarantee, infinite if none."""

    value: float
    note: str = ""


Guarantee = dict[str, Figure]
"""By metric: ``gaussian_dp`` (μ), ``epsilon`` (pure), ``epsilon_at_delta`` (at the stated δ)."""


@frozen
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
        law = self.law
        if not isinstance(law, KroneckerNoise):
            return _nothing(UNSTATED)
        kind = law.distribution
        if self.filled is not None and (
            kind not in ("gaussian", "laplace") or law.serial is not None
        ):
            return _nothing(FILLED)
        if kind == "gaussian":
            found = self.length(copies)
            mu, note = found.value, found.note
            if math.isinf(mu):
                return _nothing(NO_NOISE)
            return {
                "gaussian_dp": Figure(mu, note),
                "epsilon": Figure(math.inf, UNBOUNDED),
                "epsilon_at_delta": Figure(gaussian_epsilon(mu, self.delta), note),
            }
        levels = [float(law.level_covariance[copy - 1, copy - 1]) for copy in copies]
        levels = [min(levels)] if law.one_process else levels  # the others do not count
        if min(levels) <= 0.0 or (np.diag(law.shape) <= 0.0).any():
            return _nothing(NO_NOISE)
        if not law.one_process and not is_diagonal(law.level_covariance):
            return _nothing(UNSTATED)
        if kind == "uniform":
            return _nothing(APART)
        return self._values(law, levels) if is_diagonal(law.shape) else _nothing(UNSTATED)

    @cached_property
    def changes(self) -> Array:
        """Largest possible change of each attribute, (N,), whole on a lattice."""
        law = self.law
        units = law.units if isinstance(law, KroneckerNoise) else None
        if units is None or law.distribution not in LATTICE:
            return self.spans
        return np.floor(self.spans / units + WHOLE) * units

    def length(self, copies: Sequence[int]) -> Length:
        """Largest Mahalanobis length of a change under Gaussian noise."""
        assert isinstance(self.law, KroneckerNoise)
        _, v = best_unbiased_combination(self.law.of(copies).level_covariance)
        left = 1.0 if self.law.serial is None else 1.0 / self.law.serial.precision
        return self._length.over(math.sqrt(max(0.0, left * float(v))))

    @cached_property
    def _length(self) -> Length:
        assert isinstance(self.law, KroneckerNoise)
        factor: Array | float = float(self.records ** (1 if self.law.serial is None else 2))
        if self.filled is not None:
            factor = self.filled.factor(self.records)
        return largest_length(self.law.shape, self.spans, factor)

    def _values(self, law: KroneckerNoise, levels: Levels) -> Guarantee:
        moves = [(j, float(change), self.records) for j, change in enumerate(self.changes)]
        if self.filled is not None:  # all records of a unit move a filled cell together
            shifts = self.records * self.changes / self.filled.present
            moves += [
                (j, float(shifts[j]), int(k)) for j, k in enumerate(self.filled.pairs.diagonal())
            ]
        each = [
            (times, *loss(law.density_at(level, j), change))
            for level in levels
            for j, change, times in moves
            if times
        ]
        pure = math.fsum(times * e for times, e, _ in each)
        mu = math.sqrt(math.fsum(times * m**2 for times, _, m in each))
        at_delta, several = min(pure, gaussian_epsilon(mu, self.delta)), len(each) > 1
        if math.isinf(at_delta):
            return _nothing(FAR)
        several |= self.records > 1
        bound = Figure(at_delta, BY_VALUE)
        if law.distribution == "laplace" and not several:
            bound = Figure(laplace_epsilon(pure, self.delta))
        return {
            "gaussian_dp": Figure(mu, FAR if math.isinf(mu) else BY_VALUE if several else ""),
            "epsilon": Figure(pure, UNBOUNDED if math.isinf(pure) else ""),
            "epsilon_at_delta": bound,
        }


@lru_cache(maxsize=2**12)
def loss(noise: NoiseDensity, change: float) -> tuple[float, float]:
    """Least ε and μ of one value, for a change in data units."""
    pure = math.inf
    if noise.distribution == "geometric":
        pure = change / noise.unit * geometric_rate((noise.std / noise.unit) ** 2)
    elif noise.distribution == "laplace":
        pure = change * math.sqrt(2.0) / noise.std  # Δ/b
    return pure, shift_mu(noise, change)


def _nothing(note: str) -> Guarantee:
    return dict.fromkeys(("gaussian_dp", "epsilon", "epsilon_at_delta"), Figure(math.inf, note))
