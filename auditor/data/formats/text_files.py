"""Text files as UTF-8 bytes; delimiters; headers that are no names.

Plain UTF-8 is read in place. Other files are unpacked into memory, up to a size limit. A file
without a header has a record in place of names, which must not be printed. It is recognised by
numbers, dates, and words that occur among the cells below.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from auditor.base import DataError, counted, pa, pd, quoted, with_formula
from auditor.base.types import Names
from auditor.data.columns.checks import Series
from auditor.data.formats.file_kinds import PACKED, bounded, check_size, remembered
from auditor.results.files import reading_of

LOOKED_AT = 20_000
"""Number of cells searched for names; a category would repeat sooner."""

_NUMBER = re.compile(
    r"""[-+−(]?\s*[$€£¥₪]?\s*(?=[.,]?\d)           # a sign, a currency
        (\d[\d_'’\s]*|\d{1,3}([.,]\d{3})+|)         # digits, in groups maybe
        ([.,]\d*)?([eEdD][-+]?\d+)?                 # decimals, an exponent
        \s*[%$€£¥₪)]?(\.\d+)?                       # what pandas adds to the second of two: 5.1.1""",
    re.VERBOSE,
)
_YEAR = re.compile(r"(19|20)\d\d", re.ASCII)
_SPECIAL = re.compile(r"[-+]?(nan|inf|infinity)(\.\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"""(\d{4}|\d{1,2})[-/.](\d{1,2}|[^\W\d_]{3,9})[-/.](\d{4}|\d{1,2})  # 2020-01-31, 31.1.2020, 31-Jan-20
        ([T ]\s*\d{1,2}:\d{2}\S*(\s*[AaPp][Mm])?)?(\.\d+)?       # a time of day after it
      | \d{1,2}:\d{2}(:\d{2}\S*)?""",
    re.VERBOSE,
)


def is_value(name: str) -> bool:
    """Whether a name is a number, date or time, also repeated by pandas.

    Examples
    --------
    >>> [is_value(name) for name in ("5.1", "5.1.1", "-1e3", "2020-01-31", "1.2.2020 10:30", "12 %", "nan", "1,5")]
    [True, True, True, True, True, True, True, True]
    >>> [is_value(name) for name in ("age", "x1", "2020_sales", "1st", "e5", "", "-")]
    [False, False, False, False, False, False, False]
    """
    text = name.strip()
    number = any(map(str.isdigit, text)) and _NUMBER.fullmatch(text)
    return bool(number or _SPECIAL.fullmatch(text) or _DATE.fullmatch(text))


def holds_records(name: str) -> bool:
    r"""Whether a name contains records, after an unclosed quote.

    Examples
    --------
    >>> [holds_records(name) for name in ("\nage,city\n31,Rome", "x\n1.5", "a\nb\nc\nd", "income\n(dollars)", "a, b")]
    [True, True, True, False, False]
    """
    lines = name.splitlines()
    return len(lines) > 1 and (
        len(lines) > 3 or any(sign in name for sign in ",;|\t") or any(map(is_value, lines))
    )


def check_names(file: str, names: Names) -> None:
    """Refuse names that are values or repeat.

    Messages number the columns, as names may be cells. Accepted are years at equal distances, and
    running names 0 … N − 1 or 1 … N, also with unnamed columns.

    Raises
    ------
    DataError
        With fault, place and remedy.
    """
    if _count(names):
        return
    swallowed = [place for place, name in enumerate(names, 1) if holds_records(name)]
    if swallowed:
        raise DataError(
            f"{file}: {_columns(swallowed)} a name of several lines, as if records were in it; is a quote missing?"
        )
    years = [int(name) for name in names if _YEAR.fullmatch(name)]
    named_by_years = len(years) > 1 and len(set(np.diff(years))) == 1 and years[0] != years[1]
    values = [
        place
        for place, name in enumerate(names, 1)
        if is_value(name) and not (named_by_years and _YEAR.fullmatch(name))
    ]
    if len(values) == len(names) and values:
        raise DataError(
            f"{file}: the first line holds numbers where the column names should be; add a header"
        )
    if values:
        raise DataError(
            f"{file}: {_columns(values)} a number or a date for a name; add a header if the file has none, or "
            "give such columns names that begin with a letter"
        )
    times = Counter(name for name in names if name)
    twice = [place for place, name in enumerate(names, 1) if times[name] > 1]
    if twice:
        raise DataError(
            f"{file}: {_columns(twice)} a name that another column has as well; give every column a name of its own"
        )


def check_records(file: str, names: Names, records: Iterable[Names]) -> None:
    """Refuse a header that occurs among the first records.

    A column of numbers, or of repeated cells without its name, shows that the first line is a
    header.

    Raises
    ------
    DataError
        Columns, given by place, have their names among their cells.
    """
    if _count(names):  # small whole numbers are among any cells
        return
    few = islice(records, max(10, LOOKED_AT // max(1, len(names))))
    columns = [
        (name, Counter(cells)) for name, cells in zip(names, zip_longest(*few), strict=False)
    ]
    seen = [
        place for place, (name, cells) in enumerate(columns, 1) if name.strip() and name in cells
    ]
    if seen and not any(name not in cells and _named(cells) for name, cells in columns):
        raise DataError(
            f"{file}: {_columns(seen)} a name that is also a cell; is the header missing, or written twice?"
        )


def _named(cells: Counter[str]) -> bool:
    once = list(cells.values()).count(1)
    return 10 * once < cells.total() or all(map(is_value, filter(None, cells)))


def _count(names: Names) -> bool:
    given = [name for name in names if name]
    return bool(given) and given in (
        [str(place + start) for place in range(len(given))] for start in (0, 1)
    )


def _columns(places: Sequence[int]) -> str:
    if len(places) > 8:
        return f"{counted(len(places), 'column')}, the first of them column {places[0]}, have"
    *most, last = map(str, places)
    return f"column {last} has" if not most else f"columns {', '.join(most)} and {last} have"


BYTE_ORDER_MARK = "\ufeff"
CHUNK = 2**20
"""Bytes read at once; the first chunk decides the delimiter."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

BLANKS = frozenset("NA N/A n/a None NULL null NaN nan <NA> #N/A".split())
"""Words that pandas reads as blank."""

# Kinds that often have a wrong suffix.
_SIGNATURES = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    codecs.BOM_UTF32_LE: "UTF-32 text; save it as UTF-8",
    codecs.BOM_UTF32_BE: "UTF-32 text; save it as UTF-8",
}
_TWO_BYTES = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\x80-\xff]{4}")
"""UTF-8 letters, or several of another script: evidence against Latin-1."""


class Start(NamedTuple):
    """Spelling and header of a text file.

    Attributes
    ----------
    names
        Unnamed columns are "".
    width
        Cells of the first record, or 0.
    line
        Header without byte order mark and preceding blank lines.
    stop
        Bytes before the first record.
    words
        Text columns with words read as blank among the first cells.
    """

    encoding: str
    delimiter: str
    marks: Marks
    names: list[str]
    width: int
    line: bytes
    stop: int
    words: list[str]

    @property
    def notes(self) -> list[str]:
        """Notes for the reader."""
        said = {"utf-16": "is UTF-16", "cp1252": "is not UTF-8, and read as Latin-1 (Windows-1252)"}
        return [said[self.encoding]] if self.encoding in said else []


@remembered(files=1024)
def start_of(path: Path) -> Start:
    """Spelling and header of a text file.

    Names exclude an apostrophe before a formula.

    Raises
    ------
    DataError
        It is no text or blank, its encoding or delimiter is unclear, or names are values.
    """
    encoding = _encoding(path)
    with _decoded(path, encoding) as file:
        whole = file.read(CHUNK)
        while not (whole.rstrip() and b"\n" in whole) and (more := file.read(CHUNK)):
            whole += more
        if file.read(1):  # the last line is cut
            whole = whole[: max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1]
    text = whole.decode("utf-8", "ignore")
    delimiter = _delimiter(path, text.removeprefix(BYTE_ORDER_MARK))
    lines = list(io.StringIO(text, newline=""))
    first = next((k for k, x in enumerate(lines) if x.removeprefix(BYTE_ORDER_MARK).strip()), -1)
    if first < 0:
        raise DataError(f"{path.name}: the file is empty")
    header = [lines[first].removeprefix(BYTE_ORDER_MARK), *lines[first + 1 :]]
    reader = csv.reader(header, delimiter=delimiter)
    names = [with_formula(cell) for cell in next(reader)]
    used = reader.line_num
    check_names(path.name, names)
    # a blank line is a missing value in one column, else no record
    records = (row for row in reader if len(names) == 1 or "".join(row).strip() or len(row) > 1)
    few = list(islice(records, max(10, LOOKED_AT // len(names))))
    check_records(path.name, names, few)
    return Start(
        encoding,
        delimiter,
        marks_of(path.name, few, delimiter),
        names,
        max(1, len(few[0])) if few else 0,
        "".join(header[:used]).encode(),
        len("".join(lines[: first + used]).encode()),
        [] if reading_of(path).blank is not None else _with_words(names, few),
    )


def _with_words(names: Names, records: Sequence[Names]) -> list[str]:
    columns = zip(names, map(set, zip_longest(*records, fillvalue="")), strict=False)
    return [
        name
        for name, cells in columns
        if cells & BLANKS and any(cell.strip() and not is_value(cell) for cell in cells - BLANKS)
    ]


def opened(path: Path) -> IO[bytes]:
    """Text file as a seekable UTF-8 stream."""
    return _decoded(path, start_of(path).encoding)


def text_frame(
    text: bytes, path: Path, columns: Names, rows: int | None, as_text: bool
) -> pd.DataFrame:
    """Columns of a piece of a text file, without its header.

    Numbers and booleans are recognised unless ``as_text``.

    Raises
    ------
    DataError
        A record has too many cells.
    """
    start = start_of(path)
    # pandas applies the first record's number of cells to all
    few = io.StringIO(text[: 2**16].decode("utf-8", "replace"), newline="")
    if max(_widths(few, start.delimiter)) > len(start.names):
        raise pd.errors.ParserError
    options: dict[str, Any] = (
        {"dtype": "str", "na_filter": False}
        if as_text
        else {"decimal": start.marks.decimal or NEITHER, **_exact_floats()}
    )
    if not as_text and (blank := reading_of(path).blank) is not None:
        options |= {"keep_default_na": False, "na_values": ["", *blank]}
    # With `usecols` pandas does not detect a record with too many cells.
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(start.line + text),
        encoding="utf-8",
        index_col=False,
        low_memory=False,
        nrows=rows,
        skip_blank_lines=len(start.names) > 1,
        sep=start.delimiter,
        **options,
    )
    if len(frame.columns) != len(start.names):
        raise DataError(f"{path.name}: the first line cannot be read as column names")
    frame.columns = pd.Index(start.names)
    if as_text:
        return frame[list(columns)].fillna("")
    return pd.DataFrame({name: as_numbers(path.name, frame[name], start.marks) for name in columns})


def _exact_floats() -> dict[str, Any]:
    before = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    return {"float_precision": "round_trip"} if before else {}


def _decoded(path: Path, encoding: str) -> IO[bytes]:
    if encoding == "utf-8" and not _is_packed(path):
        return path.open("rb")
    return io.BytesIO(_in_utf8(path) if encoding != "utf-8" else _unpacked(path))


@remembered(files=2)
def _in_utf8(path: Path) -> bytes:
    return _unpacked(path).decode(_encoding(path)).encode()


@remembered(files=2)
def _unpacked(path: Path) -> bytes:
    if not _is_packed(path):
        check_size(path, path.stat().st_size)
        return path.read_bytes()
    with _unpacking(path) as file:
        return b"".join(bounded(path, iter(lambda: file.read(CHUNK), b""), len))


@contextmanager
def _unpacking(path: Path) -> Iterator[Any]:
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(_only_part(path, archive)) as part:
            yield part
    else:
        kind = "gzip" if path.suffix.lower() == ".gz" else "zstd"
        with pa.input_stream(str(path), compression=kind) as file:
            yield file


def _only_part(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    parts = [
        part
        for part in archive.infolist()
        if not part.is_dir() and not part.filename.startswith("__MACOSX/")
    ]
    if len(parts) != 1:
        raise DataError(
            f"{path.name}: holds {len(parts)} files, and a table is one; unpack the archive and name the file"
        )
    if parts[0].flag_bits & 1:
        raise DataError(f"{path.name}: is encrypted; unpack it first")
    return parts[0]


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() in PACKED


def _encoding(path: Path) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _decoded(path, "utf-8") as file:
        start = file.read(4096)
        for signature, what in _SIGNATURES.items():
            if start.startswith(signature):
                raise DataError(f"{path.name}: is not CSV but {what}")
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if b"\0" in start:
            raise DataError(f"{path.name}: is not text")
        try:
            decoder.decode(start)
            while chunk := file.read(CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return _western(path)
    return "utf-8"


def _western(path: Path) -> str:
    content = _unpacked(path)
    if not _TWO_BYTES.search(content):
        with suppress(UnicodeDecodeError):
            content.decode("cp1252")  # Latin-1, with letters where Latin-1 has none
            return "cp1252"
    raise DataError(f"{path.name}: is not UTF-8 text, nor UTF-16 or Latin-1; save it as UTF-8")


def _delimiter(path: Path, start: str) -> str:
    widths = {mark: _widths(io.StringIO(start, newline=""), mark) for mark in DELIMITERS}
    if widths["\t"][0] > 1 and any(suffix.lower() in (".tsv", ".tab") for suffix in path.suffixes):
        return "\t"
    names, _ = widths.pop(",")
    # other marks as frequent as in the header, in addition to commas
    if names > 1:
        others = [mark for mark, (n, m) in widths.items() if n > 1 and n == m]
    else:
        others = [mark for mark, (n, m) in widths.items() if n > 1 and m != 1]
    if names == 1 and len(others) == 1:
        return others[0]
    if others:
        marks = " or ".join(DELIMITERS[mark] for mark in ([","] if names > 1 else []) + others)
        raise DataError(
            f"{path.name}: cells may be separated by {marks}; put names and cells that hold either in quotation marks"
        )
    return ","


def _widths(lines: Iterable[str], mark: str) -> tuple[int, int]:
    records = csv.reader(lines, delimiter=mark)
    found = (len(record) for record in records if "".join(record).strip())
    return next(found, 0), next(found, 0)


_DECIMALS = re.compile(r"[-+]?(?:\d+([.,])\d*|([.,])\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*((?!\1)[.,]\d*)?")
_UNTOLD = r"[-+]?(?:\d+|[1-9]\d{0,2}[.,]\d{3})"
NEITHER = "\x01"
"""A mark absent from all numbers, since pandas requires one."""


class Marks(NamedTuple):
    """Decimal and thousands mark; empty for none."""

    decimal: str = "."
    group: str = ""


def mark_of(cell: str) -> str:
    """Decimal mark in a cell; ``,?`` or ``.?`` if ambiguous, empty if none.

    Examples
    --------
    >>> [mark_of(cell) for cell in ("12,5", "0.25", "1,234.50", "1.234.567", "1,234", "1.234", "12", "1.2.2020", "a,b")]
    [',', '.', '.', ',', ',?', '.?', '', '', '']
    """
    grouped = _GROUPED.fullmatch(cell)
    if grouped:
        mark, decimals = grouped[1], grouped[2]
        if decimals or cell.count(mark) > 1:
            return decimals[0] if decimals else "." if mark == "," else ","
        return f"{mark}?"
    decimal = _DECIMALS.fullmatch(cell)
    return decimal[1] or decimal[2] if decimal else ""


def marks_of(file: str, records: Iterable[Names], delimiter: str) -> Marks:
    """Number marks of a file from its first records.

    Raises
    ------
    DataError
        Decimal commas and points both occur. If commas separate cells, only quoted ones count.
    """
    found: dict[str, int] = {}
    for record in records:
        for place, cell in enumerate(record, start=1):
            if "," in cell or "." in cell:
                found.setdefault(mark_of(cell.strip()), place)
    if delimiter != ";" and ".?" in found:  # usual without semicolons
        found.setdefault(".", found[".?"])
    if {",", "."} <= found.keys():
        if delimiter == ",":
            return Marks()
        raise DataError(
            f"{file}: column {found[',']} has numbers with decimal commas, and column {found['.']} with decimal "
            "points; write all of them alike"
        )
    if "." in found:
        return Marks(".", ",")
    if "," in found:
        return Marks(",", ".")
    return Marks("" if delimiter == ";" else ".", "")


def as_numbers(file: str, column: Series, marks: Marks) -> Series:
    """Text column as numbers in the file's marks, if all cells fit.

    Raises
    ------
    DataError
        All cells are numbers, but ambiguous.
    """
    if pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        return column
    there = column.dropna().astype(str)
    first = _plain(there.head(1))  # a quick test
    written = _written(marks)
    if pd.to_numeric(first, errors="coerce").isna().any():
        if not first.str.fullmatch(f"{written}|{_UNTOLD}").all():
            return column
    there = _plain(there)
    if marks.decimal == ".":  # beyond 64 bits
        numbers = pd.to_numeric(there, errors="coerce")
        if numbers.notna().all():
            return numbers.reindex(column.index)
    if there.str.fullmatch(written).all():
        plain = there.str.replace(marks.group, "", regex=False) if marks.group else there
        plain = plain.str.replace(marks.decimal or NEITHER, ".", regex=False)
        return pd.to_numeric(plain).reindex(column.index)
    if not marks.group and bool(there.str.fullmatch(_UNTOLD).all()):
        raise DataError(
            f"{file}: column {quoted(column.name)} has a comma or a point before three digits, which may be decimals or thousands, and no "
            "other number of the file tells which; write these without a mark between thousands, or with decimals, as 1,000.00 or 1.000,00"
        )
    return column


def _plain(cells: pd.Series[str]) -> pd.Series[str]:
    """ASCII numbers, from full-width digits and other minus signs."""
    found = cells.str.strip().str.normalize("NFKC").str.replace("\u2212", "-", regex=False)
    return found.str.replace(r"^([^-+]+)-$", r"-\1", regex=True)


def _written(marks: Marks) -> str:
    group, decimal = re.escape(marks.group), re.escape(marks.decimal)
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)" if group else r"\d+"
    number = rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)" if decimal else whole
    return rf"[-+]?{number}(?:[eE][-+]?\d+)?"
