"""Tidy table of an audit by columns; records are made on request.

Most columns repeat few values (schemes, attacks, coalitions). These columns are codes and values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, get_type_hints, overload

import numpy as np
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from auditor.base.types import Array, Indices
from auditor.results.records import Measurement

NUMBERS = ("value", "std_error", "ci_low", "ci_high", "theory")
"""Numeric columns; NaN if a record has none."""
CELL = ("sweep", "scheme", "knowledge", "attack", "coalition", "attribute", "metric")
"""Common fields of the replicates of one cell."""


class Coded(NamedTuple):
    """A column of few distinct values: codes of shape (n,), and the values."""

    places: Indices
    values: list[Any]

    @classmethod
    def of(cls, column: Iterable[Any]) -> Coded:
        """Return the column of some values."""
        known: dict[Any, int] = {}
        values: list[Any] = []
        places = []
        for value in column:
            place = known.setdefault(_key(value), len(values))
            if place == len(values):
                values.append(value)
            places.append(place)
        return cls(np.array(places, dtype=np.intp), values)

    def put(self, rows: Any, value: Any) -> Coded:
        """Return the column with one value in some rows."""
        places = self.places.copy()
        places[rows] = len(self.values)
        return Coded(places, [*self.values, value])

    def expanded(self) -> list[Any]:
        """Return the value of each row."""
        return list(map(self.values.__getitem__, self.places.tolist()))


Column = Coded | Array


class Measurements(Sequence[Measurement]):
    """Immutable table of measurements, and a sequence of records.

    Parameters
    ----------
    columns : mapping
        The column of each field of `Measurement`: an array of shape (n,) for ``NUMBERS``, otherwise
        ``Coded``.

    Examples
    --------
    >>> table = Measurements.of([])
    >>> len(table), table.where(status="failed").any()
    (0, np.False_)
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns: dict[str, Any] = {field: columns[field] for field in Measurement._fields}

    @classmethod
    def of(cls, records: Iterable[Measurement]) -> Measurements:
        """Return the table of some records."""
        if isinstance(records, Measurements):
            return records
        columns = zip(
            Measurement._fields,
            list(zip(*records, strict=True)) or [()] * len(Measurement._fields),
            strict=True,
        )
        return cls(
            {
                field: numbers(column) if field in NUMBERS else Coded.of(column)
                for field, column in columns
            }
        )

    @classmethod
    def concatenated(cls, parts: Iterable[Iterable[Measurement]]) -> Measurements:
        """Return the rows of tables and lists of records, in order."""
        tables = [table for part in parts if len(table := cls.of(part))]
        if len(tables) < 2:
            return tables[0] if tables else cls.of([])
        columns = {
            field: [table.columns[field] for table in tables] for field in Measurement._fields
        }
        return cls(
            {
                field: np.concatenate(some) if field in NUMBERS else _joined(some)
                for field, some in columns.items()
            }
        )

    @cached_property
    def _records(self) -> list[Measurement]:
        return list(
            map(Measurement._make, zip(*map(self.column, Measurement._fields), strict=True))
        )

    def column(self, field: str) -> list[Any]:
        """Return a field of all rows as in records: None for missing numbers."""
        column = self.columns[field]
        if isinstance(column, Coded):
            return column.expanded()
        found = column.astype(object)
        found[np.isnan(column)] = None
        return list(found)

    def __len__(self) -> int:
        return len(self.columns["value"])

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._records)

    @overload
    def __getitem__(self, place: int) -> Measurement: ...
    @overload
    def __getitem__(self, place: slice) -> list[Measurement]: ...
    def __getitem__(self, place: int | slice) -> Measurement | list[Measurement]:
        return self._records[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a table in JSON: one entry for each column."""
        hints = get_type_hints(Measurement)
        kinds = [
            list[float] if field in NUMBERS else tuple[list[hints[field]], list[int]]  # type: ignore[valid-type]
            for field in Measurement._fields
        ]
        table = handler.generate_schema(tuple[tuple(kinds)])  # type: ignore[misc]
        written = core_schema.plain_serializer_function_ser_schema(
            cls._written, return_schema=table
        )
        return core_schema.json_or_python_schema(
            core_schema.no_info_after_validator_function(cls._read, table),
            core_schema.is_instance_schema(cls),
            serialization=written,
        )

    def _written(self) -> tuple[Any, ...]:
        return tuple(
            (column.values, column.places.tolist())
            if isinstance(column, Coded)
            else column.tolist()
            for column in self.columns.values()
        )

    @classmethod
    def _read(cls, parts: Sequence[Any]) -> Measurements:
        columns: dict[str, Any] = {}
        for field, part in zip(Measurement._fields, parts, strict=True):
            if field in NUMBERS:
                columns[field] = np.array(part, dtype=np.float64)
                continue
            values, places = part
            if places and not 0 <= min(places) <= max(places) < len(values):
                raise ValueError("places of no value")
            known = Coded.of(values)
            columns[field] = Coded(known.places[np.array(places, dtype=np.intp)], known.values)
        rows = {
            len(column if field in NUMBERS else column.places) for field, column in columns.items()
        }
        if len(rows) != 1:
            raise ValueError("columns of several lengths")
        return cls(columns)

    def __repr__(self) -> str:
        return f"<{len(self):,} measurements>"

    def where(self, **wanted: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which rows have these values in non-numeric fields, shape (n,)."""
        found = np.ones(len(self), dtype=bool)
        for field, value in wanted.items():
            places, values = self.columns[field]
            found &= np.array([one == value for one in values], dtype=bool)[places]
        return found

    def taken(self, rows: Any) -> Measurements:
        """Return some rows, by index or mask."""
        return Measurements(
            {
                field: column[rows]
                if field in NUMBERS
                else Coded(column.places[rows], column.values)
                for field, column in self.columns.items()
            }
        )

    def replaced(self, **columns: Column) -> Measurements:
        """Return the table with some columns replaced."""
        return Measurements(self.columns | columns)

    def cells(self, fields: Sequence[str] = CELL) -> Indices:
        """Return the cell number of each row, from 0 in order of first appearance, shape (n,).

        Rows of one cell have equal ``fields``.
        """
        cell = np.zeros(len(self), dtype=np.intp)
        for field in fields:
            places, values = self.columns[field]
            cell = np.unique(cell * len(values) + places, return_inverse=True)[1]
        first = np.unique(cell, return_index=True)[1]
        return np.asarray(np.argsort(np.argsort(first))[cell], dtype=np.intp)


def numbers(column: Iterable[float | None]) -> Array:
    """Return numbers as an array, NaN for None."""
    return np.array([math.nan if value is None else value for value in column], dtype=np.float64)


def _key(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, tuple)) else repr(value)


def _joined(columns: Sequence[Coded]) -> Coded:
    values = Coded.of(value for column in columns for value in column.values)
    moved = np.split(values.places, np.cumsum([len(column.values) for column in columns])[:-1])
    return Coded(
        np.concatenate(
            [places[column.places] for places, column in zip(moved, columns, strict=True)]
        ),
        values.values,
    )
