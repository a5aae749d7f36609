"""Work on file pieces in a few threads, with results in order.

Decoding, hashing and sums run in parallel.
"""

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
"""Each holds a batch of records; more would saturate disk or memory."""


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield the result for each item, in order, with few started in advance."""
    # with logging some milliseconds, wasted on tables of one stripe
    from concurrent.futures import ThreadPoolExecutor

    threads = min(
        MOST_THREADS,
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    )
    waiting: deque[Future[R]] = deque()
    # `close_up` finds threads by this name
    pool = ThreadPoolExecutor(threads, thread_name_prefix="auditor-pieces")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # No wait: after an error the generator may be collected in any thread at any moment, and a
        # starting thread holds the lock that the end of every other needs
        # (`threading._shutdown_locks_lock`).
        pool.shutdown(wait=False, cancel_futures=True)
