"""Condensation: groups of k records replaced by draws of equal moments.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``k``, least size of a group | scalar | aggarwal2004 |
| ``m, C`` | mean and covariance of a group (divisor its size) | (N,), (N, N) | |
| ``C = P Λ Pᵀ`` | its principal components | | |
| ``y`` | ``m + P Λ^½ u``, u independent and uniform on ±√3 | (N,) | aggarwal2004 |

A group's draws are in its places in the table, in random order. The overall covariance is
preserved. A copy discloses a record's group: the error is as large as the difference of two draws
of the group, which is small for small k. Several copies have independent groups and draws, so
pooling averages them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.masking.groups import (
    GROUP,
    GroupScheme,
    grouping_seconds,
    in_deviations,
    nearest_to_random,
)
from auditor.types import Array


@register
class Condensation(GroupScheme):
    """Groups of k records (level = k) replaced by draws of their moments.

    Independent in every copy.
    """

    name = "condensation"
    claims = "Nothing under collusion: pooled draws average to their groups' means. No row of a copy is an original record."
    reference = "aggarwal2004; liu2008, section 1"
    assumes = "Records of a group differ widely, and recipients never pool their copies."

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        return sum(grouping_seconds(rows, width, k) / 2.0 + GROUP * rows / k for k in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        g, Y = nearest_to_random(in_deviations(X), int(level), rng), np.empty_like(X)
        for number in range(g.max() + 1):
            rows = np.flatnonzero(g == number)
            Y[rows] = drawn_alike(X[rows], rng)
        return Y


def drawn_alike(group: Array, rng: Rng) -> Array:
    """Return draws with a group's mean and covariance, shape (k, N).

    Divisor: the group size. Uniform along principal components.
    """
    values, P = np.linalg.eigh(np.atleast_2d(np.cov(group.T, ddof=0)))
    u = np.sqrt(12.0) * (rng.random(group.shape) - 0.5)
    return np.asarray(group.mean(axis=0) + (u * np.sqrt(np.clip(values, 0.0, None))) @ P.T)
