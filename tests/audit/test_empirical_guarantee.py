"""Empirical guarantees of numbers and categories."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import auditor
from auditor.audit.measures import empirical_guarantee
from auditor.base import AuditorError, ScenarioError
from auditor.data.table import Recorded
from auditor.registry import get, lent
from auditor.scenario.read import read_scenario
from auditor.schemes.base.guarantees import Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, TableMoments
from auditor.schemes.corner_wave import CornerWave, Correlated
from auditor.schemes.divisible_noise import GeometricMultilevel, LaplaceMultilevel

K = np.array([[1.0, 0.5], [0.5, 2.0]])
SPANS = np.array([10.0, 16.0])
COALITIONS = [(1,), (2,), (3,), (1, 2), (1, 2, 3)]
DATA = {
    "source": "gaussian", "covariance": K.tolist(), "rows": 3000, "bounds": {"x1": [-5, 5], "x2": [-8, 8]},
}  # fmt: skip


def release(scheme, levels, drawn=None):
    table = SimpleNamespace(attributes=("x1", "x2"), bounds={"x1": (-5.0, 5.0), "x2": (-8.0, 8.0)})
    steps = Recorded(("x1", "x2"), np.ones(2), np.full(2, 8.0))
    moments = TableMoments(np.zeros(2), K, 3000, SPANS)
    vars(moments)["recorded"] = steps
    return SimpleNamespace(
        scheme=scheme, levels=drawn or levels, moments=moments, key=Key(5, scheme.name), table=table
    )


def bounds(cls, levels, trials, drawn=None, **parameters):
    scheme = cls(**parameters)
    stated = Guarantees(scheme.law(levels, release(scheme, levels).moments), SPANS, 1e-5)
    found = empirical_guarantee.audited(
        release(scheme, levels, drawn), stated, COALITIONS, trials, 0.999
    )
    metric = {one.removeprefix("empirical_") for one, _ in found}.pop()
    return [stated.of(coalition)[metric].value for coalition in COALITIONS], [
        value for _, value in found
    ]


@pytest.mark.parametrize("cls", [CornerWave, Correlated])
def test_the_audited_mu_lies_below_the_stated_one_and_near_it(cls):
    stated, found = bounds(cls, (50.0, 100.0, 400.0), 20_000)
    assert all(0.85 * mu < low <= mu for mu, low in zip(stated, found, strict=True))


@pytest.mark.parametrize("cls", [LaplaceMultilevel, GeometricMultilevel])
def test_the_audited_epsilon_lies_below_the_stated_one_and_near_it(cls):
    # ε of Laplace noise: 2, 1, 0.5
    stated, found = bounds(cls, (2.0, 8.0, 32.0), 20_000, noise="bounds")
    assert all(0.75 * epsilon < low <= epsilon for epsilon, low in zip(stated, found, strict=True))


def test_noise_weaker_than_its_law_is_caught():
    stated, found = bounds(CornerWave, (50.0, 100.0, 400.0), 20_000, drawn=(40.0, 80.0, 320.0))
    assert all(low > mu for mu, low in zip(stated, found, strict=True))


def test_the_shift_test_is_the_likelihood_ratio_of_the_best_combination():
    law = KroneckerNoise(np.diag([0.5, 2.0]), K)
    _, change, hits = empirical_guarantee.best_test(Guarantees(law, SPANS, 1e-5), law, [(1, 2)])
    copies = 9.0 * np.random.default_rng(2).normal(size=(400, 2, 2))
    H, inverse = np.vstack([np.eye(2)] * 2), np.linalg.inv(law.covariance)
    y, moved = copies.reshape(400, 4), H @ change
    ratio = y @ inverse @ moved - 0.5 * moved @ inverse @ moved
    assert hits(copies) == [np.count_nonzero(ratio > 0)]


def scenario(**fields):
    return {
        "seed": 3, "data": DATA, "attacks": ["llse"], "coalitions": ["singles", "all"],
        "schemes": [{"name": name, "levels": [50, 100]} for name in ("corner-wave", "independent", "linearly-dependent")], **fields,
    }  # fmt: skip


def test_guarantees_and_their_audit_are_records_and_expectations_are_judged_on_them():
    result = auditor.run(scenario(
        measures=[{"empirical-epsilon": {"trials": 5000}}, {"guarantees": {"delta": 1e-6}}],
        expect=[
            {"gaussian_dp": {"scheme": "corner-wave", "at-most": 2.8}}, {"gaussian_dp": {"scheme": "linearly-dependent", "at-most": 1e9}},
            {"epsilon": {"scheme": "corner-wave", "at-most": 1e9}}, {"no-collusion-gain": {"scheme": "corner-wave"}},
            {"no-collusion-gain": {"scheme": "independent"}},
        ],
    ))  # fmt: skip
    assert [record.status for record in result.expectations] == [
        "holds", "fails", "fails", "holds", "fails",
    ]  # fmt: skip
    said = "by guarantee: the one coalition's is that of its best copy alone"
    assert said in result.expectations[3].why
    assert "for copies 1, 2 of independent, and" in result.expectations[4].why
    found = {(r.scheme, r.metric, r.coalition): r for r in result.measurements if r.attack is None}
    assert (
        found["corner-wave", "gaussian_dp", (1, 2)].value
        == found["corner-wave", "gaussian_dp", (1,)].value
    )
    assert found["corner-wave", "epsilon_at_delta(1e-06)", (2,)].value > 0
    infinite = found["linearly-dependent", "gaussian_dp", (1, 2)]
    assert math.isinf(infinite.value)
    assert "free of noise" in infinite.reason
    low = found["independent", "empirical_gaussian_dp", (1, 2)]
    assert 0.5 * low.theory < low.value < low.theory


class Weaker(Correlated):
    """Draws noise of nine tenths of the level that its law states."""

    name = "weaker-than-stated"

    def plan(self, levels, existing=0):
        return super().plan([0.9 * level for level in levels], existing)


@pytest.fixture
def weaker():
    with lent("scheme", Weaker):
        yield Weaker.name


def test_a_guarantee_by_law_does_not_hold_of_noise_that_does_not_follow_it(weaker):
    lying = {
        "schemes": [{"name": weaker, "levels": [50, 100]}, {"name": "correlated", "levels": [50, 100]}],
    }  # fmt: skip
    expect = [
        {"gaussian_dp": {"scheme": name, "coalition": [1], "at-most": 2.75}}
        for name in (weaker, "correlated")
    ]
    unaudited = auditor.run(scenario(**lying, expect=expect)).expectations
    assert [record.status for record in unaudited[:2]] == ["undecided", "holds"]
    assert "does not follow that law" in unaudited[0].why
    caught = auditor.run(
        scenario(**lying, expect=expect, measures=[{"empirical-epsilon": {"trials": 50_000}}])
    ).expectations
    assert [record.status for record in caught[:2]] == ["fails", "holds"]
    assert "copies that were drawn tell records apart" in caught[0].why


def test_guarantees_need_bounds_and_none_are_told_without():
    bare = {**DATA, "bounds": None}
    with pytest.raises(
        ScenarioError, match=r"gaussian_dp needs bounds, which are not stated; say under `data:`"
    ):
        read_scenario(scenario(data=bare, expect=[{"gaussian_dp": {"at-most": 1}}]))
    result = auditor.run(scenario(data=bare))
    assert not any(record.metric in ("gaussian_dp", "epsilon") for record in result.measurements)


def k_ary(value, k, epsilon, trials, rng):
    """K-ary randomized response."""
    outputs = rng.integers(0, k, trials)
    return np.where(
        rng.random(trials) < math.expm1(epsilon) / (math.expm1(epsilon) + k), value, outputs
    )


@pytest.mark.parametrize(("k", "trials", "confidence"), [(5, 400, 0.5), (25, 400, 0.5)])
@pytest.mark.slow_after_first
def test_the_bound_corrected_for_the_search_stays_below_the_truth(k, trials, confidence):
    # 1,000 audits of k-ary randomized response at ε = 1: the bound may exceed ε in a share 1 −
    # confidence of them, and 4 standard errors
    rng, runs, above = np.random.default_rng(k * trials), 1000, 0
    for _ in range(runs):
        outputs = [k_ary(value, k, 1.0, trials, rng) for value in (0, 1)]
        above += empirical_guarantee.empirical_epsilon(outputs, k, confidence) > 1.0
    assert above / runs <= (1 - confidence) + 4 * math.sqrt(confidence * (1 - confidence) / runs)


def test_empirical_epsilon_is_a_measure_and_below_the_stated_one():
    document = {
        "data": {"source": "uniform-values", "values": 5, "rows": 200},
        "schemes": [{"name": name, "levels": [0.5, 0.3, 0.1, 0.2, 0.15, 0.25, 0.05]} for name in ("uniform", "uniform-multilevel")],
        "coalitions": ["singles", "all"], "attacks": ["posterior"], "replicates": 2,
        "measures": [{"empirical-epsilon": {"trials": 50_000, "confidence": 0.99}}],
    }  # fmt: skip
    frame = auditor.run(document).frame().query("metric == 'empirical_epsilon'")
    assert len(frame) == 2 * 2 * 8
    assert (frame.value <= frame.theory).all()
    together = frame[frame.coalition.map(len) == 7].groupby("scheme").value.min()
    best = frame[frame.coalition.map(list).map(lambda copies: copies == [1])].value
    assert best.min() > math.log(6) - 0.15
    assert together["uniform-multilevel"] <= math.log(6)
    assert together["uniform"] > math.log(6) + 1.0
    # replicates are trials of their own
    assert frame.query("scheme == 'uniform'").value.nunique() > 8


@pytest.mark.parametrize("options", [{"trials": 10}, {"confidence": 1.0}, {"rows": 3}])
def test_trials_that_make_no_sense_are_refused(options):
    document = {"data": {"source": "uniform-values", "values": 5, "rows": 200}, "attacks": ["posterior"],
                "schemes": [{"name": "uniform", "levels": [0.5]}], "measures": [{"empirical-epsilon": options}]}  # fmt: skip
    with pytest.raises(AuditorError, match=r"measures\[0\]"):
        auditor.run(document)


def test_a_scheme_that_keeps_more_than_it_states_is_above_its_stated_epsilon():
    class Keeps(type(get("scheme", "uniform")())):
        def copies(self, original, size, key):
            made = super().copies(original, size, key)
            skip = made.skip
            made.skip = lambda level: skip((1 + level) / 2)
            return made

    key = Key(3, "distinguish", 1)
    (found,) = empirical_guarantee.category_bounds(Keeps(), (0.5,), 5, 100_000, key, [(1,)], 0.95)
    assert found > math.log(6) + 0.5


def test_clopper_pearson_by_hand():
    # k = n: the lower bound is α^(1/n); k = 0: the upper is 1 − α^(1/n)
    assert empirical_guarantee.lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert empirical_guarantee.upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert empirical_guarantee.lower_bound(0, 10, 0.05) == 0.0
    assert empirical_guarantee.upper_bound(10, 10, 0.05) == 1.0
