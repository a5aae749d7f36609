"""The checks that make columns fit to be audited; every message names columns and rows, and no value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditor.data.naming import counted, listed, quoted
from auditor.errors import DataError

Missing = Literal["refuse", "drop", "mean"]

MOST_PROBLEMS = 5
"""Columns described one by one before a message only counts the rest."""

_KINDS = {
    "integer": "numbers",
    "floating": "numbers",
    "mixed-integer-float": "numbers",
    "decimal": "numbers",
    "empty": "numbers",  # nothing but missing cells: the check for missing values explains it best
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
    """Return what a column holds, in the plural: ``numbers``, ``booleans``, ``text``, ``dates`` and so on."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "categories"
    if pd.api.types.is_bool_dtype(dtype):
        return "booleans"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "numbers"
    return _KINDS.get(pd.api.types.infer_dtype(column, skipna=True), "mixed or nested values")


def numeric(frame: pd.DataFrame, *, booleans: bool) -> NDArray[np.float64]:
    """Return a frame's columns as numbers, missing cells as NaN.

    Parameters
    ----------
    frame : DataFrame of n rows and N columns
        Integers, floats, decimals and their nullable forms. Integers beyond 2^53 are rounded to the nearest float.
    booleans : bool
        Whether booleans may stand for 0 and 1; only for columns that were asked for by name.

    Returns
    -------
    ndarray of shape (n, N)
        C-contiguous.

    Raises
    ------
    DataError
        A column holds something else; the message says what, for every such column, and names the usable ones.
    """
    kinds = {name: kind_of(frame[name]) for name in frame}
    fit = {"numbers", "booleans"} if booleans else {"numbers"}
    unfit = [name for name, kind in kinds.items() if kind not in fit]
    if unfit:
        usable = [name for name in kinds if name not in unfit]
        remedy = f"choose columns of numbers with `columns:`, here {listed(usable)}" if usable else ""
        _refuse((_why_unfit(name, frame[name], kinds[name]) for name in unfit), remedy)
    values = np.empty(frame.shape, dtype=np.float64)
    for j, name in enumerate(frame):
        values[:, j] = _floats(frame[name])
    return values


def _why_unfit(name: object, column: pd.Series[Any], kind: str) -> str:
    if kind != "text":
        return f"column {quoted(name)} holds {kind}, not numbers"
    wrong = (pd.to_numeric(column.astype(object), errors="coerce").isna() & column.notna()).to_numpy(dtype=bool)
    if not wrong.any():
        return f"column {quoted(name)} holds numbers stored as text; store them as numbers"
    return f"column {quoted(name)} holds text, not numbers ({_where(wrong, 'such cell')})"


def _floats(column: pd.Series[Any]) -> NDArray[np.float64]:
    if column.dtype == object:
        return np.array([_float(cell) for cell in column], dtype=np.float64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _float(cell: Any) -> float:
    if cell is None or cell is pd.NA:
        return float("nan")
    try:
        return float(cell)
    except OverflowError:  # an integer beyond the range of a float is refused as infinite values are
        return float("inf")
    except ValueError:  # the signalling NaN of decimals
        return float("nan") if isinstance(cell, Decimal) else float("inf")


def without_missing(names: tuple[str, ...], values: NDArray[np.float64], missing: Missing) -> NDArray[np.float64]:
    """Return the values after the scenario's choice about missing ones: refuse, drop the record, or put the mean.

    Raises
    ------
    DataError
        There are missing values and ``refuse`` was asked for, or a column has no others.
    """
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    _each(names, gaps.all(axis=0), lambda j: "has no values at all")
    if missing == "refuse":
        remedy = "set `missing: drop` to leave those records out, or `missing: mean` to fill them in"
        _each(names, gaps.any(axis=0), lambda j: f"has {_where(gaps[:, j], 'missing value')}", remedy)
    if missing == "drop":
        return np.ascontiguousarray(values[~gaps.any(axis=1)])
    with np.errstate(over="ignore"):
        return np.where(gaps, np.nanmean(values, axis=0), values)


def check_finite(names: tuple[str, ...], values: NDArray[np.float64]) -> None:
    """Raise `DataError` when a value is infinite."""
    infinite = np.isinf(values)
    _each(names, infinite.any(axis=0), lambda j: f"has {_where(infinite[:, j], 'infinite value')}")


def check_varied(names: tuple[str, ...], values: NDArray[np.float64]) -> None:
    """Raise `DataError` when a column is constant, or its variance is not a number that can be computed with."""
    if values.shape[1] == 0:
        return
    remedy = "leave such columns out with `columns:`"
    constant = values.max(axis=0) == values.min(axis=0)
    why = "is constant: there is nothing to protect, and the normalized error is undefined"
    _each(names, constant, lambda j: why, remedy)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        variance = values.var(axis=0)
    lost = ~np.isfinite(variance) | (variance < np.finfo(np.float64).tiny)
    _each(names, lost, lambda j: "has a variance outside the range of double precision; change its unit")


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns with mean 0 and variance 1 (divisor n)."""
    centred = values - values.mean(axis=0)
    centred -= centred.mean(axis=0)  # the first mean is rounded in the unit of the data, this one in that of the spread
    scaled: NDArray[np.float64] = centred / centred.std(axis=0)
    return scaled


def _where(wrong: NDArray[np.bool_], noun: str) -> str:
    first = int(np.argmax(wrong)) + 1
    number = int(wrong.sum())
    return f"{counted(number, noun)}, {'in' if number == 1 else 'the first in'} data row {first:,}"


def _each(names: tuple[str, ...], wrong: ArrayLike, why: Callable[[int], str], remedy: str = "") -> None:
    columns = np.flatnonzero(wrong).tolist()
    if columns:
        _refuse((f"column {quoted(names[j])} {why(j)}" for j in columns), remedy)


def _refuse(problems: Iterable[str], remedy: str) -> None:
    every = list(problems)
    shown = every[:MOST_PROBLEMS]
    if len(every) > MOST_PROBLEMS:
        shown.append(f"and so with {counted(len(every) - MOST_PROBLEMS, 'other column')}")
    raise DataError("; ".join([*shown, remedy] if remedy else shown))
