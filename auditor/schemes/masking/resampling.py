"""Resampling: each column's values replaced, rank by rank, by the means of those of several samples drawn with replacement.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``t``, number of samples, each of n values | scalar | heer1993 |
| ``x*_s(r)`` | value of rank r in sample s of a column | scalar | |
| ``y`` | ``(1/t) Σ_s x*_s(r)`` of the record whose own value has rank r | scalar | |

A record keeps its rank in every column, and its value up to how far a sample's quantile is off, of order ``√(q(1 − q)/(t n))`` over the
density there: the more records and samples, the less is hidden, and of many records nothing is but far out in the tails. Pooled copies
average as more samples of one copy would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.level_checks import check_sizes
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class Resampling(MaskedScheme):
    """Each value replaced by the mean of those of its rank in t samples drawn with replacement (level = t), anew in every copy."""

    name = "resampling"
    claims = "Nothing under collusion, and little alone: every record keeps its rank, and quantiles of many records are known well."
    reference = "heer1993; hundepool2012, chapter 3"
    assumes = "Records are so few that a sample's quantiles are far from theirs."
    trial_levels = (1.0, 5.0, 3.0)

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse a level that is no number of samples."""
        check_sizes(levels, "the number of samples", least=1)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return the table, each column resampled by itself."""
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            samples = np.sort(x[rng.integers(0, len(x), (int(level), len(x)))], axis=1)
            Y[np.argsort(x, kind="stable"), j] = samples.mean(axis=0)
        return Y
