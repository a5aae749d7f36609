"""Records times a secret matrix: rotation and random projection.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``M_i`` | rotation: Haar-distributed orthogonal matrix of copy i | (N, N) | liu2008, (12.4) |
| | projection: independent N(0, σ²) entries, σ² = 1/n' by default | (n', N) | liu2008, section 4 |
| ``t`` | translation, 0 or normal with the data's covariance | (N,) | chen2007 |
| ``Z_i`` | 0, or white noise ``σ_i² (tr K_X/N) I``, fresh or corner-wave | (N,) | li2012, section 5 |
| ``y_i`` | ``M_i (x + Z_i) + t`` | (N,) or (n',) | |

Each copy has its own matrix, or all copies share the first's.
"""

from abc import abstractmethod
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from auditor import registry
from auditor.base import AuditorError, scipy
from auditor.base.types import Array, Arrays, Levels, Plain
from auditor.numerics.linear_algebra import clip_to_psd, haar
from auditor.numerics.random_streams import Rng, stream
from auditor.registry import PluginParameters, register
from auditor.schemes.base.noise_law import KroneckerNoise, Transform, Transformed, psd_root
from auditor.schemes.base.scheme import Key, LevelRange, Sampler, Scheme, TableMoments
from auditor.schemes.corner_wave import AdditiveScheme

Count = Annotated[int, Field(ge=1, le=1000, description="copies, each with a matrix of its own")]
Translated = Annotated[bool, Field(description="whether a secret vector is added to every record")]


class TransformScheme(Scheme):
    """Base of the schemes ``y = M_i x + t_i``, without noise, at level 0."""

    needs_levels = False
    level_range = LevelRange("0, as no noise is added", high=0.0)
    has_matrices = True

    @abstractmethod
    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        """Transform of one copy."""

    def default_levels(self) -> tuple[float, ...]:
        return (0.0,) * int(self.parameters.copies)

    def transformed(self, levels: Levels, table: TableMoments, key: Key) -> Transformed | None:
        # square only; for the audit
        if self.output_width(table.mean.size) != table.mean.size:
            return None
        law = KroneckerNoise(np.zeros((len(levels),) * 2), np.eye(table.mean.size))
        if self.additive is not None:
            law = self.additive.law(levels, table)
        return Transformed(tuple(self.transforms(len(levels), table, key)), law)

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        noise = self.additive
        return TransformSampler(
            self.transforms(len(levels), table, key),
            None if noise is None else noise.sampler(levels, table, key, existing),
        )

    def moved(self, root: Array, rng: Rng) -> Transform:
        """Random rotation, and a translation of covariance ``root rootᵀ`` if stated."""
        M, shift = haar(len(root), rng), root @ rng.standard_normal(len(root))
        return Transform(M, shift * self.parameters.translation)

    @property
    def additive(self) -> AdditiveScheme | None:
        """The additive scheme applied before the matrix; none by default."""
        return None

    def transforms(self, copies: int, table: TableMoments, key: Key) -> list[Transform]:
        """Each copy's transform, from key and copy number."""
        seed = key.seed if key.matrices is None else key.matrices
        return [
            self.draw(table, stream(seed, "transform", key.scheme, key.replicate, copy))
            for copy in range(1, copies + 1)
        ]


class TransformSampler(NamedTuple):
    """Adds noise, if any, in the table's coordinates; then multiplies."""

    transforms: Sequence[Transform]
    additive: Sampler | None

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        blurred: list[Array] = [x] * len(self.transforms)
        if self.additive is not None:
            before = zip(self.transforms[:existing], out, strict=False)
            blurred = [np.ascontiguousarray(transform.undo(y)) for transform, y in before]
            blurred += [np.empty(x.shape) for _ in self.transforms[existing:]]
            self.additive.block(index, x, blurred, existing)
        for copy in range(existing, len(self.transforms)):
            self.transforms[copy].apply(blurred[copy], out[copy])


@register
class Rotation(TransformScheme):
    """One secret random rotation, Y = MX. Broken by a few known records.

    Distances are kept. N known records, or a sample of the population, break it. Without a
    translation, lengths are disclosed too. Pooling adds nothing.
    """

    name = "rotation"
    family = "rotation"
    claims = "Pooled copies disclose as much as one copy; one copy discloses all to an adversary with N independent records."
    reference = "liu2008, section 4, eq. 12.4"
    assumes = "The adversary knows no record, and not the distribution of the population."
    trial = MappingProxyType({"copies": 3})

    class Parameters(PluginParameters):
        """Number of copies, and whether they are translated."""

        copies: Count = 1
        translation: Translated = False

    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        return self.moved(psd_root(clip_to_psd(table.covariance, table.covariance)), rng)


NOISES = {"fresh": "independent", "corner-wave": "corner-wave"}


@register
class RotationNoise(TransformScheme):
    """Secret rotation plus noise, Y = MX + R. Broken by known records.

    ``M_i x + R_i``: rotated white noise is white. Regression on known records breaks it. Under
    corner-wave noise the least noisy copy is sufficient.
    """

    name = "rotation-noise"
    family = "rotation-noise"
    claims = "With corner-wave noise pooled copies disclose as much as the least noisy copy; with fresh noise nothing under collusion."
    reference = "chen2007; liu2008, section 4.4"
    assumes = "The adversary knows only a few records, and not the distribution of the population."
    needs_levels = True
    level_range = Scheme.level_range

    class Parameters(PluginParameters):
        """Dependence of noise between copies, and their rotations."""

        noise: Literal["fresh", "corner-wave"] = "fresh"
        """new noise in every copy, or nested as li2012 has it"""
        rotations: Literal["fresh", "shared"] = "fresh"
        """a rotation for each copy, or one for all"""
        translation: Translated = False

    def default_levels(self) -> tuple[float, ...]:
        return ()

    @property
    def additive(self) -> AdditiveScheme:
        return registry.get("scheme", NOISES[self.parameters.noise])(noise="white")

    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        N = table.mean.size
        return self.moved(np.sqrt(np.trace(table.covariance) / N) * np.eye(N), rng)

    def transforms(self, copies: int, table: TableMoments, key: Key) -> list[Transform]:
        if self.parameters.rotations == "shared":
            return super().transforms(1, table, key) * copies
        return super().transforms(copies, table, key)


@register
class RandomProjection(TransformScheme):
    """One secret random projection to n' dimensions. Broken by collusion.

    Distances are kept on average. Each known record removes one dimension, and pooled copies stack
    to ``Σ n'`` rows. ``matrix: dct`` keeps the n' largest cosine coefficients, in a secret order
    (mukherjee2006).
    """

    name = "random-projection"
    family = "random-projection"
    claims = "Nothing under collusion: copies stack into one projection with more rows."
    reference = "liu2008, section 4, eq. 12.4"
    assumes = (
        "The adversary knows fewer records than dimensions, and recipients never pool their copies."
    )
    trial = MappingProxyType({"dimensions": 2, "copies": 3})
    other_trials = (MappingProxyType({"dimensions": 2, "copies": 3, "matrix": "dct"}),)

    class Parameters(PluginParameters):
        """Size and kind of the matrix, and number of copies."""

        dimensions: int = Field(ge=1, le=10_000)
        """columns n' of a copy"""
        variance: PositiveFloat | None = None
        """variance σ² of the entries, no unit; by default 1/n', which keeps squared distances on average"""
        matrix: Literal["gaussian", "dct"] = "gaussian"
        """normal entries, or a truncated cosine transform"""
        copies: Count = 1

        @model_validator(mode="after")
        def _no_entries(self) -> Any:
            if self.matrix == "dct" and self.variance is not None:
                raise ValueError(
                    "gives a variance for the entries of a cosine transform, which has none to draw"
                )
            return self

    @property
    def public(self) -> Plain:
        own = self.parameters
        return super().public | {
            "variance": own.variance if own.variance is not None else 1.0 / own.dimensions
        }

    def output_width(self, width: int) -> int:
        return int(self.parameters.dimensions)

    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        N, size = table.mean.size, int(self.parameters.dimensions)
        if self.parameters.matrix == "dct":
            return Transform(truncated_dct(table, size, rng), np.zeros(size))
        return Transform(
            rng.standard_normal((size, N)) * np.sqrt(self.public["variance"]), np.zeros(size)
        )


def truncated_dct(table: TableMoments, size: int, rng: Rng) -> Array:
    """``n'`` rows of the orthonormal DCT-II, shuffled, shape (n', N).

    By mean square. ``AuditorError`` if n' exceeds N.
    """
    N = table.mean.size
    if size > N:
        raise AuditorError(
            f"dimensions: a cosine transform of {N} attributes has {N} coefficients; got {size}"
        )
    C = cosine_transform(N)
    energy = np.diag(C @ (table.covariance + np.outer(table.mean, table.mean)) @ C.T)
    return C[rng.permutation(np.argsort(-energy, kind="stable")[:size])]


def cosine_transform(N: int) -> Array:
    """Orthonormal DCT-II, shape (N, N): coefficients are ``C x``."""
    return scipy.fft.dct(np.eye(N), norm="ortho", axis=0)
