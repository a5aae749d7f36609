"""Checks that columns can be audited.

Messages name columns and rows, and no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, listed, quoted

Missing = Literal["refuse", "drop", "mean"]
Gaps = Literal["refuse", "drop", "mean", "keep"]
"""Treatment of missing values; copies keep them as NaN."""

FEWEST_STEPS = 8
"""Fewest floating-point steps per standard deviation; with fewer, rounding affects moments and
copies.
"""

LEAST_VARIANCE, LARGEST_VARIANCE = 1e-70, 1e70
"""Range of variances whose fourth powers (degrees of freedom of error bars) fit into 1e±308."""

MISSING_REMEDY = (
    "set `missing: drop` to leave those records out, or `missing: mean` to fill them in"
)

HEAD = 1_000
"""Records used to recognise a numeric identifier, for the message."""

MOST_PROBLEMS = 5
"""Most columns described one by one in a message."""

MOST_COLUMNS = 5_000
"""A covariance of this width needs 200 MB, and at the peak there are five."""

_KINDS = {
    "integer": "numbers",
    "floating": "numbers",
    "mixed-integer-float": "numbers",
    "decimal": "numbers",
    "empty": "numbers",  # only missing cells: the check for missing values explains it best
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


def kind_of(column: pd.Series[Any]) -> str:
    """Return a column's kind, in the plural: ``numbers``, ``text`` …"""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if pd.api.types.is_bool_dtype(dtype):
        return "booleans"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numbers"
    return _KINDS.get(pd.api.types.infer_dtype(column, skipna=True), "mixed or nested values")


def check_plain(name: str, column: pd.Series[Any]) -> None:
    """Raise `DataError` if a categorical column holds lists or similar values."""
    if column.dtype == object and not column.map(pd.api.types.is_hashable).all():
        raise DataError(
            f"column {quoted(name)} holds nested values, which are no categories; leave it out, or write its parts as columns"
        )


@dataclass
class Cells:
    """Number of cells found in each column, and their first rows, shape (N,)."""

    count: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def none(cls, width: int) -> Cells:
        """Return an empty count."""
        return cls(np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64))

    def add(self, j: int, found: NDArray[np.bool_], start: int) -> None:
        """Count the cells found in one column, in rows from ``start`` on."""
        number = int(np.count_nonzero(found))
        if number and not self.count[j]:
            self.first[j] = start + int(np.argmax(found))
        self.count[j] += number

    def join(self, other: Cells, start: int) -> None:
        """Add the cells of rows from ``start`` on."""
        self.first = np.where(
            (self.count == 0) & (other.count > 0), other.first + start, self.first
        )
        self.count = self.count + other.count

    def where(self, j: int, noun: str) -> str:
        """Return ``2 missing values, the first in data row 3``."""
        number = int(self.count[j])
        return f"{counted(number, noun)}, {'in' if number == 1 else 'the first in'} data row {int(self.first[j]) + 1:,}"


class Survey:
    """Kinds, missing and infinite values of columns, piece by piece.

    Parameters
    ----------
    names : tuple of N str
    booleans : bool
        Whether booleans may mean 0 and 1; only for columns requested by name.
    """

    def __init__(self, names: tuple[str, ...], booleans: bool) -> None:
        self.names = names
        self.rows = 0
        self.missing, self.infinite = Cells.none(len(names)), Cells.none(len(names))
        self._fit = {"numbers", "booleans"} if booleans else {"numbers"}
        self._kinds: list[set[str]] = [set() for _ in names]
        self._text = Cells.none(len(names))
        self._head = np.empty((0, len(names)))

    def add(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Survey some records and return them as numbers, shape (b, N).

        NaN in non-numeric columns. Integers, floats, decimals and their nullable forms are numbers;
        integers beyond 2^53 are rounded.
        """
        values = np.empty((len(frame), len(self.names)))
        for j, name in enumerate(self.names):
            values[:, j] = self._column(j, frame[name])
        self.add_numbers(values)
        return values

    def add_numbers(self, values: NDArray[np.float64]) -> None:
        """Count missing and infinite values of some records, shape (b, N)."""
        # a sum is finite unless a value is not (or their sum overflows), and costs a third of a
        # test of each
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = np.flatnonzero(~np.isfinite(np.ones(len(values)) @ values)).tolist()
        for j in suspect:
            self.missing.add(j, np.isnan(values[:, j]), self.rows)
            self.infinite.add(j, np.isinf(values[:, j]), self.rows)
        if not self.rows:
            self._head = values[:HEAD].copy()
        self.rows += len(values)

    def join(self, other: Survey) -> None:
        """Add the survey of later records."""
        for mine, theirs in (
            (self.missing, other.missing),
            (self.infinite, other.infinite),
            (self._text, other._text),
        ):
            mine.join(theirs, self.rows)
        for kinds, more in zip(self._kinds, other._kinds, strict=True):
            kinds |= more
        if not self.rows:
            self._head = other._head
        self.rows += other.rows

    def _column(self, j: int, column: pd.Series[Any]) -> NDArray[np.float64]:
        kind = kind_of(column)
        if kind == "numbers":
            floats = _floats(column)
            if "numbers" not in self._kinds[j] and not np.isnan(floats).all():
                self._kinds[j].add(kind)
            return floats
        there = column.notna().to_numpy(dtype=bool)
        if isinstance(column.dtype, pd.CategoricalDtype) or there.any():
            self._kinds[j].add(kind)
        if kind == "text":
            there = (
                pd.to_numeric(column.astype(object), errors="coerce").isna() & column.notna()
            ).to_numpy(dtype=bool)
        self._text.add(j, there, self.rows)
        return _floats(column) if kind in self._fit else np.full(len(column), np.nan)

    @property
    def _unfit(self) -> list[int]:
        return [
            j for j, kinds in enumerate(self._kinds) if not kinds <= self._fit or len(kinds) > 1
        ]

    def check_kinds(self, identifies: Callable[[str, NDArray[np.float64], int], bool]) -> None:
        """Raise `DataError` if a column is not numeric.

        The message names other columns, except identifiers.
        """
        unfit = self._unfit
        if unfit:
            usable = [
                name
                for j, name in enumerate(self.names)
                if j not in unfit and not identifies(name, self._head[:, j], self.rows)
            ]
            remedy = (
                f"choose columns of numbers with `columns:`, here {listed(usable)}"
                if usable
                else ""
            )
            _refuse((self._why_unfit(j) for j in unfit), remedy)

    def _why_unfit(self, j: int) -> str:
        column = f"column {quoted(self.names[j])}"
        kinds = self._kinds[j]
        if not kinds <= {"text", "numbers", "booleans"}:
            return f"{column} holds {next(iter(kinds)) if len(kinds) == 1 else 'mixed or nested values'}, not numbers"
        if kinds == {"booleans"}:
            return f"{column} holds booleans, not numbers"
        if not self._text.count[j]:
            return f"{column} holds numbers stored as text; store them as numbers"
        return f"{column} holds text, not numbers ({self._text.where(j, 'such cell')})"

    def check_values(self, missing: Gaps) -> None:
        """Raise `DataError` if values are infinite, or missing and ``refuse``."""
        _each(
            self.names,
            self.infinite.count > 0,
            lambda j: f"has {self.infinite.where(j, 'infinite value')}",
        )
        if missing != "keep":
            _each(self.names, self.missing.count >= self.rows, lambda j: "has no values at all")
        if missing == "refuse":
            _each(
                self.names,
                self.missing.count > 0,
                lambda j: f"has {self.missing.where(j, 'missing value')}",
                MISSING_REMEDY,
            )


def floats(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return numeric columns, shape (n, N), missing cells as NaN."""
    values = np.empty(frame.shape, dtype=np.float64)
    for j in range(frame.shape[1]):
        values[:, j] = _floats(frame.iloc[:, j])
    return values


def _floats(column: pd.Series[Any]) -> NDArray[np.float64]:
    if column.dtype == object:
        return np.array([_float(cell) for cell in column], dtype=np.float64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _float(cell: Any) -> float:
    if cell is None or cell is pd.NA:
        return float("nan")
    try:
        return float(cell)
    # an integer beyond the range of a float is refused like an infinite value
    except OverflowError:
        return float("inf")
    except ValueError:  # the signalling NaN of decimals
        return float("nan") if isinstance(cell, Decimal) else float("inf")


def check_finite(names: tuple[str, ...], values: NDArray[np.float64]) -> None:
    """Raise `DataError` if a value is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return  # a sum is infinite if a value is; it is ten times as fast
    infinite = Cells.none(len(names))
    for j in range(len(names)):
        infinite.add(j, np.isinf(values[:, j]), 0)
    _each(names, infinite.count > 0, lambda j: f"has {infinite.where(j, 'infinite value')}")


def check_rows(found: int, asked: int | None) -> None:
    """Raise `DataError` if there are too few records."""
    if asked is not None and found < asked:
        raise DataError(
            f"rows: {asked} asks for more than there are; the table has {counted(found, 'record')}",
            ("rows",),
        )
    if found < 2:
        raise DataError(
            f"an audit needs at least 2 records; the table has {counted(found, 'record')}"
        )


def check_names(names: Iterable[str]) -> None:
    """Raise `DataError` for a column with a name reserved by results."""
    if "*" in names:
        raise DataError(
            "a column is called '*', which stands for all attributes together in results; give it another name"
        )


def check_width(width: int) -> None:
    """Raise `DataError` if a covariance of this width is too large."""
    if width > MOST_COLUMNS:
        problem = f"{width:,} columns are too many: their covariance alone would take {8 * width**2 / 2**30:,.1f} GiB"
        raise DataError(
            f"{problem}; choose at most {MOST_COLUMNS:,} of them with `columns:`", ("columns",)
        )


def check_varied(
    names: tuple[str, ...],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    variance: NDArray[np.float64],
) -> None:
    """Raise `DataError` if a column is constant, or its variance extreme.

    Parameters
    ----------
    names : tuple of N str
    low, high, variance : ndarrays of shape (N,)
        Least and largest value, and variance, of each column.
    """
    constant, tiny = low == high, np.finfo(np.float64).tiny
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    with np.errstate(invalid="ignore"):
        rounded = np.where(
            constant, step > 1.0, (variance >= tiny) & (np.sqrt(variance) < FEWEST_STEPS * step)
        )
    _each(
        names,
        rounded,
        lambda j: (
            "varies by less than double precision can tell at its size, if at all; subtract a constant from it"
        ),
    )
    remedy = "leave such columns out with `columns:`"
    why_constant = "is constant: there is nothing to protect, and the normalized error is undefined"
    _each(names, constant, lambda j: why_constant, remedy)
    check_variance(names, variance, LEAST_VARIANCE)


def check_variance(
    names: tuple[str, ...], variance: NDArray[np.float64], least: float = 0.0
) -> None:
    """Raise `DataError` if a variance, shape (N,), is out of range.

    A copy's may be 0.
    """
    lost = ~(variance <= LARGEST_VARIANCE) | (variance < least)
    _each(
        names,
        lost,
        lambda j: "has a variance outside the range of double precision; change its unit",
    )


def _each(
    names: tuple[str, ...], wrong: ArrayLike, why: Callable[[int], str], remedy: str = ""
) -> None:
    columns = np.flatnonzero(wrong).tolist()
    if columns:
        _refuse((f"column {quoted(names[j])} {why(j)}" for j in columns), remedy)


def _refuse(problems: Iterable[str], remedy: str) -> None:
    every = list(problems)
    shown = every[:MOST_PROBLEMS]
    if len(every) > MOST_PROBLEMS:
        shown.append(f"and so with {counted(len(every) - MOST_PROBLEMS, 'other column')}")
    raise DataError("; ".join([*shown, remedy] if remedy else shown))
