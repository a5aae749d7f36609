"""Leaks in the noise: shared, repeated, missing, or record-dependent.

Where a description says that pooling gains under 1 %, boosted trees gained −0.5 to 0.4 % in 20,000
rows (± 0.4 % each). The fault is then in each copy alone, and ``noise-follows-law`` should find it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.planted.base import Planted
from auditor.types import Array


@register
class OneNormalForAllColumns(Planted):
    """Every copy's noise is one normal per row, shared by all attributes."""

    name = "one-normal-for-all-columns"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Scale the first attribute's noise to all."""
        return [each[:, :1] * (each.std(axis=0) / each[:, 0].std()) for each in z]


@register
class SharedRows(Planted):
    """One row in a hundred has another row's noise; pooling gains under 1 %."""

    name = "shared-rows"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Copy rows of noise."""
        chosen = np.flatnonzero(rng.random(len(x)) < 0.01)
        z = [each.copy() for each in z]
        for each in z:
            each[chosen] = each[(chosen * 7 + 13) % len(x)]
        return z


@register
class PeriodicGenerator(Planted):
    """The noise generator is weak: it repeats after 35 % of the rows."""

    name = "periodic-generator"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Repeat the first rows' noise."""
        return [np.resize(each[: max(1, 7001 * len(x) // 20_000)], x.shape) for each in z]


@register
class UnperturbedRows(Planted):
    """One row in a hundred is unperturbed; pooling gains under 1 %."""

    name = "unperturbed-rows"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Remove the noise."""
        bare = rng.random(len(x)) < 0.01
        return [np.where(bare[:, None], 0.0, each) for each in z]


@register
class GrowsWithTheRecord(Planted):
    """Noise is larger for extreme records; pooling gains under 1 %.

    The variance grows with the distance from the median and is correct on average.
    """

    name = "grows-with-the-record"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Scale by the distance from the median, by rank."""
        far = np.abs(x - np.median(x, axis=0)).argsort(axis=0).argsort(axis=0) / len(x)
        return [np.sqrt(0.8 + 0.4 * far) * each for each in z]


@register
class FollowsTheData(Planted):
    """Copies shrink by 6 % of the noise; pooling gains under 1 %.

    They shrink towards the mean; the covariance is compensated.
    """

    name = "follows-the-data"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Subtract the record's rank, standardised."""
        rank = x.argsort(axis=0).argsort(axis=0) / len(x) - 0.5
        scores = rank / rank.std(axis=0)
        return [math.sqrt(1 - 0.06**2) * each - 0.06 * each.std(axis=0) * scores for each in z]


@register
class SharedInATwentieth(Planted):
    """In one row of 20 copies 1 and 2 share noise; pooling gains under 1 %.

    The second copy's noise is scaled to its own level.
    """

    name = "shared-in-a-twentieth"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Share the noise."""
        rows = rng.random(len(x)) < 0.05
        return [
            z[0],
            np.where(rows[:, None], z[0] * (z[1].std(axis=0) / z[0].std(axis=0)), z[1]),
            *z[2:],
        ]


@register
class SizesTogether(Planted):
    """All copies share a row's noise size; pooling gains under 1 %.

    The copies' noise is uncorrelated but dependent.
    """

    name, lawful = "sizes-together", True

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Scale rows at random."""
        size = np.sqrt(rng.gamma(8.0, 1 / 8.0, (len(x), 1)))
        return [size * each for each in z]


@register
class QuietColumn(Planted):
    """One attribute has 20 % less noise than stated; pooling gains under 1 %."""

    name = "quiet-column"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Scale one attribute."""
        return [each * np.where(np.arange(x.shape[1]) == 1, 0.8, 1.0) for each in z]


@register
class ShuffledRows(Planted):
    """Rows are permuted within each block; pooling gains under 1 %."""

    name = "shuffled-rows"

    def noise(self, x: Array, z: Sequence[Array], rng: Rng) -> Sequence[Array]:
        """Return the difference of the permuted copy and the record."""
        order = rng.permutation(len(x))
        return [(x + each)[order] - x for each in z]


@register
class Clipped(Planted):
    """Copies are clipped where the middle 99 % of the records end.

    The noise is then biased inwards for extreme records.
    """

    name = "clipped"

    def release(self, x: Array, z: Sequence[Array]) -> Sequence[Array]:
        """Clip."""
        low, high = np.quantile(x, [0.005, 0.995], axis=0)
        return [np.clip(x + noise, low, high) for noise in z]
