"""What a scheme's copies tell and lose on paper, at every place of its grid: closed forms, before anything is measured.

| symbol | meaning | source |
| --- | --- | --- |
| ``v`` | noise multiple of the best combination of all copies | li2012, section 3.2 |
| ``L_i = v/v_1·r_i`` | levels of the copies, in ratios ``r_i`` from 1 to the spread, geometrically | |
| ``K_X − G(v) K_X`` | error that the best linear attack leaves from all copies pooled | li2012 (7) |
| ``p`` | retention probability of the least perturbed copy | xiao2009, section 1 |

Under jointly Gaussian noise ``Sigma ⊗ K_0`` the least-variance combination of the copies is
sufficient for the record: whatever adversary holds all of them knows what one copy at level ``v``
tells, and no more. Under corner-wave noise that copy is the least noisy one itself (li2012, Theorem
4), as under any process with independent increments; under fresh noise ``1/v = Σ 1/L_i``. So one
curve of exposure against ``v`` serves every scheme of one shape and distribution. Of retention
Theorem 1 of xiao2009 says the same for ``uniform-multilevel``; fresh draws have no such copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil, regression
from auditor.results.advice import Epsilon
from auditor.runs.advice.search import noise_grid
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.guarantees import Guarantee, Guarantees
from auditor.schemes.base.scheme import Scheme, TableMoments
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.law import fresh_chances, left_by_retention
from auditor.types import Array

Loss = Callable[[Array, Array], float]
"""Of a table's covariance and the noise's in one copy."""


@dataclass(frozen=True)
class Candidate(ABC):
    """A scheme, for so many copies, at any place of a grid from the least perturbed to the most."""

    copies: int
    spread: float
    scheme: Scheme
    grid: tuple[float, ...] = field(kw_only=True)

    @property
    def name(self) -> str:
        """Return the scheme's name."""
        return self.scheme.name

    @property
    def places(self) -> int:
        """Return how long the grid is."""
        return len(self.grid)

    @abstractmethod
    def levels(self, place: int) -> tuple[float, ...]:
        """Return the levels of the copies, the least perturbed first."""

    @property
    @abstractmethod
    def curve(self) -> str:
        """Return the name of the curve that its exposure lies on, the same for schemes that share one; empty where no copy tells all."""

    @abstractmethod
    def alone(self, place: int) -> tuple[float, ...]:
        """Return the level of one copy that tells as much as all of them, for a scheme that has a curve."""

    @abstractmethod
    def between(self, weaker: int, place: int) -> str:
        """Return in words how far two places of the grid are apart."""

    @abstractmethod
    def unknown(self, levels: tuple[float, ...]) -> float:
        """Return the share of the worst attribute that the best attack with a closed form leaves, from all these copies pooled."""

    @abstractmethod
    def losses(self, levels: tuple[float, ...]) -> tuple[float, ...]:
        """Return what each copy loses of its use; empty where that must be measured."""

    def guarantees(self, levels: tuple[float, ...], copies: Sequence[int]) -> Guarantee | None:
        """Return what some copies guarantee every record; None where no bounds are stated."""
        return None

    def epsilon(self, levels: tuple[float, ...]) -> Epsilon | None:
        """Return ε of all copies together; None where no bounds are stated."""
        stated = self.guarantees(levels, range(1, len(levels) + 1))
        return (
            None
            if stated is None
            else Epsilon(stated["epsilon_at_delta"].value, stated["epsilon"].value)
        )

    def start(self, target: float, most: float | None = None) -> int | None:
        """Return the first place where paper alone leaves the target, at the largest ε allowed; None where it does nowhere."""
        enough = (
            place
            for place in range(self.places)
            if self.unknown(self.levels(place)) >= target - 1e-12
        )
        return next(
            (place for place in enough if within(self.epsilon(self.levels(place)), most)), None
        )

    @cached_property
    def ratios(self) -> tuple[float, ...]:
        """How much more the copies are perturbed than the least perturbed one: from 1 to the spread, in equal ratios."""
        return tuple(
            self.spread ** (place / max(1, self.copies - 1)) for place in range(self.copies)
        )


def within(epsilon: Epsilon | None, most: float | None) -> bool:
    """Return whether ε at δ is as small as was asked for, if that was."""
    return most is None or epsilon is None or epsilon.at_delta <= most


@dataclass(frozen=True)
class AddedNoise(Candidate):
    """Noise added to numbers: Gaussian, or one process of another law."""

    scheme: AdditiveScheme
    table: TableMoments
    loss: Loss | None
    delta: float = 1e-5
    grid: tuple[float, ...] = field(default=noise_grid(), kw_only=True)

    @cached_property
    def shape(self) -> Array:
        """``K_0``."""
        return self.scheme.law([1.0], self.table).shape

    def guarantees(self, levels: tuple[float, ...], copies: Sequence[int]) -> Guarantee | None:
        """Return what the law of their noise guarantees of a change within the stated bounds."""
        spans = self.table.spans
        return (
            None
            if spans is None
            else Guarantees(self.scheme.law(levels, self.table), spans, self.delta).of(copies)
        )

    @cached_property
    def _pencil(self) -> Pencil:
        return Pencil.of(self.table.covariance, self.shape)

    def pooled_level(self, levels: tuple[float, ...]) -> float:
        """Return ``v``, the noise multiple of what all copies together tell; 0 where they cancel their noise."""
        return float(best_unbiased_combination(np.asarray(self.scheme.level_covariance(levels)))[1])

    def levels(self, place: int) -> tuple[float, ...]:
        """Return levels that together tell what one copy at the grid's level does."""
        unit = self.grid[place] / self.pooled_level(self.ratios)
        return tuple(float(f"{unit * ratio:.4g}") for ratio in self.ratios)

    @property
    def curve(self) -> str:
        """Return a name for the noise's shape: what a release tells is a matter of that and of ``v``."""
        return f"{self.scheme.distribution} noise of shape {self.shape.tobytes().hex()}"

    def alone(self, place: int) -> tuple[float, ...]:
        """Return the grid's level."""
        return (float(f"{self.grid[place] / self.pooled_level((1.0,)):.4g}"),)

    def between(self, weaker: int, place: int) -> str:
        """Return the ratio of their levels."""
        return f"a factor of {self.grid[place] / self.grid[weaker]:.2g} in σ²"

    def unknown(self, levels: tuple[float, ...]) -> float:
        """Return the least of ``[K_X − G(v) K_X]_jj / K_jj`` (li2012 (7))."""
        return float(
            (
                np.diag(self._pencil.error(np.asarray(self.pooled_level(levels))))
                / np.diag(self.table.covariance)
            ).min()
        )

    def losses(self, levels: tuple[float, ...]) -> tuple[float, ...]:
        """Return each copy's loss, by the law of the noise in it; nothing where losses are measured."""
        if self.loss is None:
            return ()
        own = np.diag(np.asarray(self.scheme.level_covariance(levels)))
        return tuple(self.loss(self.table.covariance, level * self.shape) for level in own.tolist())


def mean_loss(K_X: Array, K_Z: Array) -> float:
    """Return by how much the standard error of a mean grows, ``sqrt(1 + [K_Z]_jj/[K_X]_jj) − 1``, averaged over attributes.

    Examples
    --------
    >>> mean_loss(np.eye(2), 3.0 * np.eye(2))
    1.0
    """
    return float(np.mean(np.sqrt(1.0 + np.diag(K_Z) / np.diag(K_X)) - 1.0))


def regression_loss(K_X: Array, K_Z: Array) -> float:
    """Return what a regression of each attribute on the others loses of its R² when fitted to a copy, averaged over attributes.

    The copy's coefficients ``b = K_Y,oo⁻¹ K_Y,oj`` with ``K_Y = K_X + K_Z``, used on the original;
    the best there are ``b*``: ``(b − b*)ᵀ K_X,oo (b − b*) / K_X,jj``. Noise of the data's own shape
    loses nothing. In expectation; *not counted*: that n records are few.
    """
    return float(np.mean([_lost_in(j, K_X, K_X + K_Z) for j in range(len(K_X))]))


def _lost_in(j: int, K_X: Array, K_Y: Array) -> float:
    others = np.arange(len(K_X)) != j
    best, learnt = (
        regression(K[j, others][None], K[np.ix_(others, others)])[0] for K in (K_X, K_Y)
    )
    off = learnt - best
    return float(off @ K_X[np.ix_(others, others)] @ off / K_X[j, j])


@dataclass(frozen=True)
class Retention(Candidate):
    """Categories kept with a probability, or redrawn from their domain, uniformly or by ``pi``."""

    scheme: UniformScheme
    prior: Array
    pi: Array | None = None
    grid: tuple[float, ...] = field(
        default=tuple(step / 100 for step in range(99, 0, -1)), kw_only=True
    )

    def levels(self, place: int) -> tuple[float, ...]:
        """Return retention probabilities, each the first over a ratio."""
        return tuple(float(f"{self.grid[place] / ratio:.4g}") for ratio in self.ratios)

    @property
    def curve(self) -> str:
        """Return its name where the least perturbed copy tells what all do (xiao2009, Theorem 1)."""
        return f"single copies of {self.name}" if self.scheme.multilevel else ""

    def alone(self, place: int) -> tuple[float, ...]:
        """Return the least perturbed copy."""
        return (self.grid[place],)

    def between(self, weaker: int, place: int) -> str:
        """Return the difference of their levels."""
        return f"{self.grid[weaker] - self.grid[place]:.2g} of retention"

    def unknown(self, levels: tuple[float, ...]) -> float:
        """Return what exact Bayes leaves from the least perturbed copy: of fresh draws a bound, as other copies tell more."""
        return left_by_retention(self.prior, max(levels), self.pi)

    def losses(self, levels: tuple[float, ...]) -> tuple[float, ...]:
        """Return by how much the standard error of a category's share grows in each copy, averaged over categories."""
        return tuple(share_loss(self.prior, level, self.pi) for level in levels)


def share_loss(prior: Array, p: float, pi: Array | None = None) -> float:
    """Return the mean of ``sqrt(f(1−f)) / (p sqrt(q(1−q))) − 1`` over categories, with ``f = pq + (1−p)π``, what a copy shows of q.

    The share estimated from a copy is ``(f̂ − (1−p)π)/p`` (xiao2009, eq. 1 turned round).

    Examples
    --------
    >>> share_loss(np.array([0.5, 0.5]), 0.5)
    1.0
    """
    f = p * prior + fresh_chances(p, len(prior), pi)
    return float(np.mean(np.sqrt(f * (1.0 - f) / (prior * (1.0 - prior))) / p - 1.0))
