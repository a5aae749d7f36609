"""Text files that are parsed once, into a private file that has no name.

The file holds original values. On Linux it is unlinked before the first byte is written, so that
nothing stays behind, however the program ends; other processes of the user open it by its number
while this one lives. Elsewhere it is in a folder of mode 0700 that is removed at exit.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from auditor.data.columns.scan import in_threads
from auditor.data.formats.parts import Held, Piece
from auditor.process.deferred import pa, pd

OPEN_FILES = Path("/proc/self/fd")


class Scratch:
    """A private file; it is gone with the last reference to it."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="auditor-")
        self.name = f"{folder}/parsed"
        self.file: IO[bytes] | None = Path(self.name).open("x+b")
        if OPEN_FILES.is_dir():
            shutil.rmtree(folder)
            self.name = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"
        else:
            atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def add(self, table: pa.Table) -> tuple[int, int]:
        """Append a table; return its first byte and its end."""
        assert self.file is not None
        start = self.file.tell()
        with pa.ipc.new_stream(self.file, table.schema) as stream:
            stream.write_table(table)
        return start, self.file.tell()

    def flush(self) -> None:
        """Make everything visible to other readers."""
        assert self.file is not None
        self.file.flush()

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "file": None}


@dataclass(frozen=True)
class Parsed:
    """Records of one piece of a text file, parsed.

    Attributes
    ----------
    path : Path
        The text file.
    scratch : Scratch
    place, stop : int
        First byte and end of the records in the private file.
    rows : int
    """

    path: Path
    scratch: Scratch = field(repr=False, compare=False)
    place: int
    stop: int
    rows: int

    def frames(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield some columns."""
        with pa.memory_map(self.scratch.name) as file:
            file.seek(self.place)
            table = pa.ipc.open_stream(file.read_buffer(self.stop - self.place)).read_all()
        yield table.select(list(columns)).slice(0, self.rows).to_pandas()


Records = Piece | Held | Parsed


def parsed_once(
    pieces: Sequence[Piece], names: Sequence[str], rows: int | None
) -> Sequence[Piece | Parsed]:
    """Return the pieces of text files as parsed records; other pieces unchanged.

    Raises
    ------
    DataError
        A piece cannot be read.
    """
    if any(not piece.stop for piece in pieces):
        return pieces
    stamps = tuple(piece.path.stat().st_mtime_ns for piece in pieces)
    return _parsed(tuple(pieces), tuple(names), rows, stamps)


@lru_cache(maxsize=1)
def _parsed(
    pieces: tuple[Piece, ...], names: tuple[str, ...], rows: int | None, stamps: tuple[int, ...]
) -> Sequence[Piece | Parsed]:
    scratch, found, left = Scratch(), list[Piece | Parsed](), float("inf") if rows is None else rows
    try:
        for piece, table in zip(
            pieces, in_threads(partial(_table, names=names), pieces), strict=False
        ):
            found.append(Parsed(piece.path, scratch, *scratch.add(table), table.num_rows))
            left -= table.num_rows
            if left <= 0:
                break
        scratch.flush()
    except (OSError, pa.ArrowException):  # no room, or values of mixed kinds
        return pieces
    return found


def _table(piece: Piece, names: tuple[str, ...]) -> pa.Table:
    return pa.concat_tables(
        pa.Table.from_pandas(frame, preserve_index=False) for frame in piece.frames(names)
    )
