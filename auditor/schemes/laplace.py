"""Laplace noise: a process with independent increments, or fresh draws.

| symbol | meaning | source |
| --- | --- | --- |
| ``a < b < c`` | scales, ``√(v/2)`` of variances v | |
| ``1/(1 + b²u²)`` | characteristic function of ``Z_b`` | |
| ``r₁, r₂`` | ``a²/b²``, ``b²/c²`` | |
| ``D, U`` | ``Z_c − Z_a``; ``Z_b − Z_a`` given D; below ``D > 0``, by symmetry | |
| ``S`` | ``(1 − r₁)/(1 − r₁r₂)``: the chance that U is not 0 | |
| ``q`` | ``(1 − b/c)/2`` | |
| ``k, l`` | ``1/b + 1/c``, ``1/b − 1/c`` | |
| ``t`` | ``e^{−lD}`` | |

``(1 + b²u²)/(1 + c²u²) = r + (1 − r)/(1 + c²u²)`` with ``r = b²/c²``: the increment from b to c is
0 with probability r, and else fresh noise of scale c. Both increments of a bridge are mixtures of
this form. They can add up to D in three ways (only the second moves, only the first, both). Divided
by the density of D this leaves

    ``U = 0`` with probability ``1 − S``, and given that it is not:
    below 0 with probability ``q``,         where ``−U`` is exponential of rate k,
    between 0 and D with ``(1 − q)(1 − t)``, exponential of rate l, truncated at D,
    exactly D with ``(1 − 2q)·t``,
    beyond D with ``q·t``,                  where ``U − D`` is exponential of rate k.

One uniform number chooses the side, and one exponential serves all sides: the excess of an
exponential of rate l over D is again exponential. ``D = 0`` almost surely means two increments at
rest, and gives ``U = 0``.

Reference: koufogiannis2015 (the process); its bridge, for levels in any order, is derived here.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.increments import IndependentProcess, MultilevelProcess, Process
from auditor.schemes.geometric import GEOMETRIC
from auditor.types import Array


def increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """Return ``Z_high − Z_low``, shape (size,).

    0 with probability low/high, else Laplace noise of variance ``high``.
    Variances ``0 ≤ low ≤ high``.
    """
    # for near-equal levels the difference is exact, 1 − low/high is not
    moves = (high - low) / high if high > 0 else 0.0
    # One uniform number u is indicator and sign: the increment moves if u < moves, and falls if u <
    # moves/2.
    side = rng.random(size) - moves / 2.0
    Z = np.copysign(rng.standard_exponential(size) * np.sqrt(high / 2.0), side)
    return np.asarray(Z * (side < moves / 2.0))


def bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """Return ``U = Z_middle − Z_low`` given ``D = Z_high − Z_low ≥ 0``.

    Shape (rows,); variances ``low < middle < high``.
    """
    b, c = np.sqrt(middle / 2.0), np.sqrt(high / 2.0)
    apart = (high - middle) / (2.0 * (b + c))  # c − b without cancellation
    S = (middle - low) / (high - low) * (high / middle)
    # between: 1/l, and beyond: 1/k
    q, beyond, between = apart / (2.0 * c), b * (c / (b + c)), b * (c / apart)
    u, E = rng.random(len(d)), rng.standard_exponential(len(d))
    excess = E - d / between
    U = np.where(excess < 0.0, E * between, np.where(u < 2.0 * S * q, d + excess * beyond, d))
    U = np.where(u < S * q, E * -beyond, U)
    return U * ((u < S) & (d > 0.0))


LAPLACE = Process("laplace", increment, bridge)
"""On a grid of step g the process is two-sided geometric noise of equal variance, in units of g.
``1/(1 + v(1 − cos ug)/g²)`` is ``1/(1 + v u²/2)`` up to a share of ``(ug)²/12``, and the increments
are 0 with equal probabilities.
"""


@register
class LaplaceMultilevel(MultilevelProcess):
    """Multilevel Laplace noise: no coalition gains over its best copy.

    One process for all copies; a coalition's ε is its best copy's.
    """

    name = "laplace-multilevel"
    reference = "koufogiannis2015; xiao2009, section 5.2"
    process, on_public_grid = LAPLACE, GEOMETRIC


@register
class Laplace(IndependentProcess):
    """Fresh Laplace noise in every copy. Broken under collusion.

    Each attribute has its own scale.
    """

    name = "laplace"
    reference = "dwork2006; li2012, section 5.1.1"
    process, on_public_grid = LAPLACE, GEOMETRIC
