"""Errors of linear attacks from second moments alone: every coalition costs a small matrix product, and no row is read.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W, V, R`` | the maps: ``auditor.audit.numeric.stacked_maps`` | |
| ``c`` | what is left of the offset after centring on the table's mean | (B, N) |
| ``P, t`` | moments of ``v`` over the rows, ``auditor.numerics.moments`` | (d, d), (d,) |
| ``H`` | ``[I … I]ᵀ``: copies of a row without noise are the row, ``Y = H x + Z`` | (MN, N) |
| ``A`` | ``(I−V−WH) K_X (I−V−WH)ᵀ + c cᵀ``: squared bias, what the attack loses of the data | (B, N, N) |
| ``S`` | ``W K_Z Wᵀ``: variance, what it lets through of the noise | (B, N, N) |

Measured error ``diag(R P Rᵀ)/n − …``; closed form ``diag(A + S)`` (li2012 (7) for the best W). With weights that do not depend on the
noise, the variance over noise draws of the squared error is ``(2 tr S² + 4 tr S A)/n``, and likewise for each attribute: exact for any
table. Estimated weights differ in another draw: their errors are measured in draws that the audit makes itself
(``auditor.audit.numeric.redraws``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.stacked_maps import Maps, Members
from auditor.numerics.moments import Moments
from auditor.numerics.statistics import Z_95, jackknife_error, quantile, quantiles
from auditor.results.evidence import SAME
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition


def squared_errors(maps: Maps, moments: Moments) -> Array:
    """Return the sum over rows of each attribute's squared error, shape (B, N).

    ``Σ (R v − c)² = diag(R P Rᵀ) − 2 c·(R t) + n c²``.
    """
    R, c = maps.residual, maps.offsets
    B, N, d = R.shape
    RP = (R.reshape(B * N, d) @ moments.products).reshape(B, N, d)
    raw: Array = np.einsum("bnd,bnd->bn", RP, R) - 2.0 * c * (R @ moments.total) + moments.count * c**2
    return np.maximum(raw, 0.0)


def resolution(maps: Maps, moments: Moments) -> Array:
    """Return how far rounding may move a sum of squared errors, shape (B, N): ``ε (|R| diag(P)^½)²``.

    ``R P Rᵀ`` adds up terms as large as ``|R_i| |P_ij| |R_j|``, each rounded to ε of itself, and ``|P_ij| ≤ (P_ii P_jj)^½``. Where large
    terms cancel (noise far larger than an attribute, as white noise on attributes in very different units), that rounding stays.
    """
    R = np.abs(maps.residual)
    return np.asarray(np.finfo(np.float64).eps * (R @ np.sqrt(np.clip(np.diag(moments.products), 0.0, None))) ** 2)


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
        return (each, total) if self.excess is None else (each + self.excess[0], total + self.excess[1])


def spread(S: Array, A: Array, rows: int) -> tuple[Array, Array]:
    """Return ``(2 S_jj² + 4 S_jj A_jj)/n``, shape (B, N), and ``(2 tr S Sᵀ + 4 tr S Aᵀ)/n``, shape (B,).

    With S and A of two estimates crossed it is the covariance of their squared errors; with those of one, the variance. For an
    error ``b + e`` with b fixed and ``e ~ N(0, S)``, ``Cov(|b+e|², |b'+e'|²) = 2 tr S Sᵀ + 4 bᵀ S b'``, averaged over rows.
    """
    s, a = np.einsum("bnn->bn", S), np.einsum("bnn->bn", A)
    each = (2.0 * s**2 + 4.0 * s * a) / rows
    total = (2.0 * np.einsum("bij,bij->b", S, S) + 4.0 * np.einsum("bij,bij->b", S, A)) / rows
    return each, total


def excess_spread(first: Maps, second: Maps, law: NoiseLaw, rows: int) -> tuple[Array, Array] | None:
    """Return what noise that is not Gaussian adds to ``spread``; None for Gaussian noise.

    With ``V = W·root`` the error is ``b + V u``, u independent with excess kurtosis κ: the fourth cumulants add
    ``κ Σ_l (Σ_j V_jl²)(Σ_j V'_jl²) / n``, and ``κ Σ_l V_jl² V'_jl² / n`` attribute by attribute. Exact for symmetric u.
    """
    if law.excess_kurtosis == 0.0:
        return None
    V, other = (first.weights @ law.root) ** 2, (second.weights @ law.root) ** 2
    each = np.einsum("bnl,bnl->bn", V, other)
    total = np.einsum("bl,bl->b", V.sum(axis=1), other.sum(axis=1))
    return law.excess_kurtosis * each / rows, law.excess_kurtosis * total / rows


def closed_form(maps: Maps, K_X: Array, law: NoiseLaw, rows: int, sharp: NDArray[np.intp] | None = None) -> ClosedForm:
    """Return theory for maps with known weights: exact for any table whose covariance is ``K_X`` (divisor n).

    ``sharp`` are places of maps whose weights cancel what is far larger than what they leave. Their S is ``V Vᵀ`` with ``V = W·root``,
    never negative and known to ``(ε |w|)²``; ``W K_Z Wᵀ`` is a difference of terms of size ``|w|²``, known to ε of them.
    """
    A, S = crossed(maps, maps, K_X, law)
    # E|b + e|² of an error with bias b and noise e ~ (0, S), averaged over rows: tr A + tr S, li2012 (7) when W is the best.
    if sharp is not None and sharp.size:
        V = maps.weights[sharp] @ law.passed_root
        S[sharp] = V @ V.transpose(0, 2, 1)
    return ClosedForm(np.einsum("bnn->bn", A) + np.einsum("bnn->bn", S), A, S, rows, excess_spread(maps, maps, law, rows))


def crossed(first: Maps, second: Maps, K_X: Array, law: NoiseLaw) -> tuple[Array, Array]:
    """Return ``A = (I−V−WH) K_X (I−V'−W'H)ᵀ + c c'ᵀ`` and ``S = W K_Z W'ᵀ``, shapes (B, N, N), for two lists of maps side by side."""
    B, N, MN = first.weights.shape
    A = (first.lost.reshape(B * N, N) @ K_X).reshape(B, N, N) @ second.lost.transpose(0, 2, 1)
    A += first.offsets[:, :, None] * second.offsets[:, None, :]
    S = (first.weights.reshape(B * N, MN) @ law.covariance).reshape(B, N, MN) @ second.weights.transpose(0, 2, 1)
    return A, S


@dataclass(frozen=True)
class Paired:
    """Gains over single copies, with error bars; arrays of shape (B, N + 1), the last column for all attributes together."""

    gain: Array = field(repr=False)
    std_error: Array = field(repr=False)
    degrees: Array = field(repr=False)


@dataclass(frozen=True)
class Errors:
    """Errors of one attack under one state of knowledge, coalition by coalition; the last column is all attributes together.

    Attributes
    ----------
    distortion, std_error, theory : ndarrays of shape (B, N + 1)
        Mean squared errors, in squared data units; NaN where there is no theory or no error bar.
    gain, gain_error, gain_theory : ndarrays of shape (B, N + 1)
        Collusion gain over the best copy alone.
    bar : ErrorBar
        Where the error bars come from.
    below, above, gain_below, gain_above : ndarrays of shape (B, N + 1)
        How far 95 % intervals reach from the figures, either way.
    """

    distortion: Array = field(repr=False)
    std_error: Array = field(repr=False)
    theory: Array = field(repr=False)
    gain: Array = field(repr=False)
    gain_error: Array = field(repr=False)
    gain_theory: Array = field(repr=False)
    bar: ErrorBar
    below: Array = field(repr=False)
    above: Array = field(repr=False)
    gain_below: Array = field(repr=False)
    gain_above: Array = field(repr=False)
    paired: Paired | None = None


class Sharp(NamedTuple):
    """Errors measured on the rows themselves, of maps whose errors second moments do not resolve (``resolution``).

    Attributes
    ----------
    sums : ndarray of shape (G, b, N)
        Squared errors, summed by row group.
    grain : ndarray of shape (b, N)
        Mean squared error that the rounding of the stored copies may make.
    """

    sums: Array
    grain: Array


ByRows = Callable[[NDArray[np.intp]], Sharp]
"""Measures the maps at some places on the rows."""


def with_total(each: Array) -> Array:
    """Append the mean over attributes, shape (..., N) → (..., N + 1)."""
    return np.concatenate([each, each.mean(axis=-1, keepdims=True)], axis=-1)


def audit_linear(
    coalitions: Sequence[Coalition], maps: Maps, groups: Sequence[Moments], K_X: Array, law: NoiseLaw | None,
    again: Array | None = None, compared: NDArray[np.intp] | None = None, why: ErrorBar = "jackknife", by_rows: ByRows | None = None,
) -> Errors:  # fmt: skip
    """Measure every coalition's error and gain from moments, with error bars, and the closed forms beside them.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Every member of a coalition must be there as a coalition of its own.
    maps : Maps
        One map a coalition.
    groups : sequence of Moments
        Moments of disjoint row groups, together all the rows that the attack is judged on.
    K_X : ndarray of shape (N, N)
        The table's covariance, divisor n.
    law : NoiseLaw or None
        Law of the noise in all copies; without it there is no closed form, and errors come from a jackknife over the groups.
    again : ndarray of shape (R, B, N) or None
        For maps that are not fixed: mean squared errors in other draws.
    compared : ndarray of shape (B,) or None
        Places of the single copies that each coalition is compared with (``quietest``), for ``Errors.paired``.
    why : ErrorBar
        Where the error bars of maps that are not fixed come from when nothing was drawn again.
    by_rows : callable, optional
        Measures maps on the rows where moments do not resolve their errors; without it the error bar says how far they do.
    """
    total, scale = Moments.merge(groups), with_total(np.diag(K_X))
    coarse = np.flatnonzero((resolution(maps, total) / total.count > EXACT * np.diag(K_X)).any(axis=1))
    measured = by_rows(coarse) if by_rows is not None and coarse.size else None
    if law is not None and maps.fixed:
        return _under_law(coalitions, maps, total, K_X, law, compared, None if measured is None else (coarse, measured))
    if again is not None:
        error, rounding = with_total(squared_errors(maps, total) / total.count), with_total(resolution(maps, total) / total.count)
        if measured is not None:
            error[coarse], rounding[coarse] = with_total(measured.sums.sum(axis=0) / total.count), with_total(measured.grain)
        rounding = rounded_off(rounding, scale)
        error, others = rounded_off(error, scale, rounding), rounded_off(with_total(again), scale, rounding)
        return from_redraws(coalitions, error, others, scale, compared, rounding)
    sums = np.array([squared_errors(maps, group) for group in groups])
    if measured is not None:
        sums[:, coarse] = measured.sums
    return from_groups(coalitions, sums, [group.count for group in groups], np.diag(K_X), compared, bar=why)


def quietest(coalitions: Sequence[Coalition], law: NoiseLaw, K_X: Array) -> NDArray[np.intp]:
    """Return, by coalition, the place of its copy with least noise by law, as a share of the data's variance, shape (B,).

    The copy whose *measured* error is least is the luckiest of several nearly as good, and a gain over it is biased downward. A test of
    what pooling buys needs a copy that was chosen before anything was measured.
    """
    N = law.width
    noise_share = (np.diag(law.covariance).reshape(-1, N) / np.diag(K_X)).sum(axis=1)
    singles = {coalition[0]: place for place, coalition in enumerate(coalitions) if len(coalition) == 1}
    return np.array([singles[min(coalition, key=lambda copy: noise_share[copy - 1])] for coalition in coalitions], dtype=np.intp)


def from_groups(
    coalitions: Sequence[Coalition], sums: Array, counts: Sequence[int], variances: Array,
    compared: NDArray[np.intp] | None = None, bar: ErrorBar = "jackknife",
) -> Errors:  # fmt: skip
    """Return errors of any attack from its squared errors summed by row group.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Every member of a coalition must be there as a coalition of its own.
    sums : ndarray of shape (G, B, N)
        Squared errors, summed over the rows of each group.
    counts : sequence of int
        Rows in each group.
    variances : ndarray of shape (N,)
        Each attribute's variance in the table.
    compared : ndarray of shape (B,) or None
        As for ``audit_linear``.
    bar : 'jackknife' or 'replicates-needed'
        Leave out groups of rows, the attack held; or give no error bars, as that does not see what all rows share.
    """
    scale = with_total(variances)
    distortion = rounded_off(with_total(sums.sum(axis=0) / sum(counts)), scale)
    best = Members.of(coalitions).best(distortion)
    nothing = np.full_like(distortion, np.nan)
    degrees = np.full_like(distortion, max(1, len(counts) - 1))

    def against(single: NDArray[np.intp]) -> tuple[Array, Paired]:
        gain = collusion_gain(distortion, np.take_along_axis(distortion, single, axis=0), scale)
        both = _jackknife(with_total(sums), counts, single, scale) if bar == "jackknife" else (nothing, nothing)
        return both[0], Paired(gain, both[1], degrees)

    std_error, own = against(best)
    paired = None if compared is None else against(np.broadcast_to(compared[:, None], distortion.shape))[1]
    t = quantiles(0.975, degrees)
    reach, gain_reach = t * std_error, t * own.std_error
    return Errors(distortion, std_error, nothing, own.gain, own.std_error, nothing, bar, reach, reach, gain_reach, gain_reach, paired)


def from_redraws(
    coalitions: Sequence[Coalition], distortion: Array, again: Array, scale: Array, compared: NDArray[np.intp] | None = None,
    rounding: Array | float = 0.0,
) -> Errors:  # fmt: skip
    """Return errors of any attack with error bars from other draws of the same release.

    Parameters
    ----------
    coalitions : sequence of tuple of int
    distortion, again : ndarrays of shape (B, N + 1) and (R, B, N + 1)
        Mean squared errors as measured, and in R other draws; the last column is all attributes together.
    scale : ndarray of shape (N + 1,)
        The attributes' variances, and their mean.
    compared : ndarray of shape (B,) or None
        As for ``audit_linear``.
    rounding : ndarray, optional
        How far rounding moves each error.
    """
    members, R = Members.of(coalitions), len(again)

    def gains(errors: Array, single: NDArray[np.intp]) -> Array:
        return collusion_gain(errors, np.take_along_axis(errors, single, axis=0), scale)

    def steady(denominators: Array, spread: Array) -> Array:
        """The spread of a gain over single copies with these errors; NaN where the ratio has no mean to speak of."""
        return np.where(denominators.std(axis=0, ddof=1) <= MOST_UNSTEADY * denominators.mean(axis=0), spread, np.nan)

    # The best copy is chosen anew in every draw, as an adversary would: a gain's spread includes which copy happened to be best.
    best = [members.best(errors) for errors in again]
    gain, other = gains(distortion, members.best(distortion)), np.array(list(map(gains, again, best)))
    alone = np.array([np.take_along_axis(*pair, axis=0) for pair in zip(again, best, strict=True)])
    spread, (below, above) = np.hypot(again.std(axis=0, ddof=1), rounding), reaches(distortion, again)
    gain_error = steady(alone, other.std(axis=0, ddof=1))
    gain_below, gain_above = (np.where(np.isnan(gain_error), np.nan, reach) for reach in reaches(gain, other))
    nothing, paired = np.full_like(distortion, np.nan), None
    if compared is not None:
        pair = np.broadcast_to(compared[:, None], distortion.shape)
        pairs = np.array([gains(errors, pair) for errors in again])
        paired = Paired(gains(distortion, pair), steady(again[:, compared], pairs.std(axis=0, ddof=1)), np.full_like(distortion, R - 1))
    return Errors(
        distortion, spread, nothing, gain, gain_error, nothing, "redraws",
        np.maximum(below, Z_95 * rounding), np.maximum(above, Z_95 * rounding), gain_below, gain_above, paired,
    )  # fmt: skip


MOST_UNSTEADY = 1 / 3
"""Standard deviation of a best copy's error, as a share of the error, from which one release tells no gain over it.

A gain is a ratio. The law of a ratio whose denominator comes near 0 has tails as heavy as Cauchy's, and no mean that an interval could
hold: one draw in fifty is a hundred times the others."""


def reaches(figure: Array, again: Array) -> tuple[Array, Array]:
    """Return how far 95 % intervals about a figure reach down and up, given R other draws of it, shape (R, …).

    The interval is to hold the mean over draws, which the redraws estimate with standard error ``s/√R``. It is extrapolated in two steps:

    - it reaches as far as 85 % of draws lie from their mean (``t_{0.925}(R−1) · s``), which holds a normal figure 85 times in 100;
    - where the figure is further off than that, it reaches past the redraws' mean by ``t_{0.75}(R−1) · s/√R``, so that the true mean is
      held three times in four there too.

    Of normal figures 0.85 + 0.15 · 0.75 = 96 % are held so. Where draws fall into two clusters, as of a filter that keeps now one
    direction, now two, the figure of the common cluster is near the mean, and that of the rarer one is held three times in four; a
    symmetric interval of ``t_{0.975} s`` would miss the mean every time the figure fell into the rarer one.
    """
    R, mean, spread = len(again), again.mean(axis=0), again.std(axis=0, ddof=1)
    reach, mean_reach = quantile(0.925, R - 1) * spread, quantile(0.75, R - 1) * spread / np.sqrt(R)
    return np.maximum(reach, figure - mean + mean_reach), np.maximum(reach, mean - figure + mean_reach)


EXACT = 1e-12
"""A squared error below this share of the variance is rounding: the attack has rebuilt the attribute exactly."""


def rounded_off(error: Array, variance: Array, rounding: Array | float = 0.0) -> Array:
    """Return squared errors with those that are nothing but rounding set to 0, so that an exact rebuild is 0 on every machine.

    Parameters
    ----------
    error, variance : ndarrays that broadcast
        Squared errors, and the attributes' variances, of one unit.
    rounding : ndarray, optional
        How far rounding moves each error, where that is more than usual.
    """
    return np.where(error > np.maximum(EXACT * variance, rounding), error, 0.0)


def collusion_gain(error: Array, alone: Array, variance: Array, doubt: Array | float = 0.0) -> Array:
    """Return ``1 − error/alone``, 0 up to rounding; where the copy alone is exact already nothing is left to gain.

    Parameters
    ----------
    error, alone, variance : ndarrays that broadcast
        Squared errors of the coalition and of its best copy, and the attribute's variance, all of one unit.
    doubt : ndarray, optional
        How far rounding may have moved the difference of the two errors, where that is more than usual.
    """
    known = np.broadcast_to(alone > EXACT * variance, error.shape)
    gain = 1.0 - np.divide(error, alone, out=np.ones_like(error), where=known)
    least = np.maximum(SAME, np.divide(doubt, alone, out=np.zeros_like(error), where=known))
    return np.where(np.abs(gain) <= least, 0.0, gain)  # what is not known stays so


def _under_law(
    coalitions: Sequence[Coalition], maps: Maps, total: Moments, K_X: Array, law: NoiseLaw, compared: NDArray[np.intp] | None,
    sharp: tuple[NDArray[np.intp], Sharp] | None = None,
) -> Errors:  # fmt: skip
    """Errors of known maps, with bars in closed form from the law."""
    N = maps.offsets.shape[1]
    scale = with_total(np.diag(K_X))
    # An error below its own resolution is an exact rebuild as far as moments can tell; the error bar says how far that is.
    doubt = with_total(resolution(maps, total) / total.count)
    rounding = rounded_off(doubt, scale)
    error = with_total(squared_errors(maps, total) / total.count)
    least = rounding.copy()
    if sharp is not None:  # an error measured on rows is known to the rounding of the stored copies, and theory is compared to that
        places, found = sharp
        error[places], least[places] = with_total(found.sums.sum(axis=0) / total.count), 0.0
        doubt[places] = with_total(found.grain)
        rounding[places] = rounded_off(doubt[places], scale)
    distortion = rounded_off(error, scale, least)
    members = Members.of(coalitions)
    # The rows judged may be some of the table's only: their own mean and covariance, and maps about that mean.
    maps, judged = maps.about(total.mean[:N]), total.covariance()[:N, :N]
    theory = closed_form(maps, judged, law, total.count, None if sharp is None else sharp[0])
    expected = rounded_off(with_total(theory.expected), scale, least)
    variance = np.where(expected > 0, np.maximum(_columns(*theory.variance(), N), 0.0), 0.0) + rounding**2

    def against(best: NDArray[np.intp]) -> Paired:
        alone = np.take_along_axis(distortion, best, axis=0)
        covariance = _covariance_with_best(maps, best, judged, law, total.count)
        error = _ratio_error(distortion, alone, variance, np.take_along_axis(variance, best, axis=0), covariance)
        error = np.where(alone > EXACT * scale, error, 0.0)
        return Paired(collusion_gain(distortion, alone, scale), error, np.full_like(alone, np.inf))

    best = against(members.best(distortion))
    paired = None if compared is None else against(np.ascontiguousarray(np.broadcast_to(compared[:, None], distortion.shape)))
    # The terms of an expected error cancel as those of the measured one do: it is known to ε of their size, as is the best copy's.
    places = members.best(expected)
    doubt = doubt + np.take_along_axis(doubt, places, axis=0)
    gain_theory = collusion_gain(expected, np.take_along_axis(expected, places, axis=0), scale, doubt)
    error = np.sqrt(variance)
    reach, gain_reach = Z_95 * error, Z_95 * best.std_error
    return Errors(
        distortion, error, expected, best.gain, best.std_error, gain_theory, "closed-form", reach, reach, gain_reach, gain_reach, paired
    )


def _columns(each: Array, total: Array, N: int) -> Array:
    """Return variances with that of the *mean* over attributes appended."""
    return np.concatenate([each, total[:, None] / N**2], axis=1)


def _covariance_with_best(maps: Maps, best: NDArray[np.intp], K_X: Array, law: NoiseLaw, rows: int) -> Array:
    """Return the covariance of each coalition's mean squared error with its best single copy's, shape (B, N + 1).

    ``spread`` with A and S of the two maps crossed. Attributes mostly share their best copy, and then one crossing serves them all.
    """
    covariance = np.empty(best.shape)
    N = maps.offsets.shape[1]
    by_place: dict[bytes, Array] = {}
    for column in range(N + 1):
        key = best[:, column].tobytes()
        if key not in by_place:
            other = maps.at(best[:, column])
            A, S = crossed(maps, other, K_X, law)
            crossing = ClosedForm(np.empty(0), A, S, rows, excess_spread(maps, other, law, rows))
            by_place[key] = _columns(*crossing.variance(), N)
        covariance[:, column] = by_place[key][:, column]
    return covariance


def _ratio_error(error: Array, alone: Array, variance: Array, alone_variance: Array, covariance: Array) -> Array:
    """Return the standard error of ``error/alone`` by the delta method, 0 where the copy alone is exact.

    ``Var(a/b) ≈ (Var a + r² Var b − 2 r Cov(a, b)) / b²`` with ``r = a/b``.
    """
    ratio = np.divide(error, alone, out=np.zeros_like(error), where=alone > 0)
    apart = variance + ratio**2 * alone_variance
    # Where the covariance takes all but 1e-13 of the variances away, the two errors are one and the same but for rounding.
    numerator = np.where((left := apart - 2.0 * ratio * covariance) > 1e-13 * apart, left, 0.0)
    return np.divide(np.sqrt(numerator), alone, out=np.zeros_like(error), where=alone > 0)


def _jackknife(sums: Array, counts: Sequence[int], best: NDArray[np.intp], scale: Array) -> tuple[Array, Array]:
    """Return jackknife errors of distortion and gain, shapes (B, N + 1), the maps held as they are; NaN for a single group."""
    if len(counts) < 2:
        nothing = np.full(best.shape, np.nan)
        return nothing, nothing
    rows = np.array(counts, dtype=np.float64)[:, None, None]
    left_out = (sums.sum(axis=0) - sums) / (rows.sum() - rows)
    alone = np.take_along_axis(left_out, best[None], axis=1)
    return jackknife_error(left_out), jackknife_error(collusion_gain(left_out, alone, scale))
