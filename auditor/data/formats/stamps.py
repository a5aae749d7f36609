"""Cache of file contents by name, size and time of change.

Used by every module of ``auditor.data.formats``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def remembered(files: int) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Return a decorator that caches a function of a path.

    For the last ``files`` files.
    """

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
