from functools import partial

import pytest
from large_tables import SMALLER

from auditor.audit.attempts import opened
from auditor.audit.categorical import attack_records as error_bars
from auditor.audit.law_tests import categorical as law_tests
from auditor.audit.numeric import error_bars as numeric_redraws
from auditor.data import table as tables
from auditor.data.columns import scan as streamed
from auditor.numerics import blocks


@pytest.fixture
def large(monkeypatch):
    """Every table of a file is large, from here on."""
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    tables._remembered.clear()
    yield
    tables._remembered.clear()


@pytest.fixture
def small_blocks(monkeypatch):
    sizes = [(module, "BLOCK_VALUES") for module in (blocks, opened, numeric_redraws)]
    sizes += [
        (law_tests, "SCORED_ROWS"), (law_tests, "VALUE_ROWS"), (law_tests, "SCORED_VALUES"),
        (error_bars, "MOST_RECORDS"),
    ]  # fmt: skip
    for module, name in sizes:
        monkeypatch.setattr(module, name, getattr(module, name) // SMALLER)


@pytest.fixture
def run(command):
    return partial(command, "run")
