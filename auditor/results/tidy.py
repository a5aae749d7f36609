"""Measurements as one tidy table, with scalar columns to filter and group by.

Neither pandas nor R nor SQL groups by a list or a mapping. So every row also has

================== =====================================================================
``coalition_label`` the copies, as ``1+3``; empty without a coalition
``coalition_size``  number of copies
``level_min``       the smallest of their levels; missing without levels
``sweep.PATH``      one column for each swept path, as ``sweep.data.rows``
================== =====================================================================

A swept path's column has numbers if every value is one, otherwise text. Other values are JSON.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from auditor.process.deferred import pa, pd, pq
from auditor.results.measurements import NUMBERS, Coded, Column, Measurements
from auditor.results.records import Measurement
from auditor.text.safe_text import visible_on_one_line

NAMES = "names"
"""Key of the metadata with original names by escaped names."""
LARGEST_INTEGER = 2**63
"""Larger integers have no column type in Parquet; they are text."""
MOST_NAMED = 2**19
"""Copies in the coalitions of a row group, at 16 bytes each."""


def frame(measurements: Measurements) -> pd.DataFrame:
    """Return a DataFrame, with tuples of copies and levels, and mappings of sweep points."""
    return pd.DataFrame(
        {
            name: column.expanded() if isinstance(column, Coded) else column
            for name, column in _columns(measurements).items()
        }
    )


def arrow(measurements: Measurements) -> pa.Table:
    """Return the table with explicit types, also for empty columns; ``sweep`` is JSON text.

    Names come from files, and must not control the terminal that prints the table. So they are
    escaped, and the metadata have the originals.
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
            arrays[visible_on_one_line(field)] = pa.array(column, number, from_pandas=True)
            continue
        kind, values = types.get(field, text), column.values
        if field == "sweep":
            values = [json.dumps(value) for value in values]
        if field.startswith("sweep.") and not any(isinstance(value, str) for value in values):
            kind = None  # numbers of any type
        if kind == text:
            shown = [value if value is None else visible_on_one_line(value) for value in values]
            pairs = zip(shown, values, strict=True)
            names |= {safe: value for safe, value in pairs if safe != value}
            values = shown
        arrays[visible_on_one_line(field)] = pa.array(values, kind).take(pa.array(column.places))
    return pa.table(arrays, metadata={NAMES: json.dumps(names)} if names else None)


def parquet(measurements: Measurements) -> bytes:
    """Return the content of a Parquet file; row groups name at most ``MOST_NAMED`` copies."""
    sink = pa.BufferOutputStream()
    longest = max(map(len, measurements.columns["coalition"].values), default=0)
    rows = max(1, MOST_NAMED // max(1, longest))
    parts = (
        arrow(measurements.taken(slice(start, start + rows)))
        for start in range(0, max(1, len(measurements)), rows)
    )
    first = next(parts)
    with pq.ParquetWriter(sink, first.schema, compression="zstd") as writer:
        for part in chain([first], parts):
            writer.write_table(part)
    return bytes(sink.getvalue().to_pybytes())


def from_parquet(content: bytes) -> Measurements:
    """Return the table that ``parquet`` wrote.

    Raises
    ------
    ValueError
        The content is no Parquet file, or another table.
    """
    try:
        table = pq.read_table(pa.BufferReader(content), columns=list(Measurement._fields))
        names: dict[Any, str] = json.loads((table.schema.metadata or {}).get(NAMES.encode(), b"{}"))
        columns: dict[str, Any] = {}
        for field, found in zip(
            Measurement._fields, table.select(Measurement._fields).itercolumns(), strict=True
        ):
            if field in NUMBERS:
                columns[field] = found.cast(pa.float64()).to_numpy()
            else:
                values = (
                    tuple(value) if isinstance(value, list) else names.get(value, value)
                    for value in found.to_pylist()
                )
                columns[field] = Coded.of(values)
        points = columns["sweep"]
        return Measurements(
            columns
            | {"sweep": points._replace(values=[json.loads(point) for point in points.values])}
        )
    except (
        pa.ArrowException,
        OSError,
        RecursionError,
        AttributeError,
        KeyError,
        TypeError,
    ) as error:
        raise ValueError(type(error).__name__) from None


def _columns(measurements: Measurements) -> dict[str, Column]:
    """Return the table's columns, and those to group by."""
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
