"""Skellam noise: the difference of two Poisson processes.

| symbol | meaning | source |
| --- | --- | --- |
| ``N_1, N_2`` | two independent Poisson processes, each of mean v/2 at variance v | |
| ``Z_v`` | ``N_1 − N_2`` at v: ``P(k) = e^{−v} I_k(v)`` | Skellam 1946 |
| ``v_a < v_b < v_c`` | variances, in squared units, of the noise of the lower neighbour, the new copy and the upper neighbour | |
| ``D, U`` | the difference of the two neighbours, and the new copy's part of it | |

Steps are Skellam numbers of the variances' difference. Given D the new copy's part has
``P(u) = P_1(u) P_2(D − u)/P(D)``, with the laws of variances ``v_b − v_a``, ``v_c − v_b`` and
``v_c − v_a``. It is log-concave, and its mean is ``D (v_b − v_a)/(v_c − v_a)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import Rng
from auditor.numerics.whole_draws import log_concave, skellam
from auditor.registry import register
from auditor.schemes.base.increments import (
    IndependentProcess,
    LatticeScheme,
    MultilevelLattice,
    Process,
)
from auditor.schemes.base.noise_density import log_skellam
from auditor.types import Array


def increment(rng: Rng, low: float, high: float, size: int) -> Array:
    """Return ``Z_high − Z_low``, shape (size,)."""
    return skellam(rng, high - low, size) if high > low else np.zeros(size)


def bridge(rng: Rng, d: Array, low: float, middle: float, high: float) -> Array:
    """Return ``Z_middle − Z_low`` given ``Z_high − Z_low = d ≥ 0``, (b,).

    Variances ``low < middle < high``.
    """
    first, second = middle - low, high - middle

    def log_p(k: Array, at: NDArray[np.intp]) -> Array:
        parts = log_skellam(k, first) + log_skellam(d[at] - k, second)
        return parts - log_skellam(d[at], high - low)

    return log_concave(rng, np.rint(d * (first / (high - low))), log_p)


SKELLAM = Process("skellam", increment, bridge)


@register
class SkellamMultilevel(MultilevelLattice):
    """Multilevel Skellam noise: no coalition gains over its best copy.

    Noise and values are whole numbers, so the last bits disclose no value.
    """

    name = "skellam-multilevel"
    reference = "skellam1946; agarwal2021; xiao2009, section 5.2"
    process = SKELLAM


@register
class Skellam(LatticeScheme, IndependentProcess):
    """Fresh Skellam noise in every copy. Broken under collusion.

    Whole numbers, the difference of two Poisson numbers.
    """

    name = "skellam"
    reference = "skellam1946; agarwal2021; li2012, section 5.1.1"
    process = SKELLAM
