"""The charts' script that is shipped is the one that ``python -m auditor_reports.charts.bundle`` makes."""

import pytest

from auditor_reports.charts import bundle
from auditor_reports.charts.inert import inflated


@pytest.mark.slow
def test_what_is_shipped_is_what_the_command_makes():
    """Compared inflated, as compressors differ; another release of ``vl-convert-python`` asks for the command, and a look at the charts."""
    assert inflated(bundle.PATH.read_text(encoding="utf-8")) == inflated(bundle.made())
