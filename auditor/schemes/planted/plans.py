"""Leaks in the plan: steps with another covariance than the stated one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.registry import register
from auditor.schemes.base.additive import ORIGINAL, Step
from auditor.schemes.base.case import Case
from auditor.schemes.base.noise_law import psd_root
from auditor.schemes.base.plans import bridge_plan
from auditor.schemes.corner_wave import CornerWave
from auditor.types import Array


@register
class FreshRepeats(Case, CornerWave):
    """A repeated level gets a fresh draw instead of the existing copy."""

    name = "fresh-repeats"
    trial_levels = (0.5, 1.0, 0.5)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return the bridge's steps, and fresh ones for repeated levels."""
        repeated = [level in levels[:place] for place, level in enumerate(levels)]
        fresh = {
            copy: Step(copy, ((ORIGINAL, 1.0),), ((copy, math.sqrt(level)),))
            for copy, level in enumerate(levels, start=1)
        }
        return [
            fresh[step.copy] if repeated[step.copy - 1] else step
            for step in bridge_plan(levels, existing)
        ]


@register
class OneNeighbour(Case, CornerWave):
    """The bridge uses one neighbour: a new copy ignores the one above it."""

    name = "one-neighbour"
    trial_levels = (1.0, 0.5)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return steps from the neighbour below alone."""
        steps = []
        for copy, level in enumerate(levels, start=1):
            below = max(
                (c for c in range(1, copy) if levels[c - 1] < level),
                key=lambda c: levels[c - 1],
                default=ORIGINAL,
            )
            gap = level - (levels[below - 1] if below else 0.0)
            steps.append(Step(copy, ((below, 1.0),), ((copy, math.sqrt(gap)),)))
        return steps[existing:]


@register
class MaxForMin(Case, CornerWave):
    """Drawn from the covariance nearest to ``max(σ_i², σ_j²)``, not ``min``."""

    name = "max-for-min"
    trial_levels = (0.5, 1.0)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return steps that draw all copies from the original."""
        return draw_from(np.maximum.outer(levels, levels))[existing:]


def draw_from(Sigma: Array) -> list[Step]:
    """Return steps that draw every copy from the original by a root of Sigma.

    ``Sigma`` has shape (M, M); negative eigenvalues are set to 0.
    """
    return [
        Step(
            copy,
            ((ORIGINAL, 1.0),),
            tuple((other, float(scale)) for other, scale in enumerate(row, start=1)),
        )
        for copy, row in enumerate(psd_root(Sigma), start=1)
    ]
