"""Files by the names that users write; new ones are there whole or not at all, and readable by whom the user wants.

Copies and finished tasks are their owner's alone.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from auditor.errors import AuditorError, StorageError, shortened
from auditor.text.safe_text import CONTROL, clean

LEFT_OVER_SECONDS = 3600.0
"""Age of an unfinished file that no program is still writing."""


def located(name: str, base: Path | None = None) -> list[Path]:
    """Return where a file or a folder of that name is: in the folder ``base``, then in the current one.

    No place for a name that no file can have: too long for the system, with a NUL byte, or in the
    home of an unknown user.

    Raises
    ------
    AuditorError
        It is a pipe or a device, which may have no end, or its name holds a line break or another
        control character.

    Examples
    --------
    >>> located("a" * 5_000), located("~nobody-of-that-name/x.csv"), located(chr(0))
    ([], [], [])
    """
    try:
        written = Path(name).expanduser()
        there = [
            path for path in dict.fromkeys(((base or Path()) / written, written)) if path.exists()
        ]
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


def write_atomically(path: Path, content: bytes | Iterable[bytes], private: bool = False) -> None:
    """Write a file, at once or piece by piece, so that a crash leaves either the old content or the new, never half of one.

    A device or a pipe is written to; it must not be replaced by a file. A ``private`` one is so as
    ``publish`` has it.
    """
    pieces = [content] if isinstance(content, bytes) else content
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.writelines(pieces)
        return
    path = path.resolve()  # where a link leads to, so that the link stays
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.writelines(pieces)
            handle.flush()
            # a full disk may say so only now, and a name must not be given to what is not there yet
            os.fsync(descriptor)
        publish(Path(temporary), path, private)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def publish(temporary: Path, path: Path, private: bool = False) -> None:
    """Give a finished file its own name, at once: as private as it was made (mode 0600), or with the permissions of any new file."""
    if not private:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    temporary.replace(path)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell a user, without a traceback, that something cannot be written."""
    try:
        yield
    except OSError as error:
        raise AuditorError(
            f"{path}: cannot be written ({error.strerror or type(error).__name__})"
        ) from None


def sweep(folder: Path, names: Container[str]) -> None:
    """Remove unfinished files that a killed program left; young ones may belong to a program that still runs."""
    for path in folder.glob(".*-????????"):
        with suppress(OSError):
            if path.name[1:-9] in names and time.time() - path.stat().st_mtime > LEFT_OVER_SECONDS:
                path.unlink()


def lock_folder(folder: Path, patience: float = 0.0) -> int | None:
    """Lock a folder for this process, and wait so many seconds for it; return the descriptor that holds the lock.

    The system releases the lock when the process ends, however it ends. Returns None where folders
    cannot be locked.

    Raises
    ------
    AuditorError
        Another process holds the folder.
    """
    try:
        import fcntl  # not on every system
    except ImportError:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:  # removed since it was made
        raise StorageError(
            f"{folder}: cannot be written ({error.strerror or type(error).__name__})"
        ) from None
    end = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                if time.monotonic() >= end:
                    instead = "wait for it, or choose another folder with --output"
                    raise AuditorError(
                        f"{folder}: another run is writing there; {instead}"
                    ) from None
            time.sleep(0.05)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):
            return None
        raise
