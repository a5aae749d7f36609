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
from auditor.data.columns.checks import Series, cells_where, refuse_columns
from auditor.data.table import Table
from auditor.results.table_register import ColumnPrints, key_name


def framed(X: Microdata) -> pd.DataFrame:
    """Microdata as a frame; columns without a name are ``x1``, ``x2`` …

    Raises
    ------
    DataError
        It is no table.
    """
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, pd.Series):
        return X.to_frame("x1" if X.name is None else X.name)
    try:
        cells = np.asarray(X)
    except ValueError:  # lists of different lengths
        raise DataError("the table must hold numbers only") from None
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2:
        raise DataError(f"a table must have rows and columns; got an array of shape {np.shape(X)}")
    frame = pd.DataFrame(cells, columns=[f"x{column + 1}" for column in range(cells.shape[1])])
    return frame.infer_objects() if cells.dtype == object else frame


def like(X: Microdata, frame: pd.DataFrame) -> Microdata:
    """Frame in the form of ``X``."""
    if isinstance(X, pd.DataFrame):
        return frame
    if isinstance(X, pd.Series):
        column = frame.iloc[:, 0]
        column.name = X.name
        return column
    return np.array(frame).reshape(np.shape(X))


def as_table(X: Microdata, varied: bool = True) -> Table:
    """Microdata as a table.

    ``varied`` requires two rows and no constant column.

    Raises
    ------
    DataError
        It is no table of finite numbers.
    """
    values, names = _numbers(X)
    if not names:
        raise DataError(f"a table must have rows and columns; got an array of shape {np.shape(X)}")
    if len(values) < (fewest := 2 if varied else 1):
        raise DataError(
            f"a table needs at least {fewest} row{'s' * (fewest > 1)}; got {len(values)}"
        )
    if np.isnan(values).any():
        raise DataError(
            f"missing values in column {names[int(np.isnan(values).any(axis=0).argmax())]!r}"
        )
    table = Table(names, values, source="array")
    table.check(varied)
    return replace(table, scanned=table.scan)  # kept if part of the table is replaced


def copy_values(copy: Microdata) -> Array:
    """Copy as an array, shape (n, columns); may be constant."""
    return _numbers(copy)[0]


def _numbers(X: Microdata) -> tuple[Array, tuple[str, ...]]:
    if np.ma.is_masked(X):
        raise DataError("the table has masked values: leave those records out, or fill them in")
    frame, is_kind = framed(X), pd.api.types
    text = [
        str(name)
        for name, kind in frame.dtypes.items()
        if not is_kind.is_numeric_dtype(kind) or is_kind.is_complex_dtype(kind)
    ]
    if text:
        raise DataError(
            f"columns must hold numbers; {', '.join(map(repr, text))} do not: select the others"
        )
    names = tuple(map(str, frame.columns))
    if len(set(names)) != len(names):
        raise DataError("two columns have the same name")
    values = np.ascontiguousarray(frame.to_numpy(float, na_value=np.nan))
    infinite = np.isinf(values)
    refuse_columns(
        names,
        infinite.any(axis=0),
        lambda j: f"has {cells_where(infinite[:, j], 'infinite value')}",
    )
    return values, names


def numbers_like(X: Microdata, values: Array, whole: Flags | None = None) -> Microdata:
    """Values of shape (n, N) in the form of ``X``.

    ``whole`` columns, shape (N,), become 64-bit integers if the original's are. If columns differ
    from the original's, only the index is kept, and columns are ``y1, y2, …``.
    """
    if values.size != np.size(X):
        columns = [f"y{column}" for column in range(1, values.shape[1] + 1)]
        is_framed = isinstance(X, pd.DataFrame | pd.Series)
        return pd.DataFrame(values, index=X.index, columns=columns) if is_framed else values
    frame = framed(X)
    made = pd.DataFrame(values, index=frame.index, columns=frame.columns)
    if whole is not None:
        integer = [pd.api.types.is_integer_dtype(kind) for kind in frame.dtypes]
        made = made.astype(dict.fromkeys(frame.columns[whole & integer], np.int64))
    return like(X, made)


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
    frame = framed(X)
    columns = sensitive_columns(frame)
    if not columns or frame.empty:
        raise DataError("a table needs at least one record and one column")
    parts = [of_column(frame[name], str(name)) for name in columns]
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def categories_like(X: Microdata, table: CategoricalTable, codes: Codes) -> Microdata:
    """Product values in the form, dtypes and other columns of ``X``."""
    copy = framed(X).copy()
    columns = zip(sensitive_columns(copy), table.attributes, split(table, codes), strict=True)
    for name, attribute, part in columns:
        copy[name] = _typed(attribute, part, copy[name].dtype)
    made = like(X, copy)
    return made.astype(np.asarray(X).dtype) if isinstance(made, np.ndarray) else made


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
    mine, frame = framed(original), framed(X)
    is_framed = isinstance(X, pd.DataFrame | pd.Series)
    if isinstance(original, pd.DataFrame | pd.Series) != is_framed or np.ndim(original) != np.ndim(
        X
    ):
        raise DataError(
            "a batch must be given in the form of the records before it: all arrays, or all of pandas, with as many dimensions"
        )
    if isinstance(X, pd.Series):
        frame = frame.set_axis(mine.columns, axis=1)
    if sorted(map(str, frame)) != sorted(map(str, mine)):
        raise DataError(
            f"a batch must have the columns of the records before it: {listed(list(map(str, mine)))}"
        )
    if not is_framed:
        return X
    return like(original, frame[list(mine)].apply(lambda c: _in_type(c, mine[c.name].dtype)))


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
    frame = framed(copy)
    columns = frame[sensitive_columns(X)] if isinstance(X, pd.DataFrame) else frame
    parts = [
        of_column(column, attribute.name, attribute.labels)[1]
        for attribute, (_, column) in zip(table.attributes, columns.items(), strict=True)
    ]
    return product(table.attributes, parts)
