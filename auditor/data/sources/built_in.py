"""Synthetic census tables, time series, and tables that are shipped.

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

from __future__ import annotations

from abc import abstractmethod
from importlib import resources
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from auditor.base import DataError, pd, pq, quoted, scipy
from auditor.base.types import Array, Generator, Indices, Pair
from auditor.data.columns.categorical_table import MOST_VALUES
from auditor.data.formats.parts import header, pieces_of, whole_frame
from auditor.data.source import Outline, Source, Synthetic
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


# -- time series, tables that are shipped, and small tables in a scenario --------------------------

# autoregressive: x_t = a x_{t−1} + √(1 − a²) e_t, with autocovariance a^h K_X and spectrum
# K_X (1 − a²) / (1 + a² − 2a cos 2πf). markov-chain: x_{t−1} with the chance `stay`, else any other
# value. Both are stationary from the first record on.


@register
class Autoregressive(Synthetic):
    """A Gaussian autoregression of order one.

    With an autocorrelation near 1 consecutive records are similar.
    """

    name = "autoregressive"
    usual_rows = 10_000
    description = "Synthetic Gaussian series, autoregressive of order one, equally correlated attributes of variance 1"

    class Parameters(PluginParameters):
        """The law of the series."""

        autocorrelation: float = Field(0.95, gt=-1, lt=1)
        """Correlation of a record with the next, a."""
        attributes: int = Field(3, ge=1, le=1000)
        """Number of attributes N."""
        correlation: float = Field(0.5, ge=0, lt=1)
        """Correlation of two attributes of one record."""

    def width(self) -> int:
        return int(self.parameters.attributes)

    def records(self, n: int, rng: Generator) -> Array:
        given = self.parameters
        common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, given.attributes))
        e = np.sqrt(given.correlation) * common + np.sqrt(1.0 - given.correlation) * own
        return autoregression(e, given.autocorrelation)


def autoregression(e: Array, a: float) -> Array:
    """``x_t = a x_{t−1} + √(1 − a²) e_t``, ``x_1 = e_1``, from independent rows.

    Both have shape (n, N).
    """
    driven = np.sqrt(1.0 - a**2) * e
    driven[:1] = e[:1]
    return scipy.signal.lfilter([1.0], [1.0, -a], driven, axis=0)


@register
class MarkovChain(Synthetic):
    """A chain of categories that stays with a stated probability.

    Otherwise it moves to any other value with equal probability.
    """

    name = "markov-chain"
    usual_rows = 10_000
    description = "Synthetic chain over values 1 to s, uniform at every record, that stays where it is with a stated chance"

    class Parameters(PluginParameters):
        """The law of the chain."""

        stay: float = Field(0.95, ge=0, le=1)
        """Chance that a record has the value of the one before it."""
        values: int = Field(10, ge=2, le=1000)
        """Number of values in the domain, s."""

    def width(self) -> int:
        return 1

    def domains(self) -> dict[str, list[Any]]:
        return {"state": list(range(1, self.parameters.values + 1))}

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, Indices]:
        s, n = self.parameters.values, self.usual_rows if rows is None else rows
        moves = rng.random(n) >= self.parameters.stay
        # 1 to s − 1 further, in a circle
        steps = np.where(moves, rng.integers(1, s, n), 0)
        steps[:1] = rng.integers(0, s, 1)
        return {"state": np.cumsum(steps) % s + 1}


# -- Real tables that ship with the program, and small tables in a scenario ------------------------


FILES = resources.files("auditor.data").joinpath("files")


COLUMNS = ("age", "salary", "property_tax", "mortgage_interest", "state_tax", "household_size")
ROWS = 193_682


@register
class Cps(Source):
    """US Current Population Survey 2012–2014: 193,682 household heads.

    Real, CC0. Six attributes: ``age`` (years, 18 to 80, where 80 means 80 to 84), ``salary``,
    ``property_tax``, ``mortgage_interest``, ``state_tax`` (dollars per year) and
    ``household_size``. Its makers imputed some tax and mortgage fields. Age and salary correlate by
    0.17; salary is right-skewed. Records keep the extract's order, so the first are no random
    sample.
    """

    name = "cps"
    public = True
    description = (
        "Household heads aged 18–84 with a wage, US Current Population Survey, March supplements 2012–2014, "
        "as distributed with the package taxcalc 6.8.0 (some tax and mortgage fields imputed there)"
    )
    licence = "CC0 1.0"

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, NDArray[Any]]:
        with resources.as_file(FILES / "cps.parquet") as path:
            table = pq.ParquetFile(path).read()[:rows]
        # as pyarrow's own conversion would import pandas, in 0.2 s
        return {name: np.from_dlpack(table[name].combine_chunks()) for name in COLUMNS}

    def outline(self, rows: int | None) -> Outline | None:
        if rows is not None and rows < ROWS:
            return None
        with resources.as_file(FILES / "cps_moments.csv") as path:
            mean, *covariance = np.loadtxt(path, delimiter=",")
        return Outline(COLUMNS, ROWS, mean, np.array(covariance))


LENGTHS = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@register
class Iris(Source):
    """Fisher's iris (1936): 150 flowers, four lengths in centimetres.

    Real; sorted by species, 50 each. The class ``species`` is text and excluded by default.
    """

    name = "iris"
    public = True
    reference = "R. A. Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7 (1936)"
    description = "Iris plants, R. A. Fisher 1936, as distributed with scikit-learn"
    licence = "CC BY 4.0 (UCI Machine Learning Repository); BSD 3-Clause (scikit-learn)"
    labels = ("species",)

    def frame(self, rows: int | None, rng: Generator) -> pd.DataFrame:
        # takes a second
        from sklearn.datasets import load_iris

        bunch = load_iris()
        frame = pd.DataFrame(bunch.data, columns=list(LENGTHS))
        frame["species"] = [str(bunch.target_names[code]) for code in bunch.target]
        return frame if rows is None else frame.head(rows)


@register
class Wisconsin(Source):
    """Original Wisconsin breast cancer data (W. H. Wolberg, 1992).

    Real, CC BY 4.0: 699 records, nine scores 1 to 10. 16 values of ``bare_nuclei`` are missing: use
    ``missing: drop`` or ``missing: mean``, or other columns. The class ``diagnosis`` (458 benign,
    241 malignant) is text and excluded by default.
    """

    name = "wisconsin"
    public = True
    description = (
        "Wisconsin breast cancer data (original), W. H. Wolberg, University of Wisconsin Hospitals, 1992; "
        "UCI Machine Learning Repository"
    )
    licence = "CC BY 4.0"
    labels = ("diagnosis",)

    def frame(self, rows: int | None, rng: Generator) -> pd.DataFrame:
        with resources.as_file(FILES / "wisconsin_original.csv") as path:
            return whole_frame(pieces_of(path), header(path), rows)


MOST_CELLS = 10_000
"""Larger tables belong in a file: a scenario is read by people, and copied into every result."""


@register
class Inline(Source):
    """A small table in the scenario: ``values: {age: [9, 11]}``.

    At most 10,000 cells. Every report shows the values: not for private data.
    """

    name = "inline"
    public = True
    description = "Written in the scenario"
    trial = MappingProxyType({"values": {"x": [1.0, None, 3.0]}})

    class Parameters(PluginParameters):
        """The table."""

        holds_cells: ClassVar[bool] = True

        values: dict[str, list[float | None]] = Field(min_length=1)
        """Each attribute's values, one per record; null where one is missing."""

        @field_validator("values")
        @classmethod
        def _rectangular(
            cls, values: dict[str, list[float | None]]
        ) -> dict[str, list[float | None]]:
            first, length = next((name, len(cells)) for name, cells in values.items())
            for name, cells in values.items():
                if len(cells) != length:
                    raise ValueError(
                        f"{quoted(name)} has {len(cells)} values where {quoted(first)} has {length}"
                    )
            if len(values) * length > MOST_CELLS:
                raise ValueError(
                    f"at most {MOST_CELLS:,} cells; put a larger table in a .csv or .parquet file"
                )
            return values

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, Array]:
        return {name: np.array(x[:rows], dtype=float) for name, x in self.parameters.values.items()}
