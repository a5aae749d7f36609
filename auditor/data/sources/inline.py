"""A small table within the scenario, for worked examples."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

import numpy as np
from pydantic import Field, field_validator

from auditor.data.source import Source
from auditor.process.deferred import pd
from auditor.registry import PluginParameters, register
from auditor.text.column_names import quoted

MOST_CELLS = 10_000
"""Larger tables belong in a file: a scenario is read by people, and copied into every result."""


@register
class Inline(Source):
    """A small table in the scenario: ``values: {age: [9, 11]}``.

    At most 10,000 cells. The values become part of the scenario, and so of every report: not for
    private data.
    """

    name = "inline"
    public = True
    description = "Written in the scenario"
    trial = MappingProxyType({"values": {"x": [1.0, None, 3.0]}})

    class Parameters(PluginParameters):
        """The table."""

        holds_cells: ClassVar[bool] = True

        values: dict[str, list[float | None]] = Field(
            min_length=1,
            description="Each attribute's values, one per record; null where one is missing.",
        )

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

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        frame = pd.DataFrame(self.parameters.values, dtype=np.float64)
        return frame if rows is None else frame.head(rows)
