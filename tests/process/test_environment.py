from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import scipy.linalg
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

from auditor.process import environment
from auditor.process.environment import one_thread
from tests.programs import environment as environment_of
from tests.programs import python


def threads():
    return [each["num_threads"] for each in threadpool_info()]


def test_every_library_has_one_thread_inside_and_its_own_number_again_outside():
    assert np.linalg.inv([[2.0]]) == scipy.linalg.inv([[2.0]]) == 0.5
    with threadpool_limits(limits=2):
        before = threads()
        with one_thread():
            assert set(threads()) == {1}
            with one_thread():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_scipy_s_own_library_is_held_before_anything_needs_it():
    code = "from auditor.process.environment import one_thread\nwith one_thread():\n    import scipy.linalg, threadpoolctl\n    print(*(x['num_threads'] for x in threadpoolctl.threadpool_info()))"
    found = python(
        "-c", code, env=environment_of(OPENBLAS_NUM_THREADS="2"), check=True
    ).stdout.split()
    assert len(found) >= 2
    assert set(found) == {"1"}


def test_a_program_of_ours_loads_libraries_with_one_thread_and_needs_no_other_s_to_be_held():
    code = (
        "import sys\nfrom auditor.process.environment import begin_program, one_thread\nbegin_program()\n"
        "with one_thread():\n    early = 'scipy.linalg' in sys.modules\n"
        "import scipy.linalg, threadpoolctl\nprint(early, *(x['num_threads'] for x in threadpoolctl.threadpool_info() if x['user_api'] == 'blas'))"
    )
    early, *found = python(
        "-c", code, env=environment_of(OPENBLAS_NUM_THREADS="2"), check=True
    ).stdout.split()
    assert early == "False"
    assert len(found) >= 2
    assert set(found) == {"1"}


def test_libraries_are_looked_for_again_after_an_import_and_only_then(monkeypatch):
    looked = []
    real = threadpoolctl.ThreadpoolController
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: looked.append(1) or real())
    environment._libraries.cache_clear()
    for _ in range(3):
        with one_thread():
            pass
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "brings_a_library", ModuleType("brings_a_library"))
    with one_thread():
        pass
    assert len(looked) == 2
