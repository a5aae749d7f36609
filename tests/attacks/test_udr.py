"""Univariate reconstruction: huang2005, section 4, in the Gaussian closed form."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from attacks.udr import univariate_gain


def table(n: int = 400, seed: int = 1, mean: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mixing = np.array([[3.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.5, 0.5, 0.2]])
    return mean + rng.standard_normal((n, 3)) @ mixing.T


def uncorrelated(n: int = 300, scales: tuple[float, ...] = (5.0, 1.0, 0.3)) -> np.ndarray:
    """A table whose attributes are uncorrelated to rounding."""
    centred = np.random.default_rng(2).standard_normal((n, len(scales)))
    centred -= centred.mean(axis=0)
    return np.linalg.qr(centred)[0] * np.sqrt(n) * np.array(scales) + 7.0


def test_hand_value() -> None:
    X = np.array([0.0, 10.0])  # mean 5, variance 25
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 75.0}, seed=1)
    # gain 25/(25 + 75) = 1/4
    expected = 5.0 + 0.25 * (release.copies[0] - 5.0)
    estimate = auditor.attack("udr", release)
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-12)
    assert estimate.theory == pytest.approx(25.0 * 75.0 / 100.0, rel=1e-12)


def test_estimated_moments_are_those_of_a_naive_transcription() -> None:
    X = table()
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 0.5}, seed=3)
    Y = release.copies[0]
    expected = np.empty_like(Y)
    for j in range(3):
        m, total = Y[:, j].mean(), Y[:, j].var(ddof=1)
        own = max(0.0, total - 0.5)
        expected[:, j] = m + own / (own + 0.5) * (Y[:, j] - m)
    estimate = auditor.attack("udr", release, knowledge={"estimated": {"rows": len(X)}})
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-10, atol=1e-10)
    assert estimate.theory is None


def test_an_attribute_drowned_in_noise_is_put_to_its_mean() -> None:
    X = table() * 1e-3
    for seed in range(20):  # until some sample variance is below the noise's
        release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.0}, seed=seed)
        Y = release.copies[0]
        below = Y.var(axis=0, ddof=1) < 1.0
        if below.any():
            break
    assert below.any()
    values = auditor.attack("udr", release, knowledge={"estimated": {"rows": len(X)}}).values
    expected = np.broadcast_to(Y.mean(axis=0), Y.shape)[:, below]
    np.testing.assert_allclose(values[:, below], expected, atol=1e-12)


def test_equals_the_bayes_estimate_where_nothing_is_correlated() -> None:
    X = uncorrelated()
    noise = {"matrix": [[4.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.01]]}
    release = auditor.perturb(X, "independent", [0.5, 2.0], noise=noise, seed=4)
    for coalition in ([1], [2], [1, 2]):
        udr = auditor.attack("udr", release, coalition=coalition)
        bayes = auditor.attack("bayes-estimate", release, coalition=coalition)
        np.testing.assert_allclose(udr.values, bayes.values, rtol=1e-9, atol=1e-9)
        assert udr.theory == pytest.approx(bayes.theory, rel=1e-9)


def test_never_beats_bayes_where_something_is_correlated() -> None:
    release = auditor.perturb(table(), "independent", [1.0], noise={"variance": 1.0}, seed=5)
    udr, bayes = auditor.attack("udr", release), auditor.attack("bayes-estimate", release)
    assert udr.theory is not None
    assert bayes.theory is not None
    assert udr.theory > 1.2 * bayes.theory


def test_limits() -> None:
    X = table()
    quiet = auditor.perturb(X, "independent", [1.0], noise={"variance": 1e-12}, seed=6)
    np.testing.assert_allclose(auditor.attack("udr", quiet).values, quiet.copies[0], atol=1e-9)
    loud = auditor.perturb(X, "independent", [1.0], noise={"variance": 1e12}, seed=6)
    np.testing.assert_allclose(auditor.attack("udr", loud).values, np.broadcast_to(X.mean(axis=0), X.shape), atol=1e-4)
    np.testing.assert_array_equal(univariate_gain(np.array([0.0, 1.0]), np.array([0.0, 0.0])), [0.0, 1.0])


def test_a_coalition_is_one_copy_of_the_precision_weighted_average() -> None:
    X = table()
    release = auditor.perturb(X, "independent", [1.0, 3.0], noise={"variance": 2.0}, seed=7)
    pooled = 0.75 * release.copies[0] + 0.25 * release.copies[1]  # weights ∝ 1/1, 1/3; variance 1/(1/2 + 1/6) = 1.5
    spread = X.var(axis=0)
    expected = X.mean(axis=0) + spread / (spread + 1.5) * (pooled - X.mean(axis=0))
    np.testing.assert_allclose(auditor.attack("udr", release).values, expected, rtol=1e-10, atol=1e-10)


def test_noise_that_follows_the_data_is_estimated_with_them() -> None:
    X = table()
    release = auditor.perturb(X, "correlated", [0.25], seed=8)
    Y = release.copies[0]
    # Cov(Y) = 1.25 K_X, so the gain is 1/1.25 whatever the estimate
    expected = Y.mean(axis=0) + 0.8 * (Y - Y.mean(axis=0))
    np.testing.assert_allclose(auditor.attack("udr", release, knowledge={"estimated": {"rows": len(X)}}).values, expected, atol=1e-10)
