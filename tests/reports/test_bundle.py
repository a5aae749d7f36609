import pytest

from auditor_reports.charts.inert import BUNDLE, bundle, inflated


@pytest.mark.slow
def test_what_is_shipped_is_what_the_command_makes():
    assert inflated(BUNDLE.read_text(encoding="utf-8")) == inflated(bundle())
