"""Error bars of learnt priors and channels."""

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.audit.categorical.error_bars import simulated
from auditor.schemes.replacement.law import UniformLaw, transition_matrix
from auditor_attacks.posterior import prior_by_likelihood

PRIOR = np.array([0.6, 0.25, 0.15, 0.0])


@pytest.mark.parametrize("retention", [0.9, 0.4, 0.1])
def test_likelihood_is_where_expectation_maximisation_ends(retention):
    counts = (
        np.random.default_rng(4)
        .multinomial(80, transition_matrix(retention, 4).T @ PRIOR)
        .astype(float)
    )
    T, q = transition_matrix(retention, 4), np.full(4, 0.25)
    for _ in range(20_000):
        q = q * (T @ (counts / counts.sum() / (q @ T)))
    found = prior_by_likelihood(counts, retention)
    np.testing.assert_allclose(found, q, atol=1e-3)
    assert counts @ np.log(found @ T) >= counts @ np.log(q @ T) - 1e-9
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("multilevel", [False, True])
@pytest.mark.parametrize("pi", [None, (0.2, 0.7, 0.1)])
def test_simulated_records_follow_the_law(multilevel, pi):
    law = UniformLaw((0.3, 0.6, 0.3), 3, multilevel, pi)
    n, x = 50_000, 1
    copies = simulated(law, np.full(n, x, dtype=np.uint8), np.random.default_rng(2))
    seen = np.bincount(
        np.ravel_multi_index([copy.astype(int) for copy in copies], (3, 3, 3)), minlength=27
    )
    expected = law.given_original()[x].ravel() * n
    some = expected > 0
    assert not seen[~some].any()
    assert stats.chisquare(seen[some], expected[some]).pvalue > 1e-4


def audit(**changes):
    return auditor.run({
        "seed": 3, "data": {"source": "inline", "values": {"x": [k % 40 for k in range(60)]}, "categorical": ["x"]},
        "schemes": [{"name": "uniform", "levels": [0.5, 0.2]}], "attacks": ["posterior"], "coalitions": ["all"],
    } | changes)  # fmt: skip


def test_a_learnt_belief_gap_has_no_interval_from_one_release():
    data = {"source": "inline", "values": {"x": [k % 3 for k in range(60)]}, "categorical": ["x"]}
    settings = {
        "data": data,
        "knowledge": [{"estimated": {"rows": 20}}],
        "measures": ["belief-gap"],
    }
    (one,) = (m for m in audit(**settings).measurements if m.metric == "belief_gap")
    assert one.std_error is None
    assert "replicates" in one.reason
    five = [m for m in audit(**settings, replicates=5).measurements if m.metric == "belief_gap"]
    assert {(m.error_bar, m.reason) for m in five} == {("replicates", None)}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [600, 1500])  # the whole table is drawn again, or a panel
@pytest.mark.parametrize("knowledge", [{"estimated": {"rows": 100}}, {"known-records": 60}])
def test_error_bars_are_as_wide_as_releases_differ(rows, knowledge):
    """Of 30 releases the deviation is off by a factor of 1.6 once in 10,000, the mean bar by less."""
    shares = [0.5, 0.2, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01]
    x = np.random.default_rng(5).choice(8, rows, p=shares).tolist()
    data = {"source": "inline", "values": {"x": x}, "categorical": ["x"]}
    runs = [audit(seed=100 + seed, data=data, knowledge=[knowledge]) for seed in range(30)]
    found = [next(m for m in run.measurements if m.metric == "normalized_error") for run in runs]
    ratio = np.mean([m.std_error for m in found]) / np.std([m.value for m in found], ddof=1)
    assert 1 / 1.9 < ratio < 1.9
    truth = np.mean([m.value for m in found])
    assert sum(m.ci_low <= truth <= m.ci_high for m in found) >= 24  # of 30, once in 1,000
