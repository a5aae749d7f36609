"""Sampling: a random part of the records is released as it is, and of the others nothing.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``f``, share of the records that are released | scalar in (0, 1] | skinner1994 |
| ``m`` | ``⌈f n⌉`` records, drawn without replacement and anew for every copy | scalar | |
| ``y`` | ``x`` of a record that is in the sample, else the sample's mean | (N,) | |

A copy has a row for every record, so that rows of copies stay rows of the table: those that were not sampled hold the sample's mean, which
is what anybody would guess who has only the sample. Squared error is a share ``1 − f`` of the variance so, on average: nobody is hidden
who is in the sample, and everybody else wholly. What sampling protects is the doubt whether somebody is in it, which no error of numbers
measures; `exact` counts the records that are out, and pooled copies release a share ``1 − Π(1 − f_i)`` of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.registry import register
from auditor.schemes.base.level_checks import check_shares
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class Sampling(MaskedScheme):
    """A random share of the records (level) released as they are; rows of all others hold the sample's mean. Broken under collusion."""

    name = "sampling"
    claims = "Nothing of those who are sampled, and all of the others; pooled copies release whoever is in one of them."
    reference = "skinner1994; hundepool2012, chapter 3"
    assumes = "Nobody knows who is in the sample, and recipients never pool their copies."
    level_of_original = 1.0
    trial_levels = (0.3, 0.8, 0.5)

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse a level that is no share."""
        check_shares(levels, "the share of records released", one=True)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return the table with those in their places who are sampled."""
        sampled = rng.permutation(len(X))[: math.ceil(level * len(X))]
        Y = np.tile(X[sampled].mean(axis=0), (len(X), 1))
        Y[sampled] = X[sampled]
        return Y
