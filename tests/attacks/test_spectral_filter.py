"""Spectral filtering: liu2008, Protocol 2."""

import numpy as np
import pytest

import auditor
from auditor.numerics.linear_algebra import aspect, noise_edge, noise_median, noise_variance


def two_levels(
    n: int, N: int, p: int, large: float, small: float, seed: int = 1, mean: float = 0.0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    scale = np.sqrt(np.r_[np.full(p, large), np.full(N - p, small)])
    return mean + (rng.standard_normal((n, N)) * scale) @ V.T


def naive_protocol_2(Y: np.ndarray, variance: float) -> np.ndarray:
    n, N = Y.shape
    mean = Y.mean(axis=0)
    centred = Y - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / (n - 1))
    Q = n / N
    bound = variance * (1 + 1 / np.sqrt(Q)) ** 2
    estimate = np.zeros_like(Y)
    for value, v in zip(values, vectors.T, strict=True):
        if value > bound:
            estimate += np.outer(centred @ v, v)
    return mean + estimate


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize(("n", "N", "p"), [(500, 10, 3), (60, 30, 2), (20, 40, 1)])
def test_equals_a_naive_transcription_of_the_protocol(n: int, N: int, p: int, mean: float) -> None:
    X = two_levels(n, N, p, 400.0, 1.0, mean=mean)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=2)
    estimate = auditor.attack("spectral-filter", release)
    np.testing.assert_allclose(
        estimate.values - mean, naive_protocol_2(release.copies[0], 25.0) - mean, atol=1e-6
    )
    assert estimate.theory is None


# The random-matrix laws


def test_noise_alone_stays_below_the_edge_and_has_the_laws_median() -> None:
    n, N = 2000, 400
    values = np.linalg.eigvalsh(np.cov(np.random.default_rng(7).standard_normal((n, N)).T))
    # The largest eigenvalue fluctuates by n^(−2/3)(1+√N/√n)(1/√n+1/√N)^(1/3)·… ≈ 0.02
    # (Tracy–Widom); five scales.
    assert values[-1] < noise_edge(n, N, 1.0) + 0.1
    assert values[-1] > noise_edge(n, N, 1.0) - 0.1
    # Eigenvalues are rigid: each sits within a few spacings, (b − a)/N, of its quantile.
    spacing = 4 * np.sqrt(aspect(n, N)) / N
    assert np.median(values) == pytest.approx(noise_median(aspect(n, N)), abs=3 * spacing)


@pytest.mark.parametrize(("n", "N", "spikes"), [(1000, 100, 0), (1000, 100, 40), (100, 300, 3)])
def test_unknown_variance_is_found_under_spikes(n: int, N: int, spikes: int) -> None:
    X = two_levels(n, N, max(1, spikes), 4000.0 if spikes else 1e-9, 0.0, seed=8)
    Y = X + 5.0 * np.random.default_rng(9).standard_normal((n, N))
    found = noise_variance(np.linalg.eigvalsh(np.cov(Y.T)), n)
    # Rigidity again: the bulk's median is right to a few spacings; taking spikes off one by one
    # costs at most as much.
    bulk = min(n, N) - spikes
    assert found == pytest.approx(25.0, rel=4 * 4 * np.sqrt(aspect(n, N)) / bulk + 0.02)


def test_optimal_gain_is_gavish_and_donohos_shrinker_on_singular_values() -> None:
    n, N, p, sigma = 300, 60, 4, 2.0
    X = two_levels(n, N, p, 50.0, 0.0, seed=10)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": sigma**2}, seed=11)
    Y = release.copies[0]
    mean = Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    beta = N / n
    y = s / (sigma * np.sqrt(n - 1))  # the attack's covariance has divisor n − 1
    eta = np.array(
        [
            np.sqrt((v**2 - beta - 1) ** 2 - 4 * beta) / v if v > 1 + np.sqrt(beta) else 0.0
            for v in y
        ]
    )
    expected = mean + (U * (eta * sigma * np.sqrt(n - 1))) @ Vt
    estimate = auditor.attack("spectral-filter", release, shrinkage="optimal")
    np.testing.assert_allclose(estimate.values, expected, atol=1e-9)
    assert estimate.distortion < auditor.attack("spectral-filter", release).distortion
