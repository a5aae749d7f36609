"""Headers of files, and errors of readers without quoting content.

pandas renames repeated columns, uses a surplus column as index and quotes cells in errors. So the
header is read first and separately, a doubtful shape is refused, and no message or chained
exception holds a cell.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.base.errors import DataError
from auditor.base.text import counted
from auditor.data.formats.file_kinds import held, index_columns, is_parquet, is_text, name_of
from auditor.data.formats.text_files import LOOKED_AT, check_names, check_records, start_of
from auditor.process.deferred import pa, pd, pq
from auditor.results.files import reading_of


def header(path: Path, empty: bool = False) -> list[str]:
    """Return a file's column names, unchanged; "" for an unnamed column.

    Parameters
    ----------
    path : Path
    empty : bool
        Whether the file may have no records, like one of many parts.

    Raises
    ------
    DataError
        The file cannot be read, is empty, does not match its suffix, or repeats a column name.
    """
    return _header(path, empty)[0]


def notes_of(path: Path) -> list[str]:
    """Return notes on how a file is read; for errors see ``header``."""
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
    # pandas' column name for an unnamed index, if its metadata were lost
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
    """Convert a reader's exception to `DataError`, without its own message.

    The message may quote a cell.
    """
    try:
        yield
    # the generator was closed, perhaps at exit, when the libraries below can no longer be imported
    except GeneratorExit:
        raise
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: is not UTF-8 text; save it with that encoding") from None
    except pd.errors.ParserError as error:
        raise DataError(f"{path.name}: {shape_of(str(error))}") from None
    except (pa.ArrowException, csv.Error, ValueError, OverflowError):
        raise DataError(
            f"{path.name}: cannot be read as {name_of(path)}; the file is damaged or is something else"
        ) from None
    except OSError as error:
        why = error.strerror or "the file is damaged"
        raise DataError(f"{path.name}: cannot be read: {why}") from None


def shape_of(message: str, lines: int = 0) -> str:
    """Return the shape fault of a CSV file from pandas' message on a piece.

    ``lines`` precede the piece.
    """
    uneven = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if uneven:
        expected, line, found = uneven.groups()
        return f"line {int(line) + lines} has {found} cells under {expected} column names"
    return "cannot be read as CSV; is a quotation mark left open?"
