"""Series and DataFrames of categories as tables of codes, and back in the form they came in."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import CategoricalTable, of_column, product, split
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.types import Codes, Microdata


def sensitive_columns(X: pd.DataFrame) -> list[Any]:
    """Return the columns to perturb: those of dtype ``category`` if there are any, else all; the others pass through unchanged."""
    declared = [name for name, kind in X.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    return declared or list(X.columns)


def as_categories(X: Microdata) -> CategoricalTable:
    """Return microdata as categories: domains as dtype ``category`` declares them, else as observed.

    Raises
    ------
    DataError
        There are no records, or values are missing.
    """
    if isinstance(X, pd.DataFrame):
        columns = [(str(name), X[name]) for name in sensitive_columns(X)]
    elif isinstance(X, pd.Series):
        columns = [("x" if X.name is None else str(X.name), X)]
    else:
        values = np.asarray(X)
        if values.ndim not in (1, 2):
            raise DataError(f"categories must be a column or a table; got an array of shape {values.shape}")
        values = values[:, None] if values.ndim == 1 else values
        columns = [(f"x{k + 1}", pd.Series(values[:, k])) for k in range(values.shape[1])]
    if not columns or len(columns[0][1]) == 0:
        raise DataError("a table needs at least one record and one column")
    parts = [of_column(column, name) for name, column in columns]
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def like(X: Microdata, table: CategoricalTable, codes: Codes) -> Microdata:
    """Return values of the product domain in the form of ``X``: its index, names and dtypes; other columns as they are."""
    columns = [pd.Index(a.labels, tupleize_cols=False).take(part) for a, part in zip(table.attributes, split(table, codes), strict=True)]
    if isinstance(X, pd.DataFrame):
        new = {name: pd.Series(column.array, index=X.index).astype(X[name].dtype)
               for name, column in zip(sensitive_columns(X), columns, strict=True)}  # fmt: skip
        return _with_columns(X, new)
    if isinstance(X, pd.Series):
        return pd.Series(columns[0].array, index=X.index, name=X.name).astype(X.dtype)
    values = np.asarray(X)
    return np.stack([np.asarray(column, dtype=values.dtype) for column in columns], axis=1).reshape(values.shape)


def _with_columns(X: pd.DataFrame, new: dict[Any, pd.Series[Any]]) -> pd.DataFrame:
    copy = X.copy()
    for name, column in new.items():
        copy[name] = column
    return copy
