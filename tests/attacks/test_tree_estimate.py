"""Posterior mean under a published regression tree."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import multivariate_normal, norm

from auditor.adversary.knowledge import Leaf, Split
from auditor.adversary.published import TreeMoments, stated
from auditor.numerics.blocks import Moments
from auditor_attacks.tree_estimate import leaf_posteriors, posterior_mean
from tests.adversary.test_published_model import audited
from tests.audited import cells

properties = settings(max_examples=25, deadline=None, derandomize=True)
INF = np.inf
TWO_LEAVES = stated(Split("x", 0.0, Leaf(-1, 0), Leaf(1, 0)), 1, np.array([0]), ("x",))
CROSSED = stated(
    Split("x", 0.2, Leaf(-1, 0.25, 0.6), Split("z", -0.3, Leaf(0, 0.5, 0.1), Leaf(2, 0.1, 0.3))), 1,
    np.array([0, 2]), ("x", "z"),
)  # fmt: skip


def estimate(tree, mean, K, S, y):
    moments = TreeMoments(Moments(0, np.empty(0), np.empty((0, 0))), tree)
    return posterior_mean(y, leaf_posteriors(moments.leaves(mean, K), S), tree)


def llse(mean, K, S, y):
    return mean + (y - mean) @ np.linalg.solve(K + S, K)


def test_two_leaves_by_hand():
    y = np.array([[-2.0, 0.0], [0.0, 5.0], [0.7, -3.0], [3.0, 1.0]])
    found = estimate(TWO_LEAVES, np.zeros(2), np.eye(2), np.diag([1.0, 1e12]), y)
    np.testing.assert_allclose(found[:, 1], 2 * norm.cdf(y[:, 0] / np.sqrt(2)) - 1, atol=1e-6)
    # leaves of equal shape and shares: x is as it was
    np.testing.assert_allclose(found[:, 0], y[:, 0] / 2, atol=1e-6)
    # … and x's copy useless, the target's not: ±1 seen with variance 4, odds exp(y/2); x in the
    # half is ±√(2/π)
    found = estimate(TWO_LEAVES, np.zeros(2), np.eye(2), np.diag([1e12, 4.0]), y)
    np.testing.assert_allclose(found[:, 1], np.tanh(y[:, 1] / 4), atol=1e-6)
    np.testing.assert_allclose(found[:, 0], np.tanh(y[:, 1] / 4) * np.sqrt(2 / np.pi), atol=1e-5)


def by_brute_force(tree, mean, K, S, y):
    moments = TreeMoments(Moments(0, np.empty(0), np.empty((0, 0))), tree)
    leaves = moments.leaves(mean, K)
    half = 60 if len(mean) == 2 else 30
    cuts = dict(
        zip(tree.on, np.where(np.isfinite(tree.high), tree.high, -INF).max(axis=0), strict=True)
    )
    axes = [cuts.get(j, centre) + 6.5 * np.sqrt(v) * (np.arange(-half, half) + 0.5) / half
            for j, (centre, v) in enumerate(zip(mean, np.diag(K), strict=True))]  # fmt: skip
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(mean))
    density = np.zeros(len(grid))
    for weight, m, C, low, high in zip(
        leaves.weight, leaves.mean, leaves.covariance, tree.low, tree.high, strict=True
    ):
        inside = ((grid[:, tree.on] > low) & (grid[:, tree.on] <= high)).all(axis=1)
        p = np.where(inside, multivariate_normal(m, C).pdf(grid), 0.0)
        density += weight * p / p.sum()
    found = []
    for row in y:
        q = density * multivariate_normal(row, S).pdf(grid)
        found.append(q @ grid / q.sum())
    return np.array(found)


def test_a_tree_on_one_predictor_is_the_integral():
    tree = stated(
        Split("x", 0.3, Leaf(-1, 0.4, 0.7), Leaf(1.5, 0.9, 0.3)), 1, np.array([0]), ("x",)
    )
    mean, K, S = (
        np.array([0.1, 0.4]),
        np.array([[1.2, 0.8], [0.8, 2.0]]),
        np.array([[0.6, 0.2], [0.2, 0.8]]),
    )
    y = np.array([[-1.0, 0.0], [0.3, 1.0], [2.0, -1.0], [0.4, 0.4]])
    np.testing.assert_allclose(
        estimate(tree, mean, K, S, y), by_brute_force(tree, mean, K, S, y), atol=2e-3
    )


@given(seed=st.integers(0, 2**32 - 1))
@properties
def test_one_leaf_that_says_what_was_estimated_is_llse(seed):
    rng = np.random.default_rng(seed)
    A, B, mean = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    K, S, y = A @ A.T, B @ B.T + 0.01 * np.eye(3), 3 * rng.normal(size=(5, 3))
    tree = stated(Leaf(mean[1], K[1, 1]), 1, np.empty(0, dtype=np.intp), ())
    np.testing.assert_allclose(estimate(tree, mean, K, S, y), llse(mean, K, S, y), atol=1e-6)


@pytest.mark.parametrize("tree", [TWO_LEAVES._replace(variance=np.full(2, 0.25)), CROSSED])
def test_without_noise_the_copy_is_the_record_and_with_nothing_else_the_tree_is_all(tree):
    N = 3 if tree is CROSSED else 2
    y = np.random.default_rng(1).normal(size=(50, N))
    np.testing.assert_allclose(
        estimate(tree, np.zeros(N), np.eye(N), np.zeros((N, N)), y), y, atol=1e-5
    )
    found = estimate(tree, np.zeros(N), np.eye(N), 1e14 * np.eye(N), y)
    share = tree.share if tree is CROSSED else np.array([0.5, 0.5])
    np.testing.assert_allclose(found[:, 1], share @ tree.mean, atol=1e-5)


ROWS, V = 4_000, 0.25


def stepped(rows=ROWS, variance=V):
    """X1 normal."""
    x1, x3, e = np.random.default_rng(5).normal(size=(3, rows))
    return np.column_stack([x1, np.where(x1 > 0.3, 2.0, -1.0) + np.sqrt(variance) * e, x3])


def test_a_tree_that_gives_the_target_away_fails_harmless_copies():
    X = stepped(400, 0.01)
    tree = {"predictors": ["x1"], "depth": 1, "rows": 50, "known": True}
    safe, unrelated, leaking = (audited(X, known, "tree-estimate") for known in (
        ["perfect"], [{"model": {"target": "x3", **tree}}], ["perfect", {"model": {"target": "x2", **tree}}]))  # fmt: skip
    assert [e.status for e in safe.expectations] == ["holds"]
    assert [e.status for e in leaking.expectations] == ["fails"]
    error = {
        (r.attribute, r.attack): r.value
        for r in cells(leaking, metric="normalized_error")
        if r.knowledge != "perfect"
    }
    assert error["x2", "tree-estimate"] < 0.02
    assert error["x1", "tree-estimate"] == 0.0
    by_x3 = {
        r.attribute: r.value
        for r in cells(unrelated, metric="normalized_error", attack="tree-estimate")
    }
    assert by_x3["x3"] > 0.9
    assert by_x3["x1"] == 0.0
