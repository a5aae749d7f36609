"""Diagnosis of copies from files: their noise, and their other columns.

``Z_i = Y_i − X`` is the noise of copy i in one column.

| metric | value | leak |
| --- | --- | --- |
| ``noise_correlation(i, j)`` | correlation of ``Z_i`` and ``Z_j`` | ±1: the same noise |
| ``noise_ratio(i, j)`` | deviation of ``Z_i`` over that of ``Z_j`` | |
| ``noise_on_value`` | correlation of ``Z_i`` and X | |
| ``values_equal`` | share of values equal to the original's | 1 |
| ``rounding_step`` | largest step that all values of a copy are multiples of | |
| ``column_equal(C)`` | share of values of shown column C equal to the original's, up to recoding | 1 |
| ``column_tells(C)`` | share of an audited column's variance between equal values of C | 1 |
| ``column_unique(C)`` | share of records with a value of C of their own | 1 |
| ``column_unused(C)`` | share of records whose value of C no attack could use, if most | 1 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from auditor.audit.base.records import CellContext
from auditor.base.types import Array
from auditor.data.columns.scan import resolution
from auditor.data.copies import MOST_COLUMNS, as_text, many_alike, number_readings
from auditor.data.table import ShownColumn, Table
from auditor.process.deferred import pd
from auditor.results.evidence import FITTED
from auditor.results.records import Measurement
from auditor.schemes.base.scheme import Scheme

MOSTLY = 0.5
"""Share of unused values from which a column counts as unused."""
TEXT = "most records have a text of their own; leave it out, or declare a random one as `key`"
NOT_READ = f"only {MOST_COLUMNS} columns of a file are read"
NO_INSIDER = "that needs `perfect` knowledge, a table in memory and ten records per cell"
MOST_COPIES, PARTS = 8, 20
"""Copies that are compared by two, and groups of equal size that a column of numbers is cut into."""
NO_NOISE = 1e-9
"""Deviation of noise, relative to the column's, below which it has no correlation."""


def noise_figures(
    context: CellContext, X: Array, copies: Sequence[Array], steps: Array
) -> Iterator[Measurement]:
    """Yield the figures of the noise of copies, arrays of shape (n, N).

    ``steps`` are the original's recording steps, NaN for continuous columns.
    """
    few = copies[:MOST_COPIES]
    spread = X.std(axis=0)
    rounded = [resolution(lambda Y=Y: iter([Y]), *Y.shape).steps for Y in few]  # type: ignore[misc]
    for j, name in enumerate(context.attributes):
        Z = [Y[:, j] - X[:, j] for Y in few]
        noisy = [k for k, z in enumerate(Z) if z.std() > NO_NOISE * spread[j]]
        near = 1e-9 * np.abs(X[:, j]) if np.isnan(steps[j]) else 1e-6 * steps[j]

        def record(metric: str, copies: tuple[int, ...], value: float, name: str = name) -> Any:
            return context.record(metric, copies, float(value), attribute=name)

        for k, z in enumerate(Z):
            yield record("values_equal", (k + 1,), float(np.mean(np.abs(z) <= near)))
            if k in noisy and spread[j] > 0:
                yield record("noise_on_value", (k + 1,), np.corrcoef(z, X[:, j])[0, 1])
            if not np.isnan(rounded[k][j]):
                yield record("rounding_step", (k + 1,), rounded[k][j])
        for a, b in combinations(noisy, 2):
            pair, rho = f"({a + 1}, {b + 1})", np.corrcoef(Z[a], Z[b])[0, 1]
            yield record(f"noise_correlation{pair}", (a + 1, b + 1), rho)
            yield record(f"noise_ratio{pair}", (a + 1, b + 1), Z[a].std() / Z[b].std())


def column_figures(
    context: CellContext, X: Array, shown: Sequence[ShownColumn], originals: Mapping[str, Any]
) -> Iterator[Measurement]:
    """Yield figures of shown columns; ``originals`` have equal names."""
    everybody, seen, told = context.everybody, set[str](), set[str]()
    for column in sorted(shown, key=lambda column: "iufU".index(column.values.dtype.kind)):
        copies = everybody if column.copy == 0 else (column.copy,)
        codes = _groups(column.values)
        key = f"{column.name} {column.copy}"
        if key not in seen:
            alone = column.values if column.values.dtype.kind == "f" else codes
            _, own = np.unique(alone, return_counts=True)
            share = float((own == 1).sum() / len(codes))
            yield context.record(f"column_unique({column.name})", copies, share)
            if (original := originals.get(column.name)) is not None:
                yield context.record(
                    f"column_equal({column.name})", copies, _equal(column, original)
                )
        seen.add(key)
        counts = np.bincount(codes)
        if key in told or (counts > 0).sum() * 5 > len(codes):
            continue  # too few records
        told.add(key)
        for j, name in enumerate(context.attributes):
            mean = np.bincount(codes, X[:, j]) / np.maximum(counts, 1)
            within = ((X[:, j] - mean[codes]) ** 2).sum() / (len(codes) - (counts > 0).sum())
            total = X[:, j].var(ddof=1)
            if total > 0:
                tells = max(0.0, 1.0 - float(within / total))
                metric = f"column_tells({column.name})"
                yield context.record(metric, copies, tells, attribute=name)


def unused_figures(
    context: CellContext, scheme: Scheme, table: Table, found: Sequence[Measurement]
) -> Iterator[Measurement]:
    """Yield shares of unused values of shown columns.

    ``found`` are records of the insider, who learns characters, not names and hashes.
    """
    beside = scheme.beside(table)
    read = [] if table.streamed or not any(names for _, names in beside) else scheme.shown(table)
    fitted = any(record.attack == FITTED for record in found)
    for number, names in beside:
        for place, name in enumerate(names):
            own = [_own(column.values) for column in read if column.name == name]
            if not own and place < MOST_COLUMNS and not table.streamed:
                continue  # a constant
            share = max(own) if own and fitted else 1.0
            if share >= MOSTLY:
                reason = NO_INSIDER if not fitted else TEXT if own else NOT_READ
                yield context.record(f"column_unused({name})", (number,), share, reason=reason)


def _own(text: Any) -> float:
    """Share of texts that occur once, if many differ in letters, else 0."""
    if text.dtype.kind != "U" or many_alike(
        pd.Series(text).str.replace(r"\d", "", regex=True).to_numpy()
    ):
        return 0.0
    return float((np.unique(text, return_counts=True)[1] == 1).sum() / len(text))


def _groups(values: Any) -> Any:
    if values.dtype.kind != "f":
        return np.unique(values, return_inverse=True)[1].ravel()
    return np.searchsorted(np.quantile(values, np.arange(1, PARTS) / PARTS), values)


def _equal(column: ShownColumn, original: Any) -> float:
    if column.values.dtype.kind == "f":
        readings = number_readings(pd.Series(original))
        return max(float(np.mean(column.values == each)) for each in readings)
    if column.values.dtype.kind == "U":
        return float(np.mean(column.values == as_text(pd.Series(original))))
    # codes have no labels: equal if each code is one original value
    _, places = np.unique(original.astype(str), return_inverse=True)
    pairs, counts = np.unique(np.column_stack([column.values, places]), axis=0, return_counts=True)
    most = np.zeros(int(column.values.max()) + 1)
    np.maximum.at(most, pairs[:, 0].astype(np.intp), counts)
    return float(most.sum() / len(places))
