"""Posterior of categories along the rows, by a hidden Markov chain.

The transitions are fitted to the copies alone, given the known perturbation.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | ``P(y_t1 … y_tk; x_t)`` by true value: the likelihood of ``posterior`` | (s,) | xiao2009, Appendix 2 |
| ``q`` | prior: exact or uniform, as known | (s,) | |
| ``A`` | transition probabilities by EM, started at ``q_j`` and near ``I`` | (s, s) | baum1970 |
| ``P(x_t)`` | ``∝ α_t ∘ A γ_{t+1}`` (``_chains``) | (s,) | rabiner1989 |

The chain is used only if, fitted to half of the windows, it predicts the other half better than
independence does, by ``SURE_OF`` standard errors. Otherwise the result is ``posterior``. It is
fitted to the first ``FITTED_ROWS`` records of each block of 65,536 records. Blocks are separate
series, so time and memory are linear in records.

The posterior is exact if the fitted chain is the data's. The table's chain is unknown, so no theory
is given. Error bars use other draws of the release, each with its own chain. Assumed, *not
checked*: perturbation is independent between records; the chain has order 1 and is constant within
a block.

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
"""Most values of a domain; a step costs their square."""
FITTED_ROWS, WINDOW, FEWEST_WINDOWS = 2**14, 64, 8
"""Most records used to fit a chain, rows of a window, and fewest windows."""
MOST_STEPS, ENOUGH = 30, 1e-4
"""Most EM steps, and the gain in log-likelihood per record below which EM stops."""
STARTS, FIRST_STEPS = (0.0, 0.9), 6
"""Extra probability to stay at the start, and steps before the more likely start is chosen."""
PSEUDO_MOVES = 1.0
"""Prior transitions added to each value's expected ones, for rare values."""
ROUNDING = 1e-9
"""Gain in log-likelihood per record that counts as rounding error."""
SURE_OF = 2.0
"""Standard errors by which a chain must predict better, so that unordered records seldom pass."""


@register
class SerialPosterior(CategoricalAttack):
    """Posterior along the rows by a Markov chain fitted to the copies."""

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
        return SerialBayes(
            uniform if isinstance(view.knowledge, UniformPrior) else view.need(Prior).probabilities,
            view.law,
        )


@dataclass
class SerialBayes(Inference):
    """Bayes' rule for ordered records; each block fits its own chain."""

    prior: Array = field(repr=False)
    law: UniformLaw
    fixed: bool = False
    serial: bool = True

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Return the posterior of consecutive records, shape (b, s).

        Raises
        ------
        AuditorError
            Copies are impossible under the stated law.
        """
        B = likelihood(self.law, copies)
        if not (B @ self.prior > 0).all():
            raise AuditorError(
                "the copies of some records are impossible under the law that the scheme states"
            )
        A = fitted_chain(B[:FITTED_ROWS], self.prior)
        return (
            Bayes(self.prior, self.law).posterior(copies)
            if A is None
            else posteriors(A, self.prior, B)
        )


def likelihood(law: UniformLaw, copies: Sequence[Codes]) -> Array:
    """Return ``B``, shape (b, s), scaled to a row maximum of 1.

    Impossible copies have 0.
    """
    if not law.by_retention:
        joint = law.likelihood(copies)
    else:
        joint = (chain_joint if law.multilevel else fresh_joint)(np.ones(law.size), law, copies)
    top = joint.max(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, top, out=np.zeros_like(joint), where=top > 0))


def fitted_chain(B: Array, prior: Array) -> Array | None:
    """Return ``A``, shape (s, s), or None if independence predicts as well.

    Prediction is out of sample, on the other half of the windows.
    """
    count = len(B) // WINDOW
    if count < FEWEST_WINDOWS:
        return None
    seen = windows(B[: count * WINDOW], WINDOW)
    alone = np.log(seen @ prior).sum(axis=0)
    gain, halves = np.empty(count), []
    for half, other in (
        (slice(0, None, 2), slice(1, None, 2)),
        (slice(1, None, 2), slice(0, None, 2)),
    ):
        halves.append(maximised(seen[:, half], prior))
        gain[other] = (
            np.log(forward(halves[-1], prior, seen[:, other])[1]).sum(axis=0) - alone[other]
        )
    if gain.mean() <= SURE_OF * gain.std(ddof=1) / np.sqrt(count) + ROUNDING * WINDOW:
        return None
    return _climbed((halves[0] + halves[1]) / 2.0, prior, both_ways(seen), MOST_STEPS)[0]


def maximised(seen: Array, prior: Array) -> Array:
    """Return ``A`` by EM from windows of likelihoods, shape (T, w, s).

    Of several starts the more likely one is continued.
    """
    alone = np.tile(prior, (prior.size, 1))
    starts = [(1.0 - stay) * alone + stay * np.eye(prior.size) for stay in STARTS]
    # Independence is a plateau: under strong perturbation EM needs hundreds of steps to leave it. A
    # sticky start is better.
    ways = both_ways(seen)
    A, _ = max((_climbed(A, prior, ways, FIRST_STEPS) for A in starts), key=lambda found: found[1])
    return _climbed(A, prior, ways, MOST_STEPS)[0]


def _climbed(A: Array, prior: Array, ways: Array, steps: int) -> tuple[Array, float]:
    """Return ``A`` after EM steps, and the last log-likelihood."""
    before = -np.inf
    for _ in range(steps):
        moves, now = expected_moves(A, prior, ways)
        moves += PSEUDO_MOVES * prior
        A = moves / moves.sum(axis=1, keepdims=True)
        if now - before <= ENOUGH * ways.shape[0] * ways.shape[2]:
            break
        before = now
    return A, now
