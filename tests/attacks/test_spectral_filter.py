"""Spectral filtering: liu2008, Protocol 2, its bound, and the two later improvements."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.numerics.random_matrix import (
    aspect,
    noise_edge,
    noise_median,
    noise_variance,
    optimal_gain,
)


def two_levels(
    n: int, N: int, p: int, large: float, small: float, seed: int = 1, mean: float = 0.0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    scale = np.sqrt(np.r_[np.full(p, large), np.full(N - p, small)])
    return mean + (rng.standard_normal((n, N)) * scale) @ V.T


def naive_protocol_2(Y: np.ndarray, variance: float) -> np.ndarray:
    """The protocol as printed (records as columns there, as rows here), with ERRATA's mean added back."""
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


def test_an_adversary_that_sees_few_rows_filters_with_what_they_say() -> None:
    X = two_levels(400, 8, 2, 100.0, 1.0)
    saved = []
    # noise follows on the table's last bits too, and these on the machine: one release proves
    # nothing
    for seed in range(12):
        release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=seed)
        few = auditor.attack("spectral-filter", release, knowledge={"estimated": {"rows": 30}})
        every = auditor.attack("spectral-filter", release, knowledge={"estimated": {"rows": 400}})
        np.testing.assert_allclose(
            every.values, auditor.attack("spectral-filter", release).values, atol=1e-9
        )
        saved.append(few.distortion - every.distortion)
    assert np.mean(saved) > 3 * np.std(saved, ddof=1) / np.sqrt(len(saved))


def test_without_an_eigenvalue_beyond_the_bound_the_estimate_is_the_mean() -> None:
    X = two_levels(200, 5, 1, 1e-3, 1e-4, mean=3.0)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.0}, seed=4)
    Y = release.copies[0]
    assert np.linalg.eigvalsh(np.cov(Y.T))[-1] < noise_edge(200, 5, 1.0)
    np.testing.assert_allclose(
        auditor.attack("spectral-filter", release).values,
        np.broadcast_to(Y.mean(axis=0), Y.shape),
        atol=1e-12,
    )


def test_coloured_noise_is_taken_for_white_of_its_mean_variance() -> None:
    X = two_levels(300, 4, 1, 100.0, 1.0)
    release = auditor.perturb(
        X, "independent", [1.0], noise={"matrix": np.diag([1.0, 2.0, 3.0, 10.0]).tolist()}, seed=5
    )
    np.testing.assert_allclose(
        auditor.attack("spectral-filter", release).values,
        naive_protocol_2(release.copies[0], 4.0),
        atol=1e-9,
    )


def test_a_coalition_is_filtered_as_its_precision_weighted_average() -> None:
    X = two_levels(300, 6, 2, 100.0, 1.0)
    release = auditor.perturb(X, "independent", [1.0, 4.0], noise={"variance": 5.0}, seed=6)
    pooled = 0.8 * release.copies[0] + 0.2 * release.copies[1]
    np.testing.assert_allclose(
        auditor.attack("spectral-filter", release).values, naive_protocol_2(pooled, 4.0), atol=1e-9
    )


# The random-matrix laws


def test_edge_by_hand() -> None:
    assert noise_edge(100, 100, 1.0) == pytest.approx(4.0)  # Q = 1
    assert noise_edge(400, 100, 2.0) == pytest.approx(2 * 1.5**2)  # Q = 4


def test_noise_alone_stays_below_the_edge_and_has_the_laws_median() -> None:
    n, N = 2000, 400
    values = np.linalg.eigvalsh(np.cov(np.random.default_rng(7).standard_normal((n, N)).T))
    # The largest eigenvalue fluctuates by n^(−2/3)(1+√N/√n)(1/√n+1/√N)^(1/3)·… ≈ 0.02
    # (Tracy–Widom); five of those.
    assert values[-1] < noise_edge(n, N, 1.0) + 0.1
    assert values[-1] > noise_edge(n, N, 1.0) - 0.1
    # Eigenvalues are rigid: each sits within a few spacings, (b − a)/N, of its quantile.
    spacing = 4 * np.sqrt(aspect(n, N)) / N
    assert np.median(values) == pytest.approx(noise_median(aspect(n, N)), abs=3 * spacing)


def test_median_at_the_ends_and_against_a_published_constant() -> None:
    assert noise_median(1e-9) == pytest.approx(1.0, abs=1e-4)
    # gavish2014: the threshold for unknown noise is (4/√3)/√μ_1 = 2.858 times the median singular
    # value of a square matrix
    assert 4 / np.sqrt(3) / np.sqrt(noise_median(1.0)) == pytest.approx(2.858, abs=1e-3)


@pytest.mark.parametrize(
    ("n", "N", "spikes"),
    [(1000, 100, 0), (1000, 100, 5), (1000, 100, 40), (100, 300, 3), (2000, 50, 20)],
)
def test_unknown_variance_is_found_under_spikes(n: int, N: int, spikes: int) -> None:
    X = two_levels(n, N, max(1, spikes), 4000.0 if spikes else 1e-9, 0.0, seed=8)
    Y = X + 5.0 * np.random.default_rng(9).standard_normal((n, N))
    found = noise_variance(np.linalg.eigvalsh(np.cov(Y.T)), n)
    # Rigidity again: the bulk's median is right to a few spacings; taking spikes off one by one
    # costs at most as much.
    bulk = min(n, N) - spikes
    assert found == pytest.approx(25.0, rel=4 * 4 * np.sqrt(aspect(n, N)) / bulk + 0.02)


def test_unknown_variance_of_a_degenerate_spectrum() -> None:
    assert noise_variance(np.zeros(3), 10) == 0.0
    assert noise_variance(np.array([5.0, 0.0, 0.0]), 10) == 0.0
    assert noise_variance(np.array([2.0]), 100) == pytest.approx(2.0 / noise_median(0.01))


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


def test_optimal_gain_with_directions_known_is_bayes_own() -> None:
    data = np.array([100.0, 25.0, 1.0, 0.0])
    np.testing.assert_allclose(optimal_gain(data + 25.0, 25.0, beta=0.0), data / (data + 25.0))
    np.testing.assert_array_equal(optimal_gain(data, 0.0, beta=0.1), 1.0)


def test_optimal_gain_is_the_best_factor_for_a_spiked_matrix() -> None:
    # Asymptotic optimality, checked against the best factor in hindsight: c = <Y-direction, X> / s
    # per direction.
    n, N, p = 1500, 300, 3
    rng = np.random.default_rng(12)
    X = two_levels(n, N, p, 3.0, 0.0, seed=13)
    Y = X + rng.standard_normal((n, N))
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    best = np.einsum("ij,ik,jk->j", U[:, :p], X @ Vt[:p].T, np.eye(p)) / s[:p]
    gain = optimal_gain(s[:p] ** 2 / n, 1.0, beta=N / n)
    # Spike eigenvalues and overlaps fluctuate like n^(−1/2) ≈ 0.026; three of those.
    np.testing.assert_allclose(gain, best, atol=0.08)


def test_unknown_variance_needs_no_law_and_nearly_equals_the_known_one() -> None:
    X = two_levels(1000, 50, 5, 400.0, 0.0, seed=14)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=15)
    known = auditor.attack("spectral-filter", release, shrinkage="optimal")
    unknown = auditor.attack(
        "spectral-filter", release, shrinkage="optimal", noise_variance="unknown"
    )
    assert unknown.distortion == pytest.approx(known.distortion, rel=0.02)
