"""Corner-wave noise (Brownian motion at times σ²), and its weak relatives.

| scheme | ``Sigma`` | ``K_0`` by default | source |
| --- | --- | --- | --- |
| ``corner-wave`` | ``min(σ_i², σ_j²)`` | ``K_X`` | li2011 (19); li2012 (15) is misprinted |
| ``independent`` | ``diag(σ_1² … σ_M²)`` | ``(tr K_X / N)·I``: white noise | li2012, Theorem 3; huang2005, section 4 |
| ``correlated`` | ``diag(σ_1² … σ_M²)`` | ``K_X``: no filter separates noise and data | huang2005, section 8 |
| ``linearly-dependent`` | ``s sᵀ``, ``s = (σ_1 … σ_M)`` | ``K_X`` | li2012, section 4.2.2 |

The least perturbed corner-wave copy is sufficient. With levels ``a < s < b``, ``X`` as level 0, a
new copy is

    ``Y_s = Y_a + (s−a)/(b−a)·(Y_b − Y_a) + sqrt((s−a)(b−s)/(b−a))·g``,
    ``Y_s = Y_a + sqrt(s−a)·g``  beyond the last,

the paper's conditional Gaussian (li2012 (17) and (18)). A repeated level returns its copy.
``distribution: uniform`` draws ``Z_i = σ_i K_0^½ u``, u uniform on ±√3 (agrawal2000).

Reference: li2012, section 5. Fails if noise is not *jointly* Gaussian.
"""

from typing import Literal

import numpy as np

from auditor.base import AuditorError, scipy
from auditor.base.types import Array, Levels, Pair
from auditor.registry import PluginParameters, register
from auditor.schemes.base.additive import (
    ORIGINAL,
    AdditiveScheme,
    FreshNoise,
    Serial,
    Step,
    bridge_plan,
    min_covariance,
    upward_plan,
)
from auditor.schemes.base.noise_density import NoiseShape


@register
class Independent(FreshNoise):
    """Fresh white noise in every copy. Broken under collusion, and by filters.

    Gaussian or uniform, with covariance σ²·(tr K_X / N)·I.
    """

    name = "independent"
    held_against = True
    reference = "li2012, section 5.1.1; huang2005, sections 4 and 6.1"
    assumes = "Recipients never pool their copies, and the attributes are uncorrelated."

    class Parameters(PluginParameters):
        """Covariance of the noise across attributes, and its distribution."""

        noise: NoiseShape = "white"
        """shape of the noise across attributes, K_0"""
        distribution: Literal["gaussian", "uniform"] = "gaussian"
        """gaussian, or uniform with the same covariance"""

    @property
    def distribution(self) -> Literal["gaussian", "uniform"]:
        return self.parameters.distribution


@register
class Correlated(FreshNoise):
    """Fresh noise with the data's covariance. Broken under collusion.

    Gaussian, with covariance σ²·K_X.
    """

    name = "correlated"
    held_against = True
    fresh_shaped_noise = True
    assumes = "Recipients never pool their copies."

    class Parameters(AdditiveScheme.Parameters):
        """Covariance of the noise across attributes, and along the records."""

        serial: Serial = "none"


@register
class LinearlyDependent(AdditiveScheme):
    """One noise draw scaled to every level. Broken: two copies disclose all.

    ``X = (σ_2 Y_1 − σ_1 Y_2) / (σ_2 − σ_1)`` exactly, for any two different levels.
    """

    name = "linearly-dependent"
    held_against = True
    claims = "Nothing under collusion: two copies at different levels give the table exactly (li2012, section 4.2.2)."
    reference = "li2012, section 4.2.2"
    assumes = "Recipients never pool their copies."
    on_grid = False

    def level_covariance(self, levels: Levels) -> Array:
        s = np.sqrt(np.asarray(levels, dtype=float))
        return np.outer(s, s)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # b is the noisiest copy; a fresh draw only if no copy exists
        steps = []
        for copy in range(existing + 1, len(levels) + 1):
            sigma = float(np.sqrt(levels[copy - 1]))
            before = max(range(1, copy), key=lambda c: levels[c - 1], default=0)
            if before and levels[before - 1] > 0:
                ratio = sigma / float(np.sqrt(levels[before - 1]))
                steps.append(Step(copy, ((ORIGINAL, 1.0 - ratio), (before, ratio))))
            else:
                steps.append(Step(copy, ((ORIGINAL, 1.0),), ((copy, sigma),) if sigma > 0 else ()))
        return steps


@register
class CornerWave(AdditiveScheme):
    """Multilevel Gaussian noise: no coalition gains over its best copy.

    Noise covariance between copies i and j: min(σ_i², σ_j²)·K_X.
    """

    name = "corner-wave"
    held_against = True
    claims = "No collusion gain: a coalition does no better than its least perturbed copy (li2012, Theorem 4)."
    reference = "li2012, Theorem 4"
    assumes = "Noise is jointly Gaussian and independent of the data; holds for every attack and every table."

    class Parameters(AdditiveScheme.Parameters):
        """Noise shape and sampling algorithm; all four algorithms have one law."""

        algorithm: Literal["bridge", "parallel", "sequential", "on-demand"] = "bridge"
        """bridge: from the two neighbouring levels; parallel, sequential, on-demand: the paper's Algorithms 1, 2 and 3"""
        serial: Serial = "none"

    level_covariance = staticmethod(min_covariance)

    def plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # algorithms 1 and 2 need every level (li2012, 5.2.3); later copies use the bridge
        algorithm = self.parameters.algorithm
        if algorithm == "on-demand":
            return on_demand_plan(levels, existing)
        if algorithm == "parallel" and existing == 0:
            return _joint_plan(levels, 0)
        if algorithm == "sequential" and existing == 0:  # section 5.2.2 and Theorem 5
            return upward_plan(levels)
        return bridge_plan(levels, existing)

    def released_plan(self, levels: Levels, existing: int = 0) -> list[Step]:
        # A copy above the last level is a function of the copy before and of noise independent of X,
        # for any rounding: Theorem 4 holds exactly.
        if self.parameters.algorithm != "bridge":
            return self.plan(levels, existing)
        return upward_plan(levels, existing)


def on_demand_plan(levels: Levels, existing: int) -> list[Step]:
    """Paper's Algorithm 3: new copies given *all* earlier ones.

    Source: li2012 (17) and (18), with ERRATA's transpose.
    """
    if existing > 0:
        return _joint_plan(levels, existing)
    return [
        step for copy in range(1, len(levels) + 1) for step in _joint_plan(levels[:copy], copy - 1)
    ]


def _joint_plan(levels: Levels, existing: int) -> list[Step]:
    """Draw new copies jointly, given the others (or Algorithm 1).

    By one Cholesky factor of ``Sigma`` (li2012, section 5.2.1 and Lemma 1).
    """
    holder, new, repeats = {0.0: ORIGINAL}, dict[float, int](), []
    for copy, s in enumerate(map(float, levels), start=1):
        if copy <= existing:
            holder.setdefault(s, copy)
        elif s in holder:
            repeats.append(Step(copy, ((holder[s], 1.0),)))
        else:
            holder[s] = new[s] = copy
    given = {s: copy for s, copy in holder.items() if s not in new and s > 0}
    if not new:
        return repeats
    try:
        mean, covariance = conditional_gaussian(np.array(list(given)), np.array(list(new)))
        root = scipy.linalg.cholesky(covariance, lower=True)
    except np.linalg.LinAlgError:
        raise AuditorError(
            "levels are too close for dense linear algebra to tell apart; algorithm: bridge has no solve"
        ) from None
    steps = []
    for copy, weights, scales in zip(new.values(), mean.tolist(), root.tolist(), strict=True):
        parents = ((ORIGINAL, 1.0 - sum(weights)), *_used(given, weights))
        steps.append(Step(copy, parents, _used(new, scales)))
    return steps + repeats


def _used(copies: dict[float, int], factors: list[float]) -> tuple[tuple[int, float], ...]:
    every = zip(copies.values(), factors, strict=True)
    return tuple((copy, factor) for copy, factor in every if factor != 0.0)


def conditional_gaussian(s_given: Array, s_new: Array) -> Pair:
    """Weights, (m, L), and covariance, (m, m), of ``Z''`` given ``Z'``.

    ``K_{Z''Z'} K_{Z'}⁻¹`` and ``K_{Z''} − K_{Z''Z'} K_{Z'}⁻¹ K_{Z''Z'}ᵀ`` in units of ``K_0`` (li2012 (17)
    and (18), with ERRATA's last factor), from distinct levels. ``LinAlgError`` if two given levels
    are too close.
    """
    K_new = np.minimum.outer(s_new, s_new)
    if s_given.size == 0:
        return np.zeros((s_new.size, 0)), K_new
    K_cross = np.minimum.outer(s_given, s_new)
    factor = scipy.linalg.cho_factor(np.minimum.outer(s_given, s_given), lower=True)
    weights = scipy.linalg.cho_solve(factor, K_cross).T
    return weights, K_new - weights @ K_cross
