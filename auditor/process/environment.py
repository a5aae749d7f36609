"""What this process has loaded: versions of packages, and the libraries of linear algebra, held to one thread."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


THREADS = ("BLIS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that libraries of linear algebra read as they are loaded; a library loaded later by another name would not be held."""


_whose = {"ours": False}


def begin_program() -> None:
    """Say that this process is our own program, in which libraries of linear algebra that are loaded from now on take one thread.

    So do those of programs started from here. Another's program, that imports this package, decides for itself. Nor is pydantic to look for
    plugins of its own, unless whoever starts the program says so: it would read files of all installed distributions at every start.
    """
    _whose["ours"] = True
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def may_fork() -> bool:
    """Return whether copies of this process may work for it: of our own program, whose few threads are known, on Linux with semaphores."""
    if not (_whose["ours"] and sys.platform == "linux"):
        return False
    from multiprocessing import get_context  # a hundredth of a second, which `auditor --help` would pay for

    try:
        get_context("fork").Lock()  # some containers and functions in the cloud have none
    except (ImportError, OSError):
        return False
    return True


def processors() -> int:
    """Return how many processors this process may use: the machine's, or fewer where the shell or a container sets a limit."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such system, or the word «max»
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split())
        count = min(count, max(1, quota // period))
    return count


@cache
def version(package: str) -> str:
    """Return the version of an installed package; looked up once, as all of its metadata is parsed each time.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        It is not installed.
    """
    from importlib import metadata  # a hundredth of a second, which `auditor --help` would pay for

    return metadata.version(package)


def one_thread() -> AbstractContextManager[Any]:
    """Hold linear algebra to one thread: its sums depend on the number of threads, and results must not."""
    if any(os.environ.get(variable) != "1" for variable in THREADS):
        import scipy.linalg  # noqa: F401 - a tenth of a second; its own library of linear algebra would not be held if it came later

    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Finding the libraries takes as long as a small audit: they are looked for again only after an import, which may have brought one."""
    from threadpoolctl import ThreadpoolController  # here for start-up, as `scipy.linalg` above

    del modules  # the cache's key
    return ThreadpoolController()


@contextmanager
def without_collection() -> Iterator[None]:
    """Import without Python's collector of circles: what is imported stays, and it would go through all of it again and again.

    Nor does it look at it later, from the first time on in a process.
    """
    gc.disable()
    try:
        yield
    finally:
        _freeze()
        gc.enable()


@cache
def _freeze() -> None:
    """Once; `gc.get_freeze_count` would count all of it each time, which takes 20 milliseconds."""
    gc.freeze()
