"""What was found in a file is remembered for as long as the file is the same: by its name, size and time of change.

Used by every module of ``auditor.data.formats``; what is read of a file stands in these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def remembered(files: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Return a decorator that keeps what a function of a path found, of the last so many files."""

    def decorate(find: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize=files)
        def found(path: str, changed: int, size: int) -> T:
            del changed, size  # part of the cache's key
            return find(Path(path))

        @wraps(find)
        def of(path: Path) -> T:
            status = path.stat()
            return found(str(path), status.st_mtime_ns, status.st_size)

        return of

    return decorate
