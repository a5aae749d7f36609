"""Unperturbed columns of a release, copied from the owner's file.

Cells of a CSV file stay text (``007`` is no number), cells of other kinds keep their type. One
batch is held at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import parts, pieces_of
from auditor.data.raw_columns import InStep, complete, first
from auditor.data.request import is_file
from auditor.errors import DataError
from auditor.results.files import located
from auditor.text.column_names import nearest, quoted


class Kept(InStep):
    """Some columns of a file or folder of parts, read in order.

    Parameters
    ----------
    data : str
        A path to a file of data.
    columns : sequence of str
        In output order.
    rows : int, optional
        Number of first records.
    blanks : InStep, optional
        Of the perturbed columns: records that lack any of these are skipped.

    Raises
    ------
    DataError
        ``data`` is no file, or lacks a column.
    """

    def __init__(
        self,
        data: str,
        columns: Sequence[str],
        rows: int | None = None,
        blanks: InStep | None = None,
    ) -> None:
        names = column_names(data)
        for column in columns:
            if column not in names:
                raise DataError(
                    f"{quoted(Path(data).name)} has no column {quoted(column)} to keep{nearest(column, names)}"
                )
        self.columns = list(columns)
        pieces = (piece for path in _files(data) for piece in pieces_of(path))
        frames = first(
            (frame for piece in pieces for frame in piece.frames(self.columns, as_written=True)),
            rows,
        )
        super().__init__(
            frames if blanks is None else complete(frames, blanks), "the columns to keep"
        )


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
