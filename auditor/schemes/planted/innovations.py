"""Leaks in the innovations: dependent on each other or on the record.

Most are uncorrelated. A case that is ``lawful`` keeps corner-wave's covariance. ``Φ`` is the normal
distribution function.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.process.deferred import scipy
from auditor.registry import register
from auditor.schemes.planted.base import Planted
from auditor.types import Array

EDGE = 0.001
"""Distance of uniform draws from 0 and 1, so that normal quantiles are below 3.1."""


def ranks(v: Array) -> Array:
    """Return each value's rank in its column, as a share."""
    return np.asarray((v.argsort(axis=0).argsort(axis=0) + 0.5) / len(v))


def mixed(u: Array, bins: int, rng: Rng) -> Array:
    """Return normal values in permuted bins of u, with least correlation.

    The best of 300 permutations.
    """
    scores, draw = scipy.special.ndtri((np.arange(bins) + 0.5) / bins), np.random.default_rng(0)
    order = min(
        (draw.permutation(bins) for _ in range(300)), key=lambda some: abs(scores[some] @ scores)
    )
    return np.asarray(
        scipy.special.ndtri(
            (order[(u * bins).astype(int)] + rng.uniform(EDGE, 1 - EDGE, u.shape)) / bins
        )
    )


def sized(u: Array, signs: Array) -> Array:
    """Return half-normal sizes with ranks u, and the signs of other values."""
    return np.asarray(scipy.special.ndtri((1 + np.clip(u, EDGE, 1 - EDGE)) / 2) * np.sign(signs))


@register
class PermutedBins(Planted):
    """The second innovation is the first with its sixteen bins permuted."""

    name, lawful = "permuted-bins", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Permute the bins."""
        g[1] = mixed(scipy.special.ndtr(g[0]), 16, rng)


@register
class BinsOfTheRecord(Planted):
    """The second innovation encodes the twelfth of its column a record is in."""

    name, lawful = "bins-of-the-record", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Permute the bins of the record."""
        g[1] = mixed(ranks(x), 12, rng)


@register
class SignsAcrossAttributes(Planted):
    """One attribute's innovation sign is a product of two of another's."""

    name, lawful = "signs-across-attributes", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Set the signs."""
        g[1][:, 1] = np.abs(g[1][:, 1]) * np.sign(g[0][:, 0] * g[1][:, 0])


@register
class Bands(Planted):
    """The second innovation's band, even or odd, encodes the first one's sign."""

    name, lawful = "bands", True
    width = 0.25

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Move values in the wrong band to a neighbouring one."""
        e = g[1][:, 0]
        wrong = (np.floor(e / self.width) % 2 == 1) != (g[0][:, 0] > 0)
        g[1][:, 0] = e + np.where(wrong, self.width * rng.choice([-1, 1], len(e)), 0.0)


@register
class FineBands(Bands):
    """The second innovation's band, 0.004 wide, encodes the first one's sign."""

    name = "fine-bands"
    width = 0.004


@register
class ScaleByRecord(Planted):
    """The second innovation is larger for the upper half of the records."""

    name, lawful = "scale-by-record", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Scale by the record's rank."""
        g[1] = g[1] * np.where(ranks(x) > 0.5, 1.35, 0.42)


@register
class SignsOfThreeCopies(Planted):
    """The third innovation's sign is the product of two; pairs are lawful."""

    name, lawful = "signs-of-three-copies", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Set the signs."""
        g[2] = np.abs(g[2]) * np.sign(g[0] * g[1])


@register
class SizesThatTellSigns(Planted):
    """The second innovation is large where the first is positive."""

    name, lawful = "sizes-that-tell-signs", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Set the sizes."""
        u = rng.uniform(EDGE, 1 - EDGE, g[0].shape) / 2
        g[1] = scipy.special.ndtri((1 + u + np.where(g[0] > 0, 0.5, 0.0)) / 2) * np.sign(g[1])


@register
class Decimals(Planted):
    """The second innovation encodes the first after its third decimal."""

    name, lawful = "decimals", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Write Φ of the first after the third decimal."""
        g[1] = (np.floor(g[1] * 1000) + scipy.special.ndtr(g[0])) / 1000


@register
class SeventhsOfTheRecord(Planted):
    """The second innovation encodes the record's rank below 1/7,000."""

    name, lawful = "sevenths-of-the-record", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Write the rank after whole parts of 1/7,000."""
        g[1] = (np.floor(g[1] * 7000) + ranks(x)) / 7000


@register
class OrderedByRecord(Planted):
    """The second innovation's size is the record's distance from the median.

    By rank.
    """

    name, lawful = "ordered-by-record", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Set the sizes."""
        g[1] = sized(ranks(np.abs(x - np.median(x, axis=0))), g[1])


@register
class TheRowBefore(Planted):
    """The second innovation's size is the previous row's first innovation."""

    name, lawful = "the-row-before", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Set the sizes."""
        g[1] = sized(np.roll(scipy.special.ndtr(g[0]), 1, axis=0), g[1])


@register
class RanksThatAddUp(Planted):
    """The third innovation's rank is the sum of two; pairs are lawful.

    Modulo 1.
    """

    name, lawful = "ranks-that-add-up", True

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Add the ranks."""
        g[2] = scipy.special.ndtri(
            np.clip((scipy.special.ndtr(g[0]) + scipy.special.ndtr(g[1])) % 1.0, EDGE, 1 - EDGE)
        )


@register
class RepeatedInnovation(Planted):
    """The third copy adds the first one's innovation again."""

    name, share = "repeated-innovation", 1.0

    def innovations(self, x: Array, g: Array, rng: Rng) -> None:
        """Repeat it."""
        g[2] = g[0]
