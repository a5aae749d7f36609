"""Stored results: tidy tables, and reading in which nothing is trusted.

Reports and comparisons rely on finite numbers, ascending coalitions and bins in order. Neither
pandas nor R nor SQL groups by a list or a mapping. So every row of a tidy table also has

================== =====================================================================
``coalition_label`` the copies, as ``1+3``; empty without a coalition
``coalition_size``  number of copies
``level_min``       the smallest of their levels; missing without levels
``sweep.PATH``      one column for each swept path, as ``sweep.data.rows``
================== =====================================================================

A swept path's column has numbers if every value is one, otherwise text. Other values are JSON.
"""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from auditor.base.errors import AuditorError
from auditor.base.text import visible_on_one_line
from auditor.process.deferred import pa, pd, pq
from auditor.registry.parameters import expected_by, format_path, shortened
from auditor.results.measurements import NUMBERS, Coded, Column, Measurements
from auditor.results.metrics import RENAMED
from auditor.results.records import (
    SCHEMA_VERSION,
    SCHEMA_VERSION_BESIDE,
    Distribution,
    Measurement,
    Picture,
    too_large,
)

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


_LEFT_OUT = ("value", "std_error", "ci_low", "ci_high", "theory", "reason", "error_bar")
"""Fields that another version, or another program, may leave out."""


def no_results(file: Path, why: str | ValidationError) -> AuditorError:
    """Return the error of a file that holds no results, without any of its values."""
    if isinstance(why, ValidationError):
        first = why.errors(include_url=False)[0]
        why = f"{shortened(format_path(first['loc']), 120)} {expected_by(first)}"
    return AuditorError(f"{file}: not the results of an audit ({why})")


def read(file: Path) -> dict[str, Any]:
    """Return the document with its measurements and distributions as records.

    Raises
    ------
    AuditorError
        The file is missing, is not an audit's results or by a newer version of the program, or
        holds a value that no audit writes.
    """
    parsed = _parsed(file)
    document: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    version = document.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise no_results(file, "no schema_version")
    if version > SCHEMA_VERSION_BESIDE:
        newest = f"newer than this program reads ({SCHEMA_VERSION_BESIDE})"
        raise AuditorError(f"{file}: schema_version {version} is {newest}")
    if (wrong := too_large(document)) is not None:
        raise no_results(file, wrong)
    found: Any = document.get("measurements")
    if version == SCHEMA_VERSION_BESIDE and isinstance(found, dict):
        document |= {"schema_version": SCHEMA_VERSION, "measurements": _table(file, found)}
    else:
        document["measurements"] = _records(file, "measurements", found, Measurement)
    for name, record in (("distributions", Distribution), ("pictures", Picture)):
        document[name] = _records(file, name, document.get(name, []), record)
    table = document["measurements"] = Measurements.of(document["measurements"])
    if len(wrong_at := np.flatnonzero(table.columns["ci_low"] > table.columns["ci_high"])):
        why = "has an interval that ends before it begins"
        raise no_results(file, f"measurements[{wrong_at[0]}] {why}")
    for place, spread in enumerate(document["distributions"]):
        if len(spread.edges) != len(spread.shares) + 1:
            why = "must have one share between every two edges"
            raise no_results(file, f"distributions[{place}] {why}")
    for place, picture in enumerate(document["pictures"]):
        whole = [picture.original, picture.estimate, *([picture.shown] if picture.shown else [])]
        ends = [[0, *(stop for _, stop, _ in bins)] for bins in whole]
        joined = [[*(first for first, _, _ in bins), picture.cells] for bins in whole]
        pairs = [one[at : at + 2] for one in picture.joint for at in (0, 2)]
        pairs += [one[:2] for bins in whole for one in bins]
        if ends != joined or any(not 0 <= a < b <= picture.cells for a, b in pairs):
            raise no_results(file, f"pictures[{place}] has bins that are no runs of its cells")
    return document


def _records(file: Path, name: str, found: Any, record: Any) -> list[Any]:
    """Return the records of a list; other versions may leave out fields, or have more."""
    rows = found if isinstance(found, list) else [found]
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            what = f"[{place}] must be a mapping" if rows is found else " must be a list"
            raise no_results(file, f"{name}{what}")
    absent = dict.fromkeys(field for field in _LEFT_OUT if field in record._fields)
    full = [
        {field: value for field, value in (absent | row).items() if field in record._fields}
        for row in rows
    ]
    for row in full if "error_bar" in absent else ():
        row["error_bar"] = row["error_bar"] or "none"
    try:
        adapter: Any = TypeAdapter(dict[str, list[record]])
        read: list[Any] = adapter.validate_json(to_json({name: full}), strict=True)[name]
    except ValidationError as error:
        raise no_results(file, error) from None
    if record is not Measurement:
        return read
    return [row._replace(metric=RENAMED.get(row.metric, row.metric)) for row in read]


def _table(file: Path, beside: dict[str, Any]) -> Measurements:
    name = beside.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise no_results(file, "measurements.file must be the name of a file beside it")
    path = file.parent / name
    try:
        content = path.read_bytes()
    except (OSError, ValueError):  # a NUL byte
        why = f"{file.name} has its measurements there"
        raise AuditorError(f"{path}: no such file; {why}") from None
    if hashlib.sha256(content).hexdigest() != beside.get("sha256"):
        why = f"{file.name} was written with (its checksum differs)"
        raise AuditorError(f"{path}: not the table that {why}")
    try:
        table = from_parquet(content)
    except ValueError as error:
        raise no_results(path, str(error)) from None
    for field, hint in get_type_hints(Measurement, include_extras=True).items():
        column = table.columns[field]
        values = column[~np.isnan(column)].tolist() if field in NUMBERS else column.values
        column_type: Any = list.__class_getitem__(hint)
        try:
            TypeAdapter(column_type).validate_python(values, strict=True)
        except ValidationError as error:
            raise no_results(path, f"{field} {expected_by(error.errors()[0])}") from None
    return table


def _parsed(file: Path) -> Any:
    def refuse(constant: str) -> None:
        why = "is not JSON; a figure that was not measured is null"
        raise AuditorError(f"{file}: {constant} {why}")

    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise AuditorError(f"{file}: no such file; expected the results.json of an audit") from None
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise AuditorError(f"{where}: cannot be read as JSON results ({error.msg})") from None
    except (OSError, ValueError, RecursionError) as error:
        why = type(error).__name__
        raise AuditorError(f"{file}: cannot be read as JSON results ({why})") from None
