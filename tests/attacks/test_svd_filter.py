"""SVD filtering: liu2008, section 3.3, the 2σ² rule."""

import numpy as np
import pytest

import auditor
from auditor_attacks.svd_filter import worth_keeping
from tests.attacks.tables import table


def naive_svd(Y, variance):
    """``k = min{j ."""
    n, N = Y.shape
    mean = Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    eigenvalues = s**2 / (n - 1)
    below = [j for j, value in enumerate(eigenvalues, start=1) if value < 2 * variance]
    k = min(below) - 1 if below else min(n, N)
    return mean + (U[:, :k] * s[:k]) @ Vt[:k]


def test_the_rule_by_hand():
    assert worth_keeping(np.array([90.0, 50.0, 49.9, 1.0]), 25.0) == 2
    assert worth_keeping(np.array([90.0, 80.0]), 25.0) == 2  # none below: all are kept
    assert worth_keeping(np.array([40.0, 30.0]), 25.0) == 0


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize(
    "eigenvalues", [[400.0, 100.0, 10.0, 1.0], [400.0, 300.0, 200.0, 100.0], [2.0, 1.0, 0.5, 0.1]]
)
def test_equals_a_naive_transcription(eigenvalues, mean):
    release = auditor.perturb(
        table(200, eigenvalues, mean=mean), "independent", [1.0], noise={"variance": 25.0}, seed=2
    )
    values = auditor.attack("svd-filter", release).values
    np.testing.assert_allclose(values - mean, naive_svd(release.copies[0], 25.0) - mean, atol=1e-6)


def test_the_rule_is_near_the_best_number_of_directions():
    eigenvalues = [400.0, 100.0, 40.0, 15.0, 5.0, 1.0, 0.2, 0.1]
    X, noise = table(5000, eigenvalues), {"variance": 25.0}
    release = auditor.perturb(X, "independent", [1.0], noise=noise, seed=4)
    best = min(auditor.attack("pca-filter", release, components=p).distortion for p in range(1, 9))
    assert auditor.attack("svd-filter", release).distortion == pytest.approx(best, rel=0.01)
