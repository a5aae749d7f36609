"""Laplace, geometric and Skellam noise, from processes or fresh draws.

| noise | law at variance v | increment from ``v_b`` to ``v_c`` | source |
| --- | --- | --- | --- |
| Laplace | scale ``b = √(v/2)`` | 0 with probability ``v_b/v_c``, else Laplace of scale c | koufogiannis2015 |
| geometric | ``(1 − q)/(1 + q)·q^{|k|}``, ``v = 2q/(1 − q)²`` | 0 with probability ``v_b/v_c``, else geometric of ``v_c`` | ghosh2009 |
| Skellam | ``e^{−v} I_k(v)``: difference of two Poisson numbers | Skellam of ``v_c − v_b`` | skellam1946 |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from auditor.base.types import Array, Indices
from auditor.numerics.random_streams import LARGEST_TABLE, Rng, geometric, log_concave, skellam
from auditor.registry import register
from auditor.schemes.base.increments import (
    IndependentProcess,
    LatticeScheme,
    MultilevelLattice,
    MultilevelProcess,
    Process,
)
from auditor.schemes.base.noise_density import geometric_rate, log_skellam


def rate_gap(low: float, high: float) -> float:
    """``λ(low) − λ(high)`` without cancellation for close variances."""
    return float(
        2.0
        * np.arcsinh(
            (high - low)
            / (
                np.sqrt(low)
                * np.sqrt(high)
                * (np.sqrt(2.0 * low + 1.0) + np.sqrt(2.0 * high + 1.0))
            )
        )
    )


def increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``: 0, or fresh noise of variance ``high``."""
    if low == 0.0 < high:
        return _fresh(rng, high, size)
    drawn = np.zeros(size)
    if high > low:
        moved = np.flatnonzero(rng.random(size) >= low / high)
        drawn[moved] = _fresh(rng, high, len(moved))
    return drawn


def _fresh(rng: Rng, v: float, size: int) -> Array:
    return geometric(rng, geometric_rate(v), size) - geometric(rng, geometric_rate(v), size)


class Split(NamedTuple):
    """Unnormalised weights of the splits of a gap ``d ≥ 0``.

    ``none``: the first step was 0. ``whole``: only the second was (``U = d``). Else ``below`` 0,
    ``within`` the gap, ``above`` d. U is geometric of ratio ``q_b q_c``, within of ratio ρ.
    """

    none: Array
    whole: Array
    below: float
    above: Array
    within: Array


def split_weights(d: Array, low: float, middle: float, high: float) -> Split:
    """Split weights of gaps ``d ≥ 0``, divided by ``q_c^d``."""
    stay_1, stay_2 = low / middle, middle / high
    move_1, move_2 = (middle - low) / middle, (high - middle) / high
    g_b, g_c = 1.0 / np.sqrt(2.0 * middle + 1.0), 1.0 / np.sqrt(2.0 * high + 1.0)
    log_rho = -rate_gap(middle, high)
    rho_d = np.exp(log_rho * d)
    fresh = move_1 * move_2 * g_b * g_c
    outside = fresh / np.expm1(geometric_rate(middle) + geometric_rate(high))
    return Split(
        none=stay_1 * (move_2 * g_c + stay_2 * (d == 0)),
        whole=move_1 * stay_2 * g_b * rho_d,
        below=outside,
        above=outside * rho_d,
        within=fresh * np.expm1(log_rho * (d + 1.0)) / np.expm1(log_rho),
    )


def bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    Two fresh steps have weight ``q_b^{|u|} q_c^{|D − u|}``, with ratio ``ρ = q_b/q_c`` inside 0 …
    D.
    """
    ways = split_weights(d, low, middle, high)
    to_whole = ways.within + ways.whole
    to_none = to_whole + ways.none
    to_above = to_none + ways.above
    u = rng.random(len(d)) * (to_above + ways.below)
    U = np.where(u < to_whole, d, 0.0)
    within = np.flatnonzero(u < ways.within)
    above = np.flatnonzero((u >= to_none) & (u < to_above))
    below = np.flatnonzero(u >= to_above)
    both = geometric_rate(middle) + geometric_rate(high)
    decay, last = rate_gap(middle, high), d[within]
    u = np.log1p(rng.random(len(last)) * np.expm1(-decay * (last + 1.0)))
    U[within] = np.minimum(np.floor(-u / decay), last)
    U[above] = d[above] + 1.0 + geometric(rng, both, len(above))
    U[below] = -1.0 - geometric(rng, both, len(below))
    return U


GEOMETRIC = Process("geometric", increment, bridge)


@register
class GeometricMultilevel(MultilevelLattice):
    """Multilevel geometric noise: no coalition gains over its best copy."""

    name = "geometric-multilevel"
    reference = "ghosh2009; xiao2009, section 5.2"
    process = GEOMETRIC


@register
class Geometric(LatticeScheme, IndependentProcess):
    """Fresh two-sided geometric noise in every copy. Broken under collusion."""

    name = "geometric"
    reference = "ghosh2009; li2012, section 5.1.1"
    process = GEOMETRIC


def laplace_increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``: 0, or Laplace noise of variance ``high``."""
    moves = (high - low) / high if high > 0 else 0.0
    # one uniform number is indicator and sign
    side = rng.random(size) - moves / 2.0
    Z = np.copysign(rng.standard_exponential(size) * np.sqrt(high / 2.0), side)
    return Z * (side < moves / 2.0)


def laplace_bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``U = Z_middle − Z_low`` given ``D = Z_high − Z_low ≥ 0``.

    Both increments are mixtures of 0 and a Laplace number. With ``S = (1 − r₁)/(1 − r₁r₂)``, ``r₁ =
    a²/b²``, ``r₂ = b²/c²``, ``q = (1 − b/c)/2``, ``k = 1/b + 1/c``, ``l = 1/b − 1/c`` and ``t =
    e^{−lD}``, for ``D > 0``: ``U = 0`` with probability ``1 − S``, and else

        below 0 with probability ``q``,         where ``−U`` is exponential of rate k,
        between 0 and D with ``(1 − q)(1 − t)``, exponential of rate l, truncated at D,
        exactly D with ``(1 − 2q)·t``,
        beyond D with ``q·t``,                  where ``U − D`` is exponential of rate k.

    ``D = 0`` gives ``U = 0``.
    """
    b, c = np.sqrt(middle / 2.0), np.sqrt(high / 2.0)
    apart = (high - middle) / (2.0 * (b + c))
    S = (middle - low) / (high - low) * (high / middle)
    q, beyond, between = apart / (2.0 * c), b * (c / (b + c)), b * (c / apart)
    u, E = rng.random(len(d)), rng.standard_exponential(len(d))
    excess = E - d / between
    U = np.where(excess < 0.0, E * between, np.where(u < 2.0 * S * q, d + excess * beyond, d))
    U = np.where(u < S * q, E * -beyond, U)
    return U * ((u < S) & (d > 0.0))


LAPLACE = Process("laplace", laplace_increment, laplace_bridge)
"""On a grid of step g the process is two-sided geometric noise of equal variance. ``1/(1 + v(1 −
cos ug)/g²)`` is ``1/(1 + v u²/2)`` up to a share of ``(ug)²/12``, and the increments are 0 with
equal probabilities.
"""


@register
class LaplaceMultilevel(MultilevelProcess):
    """Multilevel Laplace noise: no coalition gains over its best copy."""

    name = "laplace-multilevel"
    reference = "koufogiannis2015; xiao2009, section 5.2"
    process, on_public_grid = LAPLACE, GEOMETRIC


@register
class Laplace(IndependentProcess):
    """Fresh Laplace noise in every copy. Broken under collusion."""

    name = "laplace"
    reference = "dwork2006; li2012, section 5.1.1"
    process, on_public_grid = LAPLACE, GEOMETRIC


def skellam_increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """``Z_high − Z_low``."""
    v = high - low
    if 0.0 < v <= LARGEST_TABLE:
        return skellam(rng, v, size)
    zeros = np.zeros(size)
    return log_concave(rng, zeros, lambda k, _: log_skellam(k, v)) if v > 0.0 else zeros


def skellam_bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    ``P(u) = P_1(u) P_2(D − u)/P(D)``, of variances ``v_b − v_a``, ``v_c − v_b`` and ``v_c − v_a``:
    log-concave, with mean ``D (v_b − v_a)/(v_c − v_a)``.
    """
    first, second = middle - low, high - middle

    def log_p(k: Array, at: Indices) -> Array:
        parts = log_skellam(k, first) + log_skellam(d[at] - k, second)
        return parts - log_skellam(d[at], high - low)

    return log_concave(rng, np.rint(d * (first / (high - low))), log_p)


SKELLAM = Process("skellam", skellam_increment, skellam_bridge)


@register
class SkellamMultilevel(MultilevelLattice):
    """Multilevel Skellam noise: no coalition gains over its best copy."""

    name = "skellam-multilevel"
    reference = "skellam1946; agarwal2021; xiao2009, section 5.2"
    process = SKELLAM


@register
class Skellam(LatticeScheme, IndependentProcess):
    """Fresh Skellam noise in every copy. Broken under collusion."""

    name = "skellam"
    reference = "skellam1946; agarwal2021; li2012, section 5.1.1"
    process = SKELLAM
