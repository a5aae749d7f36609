"""Release folder: tables written together or not at all, under a lock.

Copies have hidden names that end in the command's edition, a random mark, until all are whole and
the manifest names the edition. The next command removes the files of a command stopped earlier, and
finishes one stopped later.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from auditor.base import AuditorError, pa, pd, pq, without_formula
from auditor.base.types import Options, Plain
from auditor.results.files import lock_folder, publish, write_atomically, writing

MANIFEST = "release.json"
COPY = re.compile(r"copy-\d+(-batch-\d+)?\.(csv|parquet)")
HIDDEN = re.compile(rf"\.({COPY.pattern}|{re.escape(MANIFEST)})-([0-9a-f]{{8}})?\w{{8}}")
PATIENCE = 10.0
"""Seconds that a command waits for another one in the same folder."""


@contextmanager
def taken(folder: Path) -> Iterator[None]:
    """Lock a release folder; finish or remove files of a stopped command.

    A missing folder is made, and removed if it stays empty.

    Raises
    ------
    AuditorError
        Another command holds the folder, or it cannot be written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = lock_folder(folder, PATIENCE)
    try:
        _settle(folder)
        yield
    finally:
        try:
            _settle(folder)
            with suppress(OSError):  # not empty
                for path in missing:
                    path.rmdir()
        finally:
            if lock is not None:
                os.close(lock)


def _settle(folder: Path) -> None:
    with writing(folder):
        hidden = [found for path in folder.iterdir() if (found := HIDDEN.fullmatch(path.name))]
        edition = (read_manifest(folder) or {}).get("edition") if hidden else None
        for found in hidden:
            if found[4] is not None and found[4] == edition:
                publish(folder / found[0], folder / found[1], private=True)
            else:
                (folder / found[0]).unlink()


def read_manifest(folder: Path) -> Plain | None:
    """Manifest of a release; None if it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


NEEDED = "scheme parameters levels attributes rows precision missing copies".split()
"""Entries of the manifest of a whole release."""
EACH = "rows missing copies".split()
"""Entries of every batch."""


@contextmanager
def reopened(folder: Path) -> Iterator[Plain]:
    """Lock the folder of a release; yield its manifest.

    Raises
    ------
    AuditorError
        There is no whole release.
    """
    if not folder.is_dir():
        raise no_release(folder)
    with taken(folder):
        manifest = read_manifest(folder) or {}
        parts = batches_of(manifest)
        if not {*NEEDED} <= {*manifest} or any(not {*EACH} <= {*part} for part in parts):
            raise no_release(folder)
        yield manifest


def no_release(folder: Path) -> AuditorError:
    """Error of a folder without a whole release."""
    return AuditorError(
        f"{folder}: holds no whole release of these columns, with {MANIFEST} and every copy it names"
    )


def batches_of(manifest: Options) -> list[Options]:
    """Entries of each batch of records; the manifest is the first."""
    return [manifest, *manifest.get("later_batches", [])]


def check_free(folder: Path, paths: Sequence[Path]) -> None:
    """Refuse to overwrite files that are not in the manifest.

    Raises
    ------
    AuditorError
        Naming one.
    """
    there = [path.name for path in paths if path.exists()]
    if there:
        raise AuditorError(
            f"{folder}: holds {there[0]}, which {MANIFEST} does not name; move it to another folder, or remove it"
        )


def write_release(
    folder: Path,
    paths: Sequence[Path],
    parts: Iterable[Sequence[pd.DataFrame]],
    manifest: Callable[[], Options],
    replaced: Iterable[str] = (),
) -> Path:
    """Write copies block by block, then the manifest; return its path.

    ``folder`` is ``taken``. ``manifest`` is called after the copies. ``replaced`` copies are
    removed once the new ones are whole.
    """
    edition = secrets.token_hex(4)

    def commit() -> None:
        text = json.dumps({**manifest(), "edition": edition}, indent=2, ensure_ascii=False) + "\n"
        for name in replaced:
            (folder / name).unlink(missing_ok=True)
        write_atomically(folder / MANIFEST, text.encode())

    with writing(folder), table_files(paths, edition, commit) as files:
        for part in parts:
            for file, copy in zip(files, part, strict=True):
                file.append(copy)
    return folder / MANIFEST


SUFFIXES = (".csv", ".parquet")
"""Formats of written files."""


@contextmanager
def table_files(
    paths: Sequence[Path], edition: str = "", commit: Callable[[], None] | None = None
) -> Iterator[list[_File]]:
    """Write several tables of equal columns in parallel.

    Files (mode 0600) get their names together, after a flush; an error leaves none. ``edition``
    marks temporary names. ``commit`` is called before renaming; a later error leaves the files.
    """
    temporary: list[Path] = []
    files: list[_File] = []
    try:
        for path in paths:
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-{edition}")
            temporary.append(Path(name))
            files.append(_File(descriptor, path.suffix))
        yield files
        for file in files:
            file.finish()
        whole = temporary
        if commit is not None:
            temporary = []
            commit()
        for made, path in zip(whole, paths, strict=True):
            publish(made, path, private=True)
        # new names survive a power cut
        descriptor = os.open(paths[0].parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        for file in files:
            file.close()
        for made in temporary:
            made.unlink(missing_ok=True)


def _csv(frame: pd.DataFrame) -> bytes:
    """Records as CSV; pyarrow writes numbers nine times as fast as pandas."""
    from pyarrow import csv as pa_csv

    buffer = io.BytesIO()
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        types = [t.value_type if pa.types.is_dictionary(t) else t for t in table.schema.types]
        numbers = [pa.types.is_floating(t) or pa.types.is_integer(t) for t in types]
        text = [pa.types.is_string(t) or pa.types.is_large_string(t) for t in types]
        # a blank in a table of one column would be a blank line
        bare = len(types) > 1 or (numbers[0] and not table.column(0).null_count)
        if bare and all(np.logical_or(numbers, text)):
            options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
            pa_csv.write_csv(table, buffer, options)
            return buffer.getvalue()
    except pa.ArrowException:  # mixed types, or a cell that needs quotation marks
        buffer = io.BytesIO()
    frame.to_csv(buffer, index=False, header=False, lineterminator="\n")
    return buffer.getvalue()


class _File:
    def __init__(self, descriptor: int, suffix: str) -> None:
        self._handle = os.fdopen(descriptor, "wb")
        self._is_parquet = suffix == ".parquet"
        self._begun = False
        self._writer: pq.ParquetWriter | None = None

    def append(self, frame: pd.DataFrame) -> None:
        if self._is_parquet:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            # by default blocks of distinct numbers get dictionaries: five times the time, a quarter larger
            self._writer = self._writer or pq.ParquetWriter(
                self._handle, table.schema, dictionary_pagesize_limit=65_536
            )
            self._writer.write_table(table)
        else:
            if not self._begun:
                names = [without_formula(str(name)) for name in frame.columns]
                frame.head(0).to_csv(self._handle, index=False, header=names, lineterminator="\n")
            self._handle.write(_csv(frame))
            self._begun = True

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
