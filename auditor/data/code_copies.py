"""Read a categorical copy from a file as codes of the original's domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import Attribute, CategoricalTable, bin_codes, joined
from auditor.data.columns.checks import kind_of
from auditor.data.columns.record_keys import RecordKeys
from auditor.data.copies import check_rows_match, named_after, places_by_key
from auditor.data.formats import readers as reading
from auditor.data.load import read_columns
from auditor.errors import AuditorError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, quoted
from auditor.types import Codes, Indices


class CodeCopy(NamedTuple):
    """A copy's codes, complete records, and file rows (−1 if lacking), all of shape (n,)."""

    codes: Codes
    full: NDArray[np.bool_]
    rows: Indices


def read_codes(
    path: Path,
    data: CategoricalTable,
    keys: RecordKeys | None = None,
    exact: bool = False,
    why: str = "",
    dropped: bool = False,
) -> CodeCopy:
    """Return a copy in the original's records.

    Parameters
    ----------
    path : Path
        A file with the categorical columns of the original; other columns are ignored.
    data : CategoricalTable
        The original. For a binned column a copy may hold numbers, which are binned, or the bins'
        names.
    keys : RecordKeys, optional
        The original's, to join by. Otherwise the copy's first records are the original's, in its
        order.
    exact : bool
        Whether surplus rows are refused.
    why : str
        Possible reason for a different number of rows, for the message.
    dropped : bool
        Whether records with a blank were excluded from the original, and so from the copy.

    Raises
    ------
    AuditorError
        The file is missing or lacks a column, has another number of rows, no keys, or a value
        outside the domain. No message holds a value.
    """
    with named_after(path):
        frame = read_columns(str(path), list(data.names))
        if keys is None and dropped and len(frame) > data.rows:
            frame = frame[frame.notna().all(axis=1)]
        kept, frame = frame.index.to_numpy(), frame.reset_index(drop=True)
        places = (
            np.arange(len(frame))
            if keys is None
            else places_by_key(path, keys, keys.name, reading.header(path))
        )
    if keys is None:
        check_rows_match(path, len(frame), data.rows, exact, why)
    columns = [_codes(path, frame[attribute.name], attribute) for attribute in data.attributes]
    full = np.logical_and.reduce([column >= 0 for column in columns])
    found = np.flatnonzero(full & (places >= 0) & (places < data.rows))
    copy = CodeCopy(
        np.zeros(data.rows, dtype=data.code_type),
        np.zeros(data.rows, dtype=bool),
        np.full(data.rows, -1),
    )
    copy.codes[places[found]] = joined(data.attributes, [column[found] for column in columns])
    copy.full[places[found]] = True
    copy.rows[places[found]] = kept[found]
    return copy


def _codes(path: Path, column: pd.Series[Any], attribute: Attribute) -> NDArray[np.intp]:
    """Return one column's codes, shape (records,); −1 for a missing answer.

    Raises
    ------
    AuditorError
        Naming file and column, and the number of faulty records.
    """
    codes, given = np.full(len(column), -1, dtype=np.intp), column.notna().to_numpy()
    codes[given] = _codes_of(column[given], attribute)
    outside = int((codes[given] < 0).sum())
    if outside:
        where = f"{path.name}: column {quoted(attribute.name)} has {counted(outside, 'record')} outside the original's domain"
        raise AuditorError(
            f"{where}; declare every value that a copy may show, as `categorical: {{{attribute.name}: [...]}}`"
        )
    return codes


def _codes_of(answers: pd.Series[Any], attribute: Attribute) -> NDArray[np.intp]:
    if attribute.edges is not None and kind_of(answers) == "numbers":
        return bin_codes(answers.to_numpy(dtype=np.float64), attribute.edges)
    codes = pd.Index(attribute.labels).get_indexer(pd.Index(answers.astype(object)))
    # Digits may be numbers in one file, and text in another with a non-numeric value.
    as_text = pd.Index([str(label) for label in attribute.labels])
    if (codes < 0).any() and as_text.is_unique:
        codes = np.where(codes < 0, as_text.get_indexer(pd.Index(answers.astype(str))), codes)
    return np.asarray(codes, dtype=np.intp)
