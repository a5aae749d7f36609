"""Worst-case change of one record under Gaussian noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Δ`` | a change of one record, ``|Δ_j| ≤ spans_j`` | (N,) |
| ``C`` | covariance of the noise in the best unbiased combination of a coalition's copies | (N, N) |
| ``Q`` | ``diag(spans) C⁻¹ diag(spans)``: the squared length of the corner with signs v is ``vᵀQv`` | (N, N) |
| ``R`` | a root of the copies' noise covariance, ``K = R Rᵀ`` | (kN, ·) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from auditor.numerics.linear_algebra import EPS, in_own_units
from auditor.schemes.base.noise_law import BITS
from auditor.types import Array

MOST_CORNERS = 20
"""Most attributes for an exhaustive search: half a million pairs of opposite corners."""
BOX = "an upper bound: over the corners of more than 20 attributes the largest length is bounded, not found"


@dataclass(frozen=True)
class Length:
    """Largest Mahalanobis length of a change, and that change.

    ``note`` says if the length is only a bound.
    """

    value: float
    corner: Array = field(repr=False)
    note: str = ""

    def over(self, deviation: float) -> Length:
        """Return the length under noise of ``deviation`` times the size."""
        return Length(
            self.value / deviation if deviation > 0.0 else math.inf, self.corner, self.note
        )


def largest_length(C: Array, spans: Array) -> Length:
    """Return the largest ``√(Δᵀ C⁻¹ Δ)`` over the box ``|Δ_j| ≤ spans_j``.

    Infinite where C is singular. Eigenvalues are lowered by the rounding error, so that rounding
    never overstates privacy.
    """
    N = len(C)
    scaled, size = in_own_units(C)
    values, vectors = np.linalg.eigh(scaled)
    values = values - (BITS * N * EPS * values[-1] if N > 1 else 0.0)
    if (np.diag(C) <= 0.0).any() or values[0] <= 0.0:
        return Length(math.inf, spans)
    u = spans / size
    # vᵀ Q v is the squared length of the corner with signs v
    Q = np.outer(u, u) * ((vectors / values) @ vectors.T)
    if N <= MOST_CORNERS:
        signs = _worst_corner(Q)
        return Length(math.sqrt(float(signs @ Q @ signs)), signs * spans)
    diagonal, off = np.diag(Q), Q - np.diag(np.diag(Q))
    highest = (
        float(np.abs(Q).sum()),
        float(diagonal.sum() + N * np.linalg.eigvalsh(off)[-1]),
        N * float(np.linalg.eigvalsh(Q)[-1]),
    )
    return Length(math.sqrt(min(highest)), _climbed(Q) * spans, BOX if off.any() else "")


def _worst_corner(Q: Array) -> Array:
    """Return the signs v, shape (N,), with the largest ``vᵀ Q v``.

    Exhaustive, with the last sign fixed at +1. Signs are split into halves a and b,
    ``vᵀQv = aᵀQ_aa a + 2 aᵀQ_ab b + bᵀQ_bb b``, so one matrix product evaluates all.
    """
    N = len(Q)
    half = N // 2
    a, b = _signs(half), _signs(N - half)
    b = b[b[:, -1] > 0]
    squares = [
        np.einsum("ki,ij,kj->k", s, block, s)
        for s, block in ((a, Q[:half, :half]), (b, Q[half:, half:]))
    ]
    lengths = squares[0][:, None] + 2.0 * a @ Q[:half, half:] @ b.T + squares[1]
    i, j = np.unravel_index(int(np.argmax(lengths)), lengths.shape)
    return np.concatenate([a[i], b[j]])


def _signs(n: int) -> Array:
    return np.asarray(1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1))


def _climbed(Q: Array) -> Array:
    """Return signs of a long corner by coordinate ascent: a lower bound."""
    v = np.where(Q[int(np.argmax(np.diag(Q)))] < 0, -1.0, 1.0)
    for _ in range(10 * len(Q)):
        gain = -4.0 * v * (Q @ v) + 4.0 * np.diag(Q)  # gain of flipping each sign
        j = int(np.argmax(gain))
        if gain[j] <= 1e-12 * abs(float(v @ Q @ v)):
            break
        v[j] = -v[j]
    return v


def combined_noise(R: Array, N: int) -> Array:
    """Return ``C = (Hᵀ K⁺ H)⁻¹``, shape (N, N), from a root ``K = R Rᵀ``.

    K is the noise covariance of k copies and may be singular. C is the residual covariance of the
    copies' mean noise after regression on the differences of copies.
    """
    k = len(R) // N
    blocks = R.reshape(k, N, -1)
    mean, differences = blocks.mean(axis=0), (blocks[1:] - blocks[:1]).reshape((k - 1) * N, -1)
    size = np.linalg.norm(differences, axis=1)
    scale = np.sqrt(np.clip(np.einsum("il,il->i", R, R), 0.0, None)).max(initial=0.0)
    told = differences[size > BITS * len(R) * EPS * scale]
    if len(told) == 0:
        return np.asarray(mean @ mean.T)
    _, s, Vt = np.linalg.svd(told / np.linalg.norm(told, axis=1)[:, None], full_matrices=False)
    Vt = Vt[s > len(R) * EPS * s[0]]
    rest = mean - (mean @ Vt.T) @ Vt
    # once more: the first subtraction leaves rounding of the size of the mean
    rest -= (rest @ Vt.T) @ Vt
    rest[np.abs(rest) <= BITS * len(R) * EPS * np.abs(mean).max(axis=1, keepdims=True)] = 0.0
    return np.asarray(rest @ rest.T)
