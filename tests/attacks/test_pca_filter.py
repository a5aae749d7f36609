"""PCA filtering: huang2005, section 5.2.2 and Theorem 5.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import auditor
from auditor.errors import AuditorError, NotApplicable
from auditor_attacks.pca_filter import VarianceShare, components_kept
from tests.attacks.tables import table


def naive_pca(Y: np.ndarray, mean: np.ndarray, C: np.ndarray, p: int) -> np.ndarray:
    """Section 5.2.2: ``C = Q Λ Qᵀ``; ``Q̂`` the first p columns; ``X̂ = Y Q̂ Q̂ᵀ``; centred first, the mean added back."""
    values, Q = np.linalg.eig(C)
    order = np.argsort(values)[::-1]
    Q_hat = Q[:, order[:p]]
    return (Y - mean) @ Q_hat @ Q_hat.T + mean


SPECTRUM = [400.0, 390.0, 100.0, 12.0, 8.0, 1.0]


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_known_covariance_equals_a_naive_transcription(p: int, mean: float) -> None:
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
def test_estimated_covariance_equals_a_naive_transcription(noise: dict[str, Any]) -> None:
    X = table(150, SPECTRUM)
    release = auditor.perturb(X, "independent", [1.0], noise=noise, seed=3)
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


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_error_is_the_discarded_variance_and_theorem_5_2s_share_of_the_noise(p: int) -> None:
    # "δ² = σ² p/m" (8), and what the components dropped held
    X = table(2000, SPECTRUM)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=4)
    estimate = auditor.attack("pca-filter", release, components=p)
    expected = sum(SPECTRUM[p:]) / 6 + 25.0 * p / 6
    assert estimate.theory == pytest.approx(expected, rel=1e-9)
    # Var of the summed squared error over noise draws is (2 tr S² + 4 tr SA)/n with S = σ²Q̂Q̂ᵀ
    # orthogonal to A: 2 σ⁴ p / n
    spread = np.sqrt(2 * 25.0**2 * p / 2000) / 6
    assert abs(estimate.distortion - expected) < 4.5 * spread  # false alarm 7e-6


def test_all_components_is_taking_the_copy_for_the_original() -> None:
    release = auditor.perturb(table(100, SPECTRUM), "independent", [1.0, 2.0], seed=5)
    for coalition in ([1], [2], [1, 2]):
        pca = auditor.attack("pca-filter", release, components=6, coalition=coalition)
        ndr = auditor.attack("ndr", release, coalition=coalition)
        np.testing.assert_allclose(pca.values, ndr.values, atol=1e-10)
        assert pca.theory == pytest.approx(ndr.theory, rel=1e-12)


def test_components_by_largest_gap() -> None:
    assert components_kept(np.array([400.0, 390.0, 100.0, 12.0]), "largest-gap") == 2
    # the gap from λ_m to 0
    assert components_kept(np.array([100.0, 100.0, 100.0]), "largest-gap") == 3
    assert components_kept(np.array([100.0, 40.0, 5.0, -3.0]), "largest-gap") == 1
    assert components_kept(np.array([7.0]), "largest-gap") == 1


def test_components_by_variance_share() -> None:
    values = np.array([60.0, 30.0, 10.0, 0.0])
    for share, p in ((0.1, 1), (0.6, 1), (0.61, 2), (0.9, 2), (0.95, 3), (1.0, 3)):
        assert components_kept(values, VarianceShare(variance_share=share)) == p
    assert components_kept(np.zeros(3), VarianceShare(variance_share=0.5)) == 1


def test_components_are_checked() -> None:
    release = auditor.perturb(table(50, [4.0, 2.0]), "independent", [1.0], seed=6)
    with pytest.raises(NotApplicable, match="components is 3, but there are only 2 attributes"):
        auditor.attack("pca-filter", release, components=3)
    for wrong in (
        0,
        -1,
        1.5,
        "gap",
        {"variance-share": 0.0},
        {"variance-share": 1.5},
        {"share": 0.5},
    ):
        with pytest.raises(AuditorError, match="components"):
            auditor.attack("pca-filter", release, components=wrong)
    shared = auditor.attack("pca-filter", release, components={"variance-share": 0.6})
    np.testing.assert_array_equal(
        shared.values, auditor.attack("pca-filter", release, components=1).values
    )


def test_shrinkage_with_everything_known_is_bayes_on_the_components_kept() -> None:
    X = table(80, SPECTRUM)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=7)
    shrunk = auditor.attack("pca-filter", release, components=6, shrinkage="optimal")
    bayes = auditor.attack("bayes-estimate", release)
    np.testing.assert_allclose(shrunk.values, bayes.values, atol=1e-8)
    kept = auditor.attack("pca-filter", release, components=2, shrinkage="optimal")
    expected = sum(SPECTRUM[2:]) / 6 + sum(v * 25 / (v + 25) for v in SPECTRUM[:2]) / 6
    assert kept.theory == pytest.approx(expected, rel=1e-9)


def test_shrinkage_and_unknown_variance_from_the_copies() -> None:
    X = table(1000, [400.0] * 5 + [0.01] * 45)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=8)
    options: dict[str, Any] = {"components": 5, "covariance": "copies"}
    plain = auditor.attack("pca-filter", release, **options)
    shrunk = auditor.attack("pca-filter", release, shrinkage="optimal", **options)
    unknown = auditor.attack(
        "pca-filter", release, shrinkage="optimal", noise_variance="unknown", **options
    )
    spectral = auditor.attack("spectral-filter", release, shrinkage="optimal")
    assert shrunk.distortion < plain.distortion
    # the same five directions, the same factor
    np.testing.assert_allclose(shrunk.values, spectral.values, atol=1e-8)
    assert unknown.distortion == pytest.approx(shrunk.distortion, rel=0.02)


@pytest.mark.parametrize("level", [0.2, 1.0, 3.0])
def test_under_noise_shaped_like_the_data_a_direction_dropped_costs_its_variance_and_saves_the_noise_along_it(
    level: float,
) -> None:
    """``level·Σλ + (1 − level)·Σ_{i>p} λ_i`` over N: worse than the copy as it is for a level below 1, whatever p, and better above."""
    X = np.random.default_rng(30).standard_normal((200, 4)) @ np.diag([9.0, 3.0, 2.0, 1.0])
    release = auditor.perturb(X, "corner-wave", [level], seed=31)
    lam = np.sort(np.linalg.eigvalsh(np.cov(X.T, ddof=0)))[::-1]
    ndr = auditor.attack("ndr", release).theory
    for p in range(1, 5):
        theory = auditor.attack("pca-filter", release, components=p).theory
        assert theory == pytest.approx(
            (level * lam.sum() + (1.0 - level) * lam[p:].sum()) / 4, rel=1e-9
        )
        assert theory is not None
        assert ndr == pytest.approx(theory - (1.0 - level) * lam[p:].sum() / 4, rel=1e-9)
    assert auditor.attack("pca-filter", release).theory == pytest.approx(
        (level * lam.sum() + (1.0 - level) * lam[1:].sum()) / 4
    )
