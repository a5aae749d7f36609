"""Rounding to multiples of a base, and top coding.

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

Top and bottom coding: values beyond a quantile replaced by one code.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | share ``α`` of the records that are coded at each end | scalar in (0, 1) | hundepool2012, chapter 3 |
| ``c`` | quantile ``1 − α`` of a column (``α`` at the bottom) | (N,) | |
| ``y`` | ``x`` where ``x ≤ c``, else the code: c, or ``E[X | X > c]``, which keeps the column's mean | | |

Protects extreme records only, which hold most of a skewed column's variance. A share ``1 − α`` of
all values is unperturbed, although squared error may be large; `measures: [exact]` counts them. The
copy of the smallest share makes all others useless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import check_shares
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


@register
class TopCoding(MaskedScheme):
    """Values beyond a quantile replaced by one code (level = share coded).

    The share is per end; all other values are unperturbed.
    """

    name = "top-coding"
    claims = "Pooled copies disclose as much as the copy with the smallest coded share; values that are not coded are unperturbed."
    reference = "hundepool2012, chapter 3"
    assumes = "Only extreme values need protection."
    trial_levels = (0.1, 0.3, 0.2)

    class Parameters(PluginParameters):
        """Ends to code, and the code."""

        ends: Literal["top", "bottom", "both"] = Field(
            "top", description="which end of every column is coded"
        )
        code: Literal["quantile", "mean"] = Field(
            "quantile", description="the quantile, or the mean of what is coded: totals stay"
        )

    def check_levels(self, levels: Sequence[float]) -> None:
        check_shares(levels, "the share of records coded at an end")
        if self.parameters.ends == "both":
            check_shares(
                [2 * level for level in levels],
                "twice the share of records coded at each of both ends",
                one=True,
            )

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y, ends, mean = X, self.parameters.ends, self.parameters.code == "mean"
        if ends != "bottom":
            Y = np.where(
                X > (c := np.quantile(X, 1.0 - level, axis=0)), code_of(X, X > c, c, mean), Y
            )
        if ends != "top":
            Y = np.where(X < (c := np.quantile(X, level, axis=0)), code_of(X, X < c, c, mean), Y)
        return Y


def code_of(X: Array, beyond: NDArray[np.bool_], quantile: Array, mean: bool) -> Array:
    """Return the code of values beyond a quantile, shape (N,).

    The quantile, or their mean in each column that has any.
    """
    count = beyond.sum(axis=0)
    return np.where(
        mean & (count > 0), np.where(beyond, X, 0.0).sum(axis=0) / np.maximum(count, 1), quantile
    )
