"""Honest releases on easy and hard tables; refuting one is a false alarm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.registry import register
from auditor.schemes.base.case import Case
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.independent import Independent
from auditor.schemes.planted.base import Planted
from auditor.types import Array


@register
class HonestNormal(Case, CornerWave):
    """Corner-wave noise on normal records."""

    name, honest, records = "honest-normal", True, "normal"


@register
class HonestLognormal(Case, CornerWave):
    """Corner-wave noise on skewed records."""

    name, honest, records = "honest-lognormal", True, "lognormal"


@register
class HonestHeaped(Case, CornerWave):
    """Corner-wave noise on records of which half are 0."""

    name, honest, records = "honest-heaped", True, "heaped"


@register
class HonestIndependent(Case, Independent):
    """Fresh noise in every copy, as stated; pooling gains by its law.

    So only ``noise-follows-law`` is evaluated.
    """

    name, honest, records = "honest-independent", True, "normal"
    expect = ("noise-follows-law",)


@register
class HonestRounded(Planted):
    """Corner-wave noise, copies rounded to two decimals."""

    name, honest = "honest-rounded", True

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Round."""
        return [np.round(x + noise, 2) for noise in z]


@register
class HonestFloat32(Planted):
    """Corner-wave noise, copies stored in single precision."""

    name, honest = "honest-float32", True

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Convert to single precision and back."""
        return [(x + noise).astype(np.float32).astype(np.float64) for noise in z]
