"""Sampling and resampling of records.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``f``, share of the records that are released | scalar in (0, 1] | skinner1994 |
| ``m`` | ``⌈f n⌉`` records, drawn without replacement and anew for every copy | scalar | |
| ``y`` | ``x`` of a record that is in the sample, else the sample's mean | (N,) | |

A copy has a row for every record; rows outside the sample hold the sample's mean, the best estimate
from the sample alone. Expected squared error is a share ``1 − f`` of the variance: sampled records
are unprotected, and all others fully protected. Sampling protects membership, which no numeric
error measures. `exact` counts the disclosed records; pooled copies disclose a share
``1 − Π(1 − f_i)``.

Resampling: values replaced by mean order statistics of samples.

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

import math
from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.scheme import check_shares, check_sizes
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class Sampling(MaskedScheme):
    """A random share of records (level) unperturbed. Broken under collusion.

    Rows of all other records hold the sample's mean.
    """

    name = "sampling"
    claims = "No protection for sampled records, full protection for all others; pooled copies release the records of every sample."
    reference = "skinner1994; hundepool2012, chapter 3"
    assumes = "The adversary does not know which records are sampled, and recipients never pool their copies."
    level_of_original = 1.0
    trial_levels = (0.3, 0.8, 0.5)

    def check_levels(self, levels: Sequence[float]) -> None:
        check_shares(levels, "the share of records released", one=True)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        sampled = rng.permutation(len(X))[: math.ceil(level * len(X))]
        Y = np.tile(X[sampled].mean(axis=0), (len(X), 1))
        Y[sampled] = X[sampled]
        return Y


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
