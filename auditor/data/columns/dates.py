"""Dates as numbers: days since 1970-01-01, with fractions for times of day, so that they can be perturbed and audited; and back again.

Of text only what ISO 8601 writes (``2020-01-31``, ``2020-01-31 10:30``) is a date: ``01/02/2020`` may be either of two days.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from auditor.types import Array

SINCE = "days since 1970-01-01"
SECONDS = 86_400
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?")
_OF_DATES = ("date", "datetime", "datetime64")


def in_days(column: pd.Series[Any]) -> Array | None:
    """Return dates as days since 1970-01-01, NaN for blanks, shape (n,); None if any cell is something else, or nothing tells.

    Examples
    --------
    >>> in_days(pd.Series(["1970-01-02", None, "1970-01-03 12:00"])).tolist()
    [1.0, nan, 2.5]
    >>> in_days(pd.Series(["31.12.2020"])), in_days(pd.Series([18]))
    (None, None)
    """
    if pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return None
    there = column.dropna()
    if not len(there) and pd.api.types.is_datetime64_any_dtype(column.dtype):
        return np.full(len(column), np.nan)
    kind = pd.api.types.infer_dtype(there, skipna=True)
    if not len(there) or kind not in (*_OF_DATES, "string"):
        return None
    if kind == "string" and not (_ISO.fullmatch(str(there.iloc[0])) and bool(there.str.fullmatch(_ISO.pattern).all())):
        return None
    try:
        # a file's own times are of one zone; where it names one, in that of Greenwich
        times = pd.to_datetime(there, format="ISO8601" if kind == "string" else None, utc=True)
    except (ValueError, OverflowError, TypeError):  # 2020-02-31
        return None
    days = np.full(len(column), np.nan)
    days[column.notna().to_numpy(dtype=bool)] = times.dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64) / (SECONDS * 1e6)
    return days


def as_dates(days: Array, whole: bool) -> pd.Series[Any]:
    """Return days since 1970-01-01 as dates, to the nearest day or second; blanks stay blank.

    Raises
    ------
    ValueError
        A date is before the year 1 or after 9999, and nobody could read it.
    """
    unit = SECONDS if whole else 1
    seconds = np.rint(days * SECONDS / unit) * unit
    if not (np.isnan(seconds) | ((seconds >= _BOUNDS[0]) & (seconds <= _BOUNDS[1]))).all():
        raise ValueError("a date before the year 1 or after 9999")
    times = np.full(len(days), np.datetime64("NaT"), dtype="datetime64[s]")
    there = ~np.isnan(seconds)
    times[there] = seconds[there].astype(np.int64).astype("datetime64[s]")
    return pd.Series(times)


_BOUNDS = tuple(float(np.datetime64(each, "s").astype(np.int64)) for each in ("0001-01-01T00:00:00", "9999-12-31T23:59:59"))
