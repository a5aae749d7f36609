"""Tidy table of an audit by columns; records are made on request.

Columns of few distinct values are codes and values. As pandas, R and SQL group by no list or
mapping, every row of a tidy table also has

================== =====================================================================
``coalition_label`` the copies, as ``1+3``; empty without a coalition ``coalition_size``  number of
copies ``level_min``       the smallest of their levels; missing without levels ``sweep.PATH``
one column for each swept path, as ``sweep.data.rows`` ==================
=====================================================================

A swept path's column has numbers only, or text, with other values as JSON.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from auditor.base import pa, pd, pq, scipy, visible_on_one_line
from auditor.base.types import Array, Flags, Indices, Names, Options, Plain
from auditor.numerics.blocks import seal
from auditor.results.records import FEWEST_REPLICATES, Measurement

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
        """Column of some values."""
        known: dict[Any, int] = {}
        values: list[Any] = []
        places = []
        for value in column:
            place = known.setdefault(_key(value), len(values))
            if place == len(values):
                values.append(value)
            places.append(place)
        return cls(np.array(places, dtype=int), values)

    def put(self, rows: Any, value: Any) -> Coded:
        """Column with one value in some rows."""
        places = self.places.copy()
        places[rows] = len(self.values)
        return Coded(places, [*self.values, value])

    def expanded(self) -> list[Any]:
        """Value of each row."""
        return list(map(self.values.__getitem__, self.places.tolist()))


Column = Coded | Array


class Measurements(Sequence[Measurement]):
    """Immutable table of measurements, and a sequence of records.

    Parameters
    ----------
    columns : mapping
        By field of `Measurement`: shape (n,) for ``NUMBERS``, otherwise ``Coded``.

    Examples
    --------
    >>> table = Measurements.of([])
    >>> len(table), table.where(status="failed").any()
    (0, np.False_)
    """

    def __init__(self, columns: Options) -> None:
        self.columns: Plain = {field: columns[field] for field in Measurement._fields}
        seal(*self.columns.values())

    @classmethod
    def of(cls, records: Iterable[Measurement]) -> Measurements:
        """Table of some records."""
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
        """Rows of tables and lists of records, in order."""
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
        """Field of all rows as in records: None for missing numbers."""
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
        """Schema of a table in JSON, as text of its Parquet file."""
        return core_schema.json_or_python_schema(
            core_schema.no_info_after_validator_function(
                lambda text: from_parquet(b64decode(text)), core_schema.str_schema()
            ),
            core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: b64encode(parquet(table)).decode()
            ),
        )

    def __repr__(self) -> str:
        return f"<{len(self):,} measurements>"

    def where(self, **wanted: Any) -> Flags:
        """Which rows have these values in non-numeric fields, shape (n,)."""
        found = np.ones(len(self), dtype=bool)
        for field, value in wanted.items():
            places, values = self.columns[field]
            found &= np.array([one == value for one in values], dtype=bool)[places]
        return found

    def taken(self, rows: Any) -> Measurements:
        """Some rows, by index or mask."""
        return Measurements(
            {
                field: column[rows]
                if field in NUMBERS
                else Coded(column.places[rows], column.values)
                for field, column in self.columns.items()
            }
        )

    def replaced(self, **columns: Column) -> Measurements:
        """Table with some columns replaced."""
        return Measurements(self.columns | columns)

    def cells(self, fields: Names = CELL) -> Indices:
        """Cell number of each row, from 0 in order of first appearance, (n,).

        Rows of one cell have equal ``fields``.
        """
        cell = np.zeros(len(self), dtype=int)
        for field in fields:
            places, values = self.columns[field]
            cell = np.unique(cell * len(values) + places, return_inverse=True)[1]
        first = np.unique(cell, return_index=True)[1]
        return np.argsort(np.argsort(first))[cell]


def numbers(column: Iterable[float | None]) -> Array:
    """Numbers as an array, NaN for None."""
    return np.array(list(column), dtype=float)


def _key(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | tuple) else repr(value)


def _joined(columns: Sequence[Coded]) -> Coded:
    values = Coded.of(value for column in columns for value in column.values)
    moved = np.split(values.places, np.cumsum([len(column.values) for column in columns])[:-1])
    return Coded(
        np.concatenate(
            [places[column.places] for places, column in zip(moved, columns, strict=True)]
        ),
        values.values,
    )


NAMES = "names"
"""Key of the metadata with original names by escaped names."""
LARGEST_INTEGER = 2**63
"""Larger integers have no column type in Parquet; they are text."""
MOST_NAMED = 2**19
"""Copies in the coalitions of a row group, at 16 bytes each."""


def frame(measurements: Measurements) -> pd.DataFrame:
    """DataFrame, with tuples of copies and levels, and mappings of sweep points."""
    return pd.DataFrame(
        {
            name: column.expanded() if isinstance(column, Coded) else column
            for name, column in _columns(measurements).items()
        }
    )


def arrow(measurements: Measurements) -> pa.Table:
    """Table with explicit types, also for empty columns; ``sweep`` is JSON text.

    Names are escaped, as they could control a terminal. The metadata have the originals.
    """
    number, whole, text = pa.float64(), pa.int64(), pa.string()
    types = {
        "coalition": pa.list_(whole),
        "levels": pa.list_(number),
        "replicate": whole,
        "coalition_size": whole,
        "level_min": number,
    }
    arrays = {}
    names: dict[Any, Any] = {}
    for field, column in _columns(measurements).items():
        if not isinstance(column, Coded):
            arrays[visible_on_one_line(field)] = pa.array(column, from_pandas=True)
            continue
        kind, values = types.get(field, text), column.values
        if field == "sweep":
            values = [json.dumps(value) for value in values]
        if field.startswith("sweep.") and not any(isinstance(value, str) for value in values):
            kind = number if any(isinstance(value, float) for value in values) else whole
        if kind == text:
            shown = [value if value is None else visible_on_one_line(value) for value in values]
            pairs = zip(shown, values, strict=True)
            names |= {safe: value for safe, value in pairs if safe != value}
            values = shown
        arrays[visible_on_one_line(field)] = pa.array(values, kind).take(pa.array(column.places))
    return pa.table(arrays, metadata={NAMES: json.dumps(names)} if names else None)


def parquet(measurements: Measurements) -> bytes:
    """Content of a Parquet file; row groups name at most ``MOST_NAMED`` copies."""
    sink = pa.BufferOutputStream()
    longest = max(map(len, measurements.columns["coalition"].values), default=0)
    rows = max(1, MOST_NAMED // max(1, longest))
    pq.write_table(arrow(measurements), sink, row_group_size=rows, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def from_parquet(content: bytes) -> Measurements:
    """Table that ``parquet`` wrote.

    Raises
    ------
    ValueError
        The content is another table, or no Parquet file.
    """
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read(list(Measurement._fields))
        names: dict[Any, str] = json.loads((table.schema.metadata or {}).get(NAMES.encode(), b"{}"))
        columns: Plain = {}
        for field in Measurement._fields:
            found = table[field]
            if field in NUMBERS:
                columns[field] = found.to_numpy()
            else:
                values = map(_hashable, found.to_pylist())
                columns[field] = Coded.of(names.get(each, each) for each in values)
        points = columns["sweep"]
        points.values[:] = map(json.loads, points.values)
        return Measurements(columns)
    except (
        pa.ArrowException,
        OSError,
        RecursionError,
        AttributeError,
        KeyError,
        TypeError,
    ) as error:
        raise ValueError(type(error).__name__) from None


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _columns(measurements: Measurements) -> dict[str, Column]:
    columns = measurements.columns
    coalition, levels, sweep = (columns[field] for field in ("coalition", "levels", "sweep"))
    labels = ["+".join(map(str, held)) for held in coalition.values]
    more = {
        "coalition_label": coalition._replace(values=labels),
        "coalition_size": coalition._replace(values=[len(held) for held in coalition.values]),
        "level_min": levels._replace(values=[min(each, default=None) for each in levels.values]),
    }
    for path in dict.fromkeys(path for point in sweep.values for path in point):
        values = [point.get(path) for point in sweep.values]
        if not all(value is None or _is_number(value) for value in values):
            values = [
                value
                if value is None or isinstance(value, str)
                else json.dumps(value, ensure_ascii=False)
                for value in values
            ]
        more[f"sweep.{path}"] = sweep._replace(values=values)
    return columns | more


def _is_number(value: Any) -> bool:
    whole = type(value) is int and -LARGEST_INTEGER <= value < LARGEST_INTEGER
    return isinstance(value, float) or whole


ESTIMATED = ("redraws", "jackknife", "sampling", "replicates-needed")
"""Error bars that the spread between enough replicates replaces."""
SIGNED = ("collusion_gain", "accuracy_gain", "exact_gain", "named_gain", "belief_gap", "close")
"""Metrics that may be below 0."""


def spread_over_replicates(measurements: Measurements) -> Measurements:
    """Measurements with error bars from five or more replicates.

    The spread between replicates is the error of a single one, with Student's t. Cells with levels that
    differ between replicates count as estimated.
    """
    bars, reasons = measurements.columns["error_bar"], measurements.columns["reason"]
    estimated = [place for place, bar in enumerate(bars.values) if bar in ESTIMATED]
    explained = np.array([reason is not None for reason in reasons.values], dtype=bool)
    replaceable = explained[reasons.places] | _levels_differ(measurements)
    replaceable &= measurements.where(status="ok")
    unknown = np.flatnonzero(np.isin(bars.places, estimated) | replaceable)
    cell = measurements.taken(unknown).cells()
    infinite = ~np.isfinite(measurements.columns["value"][unknown])  # a guarantee, in every draw
    spread = (np.bincount(cell) >= FEWEST_REPLICATES) & (np.bincount(cell, infinite) == 0)
    changed = unknown[spread[cell]]
    if not changed.size:
        return measurements
    some = measurements.taken(changed)
    cell, value = some.cells(), some.columns["value"]
    count = np.bincount(cell)
    squares = (value - (np.bincount(cell, value) / count)[cell]) ** 2
    error = np.sqrt(np.bincount(cell, squares) / (count - 1))
    half = (scipy.special.stdtrit(count - 1, 0.975) * error)[cell]
    signed = [metric in SIGNED for metric in some.column("metric")]
    low = np.where(signed, value - half, np.maximum(0.0, value - half))
    found = {"std_error": error[cell], "ci_low": low, "ci_high": value + half}
    columns = {name: measurements.columns[name].copy() for name in found}
    for name, figures in found.items():
        columns[name][changed] = figures
    return measurements.replaced(
        **columns, error_bar=bars.put(changed, "replicates"), reason=reasons.put(changed, None)
    )


def _levels_differ(measurements: Measurements) -> Flags:
    cell, levels = measurements.cells(), measurements.columns["levels"]
    size = max(1, len(levels.values))
    found = np.unique(cell * size + levels.places) // size  # each cell once per level
    return np.bincount(found, minlength=1)[cell] > 1
