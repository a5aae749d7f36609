"""Files by user-written names, and atomic writing with permissions.

Copies and finished tasks are private to their owner.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from auditor.base import CONTROL, AuditorError, StorageError, clean, shortened
from auditor.base.types import frozen

LEFT_OVER_SECONDS = 3600.0
"""Age of an unfinished file that no running program writes."""


@frozen
class Reading:
    """Sheet of a workbook, and missing-value marks, for reading a table."""

    sheet: str | None = None
    blank: tuple[str, ...] | None = None


class TableFile(type(Path())):  # type: ignore[misc]
    """Path of a file with its ``reading``."""

    reading = Reading()

    @classmethod
    def of(cls, path: Path, reading: Reading) -> Path:
        """Path with a reading."""
        found: Any = cls(path)
        found.reading = reading
        return found  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return TableFile.of, (Path(str(self)), self.reading)


def reading_of(path: Path) -> Reading:
    """Stated reading of a file."""
    return path.reading if isinstance(path, TableFile) else Reading()


def with_reading(name: str, sheet: str | None, blank: Iterable[object] | None) -> str:
    """File's name with its reading, the inverse of ``split_name``.

    Examples
    --------
    >>> with_reading("book.xlsx#Wages", None, [-9]), with_reading("a.csv", None, [])
    ('book.xlsx#sheet=Wages&blank=-9', 'a.csv#blank=')
    """
    bare, own = split_name(name)
    sheet, blank = sheet or own.sheet, own.blank if blank is None else blank
    stated = {} if sheet is None else {"sheet": [sheet]}
    if blank is not None:
        stated["blank"] = [str(mark) for mark in blank] or [""]
    return f"{bare}#{urlencode(stated, doseq=True)}" if stated else name


def name_of(path: Path) -> str:
    """Name of a file with its reading."""
    reading = reading_of(path)
    return with_reading(str(path), reading.sheet, reading.blank)


def split_name(name: str) -> tuple[str, Reading]:
    """File's name and its reading, which may follow ``#``.

    Raises
    ------
    AuditorError
        The file has an unknown option.

    Examples
    --------
    >>> split_name("book.xlsx#Wages")
    ('book.xlsx', Reading(sheet='Wages', blank=None))
    """
    bare, mark, text = name.rpartition("#")
    if not mark or (not Path(bare).suffix and not bare.endswith(("/", "\\"))):
        return name, Reading()
    stated = parse_qs(text, keep_blank_values=True) if "=" in text else {"sheet": [text]}
    if unknown := stated.keys() - {"sheet", "blank"}:
        raise AuditorError(
            f"{shortened(clean(bare), 100)}: has no option {shortened(clean(min(unknown)), 50)!r}; "
            "a file's name may end with #sheet=NAME or #blank=WORD"
        )
    blank = tuple(filter(None, stated["blank"])) if "blank" in stated else None
    return bare, Reading(stated.get("sheet", [None])[0], blank)


def located(name: str, base: Path | None = None) -> list[Path]:
    """Paths of a file or folder: in ``base``, then in the current folder.

    Empty for impossible names.

    Raises
    ------
    AuditorError
        It is a pipe or a device, which may have no end, or its name has a control character.

    Examples
    --------
    >>> located("a" * 5_000), located("~nobody-of-that-name/x.csv"), located(chr(0))
    ([], [], [])
    """
    bare, reading = split_name(name)
    try:
        there = _there(name, base)
        if not there and bare != name:
            there = [TableFile.of(path, reading) for path in _there(bare, base)]
    except (OSError, RuntimeError, ValueError):
        return []
    if there and CONTROL.search(name):
        raise AuditorError(
            f"{shortened(clean(name), 100)}: the name of a file must not hold control characters; rename it"
        )
    if not all(path.is_file() or path.is_dir() for path in there):
        raise AuditorError(
            f"{shortened(name, 100)}: expected a file or a folder; got a pipe or a device"
        )
    return there


def _there(name: str, base: Path | None) -> list[Path]:
    written = Path(name).expanduser()
    every = dict.fromkeys(((base or Path()) / written, written))
    return [path for path in every if path.exists()]


def write_atomically(path: Path, content: bytes | Iterable[bytes], private: bool = False) -> None:
    """Write a file at once or in pieces; a crash leaves one whole content.

    A device or a pipe is never replaced. ``private`` is as for `publish`.
    """
    pieces = [content] if isinstance(content, bytes) else content
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.writelines(pieces)
        return
    path = path.resolve()  # keeps a link
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.writelines(pieces)
            handle.flush()
            # a full disk may fail only here
            os.fsync(descriptor)
        publish(Path(temporary), path, private)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def publish(temporary: Path, path: Path, private: bool) -> None:
    """Rename a finished file; ``private`` keeps mode 0600.

    Else it gets a new file's permissions.
    """
    if not private:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    temporary.replace(path)


@contextmanager
def writing(path: object, kind: type[AuditorError] = AuditorError) -> Iterator[None]:
    """Convert an OSError to a user error."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise kind(f"{path}: cannot be written ({why})") from None


def sweep(folder: Path, names: Container[str]) -> None:
    """Remove unfinished files of killed programs, unless young."""
    for path in folder.glob(".*-????????"):
        with suppress(OSError):
            if path.name[1:-9] in names and time.time() - path.stat().st_mtime > LEFT_OVER_SECONDS:
                path.unlink()


def lock_folder(folder: Path, patience: float = 0.0) -> int | None:
    """Lock a folder, waiting ``patience`` seconds; return the descriptor.

    Locks end with the process. The result is None if the file system has none.

    Raises
    ------
    AuditorError
        Another process holds the folder.
    """
    with writing(folder, StorageError):  # perhaps removed since it was made
        descriptor = os.open(folder, os.O_RDONLY)
    end = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise AuditorError(
                        f"{folder}: another run is writing there; wait for it, or choose another folder with --output"
                    ) from None
            time.sleep(0.05)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            return None
        raise
