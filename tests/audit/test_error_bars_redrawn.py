"""Error bars from redraws of moments and of rows."""

import numpy as np
import pytest

import auditor
from auditor.audit.attempts import opened
from auditor.audit.numeric.error_bars import reaches
from auditor.audit.numeric.limits import REDRAWS
from auditor.numerics.statistics import quantile
from auditor.results.measurements import Measurements
from auditor.runs.result_parts import spread_over_replicates
from benchmarks.coverage import LOW, measure


def test_reach_is_student_and_past_the_mean():
    """Redraws 0 … 8."""
    again = np.tile(np.arange(9.0)[:, None], 3)
    t, past = quantile(0.925, 8) * np.sqrt(7.5), quantile(0.75, 8) * np.sqrt(7.5) / 3
    down, up = reaches(np.array([5.0, 20.0, -16.0]), again)
    np.testing.assert_allclose(down, [t, 16.0 + past, t])
    np.testing.assert_allclose(up, [t, t, 20.0 + past])


@pytest.mark.parametrize(("draw", "mean", "low", "high"), [
    (lambda rng, shape: rng.normal(size=shape), 0.0, 0.9625, 0.9625),
    (lambda rng, shape: rng.normal(size=shape) ** 2, 1.0, 0.93, 0.985),
    (lambda rng, shape: rng.normal(size=shape) + 8.0 * (rng.random(shape) < 0.1), 0.8, 0.93, 0.985),
], ids=["normal", "skewed", "two heaps"])  # fmt: skip
def test_intervals_hold_the_true_mean(draw, mean, low, high):
    """Of a normal figure 96 times in 100."""
    values = draw(np.random.default_rng(7), (20_000, REDRAWS + 1))
    figure, again = values[:, 0], values[:, 1:].T
    down, up = reaches(figure, again)
    held = np.mean((figure - down <= mean) & (mean <= figure + up))
    assert low - 0.0055 < held < high + 0.0055


def scenario(attack, replicates=1, knowledge="perfect", **data):
    values = np.random.default_rng(1).exponential(size=(120, 2))
    return {
        "data": {"source": "inline", "values": {"x": values[:, 0].tolist(), "y": values[:, 1].tolist()}},
        "schemes": [{"name": "independent", "levels": [0.5, 0.8]}], "knowledge": [knowledge], "coalitions": ["singles", "all"],
        "attacks": [attack], "replicates": replicates,
    }  # fmt: skip


def test_replicates_replace_redraws_of_some_records(monkeypatch):
    monkeypatch.setattr(opened, "BLOCK_VALUES", 100)
    measured = [m for m in auditor.run(scenario("map-estimate")).measurements if m.status == "ok"]
    errors = [m for m in measured if m.metric == "normalized_error"]
    assert {m.error_bar for m in errors} == {"redraws"}
    assert all(m.std_error is not None for m in errors)
    measured = [
        m
        for m in auditor.run(scenario("map-estimate", replicates=5)).measurements
        if m.status == "ok"
    ]
    assert {m.error_bar for m in measured} == {"replicates"}
    assert spread_over_replicates(Measurements.of(measured)) == measured


FAMILIES = ["independent records", "independent moments", "independent priors"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_on_a_skewed_table(family):
    """12 draws of salaries and ages."""
    rows = [row for _, found in measure(family, ["cps"], draws=12, seed=2) for row in found]
    assert rows
    for row in rows:
        assert row.intervals == 0 or row.coverage >= LOW - 0.189, row
