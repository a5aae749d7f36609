"""Further planted leaks and honest releases; `docs/evidence/faults.md` shows the tests that find each. None is registered."""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from auditor import registry
from auditor.schemes.base.additive import ORIGINAL, Step, bridge_plan
from auditor.schemes.base.scheme import Case
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.divisible_noise import (
    LAPLACE,
    GeometricMultilevel,
    LaplaceMultilevel,
    SkellamMultilevel,
    laplace_increment,
)
from auditor.schemes.planted import (
    Bands,
    MaxForMin,
    OneNeighbour,
    PeriodicGenerator,
    Planted,
    ScaleByRecord,
    UnperturbedRows,
    draw_from,
)

__all__ = ["Bands", "MaxForMin", "PeriodicGenerator", "ScaleByRecord", "UnperturbedRows", "draw_from"]  # fmt: skip

EDGE = 0.001
"""Distance of uniform draws from 0 and 1, so that normal quantiles are below 3.1."""


def ranks(v):
    return (v.argsort(axis=0).argsort(axis=0) + 0.5) / len(v)


def mixed(u, bins, rng):
    """Normal values in permuted bins of u: of 300 permutations the one of least correlation."""
    scores, draw = ndtri((np.arange(bins) + 0.5) / bins), np.random.default_rng(0)
    order = min(
        (draw.permutation(bins) for _ in range(300)), key=lambda some: abs(scores[some] @ scores)
    )
    return ndtri((order[(u * bins).astype(int)] + rng.uniform(EDGE, 1 - EDGE, u.shape)) / bins)


def sized(u, signs):
    """Half-normal sizes with ranks u, and the signs of other values."""
    return ndtri((1 + np.clip(u, EDGE, 1 - EDGE)) / 2) * np.sign(signs)


# -- leaks in the innovations


class PermutedBins(Planted):
    """The second innovation is the first with its sixteen bins permuted."""

    name, lawful = "permuted-bins", True

    def innovations(self, x, g, rng):
        g[1] = mixed(ndtr(g[0]), 16, rng)


class BinsOfTheRecord(Planted):
    """The second innovation encodes the twelfth of its column a record is in."""

    name, lawful = "bins-of-the-record", True

    def innovations(self, x, g, rng):
        g[1] = mixed(ranks(x), 12, rng)


class SignsAcrossAttributes(Planted):
    """One attribute's innovation sign is a product of two of another's."""

    name, lawful = "signs-across-attributes", True

    def innovations(self, x, g, rng):
        g[1][:, 1] = np.abs(g[1][:, 1]) * np.sign(g[0][:, 0] * g[1][:, 0])


class FineBands(Bands):
    """The second innovation's band, 0.004 wide, encodes the first one's sign."""

    name, width = "fine-bands", 0.004


class SignsOfThreeCopies(Planted):
    """The third innovation's sign is the product of two; pairs are lawful."""

    name, lawful = "signs-of-three-copies", True

    def innovations(self, x, g, rng):
        g[2] = np.abs(g[2]) * np.sign(g[0] * g[1])


class SizesThatTellSigns(Planted):
    """The second innovation is large where the first is positive."""

    name, lawful = "sizes-that-tell-signs", True

    def innovations(self, x, g, rng):
        u = rng.uniform(EDGE, 1 - EDGE, g[0].shape) / 2
        g[1] = ndtri((1 + u + np.where(g[0] > 0, 0.5, 0.0)) / 2) * np.sign(g[1])


class Decimals(Planted):
    """The second innovation encodes the first after its third decimal."""

    name, lawful = "decimals", True

    def innovations(self, x, g, rng):
        g[1] = (np.floor(g[1] * 1000) + ndtr(g[0])) / 1000


class SeventhsOfTheRecord(Planted):
    """The second innovation encodes the record's rank below 1/7,000."""

    name, lawful = "sevenths-of-the-record", True

    def innovations(self, x, g, rng):
        g[1] = (np.floor(g[1] * 7000) + ranks(x)) / 7000


class OrderedByRecord(Planted):
    """The second innovation's size is the record's distance from the median, by rank."""

    name, lawful = "ordered-by-record", True

    def innovations(self, x, g, rng):
        g[1] = sized(ranks(np.abs(x - np.median(x, axis=0))), g[1])


class TheRowBefore(Planted):
    """The second innovation's size is the previous row's first innovation."""

    name, lawful = "the-row-before", True

    def innovations(self, x, g, rng):
        g[1] = sized(np.roll(ndtr(g[0]), 1, axis=0), g[1])


class RanksThatAddUp(Planted):
    """The third innovation's rank is the sum of two, modulo 1; pairs are lawful."""

    name, lawful = "ranks-that-add-up", True

    def innovations(self, x, g, rng):
        g[2] = ndtri(np.clip((ndtr(g[0]) + ndtr(g[1])) % 1.0, EDGE, 1 - EDGE))


class RepeatedInnovation(Planted):
    """The third copy adds the first one's innovation again."""

    name, share = "repeated-innovation", 1.0

    def innovations(self, x, g, rng):
        g[2] = g[0]


# -- leaks in the noise; of boosted trees none gained more than 0.4 % in 20,000 rows by pooling


class OneNormalForAllColumns(Planted):
    """Every copy's noise is one normal per row, shared by all attributes."""

    name = "one-normal-for-all-columns"

    def noise(self, x, z, rng):
        return [each[:, :1] * (each.std(axis=0) / each[:, 0].std()) for each in z]


class SharedRows(Planted):
    """One row in a hundred has another row's noise."""

    name = "shared-rows"

    def noise(self, x, z, rng):
        chosen = np.flatnonzero(rng.random(len(x)) < 0.01)
        z = [each.copy() for each in z]
        for each in z:
            each[chosen] = each[(chosen * 7 + 13) % len(x)]
        return z


class GrowsWithTheRecord(Planted):
    """Noise is larger for extreme records, and of the right variance on average."""

    name = "grows-with-the-record"

    def noise(self, x, z, rng):
        far = np.abs(x - np.median(x, axis=0)).argsort(axis=0).argsort(axis=0) / len(x)
        return [np.sqrt(0.8 + 0.4 * far) * each for each in z]


class FollowsTheData(Planted):
    """Copies shrink towards the mean by 6 % of the noise; the covariance is compensated."""

    name = "follows-the-data"

    def noise(self, x, z, rng):
        rank = x.argsort(axis=0).argsort(axis=0) / len(x) - 0.5
        scores = rank / rank.std(axis=0)
        return [math.sqrt(1 - 0.06**2) * each - 0.06 * each.std(axis=0) * scores for each in z]


class SharedInATwentieth(Planted):
    """In one row of 20 copies 1 and 2 share noise, scaled to its level."""

    name = "shared-in-a-twentieth"

    def noise(self, x, z, rng):
        rows = rng.random((len(x), 1)) < 0.05
        return [z[0], np.where(rows, z[0] * (z[1].std(axis=0) / z[0].std(axis=0)), z[1]), *z[2:]]


class SizesTogether(Planted):
    """All copies share a row's noise size: uncorrelated but dependent."""

    name, lawful = "sizes-together", True

    def noise(self, x, z, rng):
        size = np.sqrt(rng.gamma(8.0, 1 / 8.0, (len(x), 1)))
        return [size * each for each in z]


class QuietColumn(Planted):
    """One attribute has 20 % less noise than stated."""

    name = "quiet-column"

    def noise(self, x, z, rng):
        return [each * np.where(np.arange(x.shape[1]) == 1, 0.8, 1.0) for each in z]


class ShuffledRows(Planted):
    """Rows are permuted within each block."""

    name = "shuffled-rows"

    def noise(self, x, z, rng):
        order = rng.permutation(len(x))
        return [(x + each)[order] - x for each in z]


class Clipped(Planted):
    """Copies are clipped where the middle 99 % of the records end."""

    name = "clipped"

    def release(self, x, z):
        low, high = np.quantile(x, [0.005, 0.995], axis=0)
        return [np.clip(x + noise, low, high) for noise in z]


# -- leaks in plans and processes


class FreshRepeats(Case, CornerWave):
    """A repeated level gets a fresh draw instead of the existing copy."""

    name, trial_levels = "fresh-repeats", (0.5, 1.0, 0.5)

    def plan(self, levels, existing=0):
        return [
            Step(step.copy, ((ORIGINAL, 1.0),), ((step.copy, math.sqrt(levels[step.copy - 1])),))
            if levels[step.copy - 1] in levels[: step.copy - 1]
            else step
            for step in bridge_plan(levels, existing)
        ]


class Forgetful(Case):
    """A bridge that uses one neighbour: a new copy ignores the one above it."""

    trial_levels, plan = OneNeighbour.trial_levels, OneNeighbour.plan


class ForgetfulLaplace(Forgetful, LaplaceMultilevel):
    """The Laplace process; a new copy ignores the one above it."""

    name = "forgetful-laplace"


class ForgetfulGeometric(Forgetful, GeometricMultilevel):
    """The geometric process; a new copy ignores the one above it."""

    name, records = "forgetful-geometric", "whole"


class ForgetfulSkellam(Forgetful, SkellamMultilevel):
    """The Skellam process; a new copy ignores the one above it."""

    name, records = "forgetful-skellam", "whole"


class RestlessIncrements(Case, LaplaceMultilevel):
    """Increments of the Laplace process never rest: right variances, wrong laws."""

    name, lawful = "restless-increments", True
    process = LAPLACE._replace(
        increment=lambda rng, low, high, size: laplace_increment(rng, 0.0, high - low, size)
    )


# -- honest releases


class HonestRounded(Planted):
    """Corner-wave noise, copies rounded to two decimals."""

    name, honest = "honest-rounded", True

    def release(self, x, z):
        return [np.round(x + noise, 2) for noise in z]


class HonestFloat32(Planted):
    """Corner-wave noise, copies stored in single precision."""

    name, honest = "honest-float32", True

    def release(self, x, z):
        return [(x + noise).astype(np.float32).astype(np.float64) for noise in z]


def all_cases():
    """Every case, the product's first."""
    product = [registry.get("case", name) for name in registry.names("case")]
    here = [
        each
        for each in globals().values()
        if isinstance(each, type) and issubclass(each, Case) and each.__module__ == __name__
    ]
    return [*product, *(each for each in here if each is not Forgetful)]
