"""Further planted leaks and honest releases; `docs/evidence/faults.md` shows the tests that find each. None is registered."""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from auditor import registry
from auditor.schemes import divisible_noise
from auditor.schemes.base.scheme import Case
from auditor.schemes.corner_wave import ORIGINAL, CornerWave, Step, bridge_plan
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


def planted(method, **attributes):
    """Make a case with one method; its name is the function's."""

    def made(function):
        body = {"name": function.__name__.replace("_", "-"), "__doc__": function.__doc__}
        return type(function.__name__, (Planted,), body | {method: function} | attributes)

    return made


# -- leaks in the innovations


@planted("innovations", lawful=True)
def permuted_bins(self, x, g, rng):
    """The second innovation is the first with its sixteen bins permuted."""
    g[1] = mixed(ndtr(g[0]), 16, rng)


@planted("innovations", lawful=True)
def bins_of_the_record(self, x, g, rng):
    """The second innovation encodes the twelfth of its column a record is in."""
    g[1] = mixed(ranks(x), 12, rng)


@planted("innovations", lawful=True)
def signs_across_attributes(self, x, g, rng):
    """One attribute's innovation sign is a product of two of another's."""
    g[1][:, 1] = np.abs(g[1][:, 1]) * np.sign(g[0][:, 0] * g[1][:, 0])


class FineBands(Bands):
    """The second innovation's band, 0.004 wide, encodes the first one's sign."""

    name, width = "fine-bands", 0.004


@planted("innovations", lawful=True)
def signs_of_three_copies(self, x, g, rng):
    """The third innovation's sign is the product of two; pairs are lawful."""
    g[2] = np.abs(g[2]) * np.sign(g[0] * g[1])


@planted("innovations", lawful=True)
def sizes_that_tell_signs(self, x, g, rng):
    """The second innovation is large where the first is positive."""
    u = rng.uniform(EDGE, 1 - EDGE, g[0].shape) / 2
    g[1] = ndtri((1 + u + np.where(g[0] > 0, 0.5, 0.0)) / 2) * np.sign(g[1])


@planted("innovations", lawful=True)
def decimals(self, x, g, rng):
    """The second innovation encodes the first after its third decimal."""
    g[1] = (np.floor(g[1] * 1000) + ndtr(g[0])) / 1000


@planted("innovations", lawful=True)
def sevenths_of_the_record(self, x, g, rng):
    """The second innovation encodes the record's rank below 1/7,000."""
    g[1] = (np.floor(g[1] * 7000) + ranks(x)) / 7000


@planted("innovations", lawful=True)
def ordered_by_record(self, x, g, rng):
    """The second innovation's size is the record's distance from the median, by rank."""
    g[1] = sized(ranks(np.abs(x - np.median(x, axis=0))), g[1])


@planted("innovations", lawful=True)
def the_row_before(self, x, g, rng):
    """The second innovation's size is the previous row's first innovation."""
    g[1] = sized(np.roll(ndtr(g[0]), 1, axis=0), g[1])


@planted("innovations", lawful=True)
def ranks_that_add_up(self, x, g, rng):
    """The third innovation's rank is the sum of two, modulo 1; pairs are lawful."""
    g[2] = ndtri(np.clip((ndtr(g[0]) + ndtr(g[1])) % 1.0, EDGE, 1 - EDGE))


@planted("innovations", share=1.0)
def repeated_innovation(self, x, g, rng):
    """The third copy adds the first one's innovation again."""
    g[2] = g[0]


# -- leaks in the noise; of boosted trees none gained more than 0.4 % in 20,000 rows by pooling


@planted("noise")
def one_normal_for_all_columns(self, x, z, rng):
    """Every copy's noise is one normal per row, shared by all attributes."""
    return [each[:, :1] * (each.std(axis=0) / each[:, 0].std()) for each in z]


@planted("noise")
def shared_rows(self, x, z, rng):
    """One row in a hundred has another row's noise."""
    chosen = np.flatnonzero(rng.random(len(x)) < 0.01)
    z = [each.copy() for each in z]
    for each in z:
        each[chosen] = each[(chosen * 7 + 13) % len(x)]
    return z


@planted("noise")
def grows_with_the_record(self, x, z, rng):
    """Noise is larger for extreme records, and of the right variance on average."""
    far = np.abs(x - np.median(x, axis=0)).argsort(axis=0).argsort(axis=0) / len(x)
    return [np.sqrt(0.8 + 0.4 * far) * each for each in z]


@planted("noise")
def follows_the_data(self, x, z, rng):
    """Copies shrink towards the mean by 6 % of the noise; the covariance is compensated."""
    rank = x.argsort(axis=0).argsort(axis=0) / len(x) - 0.5
    scores = rank / rank.std(axis=0)
    return [math.sqrt(1 - 0.06**2) * each - 0.06 * each.std(axis=0) * scores for each in z]


@planted("noise")
def shared_in_a_twentieth(self, x, z, rng):
    """In one row of 20 copies 1 and 2 share noise, scaled to its level."""
    rows = rng.random((len(x), 1)) < 0.05
    return [z[0], np.where(rows, z[0] * (z[1].std(axis=0) / z[0].std(axis=0)), z[1]), *z[2:]]


@planted("noise", lawful=True)
def sizes_together(self, x, z, rng):
    """All copies share a row's noise size: uncorrelated but dependent."""
    size = np.sqrt(rng.gamma(8.0, 1 / 8.0, (len(x), 1)))
    return [size * each for each in z]


@planted("noise")
def quiet_column(self, x, z, rng):
    """One attribute has 20 % less noise than stated."""
    return [each * np.where(np.arange(x.shape[1]) == 1, 0.8, 1.0) for each in z]


@planted("noise")
def shuffled_rows(self, x, z, rng):
    """Rows are permuted within each block."""
    order = rng.permutation(len(x))
    return [(x + each)[order] - x for each in z]


@planted("release")
def clipped(self, x, z):
    """Copies are clipped where the middle 99 % of the records end."""
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


class ForgetfulLaplace(Forgetful, divisible_noise.LaplaceMultilevel):
    """The Laplace process; a new copy ignores the one above it."""

    name = "forgetful-laplace"


class ForgetfulGeometric(Forgetful, divisible_noise.GeometricMultilevel):
    """The geometric process; a new copy ignores the one above it."""

    name, records = "forgetful-geometric", "whole"


class ForgetfulSkellam(Forgetful, divisible_noise.SkellamMultilevel):
    """The Skellam process; a new copy ignores the one above it."""

    name, records = "forgetful-skellam", "whole"


class RestlessIncrements(Case, divisible_noise.LaplaceMultilevel):
    """Increments of the Laplace process never rest: right variances, wrong laws."""

    name, lawful = "restless-increments", True
    process = divisible_noise.LAPLACE._replace(
        increment=lambda rng, low, high, size: divisible_noise.laplace_increment(
            rng, 0.0, high - low, size
        )
    )


# -- honest releases


@planted("release", honest=True)
def honest_rounded(self, x, z):
    """Corner-wave noise, copies rounded to two decimals."""
    return [np.round(x + noise, 2) for noise in z]


@planted("release", honest=True)
def honest_float32(self, x, z):
    """Corner-wave noise, copies stored in single precision."""
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
