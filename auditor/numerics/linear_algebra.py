"""Linear algebra for singular covariances, and autoregression.

``x̂ = P y``, P the projection on the copy's first k directions, errs by orthogonal parts, ``x − P y
= (I − P) x − P r``: squared, ``tr (I − P) K_X + tr P K_R``. With falling eigenvalues ``λ_X, λ_R,
ε`` of data, noise and ``K_Y − K_X``:

- ``Σ_{j>k} λ_X^j ≤ tr (I − P) K_X`` (Eckart–Young).
- ``tr (I − P) K_X ≤ Σ_{j>k} λ_X^j + Σ_{i≤min(k,N−k)} (ε^i − ε^{N+1−i})``:
  P holds more of ``K_Y`` than the data's own directions.
- ``Σ_{j>N−k} λ_R^j ≤ tr P K_R ≤ Σ_{j≤k} λ_R^j``.

For white noise and growing n both bounds are ``Σ_{j>k} λ_X^j + k σ²`` (huang2005, (7) and Theorem 5.2).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from auditor.base import scipy
from auditor.base.types import Array, Flags, Indices, Pair, frozen, unprinted
from auditor.numerics.random_streams import Rng

EPS = float(np.finfo(np.float64).eps)

PROPORTIONAL = 4 * np.finfo(float).eps
"""Tolerance of proportional covariances."""


def quotient(a: Any, b: Any, otherwise: Array | float = 0.0, where: Flags | None = None) -> Array:
    """``a / b`` where a condition holds (``b > 0``), and elsewhere another value."""
    out = np.full(np.broadcast_shapes(np.shape(a), b.shape), otherwise, dtype=float)
    return np.divide(a, b, out=out, where=b > 0 if where is None else where)


def deviations(K: Array) -> Array:
    """Standard deviations of a covariance, shape (N,)."""
    return np.sqrt(np.clip(np.diag(K), 0.0, None))


def in_own_units(K: Array) -> Pair:
    """Matrix scaled to unit diagonal, and its diagonal's roots.

    Shapes (..., N, N) and (..., N).
    """
    own = np.einsum("...nn->...n", K)
    root = np.sqrt(np.where(own > 0, own, 1.0))
    return K / (root[..., :, None] * root[..., None, :]), root


def check_covariance(rows: Any) -> Array:
    """Return an exactly symmetric covariance matrix, or raise ValueError."""
    try:
        K = np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        K = np.empty(0)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError("must be a square matrix of numbers, every row as long as the first")
    C, _ = in_own_units(K)
    apart = np.argwhere(~(np.abs(C - C.T) <= 1e-9 * max(1.0, np.abs(C).max(initial=0.0))))
    if len(apart):
        i, j = apart[0] + 1
        raise ValueError(
            f"must be finite and symmetric, as a covariance is: see the entries ({i}, {j}) and ({j}, {i})"
        )
    if (np.diag(K) < 0).any() or np.linalg.eigvalsh(C).min(initial=0.0) < -1e-9 * len(C):
        raise ValueError("must be positive semi-definite, as a covariance is")
    return (K + K.T) / 2


def pseudo_inverse(K: Array) -> Array:
    """``K⁺`` of a covariance, shape (N, N), via its correlations."""
    correlations, root = in_own_units(K)
    return np.linalg.pinv(correlations, hermitian=True) / np.outer(root, root)


WIDEST = 1e5
"""Ratio of deviations up to which unscaled eigenvalues are accurate to 1e-6.
"""


def is_diagonal(K: Array) -> bool:
    """Whether a matrix of shape (N, N) is 0 off its diagonal."""
    return not (K - np.diag(np.diag(K))).any()


def widely_scaled(K: Array) -> Flags:
    """Whether eigenvalues would lose small attributes to rounding."""
    root = np.sqrt(np.clip(np.einsum("...nn->...n", K), 0.0, None))
    return root.max(axis=-1, initial=0.0) > WIDEST * np.where(root > 0, root, np.inf).min(
        axis=-1, initial=np.inf
    )


def clip_to_psd(K: Array, like: Array | None = None) -> Array:
    """Nearest positive semi-definite matrix, shape (..., N, N).

    Negative eigenvalues become 0, in units of ``like`` if sizes differ widely.
    """
    if like is not None and (wide := widely_scaled(like)).any():
        own = np.einsum("...nn->...n", like)
        size = np.sqrt(np.where((own > 0) & wide[..., None], own, 1.0))
        unit = size[..., :, None] * size[..., None, :]
        return clip_to_psd(K / unit) * unit
    values, vectors = np.linalg.eigh((K + K.mT) / 2)
    return (vectors * np.clip(values, 0.0, None)[..., None, :]) @ vectors.mT


def descending_eigen(K: Array) -> Pair:
    """Descending eigenvalues, (..., N), and column eigenvectors, (..., N, N)."""
    values, vectors = np.linalg.eigh((K + K.mT) / 2)
    return values[..., ::-1], vectors[..., ::-1]


def symmetric_root(K: Array) -> Array:
    """Symmetric ``K^½``, shape (N, N), negative eigenvalues as 0."""
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T


def correlation(K: Array) -> Array:
    """Covariance's correlations, 0 for a constant, shape (N, N)."""
    C, _ = in_own_units(K)
    np.fill_diagonal(C, 1.0)
    return C


@unprinted
class Pencil:
    """``K_X`` and ``K_0`` diagonalised jointly, for all noise multiples.

    ``K_X = A diag(c) Aᵀ`` and ``K_0 = A diag(1−c) Aᵀ``, on the range of ``K_X + K_0``. Leading axes
    hold pairs; directions outside the range are 0.

    Attributes
    ----------
    basis : (..., N, r)
    inverse : (..., r, N)
        ``A`` and ``A⁺``.
    share : (..., r)
        ``c`` in [0, 1]: the data's share of each direction's variance.
    proportional : (...)
        Whether one is a multiple of the other, of full rank.
    """

    basis: Array
    inverse: Array
    share: Array
    proportional: Flags

    @classmethod
    def of(cls, K_X: Array, K_0: Array) -> Pencil:
        """Decompose pairs of shape (..., N, N), at unit variances."""
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
        A, inverse = Q * root, (Q / root).mT
        share = np.broadcast_to(np.clip(first, 0.0, 1.0), values.shape)
        if not alike.all():
            whitened = inverse @ data @ inverse.mT - np.eye(values.shape[-1]) * ~keep[..., None]
            c, U = np.linalg.eigh((whitened + whitened.mT) / 2)
            U = np.where(alike[..., None, None], np.eye(values.shape[-1]), U)
            A = A @ U
            inverse = U.mT @ inverse
            share = np.where(alike[..., None], share, np.clip(c, 0.0, 1.0))
        return cls(scale[..., :, None] * A, inverse / scale[..., None, :], share, alike)

    def gain(self, v: Array) -> Array:
        """``G(v) = K_X (K_X + v K_0)⁺``, (..., N, N), for v of (...)."""
        c, total = self.share, self._total(v)
        kept = quotient(c, total)
        one = np.eye(self.basis.shape[-2])
        if self.proportional.all():
            return kept[..., :1, None] * one
        G = (self.basis * kept[..., None, :]) @ self.inverse
        if self.proportional.any():
            G[self.proportional] = kept[self.proportional][..., :1, None] * one
        return G

    def error(self, v: Array) -> Array:
        """``K_X − G(v) K_X``, shape (..., N, N), without cancellation.

        Source: li2012 (7).
        """
        return (self.basis * self._left(v)[..., None, :]) @ self.basis.mT

    def error_of(self, j: int, v: Array) -> Array:
        """Entry (j, j) of ``error`` of one pair, shape (...)."""
        return self._left(v) @ self.basis[j] ** 2

    def _left(self, v: Array) -> Array:
        c, total = self.share, self._total(v)
        return quotient(np.asarray(v)[..., None] * c * (1.0 - c), total)

    def _total(self, v: Array) -> Array:
        return self.share + np.asarray(v, dtype=float)[..., None] * (1.0 - self.share)


def regression(K_xy: Array, K_y: Array) -> Array:
    """``W = K_xy K_y⁺``, shape (N, d), for any covariance.

    Source: li2012 (4) and (6). ``K_xy`` must be in the range of ``K_y``, *not checked*.
    """
    return ranked_regression(K_xy, K_y)[0]


def ranked_regression(K_xy: Array, K_y: Array) -> tuple[Array, Indices]:
    """``W`` as ``regression``, and the rank of ``K_y``.

    Shapes (..., N, d) and (...).
    """
    correlations, scale = in_own_units(K_y)
    values, Q = np.linalg.eigh(correlations)
    keep = values > K_y.shape[-1] * np.finfo(float).eps * np.maximum(values[..., -1:], 0.0)
    inverse = quotient(1.0, values, where=keep)
    in_basis = (K_xy / scale[..., None, :]) @ Q * inverse[..., None, :]
    return in_basis @ Q.mT / scale[..., None, :], keep.sum(axis=-1)


def of_differences(K: Array, index: Indices, less: Indices) -> Array:
    """Covariances of ``v_index − v_less``, shape (B, k, k)."""
    plus, minus = index[:, :, None], less[:, :, None]
    other, off = index[:, None, :], less[:, None, :]
    return K[plus, other] - K[plus, off] - K[minus, other] + K[minus, off]


def haar(N: int, rng: Rng, *count: int) -> Array:
    """Uniformly random orthogonal matrices, shape (*count, N, N).

    Source: Mezzadri 2007.
    """
    Q, R = np.linalg.qr(rng.standard_normal((*count, N, N)))
    return Q * np.where(np.einsum("...ii->...i", R) < 0, -1.0, 1.0)[..., None, :]


def noise_edge(rows: int, attributes: int, variance: float) -> float:
    """``σ²(1 + 1/√Q)²``, ``Q = n/N``: the largest noise eigenvalue.

    Asymptotic, accurate from N ≈ 20. Source: liu2008, section 3.2 (the bound of kargupta2003).

    Examples
    --------
    >>> round(noise_edge(rows=1000, attributes=100, variance=25.0), 2)
    43.31
    """
    return variance * (1.0 + math.sqrt(attributes / rows)) ** 2


def projection_error_range(
    data: Array, noise: Array, added: Array, kept: int
) -> tuple[float, float]:
    """Bounds on ``E‖x − P y‖²`` of centred data, over all attributes.

    Parameters
    ----------
    data, noise, added : (N,)
        ``λ_X``, ``λ_R`` and ``ε``, falling, in squared data units.
    kept
        ``k``, from 0 to N.

    Notes
    -----
    The lower bound holds for any k directions.

    Examples
    --------
    >>> projection_error_range(np.array([400.0, 100.0, 50.0, 4.0]), np.full(4, 25.0), np.full(4, 25.0), kept=3)
    (79.0, 79.0)
    """
    N, moved = len(data), min(kept, len(data) - kept)
    dropped = float(data[kept:].sum())
    turned = float((added[:moved] - added[::-1][:moved]).sum())
    return dropped + float(noise[N - kept :].sum()), dropped + turned + float(noise[:kept].sum())


# -- Gaussian autoregressions of variance 1 and order p --------------------------------------------


BELOW_ROUNDING = 1e-20
NEARLY_ALL = 1e-12
"""Least variance share of an innovation."""


@frozen
class Autoregression:
    """A stationary Gaussian series of variance 1.

    Coefficients ``φ``, p ≥ 1. ``ValueError`` if there is none.
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (
            np.isfinite(self.coefficients).all()
            and self.memory < 1.0
            and self.innovation_variance > NEARLY_ALL
        ):
            raise ValueError(
                "must be the coefficients of a stationary autoregression, as [0.9]: what it remembers must fade"
            )

    @property
    def order(self) -> int:
        """``p``."""
        return len(self.coefficients)

    @cached_property
    def polynomial(self) -> Array:
        """``(1, −φ_1 … −φ_p)``, the filter from the series to its innovations."""
        return np.array([1.0, *(-phi for phi in self.coefficients)])

    @cached_property
    def memory(self) -> float:
        """Asymptotic decay per row: the largest root of ``z^p − φ_1 z^{p−1} − …``."""
        return float(np.abs(np.roots(self.polynomial)).max(initial=0.0))

    @cached_property
    def _first(self) -> Array:
        p = self.order
        A = np.eye(p)
        for h in range(1, p + 1):
            for j in range(1, p + 1):
                if h != j:
                    A[h - 1, abs(h - j) - 1] -= self.coefficients[j - 1]
        return np.concatenate([[1.0], np.linalg.solve(A, self.coefficients)])

    @cached_property
    def innovation_variance(self) -> float:
        """``s²``."""
        return float(1.0 - self._first[1:] @ np.array(self.coefficients))

    @property
    def precision(self) -> float:
        """A value's variance over its conditional one, ``(1 + Σ φ_j²)/s²``."""
        return float(self.polynomial @ self.polynomial) / self.innovation_variance

    def autocorrelations(self, lags: int) -> Array:
        """``r_0 … r_{lags − 1}``."""
        first = self._first[: self.order]
        return np.concatenate(
            [first, self.continued(first[:, None], np.zeros((max(0, lags - self.order), 1)))[:, 0]]
        )[:lags]

    def _root(self, rows: int) -> Array:
        return np.linalg.cholesky(scipy.linalg.toeplitz(self._first[:rows]))

    def stationary(self, normals: Array) -> Array:
        """``p`` consecutive rows from p rows of N(0, 1), shape (p, N)."""
        return self._root(len(normals)) @ normals

    def continued(self, past: Array, innovations: Array) -> Array:
        """``g_t = Σ_j φ_j g_{t−j} + s e_t`` for rows of e, after ``past``."""
        # the filter's state after the past
        left = -scipy.signal.lfilter(
            self.polynomial, [1.0], np.concatenate([past, np.zeros_like(past)]), axis=0
        )[self.order :]
        rows, _ = scipy.signal.lfilter(
            [np.sqrt(self.innovation_variance)], self.polynomial, innovations, axis=0, zi=left
        )
        return rows

    def lead(self, rows: Array, end: Array) -> None:
        """Condition rows on the p rows ``end`` that follow, in place.

        Rows drawn given their past get their regression on the end's error. Exact if ``memory **
        len(rows)`` is negligible.
        """
        p, off = self.order, end - rows[-self.order :]
        rows[-p:] = end
        # further back the sum is below a double's last digit
        reach = min(len(rows) - p, int(np.log(BELOW_ROUNDING) / np.log(self.memory)))
        rows[len(rows) - p - reach : len(rows) - p] += self.continued(
            off[::-1], np.zeros((reach, rows.shape[1]))
        )[::-1]

    def innovations(self, rows: Array) -> Array:
        """Independent ``e_t = (g_t − Σ_j φ_j g_{t−j})/s``.

        The first p rows are ``stationary`` inverted.
        """
        found = scipy.signal.lfilter(self.polynomial, [1.0], rows, axis=0) / np.sqrt(
            self.innovation_variance
        )
        first = rows[: self.order]
        found[: len(first)] = np.linalg.solve(self._root(len(first)), first)
        return found


def yule_walker(r: Array, values: int) -> tuple[float, ...]:
    """Coefficients of the best autoregression by BIC; () for none.

    The order minimises ``values·ln s² + p ln values`` (schwarz1978).
    """
    best: tuple[float, tuple[float, ...]] = (0.0, ())
    for p in range(1, len(r)):
        phi = scipy.linalg.solve_toeplitz(r[:p], r[1 : p + 1])
        left = float(1.0 - phi @ r[1 : p + 1])
        if left <= NEARLY_ALL:
            break
        best = min(best, (values * np.log(left) + p * np.log(values), tuple(map(float, phi))))
    return best[1]
