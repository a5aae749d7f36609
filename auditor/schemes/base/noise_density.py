"""Distribution of one attribute's noise in one copy, and its shapes.

| distribution | density or probability at t | excess kurtosis | source |
| --- | --- | --- | --- |
| ``gaussian`` | ``φ(t/s)/s`` | 0 | |
| ``uniform`` | ``1/(2√3 s)`` on ±√3·s | −6/5 | agrawal2000 |
| ``laplace`` | ``e^{−|t|/b}/(2b)``, ``s² = 2b²`` | 3 | |
| ``geometric`` | ``(1 − q)/(1 + q)·q^{|k|} = tanh(λ/2)·e^{−λ|k|}``, ``v = 2q/(1 − q)²`` | ``3 + 1/v`` | ghosh2009 |
| ``skellam`` | ``e^{−v} I_k(v)`` | ``1/v`` | skellam1946 |

``s``: standard deviation, data units. ``geometric`` and ``skellam`` lie on a lattice: ``t =
k·unit`` with k whole, and ``v = (s/unit)²``. All are symmetric about 0.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, field_validator

from auditor.base import AuditorError, scipy
from auditor.base.types import Array, Flags, frozen
from auditor.numerics.linear_algebra import check_covariance as check_covariance
from auditor.registry import PluginParameters
from auditor.results.files import located

Distribution = Literal["gaussian", "uniform", "laplace", "geometric", "skellam"]
EXACT_TAIL = 1e4
"""Variance up to which Skellam tails are exact; beyond, relative error 1e-7 to 20 deviations.
"""
SQRT3 = float(np.sqrt(3.0))
LATTICE: frozenset[Distribution] = frozenset({"geometric", "skellam"})
"""Distributions on a lattice."""


def geometric_rate(v: float) -> float:
    """``λ = −ln q`` of two-sided geometric noise of variance v > 0.

    Solves ``v = 2q/(1 − q)² = 1/(2 sinh²(λ/2))``, in squared units, for any q.

    Examples
    --------
    >>> round(float(np.exp(-geometric_rate(4.0))), 12)
    0.5
    """
    return float(2.0 * np.arcsinh(1.0 / np.sqrt(2.0 * v)))


@frozen
class NoiseDensity:
    """Noise of one attribute.

    Attributes
    ----------
    distribution
        One of ``Distribution``.
    std
        Standard deviation, in data units; > 0.
    unit
        Lattice step of lattice noise, in data units.
    """

    distribution: Distribution
    std: float
    unit: float = 1.0

    @property
    def on_lattice(self) -> bool:
        """Whether values are whole multiples of ``unit``."""
        return self.distribution in LATTICE

    @property
    def reach(self) -> float:
        """Half the width of the uniform distribution, ``√3·std``."""
        return SQRT3 * self.std

    @property
    def excess_kurtosis(self) -> float:
        """Fourth cumulant over the squared variance."""
        return excess_kurtosis(self.distribution, self._v)

    def pdf(self, t: Array) -> Array:
        """Density at t, or the probability of t on a lattice."""
        return np.exp(self.log_pdf(t))

    def log_pdf(self, t: Array) -> Array:
        """Logarithm of ``pdf``; −∞ only where noise is impossible."""
        t, s = np.asarray(t, dtype=float), self.std
        with np.errstate(divide="ignore", over="ignore"):
            if self.distribution == "gaussian":
                return -0.5 * (t / s) ** 2 - np.log(s * np.sqrt(2.0 * np.pi))
            if self.distribution == "uniform":
                return np.where(np.abs(t) <= self.reach, -np.log(2.0 * self.reach), -np.inf)
            if self.distribution == "laplace":
                b = s / np.sqrt(2.0)
                return -np.abs(t) / b - np.log(2.0 * b)
            k, on = self._multiples(t)
            if self.distribution == "skellam":
                return np.where(on, log_skellam(k, self._v), -np.inf)
            rate = geometric_rate(self._v)
            return np.where(on, np.log(np.tanh(rate / 2.0)) - rate * np.abs(k), -np.inf)

    @property
    def _v(self) -> float:
        return (self.std / self.unit) ** 2

    def _multiples(self, t: Array) -> tuple[Array, Flags]:
        """Nearest lattice points, in units, and whether t lies on them."""
        k = np.rint(t / self.unit)
        return k, np.abs(t / self.unit - k) < 1e-6 * np.maximum(1.0, np.abs(k))

    def log_pdf_of_differences(self, y: Array, x: Array) -> Array:
        """``log_pdf(y − x)``, broadcast; exact on a lattice."""
        if self.distribution == "skellam":
            k_y, k_x = y / self.unit, x / self.unit
            if (k_y == np.rint(k_y)).all() and (k_x == np.rint(k_x)).all():
                return log_skellam(k_y - k_x, self._v)
        return self.log_pdf(y - x)

    def cdf(self, t: Array) -> Array:
        """Distribution function at t, with half of a lattice point."""
        if self.distribution == "uniform":
            return np.clip(0.5 + 0.5 * t / self.reach, 0.0, 1.0)
        tail = self._tail(t)
        return np.where(t > 0, 1.0 - tail, tail)

    def likelihood(self, y: Array, edges: Array, midpoints: bool = False) -> Array:
        """Likelihood of values given bins, shape (len(y), B).

        Bin averages, or at midpoints.
        """
        if midpoints:
            return self.pdf(y[:, None] - (edges[:-1] + edges[1:]) / 2.0)
        found = self.between(y[:, None] - edges)
        found /= np.diff(edges)
        return found

    def between(self, t: Array) -> Array:
        """Probability between neighbours of t, along the last axis."""
        if self.distribution == "uniform":
            return -np.diff(self.cdf(t), axis=-1)
        # above the mean a difference of two F near 1 would round to 0
        tail = np.copysign(self._tail(t), t)
        found = tail[..., 1:] - tail[..., :-1]
        found += ~np.signbit(t[..., :-1]) & np.signbit(t[..., 1:])
        return found

    def _tail(self, t: Array) -> Array:
        """``P(Z > |t|)``, plus half of a lattice point's probability.

        Geometric: ``q^{k+1}/(1 + q)``. Skellam: by non-central χ² (Johnson 1959).
        """
        t = np.abs(t)
        if self.distribution == "gaussian":
            return scipy.special.ndtr(t / -self.std)
        if self.distribution == "laplace":
            return 0.5 * np.exp(-t / (self.std / np.sqrt(2.0)))
        (k, on), v = self._multiples(t), self._v
        at = np.where(on, k, np.floor(t / self.unit))
        if self.distribution == "geometric":
            rate = geometric_rate(v)
            beyond = np.exp(-rate * (at + 1.0)) / (1.0 + np.exp(-rate))
        elif v > EXACT_TAIL:
            return _saddle_point_tail(at, v) - np.where(on, 0.0, 0.5 * np.exp(log_skellam(at, v)))
        else:
            k, which = np.unique(at, return_inverse=True)
            beyond = scipy.special.chndtr(v, 2.0 * (k + 1.0), v)[which]
        return beyond + 0.5 * self.pdf(t)


def excess_kurtosis(distribution: Distribution, v: float) -> float:
    """Excess kurtosis at variance ``v``, in squared lattice units."""
    return {
        "gaussian": 0.0,
        "uniform": -6.0 / 5.0,
        "laplace": 3.0,
        "geometric": 3.0 + 1.0 / v,
        "skellam": 1.0 / v,
    }[distribution]


FAR = 1e4
"""Size of (k, v) from which ``I_k(v)`` is its uniform expansion, relative error 0.1/(k² + v²)^1.5;
scipy's fails there.
"""


def log_skellam(k: Array, v: float) -> Array:
    """``log e^{−v} I_k(v)`` for whole k."""
    # Bessel functions are many times slower than a search for equal values
    different, which = np.unique(np.abs(k), return_inverse=True)
    return _log_bessel(different, v)[which].reshape(np.shape(k))


def _log_bessel(k: Array, v: float) -> Array:
    """``log e^{−v} I_k(v)``; for large k Debye's expansion (DLMF 10.41.3)."""
    R = np.hypot(k, v)
    p2 = (k / R) ** 2
    U_1 = (3.0 - 5.0 * p2) / (24.0 * R)
    U_2 = (81.0 - 462.0 * p2 + 385.0 * p2 * p2) / (1152.0 * R * R)
    exponent = k * k / (R + v) - k * np.arcsinh(k / v)
    far = exponent - 0.5 * np.log(2.0 * np.pi * R) + np.log1p(U_1 + U_2)
    if v >= FAR:
        return far
    with np.errstate(divide="ignore"):
        near = np.log(scipy.special.ive(k, v))
    return np.where((R < FAR) & np.isfinite(near), near, far)


def _saddle_point_tail(k: Array, v: float) -> Array:
    """``P(K > k) + P(K = k)/2`` for k ≥ 0 by the saddle point.

    ``Φ(−w) + φ(w)·(coth(s/2)/(2√κ) − 1/w)`` with ``s = arsinh(k/v)``, ``κ = √(k² + v²)``: the mean of the
    lattice forms of Lugannani & Rice 1980 for ``P(K ≥ k)`` and ``P(K > k)``.
    """
    # w = √(2(k·arsinh(k/v) + v − √(k² + v²)))
    gap = k * np.arcsinh(k / v) - k * k / (np.hypot(k, v) + v)
    w = np.sqrt(2.0 * np.clip(gap, 0.0, None))
    far = np.maximum(w, 1e-3)  # closer to 0 both terms equal 1 up to a share of w/v
    add = (
        0.5 / (np.tanh(np.arcsinh(k / v) / 2.0) + (w < 1e-3)) / np.sqrt(np.hypot(k, v)) - 1.0 / far
    )
    return scipy.special.ndtr(-w) + np.where(
        w < 1e-3, 0.0, np.exp(-0.5 * w * w) / np.sqrt(2.0 * np.pi) * add
    )


# -- Shapes of additive noise: ``K_0``, a row's covariance at level 1 ------------------------------


class VarianceShape(PluginParameters):
    """Noise of variance v in all attributes: ``K_0 = v·I``.

    v is in squared data units.
    """

    variance: PositiveFloat


class AlongTheData(PluginParameters):
    """Noise with the eigenvectors of the data's covariance."""

    of: Literal["table", "population"] = "table"


class SpectrumShape(AlongTheData):
    """Noise with the data's eigenvectors and stated eigenvalues.

    Largest first; in squared data units.
    """

    spectrum: Annotated[list[NonNegativeFloat], Field(min_length=1)]


class DissimilarShape(AlongTheData):
    """Noise with the data's eigenvectors and a chosen dissimilarity.

    ``dissimilar`` 0: eigenvalues in proportion to the data's; 0.5: white; 1: the data's in reverse
    order. ``variance``: mean over attributes, in squared data units.
    """

    dissimilar: Annotated[float, Field(ge=0, le=1)]
    variance: PositiveFloat


class MatrixShape(PluginParameters):
    """Noise covariance ``K_0`` as rows, or as a CSV file without header."""

    matrix: str | list[list[float]]

    @field_validator("matrix")
    @classmethod
    def _positive_semidefinite(cls, matrix: str | list[list[float]]) -> str | list[list[float]]:
        if not isinstance(matrix, str):
            check_covariance(matrix)
        return matrix


class VariancesShape(PluginParameters):
    """Independent noise with one variance per attribute.

    In squared data units.
    """

    variances: Annotated[list[NonNegativeFloat], Field(min_length=1)]


NoiseShape = (
    Literal["white", "data", "bounds"]
    | VarianceShape
    | SpectrumShape
    | DissimilarShape
    | MatrixShape
)


def noise_shape(
    shape: NoiseShape, K_X: Array, base: Path | None = None, spans: Array | None = None
) -> Array:
    """``K_0``, the covariance of a row's noise at level 1, (N, N).

    Parameters
    ----------
    shape : 'white', 'data', 'bounds' or a shape model
        ``white``: ``(tr K_X / N)·I``; ``data``: ``K_X``; ``bounds``: ``diag(Δ²)``.
    base
        Of a matrix file.
    spans : (N,)
        ``Δ``: largest change of one record, from stated bounds.

    Raises
    ------
    AuditorError
        Not N entries, no covariance, or no bounds.
    """
    N = K_X.shape[0]
    if shape == "bounds":
        if spans is None:
            raise AuditorError(
                "noise: bounds needs `data: bounds:`, which state by how much one record may change"
            )
        return np.diag(spans**2)
    if shape == "white":
        return np.eye(N) * (np.trace(K_X) / N)
    if shape == "data":
        return K_X
    if isinstance(shape, VarianceShape):
        return np.eye(N) * shape.variance
    if isinstance(shape, SpectrumShape):
        if len(shape.spectrum) != N:
            raise AuditorError(
                f"noise.spectrum must have one eigenvalue per attribute, {N}; got {len(shape.spectrum)}"
            )
        vectors = np.linalg.eigh(K_X)[1][:, ::-1]
        return (vectors * shape.spectrum) @ vectors.T
    if isinstance(shape, DissimilarShape):
        values, vectors = np.linalg.eigh(K_X)
        return (vectors * dissimilar_spectrum(values, shape.dissimilar, shape.variance)) @ vectors.T
    assert isinstance(shape, MatrixShape)
    rows: Any = shape.matrix
    try:
        K = check_covariance(
            matrix_of_file(rows, base, "noise.matrix") if isinstance(rows, str) else rows
        )
    except ValueError as error:
        raise AuditorError(f"noise.matrix {error}") from None
    if len(K) != N:
        raise AuditorError(
            f"noise.matrix must be {N} × {N}, one row per attribute; got {len(K)} × {len(K)}"
        )
    return K


ProductShape = Literal["white", "data", "bounds"] | VarianceShape | VariancesShape
"""Shape with independent attributes; ``data`` has each attribute's own variance."""


def product_shape(shape: ProductShape, K_X: Array, spans: Array | None) -> Array:
    """Diagonal ``K_0``, (N, N), by the diagonals of ``noise_shape``."""
    if shape == "data":
        return np.diag(np.clip(np.diag(K_X), 0.0, None))
    if not isinstance(shape, VariancesShape):
        return noise_shape(shape, K_X, spans=spans)
    if len(shape.variances) != len(K_X):
        raise AuditorError(
            f"noise.variances must have one variance per attribute, {len(K_X)}; got {len(shape.variances)}"
        )
    return np.diag(np.array(shape.variances))


def dissimilar_spectrum(values: Array, dissimilar: float, variance: float) -> Array:
    """Noise eigenvalues of a chosen dissimilarity, shape (N,).

    From the data's (0) over equal (0.5) to reversed (1); mean ``variance``. huang2005, section 8.2,
    gives no formula.

    Examples
    --------
    >>> dissimilar_spectrum(np.array([3.0, 1.0]), 0.0, 10.0), dissimilar_spectrum(np.array([3.0, 1.0]), 0.75, 10.0)
    (array([15.,  5.]), array([ 7.5, 12.5]))
    """
    share = np.clip(values, 0.0, None) / np.clip(values, 0.0, None).mean()
    end, weight = (
        (share, 1.0 - 2.0 * dissimilar)
        if dissimilar <= 0.5
        else (share[::-1], 2.0 * dissimilar - 1.0)
    )
    return variance * (weight * end + (1.0 - weight))


def correlation_dissimilarity(C_X: Array, C_R: Array) -> float:
    """Correlation dissimilarity of data and noise.

    ``√(1/(N²−N) Σ_{i≠j} (C_X − C_R)²)`` of correlations, N ≥ 2, from 0 (equal) to 2 (huang2005,
    Definition 8.1, with ERRATA's root).

    Examples
    --------
    >>> correlation_dissimilarity(np.array([[1.0, 0.5], [0.5, 1.0]]), np.eye(2))
    0.5
    """
    N = C_X.shape[0]
    gaps = (C_X - C_R)[~np.eye(N, dtype=bool)]
    return float(np.sqrt((gaps @ gaps) / (N * N - N)))


def matrix_of_file(name: str, base: Path | None, field: str) -> Array:
    """Matrix from a CSV file without a header, relative to ``base``.

    ``AuditorError`` if there is no matrix.
    """
    path = next((path for path in located(name, base) if path.is_file()), None)
    if path is None:
        raise AuditorError(f"{field}: there is no file {name!r}")
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (OSError, ValueError):
        raise AuditorError(f"{field}: {name!r} cannot be read as a CSV file of numbers") from None
