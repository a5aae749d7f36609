"""Kinds of table files by suffix, and readers of files held whole.

CSV (``text_files``) and Parquet (``parts``) are read by piece. Others are read at once, up to a
size limit, with codes of labelled values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import ZipFile

from auditor.base import DataError, counted, nearest, pa, pd, quoted
from auditor.results.files import reading_of

T = TypeVar("T")


def remembered(files: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Decorator that caches a function of a path for the last ``files`` files."""

    def decorate(find: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize=files)
        def found(path: Path, *_: object) -> T:
            return find(path)

        @wraps(find)
        def of(path: Path) -> T:
            status = path.stat()
            return found(path, reading_of(path), status.st_mtime_ns, status.st_size)

        return of

    return decorate


MOST_BYTES = 2**30
"""Largest unpacked size of a file that is read whole."""
MOST_CELLS = 2**24
"""Most cells of a sheet, blanks included: each needs some 60 bytes while read."""
BATCH_ROWS = 2**16


class Kind(NamedTuple):
    """Kind of file held whole, its reader, and a library not installed."""

    name: str
    read: Callable[[Path, list[str]], pd.DataFrame | pa.Table]
    library: str = ""


class Held(NamedTuple):
    """A whole file with notes on its reading."""

    frame: pd.DataFrame
    notes: tuple[str, ...]


def _arrow(path: Path, notes: list[str]) -> pa.Table:
    """Read Feather or Arrow by batch: compressed files state no size."""
    try:
        with pa.ipc.open_file(str(path)) as file:
            return pa.Table.from_batches(
                bounded(
                    path,
                    map(file.get_batch, range(file.num_record_batches)),
                    lambda batch: batch.nbytes,
                ),
                file.schema,
            )
    except pa.ArrowInvalid:  # Feather 1
        from pyarrow import feather

        return feather.read_table(path, memory_map=False)


def _spss(path: Path, notes: list[str]) -> pd.DataFrame:
    import pyreadstat  # an extra

    _, found = pyreadstat.read_sav(path, metadataonly=True)
    check_size(path, 8 * (found.number_rows or 0) * (found.number_columns or 0))  # cells are packed
    return _whole(pd.read_spss(path, convert_categoricals=False))


def _transport(path: Path, notes: list[str]) -> pd.DataFrame:
    with path.open("rb") as file:
        version_8 = b"LIBV8" in file.read(80)
    if not version_8:
        return _sas(path, notes)
    import pyreadstat  # pandas reads version 5 only

    frame: pd.DataFrame = pyreadstat.read_xport(path)[0]
    return _whole(frame)


def _sas(path: Path, notes: list[str]) -> pd.DataFrame:
    chunks: Any = pd.read_sas(
        path,
        encoding="infer" if path.suffix.lower() == ".sas7bdat" else "latin-1",
        chunksize=BATCH_ROWS,
    )
    with chunks:
        frame: pd.DataFrame = pd.concat(
            bounded(path, chunks, lambda chunk: 8 * chunk.size), ignore_index=True
        )
    return _whole(frame)


def _excel(path: Path, notes: list[str]) -> pd.DataFrame:
    """Read one sheet; keep repeated and blank names of its first row."""
    import openpyxl  # an extra

    with path.open("rb") as file:
        if file.read(4) == b"\xd0\xcf\x11\xe0":  # a compound document, like old workbooks
            raise DataError(
                f"{path.name}: is encrypted, or an .xls workbook; save it as .xlsx without a password"
            )
    with ZipFile(path) as packed:
        check_size(path, sum(part.file_size for part in packed.infolist()))
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        names = [sheet.title for sheet in book.worksheets]
        sheet = reading_of(path).sheet
        if sheet not in (None, *names):
            raise DataError(f"{path.name}: has no sheet {quoted(sheet)}{nearest(sheet, names)}")
        sheet = sheet or names[0]
        _check_extent(path, book[sheet])
    finally:
        book.close()
    if len(names) > 1 and reading_of(path).sheet is None:
        others = counted(len(names) - 1, "other")
        notes.append(f"the first sheet is read, and {others} not; `sheet: NAME` names another")
    words: Any = {}
    if reading_of(path).blank is not None:
        words = {"keep_default_na": False, "na_values": [""]}
    cells: pd.DataFrame = pd.read_excel(path, sheet_name=sheet, header=None, dtype=object, **words)
    frame = cells.iloc[1:].reset_index(drop=True).infer_objects()
    return frame.set_axis(["" if pd.isna(name) else str(name) for name in cells.iloc[0]], axis=1)


def _check_extent(path: Path, sheet: Any) -> None:
    """Refuse distant cells: pandas lists all cells between."""
    sheet.reset_dimensions()
    widest = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        widest = max(widest, len(row))
        if number * widest > MOST_CELLS:
            raise DataError(
                f"{path.name}: the sheet has more than {MOST_CELLS:,} cells, blank ones included; save it as CSV or Parquet"
            )


HELD: dict[str, Kind] = {
    ".feather": Kind("Feather", _arrow),
    ".arrow": Kind("Arrow", _arrow),
    ".dta": Kind("Stata", lambda path, notes: pd.read_stata(path, convert_categoricals=False)),
    ".sav": Kind("SPSS", _spss, "pyreadstat"),
    ".zsav": Kind("SPSS", _spss, "pyreadstat"),
    ".sas7bdat": Kind("SAS", _sas),
    ".xpt": Kind("SAS transport", _transport, "pyreadstat"),
    ".xlsx": Kind("Excel", _excel, "openpyxl"),
    ".xlsm": Kind("Excel", _excel, "openpyxl"),
}
"""Suffix → reader of a whole file."""
TEXT = (".csv", ".tsv", ".tab")
PACKED = (".gz", ".zst", ".zip")
"""Suffixes of a compressed text file."""
SUFFIXES = (*TEXT, *PACKED, ".parquet", *HELD)
SAID = (
    "a .csv, .tsv or .tab file (or one of these as .gz, .zst or .zip), a .parquet file, or one of "
    + ", ".join(HELD)
)


def is_text(path: str | Path) -> bool:
    """Whether a file is CSV or similar, compressed or not."""
    return Path(path).suffix.lower() in (*TEXT, *PACKED)


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet."""
    return Path(path).suffix.lower() == ".parquet"


def name_of(path: Path) -> str:
    """Display name of a file's kind."""
    kind = HELD.get(path.suffix.lower())
    return kind.name if kind else "Parquet" if is_parquet(path) else "CSV"


@remembered(files=2)
def held(path: Path) -> Held:
    """All of a file that is not read by piece, without an unnamed index.

    Raises
    ------
    DataError
        It is damaged, encrypted or too large, or its library is missing. No cell is quoted.
    """
    kind, notes = HELD[path.suffix.lower()], list[str]()
    check_size(path, path.stat().st_size)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # may quote a cell
            found = kind.read(path, notes)
            frame = _frame(found, notes) if isinstance(found, pa.Table) else found
    except ImportError:
        raise DataError(
            f"{path.name}: {kind.name} files are read by {kind.library}, which is not installed: pip install "
            "'auditor[files]'"
        ) from None
    return Held(frame.set_axis([str(name) for name in frame.columns], axis=1), tuple(notes))


def _frame(table: pa.Table, notes: list[str]) -> pd.DataFrame:
    table.validate(full=True)
    index = index_columns(table.schema, notes)
    frame: pd.DataFrame = table.drop_columns(index).replace_schema_metadata(None).to_pandas()
    return frame


@remembered(files=2)
def labelled(path: Path) -> pd.DataFrame:
    """All of a file with the labels of SPSS and Stata, not codes.

    For errors see ``held``. A Stata column of repeated labels keeps its codes.
    """
    frame, kind = held(path).frame, HELD[path.suffix.lower()].name
    found: dict[str, Any] = {}
    if kind == "SPSS":
        import pyreadstat  # an extra

        labels = pyreadstat.read_sav(path, metadataonly=True)[1].variable_value_labels
        found = {name: frame[name].astype(object).replace(known) for name, known in labels.items()}
    elif kind == "Stata":
        with suppress(ValueError):
            found = {
                str(name): column.astype(object)
                for name, column in pd.read_stata(path).items()
                if column.dtype == "category"
            }
    return frame.assign(
        **{name: column.map(_label, na_action="ignore") for name, column in found.items()}
    )


def _label(cell: Any) -> str:
    return cell if isinstance(cell, str) else f"{cell:.15g}"


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.convert_dtypes(
        infer_objects=False, convert_string=False, convert_boolean=False, convert_floating=False
    )


def index_columns(schema: pa.Schema, notes: list[str]) -> list[str]:
    """Find and note the columns of an unnamed index in pandas' metadata."""
    try:
        noted = (schema.pandas_metadata or {})["index_columns"]
        found = [
            name for name in schema.names if name in noted and name.startswith("__index_level_")
        ]
    # the metadata are damaged or foreign
    except (ValueError, LookupError, TypeError, AttributeError):
        return []
    if found:
        what = (
            "a column without a name is"
            if len(found) == 1
            else f"{len(found)} columns without a name are"
        )
        notes.append(
            f"{what} the index of a data frame, by the file's own metadata, and not read as data"
        )
    return found


def check_size(path: Path, size: int) -> None:
    """Refuse files that are too large."""
    if size > MOST_BYTES:
        raise DataError(
            f"{path.name}: holds more than {MOST_BYTES:,} bytes, the most that is read of a file of its kind; "
            "save it as plain CSV (UTF-8) or as Parquet, which are read piece by piece"
        )


def bounded(path: Path, parts: Iterable[Any], size: Callable[[Any], int]) -> list[Any]:
    """Parts of a file, up to the size limit."""
    found, total = [], 0
    for part in parts:
        total += size(part)
        check_size(path, total)
        found.append(part)
    return found
