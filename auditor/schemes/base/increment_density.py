"""The law of an increment of noise that is a process with independent increments: at rest with some chance, else noise of one variance.

| distribution | ``Z_high − Z_low`` is 0 at rest with probability | and else as noise of variance |
| --- | --- | --- |
| ``skellam`` | 0 | ``high − low`` |
| ``laplace``, ``geometric`` | ``low/high`` | ``high`` |

Both of the last line have characteristic functions ``1/(1 + v·ψ(u))``, and ``(1 + low·ψ)/(1 + high·ψ) = r + (1 − r)/(1 + high·ψ)`` with
``r = low/high``. The increment from 0 is the noise itself.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np

from auditor.schemes.base.noise_density import Distribution, NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

PROCESSES: frozenset[Distribution] = frozenset({"laplace", "geometric", "skellam"})
"""Distributions, other than the Gaussian, of which attributes are independent and copies are one process, or independent."""


def is_process(law: NoiseLaw) -> TypeGuard[KroneckerNoise]:
    """Whether a law is of such noise."""
    return isinstance(law, KroneckerNoise) and law.distribution in PROCESSES


class IncrementDensity(NamedTuple):
    """An increment of one attribute's noise: 0 with probability ``rest``, else as ``moving`` says."""

    rest: float
    moving: NoiseDensity

    def distribution(self, t: Array) -> tuple[Array, Array]:
        """Return the distribution function at t, half of the probability of t itself counted, and that probability."""
        at = np.asarray(t, dtype=np.float64)
        point = (1.0 - self.rest) * self.moving.pdf(at) if self.moving.on_lattice else np.zeros_like(at)
        middle = self.rest * np.where(at == 0.0, 0.5, at > 0.0) + (1.0 - self.rest) * self.moving.cdf(at)
        return middle, point + self.rest * (at == 0.0)

    def near_zero(self, reach: float) -> float:
        """Return the probability of ``|t| ≤ reach``."""
        beside = np.array([reach, -reach])
        inside = float(self.moving.between(beside)[0])
        if self.moving.on_lattice:  # half of the probability of either end is counted
            inside += float(self.moving.pdf(np.array(reach)))
        return self.rest + (1.0 - self.rest) * inside


def increment_density(law: KroneckerNoise, low: float, high: float, attribute: int) -> IncrementDensity:
    """Return the law of one attribute's ``Z_high − Z_low``, levels ``0 ≤ low < high``; of a law that ``is_process``, *not checked*."""
    if law.distribution == "skellam":
        return IncrementDensity(0.0, law.density_at(high - low, attribute))
    return IncrementDensity(low / high, law.density_at(high, attribute))
