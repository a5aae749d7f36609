"""Checks of advice on the rows of a release, and without their order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from auditor.runs.advice import advise
from auditor.runs.advice.advise import Check, checked_place
from auditor.runs.advice.audits import Asked

LEVELS = tuple(0.1 * 1.1**place for place in range(120))
CANDIDATE = SimpleNamespace(
    name="corner-wave", curve="", places=len(LEVELS), levels=lambda place: (LEVELS[place],),
    unknown=lambda levels: levels[0] / (1.0 + levels[0]),
)  # fmt: skip
ASKED = Asked({}, 0.5, 60_000, 1, False, {})
GAINS = {"llse": 1.0, "serial-filter": 0.2}


def share(attacks, level, factor=1.0):
    """Stronger noise helps serial attacks: their noise is averaged over rows."""
    return min(level / (level + 1.0 / GAINS[name]) * factor for name in attacks)


@pytest.fixture
def audits(monkeypatch):
    tried = []

    def left(self, place):
        tried.append(place)
        return share(self.attacks, LEVELS[place], 0.9 if "rows" in self.asked.data else 1.0)

    monkeypatch.setattr(Check, "left", left)
    monkeypatch.setattr(Asked, "strongest", lambda self, result, near: result)
    return tried


@pytest.mark.parametrize("start", [0, 30, 100])
def test_the_first_place_that_leaves_the_target_is_found_in_few_audits(audits, start):
    check = Check(ASKED, CANDIDATE, ["serial-filter"])
    found = check.first(start, share(["serial-filter"], LEVELS[start]))
    assert share(["serial-filter"], LEVELS[found]) >= 0.5
    assert share(["serial-filter"], LEVELS[max(0, found - 2)]) < 0.5
    assert len(audits) <= advise.MOST_TRIES


def test_rows_that_leave_less_than_the_sample_get_more_noise(audits):
    check = Check(ASKED, CANDIDATE, ["serial-filter"])
    place = check.first(60, share(["serial-filter"], LEVELS[60]))
    result = {name: share([name], LEVELS[place]) for name in GAINS}
    chosen = SimpleNamespace(all_rows=60_000, data={})
    more, note = checked_place(ASKED, CANDIDATE, place, result, chosen)
    assert share(["serial-filter"], LEVELS[more], 0.9) >= 0.5
    assert more > place
    assert "50,000 records" in note


@pytest.mark.slow
def test_an_ordered_file_is_told_that_shuffled_rows_need_less_noise(tmp_path, monkeypatch):
    from auditor.runs.advice.advise import advise
    from auditor.runs.advice.columns import Request

    every, two = Asked.scenario, {"attacks": ["llse", "serial-filter"]}  # one of each kind
    monkeypatch.setattr(Asked, "scenario", lambda *asked, **more: every(*asked, **more) | two)
    frame = pd.DataFrame({"rides": 10.0 + np.sin(2.0 * np.pi * np.arange(300) / 30.0)})
    frame.to_csv(tmp_path / "rides.csv", index=False)
    advice = advise(Request(str(tmp_path / "rides.csv"), 1, 0.3, schemes=("corner-wave",)))
    assert any("shuffled first" in note for note in advice.notes), advice.notes
