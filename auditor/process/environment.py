"""Packages, threads and memory of this process, and its output."""

import gc
import os
import pkgutil
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

import rich_click as click

from auditor.base import DataError, StorageError, clean_lines, counted

THREADS = ("BLIS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that linear algebra and boosted trees read when loaded. A second thread of
trees costs three times the time while another process runs."""


_whose = {"ours": False, "one thread": False}


def begin_program() -> None:
    """Mark this process as the program, with linear algebra on one thread.

    Child processes inherit the limit. Pydantic's plugin search is off. Imports and tables create
    few cycles, and searching for cycles took 6 % of a short run.
    """
    gc.set_threshold(500_000)
    _whose.update({"ours": True, "one thread": "numpy" not in sys.modules})
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def may_fork() -> bool:
    """Whether this process may fork workers.

    Only the program, on Linux with semaphores.
    """
    if not (_whose["ours"] and sys.platform == "linux"):
        return False
    from multiprocessing import get_context  # 0.01 s

    try:
        get_context("fork").Lock()  # missing in some containers
    except (ImportError, OSError):
        return False
    return True


def processors() -> int:
    """Processors available, with limits of shell and container."""
    from joblib import cpu_count  # a tenth of a second

    return int(cpu_count())


@cache
def version(package: str) -> str:
    """Version of an installed package, cached.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        The package is not installed.
    """
    from importlib import metadata  # 0.01 s

    return metadata.version(package)


def one_thread() -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread, for reproducible sums."""
    if _whose["one thread"]:  # by the variables; a search for libraries costs 0.03 s
        return nullcontext()
    if any(os.environ.get(variable) != "1" for variable in THREADS):
        import scipy.linalg  # noqa: F401 - 0.1 s; limited only if imported before

    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    from threadpoolctl import ThreadpoolController  # start-up

    del modules  # cache key
    return ThreadpoolController()


BYTES_PER_VALUE = 32
"""Bytes per value of an audited table: four arrays of doubles; measured: 24 to 27."""
CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


KEPT_BYTES = 2**24
"""Largest array in bytes for reuse of freed memory."""


@cache
def keep_freed_memory() -> None:
    """Let glibc reuse freed memory: new pages cost a tenth of an audit.

    By ``mallopt(3)``, ``M_MMAP_THRESHOLD``.
    """
    import numpy as np  # 0.05 s

    np.empty(KEPT_BYTES, dtype=np.uint8)  # freed at once


def available() -> int:
    """Usable bytes: the machine's memory, or a lower limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    limits += [
        soft
        for soft, _ in map(resource.getrlimit, (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        if soft != resource.RLIM_INFINITY
    ]
    for name in CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # missing file, or the word «max»
            limits.append(int(Path(name).read_text(encoding="ascii")))
    return min(limits)


def free() -> int:
    """Bytes free now."""
    import psutil  # 0.01 s

    return min(available(), int(psutil.virtual_memory().available))


def check_room(rows: int, width: int) -> None:
    """Raise `DataError` if a table does not fit in memory."""
    needed, there = rows * width * BYTES_PER_VALUE / 2**30, available() / 2**30
    if needed > there:
        problem = f"{rows:,} rows of {counted(width, 'column')} need {needed:,.1f} GiB of memory, and there are {there:,.1f} GiB"
        raise DataError(
            f"{problem}; draw fewer rows, or audit a table in a file, which is read block by block",
            ("rows",),
        )


def shipped_folder() -> Path:
    """Folder of shipped scenarios, in a package or checkout."""
    package = Path(__file__).parents[1]
    return next(filter(Path.is_dir, (package / "scenarios", package.parent / "scenarios")))


def shipped_scenarios() -> list[Path]:
    """Scenario files, by name."""
    return sorted(shipped_folder().glob("*.yaml"))


def templated(path: str, **values: Any) -> str:
    """Text of a Jinja template in this package."""
    from jinja2 import Environment, StrictUndefined  # start-up

    page = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    text = files("auditor").joinpath(path).read_text(encoding="utf-8")
    return page.from_string(text).render(**values)


def modules_in(package: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the names of a package's public modules."""
    for info in pkgutil.iter_modules(list(folders), package + "."):
        if not info.name.rpartition(".")[2].startswith("_"):
            yield info.name


# -- Standard output reserved for the report -------------------------------------------------------


class _Lasting:
    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None: ...


_reserved: list[TextIO | None] = []


@contextmanager
def reserved() -> Iterator[None]:
    """Reserve standard output for ``put``."""
    before = sys.stdout, sys.stderr
    kept = _diverted()
    stream = _private(before[0], kept)
    _reserved.append(stream)
    if before[1] is not None:
        sys.stdout = sys.stderr = _Lasting(before[1])
    try:
        yield
    finally:
        _reserved.pop()
        sys.stdout, sys.stderr = before
        with suppress(OSError, ValueError):  # closed by the reader
            if stream is not before[0]:
                stream.close()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def stream() -> TextIO | None:
    """Report's stream; None if standard output was closed."""
    return _reserved[-1] if _reserved else sys.stdout


def put(text: str, nl: bool = True) -> None:
    """Print a part of the report, unless its reader has closed the pipe.

    Raises
    ------
    StorageError
        The stream cannot be written.
    """
    if (report := stream()) is None:
        return
    try:
        click.echo(text, file=report, nl=nl)
    except BrokenPipeError:  # as of `| head`: the status stays the command's
        os.dup2(os.open(os.devnull, os.O_WRONLY), report.fileno())
    except OSError as error:
        raise StorageError(
            f"standard output cannot be written ({error.strerror or type(error).__name__})"
        ) from None


def tell(message: object) -> None:
    """Print lines of the report, cleaned of terminal controls."""
    put(clean_lines(message))


def say(message: object) -> None:
    """Print a cleaned message on standard error."""
    with suppress(OSError):  # a full or closed device
        click.echo(clean_lines(message), err=True)


def _diverted() -> int | None:
    with suppress(OSError, ValueError, AttributeError):  # a closed stream, or sys.stdout is None
        sys.stdout.flush()
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
        except OSError:
            os.close(kept)
            return None
        return kept
    return None


def _private(stream: Any, kept: int | None) -> Any:
    with suppress(OSError, ValueError, AttributeError):
        if kept is not None and stream.fileno() == 1:
            return open(os.dup(kept), "w", encoding=stream.encoding, errors="replace")  # noqa: PTH123 - of a descriptor
    return stream
