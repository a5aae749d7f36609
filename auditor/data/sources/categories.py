"""Categorical sources of any size: stand-ins for the Salary and Occupation of xiao2009, and two synthetic priors on 50 values.

The paper's extract of IPUMS (600,000 Americans; it calls it Adult, which is not the UCI set of that name) cannot be redistributed; its
results depend on the data only through the distribution of one attribute, which Fig. 4 shows. Ours have its sizes (50 and 27 values) and
its look: salaries fall off from a hump near the low end with a last class that collects the rest, occupations are uneven without order.

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

from auditor.data.columns.categorical_table import MOST_VALUES
from auditor.data.source import Source
from auditor.process.deferred import pd, scipy
from auditor.registry import PluginParameters, register
from auditor.types import Array

DEFAULT_ROWS = 600_000  # xiao2009, section 7
MEDIAN_CLASS, LOG_STD = 13.0, 0.8  # our choice, by the look of Fig. 4c
GAUSSIAN_MEAN, GAUSSIAN_STD = 25.5, 8.0  # our choice, by the look of Fig. 4b


class Values(Source):
    """Base: independent draws of one attribute from fixed weights."""

    public = True

    column: ClassVar[str]
    licence = "generated, not subject to a licence"

    def width(self) -> int:
        """Return how many attributes are drawn."""
        return 1

    @abstractmethod
    def weights(self) -> Array:
        """Return the chance of each value, shape (s,)."""

    def domains(self) -> dict[str, list[Any]]:
        """Return the whole domain, whether or not every value is drawn."""
        return {self.column: list(range(1, self.weights().size + 1))}

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Draw ``rows`` records."""
        cumulative = np.cumsum(self.weights())
        draws = rng.random(DEFAULT_ROWS if rows is None else rows) * cumulative[-1]
        return pd.DataFrame({self.column: np.searchsorted(cumulative, draws, side="right").clip(max=cumulative.size - 1) + 1})


@register
class SalaryLike(Values):
    """Salary in 50 classes, right-skewed: a stand-in for that of xiao2009 (Fig. 4c), any number of rows."""

    name = "salary-like"
    column = "salary"
    reference = "xiao2009, Fig. 4"
    description = "Synthetic salary classes 1 to 50, log-normal, by the look of xiao2009, Fig. 4c"

    def weights(self) -> Array:
        """Return the chance of each class."""
        below = scipy.special.ndtr(np.log(np.arange(1, 50) / MEDIAN_CLASS) / LOG_STD)
        return np.diff(below, prepend=0.0, append=1.0)


@register
class OccupationLike(Values):
    """Occupation in 27 classes without order: a stand-in for that of xiao2009 (Fig. 4d), any number of rows."""

    name = "occupation-like"
    column = "occupation"
    reference = "xiao2009, Fig. 4"
    description = "Synthetic occupation classes 1 to 27, uneven, by the look of xiao2009, Fig. 4d"

    def weights(self) -> Array:
        """Return the chance of each class."""
        ranks = np.random.Generator(np.random.PCG64(2009)).permutation(27)  # a fixed shuffle: the same classes in every run
        weights = 1.0 / (ranks + 4.0)
        return np.asarray(weights / weights.sum())


@register
class UniformValues(Values):
    """One attribute with equally likely values, 50 of them by default (xiao2009, Fig. 4a)."""

    name = "uniform-values"
    column = "value"
    reference = "xiao2009, Fig. 4"
    description = "Uniform on 1 to 50, or as many values as asked for"

    class Parameters(PluginParameters):
        """How many values."""

        values: int = Field(50, ge=1, le=MOST_VALUES, description="Number of values in the domain.")

    def weights(self) -> Array:
        """Return the chance of each value."""
        return np.full(self.parameters.values, 1 / self.parameters.values)


@register
class DiscretisedGaussian(Values):
    """One attribute with 50 values and a discretised normal law (xiao2009, Fig. 4b)."""

    name = "discretised-gaussian"
    column = "value"
    reference = "xiao2009, Fig. 4"
    description = "Normal with mean 25.5 and standard deviation 8, rounded to 1 to 50"

    def weights(self) -> Array:
        """Return the chance of each value."""
        z = (np.arange(1, 51) - GAUSSIAN_MEAN) / GAUSSIAN_STD
        density = np.exp(-(z**2) / 2)
        return np.asarray(density / density.sum())
