"""Resampling: values replaced by mean order statistics of samples.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``t``, number of samples with replacement, each of n values | scalar | heer1993 |
| ``x*_s(r)`` | value of rank r in sample s of a column | scalar | |
| ``y`` | ``(1/t) Σ_s x*_s(r)`` of the record whose own value has rank r | scalar | |

A record keeps its rank in every column. Its value changes by a sample quantile's error, of order
``√(q(1 − q)/(t n))`` over the density there. So large tables are protected only in the tails.
Pooled copies average like additional samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.scheme import check_sizes
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class Resampling(MaskedScheme):
    """Values replaced by means of equal rank in t samples (level = t).

    Samples are drawn with replacement, independent in every copy.
    """

    name = "resampling"
    claims = "Nothing under collusion, and little alone: every record keeps its rank, and quantiles of many records are accurate."
    reference = "heer1993; hundepool2012, chapter 3"
    assumes = "There are few records, so a sample's quantiles differ from the original's."
    trial_levels = (1.0, 5.0, 3.0)

    def check_levels(self, levels: Sequence[float]) -> None:
        check_sizes(levels, "the number of samples", least=1)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            samples = np.sort(x[rng.integers(0, len(x), (int(level), len(x)))], axis=1)
            Y[np.argsort(x, kind="stable"), j] = samples.mean(axis=0)
        return Y
