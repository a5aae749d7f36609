"""Measurements as one tidy table: their own fields, and scalar columns besides to filter and group by.

A coalition and a sweep point are a list and a mapping, which neither pandas nor R nor SQL groups by. So every row also says

================== =====================================================================
``coalition_label`` the copies held, as ``1+3``; empty where the record is of no coalition
``coalition_size``  how many they are
``level_min``       the smallest of their levels; missing where they have none
``sweep.PATH``      one column a swept path, as ``sweep.data.rows``
================== =====================================================================

A swept path's column holds numbers where every value is one, and text elsewhere: what is no text stands there as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from auditor.results.records import Measurement
from auditor.text.safe_text import visible_on_one_line

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LARGEST_INTEGER = 2**63
"""Integers from here on have no column type of their own in Parquet, and stand there as text."""


def frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """Return the table as pandas has it: ``coalition`` and ``levels`` as tuples, ``sweep`` as a mapping."""
    import pandas as pd

    return pd.DataFrame(measurements, columns=list(Measurement._fields)).assign(**_grouping(measurements))


def arrow(measurements: Sequence[Measurement]) -> pa.Table:
    """Return the table with explicit types, so that an empty or all-null column keeps its own; ``sweep`` is JSON text."""
    import pyarrow as pa

    number, whole, text = pa.float64(), pa.int64(), pa.string()
    types = {
        "coalition": pa.list_(whole), "levels": pa.list_(number), "replicate": whole, "coalition_size": whole, "level_min": number,
        **dict.fromkeys(("value", "std_error", "ci_low", "ci_high", "theory"), number),
    }  # fmt: skip
    columns = list(zip(*measurements, strict=True)) if measurements else [()] * len(Measurement._fields)
    cells: dict[str, Sequence[Any]] = dict(zip(Measurement._fields, columns, strict=True))
    cells["sweep"] = [json.dumps(value) for value in cells["sweep"]]
    arrays = {}
    for field, values in (cells | _grouping(measurements)).items():
        kind = types.get(field, text)
        if field.startswith("sweep.") and not any(isinstance(value, str) for value in values):
            kind = None  # numbers of whichever type they are
        arrays[visible_on_one_line(field)] = pa.array(_safe(values) if kind == text else list(values), type=kind)
    return pa.table(arrays)


def _safe(values: Sequence[str | None]) -> list[str | None]:
    """Escape names: they come from files, and whoever prints the table must not be steered by them."""
    safe = {name: None if name is None else visible_on_one_line(name) for name in set(values)}
    return [safe[name] for name in values]


def _grouping(measurements: Sequence[Measurement]) -> dict[str, list[Any]]:
    """Return the columns to group by."""
    paths = dict.fromkeys(path for record in measurements for path in record.sweep)
    return {
        "coalition_label": ["+".join(map(str, record.coalition)) for record in measurements],
        "coalition_size": [len(record.coalition) for record in measurements],
        "level_min": [min(record.levels, default=None) for record in measurements],
        **{f"sweep.{path}": _scalars([record.sweep.get(path) for record in measurements]) for path in paths},
    }


def _scalars(values: Sequence[Any]) -> list[Any]:
    """Return swept values as one column can hold them: as they are if all are numbers, else as text; None where there is none."""
    if all(value is None or _is_number(value) for value in values):
        return list(values)
    return [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and -LARGEST_INTEGER <= value < LARGEST_INTEGER)
