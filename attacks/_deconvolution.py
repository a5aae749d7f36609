"""Extreme deconvolution: fit a normal mixture to noisy rows by EM.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u`` | observed rows, ``x + z``, in coordinates with independent noise | (n, r) | ``auditor.numerics.linear_algebra.Pencil`` |
| ``s`` | variances of the noise ``z``, which may be 0 | (r,) | |
| ``α, m, V`` | weights, means and covariances of the components of ``x`` | (K,), (K, r), (K, r, r) | bovy2011 |
| ``T`` | ``V + diag(s)``: covariance of one component's rows | (K, r, r) | bovy2011 |
| ``q`` | posterior probability of each component, given a row | (n, K) | bovy2011 |
| ``b`` | ``m + V T⁻¹ (u − m)``: posterior mean of ``x`` in that component | (n, K, r) | bovy2011 |
| ``B`` | ``V − V T⁻¹ V``: its posterior covariance | (K, r, r) | bovy2011 |

EM needs ``b`` only in sums weighted by ``q``, and ``b`` is affine in ``u``. So a step computes each
component's weighted mean and covariance of ``u``, then works on K matrices of shape (r, r).

The number of components is doubled from 1 while the held-out likelihood rises by more than a
standard error. Starts are deterministic.

*Atoms.* A point mass is a component with a variance that converges slowly to 0. A component much
narrower than the noise becomes an atom at once, unless that lowers the held-out likelihood.

Reference: bovy2011. *Limit*: with strong noise only one component is found.
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
"""Numbers per piece: 128 kB stay in the cache. Larger arrays triple the time."""
GRAIN = 1e-10
"""Least relative noise variance. It keeps ``T`` regular if neither copies nor component have
variance."""
MOST_STEPS = 200
GAIN = 0.3
"""EM stops when a step gains less log-likelihood, in nats over all rows or over each 5,000 rows. Run to convergence, deconvolution
makes spikes."""
NARROW = 0.1
"""Component variance over noise variance, in one attribute, below which an atom is tried."""
FIRST_LOOK = 5_000
"""Rows, at most three in four, that fit each number of components. All other rows validate it. The
chosen mixture is refitted to all."""
FEWEST_ROWS = 50
"""With fewer rows, only one component is fitted."""
ROWS_PER_PARAMETER = 5
"""Rows per parameter of a component, which has 1,326 in fifty attributes. With fewer rows, covariances cost more than shape gains (100
attributes, two clusters, 8,000 rows: normalized error 0.481, linear 0.460)."""
PATIENCE = 2
"""Unsuccessful doublings before the search ends: two components may not fit eight clusters."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of K normals; a covariance singular in a direction is an atom.

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
    """Posterior of components and values under noise of variances ``s``."""

    def __init__(self, prior: Mixture, s: Array) -> None:
        self._prior, self._s = prior, s
        L = np.linalg.cholesky(prior.covariances + np.diag(s + GRAIN))
        self._half = np.linalg.inv(L)  # L⁻¹: T⁻¹ = L⁻ᵀL⁻¹; triangular, GRAIN bounds its condition
        self._log_scale = np.log(np.maximum(prior.weights, np.finfo(float).tiny)) - np.log(
            np.einsum("krr->kr", L)
        ).sum(axis=1)

    def natural(self) -> Array:
        """Return the natural parameters, shape (K, 1 + r + r(r + 1)/2).

        They multiply ``1, u_i, u_i u_j`` (i ≤ j) in ``log α_k N(u; m_k, T_k)``.
        """
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
        return np.concatenate([self._half, -self._half @ m[:, :, None]], axis=2).reshape(
            m.size, m.shape[1] + 1
        )

    def _standardised(self, u: Array) -> Array:
        """Return ``L⁻¹(u − m)`` of every component, shape (K, r, n)."""
        K, r = self._prior.means.shape
        return np.asarray(self._map @ np.vstack([u.T, np.ones(len(u))])).reshape(K, r, len(u))

    def _chances(self, z: Array) -> tuple[Array, Array, Array]:
        """Return ``q`` before scaling, its totals and log-likelihoods."""
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
        q, total, likelihood = zip(
            *(self._chances(self._standardised(u[start:stop])) for start, stop in pieces),
            strict=True,
        )
        return np.concatenate(q, axis=1) / np.concatenate(total), np.concatenate(likelihood)

    def components(self, u: Array) -> tuple[Array, Array, Array]:
        """Return each row's posterior mixture.

        ``q``, shape (n, K), ``b``, shape (n, K, r), and ``B``, shape (K, r, r).
        """
        V, m = self._prior.covariances, self._prior.means
        z = self._standardised(u)
        half_V = self._half @ V  # L⁻¹V: V T⁻¹ V = (L⁻¹V)ᵀ L⁻¹V
        b = m + np.einsum("ksr,ksn->nkr", half_V, z)
        q, total, _ = self._chances(z)
        return (q / total).T, b, V - half_V.swapaxes(1, 2) @ half_V

    def mean(self, u: Array) -> Array:
        """Return ``E[x | u] = u − s Σ_k q_k T_k⁻¹ (u − m_k)``, shape (n, r).

        Equal to ``Σ q_k b_k``. This form returns u exactly if there is no noise.
        """
        z = self._standardised(u)
        q, total, _ = self._chances(z)
        z *= q[:, None]  # in place: most of an estimate's time is spent here
        K, r = self._prior.means.shape
        pulled = self._half.reshape(K * r, r).T @ z.reshape(K * r, len(u))
        return np.asarray(u - (pulled * (self._s[:, None] / total)).T)


def em_step(prior: Mixture, u: Array, s: Array) -> tuple[Mixture, float]:
    """Return the mixture after one EM step, and the log-likelihood before it.

    Parameters
    ----------
    prior : Mixture
    u : ndarray of shape (n, r)
    s : ndarray of shape (r,)

    Notes
    -----
    Source: bovy2011.
    """
    total, first, second, likelihood = _weighted_sums(prior, u, s)
    total = np.maximum(total, np.finfo(float).tiny)
    average = first / total[:, None]
    spread = second / total[:, None, None] - average[:, :, None] * average[:, None, :]
    m, V = prior.means, prior.covariances
    gain = np.linalg.solve(V + np.diag(s + GRAIN), V).swapaxes(1, 2)  # V T⁻¹
    # Σ q b/Σq = m + V T⁻¹ (ū − m);  Σ q (b − m')(b − m')ᵀ/Σq + B = V T⁻¹ Cov_q(u) T⁻¹ V + V − V T⁻¹
    # V
    means = m + np.einsum("krs,ks->kr", gain, average - m)
    covariances = gain @ spread @ gain.swapaxes(1, 2) + V - gain @ V
    return Mixture(
        total / total.sum(), means, (covariances + covariances.swapaxes(1, 2)) / 2.0
    ), likelihood


@lru_cache
def _pairs(r: int) -> tuple[Indices, Indices]:
    i, j = np.triu_indices(r)
    return i, j


def _weighted_sums(prior: Mixture, u: Array, s: Array) -> tuple[Array, Array, Array, float]:
    """Return ``Σ q``, ``Σ q u``, ``Σ q u uᵀ`` and the log-likelihood.

    ``log α_k N(u; m_k, T_k)`` is linear in the features 1, ``u_i`` and ``u_i u_j``. One product
    gives it for all components, and one gives the sums. Rounding is a millionth of a nat if ``T``
    is ``GRAIN``, so estimates do not use this form.
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
    """Rows observed through noise, and their likelihood under a mixture.

    Attributes
    ----------
    u : ndarray of shape (n, r)
        One value per entry, the best summary of its copies.
    s, fourth : ndarrays of shape (r,)
        Variance and fourth cumulant of its noise.
    """

    error: ClassVar[float] = 0.0
    """Error of a row's log-likelihood, in nats. More components must gain more than this."""
    most_steps: ClassVar[int] = MOST_STEPS
    """Most EM steps. Noise that is not normal starts from the fit under normal noise."""

    u: Array = field(repr=False)
    s: Array = field(repr=False)
    fourth: Array = field(repr=False)

    @abstractmethod
    def part(self, where: NDArray[np.generic]) -> NoisyRows:
        """Select rows by their indices or a mask."""

    @abstractmethod
    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        """Return ``q``, shape (K, n), and each row's log-likelihood, shape (n,)."""

    @abstractmethod
    def step(self, prior: Mixture) -> tuple[Mixture, float]:
        """Return the mixture after one EM step, and the log-likelihood before it."""


class RowsInNormalNoise(NoisyRows):
    """Rows observed through normal noise, for which ``u`` is sufficient."""

    @classmethod
    def of(cls, u: Array, s: Array) -> RowsInNormalNoise:
        """Return rows of shape (n, r) with noise of variances s."""
        return cls(u, s, np.zeros_like(s))

    def part(self, where: NDArray[np.generic]) -> RowsInNormalNoise:
        """Select rows by their indices or a mask."""
        return RowsInNormalNoise(self.u[where], self.s, self.fourth)

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        """Return ``q``, shape (K, n), and each row's log-likelihood, shape (n,)."""
        return Posterior(prior, self.s).chances(self.u)

    def step(self, prior: Mixture) -> tuple[Mixture, float]:
        """Return the mixture after one EM step, and the log-likelihood before it."""
        return em_step(prior, self.u, self.s)


def deconvolved(prior: Mixture, rows: NoisyRows) -> Mixture:
    """Run EM from a start until a step gains less than ``GAIN``."""
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
    """Split components in two, the heaviest first, up to ``most`` in total.

    The halves lie along the axis on which the component's rows look least normal. The criterion is
    the first terms of negentropy, ``skewness²/12 + excess kurtosis²/48``. The pair keeps the
    component's mean and covariance.
    """
    q, _ = rows.chances(prior)
    room = sorted(range(prior.size), key=lambda k: -prior.weights[k])[: most - prior.size]
    parts = [
        _halves(prior, k, rows, q[k])
        if k in room
        else [(prior.weights[k], prior.means[k], prior.covariances[k])]
        for k in range(prior.size)
    ]
    weights, means, covariances = zip(*chain.from_iterable(parts), strict=True)
    return Mixture(np.array(weights), np.array(means), np.array(covariances))


def _halves(prior: Mixture, k: int, rows: NoisyRows, q: Array) -> list[tuple[float, Array, Array]]:
    """Return both halves of a component; the component if it has no width."""
    weight, m, V = prior.weights[k], prior.means[k], prior.covariances[k]
    values, axes = np.linalg.eigh(V)
    z, q = (rows.u - m) @ axes, q / max(q.sum(), np.finfo(float).tiny)
    z = z - q @ z
    variance = np.maximum(q @ z**2, GRAIN)
    z = z / np.sqrt(variance)
    square = z * z  # products: powers of arrays take twenty times as long
    # less the noise's kurtosis
    kurtosis = q @ (square * square) - 3.0 - rows.fourth @ axes**4 / variance**2
    negentropy = np.where(values > GRAIN, (q @ (square * z)) ** 2 / 12.0 + kurtosis**2 / 48.0, -1.0)
    best = int(negentropy.argmax())
    if values[best] <= GRAIN:
        return [(weight, m, V)]
    step = axes[:, best] * np.sqrt(values[best] / 2.0)
    return [(weight / 2.0, m + sign * step, V - np.outer(step, step)) for sign in (1.0, -1.0)]


def with_atoms(prior: Mixture, s: Array, A: Array) -> Mixture:
    """Replace components narrower than the noise by atoms in that attribute.

    ``V − V a aᵀV / aᵀVa``: the covariance of the others conditional on that attribute, ``aᵀx``. A
    component narrower than the grain is an atom already.

    Parameters
    ----------
    A : ndarray of shape (N, r)
        Rows ``a``: attributes in the coordinates of ``u``.
    """
    covariances = prior.covariances.copy()
    for V in covariances:
        for a, noise in zip(A, A**2 @ s, strict=True):
            along = V @ a
            # below the grain ``Va`` is rounding error; its square over ``aᵀVa`` would exceed the
            # others' variance
            if GRAIN * noise < a @ along < NARROW * noise:
                V -= np.outer(along, along) / (a @ along)
    return Mixture(prior.weights, prior.means, covariances)


def learn(start: Mixture, rows: NoisyRows, A: Array, most: int) -> Mixture:
    """Fit a mixture to noisy rows, with the number of components validated.

    Parameters
    ----------
    start : Mixture
        Of one component.
    rows : NoisyRows
        In any order; they are sorted by value.
    A : ndarray of shape (N, r)
        Attributes in the coordinates of ``u``.
    most : int
        Most components. Few rows per parameter lower it.
    """
    n, r = rows.u.shape
    if n < FEWEST_ROWS or r == 0:
        return start
    most = min(most, n // (ROWS_PER_PARAMETER * (r + 1) * (r + 2) // 2))
    rows = rows.part(np.lexsort(rows.u.T))
    # spread evenly over the sorted rows
    teaching = np.diff(np.floor(np.arange(n + 1) * min(0.75, FIRST_LOOK / n))) > 0
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


def _with_or_without_atoms(
    prior: Mixture, rows: NoisyRows, held: NoisyRows, A: Array
) -> tuple[Mixture, Array]:
    """Return the fit, with or without atoms, of largest held-out likelihood."""
    smooth = deconvolved(prior, rows)
    pointed = deconvolved(with_atoms(smooth, rows.s, A), rows)
    judged = [(mixture, held.chances(mixture)[1]) for mixture in (pointed, smooth)]
    return max(judged, key=lambda found: float(found[1].sum()))
