"""Sentences of verdicts against the figures that they cite."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auditor
from auditor_reports.figures.figures import Figure
from auditor_reports.terminal import Terminal
from auditor_reports.wording.sentences import Numbers, exactly, share
from tests.audited import written

N = 1_000
RNG = np.random.default_rng(2**41 + 71)
START = RNG.bit_generator.state


def shown(value, half=None):
    low, high = (None, None) if half is None else (value - half, value + half)
    return Figure(value, low, high, None, (1,), (), "redraws", 1)


@given(st.floats(0, 30), st.floats(1e-4, 2))
def test_a_share_is_its_figure_and_never_more_than_all(value, half):
    said = share(shown(value, half))
    number = float(re.match(r"[<≤]?\s*([\d.]+)", said)[1])
    assert number <= 100
    if 0.001 < value < 1:
        assert number == pytest.approx(100 * value, abs=max(1.0, 100 * half))


@given(st.floats(0, 1e-6))
def test_exactly_is_said_of_rounding_errors_alone(value):
    sentence = Numbers(1, []).exact(shown(value), None)
    assert (
        ("records exactly" in sentence) == (value <= 1e-12) == (exactly(shown(value)) == " exactly")
    )


def first_screen(folder, table, copies):
    names = written(folder, table, copies)
    result = auditor.run(
        {
            "schema": 1,
            "title": "sentences",
            "data": {"source": str(folder / "table.csv")},
            "schemes": [{"name": "published", "copies": names}],
            "knowledge": ["perfect"],
            "coalitions": ["subsets"],
            "attacks": ["llse", "ndr"],
            "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
        }
    )
    return result, Terminal(width=80, full=False).render([result])


def test_little_noise_beside_a_missing_code_is_not_exact(tmp_path):
    pay = RNG.lognormal(8, 0.5, N).round()
    table = pd.DataFrame({"pay": np.where(RNG.random(N) < 0.05, 9_999_999, pay)})
    copy = table * (1 + 0.01 * RNG.normal(size=(N, 1)) * (table < 9e6))
    result, page = first_screen(tmp_path, table, [copy])
    assert result.expectations[0].status == "fails"
    said = " ".join(page.split("Exposure by attribute")[0].split())
    assert "records exactly" not in said
    assert "pay exactly" not in said


def test_values_that_no_copy_shows_are_not_said_to_stand(tmp_path):
    table = pd.DataFrame({"pay": RNG.lognormal(8, 0.5, N).round(2), "age": RNG.uniform(18, 90, N)})
    spread = 2 * table.std().to_numpy()
    noise = np.round(RNG.normal(size=(N, 2)) * spread, 2)
    other = RNG.normal(size=(N, 2)) * spread * (RNG.random((N, 2)) < 0.3)
    result, page = first_screen(
        tmp_path, table, [table + noise, table - noise + 2 * other.round(2)]
    )
    assert result.expectations[0].status != "holds"
    assert "as they were" not in page
    assert "carry no noise" not in result.expectations[0].why
