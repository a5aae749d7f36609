"""Honest releases, on tables that are easy and hard: whoever refutes one of these raises a false alarm."""

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
    """Corner-wave's noise on normal records."""

    name, honest, records = "honest-normal", True, "normal"


@register
class HonestLognormal(Case, CornerWave):
    """Corner-wave's noise on skewed records."""

    name, honest, records = "honest-lognormal", True, "lognormal"


@register
class HonestHeaped(Case, CornerWave):
    """Corner-wave's noise on records of which half are 0."""

    name, honest, records = "honest-heaped", True, "heaped"


@register
class HonestIndependent(Case, Independent):
    """Fresh noise in every copy, which says so: pooling gains by its law, so only the law is asked for."""

    name, honest, records = "honest-independent", True, "normal"
    expect = ("noise-follows-law",)


@register
class HonestRounded(Planted):
    """Corner-wave's noise, copies rounded to two decimals."""

    name, honest = "honest-rounded", True

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Round."""
        return [np.round(x + noise, 2) for noise in z]


@register
class HonestFloat32(Planted):
    """Corner-wave's noise, copies stored in single precision."""

    name, honest = "honest-float32", True

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Store and read again."""
        return [(x + noise).astype(np.float32).astype(np.float64) for noise in z]
