"""Univariate reconstruction: huang2005, section 4."""

import numpy as np
import pytest

import auditor
from auditor.adversary.view import Histogram
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Overlap
from auditor_attacks.attribute_posterior import histogram_mean, univariate_gain


def table(n=400, seed=1, mean=0.0):
    rng = np.random.default_rng(seed)
    mixing = np.array([[3.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.5, 0.5, 0.2]])
    return mean + rng.standard_normal((n, 3)) @ mixing.T


def uncorrelated(n=300, scales=(5.0, 1.0, 0.3)):
    centred = np.random.default_rng(2).standard_normal((n, len(scales)))
    centred -= centred.mean(axis=0)
    return np.linalg.qr(centred)[0] * np.sqrt(n) * np.array(scales) + 7.0


def test_hand_value():
    X = np.array([0.0, 10.0])  # mean 5, variance 25
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 75.0}, seed=1)
    # gain 25/(25 + 75) = 1/4
    expected = 5.0 + 0.25 * (release.copies[0] - 5.0)
    estimate = auditor.attack("udr", release)
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-12)
    assert estimate.theory == pytest.approx(25.0 * 75.0 / 100.0, rel=1e-12)


def test_estimated_moments_are_those_of_a_naive_transcription():
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


def test_equals_the_bayes_estimate_where_nothing_is_correlated():
    X = uncorrelated()
    noise = {"matrix": [[4.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.01]]}
    release = auditor.perturb(X, "independent", [0.5, 2.0], noise=noise, seed=4)
    for coalition in ([1], [2], [1, 2]):
        udr = auditor.attack("udr", release, coalition=coalition)
        bayes = auditor.attack("bayes-estimate", release, coalition=coalition)
        np.testing.assert_allclose(udr.values, bayes.values, rtol=1e-9, atol=1e-9)
        assert udr.theory == pytest.approx(bayes.theory, rel=1e-9)


def test_limits():
    X = table()
    quiet = auditor.perturb(X, "independent", [1.0], noise={"variance": 1e-12}, seed=6)
    np.testing.assert_allclose(auditor.attack("udr", quiet).values, quiet.copies[0], atol=1e-9)
    loud = auditor.perturb(X, "independent", [1.0], noise={"variance": 1e12}, seed=6)
    np.testing.assert_allclose(
        auditor.attack("udr", loud).values, np.broadcast_to(X.mean(axis=0), X.shape), atol=1e-4
    )
    np.testing.assert_array_equal(
        univariate_gain(np.array([0.0, 1.0]), np.array([0.0, 0.0])), [0.0, 1.0]
    )


def two_clusters():
    """The survey's example (liu2008, section 3.6)."""
    return Histogram(np.array([0.0, 1.0, 5.0, 6.0]), np.array([0.5, 0.0, 0.5]))


def test_hand_values_under_uniform_noise():
    """Noise on [−1, 1]."""
    noise = Overlap(NoiseDensity("uniform", 1 / np.sqrt(3.0)), np.ones(1))
    y = np.array([[1.0], [0.5], [-0.5], [1.5], [5.25], [6.5]])
    found = histogram_mean(two_clusters(), noise, y)
    np.testing.assert_allclose(found, [0.5, 0.5, 0.25, 0.75, 5.5, 5.75], atol=1e-12)


@pytest.mark.parametrize("method", ["em", "iteration"])
def test_uniform_noise_leaves_the_error_worked_out_by_hand(method):
    """Two clusters of width 1 and noise on [−1, 1]."""
    rng = np.random.default_rng(13)
    X = (rng.random((20_000, 1)) + 5.0 * (rng.random((20_000, 1)) < 0.5)).astype(float)
    release = auditor.perturb(
        X, "independent", [1.0], noise={"variance": 1 / 3}, distribution="uniform", seed=14
    )
    estimated = auditor.attack("udr", release, prior="reconstructed", method=method)
    se = float(((estimated.values - X) ** 2).std() / np.sqrt(len(X)))
    # learning costs some half a percent (measured)
    assert 1 / 16 - 4 * se < estimated.distortion < 1.02 / 16 + 4 * se
    assert estimated.distortion < 0.3 * auditor.attack("udr", release).distortion
