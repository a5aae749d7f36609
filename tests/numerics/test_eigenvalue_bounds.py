"""Lemma 12.1 of the survey, and the error of a projection on a copy's first directions, against eigen-decompositions of drawn tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.numerics.random_matrix import projection_error_range

draws = settings(max_examples=60, deadline=None, derandomize=True)


def eigenvalue_range(data: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lemma 12.1 (with ERRATA): ``λ_X^j + λ_R^N ≤ λ_Y^j ≤ λ_X^j + λ_R^1``, of eigenvalues that fall."""
    return data + noise[-1], data + noise[0]


def falling(K: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(K)[::-1]


def covariance(rows: np.ndarray) -> np.ndarray:
    return np.atleast_2d(np.cov(rows.T, ddof=0))


def drawn(
    seed: int, n: int, N: int, level: float, dependence: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """A table with an uneven spectrum, and noise of an uneven one, some of it following the data."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N)) @ rng.standard_normal((N, N)) * 10.0 ** rng.uniform(-1, 1, N)
    R = (
        np.sqrt(level) * (rng.standard_normal((n, N)) @ rng.standard_normal((N, N)))
        + dependence * X
    )
    return X - X.mean(axis=0), R - R.mean(axis=0)


cases = {
    "seed": st.integers(0, 2**32 - 1), "N": st.integers(1, 6), "level": st.floats(1e-3, 1e3), "dependence": st.sampled_from([0.0, 0.5, -0.5, -2.0]),
}  # fmt: skip


@given(**cases)
@draws
def test_lemma_12_1_holds_of_sample_covariances_with_what_was_added(
    seed: int, N: int, level: float, dependence: float
) -> None:
    X, R = drawn(seed, 3 * N + 2, N, level, dependence)
    K_X, K_Y = covariance(X), covariance(X + R)
    low, high = eigenvalue_range(falling(K_X), falling(K_Y - K_X))
    slack = 1e-9 * np.trace(K_X + K_Y)
    assert (low - slack <= falling(K_Y)).all()
    assert (falling(K_Y) <= high + slack).all()


def test_lemma_12_1_holds_of_uncorrelated_data_and_noise_and_is_met_by_white_noise() -> None:
    rng = np.random.default_rng(1)
    K_X, K_R = (A @ A.T for A in rng.standard_normal((2, 5, 5)))
    low, high = eigenvalue_range(falling(K_X), falling(K_R))
    assert (low <= falling(K_X + K_R)).all()
    assert (falling(K_X + K_R) <= high).all()
    low, high = eigenvalue_range(falling(K_X), np.full(5, 25.0))
    np.testing.assert_allclose(falling(K_X + 25.0 * np.eye(5)), low)
    np.testing.assert_array_equal(low, high)


def test_lemma_12_1_as_printed_fails_where_noise_follows_the_data() -> None:
    """«For any X and R, R of mean 0»: R = −X/2 is such, and the copy's eigenvalues are a quarter of the data's, below all of the range."""
    X, _ = drawn(2, 500, 4, 1.0)
    low, _ = eigenvalue_range(falling(covariance(X)), falling(covariance(-X / 2)))
    assert (falling(covariance(X / 2)) < low).all()


def test_lemma_12_1_of_finitely_many_rows_needs_what_was_added_in_place_of_the_noise() -> None:
    """Noise drawn apart from the data is still correlated with them in 50 rows: the printed range is left in most draws."""
    left = 0
    for seed in range(40):
        X, R = drawn(seed, 50, 3, 0.5)
        low, high = eigenvalue_range(falling(covariance(X)), falling(covariance(R)))
        values = falling(covariance(X + R))
        left += bool((values < low).any() or (values > high).any())
    assert left > 20


def naive_projection_error(X: np.ndarray, R: np.ndarray, kept: int) -> float:
    """``‖X − Y V_k V_kᵀ‖²_F / n`` row by row, with the copy's first eigenvectors."""
    Y = X + R
    _, vectors = np.linalg.eigh(covariance(Y))
    V = vectors[:, ::-1][:, :kept]
    return float(((X - Y @ V @ V.T) ** 2).sum() / len(X))


@given(kept=st.integers(0, 6), **cases)
@draws
def test_the_error_of_a_projection_is_in_its_range_in_every_draw(
    seed: int, N: int, level: float, dependence: float, kept: int
) -> None:
    X, R = drawn(seed, 3 * N + 2, N, level, dependence)
    k, K_X, K_Y = min(kept, N), covariance(X), covariance(X + R)
    low, high = projection_error_range(falling(K_X), falling(covariance(R)), falling(K_Y - K_X), k)
    error, slack = naive_projection_error(X, R, k), 1e-9 * np.trace(K_X + K_Y)
    assert low - slack <= error <= high + slack


def test_the_range_closes_as_rows_grow_and_is_theorem_5_2s_error() -> None:
    """White noise: the widths at 400 and 40,000 rows are as 10 to 1, for ``ε^1 − ε^N`` falls with the root of the rows (Marchenko–Pastur)."""
    widths = []
    for n in (400, 40_000):
        rng = np.random.default_rng(n)
        X = rng.standard_normal((n, 6)) * np.sqrt([400.0, 400.0, 10.0, 10.0, 10.0, 10.0])
        R = 5.0 * rng.standard_normal((n, 6))
        K_X, K_Y = covariance(X), covariance(X + R)
        low, high = projection_error_range(
            falling(K_X), falling(covariance(R)), falling(K_Y - K_X), 2
        )
        widths.append((high - low) / (4 * 10.0 + 2 * 25.0))
        assert low < 90.0 * (1 + 5 * np.sqrt(2 / n)) * 1.2
    assert 5 < widths[0] / widths[1] < 20
    assert widths[1] < 0.15


def test_lemma_12_1_says_no_more_of_an_error_than_the_bounds_that_are_drawn() -> None:
    """By the lemma a rule on eigenvalues keeps k_low to k_high directions. What was kept is among them: so of all their bounds the widest hold.

    Huang's Experiment 1 with 20 attributes: σ² = 25, and eigenvalues above 2σ² are kept. The
    ceiling is some 0.27 of the variance for 0.21."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1000, 20)) * np.sqrt(np.repeat([400.0, 10.0], [5, 15]))
        R = 5.0 * rng.standard_normal((1000, 20))
        X, R = X - X.mean(axis=0), R - R.mean(axis=0)
        data, noise, added, copy = map(
            falling,
            (covariance(X), covariance(R), covariance(X + R) - covariance(X), covariance(X + R)),
        )
        few, many = (int((ends > 50).sum()) for ends in eigenvalue_range(data, added))
        kept = int((copy > 50).sum())
        assert few <= kept <= many
        bounds = np.array(
            [projection_error_range(data, noise, added, k) for k in range(few, many + 1)]
        )
        own, error = bounds[kept - few], naive_projection_error(X, R, kept)
        assert bounds[:, 0].min() <= own[0] <= error <= own[1] <= bounds[:, 1].max()
        found.append(np.array([own[1], bounds[:, 1].max()]) / data.sum())
    np.testing.assert_allclose(np.mean(found, axis=0), [0.205, 0.27], atol=0.01)
