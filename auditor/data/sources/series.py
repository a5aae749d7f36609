"""Time series with neighbouring records, and tables that are shipped.

| source | record t | its law |
| --- | --- | --- |
| ``autoregressive`` | ``x_t = a x_{t−1} + √(1 − a²) e_t`` | autocovariance ``a^h K_X``; spectrum ``K_X (1 − a²) / (1 + a² − 2a cos 2πf)`` |
| ``markov-chain`` | ``x_{t−1}`` with the chance ``stay``, else any other value | |

Both are stationary from the first record on.
"""

from __future__ import annotations

from importlib import resources
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from auditor.base import pd, pq, quoted, scipy
from auditor.base.types import Array, Generator, Indices
from auditor.data.formats.parts import header, pieces_of, whole_frame
from auditor.data.source import Outline, Source, Synthetic
from auditor.registry import PluginParameters, register


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
