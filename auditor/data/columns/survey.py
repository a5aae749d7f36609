"""Survey of columns: kinds, gaps, infinite values, ranges and domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import MOST_VALUES, Attribute, codes_in, domain_of
from auditor.data.columns.checks import (
    Cells,
    Frame,
    Gaps,
    Series,
    check_plain,
    column_floats,
    is_present,
    kind_of,
    refuse_columns,
)
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, listed, quoted
from auditor.types import Array, Flags

Domains = Mapping[str, Sequence[Any] | None]
"""Categorical column → its declared domain, or None for the observed one."""

HEAD = 1_000
"""Records used to recognise a numeric identifier, for a message."""


@dataclass
class Column:
    """Survey of one column.

    Attributes
    ----------
    kinds : set of str
        As ``kind_of`` calls them.
    missing, infinite, text : Cells
        Cells without a value, infinite numbers, and cells that are no numbers.
    low, high : float
        Least and largest number of the kept records.
    values : dict
        Distinct values of the kept records as keys; of a categorical column only.
    outside : int
        Number of kept records outside the declared domain.
    floats : bool
        Whether some records are stored as floats, so that all labels are.
    head : ndarray
        The first numbers.
    """

    kinds: set[str] = field(default_factory=set)
    missing: Cells = field(default_factory=Cells)
    infinite: Cells = field(default_factory=Cells)
    text: Cells = field(default_factory=Cells)
    low: float = np.inf
    high: float = -np.inf
    values: dict[Any, None] = field(default_factory=dict, repr=False)
    outside: int = 0
    floats: bool = False
    head: Array = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def varied(self) -> bool:
        """Whether it holds numbers that vary."""
        return self.kinds == {"numbers"} and self.low < self.high

    def add(self, column: Any, kept: Flags | None, start: int) -> None:
        """Survey some records, in rows from ``start`` on."""
        kind, present = kind_of(column), is_present(column)
        if kind == "numbers":
            x = column_floats(column)
            present = ~np.isnan(x)
            self.infinite.add(np.isinf(x), start)
            there = x[present if kept is None else present & kept]
            self.low = min(self.low, there.min(initial=np.inf))
            self.high = max(self.high, there.max(initial=-np.inf))
            self.floats |= column.dtype.kind == "f"
            self.head = self.head if start else x[:HEAD]
        self.missing.add(~present, start)
        if present.any() or kind == "categories":
            self.kinds.add(kind)
        if kind == "text":
            numbers = pd.to_numeric(column.astype(object), errors="coerce")
            self.text.add(present & numbers.isna().to_numpy(), start)
        elif kind != "numbers":
            self.text.add(present, start)

    def collect(self, name: str, kept: Series, domain: Sequence[Any] | None) -> None:
        """Add the kept records' values to the domain, or count those outside."""
        check_plain(name, kept)
        present = kept.dropna()
        if domain is not None:
            self.outside += int((codes_in(domain, present) < 0).sum())
        elif isinstance(kept.dtype, pd.CategoricalDtype):
            self.values |= dict.fromkeys(kept.cat.categories)
        else:
            self.values |= dict.fromkeys(present.drop_duplicates())
        self._check_number(name)

    def join(self, name: str, other: Column, start: int) -> None:
        """Add the survey of later records, in rows from ``start`` on."""
        self.kinds |= other.kinds
        self.missing.join(other.missing, start)
        self.infinite.join(other.infinite, start)
        self.text.join(other.text, start)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.values |= other.values
        self.outside += other.outside
        self.floats |= other.floats
        self.head = self.head if start else other.head
        self._check_number(name)

    def _check_number(self, name: str) -> None:
        if len(self.values) > MOST_VALUES:
            raise DataError(
                f"column {quoted(name)} has more than {MOST_VALUES:,} values, the most a domain may have: put them in bins, or leave it out"
            )

    def domain(self, name: str, declared: Sequence[Any] | None) -> Attribute:
        """Return the domain: declared, the column's own categories, or observed.

        Raises
        ------
        DataError
            Values are not in the declared domain.
        """
        if self.outside:
            raise DataError(
                f"column {quoted(name)} has {counted(self.outside, 'record')} outside the declared domain"
            )
        if declared is not None:
            return domain_of(name, declared)
        if self.kinds == {"categories"}:
            return domain_of(name, list(self.values))
        floats = self.floats and self.kinds == {"numbers"}
        values = pd.Series(list(self.values), dtype=np.float64 if floats else None)
        return domain_of(name, list(pd.factorize(values, sort=True)[1]))

    def is_fit(self, fit: set[str]) -> bool:
        """Whether it holds one kind only, of those in ``fit``."""
        return self.kinds <= fit and len(self.kinds) <= 1

    def why_unfit(self) -> str:
        """Return why it is no column of numbers."""
        if not self.kinds <= {"text", "numbers", "booleans"}:
            found = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed or nested values"
            return f"holds {found}, not numbers"
        if self.kinds == {"booleans"}:
            return "holds booleans, not numbers"
        if not self.text.count:
            return "holds numbers stored as text; store them as numbers"
        return f"holds text, not numbers ({self.text.where('such cell')})"


@dataclass
class Survey:
    """Survey of some columns of a table.

    Attributes
    ----------
    columns : dict
    rows : int
        Number of records.
    kept : int
        Number of records that are not dropped.
    """

    columns: dict[str, Column]
    rows: int = 0
    kept: int = 0

    def add(self, frame: Frame, kept: Flags | None, domains: Domains) -> None:
        """Survey some records; ``kept`` is None if none is dropped."""
        for name, column in self.columns.items():
            cells = frame[name]
            column.add(cells, kept, self.rows)
            if name in domains:
                column.collect(name, cells if kept is None else cells[kept], domains[name])
            rows = len(cells)
        self.rows += rows
        self.kept += rows if kept is None else int(kept.sum())

    def join(self, other: Survey) -> None:
        """Add the survey of later records."""
        for name, column in self.columns.items():
            column.join(name, other.columns[name], self.rows)
        self.rows, self.kept = self.rows + other.rows, self.kept + other.kept

    def check_numbers(
        self,
        names: Sequence[str],
        booleans: bool,
        missing: Gaps,
        identifies: Callable[[str, Array, int], bool],
    ) -> None:
        """Refuse columns without finite numbers, and gaps if requested.

        Parameters
        ----------
        names : sequence of N str
        booleans : bool
            Whether booleans may mean 0 and 1.
        missing : {'refuse', 'drop', 'mean', 'keep'}
        identifies : callable
            Whether a column identifies records, by its name, first numbers and number of records.
            The message recommends other columns only.

        Raises
        ------
        DataError
            With column, kind and first row.
        """
        columns = [self.columns[name] for name in names]
        fit = {"numbers", "booleans"} if booleans else {"numbers"}
        unfit = [not column.is_fit(fit) for column in columns]
        usable = [
            name
            for name, column, wrong in zip(names, columns, unfit, strict=True)
            if not wrong and any(unfit) and not identifies(name, column.head, self.rows)
        ]
        remedy = (
            f"choose columns of numbers with `columns:`, here {listed(usable)}" if usable else ""
        )
        refuse_columns(names, unfit, lambda j: columns[j].why_unfit(), remedy)
        refuse_columns(
            names,
            [column.infinite.count > 0 for column in columns],
            lambda j: f"has {columns[j].infinite.where('infinite value')}",
        )
        if missing != "keep":
            empty = [column.missing.count >= self.rows for column in columns]
            refuse_columns(names, empty, lambda j: "has no values at all")
        if missing == "refuse":
            refuse_columns(
                names,
                [column.missing.count > 0 for column in columns],
                lambda j: f"has {columns[j].missing.where('missing value')}",
                "set `missing: drop` to leave those records out, or `missing: mean` to fill them in",
            )
