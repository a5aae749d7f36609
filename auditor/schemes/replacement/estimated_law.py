"""Estimated law of categorical copies without a stated law.

| symbol | meaning | shape |
| --- | --- | --- |
| ``p`` | retention of the nearest uniform law: ``(m − 1/s)/(1 − 1/s)``, m the share of records unchanged | scalar |
| ``T_i[x, y]`` | chance that copy i shows y of x: ``(n_xy + w·U[x, y]) / (n_x + w)``, U the uniform law at p | (s, s) |
| ``w`` | of `RECORDS_BY_LAW` the likeliest, each row being Dirichlet with ``w·U`` (``evidence``) | scalar |
| ``r_k`` | ``(records that show pattern k + 1) / (records expected to by T_j + 1)`` | (5,) |
| ``P(y_j | x, y_i)`` | ``T_j[x, y_j] · r_k(x, y_i, y_j) / Z[x, y_i]``, Z such that chances sum to 1 | (s, s, s) |

The dependence between copies is a tree. In falling order of retention, each copy depends, given the
original, on the earlier copy that predicts it best:

    ``P(y_1, …, y_k | x) = T_1[x, y_1] · Π P(y_i | x, y_{parent of i})``

Patterns are the equalities among x, y_i and y_j. For independent copies every ``r`` is 1. With
enough records per cell (s³ cells) a table of counts is estimated instead. With few records per cell
of several attributes' product, each attribute is modelled as perturbed independently.

It fits the copies it was estimated from, so only other records can validate it. *Not estimated*:
dependence of three copies that no pair shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Coalition, Codes
from auditor.process.deferred import scipy
from auditor.schemes.replacement.law import UniformLaw, transition_matrix

ALL, ONLY_I, ONLY_J, TOGETHER, NONE = range(5)
"""Patterns: all three agree; ``y_i`` alone shows x; ``y_j`` alone does; the copies agree on another
value; no two agree.
"""

BY_LAW = 20.0
"""Prior weight ``w`` in records of the simpler law, against overfitting of few records."""


class PairLaw(NamedTuple):
    """The law of copy j given the original and copy i.

    Attributes
    ----------
    strength : float
        Gain in log-likelihood over independence, on the records used for estimation.
    T : ndarray of shape (s, s)
        ``T_j``.
    ratios : ndarray of shape (5,)
        ``r``.
    total : ndarray of shape (s, s)
        ``Z``, by x and y_i.
    table : ndarray of shape (s, s, s) or None
        By x, y_i and y_j.
    """

    strength: float
    T: Array
    ratios: Array
    total: Array
    table: Array | None = None

    def chances(self, y_i: Codes, y_j: Codes) -> Array:
        """Return ``P(y_j | x, y_i)`` of records for every x, shape (b, s)."""
        if self.table is not None:
            return self.table[:, y_i, y_j].T
        r, rows, same = self.ratios, np.arange(y_i.size), y_i == y_j
        found = self.T.T[y_j] * np.where(same, r[TOGETHER], r[NONE])[:, None]
        found[rows, y_j] = self.T[y_j, y_j] * r[ONLY_J]
        found[rows, y_i] = self.T[y_i, y_j] * np.where(same, r[ALL], r[ONLY_I])
        return np.asarray(found / self.total.T[y_i])


def estimated_pair(x: Codes, y_i: Codes, y_j: Codes, T_j: Array, table: bool) -> PairLaw:
    """Return the law of copy j given the original and copy i.

    From codes of shape (n,); ``table`` requests an estimate of every cell.
    """
    met = np.bincount(_pattern(x, y_i, y_j), minlength=5)
    by_law = _expected(x, y_i, T_j)
    ratios = (met + 1.0) / (by_law + 1.0)
    some = met > 0
    strength = float(met[some] @ np.log(met[some] / np.maximum(by_law[some], 1e-9)))
    law = PairLaw(strength, T_j, ratios, _total(T_j, ratios))
    return law._replace(table=_table(x, y_i, y_j, law)) if table else law


def _pattern(x: Codes, y_i: Codes, y_j: Codes) -> NDArray[np.intp]:
    off = np.where(y_j == x, ONLY_J, np.where(y_i == y_j, TOGETHER, NONE))
    return np.asarray(np.where(y_i == x, np.where(y_j == x, ALL, ONLY_I), off), dtype=np.intp)


def _expected(x: Codes, y_i: Codes, T_j: Array) -> Array:
    keeps, follows, shown = T_j[x, x], T_j[x, y_i], y_i == x
    rest = np.clip(1.0 - keeps - np.where(shown, 0.0, follows), 0.0, None)
    sums = [keeps[shown], rest[shown], keeps[~shown], follows[~shown], rest[~shown]]
    return np.array([float(part.sum()) for part in sums])


def _total(T_j: Array, r: Array) -> Array:
    keeps = np.diag(T_j)[:, None]
    Z = keeps * r[ONLY_J] + T_j * r[TOGETHER] + np.clip(1.0 - keeps - T_j, 0.0, None) * r[NONE]
    np.fill_diagonal(Z, keeps[:, 0] * r[ALL] + (1.0 - keeps[:, 0]) * r[ONLY_I])
    return np.asarray(Z)


def _table(x: Codes, y_i: Codes, y_j: Codes, law: PairLaw) -> Array:
    s = len(law.T)
    keys = (x.astype(np.intp) * s + y_i) * s + y_j
    counts = np.bincount(keys, minlength=s**3).reshape(s, s, s)
    grid = np.indices((s, s)).reshape(2, -1)
    by_law = law.chances(*grid).T.reshape(s, s, s)
    return np.asarray((counts + BY_LAW * by_law) / (counts.sum(axis=2, keepdims=True) + BY_LAW))


RECORDS_BY_LAW = (BY_LAW, 5.0, 1.0, 0.2)
"""Candidate prior weights ``w``, in records of the uniform law; small if a copy is far from uniform
perturbation.
"""
FEWEST_PER_CELL = 10
"""Fewest records per cell of an estimated table: the mean relative error of a probability is then a
third.
"""
MOST_VALUES = 1_000
"""Most values in an estimated domain: eight megabytes per copy."""
MOST_PARENTS = 8
"""Most candidate parents of a copy: the coalition's best, and the nearest above it by retention."""
Pair = tuple[int, int]
Values = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class EstimatedLaw(UniformLaw):
    """The estimated law of one tuple's copies given its value.

    ``levels`` are the retentions of the nearest uniform laws.

    Attributes
    ----------
    members : tuple of int
        Numbers of the copies, in the order of the levels.
    transitions : dict of int to ndarray of shape (s, s)
        ``T_i`` by copy number.
    pairs : dict of (int, int) to PairLaw
        By the numbers of two copies, higher retention first.
    """

    members: Coalition = ()
    transitions: Mapping[int, Array] = field(default_factory=dict, repr=False)
    pairs: Mapping[Pair, PairLaw] = field(default_factory=dict, repr=False)
    by_retention: ClassVar[bool] = False

    def of(self, copies: Sequence[int]) -> EstimatedLaw:
        levels = tuple(self.levels[copy - 1] for copy in copies)
        members = tuple(self.members[copy - 1] for copy in copies)
        return replace(self, levels=levels, members=members)

    def transition_matrix(
        self, source: int | None, target: int, prior: Array | None = None
    ) -> Array:
        return (
            self.transitions[self.members[target - 1]]
            if source is None
            else super().transition_matrix(source, target, prior)
        )

    def likelihood(self, copies: Sequence[Codes]) -> Array:
        """Return ``P(y_1, …, y_k | x)`` of records, shape (b, s)."""
        order = [self.members[place] for place in self.descending]
        place = {copy: k for k, copy in enumerate(self.members)}
        found = self.transitions[order[0]].T[copies[place[order[0]]]]
        for copy in order[1:]:
            parents = [
                (other, copy)
                for other in possible_parents(order, copy)
                if (other, copy) in self.pairs
            ]
            pair = max(parents, key=lambda two: self.pairs[two].strength, default=None)
            own = copies[place[copy]]
            found = found * (
                self.transitions[copy].T[own]
                if pair is None
                else self.pairs[pair].chances(copies[place[pair[0]]], own)
            )
        return found

    def given_original(self) -> Array:
        outcomes = np.indices((self.size,) * len(self.levels)).reshape(len(self.levels), -1)
        return self.likelihood(list(outcomes)).T.reshape((self.size,) * (len(self.levels) + 1))

    def epsilon(self) -> float:
        """Return infinity: estimated probabilities bound nothing."""
        return math.inf

    def best_is_sufficient(self) -> bool:
        """Return False: an estimate proves nothing."""
        return False


def estimated(
    x: Codes,
    copies: Mapping[int, Codes],
    shape: Sequence[int],
    coalitions: Iterable[Coalition] = (),
) -> EstimatedLaw:
    """Return the law of some copies, estimated from records.

    ``copies`` holds codes of shape (n,) by copy number, ``shape`` the number of values of each
    attribute. Pairwise dependence is estimated for pairs within ``coalitions``.
    """
    size, members = math.prod(shape), tuple(copies)
    levels = {copy: estimated_retention(x, y, size) for copy, y in copies.items()}
    T = {copy: transitions(x, y, shape) for copy, y in copies.items()}
    law = EstimatedLaw(tuple(levels.values()), size, False, members=members, transitions=T)
    wanted = dict.fromkeys(
        two for coalition in coalitions for two in _possible_pairs(law, coalition)
    )
    table = FEWEST_PER_CELL * size**3 <= x.size
    return replace(
        law,
        pairs={
            (i, j): estimated_pair(x, copies[i], copies[j], law.transitions[j], table)
            for i, j in wanted
        },
    )


def possible_parents(order: Sequence[int], copy: int) -> list[int]:
    """Return the copies of a coalition that one of them may depend on.

    ``order`` is by falling retention.
    """
    before = list(order[: order.index(copy)])
    return list(dict.fromkeys([*before[:1], *before[1 - MOST_PARENTS :]]))


def _possible_pairs(law: EstimatedLaw, coalition: Coalition) -> list[Pair]:
    order = [law.members[place] for place in law.descending if law.members[place] in coalition]
    return [(other, copy) for copy in order[1:] for other in possible_parents(order, copy)]


def transitions(x: Values, y: Values, shape: Sequence[int]) -> Array:
    """Return ``T[x, y] = (n_xy + w·U[x, y]) / (n_x + w)``, shape (s, s).

    With too few records the product of each attribute's matrix.
    """
    size = math.prod(shape)
    if len(shape) > 1 and FEWEST_PER_CELL * size**2 > x.size:
        each = zip(
            np.unravel_index(x, tuple(shape)), np.unravel_index(y, tuple(shape)), shape, strict=True
        )
        matrices = [transitions(a, b, (values,)) for a, b, values in each]
        return reduce(lambda T, other: np.asarray(np.kron(T, other)), matrices)
    U = transition_matrix(estimated_retention(x, y, size), size)
    counts = (
        np.bincount(x.astype(np.intp) * size + y, minlength=size**2)
        .reshape(size, size)
        .astype(np.float64)
    )
    w = max(RECORDS_BY_LAW, key=lambda records: evidence(counts, records * U))
    return np.asarray((counts + w * U) / (counts.sum(axis=1, keepdims=True) + w))


def evidence(counts: Array, alpha: Array) -> float:
    """Return the Dirichlet-multinomial log-likelihood of counts, (s, s).

    Each row's probabilities are Dirichlet with ``alpha``, shape (s, s), all above 0: ``Σ_x ln
    Γ(α_x) − ln Γ(α_x + n_x) + Σ_y ln Γ(α_xy + n_xy) − ln Γ(α_xy)``; α_x and n_x are sums of rows.
    """
    met = counts > 0
    gammaln = scipy.special.gammaln
    rows = gammaln(alpha.sum(axis=1)) - gammaln((alpha + counts).sum(axis=1))
    return float(rows.sum() + (gammaln(alpha[met] + counts[met]) - gammaln(alpha[met])).sum())


def estimated_retention(x: Values, y: Values, size: int, pi: Array | None = None) -> float:
    """Return the maximum-likelihood retention from r matched pairs.

    ``(m − 1/s)/(1 − 1/s)`` for the share m that agree. With replacements by π the mean of ``π_x``
    replaces ``1/s``: unbiased, not maximum likelihood. Kept off 1 by half a record, since r
    agreements do not prove certainty.
    """
    chance = 1 / size if pi is None else float(np.mean(pi[x]))
    if chance >= 1.0:
        return 0.0
    agree = float(np.mean(x == y))
    return min(max(0.0, (agree - chance) / (1 - chance)), 1.0 - 0.5 / (x.size + 1))
