"""Convert categorical Series and DataFrames to tables of codes and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import (
    Attribute,
    CategoricalTable,
    looked_up,
    of_column,
    product,
    split,
)
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.types import Codes, Microdata


def sensitive_columns(X: pd.DataFrame) -> list[Any]:
    """Return the columns to perturb: dtype ``category`` if any, else all.

    The others stay unchanged.
    """
    declared = [name for name, kind in X.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    return declared or list(X.columns)


def as_categories(X: Microdata) -> CategoricalTable:
    """Return microdata as categories, with declared or observed domains.

    Dtype ``category`` declares a domain.

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
            raise DataError(
                f"categories must be a column or a table; got an array of shape {values.shape}"
            )
        values = values[:, None] if values.ndim == 1 else values
        columns = [
            (f"x{k + 1}", pd.Series(values[:, k], copy=False)) for k in range(values.shape[1])
        ]
    if not columns or len(columns[0][1]) == 0:
        raise DataError("a table needs at least one record and one column")
    parts = [of_column(column, name) for name, column in columns]
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def like(X: Microdata, table: CategoricalTable, codes: Codes) -> Microdata:
    """Return values of the product domain in the form of ``X``.

    With its index, names and dtypes; other columns unchanged.
    """
    parts = list(zip(table.attributes, split(table, codes), strict=True))
    if isinstance(X, pd.DataFrame):
        new = {
            name: pd.Series(_typed(*part, X[name].dtype), index=X.index)
            for name, part in zip(sensitive_columns(X), parts, strict=True)
        }
        return _with_columns(X, new)
    if isinstance(X, pd.Series):
        return pd.Series(_typed(*parts[0], X.dtype), index=X.index, name=X.name)
    values = np.asarray(X)
    columns = [looked_up(np.array(a.labels, dtype=values.dtype), part) for a, part in parts]
    return columns[0].reshape(values.shape) if len(columns) == 1 else np.stack(columns, axis=1)


def _typed(attribute: Attribute, codes: NDArray[np.integer[Any]], kind: Any) -> Any:
    if isinstance(kind, pd.CategoricalDtype) and attribute.labels == tuple(kind.categories):
        return pd.Categorical.from_codes(codes, dtype=kind)
    return (
        pd.Series(pd.Index(attribute.labels, tupleize_cols=False).take(codes).array)
        .astype(kind)
        .array
    )


def _with_columns(X: pd.DataFrame, new: dict[Any, pd.Series[Any]]) -> pd.DataFrame:
    copy = X.copy()
    for name, column in new.items():
        copy[name] = column
    return copy
