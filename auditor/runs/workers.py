"""Workers that carry out tasks: processes here, or a Dask cluster.

Tasks of a killed worker are done again. Processes here leave Ctrl-C to their parent, and end with
it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from auditor.base import AuditorError, WorkersLost
from auditor.process.containment import SIGNALS, copying, leave, shielded, withhold_uncaught
from auditor.process.environment import may_fork

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3
"""Successive deaths of workers until the task is blamed."""
WATCH_SECONDS = 1.0
ANSWER_SECONDS = 10.0
"""Longest wait for a Dask scheduler."""
AHEAD = 8
"""Steps submitted at once per worker; their results wait in memory."""

Numbered = Generator[tuple[int, R], None, None]
"""Places of tasks, from 0, and results in the order of completion."""


class Crew:
    """Workers of a run: processes here, or of a Dask scheduler."""

    def __init__(self, workers: int = 1, cluster: str | None = None) -> None:
        self._client: Any = None
        if cluster is not None:
            self._client = _connected(cluster)
        threads: dict[str, int] = {} if cluster is None else self._client.nthreads()
        self.workers = sum(threads.values()) or workers
        self._pool: Executor | None = None
        self._size = 0

    @property
    def alone(self) -> bool:
        """Whether all work is done in this process."""
        return self._client is None and self.workers == 1

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_pool()
        if self._client is not None:
            self._client.close()

    def in_order(self, work: Callable[[T], R], tasks: Sequence[T]) -> Generator[R, None, None]:
        """Yield results in the order of tasks; see ``as_done``."""
        at_once = AHEAD * self.workers
        for start in range(0, len(tasks), at_once):
            some = tasks[start : start + at_once]
            early: dict[int, R] = {}
            with closing(self.as_done(work, some)) as done:
                for place in range(len(some)):
                    while place not in early:
                        number, early[number] = next(done)
                    yield early.pop(place)

    def as_done(self, work: Callable[[T], R], tasks: Sequence[T]) -> Numbered[R]:
        """Yield place and result of each finished task.

        Raises
        ------
        WorkersLost
            Workers die repeatedly over one task.
        """
        left, deaths = dict(enumerate(tasks)), 0
        if self.alone or (self._client is None and len(tasks) <= 1):
            yield from ((place, work(task)) for place, task in left.items())
            return
        while left:
            try:
                with closing(self._done(work, left)) as done:
                    for place, result in done:
                        del left[place]
                        deaths = 0
                        yield place, result
            except BrokenProcessPool:
                deaths += 1
                if deaths == MOST_DEATHS:
                    raise WorkersLost(
                        f"worker processes were killed {deaths} times in a row over the same work, for want of memory perhaps: "
                        "`auditor check` tells what a worker needs; try fewer --workers"
                    ) from None

    def _done(self, work: Callable[[T], R], tasks: Mapping[int, T]) -> Numbered[R]:
        pool = self._executor(min(self.workers, len(tasks)))
        places: dict[Future[R], int] = {}
        try:
            with shielded(), copying(), _without_signals():
                try:
                    for place, task in tasks.items():
                        places[pool.submit(work, task)] = place
                except BlockingIOError:  # of processes, not of a task
                    raise WorkersLost(
                        "the system starts no more processes; try fewer --workers"
                    ) from None
            for future in as_completed(list(places)):
                try:
                    result = future.result()
                except Exception as error:
                    if type(error).__name__ != "KilledWorker":
                        raise
                    raise WorkersLost(
                        "cluster workers died again and again over the same work, for want of memory perhaps: "
                        "`auditor check` tells what a worker needs"
                    ) from None
                yield places.pop(future), result
        finally:
            if places:
                self._end_pool(kill=True)

    def _executor(self, size: int) -> Executor:
        """Processes that start with their first task, or the cluster.

        Our own program forks, which shares table and imports. Other programs, with threads that may
        hold locks, and other systems use loky.
        """
        if size > self._size:
            self._end_pool()
        if self._pool is None:
            self._size = size
            if self._client is not None:
                self._pool = self._client.get_executor(pure=False)
            elif may_fork():
                self._pool = ProcessPoolExecutor(
                    size, get_context("fork"), _begin_as_copy, (os.getpid(),)
                )
            else:
                from joblib.externals.loky import get_reusable_executor  # start-up

                self._pool = get_reusable_executor(
                    size, initializer=_begin, initargs=(os.getpid(),)
                )
        assert self._pool is not None
        return self._pool

    def _end_pool(self, kill: bool = False) -> None:
        pool, self._pool, self._size = self._pool, None, 0
        if isinstance(pool, ProcessPoolExecutor):
            if kill:
                for process in active_children():
                    process.kill()
            pool.shutdown(cancel_futures=True)
        elif pool is not None and self._client is not None:
            pool.shutdown(wait=False)
        elif kill:
            dismiss()


def dismiss() -> None:
    """End loky's idle processes, which would delay the program's end."""
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor  # start-up

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Start processes that signals do not reach before their handlers are set.

    A terminal sends Ctrl-C to a whole group.
    """
    from multiprocessing import resource_tracker  # start-up

    # its start unblocks signals until Python 3.12 or so
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        # Python warns of threads, but ours hold no lock that forks need
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_as_copy(leader: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for name in ("stdout", "stderr"):
        with suppress(AttributeError, OSError, ValueError):  # closed, or no file
            old = getattr(sys, name)
            own = open(old.fileno(), "w", encoding=old.encoding, errors=old.errors, closefd=False)
            setattr(sys, name, own)
    _begin(leader)


def _begin(leader: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    withhold_uncaught()

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(WATCH_SECONDS)
        leave(1)

    threading.Thread(target=watch, name="auditor-parent", daemon=True).start()


def _connected(address: str) -> Any:
    try:
        from distributed import Client  # optional
    except ImportError:
        raise AuditorError(
            "--cluster needs the package `distributed`: pip install 'auditor[cluster]'"
        ) from None
    try:
        # typed only where the package is installed
        connect: Callable[..., Any] = Client
        return connect(address, timeout=f"{ANSWER_SECONDS}s")
    except (OSError, ValueError) as error:
        raise AuditorError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__})"
        ) from None
