"""What pooling buys, judged without trusting the scheme: the best linear attack learnt from the originals themselves.

An attack that believes a scheme's word uses the law it states; a scheme that draws otherwise would hide its leak from that attack.
The auditor has the originals, so it can learn the best linear map from copies to originals by least squares, on one half of the
row groups, and judge it on the other half, both ways round. No linear attacker without the originals does better.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W`` | ``Cov(X, Y_C) Cov(Y_C)⁺`` over the training half | (N, kN) |
| ``p`` | coefficients per attribute: the rank of ``Cov(Y_C)``, at most ``kN`` | scalar |
| ``D_C`` | squared error on the other half, less the factor ``(m+1)(m−2) / (m(m−p−2))`` that learning from m rows costs | (N,) |
| gain | ``1 − D_C / min_i D_i`` by attribute | (N,) |

The factor is exact for Gaussian rows and small (``p/m``) for any; without it a wide coalition would be excused for overfitting. The rank,
and not ``kN``: a repeated level or a total beside its parts adds no coefficient to learn, and crediting one would read as a gain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.expectation import Pooling
from auditor.linear import Coalition, Maps, best_single, collusion_gain, squared_errors, with_total
from auditor.linear_algebra import ranked_regression
from auditor.moments import Moments
from auditor.noise import NoiseLaw, attribute_index, earliest_is_sufficient
from auditor.statistics import jackknife_error

Array = NDArray[np.float64]


def pooling_evidence(
    coalitions: Sequence[Coalition], groups: Sequence[Moments], width: int, law: NoiseLaw | None
) -> dict[Coalition, Pooling]:
    """Return the evidence on every coalition of two copies or more.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Every member of a coalition must be there as a coalition of its own.
    groups : sequence of Moments
        Of ``[X, Y_1 … Y_M]``, by row group.
    width : int
        ``N``.
    law : NoiseLaw or None
        The law that the scheme states for all copies.

    Returns
    -------
    dict
        ``Pooling`` by coalition; gains are NaN where there are too few rows to learn from.
    """
    if all(len(coalition) == 1 for coalition in coalitions):
        return {}
    gain, error = _cross_fitted_gain(coalitions, groups, width)
    evidence = {}
    for place, coalition in enumerate(coalitions):
        if len(coalition) == 1:
            continue
        sufficient = None if law is None else earliest_is_sufficient(law, coalition)
        evidence[coalition] = Pooling(sufficient, tuple(gain[place]), tuple(error[place]), max(1, len(groups) - 1))
    return evidence


def _cross_fitted_gain(coalitions: Sequence[Coalition], groups: Sequence[Moments], N: int) -> tuple[Array, Array]:
    """Return gains and their jackknife errors by coalition and attribute, shapes (B, N)."""
    halves = (groups[0::2], groups[1::2])
    if not all(halves):
        nothing = np.full((len(coalitions), N), np.nan)
        return nothing, nothing
    sums = np.empty((len(groups), len(coalitions), N))
    for train, test in ((0, 1), (1, 0)):
        maps, inflation = _learn(coalitions, Moments.merge(halves[train]), N)
        for place, group in enumerate(halves[test]):
            sums[2 * place + test] = squared_errors(maps, group) / inflation[:, None]
    singles = {coalition[0]: place for place, coalition in enumerate(coalitions) if len(coalition) == 1}
    distortion = with_total(sums.sum(axis=0))
    best = best_single(coalitions, singles, distortion)[:, :N]
    left_out = sums.sum(axis=0) - sums
    total = Moments.merge(groups)
    scale = np.diag(total.products)[:N]
    alone = np.take_along_axis(sums.sum(axis=0), best, axis=0)
    left_alone = np.take_along_axis(left_out, best[None], axis=1)
    gain = collusion_gain(sums.sum(axis=0), alone, scale)
    return gain, jackknife_error(collusion_gain(left_out, left_alone, scale))


def _learn(coalitions: Sequence[Coalition], train: Moments, N: int) -> tuple[Maps, Array]:
    """Return least-squares maps from copies to originals, and by what factor learning them inflates the error, shape (B,)."""
    K, mean, m = train.covariance(), train.mean, train.count
    M = mean.size // N - 1
    weights, offsets = np.zeros((len(coalitions), N, M * N)), np.zeros((len(coalitions), N))
    inflation = np.full(len(coalitions), np.nan)
    for place, coalition in enumerate(coalitions):
        index = attribute_index(coalition, N)
        if m <= index.size + 2:
            continue
        W, p = ranked_regression(K[:N, N + index], K[np.ix_(N + index, N + index)])
        weights[place][:, index], offsets[place] = W, mean[:N] - W @ mean[N + index]
        inflation[place] = (m + 1) * (m - 2) / (m * (m - p - 2))
    return Maps(weights, offsets, fixed=False), inflation
