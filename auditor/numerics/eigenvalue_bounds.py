r"""What eigenvalues alone say of a sum of matrices, and of the error that is left by projecting on its first directions.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ_X, λ_R, λ_Y`` | eigenvalues, falling, of the covariances of data, noise and copy | (N,) | liu2008, Lemma 12.1 |
| ``ε`` | eigenvalues, falling, of ``K_Y − K_X``: ``λ_R`` where data and noise are uncorrelated | (N,) | |
| ``P`` | projection on the first k eigenvectors of ``K_Y`` | (N, N) | liu2008, Protocol 2 |

An estimate ``x̂ = P y`` errs by ``x − P y = (I − P) x − P r``, two parts that are orthogonal to one another record by record. So its squared
error is ``tr (I − P) K_X + tr P K_R``, whatever the correlation of data and noise, and each trace has its range:

- ``Σ_{j>k} λ_X^j ≤ tr (I − P) K_X``: no k directions hold more of the data than its own (Eckart–Young).
- ``tr (I − P) K_X ≤ Σ_{j>k} λ_X^j + Σ_{i≤min(k,N−k)} (ε^i − ε^{N+1−i})``: P holds more of ``K_Y`` than the data's own directions do, and
  what was added can account for no larger difference than two projections of rank k make of it.
- ``Σ_{j>N−k} λ_R^j ≤ tr P K_R ≤ Σ_{j≤k} λ_R^j``.

For white noise and ever more rows all ``ε`` are ``σ²``, and both bounds are ``Σ_{j>k} λ_X^j + k σ²`` (huang2005, (7) and Theorem 5.2).

The survey says that Guo, Wu and Li derived a lower and an upper bound in the Frobenius norm (liu2008, section 3.3), and prints neither:
these are bounds on the same error, proved above. Its Lemma 12.1 is printed for any X and R, and needs them uncorrelated: ``R = −X/2`` is
noise of mean 0 whose copy has ``λ_Y = λ_X/4``, where the lemma has at least ``λ_X + λ_R^N``. Of finitely many rows data and noise are
never quite uncorrelated: of sample covariances the lemma holds with ``ε`` for ``λ_R``, and as printed it fails in most tables of 50
records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def eigenvalue_range(data: NDArray[np.float64], noise: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``λ_X^j + λ_R^N`` and ``λ_X^j + λ_R^1``, shapes (N,), between which ``λ_Y^j`` lies.

    Parameters
    ----------
    data, noise : ndarrays of shape (N,)
        ``λ_X`` and ``λ_R``, or ``ε``, falling. Data and noise are uncorrelated, *not checked*; with ``ε`` they need not be.

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
    """Return bounds on ``E‖x − P y‖²`` of centred data, summed over attributes, where P keeps the copy's first ``kept`` directions.

    Parameters
    ----------
    data, noise, added : ndarrays of shape (N,)
        ``λ_X``, ``λ_R`` and ``ε``, falling, in squared data units.
    kept : int
        ``k``, from 0 to N.

    Returns
    -------
    low : float
        Holds for any k directions, not the copy's own alone.
    high : float

    Notes
    -----
    Sure, and not only likely: with covariances of the very rows it holds in every draw. For what liu2008, section 3.3, names (guo2006).

    Examples
    --------
    White noise of variance 25, three of four directions kept: both are the dropped variance and 3 · 25.

    >>> projection_error_range(np.array([400.0, 100.0, 50.0, 4.0]), np.full(4, 25.0), np.full(4, 25.0), kept=3)
    (79.0, 79.0)
    """
    N, moved = len(data), min(kept, len(data) - kept)
    dropped = float(data[kept:].sum())
    turned = float((added[:moved] - added[::-1][:moved]).sum())
    return dropped + float(noise[N - kept :].sum()), dropped + turned + float(noise[:kept].sum())
