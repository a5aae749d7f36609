"""What this process has loaded: versions of packages, and the libraries of linear algebra, held to one thread."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@cache
def version(package: str) -> str:
    """Return the version of an installed package; looked up once, as all of its metadata is parsed each time.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        It is not installed.
    """
    return metadata.version(package)


def one_thread() -> AbstractContextManager[Any]:
    """Hold linear algebra to one thread: its sums depend on the number of threads, and results must not."""
    import scipy.linalg  # noqa: F401 - its own library of linear algebra, which would not be held if it came later

    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Finding the libraries takes as long as a small audit: they are looked for again only after an import, which may have brought one."""
    from threadpoolctl import ThreadpoolController  # here for start-up, as `scipy.linalg` above

    del modules  # the cache's key
    return ThreadpoolController()
