"""Time series: laws for measuring attacks on neighbouring records.

| source | record t | its law |
| --- | --- | --- |
| ``autoregressive`` | ``x_t = a x_{t−1} + √(1 − a²) e_t`` | autocovariance ``a^h K_X``; spectrum ``K_X (1 − a²) / (1 + a² − 2a cos 2πf)`` |
| ``markov-chain`` | ``x_{t−1}`` with the chance ``stay``, else any other value | |

Both are stationary from the first record on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from auditor.base.types import Array
from auditor.data.source import Synthetic
from auditor.process.deferred import pd, scipy
from auditor.registry import PluginParameters, register

DEFAULT_ROWS = 10_000


@register
class Autoregressive(Synthetic):
    """A Gaussian autoregression of order one.

    With an autocorrelation near 1 consecutive records are similar.
    """

    name = "autoregressive"
    description = "Synthetic Gaussian series, autoregressive of order one, equally correlated attributes of variance 1"

    class Parameters(PluginParameters):
        """The law of the series."""

        autocorrelation: float = Field(
            0.95, gt=-1, lt=1, description="Correlation of a record with the next, a."
        )
        attributes: int = Field(3, ge=1, le=1000, description="Number of attributes N.")
        correlation: float = Field(
            0.5, ge=0, lt=1, description="Correlation of two attributes of one record."
        )

    def width(self) -> int:
        return int(self.parameters.attributes)

    def numbers(self, rows: int | None, rng: np.random.Generator) -> dict[str, Array]:
        given, n = self.parameters, DEFAULT_ROWS if rows is None else rows
        common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, given.attributes))
        e = np.sqrt(given.correlation) * common + np.sqrt(1.0 - given.correlation) * own
        return {
            f"x{i}": column
            for i, column in enumerate(autoregression(e, given.autocorrelation).T, 1)
        }


def autoregression(e: Array, a: float) -> Array:
    """``x_t = a x_{t−1} + √(1 − a²) e_t``, ``x_1 = e_1``, from independent rows.

    Both have shape (n, N).
    """
    driven = np.sqrt(1.0 - a**2) * e
    driven[:1] = e[:1]
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -a], driven, axis=0))


@register
class MarkovChain(Synthetic):
    """A chain of categories that stays with a stated probability.

    Otherwise it moves to any other value with equal probability.
    """

    name = "markov-chain"
    description = "Synthetic chain over values 1 to s, uniform at every record, that stays where it is with a stated chance"

    class Parameters(PluginParameters):
        """The law of the chain."""

        stay: float = Field(
            0.95, ge=0, le=1, description="Chance that a record has the value of the one before it."
        )
        values: int = Field(10, ge=2, le=1000, description="Number of values in the domain, s.")

    def width(self) -> int:
        return 1

    def domains(self) -> dict[str, list[Any]]:
        return {"state": list(range(1, self.parameters.values + 1))}

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        s, n = self.parameters.values, DEFAULT_ROWS if rows is None else rows
        moves = rng.random(n) >= self.parameters.stay
        # 1 to s − 1 further, in a circle
        steps = np.where(moves, rng.integers(1, s, n), 0)
        steps[:1] = rng.integers(0, s, 1)
        return pd.DataFrame({"state": np.cumsum(steps) % s + 1})
