"""Posterior mean of rows that move between states, each with its own normal law.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u_t`` | row t of the coalition's combined copy, in coordinates with independent noise of variances s | (r,) | ``mixture_estimate`` |
| ``α, m, V`` | weights, means and covariances of K states of the noise-free rows | (K,), (K, r), (K, r, r) | bovy2011 |
| ``A`` | probabilities of moves from row to row | (K, K) | baum1970 |
| ``q_t`` | posterior of the states of row t given all rows | (K,) | rabiner1989 |
| ``b_tk`` | ``m_k + V_k (V_k + diag(s))⁻¹ (u_t − m_k)`` | (r,) | bovy2011 |
| ``x̂_t`` | ``mu + A⁺ Σ_k q_tk b_tk`` | (N,) | |
| ``θ_t`` | level of row t, normal with covariance B, in segments of rows that end with chance p | (r,) | barry1992 |
| ``T`` | covariance of ``u_t − θ_t``, with noise ``diag(s)`` | (r, r) | |
| ``R, D`` | ``T = RRᵀ``, ``B = R D Rᵀ``: ``v = R⁻¹u`` has independent levels and rest | (r, r), (r,) | |

EM starts from clusters of ``matern-smoother``'s estimates and of five adjacent rows' components. The
number of states maximises the likelihood less ``½ log n`` per parameter (schwarz1978). Without memory, or if
moves raise it by less than they cost, rows have no order, also for noisier copies, and the attack is ``llse``. Or
each segment of rows has a state of its own: ``x̂ = mu + A⁺(θ̂ + (T − diag(s)) T⁻¹ (u − θ̂))``,
with θ̂ summed over all segments (barry1992) and B, T and p by EM.

*Not checked*: noise that is independent between rows, and normal states. Other noise is treated as
Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.numerics.linear_algebra import clip_to_psd
from auditor.plugin import (
    Array,
    CopyBlocks,
    Cost,
    Indices,
    Pair,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
    unprinted,
)

from ._chain import independent
from ._deconvolution import GAIN, Mixture, Posterior
from .mixture_estimate import Seen
from .serial_posterior import by_row, expected, posteriors, windows
from .trend_smoother import Smoothed, check_rows, smoothed

ROWS = (100, 5_000)
"""Fewest and most rows. EM on more takes seconds; `neighbour-mixture` fits them."""
NEW = 0
STATES = (2, NEW, 3, 4, 6, 8)
"""Tried numbers of states. ``NEW`` stands for one of each segment of rows."""
FIRST_STEPS, MOST_STEPS, WINDOW = 8, 40, 64
"""EM steps before the likelier start is chosen, most steps, and most rows of a window."""
NARROW, AROUND = 0.1, 2
"""States' share of the variance at the start, and rows on either side that clusters look at."""
SEGMENT_VALUES = 2**19
"""Approximate number of sums of segments, which bounds their rows."""
LONGEST = 128
"""Most rows of a segment. Its level is known to 1/128 of a row's variance."""
LEVEL, ENDS, LEAST = 0.7, 0.05, 1e-6
"""Share of the variance in levels and chance of an end at the start; least variance of noise."""
OWN = 1e-3
"""Weight of the data's covariance in a state's, in rows per coordinate."""


@register
class HiddenMarkov(RowAttack):
    """Posterior mean under a hidden Markov chain of normal states."""

    name = "hidden-markov"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(0.03, 2.5e-5, most=ROWS[1])
    reference = "rabiner1989; bovy2011"
    knowledge = ("perfect", "estimated")
    assumes = (
        "Rows follow one another (time, place, a sorted file) and move between states; the adversary knows the law of the noise, "
        "which is independent between rows; states are learnt from the copies."
    )
    wins = "Wins in small sorted tables of groups that differ, where levels jump or states alternate; on records in no order it is llse."

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        check_rows(view, *ROWS)
        release, seen = view.starts.setdefault("release", {}), Seen.of(view)
        s = 1.0 - seen.pencil.share
        u = np.concatenate([*map(seen.coordinates, blocks)])
        order = s.any() and not all(map(independent, u.T))
        tried = release.get("states", STATES) if order else ()
        found = best_states(u, s, view.starts.get("states", tried))
        view.starts.setdefault("states", (found.size,) if found else ())
        if s.any():  # noise hides states: noisier copies have at most as many
            few = (K for K in STATES if found and found.size <= 2 * K <= 2 * found.size)
            release.setdefault("states", tuple(few))
        return Smoothed(seen.values(found.estimates if found else u * (1.0 - s)))


class Fit(NamedTuple):
    """Estimates of rows, by the number of states, and the penalised log-likelihood."""

    size: int
    score: float
    estimates: Array


@unprinted
class States:
    """States of rows, with even weights in ``prior``.

    ``alpha`` has shape (K,), ``A`` (K, K).
    """

    prior: Mixture
    alpha: Array
    A: Array

    def chances(self, u: Array, s: Array) -> Pair:
        """Likelihoods, up to a factor per row, (n, K), and its logarithm, (n,)."""
        q, log = Posterior(self.prior, s).chances(u)
        return q.T + np.finfo(float).tiny, log + np.log(self.prior.size)

    def given(self, u: Array, s: Array) -> Array:
        """``b``, shape (n, K, r)."""
        m, d = self.prior.means, u[:, None] - self.prior.means
        return m + np.einsum("kij,nkj->nki", Posterior(self.prior, s).gain, d)

    def mean(self, u: Array, s: Array) -> Array:
        """``Σ_k q_k b_k``, shape (n, r)."""
        q = posteriors(self.A, self.alpha, self.chances(u, s)[0])
        return np.einsum("nk,nkr->nr", q, self.given(u, s))


class Levels(NamedTuple):
    """Law of ``θ``: ``R``, ``R⁻¹``, ``D`` and p."""

    R: Array
    inverse: Array
    D: Array
    p: float

    @classmethod
    def of(cls, B: Array, T: Array, p: float) -> Levels:
        L = np.linalg.cholesky(T)
        half = np.linalg.inv(L)
        D, Q = np.linalg.eigh(half @ B @ half.T)
        return cls(L @ Q, Q.T @ half, np.maximum(D, 0.0), p)

    def segments(self, u: Array) -> Segments:
        """Posterior of segments of rows u, shape (n, r)."""
        v, n = u @ self.inverse.T, len(u)
        L = min(n, LONGEST, 1 + SEGMENT_VALUES // u.size)
        length = np.arange(L, 0, -1)
        start = np.arange(1, n + 1)[:, None] - length
        first = np.maximum(start, 0)
        sums = np.cumsum(np.pad(v, ((1, 0), (0, 0))), axis=0)
        sums, m = sums[1:, None] - sums[first], length[:, None] * self.D
        means = sums * (self.D / (1.0 + m))
        E = 0.5 * (np.einsum("nlr,nlr->nl", means, sums) - np.log1p(m).sum(axis=1))
        E += np.log(self.p) + (length - 1) * np.log1p(-self.p)
        E[start < 0] = -np.inf
        # in reversed rows, a segment from row a ends at row n − a
        back = np.where(start < 0, -np.inf, E[n - 1 - first, np.arange(L)])
        before, after = before_each(E), before_each(back)
        windows_before = np.lib.stride_tricks.sliding_window_view(before, L)[:n]
        q = np.exp(windows_before + E + after[L - 1 : -1][::-1, None] - before[-1])
        log = before[-1] - 0.5 * (v**2).sum() + n * np.linalg.slogdet(self.inverse)[1]
        return Segments(v, length, q, sums, means, log)


class Segments(NamedTuple):
    """Posterior of segments by last row and length, from rows ``v = R⁻¹u``.

    Probabilities ``q`` have shape (n, L), sums of v and mean levels (n, L, r).
    """

    v: Array
    length: Indices
    q: Array
    sums: Array
    means: Array
    log: float

    @property
    def levels(self) -> Array:
        """Posterior means of rows' levels, shape (n, r)."""
        n, each = len(self.v), self.q[:, :, None] * self.means
        steps = np.pad(-each.sum(axis=1), ((1, 0), (0, 0)))
        for k, size in enumerate(self.length):
            steps[: n + 1 - size] += each[size - 1 :, k]
        return np.cumsum(steps, axis=0)[:n]

    def fitted(self, levels: Levels, s: Array) -> Levels:
        """Levels of an EM step."""
        n, rows, both = len(self.v), self.q * self.length, ((0, 1), (0, 1))
        squares = np.tensordot(rows[:, :, None] * self.means, self.means, both)
        spread = levels.D / (1.0 + self.length[:, None] * levels.D)
        squares += np.diag(rows.sum(axis=0) @ spread)
        crossed = np.tensordot(self.q[:, :, None] * self.sums, self.means, both)
        rest = self.v.T @ self.v - crossed - crossed.T + squares
        B, T = (levels.R @ each @ levels.R.T / n for each in (squares, rest))
        rest = clip_to_psd(np.diag(1.0 - s) - B)
        # two estimates of T, of variances 2T²/n and, by the known data, 4TB/n
        w = np.mean(2.0 * np.diag(B) / (2.0 * np.diag(B) + np.diag(T)))
        T = np.diag(s) + clip_to_psd(w * (T - np.diag(s)) + (1.0 - w) * rest)
        p = np.clip(self.q.sum() / n, 1.0 / n, 0.5)
        return Levels.of(np.diag(1.0 - s) - rest, T, p)


def before_each(E: Array) -> Array:
    """Log-likelihoods of all rows before a row, after L − 1 of none, shape (L + n,)."""
    n, L = E.shape
    found = np.full(L + n, -np.inf)
    found[L - 1] = 0.0
    for t, each in enumerate(E):
        found[L + t] = np.logaddexp.reduce(found[t : t + L] + each)
    return found


def new_states(u: Array, s: Array, score: float = -np.inf) -> Fit | None:
    """Estimates under levels that jump, or None below a score or if rows have no order."""
    (n, r), s, last = u.shape, np.maximum(s, LEAST), -np.inf
    B, law, cost = LEVEL * np.diag(1.0 - s), r * (r + 1) / 2.0, np.log(n) / 2.0
    alone = -0.5 * n * (np.linalg.slogdet(u.T @ u / n)[1] + r)
    more = 0.5 * n * r * np.log(2.0 * np.pi) + cost * (2.0 * law + 1.0)
    needed = max(alone + cost * (law + 1.0), score + more)
    following = Levels.of(B, np.eye(r) - B, ENDS)
    for left in range(MOST_STEPS, 0, -1):
        levels, found = following, following.segments(u)
        gain = found.log - last
        # later steps gain less
        if gain < GAIN or found.log + left * gain < needed:
            break
        last, following = found.log, found.fitted(levels, s)
    if found.log < needed:
        return None
    return Fit(NEW, found.log - more, u - (found.v - found.levels) @ levels.inverse * s)


def best_states(u: Array, s: Array, numbers: Sequence[int]) -> Fit | None:
    """States of the highest score, or None if there is one state or no order."""
    near = np.pad(u, ((AROUND, AROUND), (0, 0)), mode="symmetric")
    windows_u = np.lib.stride_tricks.sliding_window_view(near, 2 * AROUND + 1, axis=0)
    L, d, _ = np.linalg.svd(windows_u.reshape(len(u), -1), full_matrices=False)
    starts = (L * d)[:, : s.size], smoothed(u.T, s, trend=False)[0].T
    best, failures = None, 0
    for K in numbers:
        if K == NEW:
            found = new_states(u, s, best.score if best else -np.inf)
        else:
            fits = [fitted_states(clustered(u, s, x, K), u, s, FIRST_STEPS) for x in starts]
            likelier = max(fits, key=lambda fit: fit[1])[0]
            found = penalised(*fitted_states(likelier, u, s, MOST_STEPS), u, s)
        if found and (best is None or found.score > best.score):
            best, failures = found, 0
        elif K != NEW:
            failures += 1
        if failures == 2:
            break
    return best


def clustered(u: Array, s: Array, x: Array, K: int) -> States:
    """K states of clusters of estimates x."""
    q = np.eye(K)[scipy.cluster.vq.kmeans2(x, K, minit="++", seed=np.random.default_rng(K))[1]]
    total = q.sum(axis=0) + 1.0
    m, V = q.T @ u / total[:, None], np.tile(NARROW * np.diag(1.0 - s), (K, 1, 1))
    A = q[:-1].T @ q[1:] + total / total.sum()
    A /= A.sum(axis=1, keepdims=True)
    return States(Mixture(np.full(K, 1.0 / K), m, V), total / total.sum(), A)


def fitted_states(states: States, u: Array, s: Array, steps: int) -> tuple[States, float]:
    """States after EM steps, and the last log-likelihood."""
    (n, r), last = u.shape, -np.inf
    for _ in range(steps):
        B, top = states.chances(u, s)
        P, moves, now = expected(states.A, states.alpha, windows(B, min(WINDOW, max(16, n // 8))))
        now += top.sum()
        if now - last < GAIN:
            break
        last, q = now, by_row(P)[:n]
        b, V = states.given(u, s), states.prior.covariances
        total = q.sum(axis=0) + OWN * r
        A = moves + states.alpha
        moved = np.einsum("nk,nkr->kr", q, b) / total[:, None]
        d = b - moved
        spread = np.einsum("nk,nki,nkj->kij", q, d, d) + OWN * r * np.diag(1.0 - s)
        V = spread / total[:, None, None] + V - Posterior(states.prior, s).gain @ V
        prior = Mixture(states.prior.weights, moved, (V + V.swapaxes(1, 2)) / 2.0)
        states = States(prior, total / total.sum(), A / A.sum(axis=1, keepdims=True))
    return states, last


def penalised(states: States, log: float, u: Array, s: Array) -> Fit | None:
    """Estimates and score of fitted states, or None if rows have no order."""
    r, K, cost = s.size, len(states.alpha), np.log(len(u)) / 2.0
    B, top = states.chances(u, s)
    if log - np.log(B @ states.alpha).sum() - top.sum() < cost * K * (K - 1):
        return None
    return Fit(K, log - cost * (K * (K - 1) + K * r * (r + 3) / 2.0), states.mean(u, s))
