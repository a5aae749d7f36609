"""Bayes along the rows, for categories: where records follow one another, what a record's neighbours show tells of its own value.

How a value follows another is learnt from the copies alone, as a Markov chain seen through the known perturbation; then every record's
posterior takes in the records before and after it.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | ``P(y_t1 … y_tk; x_t)`` by true value: the likelihood of ``posterior`` | (s,) | xiao2009, Appendix 2 |
| ``q`` | prior: exact or uniform, as known | (s,) | |
| ``A`` | chance of the next value given this one, learnt by expectation–maximisation, begun at ``q_j`` and near ``I`` | (s, s) | baum1970 |
| ``P(x_t)`` | ``∝ α_t ∘ A γ_{t+1}`` (``_chains``) | (s,) | rabiner1989 |

A coalition's copies are pooled by the exact likelihood of ``posterior``, so that of multilevel copies the best alone counts. The chain is
believed only where, learnt from half of some windows of records, it foretells the other half better than independent records do, by
``SURE_OF`` standard errors; else the outcome is that of ``posterior``. It is fitted anew to the first ``FITTED_ROWS`` records of a block
of 65,536, whose records are a series of their own: time and memory are linear in records, and whatever else is in the table is not kept.

The posterior is the exact one of a Markov chain if the chain learnt is the data's. There is no theory beside the figure, as nobody states
the table's chain; error bars are the spread over other draws of the release, each with a chain of its own.

Wins where neighbours are alike, or foretell one another otherwise. Assumed, *not checked*: coins are independent from record to record; a
record depends on the one before it and on no other; the chain is the same throughout a block.

Reference: baum1970; rabiner1989.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.plugin import (
    Array,
    AuditorError,
    CategoricalAttack,
    CategoricalView,
    Codes,
    Cost,
    Inference,
    NotApplicable,
    Perfect,
    Prior,
    UniformLaw,
    UniformPrior,
    register,
)

from ._chains import both_ways, expected_moves, forward, posteriors, windows
from .posterior import Bayes, chain_joint, fresh_joint

MOST_VALUES = 128
"""Values of a domain whose chain is learnt: a step takes the square of them."""
FITTED_ROWS, WINDOW, FEWEST_WINDOWS = 2**14, 64, 8
"""Records that a chain is learnt from at most, in windows of so many; and windows at least."""
MOST_STEPS, ENOUGH = 30, 1e-4
"""Steps of expectation–maximisation, and the gain in log-likelihood a record that is not worth another one."""
STARTS, FIRST_STEPS = (0.0, 0.9), 6
"""Chances to stay, beyond those by the prior, that it begins with; and steps after which the more likely of the two goes on."""
PSEUDO_MOVES = 1.0
"""Moves by the prior that every value counts beside those expected of it: a value hardly ever met keeps the prior."""
ROUNDING = 1e-9
"""Gain in log-likelihood a record that is none."""
SURE_OF = 2.0
"""Standard errors by which a chain must foretell better: records in no order are seldom taken for one."""


@register
class SerialPosterior(CategoricalAttack):
    """Posterior of every record given its copies and its neighbours': forward–backward on a Markov chain learnt from the copies alone."""

    name = "serial-posterior"
    attack_kind = "serial"
    cost = Cost(0.013, 6.5e-6)
    serial = True
    reference = "rabiner1989; xiao2009, section 3"
    knowledge = (Perfect.name, UniformPrior.name)
    assumes = "Rows follow one another (time, place, a sorted file); the adversary knows how copies were made, row by row independently."
    wins = "Wins over posterior wherever a record foretells the next; on records in no order it is posterior."

    def infer(self, view: CategoricalView) -> Inference:
        """Return the posterior along the rows of one coalition's copies."""
        if view.size > MOST_VALUES:
            raise NotApplicable(f"learns chains over at most {MOST_VALUES} values")
        uniform = np.full(view.size, 1.0 / view.size)
        return SerialBayes(uniform if isinstance(view.knowledge, UniformPrior) else view.need(Prior).probabilities, view.law)


@dataclass
class SerialBayes(Inference):
    """Bayes' rule for records in order, under a prior and a law; the chain is learnt from the records it is shown."""

    prior: Array = field(repr=False)
    law: UniformLaw
    fixed: bool = False
    serial: bool = True

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Return the posterior of records that follow one another, shape (b, s).

        Raises
        ------
        AuditorError
            Copies are impossible under the law that is stated of them.
        """
        B = likelihood(self.law, copies)
        if not (B @ self.prior > 0).all():
            raise AuditorError("the copies of some records are impossible under the law that the scheme states")
        A = fitted_chain(B[:FITTED_ROWS], self.prior)
        return Bayes(self.prior, self.law).posterior(copies) if A is None else posteriors(A, self.prior, B)


def likelihood(law: UniformLaw, copies: Sequence[Codes]) -> Array:
    """Return ``B``, shape (b, s): the chance of each record's copies by its true value, over the largest; 0 for impossible copies."""
    if not law.by_retention:
        joint = law.likelihood(copies)
    else:
        joint = (chain_joint if law.multilevel else fresh_joint)(np.ones(law.size), law, copies)
    top = joint.max(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, top, out=np.zeros_like(joint), where=top > 0))


def fitted_chain(B: Array, prior: Array) -> Array | None:
    """Return ``A``, shape (s, s); None where what is learnt from half of the windows does not surely foretell the others better."""
    count = len(B) // WINDOW
    if count < FEWEST_WINDOWS:
        return None
    seen = windows(B[: count * WINDOW], WINDOW)
    alone = np.log(seen @ prior).sum(axis=0)
    gain, halves = np.empty(count), []
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        halves.append(maximised(seen[:, half], prior))
        gain[other] = np.log(forward(halves[-1], prior, seen[:, other])[1]).sum(axis=0) - alone[other]
    if gain.mean() <= SURE_OF * gain.std(ddof=1) / np.sqrt(count) + ROUNDING * WINDOW:
        return None
    return _climbed((halves[0] + halves[1]) / 2.0, prior, both_ways(seen), MOST_STEPS)[0]


def maximised(seen: Array, prior: Array) -> Array:
    """Return ``A`` by expectation–maximisation from windows of likelihoods of shape (T, w, s), from whichever start is more likely."""
    alone = np.tile(prior, (prior.size, 1))
    starts = [(1.0 - stay) * alone + stay * np.eye(prior.size) for stay in STARTS]
    # Independence is a plateau: where much is perturbed, hundreds of steps lead away from it. A chain that stays is then the better start.
    ways = both_ways(seen)
    A, _ = max((_climbed(A, prior, ways, FIRST_STEPS) for A in starts), key=lambda found: found[1])
    return _climbed(A, prior, ways, MOST_STEPS)[0]


def _climbed(A: Array, prior: Array, ways: Array, steps: int) -> tuple[Array, float]:
    """Return ``A`` after some steps, ``PSEUDO_MOVES`` by the prior in each, and the log-likelihood of the one before.

    ``ways`` are the likelihoods of ``both_ways``.
    """
    before = -np.inf
    for _ in range(steps):
        moves, now = expected_moves(A, prior, ways)
        moves += PSEUDO_MOVES * prior
        A = moves / moves.sum(axis=1, keepdims=True)
        if now - before <= ENOUGH * ways.shape[0] * ways.shape[2]:
            break
        before = now
    return A, now
