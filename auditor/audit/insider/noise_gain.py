"""Share of its best copy's noise that a coalition removes, as drawn.

The auditor has ``Z_i = Y_i − X``. With one shape ``K_0`` for all copies, ``Sigma`` is measured as
``tr(K_0⁺ Cov(Z_i, Z_j)) / rank K_0`` for any data. The best unbiased combination of copies has the
noise ``Z_b`` less its regression on the differences ``Z_j − Z_b``. The share of variance removed is
their squared multiple correlation (li2012, Theorems 1 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.audit.numeric.linear_errors import by_size
from auditor.base.types import Array, Coalition, Indices
from auditor.numerics.linear_algebra import (
    in_own_units,
    of_differences,
    pseudo_inverse,
    ranked_regression,
)
from auditor.numerics.moments import Moments
from auditor.results.evidence import NoiseGain
from auditor.schemes.base.noise_law import KroneckerNoise

ROUNDING = 1e-12
"""Share of a copy's variance below which a difference is rounding."""
RESOLVED = 1e-11
"""Least share of its copies' variance that a combination's moments resolve."""


def noise_gains(
    coalitions: Sequence[Coalition], total: Moments, law: KroneckerNoise
) -> dict[Coalition, NoiseGain]:
    """Share for each coalition of two copies or more.

    Parameters
    ----------
    total : Moments
        Of ``[X, Y_1 … Y_M]`` over all rows.
    law : KroneckerNoise
        As stated; for the shape and the best copy.
    """
    M, N = law.copies, law.width
    P = total.products.reshape(M + 1, N, M + 1, N)
    S = P[1:, :, 1:] - P[:1, :, 1:] - P[1:, :, :1] + P[:1, :, :1]
    rank = int(np.linalg.matrix_rank(in_own_units(law.shape)[0], hermitian=True))
    if rank == 0:
        return {}
    Sigma = np.einsum("injm,nm->ij", S, pseudo_inverse(law.shape)) / (total.count * rank)
    levels, observations = np.diag(law.level_covariance), total.count * rank
    gains = {}
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 1]):
        shares, regressors = _noise_shares(Sigma, levels, np.array(run) - 1)
        for c, share, p in zip(run, shares.tolist(), regressors.tolist(), strict=True):
            gains[c] = NoiseGain(share, p, observations)
    return gains


def _noise_shares(Sigma: Array, levels: Array, index: Indices) -> tuple[Array, Indices]:
    b = np.take_along_axis(index, levels[index].argmin(axis=1, keepdims=True), axis=1)
    best, D = Sigma[b, b], of_differences(Sigma, index, np.broadcast_to(b, index.shape))
    # No regressors: copies that differ from the best by rounding only.
    own = np.diag(Sigma)[index]
    differs = (np.einsum("bkk->bk", D) > ROUNDING * own) & (best > 0.0)
    cross = np.where(differs, Sigma[b, index] - best, 0.0)
    both = differs[:, :, None] & differs[:, None, :]
    W, count = ranked_regression(cross[:, None, :], np.where(both, D, 0.0))
    explained, best = np.einsum("bk,bk->b", W[:, 0], cross), best[:, 0]
    share = np.divide(explained, best, out=np.zeros_like(explained), where=best > 0.0)
    return np.clip(share, 0.0, 1.0), count


def unresolved(coalitions: Sequence[Coalition], total: Moments, N: int) -> set[Coalition]:
    """Coalitions with a combination of copies that second moments do not resolve.

    With ``Y_1 = X + Z_1``, ``Y_2 = Y_1 + Z_2`` and ``Y_3 = X + (1+g) Z_1 + ½ Z_2`` the combination
    ``Y_3 − ½ Y_1 − ½ Y_2 = g Z_1`` reveals the record, with ``g²`` of their variance. Attributes
    are examined one by one.

    Parameters
    ----------
    total : Moments
        Of ``[X, Y_1 … Y_M]``.
    """
    K, lost = total.covariance()[N:, N:], set[Coalition]()
    own = np.where(np.diag(K) > 0, np.diag(K), 1.0)
    R = K / np.sqrt(np.outer(own, own))
    near = (1.0 - R) < RESOLVED
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 2]):
        index, least = np.array(run) - 1, np.ones(len(run))
        for attribute in range(N):
            each, alike = R[attribute::N, attribute::N], near[attribute::N, attribute::N]
            C = each[index[:, :, None], index[:, None, :]]
            # the first of nearly equal copies
            again = np.tril(alike[index[:, :, None], index[:, None, :]], -1).any(axis=2)
            C = np.where(again[:, :, None] | again[:, None, :], np.eye(C.shape[1]), C)
            least = np.minimum(least, np.linalg.eigvalsh(C)[:, 0])
        lost.update(c for c, share in zip(run, least.tolist(), strict=True) if share < RESOLVED)
    return lost
