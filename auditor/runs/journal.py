"""An append-only file of what is finished: one line an entry, each with its own checksum, so that a torn line loses itself only.

A line is ``checksum key JSON``: the key is a digest of everything the entry depends on, and the
checksum is over what follows it. It guards against damage, not against forgery; entries are decoded
strictly all the same. ``run`` lines hold digests of what a run was made of, by name, to tell what
changed since. An entry may be a part of another that is not there yet: its key is the other's, a
dot, and a name (``part_key``). The journal knows nothing of what it keeps.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from auditor.errors import StorageError
from auditor.process.interrupt import shielded
from auditor.results.files import lock_folder, publish, sweep

FORMAT = 1
NAME = "journal.jsonl"
RUN, WHOLE = "run", "whole"
PART = "."
CHECKSUM = 32
"""Hexadecimal digits."""
WRITTEN = (NAME, "results.json", "results.parquet", "report.html")
LEFT_OVER_SECONDS = 3600.0
SYNC_SECONDS = 1.0
"""Entries reach the disk itself at most so much later: a killed program loses nothing, a power cut
at most this."""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an error of writing results into a StorageError that names the remedy."""
    try:
        yield
    except OSError as error:
        problem = f"{path}: cannot be written ({error.strerror or type(error).__name__})"
        if isinstance(error, FileNotFoundError):
            raise StorageError(
                f"{problem}: its folder was removed or renamed during the run; run again"
            ) from None
        remedy = (
            "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "mend this"
        )
        raise StorageError(
            f"{problem}; every finished task is kept there: {remedy}, and run again with --resume"
        ) from None


class Journal:
    """The journal of one folder of results.

    Parameters
    ----------
    folder : Path
        Where results go; the file is ``journal.jsonl`` there.
    parts : mapping of str to str
        What the run depends on, by the name a user knows it by → digest.
    resume : bool
        Whether to use what is there. Otherwise it is replaced, but not before this run has finished
        something.

    Attributes
    ----------
    damaged : int
        Lines that were not used because they are torn or damaged.
    changed : list of str
        Names of parts that differ from those of the last run.
    entries : int
        Finished entries found, parts of others not counted, whether this run can use them or not.
    whole : bool
        Whether the run that wrote it came to its end.

    Raises
    ------
    AuditorError
        Another run is writing to the folder.
    StorageError
        The file is there and cannot be read.
    """

    def __init__(self, folder: Path, parts: Mapping[str, str], resume: bool) -> None:
        self.path = folder / NAME
        self.damaged, self.entries, self.whole = 0, 0, False
        self.changed: list[str] = []
        self._parts, self._resume = dict(parts), resume
        self._found: dict[str, tuple[int, int]] = {}
        self._lines, self._end, self._stated, self._synced = 0, 0, False, 0.0
        self._file: IO[bytes] | None = None
        self._folder = lock_folder(folder)
        try:
            if self._folder is not None:
                sweep(folder, WRITTEN)
            self._scan()
        except OSError as error:
            self.close()
            raise StorageError(
                f"{self.path}: cannot be read ({error.strerror or type(error).__name__})"
            ) from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def close(self) -> None:
        """Close the file and let others write to the folder."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def read(self, key: str) -> Any:
        """Return the JSON value kept under a key; None when there is none that can be read."""
        place = self._found.get(key)
        if place is None:
            return None
        try:
            with self.path.open("rb") as handle:
                handle.seek(place[0])
                line = handle.read(place[1])
            return json.loads(line[CHECKSUM + len(key) + 2 :])
        # gone, torn or damaged: then the task is done again
        except (OSError, ValueError, RecursionError):
            return None

    def parts_of(self, keys: Container[str]) -> int:
        """Return how many parts of entries there are to be read."""
        return sum(PART in key and key.partition(PART)[0] in keys for key in self._found)

    def append(self, key: str, value: Any) -> str:
        """Add an entry, all of it or nothing; return the JSON that was written.

        Raises
        ------
        StorageError
            It cannot be written, as on a full disk; every earlier entry is still there.
        """
        text = json.dumps(value, separators=(",", ":"), default=_number)
        line = _line(key, text)
        with shielded(), storing(self.path):
            self._open()
            self._found[key] = (self._write(line), len(line))
        return text

    def finish(self, keys: Iterable[str]) -> None:
        """Note that a run came to its end, and drop what its results do not use; a full disk does no harm here."""
        kept = [key for key in keys if key in self._found]
        if self._file is None and (
            not self.path.is_file()
            or (self._stated and self.whole and self._lines == len(kept) + 2)
        ):
            return
        with shielded(), suppress(OSError):
            if self._file is not None and self._lines == len(kept) + 1:
                self._write(_line(WHOLE, "{}"))
            else:
                self._rewrite(kept)

    # -- reading
    # -----------------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        """Index the file by key; the last of two entries counts. Torn bytes at the end are where the next entry will go."""
        if not self.path.is_file():
            return
        found: dict[str, tuple[int, int]] = {}
        with self.path.open("rb") as handle:
            for line in handle:
                key = _key(line)
                if key is None:
                    self.damaged += 1
                elif key == RUN:
                    self._note_run(line)
                elif key == WHOLE:
                    self.whole = True
                else:
                    found[key] = (self._end, len(line))
                self._lines += 1
                self._end += len(line) if line.endswith(b"\n") else 0
        self.entries = sum(PART not in key for key in found)
        if self._resume:
            self._found = found

    def _note_run(self, line: bytes) -> None:
        try:
            before = json.loads(line[CHECKSUM + len(RUN) + 2 :])["parts"]
            self.changed = [
                name
                for name in {**self._parts, **before}
                if before.get(name) != self._parts.get(name)
            ]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            self.changed = list(self._parts)
        self.whole, self._stated = False, not self.changed

    # -- writing
    # -----------------------------------------------------------------------------------------------------------

    def _run_line(self) -> bytes:
        return _line(
            RUN, json.dumps({"journal": FORMAT, "parts": self._parts}, separators=(",", ":"))
        )

    def _open(self) -> None:
        """Make ready to append; the journal of an earlier run is replaced now, or continued after its last whole line."""
        if self._file is not None:
            return
        if not (self._resume and self.path.is_file()):
            self._found, self._lines = {}, 0
            self._replace([self._run_line()])
            return
        self._file = self.path.open("r+b", buffering=0)
        self.path.chmod(0o600)  # an earlier version, or a backup, may have left it open to others
        self._file.truncate(self._end)
        self._file.seek(self._end)
        if not self._stated or self.whole:
            self._write(self._run_line())

    def _write(self, line: bytes) -> int:
        """Write one line, or nothing of it; return where it begins."""
        assert self._file is not None
        start, left = self._file.tell(), memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError:
            with suppress(OSError):
                self._file.truncate(start)
            self._file.seek(start)
            raise
        self._lines += 1
        return start

    def _replace(self, lines: Iterable[bytes]) -> None:
        """Put a new file in the place of the old one, at once, and go on appending to it."""
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{NAME}-")
        old, self._file, self._lines = self._file, os.fdopen(descriptor, "wb", buffering=0), 0
        try:
            for line in lines:
                self._write(line)
            os.fsync(descriptor)
            publish(Path(temporary), self.path, private=True)
        except BaseException:
            self._file.close()
            self._file = old
            Path(temporary).unlink(missing_ok=True)
            raise
        if old is not None:
            old.close()

    def _rewrite(self, keys: Sequence[str]) -> None:
        """Keep only what the latest results are made of."""
        with self.path.open("rb") as handle:

            def lines() -> Iterator[bytes]:
                yield self._run_line()
                for start, length in (self._found[key] for key in keys):
                    handle.seek(start)
                    yield handle.read(length)
                yield _line(WHOLE, "{}")

            self._replace(lines())


def part_key(key: str, name: str) -> str:
    """Return the key of a part of an entry."""
    return f"{key}{PART}{name}"


def _line(key: str, text: str) -> bytes:
    body = f"{key} {text}\n".encode("ascii")
    return _checksum(body) + b" " + body


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:CHECKSUM].encode()


def _key(line: bytes) -> str | None:
    """Return a line's key; None when it is torn or damaged."""
    body = line[CHECKSUM + 1 :]
    if not line.endswith(b"\n") or line[: CHECKSUM + 1] != _checksum(body) + b" ":
        return None
    return body.partition(b" ")[0].decode("ascii", "replace")


def _number(value: Any) -> Any:
    """Return a numpy scalar as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a journal cannot hold {type(value).__name__}")
