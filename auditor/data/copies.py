"""Reads a copy from a file and lays it beside the original: row by row, or record by record where a key column identifies them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.data.columns.checks import MISSING_REMEDY
from auditor.data.columns.record_keys import record_keys
from auditor.data.formats import readers as reading
from auditor.data.formats.as_written import column_as_written
from auditor.data.formats.parts import pieces_of
from auditor.data.load import load_table
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError
from auditor.text.column_names import nearest, quoted
from auditor.types import Array

COMPLETE_REMEDY = "a copy's records must match the original's one to one: leave those records out of the original and of every copy"
JOIN_REMEDY = "join files with `key: COLUMN` where a column identifies the records"


@dataclass(frozen=True)
class Copy:
    """A copy in the original's records and columns.

    Attributes
    ----------
    name : str
        The file's.
    values : ndarray of shape (n, N)
        NaN in records that the copy lacks.
    held : ndarray of shape (n,)
        Whether the copy has the record.
    beyond : int
        Records of the copy that the original has not.
    """

    name: str
    values: Array = field(repr=False)
    held: NDArray[np.bool_] = field(repr=False)
    beyond: int = 0


def read_copy(path: Path, table: Table, key: str | None = None, exact: bool = False, why: str = "") -> Copy:
    """Return a copy handed in as a file.

    Parameters
    ----------
    path : Path
    table : Table
        The original; with its keys, where records are joined by them.
    key : str, optional
        The column that identifies records. Without it the copy's first records are the original's, in its order.
    exact : bool
        Whether the file may then have no more rows than the original.
    why : str
        What may have made another number of rows, for whoever reads that.

    Raises
    ------
    AuditorError
        The file is missing, lacks a column or is no table of numbers; its keys are no keys; or it has another number of rows.
    """
    try:
        values = _numbers(path, table)
        places = np.arange(len(values)) if key is None else _places(path, table, key)
    except AuditorError as error:
        problem = str(error).replace(MISSING_REMEDY, COMPLETE_REMEDY)
        raise AuditorError(problem if problem.startswith(path.name) else f"{path.name}: {problem}") from None
    if key is None:
        if len(values) < table.rows or (exact and len(values) > table.rows):
            unequal = f"{path.name}: has {len(values):,} rows where the original has {table.rows:,}; rows must match one to one{why}"
            raise AuditorError(f"{unequal}; or {JOIN_REMEDY}")
        return Copy(path.name, values[: table.rows], np.ones(table.rows, dtype=bool))
    known = places >= 0
    joined = np.full((table.rows, table.width), np.nan)
    joined[places[known]] = values[known]
    return Copy(path.name, joined, np.isin(np.arange(table.rows), places), int((~known).sum()))


def _numbers(path: Path, table: Table) -> Array:
    """Return the copy's columns that the original has, as numbers, shape (records, N)."""
    columns = list(table.attributes)
    return load_table(str(path), columns=columns, parameters={}, rng=np.random.default_rng(0), base=None, varied=False).values


def _places(path: Path, table: Table, key: str) -> NDArray[np.intp]:
    """Return where each record of the copy stands in the original; −1 for one that it has not."""
    assert table.keys is not None, "a scenario's data have the key of its schemes"
    known = reading.header(path)
    if key not in known:
        raise DataError(f"there is no key column {quoted(key)}{nearest(key, filter(None, known))}")
    return record_keys(key, pd.Series(column_as_written(pieces_of(path), key), dtype=object)).places_in(table.keys)
