"""Errors of linear attacks from second moments alone.

| symbol | meaning | shape |
| --- | --- | --- |
| ``R, c`` | residual weights and offsets of the maps: ``auditor.audit.numeric.linear_maps`` | (B, N, d), (B, N) |
| ``P, t`` | moments of ``v`` over the rows: ``auditor.numerics.moments`` | (d, d), (d,) |

The measured error is ``Σ (R v − c)² = diag(R P Rᵀ) − 2 c·(R t) + n c²``. Under a law, closed forms
add the theory, and the error bar of maps that do not depend on the noise. Estimated maps are fitted
and measured again in other draws (``auditor.audit.numeric.redraws``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.audit.numeric.error_bars import (
    EXACT,
    Errors,
    Figure,
    Members,
    Paired,
    collusion_gain,
    from_groups,
    from_redraws,
    rounded_off,
    with_total,
)
from auditor.audit.numeric.linear_maps import PIECE_WEIGHTS, Maps, closed_form, crossed
from auditor.numerics.moments import Moments, stacked
from auditor.numerics.statistics import Z_95
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition, Indices


def squared_errors(maps: Maps, moments: Moments) -> Array:
    """Return the sum over rows of each attribute's squared error, shape (B, N)."""
    return squared_errors_by_group(maps, [moments])[0]


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
            squares = np.einsum("gbnd,bnd->gbn", RP, R)
            raw[some, here] = squares - 2.0 * c * Rt + n[:, None, None] * c**2
    return np.maximum(raw, 0.0, out=raw)


def resolution(maps: Maps, moments: Moments) -> Array:
    """Return the rounding error of sums of squared errors, ``ε (|R| diag(P)^½)²``, (B, N).

    ``R P Rᵀ`` sums terms ``|R_i| |P_ij| |R_j|``, each rounded to ε of itself, with ``|P_ij| ≤ (P_ii
    P_jj)^½``. The rounding remains where large terms cancel, as for noise far larger than an
    attribute.
    """
    size = np.sqrt(np.clip(np.diag(moments.products), 0.0, None))
    parts = [np.abs(R) @ size[columns] for R, columns in map(maps.residual, maps.pieces())]
    return np.finfo(np.float64).eps * np.concatenate(parts) ** 2


class OnRows(NamedTuple):
    """Errors measured on rows, for maps whose errors moments do not resolve (``resolution``).

    Attributes
    ----------
    sums : ndarray of shape (G, b, N)
        Squared errors, summed by row group.
    grain : ndarray of shape (b, N)
        Mean squared error from rounding of the stored copies.
    """

    sums: Array
    grain: Array


class Measured(NamedTuple):
    """Mean squared errors, their rounding errors, and the largest error that counts as 0.

    Shapes (B, N + 1). ``places`` are the maps that were measured on rows.
    """

    error: Array
    doubt: Array
    least: Array
    places: Indices


ByRows = Callable[[Indices], OnRows]
"""Measures the maps at some places on the rows."""


def audit_linear(
    coalitions: Sequence[Coalition],
    maps: Maps,
    groups: Sequence[Moments],
    K_X: Array,
    law: NoiseLaw | None,
    again: Array | None = None,
    compared: Indices | None = None,
    why: ErrorBar = "jackknife",
    by_rows: ByRows | None = None,
) -> Errors:
    """Return every coalition's error and gain, with error bars and theory.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Each member must also be a coalition of its own.
    maps : Maps
        One map per coalition.
    groups : sequence of Moments
        Of disjoint row groups, together all judged rows.
    K_X : ndarray of shape (N, N)
        The table's covariance, divisor n.
    law : NoiseLaw or None
        Of the noise in all copies.
    again : ndarray of shape (R, B, N) or None
        Mean squared errors in other draws, for estimated maps, and for laws that do not determine
        the spread of errors.
    compared : ndarray of shape (B,) or None
        Places of single copies (``least_noise``), for ``Errors.paired``.
    why : ErrorBar
        Error bar without law and redraws.
    by_rows : callable, optional
        Measures maps on the rows where moments do not resolve their errors. Without it the error
        bar includes the rounding.
    """
    total, scale = Moments.merge(groups), with_total(np.diag(K_X))
    rounding = resolution(maps, total) / total.count
    places = np.flatnonzero((rounding > EXACT * np.diag(K_X)).any(axis=1))
    on_rows = by_rows(places) if by_rows is not None and places.size else None
    error, doubt = with_total(squared_errors(maps, total) / total.count), with_total(rounding)
    least = rounded_off(doubt, scale)
    found = Measured(error, doubt, least, places[:0])
    if on_rows is not None:
        error[places] = with_total(on_rows.sums.sum(axis=0) / total.count)
        doubt[places], least[places] = with_total(on_rows.grain), 0.0
        found = found._replace(places=places)
    by_law = None
    if law is not None and maps.fixed:
        by_law = _under_law(coalitions, maps, total, K_X, law, compared, found)
        if law.tells_spread:
            return by_law
    if again is not None:
        rounding = rounded_off(doubt, scale)
        error, others = (rounded_off(each, scale, rounding) for each in (error, with_total(again)))
        return from_redraws(coalitions, error, others, scale, compared, rounding).under(by_law)
    sums = squared_errors_by_group(maps, groups)
    if on_rows is not None:
        sums[:, places] = on_rows.sums
    counts = [group.count for group in groups]
    return from_groups(coalitions, sums, counts, np.diag(K_X), compared, why).under(by_law)


def _under_law(
    coalitions: Sequence[Coalition],
    maps: Maps,
    total: Moments,
    K_X: Array,
    law: NoiseLaw,
    compared: Indices | None,
    found: Measured,
) -> Errors:
    N, scale = maps.offsets.shape[1], with_total(np.diag(K_X))
    distortion, members = rounded_off(found.error, scale, found.least), Members.of(coalitions)
    # the judged rows may be part of the table: their own mean and covariance, and maps about it
    maps, judged = maps.about(total.mean[:N]), total.covariance()[:N, :N]
    theory = closed_form(maps, judged, law, total.count, found.places)
    expected = rounded_off(with_total(theory.expected), scale, found.least)
    variance = np.where(expected > 0, np.maximum(theory.variance(), 0.0), 0.0)
    variance += rounded_off(found.doubt, scale) ** 2

    def against(best: Indices) -> Paired:
        alone, alone_variance = (
            np.take_along_axis(each, best, axis=0) for each in (distortion, variance)
        )
        covariance = _covariance_with_best(maps, best, judged, law, total.count)
        error = _ratio_error(distortion, alone, variance, alone_variance, covariance)
        error = np.where(alone > EXACT * scale, error, 0.0)
        return Paired(collusion_gain(distortion, alone, scale), error, np.full_like(alone, np.inf))

    gain = against(members.best(distortion))
    places, doubt = members.best(expected), found.doubt
    gain_theory = collusion_gain(
        expected,
        np.take_along_axis(expected, places, axis=0),
        scale,
        doubt + np.take_along_axis(doubt, places, axis=0),
    )
    errors = Errors(
        Figure.symmetric(distortion, np.sqrt(variance), Z_95, expected),
        Figure.symmetric(gain.gain, gain.std_error, Z_95, gain_theory),
        "closed-form",
    )
    if compared is None:
        return errors
    columns = np.ascontiguousarray(np.broadcast_to(compared[:, None], distortion.shape))
    return replace(errors, paired=against(columns))


def _covariance_with_best(maps: Maps, best: Indices, K_X: Array, law: NoiseLaw, rows: int) -> Array:
    """Return the covariance of each mean squared error with its best copy's, (B, N + 1).

    Attributes usually share their best copy, so one crossing serves them all.
    """
    covariance, by_place = np.empty(best.shape), dict[bytes, Array]()
    for column in range(best.shape[1]):
        key = best[:, column].tobytes()
        if key not in by_place:
            by_place[key] = np.concatenate(
                [
                    crossed(maps.at(here), maps.at(best[here, column]), K_X, law, rows).variance()
                    for here in maps.pieces()
                ]
            )
        covariance[:, column] = by_place[key][:, column]
    return covariance


def _ratio_error(
    error: Array, alone: Array, variance: Array, alone_variance: Array, covariance: Array
) -> Array:
    """Return the standard error of ``error/alone`` by the delta method; 0 if alone is 0.

    ``Var(a/b) ≈ (Var a + r² Var b − 2 r Cov(a, b)) / b²`` with ``r = a/b``.
    """
    ratio = np.divide(error, alone, out=np.zeros_like(error), where=alone > 0)
    apart = variance + ratio**2 * alone_variance
    left = apart - 2.0 * ratio * covariance
    numerator = np.where(left > 1e-13 * apart, left, 0.0)  # else equal errors, up to rounding
    return np.divide(np.sqrt(numerator), alone, out=np.zeros_like(error), where=alone > 0)
