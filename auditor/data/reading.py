"""Reading CSV and Parquet files: strict about shape, silent about content.

pandas renames repeated columns, takes a surplus column for an index and quotes cells in its errors. Here the header is
read first and on its own, a file whose shape is in doubt is refused, and no message or chained exception holds a cell.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from auditor.data.naming import counted, listed
from auditor.errors import DataError

SUFFIXES = (".csv", ".parquet")

# Files that are often given the wrong suffix, by their first bytes.
_SIGNATURES = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\x1f\x8b": "compressed with gzip",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}

# pandas before 3.1 rounds floats unless told; from 3.1 it reads them exactly, and telling it so is deprecated.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT_FLOATS: dict[str, Any] = {} if _PANDAS >= (3, 1) else {"float_precision": "round_trip"}


def header(path: Path) -> list[str]:
    """Return a file's column names, in order and unchanged; an unnamed column is an empty string.

    Raises
    ------
    DataError
        The file cannot be read, is empty, is not what its suffix says, or names a column twice.
    """
    with _told_as(path):
        _not_empty(path)
        names = _csv_header(path) if path.suffix.lower() == ".csv" else _parquet_header(path)
    repeated = [name for name, times in Counter(names).items() if name and times > 1]
    if repeated:
        raise DataError(f"{path.name}: more than one column is called {listed(repeated)}")
    return names


def read(path: Path, columns: Sequence[str], rows: int | None = None) -> pd.DataFrame:
    """Return some columns of a file, in the order asked for.

    Parameters
    ----------
    path : Path
        A ``.csv`` or ``.parquet`` file.
    columns : sequence of str
        Names that `header` returned.
    rows : int or None
        Read no more than so many records from the start of the file.

    Raises
    ------
    DataError
        The file cannot be read or is damaged.
    """
    with _told_as(path):
        reader = _read_csv if path.suffix.lower() == ".csv" else _read_parquet
        return reader(path, columns, rows)


@contextmanager
def _told_as(path: Path) -> Iterator[None]:
    """Turn what a reader raises into a `DataError` without the reader's own words, which may quote a cell."""
    try:
        yield
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: is not UTF-8 text; save it with that encoding") from None
    except pd.errors.ParserError as error:
        raise DataError(f"{path.name}: {_shape_of(str(error))}") from None
    except (pa.ArrowException, csv.Error, ValueError, OverflowError):
        kind = "CSV" if path.suffix.lower() == ".csv" else "Parquet"
        raise DataError(f"{path.name}: cannot be read as {kind}; the file is damaged or is something else") from None
    except OSError as error:
        why = error.strerror or "the file is damaged"
        raise DataError(f"{path.name}: cannot be read: {why}") from None


def _shape_of(message: str) -> str:
    uneven = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if uneven:
        expected, line, found = uneven.groups()
        return f"line {line} has {found} cells under {expected} column names"
    return "cannot be read as CSV; is a quotation mark left open?"


def _not_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise DataError(f"{path.name}: the file is empty")


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv_header(path: Path) -> list[str]:
    _is_text(path)
    with path.open(encoding="utf-8-sig", newline="") as lines:
        records = (record for record in csv.reader(lines) if "".join(record).strip() or len(record) > 1)
        names, first = next(records, None), next(records, None)
    if names is None:
        raise DataError(f"{path.name}: the file is empty")
    _has_names(path, names)
    if first is None:
        raise DataError(f"{path.name}: has a header but no records")
    _has_commas(path, names, first)
    if len(first) > len(names):
        raise DataError(f"{path.name}: data row 1 has {len(first)} cells under {len(names)} column names")
    return names


def _is_text(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(4096)
    for signature, what in _SIGNATURES.items():
        if start.startswith(signature):
            raise DataError(f"{path.name}: is not CSV but {what}")
    if b"\0" in start:
        raise DataError(f"{path.name}: is not text")


def _has_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a file without a header: its first record would be taken for names, and printed as such."""
    counts = [[str(i + start) for i in range(len(names))] for start in (0, 1)]  # as written from an unnamed array
    if list(names) not in counts and all(_is_number(name) for name in names):
        raise DataError(f"{path.name}: the first line holds numbers where the column names should be; add a header")


def _has_commas(path: Path, names: Sequence[str], first: Sequence[str]) -> None:
    for mark, what in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(names) == 1 and mark in names[0] and mark in ",".join(first):
            raise DataError(f"{path.name}: cells are separated by {what}; save the file with commas")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_csv(path: Path, columns: Sequence[str], rows: int | None) -> pd.DataFrame:
    names = _csv_header(path)
    # All columns are read, since with `usecols` pandas no longer notices a record with too many cells.
    frame: pd.DataFrame = pd.read_csv(
        path, encoding="utf-8-sig", index_col=False, low_memory=False, nrows=rows, **_EXACT_FLOATS
    )
    if len(frame.columns) != len(names):
        raise DataError(f"{path.name}: the first line cannot be read as column names")
    frame.columns = pd.Index(names)
    return pd.DataFrame({name: _numbers_if_all_are(frame[name]) for name in columns})


def _numbers_if_all_are(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the numbers of a column that pandas left as text though every cell is one (beyond 64 bits, say)."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if bool((numbers.notna() | column.isna()).all()) else column


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _parquet_header(path: Path) -> list[str]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        names, records = list(file.schema_arrow.names), file.metadata.num_rows
    if not names:
        raise DataError(f"{path.name}: has no columns")
    if not records:
        raise DataError(f"{path.name}: has {counted(len(names), 'column')} but no records")
    # pandas stores an unnamed index as a column of this name.
    return ["" if re.fullmatch(r"__index_level_\d+__", name) else name for name in names]


def _read_parquet(path: Path, columns: Sequence[str], rows: int | None) -> pd.DataFrame:
    batches, held = [], 0
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        # A dot means a nested field to the reader, so a name with a dot is picked afterwards.
        wanted = None if any("." in name for name in columns) else list(columns)
        for batch in file.iter_batches(row_groups=_first_groups(file.metadata, rows), columns=wanted):
            batches.append(batch)
            held += batch.num_rows
            if rows is not None and held >= rows:
                break
    table = pa.Table.from_batches(batches).select(list(columns)).slice(0, rows)
    # The metadata would turn a named index back into one, and lose the column.
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame


def _first_groups(metadata: pq.FileMetaData, rows: int | None) -> list[int]:
    """Return the row groups that hold the first ``rows`` records: batches would run on into the next ones."""
    ends = accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return [group for group, start in enumerate((0, *ends)) if rows is None or start < rows][: metadata.num_row_groups]
