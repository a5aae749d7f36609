"""Advice on a sample of a large table: near the level that all records ask for, and kept on Ctrl-C."""

import signal

import numpy as np
import pandas as pd
import pytest

from auditor.process.interrupt import Interrupted
from auditor.results.records import Advice
from auditor.runs.advice import audits, columns
from auditor.runs.advice.advise import advise
from auditor.runs.advice.columns import Request


@pytest.fixture
def request_of(tmp_path, monkeypatch):
    """A normal column of 12,000 records, of which 3,000 are measured; half stays unknown at 1."""
    x = np.random.default_rng(2**40 + 5).standard_normal(12_000)
    pd.DataFrame({"x": x}).to_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(columns, "MOST_ROWS", 1_000)
    monkeypatch.setattr(columns, "sample_size", lambda target: 3_000)
    scenario = audits.Asked.scenario

    def quick(self, scheme, levels, title="", attacks=(), draws=None):
        made = scenario(self, scheme, levels, title, attacks, draws)
        return made | {"attacks": list(attacks) or ["llse", "udr", "map-estimate"]}

    monkeypatch.setattr(audits.Asked, "scenario", quick)
    return Request(str(tmp_path / "table.parquet"), 2, 0.5, schemes=("corner-wave",))


@pytest.mark.slow
def test_a_sample_finds_the_level_of_all_records(request_of):
    said = []
    found = advise(request_of, said.append)
    assert (found.rows, found.all_rows, found.stopped) == (3_000, 12_000, None)
    # half of one normal attribute stays unknown at level 1; five draws of 3,000 records add 10 errors
    assert 1.0 <= found.chosen.levels[0] <= 1.5
    assert sum("target" in line for line in said) >= 2
    assert any("every attack was tried once" in note for note in found.notes)


@pytest.mark.slow
def test_the_best_so_far_survives_ctrl_c(request_of):
    def stop(line):
        if "target holds" in line:
            raise Interrupted(signal.SIGINT)

    found = advise(request_of, stop)
    assert isinstance(found, Advice)
    assert found.stopped == "SIGINT"
    assert found.chosen.verdict == "holds"
    assert any(note.startswith("stopped by SIGINT") for note in found.notes)


def test_before_any_release_holds_ctrl_c_ends_it(request_of):
    def stop(line):
        raise Interrupted(signal.SIGINT)

    with pytest.raises(Interrupted):
        advise(request_of, stop)
