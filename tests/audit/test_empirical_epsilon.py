"""The empirical ε of categories against the true one."""

import math

import numpy as np
import pytest

import auditor
from auditor.audit.measures.empirical_guarantee import (
    Trials,
    empirical_epsilon,
    lower_bound,
    upper_bound,
)
from auditor.base.errors import AuditorError
from auditor.registry import get
from auditor.schemes.base.scheme import Key


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
        audit = empirical_epsilon(
            k_ary(0, k, 1.0, trials, rng), k_ary(1, k, 1.0, trials, rng), k, confidence
        )
        above += audit.epsilon > 1.0
    assert above / runs <= (1 - confidence) + 4 * math.sqrt(confidence * (1 - confidence) / runs)


def distinguish(scheme, levels, trials):
    """Trials on each of two values out of five, all copies held together."""
    return Trials(scheme, levels, 5, trials, Key(3, "distinguish", 1)).audit(
        range(1, len(levels) + 1), 0.95
    )


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

    assert distinguish(Keeps(), (0.5,), 100_000).epsilon > math.log(6) + 0.5


def test_clopper_pearson_by_hand():
    # k = n: the lower bound is α^(1/n); k = 0: the upper is 1 − α^(1/n)
    assert lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert lower_bound(0, 10, 0.05) == 0.0
    assert upper_bound(10, 10, 0.05) == 1.0
