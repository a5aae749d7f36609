"""What tests of the engine share."""

from functools import partial

import pytest

from auditor.data.streamed import rows as streamed
from auditor.runs import tables


@pytest.fixture
def large(monkeypatch):
    """Every table of a file is large, from here on."""
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    tables._table.cache_clear()
    yield
    tables._table.cache_clear()


@pytest.fixture
def run(command):
    """Run ``auditor run``; return exit status, standard output and standard error."""
    return partial(command, "run")
