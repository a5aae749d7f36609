"""Noise of copies from files, estimated from original and copies.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Z_i`` | ``Y_i − X`` | (n, N) |
| ``K̂`` | covariance of all Z, divisor n | (MN, MN) |
| ``σ̂_i²`` | level of copy i: mean over attributes of ``var(Z_ij) / var(X_j)`` | scalar |
| ``d(K)`` | distance from a law: largest ``|K̂ − K|`` over both standard deviations | scalar |
| ``r`` | largest correlation of an attribute with any of the noise | scalar |

Attacks that need a law get the nearest scheme's shape, with the covariance across copies

    ``Σ̂_ij = tr(K̂_ij K_0⁺) / rank K_0``

if its distance is at most `NEAR` or explained by chance; else ``K̂`` itself. This is an insider's
knowledge, and recipients have less. If the noise depends on the data (``r``: rounded, top-coded or
shrunk copies), there is no noise law. An estimated law proves nothing: no closed form or claim
rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.numerics.moments import Moments
from auditor.numerics.statistics import jackknife_error
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw
from auditor.schemes.base.scheme import TableMoments, schemes_held_against
from auditor.types import Array

NEAR = 0.05
"""Largest distance of noise from a law that replaces it."""
CHANCE = 6.0
"""The same in units of ``1/√n``: 4.2 standard errors of a variance, √(2/n) each."""
DEPENDENT, SURE = 0.02, 5.0
"""Least relevant correlation of noise with data, and its least number of standard errors."""
MOST_NUMBERS = 2_000
"""Most copies times attributes: covariances take 32 megabytes each."""


@dataclass(frozen=True, repr=False)
class EstimatedNoise:
    """Estimates of the noise.

    Attributes
    ----------
    levels, std_errors : ndarrays of shape (M,)
    distances : dict of str to float
        ``d`` by scheme.
    dependence : float
        ``r``.
    law : NoiseLaw or None
        For attacks; None if the noise depends on the data.
    """

    levels: Array
    std_errors: Array
    distances: Mapping[str, float]
    dependence: float
    law: NoiseLaw | None


def estimated_noise(groups: Sequence[Moments], table: TableMoments) -> EstimatedNoise | None:
    """Return the noise by moments of ``[X, Y_1 … Y_M]`` by row group; None if too large.

    Standard errors of levels are by a jackknife over row groups. Every attribute must vary.
    """
    N, whole = table.mean.size, Moments.merge(groups)
    if not N < whole.size <= MOST_NUMBERS + N or whole.count < 2:
        return None
    K = with_noise(whole.covariance(), N)
    variances, K_Z = np.diag(table.covariance), K[N:, N:]
    levels = noise_levels(K_Z, variances)
    others = [whole - group for group in groups if group.count < whole.count]
    left_out = [
        noise_levels(with_noise(rest.covariance(), N)[N:, N:], variances) for rest in others
    ]
    errors = (
        jackknife_error(np.array(left_out)) if len(left_out) > 1 else np.full(levels.size, np.nan)
    )
    deviation = np.sqrt(np.clip(np.diag(K_Z), 0.0, None))
    laws = {
        scheme.name: _law(scheme, levels, _white_levels(K_Z, variances), table)
        for scheme in schemes_held_against("numeric")
    }
    distances = {name: _distance(K_Z, law.covariance, deviation) for name, law in laws.items()}
    r = _largest(K[:N, N:], np.outer(np.sqrt(variances), deviation))
    dependent = r > max(DEPENDENT, SURE / np.sqrt(whole.count))
    return EstimatedNoise(
        levels,
        errors,
        distances,
        r,
        None if dependent else _nearest(K_Z, laws, distances, whole.count),
    )


def with_noise(K: Array, N: int) -> Array:
    """Return the covariance of ``[X, Y_1 − X, …, Y_M − X]`` from that of ``[X, Y_1, …, Y_M]``.

    Examples
    --------
    >>> with_noise(np.array([[1.0, 1.0], [1.0, 1.5]]), 1).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    D = K.copy()
    M = len(K) // N - 1
    D[N:] -= np.tile(D[:N], (M, 1))
    D[:, N:] -= np.tile(D[:, :N], (1, M))
    return (D + D.T) / 2.0


def noise_levels(K_Z: Array, variances: Array) -> Array:
    """Return ``σ̂_i²``, shape (M,)."""
    return (np.clip(np.diag(K_Z), 0.0, None).reshape(-1, variances.size) / variances).mean(axis=1)


def _white_levels(K_Z: Array, variances: Array) -> Array:
    """Return levels of white noise, ``tr K_Zi / tr K_X``, shape (M,)."""
    return noise_levels(K_Z, np.full_like(variances, variances.mean()))


def _law(scheme: Any, levels: Array, white: Array, table: TableMoments) -> KroneckerNoise:
    made = scheme(scheme.Parameters())
    law = made.law(
        tuple((white if getattr(made.parameters, "noise", None) == "white" else levels).tolist()),
        table,
    )
    assert isinstance(law, KroneckerNoise)
    return law


def _distance(K_Z: Array, K: Array, deviation: Array) -> float:
    return _largest(K_Z - K, np.outer(deviation, deviation))


def _largest(off: Array, scale: Array) -> float:
    return float(
        np.divide(np.abs(off), scale, out=np.zeros_like(off), where=scale > 0).max(initial=0.0)
    )


def _nearest(
    K_Z: Array, laws: Mapping[str, KroneckerNoise], distances: Mapping[str, float], rows: int
) -> NoiseLaw:
    """Return the nearest scheme's shape with ``Σ̂``, if near enough; else ``K̂``."""
    near = laws[min(distances, key=lambda name: distances[name])]
    N, M = near.width, near.copies
    inverse = np.linalg.pinv(near.shape, hermitian=True)
    Sigma = np.einsum("iajb,ba->ij", K_Z.reshape(M, N, M, N), inverse) / max(
        1, np.linalg.matrix_rank(near.shape, hermitian=True)
    )
    found = KroneckerNoise((Sigma + Sigma.T) / 2.0, near.shape, near.follows_data)
    deviation = np.sqrt(np.clip(np.diag(K_Z), 0.0, None))
    near_enough = max(NEAR, CHANCE / np.sqrt(rows))
    return (
        found if _distance(K_Z, found.covariance, deviation) <= near_enough else DenseNoise(K_Z, N)
    )
