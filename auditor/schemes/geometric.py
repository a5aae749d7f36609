"""Two-sided geometric noise, the discrete form of Laplace noise.

| symbol | meaning | source |
| --- | --- | --- |
| ``v_a ≤ v_b ≤ v_c`` | the noise's variances, in squared units, in the lower neighbour, the new copy and the upper neighbour | |
| ``λ, q`` | ``q = e^{−λ}``, ``v = 2q/(1 − q)²``, so that ``λ = 2 arsinh(1/√(2v))`` | |
| ``g(k)`` | ``(1 − q)/(1 + q)·q^{|k|}``, with ``g(0) = 1/√(2v + 1)`` | Ghosh, Roughgarden & Sundararajan 2009 |
| ``D, U`` | the difference of the two neighbours, and the new copy's part of it | |
| ``r_1, r_2`` | ``v_a/v_b`` and ``v_b/v_c``, the chances that a step is 0 | |

The characteristic function of g is ``1/(1 + v(1 − cos u))``; that of c over that of b is
``b/c + (1 − b/c)/(1 + c(1 − cos u))``. So from v_b to v_c the noise stays unchanged with
probability ``v_b/v_c``, and else gains fresh noise of variance v_c. In terms of q the probability
is ``((1 − q_c)/(1 − q_b))²·q_b/q_c``. Given D, each of the two steps stayed or was fresh. If both
were fresh the split has weight ``q_b^{|u|} q_c^{|D − u|}``. It is geometric outside 0 … D, and
inside with ratio ``ρ = q_b/q_c``. D = 0 may result from two steps that cancel.

Weights are divided by ``q_c^{|D|}`` to avoid overflow and underflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.numerics.whole_draws import geometric
from auditor.registry import register
from auditor.schemes.base.increments import (
    IndependentProcess,
    LatticeScheme,
    MultilevelLattice,
    Process,
)
from auditor.schemes.base.noise_density import geometric_rate
from auditor.types import Array


def rate_gap(low: float, high: float) -> float:
    """Return ``λ(low) − λ(high)`` without cancellation for close variances."""
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
    """Return ``Z_high − Z_low``, shape (size,).

    0 with probability ``low/high``, else fresh noise of variance ``high``.
    """
    if low == 0.0 < high:
        return _fresh(rng, high, size)
    drawn = np.zeros(size)
    if high > low:
        moved = np.flatnonzero(rng.random(size) >= low / high)
        drawn[moved] = _fresh(rng, high, len(moved))
    return drawn


def _fresh(rng: Rng, v: float, size: int) -> Array:
    """Return two-sided geometric noise of variance ``v > 0``.

    A difference of two independent geometric numbers of equal q.
    """
    return geometric(rng, geometric_rate(v), size) - geometric(rng, geometric_rate(v), size)


class Split(NamedTuple):
    """Unnormalised weights of the possible splits of a gap ``d ≥ 0``.

    Numbers, or arrays of d's shape.

    Attributes
    ----------
    none, whole : float, ndarray
        The first step stayed or was 0 (``U = 0``); the second stayed, and the first was all of the
        gap (``U = d``).
    below, above : float, ndarray
        Both were fresh, and ``U < 0``, ``U > d``; beyond either end U is geometric of ratio ``q_b
        q_c``.
    within : ndarray
        Both were fresh, and ``0 ≤ U ≤ d``, where U is geometric of ratio ρ.
    """

    none: Array
    whole: Array
    below: float
    above: Array
    within: Array


def split_weights(d: Array, low: float, middle: float, high: float) -> Split:
    """Return the split weights of gaps ``d ≥ 0``, divided by ``q_c^d``.

    Variances ``low < middle < high``.
    """
    stay_1, stay_2 = low / middle, middle / high
    move_1, move_2 = (middle - low) / middle, (high - middle) / high
    g_b, g_c = 1.0 / np.sqrt(2.0 * middle + 1.0), 1.0 / np.sqrt(2.0 * high + 1.0)
    log_rho = -rate_gap(middle, high)
    rho_d = np.exp(log_rho * d)
    fresh = move_1 * move_2 * g_b * g_c
    # Σ_{k≥1} (q_b q_c)^k, of each side
    outside = fresh / np.expm1(geometric_rate(middle) + geometric_rate(high))
    return Split(
        none=stay_1 * (move_2 * g_c + stay_2 * (d == 0)),
        whole=move_1 * stay_2 * g_b * rho_d,
        below=outside,
        above=outside * rho_d,
        within=fresh * np.expm1(log_rho * (d + 1.0)) / np.expm1(log_rho),  # Σ_{k=0}^{d} ρ^k
    )


def bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """Return ``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    Variances ``low < middle < high``.
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
    U[within] = _truncated(rng, rate_gap(middle, high), d[within])
    U[above] = d[above] + 1.0 + geometric(rng, both, len(above))
    U[below] = -1.0 - geometric(rng, both, len(below))
    return U


def _truncated(rng: Rng, decay: float, last: Array) -> Array:
    """Return numbers from 0 to ``last`` with ``P(k) ∝ e^{−decay·k}``."""
    u = rng.random(len(last))
    k = np.floor(-np.log1p(u * np.expm1(-decay * (last + 1.0))) / decay)
    return np.minimum(k, last)  # rounding of the logarithm may exceed last by one


GEOMETRIC = Process("geometric", increment, bridge)


@register
class GeometricMultilevel(MultilevelLattice):
    """Multilevel geometric noise: no coalition gains over its best copy.

    Noise and values are whole numbers, so the last bits disclose no value.
    """

    name = "geometric-multilevel"
    reference = "ghosh2009; xiao2009, section 5.2"
    process = GEOMETRIC


@register
class Geometric(LatticeScheme, IndependentProcess):
    """Fresh two-sided geometric noise in every copy. Broken under collusion."""

    name = "geometric"
    reference = "ghosh2009; li2012, section 5.1.1"
    process = GEOMETRIC
