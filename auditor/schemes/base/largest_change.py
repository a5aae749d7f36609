"""The change of one record that Gaussian noise tells best, a corner of the box of changes; and the noise that several copies leave.

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
"""Attributes whose box of changes is gone through corner by corner: half a million pairs of opposite corners."""
BOX = "an upper bound: over the corners of more than 20 attributes the largest length is bounded, not found"


@dataclass(frozen=True)
class Length:
    """The largest Mahalanobis length of a change, and the change that has it; ``note`` says where the length is a bound."""

    value: float
    corner: Array = field(repr=False)
    note: str = ""

    def over(self, deviation: float) -> Length:
        """Return it for noise so many times as strong."""
        return Length(self.value / deviation if deviation > 0.0 else math.inf, self.corner, self.note)


def largest_length(C: Array, spans: Array) -> Length:
    """Return the largest ``√(Δᵀ C⁻¹ Δ)`` over the box ``|Δ_j| ≤ spans_j``; infinite where C is singular, as the box has full dimension.

    Eigenvalues are lowered by what rounding may have added, so that rounding never promises more than there is.
    """
    N = len(C)
    scaled, size = in_own_units(C)
    values, vectors = np.linalg.eigh(scaled)
    values = values - (BITS * N * EPS * values[-1] if N > 1 else 0.0)
    if (np.diag(C) <= 0.0).any() or values[0] <= 0.0:
        return Length(math.inf, spans)
    u = spans / size
    Q = np.outer(u, u) * ((vectors / values) @ vectors.T)  # vᵀ Q v is the squared length of the corner with signs v
    if N <= MOST_CORNERS:
        signs = _worst_corner(Q)
        return Length(math.sqrt(float(signs @ Q @ signs)), signs * spans)
    diagonal, off = np.diag(Q), Q - np.diag(np.diag(Q))
    highest = (float(np.abs(Q).sum()), float(diagonal.sum() + N * np.linalg.eigvalsh(off)[-1]), N * float(np.linalg.eigvalsh(Q)[-1]))
    return Length(math.sqrt(min(highest)), _climbed(Q) * spans, BOX if off.any() else "")


def _worst_corner(Q: Array) -> Array:
    """Return the signs v, shape (N,), with the largest ``vᵀ Q v``: all of them tried, the last +1 as −v is as long as v.

    Signs are cut into two halves a and b, ``vᵀQv = aᵀQ_aa a + 2 aᵀQ_ab b + bᵀQ_bb b``, so that one matrix product goes through all.
    """
    N = len(Q)
    half = N // 2
    a, b = _signs(half), _signs(N - half)
    b = b[b[:, -1] > 0]
    squares = [np.einsum("ki,ij,kj->k", s, block, s) for s, block in ((a, Q[:half, :half]), (b, Q[half:, half:]))]
    lengths = squares[0][:, None] + 2.0 * a @ Q[:half, half:] @ b.T + squares[1]
    i, j = np.unravel_index(int(np.argmax(lengths)), lengths.shape)
    return np.concatenate([a[i], b[j]])


def _signs(n: int) -> Array:
    """Return all rows of n signs, shape (2ⁿ, n)."""
    return np.asarray(1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1))


def _climbed(Q: Array) -> Array:
    """Return signs of a long corner: one after another is turned while that lengthens it; a lower bound, to try attacks on."""
    v = np.where(Q[int(np.argmax(np.diag(Q)))] < 0, -1.0, 1.0)
    for _ in range(10 * len(Q)):
        gain = -4.0 * v * (Q @ v) + 4.0 * np.diag(Q)  # of turning each sign
        j = int(np.argmax(gain))
        if gain[j] <= 1e-12 * abs(float(v @ Q @ v)):
            break
        v[j] = -v[j]
    return v


def combined_noise(R: Array, N: int) -> Array:
    """Return ``C = (Hᵀ K⁺ H)⁻¹``, shape (N, N), from a root ``K = R Rᵀ`` of k copies' noise covariance, which may be singular.

    Unbiased combinations are the mean of the copies and any sum of differences of copies: what is left of the mean's noise after
    regression on those of the differences is C.
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
    rest -= (rest @ Vt.T) @ Vt  # once more: the first subtraction leaves rounding of the size of the mean
    rest[np.abs(rest) <= BITS * len(R) * EPS * np.abs(mean).max(axis=1, keepdims=True)] = 0.0
    return np.asarray(rest @ rest.T)
