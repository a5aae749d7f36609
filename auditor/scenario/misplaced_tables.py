"""Detection of tables given as scenarios, before parsing.

Messages on syntax would quote cells of the table.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from auditor.data.formats import file_kinds
from auditor.errors import AuditorError, shortened
from auditor.scenario.model import FIELDS

SUFFIXES = tuple(
    ".csv .tsv .tab .parquet .feather .arrow .orc .avro .xls .xlsx .xlsm .xlsb .ods .numbers .dta .sav "
    ".sas7bdat .xpt .rds .rdata .npy .npz .h5 .hdf5 .mat .pkl .pickle .db .sqlite .sqlite3 .mdb .accdb "
    ".jsonl .ndjson .zip .gz .bz2 .xz .zst .7z .tar".split()
)
LOOKED_AT = 2**20
"""Bytes of the file's start to read; scenarios are smaller."""

_FIELD = re.compile(rf"""^[\s{{,]*["']?({"|".join(FIELDS)})["']?\s*:(?!\S)""", re.MULTILINE)
"""A scenario field at the start of a line; JSON may be on one line."""
_JSON_FIELD = re.compile(rf"""^\s*{{.*["']({"|".join(FIELDS)})["']\s*:""", re.DOTALL)


def check_no_table(path: Path) -> None:
    """Refuse a table or any other file without scenario fields, with advice.

    The message quotes nothing. Unreadable files and other encodings pass; the reader reports them.

    Raises
    ------
    AuditorError
        The file is not a scenario.
    """
    file = shortened(str(path), 100)
    if _is_readable(path):
        command = f"auditor new audit.yaml --data {shlex.quote(str(path) + '/' * path.is_dir())}"
        raise AuditorError(
            f"{file}: is a table, not a scenario; `{command}` makes a scenario of it"
        )
    remedy = "`auditor new audit.yaml` writes a scenario to start from, and its data: source names the table"
    if path.suffix.lower() in SUFFIXES and path.is_file():
        raise AuditorError(f"{file}: is a table, not a scenario; {remedy}")
    try:
        with path.open("rb") as stream:
            start = stream.read(LOOKED_AT)
    except (OSError, ValueError):
        return
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AuditorError(f"{file}: is not text, so no scenario; {remedy}")
    text = start.decode("utf-8", "replace").removeprefix("\ufeff")
    content = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    if (
        content.strip()
        and not start.startswith((b"\xff\xfe", b"\xfe\xff"))
        and not (_FIELD.search(content) or _JSON_FIELD.search(content))
    ):
        raise AuditorError(
            f"{file}: is no scenario: none of its lines begins with a field of one, as `data:` or `schemes:`; {remedy}"
        )


def _is_readable(path: Path) -> bool:
    if path.is_dir():
        try:
            return any(
                inside.suffix.lower() in file_kinds.SUFFIXES
                for inside in path.iterdir()
                if inside.is_file()
            )
        except OSError:
            return False
    return path.suffix.lower() in file_kinds.SUFFIXES and path.is_file()
