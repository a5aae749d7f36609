"""A published regression tree: how one is grown, the law in each leaf, and the moments that linear attacks have of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import auditor
from auditor.adversary.knowable import check_knowledge
from auditor.adversary.knowledge import Leaf, Split
from auditor.adversary.published_model import LinearModel
from auditor.adversary.published_tree import (
    LEAST_IN_LEAF,
    RegressionTree,
    TreeMoments,
    grown,
    leaf_model,
    of_records,
    stated,
)
from auditor.data.microdata import as_table
from auditor.errors import DataError
from auditor.numerics.moments import Moments
from auditor.scenario.read_knowledge import parse_knowledge

properties = settings(max_examples=30, deadline=None, derandomize=True)
NONE = Moments(0, np.empty(0), np.empty((0, 0)))


def knowing(tree: RegressionTree, predictors=None) -> TreeMoments:
    return TreeMoments(NONE, tree, predictors)


def chain(cuts: list[float], leaf, on: str = "x") -> Split | Leaf:
    """A tree that cuts one predictor's line into intervals, a leaf for each by its ends."""

    def node(low: float, rest: list[float]) -> Split | Leaf:
        return (
            Split(on, rest[0], leaf(low, rest[0]), node(rest[0], rest[1:]))
            if rest
            else leaf(low, np.inf)
        )

    return node(-np.inf, cuts)


# -- grown from the table
# ------------------------------------------------------------------------------------------------


def test_a_tree_by_hand():
    """Seven times (0, 0), seven (1, 0), seven (2, 6), eight (3, 8): halfway between 1 and 2 most squares go, then between 2 and 3."""
    x = np.repeat([0.0, 1, 2, 3], [7, 7, 7, 8])[:, None]
    y = np.repeat([0.0, 0, 6, 8], [7, 7, 7, 8])
    tree = grown(x, y, 2, 1, np.array([0]))
    assert tree.low.ravel() == pytest.approx([-np.inf, 1.5, 2.5], abs=1e-6)
    assert tree.high.ravel() == pytest.approx([1.5, 2.5, np.inf], abs=1e-6)
    assert tree.mean.tolist() == [0, 6, 8]
    assert tree.variance.tolist() == [0, 0, 0]
    assert tree.share.tolist() == [14 / 29, 7 / 29, 8 / 29]
    one = grown(x, y, 1, 1, np.array([0]))
    assert one.mean.tolist() == pytest.approx([0, (7 * 6 + 8 * 8) / 15])


def test_leaves_partition_the_records_and_state_their_figures():
    rng = np.random.default_rng(3)
    x = 1e6 + rng.normal(size=(500, 3))
    y = np.where(x[:, 0] > 1e6 + 0.3, x[:, 1] > 1e6, -2.0) + 0.3 * rng.normal(size=500)
    tree = grown(x, y, 3, 3, np.arange(3))
    leaf = tree.leaf_of(x)
    assert np.bincount(leaf).min() >= LEAST_IN_LEAF
    np.testing.assert_allclose(tree.mean, [y[leaf == number].mean() for number in range(8)])
    np.testing.assert_allclose(tree.variance, [y[leaf == number].var() for number in range(8)])
    np.testing.assert_allclose(tree.share, np.bincount(leaf) / 500)


def test_what_tells_nothing_is_one_leaf():
    rng = np.random.default_rng(0)
    for x, y in (
        (np.ones((40, 2)), rng.normal(size=40)),
        (rng.normal(size=(40, 2)), np.full(40, 3.0)),
        (rng.normal(size=(1, 2)), np.ones(1)),
    ):
        tree = grown(x, y, 4, 2, np.arange(2))
        assert tree.share.tolist() == [1.0]
        assert (tree.mean[0], tree.variance[0]) == (pytest.approx(y.mean()), pytest.approx(y.var()))


# -- what it makes of an estimate
# ----------------------------------------------------------------------------------------


def test_moments_of_two_leaves_by_hand():
    """x ~ N(0, 1) cut at 0 has E = ±√(2/π) and T = 1 − 2/π in the halves; b̂ is 0, so leaves begin flat.

    Means ±1 alone are Cov(t, x) = √(2/π) and Var(t) = 1 + v, a regression of b̂ = √(2/π) and ŝ² = 1
    + v − 2/π; ρ = v/(b̂² T + ŝ²)."""
    root, T, v = np.sqrt(2 / np.pi), 1 - 2 / np.pi, 0.5
    tree = stated(Split("x", 0.0, Leaf(-1, v), Leaf(1, v)), 1, np.array([0]), ("x",))
    b = v / (root**2 * T + 1 + v - root**2) * root
    mean, K = knowing(tree).completed(np.zeros(2), np.eye(2))
    np.testing.assert_allclose(mean, 0, atol=1e-9)
    np.testing.assert_allclose(K, [[1, root + b * T], [root + b * T, 1 + v]], rtol=1e-6)
    weight, means, covariances, _ = knowing(tree).leaves(np.zeros(2), np.eye(2))
    assert weight.tolist() == pytest.approx([0.5, 0.5])
    assert means[:, 1].tolist() == pytest.approx([b * root - 1, 1 - b * root])
    np.testing.assert_allclose(
        covariances, np.array([[[1, b], [b, b * b * (1 - T) + v]]] * 2), rtol=1e-6
    )


def test_shares_that_are_stated_are_gone_by():
    tree = stated(Split("x", 0.0, Leaf(-1, 0.5, 0.9), Leaf(1, 0.5, 0.1)), 1, np.array([0]), ("x",))
    mean, K = knowing(tree).completed(np.zeros(2), np.eye(2))
    assert mean.tolist() == pytest.approx([-0.8 * np.sqrt(2 / np.pi), -0.8])
    assert K[1, 1] == pytest.approx(0.5 + 1 - 0.64)


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(-30, 30), max_size=5, unique=True))
@properties
def test_a_tree_that_says_what_the_estimate_says_changes_nothing(seed, cuts):
    """The mean and variance that a normal has in each interval of one predictor; without a cut, of all: the moments stay as they were."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    mu, K = rng.normal(size=3), A @ A.T + 0.1 * np.eye(3)
    std = np.sqrt(K[0, 0])

    def leaf(low: float, high: float) -> Leaf:
        a, b = (low - mu[0]) / std, (high - mu[0]) / std
        at_a, at_b, mass = norm.pdf(a), norm.pdf(b), norm.cdf(b) - norm.cdf(a)
        shift = (at_a - at_b) / mass
        spread = (
            1
            + ((a * at_a if np.isfinite(a) else 0) - (b * at_b if np.isfinite(b) else 0)) / mass
            - shift**2
        )
        slope = K[2, 0] / K[0, 0]
        return Leaf(
            mu[2] + slope * std * shift, K[2, 2] - slope * K[2, 0] + slope**2 * K[0, 0] * spread
        )

    tree = stated(
        chain(sorted(mu[0] + std * cut / 10 for cut in cuts), leaf), 2, np.array([0]), ("x",)
    )
    mean, covariance = knowing(tree).completed(mu, K)
    np.testing.assert_allclose(mean, mu, atol=1e-6 * np.sqrt(K.max()))
    np.testing.assert_allclose(covariance, K, atol=1e-5 * K.max())


@given(seed=st.integers(0, 2**32 - 1), rank=st.integers(0, 4))
@properties
def test_they_are_moments_whatever_the_estimate(seed, rank):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, rank))
    tree = grown(rng.normal(size=(80, 2)), rng.normal(size=80), 3, 3, np.array([0, 2]))
    mean, K = knowing(tree).completed(rng.normal(size=4), A @ A.T)
    assert np.isfinite(mean).all()
    assert np.linalg.eigvalsh(K).min() > -1e-6 * np.abs(K).max()
    # predictors of rank 1 have no inverse to take them through
    assert mean[3] == pytest.approx(tree.share @ tree.mean, abs=1e-4)
    assert K[3, 3] == pytest.approx(
        tree.share @ (tree.variance + tree.mean**2) - mean[3] ** 2, rel=1e-4
    )


@given(
    slope=st.floats(-5, 5),
    residual=st.floats(0, 5),
    spread=st.floats(0, 5),
    variance=st.floats(0, 20),
)
@properties
def test_a_leaf_has_the_mean_and_variance_that_were_published(slope, residual, spread, variance):
    own = LinearModel(1, np.array([0]), np.array([slope]), 0.0, residual)
    found = leaf_model(own, np.array([2.0]), np.array([[spread]]), 7.0, variance)
    b = found.coefficients[0]
    assert found.intercept + b * 2.0 == pytest.approx(7.0)
    assert b * b * spread + found.variance == pytest.approx(variance, abs=1e-9)
    assert 0 <= b * slope <= slope * slope * (1 + 1e-12)  # of the same sign, and no steeper


def test_predictors_that_are_known_are_taken_as_they_are():
    """Skewed predictors, two to the left of the cut and one far to the right: moments of the very records, and no normal's."""
    x = np.array([[0.0], [1.0], [7.0]])
    tree = stated(Split("x", 3.0, Leaf(0, 0), Leaf(9, 0)), 1, np.array([0]), ("x",))
    mean, K = knowing(tree, of_records(tree, x)).completed(np.zeros(2), np.diag([0.3, 2.0]))
    np.testing.assert_allclose(mean, [8 / 3, 3.0])
    np.testing.assert_allclose(K, np.cov(np.column_stack([x, [0, 0, 9]]).T, bias=True), rtol=1e-9)


def test_a_leaf_without_records_weighs_nothing():
    tree = stated(
        Split("x", 3.0, Leaf(0, 1), Split("x", 100.0, Leaf(9, 1), Leaf(50, 1))),
        1,
        np.array([0]),
        ("x",),
    )
    centres, _, share = of_records(tree, np.array([[0.0], [7.0]]))
    assert share.tolist() == [0.5, 0.5, 0.0]
    assert np.isfinite(centres).all()


def test_every_record_is_in_one_leaf_and_the_end_belongs_below():
    tree = stated(
        Split("x", 1.0, Split("y", 0.0, Leaf(0, 1), Leaf(1, 1)), Leaf(2, 1)),
        2,
        np.array([0, 1]),
        ("x", "y"),
    )
    x = np.array([[1.0, 0.0], [1.0, 0.1], [1.1, -5.0], [-1e9, -1e9]])
    assert tree.leaf_of(x).tolist() == [0, 1, 2, 0]


# -- as knowledge
# --------------------------------------------------------------------------------------------------------


def test_a_tree_that_is_grown_is_the_one_whose_figures_are_stated():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    X = np.column_stack([x, np.where(x > 0, 2.0, -1.0) + 0.2 * rng.normal(size=200)])
    tree = grown(X[:, :1], X[:, 1], 1, 1, np.array([0]))
    node = {"split": "x1", "at": float(tree.high[0, 0])} | {
        side: {"mean": float(tree.mean[leaf]), "variance": float(tree.variance[leaf]), "share": float(tree.share[leaf])}
        for leaf, side in enumerate(("below", "above"))
    }  # fmt: skip
    release = auditor.perturb(X, "independent", [0.5], seed=1)
    both = [auditor.attack("llse", release, knowledge={"model": {"target": "x2", "rows": 100, **own}}).values
            for own in ({"predictors": ["x1"], "depth": 1}, {"tree": node})]  # fmt: skip
    np.testing.assert_allclose(both[0], both[1], rtol=1e-12)


def test_columns_that_a_tree_names_and_no_table_has():
    table = as_table(np.arange(20.0).reshape(10, 2))
    leaf = {"mean": 0, "variance": 1}
    tree = {
        "split": "x1",
        "at": 0,
        "below": leaf,
        "above": {"split": "y2", "at": 0, "below": leaf, "above": leaf},
    }
    with pytest.raises(DataError, match="did you mean 'x2'") as error:
        check_knowledge(
            parse_knowledge({"model": {"target": "x2", "rows": 5, "tree": tree}}), table
        )
    assert error.value.path == ("tree", "above", "split")
