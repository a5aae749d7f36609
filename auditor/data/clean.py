"""Survey raw columns, convert them to numbers and codes; treat gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import DataError
from auditor.base.text import counted, listed, quoted
from auditor.base.types import Array, Flags
from auditor.data import file_rows
from auditor.data.columns.categorical_table import (
    MOST_VALUES,
    Attribute,
    CategoricalTable,
    Categories,
    bins_between,
    check_size,
    codes_in,
    domain_of,
    edges_of,
)
from auditor.data.columns.checks import (
    Cells,
    Frame,
    Gaps,
    Series,
    are_complete,
    check_plain,
    check_rows,
    column_floats,
    is_present,
    kind_of,
    refuse_columns,
)
from auditor.data.columns.kinds import identifies
from auditor.data.columns.scan import Scan, in_threads
from auditor.data.file_rows import Coder, FileRows, Numbers, ProductCodes
from auditor.data.formats.parts import Held, Records
from auditor.numerics.blocks import row_blocks
from auditor.process.deferred import pd


@dataclass(frozen=True)
class Asked:
    """A scenario's selection of records.

    ``named``: whether the user named the columns, so that booleans mean 0 and 1.
    """

    rows: int | None
    missing: Gaps
    named: bool


@dataclass(frozen=True)
class Cleaned:
    """Surveyed records of a table.

    Attributes
    ----------
    numeric : tuple of N str
        Columns of finite numbers.
    required : tuple of str
        Columns whose gaps exclude a record.
    blanks : ndarray of shape (n, N) or None
        Cells that hold their column's mean.
    """

    numeric: tuple[str, ...]
    required: tuple[str, ...]
    numbers: FileRows
    survey: Survey
    chosen: Categories
    blanks: Flags | None = None

    def categories(self, rows: Array | FileRows, scan: Scan) -> CategoricalTable | None:
        """Return the records as categories; None without categorical columns.

        ``rows`` are the numbers, not rescaled, and ``scan`` their scan.

        Raises
        ------
        DataError
            The product domain is too large, or bins are not distinct.
        """
        if not self.chosen.columns:
            return None
        assert isinstance(self.numbers.decode, Numbers)
        fill, coders = self.numbers.decode.fill, []
        for name, rule in self.chosen.bins.items():
            j = self.numeric.index(name)
            if "quantile" in rule:
                column = np.concatenate([x[:, j] for x in blocks_of(rows)])
                shares = np.linspace(0, 1, rule["quantile"] + 1)
                edges = np.unique(np.quantile(column, shares, overwrite_input=True))
            else:
                edges = edges_of(rule, float(scan.low[j]), float(scan.high[j]))
            coders.append(Coder(bins_between(name, edges), np.nan if fill is None else fill[j]))
        for name, domain in self.chosen.domains.items():
            coders.append(Coder(self.survey.columns[name].domain(name, domain)))
        attributes = tuple(coder.attribute for coder in coders)
        check_size(attributes)
        decode = ProductCodes(tuple(coders), self.required)
        return CategoricalTable(attributes, held(replace(self.numbers, decode=decode)))


def cleaned(
    pieces: Sequence[Records], names: Sequence[str], asked: Asked, chosen: Categories
) -> Cleaned:
    """Survey columns and return the conversion to numbers and codes.

    Unless the user named the columns, categories exclude non-numeric and constant ones.

    Raises
    ------
    DataError
        They cannot be audited.
    """
    chosen.check_known(names)
    drop = asked.missing == "drop"
    select = bool(chosen.columns) and not asked.named
    pieces, counts, found = surveyed(
        pieces, names, asked.rows, names if drop and not select else (), chosen.domains
    )
    check_rows(found.rows, asked.rows)
    if select:
        names = [name for name in names if name in chosen.columns or found.columns[name].varied]
        if drop:
            pieces, counts, found = surveyed(pieces, names, None, names, chosen.domains)
    columns = found.columns
    if not drop:
        chosen.check_complete([name for name in chosen.domains if columns[name].missing.count])
    numeric = tuple(
        name
        for name in names
        if name not in chosen.beside and (name not in chosen.domains or columns[name].varied)
    )
    found.check_numbers(numeric, asked.named, asked.missing, identifies)
    if drop and found.kept < 2:
        raise DataError(
            f"an audit needs at least 2 records; `missing: drop` leaves {counted(found.kept, 'record')}"
        )
    gaps = any(columns[name].missing.count for name in names)
    required = tuple(names) if drop and gaps else ()
    rows = FileRows(tuple(pieces), tuple(counts), Numbers(numeric, required))
    blanks = None
    if asked.missing == "mean" and any(columns[name].missing.count for name in numeric):
        means, blanks = _means(rows)
        rows = replace(rows, decode=Numbers(numeric, fill=means))
    return Cleaned(numeric, required, rows, found, chosen, blanks)


def held(rows: FileRows) -> NDArray[Any] | FileRows:
    """Return the records, in memory if they are small or have no file."""
    in_memory = any(isinstance(piece, Held) for piece in rows.pieces)
    if not in_memory and int(np.prod(rows.shape)) * 8 > file_rows.HELD_BYTES:
        return rows
    found = rows.read(0, rows.shape[0])
    found.setflags(write=False)
    return found


def surveyed(
    pieces: Sequence[Records],
    names: Sequence[str],
    rows: int | None,
    required: Sequence[str],
    domains: Domains,
) -> tuple[list[Records], list[int], Survey]:
    """Return pieces, their counts of kept records, and the survey.

    ``required`` are columns whose gaps exclude a record. ``domains`` are columns whose values are
    collected, or compared with a declared domain.
    """
    look = partial(_survey_of_piece, names=names, required=required, domains=domains)
    taken: list[Records] = []
    counts, whole = [], Survey({name: Column() for name in names})
    if rows is not None:
        pieces = [piece if piece.rows >= 0 else replace(piece, rows=rows) for piece in pieces]
    for piece, found in zip(pieces, in_threads(look, pieces), strict=False):
        if rows is not None and whole.rows + found.rows > rows:
            found = look(replace(piece, rows=rows - whole.rows))
        whole.join(found)
        taken.append(replace(piece, rows=found.rows))
        counts.append(found.kept)
        if whole.rows == rows:
            break
    return taken, counts, whole


def _survey_of_piece(
    piece: Records, names: Sequence[str], required: Sequence[str], domains: Domains
) -> Survey:
    survey = Survey({name: Column() for name in names})
    for frame in piece.frames(tuple(names)):
        survey.add(frame, are_complete(frame, required) if required else None, domains)
    return survey


def blocks_of(rows: Array | FileRows) -> Any:
    """Yield the records block by block, shape (b, N)."""
    for a, b in row_blocks(*rows.shape):
        yield rows[a:b] if isinstance(rows, np.ndarray) else rows.read(a, b)


def _means(rows: FileRows) -> tuple[Array, Flags]:
    total, blanks = np.zeros(rows.shape[1]), np.empty(rows.shape, dtype=bool)
    for (a, b), x in zip(row_blocks(*rows.shape), blocks_of(rows), strict=True):
        blanks[a:b] = np.isnan(x)
        with np.errstate(over="ignore"):
            total = total + np.nansum(x, axis=0)
    return total / (len(blanks) - blanks.sum(axis=0)), blanks


Domains = Mapping[str, Sequence[Any] | None]
"""Categorical column → its declared domain, or None for the observed one."""

HEAD = 1_000
"""Records used to recognise a numeric identifier, for a message."""


@dataclass
class Column:
    """Survey of one column.

    Attributes
    ----------
    missing, infinite, text : Cells
        Cells without a value, infinite numbers, and cells that are no numbers.
    low, high : float
        Range of the kept records.
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
    """Survey of some columns; ``kept`` counts the records that are not dropped."""

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

        ``booleans`` may mean 0 and 1. ``identifies`` says whether a column identifies records, by name,
        first numbers and number of records; the message recommends other columns only.

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
