"""LLSE: equation 6, limits, errata and many coalitions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor import registry
from auditor.adversary.attack import AffineStack
from auditor.adversary.knowledge import Estimated, PublishedModel
from auditor.adversary.published import ModelledMoments
from auditor.adversary.view import SampleMoments, View
from auditor.base import NotApplicable
from auditor.numerics.blocks import Moments
from auditor.numerics.linear_algebra import EPS
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, level_root, psd_root
from auditor_attacks.llse import llse_weights
from tests.llse_error import llse_error

properties = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
NOISY = {
    "correlated": [0.5, 1.0, 2.0], "independent": [0.5, 1.0, 2.0], "corner-wave": [1.0, 0.5, 2.0],
}  # fmt: skip


def random_covariance(rng, d):
    A = rng.normal(size=(d, d + 2))
    return A @ A.T / d


def table(rng, rows=40, N=3):
    return rng.normal(size=(rows, N)) @ rng.normal(size=(N, N)) + rng.normal(size=N)


@pytest.mark.parametrize(
    ("K_X", "law", "weights", "errors"),
    [
        ([3.0], KroneckerNoise(np.array([[0.25]]), np.array([[3.0]])), [0.8], [0.6]),
        ([3.0, 1.0], KroneckerNoise(np.eye(1), np.eye(2)), [0.75, 0.5], [0.75, 0.5]),
    ],
    ids=["one attribute", "white noise on two variances"],
)
def test_hand_values_of_one_copy(K_X, law, weights, errors):
    """Equation 4."""
    np.testing.assert_allclose(llse_weights(np.diag(K_X), law), np.diag(weights))
    np.testing.assert_allclose(llse_error(np.diag(K_X), law), np.diag(errors))


def naive_equation_6(K_X, K_Z):
    H = np.vstack([np.eye(len(K_X))] * (len(K_Z) // len(K_X)))
    W = K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z)
    return W, K_X - W @ H @ K_X


@given(seed=seeds, N=st.integers(1, 5), k=st.integers(1, 5))
@properties
def test_laws_agree_with_the_naive_equation_6(seed, N, k):
    rng = np.random.default_rng(seed)
    K_X, Sigma, K_0, K_Z = (random_covariance(rng, d) for d in (N, k, N, k * N))
    for law in (KroneckerNoise(Sigma, K_0), DenseNoise(K_Z, N)):
        W, error = naive_equation_6(K_X, law.covariance)
        np.testing.assert_allclose(llse_error(K_X, law), error, atol=1e-9 * np.trace(K_X))
        np.testing.assert_allclose(llse_weights(K_X, law), W, atol=1e-7 * max(1.0, np.abs(W).max()))


@given(seed=seeds, N=st.integers(1, 4), k=st.integers(1, 4), rank=st.integers(0, 4))
@properties
def test_singular_kronecker_noise_agrees_with_the_same_noise_written_densely(seed, N, k, rank):
    rng = np.random.default_rng(seed)
    B, K_X = rng.normal(size=(N, min(rank, N))), random_covariance(rng, N)
    levels = rng.integers(1, 4, size=k) / 2.0
    law = KroneckerNoise(np.minimum.outer(levels, levels), B @ B.T)
    dense = llse_error(K_X, DenseNoise(law.covariance, N))
    np.testing.assert_allclose(llse_error(K_X, law), dense, atol=1e-9 * np.trace(K_X))


@pytest.mark.parametrize(("scheme", "levels"), NOISY.items())
def test_estimates_agree_with_the_naive_equation_6_on_rows(scheme, levels):
    """``x̂ = mu_X + W (y − H mu_X)``, row by row."""
    X = table(np.random.default_rng(3))
    release = auditor.perturb(X, scheme=scheme, levels=levels, seed=3)
    mu, K_X = X.mean(axis=0), np.cov(X.T, bias=True)
    index = [0, 2]
    places = np.concatenate([np.arange(3) + 3 * i for i in index])
    W, error = naive_equation_6(K_X, release.noise_covariance()[np.ix_(places, places)])
    expected = mu + (np.hstack([release.copies[i] for i in index]) - np.tile(mu, 2)) @ W.T
    estimate = auditor.attack("llse", release, coalition=[1, 3])
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-9, atol=1e-9)
    assert estimate.theory == pytest.approx(np.trace(error) / 3)
    assert estimate.distortion == pytest.approx(np.mean((expected - X) ** 2))


LIMIT = random_covariance(np.random.default_rng(8), 3)


def test_limit_no_noise_is_exact():
    np.testing.assert_allclose(
        llse_error(LIMIT, KroneckerNoise(np.zeros((1, 1)), LIMIT)), 0.0, atol=1e-15
    )
    np.testing.assert_allclose(
        llse_weights(LIMIT, KroneckerNoise(np.zeros((1, 1)), LIMIT)), np.eye(3), atol=1e-12
    )


def test_limit_infinite_noise_leaves_the_mean():
    """The error tends to K_X and the weights to 0, as 1/σ²."""
    law = KroneckerNoise(np.array([[1e12]]), LIMIT)
    np.testing.assert_allclose(llse_error(LIMIT, law), LIMIT, rtol=1e-11)
    np.testing.assert_allclose(llse_weights(LIMIT, law), 0.0, atol=1e-11)


@given(seed=seeds, k=st.integers(2, 5))
@properties
def test_adding_a_copy_never_hurts(seed, k):
    rng = np.random.default_rng(seed)
    K_X, K_Z = random_covariance(rng, 2), random_covariance(rng, 2 * k)
    law = DenseNoise(K_Z, 2)
    less = llse_error(K_X, law) - llse_error(K_X, law.of(range(1, k)))
    assert np.linalg.eigvalsh(less).max() <= 1e-9 * np.trace(K_X)


def test_errata_6_2_estimate_cancels_when_noise_is_shaped_like_the_data():
    """ERRATA 6.2."""
    X = table(np.random.default_rng(5), rows=60)
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 1.0], seed=5)
    # precisions 2 and 1, v = 1/3
    pooled = (2.0 * release.copies[0] + 1.0 * release.copies[1]) / 3.0
    m = pooled.mean(axis=0)
    estimate = auditor.attack("llse", release, knowledge={"estimated": {"rows": 60}})
    np.testing.assert_allclose(estimate.values, m + (pooled - m) / (1 + 1 / 3), rtol=1e-9)


def test_unstructured_estimate_by_a_naive_transcription():
    X = table(np.random.default_rng(5), rows=60)
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 1.0], seed=5)
    Y = np.hstack(release.copies)
    pooled = (2.0 * release.copies[0] + 1.0 * release.copies[1]) / 3.0
    K_X = np.cov(pooled.T) / (1 + 1 / 3)
    expected = (
        pooled.mean(axis=0) + (Y - Y.mean(axis=0)) @ np.linalg.inv(np.cov(Y.T)) @ np.tile(K_X, 2).T
    )
    estimate = auditor.attack(
        "llse", release, knowledge={"estimated": {"rows": 60, "structure": "none"}}
    )
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("scheme", "levels", "structure"),
    [("correlated", [0.5] * 6, "scheme"), ("corner-wave", list(np.linspace(0.5, 1.6, 12)), "none")],
)
def test_errata_6_2_more_copies_help_one_estimate_and_harm_unstructured(scheme, levels, structure):
    """Mean over eight tables, 200 rows known."""
    X = table(np.random.default_rng(6), rows=4000, N=2)
    knows, sizes = {"estimated": {"rows": 200, "structure": structure}}, (1, len(levels) // 2, len(levels))  # fmt: skip
    errors = np.mean([
        [auditor.attack("llse", release, coalition=list(range(1, k + 1)), knowledge=knows, seed=seed).normalized_error for k in sizes]
        for seed in range(8) for release in [auditor.perturb(X, scheme=scheme, levels=levels, seed=seed)]
    ], axis=0)  # fmt: skip
    rising = np.diff(errors) > 0
    assert rising.all() if structure == "none" else not rising.any()


LEVELS = np.array([0.5, 0.25, 1.0, 0.25, 2.0])
MIX = np.array([[1.0, 0.0, 0.0], [0.7, 0.6, 0.0], [-0.2, 0.5, 0.8]])
# the third is the sum of the others, as in official statistics
SUM = np.array([[1.0, 0.0, 0.0], [0.7, 0.6, 0.0], [1.7, 0.6, 0.0]])
NEAR = np.sqrt([1.0, 1.0 + 3e-5, 2.0, 2.0 + 1e-3, 3.0])
SIGMA = {
    "independent": np.diag(LEVELS),
    "correlated": np.minimum.outer(LEVELS, LEVELS) + np.diag(LEVELS),
    "corner-wave": np.minimum.outer(LEVELS, LEVELS),
    "linearly-dependent": np.sqrt(np.outer(LEVELS, LEVELS)), "nearly equal": np.outer(NEAR, NEAR),
    "some correlated": np.diag(LEVELS) + 0.2 * np.kron(np.diag([1.0, 0.0]), np.ones((3, 3)))[:5, :5],
    "one exact": np.diag([0.5, 0.0, 1.0, 0.0, 2.0]),
}  # fmt: skip
TABLES = {
    "white": (MIX, np.eye(3)), "like the data": (MIX, MIX @ MIX.T),
    "one attribute without noise": (MIX, np.diag([1.0, 0.0, 2.0])), "singular": (SUM, SUM @ SUM.T),
}  # fmt: skip
"""What makes the data of independent normals, and the noise's covariance."""
ALL = np.eye(3)


def view_of(law, table="white", *, size=1.0, rows=400, follows=False, model=None, seed=3):
    rng, Sigma, (mix, shape) = np.random.default_rng(seed), SIGMA[law], TABLES[table]
    X = rng.standard_normal((rows, 3)) @ mix.T
    Z = rng.standard_normal((rows, 15)) @ np.kron(level_root(Sigma), psd_root(shape)).T
    size = np.broadcast_to(size, 3)
    moments = Moments.of((np.tile(X, 5) + Z) * np.tile(size, 5))
    noise = KroneckerNoise(Sigma, shape * np.outer(size, size), follows_data=follows)
    knowledge, given = Estimated(rows=rows), SampleMoments(moments)
    if model is not None:
        knowledge, given = (PublishedModel(rows=rows, target="c", predictors=("a",)), ModelledMoments(moments, model))  # fmt: skip
    return View(("a", "b", "c"), (1, 2, 3, 4, 5), (), knowledge, noise, 10.0 * size, moments, given)


def assert_as_one_by_one(view, size=1.0, mix=ALL, within=1e-12):
    size, attack, M = (np.broadcast_to(size, 3), registry.get("attack", "llse")(), len(view.copies))
    coalitions = [
        copies for k in range(1, M + 1) for copies in itertools.combinations(view.copies, k)
    ]
    stack = attack.affine_batch(view, coalitions)
    assert isinstance(stack, AffineStack)
    assert not stack.fixed
    assert stack.weights.shape == (len(coalitions), 3, 3 * M)
    for one, copies in zip(stack, coalitions, strict=True):
        unit, other = (np.tile(size, len(copies)) / size[:, None], attack.affine(view.coalition(copies)))  # fmt: skip
        W, expected = ((affine.weights * unit).reshape(3, -1, 3) @ mix for affine in (one, other))
        largest = max(1.0, np.abs(expected).max())
        atol = largest * (within + 100 * EPS * np.square(view.coalition(copies).weights).sum())
        np.testing.assert_allclose(W, expected, rtol=0, atol=atol)
        np.testing.assert_allclose(one.offset / size, other.offset / size, rtol=0, atol=10 * atol)


# of eight rows the estimate less the noise is clipped in some coalitions, and not in others
@pytest.mark.parametrize("rows", [400, 8])
@pytest.mark.parametrize(("law", "table"), list(itertools.product(SIGMA, TABLES))[::3])
def test_maps_by_estimated_moments_are_those_of_each_coalition_s_own_view(law, table, rows):
    """But of weights of 10⁵ on singular covariances."""
    assert_as_one_by_one(view_of(law, table, rows=rows), mix=TABLES[table][0])


def test_noise_of_mixed_shapes_is_refused_as_for_one_coalition():
    view = replace(view_of("independent"), law=DenseNoise(np.eye(15), 3))
    with pytest.raises(NotApplicable, match="one shape"):
        registry.get("attack", "llse")().affine_batch(view, [(1, 2)])
