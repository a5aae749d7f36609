"""Utility of copies, and tests of equivalence."""

import numpy as np
import pytest

import auditor
from auditor.audit.measures.utility import cross_validate, folds_of, model, statistics_kept
from auditor.base import ScenarioError
from auditor.expectations.ranking import judge_differences
from auditor.scenario.model import Utility

IRIS = {
    "data": "iris", "schemes": [{"name": "corner-wave", "levels": [0.1, 0.5]}], "attacks": ["ndr"],
}  # fmt: skip


def run(utility, **more):
    return auditor.run(IRIS | {"utility": utility} | more)


def scores(result, metric):
    return {r.coalition: r.value for r in result.measurements if r.metric == metric}


def test_scores_are_scikit_learns_own():
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, labels = load_iris(return_X_y=True)
    classes = labels.astype(str)
    folds = folds_of(classes, Utility(target="species", folds=5), seed=1, replicate=1)
    for name in ("svm-rbf", "logistic", "ridge"):
        found = cross_validate(name, X, classes, X, classes, folds)
        np.testing.assert_allclose(
            found,
            cross_val_score(make_pipeline(StandardScaler(), model(name, True)), X, classes, cv=folds),
        )  # fmt: skip
    width = X[:, 3]
    folds = folds_of(width, Utility(target="petal_width", folds=5), seed=1, replicate=1)
    found = cross_validate("ridge", X[:, :3], width, X[:, :3], width, folds)
    np.testing.assert_allclose(
        found,
        cross_val_score(make_pipeline(StandardScaler(), model("ridge", False)), X[:, :3], width, cv=folds),
    )  # fmt: skip


def test_a_copy_without_noise_loses_nothing():
    result = run({"target": "species", "models": ["decision-tree", "svm-rbf"], "folds": 5},
                 schemes=[{"name": "independent", "levels": [0.0, 4.0]}])  # fmt: skip
    for name in ("decision_tree", "svm_rbf"):
        loss = scores(result, f"utility_loss_{name}")
        assert loss[1,] == 0.0 < loss[2,]
        assert scores(result, f"utility_{name}")[1,] > 0.9
    for name in ("mean", "covariance", "correlation"):
        found = scores(result, f"utility_{name}_error")
        assert found[1,] == pytest.approx(0.0, abs=1e-12)
        assert found[2,] > 0.0


def test_statistics_kept_by_hand():
    """Attributes of variance 1 uncorrelated."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    kept = statistics_kept(X, X * [2.0, 1.0] + [1.0, 0.0])
    assert kept == pytest.approx(
        {"mean_error": np.sqrt(0.5), "covariance_error": 3 / np.sqrt(2), "correlation_error": 0.0}
    )
    assert "correlation_error" not in statistics_kept(X[:, :1], X[:, :1])


@pytest.mark.parametrize(("utility", "message"), [
    ({"target": "speciess"}, "did you mean 'species'"),
    ({"target": "species", "folds": 60}, "at most the records of the smallest class"),
    ({"target": "species", "folds": 1}, "at least 2"),
    ({"target": "petal_width", "models": ["logistic"]}, "the target is a number"),
    ({"target": "species", "models": ["tree"]}, "must be .decision-tree"),
    ({"models": ["ridge"]}, "needs a `target`"),
    ({"target": "species", "test": "both"}, "must be .original. or .copy."),
])  # fmt: skip
def test_utility_that_cannot_be_measured_is_refused_before_anything_runs(utility, message):
    with pytest.raises(ScenarioError, match=message):
        run(utility)


@pytest.mark.parametrize(("difference", "error", "status"), [
    (0.0, 0.02, "holds"), (0.04, 0.02, "holds"), (-0.04, 0.02, "holds"),
    (0.09, 0.02, "undecided"), (0.0, 0.08, "undecided"), (0.2, 0.02, "fails"), (-0.2, 0.02, "fails"),
])  # fmt: skip
def test_two_one_sided_tests_by_hand(difference, error, status):
    """Margin 0.1."""
    assert judge_differences([(difference, error, np.inf)], ["1"], 0.1, "m").status == status


def test_equivalence_is_claimed_wrongly_five_times_in_a_hundred_at_most():
    draws = 0.1 + np.random.default_rng(0).normal(size=(4000, 10)) * 0.1
    claims = [
        judge_differences([(d.mean(), d.std(ddof=1) / np.sqrt(10), 9.0)], ["1"], 0.1, "m").status
        == "holds"
        for d in draws
    ]
    assert np.mean(claims) <= 0.06
