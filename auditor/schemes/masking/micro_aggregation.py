"""Micro-aggregation: records replaced by the mean of k or more neighbours.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``k``, least size of a group | scalar | domingo2002 |
| ``mdav`` | groups of whole records, by distance in standard deviations (``groups.mdav``) | | domingo2002 |
| ``univariate`` | groups of each column alone: runs of k in ascending order (``groups.runs``) | | |
| ``y`` | mean of the record's group | (N,) | |

Groups of whole records give k-anonymity in all columns. A group mean discloses nearly everything in
a dense table. Per column there is no k-anonymity and little protection: with k = 3 a value is the
mean of itself and two neighbours in rank. Means are preserved, variances shrink. Fails under
collusion: copies of two k give two means, and a record lies in both groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.masking.groups import (
    GroupScheme,
    grouping_seconds,
    in_deviations,
    mdav,
    means,
    runs,
)
from auditor.types import Array


@register
class MicroAggregation(GroupScheme):
    """Records, or each column's values, replaced by means of k (level = k).

    Groups have at least k members. Deterministic.
    """

    name = "micro-aggregation"
    claims = "By whole records: at least k records share each row of one copy. Nothing under collusion, and nothing column by column."
    reference = "domingo2002; hundepool2012, chapter 3"
    assumes = "Records of a group differ widely, so their mean discloses none of them, and recipients never pool copies of several k."

    class Parameters(PluginParameters):
        """Unit of grouping: records or columns."""

        method: Literal["mdav", "univariate"] = Field(
            "mdav", description="mdav: whole records; univariate: each column by itself"
        )

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        return (
            sum(grouping_seconds(rows, width, k) for k in levels)
            if self.parameters.method == "mdav"
            else 0.0
        )

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        if self.parameters.method == "mdav":
            return means(X, mdav(in_deviations(X), int(level)))
        return np.hstack([means(x[:, None], runs(x, int(level))) for x in X.T])
