"""PCA filtering: huang2005, section 5.2.2 and Theorem 5.2."""

import numpy as np
import pytest

import auditor
from auditor.base.errors import AuditorError, NotApplicable
from auditor_attacks.pca_filter import VarianceShare, components_kept
from tests.attacks.tables import table


def naive_pca(Y, mean, C, p):
    """Section 5.2.2."""
    values, Q = np.linalg.eig(C)
    Q_hat = Q[:, np.argsort(values)[::-1][:p]]
    return (Y - mean) @ Q_hat @ Q_hat.T + mean


SPECTRUM = [400.0, 390.0, 100.0, 12.0, 8.0, 1.0]


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("p", [1, 4])
def test_known_covariance_equals_a_naive_transcription(p, mean):
    X = table(150, SPECTRUM, mean=mean)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=2)
    values = auditor.attack("pca-filter", release, components=p).values
    expected = naive_pca(release.copies[0], X.mean(axis=0), np.cov(X.T, ddof=0), p)
    np.testing.assert_allclose(values - mean, expected - mean, atol=1e-6)


@pytest.mark.parametrize(
    "noise",
    [{"variance": 25.0}, {"matrix": np.diag([50.0, 5.0, 20.0, 10.0, 40.0, 30.0]).tolist()}],
    ids=["white", "coloured"],
)
def test_estimated_covariance_equals_a_naive_transcription(noise):
    release = auditor.perturb(table(150, SPECTRUM), "independent", [1.0], noise=noise, seed=3)
    Y = release.copies[0]
    Sigma_r = release.noise_covariance()
    expected = naive_pca(Y, Y.mean(axis=0), np.cov(Y.T) - Sigma_r, 2)  # Theorems 5.1 and 8.2
    by_knowledge = auditor.attack(
        "pca-filter", release, components=2, knowledge={"estimated": {"rows": 150}}
    )
    by_parameter = auditor.attack("pca-filter", release, components=2, covariance="copies")
    np.testing.assert_allclose(by_knowledge.values, expected, atol=1e-8)
    np.testing.assert_allclose(by_parameter.values, expected, atol=1e-8)
    assert by_knowledge.theory is by_parameter.theory is None


@pytest.mark.parametrize("p", [1, 6])
def test_error_is_the_discarded_variance_and_theorem_5_2s_share_of_the_noise(p):
    # "δ² = σ² p/m" (8), and the variance of dropped components
    X = table(2000, SPECTRUM)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=4)
    estimate = auditor.attack("pca-filter", release, components=p)
    expected = sum(SPECTRUM[p:]) / 6 + 25.0 * p / 6
    assert estimate.theory == pytest.approx(expected, rel=1e-9)
    # Var of the summed squared error over noise draws is (2 tr S² + 4 tr SA)/n with S = σ²Q̂Q̂ᵀ
    # orthogonal to A: 2 σ⁴ p / n
    spread = np.sqrt(2 * 25.0**2 * p / 2000) / 6
    assert abs(estimate.distortion - expected) < 4.5 * spread  # false alarm 7e-6


def test_components_are_checked():
    release = auditor.perturb(table(50, [4.0, 2.0]), "independent", [1.0], seed=6)
    with pytest.raises(NotApplicable, match="components is 3, but there are only 2 attributes"):
        auditor.attack("pca-filter", release, components=3)
    for wrong in (0, 1.5, "gap", {"variance-share": 1.5}, {"share": 0.5}):
        with pytest.raises(AuditorError, match="components"):
            auditor.attack("pca-filter", release, components=wrong)
    shared = auditor.attack("pca-filter", release, components={"variance-share": 0.6})
    np.testing.assert_array_equal(
        shared.values, auditor.attack("pca-filter", release, components=1).values
    )


@pytest.mark.parametrize(
    ("values", "components", "kept"),
    [
        ([400.0, 390.0, 100.0, 12.0], "largest-gap", 2), ([100.0, 100.0, 100.0], "largest-gap", 3), ([100.0, 40.0, -3.0], "largest-gap", 1),
        ([60.0, 30.0, 10.0, 0.0], 0.6, 1), ([60.0, 30.0, 10.0, 0.0], 0.61, 2), ([60.0, 30.0, 10.0, 0.0], 1.0, 3), ([0.0, 0.0], 0.5, 1),
    ],
)  # fmt: skip
def test_components_kept(values, components, kept):
    if components != "largest-gap":
        components = VarianceShare(variance_share=components)
    assert components_kept(np.array(values), components) == kept
