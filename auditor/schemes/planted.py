"""Cases of the self-test: eight planted leaks and four honest releases.

Copies at levels ``σ_1² < … < σ_M²`` are ``Y_k = X + Z_k`` with
``Z_k = Σ_{i ≤ k} sqrt(σ_i² − σ_{i−1}²) · K_0^½ g_i`` (li2012, Algorithm 2). With independent
standard normal ``g_i`` this is corner-wave noise exactly. A planted case changes ``g`` or ``Z``.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from auditor.base.types import Array, Arrays, Codes, Levels
from auditor.numerics.random_streams import Rng, stream
from auditor.registry import register
from auditor.schemes.base.noise_law import psd_root
from auditor.schemes.base.scheme import Case, Key, Sampler, TableMoments
from auditor.schemes.corner_wave import ORIGINAL, CornerWave, Step
from auditor.schemes.divisible_noise import GeometricMultilevel
from auditor.schemes.replacement.base import Copies, FreshCopies, ProcessCopies
from auditor.schemes.uniform import UniformMultilevel


class Planted(Case, CornerWave):
    """States corner-wave's law; a subclass plants a leak."""

    trial_levels = (0.3, 0.6, 0.9)
    share: ClassVar[float] = 0.5
    """Share of the records with changed innovations, at random."""

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Change standard normal innovations, (M, b, N), of rows, (b, N)."""

    def noise(self, x: Array, z: Arrays, rng: Rng) -> Arrays:
        """Noise of the M copies, each of shape (b, N)."""
        return z

    def release(self, x: Array, z: Arrays) -> Arrays:
        """Released copies, each of shape (b, N)."""
        return [x + noise for noise in z]

    def sampler(self, levels: Levels, table: TableMoments, key: Key, existing: int = 0) -> Sampler:
        return PlantedSampler(self, psd_root(self.law(levels, table).shape), levels, key)


class PlantedSampler(NamedTuple):
    """Sampler of innovations that a case changes."""

    case: Planted
    root: Array
    levels: Levels
    key: Key

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        case, key, scales = self.case, self.key, np.sqrt(np.diff(self.levels, prepend=0.0))
        rng = stream(key.seed, "planted", key.scheme, key.replicate, index)
        fair = rng.standard_normal((len(out), *x.shape))
        g = fair.copy()
        case.innovations(x, g, rng)
        g = np.where(rng.random((len(x), 1)) < case.share, g, fair)
        z = np.cumsum(scales[:, None, None] * g, axis=0) @ self.root.T
        made = case.release(x, case.noise(x, list(z), rng))
        for copy, released in zip(out, made, strict=True):
            copy[...] = released


@register
class HonestNormal(Case, CornerWave):
    """Corner-wave noise on normal records."""

    name, honest, records = "honest-normal", True, "normal"


@register
class HonestHeaped(Case, CornerWave):
    """Corner-wave noise on records of which half are 0."""

    name, honest, records = "honest-heaped", True, "heaped"


@register
class HonestGeometric(Case, GeometricMultilevel):
    """The geometric process on whole numbers."""

    name, honest, records = "honest-geometric", True, "whole"


@register
class Bands(Planted):
    """The second innovation's band, even or odd, encodes the first one's sign."""

    name, lawful = "bands", True
    width = 0.25

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        e = g[1][:, 0]
        wrong = (np.floor(e / self.width) % 2 == 1) != (g[0][:, 0] > 0)
        g[1][:, 0] = e + np.where(wrong, self.width * rng.choice([-1, 1], len(e)), 0.0)


@register
class ScaleByRecord(Planted):
    """The second innovation is larger for the upper half of the records."""

    name, lawful = "scale-by-record", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        g[1] = g[1] * np.where(x.argsort(axis=0).argsort(axis=0) >= len(x) / 2, 1.35, 0.42)


@register
class PeriodicGenerator(Planted):
    """The noise generator is weak: it repeats after 35 % of the rows."""

    name = "periodic-generator"

    def noise(self, x: Array, z: Arrays, rng: Rng) -> Arrays:
        return [np.resize(each[: max(1, 7001 * len(x) // 20_000)], x.shape) for each in z]


@register
class UnperturbedRows(Planted):
    """One row in a hundred is unperturbed; pooling gains under 1 %."""

    name = "unperturbed-rows"

    def noise(self, x: Array, z: Arrays, rng: Rng) -> Arrays:
        bare = rng.random(len(x)) < 0.01
        return [np.where(bare[:, None], 0.0, each) for each in z]


@register
class OneNeighbour(Case, CornerWave):
    """A new copy ignores the one above it."""

    name = "one-neighbour"
    trial_levels = (1.0, 0.5)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        steps = []
        for copy, level in enumerate(levels, start=1):
            lower = [other for other in range(1, copy) if levels[other - 1] < level]
            below = max(lower, key=lambda other: levels[other - 1], default=ORIGINAL)
            gap = level - (levels[below - 1] if below else 0.0)
            steps.append(Step(copy, ((below, 1.0),), ((copy, math.sqrt(gap)),)))
        return steps[existing:]


@register
class MaxForMin(Case, CornerWave):
    """Drawn from the covariance nearest to ``max(σ_i², σ_j²)``, not ``min``."""

    name = "max-for-min"
    trial_levels = (0.5, 1.0)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        return draw_from(np.maximum.outer(levels, levels))[existing:]


def draw_from(Sigma: Array) -> list[Step]:
    """Steps from the original by a root of Sigma, (M, M), clipped at 0."""
    return [
        Step(copy, ((ORIGINAL, 1.0),), tuple(enumerate(row, start=1)))
        for copy, row in enumerate(psd_root(Sigma).tolist(), start=1)
    ]


class CategoricalCase(Case, UniformMultilevel):
    """States the law of ``uniform-multilevel`` for one attribute of 6 values."""

    records = "categories"


@register
class HonestCategories(CategoricalCase):
    """The replacement process as stated: every expectation should hold."""

    name, honest = "honest-categories", True


@register
class RetentionAbove(CategoricalCase):
    """A tenth of the redrawn values is kept; pooling gains nothing."""

    name = "retention-above"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return RaisedCopies(original, size, key)


class RaisedCopies(ProcessCopies):
    """Copies with higher retention than stated."""

    def release(self, level: float) -> Codes:
        return super().release(level + 0.1 * (1.0 - level))


@register
class ForgetfulCoin(CategoricalCase):
    """Every copy is drawn independently, although one process is stated."""

    name = "forgetful-coin"

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return FreshCopies(original, size, key)
