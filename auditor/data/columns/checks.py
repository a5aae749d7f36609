"""Checks of columns, dates as days, and identifiers of records.

Messages name columns and rows, never a value.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.base import DataError, counted, pd, quoted
from auditor.base.types import Array, Flags, Indices, Names, Options, Plain, unprinted

Missing = Literal["refuse", "drop", "mean", "value"]
Gaps = Missing | Literal["keep"]
"""Treatment of missing values; copies keep them as NaN."""

Frame: TypeAlias = "Options | pd.DataFrame"
"""Columns by name: a DataFrame, or a mapping to arrays of integers or floats."""

Series: TypeAlias = "pd.Series[Any]"

FEWEST_STEPS = 8
"""Fewest floating-point steps per standard deviation; with fewer, rounding affects moments and
copies.
"""

LEAST_VARIANCE, LARGEST_VARIANCE = 1e-70, 1e70
"""Range of variances whose fourth powers (degrees of freedom of error bars) fit into 1e±308."""

FEWEST_CODED, FEWEST_VALUES = 5, 5
"""Fewest records of a missing code, and fewest other values of its column."""

MOST_PROBLEMS = 5
"""Most columns described one by one in a message."""

MOST_COLUMNS = 5_000
"""A covariance of this width needs 200 MB, and at the peak there are five."""

NESTED = "mixed or nested values"
_KINDS = dict(
    line.split(": ")
    for line in """\
integer: numbers
floating: numbers
mixed-integer-float: numbers
decimal: numbers
empty: numbers
boolean: booleans
string: text
categorical: categories
date: dates
datetime: dates
datetime64: dates
time: times of day
timedelta: durations
timedelta64: durations
complex: complex numbers
bytes: bytes""".splitlines()
)
"""Kinds by pandas' inferred types; empty columns are refused as missing."""


def kind_of(column: Any) -> str:
    """Kind of a Series or array: ``numbers``, ``text`` …"""
    if isinstance(column, np.ndarray):
        return "numbers"
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if pd.api.types.is_bool_dtype(dtype):
        return "booleans"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numbers"
    return _KINDS.get(pd.api.types.infer_dtype(column, skipna=True), NESTED)


def by_column(value: Any) -> Any:
    """Column names as a mapping with null values; nothing is empty."""
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names)
    if not isinstance(names, dict | list | None):
        raise ValueError("must be a list of columns, or a mapping by column")
    return {} if names is None else names


def check_plain(name: str, column: Series) -> None:
    """Raise `DataError` if categories are lists or similar."""
    if column.dtype == object and not column.map(pd.api.types.is_hashable).all():
        raise DataError(
            f"column {quoted(name)} holds nested values, which are no categories; leave it out, or write its parts as columns"
        )


@dataclass
class Cells:
    """Number of faulty cells of a column, and the first one's row."""

    count: int = 0
    first: int = 0

    def add(self, found: Flags, start: int = 0) -> None:
        """Count cells in rows from ``start`` on."""
        if not self.count and found.any():
            self.first = start + int(found.argmax())
        self.count += int(np.count_nonzero(found))

    def where(self, noun: str) -> str:
        """Text like ``2 missing values, the first in data row 3``."""
        place = "in" if self.count == 1 else "the first in"
        return f"{counted(self.count, noun)}, {place} data row {self.first + 1:,}"


def cells_where(found: Flags, noun: str) -> str:
    """Text like ``2 cells, the first in data row 3``, of an indicator (n,)."""
    cells = Cells()
    cells.add(found)
    return cells.where(noun)


def column_floats(column: Any) -> Array:
    """Numeric column, shape (n,), missing cells as NaN."""
    if isinstance(column, np.ndarray):
        return column.astype(float, copy=False)
    if column.dtype == object:
        return np.array([_float(cell) for cell in column], dtype=float)
    return column.to_numpy(dtype=float, na_value=np.nan)


def _float(cell: Any) -> float:
    if cell is None or cell is pd.NA:
        return float("nan")
    try:
        return float(cell)
    # an integer beyond floats is refused as infinite
    except OverflowError:
        return float("inf")
    except ValueError:  # the signalling NaN of decimals
        return float("nan") if isinstance(cell, Decimal) else float("inf")


def is_present(column: Any) -> Flags:
    """Indicator of present cells, shape (n,)."""
    if isinstance(column, np.ndarray):
        return ~np.isnan(column)
    return np.asarray(column.notna())


def are_complete(frame: Frame, names: Iterable[str]) -> Flags:
    """Indicator of records complete in some columns, (n,)."""
    return np.logical_and.reduce([is_present(frame[name]) for name in names])


def with_value_for_blanks(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns with blanks as a value.

    Of numbers as far below the least as the largest is above it; else ``""``.
    """
    found: Plain = {}
    for name, column in frame.items():
        if column.isna().any() and kind_of(column) == "numbers":
            x = column_floats(column)
            found[str(name)] = np.where(np.isnan(x), 2 * np.nanmin(x) - np.nanmax(x), x)
        elif column.isna().any():
            found[str(name)] = column.astype(object).fillna("").astype(str)
    return frame.assign(**found)


def missing_codes(names: Names, x: Array) -> list[str]:
    """Question on each column with a far, repeated extreme, like 9999999.

    It is farther from other values than these are apart. Only nines are shown.
    """
    found = []
    for name, column in zip(names, x.T, strict=True):
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        for place, near in ((-1, -2), (0, 1)) if len(values) > FEWEST_VALUES else ():
            far = abs(values[place] - values[near]) > np.ptp(values[:-1] if place else values[1:])
            if far and counts[place] >= FEWEST_CODED:
                code = f"{values[place]:.15g}"
                code = "CODE" if code.strip("-9") else code
                found.append(
                    f"column {quoted(name)}: is {code.replace('CODE', 'its most extreme value')} a missing code? "
                    f"{counts[place] / counts.sum():.1%} of the records have it, far from all others, and it dominates the variance; "
                    f"`blank: [{code}]` under `data:` makes it a blank"
                )
    return found


def check_rows(found: int, asked: int | None) -> None:
    """Raise `DataError` for too few records."""
    if asked is not None and found < asked:
        raise DataError(
            f"rows: {asked} asks for more than there are; the table has {counted(found, 'record')}",
            ("rows",),
        )
    if found < 2:
        raise DataError(
            f"an audit needs at least 2 records; the table has {counted(found, 'record')}"
        )


def check_width(width: int) -> None:
    """Raise `DataError` if a covariance would be too large."""
    if width > MOST_COLUMNS:
        raise DataError(
            f"{width:,} columns are too many: their covariance alone would take {8 * width**2 / 2**30:,.1f} GiB; "
            f"choose at most {MOST_COLUMNS:,} of them with `columns:`",
            ("columns",),
        )


def check_varied(names: Names, low: Array, high: Array, variance: Array) -> None:
    """Raise `DataError` if a column is constant, or its variance extreme.

    Parameters
    ----------
    names : sequence of N str
    low, high, variance : ndarrays of shape (N,)
        Of each column.
    """
    constant, tiny = low == high, np.finfo(np.float64).tiny
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    with np.errstate(invalid="ignore"):
        rounded = np.where(
            constant, step > 1.0, (variance >= tiny) & (np.sqrt(variance) < FEWEST_STEPS * step)
        )
    too_fine = "varies by less than double precision can tell at its size, if at all; subtract a constant from it"
    refuse_columns(names, rounded, lambda j: too_fine)
    why_constant = "is constant: there is nothing to protect, and the normalized error is undefined"
    remedy = "leave such columns out with `columns:`"
    refuse_columns(names, constant, lambda j: why_constant, remedy)
    check_variance(names, variance, LEAST_VARIANCE)


def check_variance(names: Names, variance: Array, least: float = 0.0) -> None:
    """Raise `DataError` if a variance, (N,), is out of range; a copy's may be 0."""
    why = "has a variance outside the range of double precision; change its unit"
    refuse_columns(names, ~(variance <= LARGEST_VARIANCE) | (variance < least), lambda j: why)


def refuse_columns(
    names: Names, wrong: ArrayLike, why: Callable[[int], str], remedy: str = ""
) -> None:
    """Raise `DataError` with the reason of each wrong column, (N,)."""
    every = [f"column {quoted(names[j])} {why(j)}" for j in np.flatnonzero(wrong).tolist()]
    shown = every[:MOST_PROBLEMS]
    if len(every) > MOST_PROBLEMS:
        shown.append(f"and so with {counted(len(every) - MOST_PROBLEMS, 'other column')}")
    if every:
        raise DataError("; ".join([*shown, remedy] if remedy else shown))


# -- Convert dates to days since 1 January 1970 (UTC, with fractions) and back ---------------------


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


def calendar(days: Series) -> dict[str, Indices]:
    """Units of time, and places in their cycles, of days since 1970, shapes (n,).

    Examples
    --------
    >>> calendar(pd.Series([1.5]))["weekday"], calendar(pd.Series([1.5]))["hour"]
    (array([4]), array([12]))
    """
    times = as_dates(days.to_numpy(), whole=False).to_numpy()
    hour, day, month, year = (times.astype(f"M8[{unit}]").astype(np.int64) for unit in "hDMY")
    return {
        **{"hour": hour % 24, "day": day, "weekday": (day + 3) % 7, "week": (day + 3) // 7},
        **{"month": month, "month of the year": month % 12, "year": year},
    }


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
        A cell is no date of its format.
    """
    return (
        frame.assign(**{name: _column(frame, name, form) for name, form in dates.items()})
        if dates
        else frame
    )


def _column(frame: pd.DataFrame, name: str, form: str | None) -> Series:
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


def date_format(form: str) -> str:
    """Format of dates with year, month and day, or ``ValueError``."""
    with suppress(ValueError, DeprecationWarning):
        if datetime.strptime(_TRIED.strftime(form), form).date() == _TRIED.date():
            return form
    raise ValueError("must be a format that has year, month and day, as '%d/%m/%Y'")


# -- Identifiers of records, to join copies to the original; never shown ---------------------------


WHOLE = re.compile(r"([+-]?)0*([0-9]+?)(?:\.0*)?")
"""A whole number of any length: sign, and digits without leading zeros."""


@unprinted
class RecordKeys:
    """One distinct key for each record.

    Attributes
    ----------
    name
        The column's.
    cells : ndarray of shape (n,)
        Text.
    """

    name: str
    cells: NDArray[np.object_]

    @cached_property
    def whole(self) -> NDArray[np.object_] | None:
        """Canonical whole numbers, (n,); None if some are none, or repeat."""
        found = [WHOLE.fullmatch(cell) for cell in self.cells]
        spelt = [match[1].replace("+", "") + match[2] for match in found if match]
        return _objects(spelt) if len(set(spelt)) == len(self.cells) else None

    def some(self, rows: NDArray[Any]) -> RecordKeys:
        """Keys of some records."""
        return RecordKeys(self.name, self.cells[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 over name and keys."""
        return hashlib.sha256(
            repr((self.name, self.cells.tolist())).encode(errors="surrogatepass")
        ).hexdigest()

    def places_in(self, original: RecordKeys) -> Indices:
        """Each record's place in the original, shape (n,); −1 if absent."""
        mine, theirs = self.whole, original.whole
        if mine is None or theirs is None:
            mine, theirs = self.cells, original.cells
        return np.asarray(
            pd.Index(theirs, dtype=object).get_indexer(pd.Index(mine, dtype=object)), dtype=int
        )


def record_keys(name: str, column: Series) -> RecordKeys:
    """A column's values as keys.

    Raises
    ------
    DataError
        Keys are blank, repeat, or are neither whole numbers nor text.
    """
    texts = _objects([_text(cell) for cell in column.tolist()])
    every = "every record needs a key of its own"
    repeats = pd.Series(texts).duplicated().to_numpy()
    for wrong, has, noun, why in (
        (texts == "", "has", "blank cell", every),
        (pd.isna(texts), "has", "cell", "neither whole numbers nor text, which keys must be"),
        (repeats, "repeats: it has", "record", f"with the key of an earlier one; {every}"),
    ):
        if wrong.any():
            found = cells_where(wrong, noun)
            raise DataError(f"key column {quoted(name)} {has} {found}: {why}", ("key",))
    return RecordKeys(name, texts)


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return ""
    if isinstance(cell, Integral) and not isinstance(cell, bool):
        return str(int(cell))
    if not isinstance(cell, float | Decimal):
        return None
    if cell.is_nan() if isinstance(cell, Decimal) else math.isnan(cell):
        return ""
    return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else None


def _objects(cells: Sequence[Any]) -> NDArray[np.object_]:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def in_order_of(frame: pd.DataFrame, order: str | None) -> pd.DataFrame:
    """Records sorted by one column, if stated, renumbered; stable.

    Text is sorted by characters (2026-11-22 by time).

    Raises
    ------
    DataError
        Values are missing, or without a common order.
    """
    if order is None:
        return frame
    missing = int(frame[order].isna().sum())
    if missing:
        raise DataError(
            f"{counted(missing, 'record')} miss column {quoted(order)}, and have no place in the order",
            ("order",),
        )
    try:
        return frame.sort_values(order, kind="stable", ignore_index=True)
    except TypeError:
        raise DataError(
            f"column {quoted(order)} holds values of several kinds, which have no order", ("order",)
        ) from None


def follows_the_one_before(runs: Sequence[Series]) -> tuple[float, int]:
    """Lag-1 rank correlation of a column, and its number of pairs.

    ``runs`` are consecutive numbers; a pair is two present values within a run.

    Examples
    --------
    >>> follows_the_one_before([pd.Series([1.0, 2.0, 4.0, 3.0, 9.0, 11.0])])
    (0.7, 5)
    """
    ranks = pd.concat(runs, keys=range(len(runs))).rank()
    before = ranks.groupby(level=0).shift()  # no neighbours across runs
    pairs = pd.concat([before, ranks], axis=1).dropna().to_numpy()
    if len(pairs) < 3 or (np.ptp(pairs, axis=0) == 0).any():
        return 0.0, len(pairs)
    return round(float(np.corrcoef(pairs.T)[0, 1]), 12), len(pairs)
