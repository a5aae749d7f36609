"""Measurements as one tidy table: their own fields, and scalar columns besides to filter and group by.

A coalition and a sweep point are a list and a mapping, which neither pandas nor R nor SQL groups
by. So every row also says

================== =====================================================================
``coalition_label`` the copies held, as ``1+3``; empty where the record is of no coalition
``coalition_size``  how many they are
``level_min``       the smallest of their levels; missing where they have none
``sweep.PATH``      one column a swept path, as ``sweep.data.rows``
================== =====================================================================

A swept path's column holds numbers where every value is one, and text elsewhere: what is no text
stands there as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import pa, pd, pq
from auditor.results.measurements import NUMBERS, Coded, Column, Measurements
from auditor.results.records import Measurement
from auditor.text.safe_text import visible_on_one_line

NAMES = "names"
"""Key of the metadata that have names as they are, by what stands for each in the table."""
LARGEST_INTEGER = 2**63
"""Integers from here on have no column type of their own in Parquet, and stand there as text."""
MOST_NAMED = 2**19
"""Copies that the coalitions of rows held as a table may name: each, with its level, takes 16 bytes
there."""


def frame(measurements: Measurements) -> pd.DataFrame:
    """Return the table as pandas has it: ``coalition`` and ``levels`` as tuples, ``sweep`` as a mapping."""
    columns = _columns(measurements).items()
    return pd.DataFrame(
        {
            name: column.expanded() if isinstance(column, Coded) else column
            for name, column in columns
        }
    )


def arrow(measurements: Measurements) -> pa.Table:
    """Return the table with explicit types, so that an empty or all-null column keeps its own; ``sweep`` is JSON text.

    Names stand in it escaped: they come from files, and whoever prints the table must not be
    steered by them. The metadata have them as they are.
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
        if isinstance(column, Coded):
            kind, values = types.get(field, text), column.values
            if field == "sweep":
                values = [json.dumps(value) for value in values]
            if field.startswith("sweep.") and not any(isinstance(value, str) for value in values):
                kind = None  # numbers of whichever type they are
            if kind == text:
                shown = [value if value is None else visible_on_one_line(value) for value in values]
                names |= {
                    safe: value for safe, value in zip(shown, values, strict=True) if safe != value
                }
                values = shown
            found = _array(values, kind).take(_numbers(column.places))
        else:
            found = _numbers(column, ~np.isnan(column))  # NaN, of which a record has None, is null
        arrays[visible_on_one_line(field)] = found
    return pa.table(arrays, metadata={NAMES: json.dumps(names)} if names else None)


def _array(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    """Return what ``pa.array`` does of numbers, texts, lists of numbers and None, but for what that imports first: pandas, for 0.25 s."""
    known = np.array([value is not None for value in values], dtype=bool)
    if kind is None or not (pa.types.is_string(kind) or pa.types.is_list(kind)):
        if kind is None and not known.any():
            return pa.nulls(len(values))
        numbers = [0 if value is None else value for value in values]
        return _numbers(np.array(numbers, None if kind is None else kind.to_pandas_dtype()), known)
    text = pa.types.is_string(kind)
    parts = [(value or "").encode() if text else value or () for value in values]
    whole = np.array(
        [part for each in parts for part in each],
        np.uint8 if text else kind.value_type.to_pandas_dtype(),
    )
    buffers = [_bits(known), pa.py_buffer(np.cumsum([0, *map(len, parts)], dtype=np.int32))]
    if text:
        return pa.Array.from_buffers(kind, len(parts), [*buffers, pa.py_buffer(whole)])
    return pa.Array.from_buffers(kind, len(parts), buffers, children=[_numbers(whole)])


def _numbers(numbers: NDArray[Any], known: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers as Arrow has them; those not known are null."""
    whole = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(whole.dtype), len(whole), [_bits(known), pa.py_buffer(whole)]
    )


def _bits(known: NDArray[np.bool_] | None) -> pa.Buffer | None:
    return (
        None
        if known is None or known.all()
        else pa.py_buffer(np.packbits(known, bitorder="little"))
    )


def parquet(measurements: Measurements) -> bytes:
    """Return the table as the content of a Parquet file, in row groups that each name so many copies at most (``MOST_NAMED``)."""
    sink, longest = (
        pa.BufferOutputStream(),
        max(map(len, measurements.columns["coalition"].values), default=0),
    )
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
        It is no Parquet file, or one of another table.
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
    paths = dict.fromkeys(path for point in sweep.values for path in point)
    return columns | {
        "coalition_label": coalition._replace(
            values=["+".join(map(str, held)) for held in coalition.values]
        ),
        "coalition_size": coalition._replace(values=[len(held) for held in coalition.values]),
        "level_min": levels._replace(values=[min(each, default=None) for each in levels.values]),
        **{
            f"sweep.{path}": sweep._replace(
                values=_scalars([point.get(path) for point in sweep.values])
            )
            for path in paths
        },
    }


def _scalars(values: Sequence[Any]) -> list[Any]:
    """Return swept values as one column can hold them: as they are if all are numbers, else as text; None where there is none."""
    if all(value is None or _is_number(value) for value in values):
        return list(values)
    return [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (
        type(value) is int and -LARGEST_INTEGER <= value < LARGEST_INTEGER
    )
