"""The gain of the best linear attack, estimated from the originals on one half of the row groups and judged on the other, both ways.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W`` | ``Cov(X, Y_C) Cov(Y_C)⁺`` over the training half | (N, kN) |
| ``p, q`` | coefficients per attribute: the ranks of ``Cov(Y_C)``, at most ``kN``, and of the best copy's own | scalars |
| ``s²`` | squared error left on the training half of m rows, over ``m − p − 1`` | (N,) |
| ``h_t`` | leverage of a row of the other half in the best copy alone: ``1/m + (y_t−ȳ)ᵀ Cov(Y_b)⁺ (y_t−ȳ)/m`` | scalar |
| ``D_C`` | squared error on the other half, less ``s² (p−q)/(m−p−2) · Σ_t (1 + h_t)``, what estimating ``p − q`` more costs | (N,) |
| gain | ``1 − D_C / D_b`` by attribute, b the best copy alone | (N,) |

Without that cost a wide coalition's overfitting would hide its gain. The cost is exact for *any*
table where pooling buys nothing: all that the other copies add to the best is then noise ``Z_j −
Z_b``, Gaussian and independent of the data and of ``Y_b``. Given those two, the coefficients
estimated beyond the best copy's cost just that on average, and the expected gain is 0 whatever the
table's tails and however few its rows. It is exact for Gaussian rows whatever pooling buys. (The
factor ``(m−q−2)/(m−p−2)`` of Gaussian rows in its place shows as a gain of 18 % on 60 rows of a
skewed table.) Ranks, and not ``kN``: a repeated level or a total beside its parts adds no
coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.error_bars import EXACT, Members, collusion_gain, least_noise, with_total
from auditor.audit.numeric.linear_errors import squared_errors, squared_errors_by_group
from auditor.audit.numeric.linear_maps import Maps, by_size
from auditor.audit.pooling.differences import regressors
from auditor.numerics.linear_algebra import Regressors, pseudo_inverse
from auditor.numerics.moments import Moments, stacked
from auditor.numerics.statistics import jackknife_error
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition


def cross_fitted_gain(
    coalitions: Sequence[Coalition],
    groups: Sequence[Moments],
    N: int,
    law: NoiseLaw | None,
    near: NDArray[np.intp] | None = None,
) -> tuple[Array, Array]:
    """Return gains and their standard errors by coalition and attribute, shapes (B, N); NaN where there are too few rows to estimate from.

    The best copy alone is chosen on the training half too: chosen on the half that judges, the
    luckiest of several equal copies would hide a gain of one standard error. In few rows that
    choice is nearly random between levels that are near, and a better copy that was not chosen
    would show as a gain of pooling: where a law says which copy is best, the lesser of the gains
    over either is returned. With ``near`` the groups hold differences as well
    (``auditor.audit.pooling.differences``).
    """
    halves = (groups[0::2], groups[1::2])
    if not all(halves):
        nothing = np.full((len(coalitions), N), np.nan)
        return nothing, nothing
    total = Moments.merge(groups)
    scale = np.diag(total.products)[:N]
    fits = [_Fit.of(coalitions, Moments.merge(half), N, near) for half in halves]
    judged = [_Judged.of(fit, other) for fit, other in zip(fits, reversed(halves), strict=True)]
    gain, error = _gain_over([fit.best for fit in fits], judged, scale)
    if law is not None:
        quiet = least_noise(coalitions, law, total.covariance()[:N, :N])
        by_law = np.ascontiguousarray(np.broadcast_to(quiet[:, None], gain.shape))
        other, other_error = _gain_over([by_law, by_law], judged, scale)
        lesser = other < gain
        gain, error = np.where(lesser, other, gain), np.where(lesser, other_error, error)
    return gain, error


def _gain_over(
    singles: Sequence[NDArray[np.intp]], judged: Sequence[_Judged], scale: Array
) -> tuple[Array, Array]:
    """Return gains over chosen single copies and their standard errors, shapes (B, N).

    ``singles`` holds for either half the places of the single copies that its fit is compared with,
    shape (B, N).
    """
    count, (B, N) = sum(len(half.errors) for half in judged), singles[0].shape
    together, alone, missed, crossing = (
        np.empty((count, B, N)),
        np.empty((count, B, N)),
        np.zeros((B, N)),
        2.0 * np.ones((B, N)),
    )
    for train, (half, best) in enumerate(zip(judged, singles, strict=True)):
        here = slice(1 - train, None, 2)  # the groups of the other half, among all
        cost = half.fit.cost(best, half.reach)
        np.subtract(half.errors, cost, out=together[here])
        alone[here] = np.take_along_axis(half.errors, best[None], axis=1)
        of_cost, bilinear = half.fit.spread(best, cost.sum(axis=0), alone[here].sum(axis=0))
        missed += of_cost
        crossing *= np.sqrt(bilinear)
    own = alone.sum(axis=0)
    gain = collusion_gain(together.sum(axis=0), own, scale)
    left_out = collusion_gain(together.sum(axis=0) - together, own - alone, scale)
    learning = np.divide(missed + crossing, own**2, out=np.zeros((B, N)), where=own > EXACT * scale)
    return gain, np.sqrt(jackknife_error(left_out) ** 2 + learning)


@dataclass(frozen=True)
class _Fit:
    """The least-squares maps of all coalitions from one half of the rows, and what estimating them costs on other rows.

    Attributes
    ----------
    maps : Maps
    ranks : ndarray of shape (B,)
        Coefficients of each map, ``p``.
    left : ndarray of shape (B, N)
        ``s²``, the mean square that each map leaves of the half, its coefficients allowed for; NaN
        where ``m ≤ p + 2``.
    best : ndarray of shape (B, N)
        Place of each coalition's best copy alone, in this half.
    designs : dict
        By the place of a single copy, ``Cov(Y_b)⁺`` of the half, shape (N, N), and its place among
        the columns.
    mean : ndarray of shape (d,)
        Of the half.
    rows : int
        ``m``.
    """

    maps: Maps
    ranks: NDArray[np.intp]
    left: Array = field(repr=False)
    best: NDArray[np.intp] = field(repr=False)
    designs: dict[int, tuple[Array, slice]] = field(repr=False)
    mean: Array = field(repr=False)
    rows: int

    @classmethod
    def of(
        cls,
        coalitions: Sequence[Coalition],
        half: Moments,
        N: int,
        near: NDArray[np.intp] | None = None,
    ) -> _Fit:
        """Fit to the moments of half the rows."""
        maps, ranks = _least_squares(coalitions, half, N, near)
        sums = squared_errors(maps, half)
        spare = (half.count - ranks - 1.0)[:, None]
        left = np.where(spare > 1, sums / np.where(spare > 1, spare, 1.0), np.nan)
        singles = {
            coalition[0]: place for place, coalition in enumerate(coalitions) if len(coalition) == 1
        }
        best = Members.of(coalitions).best(with_total(sums))[:, :N]
        K = half.covariance()
        columns = {place: slice(copy * N, (copy + 1) * N) for copy, place in singles.items()}
        designs = {place: (pseudo_inverse(K[here, here]), here) for place, here in columns.items()}
        return cls(maps, ranks, left, best, designs, half.mean, half.count)

    def more(self, best: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return how many coefficients each map has beyond those of the single copy at ``best``, ``p − q``, shape (B, N)."""
        return np.asarray(np.clip(self.ranks[:, None] - self.ranks[best], 0, None), dtype=np.intp)

    def spread(self, best: NDArray[np.intp], cost: Array, alone: Array) -> tuple[Array, Array]:
        """Return variances of the squared error over a half of other rows that a jackknife with fixed maps misses, shapes (B, N).

        With ``δ`` the p − q estimated coefficients that are truly 0, ``|δ|²`` is an F ratio of ``p
        − q`` and ``m − p`` degrees: what it adds has the variance ``2(m−q−2) / ((p−q)(m−p−4))``
        times the square of its mean, ``cost``. And ``2 e_testᵀ Y_test δ`` has the variance ``4 s²
        (p−q)/(m−p−2)`` times ``alone``, the error of the best copy over the half. Both halves share
        one bilinear form in their noise, which does not average out, and a jackknife that takes the
        halves for independent misses twice their product. NaN where ``m ≤ p + 4``: the first
        variance is infinite there.
        """
        more, spare = self.more(best), (self.rows - self.ranks - 2.0)[:, None]
        spare = np.where(spare > 2, spare, np.nan)
        ratio = 2.0 * (spare + more) / (np.maximum(more, 1) * (spare - 2.0))
        estimated = more > 0
        return np.where(estimated, cost**2 * ratio, 0.0), np.where(
            estimated, 4.0 * self.left * alone * more / spare, 0.0
        )

    def reach(self, groups: Sequence[Moments]) -> Array:
        """Return ``Σ_t (1 + h_t)`` over each of G groups of other rows, at the places of single copies, shape (G, B); 0 elsewhere."""
        found = np.zeros((len(groups), len(self.ranks)))
        for place, (inverse, here) in self.designs.items():
            # Σ_t (y_t − ȳ)ᵀ Cov(Y)⁺ (y_t − ȳ) about the training half's mean, from the other half's
            # moments about the table's
            n, t, P = stacked(groups, here)
            shift = inverse @ self.mean[here]
            away = (
                np.einsum("ij,gij->g", inverse, P)
                - 2.0 * (t @ shift)
                + n * (shift @ self.mean[here])
            )
            found[:, place] = n + (n + away) / self.rows
        return found

    def cost(self, best: NDArray[np.intp], reach: Array) -> Array:
        """Return what estimating ``p − q`` coefficients more adds to the squared error over groups of other rows, shape (G, B, N)."""
        spare = np.where(np.isfinite(self.left), (self.rows - self.ranks - 2.0)[:, None], np.nan)
        return np.asarray(self.left * self.more(best) / spare * reach[:, best])


class _Judged(NamedTuple):
    """A fit, and what its maps leave of the rows of the other half: squared errors by group, shape (G, B, N), and ``_Fit.reach``."""

    fit: _Fit
    errors: Array
    reach: Array

    @classmethod
    def of(cls, fit: _Fit, groups: Sequence[Moments]) -> _Judged:
        """Judge a fit by the moments of groups of other rows."""
        return cls(fit, squared_errors_by_group(fit.maps, groups), fit.reach(groups))


def _least_squares(
    coalitions: Sequence[Coalition], train: Moments, N: int, near: NDArray[np.intp] | None
) -> tuple[Maps, NDArray[np.intp]]:
    """Return least-squares maps from copies to originals, and how many coefficients each has, shape (B,)."""
    K, mean = train.covariance(), train.mean
    M, copies = mean.size // N - 1, Regressors(K[:N, N:], K[N:, N:])
    weights = np.zeros((len(coalitions), N, M * N))
    ranks = np.empty(len(coalitions), dtype=np.intp)
    for start, run in by_size(coalitions):
        here = np.arange(start, start + len(run))
        added, off = regressors(np.array(run) - 1, near)
        index = _columns(added, N)
        less = None if off is None else _columns(off, N)
        W, ranks[here] = copies.chosen(index, less)
        weights[here[:, None, None], np.arange(N)[:, None], index[:, None, :]] = W
        if less is not None:
            np.subtract.at(
                weights, (here[:, None, None], np.arange(N)[:, None], less[:, None, :]), W
            )
    offsets = mean[:N] - weights @ mean[N:]
    return Maps(weights, offsets, fixed=False), ranks


def _columns(places: NDArray[np.intp], N: int) -> NDArray[np.intp]:
    """Return the columns of blocks of N, shape (B, kN)."""
    return (places[:, :, None] * N + np.arange(N)).reshape(len(places), -1)
