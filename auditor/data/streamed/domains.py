"""Survey of large files: categorical columns and their domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import MOST_VALUES, Attribute, of_column
from auditor.data.columns.checks import check_plain, floats, kind_of
from auditor.data.columns.threads import in_threads
from auditor.data.formats.parts import Piece
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, quoted


@dataclass
class Column:
    """Survey of one column.

    Attributes
    ----------
    kinds : set of str
        As ``kind_of`` calls them.
    low, high : float
        Least and largest number.
    missing, outside : int
        Number of records without a value, and with one outside the declared domain.
    values, every : lists of Series
        Values among the kept records, and among all (their types decide the conversion).
    """

    kinds: set[str] = field(default_factory=set)
    low: float = np.inf
    high: float = -np.inf
    missing: int = 0
    outside: int = 0
    values: list[pd.Series[Any]] = field(default_factory=list, repr=False)
    every: list[pd.Series[Any]] = field(default_factory=list, repr=False)

    @property
    def varied(self) -> bool:
        """Whether it holds numbers that vary."""
        return self.kinds == {"numbers"} and self.low < self.high

    def look(
        self,
        name: str,
        column: pd.Series[Any],
        kept: pd.Series[Any],
        domain: Sequence[Any] | None,
        collect: bool,
    ) -> None:
        """Add some records: all, and the kept ones."""
        kind = kind_of(column)
        if collect:
            check_plain(name, column)
        self.kinds.add(kind)
        self.missing += int(kept.isna().sum())
        if kind == "numbers":
            numbers = floats(kept.to_frame())
            there = numbers[~np.isnan(numbers)]
            self.low, self.high = (
                min(self.low, there.min(initial=np.inf)),
                max(self.high, there.max(initial=-np.inf)),
            )
        if collect and domain is None:
            self.every.append(_different(column))
            self.values.append(_different(kept.dropna()))
            self._shorten(name)
        elif collect:
            different = kept.dropna().drop_duplicates()
            known = (
                pd.Index(list(domain or ()), tupleize_cols=False).get_indexer(
                    pd.Index(different.astype(object))
                )
                >= 0
            )
            if not known.all():
                self.outside += int((~kept.dropna().isin(different[known])).sum())

    def join(self, name: str, other: Column) -> None:
        """Add the survey of later records."""
        self.kinds |= other.kinds
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.missing += other.missing
        self.outside += other.outside
        self.values += other.values
        self.every += other.every
        self._shorten(name)

    def _shorten(self, name: str) -> None:
        self.values, self.every = (
            [_joined(self.values)] if self.values else [],
            [_joined(self.every)] if self.every else [],
        )
        if self.values and len(self.values[0]) > MOST_VALUES:
            raise DataError(
                f"column {quoted(name)} has more than {MOST_VALUES:,} values, the most a domain may have: put them in bins, or leave it out"
            )

    def domain(self, name: str, declared: Sequence[Any] | None) -> Attribute:
        """Return the domain: declared, the column's own categories, or observed.

        Raises
        ------
        DataError
            Values are missing, or not in the declared domain; the message holds neither.
        """
        if self.missing:
            raise DataError(f"column {quoted(name)} has missing values")
        if self.outside:
            raise DataError(
                f"column {quoted(name)} has {counted(self.outside, 'record')} outside the declared domain"
            )
        if declared is not None:
            return of_column(pd.Series(list(declared), dtype=object), name, declared)[0]
        seen = self.values[0]
        return of_column(
            seen
            if isinstance(seen.dtype, pd.CategoricalDtype)
            else seen.astype(self.every[0].dtype),
            name,
        )[0]


def _different(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.drop_duplicates().reset_index(drop=True)


def _joined(parts: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return distinct values of parts; declared categories stay in order."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        labels = list(dict.fromkeys(label for part in parts for label in part.cat.categories))
        return _different(
            pd.concat([part.cat.set_categories(labels) for part in parts], ignore_index=True)
        )
    filled = [part for part in parts if len(part)] or list(parts[:1])
    return _different(pd.concat(filled, ignore_index=True)) if len(filled) > 1 else filled[0]


@dataclass
class Findings:
    """Survey of some columns of files, with record counts by piece."""

    columns: dict[str, Column]
    pieces: list[Piece] = field(default_factory=list, repr=False)
    counts: list[int] = field(default_factory=list, repr=False)

    @property
    def found(self) -> int:
        """Number of records."""
        return sum(piece.rows for piece in self.pieces)


def survey(
    pieces: Sequence[Piece],
    names: Sequence[str],
    rows: int | None,
    drop: bool,
    domains: Mapping[str, Sequence[Any] | None],
) -> Findings:
    """Survey the first records of files.

    Parameters
    ----------
    pieces : sequence of Piece
    names : sequence of str
        Columns to survey.
    rows : int or None
        Number of records to survey.
    drop : bool
        Whether records that lack a value in any of these columns are excluded.
    domains : mapping
        Columns whose values are collected, or compared with a declared domain.
    """
    whole = Findings({name: Column() for name in names})
    look = partial(_surveyed, names=names, rows=rows, drop=drop, domains=domains)
    for piece, found in zip(pieces, in_threads(look, pieces), strict=False):
        left = None if rows is None else rows - whole.found
        # a piece of uncounted records may exceed the request
        if left is not None and left < found.found:
            found = look(replace(piece, rows=left))
        whole.pieces += found.pieces
        whole.counts += found.counts
        for name, column in whole.columns.items():
            column.join(name, found.columns[name])
        if whole.found == rows:
            break
    return whole


def _surveyed(
    piece: Piece,
    names: Sequence[str],
    rows: int | None,
    drop: bool,
    domains: Mapping[str, Sequence[Any] | None],
) -> Findings:
    columns = {name: Column() for name in names}
    count = kept = 0
    if rows is not None and piece.rows < 0:
        piece = replace(piece, rows=rows)
    for frame in piece.frames(names):
        there = frame[frame.notna().all(axis=1)] if drop else frame
        count, kept = count + len(frame), kept + len(there)
        for name, column in columns.items():
            column.look(name, frame[name], there[name], domains.get(name), name in domains)
    return Findings(columns, [replace(piece, rows=count)], [kept])
