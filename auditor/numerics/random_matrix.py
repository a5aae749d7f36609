"""What random-matrix theory says of noise seen in finitely many rows: its spectrum's edge and median, and the best shrinkage.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``n, N`` | rows and attributes | scalars | |
| ``Q`` | ``n / N`` | scalar | liu2008, section 3.2 |
| ``β`` | ``min(n, N) / max(n, N)``: 1/Q when there are more rows than attributes | scalar | gavish2017 |
| ``λ̂_j`` | eigenvalues of the sample covariance of what was released | (N,) | liu2008, section 3.2 |
| ``σ²`` | variance of the noise, the same for every attribute | scalar | |

Eigenvalues of pure noise fill ``σ²(1 ± √β)²`` with the Marchenko–Pastur density, and do not sit at ``σ²``. Asymptotic in n and N with
their ratio fixed, and good from N ≈ 20 on; for white noise only.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from auditor.types import Array

_GRID = 4096
"""Points of the quadrature: the median is then right to 1e-6."""


def aspect(rows: int, attributes: int) -> float:
    """Return ``β = min(n, N) / max(n, N)``, in (0, 1]."""
    return min(rows, attributes) / max(rows, attributes)


def noise_edge(rows: int, attributes: int, variance: float) -> float:
    """Return ``σ²(1 + 1/√Q)²``, ``Q = n/N``: the largest eigenvalue that noise alone makes.

    Source: liu2008, section 3.2 (the bound of kargupta2003).

    Examples
    --------
    >>> round(noise_edge(rows=1000, attributes=100, variance=25.0), 2)
    43.31
    """
    return variance * (1.0 + math.sqrt(attributes / rows)) ** 2


@lru_cache(maxsize=256)
def noise_median(beta: float) -> float:
    """Return the median of the Marchenko–Pastur law with ratio ``β`` and variance 1.

    With ``x = 1 + β − 2√β cos θ`` the law is ``(2/π) sin²θ / x dθ`` on [0, π]: smooth, so that a plain sum integrates it.

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
    """Return an estimate of ``σ²`` from the spectrum of what was released.

    The median eigenvalue is set against the median of pure noise; eigenvalues beyond noise's edge are then taken for data, and
    the median is taken anew of the others, until none is beyond it.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ̂_j``, in any order; in squared data units.
    rows : int
        ``n``.

    Notes
    -----
    Sources: gavish2014, for the median; the rest keeps it right when up to about half the directions hold data. What
    varies by the same little amount in most directions is noise to this estimate, be it data or not.
    """
    n, N = rows, len(values)
    # With fewer rows than attributes only n eigenvalues are not 0; scaled by n/N they follow the law of the transpose.
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
    """Return the factor ``η(y)/y`` by which each direction is shrunk for the least expected squared error.

    ``η(y) = √((y² − β − 1)² − 4β) / y`` for ``y ≥ 1 + √β``, else 0, with ``y² = scale·λ̂/σ²``.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ̂_j``, in squared data units.
    variance : float or ndarray of shape (N,)
        ``σ²``, or the noise's variance in each direction. Where it is 0 nothing is shrunk.
    beta : float
        ``β``; 0 when directions and variances are known, and the factor is then ``1 − σ²/λ_Y``, Bayes' own.
    scale : float
        ``n / max(n, N)``: 1 but for tables with fewer rows than attributes.

    Notes
    -----
    Source: gavish2017 (Frobenius loss). Minimises the error of the whole matrix among all functions of its singular
    values, asymptotically, for white noise.

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
