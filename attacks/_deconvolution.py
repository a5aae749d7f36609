"""A mixture of normals learnt from noisy rows alone: expectation–maximisation under a known law of the noise (extreme deconvolution).

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u`` | rows seen, ``x + z``; their coordinates are such that noise is independent | (n, r) | ``auditor.numerics.linear_algebra.Pencil`` |
| ``s`` | variances of the noise ``z``, which may be 0 | (r,) | |
| ``α, m, V`` | weights, means and covariances of the components of ``x`` | (K,), (K, r), (K, r, r) | bovy2011 |
| ``T`` | ``V + diag(s)``: covariance of the rows of one component | (K, r, r) | bovy2011 |
| ``q`` | probability that a row is of a component, given what is seen of it | (n, K) | bovy2011 |
| ``b`` | ``m + V T⁻¹ (u − m)``: where ``x`` is, if it is of that component | (n, K, r) | bovy2011 |
| ``B`` | ``V − V T⁻¹ V``: how well that is known | (K, r, r) | bovy2011 |

EM needs ``b`` only in sums weighted by ``q``, and ``b`` is affine in ``u``: a step takes the weighted mean and covariance of ``u`` in each
component, and then works on K matrices of shape (r, r).

The number of components is not known. It is doubled from 1, by splitting each along the axis on which its rows look least normal, while
rows that were held out become more likely by more than a standard error. No start is random, so the same rows give the same mixture.

*Atoms.* A heap (a tax of 0, whole numbers of children) is a component whose variance EM takes to 0, but at the pace of one over its
steps. A component that is far narrower than the noise is put there at once, if rows held out are no less likely then; EM leaves it there.

Reference: bovy2011. Where the noise is all there is to see, one component is all that is found.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.blocks import evenly
from auditor.plugin import Array, Indices

CHUNK_VALUES = 2**14
"""Numbers worked on at once: 128 kilobytes. They stay in the cache, and such arrays are not asked of the system anew each time, which
takes twice as long as all the arithmetic on them."""
GRAIN = 1e-10
"""Share of its variance that a row is known to at best: keeps ``T`` regular where copies have no noise and a component no width."""
MOST_STEPS = 200
GAIN = 0.3
"""EM stops when a step gains less log-likelihood than this, in nats over all rows, or over each 5,000 of more: run to convergence,
deconvolution makes spikes."""
NARROW = 0.1
"""A component's variance over the noise's, in one attribute, below which it is tried as an atom: the noise does not resolve such widths."""
FIRST_LOOK = 5_000
"""Rows, at most three in four, from which each number of components is learnt; all the others judge it, in one look. Learning takes longest
of all, and what is chosen is learnt once more from all rows."""
FEWEST_ROWS = 50
"""Of fewer, one component is all that is looked for."""
ROWS_PER_PARAMETER = 5
"""Rows that a component needs for each of its numbers: in fifty attributes it has 1,326 of them. With fewer, what is gained in shape is
lost in covariances (one hundred attributes, two clusters, 8,000 rows: 0.481 of the variance left, where a linear estimate leaves 0.460)."""
PATIENCE = 2
"""Doublings without success before it is given up: eight clusters at the corners of a cube do not look like two."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of K normals; a component of covariance 0 in some direction is an atom there.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        ``α``, sum 1.
    means : ndarray of shape (K, r)
    covariances : ndarray of shape (K, r, r)
        Positive semi-definite.
    """

    weights: Array = field(repr=False)
    means: Array = field(repr=False)
    covariances: Array = field(repr=False)

    @property
    def size(self) -> int:
        """Number of components ``K``."""
        return len(self.weights)


class Posterior:
    """Which component rows are of, and where in it they lie: the prior seen through noise of variances ``s``."""

    def __init__(self, prior: Mixture, s: Array) -> None:
        self._prior, self._s = prior, s
        L = np.linalg.cholesky(prior.covariances + np.diag(s + GRAIN))
        self._half = np.linalg.inv(L)  # L⁻¹, of which T⁻¹ = L⁻ᵀL⁻¹; triangular, and T is no worse than GRAIN
        self._log_scale = np.log(np.maximum(prior.weights, np.finfo(float).tiny)) - np.log(np.einsum("krr->kr", L)).sum(axis=1)

    def natural(self) -> Array:
        """Return what ``1, u_i, u_i u_j`` (i ≤ j) are multiplied by in ``log α_k N(u; m_k, T_k)``, shape (K, 1 + r + r(r + 1)/2)."""
        m, half = self._prior.means, self._half
        r, (i, j) = m.shape[1], _pairs(m.shape[1])
        bend = half.swapaxes(1, 2) @ half  # T⁻¹
        z, slope = (half @ m[:, :, None])[:, :, 0], (bend @ m[:, :, None])[:, :, 0]  # L⁻¹m and T⁻¹m
        constant = self._log_scale - 0.5 * (z * z).sum(axis=1) - 0.5 * r * np.log(2.0 * np.pi)
        bend[:, range(r), range(r)] *= 0.5
        return np.concatenate([constant[:, None], slope, -bend[:, i, j]], axis=1)

    @cached_property
    def _map(self) -> Array:
        """``L⁻¹`` and ``−L⁻¹m`` side by side, shape (Kr, r + 1)."""
        m = self._prior.means
        return np.concatenate([self._half, -self._half @ m[:, :, None]], axis=2).reshape(m.size, m.shape[1] + 1)

    def _standardised(self, u: Array) -> Array:
        """``L⁻¹(u − m)`` of every component, shape (K, r, n), in one product."""
        K, r = self._prior.means.shape
        return np.asarray(self._map @ np.vstack([u.T, np.ones(len(u))])).reshape(K, r, len(u))

    def _chances(self, z: Array) -> tuple[Array, Array, Array]:
        """Return ``q`` times each row's total, shape (K, n), that total and the row's log-likelihood, shapes (n,)."""
        q = np.square(z).sum(axis=1)
        q *= -0.5
        q += self._log_scale[:, None]
        top = q.max(axis=0)
        q -= top
        np.exp(q, out=q)
        total = q.sum(axis=0)
        return q, total, top + np.log(total) - 0.5 * z.shape[1] * np.log(2.0 * np.pi)

    def chances(self, u: Array) -> tuple[Array, Array]:
        """Return ``q``, shape (K, n), and each row's log-likelihood, shape (n,)."""
        pieces = evenly(0, len(u), self._prior.means.size, CHUNK_VALUES)
        q, total, likelihood = zip(*(self._chances(self._standardised(u[start:stop])) for start, stop in pieces), strict=True)
        return np.concatenate(q, axis=1) / np.concatenate(total), np.concatenate(likelihood)

    def components(self, u: Array) -> tuple[Array, Array, Array]:
        """Return the mixture that is left of each row's ``x``: ``q``, (n, K), ``b``, (n, K, r), and ``B``, (K, r, r), the same for all."""
        V, m = self._prior.covariances, self._prior.means
        z = self._standardised(u)
        half_V = self._half @ V  # L⁻¹V: V T⁻¹ V = (L⁻¹V)ᵀ L⁻¹V
        b = m + np.einsum("ksr,ksn->nkr", half_V, z)
        q, total, _ = self._chances(z)
        return (q / total).T, b, V - half_V.swapaxes(1, 2) @ half_V

    def mean(self, u: Array) -> Array:
        """Return ``E[x | u] = u − s Σ_k q_k T_k⁻¹ (u − m_k)``, shape (n, r): ``Σ q_k b_k``, written so that without noise it is u."""
        z = self._standardised(u)
        q, total, _ = self._chances(z)
        z *= q[:, None]  # in place, as estimates spend their time here
        K, r = self._prior.means.shape
        pulled = self._half.reshape(K * r, r).T @ z.reshape(K * r, len(u))
        return np.asarray(u - (pulled * (self._s[:, None] / total)).T)


def em_step(prior: Mixture, u: Array, s: Array) -> tuple[Mixture, float]:
    """Return the mixture after one step of EM, and the log-likelihood before it (bovy2011).

    Parameters
    ----------
    prior : Mixture
    u : ndarray of shape (n, r)
    s : ndarray of shape (r,)
    """
    total, first, second, likelihood = _weighted_sums(prior, u, s)
    total = np.maximum(total, np.finfo(float).tiny)
    average = first / total[:, None]
    spread = second / total[:, None, None] - average[:, :, None] * average[:, None, :]
    m, V = prior.means, prior.covariances
    gain = np.linalg.solve(V + np.diag(s + GRAIN), V).swapaxes(1, 2)  # V T⁻¹
    # Σ q b/Σq = m + V T⁻¹ (ū − m);  Σ q (b − m')(b − m')ᵀ/Σq + B = V T⁻¹ Cov_q(u) T⁻¹ V + V − V T⁻¹ V
    means = m + np.einsum("krs,ks->kr", gain, average - m)
    covariances = gain @ spread @ gain.swapaxes(1, 2) + V - gain @ V
    return Mixture(total / total.sum(), means, (covariances + covariances.swapaxes(1, 2)) / 2.0), likelihood


@lru_cache
def _pairs(r: int) -> tuple[Indices, Indices]:
    """Return the pairs ``i ≤ j`` of r coordinates."""
    i, j = np.triu_indices(r)
    return i, j


def _weighted_sums(prior: Mixture, u: Array, s: Array) -> tuple[Array, Array, Array, float]:
    """Return ``Σ q``, ``Σ q u`` and ``Σ q u uᵀ`` of every component, and the log-likelihood, by pieces of rows that stay in the cache.

    ``log α_k N(u; m_k, T_k)`` is linear in 1, ``u_i`` and ``u_i u_j``, the very features that are summed: one product gives it for all
    components, and one the sums. It is rounded as ``u²/T`` is, to a millionth of a nat where ``T`` is ``GRAIN``; estimates are not
    made this way.
    """
    (K, r), natural = prior.means.shape, Posterior(prior, s).natural()
    i, j = _pairs(r)
    sums, likelihood = np.zeros(natural.shape), 0.0
    for start, stop in evenly(0, len(u), max(natural.shape), CHUNK_VALUES):
        features = np.empty((natural.shape[1], stop - start))
        features[0], features[1 : 1 + r] = 1.0, u[start:stop].T
        np.multiply(features[1 + i], features[1 + j], out=features[1 + r :])
        q = natural @ features
        top = q.max(axis=0)
        q -= top
        np.exp(q, out=q)
        total = q.sum(axis=0)
        sums += q @ (features / total).T
        likelihood += float((top + np.log(total)).sum())
    second = np.empty((K, r, r))
    second[:, i, j] = second[:, j, i] = sums[:, 1 + r :]
    return sums[:, 0], sums[:, 1 : 1 + r], second, likelihood


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """Rows seen through noise, and what they say of a mixture.

    Attributes
    ----------
    u : ndarray of shape (n, r)
        The one value, for each of theirs, that is nearest to them.
    s, fourth : ndarrays of shape (r,)
        Variance and fourth cumulant of its noise.
    """

    error: ClassVar[float] = 0.0
    """By how many nats a row's log-likelihood may be off: so much it must gain from more components."""
    most_steps: ClassVar[int] = MOST_STEPS
    """Of EM; if the noise is not normal, after those under normal noise of the same variances."""

    u: Array = field(repr=False)
    s: Array = field(repr=False)
    fourth: Array = field(repr=False)

    @abstractmethod
    def part(self, where: NDArray[np.generic]) -> NoisyRows:
        """Return some of the rows, by their places or a mask."""

    @abstractmethod
    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        """Return ``q``, shape (K, n), and each row's log-likelihood, shape (n,)."""

    @abstractmethod
    def step(self, prior: Mixture) -> tuple[Mixture, float]:
        """Return the mixture after one step of EM, and the log-likelihood before it."""


class RowsInNormalNoise(NoisyRows):
    """Rows seen through normal noise, of which ``u`` says all."""

    @classmethod
    def of(cls, u: Array, s: Array) -> RowsInNormalNoise:
        """Return rows of shape (n, r), their noise of variances s."""
        return cls(u, s, np.zeros_like(s))

    def part(self, where: NDArray[np.generic]) -> RowsInNormalNoise:
        """Return some of the rows."""
        return RowsInNormalNoise(self.u[where], self.s, self.fourth)

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        """Return ``q``, shape (K, n), and each row's log-likelihood, shape (n,)."""
        return Posterior(prior, self.s).chances(self.u)

    def step(self, prior: Mixture) -> tuple[Mixture, float]:
        """Return the mixture after one step of EM, and the log-likelihood before it."""
        return em_step(prior, self.u, self.s)


def deconvolved(prior: Mixture, rows: NoisyRows) -> Mixture:
    """Return what EM makes of a mixture, started from it, until a step gains next to nothing."""
    if not isinstance(rows, RowsInNormalNoise):
        prior = deconvolved(prior, RowsInNormalNoise(rows.u, rows.s, rows.fourth))
    last, least = -np.inf, GAIN * max(1.0, len(rows.u) / 5_000)
    for _ in range(rows.most_steps):
        new, likelihood = rows.step(prior)
        if likelihood - last < least:
            return prior
        prior, last = new, likelihood
    return prior


def split(prior: Mixture, rows: NoisyRows, most: int) -> Mixture:
    """Return a mixture of at most ``most`` components: each split in two, the heaviest first where there is not room for all.

    Halves lie along the axis of the component on which its rows look least normal, by the first terms of their negentropy,
    ``skewness²/12 + excess kurtosis²/48``. Mean and covariance of the two together stay those of the one.
    """
    q, _ = rows.chances(prior)
    room = sorted(range(prior.size), key=lambda k: -prior.weights[k])[: most - prior.size]
    parts = [_halves(prior, k, rows, q[k]) if k in room else [(prior.weights[k], prior.means[k], prior.covariances[k])]
             for k in range(prior.size)]  # fmt: skip
    weights, means, covariances = zip(*chain.from_iterable(parts), strict=True)
    return Mixture(np.array(weights), np.array(means), np.array(covariances))


def _halves(prior: Mixture, k: int, rows: NoisyRows, q: Array) -> list[tuple[float, Array, Array]]:
    """Return weight, mean and covariance of both halves of component k; it alone where it has no width."""
    weight, m, V = prior.weights[k], prior.means[k], prior.covariances[k]
    values, axes = np.linalg.eigh(V)
    z, q = (rows.u - m) @ axes, q / max(q.sum(), np.finfo(float).tiny)
    z = z - q @ z
    variance = np.maximum(q @ z**2, GRAIN)
    z = z / np.sqrt(variance)
    square = z * z  # products, as powers of arrays take twenty times as long
    kurtosis = q @ (square * square) - 3.0 - rows.fourth @ axes**4 / variance**2  # less the noise's
    negentropy = np.where(values > GRAIN, (q @ (square * z)) ** 2 / 12.0 + kurtosis**2 / 48.0, -1.0)
    best = int(negentropy.argmax())
    if values[best] <= GRAIN:
        return [(weight, m, V)]
    step = axes[:, best] * np.sqrt(values[best] / 2.0)
    return [(weight / 2.0, m + sign * step, V - np.outer(step, step)) for sign in (1.0, -1.0)]


def with_atoms(prior: Mixture, s: Array, A: Array) -> Mixture:
    """Return the mixture with components that are narrow beside the noise, in some attribute, put to a point in that attribute.

    ``V − V a aᵀV / aᵀVa``: the covariance of the others given that attribute, ``aᵀx``. What is narrower than the grain is a point as it is.

    Parameters
    ----------
    A : ndarray of shape (N, r)
        Rows ``a``: attributes in the coordinates of ``u``.
    """
    covariances = prior.covariances.copy()
    for V in covariances:
        for a, noise in zip(A, A**2 @ s, strict=True):
            along = V @ a
            # below the grain ``Va`` is rounding, whose square over ``aᵀVa`` would be more than the others' variance
            if GRAIN * noise < a @ along < NARROW * noise:
                V -= np.outer(along, along) / (a @ along)
    return Mixture(prior.weights, prior.means, covariances)


def learn(start: Mixture, rows: NoisyRows, A: Array, most: int) -> Mixture:
    """Return the mixture that rows seen through noise are most like, with as many components as rows held out warrant.

    Parameters
    ----------
    start : Mixture
        Of one component.
    rows : NoisyRows
        In any order: they are put into one that depends on their values alone.
    A : ndarray of shape (N, r)
        Attributes in the coordinates of ``u``.
    most : int
        Components at most; fewer where rows are few beside a component's parameters.
    """
    n, r = rows.u.shape
    if n < FEWEST_ROWS or r == 0:
        return start
    most = min(most, n // (ROWS_PER_PARAMETER * (r + 1) * (r + 2) // 2))
    rows = rows.part(np.lexsort(rows.u.T))
    teaching = np.diff(np.floor(np.arange(n + 1) * min(0.75, FIRST_LOOK / n))) > 0  # spread evenly over the rows in order
    held, rest = rows.part(~teaching), rows.part(teaching)
    best = tried = start
    judged, failures = held.chances(start)[1], 0
    while tried.size < most and failures < PATIENCE:
        grown = split(tried, rest, min(2 * tried.size, most))
        if grown.size == tried.size:
            break
        tried, found = _with_or_without_atoms(grown, rest, held, A)
        gained = found - judged
        if gained.mean() > rows.error + gained.std() / np.sqrt(gained.size):
            best, judged, failures = tried, found, 0
        else:
            failures += 1
    return best if best is start else deconvolved(best, rows)


def _with_or_without_atoms(prior: Mixture, rows: NoisyRows, held: NoisyRows, A: Array) -> tuple[Mixture, Array]:
    """Return what EM makes of a mixture, with atoms unless rows held out are likelier without, and the log-likelihoods of these rows."""
    smooth = deconvolved(prior, rows)
    pointed = deconvolved(with_atoms(smooth, rows.s, A), rows)
    judged = [(mixture, held.chances(mixture)[1]) for mixture in (pointed, smooth)]
    return max(judged, key=lambda found: float(found[1].sum()))
