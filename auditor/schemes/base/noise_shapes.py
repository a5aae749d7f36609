"""Shapes of additive noise: ``K_0``, a row's covariance at level 1."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from auditor.base.errors import AuditorError
from auditor.base.types import Array
from auditor.numerics.linear_algebra import in_own_units
from auditor.registry import PluginParameters
from auditor.results.files import located


class VarianceShape(PluginParameters):
    """Noise of variance v in all attributes: ``K_0 = v·I``.

    v is in squared data units.
    """

    variance: Annotated[float, Field(gt=0)]


class AlongTheData(PluginParameters):
    """Noise with the eigenvectors of the data's covariance."""

    of: Literal["table", "population"] = "table"


class SpectrumShape(AlongTheData):
    """Noise with the data's eigenvectors and stated eigenvalues.

    Largest first; in squared data units.
    """

    spectrum: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]


class DissimilarShape(AlongTheData):
    """Noise with the data's eigenvectors and a chosen dissimilarity.

    ``dissimilar`` 0: eigenvalues in proportion to the data's; 0.5: white; 1: the data's in reverse
    order. ``variance``: mean over attributes, in squared data units.
    """

    dissimilar: Annotated[float, Field(ge=0, le=1)]
    variance: Annotated[float, Field(gt=0)]


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

    variances: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]


NoiseShape = (
    Literal["white", "data", "bounds"]
    | VarianceShape
    | SpectrumShape
    | DissimilarShape
    | MatrixShape
)


def check_covariance(rows: Any) -> Array:
    """Return an exactly symmetric covariance matrix, or raise ValueError."""
    try:
        K = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "must be a square matrix of numbers, every row as long as the first"
        ) from None
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"must be a square matrix; got shape {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("must be finite and symmetric, as a covariance is")
    C, _ = in_own_units(K)
    if np.abs(C - C.T).max(initial=0.0) > 1e-9 * max(1.0, np.abs(C).max(initial=0.0)):
        raise ValueError("must be finite and symmetric, as a covariance is")
    if (np.diag(K) < 0).any() or np.linalg.eigvalsh(C).min(initial=0.0) < -1e-9 * len(C):
        raise ValueError("must be positive semi-definite, as a covariance is")
    return (K + K.T) / 2


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
        return (vectors * np.asarray(shape.spectrum)) @ vectors.T
    if isinstance(shape, DissimilarShape):
        values, vectors = np.linalg.eigh(K_X)
        return (vectors * dissimilar_spectrum(values, shape.dissimilar, shape.variance)) @ vectors.T
    assert isinstance(shape, MatrixShape)
    return _matrix(shape.matrix, N, base)


ProductShape = Literal["white", "data", "bounds"] | VarianceShape | VariancesShape
"""Shape with independent attributes; ``data`` has each attribute's own variance."""


def product_shape(shape: ProductShape, K_X: Array, spans: Array | None = None) -> Array:
    """Diagonal ``K_0``, (N, N), by the diagonals of ``noise_shape``."""
    if shape == "data":
        return np.diag(np.clip(np.diag(K_X), 0.0, None))
    if not isinstance(shape, VariancesShape):
        return noise_shape(shape, K_X, spans=spans)
    if len(shape.variances) != len(K_X):
        raise AuditorError(
            f"noise.variances must have one variance per attribute, {len(K_X)}; got {len(shape.variances)}"
        )
    return np.diag(np.asarray(shape.variances, dtype=np.float64))


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


def _matrix(source: str | list[list[float]], N: int, base: Path | None) -> Array:
    if isinstance(source, str):
        rows: Any = matrix_of_file(source, base, "noise.matrix")
    else:
        rows = source
    try:
        K = check_covariance(rows)
    except ValueError as error:
        raise AuditorError(f"noise.matrix {error}") from None
    if K.shape[0] != N:
        raise AuditorError(
            f"noise.matrix must be {N} × {N}, one row per attribute; got {K.shape[0]} × {K.shape[0]}"
        )
    return K
