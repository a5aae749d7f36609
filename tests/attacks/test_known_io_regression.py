"""Known input–output regression against least squares by hand, its limits, and what known records are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.adversary.knowledge import KnownRecords
from auditor.audit.base import release as audited
from auditor.audit.numeric.known_rows import chosen_rows
from auditor.errors import AuditorError
from auditor_attacks.known_io_regression import RIDGES, ridge_map

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
    X, Y = (
        rng.normal(size=(p, N)),
        rng.normal(size=(p, k * N)) * 10.0 ** rng.integers(-3, 3, size=k * N),
    )
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
    hat = (
        y
        @ np.linalg.pinv(y.T @ y / p + ridge * np.eye(y.shape[1]), rcond=1e-12, hermitian=True)
        @ y.T
        / p
    )
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
    careful = auditor.run(
        scenario(
            "independent", 8, attacks=["llse", {"name": "known-io-regression", "ridge": "gcv"}]
        )
    )
    assert value(careful, "known-io-regression") < 0.8 * value(plain, "known-io-regression")


def test_pooling_corner_wave_copies_gives_nothing():
    result = auditor.run(
        scenario(
            "corner-wave",
            500,
            expect=[{"no-collusion-gain": {"attack": "known-io-regression", "margin": 0.05}}],
        )
    )
    assert value(result, "known-io-regression", "collusion_gain") < 0.01
    assert [e.status for e in result.expectations] == ["holds"]


def test_known_records_are_not_among_those_it_is_judged_on():
    """With p = n − 1 records known and one left, the error is that one's: so another than the mean over the table."""
    X = np.random.default_rng(1).normal(size=(50, 1))
    release = auditor.perturb(X, "independent", [1.0], seed=2)
    estimate = auditor.attack(
        "known-io-regression", release, knowledge={"known-records": 49}, seed=3
    )
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
    estimate = auditor.attack(
        "known-io-regression", release, knowledge={"known-records": 60}, seed=9
    )
    known = chosen_rows(KnownRecords(60), 300, 9, 1)
    design = np.hstack([np.ones((300, 1)), *release.copies])
    coefficients = np.linalg.lstsq(design[known], X[known], rcond=None)[0]
    np.testing.assert_allclose(estimate.values, design @ coefficients, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("coalition", [[1], [1, 2]], ids=str)
@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_copies_with_other_columns_are_regressed_on_too(dimensions, coalition):
    """A random projection to fewer, as many, or more columns; against least squares written out, on rows far from zero."""
    X = 1e4 + np.random.default_rng(6).lognormal(size=(200, 3))
    release = auditor.perturb(
        X, "random-projection", [0, 0], seed=1, dimensions=dimensions, copies=2
    )
    estimate = auditor.attack(
        "known-io-regression", release, coalition=coalition, knowledge={"known-records": 40}, seed=9
    )
    known = chosen_rows(KnownRecords(40), 200, 9, 1)
    Y = np.hstack([release.copies[copy - 1] for copy in coalition])
    x, y = X[known] - X[known].mean(axis=0), Y[known] - Y[known].mean(axis=0)
    expected = (
        X[known].mean(axis=0) + (Y - Y[known].mean(axis=0)) @ np.linalg.lstsq(y, x, rcond=1e-10)[0]
    )
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


def cells(result, metric="distortion"):
    return [
        r
        for r in result.measurements
        if (r.attack, r.metric, r.attribute) == ("known-io-regression", metric, "*")
    ]


def test_theory_by_hand_is_what_the_map_loses_of_the_data_and_lets_through_of_the_noise():
    """One attribute, one copy: (1 − w)² Var + (bias)² + w² σ² K over the records that are not known, w by least squares on those that are."""
    X = 5.0 + np.random.default_rng(8).lognormal(size=(400, 1))
    release = auditor.perturb(X, "independent", [0.5], seed=0)
    estimate = auditor.attack(
        "known-io-regression", release, knowledge={"known-records": 12}, seed=9
    )
    known = chosen_rows(KnownRecords(12), 400, 9, 1)
    x, y = X[known, 0], np.asarray(release.copies[0])[known, 0]
    w = np.cov(x, y)[0, 1] / y.var(ddof=1)
    offset = x.mean() - w * y.mean()
    rest = np.delete(X[:, 0], known)
    assert estimate.theory == pytest.approx(
        ((offset + w * rest - rest) ** 2).mean() + w**2 * 0.5 * X.var()
    )


MAPS = [
    {"name": "independent", "levels": [0.3, 0.6]}, {"name": "corner-wave", "levels": [0.3, 0.6]},
    {"name": "independent", "levels": [0.3, 0.6], "distribution": "uniform"},
    {"name": "rotation-noise", "levels": [0.3, 0.6]}, {"name": "rotation-noise", "levels": [0.3, 0.6], "noise": "corner-wave"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "count"), [*zip(MAPS, [4, 30, 4, 30, 4], strict=True), (MAPS[0], 30)], ids=str
)
@pytest.mark.slow
def test_measured_errors_scatter_about_theory_whatever_the_map(scheme, count):
    """150 draws of noise and of known records on one skewed table: measurement less theory is 0 on average, within 4 standard errors
    (one false alarm in 16,000 a case)."""
    result = auditor.run({
        "seed": 3, "data": {"source": "components", "shapes": ["exponential", "gamma"], "mean": 3, "ratio": 2, "rows": 200},
        "schemes": [scheme], "knowledge": [{"known-records": count}], "coalitions": ["singles", "all"],
        "attacks": ["known-io-regression"], "replicates": 150,
    })  # fmt: skip
    for coalition in [(1,), (2,), (1, 2)]:
        off = np.array([r.value - r.theory for r in cells(result) if r.coalition == coalition])
        assert len(off) == 150
        assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(150)


def test_an_expectation_on_theory_holds_and_a_wrong_theory_does_not():
    result = auditor.run(
        scenario("corner-wave", 200, expect=[{"matches-theory": {"attack": "known-io-regression"}}])
    )
    assert [e.status for e in result.expectations] == ["holds"]
    wrong = [r._replace(theory=r.theory * 1.5) for r in cells(result) if r.theory is not None]
    from auditor.expectations.theory import compare
    from auditor.results.records import cells as grouped

    groups = list(grouped(wrong).values())
    assert compare(groups, [1.5 * r[0].theory for r in groups], 0.5).status == "fails"


def test_two_known_records_have_an_error_bar_too():
    """Two records leave no tenth out that would tell anything; drawing two others does."""
    result = auditor.run(scenario("independent", 2) | {"replicates": 1})
    found = [
        r
        for r in result.measurements
        if r.attack == "known-io-regression" and r.status == "ok" and r.metric == "distortion"
    ]
    assert found
    assert all(
        r.theory is not None and r.std_error is not None and r.std_error > 0.05 * r.value
        for r in found
    )


@pytest.mark.parametrize(("p", "k"), [(8, 1), (20, 1), (20, 3)])
@pytest.mark.slow_after_first
def test_what_so_many_records_teach_on_normal_data(p, k):
    """Over known records too: residual · (1 + 1/p) (p − 2) / (p − kN − 2), exact for jointly normal rows; 4,000 draws, 4 standard errors."""
    rng = np.random.default_rng(p + k)
    K = np.array([[4.0, 1.5], [1.5, 1.0]])
    d, half = 2 * k, np.linalg.cholesky(K)
    whole = np.kron(np.ones((k + 1, k + 1)), K) + np.diag([0.0, 0.0] + [0.7] * d)
    residual = np.trace(K - whole[:2, 2:] @ np.linalg.solve(whole[2:, 2:], whole[2:, :2]))
    found = []
    for _ in range(4000):
        X = rng.normal(size=(p, 2)) @ half.T
        V = np.hstack([X, *(X + np.sqrt(0.7) * rng.normal(size=(p, 2)) for _ in range(k))])
        C, mean = np.cov(V.T, bias=True), V.mean(axis=0)
        W = ridge_map(C[:2, :2], C[:2, 2:], C[2:, 2:], p, 0.0)
        R, c = np.hstack([np.eye(2), -W]), mean[:2] - W @ mean[2:]
        found.append(np.trace(R @ whole @ R.T) + c @ c)
    expected = residual * (1 + 1 / p) * (p - 2) / (p - d - 2)
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / np.sqrt(len(found))


@pytest.mark.parametrize("scheme", [
    {"name": "rotation"}, {"name": "rotation", "translation": True}, {"name": "random-projection", "dimensions": 3},
    {"name": "rotation-noise", "levels": [0.1, 0.3]}, {"name": "rotation-noise", "levels": [0.2], "translation": True, "noise": "corner-wave"},
], ids=str)  # fmt: skip
@pytest.mark.slow_after_first
def test_data_far_from_the_origin_are_rebuilt_as_well(scheme, tmp_path, monkeypatch):
    """At 10⁸ standard deviations: moments of a turned copy about the *original's* mean would be rounding and little else."""
    # two tables, the same noise
    monkeypatch.setattr(audited, "noise_seed", lambda source, seed, fingerprint: seed)
    X = np.random.default_rng(0).gamma(2.0, size=(600, 3))
    found = []
    for offset in (0.0, 1e8):
        np.savetxt(
            tmp_path / "x.csv",
            X + offset * np.array([1.0, -2.0, 0.5]),
            delimiter=",",
            header="a,b,c",
            comments="",
            fmt="%.9f",
        )
        result = auditor.run({
            "seed": 1, "data": {"source": str(tmp_path / "x.csv")}, "schemes": [scheme], "knowledge": [{"known-records": 40}],
            "coalitions": ["singles", "all"], "attacks": ["known-io-regression"], "measures": [{"within": [0.5]}],
        })  # fmt: skip
        found.append(
            [(r.value, r.theory) for r in result.measurements if r.attack == "known-io-regression"]
        )
    assert len(found[0]) > 4
    for near, far in zip(*found, strict=True):
        assert far[0] == pytest.approx(near[0], rel=2e-3, abs=1e-9)
        assert (far[1] is None) == (near[1] is None)


def test_known_records_that_span_leave_nothing_of_a_matrix_and_theory_says_so():
    for scheme, count, expected in [({"name": "rotation"}, 20, 0.0), ({"name": "random-projection", "dimensions": 4}, 20, 0.0),
                                    ({"name": "random-projection", "dimensions": 2}, 20, None)]:  # fmt: skip
        result = auditor.run({
            "seed": 3, "data": {"source": "components", "shapes": ["exponential", "gamma", "laplace"], "rows": 300}, "schemes": [scheme],
            "knowledge": [{"known-records": count}], "attacks": ["known-io-regression"], "expect": [{"matches-theory": {}}],
        })  # fmt: skip
        assert [r.theory for r in cells(result)] == [expected]
        assert (cells(result)[0].value == 0.0) == (expected == 0.0)
        assert result.expectations[0].status == ("holds" if expected == 0.0 else "undecided")
