"""Batches of records: checks of a later batch against earlier ones.

Each record's noise is drawn once, when its batch arrives, independently of all other records.
Levels are always relative to the *first* batch's covariance. So the copies of all batches follow
the law of one release, and Theorem 4 holds: of every batch a coalition's least perturbed copy is
sufficient. A record that arrives twice breaks this. Its copies at levels a and b have independent
noise, and together are as good as one at level ``ab/(a + b)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import Series
from auditor.data.table import Table
from auditor.errors import AuditorError, AuditorWarning, DataError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, listed, quoted
from auditor.types import Array, Microdata

FAR = 2.0
"""Ratio of a batch's variance to the first one's, or its inverse, that causes a warning."""
FEWEST = 100
"""Fewest records for that warning: a ratio of 2 is then five standard errors from 1 for normal
data.
"""
TWICE = "a record that is perturbed twice has noise of its own in each copy, and these average out"


def alike(original: Microdata, X: Microdata) -> Microdata:
    """Return a batch with the original's column order and category types.

    Raises
    ------
    DataError
        Its columns, categories or kind differ from the original's.
    """
    if isinstance(original, (pd.DataFrame, pd.Series)) != isinstance(
        X, (pd.DataFrame, pd.Series)
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
            lambda column: _typed(column, original[column.name].dtype)
        )
    if isinstance(original, pd.Series):
        return _typed(X.rename(original.name), original.dtype)
    if np.shape(X)[1:] != np.shape(original)[1:]:
        raise DataError(
            f"a batch must have as many columns as the records before it, {np.shape(original)[1]}; got {np.shape(X)[1]}"
        )
    return X


def _typed(column: Series, kind: Any) -> Series:
    """Return a column as declared categories; pandas would blank others."""
    if not isinstance(kind, pd.CategoricalDtype):
        return column
    other = int((~column.isin(kind.categories)).sum())
    if other:
        raise DataError(
            f"column {quoted(column.name)} has {counted(other, 'record')} outside the declared domain"
        )
    return column.astype(kind)


def stacked(before: Microdata, X: Microdata) -> Microdata:
    """Return the records followed by a batch; running labels continue."""
    if isinstance(before, (pd.DataFrame, pd.Series)):
        return pd.concat([before, X], ignore_index=_counts(before.index) and _counts(X.index))
    return np.concatenate([np.asarray(before), np.asarray(X)])


def _counts(index: pd.Index[Any]) -> bool:
    return isinstance(index, pd.RangeIndex)


def check_labels(original: Microdata, X: Microdata, allowed: bool) -> None:
    """Refuse records already released, by labels that identify records.

    A running pandas index identifies none.

    Raises
    ------
    AuditorError
        Some are, and they are not ``allowed``; else a warning counts them.
    """
    if (
        not isinstance(original, (pd.DataFrame, pd.Series))
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
        It has some, and they are not allowed.
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


def notes(before: Sequence[Table], batch: Table, first_variances: Array) -> Iterator[str]:
    """Yield notes on a numeric batch: counts and variance ratios, no values.

    Parameters
    ----------
    before : sequence of Table
        The records already released.
    batch : Table
    first_variances : ndarray of shape (N,)
        Of the first batch, above 0.
    """
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
    """Return a 64-bit hash of each record, shape (n,).

    The chance of any collision among 10⁶ records is 3·10⁻⁸.
    """
    # −0 becomes 0, which it equals
    frames = (pd.DataFrame(x + 0.0) for x in table.blocks())
    return np.concatenate([pd.util.hash_pandas_object(frame, index=False) for frame in frames])
