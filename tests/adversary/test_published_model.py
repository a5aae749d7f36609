"""Knowledge of a published regression."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.published import LinearModel, check_knowledge, least_squares, with_model
from auditor.base import DataError
from auditor.runs.perturb import as_table
from auditor.scenario.read_plugins import parse_knowledge
from tests.audited import cells

properties = settings(max_examples=40, deadline=None, derandomize=True)


def moments(seed, N=4):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(N, N))
    return rng.normal(size=N), A @ A.T + 0.1 * np.eye(N)


def model(target, on, b, a, s2):
    return LinearModel(target, np.array(on), np.array(b), a, s2)


def test_hand_value():
    mu, K = with_model(np.array([5.0, 0.0]), np.diag([4.0, 1.0]), model(1, [0], [2.0], 1.0, 3.0))
    np.testing.assert_allclose(mu, [5.0, 11.0])
    np.testing.assert_allclose(K, [[4.0, 8.0], [8.0, 19.0]])


def conditional(mu, K, of, on):
    B = K[np.ix_(of, on)] @ np.linalg.inv(K[np.ix_(on, on)])
    return B, mu[of] - B @ mu[on], K[np.ix_(of, of)] - B @ K[np.ix_(on, of)]


@given(
    seed=st.integers(0, 2**32 - 1), order=st.permutations(range(4)), m=st.integers(1, 3),
    known=st.booleans(),
)  # fmt: skip
@properties
def test_the_target_given_predictors_is_as_published_and_the_rest_estimated(seed, order, m, known):
    (mu, K), rng = moments(seed), np.random.default_rng(seed + 1)
    on, t, rest = list(order[:m]), order[m], list(order[m + 1 :])
    b, a, s2 = rng.normal(size=m), float(rng.normal()), float(rng.exponential()) + 0.01
    exact = moments(seed + 2, m) if known else (mu[on], K[np.ix_(on, on)])
    mean, covariance = with_model(mu, K, model(t, on, list(b), a, s2), exact if known else None)
    scale = np.abs(covariance).max()
    for found, wanted in zip(
        conditional(mean, covariance, [t], on), (b[None], [a], [[s2]]), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-7 * scale * np.linalg.cond(exact[1]))
    np.testing.assert_allclose(mean[on], exact[0])
    np.testing.assert_allclose(covariance[np.ix_(on, on)], exact[1])
    np.testing.assert_allclose(mean[rest], mu[rest])
    np.testing.assert_allclose(covariance[np.ix_(rest, rest)], K[np.ix_(rest, rest)])
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * scale
    own = conditional(mu, K, [t], on)
    before = (K[t, rest] - own[0] @ K[np.ix_(on, rest)]) / np.sqrt(own[2])
    np.testing.assert_allclose(
        (covariance[t, rest] - b @ covariance[np.ix_(on, rest)]) / np.sqrt(s2),
        before[0],
        atol=1e-6 * scale,
    )


def linked(rows=400, residual=0.0):
    rng = np.random.default_rng(5)
    x1, x3 = rng.normal(size=(2, rows))
    return np.column_stack([x1, 3 * x1 + 1 + residual * rng.normal(size=rows), x3])


def known_model(target, **more):
    return {"model": {"target": target, "predictors": ["x1"], "rows": 50, "known": True, **more}}


def test_a_deterministic_model_reveals_exactly_whatever_the_noise():
    release = auditor.perturb(linked(), "independent", [1e8], seed=1)
    found = auditor.attack("partial-disclosure", release, knowledge=known_model("x2"))
    np.testing.assert_allclose(found.values[:, 1], linked()[:, 1], atol=1e-6)


def test_llse_of_estimated_moments_with_the_model_put_into_them():
    # all rows: which they are does not matter
    X, known = linked(residual=1.0), {"target": "x2", "predictors": ["x1"], "rows": 400}
    release = auditor.perturb(X, "independent", [0.2, 0.3], seed=1)
    found = auditor.attack("llse", release, knowledge={"model": known})
    y, K_Z = np.hstack(release.copies), release.noise_covariance()
    w = np.array([0.3, 0.2]) / 0.5  # inverse to the noise
    v = w @ np.diag([0.2, 0.3]) @ w
    combined = w[0] * release.copies[0] + w[1] * release.copies[1]
    fitted = least_squares(X.mean(axis=0), np.cov(X.T, bias=True), 1, np.array([0]))
    estimate = np.cov(combined.T) - v * K_Z[:3, :3] / 0.2
    mu, K = with_model(combined.mean(axis=0), estimate, fitted)
    H = np.tile(np.eye(3), (2, 1))
    expected = mu + (y - H @ mu) @ np.linalg.solve(H @ K @ H.T + K_Z, H @ K)
    np.testing.assert_allclose(found.values, expected, atol=1e-8)


def audited(X, knowledge, attack="partial-disclosure"):
    return auditor.run({
        "seed": 4, "data": {"source": "inline", "values": {f"x{j + 1}": list(column) for j, column in enumerate(X.T)}},
        "schemes": [{"name": "independent", "levels": [100]}], "attacks": ["llse", attack], "knowledge": knowledge,
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip


def test_a_model_that_gives_the_target_away_fails_harmless_copies():
    X = linked(residual=0.2)
    safe, leaking = (
        audited(X, knowledge) for knowledge in (["perfect"], ["perfect", known_model("x2")])
    )
    assert [e.status for e in safe.expectations] == ["holds"]
    assert [e.status for e in leaking.expectations] == ["fails"]
    left = [
        r.value
        for r in cells(
            leaking, attack="partial-disclosure", attribute="x2", metric="normalized_error"
        )
    ]
    assert left == [pytest.approx(0.2**2 / np.var(X[:, 1]), rel=0.2)]


def test_names_that_no_column_has():
    table = as_table(linked())
    for known, path in (
        ({"target": "x9", "predictors": ["x1"], "rows": 5}, ("target",)),
        ({"target": "x1", "predictors": ["x2", "x9"], "rows": 5}, ("predictors", 1)),
        (
            {"target": "x1", "coefficients": {"x9": 1}, "intercept": 0, "residual-variance": 1, "rows": 5},
            ("coefficients", "x9"),
        ),
        ({"target": "x1", "predictors": ["x2"], "rows": 401}, ("rows",)),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"did you mean|the table has 400") as error:
            check_knowledge(parse_knowledge({"model": known}), table)
        assert error.value.path == path
