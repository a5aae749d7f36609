"""What pooling buys, judged without trusting the scheme: the best linear attack, estimated from the originals themselves.

An attack that uses the law a scheme states is blind to a leak of a scheme that draws otherwise. The
auditor has the originals, so it can estimate the best linear map from copies to originals by least
squares on one half of the row groups and judge it on the other half, both ways round. No linear
attacker without the originals does better.

The gain itself is found by ``auditor.audit.pooling.cross_fitting``; here it is put beside what the
law and the noise that was drawn say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.linear_maps import by_size
from auditor.audit.pooling.cross_fitting import cross_fitted_gain
from auditor.audit.pooling.differences import unresolved
from auditor.numerics.linear_algebra import (
    EPS,
    in_own_units,
    of_differences,
    pseudo_inverse,
    ranked_regression,
)
from auditor.numerics.moments import Moments
from auditor.results.evidence import InsiderGain, NoiseGain, Pooling
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, makes_useless, one_suffices
from auditor.types import Array, Coalition


def pooling_evidence(
    coalitions: Sequence[Coalition],
    groups: Sequence[Moments],
    width: int,
    law: NoiseLaw | None,
    near: NDArray[np.intp] | None = None,
    insider: Mapping[Coalition, InsiderGain] = MappingProxyType({}),
    proved: bool = True,
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
    near : ndarray of shape (M,), optional
        Which copies are near which; the groups then hold their differences as well
        (``auditor.audit.pooling.differences``).
    insider : mapping
        Gains of the insider learner (``auditor.audit.insider.gain``), by coalition.
    proved : bool
        Whether the scheme that states the law also drew the copies.

    Returns
    -------
    dict
        ``Pooling`` by coalition; gains are NaN where there are too few rows to estimate a map from.
    """
    if all(len(coalition) == 1 for coalition in coalitions):
        return {}
    gain, error = cross_fitted_gain(coalitions, groups, width, law, near)
    noise = (
        noise_gains(coalitions, Moments.merge(groups), law, near)
        if isinstance(law, KroneckerNoise)
        else {}
    )
    useless = None if law is None else makes_useless(law)
    lost = unresolved(coalitions, Moments.merge(groups), width, near)
    degrees, gains, errors = max(1, len(groups) - 1), gain.tolist(), error.tolist()
    return {
        coalition: Pooling(
            None if useless is None else one_suffices(useless, coalition),
            tuple(gains[place]),
            tuple(errors[place]),
            degrees,
            noise.get(coalition),
            unresolved=coalition in lost,
            insider=insider.get(coalition),
            proved=proved,
        )
        for place, coalition in enumerate(coalitions)
        if len(coalition) > 1
    }


def noise_gains(
    coalitions: Sequence[Coalition],
    total: Moments,
    law: KroneckerNoise,
    near: NDArray[np.intp] | None = None,
) -> dict[Coalition, NoiseGain]:
    """Return how much of its best copy's noise each coalition of two copies or more could remove, measured on the noise that was drawn.

    The auditor has ``Z_i = Y_i − X``. With one shape ``K_0`` for all copies each row holds ``rank
    K_0`` independent observations of the same M levels, so ``Sigma`` is measured as ``tr(K_0⁺
    Cov(Z_i, Z_j)) / rank K_0``, whatever the data are. The best unbiased combination of copies has
    the noise ``Z_b`` less its regression on the differences ``Z_j − Z_b``, and the share of
    variance that this removes is their squared multiple correlation (li2012, Theorems 1 and 4: it
    is 0 exactly when nothing is gained).

    Parameters
    ----------
    coalitions : sequence of tuple of int
    total : Moments
        Of ``[X, Y_1 … Y_M]`` over all rows.
    law : KroneckerNoise
        As stated; used for the shape, and for which copy is best.
    near : ndarray of shape (M,), optional
        As for ``pooling_evidence``.
    """
    M, N = law.copies, law.width
    parts = M if near is None else 2 * M
    P = total.products.reshape(parts + 1, N, parts + 1, N)
    # Cov(Y_i − X, Y_j − X) from the joint moments P; a difference of two copies holds no X, so
    # nothing is taken off it.
    holds = (np.arange(parts) < M)[:, None, None, None]
    other = np.moveaxis(holds, 0, 2)
    S = P[1:, :, 1:] - holds * P[:1, :, 1:] - other * P[1:, :, :1] + holds * other * P[:1, :, :1]
    rank = int(np.linalg.matrix_rank(in_own_units(law.shape)[0], hermitian=True))
    if rank == 0:
        return {}
    Sigma = np.einsum("injm,nm->ij", S, pseudo_inverse(law.shape)) / (total.count * rank)
    levels, observations = np.diag(law.level_covariance), total.count * rank
    gains = {}
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 1]):
        shares, regressors = _noise_shares(Sigma, levels, np.array(run) - 1, near)
        gains.update(
            {
                c: NoiseGain(s, p, observations)
                for c, s, p in zip(run, shares.tolist(), regressors.tolist(), strict=True)
            }
        )
    return gains


def _noise_shares(
    Sigma: Array, levels: Array, index: NDArray[np.intp], near: NDArray[np.intp] | None
) -> tuple[Array, NDArray[np.intp]]:
    """Return the share of its best copy's noise that each coalition can take off, and by how many differences, shapes (B,).

    ``index``, of shape (B, k), holds each coalition's places in ``Sigma``.
    """
    b = np.take_along_axis(index, levels[index].argmin(axis=1, keepdims=True), axis=1)
    best, own = Sigma[b, b], np.diag(Sigma)[index]
    added, off, least = index, np.broadcast_to(b, index.shape), 1e-12 * own
    # a difference taken row by row is known to the last bit of either copy; from moments, to ε of
    # their variance
    if near is not None:
        beside = near[index] == near[b]
        added, off = np.where(beside, near.size + index, index), np.where(beside, near.size + b, b)
        least = np.where(beside, EPS**2, 1e-12) * own
    D = of_differences(Sigma, added, off)
    # A level asked for twice, and the best copy itself, differ from the best copy by rounding only:
    # such differences are no regressors.
    differs = (np.einsum("bkk->bk", D) > least) & (best > 0.0)
    cross = np.where(differs, Sigma[b, added] - Sigma[b, off], 0.0)
    W, count = ranked_regression(
        cross[:, None, :], np.where(differs[:, :, None] & differs[:, None, :], D, 0.0)
    )
    explained = np.einsum("bk,bk->b", W[:, 0], cross)
    return np.clip(
        np.divide(explained, best[:, 0], out=np.zeros_like(explained), where=best[:, 0] > 0.0),
        0.0,
        1.0,
    ), count
