"""SVD filtering: liu2008, section 3.3, the 2σ² rule."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor_attacks.svd_filter import worth_keeping
from tests.attacks.tables import table


def naive_svd(Y: np.ndarray, variance: float) -> np.ndarray:
    """``k = min{j : λ̂_j < 2σ²} − 1``, written with the singular values of the centred copy; k = N when no eigenvalue is below."""
    n, N = Y.shape
    mean = Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    eigenvalues = s**2 / (n - 1)
    below = [j for j, value in enumerate(eigenvalues, start=1) if value < 2 * variance]
    k = min(below) - 1 if below else min(n, N)
    return mean + (U[:, :k] * s[:k]) @ Vt[:k]


def test_the_rule_by_hand() -> None:
    assert worth_keeping(np.array([90.0, 50.0, 49.9, 1.0]), 25.0) == 2
    assert worth_keeping(np.array([90.0, 80.0]), 25.0) == 2  # none below: all are kept
    assert worth_keeping(np.array([40.0, 30.0]), 25.0) == 0


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize(
    "eigenvalues", [[400.0, 100.0, 10.0, 1.0], [400.0, 300.0, 200.0, 100.0], [2.0, 1.0, 0.5, 0.1]]
)
def test_equals_a_naive_transcription(eigenvalues: list[float], mean: float) -> None:
    release = auditor.perturb(
        table(200, eigenvalues, mean=mean), "independent", [1.0], noise={"variance": 25.0}, seed=2
    )
    values = auditor.attack("svd-filter", release).values
    np.testing.assert_allclose(values - mean, naive_svd(release.copies[0], 25.0) - mean, atol=1e-6)


def test_keeping_everything_is_taking_the_copy_for_the_original() -> None:
    release = auditor.perturb(
        table(500, [400.0, 300.0, 200.0]), "independent", [1.0], noise={"variance": 1.0}, seed=3
    )
    np.testing.assert_allclose(
        auditor.attack("svd-filter", release).values, release.copies[0], atol=1e-9
    )


def test_the_rule_is_near_the_best_number_of_directions() -> None:
    eigenvalues = [400.0, 100.0, 40.0, 15.0, 5.0, 1.0, 0.2, 0.1]
    X = table(5000, eigenvalues)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=4)
    best = min(auditor.attack("pca-filter", release, components=p).distortion for p in range(1, 9))
    # 40 against 25: the rule keeps three. Directions estimated from 5,000 rows cost a little over
    # known ones.
    assert auditor.attack("svd-filter", release).distortion == pytest.approx(best, rel=0.01)


def test_with_few_rows_an_attribute_it_keeps_noise_and_shrinkage_does_not() -> None:
    # Q = 3 is below 5.8: pure noise reaches σ²(1 + 1/√3)² = 2.49 σ²
    X = table(300, [200.0] * 2 + [0.01] * 98)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 25.0}, seed=5)
    plain, spectral = (
        auditor.attack("svd-filter", release),
        auditor.attack("spectral-filter", release),
    )
    shrunk = auditor.attack("svd-filter", release, shrinkage="optimal")
    assert plain.distortion > 1.5 * spectral.distortion
    assert shrunk.distortion < spectral.distortion


def test_a_coalition_is_filtered_as_its_precision_weighted_average() -> None:
    release = auditor.perturb(
        table(300, [100.0, 30.0, 1.0]), "independent", [1.0, 4.0], noise={"variance": 5.0}, seed=6
    )
    pooled = 0.8 * release.copies[0] + 0.2 * release.copies[1]
    np.testing.assert_allclose(
        auditor.attack("svd-filter", release).values, naive_svd(pooled, 4.0), atol=1e-9
    )
