"""Eigenvalues of copies: noise edge, median, shrinkage, projection error.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``n, N`` | rows and attributes | scalars | |
| ``Q`` | ``n / N`` | scalar | liu2008, section 3.2 |
| ``β`` | ``min(n, N) / max(n, N)``: 1/Q when there are more rows than attributes | scalar | gavish2017 |
| ``λ̂_j`` | eigenvalues of the sample covariance of the copy | (N,) | liu2008, section 3.2 |
| ``σ²`` | variance of the noise, equal for every attribute | scalar | |

Eigenvalues of pure noise fill ``σ²(1 ± √β)²`` with the Marchenko–Pastur density, not a point at
``σ²``. Asymptotic in n and N at a fixed ratio, accurate from N ≈ 20; white noise only.

An estimate ``x̂ = P y``, P the projection on the copy's first k directions, errs by
``x − P y = (I − P) x − P r``, two orthogonal parts. So its squared error is
``tr (I − P) K_X + tr P K_R`` for any correlation of data and noise. With eigenvalues
``λ_X, λ_R, ε``, falling, of data, noise and ``K_Y − K_X``:

- ``Σ_{j>k} λ_X^j ≤ tr (I − P) K_X``: no k directions hold more of the data than its own
  (Eckart–Young).
- ``tr (I − P) K_X ≤ Σ_{j>k} λ_X^j + Σ_{i≤min(k,N−k)} (ε^i − ε^{N+1−i})``: P holds more of ``K_Y``
  than the data's own directions, and two projections of rank k differ on ``K_Y − K_X`` by at most
  this sum.
- ``Σ_{j>N−k} λ_R^j ≤ tr P K_R ≤ Σ_{j≤k} λ_R^j``.

For white noise and growing n both bounds are ``Σ_{j>k} λ_X^j + k σ²`` (huang2005, (7) and Theorem
5.2). liu2008, section 3.3, refers to bounds of Guo, Wu and Li in the Frobenius norm without
printing them: these bound the same error.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array

_GRID = 4096
"""Points of the quadrature, for a median accurate to 1e-6."""


def aspect(rows: int, attributes: int) -> float:
    """Return ``β = min(n, N) / max(n, N)``, in (0, 1]."""
    return min(rows, attributes) / max(rows, attributes)


def noise_edge(rows: int, attributes: int, variance: float) -> float:
    """Return ``σ²(1 + 1/√Q)²``, ``Q = n/N``: the largest noise eigenvalue.

    Source: liu2008, section 3.2 (the bound of kargupta2003).

    Examples
    --------
    >>> round(noise_edge(rows=1000, attributes=100, variance=25.0), 2)
    43.31
    """
    return variance * (1.0 + math.sqrt(attributes / rows)) ** 2


@lru_cache(maxsize=256)
def noise_median(beta: float) -> float:
    """Return the median of the Marchenko–Pastur law, ratio ``β``, variance 1.

    With ``x = 1 + β − 2√β cos θ`` the law is ``(2/π) sin²θ / x dθ`` on [0, π]: smooth, so a plain
    sum integrates it.

    Examples
    --------
    >>> round(noise_median(1.0), 4)
    0.6528
    """
    theta = (np.arange(_GRID) + 0.5) * (np.pi / _GRID)
    x = 1.0 + beta - 2.0 * math.sqrt(beta) * np.cos(theta)
    below = np.cumsum((2.0 / _GRID) * np.sin(theta) ** 2 / x)  # up to the right end of each cell
    ends = 1.0 + beta - 2.0 * math.sqrt(beta) * np.cos(theta + 0.5 * np.pi / _GRID)
    return float(np.interp(0.5, below, ends))


def noise_variance(values: Array, rows: int) -> float:
    """Return an estimate of ``σ²`` from the spectrum of a copy.

    The median eigenvalue over the median of pure noise. Eigenvalues beyond the noise edge count as
    data and are removed, until none is beyond it.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ̂_j``, in any order; in squared data units.
    rows : int
        ``n``.

    Notes
    -----
    Source of the median: gavish2014; the iteration is valid if at most about half the directions
    hold data. Data of one small variance in most directions are counted as noise.
    """
    n, N = rows, len(values)
    # With fewer rows than attributes only n eigenvalues are not 0; scaled by n/N they follow the
    # law of the transpose.
    spectrum = np.sort(np.asarray(values))[::-1][: min(n, N)] * (n / max(n, N))
    beyond = 0
    while True:
        bulk = spectrum[beyond:]
        variance = max(0.0, float(np.median(bulk))) / noise_median(len(bulk) / max(n, N))
        found = int((spectrum > variance * (1.0 + math.sqrt(aspect(n, N))) ** 2).sum())
        if found <= beyond or found >= len(spectrum):
            return variance
        beyond = found


def optimal_gain(values: Array, variance: Array | float, beta: float, scale: float = 1.0) -> Array:
    """Return the optimal shrinkage ``η(y)/y`` of each direction.

    ``η(y) = √((y² − β − 1)² − 4β) / y`` for ``y ≥ 1 + √β``, else 0, with ``y² = scale·λ̂/σ²``.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ̂_j``, in squared data units.
    variance : float or ndarray of shape (N,)
        ``σ²``, or the noise's variance in each direction; directions with variance 0 are not
        shrunk.
    beta : float
        ``β``; 0 if directions and variances are known, and the factor is then Bayes' ``1 −
        σ²/λ_Y``.
    scale : float
        ``n / max(n, N)``: below 1 only for tables with fewer rows than attributes.

    Notes
    -----
    Source: gavish2017 (Frobenius loss). Minimises the asymptotic error of the whole matrix among
    all functions of its singular values, for white noise.

    Examples
    --------
    >>> optimal_gain(np.array([4.0, 1.0]), 1.0, beta=0.0)
    array([0.75, 0.  ])
    """
    variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), np.shape(values))
    noisy = variance > 0
    y2 = np.divide(scale * values, variance, out=np.ones_like(variance), where=noisy)
    kept = noisy & (y2 > (1.0 + math.sqrt(beta)) ** 2)
    root = np.sqrt(np.clip((y2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0, None))
    gain = np.divide(root, y2, out=np.zeros_like(y2), where=kept)
    return np.where(noisy, gain, 1.0)


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
