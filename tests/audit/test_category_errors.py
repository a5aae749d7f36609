"""Errors and fitted figures of categories."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.categorical.posterior_pass import Frame, Sums, measured, mixture_measures
from auditor.schemes.replacement.law import UniformLaw, transition_matrix
from auditor_attacks.posterior import Bayes, prior_by_likelihood
from auditor_reports.reading import Reading
from auditor_reports.verdict import verdicts
from tests.audited import cells
from tests.tiers import each_once

PRIOR = np.array([0.6, 0.25, 0.15, 0.0])


@pytest.mark.parametrize("retention", [0.9, 0.4, 0.1])
def test_likelihood_is_where_expectation_maximisation_ends(retention):
    T, q = transition_matrix(retention, 4), np.full(4, 0.25)
    counts = np.random.default_rng(4).multinomial(80, T.T @ PRIOR).astype(float)
    for _ in range(20_000):
        q = q * (T @ (counts / counts.sum() / (q @ T)))
    found = prior_by_likelihood(counts, retention, np.full(counts.size, 1.0 / counts.size))
    np.testing.assert_allclose(found, q, atol=1e-3)
    assert counts @ np.log(found @ T) >= counts @ np.log(q @ T) - 1e-9
    assert found.sum() == pytest.approx(1.0)


def audit(**changes):
    return auditor.run({
        "seed": 3, "data": {"source": "inline", "values": {"x": [k % 40 for k in range(60)]}, "categorical": ["x"]},
        "schemes": [{"name": "uniform", "levels": [0.5, 0.2]}], "attacks": ["posterior"], "coalitions": ["all"],
    } | changes)  # fmt: skip


def test_a_learnt_belief_gap_has_no_interval_from_one_release():
    data = {"source": "inline", "values": {"x": [k % 3 for k in range(60)]}, "categorical": ["x"]}
    settings = {
        "data": data, "knowledge": [{"estimated": {"rows": 20}}], "measures": ["belief-gap"],
    }  # fmt: skip
    (one,) = (m for m in audit(**settings).measurements if m.metric == "belief_gap")
    assert (one.std_error, one.error_bar) == (None, "replicates-needed")
    five = [m for m in audit(**settings, replicates=5).measurements if m.metric == "belief_gap"]
    assert {(m.error_bar, m.reason) for m in five} == {("replicates", None)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("knowledge", "rows"),  # the panel is as large as the table, or smaller
    each_once([{"estimated": {"rows": 100}}, {"known-records": 60}, "perfect"], [600, 1500]),
)
def test_error_bars_are_as_wide_as_releases_differ(knowledge, rows):
    """Of 30 releases the deviation is off by a factor of 1.6 once in 10,000, the mean bar by less."""
    shares = [0.5, 0.2, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01]
    x = np.random.default_rng(5).choice(8, rows, p=shares).tolist()
    data = {"source": "inline", "values": {"x": x}, "categorical": ["x"]}
    many = [0.3, 0.25, 0.15, 0.1] if knowledge == "perfect" else []  # too many for a closed form
    more = {"schemes": [{"name": "uniform", "levels": [0.5, 0.2, *many]}], "knowledge": [knowledge]}
    runs = [audit(seed=100 + seed, data=data, **more) for seed in range(30)]
    found = [next(m for m in run.measurements if m.metric == "normalized_error") for run in runs]
    assert {m.error_bar for m in found} == {"redraws"}
    ratio = np.mean([m.std_error for m in found]) / np.std([m.value for m in found], ddof=1)
    assert 1 / 1.9 < ratio < 1.9
    truth = np.mean([m.value for m in found])
    assert sum(m.ci_low <= truth <= m.ci_high for m in found) >= 24  # of 30, once in 1,000


HALF = {"exposure": {"unknown": {"at-least": 0.5}}}


def two_columns(n=4_000):
    rng = np.random.default_rng(1)
    answer = rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame({"answer": answer, "illness": rng.choice(["no", "yes"], n, p=[0.7, 0.3])})


def audited(folder, X, scheme, *expect):
    X.to_csv(folder / "original.csv", index=False)
    return auditor.run({
        "data": {"source": str(folder / "original.csv"), "categorical": list(X.columns)}, "schemes": [scheme], "attacks": ["posterior"],
        "knowledge": ["perfect"], "coalitions": "singles", "expect": [HALF, *expect],
    })  # fmt: skip


def test_one_attribute_by_hand():
    frame = Frame(np.full(4, 0.25), parts={"first": 2, "second": 2})
    P, x = np.array([[0.4, 0.1, 0.3, 0.2]]), np.arange(4)
    found = measured(P, frame, np.zeros(4, dtype=int), x).values
    np.testing.assert_allclose(found["squared_error/second"], [0.18, 0.98, 0.18, 0.98])
    np.testing.assert_allclose(found["accuracy/second"], [1, 0, 1, 0])


@pytest.mark.parametrize("pi", [None, (0.3, 0.1, 0.1, 0.2, 0.2, 0.1)])
@pytest.mark.parametrize("scores", [None, np.arange(6.0)])
def test_a_mixture_measures_as_its_probabilities_do(pi, scores):
    rng = np.random.default_rng(7)
    q, odd = rng.dirichlet(np.ones(6)), {"odd": np.arange(6) % 2 == 1}
    frame = Frame(q, scores=scores, predicates=odd, parts={"first": 2, "second": 3}, closeness=True)
    bayes, (x, *copies) = Bayes(q, UniformLaw((0.2, 0.6), 6, True, pi)), rng.integers(0, 6, (3, 50))
    dense = measured(bayes.posterior(copies), frame, np.arange(50), x)
    found = mixture_measures(*bayes.mixture(copies), frame, x)
    for one, other in zip(found, dense, strict=True):
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_allclose(one[name], other[name], atol=1e-12, err_msg=name)


def test_known_attributes_restrict_posterior_and_prior():
    frame = Frame(np.array([0.4, 0.1, 0.3, 0.2]), known=np.array([0, 0, 1, 1]))
    P, possible = np.array([[0.1, 0.3, 0.6, 0.0]]), frame.known == 0
    found = measured(P, frame, np.zeros(2, dtype=int), np.arange(2), possible).values
    np.testing.assert_allclose(found["reconstruction_probability"], [0.25, 0.75])
    np.testing.assert_allclose(found["mutual_information"], np.log2([0.25 / 0.8, 0.75 / 0.2]))
    np.testing.assert_allclose(found["squared_error"], [2 * 0.75**2, 2 * 0.25**2])


def test_a_column_that_another_column_s_copy_tells_is_no_safe_column(tmp_path):
    X, rng = two_columns(), np.random.default_rng(2)
    n, ill = len(X), X.illness == "yes"
    answer = np.where(ill, rng.choice(list("cd"), n), rng.choice(list("ab"), n))
    copy = X.assign(answer=answer, illness=rng.choice(["no", "yes"], n))
    copy.to_csv(tmp_path / "copy.csv", index=False)
    result = audited(
        tmp_path, X, {"name": "published-categories", "copies": [str(tmp_path / "copy.csv")]}
    )
    errors = {r.attribute: r.value for r in result.measurements if r.metric == "normalized_error"}
    assert errors["illness"] < 0.02
    assert min(errors["answer"], errors["*"]) > 0.7
    assert next(r.value for r in cells(result, metric="accuracy", attribute="illness")) == 1.0
    assert result.expectations[0].status == "fails"
    (verdict,) = verdicts(Reading(result))
    assert verdict.label.startswith("Exposure rebuilt (illness)")


def test_each_attribute_agrees_with_theory_and_an_honest_release_holds(tmp_path):
    """Kept with 0.3, redrawn from the data's own shares."""
    scheme = {"name": "uniform", "levels": [0.3], "replacement": "prior"}
    result = audited(tmp_path, two_columns(), scheme, {"matches-theory": {}})
    assert [e.status for e in result.expectations] == ["holds", "holds"]
    for r in result.measurements:
        if r.metric == "normalized_error" and r.attribute != "*":
            assert r.theory == pytest.approx(1 - 0.3**2, rel=0.01)
            assert abs(r.value - r.theory) < 5 * r.std_error


def test_belief_in_one_value_by_hand():
    prior = np.array([0.3, 0.6, 0.1])
    # ten records are too few
    believed = [30 * 0.65, 60 * 0.7, 10 * 0.9]
    squares = [15 * 0.6**2 + 15 * 0.7**2, 60 * 0.5, 10 * 0.81]
    sums = Sums({}, np.array([100.0]), np.array([[30.0, 60.0, 10.0], believed, squares]), {})
    assert sums.most_believed(prior) == pytest.approx((0.5, 0.05 / np.sqrt(30) / 0.7))
    none = Sums({}, np.zeros(1), np.zeros((3, 1)), {})
    assert none.most_believed(np.ones(1)) is None


def test_it_is_the_known_share_of_an_indicator_s_variance(tmp_path):
    """A matrix keeps a rare illness and turns one other value in a hundred into it: values stay unknown."""
    rng, rest = np.random.default_rng(3), [0.01, 0.33, 0.33, 0.33]
    X = pd.DataFrame({"illness": rng.choice(["rare", "x", "y", "z"], 20_000, p=rest)})
    scheme = {
        "name": "pram", "levels": [0.0], "matrix": [[0.97, 0.01, 0.01, 0.01], rest, rest, rest],
    }  # fmt: skip
    result = audited(tmp_path, X, scheme)
    found = {r.metric: r for r in result.measurements if r.attack == "posterior"}
    q, shown = 0.01, 0.01 * 0.97 + 0.99 * 0.01
    known = (0.97 * (0.01 * 0.97 / shown) - q) / (1 - q)
    # the shares drawn are not quite q
    assert abs(found["value_belief"].value - known) < 4 * found["value_belief"].std_error + 0.03
    assert found["normalized_error"].value > 0.98
    (verdict,) = verdicts(Reading(result))
    assert verdict.severity.word == "moderate"
    assert "with the most exposed value, the belief in it" in verdict.text


@pytest.mark.parametrize(
    ("common", "retention", "close"), [(50, 0.6, 0.8), (50, 0.2, 0.0), (90, 0.6, 0.9 * 0.8 - 0.9)]
)
def test_close_guesses_of_drawn_categories_by_hand(common, retention, close):
    """Of two values, a right belief of 0.7 counts, beyond a constant that is sure already."""
    data = {"source": "inline", "values": {"x": [int(k >= common) for k in range(100)] * 40}}
    result = audit(
        data=data | {"categorical": ["x"]},
        schemes=[{"name": "uniform", "levels": [retention]}],
        expect=[{"exposure": {"close": {"at-most": 0.1}}}],
    )
    (one,) = (m for m in result.measurements if m.metric == "close")
    assert one.theory == pytest.approx(close)
    assert abs(one.value - close) <= 4 * one.std_error
    assert result.expectations[0].status == ("fails" if close > 0.1 else "holds")
