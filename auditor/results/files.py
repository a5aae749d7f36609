"""Files by user-written names, and atomic writing with permissions.

Copies and finished tasks are private to their owner.
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
"""Age of an unfinished file that no running program writes."""


def located(name: str, base: Path | None = None) -> list[Path]:
    """Return the paths of a file or folder: in ``base``, then in the current folder.

    The result is empty for impossible names: too long, with a NUL byte, or in an unknown user's
    home.

    Raises
    ------
    AuditorError
        It is a pipe or a device, which may have no end, or its name has a control character.

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
    """Write a file at once or in pieces; a crash leaves the old content or the new.

    A device or a pipe is written to and never replaced. ``private`` is as for `publish`.
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


def publish(temporary: Path, path: Path, private: bool = False) -> None:
    """Rename a finished file; ``private`` keeps mode 0600, else new-file permissions."""
    if not private:
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    temporary.replace(path)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an OSError to a user error."""
    try:
        yield
    except OSError as error:
        raise AuditorError(
            f"{path}: cannot be written ({error.strerror or type(error).__name__})"
        ) from None


def sweep(folder: Path, names: Container[str]) -> None:
    """Remove unfinished files of killed programs, unless they are young."""
    for path in folder.glob(".*-????????"):
        with suppress(OSError):
            if path.name[1:-9] in names and time.time() - path.stat().st_mtime > LEFT_OVER_SECONDS:
                path.unlink()


def lock_folder(folder: Path, patience: float = 0.0) -> int | None:
    """Lock a folder for this process, waiting ``patience`` seconds; return the descriptor.

    The system releases the lock when the process ends. The result is None if folders cannot be
    locked.

    Raises
    ------
    AuditorError
        Another process holds the folder.
    """
    try:
        import fcntl  # missing on Windows
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
