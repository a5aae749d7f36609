"""Law of retention-replacement: transition matrices and joint laws.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``s`` | size of the domain | scalar | xiao2009, table 2 |
| ``p`` | probability that a value is kept | scalar in [0, 1] | |
| ``π`` | distribution of replacements, ``1/s`` each by default | (s,) | agrawal2005 |
| ``T(p)`` | ``p·I + (1 − p)·1πᵀ``: chance of y (column) from x (row) | (s, s) | xiao2009, eq. 1 |
| ``Y_b → Y_w`` | ``T(p_w/p_b)`` for ``p_b ≥ p_w`` | (s, s) | xiao2009, eq. 10 |
| ``R_y`` | ``1 + p/((1 − p)π_y)``: ratio of chances of output y under y and any other original | scalar | |

Multilevel copies by descending ``p`` are a Markov chain from the original (Lemma 1) for any π, as
``T(a)T(b) = T(ab)`` (section 5.2). For one value y, the paper's results hold with ``1/π_y`` for s.

Independent copies by matrices ``T_i`` (gouweleeuw1998) have the joint law ``Π T_i[x, y_i]`` and ``ε
= max_{x, x'} Σ_i max_y ln(T_i[x, y] / T_i[x', y])``.

A law estimated from matched pairs:

| symbol | meaning | shape |
| --- | --- | --- |
| ``p`` | retention of the nearest uniform law: ``(m − 1/s)/(1 − 1/s)``, m the share unchanged | scalar |
| ``T_i[x, y]`` | ``(n_xy + w·U[x, y]) / (n_x + w)``, U the uniform law at p | (s, s) |
| ``w`` | likeliest of `RECORDS_BY_LAW`, rows being Dirichlet with ``w·U`` (``evidence``) | scalar |

Copy j is *redundant* given copy i of higher retention if i predicts it better than the originals
do.
"""

import math
from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from auditor.base import scipy
from auditor.base.types import (
    Array,
    Arrays,
    Codes,
    Flags,
    Integers,
    Levels,
    Names,
    Plain,
    frozen,
    unprinted,
)
from auditor.numerics.linear_algebra import quotient

EXACTLY = 1e-12
RECORDS_BY_LAW = (20.0, 5.0, 1.0, 0.2)
"""Candidate prior weights ``w``, in records of the uniform law."""
FEWEST_PER_CELL = 10
"""Fewest records per cell; below, attributes are perturbed independently."""
MOST_VALUES = 1_000
"""Most values in a domain with a matrix, stated or estimated."""


def fresh_chances(retention: float, size: int, pi: Array | None) -> Array:
    """``(1 − p)·π_y`` of all y, shape (s,)."""
    return (1.0 - retention) * (np.full(size, 1.0 / size) if pi is None else pi)


def transition_matrix(retention: float, size: int, pi: Array | None = None) -> Array:
    """``T(p) = p·I + (1 − p)·1πᵀ``, shape (s, s), π uniform by default.

    Examples
    --------
    >>> round(float(transition_matrix(0.2, 10)[0, 0]), 12)
    0.28
    >>> transition_matrix(0.5, 2, np.array([0.75, 0.25])).tolist()
    [[0.875, 0.125], [0.375, 0.625]]
    """
    return retention * np.eye(size) + fresh_chances(retention, size, pi)


def step(high: float, low: float) -> float:
    """Retention ``p_w/p_b`` from ``high`` to ``low ≤ high``.

    0 from 0.
    """
    return low / high if high > 0 else 1.0


def odds_ratio(retention: float, size: float) -> float:
    """``R = 1 + s·p/(1 − p)``, possibly infinite.

    ``1/π_y`` for s if π is not uniform.
    """
    if size == 1 or retention == 0:
        return 1.0
    return math.inf if retention >= 1 else 1.0 + size * retention / (1.0 - retention)


@frozen
class UniformLaw:
    """The law of one tuple's copies given its value.

    Attributes
    ----------
    levels
        Retention probabilities in [0, 1].
    multilevel
        One replacement process, or fresh draws.
    replacement : tuple of s floats, optional
        ``π``; None: uniform.
    """

    levels: tuple[float, ...]
    size: int
    multilevel: bool
    replacement: tuple[float, ...] | None = None
    by_retention: ClassVar[bool] = True
    """Whether copies keep a value with their level's probability, or draw from ``π``."""

    by_copy: ClassVar[Names] = ("levels",)
    """Fields with an entry for each copy."""

    def of(self, copies: Sequence[int]) -> Self:
        """Law of a coalition, by copy numbers from 1."""
        held: Plain = {
            name: tuple(getattr(self, name)[copy - 1] for copy in copies) for name in self.by_copy
        }
        return replace(self, **held)

    @cached_property
    def pi(self) -> Array:
        """``π``, shape (s,)."""
        return np.array(self.replacement or (1.0 / self.size,) * self.size)

    @property
    def rarity(self) -> float:
        """``1/min π``."""
        return self.size if self.replacement is None else _inverse(min(self.replacement))

    def redrawn_as(self, retention: float, y: Integers) -> Array:
        """``(1 − p)·π_y`` of every y, (b,)."""
        return fresh_chances(retention, self.size, self.pi)[y]

    @property
    def descending(self) -> list[int]:
        """Places of the copies by falling retention."""
        return np.argsort(-np.array(self.levels), kind="stable").tolist()

    @property
    def best(self) -> int:
        """Copy number of the least perturbed copy."""
        return self.descending[0] + 1

    def transition_matrix(
        self, source: int | None, target: int, prior: Array | None = None
    ) -> Array:
        """P(copy ``target`` | copy ``source`` or original), shape (s, s).

        Copies count from 1. A row is NaN if the source cannot show its value. ``ValueError``
        without a prior if copies are fresh or the target is less perturbed.
        """
        high, low = 1.0 if source is None else self.levels[source - 1], self.levels[target - 1]
        if source is None or source == target or (self.multilevel and low <= high):
            return transition_matrix(
                1.0 if source == target else step(high, low), self.size, self.pi
            )
        if prior is None:
            what = "less perturbed than" if self.multilevel else "fresh beside"
            raise ValueError(
                f"copy {target} is {what} copy {source}: its law given that copy depends on the prior"
            )
        pair = self.of([source, target]).joint(prior).sum(axis=0)
        return quotient(pair, pair.sum(axis=1, keepdims=True), np.nan)

    def given_original(self) -> Array:
        """``P(y_1, …, y_k | x)``, shape (s, …, s) with x first."""
        if not self.multilevel:
            places = range(1, len(self.levels) + 1)
            return independent([self.transition_matrix(None, place) for place in places], self.size)
        joint, high = np.ones(self.size), 1.0
        for place in self.descending:
            low = self.levels[place]
            joint = joint[..., None] * transition_matrix(step(high, low), self.size, self.pi)
            high = low
        return np.transpose(joint, np.argsort([0, *(place + 1 for place in self.descending)]))

    def likelihood(self, copies: Sequence[Codes]) -> Array:
        """``P(y_1, …, y_k | x)`` of records, shape (b, s)."""
        if self.multilevel:
            return np.moveaxis(self.given_original(), 0, -1)[tuple(copies)]
        found = np.ones((copies[0].size, self.size))
        for place, y in enumerate(copies, start=1):
            found *= self.transition_matrix(None, place).T[y]
        return found

    def joint(self, prior: Array) -> Array:
        """``P(x, y_1, …, y_k)`` under a prior, shape (s,)."""
        return np.einsum("x,x...->x...", prior, self.given_original())

    def epsilon(self) -> float:
        """Local differential privacy ``ε`` of all copies.

        ``max_y ln R_y = ln(1 + p/((1 − p)·min π))``, summed over fresh copies; of multilevel copies
        the best counts.
        """
        each = [math.log(odds_ratio(level, self.rarity)) for level in self.levels]
        return max(each) if self.multilevel else math.fsum(each)

    def odds(self) -> float:
        """``exp(ε)``."""
        bits = self.epsilon()
        return math.inf if bits > 700 else math.exp(bits)

    def odds_of(self, level: float) -> Array:
        """``R_y`` of one copy for every value y, shape (s,)."""
        return np.array([odds_ratio(level, _inverse(chance)) for chance in self.pi.tolist()])

    def odds_by_value(self) -> Array:
        """Odds factor if all copies show y, for every y, shape (s,)."""
        each = [self.odds_of(level) for level in self.levels]
        return np.max(each, axis=0) if self.multilevel else np.prod(each, axis=0)

    def best_is_sufficient(self) -> bool:
        """Whether ``P(y_j | y_b, x)`` never depends on x, b being the best copy.

        Fresh copies depend on x, unless ``y_b`` determines it.
        """
        best, *others = (self.levels[place] for place in self.descending)
        return self.multilevel or self.size == 1 or best == 1.0 or not any(others)


def _inverse(chance: float) -> float:
    return 1.0 / chance if chance else math.inf


def independent(transitions: Arrays, size: int) -> Array:
    """``Π T_i[x, y_i]``, shape (s, …, s) with x first."""
    joint = np.ones(size)
    for T in transitions:
        joint = joint[..., None] * T.reshape(size, *(1,) * (joint.ndim - 1), size)
    return joint


def history_size(levels: Levels, prior: Array, pi: Array | None = None) -> float:
    """Expected size of a compressed history, ``1 + disp``.

    ``1 + Σ (1 − Σ_y m_y π_y)·(1 − p_{i+1}/p_i)``, with ``m = p_i q + (1 − p_i)π`` and q the table's
    shares (xiao2009, proof of Lemma 2). Below ``1 + ln(p_max/p_min)``.
    """
    pi = fresh_chances(0.0, prior.size, pi)
    return 1.0 + math.fsum(
        (1.0 - step(high, low)) * (1.0 - float((high * prior + (1.0 - high) * pi) @ pi))
        for high, low in pairwise(sorted(set(levels), reverse=True))
    )


def left_by_retention(prior: Array, retention: float, pi: Array | None = None) -> float:
    """Share of the categories' variance left by one copy.

    ``1 − (E Σ_x P(x|y)² − Σ q_x²)/(1 − Σ q_x²)`` by Bayes estimates from the prior q > 0, with ``P(x,
    y) = q_x (p·[x = y] + a_y)`` and ``a = (1 − p)π`` (xiao2009, eq. 1). The sum over x of ``P(x, y)²``
    is ``a_y² Σ q_x² + q_y² (p² + 2 a_y p)``.

    Examples
    --------
    >>> left_by_retention(np.array([0.5, 0.5]), 0.5), left_by_retention(np.array([0.5, 0.5]), 1.0)
    (0.75, 0.0)
    """
    p, a = retention, fresh_chances(retention, len(prior), pi)
    blind, shown = float((prior**2).sum()), p * prior + a
    squares = a**2 * blind + prior**2 * (p**2 + 2.0 * a * p)
    return 1.0 - (float(quotient(squares, shown).sum()) - blind) / (1.0 - blind)


@unprinted
class MatrixLaw(UniformLaw):
    """The law of one tuple's copies by matrices; higher levels are better.

    Attributes
    ----------
    transitions : tuple of k (s, s)
        ``T_i``; rows are distributions, *not checked*.
    """

    transitions: tuple[Array, ...] = ()
    by_retention: ClassVar[bool] = False

    by_copy: ClassVar[Names] = ("levels", "transitions")

    @property
    def rarity(self) -> float:
        return _inverse(min(float(T.min()) for T in self.transitions))

    def transition_matrix(
        self, source: int | None, target: int, prior: Array | None = None
    ) -> Array:
        if source is None:
            return self.transitions[target - 1]
        return super().transition_matrix(source, target, prior)

    def epsilon(self) -> float:
        total = np.zeros((self.size, self.size))
        with np.errstate(divide="ignore", invalid="ignore"):
            for T in self.transitions:
                logs = np.log(T)
                total += np.array([np.fmax.reduce(row - logs, axis=1) for row in logs])
        return float(total.max())

    def best_is_sufficient(self) -> bool:
        possible = self.transitions[self.best - 1] > 0
        others = [T for place, T in enumerate(self.transitions) if place != self.best - 1]
        sets = np.unique(possible[:, possible.any(axis=0)], axis=1).T
        return all(np.ptp(T[alike], axis=0).max() <= EXACTLY for T in others for alike in sets)


@unprinted
class EstimatedLaw(MatrixLaw):
    """Estimated law of one tuple's copies given its value.

    ``levels`` are of the nearest uniform laws. *Not estimated*: other dependence between copies.

    Attributes
    ----------
    redundant : (k, k)
    """

    redundant: Flags = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    def of(self, copies: Sequence[int]) -> Self:
        held = np.asarray(copies, dtype=int) - 1
        return replace(super().of(copies), redundant=self.redundant[np.ix_(held, held)])

    def likelihood(self, copies: Sequence[Codes]) -> Array:
        counts = np.flatnonzero(~self.redundant.any(axis=0)).tolist()
        return MatrixLaw.likelihood(
            super().of([place + 1 for place in counts]), [copies[place] for place in counts]
        )

    def epsilon(self) -> float:
        return math.inf

    def best_is_sufficient(self) -> bool:
        return False


def estimated(x: Codes, copies: Sequence[Codes], shape: Sequence[int]) -> EstimatedLaw:
    """Law estimated from codes of original and copies, shapes (n,).

    ``shape`` has each attribute's number of values.
    """
    size = math.prod(shape)
    levels = tuple(estimated_retention(x, y, size) for y in copies)
    T, by_original = zip(*(transitions(x, y, shape) for y in copies), strict=True)
    law = EstimatedLaw(levels, size, False, transitions=T)
    redundant, order = np.zeros((len(copies),) * 2, dtype=bool), law.descending
    for place, j in enumerate(order):
        for i in order[:place]:
            redundant[i, j] = transitions(copies[i], copies[j], shape)[1] > by_original[j]
    return replace(law, redundant=redundant)


def transitions(x: Codes, y: Codes, shape: Sequence[int]) -> tuple[Array, float]:
    """``T``, shape (s, s), and its evidence."""
    size = math.prod(shape)
    if len(shape) > 1 and FEWEST_PER_CELL * size**2 > x.size:
        each = zip(*(np.unravel_index(codes, tuple(shape)) for codes in (x, y)), shape, strict=True)
        parts, logs = zip(*(transitions(a, b, (values,)) for a, b, values in each), strict=True)
        return reduce(np.kron, parts), math.fsum(logs)
    U = transition_matrix(estimated_retention(x, y, size), size)
    counts = np.bincount(x.astype(int) * size + y, minlength=size**2).reshape(size, size)
    log, w = max((evidence(counts, w * U), w) for w in RECORDS_BY_LAW)
    return (counts + w * U) / (counts.sum(axis=1, keepdims=True) + w), log


def evidence(counts: Integers, alpha: Array) -> float:
    """Dirichlet-multinomial log-likelihood of counts, (s, s).

    Each row's probabilities are Dirichlet with ``alpha``, shape (s, s), all above 0: ``Σ_x ln
    Γ(α_x) − ln Γ(α_x + n_x) + Σ_y ln Γ(α_xy + n_xy) − ln Γ(α_xy)``.
    """
    met, gammaln = counts > 0, scipy.special.gammaln
    rows = gammaln(alpha.sum(axis=1)) - gammaln((alpha + counts).sum(axis=1))
    return float(rows.sum() + (gammaln(alpha[met] + counts[met]) - gammaln(alpha[met])).sum())


def estimated_retention(x: Codes, y: Codes, size: int, pi: Array | None = None) -> float:
    """Maximum-likelihood retention from r matched pairs.

    With π, the mean of ``π_x`` replaces ``1/s``: unbiased only. Kept off 1 by half a record.
    """
    chance = 1 / size if pi is None else float(np.mean(pi[x]))
    if chance >= 1.0:
        return 0.0
    return min(max(0.0, (float(np.mean(x == y)) - chance) / (1 - chance)), 1.0 - 0.5 / (x.size + 1))
