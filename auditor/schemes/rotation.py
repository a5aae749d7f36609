"""Rotation: records multiplied by one secret orthogonal matrix.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``M`` | orthogonal, uniformly distributed (Haar) | (N, N) | liu2008, (12.4) |
| ``t`` | translation, 0 or normal with the data's covariance | (N,) | chen2007 |
| ``y`` | ``M x + t`` | (N,) | |

Distances are preserved, so k-means, nearest neighbours and support vector machines give equal
results. Fails against an adversary with N independent known records, or with a sample of the
population. Without a translation, lengths of records and the sum of squares of all attributes are
also disclosed.

Several copies have independent matrices. ``Y_2 = (M_2 M_1ᵀ) Y_1``, and the rows determine that
product, so pooled copies disclose no more than one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import clip_to_psd
from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.multiplicative import TransformScheme
from auditor.schemes.base.noise_law import psd_root
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.transform import Transform, haar


@register
class Rotation(TransformScheme):
    """One secret random rotation, Y = MX. Broken by a few known records.

    A sample of the population also breaks it. Distances are preserved.
    """

    name = "rotation"
    family = "rotation"
    claims = "Pooled copies disclose as much as one copy; one copy discloses all to an adversary with N independent records."
    reference = "liu2008, section 4, eq. 12.4"
    assumes = "The adversary knows no record, and not the distribution of the population."
    trial = MappingProxyType({"copies": 3})

    class Parameters(PluginParameters):
        """Number of copies, and whether they are translated."""

        copies: Annotated[int, Field(ge=1, le=1000)] = Field(
            1, description="copies, each with a matrix of its own"
        )
        translation: bool = Field(
            False, description="whether a secret vector is added to every record"
        )

    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        """Return a Haar rotation, and a translation of the data's covariance."""
        N = table.mean.size
        M = haar(N, rng)
        spread = psd_root(clip_to_psd(table.covariance, table.covariance)) @ rng.standard_normal(N)
        return Transform(M, spread if self.parameters.translation else np.zeros(N))
