"""Spectral filtering: liu2008, Protocol 2."""

import numpy as np
import pytest

import auditor
from auditor.numerics.linear_algebra import noise_edge


def two_levels(n, N, p, large, small, seed=1, mean=0.0):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    scale = np.sqrt(np.r_[np.full(p, large), np.full(N - p, small)])
    return mean + (rng.standard_normal((n, N)) * scale) @ V.T


def naive_protocol_2(Y, variance):
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
def test_equals_a_naive_transcription_of_the_protocol(n, N, p, mean):
    X = two_levels(n, N, p, 400.0, 1.0, mean=mean)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=2)
    estimate = auditor.attack("spectral-filter", release)
    np.testing.assert_allclose(
        estimate.values - mean, naive_protocol_2(release.copies[0], 25.0) - mean, atol=1e-6
    )
    assert estimate.theory is None


def test_noise_alone_reaches_the_edge():
    n, N = 2000, 400
    values = np.linalg.eigvalsh(np.cov(np.random.default_rng(7).standard_normal((n, N)).T))
    # The largest eigenvalue fluctuates by n^(−2/3)(1+√N/√n)(1/√n+1/√N)^(1/3)·… ≈ 0.02
    # (Tracy–Widom); five scales.
    assert values[-1] < noise_edge(n, N, 1.0) + 0.1
    assert values[-1] > noise_edge(n, N, 1.0) - 0.1
