"""Cells of a file as written: text from CSV, typed values otherwise.

``007`` stays text. One batch at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from auditor.data.formats import headers
from auditor.data.formats import readers as reading
from auditor.data.formats.file_kinds import is_parquet, is_text, labelled
from auditor.data.formats.parts import BATCH_ROWS, Piece
from auditor.process.deferred import pd, pq

_CODE = re.compile(r"\s*0\d+\s*")


def frames_as_written(files: Sequence[Path], columns: list[str]) -> Iterator[pd.DataFrame]:
    """Yield some columns of consecutive files, in the requested order.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    for path in files:
        with reading.reader_errors(path):
            yield from (_text if is_text(path) else _typed if is_parquet(path) else _held)(
                path, columns
            )


def column_as_written(pieces: Iterable[Piece], column: str) -> list[Any]:
    """Return one column of all records in the pieces' files."""
    files = list(dict.fromkeys(Path(piece.path) for piece in pieces))
    return [cell for frame in frames_as_written(files, [column]) for cell in frame[column].tolist()]


def coded_columns(file: str) -> frozenset[str]:
    """Return the text columns with leading zeros among the first cells.

    ``04109`` is a code, not a number.
    """
    if not is_text(path := Path(file)):
        return frozenset()
    with reading.reader_errors(path):
        names = reading.csv_head(path).names
        first = islice(reading.csv_records(path), headers.LOOKED_AT // len(names))
        return frozenset(
            name
            for record in first
            for name, cell in zip(names, record, strict=False)
            if _CODE.fullmatch(cell)
        )


def _text(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    names = reading.csv_head(path).names
    places = [names.index(column) for column in columns]
    batch: list[list[str]] = []
    for record in reading.csv_records(path):
        batch.append([record[place] if place < len(record) else "" for place in places])
        if len(batch) == BATCH_ROWS:
            yield pd.DataFrame(batch, columns=columns, dtype="str")
            batch = []
    if batch:
        yield pd.DataFrame(batch, columns=columns, dtype="str")


def _typed(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
        # the reader reads a dot as a nested field
        wanted = None if any("." in name for name in columns) else columns
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False):
            chosen = batch.select(columns)
            chosen.validate(full=True)  # as in `auditor.data.formats.parts`: text that is not UTF-8
            yield chosen.replace_schema_metadata(None).to_pandas(types_mapper=pd.ArrowDtype)


def _held(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    frame = labelled(path)[columns]
    for start in range(0, len(frame), BATCH_ROWS):
        yield frame.iloc[start : start + BATCH_ROWS].reset_index(drop=True)
