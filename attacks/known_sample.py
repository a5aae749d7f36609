"""Match a rotated copy's principal axes to a population sample's.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``S`` | the sample, as rows | (s, N) | liu2008, section 4.2 |
| ``V_X, V_Y`` | eigenvectors of the sample's and of the copy's covariance, by falling eigenvalue | (N, N) | Corollary 12.4 |
| ``D`` | signs | (N,) | |
| ``M̂`` | ``V_Y D V_Xᵀ`` | (N, N) | Corollary 12.4 |
| ``x̂`` | ``M̂ᵀ y`` | (N,) | Protocol 4, step 3 |
| ``C_i`` | ``Σ (y_i − ȳ_i)(y_1 − ȳ_1)ᵀ`` over rows: of noisy copies with different rotations | (N, N) | |
| ``T_i`` | the orthogonal matrix nearest to C_i: copies are pooled as ``ȳ_1 + Σ w_i T_iᵀ (y_i − ȳ_i)`` | (N, N) | Schönemann 1966 |
| ``Ω_ij`` | ``mean z_i z_j / (λ_j − λ_i)``: rotation of a sample's axes; z: centred records along them | (N, N) | Anderson 1963 |
| ``Q`` | ``E ΩᵀΩ``, which adds up over two independent samples: the error of a record x is ``xᵀ Q x`` | (N, N) | |
| ``E(D)`` | ``2 E‖V_Y D V_Xᵀ s − y‖ − E‖s − s'‖ − E‖y − y'‖`` | scalar | szekely2004 |

Protocol 4, step 2, prints ``V_X D V_Xᵀ S`` instead of ``V_Y D V_Xᵀ S``. Means help to identify
signs. Each axis takes the sign of the smaller one-dimensional statistic. Up to ``exhaustive`` undecided axes are tried in all combinations;
beyond, signs are flipped one at a time while E falls.
The rotation is about the means, ``x̂ = s̄ + M̂ᵀ (y − ȳ)``, if ``s̄ᵀ Q s̄`` exceeds ``tr K (1/s + 1/m)``.
Theory is first-order in the axes' error, for decided axes and one copy. Noisy copies are averaged by
weights 1/σ_i²; of nested noise the least noisy is used.

Fails on random projections, whose covariance averages to ``σ² tr K · I`` (liu2008, end of section
4.2).
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    CopyBlocks,
    Cost,
    Indices,
    NotApplicable,
    Pair,
    PluginParameters,
    Reconstruction,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    scipy,
    stream,
)

from ._fits import some_rows, stacked_moments
from .ica import orthogonal
from .known_io_map import LinearMap

MOST_SWEEPS = 5

DECIDED = 5.0
"""Difference of an axis's statistics, relative to chance, from which its sign is decided."""

SMALL_TURN = 0.006
"""Largest mean squared rotation of an axis with theory. The error exceeds first order by 5 % there
(exponential attributes)."""


@register
class KnownSampleAttack(RowAttack):
    """Match principal axes to a sample's, with signs by an energy statistic."""

    name = "known-sample"
    attack_kind = "with a sample"
    reference = "liu2006; liu2008, section 4.2, Protocol 4"
    families = frozenset({"rotation", "rotation-noise"})
    knowledge = ("known-sample",)
    assumes = "The adversary has other draws from the same population; records are independent draws; the map is orthogonal."
    wins = "Wins on skewed or off-centre data with distinct eigenvalues; on data symmetric about 0 the signs are coin tosses."
    cost = Cost(1.2e-3, 6e-7)

    class Parameters(PluginParameters):
        """Search for signs."""

        exhaustive: int = Field(8, ge=0, le=16)
        """axes left open up to which every combination is tried"""
        rows: int = Field(1000, ge=10, le=5000)
        """rows of sample and copy that the statistic compares"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        S = view.need(UnpairedRecords).original
        if len(S) < 2:
            raise NotApplicable("needs a sample of at least two records")
        means, K, count = stacked_moments(blocks)
        weights, A = alignment(view, K)
        target, covariance = int(np.argmax(weights > 0)), A @ K @ A.T
        mean = means.reshape(-1, view.width)[target]
        pooled = LinearMap(mean, means, A)
        some = some_rows(blocks, stream(view.seed, self.name), pooled.rows)
        moved = bool(view.scheme.get("translation", False))
        zero = np.zeros(view.width)
        start, to = (S.mean(axis=0), mean) if moved else (zero, zero)
        V_X, V_Y = axes(np.cov(S, rowvar=False, ddof=1)), axes(covariance)
        p = self.parameters
        signs = choose_signs((S - start) @ V_X, (some - to) @ V_Y, p.exhaustive, p.rows)
        V_Y = V_Y * signs.values
        variances = np.einsum("ij,ik,kj->j", V_Y, covariance, V_Y)
        z, level = (some - mean) @ V_Y, min(view.levels, default=0.0)
        population = (S - S.mean(axis=0)) @ V_X if level else z
        Q = turning(population, variances, len(S)) + turning(z, variances, count)
        small = np.diag(Q).max() < SMALL_TURN
        known = not signs.open.size and small and np.count_nonzero(weights) == 1
        apart = float(np.trace(covariance)) * (1 / len(S) + 1 / count)
        middle = (S.mean(axis=0) - start) @ V_X
        if centred := moved or float(middle @ Q @ middle) > apart:
            start, to = S.mean(axis=0), mean
        noise = float(np.trace(covariance)) * level / (1.0 + level)
        M = V_Y @ V_X.T
        found = TurnedBack(start + (mean - to) @ M, means, M.T @ A)
        if known:
            found.left = LeftOver(V_X, Q, start, noise + centred * apart)
        return found


def alignment(view: View, K: Array) -> Pair:
    """Minimum-variance weights, (k,), and the pooling matrix, (N, kN).

    ``K`` is the covariance of the copies side by side.
    """
    levels, N = np.array(view.levels or np.zeros(len(view.copies))), view.width
    least = int(np.argmin(levels))
    if levels[least] == 0.0 or view.scheme.get("noise") == "corner-wave":
        w = np.eye(len(levels))[least]
    else:
        w = (1.0 / levels) / (1.0 / levels).sum()
    target = int(np.argmax(w > 0))
    C = K.reshape(len(w), N, len(w), N)
    turns = [np.eye(N) if i == target else orthogonal(C[target, :, i]) for i in range(len(w))]
    return w, np.hstack([w_i * T for w_i, T in zip(w, turns, strict=True)])


class LeftOver(NamedTuple):
    """First-order error: ``V_X``, ``Q``, centre, and error common to records."""

    axes: Array
    turn: Array
    start: Array
    apart: float


class TurnedBack(LinearMap):
    """``start + M̂ᵀ (y − to)`` of the pooled copy."""

    left: LeftOver | None = None

    def expected(self, x: Array) -> Array | None:
        if self.left is None:
            return None
        z = (x - self.left.start) @ self.left.axes
        return np.einsum("bi,ij,bj->b", z, self.left.turn, z, optimize=True) + self.left.apart


def turning(z: Array, variances: Array, size: int) -> Array:
    """``Q = E ΩᵀΩ`` of the axes of ``size`` records, shape (N, N).

    Parameters
    ----------
    z : ndarray of shape (m, N)
        Centred records of the population along its axes.
    variances : ndarray of shape (N,)
        ``λ``, all different by more than their sampling error.
    """
    gaps = variances - variances[:, None]
    G = quotient(1.0, gaps, where=gaps != 0)
    Q = np.zeros_like(G)
    for i, row in enumerate(G):  # Σ_i G_ij G_ik E z_i² z_j z_k
        weighted = z * z[:, i : i + 1]
        Q += np.outer(row, row) * (weighted.T @ weighted)
    return Q / len(z) / size


def axes(covariance: Array) -> Array:
    """Eigenvectors as columns, largest eigenvalue first."""
    return np.linalg.eigh(np.atleast_2d(covariance))[1][:, ::-1]


class Signs(NamedTuple):
    """Signs of axes, shape (N,), and indices of undecided axes."""

    values: Array
    open: Indices


def choose_signs(a: Array, b: Array, exhaustive: int, rows: int) -> Signs:
    """Signs D that bring ``a·D`` nearest to ``b`` by energy statistic.

    Axes are scaled by the deviations of ``a``.

    Parameters
    ----------
    a, b : ndarrays of shapes (s, N) and (m, N)
        Sample and copy along their own axes, not centred.
    exhaustive : int
    rows : int
        For the joint statistic; a single axis uses all.
    """
    N, scale = a.shape[1], a.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    a, b = a / scale, b / scale
    favour = np.array([energy(-x, y) - energy(x, y) for x, y in zip(a.T, b.T, strict=True)])
    # For equal distributions the statistic's mean is (1/s + 1/m) E|p − p'|; E|p − p'| is near 1 at standard deviation 1.
    open_ = np.flatnonzero(np.abs(favour) < DECIDED * (1.0 / len(a) + 1.0 / len(b)))
    signs = np.where(favour >= 0, 1.0, -1.0)

    def distance(flips: Array) -> float:
        return float(scipy.spatial.distance.cdist(a[:rows] * (signs * flips), b[:rows]).mean())

    flips = np.ones((2**open_.size if open_.size <= exhaustive else 1, N))
    if open_.size <= exhaustive:
        flips[:, open_] = list(product([1.0, -1.0], repeat=open_.size))
        return Signs(signs * min(flips, key=distance), open_)
    best, least = flips[0], distance(flips[0])
    for k in np.tile(open_, MOST_SWEEPS):
        tried = np.where(np.arange(N) == k, -best, best)
        if (found := distance(tried)) < least * (1.0 - 1e-12):
            best, least = tried, found
    return Signs(signs * best, open_)


def energy(a: Array, b: Array) -> float:
    """``2 ∫ (F_a − F_b)²`` of two samples, the energy statistic.

    In one dimension (szekely2004).
    """
    return float(scipy.stats.energy_distance(a, b)) ** 2
