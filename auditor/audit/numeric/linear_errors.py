"""Errors of linear attacks from second moments alone: every coalition costs a small matrix product, and no row is read.

| symbol | meaning | shape |
| --- | --- | --- |
| ``R`` | ``[I − V, −W]``, of the maps: ``auditor.audit.numeric.stacked_maps`` | (B, N, d) |
| ``c`` | what is left of the offset after centring on the table's mean | (B, N) |
| ``P, t`` | moments of ``v`` over the rows, ``auditor.numerics.moments`` | (d, d), (d,) |

Measured error ``diag(R P Rᵀ)/n − …``. Under a law the closed form stands beside it, and gives the
error bar of weights that do not depend on the noise (``auditor.audit.numeric.closed_form``).
Estimated weights differ in another draw: their errors are measured in draws that the audit makes
itself (``auditor.audit.numeric.redraws``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.closed_form import ClosedForm, closed_form, crossed, excess_spread
from auditor.audit.numeric.error_bars import (
    EXACT,
    Errors,
    Figure,
    Paired,
    collusion_gain,
    from_groups,
    from_redraws,
    rounded_off,
    with_total,
)
from auditor.audit.numeric.stacked_maps import PIECE_WEIGHTS, Maps, Members
from auditor.numerics.moments import Moments, stacked
from auditor.numerics.statistics import Z_95
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition


def squared_errors(maps: Maps, moments: Moments) -> Array:
    """Return the sum over rows of each attribute's squared error, shape (B, N).

    ``Σ (R v − c)² = diag(R P Rᵀ) − 2 c·(R t) + n c²``.
    """
    return np.asarray(squared_errors_by_group(maps, [moments])[0])


def squared_errors_by_group(maps: Maps, groups: Sequence[Moments]) -> Array:
    """Return ``squared_errors`` of each of G groups of rows, shape (G, B, N)."""
    raw = np.empty((len(groups), *maps.offsets.shape))
    for here in maps.pieces():
        (R, columns), c = maps.residual(here), maps.offsets[here]
        rows = R.reshape(-1, R.shape[2])
        step = max(1, PIECE_WEIGHTS // max(R.size, R.shape[2] ** 2))
        for some in (slice(first, first + step) for first in range(0, len(groups), step)):
            n, t, P = stacked(groups[some], columns)
            RP = (rows @ P).reshape(len(P), *R.shape)
            Rt = (rows @ t.T).T.reshape(RP.shape[:3])
            raw[some, here] = (
                np.einsum("gbnd,bnd->gbn", RP, R) - 2.0 * c * Rt + n[:, None, None] * c**2
            )
    return np.asarray(np.maximum(raw, 0.0, out=raw))


def resolution(maps: Maps, moments: Moments) -> Array:
    """Return how far rounding may move a sum of squared errors, shape (B, N): ``ε (|R| diag(P)^½)²``.

    ``R P Rᵀ`` adds up terms as large as ``|R_i| |P_ij| |R_j|``, each rounded to ε of itself, and
    ``|P_ij| ≤ (P_ii P_jj)^½``. Where large terms cancel (noise far larger than an attribute, as
    white noise on attributes in very different units), that rounding stays.
    """
    size = np.sqrt(np.clip(np.diag(moments.products), 0.0, None))
    parts = [np.abs(R) @ size[columns] for R, columns in map(maps.residual, maps.pieces())]
    return np.asarray(np.finfo(np.float64).eps * np.concatenate(parts) ** 2)


class OnRows(NamedTuple):
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


ByRows = Callable[[NDArray[np.intp]], OnRows]
"""Measures the maps at some places on the rows."""


def audit_linear(
    coalitions: Sequence[Coalition],
    maps: Maps,
    groups: Sequence[Moments],
    K_X: Array,
    law: NoiseLaw | None,
    again: Array | None = None,
    compared: NDArray[np.intp] | None = None,
    why: ErrorBar = "jackknife",
    by_rows: ByRows | None = None,
) -> Errors:
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
        Law of the noise in all copies; without it there is no closed form, and errors come from a
        jackknife over the groups.
    again : ndarray of shape (R, B, N) or None
        For maps that are not fixed, and noise whose law does not tell the spread of errors: mean
        squared errors in other draws.
    compared : ndarray of shape (B,) or None
        Places of the single copies that each coalition is compared with (``least_noise``), for
        ``Errors.paired``.
    why : ErrorBar
        Where the error bars of maps that are not fixed come from when nothing was drawn again.
    by_rows : callable, optional
        Measures maps on the rows where moments do not resolve their errors; without it the error
        bar says how far they do.
    """
    total, scale = Moments.merge(groups), with_total(np.diag(K_X))
    coarse = np.flatnonzero(
        (resolution(maps, total) / total.count > EXACT * np.diag(K_X)).any(axis=1)
    )
    measured = by_rows(coarse) if by_rows is not None and coarse.size else None
    by_law = None
    if law is not None and maps.fixed:
        by_law = _under_law(
            coalitions,
            maps,
            total,
            K_X,
            law,
            compared,
            None if measured is None else (coarse, measured),
        )
        if law.tells_spread:
            return by_law
    if again is not None:
        error, rounding = (
            with_total(squared_errors(maps, total) / total.count),
            with_total(resolution(maps, total) / total.count),
        )
        if measured is not None:
            error[coarse], rounding[coarse] = (
                with_total(measured.sums.sum(axis=0) / total.count),
                with_total(measured.grain),
            )
        rounding = rounded_off(rounding, scale)
        error, others = (
            rounded_off(error, scale, rounding),
            rounded_off(with_total(again), scale, rounding),
        )
        return from_redraws(coalitions, error, others, scale, compared, rounding).under(by_law)
    sums = squared_errors_by_group(maps, groups)
    if measured is not None:
        sums[:, coarse] = measured.sums
    return from_groups(
        coalitions, sums, [group.count for group in groups], np.diag(K_X), compared, bar=why
    ).under(by_law)


def _under_law(
    coalitions: Sequence[Coalition],
    maps: Maps,
    total: Moments,
    K_X: Array,
    law: NoiseLaw,
    compared: NDArray[np.intp] | None,
    on_rows: tuple[NDArray[np.intp], OnRows] | None = None,
) -> Errors:
    """Errors of known maps, with bars in closed form from the law."""
    N = maps.offsets.shape[1]
    scale = with_total(np.diag(K_X))
    # An error below its own resolution is an exact rebuild as far as moments can tell; the error
    # bar says how far that is.
    doubt = with_total(resolution(maps, total) / total.count)
    rounding = rounded_off(doubt, scale)
    error = with_total(squared_errors(maps, total) / total.count)
    least = rounding.copy()
    # an error measured on rows is known to the rounding of the stored copies, and theory is
    # compared to that
    if on_rows is not None:
        places, found = on_rows
        error[places], least[places] = with_total(found.sums.sum(axis=0) / total.count), 0.0
        doubt[places] = with_total(found.grain)
        rounding[places] = rounded_off(doubt[places], scale)
    distortion = rounded_off(error, scale, least)
    members = Members.of(coalitions)
    # The rows judged may be some of the table's only: their own mean and covariance, and maps about
    # that mean.
    maps, judged = maps.about(total.mean[:N]), total.covariance()[:N, :N]
    theory = closed_form(maps, judged, law, total.count, None if on_rows is None else on_rows[0])
    expected = rounded_off(with_total(theory.expected), scale, least)
    variance = (
        np.where(expected > 0, np.maximum(_columns(*theory.variance(), N), 0.0), 0.0) + rounding**2
    )

    def against(best: NDArray[np.intp]) -> Paired:
        alone = np.take_along_axis(distortion, best, axis=0)
        covariance = _covariance_with_best(maps, best, judged, law, total.count)
        error = _ratio_error(
            distortion, alone, variance, np.take_along_axis(variance, best, axis=0), covariance
        )
        error = np.where(alone > EXACT * scale, error, 0.0)
        return Paired(collusion_gain(distortion, alone, scale), error, np.full_like(alone, np.inf))

    best = against(members.best(distortion))
    paired = (
        None
        if compared is None
        else against(np.ascontiguousarray(np.broadcast_to(compared[:, None], distortion.shape)))
    )
    # The terms of an expected error cancel as those of the measured one do: it is known to ε of
    # their size, as is the best copy's.
    places = members.best(expected)
    doubt = doubt + np.take_along_axis(doubt, places, axis=0)
    gain_theory = collusion_gain(
        expected, np.take_along_axis(expected, places, axis=0), scale, doubt
    )
    gain = Figure.symmetric(best.gain, best.std_error, Z_95, gain_theory)
    return Errors(
        Figure.symmetric(distortion, np.sqrt(variance), Z_95, expected), gain, "closed-form", paired
    )


def _columns(each: Array, total: Array, N: int) -> Array:
    """Return variances with that of the *mean* over attributes appended."""
    return np.concatenate([each, total[:, None] / N**2], axis=1)


def _covariance_with_best(
    maps: Maps, best: NDArray[np.intp], K_X: Array, law: NoiseLaw, rows: int
) -> Array:
    """Return the covariance of each coalition's mean squared error with its best single copy's, shape (B, N + 1).

    ``spread`` with A and S of the two maps crossed. Attributes mostly share their best copy, and
    then one crossing serves them all.
    """
    covariance = np.empty(best.shape)
    N = maps.offsets.shape[1]
    by_place: dict[bytes, Array] = {}
    for column in range(N + 1):
        key = best[:, column].tobytes()
        if key not in by_place:
            parts = []
            for here in maps.pieces():
                some, other = maps.at(here), maps.at(best[here, column])
                crossing = ClosedForm(
                    np.empty(0),
                    *crossed(some, other, K_X, law),
                    rows,
                    excess_spread(some, other, law, rows),
                )
                parts.append(_columns(*crossing.variance(), N))
            by_place[key] = np.concatenate(parts)
        covariance[:, column] = by_place[key][:, column]
    return covariance


def _ratio_error(
    error: Array, alone: Array, variance: Array, alone_variance: Array, covariance: Array
) -> Array:
    """Return the standard error of ``error/alone`` by the delta method, 0 where the copy alone is exact.

    ``Var(a/b) ≈ (Var a + r² Var b − 2 r Cov(a, b)) / b²`` with ``r = a/b``.
    """
    ratio = np.divide(error, alone, out=np.zeros_like(error), where=alone > 0)
    apart = variance + ratio**2 * alone_variance
    # Where the covariance takes all but 1e-13 of the variances away, the two errors are one and the
    # same but for rounding.
    numerator = np.where((left := apart - 2.0 * ratio * covariance) > 1e-13 * apart, left, 0.0)
    return np.divide(np.sqrt(numerator), alone, out=np.zeros_like(error), where=alone > 0)
