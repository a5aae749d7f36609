"""Known input–output regression against least squares by hand, its limits, and what known records are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from attacks.known_io_regression import RIDGES, ridge_map
from auditor.errors import AuditorError
from auditor.gathering import chosen_rows
from auditor.knowledge import KnownRecords

properties = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def scenario(scheme: str, count: int, rows: int = 4000, **more):
    return {
        "seed": 4,
        "data": {"source": "gaussian", "rows": rows, "covariance": [[4.0, 1.5], [1.5, 1.0]]},
        "schemes": [{"name": scheme, "levels": [0.4, 0.7, 1.0]}],
        "knowledge": ["perfect", {"known-records": count}],
        "coalitions": ["singles", "all"],
        "attacks": ["llse", "known-io-regression"],
        "replicates": 8,
        **more,
    }


def value(result, attack, metric="normalized_error", coalition=(1, 2, 3), status="ok"):
    found = [r.value for r in result.measurements
             if (r.attack, r.metric, r.coalition, r.attribute, r.status) == (attack, metric, coalition, "*", status)]  # fmt: skip
    return float(np.mean(found))


def test_hand_value_one_line_through_three_points():
    """Copies 0, 1, 2 and originals 1, 3, 5: x̂ = 1 + 2y, exactly."""
    y, x = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    C = np.cov(np.hstack([x, y]).T, bias=True)
    W = ridge_map(C[:1, :1], C[:1, 1:], C[1:, 1:], 3, 0.0)
    np.testing.assert_allclose(W, [[2.0]])


@given(seed=seeds, N=st.integers(1, 3), k=st.integers(1, 3))
@properties
def test_the_map_is_that_of_lstsq_with_an_intercept(seed, N, k):
    rng = np.random.default_rng(seed)
    p = k * N + 1 + int(rng.integers(1, 40))
    X, Y = rng.normal(size=(p, N)), rng.normal(size=(p, k * N)) * 10.0 ** rng.integers(-3, 3, size=k * N)
    C = np.cov(np.hstack([X, Y]).T, bias=True).reshape(N + k * N, -1)
    W = ridge_map(C[:N, :N], C[:N, N:], C[N:, N:], p, 0.0)
    naive = np.linalg.lstsq(np.hstack([np.ones((p, 1)), Y]), X, rcond=None)[0][1:].T
    scale = Y.std(axis=0)
    np.testing.assert_allclose(W * scale, naive * scale, atol=1e-7)


@given(seed=seeds, p=st.integers(2, 6))
@properties
def test_too_few_records_are_fitted_exactly_by_the_least_map(seed, p):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(p, 2)), rng.normal(size=(p, 8))
    C = np.cov(np.hstack([X, Y]).T, bias=True)
    W = ridge_map(C[:2, :2], C[:2, 2:], C[2:, 2:], p, 0.0)
    fitted = X.mean(axis=0) + (Y - Y.mean(axis=0)) @ W.T
    np.testing.assert_allclose(fitted, X, atol=1e-7)
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    least = np.linalg.pinv(scaled, rcond=1e-10) @ (X - X.mean(axis=0))
    np.testing.assert_allclose(W * Y.std(axis=0), least.T, atol=1e-7)


def naive_gcv(X, Y, ridge):
    p = len(X)
    x, y = (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)
    hat = y @ np.linalg.pinv(y.T @ y / p + ridge * np.eye(y.shape[1]), rcond=1e-12, hermitian=True) @ y.T / p
    df = 1.0 + np.trace(hat)
    return np.sum((x - hat @ x) ** 2) / p / (1.0 - df / p) ** 2


def test_cross_validation_takes_the_ridge_that_a_naive_search_takes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    Y = np.hstack([X + rng.normal(size=(30, 2)) for _ in range(4)])
    C = np.cov(np.hstack([X, Y]).T, bias=True)
    best = min(RIDGES, key=lambda ridge: naive_gcv(X, Y, ridge))
    W = ridge_map(C[:2, :2], C[:2, 2:], C[2:, 2:], 30, "gcv")
    np.testing.assert_allclose(W, ridge_map(C[:2, :2], C[:2, 2:], C[2:, 2:], 30, float(best)))
    assert 0 < best < RIDGES[-1]


def test_more_known_records_approach_the_llse():
    """From above by about kN/p = 6/p of the noise that is left; 8 replicates hold the mean within 2 % for p = 1000."""
    excess = []
    for count in (10, 100, 1000):
        result = auditor.run(scenario("independent", count))
        excess.append(value(result, "known-io-regression") / value(result, "llse") - 1.0)
    assert excess[0] > excess[1] > excess[2]
    assert excess[0] > 0.5
    assert abs(excess[1] - 6 / 100) < 0.05
    assert abs(excess[2]) < 0.02


def test_ridge_helps_who_has_hardly_any_records():
    plain = auditor.run(scenario("independent", 8))
    careful = auditor.run(scenario("independent", 8, attacks=["llse", {"name": "known-io-regression", "ridge": "gcv"}]))
    assert value(careful, "known-io-regression") < 0.8 * value(plain, "known-io-regression")


def test_pooling_corner_wave_copies_gives_nothing():
    result = auditor.run(scenario("corner-wave", 500, expect=[{"no-collusion-gain": {"attack": "known-io-regression", "margin": 0.05}}]))
    assert value(result, "known-io-regression", "collusion_gain") < 0.01
    assert [e.status for e in result.expectations] == ["holds"]


def test_known_records_are_not_among_those_it_is_judged_on():
    """With p = n − 1 records known and one left, the error is that one's: so another than the mean over the table."""
    X = np.random.default_rng(1).normal(size=(50, 1))
    release = auditor.perturb(X, "independent", [1.0], seed=2)
    estimate = auditor.attack("known-io-regression", release, knowledge={"known-records": 49}, seed=3)
    left = np.setdiff1d(np.arange(50), chosen_rows(KnownRecords(49), 50, 3, 1))
    assert len(left) == 1
    assert estimate.distortion == pytest.approx(float((estimate.values[left] - X[left])[0, 0] ** 2))


def test_larger_choices_hold_smaller_ones_and_replicates_choose_anew():
    small, large = (set(chosen_rows(KnownRecords(p), 100, 7, 1)) for p in (10, 40))
    assert small < large
    assert small != set(chosen_rows(KnownRecords(10), 100, 7, 2))


def test_all_records_known_leave_none_to_attack():
    with pytest.raises(AuditorError, match="leaves no record"):
        auditor.run(scenario("independent", 4000))


def test_an_audit_measures_what_the_attack_reconstructs():
    X = np.random.default_rng(5).lognormal(size=(300, 2))
    release = auditor.perturb(X, "independent", [0.5, 1.0], seed=0)
    estimate = auditor.attack("known-io-regression", release, knowledge={"known-records": 60}, seed=9)
    known = chosen_rows(KnownRecords(60), 300, 9, 1)
    design = np.hstack([np.ones((300, 1)), *release.copies])
    coefficients = np.linalg.lstsq(design[known], X[known], rcond=None)[0]
    np.testing.assert_allclose(estimate.values, design @ coefficients, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("coalition", [[1], [1, 2]], ids=str)
@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_copies_with_other_columns_are_regressed_on_too(dimensions, coalition):
    """A random projection to fewer, as many, or more columns; against least squares written out, on rows far from zero."""
    X = 1e4 + np.random.default_rng(6).lognormal(size=(200, 3))
    release = auditor.perturb(X, "random-projection", [0, 0], seed=1, dimensions=dimensions, copies=2)
    estimate = auditor.attack("known-io-regression", release, coalition=coalition, knowledge={"known-records": 40}, seed=9)
    known = chosen_rows(KnownRecords(40), 200, 9, 1)
    Y = np.hstack([release.copies[copy - 1] for copy in coalition])
    x, y = X[known] - X[known].mean(axis=0), Y[known] - Y[known].mean(axis=0)
    expected = X[known].mean(axis=0) + (Y - Y[known].mean(axis=0)) @ np.linalg.lstsq(y, x, rcond=1e-10)[0]
    np.testing.assert_allclose(estimate.values, expected, atol=1e-5)
    if Y.shape[1] >= 3:  # as many columns as attributes: the map is undone
        assert estimate.normalized_error < 1e-12


def test_a_projection_is_audited_by_regression_and_pooling_undoes_it():
    result = auditor.run({
        "seed": 3, "data": {"source": "gaussian", "rows": 500, "covariance": [[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]]},
        "schemes": [{"name": "random-projection", "dimensions": 2, "copies": 2}], "knowledge": [{"known-records": 50}],
        "coalitions": ["singles", "all"], "attacks": ["known-io-regression", "ndr"],
    })  # fmt: skip
    assert value(result, "known-io-regression", coalition=(1,)) > 0.01
    assert value(result, "known-io-regression", coalition=(1, 2)) < 1e-9
    assert {r.status for r in result.measurements if r.attack == "ndr"} == {"not-applicable"}
