"""What tests of the engine share."""

from functools import partial

import pytest

from auditor.audit.attempts import linear, over_rows
from auditor.audit.categorical import redraws
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
def few_redraws(monkeypatch):
    """Three redraws for an error bar in place of 9, 39 or 59, in this process: enough where only whether results are the same is asked."""
    for module, name in ((linear, "REDRAWS"), (redraws, "REDRAWS"), (over_rows, "ROW_REDRAWS")):
        monkeypatch.setattr(module, name, 3)


@pytest.fixture
def run(command):
    """Run ``auditor run``; return exit status, standard output and standard error."""
    return partial(command, "run")
