"""Law of an increment of noise with independent increments.

An increment is 0 (at rest) with some probability, else noise of one variance.

| distribution | P(``Z_high − Z_low`` at rest) | variance otherwise |
| --- | --- | --- |
| ``skellam`` | 0 | ``high − low`` |
| ``laplace``, ``geometric`` | ``low/high`` | ``high`` |

Laplace and geometric noise have characteristic functions ``1/(1 + v·ψ(u))``, and
``(1 + low·ψ)/(1 + high·ψ) = r + (1 − r)/(1 + high·ψ)`` with ``r = low/high``. The increment from 0
is the noise itself.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np

from auditor.schemes.base.noise_density import Distribution, NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

PROCESSES: frozenset[Distribution] = frozenset({"laplace", "geometric", "skellam"})
"""Non-Gaussian distributions with independent attributes."""


def is_process(law: NoiseLaw) -> TypeGuard[KroneckerNoise]:
    """Whether a law describes non-Gaussian noise that is one process."""
    return isinstance(law, KroneckerNoise) and law.distribution in PROCESSES


class IncrementDensity(NamedTuple):
    """Increment of one attribute's noise: 0 with probability ``rest``."""

    rest: float
    moving: NoiseDensity

    def distribution(self, t: Array) -> tuple[Array, Array]:
        """Return the distribution function and the point probability at t.

        Half of the probability of t itself is included.
        """
        at = np.asarray(t, dtype=np.float64)
        point = (
            (1.0 - self.rest) * self.moving.pdf(at) if self.moving.on_lattice else np.zeros_like(at)
        )
        middle = self.rest * np.where(at == 0.0, 0.5, at > 0.0) + (
            1.0 - self.rest
        ) * self.moving.cdf(at)
        return middle, point + self.rest * (at == 0.0)


def increment_density(
    law: KroneckerNoise, low: float, high: float, attribute: int
) -> IncrementDensity:
    """Return the law of one attribute's ``Z_high − Z_low``, 0 ≤ low < high.

    *Not checked*: that ``is_process`` holds for the law.
    """
    if law.distribution == "skellam":
        return IncrementDensity(0.0, law.density_at(high - low, attribute))
    return IncrementDensity(low / high, law.density_at(high, attribute))
