"""Dates as numbers: days since 1 January 1970, of which a time of day is a fraction; an offset from UTC is taken off first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from auditor.data.columns.checks import kind_of
from auditor.errors import DataError
from auditor.text.column_names import counted, nearest, quoted

EPOCH = pd.Timestamp("1970-01-01", tz="UTC")
DAY = pd.Timedelta(days=1)
_TRIED = datetime(2003, 12, 31)
"""A day that formats are tried on: no two of its parts are alike."""
READABLE = ("numbers", "text", "dates", "categories")
"""Kinds of columns that may hold days: as numbers already, as text, or as a file's own dates."""


def days_of(column: pd.Series[Any], form: str | None = None) -> pd.Series[Any]:
    """Return a column's dates as days, shape (n,); NaN where a cell is missing or cannot be read. Numbers are days already.

    Parameters
    ----------
    column : Series
        Text, or dates by their own type, which need no format.
    form : str, optional
        How text is written, as ``%d/%m/%Y``; ISO 8601 (``2003-12-31``, with a time of day or without) unless told otherwise.

    Examples
    --------
    >>> days_of(pd.Series(["1970-01-02", "1970-01-03T12:00", None])).tolist()
    [1.0, 2.5, nan]
    """
    if kind_of(column) == "numbers":
        return column
    if kind_of(column) in ("text", "categories"):  # without a digit it would be `now`, `today` or the name of a month
        column = column.astype(object).where(column.astype(object).astype(str).str.contains(r"\d"))
    days: pd.Series[Any] = (pd.to_datetime(column, format=form or "ISO8601", utc=True, errors="coerce") - EPOCH) / DAY
    return days


def in_days(frame: pd.DataFrame, dates: Mapping[str, str | None]) -> pd.DataFrame:
    """Return the frame with some columns as days.

    Parameters
    ----------
    frame : DataFrame
    dates : mapping
        Column → the format of its text, or None for ISO 8601.

    Raises
    ------
    DataError
        A column is not there, or has a cell that is no date of that format. No message holds a value.
    """
    return frame.assign(**{name: _column(frame, name, form) for name, form in dates.items()}) if dates else frame


def _column(frame: pd.DataFrame, name: str, form: str | None) -> pd.Series[Any]:
    if name not in frame:
        raise DataError(f"there is no column {quoted(name)} of dates{nearest(name, map(str, frame))}", ("dates",))
    column = frame[name]
    if kind_of(column) not in READABLE:
        raise DataError(f"column {quoted(name)} holds {kind_of(column)}, not dates", ("dates", name))
    days = days_of(column, form)
    unread = (days.isna() & column.notna()).to_numpy()
    if unread.any():
        where = f"{counted(int(unread.sum()), 'cell')}, the first in data row {int(unread.argmax()) + 1:,}"
        what = "of the format " + quoted(form) if form else "by ISO 8601 (year-month-day)"
        raise DataError(f"column {quoted(name)} holds what is no date {what} ({where})", ("dates", name))
    return days


def parse_dates(value: Any) -> dict[str, str | None]:
    """Read ``data.dates``: a column, a list of columns, or a mapping from column to the format of its text (or null).

    Raises
    ------
    ValueError
        Saying what was expected.
    """
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        names = dict.fromkeys(names)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list of columns, or map columns to the format of their dates, as '%d/%m/%Y'")
    for name, form in names.items():
        if form is not None and not _tells_the_day(form):
            raise ValueError(f"needs a format for {name!r} that has year, month and day, as '%d/%m/%Y'")
    return names


def _tells_the_day(form: Any) -> bool:
    """Whether what is written in a format can be read back to the day."""
    try:
        return isinstance(form, str) and datetime.strptime(_TRIED.strftime(form), form).date() == _TRIED.date()
    except ValueError:
        return False
