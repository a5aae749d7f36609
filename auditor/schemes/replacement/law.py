"""The law of uniform perturbation: transition matrices for any pair of levels, and the exact joint law of any set of copies.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``s`` | size of the domain | scalar | xiao2009, table 2 |
| ``p`` | retention probability: the chance that a value is kept | scalar in [0, 1] | |
| ``T(p)`` | ``p·I + (1 − p)/s``: chance of y (column) from x (row) | (s, s) | xiao2009, eq. 1 |
| ``Y_b → Y_w`` | ``T(p_w/p_b)`` for ``p_b ≥ p_w``: the less perturbed copy perturbed further | (s, s) | xiao2009, eq. 10 |
| ``R`` | ``1 + s·p/(1 − p)``: largest ratio of chances of one output under two originals | scalar | |

Copies of one multilevel release, in descending order of ``p``, are a Markov chain that starts at the original (Lemma 1 there).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from auditor.types import Array

CHECK_SIZE = 3
"""Values that tell every case of a pair of copies and an original apart: equal, or one of two different others."""
EXACTLY = 1e-12


def transition_matrix(retention: float, size: int) -> Array:
    """Return ``T(p) = p·I + (1 − p)/s``, shape (s, s): row x, column y (xiao2009, eq. 1).

    Examples
    --------
    >>> round(float(transition_matrix(0.2, 10)[0, 0]), 12)
    0.28
    """
    return retention * np.eye(size) + (1.0 - retention) / size


def step(high: float, low: float) -> float:
    """Return the retention ``p_w/p_b`` of going from a copy at ``high`` to one at ``low ≤ high``; from 0 nothing is left to lose."""
    return low / high if high > 0 else 1.0


def odds_ratio(retention: float, size: int) -> float:
    """Return ``R = 1 + s·p/(1 − p)``; infinite at retention 1."""
    return math.inf if retention >= 1 and size > 1 else 1.0 if size == 1 else 1.0 + size * retention / (1.0 - retention)


@dataclass(frozen=True)
class UniformLaw:
    """The law of the copies of one tuple's value, given the value.

    Attributes
    ----------
    levels : tuple of float
        Retention probabilities in [0, 1], in the order of the copies.
    size : int
        ``s``, the number of values in the domain.
    multilevel : bool
        Whether copies are one replacement process seen at several levels, or fresh draws.
    """

    levels: tuple[float, ...]
    size: int
    multilevel: bool

    def of(self, copies: Sequence[int]) -> UniformLaw:
        """Return the law of a coalition, by copy numbers from 1."""
        return UniformLaw(tuple(self.levels[copy - 1] for copy in copies), self.size, self.multilevel)

    @property
    def descending(self) -> list[int]:
        """Places of the copies by falling retention, equal ones in order of release."""
        return sorted(range(len(self.levels)), key=lambda place: (-self.levels[place], place))

    @property
    def best(self) -> int:
        """Copy number of the least perturbed copy."""
        return self.descending[0] + 1

    def transition_matrix(self, source: int | None, target: int, prior: Array | None = None) -> Array:
        """Return the chances of copy ``target`` (columns) given copy ``source``, or the original if None (rows), shape (s, s).

        Parameters
        ----------
        source, target : int
            Copy numbers from 1.
        prior : ndarray of shape (s,), optional
            Needed where the copies are fresh or the target is less perturbed: such chances depend on it. A row is NaN where the
            source cannot show that value.

        Raises
        ------
        ValueError
            It is needed and not given.
        """
        high, low = 1.0 if source is None else self.levels[source - 1], self.levels[target - 1]
        if source is None or source == target or (self.multilevel and low <= high):
            return transition_matrix(1.0 if source == target else step(high, low), self.size)
        if prior is None:
            what = "less perturbed than" if self.multilevel else "fresh beside"
            raise ValueError(f"copy {target} is {what} copy {source}: its law given that copy depends on the prior")
        pair = self.of([source, target]).joint(prior).sum(axis=0)
        seen = pair.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(pair, seen, out=np.full_like(pair, np.nan), where=seen > 0))

    def given_original(self) -> Array:
        """Return ``P(y_1, …, y_k | x)``, shape (s, …, s) with x first and copies in their order: ``s^(k+1)`` numbers."""
        s, k = self.size, len(self.levels)
        joint = np.ones(s)
        if not self.multilevel:
            for level in self.levels:
                T = transition_matrix(level, s)
                joint = joint[..., None] * T.reshape(s, *(1,) * (joint.ndim - 1), s)
            return joint
        high = 1.0
        for place in self.descending:  # the copy before is the last axis
            joint = joint[..., None] * transition_matrix(step(high, self.levels[place]), s)
            high = self.levels[place]
        order = [0, *(place + 1 for place in self.descending)]
        return np.asarray(np.transpose(joint, np.argsort(order))) if k else joint

    def joint(self, prior: Array) -> Array:
        """Return the exact joint law ``P(x, y_1, …, y_k)`` under a prior of shape (s,)."""
        return np.asarray(np.einsum("x,x...->x...", prior, self.given_original()))

    def epsilon(self) -> float:
        """Return the local differential privacy ``ε`` of all copies together: the largest log-ratio of any outcome under two originals.

        Fresh copies add up, ``Σ ln(1 + s·p_i/(1 − p_i))``; of multilevel ones the best counts alone.
        """
        each = [math.log(odds_ratio(level, self.size)) for level in self.levels]
        return max(each) if self.multilevel else math.fsum(each)

    def odds(self) -> float:
        """Return ``exp(ε)``: by how much pooling can multiply the odds of any statement about a record."""
        bits = self.epsilon()
        return math.inf if bits > 700 else math.exp(bits)

    def best_is_sufficient(self) -> bool:
        """Whether, by this law, the best copy makes all others together useless, computed from the exact law of every pair with it.

        ``P(y_j | y_b, x)`` must not depend on x. By symmetry between values a domain of three shows every case. Pairs are enough for any
        number of copies, as the law ties copies by its form: given x and y_b fresh copies are independent of each other, and
        of multilevel ones ``P(rest | y_b, x)`` is a product along the chain (``given_original``) with x in its first step at most.
        """
        b = self.best - 1
        return all(_useless(self.levels[b], level, min(self.size, CHECK_SIZE), self.multilevel)
                   for place, level in enumerate(self.levels) if place != b)  # fmt: skip


def _useless(best: float, other: float, size: int, multilevel: bool) -> bool:
    joint = UniformLaw((best, other), size, multilevel).given_original()  # x, y_b, y_j
    pair = joint.sum(axis=2, keepdims=True)
    given = np.divide(joint, pair, out=np.full_like(joint, np.nan), where=pair > 0)
    return bool(np.nanmax(np.nanmax(given, axis=0) - np.nanmin(given, axis=0)) <= EXACTLY)


def history_size(levels: Sequence[float], size: int) -> float:
    """Return the expected number of elements of a tuple's compressed history: ``1 + (s−1)/s · Σ (1 − p_{i+1}/p_i)``.

    Source: xiao2009, proof of Lemma 2; a history holds ``1 + disp`` elements, so it is below ``1 + ln(p_max/p_min)``.
    """
    ordered = sorted(set(levels), reverse=True)
    lost = math.fsum(1.0 - step(high, low) for high, low in pairwise(ordered))
    return 1.0 + (size - 1) / size * lost


def left_by_retention(prior: Array, retention: float) -> float:
    """Return the share of the categories' variance that exact Bayes leaves from one copy.

    Parameters
    ----------
    prior : ndarray of shape (s,)
        ``π``, all above 0.
    retention : float
        ``p``.

    Notes
    -----
    ``1 − (E Σ_x P(x|y)² − Σ π_x²)/(1 − Σ π_x²)`` with ``P(x, y) = π_x (p·[x = y] + a)`` and ``a = (1 − p)/s`` (xiao2009, eq. 1). The sum
    over x of ``P(x, y)²`` is ``a² Σ π_x² + π_y² (p² + 2ap)``, so that a domain of any size needs no matrix.

    Examples
    --------
    >>> left_by_retention(np.array([0.5, 0.5]), 0.5), left_by_retention(np.array([0.5, 0.5]), 1.0)
    (0.75, 0.0)
    """
    p, a = retention, (1.0 - retention) / len(prior)
    blind = float((prior**2).sum())
    known = float(((a**2 * blind + prior**2 * (p**2 + 2.0 * a * p)) / (p * prior + a)).sum())
    return 1.0 - (known - blind) / (1.0 - blind)
