"""Linear algebra for singular and badly scaled covariances.

Eigenvalues of copies: noise edge, median, shrinkage, projection error.

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
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array
from auditor.numerics.random_streams import Rng

EPS = float(np.finfo(np.float64).eps)

PROPORTIONAL = 4 * np.finfo(float).eps
"""Tolerance of proportional covariances, in units of their sum's deviations."""


def in_own_units(K: Array) -> tuple[Array, Array]:
    """Return a matrix scaled to unit diagonal, and its diagonal's roots.

    Shapes (..., N, N) and (..., N). A covariance's eigenvalues hide small attributes among large
    ones; its correlations' do not. Rows with a diagonal entry not above 0 are unchanged.
    """
    own = np.einsum("...nn->...n", K)
    root = np.sqrt(np.where(own > 0, own, 1.0))
    return K / (root[..., :, None] * root[..., None, :]), root


def pseudo_inverse(K: Array) -> Array:
    """Return ``K⁺`` of a covariance, shape (N, N), via its correlations."""
    correlations, root = in_own_units(K)
    return np.linalg.pinv(correlations, hermitian=True) / np.outer(root, root)


WIDEST = 1e5
"""Ratio of two attributes' deviations up to which unscaled eigenvalues are accurate to 1e-6 in
either unit.
"""


def is_diagonal(K: Array) -> bool:
    """Whether a matrix of shape (N, N) is 0 off its diagonal."""
    return not (K - np.diag(np.diag(K))).any()


def widely_scaled(K: Array) -> NDArray[np.bool_]:
    """Whether a covariance's attributes differ too much in size.

    Its eigenvalues would lose small attributes to rounding. One answer per matrix of shape (..., N,
    N).
    """
    root = np.sqrt(np.clip(np.einsum("...nn->...n", K), 0.0, None))
    return root.max(axis=-1, initial=0.0) > WIDEST * np.where(root > 0, root, np.inf).min(
        axis=-1, initial=np.inf
    )


def clip_to_psd(K: Array, like: Array | None = None) -> Array:
    """Return the nearest positive semi-definite matrix to a symmetric one.

    Negative eigenvalues become 0.

    Parameters
    ----------
    K : ndarray of shape (..., N, N)
    like : ndarray of shape (..., N, N), optional
        A covariance of the same attributes; it gives the units to clip in if their sizes differ
        widely.
    """
    if like is not None and (wide := widely_scaled(like)).any():
        own = np.einsum("...nn->...n", like)
        size = np.sqrt(np.where((own > 0) & wide[..., None], own, 1.0))
        unit = size[..., :, None] * size[..., None, :]
        return clip_to_psd(K / unit) * unit
    values, vectors = np.linalg.eigh((K + K.swapaxes(-1, -2)) / 2)
    return (vectors * np.clip(values, 0.0, None)[..., None, :]) @ vectors.swapaxes(-1, -2)


def descending_eigen(K: Array) -> tuple[Array, Array]:
    """Return descending eigenvalues, (N,), and column eigenvectors, (N, N)."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return values[::-1], vectors[:, ::-1]


def symmetric_root(K: Array) -> Array:
    """Return the symmetric ``K^½``, shape (N, N), negative eigenvalues as 0."""
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T


def correlation(K: Array) -> Array:
    """Return the correlation matrix of a covariance, shape (N, N).

    0 off the diagonal for a constant attribute.
    """
    scale = np.sqrt(np.clip(np.diag(K), 0.0, None))
    product = np.outer(scale, scale)
    C: Array = np.divide(K, product, out=np.zeros_like(K, dtype=np.float64), where=product > 0)
    np.fill_diagonal(C, 1.0)
    return C


@dataclass(frozen=True, eq=False)
class Pencil:
    """``K_X`` and ``K_0`` diagonalised jointly, for all noise multiples.

    ``K_X = A diag(c) Aᵀ`` and ``K_0 = A diag(1−c) Aᵀ``. Exists for singular matrices too, on the
    range of ``K_X + K_0``. Leading axes hold several pairs; directions outside the range are then
    columns of 0.

    Attributes
    ----------
    basis : ndarray of shape (..., N, r)
        ``A``.
    inverse : ndarray of shape (..., r, N)
        ``A⁺``, with ``A⁺A = I``.
    share : ndarray of shape (..., r)
        ``c`` in [0, 1]: the data's share of each direction's variance.
    proportional : ndarray of shape (...)
        Whether one is a multiple of the other, with a sum of full rank: ``G(v)`` is then exactly a
        number.
    """

    basis: Array = field(repr=False)
    inverse: Array = field(repr=False)
    share: Array = field(repr=False)
    proportional: NDArray[np.bool_]

    @classmethod
    def of(cls, K_X: Array, K_0: Array) -> Pencil:
        """Decompose positive semi-definite pairs of shape (..., N, N).

        Attributes are first scaled to unit variance, so that a salary in dollars does not mask an
        age in years.
        """
        T = K_X + K_0
        both, scale = in_own_units(T)
        data = K_X / (scale[..., :, None] * scale[..., None, :])
        values, Q = np.linalg.eigh(both)
        keep = values > T.shape[-1] * EPS * np.maximum(values[..., -1:], 0.0)
        first = data[..., :1, 0]
        alike = keep.all(axis=-1) & (
            np.abs(data - first[..., None] * both).max(axis=(-2, -1)) <= PROPORTIONAL
        )
        if T.ndim == 2:
            values, Q, keep = values[keep], Q[:, keep], keep[keep]
        root = np.sqrt(np.where(keep, values, 1.0))[..., None, :]
        Q = np.where(keep[..., None, :], Q, 0.0)
        A, inverse = Q * root, (Q / root).swapaxes(-1, -2)
        share = np.broadcast_to(np.clip(first, 0.0, 1.0), values.shape)
        if not alike.all():
            # Directions outside the range get shares below all others, to avoid mixing with
            # directions inside that have no data.
            whitened = (
                inverse @ data @ inverse.swapaxes(-1, -2)
                - np.eye(values.shape[-1]) * ~keep[..., None]
            )
            c, U = np.linalg.eigh((whitened + whitened.swapaxes(-1, -2)) / 2)
            U = np.where(alike[..., None, None], np.eye(values.shape[-1]), U)
            A = A @ U
            inverse = U.swapaxes(-1, -2) @ inverse
            share = np.where(alike[..., None], share, np.clip(c, 0.0, 1.0))
        return cls(scale[..., :, None] * A, inverse / scale[..., None, :], share, alike)

    def gain(self, v: Array) -> Array:
        """Return ``G(v) = K_X (K_X + v K_0)⁺``, shape (..., N, N).

        For noise multiples of shape (...), one per pair if there are several.
        """
        c, total = self.share, self._total(v)
        kept = np.divide(c, total, out=np.zeros_like(total), where=total > 0)
        one = np.eye(self.basis.shape[-2])
        if self.proportional.all():
            return kept[..., :1, None] * one
        G = (self.basis * kept[..., None, :]) @ self.inverse
        if self.proportional.any():
            G[self.proportional] = kept[self.proportional][..., :1, None] * one
        return G

    def error(self, v: Array) -> Array:
        """Return ``K_X − G(v) K_X``, shape (..., N, N), without cancellation.

        Source: li2012 (7).
        """
        return (self.basis * self._left(v)[..., None, :]) @ self.basis.swapaxes(-1, -2)

    def error_of(self, j: int, v: Array) -> Array:
        """Return entry (j, j) of ``error`` of one pair, shape (...)."""
        return self._left(v) @ self.basis[j] ** 2

    def _left(self, v: Array) -> Array:
        c, total = self.share, self._total(v)
        return np.divide(
            np.asarray(v)[..., None] * c * (1.0 - c),
            total,
            out=np.zeros_like(total),
            where=total > 0,
        )

    def _total(self, v: Array) -> Array:
        return self.share + np.asarray(v, dtype=np.float64)[..., None] * (1.0 - self.share)


def regression(K_xy: Array, K_y: Array) -> Array:
    """Return ``W = K_xy K_y⁺``, shape (N, d), for any covariance.

    It may be singular and badly scaled. Source: li2012 (4) and (6). ``K_xy`` must be in the range
    of ``K_y``, as for covariances of one distribution; *not checked*.
    """
    return ranked_regression(K_xy, K_y)[0]


def ranked_regression(K_xy: Array, K_y: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return ``W`` as ``regression``, and the rank of ``K_y``.

    Leading axes are several regressions: (..., N, d) and (..., d, d) give (..., N, d) and (...).
    """
    correlations, scale = in_own_units(K_y)
    values, Q = np.linalg.eigh(correlations)
    keep = values > K_y.shape[-1] * np.finfo(float).eps * np.maximum(values[..., -1:], 0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    in_basis = (K_xy / scale[..., None, :]) @ Q * inverse[..., None, :]
    return np.asarray(in_basis @ np.swapaxes(Q, -1, -2) / scale[..., None, :]), keep.sum(axis=-1)


def of_differences(K: Array, index: NDArray[np.intp], less: NDArray[np.intp]) -> Array:
    """Return the covariances of ``v_index − v_less``, shape (B, k, k).

    Given the covariance of v, for B subsets of k pairs.
    """
    plus, minus = index[:, :, None], less[:, :, None]
    other, off = index[:, None, :], less[:, None, :]
    return K[plus, other] - K[plus, off] - K[minus, other] + K[minus, off]


def haar(N: int, rng: Rng, *count: int) -> Array:
    """Return uniformly random orthogonal matrices, shape (*count, N, N).

    QR of a normal matrix, with R's diagonal positive, is Haar distributed (Mezzadri 2007).
    """
    Q, R = np.linalg.qr(rng.standard_normal((*count, N, N)))
    return Q * np.where(np.einsum("...ii->...i", R) < 0, -1.0, 1.0)[..., None, :]


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
