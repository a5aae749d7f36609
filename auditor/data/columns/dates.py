"""Convert dates to days since 1 January 1970 (UTC, with fractions) and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from auditor.base.errors import DataError
from auditor.base.text import nearest, quoted
from auditor.base.types import Array
from auditor.data.columns.checks import Series, by_column, cells_where, kind_of
from auditor.process.deferred import pd

SECONDS = 86_400
SINCE = "days since 1970-01-01"
_ISO = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?"
_READABLE = tuple(
    float(np.datetime64(each, "s").astype(np.int64))
    for each in ("0001-01-01T00:00:00", "9999-12-31T23:59:59")
)
"""Seconds since 1970 of the first and the last date with a year of four digits."""
_TRIED = datetime(2003, 12, 31)
"""Test day for formats: its parts are all different."""
READABLE = ("numbers", "text", "dates", "categories")
"""Kinds of columns that may hold days: numbers, text, or typed dates."""


def days_of(column: Series, form: str | None = None) -> Series:
    """Dates as days, shape (n,); NaN if unreadable or missing.

    Numbers are days already. ``form``: format of text, like ``%d/%m/%Y``; by default ISO 8601.

    Examples
    --------
    >>> days_of(pd.Series(["1970-01-02", "1970-01-03T12:00", None])).tolist()
    [1.0, 2.5, nan]
    """
    if kind_of(column) == "numbers":
        return column
    # not `now`, `today` or a month's name
    if kind_of(column) in ("text", "categories"):
        column = column.astype(object).where(column.astype(object).astype(str).str.contains(r"\d"))
    times = pd.to_datetime(column, format=form or "ISO8601", utc=True, errors="coerce")
    days: Series = (times - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
    return days


def plain_days(column: Series) -> Series | None:
    """Days of a column of dates, typed or full ISO 8601; else None.

    Examples
    --------
    >>> plain_days(pd.Series(["1970-01-02", None])).tolist()
    [1.0, nan]
    >>> plain_days(pd.Series(["31.12.2020"])), plain_days(pd.Series(["2020"])), plain_days(pd.Series([18]))
    (None, None, None)
    """
    there = column.dropna()
    if kind_of(column) not in ("text", "dates") or there.empty:
        return None
    if kind_of(column) == "text" and not there.astype(str).str.fullmatch(_ISO).all():
        return None
    days = days_of(column)
    return None if (days.isna() & column.notna()).any() else days


def as_dates(days: Array, whole: bool) -> Series:
    """Days as dates, rounded to the day or second, shape (n,).

    Raises
    ------
    ValueError
        A date is before the year 1 or after 9999.
    """
    unit = SECONDS if whole else 1
    seconds = np.rint(days * SECONDS / unit) * unit
    if ((seconds < _READABLE[0]) | (seconds > _READABLE[1])).any():
        raise ValueError("a date before the year 1 or after 9999")
    return pd.Series(seconds.astype(np.int64).astype("datetime64[s]"))


def in_days(frame: pd.DataFrame, dates: Mapping[str, str | None]) -> pd.DataFrame:
    """Frame with columns of dates as days; format None is ISO 8601.

    Raises
    ------
    DataError
        A column is unknown, or a cell is no date of its format.
    """
    return (
        frame.assign(**{name: _column(frame, name, form) for name, form in dates.items()})
        if dates
        else frame
    )


def _column(frame: pd.DataFrame, name: str, form: str | None) -> Series:
    if name not in frame:
        raise DataError(
            f"there is no column {quoted(name)} of dates{nearest(name, map(str, frame))}",
            ("dates",),
        )
    column = frame[name]
    if kind_of(column) not in READABLE:
        raise DataError(
            f"column {quoted(name)} holds {kind_of(column)}, not dates", ("dates", name)
        )
    days = days_of(column, form)
    unread = (days.isna() & column.notna()).to_numpy()
    if unread.any():
        where = cells_where(unread, "cell")
        what = "of the format " + quoted(form) if form else "by ISO 8601 (year-month-day)"
        raise DataError(
            f"column {quoted(name)} holds what is no date {what} ({where})", ("dates", name)
        )
    return days


def parse_dates(value: Any) -> dict[str, str | None]:
    """Read ``data.dates``: a column, columns, or a mapping to formats.

    A null format is ISO 8601.

    Raises
    ------
    ValueError
        With the expected form.
    """
    names = by_column(value, "the format of their dates, as '%d/%m/%Y'")
    for name, form in names.items():
        if form is not None and not _tells_the_day(form):
            raise ValueError(
                f"needs a format for {name!r} that has year, month and day, as '%d/%m/%Y'"
            )
    return names


def _tells_the_day(form: Any) -> bool:
    try:
        return (
            isinstance(form, str)
            and datetime.strptime(_TRIED.strftime(form), form).date() == _TRIED.date()
        )
    except ValueError:
        return False
