"""Raw columns before treatment of gaps: blanks and stored kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from auditor.base import DataError, nearest, pd, quoted
from auditor.data.columns.checks import Names, RecordKeys, Series, days_of, plain_days, record_keys
from auditor.data.formats.file_kinds import is_parquet
from auditor.data.formats.parts import column_as_written, frames_of, header
from auditor.data.load import files_of, raw_columns
from auditor.data.table import is_file
from auditor.results.files import located

Stored = Literal["date", "time", "integer", "float", ""]
"""Kind stored in a file: dates, times, integers or floats; "" in a text file."""


def raw_frames(
    data: str, columns: Names | None, rows: int | None, rng: np.random.Generator
) -> Iterator[pd.DataFrame]:
    """Yield the first ``rows`` records of some columns, in batches."""
    raw = raw_columns(data, columns, rows, rng=rng)
    return map(pd.DataFrame, raw.read(raw.names))


class Blanks(NamedTuple):
    """Numbers of records, of incomplete records, and of blank cells by column."""

    records: int
    incomplete: int
    cells: dict[str, int]

    @classmethod
    def of(cls, frames: Iterable[pd.DataFrame]) -> Blanks:
        """Count blanks."""
        records = incomplete = 0
        cells: dict[str, int] = {}
        for frame in frames:
            blank = frame.isna()
            records, incomplete = records + len(frame), incomplete + int(blank.any(axis=1).sum())
            cells = {
                str(name): cells.get(str(name), 0) + int(number)
                for name, number in blank.sum().items()
            }
        return cls(records, incomplete, cells)

    @property
    def total(self) -> int:
        """Number of blank cells."""
        return sum(self.cells.values())


def stored_kinds(
    data: str,
    columns: Names,
    frames: Iterable[pd.DataFrame],
    forms: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Stored]:
    """Each column's kind, by its first values in ``raw_frames``.

    For Parquet by its schema, as integers with gaps become floats in frames. ``forms``: formats of
    dates in text, if not ISO 8601.
    """
    if is_file(data):
        pieces = raw_columns(data, columns).pieces
        first = pieces[0].path
        frames = pieces[0].frames(columns, as_written=True) if is_parquet(first) else frames
        typed = is_parquet(first) or first.suffix.lower() in (".feather", ".arrow")
    else:
        typed = False
    found: dict[str, Stored] = {}
    for frame in frames:
        for name in columns:
            if name not in found and frame[name].notna().any():
                found[name] = _kind(frame[name], typed, forms.get(name))
        if len(found) == len(columns):
            break
    return {name: found.get(name, "") for name in columns}


def _kind(column: Series, typed: bool, form: str | None) -> Stored:
    # pandas treats Arrow's dates as times
    cells = column.astype(object) if isinstance(column.dtype, pd.ArrowDtype) else column
    days = plain_days(cells) if form is None else days_of(cells, form)
    if days is not None:
        whole = bool((days.dropna() % 1 == 0).all())
        return (
            "date"
            if whole and pd.api.types.infer_dtype(cells, skipna=True) in ("date", "string")
            else "time"
        )
    if not typed:
        return ""
    return "integer" if pd.api.types.is_integer_dtype(column.dtype) else "float"


class InStep:
    """Consecutive frames, read some records at a time."""

    def __init__(self, frames: Iterator[pd.DataFrame], what: str) -> None:
        self._frames = frames
        self._what = what
        self._left = pd.DataFrame()

    def take(self, rows: int) -> pd.DataFrame:
        """Next ``rows`` records.

        Raises
        ------
        DataError
            There are fewer.
        """
        held = [self._left] if len(self._left) else []
        while sum(map(len, held)) < rows:
            frame = next(self._frames, None)
            if frame is None:
                raise DataError(
                    f"{self._what} have fewer records than those perturbed; rows must match one to one"
                )
            held.append(frame)
        whole = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
        self._left = whole.iloc[rows:].reset_index(drop=True)
        return whole.iloc[:rows].reset_index(drop=True)

    def finish(self) -> None:
        """Check that no record is left.

        Raises
        ------
        DataError
            One is left: the inputs were read differently.
        """
        if len(self._left) or any(len(frame) for frame in self._frames):
            raise DataError(
                f"{self._what} have more records than those perturbed; rows must match one to one"
            )


def blank_cells(frames: Iterable[pd.DataFrame]) -> InStep:
    """Indicators of blank cells, to be read record by record."""
    return InStep((frame.isna() for frame in frames), "the blanks")


def complete(frames: Iterator[pd.DataFrame], blanks: InStep) -> Iterator[pd.DataFrame]:
    """Yield the records of some columns that are complete in others."""
    for frame in frames:
        yield frame[~blanks.take(len(frame)).any(axis=1)].reset_index(drop=True)


def kept_columns(
    data: str, columns: Names, rows: int | None = None, blanks: InStep | None = None
) -> InStep:
    """Columns of a file or folder of parts, without the records of ``blanks``.

    Raises
    ------
    DataError
        ``data`` is no file, or lacks a column.
    """
    names = column_names(data)
    for column in columns:
        if column not in names:
            raise DataError(
                f"{quoted(Path(data).name)} has no column {quoted(column)} to keep{nearest(column, names)}"
            )
    frames = frames_of(raw_columns(data, columns).pieces, columns, rows, as_written=True)
    return InStep(frames if blanks is None else complete(frames, blanks), "the columns to keep")


def column_names(data: str) -> list[str]:
    """Columns of a file, in order.

    Raises
    ------
    DataError
        ``data`` is no file.
    """
    if not is_file(data) or not located(data):
        raise DataError(f"columns can be kept of a file; {quoted(data)} is none")
    return header(files_of(data)[0])


def file_keys(key: str, data: str) -> RecordKeys:
    """Keys of a file's records, as written."""
    cells = column_as_written(raw_columns(data, [key]).pieces, key)
    return record_keys(key, pd.Series(cells, dtype=object))
