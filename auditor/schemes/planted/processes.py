"""Leaks in non-Gaussian processes, and honest releases."""

from __future__ import annotations

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.case import Case
from auditor.schemes.geometric import GeometricMultilevel
from auditor.schemes.laplace import LAPLACE, LaplaceMultilevel
from auditor.schemes.laplace import increment as laplace_increment
from auditor.schemes.planted.plans import OneNeighbour
from auditor.schemes.skellam import SkellamMultilevel
from auditor.types import Array


@register
class HonestLaplace(Case, LaplaceMultilevel):
    """The Laplace process on skewed records."""

    name, honest = "honest-laplace", True


@register
class HonestGeometric(Case, GeometricMultilevel):
    """The geometric process on whole numbers."""

    name, honest, records = "honest-geometric", True, "whole"


@register
class HonestSkellam(Case, SkellamMultilevel):
    """The Skellam process on whole numbers."""

    name, honest, records = "honest-skellam", True, "whole"


class Forgetful(Case):
    """A bridge that uses one neighbour: a new copy ignores the one above it."""

    trial_levels = OneNeighbour.trial_levels
    plan = OneNeighbour.plan


@register
class ForgetfulLaplace(Forgetful, LaplaceMultilevel):
    """The Laplace process; a new copy ignores the one above it."""

    name = "forgetful-laplace"


@register
class ForgetfulGeometric(Forgetful, GeometricMultilevel):
    """The geometric process; a new copy ignores the one above it."""

    name, records = "forgetful-geometric", "whole"


@register
class ForgetfulSkellam(Forgetful, SkellamMultilevel):
    """The Skellam process; a new copy ignores the one above it."""

    name, records = "forgetful-skellam", "whole"


def restless(rng: Rng, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    """Return Laplace noise of variance ``high − low`` without atoms at 0."""
    return laplace_increment(rng, 0.0 * low, high - low, shape)


@register
class RestlessIncrements(Case, LaplaceMultilevel):
    """Increments of the Laplace process never rest; pooling gains under 1 %.

    Variances are correct, laws are not.
    """

    name, lawful = "restless-increments", True
    process = LAPLACE._replace(increment=restless)
