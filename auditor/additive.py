"""Additive Gaussian schemes: how noise is shaped, and how copies are drawn step by step from earlier ones.

``Y_i = X + Z_i``. A scheme states ``Sigma`` (``level_covariance``) and, beside it, a plan that draws from exactly that law;
tests hold the two together without any sampling (``implied_level_covariance``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from auditor.errors import AuditorError
from auditor.linear_algebra import correlation
from auditor.noise import Distribution, GaussianNoise, psd_root
from auditor.registry import PluginParameters
from auditor.rowmap import add_scaled
from auditor.scheme import Key, Scheme, TableMoments
from auditor.streams import stream

Array = NDArray[np.float64]

CHUNK_VALUES = 2**14
"""Values (rows × attributes) worked on at once: 128 KB a copy, so that a copy and its two parents stay in a core's cache."""

ORIGINAL = 0
"""The place of ``X`` among a step's parents: level 0, the copy that nobody gets."""


@dataclass(frozen=True)
class Step:
    """How one copy is drawn: ``Y_copy = Σ weight_j · Y_j + Σ scale_k · g_k``, with ``Y_0 = X`` and ``g_k ~ N(0, K_0)``.

    Attributes
    ----------
    copy : int
        Number of the copy drawn.
    parents : tuple of (int, float)
        Copies drawn before (0 is the original) and their weights, which sum to 1.
    fresh : tuple of (int, float)
        Innovation streams, named by copy number, and their scales (standard deviations, in multiples of ``K_0``'s root).
    """

    copy: int
    parents: tuple[tuple[int, float], ...]
    fresh: tuple[tuple[int, float], ...] = ()


class VarianceShape(PluginParameters):
    """Noise of one variance for all attributes, ``K_0 = v·I``, v in squared data units."""

    variance: Annotated[float, Field(gt=0)]


class SpectrumShape(PluginParameters):
    """Noise with the data's eigenvectors (largest eigenvalue first) and eigenvalues of its own, in squared data units."""

    spectrum: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]


class DissimilarShape(PluginParameters):
    """Noise with the data's eigenvectors, from correlated as the data are to the opposite, at one total variance.

    ``dissimilar`` 0: eigenvalues in proportion to the data's; 0.5: white; 1: the data's in reverse order, so that noise lies where
    the data do not; linear in between. ``variance``: its mean over the attributes, in squared data units.
    """

    dissimilar: Annotated[float, Field(ge=0, le=1)]
    variance: Annotated[float, Field(gt=0)]


class MatrixShape(PluginParameters):
    """Noise covariance ``K_0`` given as rows of numbers, or the path of a CSV file without a header that holds them."""

    matrix: str | list[list[float]]

    @field_validator("matrix")
    @classmethod
    def _positive_semidefinite(cls, matrix: str | list[list[float]]) -> str | list[list[float]]:
        if not isinstance(matrix, str):
            _check_covariance(matrix)
        return matrix


NoiseShape = Literal["white", "data"] | VarianceShape | SpectrumShape | DissimilarShape | MatrixShape


def _check_covariance(rows: Any) -> Array:
    """Return a covariance matrix as an array, or raise ValueError saying what is wrong with it."""
    try:
        K = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("must be a square matrix of numbers, every row as long as the first") from None
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"must be a square matrix; got shape {K.shape}")
    if not np.isfinite(K).all() or not np.allclose(K, K.T, rtol=1e-9, atol=0):
        raise ValueError("must be finite and symmetric, as a covariance is")
    if np.linalg.eigvalsh(K).min() < -1e-9 * np.abs(K).max():
        raise ValueError("must be positive semi-definite, as a covariance is")
    return K


def noise_shape(shape: NoiseShape, K_X: Array, base: Path | None = None) -> Array:
    """Return ``K_0``, the covariance across attributes of noise at level 1.

    Parameters
    ----------
    shape : 'white', 'data' or a shape model
        ``white``: ``(tr K_X / N)·I``; ``data``: ``K_X``; ``variance``: ``v·I``; ``spectrum``: the data's eigenvectors with
        other eigenvalues; ``dissimilar``: the same, from the data's to the opposite; ``matrix``: given.
    K_X : ndarray of shape (N, N)
        The data's covariance.
    base : Path, optional
        Folder that a matrix file's path is relative to.

    Returns
    -------
    ndarray of shape (N, N)

    Raises
    ------
    AuditorError
        A spectrum or matrix does not have N entries, or is no covariance.
    """
    N = K_X.shape[0]
    if shape == "white":
        return np.asarray(np.eye(N) * (np.trace(K_X) / N))
    if shape == "data":
        return K_X
    if isinstance(shape, VarianceShape):
        return np.eye(N) * shape.variance
    if isinstance(shape, SpectrumShape):
        if len(shape.spectrum) != N:
            raise AuditorError(f"noise.spectrum must have one eigenvalue per attribute, {N}; got {len(shape.spectrum)}")
        vectors = np.linalg.eigh(K_X)[1][:, ::-1]
        return np.asarray((vectors * np.asarray(shape.spectrum)) @ vectors.T)
    if isinstance(shape, DissimilarShape):
        values, vectors = np.linalg.eigh(K_X)
        return np.asarray((vectors * dissimilar_spectrum(values, shape.dissimilar, shape.variance)) @ vectors.T)
    assert isinstance(shape, MatrixShape)
    return _matrix(shape.matrix, N, base)


def dissimilar_spectrum(values: Array, dissimilar: float, variance: float) -> Array:
    """Return eigenvalues of noise that go from the data's (0) over equal ones (0.5) to the data's reversed (1), shape (N,).

    Parameters
    ----------
    values : ndarray of shape (N,)
        The data's eigenvalues, sorted either way; only their proportions count.
    dissimilar : float
        In [0, 1].
    variance : float
        Mean of the result, in squared data units, whatever ``dissimilar`` is.

    Notes
    -----
    huang2005, section 8.2, changes the noise's eigenvalues and keeps the data's eigenvectors, without saying how; noise concentrates on
    the principal components left of the white noise in its Fig. 4, and on the others right of it.

    Examples
    --------
    >>> dissimilar_spectrum(np.array([3.0, 1.0]), 0.0, 10.0), dissimilar_spectrum(np.array([3.0, 1.0]), 0.75, 10.0)
    (array([15.,  5.]), array([ 7.5, 12.5]))
    """
    share = np.clip(values, 0.0, None) / np.clip(values, 0.0, None).mean()
    end, weight = (share, 1.0 - 2.0 * dissimilar) if dissimilar <= 0.5 else (share[::-1], 2.0 * dissimilar - 1.0)
    return np.asarray(variance * (weight * end + (1.0 - weight)))


def correlation_dissimilarity(C_X: Array, C_R: Array) -> float:
    """Return the correlation dissimilarity of data and noise, ``√(1/(N²−N) Σ_{i≠j} (C_X − C_R)²)``.

    Parameters
    ----------
    C_X, C_R : ndarrays of shape (N, N)
        Correlation coefficients, N ≥ 2.

    Returns
    -------
    float
        From 0, correlated alike, to 2.

    Notes
    -----
    Source: huang2005, Definition 8.1, with ERRATA's root.

    Examples
    --------
    >>> correlation_dissimilarity(np.array([[1.0, 0.5], [0.5, 1.0]]), np.eye(2))
    0.5
    """
    N = C_X.shape[0]
    gaps = (C_X - C_R)[~np.eye(N, dtype=bool)]
    return float(np.sqrt((gaps @ gaps) / (N * N - N)))


def _matrix(source: str | list[list[float]], N: int, base: Path | None) -> Array:
    if isinstance(source, str):
        path = (base or Path()) / source
        try:
            rows: Any = np.loadtxt(path, delimiter=",", ndmin=2)
        except (OSError, ValueError):
            raise AuditorError(f"noise.matrix: {source!r} cannot be read as a CSV file of numbers") from None
    else:
        rows = source
    try:
        K = _check_covariance(rows)
    except ValueError as error:
        raise AuditorError(f"noise.matrix {error}") from None
    if K.shape[0] != N:
        raise AuditorError(f"noise.matrix must be {N} × {N}, one row per attribute; got {K.shape[0]} × {K.shape[0]}")
    return K


class AdditiveScheme(Scheme):
    """Base of the additive schemes: noise with covariance ``Sigma ⊗ K_0``, jointly Gaussian unless ``distribution`` is overridden."""

    family = "additive"

    class Parameters(PluginParameters):
        """Parameters every additive scheme has; a subclass redefines ``noise`` for another default."""

        noise: NoiseShape = Field("data", description="shape of the noise across attributes, K_0")

    base: Path | None = None
    """Folder that file names in the parameters are relative to."""

    @property
    def distribution(self) -> Distribution:
        """How the noise is distributed."""
        return "gaussian"

    @abstractmethod
    def level_covariance(self, levels: Sequence[float]) -> Array:
        """Return ``Sigma``, shape (M, M), for copies at these levels ``σ_i²``."""

    @abstractmethod
    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return the steps that draw copies ``existing + 1 … M``, in the order to carry them out."""

    def law(self, levels: Sequence[float], table: TableMoments) -> GaussianNoise:
        """Return the exact law of the noise, ``K_Z = Sigma ⊗ K_0``."""
        shape = noise_shape(self.parameters.noise, table.covariance, self.base)
        return GaussianNoise(self.level_covariance(levels), shape, self.parameters.noise == "data", self.distribution)

    def facts(self, levels: Sequence[float], table: TableMoments) -> dict[str, float]:
        """Return how differently noise and data are correlated, by their laws (huang2005, Definition 8.1)."""
        if table.covariance.shape[0] < 2:
            return {}
        shape = noise_shape(self.parameters.noise, table.covariance, self.base)
        return {"dissimilarity": correlation_dissimilarity(correlation(table.covariance), correlation(shape))}

    def sampler(self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0) -> AdditiveSampler:
        """Return what draws copies ``existing + 1 … M`` given those released before."""
        shape = noise_shape(self.parameters.noise, table.covariance, self.base)
        return AdditiveSampler(self.plan(levels, existing), shape, levels, key, self.distribution)


def implied_level_covariance(steps: Sequence[Step], copies: int) -> Array:
    """Return the ``Sigma`` that a plan draws from, exactly, shape (M, M).

    ``Z = A Z + B g`` with A the weights on earlier copies and B the scales; substituting step by step gives ``Z = C g`` and
    ``Sigma = C Cᵀ`` without drawing anything.
    """
    C = np.zeros((copies + 1, copies + 1))
    for step in steps:
        for parent, weight in step.parents:
            C[step.copy] += weight * C[parent]
        for innovation, scale in step.fresh:
            C[step.copy, innovation] += scale
    return C[1:, 1:] @ C[1:, 1:].T


class AdditiveSampler:
    """Carries out a plan, block by block, in preallocated memory.

    Works on the copies themselves with ``X`` as level 0, so noise is never stored: weights of a step sum to 1. A copy costs one draw,
    one product with the root of ``K_0`` and one scaled addition for each parent, each a single pass over the block.
    """

    in_order = True
    """The first rows of a block can be had without the rest: every stream is drawn from row by row."""

    def __init__(
        self, steps: Sequence[Step], shape: Array, levels: Sequence[float], key: Key, distribution: Distribution = "gaussian"
    ) -> None:
        self._steps = steps
        self._root = _Root(shape, distribution)
        self._levels = levels
        self._key = key
        self._shared = {innovation for innovation, uses in _uses(steps).items() if uses > 1}
        self._scratch: Array | None = None

    def block(self, index: int, x: Array, out: Sequence[Array], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``.

        Goes through the block in chunks that the cache holds, so that a copy finds its parents there.
        """
        streams = {innovation: self._stream(index, innovation) for step in self._steps for innovation, _ in step.fresh}
        rows = max(1, CHUNK_VALUES // x.shape[1])
        if self._scratch is None:
            self._scratch = np.empty((rows, x.shape[1]))
        for start in range(0, len(x), rows):
            self._chunk(x, out, slice(start, min(start + rows, len(x))), streams)

    def _chunk(self, x: Array, out: Sequence[Array], rows: slice, streams: dict[int, np.random.Generator]) -> None:
        assert self._scratch is not None
        scratch = self._scratch[: rows.stop - rows.start]
        kept: dict[int, Array] = {}
        for step in self._steps:
            y = out[step.copy - 1][rows]
            parents = [((x if parent == ORIGINAL else out[parent - 1])[rows], weight) for parent, weight in step.parents]
            if len(step.fresh) == 1 and step.fresh[0][0] not in self._shared:
                innovation, scale = step.fresh[0]
                self._root.draw(streams[innovation], scale, y, scratch)
            else:
                y[...] = 0.0
                parents += [(self._shared_draw(streams, innovation, kept, scratch), scale) for innovation, scale in step.fresh]
            for source, weight in parents:
                add_scaled(source, weight, y)

    def _stream(self, block: int, copy: int) -> np.random.Generator:
        """The level is part of the name: two alternative extensions of one release never share an innovation."""
        key = self._key
        return stream(key.seed, "noise", key.scheme, key.replicate, copy, float(self._levels[copy - 1]), block)

    def _shared_draw(
        self, streams: dict[int, np.random.Generator], copy: int, kept: dict[int, Array], scratch: Array
    ) -> Array:
        """Return ``g ~ N(0, K_0)`` of one copy's stream, kept while more than one copy of the chunk uses it."""
        if copy not in kept:
            kept[copy] = np.empty_like(scratch)
            self._root.draw(streams[copy], 1.0, kept[copy], scratch)
        return kept[copy]


def _uses(steps: Sequence[Step]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for step in steps:
        for innovation, _ in step.fresh:
            counts[innovation] = counts.get(innovation, 0) + 1
    return counts


class _Root:
    """Multiplies standard normals by a root of ``K_0``, by the cheapest means its form allows."""

    def __init__(self, K_0: Array, distribution: Distribution = "gaussian") -> None:
        self._fill = fill_gaussian if distribution == "gaussian" else fill_uniform
        diagonal = np.diag(K_0)
        self._scale = np.sqrt(np.clip(diagonal, 0.0, None))
        self._diagonal = not (K_0 - np.diag(diagonal)).any()
        self._uniform = self._diagonal and bool((self._scale == self._scale[0]).all())
        self._root = psd_root(K_0)

    def draw(self, rng: np.random.Generator, scale: float, out: Array, scratch: Array) -> None:
        """Write rows of ``scale · N(0, K_0)`` to ``out``, shape (b, N); ``scratch`` has the same shape."""
        if self._uniform:
            self._fill(rng, out)
            np.multiply(out, scale * self._scale[0], out=out)
        elif self._diagonal:
            self._fill(rng, out)
            np.multiply(out, scale * self._scale, out=out)
        else:
            self._fill(rng, scratch)
            np.matmul(scratch, scale * self._root, out=out)


def fill_gaussian(rng: np.random.Generator, out: Array) -> None:
    """Fill an array with independent draws from N(0, 1)."""
    rng.standard_normal(out=out)


def fill_uniform(rng: np.random.Generator, out: Array) -> None:
    """Fill an array with independent draws from the uniform distribution of mean 0 and variance 1, on ± √3."""
    rng.random(out=out)
    out -= 0.5
    out *= np.sqrt(12.0)
