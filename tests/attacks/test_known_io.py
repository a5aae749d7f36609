"""Attacks by known records: inverse, ridge regression and boosting."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.knowledge import KnownRecords
from auditor.audit.numeric.moment_pass import chosen_rows
from auditor.runs.perturb import Release
from auditor_attacks.known_io_map import FEWEST_RECORDS, RIDGES, ridge_map

properties = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def test_hand_value_one_line_through_three_points():
    """Copies 0, 1, 2 and originals 1, 3, 5: x̂ = 1 + 2y, exactly."""
    y, x = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    C = np.cov(np.hstack([x, y]).T, bias=True)
    np.testing.assert_allclose(ridge_map(C[:1, :1], C[:1, 1:], C[1:, 1:], 3, 0.0), [[2.0]])


@given(seed=seeds, N=st.integers(1, 3), k=st.integers(1, 3))
@properties
def test_the_map_is_that_of_lstsq_with_an_intercept(seed, N, k):
    rng = np.random.default_rng(seed)
    p = k * N + 1 + int(rng.integers(1, 40))
    X, Y = (rng.normal(size=(p, N)), rng.normal(size=(p, k * N)) * 10.0 ** rng.integers(-3, 3, size=k * N))  # fmt: skip
    C = np.cov(np.hstack([X, Y]).T, bias=True).reshape(N + k * N, -1)
    W = ridge_map(C[:N, :N], C[:N, N:], C[N:, N:], p, 0.0)
    naive = np.linalg.lstsq(np.hstack([np.ones((p, 1)), Y]), X, rcond=None)[0][1:].T
    scale = Y.std(axis=0)
    np.testing.assert_allclose(W * scale, naive * scale, atol=1e-7)


def naive_gcv(X, Y, ridge):
    p = len(X)
    x, y = (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)
    hat = (y @ np.linalg.pinv(y.T @ y / p + ridge * np.eye(y.shape[1]), rcond=1e-12, hermitian=True) @ y.T / p)  # fmt: skip
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


def test_known_records_are_not_among_those_it_is_judged_on():
    X = np.random.default_rng(1).normal(size=(50, 1))
    release = auditor.perturb(X, "independent", [1.0], seed=2)
    knows = {"known-records": 49}
    estimate = auditor.attack("known-io-regression", release, knowledge=knows, seed=3)
    left = np.setdiff1d(np.arange(50), chosen_rows(KnownRecords(49), 50, 3, 1))
    assert estimate.distortion == pytest.approx(float((estimate.values[left] - X[left])[0, 0] ** 2))


def cells(result, metric="distortion"):
    return [r for r in result.measurements if (r.attack, r.metric, r.attribute) == ("known-io-regression", metric, "*")]  # fmt: skip


def test_theory_by_hand_is_what_the_map_loses_of_the_data_and_lets_through_of_the_noise():
    X = 5.0 + np.random.default_rng(8).lognormal(size=(400, 1))
    release = auditor.perturb(X, "independent", [0.5], seed=0)
    knows = {"known-records": 12}
    estimate = auditor.attack("known-io-regression", release, knowledge=knows, seed=9)
    known = chosen_rows(KnownRecords(12), 400, 9, 1)
    x, y = X[known, 0], np.asarray(release.copies[0])[known, 0]
    w = np.cov(x, y)[0, 1] / y.var(ddof=1)
    offset = x.mean() - w * y.mean()
    rest = np.delete(X[:, 0], known)
    expected = ((offset + w * rest - rest) ** 2).mean() + w**2 * 0.5 * X.var()
    assert estimate.theory == pytest.approx(expected)


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


def signs(rows, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(rows, 1))


def error(attack, release, known, coalition, **more):
    more |= {"knowledge": {"known-records": known}, "seed": 5}
    return auditor.attack(attack, release, coalition=coalition, **more).normalized_error


@pytest.mark.parametrize("known", [3, FEWEST_RECORDS - 1])
def test_of_few_records_it_is_the_ridge_regression(known):
    X = np.random.default_rng(2).exponential(size=(300, 2))
    release = auditor.perturb(X, "independent", [0.3, 0.6], seed=1)
    found, linear = (auditor.attack(name, release, knowledge={"known-records": known}, seed=5, **more).values
                     for name, more in [("known-io-boosting", {}), ("known-io-regression", {"ridge": "gcv"})])  # fmt: skip
    np.testing.assert_allclose(found, linear, rtol=1e-9)


def test_it_comes_near_the_exact_posterior_mean_and_never_below_it():
    """X = ±1."""
    x = signs(6000)
    release = auditor.perturb(x, "independent", [0.3], seed=1)
    found = auditor.attack("known-io-boosting", release, knowledge={"known-records": 1500}, seed=5)
    exact = (np.tanh(release.copies[0] / (0.3 * x.var())) - x) ** 2
    excess = (found.values - x) ** 2 - exact
    assert excess.mean() > -4 * excess.std() / np.sqrt(x.size)
    assert excess.mean() < 0.1 * (0.3 / 1.3 - exact.mean())


LEAKS = {
    "a coin": lambda z, rng: z * rng.choice([-1.0, 1.0], size=z.shape),
    "the other attribute, and a coin": lambda z, rng: z[:, ::-1] * rng.choice([-1.0, 1.0], size=(len(z), 1)),
    "its square": lambda z, rng: (z**2 - 1) / np.sqrt(2),
}  # fmt: skip
"""What the second copy adds to the first, given the first's noise z: uncorrelated with z and as
large."""


@pytest.mark.parametrize(
    "leak",
    [pytest.param(leak, marks=() if leak == "a coin" else pytest.mark.slow) for leak in LEAKS],
)
def test_a_leak_with_exactly_corner_wave_s_covariance_is_found(leak):
    rng = np.random.default_rng(7)
    x, z = rng.normal(size=(2, 6000, 2))
    honest = auditor.perturb(x, "corner-wave", [1.0, 2.0], seed=1)
    leaky = Release(x, (x + z, x + z + LEAKS[leak](z, rng)), honest.levels, honest.scheme)
    gains = {
        name: 1 - error(name, leaky, 1500, [1, 2]) / error(name, leaky, 1500, [1])
        for name in ("known-io-regression", "known-io-boosting")
    }
    assert gains["known-io-regression"] < 0.01
    assert gains["known-io-boosting"] > 0.1
