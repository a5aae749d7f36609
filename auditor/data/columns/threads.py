"""Work on pieces of files in a few threads: decoding, hashing and sums all let other threads run; results come in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 4
"""Each holds a batch of records; more would find the disk or the memory busy."""


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield the result for each item, in order; few are begun before they are asked for, so that few are held."""
    from concurrent.futures import ThreadPoolExecutor  # with logging some milliseconds, which tables of one stripe need not wait for

    threads = min(MOST_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="auditor-pieces")  # `close_up` knows them by this name
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Nobody is waited for: of results that an error left halfway this runs when they are collected, in any thread and at any moment,
        # and one that is just starting holds the lock that the end of every other needs (`threading._shutdown_locks_lock`).
        pool.shutdown(wait=False, cancel_futures=True)
