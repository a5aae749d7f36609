"""Errors of linear attacks from second moments, measured and expected.

Maps are padded with zeros to all copies.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W`` | weights, 0 for copies outside the coalition | (B, N, MN) |
| ``V`` | weights on true values that the adversary knows, usually none | (B, N, N) |
| ``c`` | offset, for rows centred on the table's mean | (B, N) |
| ``R`` | ``[I − V, −W]``: the error is ``R v − c`` for a centred row ``v`` of ``[X, Y_1 … Y_M]`` | (B, N, d) |
| ``P, t`` | moments of ``v`` over the rows (``auditor.numerics.blocks``) | (d, d), (d,) |
| ``H`` | ``[I … I]ᵀ``, from ``Y = H x + Z`` | (MN, N) |
| ``A`` | ``(I−V−WH) K_X (I−V−WH)ᵀ + c cᵀ``: squared bias | (B, N, N) |
| ``S`` | ``W K_Z Wᵀ``: variance | (B, N, N) |

The measured error is ``diag(R P Rᵀ) − 2 c·(R t) + n c²``, the expected one ``diag(A + S)`` (li2012
(7) for the best W). With weights independent of the noise, the variance is ``(2 tr
S² + 4 tr S A)/n``, exact for any table. Estimated maps are fitted again in other draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from auditor.adversary.attack import Affine, AffineStack
from auditor.audit.numeric.error_bars import (
    EXACT,
    Errors,
    Figure,
    Members,
    Paired,
    from_groups,
    from_redraws,
    gain_over,
    of_copy,
    rounded_off,
    with_total,
)
from auditor.base.types import Array, Coalitions, Flags, Indices
from auditor.numerics.blocks import Moments
from auditor.numerics.linear_algebra import deviations, quotient
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw

PIECE_WEIGHTS = 2**17
"""Weights of the maps that are processed at a time: a megabyte."""


def by_size(coalitions: Coalitions) -> Iterator[tuple[int, Coalitions]]:
    """Yield runs of coalitions of equal size, each with its first place."""
    start = 0
    for _, run in groupby(map(len, coalitions)):
        stop = start + len(list(run))
        yield start, coalitions[start:stop]
        start = stop


@dataclass(frozen=True, repr=False)
class Maps:
    """Affine maps of several coalitions, padded to all copies.

    Attributes
    ----------
    weights : ndarray of shape (B, N, MN)
    offsets : ndarray of shape (B, N)
    fixed : bool
        Whether independent of the noise drawn.
    known : ndarray of shape (B, N, N) or None
        ``V``, if any.
    apart : bool
        Whether fitted to known records alone, and judged on others.
    """

    weights: Array
    offsets: Array
    fixed: bool
    known: Array | None = None
    apart: bool = False

    @classmethod
    def pad(cls, batch: Sequence[Affine], coalitions: Coalitions, copies: int) -> Maps:
        """Place each coalition's weights among all copies."""
        if isinstance(batch, AffineStack):
            return cls(batch.weights, batch.offsets, batch.fixed)
        offsets, known = np.array([affine.offset for affine in batch]), None
        B, N = offsets.shape
        weights = np.zeros((B, N, copies, N))
        for padded, affine, held in zip(weights, batch, coalitions, strict=True):
            padded[:, np.array(held) - 1] = affine.weights.reshape(N, -1, N)
        if any(affine.known is not None for affine in batch):
            nothing = np.zeros((N, N))
            known = np.array([nothing if one.known is None else one.known for one in batch])
        fixed, apart = (all(getattr(one, name) for one in batch) for name in ("fixed", "apart"))
        return cls(weights.reshape(B, N, -1), offsets, fixed, known, apart)

    def at(self, places: Indices | slice) -> Maps:
        """Maps at some places, in that order."""
        known = None if self.known is None else self.known[places]
        return replace(
            self, weights=self.weights[places], offsets=self.offsets[places], known=known
        )

    def about(self, mean: Array) -> Maps:
        """Maps for rows centred ``mean`` away from the present centre, (N,)."""
        return replace(self, offsets=self.offsets - self.lost @ mean)

    @property
    def weighed(self) -> Flags:
        """Whether each map has a weight on each copy, shape (B, M)."""
        B, N, MN = self.weights.shape
        return np.any(self.weights.reshape(B, N, MN // N, N), axis=(1, 3))

    @cached_property
    def own(self) -> Array:
        """``I − V``, shape (B, N, N)."""
        B, N, _ = self.weights.shape
        identity: Array = np.broadcast_to(np.eye(N), (B, N, N))
        return identity if self.known is None else identity - self.known

    @cached_property
    def lost(self) -> Array:
        """``I − V − W H``, shape (B, N, N)."""
        B, N, MN = self.weights.shape
        H = np.tile(np.eye(N), (MN // N, 1))
        return self.own - (self.weights.reshape(B * N, MN) @ H).reshape(B, N, N)

    def pieces(self) -> list[slice]:
        """Pieces of the maps of ``PIECE_WEIGHTS``, to bound memory."""
        B, N, MN = self.weights.shape
        step = max(1, PIECE_WEIGHTS // (N * (N + MN)))
        return [slice(start, start + step) for start in range(0, B, step)]

    def residual(self, places: slice) -> Array:
        """``R`` of some maps, (b, N, d)."""
        return np.concatenate([self.own[places], -self.weights[places]], axis=2)


class ClosedForm(NamedTuple):
    """Theory of squared errors, and of their covariance over noise draws.

    Attributes
    ----------
    lost, passed : ndarrays of shape (B, N, N)
        ``A`` and ``S``.
    rows : int
        ``n``.
    excess : tuple of ndarrays of shape (B, N) and (B,)
        Fourth cumulants' contribution to the variances.
    """

    lost: Array
    passed: Array
    rows: int
    excess: tuple[Array | float, Array | float] = (0.0, 0.0)

    @property
    def expected(self) -> Array:
        """Expected squared errors, shape (B, N)."""
        return np.einsum("bnn->bn", self.lost) + np.einsum("bnn->bn", self.passed)

    def variance(self) -> Array:
        """Variances of mean squared errors, shape (B, N + 1)."""
        each, total = spread(self.passed, self.lost, self.rows)
        total = (total + self.excess[1]) / each.shape[1] ** 2
        return np.concatenate([each + self.excess[0], total[:, None]], axis=1)


def spread(S: Array, A: Array, rows: int) -> tuple[Array, Array]:
    """``(2 S_jj² + 4 S_jj A_jj)/n``, (B, N), and ``(2 tr S Sᵀ + 4 tr S Aᵀ)/n``, (B,).

    The variance of squared errors, or the covariance of two estimates with crossed S and A. For an
    error
    ``b + e``, b fixed and ``e ~ N(0, S)``, ``Cov(|b+e|², |b'+e'|²) = 2 tr S Sᵀ + 4 bᵀ S b'``,
    averaged over
    rows.
    """
    s, a = np.einsum("bnn->bn", S), np.einsum("bnn->bn", A)
    each = (2.0 * s**2 + 4.0 * s * a) / rows
    total = (2.0 * np.einsum("bij,bij->b", S, S) + 4.0 * np.einsum("bij,bij->b", S, A)) / rows
    return each, total


def crossed(first: Maps, second: Maps, K_X: Array, law: NoiseLaw, rows: int) -> ClosedForm:
    """Theory for pairs of maps with known weights.

    With ``V = W·root`` the error is ``b + V u``, with u independent of excess kurtoses κ. Fourth
    cumulants add ``Σ_l κ_l (Σ_j V_jl²)(Σ_j V'_jl²) / n``, and by attribute ``Σ_l κ_l V_jl² V'_jl² /
    n``: exact for symmetric u.
    """
    B, N, _ = first.weights.shape
    A = (first.lost.reshape(B * N, N) @ K_X).reshape(B, N, N) @ second.lost.transpose(0, 2, 1)
    A += first.offsets[:, :, None] * second.offsets[:, None, :]
    S = np.empty_like(A)
    for here in first.pieces():
        S[here] = law.applied(first.weights[here]) @ second.weights[here].transpose(0, 2, 1)
    if law.excess_kurtosis is None:
        return ClosedForm(A, S, rows)
    V = (first.weights @ law.root) ** 2 * law.excess_kurtosis
    other = (second.weights @ law.root) ** 2
    each = np.einsum("bnl,bnl->bn", V, other)
    total = np.einsum("bl,bl->b", V.sum(axis=1), other.sum(axis=1))
    return ClosedForm(A, S, rows, (each / rows, total / rows))


def held_out_theory(maps: Maps, judged: Moments, law: NoiseLaw) -> Array:
    """Expected squared errors over the judged records, shape (B, N + 1).

    Parameters
    ----------
    maps : Maps
        Estimated from other records, or fixed; *not checked*.
    judged : Moments
        Of ``[X, …]`` over the judged records.
    law : NoiseLaw
        Of the noise in all copies.
    """
    N = maps.offsets.shape[1]
    about, K_X = maps.about(judged.mean[:N]), judged.covariance()[:N, :N]
    return with_total(crossed(about, about, K_X, law, judged.count).expected)


def squared_errors(maps: Maps, moments: Moments) -> Array:
    """Sum over rows of each attribute's squared error, shape (B, N)."""
    return squared_errors_by_group(maps, [moments])[0]


def squared_errors_by_group(maps: Maps, groups: Sequence[Moments]) -> Array:
    """``squared_errors`` by row group, shape (G, B, N)."""
    raw = np.empty((len(groups), *maps.offsets.shape))
    for here in maps.pieces():
        R, c = maps.residual(here), maps.offsets[here]
        rows = R.reshape(-1, R.shape[2])
        for group, found in zip(groups, raw[:, here], strict=True):
            squares = np.einsum("bnd,bnd->bn", (rows @ group.products).reshape(R.shape), R)
            found[:] = squares - 2.0 * c * (R @ group.total) + group.count * c**2
    return np.maximum(raw, 0.0, out=raw)


def resolution(maps: Maps, moments: Moments) -> Array:
    """Rounding of sums of squared errors, ``ε (|R| diag(P)^½)²``, (B, N).

    ``R P Rᵀ`` sums terms ``|R_i| |P_ij| |R_j|``, each rounded to ε of itself, with ``|P_ij| ≤ (P_ii
    P_jj)^½``.
    """
    size = deviations(moments.products)
    parts = [np.abs(R) @ size for R in map(maps.residual, maps.pieces())]
    return np.finfo(np.float64).eps * np.concatenate(parts) ** 2


def audit_linear(
    coalitions: Coalitions,
    maps: Maps,
    groups: Sequence[Moments],
    K_X: Array,
    law: NoiseLaw | None,
    again: Array | None = None,
    compared: Indices | None = None,
    why: ErrorBar = "jackknife",
    by_rows: Callable[[], Array] | None = None,
) -> Errors:
    """Every coalition's error and gain, with error bars and theory.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Each member must also be a coalition of its own.
    maps : Maps
        One map per coalition.
    groups : sequence of Moments
        Of disjoint groups of all judged rows.
    K_X : ndarray of shape (N, N)
        The table's covariance, divisor n.
    law : NoiseLaw or None
        Of the noise in all copies.
    again : ndarray of shape (R, B, N) or None
        Mean squared errors in other draws, if no closed form applies.
    compared : ndarray of shape (B, 1) or None
        Places of single copies (``least_noise``), for ``Errors.paired``.
    why : ErrorBar
        Error bar without law and redraws.
    by_rows : callable, optional
        Sums squared errors, (B, N), over the rows, if moments do not resolve them; else the bar
        includes the rounding. Rows cancel large terms before squares, with rounding ``(ε |w|)²`` in
        place of ``ε |w|²``.
    """
    total, scale = Moments.merge(groups), with_total(np.diag(K_X))
    error, doubt = (
        with_total(of(maps, total) / total.count) for of in (squared_errors, resolution)
    )
    rounding, by_law, exact = rounded_off(doubt, scale), None, None
    if by_rows is not None and rounding.any():
        exact, doubt = by_rows(), np.finfo(np.float64).eps * doubt
        error, rounding = with_total(exact / total.count), rounded_off(doubt, scale)
    if law is not None and maps.fixed:
        N, members = len(K_X), Members.of(coalitions)
        # the judged rows may be part of the table
        centred, judged = maps.about(total.mean[:N]), total.covariance()[:N, :N]
        distortion = rounded_off(error, scale, rounding)
        theory = crossed(centred, centred, judged, law, total.count)
        if exact is not None:  # S = V Vᵀ with V = W·root cancels before squares too
            V = maps.weights @ law.passed_root
            theory.passed[:] = V @ V.transpose(0, 2, 1)
        expected = rounded_off(with_total(theory.expected), scale, rounding)
        variance = np.where(expected > 0, np.maximum(theory.variance(), 0.0), 0.0)
        variance += rounding**2

        def against(best: Indices) -> Paired:
            alone = of_copy(distortion, best)
            covariance = np.empty_like(alone)
            for one in np.unique(best, axis=1).T:
                columns = np.broadcast_to((best == one[:, None]).all(axis=0), alone.shape[1])
                for here in centred.pieces():
                    pairs = centred.at(here), centred.at(one[here])
                    found = crossed(*pairs, judged, law, total.count).variance()
                    covariance[here, columns] = found[:, columns]
            # delta method: Var(a/b) ≈ (Var a + r² Var b − 2 r Cov(a, b)) / b², r = a/b
            known = alone > EXACT * scale
            ratio = quotient(distortion, alone, where=known)
            apart = variance + ratio**2 * of_copy(variance, best)
            left = apart - 2.0 * ratio * covariance
            left = np.where(left > 1e-13 * apart, left, 0.0)  # else equal errors, up to rounding
            deviation = quotient(np.sqrt(left), alone, where=known)
            gain = gain_over(distortion, best, scale)
            return Paired(gain, deviation, np.inf)

        gain, places = against(members.best(distortion)), members.best(expected)
        gain_theory = gain_over(expected, places, scale, doubt + of_copy(doubt, places))
        by_law = Errors(
            Figure.normal(distortion, np.sqrt(variance), expected),
            Figure.normal(gain.gain, gain.std_error, gain_theory),
            "closed-form",
            None if compared is None else against(compared),
        )
        if law.tells_spread:
            return by_law
    if again is not None:
        error, others = (rounded_off(each, scale, rounding) for each in (error, with_total(again)))
        return from_redraws(coalitions, error, others, scale, compared, rounding).under(by_law)
    sums, counts = squared_errors_by_group(maps, groups), [group.count for group in groups]
    if exact is not None:
        sums *= quotient(exact, sums.sum(axis=0))
    return from_groups(coalitions, sums, counts, np.diag(K_X), compared, why).under(by_law)
