"""Posterior mean of rows that move between states, each with its own normal law.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u_t`` | row t of the coalition's combined copy, in coordinates with independent noise of variances s | (r,) | ``mixture_estimate`` |
| ``α, m, V`` | weights, means and covariances of K states of the noise-free rows | (K,), (K, r), (K, r, r) | bovy2011 |
| ``A`` | probabilities of moves from row to row | (K, K) | baum1970 |
| ``q_t`` | posterior of the states of row t given all rows | (K,) | rabiner1989 |
| ``b_tk`` | ``m_k + V_k (V_k + diag(s))⁻¹ (u_t − m_k)`` | (r,) | bovy2011 |
| ``x̂_t`` | ``mu + A⁺ Σ_k q_tk b_tk`` | (N,) | |

EM starts from clusters of ``matern-smoother``'s estimates and of five adjacent rows' components. The
number of states maximises the likelihood less ``½ log n`` per parameter (schwarz1978). If moves raise it
by less than they cost, rows have no order, also for noisier copies, and the attack is ``llse``.

*Not checked*: noise that is independent between rows, and normal states. Few rows suffice, where
``mixture-estimate`` holds out too many. Other noise is treated as Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from auditor.plugin import (
    Array,
    Cost,
    Estimated,
    Perfect,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
)

from ._deconvolution import GAIN, Mixture, Posterior
from .mixture_estimate import Seen
from .serial_posterior import forward, posteriors, windows
from .trend_smoother import Smoothed, check_rows, smoothed

ROWS = (100, 5_000)
"""Fewest and most rows. EM on more takes seconds; `neighbour-mixture` fits them."""
STATES = (2, 3, 4, 6, 8)
MOST_STEPS, WINDOW = 40, 128
"""Most EM steps, and most rows of a window, an eighth of few rows."""
NARROW, AROUND = 0.1, 2
"""States' share of the variance at the start, and rows on either side that clusters look at."""
OWN = 1e-3
"""Weight of the data's covariance in a state's, in rows per coordinate."""


@register
class HiddenMarkov(RowAttack):
    """Posterior mean under a hidden Markov chain of normal states."""

    name = "hidden-markov"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(0.1, 1e-4)
    reference = "rabiner1989; bovy2011"
    knowledge = (Perfect.name, Estimated.name)
    assumes = (
        "Rows follow one another (time, place, a sorted file) and move between states; the adversary knows the law of the noise, "
        "which is independent between rows; states are learnt from the copies."
    )
    wins = "Wins in small sorted tables of groups that differ, and where states alternate; on records in no order it is llse."

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        check_rows(view, *ROWS)
        release, seen = view.starts.setdefault("release", {}), Seen.of(view)
        s = 1.0 - seen.pencil.share
        u = np.concatenate([*map(seen.coordinates, blocks)])
        if "states" not in view.starts:
            found = best_states(u, s, STATES) if release.get("moves", s.any()) else None
            view.starts["states"] = () if found is None else (found.prior.size,)
            release.setdefault("moves", found is not None)
        else:
            found = best_states(u, s, view.starts["states"])
        return Smoothed(seen.values(found.mean(u, s) if found else u * (1.0 - s)))


@dataclass(frozen=True, eq=False, repr=False)
class States:
    """States of rows, with even weights in ``prior``.

    ``alpha`` has shape (K,), ``A`` (K, K); ``score`` is the penalised log-likelihood.
    """

    prior: Mixture
    alpha: Array
    A: Array
    score: float = -np.inf

    def chances(self, u: Array, s: Array) -> tuple[Array, Array]:
        """Return likelihoods, up to a factor per row, (n, K), and its logarithm, (n,)."""
        q, log = Posterior(self.prior, s).chances(u)
        return q.T + np.finfo(float).tiny, log + np.log(self.prior.size)

    def given(self, u: Array, s: Array) -> Array:
        """Return ``b``, shape (n, K, r)."""
        m, d = self.prior.means, u[:, None] - self.prior.means
        return np.asarray(m + np.einsum("kij,nkj->nki", Posterior(self.prior, s).gain, d))

    def mean(self, u: Array, s: Array) -> Array:
        """Return ``Σ_k q_k b_k``, shape (n, r)."""
        q = posteriors(self.A, self.alpha, self.chances(u, s)[0])
        return np.einsum("nk,nkr->nr", q, self.given(u, s))


def best_states(u: Array, s: Array, numbers: Iterable[int]) -> States | None:
    """Return the states of the highest score, or None if there is one state or no order."""
    near = np.pad(u, ((AROUND, AROUND), (0, 0)), mode="symmetric")
    windows_u = np.lib.stride_tricks.sliding_window_view(near, 2 * AROUND + 1, axis=0)
    L, d, _ = np.linalg.svd(windows_u.reshape(len(u), -1), full_matrices=False)
    starts = (L * d)[:, : s.size], smoothed(u.T, s, trend=False)[0].T
    best, failures = None, 0
    for K in numbers:
        tried = [fitted_states(u, s, x, K) for x in starts]
        found = max((one for one in tried if one), key=lambda one: one.score, default=None)
        if found is not None and (best is None or found.score > best.score):
            best, failures = found, 0
        elif failures:
            break
        else:
            failures += 1
    return best


def fitted_states(u: Array, s: Array, x: Array, K: int) -> States | None:
    """Return K states by EM from clusters of estimates x, or None if rows have no order."""
    n, r = u.shape
    q = np.eye(K)[scipy.cluster.vq.kmeans2(x, K, minit="++", seed=np.random.default_rng(K))[1]]
    total = q.sum(axis=0) + 1.0
    m, V = q.T @ u / total[:, None], np.tile(NARROW * np.diag(1.0 - s), (K, 1, 1))
    A = q[:-1].T @ q[1:] + total / total.sum()
    A /= A.sum(axis=1, keepdims=True)
    states, last = States(Mixture(np.full(K, 1.0 / K), m, V), total / total.sum(), A), -np.inf
    for _ in range(MOST_STEPS):
        B, top = states.chances(u, s)
        q, moves, now = expected(states, windows(B, min(WINDOW, max(16, n // 8))), n)
        if now + top.sum() - last < GAIN:
            break
        last = now + top.sum()
        b, V, m = states.given(u, s), states.prior.covariances, states.prior.means
        total = q.sum(axis=0) + OWN * r
        A = moves + states.alpha
        moved = np.einsum("nk,nkr->kr", q, b) / total[:, None]
        d = b - moved
        spread = np.einsum("nk,nki,nkj->kij", q, d, d) + OWN * r * np.diag(1.0 - s)
        V = spread / total[:, None, None] + V - Posterior(states.prior, s).gain @ V
        prior = Mixture(states.prior.weights, moved, (V + V.swapaxes(1, 2)) / 2.0)
        states = States(prior, total / total.sum(), A / A.sum(axis=1, keepdims=True))
    alone = np.log(B @ states.alpha).sum() + top.sum()
    cost = np.log(n) / 2.0
    if last - alone < cost * K * (K - 1):
        return None
    score = last - cost * (K * (K - 1) + K * r * (r + 3) / 2.0)
    return States(states.prior, states.alpha, states.A, score)


def expected(states: States, seen: Array, n: int) -> tuple[Array, Array, float]:
    """Return ``q`` of n rows, sums of moves and the log-likelihood, from windows."""
    A = states.A
    alpha, total = forward(A, states.alpha, seen)
    gamma = forward(A.T, np.ones(len(A)), seen[::-1])[0][::-1]
    sums = ((A.T @ alpha[:-1]) * gamma[1:]).sum(axis=1)
    moves = A * ((alpha[:-1] / sums[:, None]) @ gamma[1:].mT).sum(axis=0)
    alpha[:-1] *= A @ gamma[1:]
    q = alpha.transpose(2, 0, 1).reshape(-1, len(A))[:n]
    return q / q.sum(axis=1, keepdims=True), moves, float(total.sum())
