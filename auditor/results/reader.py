"""Reads a results file and trusts nothing in it: who edits one by hand learns what is wrong, and where.

Reports and comparisons may then rely on numbers being finite, coalitions ascending and bins in
order.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from auditor.errors import AuditorError
from auditor.parameters import is_number
from auditor.results import tidy
from auditor.results.measurements import NUMBERS, Measurements
from auditor.results.metrics import RENAMED
from auditor.results.records import (
    SCHEMA_VERSION,
    SCHEMA_VERSION_BESIDE,
    Distribution,
    ErrorBar,
    Measurement,
    Status,
)

LARGEST = 1e150
"""Numbers beyond this are refused: sums of their squares would not be finite."""
COPIES = 2**31
MOST = 1 + 1e-9
"""A share of all records, up to rounding."""
_MISSING = object()

Fault = str | None
"""What a value must be, when it is not; None when it is as it must be."""


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
        raise _no_results(file, "no schema_version")
    if version > SCHEMA_VERSION_BESIDE:
        raise AuditorError(
            f"{file}: schema_version {version} is newer than this program reads ({SCHEMA_VERSION_BESIDE})"
        )
    beside = document.get("measurements") if version == SCHEMA_VERSION_BESIDE else None
    if isinstance(beside, dict):
        document |= {"schema_version": SCHEMA_VERSION, "measurements": []}
    lists = {name: _list(file, document, name) for name in ("measurements", "distributions")}
    if (wrong := _all_finite(document)) is not None:
        raise _no_results(file, wrong)
    document["measurements"] = (
        _table(file, beside)
        if isinstance(beside, dict)
        else [
            _record(file, f"measurements[{i}]", one, _MEASUREMENT)
            for i, one in enumerate(lists["measurements"])
        ]
    )
    document["distributions"] = [
        _record(file, f"distributions[{i}]", one, _DISTRIBUTION)
        for i, one in enumerate(lists["distributions"])
    ]
    return document


def _table(file: Path, beside: dict[str, Any]) -> Measurements:
    """Return the measurements in the file beside; every distinct value is looked at once."""
    name = beside.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise _no_results(file, "measurements.file must be the name of a file beside it")
    try:
        content = (file.parent / name).read_bytes()
    except (OSError, ValueError):  # a NUL byte
        raise AuditorError(
            f"{file.parent / name}: no such file; {file.name} has its measurements there"
        ) from None
    if hashlib.sha256(content).hexdigest() != beside.get("sha256"):
        raise AuditorError(
            f"{file.parent / name}: not the table that {file.name} was written with (its checksum differs)"
        )
    try:
        table = tidy.from_parquet(content)
    except ValueError as error:
        raise _no_results(file.parent / name, str(error)) from None
    for field, check in _MEASUREMENT[1].items():
        column = table.columns[field]
        # Of numbers the least and the largest say whether all are as they must be.
        known = column[~np.isnan(column)] if field in NUMBERS else None
        values = (
            column.values
            if known is None
            else [known.min().item(), known.max().item()]
            if known.size
            else []
        )
        for value in values:
            if (fault := check(value)) is not None:
                raise _no_results(file.parent / name, f"{field} {fault}")
    if (table.columns["ci_low"] > table.columns["ci_high"]).any():
        raise _no_results(file.parent / name, "an interval ends before it begins")
    return table


def _no_results(file: Path, why: str) -> AuditorError:
    return AuditorError(f"{file}: not the results of an audit ({why})")


def _parsed(file: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AuditorError(
            f"{file}: {constant} is not JSON; a figure that was not measured is null"
        )

    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise AuditorError(f"{file}: no such file; expected the results.json of an audit") from None
    except json.JSONDecodeError as error:
        raise AuditorError(
            f"{file}:{error.lineno}:{error.colno}: cannot be read as JSON results ({error.msg})"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise AuditorError(
            f"{file}: cannot be read as JSON results ({type(error).__name__})"
        ) from None


def _list(file: Path, document: dict[str, Any], name: str) -> list[Any]:
    """Take a list out of the document; only the measurements must be there."""
    found = document.pop(name, None if name == "measurements" else [])
    if not isinstance(found, list):
        raise _no_results(file, f"{name} must be a list")
    return found


def _all_finite(value: Any, place: str = "") -> Fault:
    """Look for a number that is too large to reckon with, all the way down, without recursion: a file may be nested deeply."""
    waiting = [(place, value)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [
                (f"{place}.{key}" if place else str(key), item) for key, item in value.items()
            ]
        elif isinstance(value, list):
            waiting += [(f"{place}[{index}]", item) for index, item in enumerate(value)]
        elif is_number(value) and not -LARGEST <= value <= LARGEST:
            return f"{_shown(place)} must be a number of at most {LARGEST:g} in size"
    return None


def _shown(place: str) -> str:
    """Write a place on one line: keys of the file are as foreign as its values."""
    return place if place.isprintable() and len(place) <= 120 else f"{place[:120]!r}"


def _text(value: Any) -> Fault:
    return None if isinstance(value, str) else "must be text"


def _text_or_null(value: Any) -> Fault:
    return None if value is None or isinstance(value, str) else "must be text or null"


def _number(value: Any) -> Fault:
    known = is_number(value)
    return (
        None
        if known and -LARGEST <= value <= LARGEST
        else f"must be a number of at most {LARGEST:g} in size"
    )


def _number_or_null(value: Any) -> Fault:
    return (
        None
        if value is None or _number(value) is None
        else f"must be null or a number of at most {LARGEST:g} in size"
    )


def _error(value: Any) -> Fault:
    return (
        None
        if value is None or (_number(value) is None and value >= 0)
        else "must be null or a number, and not below 0"
    )


def _counting(value: Any) -> Fault:
    return (
        None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < COPIES
        else "must be a whole number from 1"
    )


def _coalition(value: Any) -> Fault:
    listed = isinstance(value, (list, tuple)) and not any(_counting(copy) for copy in value)
    return (
        None
        if listed and all(a < b for a, b in itertools.pairwise(value))
        else "must be a list of copy numbers, ascending from 1"
    )


def _numbers(value: Any) -> Fault:
    return (
        None
        if isinstance(value, (list, tuple)) and not any(_number(one) for one in value)
        else "must be a list of numbers"
    )


def _edges(value: Any) -> Fault:
    ascending = _numbers(value) is None and all(a <= b for a, b in itertools.pairwise(value))
    return (
        None
        if ascending and len(value) >= 2
        else "must be a list of at least two numbers, ascending"
    )


def _shares(value: Any) -> Fault:
    return (
        None
        if _numbers(value) is None and all(0 <= one <= MOST for one in value)
        else "must be a list of shares from 0 to 1"
    )


def _share(value: Any) -> Fault:
    return None if _number(value) is None and 0 <= value <= MOST else "must be a share from 0 to 1"


def _point(value: Any) -> Fault:
    if not isinstance(value, dict):
        return "must be a mapping of swept paths to values"
    return _all_finite(value, "sweep") if value else None


def _one_of(*known: str) -> Callable[[Any], Fault]:
    words = ", ".join(known)
    return lambda value: (
        None if isinstance(value, str) and value in known else f"must be one of {words}"
    )


Checks = tuple[
    Callable[..., Measurement | Distribution],
    dict[str, Callable[[Any], Fault]],
    Callable[[Any], Fault],
]


def _interval(record: Any) -> Fault:
    if record.ci_low is not None and record.ci_high is not None and record.ci_low > record.ci_high:
        return "has an interval that ends before it begins"
    return None


def _bins(record: Any) -> Fault:
    return (
        None
        if len(record.edges) == len(record.shares) + 1
        else "must have one share between every two edges"
    )


_MEASUREMENT: Checks = (
    Measurement,
    {
        "sweep": _point,
        "scheme": _text,
        "knowledge": _text_or_null,
        "attack": _text_or_null,
        "coalition": _coalition,
        "levels": _numbers,
        "replicate": _counting,
        "attribute": _text,
        "metric": _text,
        "value": _number_or_null,
        "std_error": _error,
        "ci_low": _number_or_null,
        "ci_high": _number_or_null,
        "theory": _number_or_null,
        "status": _one_of(*get_args(Status)),
        "reason": _text_or_null,
        "error_bar": _one_of(*get_args(ErrorBar)),
    },
    _interval,
)
_DISTRIBUTION: Checks = (
    Distribution,
    {
        "sweep": _point,
        "scheme": _text,
        "knowledge": _text,
        "attack": _text,
        "coalition": _coalition,
        "replicate": _counting,
        "attribute": _text,
        "edges": _edges,
        "shares": _shares,
        "above": _share,
    },
    _bins,
)
_LEFT_OUT = {
    "error_bar": "none",
    "value": None,
    "std_error": None,
    "ci_low": None,
    "ci_high": None,
    "theory": None,
    "reason": None,
}
"""What another version, or another program, may leave out."""


def _record(file: Path, place: str, given: Any, checks: Checks) -> Any:
    """Return one record of a list; fields that this version does not know are passed over."""
    kind, fields, whole = checks
    if not isinstance(given, dict):
        raise _no_results(file, f"{place} must be a record of named fields")
    values = []
    for field, check in fields.items():
        value = given.get(field, _LEFT_OUT.get(field, _MISSING))
        if value is None and field == "error_bar":
            value = "none"
        if value is _MISSING:
            raise _no_results(file, f"{place}.{field} is missing")
        if (fault := check(value)) is not None:
            raise _no_results(file, f"{place}.{field} {fault}")
        values.append(
            tuple(value)
            if isinstance(value, list)
            else RENAMED.get(value, value)
            if field == "metric"
            else value
        )
    record = kind(*values)
    if (fault := whole(record)) is not None:
        raise _no_results(file, f"{place} {fault}")
    return record
