"""Bounds from eigenvalues: on a sum of matrices, and on projection error.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ_X, λ_R, λ_Y`` | eigenvalues, falling, of the covariances of data, noise and copy | (N,) | liu2008, Lemma 12.1 |
| ``ε`` | eigenvalues, falling, of ``K_Y − K_X``: ``λ_R`` if data and noise are uncorrelated | (N,) | |
| ``P`` | projection on the first k eigenvectors of ``K_Y`` | (N, N) | liu2008, Protocol 2 |

An estimate ``x̂ = P y`` errs by ``x − P y = (I − P) x − P r``, two orthogonal parts. So its squared
error is ``tr (I − P) K_X + tr P K_R`` for any correlation of data and noise, and each trace has its
range:

- ``Σ_{j>k} λ_X^j ≤ tr (I − P) K_X``: no k directions hold more of the data than its own
  (Eckart–Young).
- ``tr (I − P) K_X ≤ Σ_{j>k} λ_X^j + Σ_{i≤min(k,N−k)} (ε^i − ε^{N+1−i})``: P holds more of ``K_Y``
  than the data's own directions, and
  two projections of rank k differ on ``K_Y − K_X`` by at most this sum.
- ``Σ_{j>N−k} λ_R^j ≤ tr P K_R ≤ Σ_{j≤k} λ_R^j``.

For white noise and growing n all ``ε`` are ``σ²``, and both bounds are ``Σ_{j>k} λ_X^j + k σ²``
(huang2005, (7) and Theorem 5.2).

liu2008, section 3.3, refers to bounds of Guo, Wu and Li in the Frobenius norm without printing
them: these bound the same error. Its Lemma 12.1 needs uncorrelated X and R (counterexample:
``R = −X/2``, with ``λ_Y = λ_X/4``). In finite samples the lemma holds with ``ε`` for ``λ_R``; as
printed it fails in most tables of 50 records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def eigenvalue_range(
    data: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``λ_X^j + λ_R^N`` and ``λ_X^j + λ_R^1``, bounds of ``λ_Y^j``.

    Shapes (N,).

    Parameters
    ----------
    data, noise : ndarrays of shape (N,)
        ``λ_X`` and ``λ_R``, or ``ε``, falling. Data and noise are uncorrelated, *not checked*; with
        ``ε`` they need not be.

    Notes
    -----
    Source: liu2008, Lemma 12.1, with ERRATA.

    Examples
    --------
    >>> eigenvalue_range(np.array([9.0, 1.0]), np.array([3.0, 2.0]))
    (array([11.,  3.]), array([12.,  4.]))
    """
    return data + noise[-1], data + noise[0]


def projection_error_range(
    data: NDArray[np.float64], noise: NDArray[np.float64], added: NDArray[np.float64], kept: int
) -> tuple[float, float]:
    """Return bounds on ``E‖x − P y‖²`` of centred data, over all attributes.

    P projects on the copy's first ``kept`` directions.

    Parameters
    ----------
    data, noise, added : ndarrays of shape (N,)
        ``λ_X``, ``λ_R`` and ``ε``, falling, in squared data units.
    kept : int
        ``k``, from 0 to N.

    Returns
    -------
    low : float
        Holds for any k directions.
    high : float

    Notes
    -----
    Deterministic: with sample covariances it holds in every draw. Replaces the bounds that liu2008,
    section 3.3, cites (guo2006).

    Examples
    --------
    White noise of variance 25, three of four directions kept: both are the dropped variance and 3 ·
    25.

    >>> projection_error_range(np.array([400.0, 100.0, 50.0, 4.0]), np.full(4, 25.0), np.full(4, 25.0), kept=3)
    (79.0, 79.0)
    """
    N, moved = len(data), min(kept, len(data) - kept)
    dropped = float(data[kept:].sum())
    turned = float((added[:moved] - added[::-1][:moved]).sum())
    return dropped + float(noise[N - kept :].sum()), dropped + turned + float(noise[:kept].sum())
