from __future__ import annotations

import threading
from contextlib import nullcontext

import pytest

from auditor.data.columns.scan import in_threads


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(in_threads(lambda k: k * k, range(50))) == [k * k for k in range(50)]


def test_an_error_is_raised_where_its_result_was_due() -> None:
    results = in_threads(lambda k: 1 // (3 - k), range(50))
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_threads_are_not_taken_for_a_plugin_s() -> None:
    names = in_threads(lambda _: threading.current_thread().name, range(5))
    assert all(name.startswith("auditor-") for name in names)


@pytest.mark.timeout(60)
def test_results_that_are_collected_while_a_thread_starts_wait_for_none() -> None:
    results = in_threads(lambda k: k, range(50))
    assert next(results) == 0
    with getattr(threading, "_shutdown_locks_lock", None) or nullcontext():
        results.close()
