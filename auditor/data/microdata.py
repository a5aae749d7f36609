"""Arrays and DataFrames as tables and back, and checks of later batches.

Levels are relative to the *first* batch's covariance. Each record's noise is drawn once, so that
all batches follow the law of one release, and Theorem 4 holds. Two copies of one record, at levels
a and b, are as good as one at level ``ab/(a + b)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base import AuditorError, AuditorWarning, DataError, counted, listed, pd, quoted
from auditor.base.types import Array, Codes, Flags, Integers, Microdata, Options
from auditor.data.columns.categorical_table import (
    Attribute,
    CategoricalTable,
    of_column,
    product,
    split,
)
from auditor.data.columns.checks import Series, check_finite
from auditor.data.table import Table
from auditor.results.table_register import ColumnPrints, key_name


def as_table(X: Microdata, varied: bool = True) -> Table:
    """Microdata as a table.

    ``varied`` requires two rows and no constant column.

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
    if np.isnan(values).any():
        raise DataError(
            f"missing values in column {names[int(np.isnan(values).any(axis=0).argmax())]!r}"
        )
    check_finite(names, values)
    table = Table(names, np.ascontiguousarray(values), source="array")
    table.check(varied)
    return replace(table, scanned=table.scan)  # kept if part of the table is replaced


def copy_values(copy: Microdata, rows: int) -> Array:
    """Copy as an array, shape (n, columns); may be constant."""
    values, names = _numbers(copy)
    values = np.ascontiguousarray(values.reshape(rows, -1) if len(values) == rows else values)
    check_finite(names or tuple(f"y{column}" for column in range(1, values.shape[-1] + 1)), values)
    return values


def _numbers(X: Microdata) -> tuple[Array, tuple[str, ...]]:
    if np.ma.is_masked(X):
        raise DataError("the table has masked values: leave those records out, or fill them in")
    if isinstance(X, pd.DataFrame):
        is_kind = pd.api.types
        text = [
            str(name)
            for name, kind in X.dtypes.items()
            if not is_kind.is_numeric_dtype(kind) or is_kind.is_complex_dtype(kind)
        ]
        if text:
            raise DataError(
                f"columns must hold numbers; {', '.join(map(repr, text))} do not: select the others"
            )
        names = tuple(map(str, X.columns))
        if len(set(names)) != len(names):
            raise DataError("two columns have the same name")
        return np.asarray(X, dtype=float), names
    named = isinstance(X, pd.Series) and X.name is not None
    try:
        cells = np.asarray(X)
        if (
            not any(isinstance(cell, str | bytes) for cell in cells.flat)
            if cells.dtype.kind == "O"
            else cells.dtype.kind in "biuf"
        ):
            return np.asarray(X, dtype=float), (str(X.name),) if named else ()
    except (TypeError, ValueError):
        pass
    raise DataError("the table must hold numbers only")


def numbers_like(X: Microdata, values: Array, whole: Flags | None = None) -> Microdata:
    """Values of shape (n, N) in the form of ``X``.

    ``whole`` columns, shape (N,), become 64-bit integers if the original's are. If columns differ
    from the original's, only the index is kept, and columns are ``y1, y2, …``.
    """
    framed = isinstance(X, pd.DataFrame | pd.Series)
    if values.size != np.size(X):
        columns = [f"y{column}" for column in range(1, values.shape[1] + 1)]
        return pd.DataFrame(values, index=X.index, columns=columns) if framed else values
    is_integer = pd.api.types.is_integer_dtype
    if isinstance(X, pd.DataFrame):
        frame = pd.DataFrame(values, index=X.index, columns=X.columns)
        if whole is None:
            return frame
        integer = [is_integer(kind) for kind in X.dtypes]
        return frame.astype(dict.fromkeys(X.columns[whole & integer], np.int64))
    if whole is not None and whole.all() and is_integer(getattr(X, "dtype", np.asarray(X).dtype)):
        values = values.astype(np.int64)
    if isinstance(X, pd.Series):
        return pd.Series(values[:, 0], index=X.index, name=X.name)
    return values.reshape(np.shape(X))


def in_order(original: Microdata, released: Microdata) -> Microdata:
    """Original in the release's column order, if both have names.

    Raises
    ------
    DataError
        Column names or the order of record labels differ.
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


def sensitive_columns(X: pd.DataFrame) -> list[Any]:
    """Columns to perturb: dtype ``category`` if any, else all."""
    declared = [name for name, kind in X.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    return declared or list(X.columns)


def as_categories(X: Microdata) -> CategoricalTable:
    """Microdata as categories, with domains declared by dtype or observed.

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
        values = values.reshape(len(values), -1)
        columns = [(f"x{k}", pd.Series(column, copy=False)) for k, column in enumerate(values.T, 1)]
    if not columns or len(columns[0][1]) == 0:
        raise DataError("a table needs at least one record and one column")
    parts = [of_column(column, name) for name, column in columns]
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def categories_like(X: Microdata, table: CategoricalTable, codes: Codes) -> Microdata:
    """Product values in the form, dtypes and other columns of ``X``."""
    parts = list(zip(table.attributes, split(table, codes), strict=True))
    if isinstance(X, pd.DataFrame):
        copy = X.copy()
        for name, part in zip(sensitive_columns(X), parts, strict=True):
            copy[name] = _typed(*part, X[name].dtype)
        return copy
    if isinstance(X, pd.Series):
        return pd.Series(_typed(*parts[0], X.dtype), index=X.index, name=X.name)
    cells = np.asarray(X)
    columns = [np.array(a.labels, dtype=cells.dtype)[part] for a, part in parts]
    return np.stack(columns, axis=1).reshape(cells.shape)


def _typed(attribute: Attribute, codes: Integers, kind: Any) -> Any:
    if isinstance(kind, pd.CategoricalDtype) and attribute.labels == tuple(kind.categories):
        return pd.Categorical.from_codes(codes, dtype=kind)
    labels = pd.Index(attribute.labels, tupleize_cols=False)
    return pd.Series(labels.take(codes).array).astype(kind).array


FAR = 2.0
"""Ratio of a batch's variance to the first one's, or its inverse, that causes a warning."""
FEWEST = 100
"""Fewest records for that warning: a ratio of 2 is then five standard errors from 1 for normal
data.
"""
TWICE = "a record that is perturbed twice has noise of its own in each copy, and these average out"


def batch_like(original: Microdata, X: Microdata) -> Microdata:
    """Batch with the original's column order and category types.

    Raises
    ------
    DataError
        Its columns, categories or kind differ from the original's.
    """
    if isinstance(original, pd.DataFrame | pd.Series) != isinstance(
        X, pd.DataFrame | pd.Series
    ) or np.ndim(original) != np.ndim(X):
        raise DataError(
            "a batch must be given in the form of the records before it: all arrays, or all of pandas, with as many dimensions"
        )
    if isinstance(original, pd.DataFrame) and isinstance(X, pd.DataFrame):
        if set(X.columns) != set(original.columns) or X.shape[1] != original.shape[1]:
            raise DataError(
                f"a batch must have the columns of the records before it: {listed(list(map(str, original.columns)))}"
            )
        return X[list(original.columns)].apply(
            lambda column: _in_type(column, original[column.name].dtype)
        )
    if isinstance(original, pd.Series):
        return _in_type(X.rename(original.name), original.dtype)
    if np.shape(X)[1:] != np.shape(original)[1:]:
        raise DataError(
            f"a batch must have as many columns as the records before it, {np.shape(original)[1]}; got {np.shape(X)[1]}"
        )
    return X


def _in_type(column: Series, kind: Any) -> Series:
    """Column as declared categories; pandas would blank others."""
    if not isinstance(kind, pd.CategoricalDtype):
        return column
    other = int((~column.isin(kind.categories)).sum())
    if other:
        raise DataError(
            f"column {quoted(column.name)} has {counted(other, 'record')} outside the declared domain"
        )
    return column.astype(kind)


def stacked(before: Microdata, X: Microdata) -> Microdata:
    """Records followed by a batch; running labels continue."""
    if isinstance(before, pd.DataFrame | pd.Series):
        return pd.concat([before, X], ignore_index=_counts(before.index) and _counts(X.index))
    return np.concatenate([np.asarray(before), np.asarray(X)])


def _counts(index: pd.Index[Any]) -> bool:
    return isinstance(index, pd.RangeIndex)


def check_labels(original: Microdata, X: Microdata, allowed: bool) -> None:
    """Refuse records already released, by labels that are no running index.

    Raises
    ------
    AuditorError
        Some are, and not ``allowed``; else a warning counts them.
    """
    if (
        not isinstance(original, pd.DataFrame | pd.Series)
        or _counts(original.index)
        or _counts(X.index)
    ):
        return
    refuse_repeats(
        int(X.index.isin(original.index).sum()), len(X), "label", allowed, "say repeats='allow'"
    )


def refuse_repeats(
    repeated: int, records: int, identifier: str, allowed: bool, remedy: str
) -> None:
    """Refuse a batch with known records, or warn if allowed.

    Raises
    ------
    AuditorError
        It has some, not allowed.
    """
    if not repeated:
        return
    found = f"{repeated:,} of {counted(records, 'record')} of the batch {'has' if repeated == 1 else 'have'} the {identifier} of a record "
    found += f"that is out already; {TWICE}"
    if not allowed:
        raise AuditorError(
            f"{found}: leave them out of the batch, or {remedy} if that is what you want"
        )
    warnings.warn(AuditorWarning(found), stacklevel=2)


def batch_notes(before: Sequence[Table], batch: Table, first_variances: Array) -> Iterator[str]:
    """Yield notes on a numeric batch: counts and variance ratios, no values."""
    known, new = np.concatenate([row_hashes(table) for table in before]), row_hashes(batch)
    equal, own = int(np.isin(new, known).sum()), len(known) - len(np.unique(known))
    if equal:
        chance = f"{own:,} of {counted(len(known), 'record')} before it equal another of these"
        yield f"{equal:,} of {counted(len(new), 'record')} of the batch equal one that is out already, in every column ({chance}); {TWICE}"
    if batch.rows < FEWEST:
        return
    ratios = np.diag(batch.scan.covariance) / first_variances
    for name, ratio in zip(batch.attributes, ratios.tolist(), strict=True):
        if not 1.0 / FAR <= ratio <= FAR:
            kept = "noise keeps the first batch's scale, so that levels mean another share of this batch's variance"
            yield f"column {quoted(name)}: the batch's variance is {ratio:.2g} times the first batch's; {kept}"


def row_hashes(table: Table) -> NDArray[np.uint64]:
    """64-bit hash of each record, shape (n,).

    The chance of any collision among 10⁶ records is 3·10⁻⁸.
    """
    # −0 becomes 0, which it equals
    frames = (pd.DataFrame(x + 0.0) for x in table.blocks())
    return np.concatenate([pd.util.hash_pandas_object(frame, index=False) for frame in frames])


def prints_of(table: Table | CategoricalTable) -> ColumnPrints:
    """Fingerprints of a table."""
    if isinstance(table, Table):
        prints = ColumnPrints(table.attributes)
        for x in table.blocks():
            prints.add_numbers(x)
    else:
        prints = ColumnPrints(table.names)
        prints.add_labels(table.labelled(table.codes))
    return prints


def is_other_table(part: Options, table: Table | CategoricalTable) -> bool:
    """Whether a batch's fingerprint, under the same key, is of another table."""
    same_key = part.get("fingerprint_key") == key_name()
    return same_key and prints_of(table).of_table() != part["fingerprint"]


def in_domain(table: CategoricalTable, X: Microdata, copy: Microdata) -> CategoricalTable:
    """Records in the columns of ``X`` as categories of a table's domain.

    Raises
    ------
    DataError
        A value is missing, or not in its domain.
    """
    if isinstance(X, pd.DataFrame):
        columns = [copy[name] for name in sensitive_columns(X)]
    else:
        columns = [pd.Series(part) for part in np.asarray(copy).reshape(len(copy), -1).T]
    parts = [
        of_column(column, attribute.name, attribute.labels)[1]
        for attribute, column in zip(table.attributes, columns, strict=True)
    ]
    return product(table.attributes, parts)
