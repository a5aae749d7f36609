"""Synthetic records uniform over a few intervals.

Clustered data, where the distribution localises a record. The example of liu2008, section 3.6, is
``intervals: [[0, 1], [5, 6]]``, the default.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, field_validator

from auditor.data.record_law import RecordLaw, RecordShape
from auditor.data.source import Source
from auditor.registry import PluginParameters, register
from auditor.types import Array

DEFAULT_ROWS = 10_000


@register
class Intervals(Source):
    """Synthetic records of one attribute, ``x``, uniform on a few intervals.

    Each has probability in proportion to its length. ``rows`` (default 10,000) is the number of
    records drawn.
    """

    name = "intervals"
    public = True
    reference = "liu2008, section 3.6"
    description = "Synthetic records, uniform on a few intervals"
    licence = "generated, not subject to a licence"

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
        """Return the number of attributes."""
        return 1

    def law(self) -> RecordLaw:
        """Return the law, with a piecewise linear distribution function."""
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
        """Return ``rows`` records."""
        low, high = np.array(self.parameters.intervals, dtype=np.float64).T
        n = DEFAULT_ROWS if rows is None else rows
        place = rng.choice(len(low), size=n, p=(high - low) / (high - low).sum())
        return {"x": low[place] + rng.random(n) * (high - low)[place]}
