"""Error bars from redraws of moments and of rows."""

import numpy as np
import pytest

import auditor
from auditor.audit.attempts import opened
from auditor.audit.numeric.error_bars import from_redraws, reaches
from auditor.audit.numeric.limits import REDRAWS
from auditor.audit.numeric.redraws import redrawn_moments
from auditor.numerics.moments import Moments
from auditor.numerics.statistics import quantile
from auditor.results.measurements import Measurements, spread_over_replicates
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from benchmarks.coverage import LOW, measure

LAWS = {
    "one noise in both": KroneckerNoise(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2)),
    "dense": DenseNoise(np.diag([1.0, 2.0, 3.0, 0.0]), 2),
    "uniform": KroneckerNoise(np.diag([0.5, 1.0]), np.diag([1.0, 4.0]), distribution="uniform"),
}


def by_rows(X, law, rng):
    shape, r = (len(X), law.root.shape[1]), np.sqrt(3)
    normal = law.excess_kurtosis is None
    U = rng.standard_normal(shape) if normal else rng.uniform(-r, r, shape)
    return Moments.of(np.hstack([X, np.tile(X, (1, law.copies)) + U @ law.root.T]))


def flat(moments):
    return np.concatenate([moments.total, moments.products[np.triu_indices(moments.size)]])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_moments_drawn_again_have_the_law_of_rows_drawn_again(law):
    """2,000 draws, some 40 comparisons of 4.5 standard errors."""
    rng, draws = np.random.default_rng(3), 2000
    X = rng.exponential(size=(12, 2)) - 1.0
    ours = np.array([flat(redrawn_moments(Moments.of(X), law, rng)) for _ in range(draws)])
    naive = np.array([flat(by_rows(X, law, rng)) for _ in range(draws)])
    varies = naive.std(axis=0) > 1e-9
    np.testing.assert_allclose(ours[:, ~varies], naive[:, ~varies], atol=1e-9)
    a, b = ours[:, varies], naive[:, varies]
    gap = np.abs(a.mean(axis=0) - b.mean(axis=0)) / b.std(axis=0)
    assert gap.max() < 4.5 * np.sqrt(2 / draws)
    a, b = ((each - each.mean(axis=0)) ** 2 for each in (a, b))
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / draws)
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) / error).max() < 4.5


def test_errors_and_gains_from_redraws_by_hand():
    """In each of two redraws another copy is the best."""
    first = np.array([[4.0], [2.0], [1.0]]).repeat(2, axis=1)
    again = np.array([[4.0, 3.0, 3.0], [3.0, 4.0, 1.5]])[:, :, None].repeat(2, axis=2)
    found = from_redraws([(1,), (2,), (1, 2)], first, again, np.ones(2), np.array([0, 1, 0]))
    assert found.gain.value[2, 0] == 0.5  # against copy 2
    assert found.gain.std_error[2, 0] == pytest.approx(np.std([0.0, 0.5], ddof=1))
    assert found.paired.gain[2, 0] == 0.75  # against copy 1
    assert found.paired.std_error[2, 0] == pytest.approx(np.std([0.25, 0.5], ddof=1))
    assert found.distortion.std_error[0, 0] == pytest.approx(np.sqrt(0.5))


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


def test_redraws_of_known_records_are_about_the_mean():
    """A table far from 0 has the error bars of one that is centred."""
    bars = []
    for far in (0.0, 1e7):
        document = scenario("known-io-regression", knowledge={"known-records": 60})
        columns = document["data"]["values"]
        document["data"]["values"] = {k: [v + far for v in values] for k, values in columns.items()}
        found = auditor.run(document).measurements
        bars.append([m.std_error for m in found if m.metric == "distortion" and m.attribute == "*"])
    np.testing.assert_allclose(bars[1], bars[0], rtol=1e-4)


def test_redraws_of_runs_with_fits_held_have_the_spread_of_theory():
    """A normal prior is linear, so its bars have a closed form; 16 degrees of freedom, 5 errors."""
    document = {
        "seed": 2**40 + 7,
        "data": {"source": "gaussian", "rows": 9_000, "spectrum": [2.0, 0.5]},
        "schemes": [
            {"name": "independent", "levels": [0.5, 0.8]},
            {"name": "corner-wave", "levels": [0.5, 0.8]},
        ],
        "coalitions": ["singles", "all"],
        "attacks": ["llse", {"name": "mixture-estimate", "components": 1}],
    }
    frame = auditor.run(document).frame()
    frame = frame[frame.metric == "distortion"].set_index(
        ["attack", "scheme", "coalition", "attribute"]
    )
    ours, exact = frame.loc["mixture-estimate"], frame.loc["llse"]
    np.testing.assert_allclose(ours.value, exact.value, rtol=0.02)
    off = np.log(ours.std_error / exact.std_error)
    assert np.abs(off).max() < 5 / np.sqrt(2 * 16)
    assert np.abs(off.mean()) < 5 / np.sqrt(2 * 16 * 4)


FAMILIES = ["independent records", "independent moments", "independent priors"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_on_a_skewed_table(family):
    """12 draws of salaries and ages."""
    rows = [row for _, found in measure(family, ["cps"], draws=12, seed=2) for row in found]
    assert rows
    for row in rows:
        assert row.intervals == 0 or row.coverage >= LOW - 0.189, row
