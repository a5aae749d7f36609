"""Section ``data``: source and preparation of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from auditor import registry
from auditor.data.columns.categorical_table import parse_bins, parse_domains
from auditor.data.columns.checks import LARGEST_VARIANCE
from auditor.data.columns.dates import parse_dates
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.request import DataUse
from auditor.errors import AuditorError, did_you_mean, shortened
from auditor.parameters import is_number, is_whole, shown, whole
from auditor.results.files import located
from auditor.scenario.problems import Path, Problems
from auditor.scenario.read_hierarchies import parse_hierarchies
from auditor.scenario.read_plugins import plugin_parameters

DATA_FIELDS = (
    "source",
    "columns",
    "order",
    "key",
    "rows",
    "missing",
    "standardize",
    "disclosure",
    "bin",
    "categorical",
    "dates",
    "hierarchies",
    "bounds",
    "first-batch",
)
MISSING = ("refuse", "drop", "mean")
DISCLOSURE = ("rounded", "public", "moments", "figures")
"""Of which ``moments`` and ``figures``, of earlier scenarios, are read as ``rounded``."""
MOST_ROWS = 10**9
"""Limit against typing errors: two columns would need 16 GB."""
LARGEST_SPAN = math.sqrt(LARGEST_VARIANCE)
"""Limit because squared spans are divided by noise variances up to `LARGEST_VARIANCE`."""


def read_data(value: Any, problems: Problems, base: FilePath | None) -> DataUse | None:
    """Return the section ``data`` or None, and report its errors.

    A file is searched in ``base``, then in the working directory. It is not opened.
    """
    if isinstance(value, str):
        value = {"source": value}
    if not isinstance(value, dict):
        problems.add(
            ("data",),
            f"must be a source's name, a path or a mapping with `source`; got {shown(value)}",
        )
        return None
    source = value.get("source")
    if not isinstance(source, str):
        problems.add(
            ("data", "source"), "is required: a registered source, or a path to a file of data"
        )
        return None
    columns = _columns(value.get("columns"), problems)
    rows = whole(value.get("rows"))
    if rows is not None and not is_whole(rows, 2, MOST_ROWS):
        problems.add(
            ("data", "rows"), f"must be an integer from 2 to {MOST_ROWS:,}; got {shown(rows)}"
        )
    first_batch = whole(value.get("first-batch"))
    if first_batch is not None and not is_whole(first_batch, 2):
        problems.add(
            ("data", "first-batch"),
            f"must be an integer of at least 2, records of the first batch; got {shown(first_batch)}",
        )
    missing = _one_of("missing", MISSING, value, problems)
    disclosure: Any = (
        "public" if _one_of("disclosure", DISCLOSURE, value, problems) == "public" else "rounded"
    )
    standardize = value.get("standardize", False)
    if not isinstance(standardize, bool):
        problems.add(("data", "standardize"), f"must be true or false; got {shown(standardize)}")
    own = {key: item for key, item in value.items() if key not in DATA_FIELDS}
    parameters = _source_parameters(source, own, problems, base)
    bins = problems.attempt(("data", "bin"), parse_bins, value.get("bin") or {}) or {}
    categorical = (
        problems.attempt(("data", "categorical"), parse_domains, value.get("categorical") or {})
        or {}
    )
    dates = problems.attempt(("data", "dates"), parse_dates, value.get("dates") or {}) or {}
    for name in dates:
        if name in categorical:
            problems.add(("data", "dates", name), "cannot be taken as categories as well", key=True)
    hierarchies = parse_hierarchies(value.get("hierarchies"), problems)
    for name in hierarchies:
        if name in bins or name in categorical or name in dates or standardize is True:
            problems.add(
                ("data", "hierarchies", name),
                "cannot be binned, standardized or taken as categories or dates as well",
                key=True,
            )
    key = value.get("key")
    if key is not None and not isinstance(key, str):
        problems.add(("data", "key"), f"must be a column's name; got {shown(key)}")
        key = None
    audited = None if columns is None else (*columns, *dates, *hierarchies, *categorical)
    bounds = read_bounds(("data", "bounds"), value.get("bounds"), audited, problems)
    if bounds and standardize is True:
        problems.add(
            ("data", "bounds"),
            "are stated in the data's own units, which `standardize` takes away; leave one out",
            key=True,
        )
    order = _order(
        value.get("order"), (*(columns or ()), *bins, *categorical, *dates, *hierarchies), problems
    )
    return DataUse(
        source=source,
        columns=columns,
        rows=rows,
        missing=missing,
        standardize=bool(standardize),
        disclosure=disclosure,
        parameters=parameters,
        bins=bins,
        categorical=categorical,
        dates=dates,
        hierarchies=hierarchies,
        order=order,
        key=key,
        bounds=bounds,
        first_batch=first_batch,
    )


def _one_of(
    name: str, choices: tuple[str, ...], section: dict[str, Any], problems: Problems
) -> str:
    value = section.get(name, choices[0])
    if value not in choices:
        problems.add(
            ("data", name),
            f"must be one of {', '.join(choices)}; got {shown(value)}{did_you_mean(value, choices)}",
        )
    return str(value)


def _columns(value: Any, problems: Problems) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = problems.sequence(("data", "columns"), value)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            problems.add(("data", "columns", place), f"must be a column's name; got {shown(name)}")
        elif name in names[:place]:
            problems.add(("data", "columns", place), f"repeats column {name!r}")
    return tuple(name for name in names if isinstance(name, str))


def read_bounds(
    at: Path, value: Any, known: Sequence[str] | None, problems: Problems
) -> dict[str, tuple[float, float]]:
    """Return bounds by column; ``known`` are the audited columns, if stated."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.add(at, f"must map columns to [low, high]; got {shown(value)}")
        return {}
    found = {}
    for name, ends in value.items():
        if known is not None and name not in known:
            problems.add(
                (*at, name),
                f"names a column that is not audited{did_you_mean(name, known)}",
                key=True,
            )
        elif not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_finite, ends)):
            problems.add((*at, name), f"must be [low, high], two finite numbers; got {shown(ends)}")
        elif not 0 < float(ends[1]) - float(ends[0]) <= LARGEST_SPAN:
            problems.add(
                (*at, name), f"needs low < high, at most {LARGEST_SPAN:g} apart; got {shown(ends)}"
            )
        else:
            found[name] = (float(ends[0]), float(ends[1]))
    return found


def _is_finite(value: Any) -> bool:
    return is_number(value) and bool(-1e300 <= value <= 1e300)  # false for NaN


def _order(value: Any, audited: tuple[str, ...], problems: Problems) -> str | None:
    if value is not None and not isinstance(value, str):
        problems.add(("data", "order"), f"must be a column's name; got {shown(value)}")
    elif value in audited:
        problems.add(
            ("data", "order"),
            f"names column {value!r}, which is audited: records are put in the order of a column that is not",
        )
    else:
        return value
    return None


def _source_parameters(
    source: str, own: dict[str, Any], problems: Problems, base: FilePath | None
) -> dict[str, Any]:
    if registry.has("source", source):
        model = plugin_parameters(
            ("data",), own, registry.get("source", source).Parameters, DATA_FIELDS, problems
        )
        return {} if model is None else model.model_dump(mode="json", by_alias=True)
    for key in own:
        problems.add(
            ("data", key), f"is not a known field{did_you_mean(key, DATA_FIELDS)}", key=True
        )
    try:
        there = located(source, base)
    except AuditorError as error:
        problems.add(("data", "source"), f"cannot be used: {error}")
        return {}
    parts = any(path.is_dir() for path in there)
    given = shortened(repr(source), 120)
    if not source.lower().endswith(SUFFIXES) and not (parts and is_path(source)):
        hint = (
            f"; write {source + '/'!r} for the folder of that name"
            if parts
            else did_you_mean(source, registry.names("source"))
        )
        problems.add(
            ("data", "source"),
            f"must be a registered source or a path to {SAID}; got {given}{hint}",
        )
    elif not there:
        problems.add(("data", "source"), f"names a file that is not there: {given}")
    return {}


def is_path(source: str) -> bool:
    """Return whether a source without suffix is a folder's path."""
    return "/" in source or "\\" in source
