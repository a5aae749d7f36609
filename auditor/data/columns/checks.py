"""Checks that columns can be audited.

Messages name columns and rows, never a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from auditor.base.errors import DataError
from auditor.base.text import counted, quoted
from auditor.base.types import Array, Flags
from auditor.process.deferred import pd

Missing = Literal["refuse", "drop", "mean", "value"]
Gaps = Missing | Literal["keep"]
"""Treatment of missing values; copies keep them as NaN."""

Frame: TypeAlias = "Mapping[str, Any] | pd.DataFrame"
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

_KINDS = {
    "integer": "numbers",
    "floating": "numbers",
    "mixed-integer-float": "numbers",
    "decimal": "numbers",
    "empty": "numbers",  # only missing cells: refused as missing
    "boolean": "booleans",
    "string": "text",
    "categorical": "categories",
    "date": "dates",
    "datetime": "dates",
    "datetime64": "dates",
    "time": "times of day",
    "timedelta": "durations",
    "timedelta64": "durations",
    "complex": "complex numbers",
    "bytes": "bytes",
}


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
    return _KINDS.get(pd.api.types.infer_dtype(column, skipna=True), "mixed or nested values")


def by_column(value: Any, what: str) -> dict[str, Any]:
    """Mapping from a column, columns (null values), or a mapping.

    Raises
    ------
    ValueError
        With the expected form.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | dict) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"must be a list of columns, or map columns to {what}")
    return names if isinstance(names, dict) else dict.fromkeys(names)


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
        return column.astype(np.float64, copy=False)
    if column.dtype == object:
        return np.array([_float(cell) for cell in column], dtype=np.float64)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


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
    return np.asarray(column.notna(), dtype=bool)


def are_complete(frame: Frame, names: Iterable[str]) -> Flags:
    """Indicator of records complete in some columns, (n,)."""
    found = [is_present(frame[name]) for name in names]
    return np.asarray(np.logical_and.reduce(found), dtype=bool)


def with_value_for_blanks(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns with blanks as a value.

    Of numbers as far below the least as the largest is above it; else ``""``.
    """
    found: dict[str, Any] = {}
    for name, column in frame.items():
        if column.isna().any() and kind_of(column) == "numbers":
            x = column_floats(column)
            found[str(name)] = np.where(np.isnan(x), 2 * np.nanmin(x) - np.nanmax(x), x)
        elif column.isna().any():
            found[str(name)] = column.astype(object).fillna("").astype(str)
    return frame.assign(**found)


def check_finite(names: Sequence[str], values: Array) -> None:
    """Raise `DataError` if a value is infinite."""
    infinite = np.isinf(values)
    refuse_columns(
        names,
        infinite.any(axis=0),
        lambda j: f"has {cells_where(infinite[:, j], 'infinite value')}",
    )


def missing_codes(names: Sequence[str], x: Array) -> list[str]:
    """Question on each column with a far, repeated extreme, like 9999999.

    It is farther from other values than these are apart. Only nines are shown.
    """
    found = []
    for name, column in zip(names, x.T, strict=True):
        values, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        for place, near in ((-1, -2), (0, 1)) if len(values) > FEWEST_VALUES else ():
            rest = values[:-1] if place else values[1:]
            far = abs(values[place] - values[near]) > np.ptp(rest)
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
        problem = f"{width:,} columns are too many: their covariance alone would take {8 * width**2 / 2**30:,.1f} GiB"
        raise DataError(
            f"{problem}; choose at most {MOST_COLUMNS:,} of them with `columns:`", ("columns",)
        )


def check_varied(names: Sequence[str], low: Array, high: Array, variance: Array) -> None:
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


def check_variance(names: Sequence[str], variance: Array, least: float = 0.0) -> None:
    """Raise `DataError` if a variance, (N,), is out of range; a copy's may be 0."""
    why = "has a variance outside the range of double precision; change its unit"
    refuse_columns(names, ~(variance <= LARGEST_VARIANCE) | (variance < least), lambda j: why)


def refuse_columns(
    names: Sequence[str], wrong: ArrayLike, why: Callable[[int], str], remedy: str = ""
) -> None:
    """Raise `DataError` with the reason of each wrong column, (N,)."""
    every = [f"column {quoted(names[j])} {why(j)}" for j in np.flatnonzero(wrong).tolist()]
    shown = every[:MOST_PROBLEMS]
    if len(every) > MOST_PROBLEMS:
        shown.append(f"and so with {counted(len(every) - MOST_PROBLEMS, 'other column')}")
    if every:
        raise DataError("; ".join([*shown, remedy] if remedy else shown))
