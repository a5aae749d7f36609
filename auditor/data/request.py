"""A scenario's request for data: selection, gaps, scale and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class DataUse:
    """The table to audit.

    Attributes
    ----------
    columns
        In this order; None for every numeric column.
    rows
        First records, or records to draw.
    disclosure : 'rounded' or 'public'
        Whether written figures are rounded, or records public (docs/privacy.md).
    parameters
        The source's own.
    first_batch
        Records of the first batch, to which noise is scaled.
    bounds
        Column → (low, high), possible values in data units.
    tolerance
        Column → largest error of a close guess, in data units or as ``{"relative": share}``; by
        default a tenth of the interquartile range.
    order, key, unit, weight
        Unaudited columns: order, identity, protected units, survey weights.
    """

    source: str
    columns: Sequence[str] | None = None
    rows: int | None = None
    missing: Literal["refuse", "drop", "mean", "value"] = "refuse"
    standardize: bool = False
    disclosure: Literal["rounded", "public"] = "rounded"
    parameters: dict[str, Any] = field(default_factory=dict)
    bins: dict[str, Any] = field(default_factory=dict)
    categorical: dict[str, Any] = field(default_factory=dict)
    hierarchies: dict[str, Any] = field(default_factory=dict)
    dates: dict[str, str | None] = field(default_factory=dict)
    order: str | None = None
    key: str | None = None
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    first_batch: int | None = None
    unit: str | None = None
    weight: str | None = None
    tolerance: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """Request in scenario form, with defaults."""
        optional = {
            "order": self.order,
            "key": self.key,
            "unit": self.unit,
            "weight": self.weight,
            "first-batch": self.first_batch,
            "bin": self.bins,
            "categorical": self.categorical,
            "hierarchies": self.hierarchies,
            "dates": self.dates,
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "tolerance": self.tolerance,
        }
        return {
            "source": self.source,
            "columns": None if self.columns is None else list(self.columns),
            "rows": self.rows,
            "missing": self.missing,
            "standardize": self.standardize,
            "disclosure": self.disclosure,
            **{name: value for name, value in optional.items() if value},
            **self.parameters,
        }


def is_file(source: str) -> bool:
    """Whether a scenario's ``source`` is a path, not a registered source."""
    return "/" in source or "\\" in source or bool(Path(source).suffix)
