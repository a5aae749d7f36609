"""What tests of the engine share."""

import pytest

from auditor.data.streamed import rows as streamed
from auditor.runs import schedule as tasks


@pytest.fixture
def large(monkeypatch):
    """Every table of a file is large, from here on."""
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    tasks._table.cache_clear()
    yield
    tasks._table.cache_clear()
