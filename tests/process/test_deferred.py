from __future__ import annotations

from tests.programs import ROOT, python


def test_nothing_is_imported_before_something_is_asked():
    asked = "import sys; from auditor.process.deferred import pa, pd, pq; print('pandas' in sys.modules, pd.DataFrame.__name__, 'pandas' in sys.modules)"
    assert python("-c", asked, cwd=ROOT, check=True).stdout.split() == [
        "False",
        "DataFrame",
        "True",
    ]
