"""Columns that are released as they are, beside perturbed ones: read from the owner's file record by record, and not interpreted.

Cells of a CSV file stay the text they are (``007`` is no number), those of a Parquet file keep their type. Nothing is held but a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from auditor.data.formats import readers as reading
from auditor.data.formats.as_written import frames_as_written
from auditor.data.formats.parts import parts
from auditor.data.load import is_file
from auditor.errors import DataError
from auditor.results.files import located
from auditor.text.column_names import nearest, quoted


class Kept:
    """Some columns of a file, or of a folder of parts, taken from the start on.

    Parameters
    ----------
    data : str
        A path to .csv or .parquet.
    columns : sequence of str
        In the order they are wanted.

    Raises
    ------
    DataError
        ``data`` is no file, or has no such column.
    """

    def __init__(self, data: str, columns: Sequence[str]) -> None:
        names = column_names(data)
        for column in columns:
            if column not in names:
                raise DataError(f"{quoted(Path(data).name)} has no column {quoted(column)} to keep{nearest(column, names)}")
        self.columns = list(columns)
        self._frames = frames_as_written(_files(data), self.columns)
        self._left = pd.DataFrame()

    def take(self, rows: int) -> pd.DataFrame:
        """Return the next so many records, shape (rows, columns).

        Raises
        ------
        DataError
            There are fewer.
        """
        held = [self._left] if len(self._left) else []
        while sum(map(len, held)) < rows:
            frame = next(self._frames, None)
            if frame is None:
                raise DataError("the columns to keep have fewer records than those perturbed; rows must match one to one")
            held.append(frame)
        whole = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
        self._left = whole.iloc[rows:].reset_index(drop=True)
        return whole.iloc[:rows].reset_index(drop=True)

    def finish(self) -> None:
        """Check that nothing is left.

        Raises
        ------
        DataError
            Something is: then the two were not read alike.
        """
        if len(self._left) or any(len(frame) for frame in self._frames):
            raise DataError("the columns to keep have more records than those perturbed; rows must match one to one")


def column_names(data: str) -> list[str]:
    """Return the columns of a file, in order.

    Raises
    ------
    DataError
        ``data`` is no file.
    """
    if not is_file(data) or not located(data):
        raise DataError(f"columns can be kept of a file; {quoted(data)} is none")
    return reading.header(_files(data)[0])


def _files(data: str) -> list[Path]:
    path = located(data)[0]
    return parts(path) if path.is_dir() else [path]
