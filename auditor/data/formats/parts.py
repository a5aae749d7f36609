"""Headers of files, and pieces of large files.

Headers are read first, and doubtful shapes refused: pandas renames repeated columns, uses a surplus
one as index and quotes cells in errors.

A piece is a Parquet row group, a few megabytes of whole CSV lines, or another file. It holds no cells.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import IO, Any

from auditor.base import DataError, counted, listed, pa, pd, pq, quoted
from auditor.base.types import Names, frozen
from auditor.data.columns.categorical_table import Attribute, unspelt
from auditor.data.columns.scan import in_threads
from auditor.data.formats.file_kinds import (
    SUFFIXES,
    held,
    index_columns,
    is_parquet,
    is_text,
    labelled,
    name_of,
    remembered,
)
from auditor.data.formats.text_files import (
    BLANKS,
    LOOKED_AT,
    check_names,
    check_records,
    opened,
    start_of,
    text_frame,
)
from auditor.results.files import reading_of

CSV_BYTES = 2**22
"""Bytes of CSV per piece: some 10^5 records of four numbers, five times as many bytes while parsed.
"""
BATCH_ROWS = 2**16
"""Records of a Parquet row group decoded at once."""
BUFFER_BYTES = 2**20
"""Read buffer for a column of a row group."""


@frozen
class Piece:
    """Some records of one file.

    Attributes
    ----------
    place
        Row group or byte offset; 0 in a file held whole.
    stop
        Byte offset of its end; 0 for a row group.
    rows
        Records to read; −1: all, not counted yet.
    """

    path: Path
    place: int
    stop: int = 0
    rows: int = -1

    def frames(self, columns: Names, as_written: bool) -> Iterator[Any]:
        """Yield batches of some columns, in the requested order.

        As written, text cells stay text (``007``), and labelled values show their labels.

        Raises
        ------
        DataError
            The file cannot be read or is damaged.
        """
        path = self.path
        with reader_errors(path):
            if is_parquet(path):
                for batch in _batches(self, columns):
                    yield (
                        batch.to_pandas(types_mapper=pd.ArrowDtype)
                        if as_written
                        else _blanked(batch.to_pandas(), path)
                    )
            elif is_text(path):
                place = max(self.place, start_of(path).stop)
                rows = None if self.rows < 0 else self.rows
                with opened(path) as file:
                    file.seek(place)
                    body = file.read(max(0, self.stop - place))
                yield text_frame(body, path, columns, rows, as_written)
            else:
                whole = labelled(path) if as_written else held(path).frame
                frame = whole[list(columns)].head(self.rows)
                yield frame if as_written else _blanked(frame, path)


def _batches(piece: Piece, columns: Names) -> Iterator[pa.RecordBatch]:
    left, known = piece.rows, _metadata(piece.path)
    with pq.ParquetFile(
        piece.path,
        metadata=known,
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=BUFFER_BYTES,
    ) as file:
        # The reader reads a dotted name as a nested field.
        wanted = None if any("." in name for name in columns) else list(columns)
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=[piece.place], columns=wanted, use_threads=False
        ):
            # pandas' metadata may be damaged, and would turn a column into the index
            chosen = batch.select(list(columns)).replace_schema_metadata(None)
            # not UTF-8: would fail later, cell by cell
            chosen.validate(full=True)
            yield chosen.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return


@remembered(files=16)
def _metadata(path: Path) -> pq.FileMetaData:
    return pq.read_metadata(path)


def _blanked(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    marks = reading_of(path).blank
    if not marks:
        return frame
    numbers = pd.to_numeric(pd.Series(marks, dtype=object), errors="coerce").dropna()
    found = frame[frame.select_dtypes(["number", "object", "string", "category"]).columns]
    return frame.assign(**found.mask(found.isin([*marks, *numbers])))


def column_as_written(pieces: Sequence[Piece], column: str) -> list[Any]:
    """One column of the pieces' records, as written."""
    frames = frames_of(pieces, [column], as_written=True)
    return [cell for frame in frames for cell in frame[column].tolist()]


def as_spelt(pieces: Sequence[Piece], attribute: Attribute) -> Attribute:
    """Attribute as spelt in text files (``01``), unless spelt in several ways."""
    labels = {unspelt(label): str(label) for label in attribute.labels}
    texts = any(isinstance(label, str) for label in attribute.labels)
    if attribute.edges is not None or texts or not all(is_text(piece.path) for piece in pieces):
        return attribute
    frames = frames_of(pieces, [attribute.name], as_written=True)
    cells = {cell for frame in frames for cell in frame[attribute.name].unique()}
    spelt = {unspelt(cell): cell for cell in cells if unspelt(cell) in labels}
    if (
        len(spelt) < sum(unspelt(cell) in labels for cell in cells)
        or spelt.items() <= labels.items()
    ):
        return attribute
    return replace(attribute, labels=tuple({**labels, **spelt}.values()))


def blank_words(pieces: Sequence[Piece]) -> dict[str, Counter[str]]:
    """Counts of words that are read as blank, by text column."""
    found: dict[str, Counter[str]] = {}
    for piece in pieces:
        names = start_of(piece.path).words if is_text(piece.path) else []
        for frame in piece.frames(names, as_written=True) if names else ():
            for name in names:
                cells = frame[name][frame[name].isin(BLANKS)]
                found.setdefault(name, Counter()).update(cells.tolist())
    return found


def coded_columns(piece: Piece) -> frozenset[str]:
    """A text file's columns with leading zeros (``04109``) in the first cells."""
    if not is_text(piece.path):
        return frozenset()
    names = list(filter(None, header(piece.path)))
    (frame,) = replace(piece, rows=LOOKED_AT // len(names)).frames(names, as_written=True)
    return frozenset(name for name in names if frame[name].str.fullmatch(r"\s*0\d+\s*").any())


def frames_of(
    pieces: Sequence[Piece], names: Names, rows: int | None = None, as_written: bool = False
) -> Iterator[Any]:
    """Yield the first ``rows`` records of some columns, in batches as ``Piece.frames``."""
    left = sys.maxsize if rows is None else rows
    read = methodcaller("frames", names, as_written)
    if pieces and is_text(pieces[0].path):
        for frame in chain.from_iterable(in_threads(lambda piece: list(read(piece)), pieces)):
            yield frame.head(left)
            left -= len(frame)
            if left <= 0:
                return
    else:
        for piece in pieces:
            if left > 0:
                yield from read(replace(piece, rows=min(piece.rows, left)))
            left -= piece.rows


def whole_frame(pieces: Sequence[Piece], names: Names, rows: int | None = None) -> pd.DataFrame:
    """Columns of any kind, in memory."""
    return joined_frames(frames_of(pieces, names, rows))


def joined_frames(frames: Iterable[Any]) -> pd.DataFrame:
    """Consecutive records as one frame; empty columns have any kind."""
    held = [pd.DataFrame(frame) for frame in frames]
    some = [frame for frame in held if len(frame)] or held[:1] or [pd.DataFrame()]
    return pd.concat(some, ignore_index=True) if len(some) > 1 else some[0]


def pieces_of(path: Path) -> list[Piece]:
    """Pieces of one file."""
    if is_text(path):
        return text_pieces(path)
    with reader_errors(path):
        if not is_parquet(path):
            return [Piece(path, 0, rows=len(held(path).frame))]
        known = _metadata(path)
        counts = [known.row_group(group).num_rows for group in range(known.num_row_groups)]
    return [Piece(path, group, rows=rows) for group, rows in enumerate(counts) if rows]


def size_of_values(pieces: Sequence[Piece], columns: int) -> int:
    """Bytes of records as numbers, or of text files."""
    return sum(
        piece.stop - piece.place if piece.stop else 8 * piece.rows * columns for piece in pieces
    )


def text_pieces(path: Path) -> list[Piece]:
    """Pieces of a CSV file, cut at line breaks outside quotes.

    A mark in a cell (``5'11"``) can only delay a cut. A cut in a quotation fails to parse: the file
    is refused.
    """
    with reader_errors(path), opened(path) as file:
        size = file.seek(0, io.SEEK_END)
        pieces: list[Piece] = []
        start = 0
        while start < size:
            stop = _next_cut(file, start, size)
            pieces.append(Piece(path, start, stop))
            start = stop
    return pieces


def _next_cut(file: IO[bytes], start: int, size: int) -> int:
    file.seek(start)
    held = b""
    while True:
        more = file.read(CSV_BYTES)
        held += more
        if not more or start + len(held) >= size:
            return size
        cut = len(held)
        while (cut := held.rfind(b"\n", 0, cut)) >= 0:
            if held.count(b'"', 0, cut) % 2 == 0:
                return start + cut + 1


def parts(folder: Path) -> list[Path]:
    """Files of a folder of parts, by name, without hidden files.

    Raises
    ------
    DataError
        The folder has no table, several kinds, or other entries.
    """
    with reader_errors(folder):
        inside = sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith((".", "_")) and path.is_file()
        )
    found = [path for path in inside if path.suffix.lower() in SUFFIXES]
    kinds = {path.suffix.lower() for path in found}
    if not found:
        raise DataError(f"source {quoted(folder.name)} is a folder that holds no table")
    others = [path.name for path in inside if path.suffix.lower() not in SUFFIXES]
    if others:
        raise DataError(
            f"source {quoted(folder.name)} is a folder that holds more than parts of one table: {listed(others)}"
        )
    if len(kinds) > 1:
        every = " and ".join(sorted(kinds))
        raise DataError(
            f"source {quoted(folder.name)} is a folder that holds {every} files; parts of one table are of one kind"
        )
    return found


def header(path: Path, empty: bool = False) -> list[str]:
    """A file's column names, unchanged; "" for an unnamed column.

    ``empty``: records may be missing, as in one of many parts.

    Raises
    ------
    DataError
        The file is unreadable, empty, of another kind than its suffix, or repeats a name.
    """
    return _header(path, empty)[0]


def stored_names(path: Path) -> list[str]:
    """A file's column names, of a data frame's index too."""
    return list(pq.read_schema(path).names) if is_parquet(path) else [*dict.fromkeys(header(path))]


def notes_of(path: Path) -> list[str]:
    """Notes on reading a file; errors as in ``header``."""
    return [f"{path.name}: {note}" for note in _header(path, empty=True)[1]]


def _header(path: Path, empty: bool) -> tuple[list[str], list[str]]:
    with reader_errors(path):
        if path.stat().st_size == 0:
            raise DataError(f"{path.name}: the file is empty")
        if reading_of(path).sheet is not None and name_of(path) != "Excel":
            raise DataError(f"{path.name}: has no sheets, as Excel workbooks have")
        if is_text(path):
            start = start_of(path)
            if not start.width and not empty:
                raise DataError(f"{path.name}: has a header but no records")
            if start.width > len(start.names):
                raise DataError(
                    f"{path.name}: data row 1 has {start.width} cells under {len(start.names)} column names"
                )
            return start.names, start.notes
        names, records, notes = _parquet(path) if is_parquet(path) else _whole(path)
    if not names:
        raise DataError(f"{path.name}: has no columns")
    if not records and not empty:
        raise DataError(f"{path.name}: has {counted(len(names), 'column')} but no records")
    check_names(path.name, names)
    return names, notes


def _parquet(path: Path) -> tuple[list[str], int, list[str]]:
    notes: list[str] = []
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        schema, records = file.schema_arrow, file.metadata.num_rows
    index = index_columns(schema, notes)
    names = [name for name in schema.names if name not in index]
    # pandas' name for an unnamed index without metadata
    return (
        ["" if re.fullmatch(r"__index_level_\d+__", name) else name for name in names],
        records,
        notes,
    )


def _whole(path: Path) -> tuple[list[str], int, list[str]]:
    frame, notes = held(path)
    names = list(frame.columns)
    check_names(path.name, names)
    few = frame.head(LOOKED_AT // max(1, len(names)))
    check_records(path.name, names, few.astype(str).itertuples(index=False))
    return names, len(frame), list(notes)


@contextmanager
def reader_errors(path: Path) -> Iterator[None]:
    """Convert a reader's exception to `DataError`, without cells it may quote."""
    try:
        yield
    # a generator may be closed at exit, when imports fail
    except (DataError, MemoryError, GeneratorExit):
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: is not UTF-8 text; save it with that encoding") from None
    except pd.errors.ParserError:
        raise DataError(f"{path.name}: {_shape_of(path)}") from None
    except Exception as error:  # each library has its own errors
        why = f"as {name_of(path)}; the file is damaged or is something else"
        if isinstance(error, OSError) and error.strerror:
            why = f": {error.strerror}"
        raise DataError(f"{path.name}: cannot be read{' ' * (why[0] != ':')}{why}") from None


def _shape_of(path: Path) -> str:
    start = start_of(path)
    with io.TextIOWrapper(opened(path), "utf-8-sig", newline="") as file:
        reader, line = csv.reader(file, delimiter=start.delimiter), 1
        for record in reader:
            if len(record) > len(start.names):
                return f"line {line} has {len(record)} cells under {len(start.names)} column names"
            line = reader.line_num + 1
    return "cannot be read as CSV; is a quotation mark left open?"
