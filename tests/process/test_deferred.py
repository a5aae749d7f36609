from __future__ import annotations

import pandas
import pyarrow.parquet

from auditor.process import deferred
from tests.programs import ROOT, python


def test_nothing_is_imported_before_something_is_asked():
    asked = "import sys; from auditor.process.deferred import pa, pd, pq; print('pandas' in sys.modules, pd.DataFrame.__name__, 'pandas' in sys.modules)"
    assert python("-c", asked, cwd=ROOT, check=True).stdout.split() == [
        "False",
        "DataFrame",
        "True",
    ]


def test_they_are_what_they_stand_for():
    assert deferred.pd.DataFrame is pandas.DataFrame
    assert deferred.pq.ParquetFile is pyarrow.parquet.ParquetFile
    assert deferred.pa.Table is pyarrow.Table
    assert not hasattr(deferred.pd, "no_such_name")
