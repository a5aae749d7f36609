"""Read files, strictly in shape and without quoting content.

pandas renames repeated columns, uses a surplus column as index and quotes cells in errors. So the
header is read first and separately, a doubtful shape is refused, and no message or chained
exception holds a cell.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from auditor.data.formats import headers
from auditor.data.formats.file_kinds import held, index_columns, is_parquet, is_text, name_of
from auditor.data.formats.number_marks import NEITHER, as_numbers
from auditor.data.formats.text_files import BYTE_ORDER_MARK, opened, spelling
from auditor.errors import DataError
from auditor.process.deferred import pa, pd, pq
from auditor.text.column_names import counted
from auditor.text.safe_text import with_formula


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


def _header(path: Path, empty: bool) -> tuple[list[str], Sequence[str]]:
    with reader_errors(path):
        _not_empty(path)
        names, notes = (
            _text_header if is_text(path) else _parquet_header if is_parquet(path) else _held_header
        )(path, empty)
    headers.check_names(path.name, names)
    return names, notes


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


def _not_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise DataError(f"{path.name}: the file is empty")


# -- CSV
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """Header of a CSV file, and the start of its records.

    Attributes
    ----------
    names : list of str
        Column names.
    line : bytes
        The header's bytes, with line breaks in quoted names, without a byte order mark and
        preceding blank lines.
    stop : int
        Bytes of the file before its first record.
    lines : int
        Line breaks before its first record.
    """

    names: list[str]
    line: bytes
    stop: int
    lines: int


def csv_head(path: Path) -> Head:
    """Return a CSV file's header; the apostrophe before a name that starts a formula is not part of the name.

    Raises
    ------
    DataError
        Every line is blank.
    """
    passed: list[str] = []
    with io.TextIOWrapper(opened(path), encoding="utf-8", newline="") as file:

        def noted() -> Iterator[str]:
            for line in file:
                passed.append(line)
                yield line

        lines = noted()
        first = next((line for line in lines if line.removeprefix(BYTE_ORDER_MARK).strip()), None)
        if first is None:
            raise DataError(f"{path.name}: the file is empty")
        above = "".join(passed[:-1])
        cells = next(
            csv.reader(
                chain([first.removeprefix(BYTE_ORDER_MARK)], lines),
                delimiter=spelling(path).delimiter,
            )
        )
    whole = "".join(passed)
    line = whole.removeprefix(above).removeprefix(BYTE_ORDER_MARK)
    return Head(
        [with_formula(cell) for cell in cells],
        line.encode(),
        len(whole.encode()),
        whole.count("\n"),
    )


def _text_header(path: Path, empty: bool) -> tuple[list[str], Sequence[str]]:
    names = csv_header(path, empty)
    headers.check_records(path.name, names, csv_records(path))  # once per file, not per piece
    return names, spelling(path).notes


def csv_header(path: Path, empty: bool = False) -> list[str]:
    """Return the column names of a CSV file, checked against its records."""
    names = csv_head(path).names
    first = next(csv_records(path), None)
    headers.check_names(path.name, names)
    if first is None and empty:
        return names
    if first is None:
        raise DataError(f"{path.name}: has a header but no records")
    if len(first) > len(names):
        raise DataError(
            f"{path.name}: data row 1 has {len(first)} cells under {len(names)} column names"
        )
    return names


def csv_records(path: Path) -> Iterator[list[str]]:
    """Yield the records of a CSV file as lists of text.

    A blank line is no record, except in a table of one column, where it is a missing value.
    """
    head = csv_head(path)
    with opened(path) as file:
        file.seek(head.stop)
        with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            for record in csv.reader(text, delimiter=spelling(path).delimiter):
                if len(head.names) == 1 or len(record) > 1 or "".join(record).strip():
                    yield record or [""]


def csv_frame(
    text: bytes, path: Path, names: Sequence[str], columns: Sequence[str], rows: int | None
) -> pd.DataFrame:
    """Return some columns of CSV text: a piece after the file's header.

    Records as in `csv_records`.
    """
    _, delimiter, marks = spelling(path)
    # All columns are read: with `usecols` pandas does not detect a record with too many cells.
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(text),
        encoding="utf-8",
        index_col=False,
        low_memory=False,
        nrows=rows,
        skip_blank_lines=len(names) > 1,
        sep=delimiter,
        decimal=marks.decimal or NEITHER,
        **_exact_floats(),
    )
    if len(frame.columns) != len(names):
        raise DataError(f"{path.name}: the first line cannot be read as column names")
    frame.columns = pd.Index(names)
    return pd.DataFrame({name: as_numbers(path.name, frame[name], marks) for name in columns})


# -- Parquet
# -----------------------------------------------------------------------------------------------------------


def _parquet_header(path: Path, empty: bool) -> tuple[list[str], Sequence[str]]:
    notes: list[str] = []
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        index = index_columns(file.schema_arrow, notes)
        names, records = (
            [name for name in file.schema_arrow.names if name not in index],
            file.metadata.num_rows,
        )
    _not_bare(path, names, records, empty)
    # pandas' column name for an unnamed index, if its metadata were lost.
    return ["" if re.fullmatch(r"__index_level_\d+__", name) else name for name in names], notes


def _not_bare(path: Path, names: Sequence[str], records: int, empty: bool) -> None:
    if not names:
        raise DataError(f"{path.name}: has no columns")
    if not records and not empty:
        raise DataError(f"{path.name}: has {counted(len(names), 'column')} but no records")


# -- others, in memory
# -------------------------------------------------------------------------------------------------


def _held_header(path: Path, empty: bool) -> tuple[list[str], Sequence[str]]:
    frame, notes = held(path)
    names = list(frame.columns)
    _not_bare(path, names, len(frame), empty)
    headers.check_names(path.name, names)
    few = frame.head(headers.LOOKED_AT // len(names))
    headers.check_records(
        path.name, names, islice(few.astype(str).itertuples(index=False), len(few))
    )
    return names, notes


def _exact_floats() -> dict[str, Any]:
    """Return options for exact floats.

    pandas before 3.1 rounds by default; from 3.1 the option is deprecated.
    """
    before = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    return {"float_precision": "round_trip"} if before else {}
