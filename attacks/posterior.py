r"""Exact posterior of every record given a coalition's categorical copies.

For multilevel copies the joint posterior is computed along the chain, from the most perturbed copy
back to the original. For fresh copies the likelihoods multiply.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``q`` | the adversary's prior | (s,) | |
| ``T(p)`` | ``p·I + (1 − p)·1πᵀ``, π uniform unless the scheme says otherwise | (s, s) | xiao2009, eq. 1 |
| ``b_i`` | backward message: probability of all copies perturbed further than copy i, given it | (b,) | |
| ``P(x\|y)`` | ``∝ q(x)·T(p_1)[x, y_1]·b_1``, ``b_{i−1} = T(p_i/p_{i−1})[y_{i−1}, y_i]·b_i`` | (b, s) | xiao2009, Lemma 1 |
| | ``∝ q(x)·Π_i T(p_i)[x, y_i]`` for fresh copies | (b, s) | xiao2009, Appendix 2 |
| ``R_i`` | ``1 + p_i/((1 − p_i)π_x)``: odds of x if copy i shows it | scalar | |

Work is ``O(n·(k + s))`` for k copies. *Not checked*: that tuples are independent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    AuditorError,
    CategoricalAttack,
    CategoricalView,
    Codes,
    Estimated,
    Flags,
    Inference,
    KnownPairs,
    KnownRecords,
    Perfect,
    PluginParameters,
    Prior,
    SampleCounts,
    UniformLaw,
    UniformPrior,
    mask,
    register,
)
from auditor.schemes.replacement.law import estimated, estimated_retention, fresh_chances, step

SMALLEST = 1e-150
"""Floor of a possible backward message, so that 10,000 unlikely copies do not underflow to
impossible."""

MOST_STEPS, SMALL_STEP = 2_000, 1e-7
"""EM stops after so many steps, or when no share changes by more."""


@register
class Posterior(CategoricalAttack):
    """Exact posterior of every record given its categorical copies."""

    name = "posterior"
    reference = "xiao2009, Appendix 2"
    knowledge = ("perfect", "uniform-prior", "estimated", "known-records", "rules")
    assumes = "The adversary knows how copies were made; tuples are independent."
    wins = "With every fresh copy; a multilevel copy adds nothing to a less perturbed one."

    class Parameters(PluginParameters):
        """Estimation of the prior, and predicates to measure."""

        prior: Literal["em", "inversion"] = "em"
        """with estimated knowledge: maximum likelihood, or matrix inversion"""
        predicates: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(
            default_factory=dict
        )
        """statements Q(X): a name, and the values it holds for"""

    def infer(self, view: CategoricalView) -> Inference:
        if isinstance(view.knowledge, KnownRecords):
            return self._from_pairs(view)
        if isinstance(view.knowledge, UniformPrior):
            return Bayes(np.full(view.size, 1.0 / view.size), view.law)
        if isinstance(view.knowledge, Estimated):
            return Bayes(self._estimated(view), view.law, fixed=False)
        return Bayes(
            view.need(Prior).probabilities, view.law, own_prior=isinstance(view.knowledge, Perfect)
        )

    def predicates(self, labels: Sequence[Any]) -> Mapping[str, Flags]:
        return {
            name: mask(labels, values, name) for name, values in self.parameters.predicates.items()
        }

    def _estimated(self, view: CategoricalView) -> Array:
        best = view.law.best - 1
        if not view.law.by_retention:
            T = view.law.transition_matrix(None, best + 1)
            return prior_of_chances(
                view.need(SampleCounts).counts[best], T, self.parameters.prior == "em"
            )
        counts, level = view.need(SampleCounts).counts[best], view.law.levels[best]
        if level == 0:
            return np.full(view.size, 1.0 / view.size)
        found = prior_by_likelihood if self.parameters.prior == "em" else prior_by_inversion
        return found(counts, level, view.law.pi)

    def _from_pairs(self, view: CategoricalView) -> Inference:
        pairs = view.need(KnownPairs)
        x = pairs.original
        prior = (np.bincount(x, minlength=view.size) + 1.0) / (x.size + view.size)
        if not view.law.by_retention:
            law = estimated(x, pairs.copies, [view.size])
            return Bayes(prior, law, fixed=False, exact=False)
        levels = tuple(estimated_retention(x, y, view.size, view.law.pi) for y in pairs.copies)
        return Bayes(prior, replace(view.law, levels=levels), fixed=False, exact=False)


@dataclass(repr=False)
class Bayes(Inference):
    """Bayes' rule under a prior and a law.

    ``own_prior``, ``exact``: these are the table's own.
    """

    prior: Array
    law: UniformLaw
    fixed: bool = True
    exact: bool = True
    own_prior: bool = True

    def counting(self, copies: int) -> Sequence[int]:
        """Best copy's place if others change the evidence alone, never to 0."""
        return [self.law.best - 1] if self._by_best(copies) else range(copies)

    def _by_best(self, copies: int) -> bool:
        law = self.law
        chain = law.by_retention and law.multilevel and math.isfinite(law.rarity)
        return chain and len(set(law.levels)) == copies

    def mixture(self, copies: Sequence[Codes]) -> tuple[Array, Codes] | None:
        """w, with ``w / (1 − w) = p q_y / ((1 − p) π_y)``, and y of the best copy."""
        place = self.law.best - 1
        p, y = self.law.levels[place], copies[place]
        if p == 1.0 or not self._by_best(len(copies)):
            return None
        kept = p * self.prior[y]
        return kept / (kept + self.law.redrawn_as(p, y)), y

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Posterior, shape (b, s).

        ``AuditorError`` if the law excludes the copies.
        """
        joint = self.joint(self.prior, copies)
        evidence = joint.sum(axis=1, keepdims=True)
        lost = np.flatnonzero(~(evidence > 0)) if not (self.fixed and self.own_prior) else ()
        if len(lost):  # excluded by an estimated or published prior: use a uniform prior
            joint[lost] = self.joint(
                np.full(self.prior.size, 1.0 / self.prior.size), [copy[lost] for copy in copies]
            )
            evidence = joint.sum(axis=1, keepdims=True)
        if not (evidence > 0).all():
            raise AuditorError(
                "the copies of some records are impossible under the law that the scheme states"
            )
        joint *= 1.0 / evidence  # a third of the time of a division
        return joint

    def joint(self, prior: Array, copies: Sequence[Codes]) -> Array:
        """``P(x, y_1 … y_k)`` up to a factor per record, shape (b, s)."""
        if not self.law.by_retention:
            return prior * self.law.likelihood(copies)
        if self.law.multilevel:
            return chain_joint(prior, self.law, copies, self.exact)
        return fresh_joint(prior, self.law, copies)


def chain_joint(
    prior: Array, law: UniformLaw, copies: Sequence[Codes], exact: bool = True
) -> Array:
    """``P(x, y_1 … y_k)`` of k multilevel copies, shape (b, s).

    Up to a factor per record. Impossible copies get 0 if the law is ``exact``, otherwise a floor.
    """
    order = law.descending
    message = np.ones(copies[0].size)
    for before, after in zip(reversed(order[:-1]), reversed(order[1:]), strict=True):
        # b_{i−1} = T(p_i/p_{i−1})[y_{i−1}, y_i] · b_i, divided by its larger case
        rho = step(law.levels[before], law.levels[after])
        other = law.redrawn_as(rho, copies[after])
        message *= np.where(
            copies[before] == copies[after], 1.0, other / np.maximum(rho + other, SMALLEST)
        )
        np.maximum(message, SMALLEST, out=message, where=message > 0)
    p, y = law.levels[order[0]], copies[order[0]]
    fresh = np.broadcast_to(law.redrawn_as(p, y), y.shape)
    if not exact:
        fresh, message = np.maximum(fresh, SMALLEST), np.maximum(message, SMALLEST)
    joint = np.outer(fresh * message, prior)
    joint[np.arange(y.size), y] += prior[y] * p * message
    return joint


def fresh_joint(prior: Array, law: UniformLaw, copies: Sequence[Codes]) -> Array:
    """``q(x)·Π T(p_i)[x, y_i]`` up to a factor per record, (b, s)."""
    rows = np.arange(copies[0].size)
    scores, allowed = (np.full((rows.size, law.size), value) for value in (0.0, True))
    for level, y in zip(law.levels, copies, strict=True):
        # certain: the copy is the original
        odds = law.odds_of(level)
        sure = np.isinf(odds)[y]
        scores[rows, y] += np.log(np.where(np.isinf(odds), 1.0, odds))[y]
        shown = allowed[rows, y]
        allowed[sure] = False
        allowed[rows[sure], y[sure]] = shown[sure]
    weights = np.where(allowed, prior, 0.0)
    scores[weights <= 0] = -np.inf
    top = scores.max(axis=1, keepdims=True)
    return weights * np.exp(scores - np.where(np.isfinite(top), top, 0.0))


def prior_by_inversion(counts: Array, retention: float, pi: Array) -> Array:
    """``(f − (1 − p)π) / p``, shape (s,).

    Negative values are set to 0, the rest normalised.
    """
    frequency = counts / counts.sum()
    estimate = np.clip(
        (frequency - fresh_chances(retention, counts.size, pi)) / retention, 0.0, None
    )
    return estimate / estimate.sum()


def prior_by_likelihood(counts: Array, retention: float, pi: Array) -> Array:
    """Maximum-likelihood prior, shape (s,), the limit of EM.

    ``Σ c_y log e_y`` with ``e = p q + a``, ``a = (1 − p)π``, is largest over the simplex where
    ``e_y = max(t c_y, a_y)``, with t such that e sums to 1 (Kuhn–Tucker). Source: agrawal2001.
    """
    a = fresh_chances(retention, counts.size, pi)
    order = np.argsort(-quotient(counts, a, np.where(counts > 0, np.inf, 0.0)), kind="stable")
    c, noise = counts[order], a[order]
    # t, if q > 0 for the k values of largest counts over a
    possible = (retention + np.cumsum(noise)) / np.cumsum(c)
    t = possible[np.flatnonzero(possible * c > noise)[-1]]
    return np.maximum(t * counts - a, 0.0) / retention


def prior_of_chances(counts: Array, T: Array, by_likelihood: bool) -> Array:
    """Prior under a transition matrix T, shape (s, s), row x.

    By EM (agrawal2001), or least squares of ``Tᵀ q = f``, negative values set to 0, sum 1.
    """
    frequency = counts / counts.sum()
    if not by_likelihood:
        estimate = np.clip(np.linalg.lstsq(T.T, frequency, rcond=None)[0], 0.0, None)
        return estimate / estimate.sum()
    q = np.full(counts.size, 1.0 / counts.size)
    for _ in range(MOST_STEPS):
        shown = q @ T  # 0 for a value that no remaining x leads to; its frequency is 0 too
        before, q = (q, q * (T @ quotient(frequency, shown)))
        if np.abs(q - before).max() <= SMALL_STEP:
            break
    return q / q.sum()
