"""New files: there whole or not at all, and readable by whom the user wants: copies and journals by their owner alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old content or the new, never half of one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(descriptor)  # a full disk may say so only now, and a name must not be given to what is not there yet
        publish(Path(temporary), path)
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
