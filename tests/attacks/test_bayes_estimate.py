"""Bayes estimate: huang2005, equations 11 and 13."""

import numpy as np
import pytest

import auditor
from auditor_attacks.bayes_estimate import bayes_gain
from tests.attacks.tables import table

SPECTRUM = [400.0, 90.0, 25.0, 10.0, 1.0]
COLOURED = (np.diag([30.0, 20.0, 10.0, 5.0, 1.0]) + 2.0).tolist()


def equation_13(Y, mu_x, Sigma_x, mu_r, Sigma_r):
    ix, ir = np.linalg.inv(Sigma_x), np.linalg.inv(Sigma_r)
    return np.array([np.linalg.inv(ix + ir) @ (ix @ mu_x - ir @ mu_r + ir @ y) for y in Y])


def test_hand_value():
    np.testing.assert_allclose(
        bayes_gain(np.diag([75.0, 0.0]), np.diag([25.0, 25.0])), np.diag([0.75, 0.0]), atol=1e-15
    )


def test_equation_11():
    """Equation 10's mode under white noise, ``(Σ_x⁻¹ + I/σ²)⁻¹ (Σ_x⁻¹ μ_x + y/σ²)``."""
    X = table(60, SPECTRUM, mean=20.0)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=2)
    mu, inverse = X.mean(axis=0), np.linalg.inv(np.cov(X.T, ddof=0))
    gain = np.linalg.inv(inverse + np.eye(5) / 25.0)
    expected = [gain @ (inverse @ mu + y / 25.0) for y in release.copies[0]]
    np.testing.assert_allclose(
        auditor.attack("bayes-estimate", release).values, expected, rtol=1e-9
    )


def test_equation_13():
    X = table(60, SPECTRUM, mean=20.0)
    release = auditor.perturb(X, "independent", [0.5], noise={"matrix": COLOURED}, seed=3)
    expected = equation_13(
        release.copies[0], X.mean(axis=0), np.cov(X.T, ddof=0), np.zeros(5),
        0.5 * np.array(COLOURED),
    )  # fmt: skip
    np.testing.assert_allclose(
        auditor.attack("bayes-estimate", release).values, expected, rtol=1e-9
    )


@pytest.mark.parametrize(
    "noise", ["data", {"matrix": COLOURED}, {"dissimilar": 0.8, "variance": 9.0}]
)
def test_equals_the_joint_llse_on_one_copy_to_rounding(noise):
    X = table(90, SPECTRUM, mean=1e6)
    release = auditor.perturb(X, "independent", [0.7], noise=noise, seed=4)
    for knowledge in ("perfect", {"estimated": {"rows": 40}}):
        bayes = auditor.attack("bayes-estimate", release, knowledge=knowledge)
        llse = auditor.attack("llse", release, knowledge=knowledge)
        np.testing.assert_allclose(bayes.values - 1e6, llse.values - 1e6, rtol=1e-8, atol=1e-8)
        assert (bayes.theory is None) == (llse.theory is None)
        if bayes.theory is not None:
            assert bayes.theory == pytest.approx(llse.theory, rel=1e-11)


def test_error_is_the_sum_of_shrunk_eigenvalues():
    # Σ λσ²/(λ + σ²), averaged over attributes
    n = 4000
    release = auditor.perturb(
        table(n, SPECTRUM), "independent", [1.0], noise={"variance": 25.0}, seed=6
    )
    estimate = auditor.attack("bayes-estimate", release)
    lam = np.array(SPECTRUM)
    expected = float((lam * 25 / (lam + 25)).sum() / 5)
    assert estimate.theory == pytest.approx(expected, rel=1e-9)
    # (2 tr S² + 4 tr SA)/n with S = g²σ², A = (1−g)²λ in the eigenbasis
    g = lam / (lam + 25)
    S, A = g**2 * 25, (1 - g) ** 2 * lam
    spread = np.sqrt((2 * S @ S + 4 * S @ A) / n) / 5
    assert abs(estimate.distortion - expected) < 4.5 * spread  # false alarm 7e-6


def test_estimated_covariance_is_made_positive_semidefinite():
    n, N = 40, 20
    X = table(n, [100.0] * 2 + [0.01] * 18)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=8)
    Y = release.copies[0]
    raw = np.cov(Y.T) - 25.0 * np.eye(N)
    values, V = np.linalg.eigh(raw)
    assert values[0] < -5  # indefinite, and its gain λ/(λ + σ²) would be wild
    clipped = np.clip(values, 0.0, None)
    expected = Y.mean(axis=0) + (Y - Y.mean(axis=0)) @ (V * (clipped / (clipped + 25.0))) @ V.T
    estimate = auditor.attack("bayes-estimate", release, knowledge={"estimated": {"rows": n}})
    np.testing.assert_allclose(estimate.values, expected, atol=1e-9)
    assert estimate.theory is None
