"""Categorical sources of any size, after the data of xiao2009.

The paper's extract of IPUMS (600,000 Americans; called Adult there, not the UCI set) cannot be
redistributed. Its results depend only on one attribute's distribution (Fig. 4). These sources have
its sizes (50 and 27 values) and similar shapes.

| source | weights |
| --- | --- |
| ``salary-like`` | log-normal in the class number, median class 13, log standard deviation 0.8; the rest in class 50 |
| ``occupation-like`` | ``1/(k + 3)`` for the k-th most frequent, in a fixed shuffle |
| ``uniform-values`` | equal |
| ``discretised-gaussian`` | normal density, mean 25.5, standard deviation 8 |
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from auditor.base.types import Array
from auditor.data.columns.categorical_table import MOST_VALUES
from auditor.data.source import Synthetic
from auditor.process.deferred import pd, scipy
from auditor.registry import PluginParameters, register

DEFAULT_ROWS = 600_000  # xiao2009, section 7
MEDIAN_CLASS, LOG_STD = 13.0, 0.8  # chosen to resemble Fig. 4c
GAUSSIAN_MEAN, GAUSSIAN_STD = 25.5, 8.0  # chosen to resemble Fig. 4b


class Values(Synthetic):
    """Base: independent draws of one attribute with fixed weights."""

    column: ClassVar[str]

    def width(self) -> int:
        return 1

    @abstractmethod
    def weights(self) -> Array:
        """Probability of each value, shape (s,)."""

    def domains(self) -> dict[str, list[Any]]:
        return {self.column: list(range(1, self.weights().size + 1))}

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        cumulative = np.cumsum(self.weights())
        draws = rng.random(DEFAULT_ROWS if rows is None else rows) * cumulative[-1]
        return pd.DataFrame(
            {
                self.column: np.searchsorted(cumulative, draws, side="right").clip(
                    max=cumulative.size - 1
                )
                + 1
            }
        )


@register
class SalaryLike(Values):
    """Salary in 50 right-skewed classes, like xiao2009 (Fig. 4c).

    Any number of rows.
    """

    name = "salary-like"
    column = "salary"
    reference = "xiao2009, Fig. 4"
    description = "Synthetic salary classes 1 to 50, log-normal, by the look of xiao2009, Fig. 4c"

    def weights(self) -> Array:
        below = scipy.special.ndtr(np.log(np.arange(1, 50) / MEDIAN_CLASS) / LOG_STD)
        return np.diff(below, prepend=0.0, append=1.0)


@register
class OccupationLike(Values):
    """Occupation in 27 unordered classes, like xiao2009 (Fig. 4d).

    Any number of rows.
    """

    name = "occupation-like"
    column = "occupation"
    reference = "xiao2009, Fig. 4"
    description = "Synthetic occupation classes 1 to 27, uneven, by the look of xiao2009, Fig. 4d"

    def weights(self) -> Array:
        # a fixed shuffle
        ranks = np.random.Generator(np.random.PCG64(2009)).permutation(27)
        weights = 1.0 / (ranks + 4.0)
        return np.asarray(weights / weights.sum())


@register
class UniformValues(Values):
    """One attribute of equally likely values (xiao2009, Fig. 4a).

    50 values by default.
    """

    name = "uniform-values"
    column = "value"
    reference = "xiao2009, Fig. 4"
    description = "Uniform on 1 to 50, or as many values as asked for"

    class Parameters(PluginParameters):
        """Number of values."""

        values: int = Field(50, ge=1, le=MOST_VALUES, description="Number of values in the domain.")

    def weights(self) -> Array:
        return np.full(self.parameters.values, 1 / self.parameters.values)


@register
class DiscretisedGaussian(Values):
    """One attribute of 50 values, discretised normal (xiao2009, Fig. 4b)."""

    name = "discretised-gaussian"
    column = "value"
    reference = "xiao2009, Fig. 4"
    description = "Normal with mean 25.5 and standard deviation 8, rounded to 1 to 50"

    def weights(self) -> Array:
        z = (np.arange(1, 51) - GAUSSIAN_MEAN) / GAUSSIAN_STD
        density = np.exp(-(z**2) / 2)
        return np.asarray(density / density.sum())
