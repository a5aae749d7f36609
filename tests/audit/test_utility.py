"""Utility of copies: cross-validation against scikit-learn's own, statistics by hand, labels row by row, and the equivalence test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.utility import cross_validate, folds_of, model, statistics_kept
from auditor.data.load import load_target
from auditor.errors import ScenarioError
from auditor.expectations.equivalent import judge_differences
from auditor.scenario.model import UtilityUse

IRIS = {
    "data": "iris",
    "schemes": [{"name": "corner-wave", "levels": [0.1, 0.5]}],
    "attacks": ["ndr"],
}


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
    folds = folds_of(classes, UtilityUse("species", ("svm-rbf",), 5), seed=1, replicate=1)
    for name in ("svm-rbf", "logistic", "ridge"):
        found = cross_validate(name, X, classes, X, classes, folds)
        np.testing.assert_allclose(
            found,
            cross_val_score(
                make_pipeline(StandardScaler(), model(name, True)), X, classes, cv=folds
            ),
        )
    width = X[:, 3]
    folds = folds_of(width, UtilityUse("petal_width", ("ridge",), 5), seed=1, replicate=1)
    found = cross_validate("ridge", X[:, :3], width, X[:, :3], width, folds)
    np.testing.assert_allclose(
        found,
        cross_val_score(
            make_pipeline(StandardScaler(), model("ridge", False)), X[:, :3], width, cv=folds
        ),
    )


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
    """Attributes of variance 1 uncorrelated; the copy is twice the first, moved by 1."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    kept = statistics_kept(X, X * [2.0, 1.0] + [1.0, 0.0])
    assert kept == pytest.approx(
        {"mean_error": np.sqrt(0.5), "covariance_error": 3 / np.sqrt(2), "correlation_error": 0.0}
    )
    assert "correlation_error" not in statistics_kept(X[:, :1], X[:, :1])


def test_a_target_among_the_attributes_is_perturbed_too():
    result = run(
        {"target": "petal_width", "models": ["ridge", "decision-tree", "svm-rbf"], "folds": 5}
    )
    ridge = scores(result, "utility_ridge")
    assert 0.6 < ridge[1,] < 0.95
    assert ridge[2,] < ridge[1,]


def test_labels_follow_the_records_that_missing_values_leave():
    rng = np.random.default_rng(0)
    label = load_target("wisconsin", "diagnosis", missing="drop", rng=rng)
    assert len(label) == 683
    assert dict(zip(*np.unique(label, return_counts=True), strict=True)) == {
        "benign": 444,
        "malignant": 239,
    }
    assert len(load_target("wisconsin", "diagnosis", missing="mean", rng=rng)) == 699


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


# -- equivalence
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("difference", "error", "status"), [
    (0.0, 0.02, "holds"), (0.04, 0.02, "holds"), (-0.04, 0.02, "holds"),
    (0.09, 0.02, "undecided"), (0.0, 0.08, "undecided"), (0.2, 0.02, "fails"), (-0.2, 0.02, "fails"),
])  # fmt: skip
def test_two_one_sided_tests_by_hand(difference, error, status):
    """Margin 0.1: holds when the 90 % interval lies within, fails when the difference is surely beyond, else undecided."""
    assert judge_differences([(difference, error, np.inf)], ["1"], 0.1, "m").status == status


def test_one_level_that_differs_refutes_and_one_that_is_unclear_leaves_open():
    same, unclear, far = (0.0, 0.01, np.inf), (0.0, 0.2, np.inf), (0.5, 0.01, np.inf)
    assert judge_differences([same, unclear], ["1", "2"], 0.1, "m").status == "undecided"
    assert judge_differences([same, unclear, far], ["1", "2", "3"], 0.1, "m").status == "fails"


def test_equivalence_is_claimed_wrongly_five_times_in_a_hundred_at_most():
    """At a true difference of exactly the margin; 4,000 tests of 10 replicates, three standard errors are 1 point."""
    rng = np.random.default_rng(0)
    draws = 0.1 + rng.normal(size=(4000, 10)) * 0.1
    claims = [
        judge_differences([(d.mean(), d.std(ddof=1) / np.sqrt(10), 9.0)], ["1"], 0.1, "m").status
        == "holds"
        for d in draws
    ]
    assert np.mean(claims) <= 0.06


@pytest.mark.slow
def test_copies_of_one_level_are_equally_useful_and_of_much_louder_noise_are_not():
    schemes = [{"name": "correlated", "levels": [0.2]}, {"name": "corner-wave", "levels": [0.2]},
               {"name": "correlated", "id": "worse", "levels": [0.2], "noise": {"variance": 40.0}}]  # fmt: skip
    same = {"schemes": ["correlated", "corner-wave"], "metric": "utility_ridge", "margin": 0.06}
    expect = [
        {"equivalent": where}
        for where in (same, same | {"together": True}, same | {"schemes": ["correlated", "worse"]})
    ]
    result = run(
        {"target": "species", "models": ["ridge"], "folds": 5},
        schemes=schemes,
        replicates=16,
        expect=expect,
    )
    assert [e.status for e in result.expectations] == ["holds", "holds", "fails"]


def test_equivalence_needs_what_it_compares():
    with pytest.raises(ScenarioError, match="needs utility"):
        auditor.run(
            IRIS
            | {
                "expect": [
                    {
                        "equivalent": {
                            "schemes": ["corner-wave", "ndr"],
                            "metric": "utility_ridge",
                            "margin": 0.1,
                        }
                    }
                ]
            }
        )


# -- the label of a source
# ---------------------------------------------------------------------------------------------


def test_a_sources_own_label_is_predicted_whatever_the_source():
    """``target: label`` is ``species`` for iris and ``diagnosis`` for the Wisconsin data, to the last digit."""
    one = {"models": ["ridge"], "folds": 5}
    for source, name in (("iris", "species"), ("wisconsin", "diagnosis")):
        data = {"source": source, "missing": "drop"}
        by_name, by_label = (run(one | {"target": target}, data=data) for target in (name, "label"))
        assert scores(by_label, "utility_ridge") == scores(by_name, "utility_ridge")
    swept = run(
        one | {"target": "label"},
        data={"source": "iris", "missing": "drop"},
        sweep={"data.source": ["iris", "wisconsin"]},
    )
    assert {r.sweep["data.source"] for r in swept.measurements if r.metric == "utility_ridge"} == {
        "iris",
        "wisconsin",
    }


def scores_of(path, data, **use):
    document = {
        "data": {"source": str(path), **data}, "schemes": [{"name": "correlated", "levels": [1e-9]}], "utility": {"models": ["ridge"]} | use,
    }  # fmt: skip
    return {
        r.metric: r.value
        for r in auditor.run(document).measurements
        if r.metric.startswith("utility")
    }


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = 1000.0 + 50.0 * (X @ [1.0, 2.0] + 0.3 * rng.normal(size=200))
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": X[:, 1], "y": y, "group": np.where(y > 1000.0, "high", "low")}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_a_standardised_target_is_scored_in_the_units_it_was_released_in(people):
    raw = scores_of(people, {"columns": ["a", "b", "y"]}, target="y")
    standard = scores_of(people, {"columns": ["a", "b", "y"], "standardize": True}, target="y")
    assert raw["utility_ridge"] > 0.9
    assert standard["utility_ridge"] == pytest.approx(raw["utility_ridge"], abs=1e-3)


def test_r_squared_of_single_records_is_refused(people):
    assert np.isfinite(
        scores_of(people, {"columns": ["a", "b", "y"], "rows": 20}, target="y", folds=10)[
            "utility_ridge"
        ]
    )
    with pytest.raises(
        auditor.ScenarioError, match=r"utility.folds must be at most half the records.*, 10; got 11"
    ):
        scores_of(people, {"columns": ["a", "b", "y"], "rows": 20}, target="y", folds=11)
