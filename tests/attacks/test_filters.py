"""Filters on eigenvalues: spectral, SVD and PCA, and their bounds."""

from collections import defaultdict

import numpy as np
import pytest

import auditor
from auditor.adversary.attack import LinearAttack
from auditor.audit.attempts import linear as attempts
from auditor.base import AuditorError, NotApplicable
from auditor.numerics.linear_algebra import noise_edge
from auditor_attacks.spectral_filter import SampleFilter, SVDFilter, VarianceShare, components_kept
from tests.attacks.tables import table


def naive_pca(Y, mean, C, p):
    """Section 5.2.2."""
    values, Q = np.linalg.eig(C)
    Q_hat = Q[:, np.argsort(values)[::-1][:p]]
    return (Y - mean) @ Q_hat @ Q_hat.T + mean


def test_filters_of_many_coalitions_are_those_of_each(monkeypatch):
    source = {"source": "cps", "rows": 300, "columns": ["age", "salary"], "standardize": True}
    asked = {"data": source, "schemes": [{"name": "correlated", "levels": [0.1, 0.3, 0.9]}], "coalitions": "subsets", "attacks": ["spectral-filter", "svd-filter"], "knowledge": ["perfect", {"estimated": {"rows": 60}}]}  # fmt: skip
    together = auditor.run(asked).frame()["value"]
    monkeypatch.setattr(SampleFilter, "affine_batch", LinearAttack.affine_batch)
    np.testing.assert_allclose(together, auditor.run(asked).frame()["value"], rtol=1e-9)


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
    np.testing.assert_allclose(by_knowledge.values, expected, atol=1e-8)
    assert by_knowledge.theory is None


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
    assert SVDFilter().kept(np.array([90.0, 50.0, 49.9, 1.0]), 25.0, 0) == 2
    assert SVDFilter().kept(np.array([90.0, 80.0]), 25.0, 0) == 2  # none below: all are kept
    assert SVDFilter().kept(np.array([40.0, 30.0]), 25.0, 0) == 0


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


SCENARIO = {
    "seed": 17, "data": {"source": "gaussian", "rows": 600, "spectrum": {"large": 400, "count": 2, "small": 10, "attributes": 10}, "mean": 30.0},
    "schemes": [
        {"name": "independent", "id": "white", "levels": [1.0, 2.0], "noise": {"variance": 25}},
        {"name": "corner-wave", "id": "like the data", "levels": [0.1, 0.4]},
        {"name": "linearly-dependent", "levels": [0.1, 0.4]},
    ],
    "knowledge": ["perfect", {"known-records": 30}], "coalitions": ["singles", "all"], "measures": ["error-bounds"],
    "attacks": ["spectral-filter", "svd-filter"],
    "sweep": {"schemes[0].noise.variance": [1, 400], "data.spectrum.count": [1, 10]},
}  # fmt: skip


def test_every_cell_of_a_sweep_is_between_its_bounds(monkeypatch):
    monkeypatch.setattr(attempts, "REDRAWS", 2)  # error bars are not tested here
    cells = defaultdict(dict)
    for r in auditor.run(SCENARIO).measurements:
        if r.attribute == "*" and r.attack is not None:
            assert r.status == "ok"
            key = (*r.sweep.values(), r.scheme, r.attack, r.knowledge, r.coalition)
            cells[key][r.metric] = r.value
    bounded = {key: cell for key, cell in cells.items() if "error_floor" in cell}
    # points, schemes, filters, states of knowledge, coalitions
    assert len(bounded) == 4 * 3 * 2 * 2 * 3
    for key, cell in bounded.items():
        assert cell["error_floor"] <= cell["normalized_error"] + 1e-9, key
        assert cell["normalized_error"] <= cell.get("error_ceiling", np.inf) + 1e-9, key
