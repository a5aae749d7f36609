"""The law of the noise in a release, exactly as a scheme states it and as an attacker may know it.

| symbol | meaning | shape |
| --- | --- | --- |
| ``K_Z`` | joint covariance of the noise in all copies, copy by copy | (MN, MN) |
| ``Sigma`` | covariance across copies (noise multiples, no unit) | (M, M) |
| ``K_0`` | covariance across attributes, in squared data units | (N, N) |

Every scheme of the papers has ``K_Z = Sigma ⊗ K_0`` (li2012, section 5.4, Lemma 1); ``DenseNoise`` is for copies that mix shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.errors import NotApplicable
from auditor.numerics.autoregression import Autoregression
from auditor.numerics.combination import level_root
from auditor.numerics.linear_algebra import EPS, in_own_units, symmetric_root, widely_scaled
from auditor.numerics.moments import attribute_index, neighbours, square
from auditor.schemes.base.noise_density import Distribution, NoiseDensity, excess_kurtosis
from auditor.types import Array, Coalition

UNCORRELATED = 1e-9
"""Largest correlation of ``Z_b`` with ``Z_j − Z_b`` that counts as none. Against their own deviations: of copies that are nearly the same
the difference is small, and may still be the noise itself (``Z_i = σ_i G`` at nearly equal levels)."""
BITS = 8
"""Roundings that a stated covariance may have gone through."""


@dataclass(frozen=True, eq=False)
class KroneckerNoise:
    """Noise with covariance ``K_Z = Sigma ⊗ K_0``: jointly Gaussian, unless ``distribution`` says otherwise.

    Attributes
    ----------
    level_covariance : ndarray of shape (M, M)
        ``Sigma``; its diagonal holds the levels ``σ_i²``. Positive semi-definite, *not checked*.
    shape : ndarray of shape (N, N)
        ``K_0``. Positive semi-definite, *not checked*.
    follows_data : bool
        Whether ``K_0`` is the data's own covariance: whoever must estimate ``K_X`` must then estimate the noise's too.
    distribution : str
        One of ``auditor.schemes.base.noise_density.DISTRIBUTIONS``. ``uniform``: ``Z = (Sigma^½ ⊗ K_0^½) u`` with u independent and
        uniform on ±√3, ``Sigma`` diagonal. The others that are not Gaussian: attributes are independent, ``K_0`` diagonal. Expected errors
        of linear attacks are the same, as they need second moments only; their spread is not, and uncorrelated copies say nothing
        of independence. ``unstated``: second moments are all that is known; noise is uncorrelated with the data in every row, and its size
        may go with the values.
    one_process : bool
        Whether copies that are not Gaussian are one process with independent increments, seen at their levels: ``Sigma_ij = min(σ_i²,
        σ_j²)`` then, and the least perturbed copy held makes all others useless. Without it they are independent, ``Sigma`` diagonal.
    units : ndarray of shape (N,), optional
        Of noise on a lattice: what each attribute's noise is whole multiples of, in data units.
    serial : Autoregression, optional
        How noise follows on from record to record, the same in all copies and attributes: ``K_Z`` is of one record then, and of all records
        ``R ⊗ K_Z``. Without it every record's is drawn afresh.
    """

    level_covariance: Array = field(repr=False)
    shape: Array = field(repr=False)
    follows_data: bool = False
    distribution: Distribution | Literal["unstated"] = "gaussian"
    one_process: bool = False
    units: Array | None = field(default=None, repr=False)
    serial: Autoregression | None = None

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return int(self.level_covariance.shape[0])

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return int(self.shape.shape[0])

    @cached_property
    def covariance(self) -> Array:
        """``K_Z``, shape (MN, MN)."""
        return np.asarray(np.kron(self.level_covariance, self.shape))

    def of(self, copies: Sequence[int]) -> KroneckerNoise:
        """Return the law of some copies alone; copy numbers count from 1."""
        index = neighbours(np.asarray(copies, dtype=np.intp) - 1)
        return replace(self, level_covariance=self.level_covariance[square(index)])

    def applied(self, W: Array) -> Array:
        """Return ``W K_Z``, shape (..., MN), for weights on all copies; ``K_Z`` is never written out."""
        return _times_kronecker(W, self.level_covariance, self.shape)

    def coloured(self, U: Array) -> Array:
        """Return ``U rootᵀ``, shape (..., MN): noise, row by row, of independent components of variance 1; ``root`` is not written out."""
        return _times_kronecker(U, self._level_root.T, self._shape_root.T)

    def of_attributes(self, columns: NDArray[np.intp]) -> KroneckerNoise:
        """Return the law of some attributes alone, by their places, in a part of the data, whose own covariance it no longer follows."""
        units = None if self.units is None else self.units[columns]
        return replace(self, shape=self.shape[np.ix_(columns, columns)], follows_data=False, units=units)

    def density(self, copy: int, attribute: int) -> NoiseDensity:
        """Return the law of one attribute's noise in one copy, numbers from 1 and places from 0; needs a level and a variance above 0."""
        return self.density_at(float(self.level_covariance[copy - 1, copy - 1]), attribute)

    def density_at(self, level: float, attribute: int) -> NoiseDensity:
        """Return the law of one attribute's noise at any level σ² > 0.

        Raises
        ------
        NotApplicable
            It is unstated.
        """
        if self.distribution == "unstated":
            raise NotApplicable("needs the distribution of the noise, of which only the covariance is stated")
        unit = 1.0 if self.units is None else float(self.units[attribute])
        return NoiseDensity(self.distribution, float(np.sqrt(level * self.shape[attribute, attribute])), unit)

    @cached_property
    def excess_kurtosis(self) -> Array | None:
        """Fourth cumulants of the components of u over their squared variances, shape (MN,); None where all are 0, or unstated.

        Cumulants of independent increments add, so that of the increment from level a to b is ``κ₄(b) − κ₄(a)``.
        """
        distribution = self.distribution
        if distribution == "gaussian" or distribution == "unstated":
            return None
        variances = np.clip(np.diag(self.shape), 0.0, None) / (1.0 if self.units is None else self.units**2)
        levels = np.clip(np.diag(self.level_covariance), 0.0, None)
        low, high = _increments(levels) if self.one_process else (np.zeros_like(levels), levels)
        return np.concatenate([_excess(distribution, a * variances, b * variances) for a, b in zip(low, high, strict=True)])

    @property
    def tells_spread(self) -> bool:
        """Whether the spread of squared errors follows from it in closed form: each record's noise is drawn alone, whatever the record."""
        return self.serial is None and self.distribution != "unstated"

    @cached_property
    def passed_root(self) -> Array:
        """A root of ``K_Z`` that keeps combinations free of noise so, shape (MN, MN) (``level_root``)."""
        return np.asarray(np.kron(level_root(self.level_covariance), psd_root(self.shape)))

    @cached_property
    def root(self) -> Array:
        """``Sigma^½ ⊗ K_0^½``, shape (MN, MN): the noise is this times u, whose components are independent with variance 1.

        Of one process ``Sigma^½`` adds up increments: a symmetric root would leave components that are uncorrelated and not independent.
        """
        return np.asarray(np.kron(self._level_root, self._shape_root))

    @cached_property
    def _shape_root(self) -> Array:
        """``K_0^½``, decomposed once: every redraw of the moments is coloured with it."""
        return psd_root(self.shape)

    @cached_property
    def _level_root(self) -> Array:
        Sigma = self.level_covariance
        if not self.one_process:
            return psd_root(Sigma)
        low, high = _increments(np.clip(np.diag(Sigma), 0.0, None))
        return np.asarray((high <= np.diag(Sigma)[:, None]) * np.sqrt(high - low))


@dataclass(frozen=True, eq=False)
class DenseNoise:
    """Jointly Gaussian noise with any covariance.

    Attributes
    ----------
    covariance : ndarray of shape (MN, MN)
        ``K_Z``, positive semi-definite, *not checked*.
    width : int
        Number of attributes ``N``.
    """

    covariance: Array = field(repr=False)
    width: int
    follows_data: bool = False
    distribution: ClassVar[Distribution] = "gaussian"
    excess_kurtosis: ClassVar[None] = None
    serial: ClassVar[None] = None
    tells_spread: ClassVar[bool] = True

    @cached_property
    def passed_root(self) -> Array:
        """A root of ``K_Z`` that keeps combinations free of noise so, shape (MN, MN) (``level_root``)."""
        return level_root(self.covariance)

    @cached_property
    def root(self) -> Array:
        """``K_Z^½``, shape (MN, MN)."""
        return psd_root(self.covariance)

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return int(self.covariance.shape[0]) // self.width

    def applied(self, W: Array) -> Array:
        """Return ``W K_Z``, shape (..., MN), for weights on all copies."""
        return np.asarray((W.reshape(-1, W.shape[-1]) @ self.covariance).reshape(W.shape))

    def coloured(self, U: Array) -> Array:
        """Return ``U rootᵀ``, shape (..., MN): noise, row by row, of independent components of variance 1."""
        return np.asarray((U.reshape(-1, U.shape[-1]) @ self.root.T).reshape(U.shape))

    def of(self, copies: Sequence[int]) -> DenseNoise:
        """Return the law of some copies alone; copy numbers count from 1."""
        index = attribute_index(copies, self.width)
        return DenseNoise(self.covariance[np.ix_(index, index)], self.width)

    def of_attributes(self, columns: NDArray[np.intp]) -> DenseNoise:
        """Return the law of some attributes alone, by their places, in a part of the data, whose own covariance it no longer follows."""
        index = (np.arange(self.copies)[:, None] * self.width + columns).ravel()
        return DenseNoise(self.covariance[np.ix_(index, index)], len(columns))


NoiseLaw = KroneckerNoise | DenseNoise


def _times_kronecker(W: Array, A: Array, B: Array) -> Array:
    """Return ``W (A ⊗ B)``, shape (..., MN), as two products: M + N operations for each weight in place of MN."""
    M, N = len(A), len(B)
    by_copy = (W.reshape(-1, N) @ B).reshape(-1, M, N)
    if np.count_nonzero(A) == np.count_nonzero(np.diag(A)):  # of independent copies: a factor for each
        return np.asarray((by_copy * np.diag(A)[:, None]).reshape(W.shape))
    by_attribute = by_copy.swapaxes(1, 2).reshape(-1, M)
    return np.asarray((by_attribute @ A).reshape(-1, N, M).swapaxes(1, 2).reshape(W.shape))


def _increments(levels: Array) -> tuple[Array, Array]:
    """Return where each copy's increment begins and ends, in order of release: at the level next below, and at its own.

    Of copies at one level the first has the increment, and the others none.
    """
    order = np.argsort(levels, kind="stable")
    below = np.empty_like(levels)
    below[order] = np.concatenate([[0.0], levels[order][:-1]])
    return below, levels


def _excess(distribution: Distribution, low: Array, high: Array) -> Array:
    """Return the excess kurtosis of increments from variances ``low`` to ``high``, in squared units of a lattice; 0 where there is none."""
    scale = np.where(high > low, high - low, np.inf)  # divided by before squaring, which very small and large variances do not survive
    begun, ended = (
        np.array([(v / s) ** 2 * excess_kurtosis(distribution, v) if v > 0 else 0.0 for v, s in zip(ends, scale, strict=True)])
        for ends in (low, high)
    )
    return np.asarray(ended - begun)


def psd_root(K: Array) -> Array:
    """Return a root R of a positive semi-definite matrix, ``R Rᵀ = K``, shape (N, N).

    An eigen root, and not Cholesky's: official statistics hold totals beside their parts, so ``K_X`` is often exactly singular.
    Eigenvalues that rounding made negative count as 0. The root is the symmetric one, and where attributes' sizes are far apart that of the
    correlations in units of each attribute: of micrometres beside megametres the symmetric one is rounding.
    """
    if widely_scaled(K):
        correlations, size = in_own_units(K)
        return size[:, None] * psd_root(correlations)
    return symmetric_root(K)


def undo_root(K: Array) -> Array:
    """Return the inverse of ``psd_root(K)``, which brings what was drawn with covariance K to its independent normals, shape (N, N).

    Where K is singular, the pseudo-inverse, in units of each attribute.
    """
    size = np.sqrt(np.where(np.diag(K) > 0, np.diag(K), 1.0))
    return np.asarray(np.linalg.pinv(psd_root(K) / size[:, None], rcond=1e-5) / size)


def one_suffices(useless: NDArray[np.bool_], copies: Sequence[int]) -> bool:
    """Whether some copy of a coalition makes every other useless, by a table that ``makes_useless`` made."""
    members = [copy - 1 for copy in copies]
    return any(all(row[j] for j in members) for row in useless[members].tolist())


def not_known_to_gain(coalitions: Sequence[Coalition], law: NoiseLaw | None) -> list[Coalition]:
    """Return the coalitions of two copies or more, without those of which the law says that no copy makes all others useless."""
    useless = None if law is None else makes_useless(law)
    return [one for one in coalitions if len(one) > 1 and (useless is None or one_suffices(useless, one))]


def makes_useless(law: NoiseLaw) -> NDArray[np.bool_]:
    """Return, for each pair of copies, whether the first makes the second useless to whoever holds both, shape (M, M).

    With jointly Gaussian noise, ``Cov(Z_b, Z_j) = Var(Z_b)`` for every j says that ``Z_j − Z_b`` is uncorrelated with, hence
    independent of, ``Z_b`` and ``X``: every other copy is ``Y_b`` plus noise of its own, and *no* attack, linear or not, gains
    from it (li2012, Theorems 1, 2 and 4, and Corollary 1). Of other noise the covariance cannot tell: the answer is then no, unless the law
    says that the copies are one process with independent increments, of which the least perturbed copy makes every other useless.
    """
    M = law.copies
    if isinstance(law, KroneckerNoise) and law.one_process:
        levels = np.diag(law.level_covariance)
        return np.asarray(levels[:, None] <= levels)
    if law.distribution != "gaussian":
        return np.zeros((M, M), dtype=bool)
    width = 1 if isinstance(law, KroneckerNoise) else law.width
    blocks = (law.level_covariance if isinstance(law, KroneckerNoise) else law.covariance).reshape(M, width, M, width)
    own = np.einsum("abac->abc", blocks)
    variance = np.clip(np.einsum("abab->ab", blocks), 0.0, None)
    deviation = np.sqrt(variance)
    # Cov(Z_b, Z_j) − Var(Z_b), against the deviations of what is compared: a salary's noise must not hide an age's.
    gaps = np.abs(blocks - own[:, :, None, :])
    apart = variance[:, None] - 2.0 * np.einsum("abcb->acb", blocks) + variance[None]
    rounding = BITS * EPS * np.maximum(deviation[None], deviation[:, None])
    size = deviation[:, :, None, None] * (UNCORRELATED * np.sqrt(np.clip(apart, 0.0, None)) + rounding)[:, None]
    # Var(Z_j − Z_b) = Var(Z_j) − Var(Z_b) then: a «law» in which it is negative, as with max for min, is none.
    quieter = (deviation[:, None] <= deviation[None] * (1.0 + UNCORRELATED)).all(axis=2)
    return np.asarray((gaps <= size).all(axis=(1, 3)) & quieter)
