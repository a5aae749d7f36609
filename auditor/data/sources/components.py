"""Independent attributes with chosen shapes, for tests of identification.

| shape | law, at mean 0 and variance 1 | skewness | excess kurtosis |
| --- | --- | --- | --- |
| ``normal`` | N(0, 1) | 0 | 0 |
| ``exponential`` | Exp(1) − 1 | 2 | 6 |
| ``gamma`` | (Gamma(4) − 4)/2 | 1 | 1.5 |
| ``uniform`` | on ±√3 | 0 | −1.2 |
| ``laplace`` | of scale 1/√2 | 0 | 3 |
| ``bimodal`` | ±1 with chance ½ each, and a normal of std 0.3, over √1.09 | 0 | −1.68 |
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from auditor.base.types import Array
from auditor.data.source import NORMAL, RecordLaw, RecordShape, Synthetic, normal_cdf
from auditor.process.deferred import scipy
from auditor.registry import PluginParameters, register

Shape = Literal["normal", "exponential", "gamma", "uniform", "laplace", "bimodal"]

DEFAULT_ROWS = 1000

DRAW: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "normal": lambda n, rng: rng.standard_normal(n),
    "exponential": lambda n, rng: rng.standard_exponential(n) - 1.0,
    "gamma": lambda n, rng: (rng.standard_gamma(4.0, n) - 4.0) / 2.0,
    "uniform": lambda n, rng: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n),
    "laplace": lambda n, rng: rng.laplace(scale=np.sqrt(0.5), size=n),
    "bimodal": lambda n, rng: (
        (rng.choice([-1.0, 1.0], n) + 0.3 * rng.standard_normal(n)) / np.sqrt(1.09)
    ),
}

ROOT_3, BIMODAL = float(np.sqrt(3.0)), float(np.sqrt(1.09))

SHAPES: dict[str, RecordShape] = {
    "normal": NORMAL,
    "exponential": RecordShape(
        lambda t: np.asarray(-np.expm1(-np.clip(t + 1.0, 0.0, None))), -1.0, 27.0
    ),
    "gamma": RecordShape(
        lambda t: np.asarray(scipy.special.gammainc(4.0, np.clip(2.0 * t + 4.0, 0.0, None))),
        -2.0,
        18.0,
    ),
    "uniform": RecordShape(
        lambda t: np.asarray(np.clip(0.5 + 0.5 * t / ROOT_3, 0.0, 1.0)), -ROOT_3, ROOT_3
    ),
    "laplace": RecordShape(
        lambda t: np.asarray(0.5 + 0.5 * np.sign(t) * -np.expm1(-np.sqrt(2.0) * np.abs(t))),
        -20.0,
        20.0,
    ),
    "bimodal": RecordShape(
        lambda t: (
            0.5 * (normal_cdf((BIMODAL * t - 1.0) / 0.3) + normal_cdf((BIMODAL * t + 1.0) / 0.3))
        ),
        -3.2,
        3.2,
    ),
}
"""The laws of the draws of ``DRAW``."""


@register
class Components(Synthetic):
    """Synthetic records with independent attributes, optionally mixed.

    Any shapes, means and deviations, and a mixing matrix. Attributes are ``x1`` to ``xN``. ``rows``
    (default 1,000) is the number of records drawn.
    """

    name = "components"
    description = "Synthetic records with independent attributes"
    trial = MappingProxyType({"shapes": ["normal", "uniform"]})

    class Parameters(PluginParameters):
        """Shape, mean and deviation of each attribute."""

        shapes: list[Shape] = Field(
            min_length=1,
            max_length=1000,
            description="law of each attribute, repeated over `attributes`",
        )
        attributes: Annotated[int, Field(ge=1, le=1000)] | None = Field(
            None, description="how many; as many as shapes by default"
        )
        mean: float = Field(
            0.0, description="mean of every attribute, in its own standard deviations"
        )
        ratio: float = Field(
            1.5,
            ge=1,
            le=10,
            description="each one's deviation over the one before; the first's is 1",
        )
        mixing: list[list[float]] | None = Field(
            None, description="N rows of N: the attributes are this matrix times the components"
        )

        @model_validator(mode="after")
        def _square(self) -> Any:
            N = self.attributes or len(self.shapes)
            if self.mixing is not None and (
                len(self.mixing) != N or any(len(row) != N for row in self.mixing)
            ):
                raise ValueError(f"mixing must be {N} rows of {N}")
            return self

    def width(self) -> int:
        return self.parameters.attributes or len(self.parameters.shapes)

    def law(self) -> RecordLaw | None:
        """Law of the data if attributes are independent or normal, else None."""
        given = self.parameters
        if set(given.shapes) == {"normal"}:
            return RecordLaw()
        if given.mixing is not None:
            return None
        return RecordLaw(
            {f"x{j + 1}": SHAPES[given.shapes[j % len(given.shapes)]] for j in range(self.width())}
        )

    def numbers(self, rows: int | None, rng: np.random.Generator) -> dict[str, Array]:
        given, n = self.parameters, DEFAULT_ROWS if rows is None else rows
        N = given.attributes or len(given.shapes)
        columns = [DRAW[given.shapes[j % len(given.shapes)]](n, rng) for j in range(N)]
        values = (np.column_stack(columns) + given.mean) * given.ratio ** np.arange(N)
        if given.mixing is not None:
            values = values @ np.array(given.mixing).T
        return {f"x{j}": column for j, column in enumerate(values.T, 1)}


INTERVAL_ROWS = 10_000


@register
class Intervals(Synthetic):
    """Synthetic records of one attribute, ``x``, uniform on a few intervals.

    Each has probability in proportion to its length. ``rows`` (default 10,000) is the number of
    records drawn.
    """

    name = "intervals"
    reference = "liu2008, section 3.6"
    description = "Synthetic records, uniform on a few intervals"

    class Parameters(PluginParameters):
        """The intervals."""

        intervals: list[list[float]] = Field(
            default=[[0.0, 1.0], [5.0, 6.0]],
            min_length=1,
            description="[low, high] of each, ascending and apart, in data units",
        )

        @field_validator("intervals")
        @classmethod
        def _ascending(cls, intervals: list[list[float]]) -> list[list[float]]:
            flat = [end for interval in intervals for end in interval]
            if (
                any(len(interval) != 2 for interval in intervals)
                or sorted(flat) != flat
                or len(set(flat)) != len(flat)
            ):
                raise ValueError("must be [low, high] pairs, ascending and apart")
            return intervals

    def width(self) -> int:
        return 1

    def law(self) -> RecordLaw:
        ends = np.array(self.parameters.intervals, dtype=np.float64)
        length = np.diff(ends, axis=1)[:, 0]
        share = length / length.sum()
        mean = float(share @ ends.mean(axis=1))
        std = float(np.sqrt(share @ (length**2 / 12.0 + (ends.mean(axis=1) - mean) ** 2)))
        at, reached = (ends.ravel() - mean) / std, np.repeat(np.cumsum([0.0, *share]), 2)[1:-1]
        return RecordLaw(
            {
                "x": RecordShape(
                    lambda t: np.asarray(np.interp(t, at, reached)), float(at[0]), float(at[-1])
                )
            }
        )

    def numbers(self, rows: int | None, rng: np.random.Generator) -> dict[str, Array]:
        low, high = np.array(self.parameters.intervals, dtype=np.float64).T
        n = INTERVAL_ROWS if rows is None else rows
        place = rng.choice(len(low), size=n, p=(high - low) / (high - low).sum())
        return {"x": low[place] + rng.random(n) * (high - low)[place]}
