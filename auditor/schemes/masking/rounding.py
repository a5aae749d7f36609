"""Rounding: values replaced by nearby multiples of a base.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | the base ``b``, in standard deviations of each column | scalar | |
| ``o`` | origin: 0, or drawn for each copy and column, uniform on [0, b) | (N,) | |
| ``t`` | ``(x − o) / b`` | | |
| ``y`` | ``o + b·round(t)``; ``unbiased``: ``o + b·(⌊t⌋ + [u < t − ⌊t⌋])``, u uniform | | dalenius1981 |

Nearest rounding discloses an interval of width b: error ``b²/12`` for spread values. Fails if
values lie on a lattice as coarse as the base, and against pooling: a value lies in the intersection
of all copies' intervals. Unbiased rounding preserves expected totals, has a larger error, and
averages out.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array


@register
class Rounding(MaskedScheme):
    """Values rounded to multiples of a base (level = base in deviations).

    A copy discloses an interval, and two copies the intersection of their intervals.
    """

    name = "rounding"
    claims = "Nothing under collusion: a value lies in the intersection of all intervals. One copy gives each value up to the base."
    reference = "dalenius1981; hundepool2012, chapter 3"
    assumes = "The base is coarse relative to the recording step, and recipients never pool copies of other bases or origins."
    level_of_original = 0.0
    trial_levels = (0.5, 1.0, 0.7)

    class Parameters(PluginParameters):
        """Rounding rule and origin."""

        to: Literal["nearest", "unbiased"] = Field(
            "nearest", description="the nearest multiple, or one of the two around with no bias"
        )
        origin: Literal["zero", "random"] = Field(
            "zero",
            description="whether multiples count from 0 or from a secret place in every copy",
        )

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        base = level * X.std(axis=0)
        origin = (
            base * rng.random(X.shape[1])
            if self.parameters.origin == "random"
            else np.zeros(X.shape[1])
        )
        return rounded(X, base, origin, rng if self.parameters.to == "unbiased" else None)


def rounded(X: Array, base: Array, origin: Array, rng: Rng | None = None) -> Array:
    """Return values rounded to multiples of a base, shape (n, N).

    To the nearest multiple, or unbiased with a generator.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    base, origin : ndarrays of shape (N,)
        In data units; a column of base 0 is unchanged.
    rng : Generator, optional

    Examples
    --------
    >>> rounded(np.array([[12.0], [18.0]]), np.array([10.0]), np.array([0.0])).ravel().tolist()
    [10.0, 20.0]
    """
    step = np.where(base > 0, base, 1.0)
    t = (X - origin) / step
    multiple = np.rint(t) if rng is None else np.floor(t) + (rng.random(X.shape) < t - np.floor(t))
    return np.where(base > 0, origin + step * multiple, X)
