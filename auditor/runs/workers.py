"""Who carries tasks out: this process, several processes here, or a Dask cluster.

A worker that is killed loses nothing: its tasks are done again. Tasks carry paths and places,
results are aggregates. Processes here ignore Ctrl-C, which their parent answers, and end when it
does. joblib and Dask are imported by runs that have such workers, for start-up.
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

from auditor.errors import AuditorError, WorkersLost
from auditor.process.containment import copying, leave, withhold_uncaught
from auditor.process.environment import may_fork
from auditor.process.interrupt import SIGNALS

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3
"""Times in a row that workers may die before any task gets done: then it is the task that kills
them, for want of memory mostly."""


WATCH_SECONDS = 1.0
ANSWER_SECONDS = 10.0
"""A scheduler that has not answered by then is not there."""
Numbered = Generator[tuple[int, R], None, None]
"""Places of tasks, from 0, with what they yielded, in whatever order they were finished."""


class Crew:
    """Those who carry tasks out.

    Parameters
    ----------
    workers : int
        Processes here.
    cluster : str or None
        Address of a running Dask scheduler, instead of processes here.
    """

    def __init__(self, workers: int = 1, cluster: str | None = None) -> None:
        self.workers = workers
        self._client = None if cluster is None else _connected(cluster)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def carry_out(self, work: Callable[[T], R], tasks: Sequence[T]) -> Generator[R, None, None]:
        """Yield the result of each task, in order; see ``as_done``."""
        early: dict[int, R] = {}
        due = 0
        with closing(self.as_done(work, tasks)) as done:
            for place, result in done:
                early[place] = result
                while due in early:
                    yield early.pop(due)
                    due += 1

    def as_done(self, work: Callable[[T], R], tasks: Sequence[T]) -> Numbered[R]:
        """Yield place and result of each task as it is finished: what is to be kept should not wait for slower ones before it.

        Raises
        ------
        WorkersLost
            Workers die again and again over one task.
        """
        if self._client is not None:
            yield from _on_cluster(self._client, work, tasks)
        elif self.workers == 1 or len(tasks) <= 1:
            yield from ((place, work(task)) for place, task in enumerate(tasks))
        else:
            yield from _in_processes(self.workers, work, tasks)


def _in_processes(workers: int, work: Callable[[T], R], tasks: Sequence[T]) -> Numbered[R]:
    left, deaths = dict(enumerate(tasks)), 0
    while left:
        try:
            with closing(_done(_pool(min(workers, len(left))), work, left)) as done:
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


def _pool(workers: int) -> Executor:
    """Return processes that will start with their first task.

    In our own program they begin as copies of it: they import nothing, read no table again and
    share its memory. In somebody else's, whose threads may hold locks that a copy would wait for in
    vain, and on other systems, they are started afresh.
    """
    if may_fork():
        return ProcessPoolExecutor(workers, get_context("fork"), _begin_as_copy, (os.getpid(),))
    from joblib.externals.loky import get_reusable_executor

    pool: Executor = get_reusable_executor(workers, initializer=_begin, initargs=(os.getpid(),))
    return pool


def _done(pool: Executor, work: Callable[[T], R], tasks: Mapping[int, T]) -> Numbered[R]:
    places: dict[Future[R], int] = {}
    try:
        try:
            with copying(), _without_signals():
                for place, task in tasks.items():
                    places[pool.submit(work, task)] = place
        except BlockingIOError:  # of starting processes alone: a task's own is its own
            raise WorkersLost("the system starts no more processes; try fewer --workers") from None
        for future in as_completed(list(places)):
            result = future.result()
            yield places.pop(future), result  # forgotten here, so that nobody keeps it
    finally:
        if places:
            _kill(pool)
        elif isinstance(pool, ProcessPoolExecutor):  # others may be asked again
            pool.shutdown()


def _kill(pool: Executor) -> None:
    """Make an end of what nobody waits for any more."""
    if isinstance(pool, ProcessPoolExecutor):
        for process in active_children():  # of our own program, which has no others
            process.kill()
        pool.shutdown(cancel_futures=True)
    else:
        dismiss()


def dismiss() -> None:
    """End the processes of somebody else's program that wait for more tasks.

    Left to themselves they are asked to go when the program ends, and an answer is waited for; one
    that was killed meanwhile gives none.
    """
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Start processes that signals do not reach before they know what to do: a terminal's Ctrl-C is sent to a whole group."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # before signals are blocked: until Python 3.12 or so, starting it unblocks what was blocked
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        # that copies of a program with threads may come to a standstill: ours hold no lock that
        # they need
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_as_copy(leader: int) -> None:
    """Begin without what a copy must not use of its program: answers to signals, and streams that other threads may have locked."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for name in ("stdout", "stderr"):
        with suppress(AttributeError, OSError, ValueError):  # closed, or no file
            stream = getattr(sys, name)
            setattr(
                sys,
                name,
                open(
                    stream.fileno(),
                    "w",
                    encoding=stream.encoding,
                    errors=stream.errors,
                    closefd=False,
                ),
            )
    _begin(leader)


def _begin(leader: int) -> None:
    """Let this process end when the one that started it does, or has already: killed, it cannot say goodbye, and work goes on for nobody.

    And let it ignore Ctrl-C, whatever it was started with: a worker may be replaced while the
    signal is not blocked.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    withhold_uncaught()

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(WATCH_SECONDS)
        leave(1)

    threading.Thread(target=watch, name="auditor-parent", daemon=True).start()


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise AuditorError(
            "--cluster needs the package `distributed`: pip install 'auditor[cluster]'"
        ) from None
    try:
        # typed or not, by whether the package is installed where types are checked
        connect: Callable[..., Any] = Client
        return connect(address, timeout=f"{ANSWER_SECONDS}s")
    except (OSError, ValueError) as error:
        raise AuditorError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__})"
        ) from None


def _on_cluster(client: Any, work: Callable[[T], R], tasks: Sequence[T]) -> Numbered[R]:
    """The scheduler gives a dead worker's tasks to others, and does again those whose results died with it."""
    import distributed
    from distributed.scheduler import KilledWorker

    places = {future: place for place, future in enumerate(client.map(work, tasks, pure=False))}
    in_turn: Callable[..., Any] = distributed.as_completed
    try:
        for future in in_turn(list(places)):
            result: R = future.result()
            yield places.pop(future), result  # forgotten here, so that the cluster need not keep it
    except KilledWorker:
        raise WorkersLost(
            "cluster workers died again and again over the same work, for want of memory perhaps: `auditor check` tells what a worker needs"
        ) from None
