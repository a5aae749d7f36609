"""What theory says of linear attacks' errors, and of their spread over noise draws: closed forms from second moments.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W, V`` | the maps: ``auditor.audit.numeric.stacked_maps`` | |
| ``c`` | what is left of the offset after centring on the table's mean | (B, N) |
| ``H`` | ``[I … I]ᵀ``: copies of a row without noise are the row, ``Y = H x + Z`` | (MN, N) |
| ``A`` | ``(I−V−WH) K_X (I−V−WH)ᵀ + c cᵀ``: squared bias, what the attack loses of the data | (B, N, N) |
| ``S`` | ``W K_Z Wᵀ``: variance, what it lets through of the noise | (B, N, N) |

The expected error is ``diag(A + S)`` (li2012 (7) for the best W). With weights that do not depend
on the noise, the variance over noise draws of the squared error is ``(2 tr S² + 4 tr S A)/n``, and
likewise for each attribute: exact for any table.

So is held-out theory, of a map that was estimated from other records than it is judged on: noise is
drawn record by record, so that of the records judged is independent of the map. How good a map so
many records allow is another question: the error bar includes it
(``auditor.audit.numeric.redraws``), the expectation does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.error_bars import with_total
from auditor.audit.numeric.stacked_maps import Maps
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array


@dataclass(frozen=True)
class ClosedForm:
    """What theory says of the errors, and of their spread over noise draws.

    Attributes
    ----------
    expected : ndarray of shape (B, N)
        Expected squared error of each attribute.
    lost, passed : ndarrays of shape (B, N, N)
        ``A`` and ``S``.
    rows : int
        ``n``.
    excess : tuple of ndarrays of shape (B, N) and (B,), or None
        What the fourth cumulants of noise that is not Gaussian add to the variances.
    """

    expected: Array = field(repr=False)
    lost: Array = field(repr=False)
    passed: Array = field(repr=False)
    rows: int
    excess: tuple[Array, Array] | None = field(repr=False, default=None)

    def variance(self) -> tuple[Array, Array]:
        """Return the variance of each attribute's mean squared error, (B, N), and of their sum over attributes, (B,)."""
        each, total = spread(self.passed, self.lost, self.rows)
        return (
            (each, total)
            if self.excess is None
            else (each + self.excess[0], total + self.excess[1])
        )


def spread(S: Array, A: Array, rows: int) -> tuple[Array, Array]:
    """Return ``(2 S_jj² + 4 S_jj A_jj)/n``, shape (B, N), and ``(2 tr S Sᵀ + 4 tr S Aᵀ)/n``, shape (B,).

    With S and A of two estimates crossed it is the covariance of their squared errors; with those of one, the variance. For an
    error ``b + e`` with b fixed and ``e ~ N(0, S)``, ``Cov(|b+e|², |b'+e'|²) = 2 tr S Sᵀ + 4 bᵀ S b'``, averaged over rows.
    """
    s, a = np.einsum("bnn->bn", S), np.einsum("bnn->bn", A)
    each = (2.0 * s**2 + 4.0 * s * a) / rows
    total = (2.0 * np.einsum("bij,bij->b", S, S) + 4.0 * np.einsum("bij,bij->b", S, A)) / rows
    return each, total


def excess_spread(
    first: Maps, second: Maps, law: NoiseLaw, rows: int
) -> tuple[Array, Array] | None:
    """Return what noise that is not Gaussian adds to ``spread``; None for Gaussian noise.

    With ``V = W·root`` the error is ``b + V u``, u independent with excess kurtoses κ: the fourth
    cumulants add ``Σ_l κ_l (Σ_j V_jl²)(Σ_j V'_jl²) / n``, and ``Σ_l κ_l V_jl² V'_jl² / n``
    attribute by attribute. Exact for symmetric u.
    """
    if law.excess_kurtosis is None:
        return None
    V, other = (
        (first.weights @ law.root) ** 2 * law.excess_kurtosis,
        (second.weights @ law.root) ** 2,
    )
    each = np.einsum("bnl,bnl->bn", V, other)
    total = np.einsum("bl,bl->b", V.sum(axis=1), other.sum(axis=1))
    return each / rows, total / rows


def closed_form(
    maps: Maps, K_X: Array, law: NoiseLaw, rows: int, cancelling: NDArray[np.intp] | None = None
) -> ClosedForm:
    """Return theory for maps with known weights: exact for any table whose covariance is ``K_X`` (divisor n).

    ``cancelling`` are places of maps whose weights cancel what is far larger than what they leave.
    Their S is ``V Vᵀ`` with ``V = W·root``, never negative and known to ``(ε |w|)²``; ``W K_Z Wᵀ``
    is a difference of terms of size ``|w|²``, known to ε of them.
    """
    A, S = crossed(maps, maps, K_X, law)
    # E|b + e|² of an error with bias b and noise e ~ (0, S), averaged over rows: tr A + tr S, li2012 (7) when W is the best.
    if cancelling is not None and cancelling.size:
        V = maps.weights[cancelling] @ law.passed_root
        S[cancelling] = V @ V.transpose(0, 2, 1)
    return ClosedForm(
        np.einsum("bnn->bn", A) + np.einsum("bnn->bn", S),
        A,
        S,
        rows,
        excess_spread(maps, maps, law, rows),
    )


def crossed(first: Maps, second: Maps, K_X: Array, law: NoiseLaw) -> tuple[Array, Array]:
    """Return ``A = (I−V−WH) K_X (I−V'−W'H)ᵀ + c c'ᵀ`` and ``S = W K_Z W'ᵀ``, shapes (B, N, N), for two lists of maps side by side."""
    B, N, _ = first.weights.shape
    A = (first.lost.reshape(B * N, N) @ K_X).reshape(B, N, N) @ second.lost.transpose(0, 2, 1)
    A += first.offsets[:, :, None] * second.offsets[:, None, :]
    S = np.empty_like(A)
    for here in first.pieces():
        S[here] = law.applied(first.weights[here]) @ second.weights[here].transpose(0, 2, 1)
    return A, S


def held_out_theory(maps: Maps, judged: Moments, law: NoiseLaw) -> Array:
    """Return the expected squared errors over the records judged, shape (B, N + 1), the last column their mean over attributes.

    Parameters
    ----------
    maps : Maps
        Estimated from other records, or not estimated at all; *not checked*.
    judged : Moments
        Of ``[X, …]`` over the records judged.
    law : NoiseLaw
        Of the noise in all copies.
    """
    N = maps.offsets.shape[1]
    return with_total(
        closed_form(
            maps.about(judged.mean[:N]), judged.covariance()[:N, :N], law, judged.count
        ).expected
    )
