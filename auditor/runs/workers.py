"""Who carries tasks out: this process, several processes here, or a Dask cluster.

A worker that is killed loses nothing: its tasks are done again. Tasks carry paths and places, results are aggregates. Processes here
ignore Ctrl-C, which their parent answers, and end when it does. joblib and Dask are imported by runs that have such workers, for start-up.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from auditor.errors import AuditorError, WorkersLost
from auditor.process.containment import withhold_uncaught

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3
"""Times in a row that workers may die before any task gets done: then it is the task that kills them, for want of memory mostly."""


WATCH_SECONDS = 1.0
ANSWER_SECONDS = 10.0
"""A scheduler that has not answered by then is not there."""
_leave = os._exit
"""As it is before any plugin runs."""

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
        self._workers = workers
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
        elif self._workers == 1 or len(tasks) <= 1:
            yield from ((place, work(task)) for place, task in enumerate(tasks))
        else:
            yield from _in_processes(self._workers, work, tasks)


def _in_processes(workers: int, work: Callable[[T], R], tasks: Sequence[T]) -> Numbered[R]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    left, deaths = dict(enumerate(tasks)), 0
    while left:
        try:
            with closing(_pool(workers, work, left)) as done:
                for place, result in done:
                    del left[place]
                    deaths = 0
                    yield place, result
        except TerminatedWorkerError:
            deaths += 1
            if deaths == MOST_DEATHS:
                raise WorkersLost(
                    f"worker processes were killed {deaths} times in a row over the same work, for want of memory perhaps: "
                    "`auditor check` tells what a worker needs; try fewer --workers"
                ) from None


def prepare(workers: int) -> None:
    """Start the processes that tasks will be carried out in, and let them import what that takes while this one reads and checks.

    Of no consequence but for time: whatever becomes of them, ``Crew`` has its own. More than there are processors would only be in the way.
    """
    if 1 < workers <= (os.cpu_count() or 1):
        _early.append(_started(workers, [(_arrive,)] * workers))


_early: list[Numbered[Any]] = []
"""Arrivals that nobody has waited for yet; dropped unheard they would take their processes with them."""


def _arrive() -> None:
    with without_collection():
        importlib.import_module("auditor.runs.schedule")
        registry = importlib.import_module("auditor.registry")
        registry.discover(*registry.AUDITING)


@contextmanager
def without_collection() -> Iterator[None]:
    """Import without Python's collector of circles: what is imported stays, and it would go through all of it again and again.

    Nor does it look at it later, from the first time on in a process.
    """
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


def _started(workers: int, calls: Sequence[tuple[Any, ...]]) -> Numbered[Any]:
    from joblib import Parallel, delayed

    with _ignoring_ctrl_c():
        # From its start, and not with its first task: one that has none yet would wait for it for minutes when nobody is left to give it.
        follow = {"initializer": _follow, "initargs": (os.getpid(),)}
        found: Numbered[Any] = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, **follow)(
            delayed(function)(*arguments) for function, *arguments in calls
        )
    return found


def _pool(workers: int, work: Callable[[T], R], tasks: dict[int, T]) -> Numbered[R]:
    while _early:
        with suppress(Exception):
            list(_early.pop())
    results = _started(workers, [(_numbered, work, place, task) for place, task in tasks.items()])
    try:
        yield from results
    finally:
        _closed(results)


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """Start processes that a terminal's Ctrl-C does not reach: it is sent to a whole group, and only the parent can make an end of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # before the signal is blocked: until Python 3.12 or so, starting it unblocks what was blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _numbered(work: Callable[[T], R], place: int, task: T) -> tuple[int, R]:
    return place, work(task)


def _follow(leader: int) -> None:
    """Let this process end when the one that started it does, or has already: killed, it cannot say goodbye, and work goes on for nobody.

    And let it ignore Ctrl-C, whatever it was started with: joblib may replace a worker while the signal is not blocked.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    withhold_uncaught()

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(WATCH_SECONDS)
        _leave(1)

    threading.Thread(target=watch, name="auditor-parent", daemon=True).start()


def dismiss() -> None:
    """End the processes that wait for more tasks.

    Left to themselves they are asked to go when the program ends, and an answer is waited for; one that was killed meanwhile gives none.
    """
    while _early:
        _closed(_early.pop())
    if "joblib" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


def _closed(results: Numbered[Any]) -> None:
    """Make an end of what nobody waits for any more."""
    with warnings.catch_warnings():  # that it ends early is no surprise here
        warnings.simplefilter("ignore")
        results.close()


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise AuditorError("--cluster needs the package `distributed`: pip install 'auditor[cluster]'") from None
    try:
        connect: Callable[..., Any] = Client  # typed or not, by whether the package is installed where types are checked
        return connect(address, timeout=f"{ANSWER_SECONDS}s")
    except (OSError, ValueError) as error:
        raise AuditorError(f"no Dask scheduler answers at {address!r} ({type(error).__name__})") from None


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
