"""Known input-output attack on projections: Theorem 12.2."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from auditor_attacks.known_io_projection import KnownSpan, ProjectionMAP, log_likelihood


def case(n, p, N=4, seed=0, variance=0.5):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, N)) * np.sqrt(variance)
    X_p, x = rng.standard_normal((p, N)), rng.standard_normal((1, N))
    return M, X_p, x, rng


def stacked_log_density(X_p, x, Y_p, y, variance):
    A = np.vstack([X_p, x]).T
    K = variance * np.kron(A.T @ A, np.eye(Y_p.shape[1]))
    return multivariate_normal(cov=K).logpdf(np.concatenate([Y_p.ravel(), y.ravel()]))


def test_the_likelihood_is_theorem_12_2():
    M, X_p, _, rng = case(6, 2)
    known, Y_p = KnownSpan.of(X_p, X_p @ M.T), X_p @ M.T
    y, a, b = rng.standard_normal(6), rng.standard_normal(4), rng.standard_normal(4)
    naive = stacked_log_density(X_p, a, Y_p, y, 0.5) - stacked_log_density(X_p, b, Y_p, y, 0.5)
    assert log_likelihood(a, y, known, 0.5) - log_likelihood(b, y, known, 0.5) == pytest.approx(
        naive, rel=1e-8
    )


@pytest.mark.parametrize(("n", "p"), [(6, 1), (6, 2), (8, 3)])
def test_closed_form_and_numerical_optimum_agree(n, p):
    M, X_p, x, rng = case(n, p, seed=n + p)
    known = KnownSpan.of(X_p, X_p @ M.T)
    y = x @ M.T
    away = known.rest @ np.eye(4 - p)[0]
    closed = ProjectionMAP(known, 0.5, away).rows([y])[0]
    best = max(
        (
            minimize(
                lambda v: -log_likelihood(v, y[0], known, 0.5),
                rng.standard_normal(4),
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000},
            )
            for _ in range(4)
        ),
        key=lambda found: -found.fun,
    )
    assert log_likelihood(closed, y[0], known, 0.5) == pytest.approx(-best.fun, abs=1e-7)
    np.testing.assert_allclose(known.spanned.T @ best.x, known.spanned.T @ closed, atol=1e-4)
    assert np.linalg.norm(known.rest.T @ best.x) == pytest.approx(
        np.linalg.norm(known.rest.T @ closed), rel=1e-4
    )


def test_recovery_is_exact_in_the_span_with_dependent_records_too():
    M, X_p, _, rng = case(5, 2)
    X_p = np.vstack([X_p, X_p[0], X_p[0] + X_p[1]])
    known = KnownSpan.of(X_p, X_p @ M.T)
    inside = rng.standard_normal((6, 4)) @ X_p
    for away in (None, known.rest[:, 0]):
        np.testing.assert_allclose(
            ProjectionMAP(known, 0.5, away).rows([inside @ M.T]), inside, atol=1e-9
        )


def fitted_to(rng, M, X_p, guess):
    known = KnownSpan.of(X_p, X_p @ M.T)
    u = known.rest @ rng.standard_normal(known.rest.shape[1])
    return ProjectionMAP(known, 1 / len(M), u / np.linalg.norm(u) if guess else None)


@pytest.mark.parametrize(("n", "p", "guess"), [(8, 2, True), (2, 5, False), (4, 4, False)])
@pytest.mark.slow_after_first
def test_the_expected_error_is_the_closed_form_given_what_known_records_show(n, p, guess):
    N = 6
    rng = np.random.default_rng(n * p)
    X_p, x = rng.standard_normal((p, N)), rng.standard_normal((1, N))
    beside = np.eye(N) - np.linalg.pinv(X_p) @ X_p
    shown = rng.standard_normal((n, N)) / np.sqrt(n)
    errors, theories = [], set()
    for _ in range(4000):
        M = shown @ (np.eye(N) - beside) + rng.standard_normal((n, N)) / np.sqrt(n) @ beside
        fitted = fitted_to(rng, M, X_p, guess)
        errors.append(((fitted.rows([x @ M.T]) - x) ** 2).sum())
        theories.add(round(float(fitted.expected(x)[0]), 9))
    assert len(theories) == 1
    assert abs(np.mean(errors) - theories.pop()) < 3.9 * np.std(errors) / np.sqrt(4000)
