"""Synthetic census tables: Age and Income, and columns of categories.

The paper's CENSUS data cannot be redistributed. Its results for linear attacks depend on mean and
covariance only. Table 3 lacks the correlation, by default the one of age and salary in ``cps``.

======  ========================================  ==========================
symbol  meaning                                   source
======  ========================================  ==========================
mu      means, 50.06 (age) and 16.57 (income)     li2012, table 3
var     variances, 303.03 and 219.92, divisor n   li2012, table 3
rho     correlation of age and income             parameter ``correlation``
======  ========================================  ==========================

Age has a beta law on 15 to 93 years, income a gamma law, joined by a Gaussian copula. An affine map
of order 1/√n then fits the moments exactly: both are shifted and scaled, and income gets a trace of
age.

When it fails: an income may be slightly below zero. Below −0.89 or above 0.92 income is mixed with
age, and approaches its shape.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from auditor.base import DataError, scipy
from auditor.base.types import Array, Generator, Indices, Pair
from auditor.data.columns.categorical_table import MOST_VALUES
from auditor.data.source import Outline, Synthetic
from auditor.numerics.statistics import root
from auditor.registry import PluginParameters, register

DEFAULT_ROWS = 100_000  # the paper's «first 10^5 tuples» (section 6)


class Moments(NamedTuple):
    """Mean and variance (divisor n) of one attribute."""

    mean: float
    variance: float


AGE = Moments(50.06, 303.03)  # li2012, table 3
INCOME = Moments(16.57, 219.92)  # li2012, table 3
# of quadrature: six digits; Φ(±6.4) is not yet 0 or 1 in doubles
NODES = 15
YOUNGEST, OLDEST = 15.0, 93.0  # our choice


@register
class CensusLike(Synthetic):
    """Synthetic Age and Income with the moments of li2012, Table 3.

    ``rows`` (default 100,000) is the number of records drawn; at least 3.
    """

    name = "census-like"
    reference = "li2012, table 3"
    description = "Synthetic age and income with the means and variances of li2012, Table 3"

    class Parameters(PluginParameters):
        """The correlation, which Table 3 omits."""

        correlation: float = Field(0.17, gt=-1, lt=1)
        """Correlation of age and income in the table drawn, exactly."""

    def width(self) -> int:
        return 2

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, Array]:
        n, rho = enough(rows), self.parameters.correlation
        age, income = with_correlation(*draw(n, rho, rng), rho)
        return {"age": with_moments(age, AGE), "income": with_moments(income, INCOME)}

    def outline(self, rows: int | None) -> Outline:
        mean, std = np.array([AGE.mean, INCOME.mean]), np.sqrt([AGE.variance, INCOME.variance])
        rho = self.parameters.correlation
        return Outline(
            ("age", "income"),
            enough(rows),
            mean,
            np.array([[1.0, rho], [rho, 1.0]]) * np.outer(std, std),
        )


def enough(rows: int | None) -> int:
    """Number of records to draw.

    Raises
    ------
    DataError
        Too few for exact moments.
    """
    n = DEFAULT_ROWS if rows is None else rows
    if n < 3:
        raise DataError(
            "source 'census-like' needs at least 3 rows: two records always correlate fully"
        )
    return n


def draw(n: int, rho: float, rng: Generator) -> Pair:
    """Ages (beta) and incomes (gamma) with correlation rho, (n,)."""
    normal, r = rng.standard_normal((n, 2)), copula_parameter(rho)
    # N_2 = r N_1 + √(1 − r²) E
    tied = r * normal[:, 0] + np.sqrt(1 - r**2) * normal[:, 1]
    return age_quantile(scipy.special.ndtr(normal[:, 0])), income_quantile(scipy.special.ndtr(tied))


def copula_parameter(rho: float) -> float:
    """Copula correlation for correlation ``rho``; 1 or −1 if out of reach."""
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    p, He, k = (
        scipy.special.ndtr(x),
        np.polynomial.hermite_e.hermevander(x, NODES - 1),
        np.arange(NODES),
    )
    # a_k = E f(N) He_k(N) / √k!,  b_k for g;  Cov(f(N_1), g(N_2)) = Σ_{k ≥ 1} a_k b_k r^k
    # (Mehler)
    scaled = (w / w.sum())[:, None] * He / np.sqrt(scipy.special.factorial(k))
    a, b = age_quantile(p) @ scaled, income_quantile(p) @ scaled
    terms = (a * b)[1:] / np.sqrt(AGE.variance * INCOME.variance)
    return root(lambda r: terms @ r ** k[1:] - rho, -1.0, 1.0)


def age_quantile(p: Array) -> Array:
    """Quantiles of age's beta law on [15, 93]."""
    span = OLDEST - YOUNGEST
    # m = a / (a + b),  v = m (1 − m) / (a + b + 1)
    m, v = (AGE.mean - YOUNGEST) / span, AGE.variance / span**2
    total = m * (1 - m) / v - 1
    return YOUNGEST + span * scipy.special.betaincinv(m * total, (1 - m) * total, p)


def income_quantile(p: Array) -> Array:
    """Quantiles of income's gamma law."""
    # mean = k θ,  variance = k θ²
    scale = INCOME.variance / INCOME.mean
    return scale * scipy.special.gammaincinv(INCOME.mean / scale, p)


def with_correlation(x: Array, y: Array, rho: float) -> Pair:
    """Standardised x, and y with x added for correlation ``rho``."""
    u = with_moments(x, Moments(0.0, 1.0))
    # e = residual of y on x;  v = rho u + √(1 − rho²) e
    e = with_moments(y - np.mean((y - y.mean()) * u) * u, Moments(0.0, 1.0))
    return u, rho * u + np.sqrt(1 - rho**2) * e


def with_moments(x: Array, moments: Moments) -> Array:
    """Shift and scale x to a mean and a variance (divisor n)."""
    centred = x - x.mean()
    return moments.mean + np.sqrt(moments.variance) * centred / centred.std()


# -- Categorical sources of any size, after the data of xiao2009 -----------------------------------


MEDIAN_CLASS, LOG_STD = 13.0, 0.8  # chosen to resemble Fig. 4c
GAUSSIAN_MEAN, GAUSSIAN_STD = 25.5, 8.0  # chosen to resemble Fig. 4b


class Values(Synthetic):
    """Base: independent draws of one attribute with fixed weights."""

    column: ClassVar[str]
    usual_rows = 600_000  # xiao2009, section 7

    def width(self) -> int:
        return 1

    @abstractmethod
    def weights(self) -> Array:
        """Probability of each value, shape (s,)."""

    def domains(self) -> dict[str, list[Any]]:
        return {self.column: list(range(1, self.weights().size + 1))}

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, Indices]:
        cumulative = np.cumsum(self.weights())
        draws = rng.random(self.usual_rows if rows is None else rows) * cumulative[-1]
        places = np.searchsorted(cumulative, draws, side="right")
        return {self.column: places.clip(max=cumulative.size - 1) + 1}


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
        weights = 1.0 / (np.random.Generator(np.random.PCG64(2009)).permutation(27) + 4.0)
        return weights / weights.sum()


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

        values: int = Field(50, ge=1, le=MOST_VALUES)
        """Number of values in the domain."""

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
        return density / density.sum()
