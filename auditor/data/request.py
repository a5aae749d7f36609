"""How a scenario asks for its data: what is selected, dropped, rescaled or cut into categories."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class DataUse:
    """The table to audit.

    Attributes
    ----------
    source : str
        A registered source, or a path to ``.csv`` or ``.parquet``.
    columns : tuple of str or None
        Selection, in this order, to which those under ``dates`` and ``categorical`` are added; None for every numeric column.
    order : str or None
        A column that records are put in the order of; it is not audited.
    key : str or None
        A column that identifies records, by which copies from files are joined to them; it is not audited.
    first_batch : int or None
        How many records the first batch had, where they arrived in batches; noise is scaled to these.
    rows : int or None
        The first so many; for a synthetic source how many to draw.
    missing : 'refuse', 'drop' or 'mean'
        What to do with missing values; a blank line in a CSV file of one column is one.
    standardize : bool
        Whether every column is brought to mean 0 and variance 1.
    disclosure : 'rounded' or 'public'
        Whether figures of a private table are rounded where results are written, or the records are declared public (docs/privacy.md).
    parameters : dict
        The source's own.
    bins, categorical : dict
        Columns to cut into bins, and columns that are categories: see ``auditor.data.columns.category_rules``.
    dates : dict
        Columns to read as days → the format of their text, or None for ISO 8601: see ``auditor.data.columns.dates``.
    hierarchies : dict
        Column → what its values have in common, as declared: see ``auditor.data.columns.hierarchy``.
    bounds : dict
        Column → (low, high): by how much one record may change, in data units; every column of numbers, or none.
    """

    source: str
    columns: tuple[str, ...] | None = None
    rows: int | None = None
    missing: str = "refuse"
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

    def spec(self) -> dict[str, Any]:
        """Return it as a scenario would spell it, defaults filled in."""
        categories = {"bin": self.bins} if self.bins else {}
        categories |= {"categorical": self.categorical} if self.categorical else {}
        categories |= {"hierarchies": self.hierarchies} if self.hierarchies else {}
        categories |= {"dates": self.dates} if self.dates else {}
        categories |= {"bounds": {name: list(ends) for name, ends in self.bounds.items()}} if self.bounds else {}
        return {
            "source": self.source,
            "columns": None if self.columns is None else list(self.columns),
            **({} if self.order is None else {"order": self.order}),
            **({} if self.key is None else {"key": self.key}),
            **({} if self.first_batch is None else {"first-batch": self.first_batch}),
            "rows": self.rows,
            "missing": self.missing,
            "standardize": self.standardize,
            "disclosure": self.disclosure,
            **categories,
            **self.parameters,
        }


def is_file(source: str) -> bool:
    """Tell whether a scenario's ``source`` is a path rather than the name of a registered source."""
    return "/" in source or "\\" in source or bool(Path(source).suffix)
