"""Posterior of categories along the rows, by a hidden Markov chain.

Transitions are fitted to the copies alone, given the known perturbation.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``B_t`` | ``P(y_t1 … y_tk; x_t)`` by true value: the likelihood of ``posterior`` | (s,) | xiao2009, Appendix 2 |
| ``q`` | prior: exact or uniform, as known | (s,) | |
| ``A`` | transition probabilities by EM, started at ``q_j`` and near ``I`` | (s, s) | baum1970 |
| ``α_t`` | ``∝ B_t ∘ (α_{t−1} A)``; the divisors multiply to ``P(y_1 … y_T)`` | (s,) | rabiner1989 |
| ``γ_t`` | ``∝ B_t ∘ (A γ_{t+1})``; ``B_t ∘ β_t`` of the source | (s,) | rabiner1989 |
| ``ξ`` | ``Σ_t α_t(i) A_ij γ_{t+1}(j)``, each term normalised to sum 1: expected transitions from i to j | (s, s) | baum1970 |
| ``P(x_t)`` | ``∝ α_t ∘ A γ_{t+1}`` | (s,) | rabiner1989 |

The chain is used only if, fitted to half of the windows, it predicts the other half better than
independence does, by ``SURE_OF`` standard errors. Otherwise the result is ``posterior``. EM of a
half stops where the prediction of the other half gets worse. Each block of 65,536 records is a
separate series, with a chain fitted to its first ``FITTED_ROWS`` records.

The posterior is exact if the fitted chain is the data's. No theory is given. *Not checked*:
perturbation is independent between records; the chain has order 1 and is constant within a block.

Reference: baum1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    CategoricalAttack,
    CategoricalView,
    Codes,
    Cost,
    Inference,
    NotApplicable,
    Pair,
    Prior,
    UniformLaw,
    UniformPrior,
    register,
)

from .posterior import Bayes

MOST_VALUES = 128
"""Most values of a domain; a step costs their square."""
FITTED_ROWS, FITTED_WINDOW, FEWEST_WINDOWS = 2**14, 64, 8
"""Most records used to fit a chain, rows of a window, and fewest windows."""
WINDOW, WARM_UP = 512, 256
"""Records of a window that get posteriors, and records added on either side. Others are
ignored."""
MOST_STEPS, ENOUGH = 30, 1e-4
"""Most EM steps, and the gain in log-likelihood per record below which EM stops."""
STARTS, FIRST_STEPS = (0.0, 0.9), 6
"""Extra probability to stay at the start, and steps before the more likely start is chosen."""
PSEUDO_MOVES = 1.0
"""Prior transitions added to each value's expected ones, for rare values."""
RESCALED = 8
"""Steps between divisions by the chance of the copies, which double precision bears."""
ROUNDING = 1e-9
"""Gain in log-likelihood per record that counts as rounding error."""
SURE_OF = 2.0
"""Standard errors by which a chain must predict better, so that unordered records seldom pass."""


@register
class SerialPosterior(CategoricalAttack):
    """Posterior along the rows by a Markov chain fitted to the copies."""

    name = "serial-posterior"
    attack_kind = "serial"
    cost = Cost(0.006, 3e-6)
    serial = True
    reference = "rabiner1989; xiao2009, section 3"
    knowledge = ("perfect", "uniform-prior")
    assumes = "Rows follow one another (time, place, a sorted file); the adversary knows how copies were made, row by row independently."
    wins = "Wins over posterior wherever a record foretells the next; on records in no order it is posterior."

    def infer(self, view: CategoricalView) -> Inference:
        if view.size > MOST_VALUES:
            raise NotApplicable(f"learns chains over at most {MOST_VALUES} values")
        uniform = np.full(view.size, 1.0 / view.size)
        return SerialBayes(
            uniform if isinstance(view.knowledge, UniformPrior) else view.need(Prior).probabilities,
            view.law,
        )


@dataclass(repr=False)
class SerialBayes(Inference):
    """Bayes' rule for ordered records; each block fits its own chain."""

    prior: Array
    law: UniformLaw
    fixed: bool = False
    serial: bool = True
    started: list[Array | None] | None = None
    """In redraws, the chain of the first one: the others decide alike and start EM there."""

    def counting(self, copies: int) -> Sequence[int]:
        return Bayes(self.prior, self.law).counting(copies)

    def for_redraws(self) -> SerialBayes:
        return replace(self, started=[])

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Posterior of consecutive records.

        ``AuditorError`` on copies impossible by law.
        """
        P = Bayes(self.prior, self.law).posterior(copies)
        B = quotient(P, self.prior)
        A = fitted_chain(B[:FITTED_ROWS], self.prior, self.started or ())
        if self.started is not None and not self.started:
            self.started.append(A)
        return P if A is None else posteriors(A, self.prior, B)


def fitted_chain(B: Array, prior: Array, started: Sequence[Array | None] = ()) -> Array | None:
    """``A``, shape (s, s), or None if independence predicts as well.

    ``started`` may hold the result for another draw of these copies: the decision then holds, and
    EM starts there.
    """
    count = len(B) // FITTED_WINDOW
    if count < FEWEST_WINDOWS:
        return None
    B = B[: count * FITTED_WINDOW]
    for A in started:
        return A if A is None else _climbed(A, prior, windows(B, FITTED_WINDOW), MOST_STEPS)[0]
    seen = windows(B, FITTED_WINDOW)
    gain, halves = np.empty(count), []
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for half, other in ((even, odd), (odd, even)):
        A, gain[other] = maximised(seen[..., half], prior, seen[..., other])
        halves.append(A)
    if gain.mean() <= SURE_OF * gain.std(ddof=1) / np.sqrt(count) + ROUNDING * FITTED_WINDOW:
        return None
    return _climbed((halves[0] + halves[1]) / 2.0, prior, seen, MOST_STEPS)[0]


def maximised(seen: Array, prior: Array, other: Array) -> Pair:
    """``A`` by EM from windows, shape (T, s, w).

    And their log-likelihoods, (w,). The likeliest of several starts is continued until it predicts
    other windows worse.
    """
    # independence is a plateau that EM leaves slowly
    stay, alone = np.eye(prior.size), np.tile(prior, (prior.size, 1))
    starts = [(1.0 - share) * alone + share * stay for share in STARTS]
    climbed = [_climbed(A, prior, seen, FIRST_STEPS) for A in starts]
    A, before = max(climbed, key=lambda found: found[1])
    predicted = forward(A, prior, other)[1]
    for _ in range(MOST_STEPS):
        A, now = _climbed(A, prior, seen, 1)
        last, predicted = predicted.sum(), forward(A, prior, other)[1]
        if predicted.sum() < last or now - before <= ENOUGH * seen[:, 0].size:
            break
        before = now
    return A, predicted


def _climbed(A: Array, prior: Array, seen: Array, steps: int) -> tuple[Array, float]:
    """``A`` after EM steps, and the last log-likelihood."""
    before = -np.inf
    for _ in range(steps):
        _, moves, now = expected(A, prior, seen)
        moves += PSEUDO_MOVES * prior
        A = moves / moves.sum(axis=1, keepdims=True)
        if now - before <= ENOUGH * seen[:, 0].size:
            break
        before = now
    return A, now


def windows(B: Array, length: int, margin: int = 0) -> Array:
    """Cut likelihoods, shape (b, s), into windows padded by 1.

    Shape (length + 2·margin, s, w).
    """
    count = -(-len(B) // length)
    padded = np.ones((B.shape[1], count * length + 2 * margin))
    padded[:, margin : margin + len(B)] = B.T
    starts = np.arange(count) * length
    return padded[:, np.arange(length + 2 * margin)[:, None] + starts].swapaxes(0, 1).copy()


def forward(A: Array, pi: Array, B: Array) -> Pair:
    """``α`` up to a factor, shape (T, s, w), and log-likelihoods, (w,).

    Of chain ``A`` from ``pi``, shape (s,). Sums are 1 in every ``RESCALED``-th step.
    """
    alpha, total = np.empty(B.shape), np.zeros(B.shape[2])
    for t, b in enumerate(B):
        np.multiply(b, A.T @ alpha[t - 1] if t else pi[:, None], out=alpha[t])
        if (t + 1) % RESCALED == 0 or t + 1 == len(B):
            chances = alpha[t].sum(axis=0)
            alpha[t] /= chances
            total += np.log(chances)
    return alpha, total


def posteriors(A: Array, pi: Array, B: Array) -> Array:
    """Every record's posterior given its neighbours, shape (b, s)."""
    seen, stop = windows(B, WINDOW, WARM_UP), WARM_UP + WINDOW
    alpha, gamma = forward(A, pi, seen)[0], forward(A.T, np.ones(len(A)), seen[::-1])[0][::-1]
    return by_row(alpha[WARM_UP:stop] * (A @ gamma[WARM_UP + 1 : stop + 1]))[: len(B)]


def by_row(P: Array) -> Array:
    """Posteriors of rows, (b, s), from those of windows up to a factor, (T, s, w)."""
    rows = P.transpose(2, 0, 1).reshape(-1, P.shape[1])
    return rows / rows.sum(axis=1, keepdims=True)


def expected(A: Array, pi: Array, B: Array) -> tuple[Array, Array, float]:
    """Posteriors of windows, ``ξ`` summed over windows, (s, s), and the log-likelihood.

    E step of baum1970; posteriors are up to a factor. ``γ`` is ``α`` in reverse with a uniform start.
    """
    alpha, total = forward(A, pi, B)
    before, gamma = alpha[:-1], forward(A.T, np.ones(len(A)), B[::-1])[0][-2::-1]
    P = alpha.copy()
    P[:-1] *= A @ gamma
    moves = ((before / P[:-1].sum(axis=1, keepdims=True)) @ gamma.mT).sum(axis=0)
    return P, A * moves, float(total.sum())
