"""Sampling: a random part of the records released unperturbed.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.scheme import check_shares
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
