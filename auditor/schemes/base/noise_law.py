"""Exact law of a release's noise, as a scheme states it.

| symbol | meaning | shape |
| --- | --- | --- |
| ``K_Z`` | joint noise covariance, copy by copy | (MN, MN) |
| ``Sigma`` | covariance across copies (noise multiples, no unit) | (M, M) |
| ``K_0`` | covariance across attributes, in squared data units | (N, N) |

The papers' schemes have ``K_Z = Sigma ⊗ K_0`` (li2012, section 5.4, Lemma 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeGuard

import numpy as np

from auditor.base import NotApplicable, scipy
from auditor.base.types import (
    Array,
    Arrays,
    Coalition,
    Coalitions,
    Flags,
    Indices,
    Pair,
    frozen,
    unprinted,
)
from auditor.numerics.blocks import Moments, attribute_index
from auditor.numerics.combination import level_root
from auditor.numerics.linear_algebra import (
    EPS,
    Autoregression,
    deviations,
    in_own_units,
    symmetric_root,
    widely_scaled,
)
from auditor.schemes.base.noise_density import (
    Distribution,
    NoiseDensity as NoiseDensity,
    excess_kurtosis,
)

UNCORRELATED = 1e-9
"""Largest correlation of ``Z_b`` with ``Z_j − Z_b`` that counts as zero, relative to their own
deviations: a small difference may still be the noise itself (``Z_i = σ_i G``).
"""
BITS = 8
"""Rounding errors allowed in a stated covariance, in units of the last place."""


@unprinted
class KroneckerNoise:
    """Noise with covariance ``K_Z = Sigma ⊗ K_0``, Gaussian by default.

    Attributes
    ----------
    level_covariance : (M, M)
        ``Sigma``, diagonal ``σ_i²``; positive semi-definite, *not checked*.
    shape : (N, N)
        ``K_0``; positive semi-definite, *not checked*.
    follows_data
        Whether ``K_0`` is ``K_X``.
    distribution
        ``uniform``: ``Z = (Sigma^½ ⊗ K_0^½) u``, u independent and uniform on ±√3, ``Sigma``
        diagonal. ``laplace``, ``geometric``, ``skellam``: independent attributes, ``K_0`` diagonal.
        ``unstated``: uncorrelated with the data; sizes may depend on values.
    one_process
        Whether ``Sigma_ij = min(σ_i², σ_j²)``, not independent noise.
    units : (N,), optional
        Lattice step, in data units.
    serial
        Covariance of all records: ``R ⊗ K_Z``.
    """

    level_covariance: Array
    shape: Array
    follows_data: bool = False
    distribution: Distribution | Literal["unstated"] = "gaussian"
    one_process: bool = False
    units: Array | None = None
    serial: Autoregression | None = None

    @property
    def copies(self) -> int:
        """``M``."""
        return int(self.level_covariance.shape[0])

    @property
    def width(self) -> int:
        """``N``."""
        return int(self.shape.shape[0])

    @cached_property
    def covariance(self) -> Array:
        """``K_Z``, shape (MN, MN)."""
        return np.asarray(np.kron(self.level_covariance, self.shape))

    @property
    def deviations(self) -> Array:
        """Standard deviations, shape (M, N)."""
        variances = np.outer(np.diag(self.level_covariance), np.diag(self.shape))
        return np.sqrt(variances.clip(0.0))

    def of(self, copies: Sequence[int]) -> KroneckerNoise:
        """Law of some copies, by copy numbers from 1."""
        index = np.asarray(copies, dtype=int) - 1
        return replace(self, level_covariance=self.level_covariance[np.ix_(index, index)])

    def applied(self, W: Array) -> Array:
        """``W K_Z``, shape (..., MN)."""
        return _times_kronecker(W, self.level_covariance, self.shape)

    def coloured(self, U: Array) -> Array:
        """``U rootᵀ``, shape (..., MN), of rows of variance 1."""
        return _times_kronecker(U, self._level_root.T, self._shape_root.T)

    def of_attributes(self, columns: Indices) -> KroneckerNoise:
        """Law of some attributes."""
        units = None if self.units is None else self.units[columns]
        return replace(
            self, shape=self.shape[np.ix_(columns, columns)], follows_data=False, units=units
        )

    def density(self, copy: int, attribute: int) -> NoiseDensity:
        """Law of attribute (from 0) and copy (from 1)."""
        return self.density_at(float(self.level_covariance[copy - 1, copy - 1]), attribute)

    def density_at(self, level: float, attribute: int) -> NoiseDensity:
        """Law of one attribute's noise at any level σ² > 0.

        ``NotApplicable`` if the distribution is unstated.
        """
        if self.distribution == "unstated":
            raise NotApplicable(
                "needs the distribution of the noise, of which only the covariance is stated"
            )
        unit = 1.0 if self.units is None else float(self.units[attribute])
        return NoiseDensity(
            self.distribution, float(np.sqrt(level * self.shape[attribute, attribute])), unit
        )

    @cached_property
    def excess_kurtosis(self) -> Array | None:
        """Excess kurtosis of the components of u, shape (MN,).

        None where all are 0, or unstated.
        """
        distribution = self.distribution
        if distribution == "gaussian" or distribution == "unstated":
            return None
        variances = np.clip(np.diag(self.shape), 0.0, None) / (
            1.0 if self.units is None else self.units**2
        )
        levels = np.clip(np.diag(self.level_covariance), 0.0, None)
        low, high = _increments(levels) if self.one_process else (np.zeros_like(levels), levels)
        return np.concatenate(
            [
                _excess(distribution, a * variances, b * variances)
                for a, b in zip(low, high, strict=True)
            ]
        )

    @property
    def tells_spread(self) -> bool:
        """Whether the spread of squared errors has a closed form."""
        return self.serial is None and self.distribution != "unstated"

    @cached_property
    def passed_root(self) -> Array:
        """Root of ``K_Z`` that keeps noise-free combinations (``level_root``)."""
        return np.asarray(np.kron(level_root(self.level_covariance), psd_root(self.shape)))

    @cached_property
    def root(self) -> Array:
        """``Sigma^½ ⊗ K_0^½``, shape (MN, MN): the noise is ``root · u``.

        Components of u are independent.
        """
        return np.asarray(np.kron(self._level_root, self._shape_root))

    @cached_property
    def _shape_root(self) -> Array:
        return psd_root(self.shape)

    @cached_property
    def _level_root(self) -> Array:
        Sigma = self.level_covariance
        if not self.one_process:
            return psd_root(Sigma)
        low, high = _increments(np.clip(np.diag(Sigma), 0.0, None))
        return np.where(high <= np.diag(Sigma)[:, None], np.sqrt(high - low), 0.0)


@unprinted
class DenseNoise:
    """Jointly Gaussian noise with any covariance.

    Attributes
    ----------
    covariance : (MN, MN)
        ``K_Z``, positive semi-definite, *not checked*.
    """

    covariance: Array
    width: int
    follows_data: bool = False
    distribution: ClassVar[Distribution] = "gaussian"
    excess_kurtosis: ClassVar[None] = None
    serial: ClassVar[None] = None
    tells_spread: ClassVar[bool] = True

    @cached_property
    def passed_root(self) -> Array:
        """A root of ``K_Z`` (``level_root``)."""
        return level_root(self.covariance)

    @cached_property
    def root(self) -> Array:
        """``K_Z^½``, shape (MN, MN)."""
        return psd_root(self.covariance)

    @property
    def copies(self) -> int:
        return int(self.covariance.shape[0]) // self.width

    def applied(self, W: Array) -> Array:
        return (W.reshape(-1, W.shape[-1]) @ self.covariance).reshape(W.shape)

    def coloured(self, U: Array) -> Array:
        return (U.reshape(-1, U.shape[-1]) @ self.root.T).reshape(U.shape)

    @property
    def deviations(self) -> Array:
        return deviations(self.covariance).reshape(-1, self.width)

    def of(self, copies: Sequence[int]) -> DenseNoise:
        index = attribute_index(copies, self.width)
        return DenseNoise(self.covariance[np.ix_(index, index)], self.width)

    def of_attributes(self, columns: Indices) -> DenseNoise:
        index = (np.arange(self.copies)[:, None] * self.width + columns).ravel()
        return DenseNoise(self.covariance[np.ix_(index, index)], len(columns))


NoiseLaw = KroneckerNoise | DenseNoise


def _times_kronecker(W: Array, A: Array, B: Array) -> Array:
    M, N = len(A), len(B)
    by_copy = (W.reshape(-1, N) @ B).reshape(-1, M, N)
    if np.count_nonzero(A) == np.count_nonzero(np.diag(A)):
        return (by_copy * np.diag(A)[:, None]).reshape(W.shape)
    return (by_copy.mT.reshape(-1, M) @ A).reshape(-1, N, M).mT.reshape(W.shape)


def _increments(levels: Array) -> Pair:
    order = np.argsort(levels, kind="stable")
    below = np.empty_like(levels)
    below[order] = np.concatenate([[0.0], levels[order][:-1]])
    return below, levels


def _excess(distribution: Distribution, low: Array, high: Array) -> Array:
    # division before squaring avoids overflow and underflow
    scale = np.where(high > low, high - low, np.inf)
    begun, ended = (
        np.array(
            [
                (v / s) ** 2 * excess_kurtosis(distribution, v) if v > 0 else 0.0
                for v, s in zip(ends, scale, strict=True)
            ]
        )
        for ends in (low, high)
    )
    return ended - begun


def psd_root(K: Array) -> Array:
    """Root R of a positive semi-definite matrix, ``R Rᵀ = K``.

    Negative eigenvalues count as 0. For widely scaled attributes by the correlations.
    """
    if widely_scaled(K):
        correlations, size = in_own_units(K)
        return size[:, None] * psd_root(correlations)
    return symmetric_root(K)


def undo_root(K: Array) -> Array:
    """Inverse of ``psd_root(K)``, shape (N, N).

    Or the pseudo-inverse.
    """
    _, size = in_own_units(K)
    return np.linalg.pinv(psd_root(K) / size[:, None], rcond=1e-5) / size


def one_suffices(useless: Flags, copies: Sequence[int]) -> bool:
    """Whether one copy makes all others useless (``makes_useless``)."""
    members = [copy - 1 for copy in copies]
    return any(all(row[j] for j in members) for row in useless[members].tolist())


def not_known_to_gain(coalitions: Coalitions, law: NoiseLaw | None) -> list[Coalition]:
    """Coalitions of several copies that no law shows to gain."""
    useless = None if law is None else makes_useless(law)
    return [
        one
        for one in coalitions
        if len(one) > 1 and (useless is None or one_suffices(useless, one))
    ]


def makes_useless(law: NoiseLaw) -> Flags:
    """Whether copy b makes copy j useless, for each pair, shape (M, M).

    With jointly Gaussian noise and ``Cov(Z_b, Z_j) = Var(Z_b)``, ``Y_j`` is ``Y_b`` plus
    independent noise: *no* attack gains from it (li2012, Theorems 1, 2 and 4, and Corollary 1).
    Other noise needs one process.
    """
    M = law.copies
    if isinstance(law, DenseNoise):
        K, width = law.covariance, law.width
    else:
        K, width = law.level_covariance, 1
        if law.one_process:
            return np.diag(K)[:, None] <= np.diag(K)
    if law.distribution != "gaussian":
        return np.zeros((M, M), dtype=bool)
    blocks = K.reshape(M, width, M, width)
    own = np.einsum("abac->abc", blocks)
    variance = np.clip(np.einsum("abab->ab", blocks), 0.0, None)
    deviation = np.sqrt(variance)
    # Cov(Z_b, Z_j) − Var(Z_b), relative to the deviations compared
    gaps = np.abs(blocks - own[:, :, None, :])
    apart = variance[:, None] - 2.0 * np.einsum("abcb->acb", blocks) + variance[None]
    rounding = BITS * EPS * np.maximum(deviation[None], deviation[:, None])
    size = (
        deviation[:, :, None, None]
        * (UNCORRELATED * np.sqrt(np.clip(apart, 0.0, None)) + rounding)[:, None]
    )
    # Var(Z_j − Z_b) = Var(Z_j) − Var(Z_b) must not be negative
    quieter = (deviation[:, None] <= deviation[None] * (1.0 + UNCORRELATED)).all(axis=2)
    return (gaps <= size).all(axis=(1, 3)) & quieter


PROCESSES: frozenset[Distribution] = frozenset({"laplace", "geometric", "skellam"})
"""Non-Gaussian distributions with independent attributes."""


def is_process(law: NoiseLaw) -> TypeGuard[KroneckerNoise]:
    """Whether a law describes non-Gaussian noise that is one process."""
    return isinstance(law, KroneckerNoise) and law.distribution in PROCESSES


class IncrementDensity(NamedTuple):
    """Increment of one attribute's noise: 0 with probability ``rest``.

    Skellam: never. Laplace and geometric noise have characteristic functions ``1/(1 + v·ψ(u))``,
    and ``(1 + low·ψ)/(1 + high·ψ) = r + (1 − r)/(1 + high·ψ)``, ``r = low/high``.
    """

    rest: float
    moving: NoiseDensity

    def distribution(self, t: Array) -> Pair:
        """Distribution function, with half of t, and ``P(t)``."""
        at = np.asarray(t, dtype=float)
        point = (
            (1.0 - self.rest) * self.moving.pdf(at) if self.moving.on_lattice else np.zeros_like(at)
        )
        middle = self.rest * np.where(at == 0.0, 0.5, at > 0.0) + (
            1.0 - self.rest
        ) * self.moving.cdf(at)
        return middle, point + self.rest * (at == 0.0)


def increment_density(
    law: KroneckerNoise, low: float, high: float, attribute: int
) -> IncrementDensity:
    """Law of one attribute's ``Z_high − Z_low``, 0 ≤ low < high."""
    if law.distribution == "skellam":
        return IncrementDensity(0.0, law.density_at(high - low, attribute))
    return IncrementDensity(low / high, law.density_at(high, attribute))


@unprinted
class Transform:
    """``x ↦ M x + t``.

    Attributes
    ----------
    matrix : (n', N)
    shift : (n',)
    """

    matrix: Array
    shift: Array

    def apply(self, x: Array, out: Array) -> None:
        """Write ``x Mᵀ + t``, shape (b, n')."""
        np.matmul(x, self.matrix.T, out=out)
        out += self.shift

    def undo(self, y: Array) -> Array:
        """``(y − t) M``, shape (b, N): the original if M is orthogonal."""
        return (y - self.shift) @ self.matrix

    def inverse(self, y: Array) -> Array:
        """``M⁻¹ (y − t)``, shape (b, N).

        ``LinAlgError`` if M is exactly singular; near-singularity is *not checked*.
        """
        if self.orthogonal:
            return self.undo(y)
        return np.asarray(np.linalg.solve(self.matrix, (y - self.shift).T).T)

    @cached_property
    def orthogonal(self) -> bool:
        """Whether the matrix is orthogonal, up to rounding."""
        return bool(
            np.allclose(self.matrix @ self.matrix.T, np.eye(len(self.matrix)), rtol=0.0, atol=1e-13)
        )


@frozen
class Transformed:
    """Square transforms of a release's copies, and the noise law before transforms.

    Invertibility is *not checked*.
    """

    transforms: tuple[Transform, ...] = field(repr=False)
    law: NoiseLaw

    def undo(self, copies: Arrays) -> list[Array]:
        """``u_i`` of some rows of all copies, each of shape (b, N)."""
        return [
            transform.inverse(copy) for transform, copy in zip(self.transforms, copies, strict=True)
        ]

    @property
    def rigid(self) -> bool:
        """Whether every transform is rigid: others amplify rounding."""
        return all(transform.orthogonal for transform in self.transforms)

    def as_seen(self, moments: Moments) -> Moments:
        """Moments of ``[x, y_1 … y_M]`` from moments of ``[x, u_1 … u_M]``.

        ``y`` is centred at ``M_i μ + t_i``.
        """
        return Moments(
            moments.count, self._all @ moments.total, self._all @ moments.products @ self._all.T
        )

    @cached_property
    def _all(self) -> Array:
        N = self.transforms[0].shift.size
        return scipy.linalg.block_diag(
            np.eye(N), *(transform.matrix for transform in self.transforms)
        )
