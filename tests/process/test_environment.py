import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from auditor.process.environment import one_thread
from tests.programs import ROOT, environment as environment_of, python


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


def test_a_program_of_ours_loads_libraries_with_one_thread_and_needs_no_other_s_to_be_held():
    code = (
        "import sys\nfrom auditor.process.environment import begin_program, one_thread\nbegin_program()\n"
        "with one_thread():\n    early = 'scipy.linalg' in sys.modules\n"
        "import scipy.linalg, sklearn.ensemble, threadpoolctl\nprint(early, *(x['num_threads'] for x in threadpoolctl.threadpool_info()))"
    )
    early, *found = python(
        "-c", code, env=environment_of(OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2"), check=True
    ).stdout.split()
    assert early == "False"
    assert len(found) >= 3
    assert set(found) == {"1"}


def test_nothing_is_imported_before_something_is_asked():
    asked = "import sys; from auditor.base import pa, pd, pq; print('pandas' in sys.modules, pd.DataFrame.__name__, 'pandas' in sys.modules)"
    assert python("-c", asked, cwd=ROOT, check=True).stdout.split() == [
        "False", "DataFrame", "True",
    ]  # fmt: skip
