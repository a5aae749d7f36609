"""Linearly dependent noise: one draw scaled to every level.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``s`` | ``(σ_1 … σ_M)`` | (M,) | |
| ``Sigma`` | ``s sᵀ``, of rank 1 | (M, M) | li2012, section 4.2.2 |

Broken by design: ``X = (σ_2 Y_1 − σ_1 Y_2) / (σ_2 − σ_1)`` exactly, for any two different levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.registry import register
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.plans import ORIGINAL, Step


@register
class LinearlyDependent(AdditiveScheme):
    """One noise draw scaled to every level. Broken: two copies disclose all.

    Z_i = σ_i·G, so two copies determine the table exactly.
    """

    name = "linearly-dependent"
    held_against = True
    claims = "Nothing under collusion: two copies at different levels give the table exactly (li2012, section 4.2.2)."
    reference = "li2012, section 4.2.2"
    assumes = "Recipients never pool their copies."
    # two copies disclose the table with any last digits, and exactly without a grid
    on_grid = False

    def level_covariance(self, levels: Sequence[float]) -> NDArray[np.float64]:
        """Return ``Sigma = s sᵀ``, shape (M, M)."""
        s = np.sqrt(np.asarray(levels, dtype=np.float64))
        return np.outer(s, s)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return ``Y_i = X + (σ_i/σ_b)(Y_b − X)`` with b the noisiest copy.

        A fresh draw only if no copy exists.
        """
        steps = []
        for copy in range(existing + 1, len(levels) + 1):
            sigma = float(np.sqrt(levels[copy - 1]))
            before = max(range(1, copy), key=lambda c: levels[c - 1], default=0)
            if before and levels[before - 1] > 0:
                ratio = sigma / float(np.sqrt(levels[before - 1]))
                steps.append(Step(copy, ((ORIGINAL, 1.0 - ratio), (before, ratio))))
            else:
                steps.append(Step(copy, ((ORIGINAL, 1.0),), ((copy, sigma),) if sigma > 0 else ()))
        return steps
