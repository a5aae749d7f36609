"""Reading of stored results, in which nothing is trusted."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from auditor.base import AuditorError
from auditor.registry.parameters import expected_by, format_path, shortened
from auditor.results.measurements import NUMBERS, Measurements, from_parquet
from auditor.results.metrics import RENAMED
from auditor.results.records import (
    SCHEMA_VERSION,
    SCHEMA_VERSION_BESIDE,
    Distribution,
    Measurement,
    Picture,
    too_large,
)

_LEFT_OUT = ("value", "std_error", "ci_low", "ci_high", "theory", "reason", "error_bar")
"""Fields that another version, or another program, may leave out."""


def no_results(file: Path, why: str | ValidationError) -> AuditorError:
    """Error of a file that holds no results, without any of its values."""
    if isinstance(why, ValidationError):
        first = why.errors(include_url=False)[0]
        why = f"{shortened(format_path(first['loc']), 120)} {expected_by(first)}"
    return AuditorError(f"{file}: not the results of an audit ({why})")


def read(file: Path) -> dict[str, Any]:
    """Document with its measurements and distributions as records.

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
    """Records of a list; other versions may leave out fields, or have more."""
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
