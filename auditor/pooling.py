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

from auditor.expectation import NoiseGain, Pooling
from auditor.linear import collusion_gain, squared_errors, with_total
from auditor.linear_algebra import chosen_regressions, ranked_regression
from auditor.maps import Coalition, Maps, Members, by_size
from auditor.moments import Moments
from auditor.noise import GaussianNoise, NoiseLaw, attribute_index, makes_useless, one_suffices
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
    noise = noise_gains(coalitions, Moments.merge(groups), law) if isinstance(law, GaussianNoise) else {}
    useless = None if law is None else makes_useless(law)
    degrees, gains, errors = max(1, len(groups) - 1), gain.tolist(), error.tolist()
    return {
        coalition: Pooling(
            None if useless is None else one_suffices(useless, coalition), tuple(gains[place]), tuple(errors[place]), degrees,
            noise.get(coalition),
        )
        for place, coalition in enumerate(coalitions) if len(coalition) > 1
    }  # fmt: skip


def noise_gains(coalitions: Sequence[Coalition], total: Moments, law: GaussianNoise) -> dict[Coalition, NoiseGain]:
    """Return what each coalition of two copies or more could take off its best copy's noise, by the noise that was drawn.

    The auditor has ``Z_i = Y_i − X``. With one shape ``K_0`` for all copies each row holds ``rank K_0`` independent looks at the same M
    levels, so ``Sigma`` is measured as ``tr(K_0⁺ Cov(Z_i, Z_j)) / rank K_0``, whatever the data are. The best combination of copies is
    ``Z_b`` less its regression on the differences ``Z_j − Z_b``, and the share of variance that takes off is their squared multiple
    correlation (li2012, Theorems 1 and 4: it is 0 exactly when nothing is gained).

    Parameters
    ----------
    coalitions : sequence of tuple of int
    total : Moments
        Of ``[X, Y_1 … Y_M]`` over all rows.
    law : GaussianNoise
        As stated; used for the shape, and for which copy is best.
    """
    M, N = law.copies, law.width
    P = total.products.reshape(M + 1, N, M + 1, N)
    S = P[1:, :, 1:] - P[:1, :, 1:] - P[1:, :, :1] + P[:1, :, :1]
    scale = np.sqrt(np.where(np.diag(law.shape) > 0, np.diag(law.shape), 1.0))
    inverse = np.linalg.pinv(law.shape / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    rank = int(np.linalg.matrix_rank(law.shape / np.outer(scale, scale), hermitian=True))
    if rank == 0:
        return {}
    Sigma = np.einsum("injm,nm->ij", S, inverse) / (total.count * rank)
    levels, looks = np.diag(law.level_covariance), total.count * rank
    gains = {}
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 1]):
        shares, regressors = _noise_shares(Sigma, levels, np.array(run) - 1)
        gains.update({c: NoiseGain(s, p, looks) for c, s, p in zip(run, shares.tolist(), regressors.tolist(), strict=True)})
    return gains


def _noise_shares(Sigma: Array, levels: Array, index: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """Return the share of its best copy's noise that each coalition can take off, and by how many differences, shapes (B,).

    ``index``, of shape (B, k), holds each coalition's places in ``Sigma``.
    """
    b = np.take_along_axis(index, levels[index].argmin(axis=1, keepdims=True), axis=1)
    best, own, with_best = Sigma[b, b], np.diag(Sigma)[index], Sigma[index, b]
    # In the law of the differences: a level asked for twice, and the best copy itself, differ by rounding only and are no regressors.
    differs = (own - 2.0 * with_best + best > 1e-12 * own) & (best > 0.0)
    cross = np.where(differs, with_best - best, 0.0)
    D = Sigma[index[:, :, None], index[:, None, :]] - with_best[:, :, None] - with_best[:, None, :] + best[:, :, None]
    W, regressors = ranked_regression(cross[:, None, :], np.where(differs[:, :, None] & differs[:, None, :], D, 0.0))
    explained = np.einsum("bk,bk->b", W[:, 0], cross)
    return np.clip(np.divide(explained, best[:, 0], out=np.zeros_like(explained), where=best[:, 0] > 0.0), 0.0, 1.0), regressors


def _cross_fitted_gain(coalitions: Sequence[Coalition], groups: Sequence[Moments], N: int) -> tuple[Array, Array]:
    """Return gains and their standard errors by coalition and attribute, shapes (B, N).

    The best copy alone is chosen on the training half too: chosen on the half that judges, the luckiest of several equal copies would
    hide a gain of one standard error.
    """
    halves = (groups[0::2], groups[1::2])
    if not all(halves):
        nothing = np.full((len(coalitions), N), np.nan)
        return nothing, nothing
    members = Members.of(coalitions)
    together = np.empty((len(groups), len(coalitions), N))
    alone = np.empty_like(together)
    learning = np.zeros((len(coalitions), N))
    for train, test in ((0, 1), (1, 0)):
        total = Moments.merge(halves[train])
        maps, ranks = _learn(coalitions, total, N)
        best = members.best(with_total(squared_errors(maps, total)))[:, :N]
        inflation = _inflation(total.count, ranks)
        learning += 0.5 * LEARNING * np.clip(ranks[:, None] - ranks[best], 0, None) / total.count**2
        for place, group in enumerate(halves[test]):
            errors = squared_errors(maps, group) / inflation[:, None]
            together[2 * place + test], alone[2 * place + test] = errors, np.take_along_axis(errors, best, axis=0)
    scale = np.diag(Moments.merge(groups).products)[:N]
    gain = collusion_gain(together.sum(axis=0), alone.sum(axis=0), scale)
    left_out = collusion_gain(together.sum(axis=0) - together, alone.sum(axis=0) - alone, scale)
    return gain, np.sqrt(jackknife_error(left_out) ** 2 + learning * (1.0 - gain) ** 2)


LEARNING = 3.0
"""Variance, in units of (p − q)/m², that the jackknife misses because it holds the maps: q coefficients for the best copy alone.

With the noise of learning p − q coefficients that are truly 0 from m rows, each half's excess error varies by 2(p−q)/m², half of that
over both; and the term ``e_testᵀ Y_test δW`` of either half is the same bilinear form in the two halves' noise, so its 4(p−q)/m² does
not average out, of which a jackknife that takes the halves for independent sees 2. So 1 + 4 − 2. It is all there is where nothing is
gained, and negligible beside the jackknife's own 1/m where something is.
"""


def _inflation(m: int, ranks: NDArray[np.intp]) -> Array:
    """Return by what factor learning p coefficients and a mean from m rows inflates the error, NaN where m is too few, shape (B,)."""
    spare = m - ranks - 2.0
    return np.where(spare > 0, (m + 1.0) * (m - 2.0) / (m * np.where(spare > 0, spare, 1.0)), np.nan)


def _learn(coalitions: Sequence[Coalition], train: Moments, N: int) -> tuple[Maps, NDArray[np.intp]]:
    """Return least-squares maps from copies to originals, and how many coefficients each learnt, shape (B,)."""
    K, mean = train.covariance(), train.mean
    M = mean.size // N - 1
    weights, offsets = np.zeros((len(coalitions), N, M * N)), np.zeros((len(coalitions), N))
    ranks = np.empty(len(coalitions), dtype=np.intp)
    for start, run in by_size(coalitions):
        here = np.arange(start, start + len(run))
        index = np.array([attribute_index(coalition, N) for coalition in run])
        W, ranks[here] = chosen_regressions(K[:N, N:], K[N:, N:], index)
        weights[here[:, None, None], np.arange(N)[:, None], index[:, None, :]] = W
        offsets[here] = mean[:N] - np.einsum("bnk,bk->bn", W, mean[N + index])
    return Maps(weights, offsets, fixed=False), ranks
