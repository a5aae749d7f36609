"""The joint LLSE against hand values, a naive transcription of equation 6, its limits and its symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from auditor_attacks.llse import llse_weights
from tests.audited import as_audited
from tests.llse_error import llse_error

properties = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
NOISY = {
    "correlated": [0.5, 1.0, 2.0],
    "independent": [0.5, 1.0, 2.0],
    "corner-wave": [1.0, 0.5, 2.0],
}


def random_covariance(rng, d):
    A = rng.normal(size=(d, d + 2))
    return A @ A.T / d


def table(rng, rows=40, N=3):
    return rng.normal(size=(rows, N)) @ rng.normal(size=(N, N)) + rng.normal(size=N)


# -- hand values
# -------------------------------------------------------------------------------------------------------


def test_hand_value_one_attribute_one_copy():
    """Equation 4: weight 1/(1 + σ²) = 0.8, error σ²/(1 + σ²)·K_X = 0.2 · 3, for σ² = 0.25 and K_X = 3."""
    law = KroneckerNoise(np.array([[0.25]]), np.array([[3.0]]))
    assert llse_weights(np.array([[3.0]]), law)[0, 0] == pytest.approx(0.8)
    assert llse_error(np.array([[3.0]]), law)[0, 0] == pytest.approx(0.6)


def test_hand_value_white_noise_on_two_variances():
    """K_X = diag(3, 1), noise variance 1: weights 3/4 and 1/2, errors 3/4 and 1/2."""
    law = KroneckerNoise(np.array([[1.0]]), np.eye(2))
    np.testing.assert_allclose(llse_weights(np.diag([3.0, 1.0]), law), np.diag([0.75, 0.5]))
    np.testing.assert_allclose(llse_error(np.diag([3.0, 1.0]), law), np.diag([0.75, 0.5]))


def test_hand_value_two_fresh_copies():
    """Levels 1 and 4: weights ∝ precisions 1 and 1/4, over 1 + 5/4; error 4/9 (li2012, 4.2.1)."""
    law = KroneckerNoise(np.diag([1.0, 4.0]), np.eye(1))
    np.testing.assert_allclose(llse_weights(np.eye(1), law), [[4 / 9, 1 / 9]])


# -- a naive transcription
# ---------------------------------------------------------------------------------------------


def naive_equation_6(K_X, K_Z):
    """``W = K_X Hᵀ (H K_X Hᵀ + K_Z)⁻¹`` and error ``K_X − W H K_X``, written as in the paper, inverse and all."""
    H = np.vstack([np.eye(len(K_X))] * (len(K_Z) // len(K_X)))
    W = K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z)
    return W, K_X - W @ H @ K_X


@given(seed=seeds, N=st.integers(1, 5), k=st.integers(1, 5))
@properties
def test_kronecker_noise_agrees_with_the_naive_equation_6(seed, N, k):
    rng = np.random.default_rng(seed)
    K_X, Sigma, K_0 = (
        random_covariance(rng, N),
        random_covariance(rng, k),
        random_covariance(rng, N),
    )
    W, error = naive_equation_6(K_X, np.kron(Sigma, K_0))
    law = KroneckerNoise(Sigma, K_0)
    np.testing.assert_allclose(llse_error(K_X, law), error, atol=1e-9 * np.trace(K_X))
    np.testing.assert_allclose(llse_weights(K_X, law), W, atol=1e-7 * max(1.0, np.abs(W).max()))


@given(seed=seeds, N=st.integers(1, 5), k=st.integers(1, 5))
@properties
def test_dense_noise_agrees_with_the_naive_equation_6(seed, N, k):
    rng = np.random.default_rng(seed)
    K_X, K_Z = random_covariance(rng, N), random_covariance(rng, k * N)
    W, error = naive_equation_6(K_X, K_Z)
    law = DenseNoise(K_Z, N)
    np.testing.assert_allclose(llse_error(K_X, law), error, atol=1e-9 * np.trace(K_X))
    np.testing.assert_allclose(llse_weights(K_X, law), W, atol=1e-7 * max(1.0, np.abs(W).max()))


@given(seed=seeds, N=st.integers(1, 4), k=st.integers(1, 4), rank=st.integers(0, 4))
@properties
def test_singular_kronecker_noise_agrees_with_the_same_noise_written_densely(seed, N, k, rank):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(N, min(rank, N)))
    K_X, K_0 = random_covariance(rng, N), B @ B.T
    Sigma = np.minimum.outer(*[rng.integers(1, 4, size=k) / 2.0] * 2)
    law = KroneckerNoise(Sigma, K_0)
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


# -- limits
# ------------------------------------------------------------------------------------------------------------

LIMIT = random_covariance(np.random.default_rng(8), 3)


def test_limit_no_noise_is_exact():
    np.testing.assert_allclose(
        llse_error(LIMIT, KroneckerNoise(np.zeros((1, 1)), LIMIT)), 0.0, atol=1e-15
    )
    np.testing.assert_allclose(
        llse_weights(LIMIT, KroneckerNoise(np.zeros((1, 1)), LIMIT)), np.eye(3), atol=1e-12
    )


def test_limit_one_exact_copy_among_noisy_ones_is_exact():
    law = KroneckerNoise(np.diag([1.0, 0.0, 2.0]), LIMIT)
    np.testing.assert_allclose(llse_error(LIMIT, law), 0.0, atol=1e-15)


def test_limit_infinite_noise_leaves_the_mean():
    """The error tends to K_X and the weights to 0, as 1/σ²."""
    law = KroneckerNoise(np.array([[1e12]]), LIMIT)
    np.testing.assert_allclose(llse_error(LIMIT, law), LIMIT, rtol=1e-11)
    np.testing.assert_allclose(llse_weights(LIMIT, law), 0.0, atol=1e-11)


def test_limit_uncorrelated_attributes_are_estimated_one_by_one():
    """Diagonal K_X and noise: attribute j's error is ``k_j z_j / (k_j + z_j)``."""
    k, z = np.array([1.0, 4.0, 9.0]), np.array([2.0, 0.5, 3.0])
    np.testing.assert_allclose(
        llse_error(np.diag(k), KroneckerNoise(np.eye(1), np.diag(z))), np.diag(k * z / (k + z))
    )


def test_limit_noiseless_attribute_is_read_off():
    """Noise on the second attribute alone: the first is exact, the second is what regression on the first leaves, and less."""
    K_X = np.array([[1.0, 0.6], [0.6, 1.0]])
    error = llse_error(K_X, KroneckerNoise(np.eye(1), np.diag([0.0, 0.5])))
    left = 1 - 0.6**2
    np.testing.assert_allclose(error, np.diag([0.0, left * 0.5 / (left + 0.5)]), atol=1e-12)


# -- properties
# --------------------------------------------------------------------------------------------------------


@given(seed=seeds, k=st.integers(2, 5))
@properties
def test_adding_a_copy_never_hurts(seed, k):
    """Error of k copies less error of k − 1 of them is negative semi-definite."""
    rng = np.random.default_rng(seed)
    K_X, K_Z = random_covariance(rng, 2), random_covariance(rng, 2 * k)
    law = DenseNoise(K_Z, 2)
    less = llse_error(K_X, law) - llse_error(K_X, law.of(range(1, k)))
    assert np.linalg.eigvalsh(less).max() <= 1e-9 * np.trace(K_X)


@given(seed=seeds, k=st.integers(2, 5))
@properties
def test_permuting_copies_permutes_the_weights_and_changes_no_error(seed, k):
    rng = np.random.default_rng(seed)
    K_X, K_0, Sigma = (
        random_covariance(rng, 2),
        random_covariance(rng, 2),
        random_covariance(rng, k),
    )
    order = rng.permutation(k)
    law, other = KroneckerNoise(Sigma, K_0), KroneckerNoise(Sigma[np.ix_(order, order)], K_0)
    np.testing.assert_allclose(llse_error(K_X, other), llse_error(K_X, law), atol=1e-9)
    weights = llse_weights(K_X, law).reshape(2, k, 2)[:, order].reshape(2, -1)
    np.testing.assert_allclose(
        llse_weights(K_X, other), weights, atol=1e-7 * max(1.0, np.abs(weights).max())
    )


@given(seed=seeds, unit=st.floats(1e-5, 1e5))
@properties
def test_scaling_an_attribute_scales_its_error(seed, unit):
    """A salary in cents: with noise shaped like the data, errors scale as ``T K T`` with T = diag(1, unit)."""
    rng = np.random.default_rng(seed)
    K_X, Sigma, T = random_covariance(rng, 2), np.diag([0.5, 1.0]), np.diag([1.0, unit])
    error = llse_error(K_X, KroneckerNoise(Sigma, K_X))
    scaled = llse_error(T @ K_X @ T, KroneckerNoise(Sigma, T @ K_X @ T))
    np.testing.assert_allclose(
        np.linalg.solve(T, np.linalg.solve(T, scaled).T), error, rtol=1e-9, atol=1e-12
    )


@given(seed=seeds)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_permuting_rows_permutes_the_estimates(seed):
    rng = np.random.default_rng(seed)
    X = table(rng)
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 1.0], seed=1)
    order = rng.permutation(len(X))
    shuffled = auditor.Release(
        X[order], tuple(copy[order] for copy in release.copies), release.levels, release.scheme
    )
    plain, moved = auditor.attack("llse", release).values, auditor.attack("llse", shuffled).values
    np.testing.assert_allclose(moved, plain[order], rtol=1e-10, atol=1e-10)


def test_a_mean_of_a_million_beside_a_variance_of_one_costs_nothing():
    """The same noise on the same table moved by 10⁶ (exactly representable): same errors to what 10⁶ leaves of a float."""
    X = np.round(table(np.random.default_rng(4), rows=200) * 2**20) / 2**20
    near, far = (as_audited(x, "correlated", [0.5, 1.0], 2) for x in (X, X + 2.0**20))
    assert auditor.attack("llse", far).theory == pytest.approx(
        auditor.attack("llse", near).theory, rel=1e-9
    )
    assert auditor.attack("llse", far).distortion == pytest.approx(
        auditor.attack("llse", near).distortion, rel=1e-8
    )


# -- estimated knowledge
# -----------------------------------------------------------------------------------------------


def test_errata_6_2_estimate_cancels_when_noise_is_shaped_like_the_data():
    """ERRATA 6.2: with ``K̂_Z = Σ ⊗ K̂_X`` the estimate drops out of (6): ``x̂ = m + Σ w_i (Y_i − m)/(1 + v)``, m the copies' mean."""
    X = table(np.random.default_rng(5), rows=60)
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 1.0], seed=5)
    # precisions 2 and 1, v = 1/3
    pooled = (2.0 * release.copies[0] + 1.0 * release.copies[1]) / 3.0
    m = pooled.mean(axis=0)
    estimate = auditor.attack("llse", release, knowledge={"estimated": {"rows": 60}})
    np.testing.assert_allclose(estimate.values, m + (pooled - m) / (1 + 1 / 3), rtol=1e-9)


def test_unstructured_estimate_by_a_naive_transcription():
    """``x̂ = m + H K̂_X Cov(Y)⁻¹ (y − ȳ)`` with the NM×NM sample covariance, K̂_X = Cov of the best combination / (1 + v)."""
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


def estimated_errors(
    rows,
    levels,
    scheme="correlated",
    noise="white",
    structure="scheme",
    table_rows=20_000,
    replicates=4,
):
    scenario = {
        "schema": 1,
        "title": "estimated",
        "seed": 6,
        "replicates": replicates,
        "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 1.0]], "rows": table_rows},
        "schemes": [{"name": scheme, "levels": levels, "noise": noise}],
        "knowledge": [
            "perfect",
            *({"estimated": {"rows": r, "structure": structure}} for r in rows),
        ],
        "coalitions": ["prefixes"],
        "attacks": ["llse"],
    }
    frame = auditor.run(scenario).frame()
    chosen = frame[(frame.metric == "normalized_error") & (frame.attribute == "*")]
    chosen = chosen.assign(size=chosen.coalition.map(len))
    return chosen.groupby(["knowledge", "size"]).value.mean()


@pytest.mark.slow
def test_estimated_knowledge_converges_to_perfect_as_rows_grow():
    """White noise: the excess error of estimating falls with the rows, and is below 1 % with all 20,000."""
    errors = estimated_errors([50, 500, 20_000], [0.5])
    perfect = errors["perfect"][1]
    excess = [errors[f"estimated(rows={r})"][1] / perfect - 1 for r in (50, 500, 20_000)]
    assert excess[0] > excess[1] > excess[2]
    assert excess[2] < 0.01


@pytest.mark.slow
def test_errata_6_2_structured_estimate_never_rises_with_copies():
    """ERRATA 6.2, fresh noise shaped like the data: only the mean is estimated, and every copy helps."""
    errors = estimated_errors([200], [0.5] * 8, noise="data")["estimated(rows=200)"]
    assert (np.diff(errors.to_numpy()) < 0).all()


@pytest.mark.slow
def test_errata_6_2_unstructured_estimate_gets_worse_with_copies():
    """ERRATA 6.2, corner-wave: each copy adds noise of estimation and nothing else; 200 rows, up to 12 copies of 2 attributes."""
    levels = list(np.linspace(0.5, 1.6, 12))
    errors = estimated_errors([200], levels, "corner-wave", "data", "none")[
        "estimated(rows=200, structure=none)"
    ].to_numpy()
    assert errors[-1] > errors[5] > errors[0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_do_not_vary_teach_nothing_and_break_nothing():
    """Three rows alike: less the noise nothing is left of their variance, rounded to a little less than nothing."""
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    release = auditor.perturb(X, "linearly-dependent", [0.5, 1.0], seed=1)
    for seed in range(6):
        for attack, parameters in (("llse", {}), ("map-estimate", {"prior": "gaussian"})):
            values = auditor.attack(
                attack, release, knowledge={"estimated": {"rows": 3}}, seed=seed, **parameters
            ).values
            assert np.isfinite(np.asarray(values)).all()
