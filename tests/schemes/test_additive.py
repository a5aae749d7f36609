"""Additive noise: samples, densities, scales and transforms."""

from typing import get_args

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.numerics.linear_algebra import check_covariance
from auditor.runs.perturb import as_table, perturb
from auditor.schemes.base.noise_density import LATTICE, Distribution, NoiseDensity, excess_kurtosis
from auditor.schemes.base.noise_law import KroneckerNoise, _excess, increment_density, makes_useless
from auditor.schemes.base.scheme import Key, table_moments


def peers(v):
    s, q = np.sqrt(v), ((v + 1) - np.sqrt(2 * v + 1)) / v
    return {
        "gaussian": stats.norm(scale=s), "uniform": stats.uniform(-np.sqrt(3) * s, 2 * np.sqrt(3) * s),
        "laplace": stats.laplace(scale=s / np.sqrt(2)), "geometric": stats.dlaplace(-np.log(q)), "skellam": stats.skellam(v / 2, v / 2),
    }  # fmt: skip


@pytest.mark.parametrize("distribution", get_args(Distribution))
@pytest.mark.parametrize("v", [0.3, 40.0])
def test_density_distribution_function_and_moments_are_those_of_a_peer(distribution, v):
    peer, noise = peers(v)[distribution], NoiseDensity(distribution, float(np.sqrt(v)))
    if distribution in LATTICE:
        k = np.arange(-9.0, 10.0)
        np.testing.assert_allclose(noise.pdf(k), peer.pmf(k), rtol=1e-10)
        # scipy's own Skellam tails are known to that
        np.testing.assert_allclose(
            noise.cdf(k), peer.cdf(k) - peer.pmf(k) / 2, rtol=1e-8, atol=1e-15
        )
        np.testing.assert_allclose(noise.cdf(k + 0.5), peer.cdf(k), rtol=1e-8)
        assert (noise.pdf(k + 0.5) == 0).all()
    else:
        t = np.linspace(-7, 7, 29)
        np.testing.assert_allclose(noise.pdf(t), peer.pdf(t), rtol=1e-12)
        np.testing.assert_allclose(noise.cdf(t), peer.cdf(t), rtol=1e-12)
    variance, excess = peer.stats(moments="vk")
    assert variance == pytest.approx(v)
    assert noise.excess_kurtosis == pytest.approx(float(excess), abs=1e-9)


def test_the_least_perturbed_copy_of_one_process_makes_the_others_useless_and_of_independent_noise_none_does():
    levels = np.array([1.0, 0.25, 4.0])
    one = KroneckerNoise(
        np.minimum.outer(levels, levels), np.eye(2), distribution="laplace", one_process=True
    )
    fresh = KroneckerNoise(np.diag(levels), np.eye(2), distribution="laplace")
    assert makes_useless(one).tolist() == [
        [True, False, True], [True, True, True], [False, False, True],
    ]  # fmt: skip
    assert not makes_useless(fresh).any()


def naive_increment(distribution, low, high, k):
    u = 2 * np.pi * np.arange(4096) / 4096
    psi = 1 - np.cos(u)
    ratio = (
        (1 + low * psi) / (1 + high * psi)
        if distribution == "geometric"
        else np.exp(-(high - low) * psi)
    )
    return np.fft.ifft(ratio).real[k]


@pytest.mark.parametrize("distribution", ["geometric", "skellam"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (1.5, 2.0), (0.2, 9.0)])
def test_a_lattice_increment_has_the_law_of_its_characteristic_function(distribution, low, high):
    law = KroneckerNoise(
        np.eye(1), np.eye(1), distribution=distribution, one_process=True, units=np.ones(1)
    )
    found, k = increment_density(law, low, high, 0), np.arange(8)
    middle, chance = found.distribution(k.astype(float))
    expected = naive_increment(distribution, low, high, k)
    np.testing.assert_allclose(chance, expected, atol=1e-12)
    below = 0.5 * (1 - expected[0]) + np.cumsum(expected) - expected / 2
    np.testing.assert_allclose(middle, below, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("distribution", ["laplace", "geometric", "skellam"])
@pytest.mark.parametrize("v", [1e-200, 1.0, 1e200])
def test_the_excess_kurtosis_of_one_increment_is_the_distribution_s_own(distribution, v):
    np.testing.assert_allclose(
        _excess(distribution, np.array([0.0, v]), np.array([v, v])),
        [excess_kurtosis(distribution, v), 0.0],
    )


FALSE_ALARM = 1e-4
ALGORITHMS = ("bridge", "parallel", "sequential", "on-demand")
LEVELS = [0.6, 0.2, 1.0, 0.4]
ROWS = 33_000  # more than one block of rows
MATRIX = [[2.0, -0.7], [-0.7, 0.5]]
SHAPES = {
    "data": "data", "white": "white", "variance": {"variance": 3.0},
    "spectrum": {"spectrum": [5.0, 0.25]}, "matrix": {"matrix": MATRIX},
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
    release = perturb(X, "corner-wave", [0.6], seed=12, algorithm=algorithm)
    release = release.extend([1.0, 0.2], seed=13).extend([0.4, 0.3], seed=12)
    levels = [0.6, 1.0, 0.2, 0.4, 0.3]
    expected = np.kron(np.minimum.outer(levels, levels), by_hand("data", X))
    assert p_value(noise(release), expected) > FALSE_ALARM


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


MIX = np.array([[1.0, 0.5, 0.3], [0.0, 1.0, 0.4], [0.0, 0.0, 0.8]])
SIZES = [np.array([1e-9, 1.0, 1e9])]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["corner-wave", "correlated", "linearly-dependent"])
def test_noise_protects_every_attribute_whatever_its_unit(scheme, size):
    """20,000 rows."""
    A = np.random.default_rng(0).normal(size=(20_000, 3)) @ MIX
    release = auditor.perturb(A * size, scheme, [0.5], seed=1)
    for knowledge in ("perfect", {"estimated": {"rows": 20_000}}):
        error = auditor.attack("llse", release, knowledge=knowledge).values / size - A
        np.testing.assert_allclose((error**2).mean(axis=0) / A.var(axis=0), 1 / 3, atol=0.017)


@pytest.mark.parametrize("K", [[[1e12, 0.0], [0.0, -100.0]], [[1e12, 2e6], [2e6, 1.0]]])
def test_a_large_attribute_hides_no_impossible_small_one(K):
    with pytest.raises(ValueError, match="positive semi-definite"):
        check_covariance(K)
    with pytest.raises(auditor.AuditorError, match="positive semi-definite"):
        auditor.run({
            "data": {"source": "gaussian", "covariance": K}, "schemes": [{"name": "correlated", "levels": [1]}], "attacks": ["ndr"],
        })  # fmt: skip


X = (
    np.random.default_rng(0).standard_normal((300, 5))
    @ np.random.default_rng(1).standard_normal((5, 5))
    + 4
)


def test_a_rotation_keeps_lengths_and_distances():
    Y = perturb(X, "rotation", [0], seed=1).copies[0]
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), np.linalg.norm(X, axis=1))
    moved = perturb(X, "rotation", [0], seed=1, translation=True).copies[0]
    np.testing.assert_allclose(
        np.linalg.norm(moved[1:] - moved[:-1], axis=1), np.linalg.norm(X[1:] - X[:-1], axis=1)
    )
    assert not np.allclose(np.linalg.norm(moved, axis=1), np.linalg.norm(X, axis=1))


@pytest.mark.parametrize("noise", ["fresh", "corner-wave"])
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_rotation_noise_undone_is_the_additive_release(noise, rotations):
    levels = [0.3, 0.1, 0.6]
    release = perturb(X, "rotation-noise", levels, seed=9, noise=noise, rotations=rotations)
    table = as_table(X)
    transformed = release.scheme.transforms(
        3, table_moments(table), Key(release.matrices, "rotation-noise")
    )
    Z = np.hstack([t.undo(y) - X for t, y in zip(transformed, release.copies, strict=True)])
    scale = np.trace(table_moments(table).covariance) / 5
    Sigma = np.diag(levels) if noise == "fresh" else np.minimum.outer(levels, levels)
    K = Z.T @ Z / 300
    # Entries of a covariance of 300 draws: 225 entries, 5 standard errors.
    np.testing.assert_allclose(
        K, np.kron(Sigma, np.eye(5)) * scale, atol=5 * scale * 0.6 * np.sqrt(2 / 300)
    )
    assert (len({id(t) for t in transformed}) == 1) == (rotations == "shared")


@pytest.mark.parametrize("seeds", [(9, 9), (9, 10), (None, None)], ids=str)
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_nested_copies_can_be_added_later(seeds, rotations):
    release = perturb(
        X, "rotation-noise", [0.1, 0.9], seed=seeds[0], noise="corner-wave", rotations=rotations
    ).extend([0.5], seed=seeds[1])
    moments = table_moments(as_table(X))
    transformed = release.scheme.transforms(3, moments, Key(release.matrices, "rotation-noise"))
    Z = [(t.undo(y) - X).ravel() for t, y in zip(transformed, release.copies, strict=True)]
    found = np.cov(np.array(Z), bias=True) / (np.trace(moments.covariance) / 5)
    levels = [0.1, 0.9, 0.5]
    # 1,500 values: five standard errors of a covariance, at most 0.9·sqrt(2/1500)
    np.testing.assert_allclose(
        found, np.minimum.outer(levels, levels), atol=5 * 0.9 * np.sqrt(2 / 1500)
    )
