"""Reads a copy of categories from a file: the codes that its values have in the original's domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import Attribute, CategoricalTable, bin_codes, joined
from auditor.data.columns.checks import kind_of
from auditor.data.load import read_columns
from auditor.errors import AuditorError
from auditor.text.column_names import counted, quoted
from auditor.types import Codes

COMPLETE_REMEDY = "a copy's records must match the original's one to one: leave those records out of the original and of every copy"


def read_codes(path: Path, data: CategoricalTable, exact: bool = False, why: str = "") -> Codes:
    """Return a copy's codes, shape (n,).

    Parameters
    ----------
    path : Path
        A file that has the categorical columns of the original, whatever else it has.
    data : CategoricalTable
        The original; of a binned column a copy may hold numbers, which are cut into the same bins, or the bins' names.
    exact : bool
        Whether the file may have no more rows than the original.
    why : str
        What may have made another number of rows, for whoever reads that.

    Raises
    ------
    AuditorError
        The file is missing, lacks a column, a value or a row, or holds a value outside the domain. No message holds a value.
    """
    try:
        frame = read_columns(str(path), list(data.names))
    except AuditorError as error:
        problem = str(error)
        raise AuditorError(problem if problem.startswith(path.name) else f"{path.name}: {problem}") from None
    if len(frame) < data.rows or (exact and len(frame) > data.rows):
        raise AuditorError(f"{path.name}: has {len(frame):,} rows where the original has {data.rows:,}; rows must match one to one{why}")
    frame = frame.iloc[: data.rows]
    return joined(data.attributes, [_codes(path, frame[attribute.name], attribute) for attribute in data.attributes])


def _codes(path: Path, column: pd.Series[Any], attribute: Attribute) -> NDArray[np.intp]:
    """Return one column's codes.

    Raises
    ------
    AuditorError
        Naming file and column, and how many records are at fault.
    """
    where = f"{path.name}: column {quoted(attribute.name)}"
    if column.isna().any():
        raise AuditorError(f"{where} lacks a value in {counted(int(column.isna().sum()), 'record')}; {COMPLETE_REMEDY}")
    if attribute.edges is not None and kind_of(column) == "numbers":
        return bin_codes(column.to_numpy(dtype=np.float64), attribute.edges)
    codes = pd.Index(attribute.labels).get_indexer(pd.Index(column.astype(object)))
    # A reader takes the digits of one file for numbers and those of another, where one value is no number, for text.
    as_text = pd.Index([str(label) for label in attribute.labels])
    if (codes < 0).any() and as_text.is_unique:
        codes = np.where(codes < 0, as_text.get_indexer(pd.Index(column.astype(str))), codes)
    if (codes < 0).any():
        remedy = f"declare every value that a copy may show, as `categorical: {{{attribute.name}: [...]}}`"
        raise AuditorError(f"{where} has {counted(int((codes < 0).sum()), 'record')} outside the original's domain; {remedy}")
    return np.asarray(codes, dtype=np.intp)
