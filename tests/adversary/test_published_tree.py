"""Knowledge of a published regression tree."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

import auditor
from auditor.adversary.knowledge import Leaf, Split
from auditor.adversary.published import TreeMoments, check_knowledge, grown, stated
from auditor.base import DataError
from auditor.numerics.blocks import Moments
from auditor.runs.perturb import as_table
from auditor.scenario.read_plugins import parse_knowledge

properties = settings(max_examples=30, deadline=None, derandomize=True)
NONE = Moments(0, np.empty(0), np.empty((0, 0)))


def knowing(tree, predictors=None):
    return TreeMoments(NONE, tree, predictors)


def chain(cuts, leaf, on="x"):
    def node(low, rest):
        return (
            Split(on, rest[0], leaf(low, rest[0]), node(rest[0], rest[1:]))
            if rest
            else leaf(low, np.inf)
        )

    return node(-np.inf, cuts)


def test_a_tree_by_hand():
    """Seven times (0, 0), seven (1, 0), seven (2, 6), eight (3, 8)."""
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


def test_moments_of_two_leaves_by_hand():
    """X ~ N(0, 1) cut at 0 has E = ±√(2/π) and T = 1 − 2/π in the halves."""
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


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(-30, 30), max_size=5, unique=True))
@properties
def test_a_tree_that_says_what_the_estimate_says_changes_nothing(seed, cuts):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))
    mu, K = rng.normal(size=3), A @ A.T + 0.1 * np.eye(3)
    std = np.sqrt(K[0, 0])

    def leaf(low, high):
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
    # predictors of rank 1 have no inverse
    assert mean[3] == pytest.approx(tree.share @ tree.mean, abs=1e-4)
    assert K[3, 3] == pytest.approx(
        tree.share @ (tree.variance + tree.mean**2) - mean[3] ** 2, rel=1e-4
    )


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
        "split": "x1", "at": 0, "below": leaf,
        "above": {"split": "y2", "at": 0, "below": leaf, "above": leaf},
    }  # fmt: skip
    with pytest.raises(DataError, match="did you mean 'x2'") as error:
        check_knowledge(
            parse_knowledge({"model": {"target": "x2", "rows": 5, "tree": tree}}), table
        )
    assert error.value.path == ("tree", "above", "split")
