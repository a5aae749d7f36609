"""The charts' script that is shipped is the one that ``python -m auditor_reports.charts.inert`` makes."""

import pytest

from auditor_reports.charts.inert import BUNDLE, bundle, inflated


@pytest.mark.slow
def test_what_is_shipped_is_what_the_command_makes():
    """Compared inflated, as compressors differ; another release of ``vl-convert-python`` asks for the command, and a look at the charts."""
    assert inflated(BUNDLE.read_text(encoding="utf-8")) == inflated(bundle())
