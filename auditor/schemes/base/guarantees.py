"""What a coalition's copies guarantee every record, by the law of their noise alone: differential privacy of a change within stated bounds.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Δ`` | a change of one record, ``|Δ_j| ≤ high_j − low_j`` | (N,) |
| ``H`` | identities stacked, one for each copy held: every copy changes by Δ | (kN, N) |
| ``C`` | ``(Hᵀ K_Z⁺ H)⁻¹``, covariance of the noise in the best unbiased combination of the copies, which says all there is | (N, N) |
| ``μ`` | ``max_Δ √(Δᵀ C⁻¹ Δ)``, the largest Mahalanobis length of a change | scalar |

Where noise follows on from record to record (``serial:``), ``K_Z`` is what is left of a record's noise once all other records' is known.

Recipients tell a record x from ``x + Δ`` by copies whose noise has one law under both, so that the law decides. The largest length is at a
corner of the box, as the length is convex. Of a process the least perturbed copy decides alone; independent copies add up, ``μ²`` and ε
alike (dong2022, Corollary 3.3).

*Not checked*: that ``K_Z`` is public, and would be the same had the record another value. Noise sized by the table's own covariance or
variance is a function of the table, and a guarantee is then one of the copies given that size; ``noise: bounds`` sizes it without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import EPS
from auditor.schemes.base.largest_change import Length, combined_noise, largest_length
from auditor.schemes.base.noise_density import geometric_rate
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw, makes_useless, one_suffices, psd_root
from auditor.schemes.base.privacy_loss import (
    concentrated_epsilon,
    gaussian_epsilon,
    gaussian_of_pure,
    laplace_epsilon,
    skellam_bound,
    skellam_epsilon,
)
from auditor.types import Array

BY_PURE = "an upper bound, from the ε of each value"
BY_RENYI = "an upper bound, from Rényi divergences of each value"
NO_NOISE = "infinite: a combination of the copies is free of noise"
UNBOUNDED = "infinite: the ratio of chances has no bound"
APART = "infinite: some outputs tell two records apart for certain; the chance of one is at most {:.3g}"
UNKNOWN = "infinite: none is stated of Skellam noise"
UNSTATED = "infinite: none is stated of such noise whose values hang together"
WHOLE = 1e-9
"""What a change in units may lack of a whole number for rounding."""


@dataclass(frozen=True)
class Figure:
    """One figure of a guarantee, infinite where there is none; ``note``: why it is, or that it is a bound."""

    value: float
    note: str = ""


Guarantee = dict[str, Figure]
"""By metric: ``gaussian_dp`` (μ), ``concentrated_dp`` (ρ), ``epsilon`` (pure), ``epsilon_at_delta`` (at the stated δ)."""


@dataclass(frozen=True)
class Guarantees:
    """What coalitions' copies guarantee.

    Attributes
    ----------
    law : NoiseLaw
        Of all copies.
    spans : ndarray of shape (N,)
        The largest change of each attribute, in data units; > 0.
    delta : float
        δ of the (ε, δ) that is stated; in (0, 1).
    """

    law: NoiseLaw
    spans: Array = field(repr=False)
    delta: float

    def of(self, copies: Sequence[int]) -> Guarantee:
        """Return the guarantee of a coalition, by copy numbers from 1."""
        if self.law.distribution == "gaussian":
            return self._gaussian(self.length(copies))
        assert isinstance(self.law, KroneckerNoise)
        levels, kind = self.counted(copies), self.law.distribution
        if min(levels) <= 0.0 or (np.diag(self.law.shape) <= 0.0).any():
            return _nothing(NO_NOISE)
        if not self.law.one_process and not _diagonal(self.law.level_covariance):
            return _nothing(UNSTATED)
        if kind == "uniform":
            return self._uniform(levels)
        if not _diagonal(self.law.shape):
            return _nothing(UNSTATED)
        return self._skellam(levels) if kind == "skellam" else self._pure(levels)

    def counted(self, copies: Sequence[int]) -> list[float]:
        """Return the levels of the copies that a guarantee is made of: the least of one process, and of independent ones all."""
        assert isinstance(self.law, KroneckerNoise)
        levels = [float(self.law.level_covariance[copy - 1, copy - 1]) for copy in copies]
        return [min(levels)] if self.law.one_process else levels

    def length(self, copies: Sequence[int]) -> Length:
        """Return the largest Mahalanobis length of a change under a coalition's Gaussian noise."""
        if isinstance(self.law, DenseNoise):
            return largest_length(self._combined(copies), self.spans)
        index = np.asarray(copies, dtype=np.intp) - 1
        _, v = best_unbiased_combination(self.law.level_covariance[np.ix_(index, index)])
        # Who knows all other records knows their noise, and with it what this one's is about where noise follows on.
        left = 1.0 if self.law.serial is None else 1.0 / self.law.serial.precision
        return self._length.over(math.sqrt(max(0.0, left * float(v))))

    @cached_property
    def _length(self) -> Length:
        """At level 1."""
        assert isinstance(self.law, KroneckerNoise)
        return largest_length(self.law.shape, self.spans)

    def _combined(self, copies: Sequence[int]) -> Array:
        """Return C of copies whose noise has no one shape."""
        assert isinstance(self.law, DenseNoise)
        N = self.law.width
        if one_suffices(self._useless, copies):
            best = min(copies, key=lambda copy: float(np.trace(self.law.of([copy]).covariance)))
            return self.law.of([best]).covariance
        return combined_noise(self.law.of(copies).passed_root, N)

    @cached_property
    def _useless(self) -> NDArray[np.bool_]:
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

    def _pure(self, levels: Sequence[float]) -> Guarantee:
        """Laplace and geometric noise: ε of each value in each copy, which add up."""
        assert isinstance(self.law, KroneckerNoise)
        each = [self._value_epsilon(level, j) for level, j in product(levels, range(self.law.width))]
        total, mus = math.fsum(each), [gaussian_of_pure(epsilon) for epsilon in each]
        mu = min(gaussian_of_pure(total), math.hypot(*mus))
        rho = min(0.5 * math.fsum(epsilon**2 for epsilon in each), mu * mu / 2.0)  # bun2016, Proposition 1.4; dong2022, Corollary B.6
        if len(each) == 1 and self.law.distribution == "laplace":
            at_delta = Figure(laplace_epsilon(total, self.delta))
        else:
            at_delta = Figure(min(total, gaussian_epsilon(mu, self.delta), concentrated_epsilon(rho, self.delta)), BY_PURE)
        return {
            "gaussian_dp": Figure(mu, BY_PURE),
            "concentrated_dp": Figure(rho, BY_PURE),
            "epsilon": Figure(total),
            "epsilon_at_delta": at_delta,
        }

    def _value_epsilon(self, level: float, j: int) -> float:
        assert isinstance(self.law, KroneckerNoise)
        noise = self.law.density_at(level, j)
        if noise.distribution == "laplace":
            return float(self.spans[j]) * math.sqrt(2.0) / noise.std  # Δ/b
        return float(self.spans[j]) / noise.unit * geometric_rate((noise.std / noise.unit) ** 2)

    def _uniform(self, levels: Sequence[float]) -> Guarantee:
        """Bounded noise: where the outputs of two records overlap they are as likely under both, and elsewhere certain.

        The noise is a matrix times independent uniform numbers on ±√3, in whose coordinates a change is one of each.
        """
        assert isinstance(self.law, KroneckerNoise)
        root, apart = psd_root(self.law.shape), 1.0
        if np.linalg.cond(root) < 1.0 / EPS:
            moved = np.abs(np.linalg.inv(root)) @ self.spans / (2.0 * math.sqrt(3.0))
            shares = np.outer(1.0 / np.sqrt(np.asarray(levels)), moved)  # of each number's range
            apart = float(-np.expm1(np.log1p(-shares).sum())) if (shares < 1.0).all() else 1.0
        note = APART.format(apart)
        return _nothing(note) | {"epsilon_at_delta": Figure(0.0) if apart <= self.delta else Figure(math.inf, note)}

    def _skellam(self, levels: Sequence[float]) -> Guarantee:
        assert isinstance(self.law, KroneckerNoise)
        each = []
        for level, j in product(levels, range(self.law.width)):
            noise = self.law.density_at(level, j)
            each.append((float(self.spans[j]) / noise.unit, (noise.std / noise.unit) ** 2))
        at_delta = Figure(skellam_bound(each, self.delta), BY_RENYI)
        if len(each) == 1:
            steps, v = each[0]
            at_delta = Figure(skellam_epsilon(math.floor(steps + WHOLE), v, self.delta))
        return _nothing(UNKNOWN) | {"epsilon": Figure(math.inf, UNBOUNDED), "epsilon_at_delta": at_delta}


def _diagonal(K: Array) -> bool:
    return not (K - np.diag(np.diag(K))).any()


def _nothing(note: str) -> Guarantee:
    return {metric: Figure(math.inf, note) for metric in ("gaussian_dp", "concentrated_dp", "epsilon", "epsilon_at_delta")}
