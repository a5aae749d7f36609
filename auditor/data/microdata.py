"""Convert arrays, Series and DataFrames of numbers to tables and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import check_finite, check_names, check_variance, check_varied
from auditor.data.table import Table
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import listed
from auditor.types import Array, Microdata


def as_table(X: Microdata, varied: bool = True) -> Table:
    """Return microdata as a table.

    Parameters
    ----------
    X : ndarray, DataFrame, Series or list
    varied : bool
        Whether two rows and no constant column are required; not for a later batch.

    Raises
    ------
    DataError
        It is no table of finite numbers.
    """
    values, names = _numbers(X)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"a table must have rows and columns; got an array of shape {np.shape(X)}")
    if len(values) < (fewest := 2 if varied else 1):
        raise DataError(
            f"a table needs at least {fewest} row{'s' * (fewest > 1)}; got {len(values)}"
        )
    names = names or tuple(f"x{column}" for column in range(1, values.shape[1] + 1))
    check_names(names)
    if np.isnan(values).any():
        raise DataError(
            f"missing values in column {names[int(np.isnan(values).any(axis=0).argmax())]!r}"
        )
    check_finite(names, values)
    table = Table(names, np.ascontiguousarray(values), source="array")
    table = replace(table, scanned=table.scan)  # kept if part of the table is replaced
    if varied:
        check_varied(names, table.scan.low, table.scan.high, np.diag(table.scan.covariance))
    else:
        check_variance(names, np.diag(table.scan.covariance))
    return table


def copy_values(copy: Microdata, rows: int) -> Array:
    """Return a copy as an array, shape (n, columns); may be constant."""
    values, names = _numbers(copy)
    values = np.ascontiguousarray(values.reshape(rows, -1) if len(values) == rows else values)
    check_finite(names or tuple(f"y{column}" for column in range(1, values.shape[-1] + 1)), values)
    return values


def _numbers(X: Microdata) -> tuple[Array, tuple[str, ...]]:
    names: tuple[str, ...] = ()
    if np.ma.is_masked(X):
        raise DataError("the table has masked values: leave those records out, or fill them in")
    if isinstance(X, pd.DataFrame):
        text = [str(name) for name, kind in X.dtypes.items() if not _real(kind)]
        if text:
            raise DataError(
                f"columns must hold numbers; {', '.join(map(repr, text))} do not: select the others"
            )
        names = tuple(map(str, X.columns))
        if len(set(names)) != len(names):
            raise DataError("two columns have the same name")
    elif isinstance(X, pd.Series):
        names = (str(X.name),) if X.name is not None else ()
    try:
        if not isinstance(X, pd.DataFrame) and not _all_numbers(np.asarray(X)):
            raise TypeError
        return np.asarray(X, dtype=np.float64), names
    except (TypeError, ValueError):
        raise DataError("the table must hold numbers only") from None


def _real(kind: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind))


def _integer(kind: Any) -> bool:
    return bool(pd.api.types.is_integer_dtype(kind))


def _all_numbers(values: NDArray[Any]) -> bool:
    """Whether values are numbers; numpy would also convert text and dates."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "biuf"
    return not any(isinstance(cell, (str, bytes)) for cell in values.flat)


def like(X: Microdata, values: Array, whole: NDArray[np.bool_] | None = None) -> Microdata:
    """Return values of shape (n, N) in the form of ``X``.

    With its index and columns, or its number of dimensions. Columns that are ``whole``, shape (N,),
    become 64-bit integers if the original's type is integer. With other columns than the
    original's, only the index is kept, and a DataFrame's columns are ``y1, y2, …``.
    """
    if isinstance(X, (pd.DataFrame, pd.Series)) and values.size != X.size:
        return pd.DataFrame(
            values,
            index=X.index,
            columns=[f"y{column}" for column in range(1, values.shape[1] + 1)],
        )
    if values.size != np.size(X):
        return values

    if isinstance(X, pd.DataFrame):
        frame = pd.DataFrame(values, index=X.index, columns=X.columns)
        kept = [
            place
            for place, kind in enumerate(X.dtypes)
            if _integer(kind) and whole is not None and whole[place]
        ]
        return frame.astype({X.columns[place]: np.int64 for place in kept}) if kept else frame
    if (
        whole is not None
        and whole.all()
        and _integer(X.dtype if hasattr(X, "dtype") else np.asarray(X).dtype)
    ):
        values = values.astype(np.int64)
    if isinstance(X, pd.Series):
        return pd.Series(values[:, 0], index=X.index, name=X.name)
    return values.reshape(np.shape(X))


def in_order(original: Microdata, released: Microdata) -> Microdata:
    """Return another original with the column order of the release.

    If both have names.

    Raises
    ------
    DataError
        Column names differ, or record labels are in another order, so that errors would compare
        different records.
    """
    if (
        not (isinstance(original, pd.DataFrame) and isinstance(released, pd.DataFrame))
        or original.shape != released.shape
    ):
        return original
    if set(original.columns) != set(released.columns):
        raise DataError(
            f"the original must have the columns that were released: {listed(list(map(str, released.columns)))}"
        )
    mine, theirs = original.index, released.index
    if mine.is_unique and theirs.is_unique and not mine.equals(theirs) and mine.isin(theirs).all():
        raise DataError(
            "the original's records are in another order than those released, by their index; sort them alike"
        )
    return original[list(released.columns)]
