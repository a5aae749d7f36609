"""Convert raw columns to numbers and codes in one pass; treat gaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from auditor.base import DataError, counted, listed, nearest, pd, quoted
from auditor.base.types import Array, Flags, Names, unprinted
from auditor.data.columns import scan
from auditor.data.columns.categorical_table import (
    MOST_VALUES,
    Attribute,
    Bin,
    CategoricalTable,
    Categories,
    bins_between,
    check_size,
    codes_in,
    domain_of,
)
from auditor.data.columns.checks import (
    Cells,
    Frame,
    Gaps,
    check_plain,
    check_rows,
    column_floats,
    is_present,
    kind_of,
    refuse_columns,
)
from auditor.data.columns.kinds import identifies
from auditor.data.columns.scan import FileCodes, FileRows, Scan, Scratch, codes_from
from auditor.numerics.blocks import row_blocks, seal

Read = Callable[[Names], Iterable[Frame]]
"""Yields some columns of the records, in order, from the start at every call."""
T = TypeVar("T")


@unprinted
class Cleaned:
    """Records of a table as numbers.

    Attributes
    ----------
    numeric : tuple of N str
        Columns of finite numbers.
    required
        Columns in which a gap excludes the record.
    content : ndarray of shape (n, N + K), or Scratch
        Numbers, then codes of the K categorical columns that are not binned.
    attributes : tuple of K Attribute
    blanks : ndarray of shape (n, N) or None
        Cells with their column's mean.
    make
        Function that reads the content again.
    """

    numeric: tuple[str, ...]
    required: tuple[str, ...]
    content: Array | Scratch
    attributes: tuple[Attribute, ...]
    blanks: Flags | None
    bins: Mapping[str, Bin]
    make: Callable[[], Cleaned]

    @property
    def numbers(self) -> Array | FileRows:
        """Numbers, shape (n, N); in memory read-only."""
        N = len(self.numeric)
        if isinstance(self.content, Scratch):
            held: Array | FileRows = _held(FileRows(self.content, self.make, N))
            return held
        return _sealed(np.ascontiguousarray(self.content[:, :N]))

    def categories(self, scan: Scan) -> CategoricalTable | None:
        """Records as categories; None without categorical columns.

        Raises
        ------
        DataError
            The product domain is too large, or bins are equal.
        """
        N, K = len(self.numeric), len(self.attributes)
        binned = [self._bins(name, rule, scan) for name, rule in self.bins.items()]
        attributes = (*binned, *self.attributes)
        if not attributes:
            return None
        check_size(attributes)
        places = (*map(self.numeric.index, self.bins), *range(N, N + K))
        if isinstance(self.content, Scratch):
            rows = FileRows(self.content, self.make, N + K)
            return CategoricalTable(attributes, _held(FileCodes(rows, attributes, places)))
        return CategoricalTable(attributes, _sealed(codes_from(self.content, attributes, places)))

    def _bins(self, name: str, rule: Bin, scan: Scan) -> Attribute:
        j = self.numeric.index(name)
        if rule.edges:
            return bins_between(name, np.array(rule.edges))
        if rule.equal_width:
            return bins_between(name, np.linspace(scan.low[j], scan.high[j], rule.equal_width + 1))
        column = np.concatenate([x[:, j] for x in _blocks(self.content, 1)])
        shares = np.linspace(0, 1, (rule.quantile or 1) + 1)
        return bins_between(name, np.unique(np.quantile(column, shares, overwrite_input=True)))


def cleaned(
    read: Read,
    names: Names,
    chosen: Categories,
    least: int | None = None,
    missing: Gaps = "keep",
    named: bool = True,
    large: bool = False,
) -> Cleaned:
    """Records as numbers and codes.

    With categories, columns that the user did not name must be numeric and vary.

    Parameters
    ----------
    named
        Whether the user named the columns, so that booleans mean 0 and 1.
    large
        Whether records stay out of memory.

    Raises
    ------
    DataError
        They cannot be audited.
    """
    if unknown := [name for name in chosen.columns if name not in names]:
        raise DataError(
            f"there is no column {listed(unknown)} to take categories from{nearest(unknown[0], names)}",
            ("bin",),
        )
    if not names:
        raise DataError("no column is left to audit; name one with `columns:`", ("columns",))
    drop, domains = missing == "drop", chosen.domains
    raw, columns = _converted(read, names, domains, large)
    rows = raw.shape[0]
    check_rows(rows, least)
    every, varied = list(names), _varied(raw, columns)
    if chosen.columns and not named:
        names = [name for name in names if name in chosen.columns or name in varied]
    required = tuple(names) if drop and any(columns[name].missing.count for name in names) else ()
    if required:
        usable = [j for j, n in enumerate(every) if n in required and columns[n].is_number]
        usable += [len(every) + k for k, name in enumerate(domains) if name in required]
        raw = _gathered(
            (x[~np.isnan(x[:, usable]).any(axis=1)] for x in _blocks(raw, len(every))),
            raw.shape[1],
            large,
        )
        varied = _varied(raw, columns)
    blank = [name for name in domains if columns[name].missing.count]
    if blank and not drop:
        raise DataError(
            f"column {listed(blank)} has missing categories; set `missing: drop` to leave those records out",
            ("missing",),
        )
    numeric = tuple(
        name
        for name in names
        if name not in chosen.beside and (name not in domains or name in varied)
    )
    _check_numbers(numeric, [columns[name] for name in numeric], rows, missing, named)
    if drop and raw.shape[0] < 2:
        raise DataError(
            f"an audit needs at least 2 records; `missing: drop` leaves {counted(raw.shape[0], 'record')}"
        )
    places = [every.index(name) for name in numeric]
    fill, blanks = np.full(1, np.nan), None
    if missing == "mean" and any(columns[name].missing.count for name in numeric):
        fill, blanks = _means(raw, places)
    coders = [
        columns[name].coder(name, domain, _codes(raw, len(every) + k))
        for k, (name, domain) in enumerate(domains.items())
    ]

    def final(x: Array) -> Array:
        numbers = np.where(np.isnan(x[:, places]), fill, x[:, places])
        codes = [new[x[:, len(every) + k].astype(int)] for k, (_, new) in enumerate(coders)]
        return np.column_stack([numbers, *codes])

    content = _gathered(map(final, _blocks(raw, raw.shape[1])), len(places) + len(coders), large)
    return Cleaned(
        numeric,
        required,
        content,
        tuple(attribute for attribute, _ in coders),
        blanks,
        chosen.bins,
        partial(cleaned, read, tuple(every), chosen, least, missing, named, large),
    )


def _held(rows: FileRows | FileCodes) -> Any:
    few = math.prod(rows.shape) * 8 <= scan.HELD_BYTES
    return _sealed(rows[:]) if few else rows


def _sealed(x: T) -> T:
    seal(x)
    return x


def _converted(
    read: Read, names: Names, domains: Domains, large: bool
) -> tuple[Array | Scratch, dict[str, Column]]:
    """Columns as numbers, then categories as codes; NaN where missing."""
    columns, start = {name: Column() for name in names}, 0

    def blocks() -> Iterator[Array]:
        nonlocal start
        for frame in read(names):
            numbers = [column.add(frame[name], start) for name, column in columns.items()]
            codes = [columns[name].code(name, frame[name], domains[name]) for name in domains]
            start += len(numbers[0])
            yield np.column_stack([*numbers, *codes])

    return _gathered(blocks(), len(names) + len(domains), large), columns


def _gathered(blocks: Iterable[Array], width: int, large: bool) -> Array | Scratch:
    if not large:
        return np.concatenate([np.empty((0, width)), *blocks])
    scratch = Scratch(width)
    for x in blocks:
        scratch.append(x)
    return scratch


def _blocks(rows: Array | Scratch, width: int) -> Iterator[Array]:
    for a, b in row_blocks(rows.shape[0], width):
        yield rows[a:b]


def _codes(rows: Array | Scratch, j: int) -> Counter[float]:
    found = Counter[float]()
    for x in _blocks(rows, rows.shape[1]):
        found.update(dict(zip(*np.unique(x[:, j], return_counts=True), strict=True)))
    return found


def _varied(rows: Array | Scratch, columns: Mapping[str, Column]) -> set[str]:
    """Columns of numbers, the first ones of the rows, that vary."""
    low, high = np.full(rows.shape[1], np.inf), np.full(rows.shape[1], -np.inf)
    for x in _blocks(rows, rows.shape[1]):
        low = np.fmin(low, np.fmin.reduce(x, axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(x, axis=0, initial=-np.inf))
    wide = zip(columns.items(), low < high, strict=False)
    return {name for (name, column), varies in wide if varies and column.kinds == {"numbers"}}


def _means(rows: Array | Scratch, places: Sequence[int]) -> tuple[Array, Flags]:
    total, blanks = np.zeros(len(places)), []
    for block in _blocks(rows, len(places)):
        x = np.ascontiguousarray(block[:, places])  # sums depend on the layout
        blanks.append(np.isnan(x))
        with np.errstate(over="ignore"):
            total = total + np.nansum(x, axis=0)
    found = np.concatenate(blanks)
    return total / (len(found) - found.sum(axis=0)), found


Domains = Mapping[str, Sequence[Any] | None]
"""Categorical column → its declared domain, or None for the observed one."""

HEAD = 1_000
"""Records used to recognise a numeric identifier, for a message."""


@dataclass(repr=False)
class Column:
    """Survey of one column.

    Attributes
    ----------
    missing, infinite, text
        Blank, infinite and non-numeric cells.
    labels
        Categories → codes, in order of appearance.
    floats
        Whether some records, so all labels, are floats.
    head : ndarray
        First numbers.
    """

    kinds: set[str] = field(default_factory=set)
    missing: Cells = field(default_factory=Cells)
    infinite: Cells = field(default_factory=Cells)
    text: Cells = field(default_factory=Cells)
    labels: dict[Any, int] = field(default_factory=dict)
    floats: bool = False
    head: Array = field(default_factory=lambda: np.empty(0))

    @property
    def is_number(self) -> bool:
        """Whether it can be read as numbers."""
        return self.kinds <= {"numbers", "booleans"} and len(self.kinds) <= 1

    def add(self, cells: Any, start: int) -> Array:
        """Survey records from row ``start`` on; return numbers, else NaN."""
        kind, present = kind_of(cells), is_present(cells)
        x = column_floats(cells) if kind in ("numbers", "booleans") else np.full(len(cells), np.nan)
        if kind == "numbers":
            present = ~np.isnan(x)
            self.infinite.add(np.isinf(x), start)
            self.floats |= cells.dtype.kind == "f"
            self.head = self.head if start else x[:HEAD]
        self.missing.add(~present, start)
        if present.any() or kind == "categories":
            self.kinds.add(kind)
        if kind == "text":
            numbers = pd.to_numeric(cells.astype(object), errors="coerce")
            self.text.add(present & numbers.isna().to_numpy(), start)
        elif kind != "numbers":
            self.text.add(present, start)
        return x

    def code(self, name: str, cells: Any, domain: Sequence[Any] | None) -> Array:
        """Each record's code, NaN if missing; −1 outside a declared domain.

        Raises
        ------
        DataError
            A value is nested, or the values are too many.
        """
        values: Any
        if isinstance(cells, np.ndarray) and domain is None:
            values, found = np.unique(cells, return_inverse=True)
        else:
            cells = pd.Series(cells, copy=False)
            check_plain(name, cells)
            if domain is not None:
                return np.where(cells.notna(), codes_in(domain, cells), np.nan)
            if isinstance(cells.dtype, pd.CategoricalDtype):
                found, values = cells.cat.codes.to_numpy(), cells.cat.categories
            else:
                found, values = pd.factorize(cells)
        places = [self.labels.setdefault(value, len(self.labels)) for value in values.tolist()]
        if len(self.labels) > MOST_VALUES:
            raise DataError(
                f"column {quoted(name)} has more than {MOST_VALUES:,} values, the most a domain may have: put them in bins, or leave it out"
            )
        return np.append(places, np.nan)[found]

    def coder(
        self, name: str, domain: Sequence[Any] | None, used: Counter[float]
    ) -> tuple[Attribute, Array]:
        """Domain (declared, the column's, or observed), and each code's place.

        Raises
        ------
        DataError
            A value is not in the declared domain.
        """
        if used[-1]:
            raise DataError(
                f"column {quoted(name)} has {counted(used[-1], 'record')} outside the declared domain",
                ("categorical",),
            )
        if domain is not None:
            return domain_of(name, domain), np.arange(float(len(domain)))
        labels = list(self.labels)
        values = [label for label, code in self.labels.items() if code in used]
        if self.kinds == {"numbers"}:
            labels = sorted(set(np.array(values, float if self.floats else None).tolist()))
        elif self.kinds != {"categories"}:
            labels = list(pd.factorize(pd.Series(values), sort=True)[1])
        places = dict(zip(labels, range(len(labels)), strict=True))
        return domain_of(name, labels), np.array([places.get(label, -1.0) for label in self.labels])

    def why_unfit(self) -> str:
        """Why it is no column of numbers."""
        if not self.kinds <= {"text", "numbers", "booleans"}:
            found = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed or nested values"
            return f"holds {found}, not numbers"
        if self.kinds == {"booleans"}:
            return "holds booleans, not numbers"
        if not self.text.count:
            return "holds numbers stored as text; store them as numbers"
        return f"holds text, not numbers ({self.text.where('such cell')})"


def _check_numbers(
    names: Names, columns: Sequence[Column], rows: int, missing: Gaps, named: bool
) -> None:
    unfit = [
        not column.is_number or (column.kinds == {"booleans"} and not named) for column in columns
    ]
    usable = [
        name
        for name, column, wrong in zip(names, columns, unfit, strict=True)
        if not wrong and any(unfit) and not identifies(name, column.head, rows)
    ]
    remedy = f"choose columns of numbers with `columns:`, here {listed(usable)}" if usable else ""
    refuse_columns(names, unfit, lambda j: columns[j].why_unfit(), remedy)
    refuse_columns(
        names,
        [column.infinite.count > 0 for column in columns],
        lambda j: f"has {columns[j].infinite.where('infinite value')}",
    )
    if missing != "keep":
        empty = [column.missing.count >= rows for column in columns]
        refuse_columns(names, empty, lambda j: "has no values at all")
    if missing == "refuse":
        refuse_columns(
            names,
            [column.missing.count > 0 for column in columns],
            lambda j: f"has {columns[j].missing.where('missing value')}",
            "set `missing: drop` to leave those records out, or `missing: mean` to fill them in",
        )
