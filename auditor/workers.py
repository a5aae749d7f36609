"""Who carries tasks out: this process, several processes here, or a Dask cluster; results come in the tasks' order, whoever did them.

A worker that is killed loses nothing: its tasks are done again. Tasks carry paths and places, results are aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from auditor.errors import AuditorError

T = TypeVar("T")
R = TypeVar("R")

MOST_DEATHS = 3
"""Times in a row that workers may die before any task gets done: then it is the task that kills them, for want of memory mostly."""


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

    def carry_out(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield the result of each task, in order.

        Raises
        ------
        AuditorError
            Workers die again and again over one task.
        """
        if self._client is not None:
            yield from _on_cluster(self._client, work, tasks)
        elif self._workers == 1 or len(tasks) == 1:
            yield from map(work, tasks)
        else:
            yield from _in_processes(self._workers, work, tasks)


def _in_processes(workers: int, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    done = deaths = 0
    while done < len(tasks):
        try:
            for result in Parallel(n_jobs=workers, return_as="generator", batch_size=1)(delayed(work)(task) for task in tasks[done:]):
                done, deaths = done + 1, 0
                yield result
        except TerminatedWorkerError:
            deaths += 1
            if deaths == MOST_DEATHS:
                raise AuditorError(
                    f"worker processes were killed {deaths} times in a row over the same work, for want of memory perhaps: "
                    "`auditor check` tells what a worker needs; try fewer --workers"
                ) from None


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise AuditorError("--cluster needs the package `distributed`: pip install 'auditor[cluster]'") from None
    try:
        connect: Callable[..., Any] = Client  # typed or not, by whether the package is installed where types are checked
        return connect(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise AuditorError(f"no Dask scheduler answers at {address!r} ({type(error).__name__})") from None


def _on_cluster(client: Any, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    """The scheduler gives a dead worker's tasks to others, and does again those whose results died with it."""
    from distributed.scheduler import KilledWorker

    futures = client.map(work, tasks, pure=False)
    try:
        for place, future in enumerate(futures):
            result: R = future.result()
            futures[place] = None  # the cluster need not keep it
            yield result
    except KilledWorker:
        raise AuditorError(
            "cluster workers died again and again over the same work, for want of memory perhaps: `auditor check` tells what a worker needs"
        ) from None
