"""Micro-aggregation: every record replaced by the mean of a group of k or more that are alike.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``k``, least size of a group | scalar | domingo2002 |
| ``mdav`` | groups of whole records, by distance in standard deviations (``groups.mdav``) | | domingo2002 |
| ``univariate`` | groups of each column alone: runs of k in ascending order (``groups.runs``) | | |
| ``y`` | mean of the record's group | (N,) | |

Groups of whole records make a table k-anonymous in all its columns; each tells what its k records have in common, which is nearly all
where they are many. Column by column nothing is k-anonymous, and hardly anything is hidden: with k = 3 a value is the mean of itself and
two neighbours in rank. Means stay, variances shrink. Fails under collusion: who holds copies of two k knows two means, and a record lies in
both groups; in few columns and many records one copy is nearly the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.level_checks import check_sizes
from auditor.schemes.masking.groups import grouping_seconds, in_deviations, mdav, means, runs
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class MicroAggregation(MaskedScheme):
    """Records, or each column's values, replaced by the mean of a group of at least k (level = k); nothing is random."""

    name = "micro-aggregation"
    claims = "By whole records: each row of one copy is shared by at least k. Nothing under collusion, and nothing column by column."
    reference = "domingo2002; hundepool2012, chapter 3"
    assumes = "Records of a group are unlike enough that their mean tells none of them, and recipients never pool copies of several k."
    trial_levels = (3.0, 10.0, 5.0)

    class Parameters(PluginParameters):
        """What is put into groups."""

        method: Literal["mdav", "univariate"] = Field("mdav", description="mdav: whole records; univariate: each column by itself")

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse a level that is no size of a group."""
        check_sizes(levels, "k, the least size of a group")
        super().check_levels(levels)

    def least_rows(self, levels: Sequence[float]) -> int:
        """Return k."""
        return int(max(levels))

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        """Return what groups of whole records take."""
        return sum(grouping_seconds(rows, width, k) for k in levels) if self.parameters.method == "mdav" else 0.0

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return the table's group means."""
        if self.parameters.method == "mdav":
            return means(X, mdav(in_deviations(X), int(level)))
        return np.hstack([means(x[:, None], runs(x, int(level))) for x in X.T])
