"""Schemes whose noise has independent increments in each attribute.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``σ_i²`` | level of copy i: its noise's variance over ``K_0`` | scalar | |
| ``Sigma`` | ``min(σ_i², σ_j²)`` of one process, ``diag(σ_i²)`` of independent ones | (M, M) | li2011 (19); li2012, Theorem 3 |
| ``K_0`` | ``diag(K_X)`` by default: each attribute by its own deviation | (N, N) | |

Attributes are independent, since only Gaussian noise keeps its law under mixing. A filter that uses
the data's correlations removes more of this noise than of corner-wave noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from auditor.registry import PluginParameters
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.noise_density import Distribution
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.noise_shapes import ProductShape, product_shape
from auditor.schemes.base.plans import Step, bridge_plan, fresh_plan, min_covariance, upward_plan
from auditor.schemes.base.scheme import Key, Sampler, TableMoments
from auditor.schemes.increments.process import Process, ProcessSampler
from auditor.types import Array


class ProcessScheme(AdditiveScheme):
    """Base of schemes with noise of independent increments per attribute."""

    process: ClassVar[Process]
    one_process: ClassVar[bool]
    """Whether all copies are one process at several levels; else each has its own."""
    on_public_grid: ClassVar[Process | None] = None
    """The process in grid units for released copies; None: this one, each step rounded."""

    class Parameters(PluginParameters):
        """Variance of each attribute's noise at level 1."""

        noise: ProductShape = Field(
            "data",
            description="variance of each attribute's noise at level 1: the attribute's own (data), their mean (white), or stated",
        )

    @property
    def distribution(self) -> Distribution:
        """Distribution of the noise."""
        return self.process.distribution

    def shape(self, table: TableMoments) -> Array:
        """Return the diagonal ``K_0``, shape (N, N)."""
        return product_shape(self.parameters.noise, table.covariance, table.spans)

    def units(self, table: TableMoments) -> Array | None:
        """Return the lattice step of each attribute, shape (N,), or None."""
        return None

    def law(self, levels: Sequence[float], table: TableMoments) -> KroneckerNoise:
        """Return the exact law of the noise, ``K_Z = Sigma ⊗ K_0``."""
        Sigma, K_0 = self.level_covariance(levels), self.shape(table)
        return KroneckerNoise(
            Sigma,
            K_0,
            distribution=self.distribution,
            one_process=self.one_process,
            units=self.units(table),
        )

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> Sampler:
        """Return the sampler of copies ``existing + 1 … M``."""
        process, units = self.process, self.units(table)
        if key.grid and self.on_public_grid is not None:
            process, units = self.on_public_grid, np.where(np.array(key.grid) > 0, key.grid, 1.0)
        return ProcessSampler(
            process,
            self.checked_plan(levels, key, existing),
            np.diag(self.shape(table)),
            levels,
            key,
            units,
        )


class MultilevelProcess(ProcessScheme):
    """One process for all copies: the least perturbed copy is sufficient."""

    one_process = True
    claims = "No collusion gain: a coalition does no better than its least perturbed copy, whatever the attack."
    assumes = (
        "Nothing of the data: the noise's increments are independent of them and of each other."
    )

    def level_covariance(self, levels: Sequence[float]) -> Array:
        """Return ``Sigma_ij = min(σ_i², σ_j²)``, shape (M, M)."""
        return min_covariance(levels)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return one step per copy, from its two neighbouring levels.

        A repeated level returns the existing copy.
        """
        return bridge_plan(levels, existing)

    def released_plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return the steps from the lowest new level up.

        Even rounded to a grid, a copy above the last is then a function of it.
        """
        return upward_plan(levels, existing)


class IndependentProcess(ProcessScheme):
    """An independent process for every copy, even at a repeated level."""

    one_process = False
    claims = "Nothing under collusion: the error falls with every copy pooled (li2012, Theorem 3)."
    assumes = "Recipients never pool their copies."

    def level_covariance(self, levels: Sequence[float]) -> Array:
        """Return ``Sigma = diag(σ_1² … σ_M²)``, shape (M, M)."""
        return np.diag(np.asarray(levels, dtype=np.float64))

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return one step from the original per new copy."""
        return fresh_plan(levels, existing)
