"""Copies drawn by Gaussian schemes against their stated law."""

import numpy as np
import pytest
from scipy import stats

from auditor.runs.perturb import perturb

FALSE_ALARM = 1e-4
ALGORITHMS = ("bridge", "parallel", "sequential", "on-demand")
LEVELS = [0.6, 0.2, 1.0, 0.4]
ROWS = 33_000  # more than one block of rows
MATRIX = [[2.0, -0.7], [-0.7, 0.5]]
SHAPES = {
    "data": "data", "white": "white", "variance": {"variance": 3.0}, "spectrum": {"spectrum": [5.0, 0.25]},
    "matrix": {"matrix": MATRIX},
}  # fmt: skip
# Algorithm 2 draws in order of level, so a batch must be known at once


def table(rows=ROWS, seed=1):
    rng = np.random.default_rng(seed)
    skewed = rng.lognormal(size=rows)
    return np.column_stack([skewed, 3.0 + 0.5 * skewed + rng.normal(size=rows)])


def by_hand(shape, X):
    K_X = np.cov(X.T, bias=True)
    if shape == "white":
        return np.trace(K_X) / 2 * np.eye(2)
    if shape == "variance":
        return 3.0 * np.eye(2)
    if shape == "spectrum":
        _, V = np.linalg.eigh(K_X)
        return 5.0 * np.outer(V[:, 1], V[:, 1]) + 0.25 * np.outer(V[:, 0], V[:, 0])
    return np.array(MATRIX) if shape == "matrix" else K_X


def p_value(Z, K):
    values, Q = np.linalg.eigh(K)
    keep = values > 1e-10 * values[-1]
    outside = Z @ Q[:, ~keep]
    assert not outside.size or np.abs(outside).max() < 1e-6 * np.sqrt(values[-1])
    white = Z @ Q[:, keep] / np.sqrt(values[keep])
    n, r = white.shape
    S = white.T @ white / n
    statistic = n * (np.trace(S) - np.linalg.slogdet(S)[1] - r)
    return float(stats.chi2.sf(statistic, r * (r + 1) // 2))


def noise(release):
    return np.hstack([np.asarray(copy) - np.asarray(release.original) for copy in release.copies])


@pytest.mark.parametrize(
    ("algorithm", "shape"),
    [*((one, "data") for one in ALGORITHMS), *(("bridge", shape) for shape in SHAPES)],
)
def test_corner_wave_copies_have_covariance_min_by_shape(algorithm, shape):
    X = table()
    release = perturb(X, "corner-wave", LEVELS, seed=11, algorithm=algorithm, noise=SHAPES[shape])
    K_Z = np.kron(np.minimum.outer(LEVELS, LEVELS), by_hand(shape, X))
    np.testing.assert_allclose(release.noise_covariance(), K_Z, rtol=1e-9, atol=1e-9)
    assert p_value(noise(release), K_Z) > FALSE_ALARM


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_corner_wave_copies_have_covariance_min_after_extensions(algorithm):
    X = table()
    release = (
        perturb(X, "corner-wave", [0.6], seed=12, algorithm=algorithm)
        .extend([1.0, 0.2], seed=13)
        .extend([0.4, 0.3], seed=12)
    )
    levels = [0.6, 1.0, 0.2, 0.4, 0.3]
    assert (
        p_value(noise(release), np.kron(np.minimum.outer(levels, levels), by_hand("data", X)))
        > FALSE_ALARM
    )


def test_the_test_above_sees_a_wrong_law():
    X = table()
    release = perturb(X, "corner-wave", LEVELS, seed=11)
    wrong = [level * 1.05 for level in LEVELS]
    assert (
        p_value(noise(release), np.kron(np.minimum.outer(wrong, wrong), by_hand("data", X))) < 1e-12
    )


@pytest.mark.parametrize("scheme", ["independent", "correlated"])
def test_fresh_copies_have_a_block_diagonal_covariance(scheme):
    X, levels = table(), [0.5, 0.5, 1.5]
    release = perturb(X, scheme, levels, seed=14, noise=SHAPES["matrix"])
    assert p_value(noise(release), np.kron(np.diag(levels), np.array(MATRIX))) > FALSE_ALARM


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_noise_is_normal_and_not_related_to_the_data(algorithm):
    """Kolmogorov–Smirnov and correlations, Bonferroni over 4 copies and 16 pairs."""
    X = table()
    Z = noise(perturb(X, "corner-wave", LEVELS, seed=16, algorithm=algorithm, noise={"variance": 1.0}))  # fmt: skip
    for copy, level in enumerate(LEVELS):
        assert stats.kstest(Z[:, 2 * copy] / np.sqrt(level), "norm").pvalue > FALSE_ALARM / 4
    r = np.corrcoef(np.hstack([X, Z]).T)[:2, 2:]
    assert np.abs(r).max() < stats.norm.isf(FALSE_ALARM / 2 / r.size) / np.sqrt(len(X))


@pytest.mark.parametrize(
    "scheme", ["independent", "correlated", "linearly-dependent", "corner-wave"]
)
def test_same_seed_same_copies(scheme):
    X = table(50)
    for first, second in zip(
        perturb(X, scheme, LEVELS, seed=3).copies,
        perturb(X, scheme, LEVELS, seed=3).copies,
        strict=True,
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_level_asked_twice_gives_the_very_same_copy(algorithm):
    release = perturb(
        table(50), "corner-wave", [0.6, 0.2, 0.6], seed=7, algorithm=algorithm
    ).extend([0.2, 0.9, 0.9], seed=8)
    for first, again in ((0, 2), (1, 3), (4, 5)):
        np.testing.assert_array_equal(release.copies[first], release.copies[again])


def test_two_alternative_extensions_share_no_noise():
    release = perturb(table(4000), "corner-wave", [1.0], seed=9, noise={"variance": 1.0})
    # innovation of each copy, given its neighbours X and Y_1
    new = [
        release.extend([s], seed=10).copies[1] - (1 - s) * release.original - s * release.copies[0]
        for s in (0.4, 0.6)
    ]
    r = np.corrcoef(new[0][:, 0], new[1][:, 0])[0, 1]
    assert abs(r) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(4000)
