"""Write tables block by block under temporary names, then rename."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from auditor.process.deferred import pa, pd, pq
from auditor.results.files import publish
from auditor.text.safe_text import without_formula

SUFFIXES = (".csv", ".parquet")
"""Formats of written files."""


class TableFiles:
    """Several tables of equal columns, written in parallel; a context.

    A crash leaves no file under a final name, and an error leaves none at all. On normal exit every
    file is flushed to disk and renamed. From its first byte a file is private to its owner (mode
    0600).

    Parameters
    ----------
    paths : sequence of Path
        Final names, ``.csv`` or ``.parquet``, in one existing folder.
    edition : str
        A mark in the temporary names.
    commit : callable, optional
        Called when all files are complete, before any is renamed. A later error leaves the files
        for the owner to finish or remove.
    """

    def __init__(
        self, paths: Sequence[Path], edition: str = "", commit: Callable[[], None] | None = None
    ) -> None:
        self._paths, self._edition, self._commit = list(paths), edition, commit
        self._temporary: list[Path] = []
        self._files: list[Any] = []

    def __enter__(self) -> TableFiles:
        try:
            for path in self._paths:
                descriptor, name = tempfile.mkstemp(
                    dir=path.parent, prefix=f".{path.name}-{self._edition}"
                )
                self._temporary.append(Path(name))
                self._files.append(
                    _Parquet(descriptor) if path.suffix == ".parquet" else _Csv(descriptor)
                )
        except BaseException:
            self._discard()
            raise
        return self

    def append(self, place: int, frame: pd.DataFrame) -> None:
        """Write the next records of one table."""
        self._files[place].append(frame)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                for file in self._files:
                    file.finish()
                whole = self._temporary
                if self._commit is not None:
                    self._temporary = []
                    self._commit()
                for temporary, path in zip(whole, self._paths, strict=True):
                    publish(temporary, path, private=True)
                _flush_folder(self._paths[0].parent)
        finally:
            self._discard()

    def _discard(self) -> None:
        for file in self._files:
            file.close()
        for temporary in self._temporary:
            temporary.unlink(missing_ok=True)


class _Csv:
    def __init__(self, descriptor: int) -> None:
        self._handle = os.fdopen(descriptor, "w", encoding="utf-8", newline="")
        self._header = True

    def append(self, frame: pd.DataFrame) -> None:
        names = [without_formula(str(name)) for name in frame.columns]
        frame.to_csv(
            self._handle, index=False, header=names if self._header else False, lineterminator="\n"
        )
        self._header = False

    def finish(self) -> None:
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()

    def close(self) -> None:
        self._handle.close()


class _Parquet:
    def __init__(self, descriptor: int) -> None:
        self._handle = os.fdopen(descriptor, "wb")
        self._writer: pq.ParquetWriter | None = None

    def append(self, frame: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._handle, table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()

    def close(self) -> None:
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):  # abandoned: the disk may be full
                self._writer.close()
        self._handle.close()


def _flush_folder(folder: Path) -> None:
    """Flush the folder, if possible, so new names survive a power cut."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
