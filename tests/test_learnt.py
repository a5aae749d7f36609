"""Error bars of learnt maps: the decomposition against brute force, the Wishart correction, and coverage on a skewed table."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.audit import audit_release
from auditor.gathered import varied, without_each
from auditor.learnt import Learnt, expected_moments
from auditor.moments import Moments
from auditor.noise import GaussianNoise
from auditor.scenario.read import read_scenario
from auditor.tasks import table_of


def test_expected_moments_are_the_expectation():
    """``E [x, y, 1][x, y, 1]ᵀ`` with x of mean m: hand value for one attribute and copy, K = 2, m = 3, noise 5."""
    law = GaussianNoise(np.array([[5.0]]), np.eye(1))
    expected = [[11.0, 11.0, 3.0], [11.0, 16.0, 3.0], [3.0, 3.0, 1.0]]
    np.testing.assert_allclose(expected_moments(np.array([3.0]), np.array([[2.0]]), law), expected)


@pytest.mark.parametrize(("centre", "d"), [(0.0, 1), (0.0, 4), (1.0, 4), (5.0, 2)])
def test_variance_of_a_quadratic_form_is_estimated_without_bias_above_its_floor(centre, d):
    """T = |δ|² with δ ~ N(centre, C): Var = 4 cᵀCc + 2 tr C². The estimate's mean over 4,000 draws, never below truth by 10 %.

    At the optimum (centre 0) the floor makes it conservative, by no more than 2.2 times the variance for one dimension.
    """
    rng = np.random.default_rng(3)
    G, c = 10, np.full(d, centre)
    estimates = []
    for _ in range(4000):
        parts = c + rng.normal(size=(G, d)) * np.sqrt(G)
        theta = parts.mean(axis=0)
        delta = (theta - parts) / (G - 1)
        slope = (2.0 * delta @ theta)[None, :, None]
        estimates.append(Learnt(slope, (delta @ delta.T)[None, :, :, None]).variance()[0, 0])
    truth = 4.0 * float(c @ c) + 2.0 * d
    assert 0.9 * truth < np.mean(estimates) < (2.2 if centre == 0 else 1.25) * truth


def test_parts_left_out_vary_by_noise_alone_where_all_rows_are_used():
    """Without noise every part says the same once the original's own variation is taken off, whatever the table."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(100, 2))
    v = np.hstack([X - X.mean(axis=0)] * 2)
    parts = [Moments.of(v[k::10]) for k in range(10)]
    rest = without_each(parts, 2, 0.0)
    for moments in rest:
        np.testing.assert_allclose(moments.products / moments.count, Moments.of(v).products / 100, atol=1e-10)
    whole = Moments.merge(parts)
    np.testing.assert_allclose(varied(parts[0], whole, 2, 1.0).products, parts[0].products)


SKEWED = {
    "seed": 5,
    "data": {"source": "cps", "columns": ["salary", "age"], "rows": 2000},
    "coalitions": ["singles", "all"],
    "replicates": 1,
}
CASES = [
    ("correlated", {"estimated": {"rows": 400}}, "llse"),
    ("independent", {"estimated": {"rows": 400}}, "llse"),
    ("independent", {"estimated": {"rows": 2000}}, "llse"),
    ("correlated", {"known-records": 400}, "known-io-regression"),
]
DRAWS = 250


@pytest.mark.parametrize(("scheme", "knowledge", "attack"), CASES, ids=str)
def test_intervals_cover_the_mean_over_draws_95_times_in_100(scheme, knowledge, attack):
    """250 draws: the share is within ± 4.2 points of 95 % at three standard errors, and the bars within 35 % of the true spread."""
    scenario = read_scenario(SKEWED | {
        "schemes": [{"name": scheme, "levels": [0.3, 1.0]}], "knowledge": [knowledge], "attacks": [attack],
    })  # fmt: skip
    table, moments = table_of(scenario)
    cells: dict[tuple[object, ...], list[tuple[float, float, float, float]]] = {}
    for replicate in range(1, DRAWS + 1):
        for r in audit_release(scenario, {}, table, moments, scenario.schemes[0], replicate, False).measurements:
            if r.metric in ("distortion", "collusion_gain") and r.attribute == "*" and (r.metric == "distortion" or len(r.coalition) > 1):
                in_clear = attack == "known-io-regression" and r.metric == "distortion"  # there is a theory then, the map taken as it is
                assert r.error_bar == ("sampling" if attack == "known-io-regression" else "jackknife")
                assert (r.theory is None) != in_clear
                cells.setdefault((r.metric, r.coalition), []).append((r.value, r.std_error, r.ci_low, r.ci_high))
    for drawn in cells.values():
        value, error, low, high = np.array(drawn).T
        mean = value.mean()
        assert 0.905 <= np.mean((low <= mean) & (mean <= high)) <= 0.992
        assert 0.65 < np.median(error) / value.std(ddof=1) < 1.35


def test_uniform_noise_has_exact_error_bars_and_the_same_theory():
    """Its kurtosis makes NDR's error of one copy steadier: Var = (4/5)σ⁴/n where Gaussian noise has 2σ⁴/n."""
    def run(distribution):
        return auditor.run({
            "data": {"source": "gaussian", "rows": 500, "spectrum": [1.0]},
            "schemes": [{"name": "independent", "levels": [1.0], "distribution": distribution}], "attacks": ["ndr"],
            "expect": [{"matches-theory": {}}],
        })  # fmt: skip

    uniform, gaussian = (
        next(r for r in run(d).measurements if r.metric == "normalized_error" and r.attribute == "*") for d in ("uniform", "gaussian")
    )
    assert uniform.theory == pytest.approx(gaussian.theory)
    assert uniform.error_bar == "closed-form"
    assert uniform.std_error**2 == pytest.approx(0.8 / 500)
    assert gaussian.std_error**2 == pytest.approx(2.0 / 500)


def test_uniform_noise_is_uniform_and_bounded():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    noise = auditor.perturb(X, "independent", [2.0], seed=1, distribution="uniform").copies[0] - X
    reach = np.sqrt(3.0 * 2.0) * X.std()
    assert np.abs(noise).max() <= reach * (1 + 1e-12)
    # Kolmogorov's distance to the uniform law, false alarm one in ten thousand
    u = np.sort(noise[:, 0] / reach / 2 + 0.5)
    assert np.abs(u - (np.arange(20_000) + 0.5) / 20_000).max() < 2.23 / np.sqrt(20_000)
