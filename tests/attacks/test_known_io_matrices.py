"""Known records under projections and rotations."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gamma
from scipy.stats import multivariate_normal, norm

import auditor
from auditor.base import NotApplicable
from auditor.numerics.linear_algebra import haar
from auditor.schemes.linear_maps import cosine_transform
from auditor_attacks.known_io_matrix import (
    FittingRotations,
    KnownSpan,
    ProjectionMAP,
    RotationGuess,
    success_probability,
)
from auditor_attacks.transform_match import Named


def case(n, p, N=4, seed=0, variance=0.5):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, N)) * np.sqrt(variance)
    X_p, x = rng.standard_normal((p, N)), rng.standard_normal((1, N))
    return M, X_p, x, rng


def stacked_log_density(X_p, x, Y_p, y, variance):
    A = np.vstack([X_p, x]).T
    K = variance * np.kron(A.T @ A, np.eye(Y_p.shape[1]))
    return multivariate_normal(cov=K).logpdf(np.concatenate([Y_p.ravel(), y.ravel()]))


@pytest.mark.parametrize(("n", "p"), [(6, 1), (6, 2), (8, 3)])
def test_closed_form_and_numerical_optimum_agree(n, p):
    M, X_p, x, rng = case(n, p, seed=n + p)
    known = KnownSpan.of(X_p, X_p @ M.T)
    y = x @ M.T
    away = known.rest @ np.eye(4 - p)[0]
    closed = ProjectionMAP(known, 0.5, away).rows([y])[0]
    how = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}

    def unlikely(v):
        return -stacked_log_density(X_p, v, X_p @ M.T, y, 0.5)

    def found(start):
        return minimize(unlikely, start, method="Nelder-Mead", options=how)

    best = min((found(rng.standard_normal(4)) for _ in range(2)), key=lambda each: each.fun)
    assert unlikely(closed) == pytest.approx(best.fun, abs=1e-7)
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


def chance(length, distance, tolerance, unknown):
    return float(
        success_probability(np.array([length]), np.array([distance]), tolerance, unknown)[0]
    )


def printed(length, distance, tolerance):
    return (1.0 if length * tolerance >= 2 * distance else float(np.arcsin(length * tolerance / (2 * distance)) * 2 / np.pi))  # fmt: skip


def cap_by_quadrature(theta, c):
    """Share of the sphere S^{c−1} within an angle."""
    whole = np.sqrt(np.pi) * gamma((c - 1) / 2) / gamma(c / 2)
    return quad(lambda t: np.sin(t) ** (c - 2), 0, theta)[0] / whole


@pytest.mark.parametrize("c", [2, 3, 11])
@pytest.mark.parametrize("tolerance", [0.1, 1.4142135623730951, 1.95])
def test_the_chance_is_the_share_of_a_sphere(c, tolerance):
    assert chance(1.0, 1.0, tolerance, c) == pytest.approx(
        cap_by_quadrature(2 * np.arcsin(tolerance / 2), c), abs=1e-7
    )


def test_hand_values():
    assert chance(1, 1, 1, 1) == 0.5  # two maps: the right one and its mirror
    assert chance(1, 1, 1, 2) == pytest.approx(1 / 3)  # 60 degrees to either side
    assert chance(1, 1, 1, 3) == pytest.approx(0.25)  # Archimedes: (1 − cos 60°)/2
    assert chance(1, 1, np.sqrt(2), 5) == pytest.approx(0.5)  # a half sphere
    assert chance(1, 0, 1e-9, 4) == 1.0
    assert chance(3, 1, 0.7, 4) == 1.0  # no point of the sphere is farther than 2d
    assert chance(1, 1, 0.3, 0) == 1.0


def known_pairs(c, seed, N=7):
    rng = np.random.default_rng(seed)
    M, X_p, x = haar(N, rng), rng.standard_normal((N - c, N)), rng.standard_normal((1, N))
    return M, X_p, x, rng


@pytest.mark.parametrize(("c", "tolerance"), [(1, 0.4), (3, 0.9), (6, 0.9)])
@pytest.mark.slow_after_first
def test_measured_success_is_the_exact_curve(c, tolerance):
    """4,000 guesses; two-sided at 1 in 10,000 for each of 8 cases."""
    M, X_p, x, rng = known_pairs(c, 10 * c)
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    assert fitting.unknown == c
    guess = RotationGuess(fitting, [haar(c, rng) for _ in range(4000)], centre=False, moved=False)
    hits = np.array(
        [np.linalg.norm(found - x) <= tolerance * np.linalg.norm(x) for found in guess.guesses([x @ M.T])],
    )  # fmt: skip
    p = guess.chances([x @ M.T], tolerance)[0]
    assert abs(hits.mean() - p) <= norm.isf(0.00005) * np.sqrt(p * (1 - p) / hits.size) + 1e-12
    # The copy has the lengths and distances of the original.
    V = np.linalg.qr(X_p.T)[0]
    assert p == pytest.approx(
        chance(np.linalg.norm(x), np.linalg.norm(x - x @ V @ V.T), tolerance, c), abs=1e-9
    )


@pytest.mark.parametrize("c", [1, 3, 6])
@pytest.mark.slow_after_first
def test_the_printed_formula_is_wrong_but_for_two(c):
    M, X_p, _, rng = known_pairs(c, 3)
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    x = fitting.rest[:, :1].T  # a record wholly outside the span: d = ‖x‖
    guess = RotationGuess(fitting, [haar(c, rng) for _ in range(20_000)], centre=False, moved=False)
    hits = np.mean([np.linalg.norm(found - x) <= 0.8 for found in guess.guesses([x @ M.T])])
    error = 0.5 / np.sqrt(20_000)
    assert abs(hits - printed(1, 1, 0.8)) > max(0.05, 6 * error)
    assert abs(hits - chance(1, 1, 0.8, c)) < 4 * error
    assert all(chance(1, 1, e, 2) == pytest.approx(printed(1, 1, e)) for e in (0.1, 0.8, 1.5, 1.9))


def test_with_a_translation_everything_is_about_the_known_mean():
    rng = np.random.default_rng(2)
    M, t, X_p = haar(4, rng), rng.standard_normal(4), rng.standard_normal((5, 4))
    fitting = FittingRotations.of(X_p, X_p @ M.T + t, moved=True)
    assert fitting.unknown == 0
    x = rng.standard_normal((3, 4))
    np.testing.assert_allclose(fitting.inside(x @ M.T + t), x, atol=1e-9)
    assert FittingRotations.of(X_p[:4], X_p[:4] @ M.T + t, moved=True).unknown == 1


def table(rows=300, N=5, seed=0):
    rng = np.random.default_rng(seed)
    return 1e3 + rng.exponential(size=(rows, N)) @ rng.normal(size=(N, N)) + 10 * np.arange(N)


def projected(X, dimensions, **more):
    return auditor.perturb(
        X, "random-projection", [0] * more.get("copies", 1), seed=1, dimensions=dimensions,
        matrix="dct", **more,
    )  # fmt: skip


def attacked(release, knowledge, **more):
    return auditor.attack("transform-match", release, knowledge=knowledge, seed=3, **more)


KNOWLEDGE = ["perfect", {"known-records": 1}, {"unmatched-records": 40}]


def test_two_attributes_by_hand():
    """C = [[1, 1], [1, −1]]/√2."""
    C = cosine_transform(2)
    np.testing.assert_allclose(C, np.array([[1, 1], [1, -1]]) / np.sqrt(2), atol=1e-15)
    y, c = np.sqrt([[2.0, 8.0]]), np.array([[3.0, 1.0]]) @ C.T
    named = Named.of(C, c[0], np.zeros((2, 2)), 1, (y.T - c) ** 2)
    np.testing.assert_array_equal(named.kept, [1, 0])
    np.testing.assert_allclose(named.rows([y]), [[3.0, 1.0]])


@pytest.mark.parametrize("knowledge", KNOWLEDGE, ids=str)
@pytest.mark.parametrize("coalition", [[2, 3]], ids=str)
def test_a_transform_that_keeps_all_hides_nothing(knowledge, coalition):
    found = attacked(projected(table(), 5, copies=3), knowledge, coalition=coalition)
    assert found.normalized_error < 1e-20
    assert found.theory == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize(
    ("scheme", "level", "more"),
    [("rotation", 0, {}), ("rotation-noise", 0.1, {}), ("random-projection", 0, {"dimensions": 3})],
)
def test_a_secret_matrix_is_refused_with_the_reason(scheme, level, more):
    release = auditor.perturb(table(), scheme, [level], seed=1, **more)
    with pytest.raises(NotApplicable, match="the matrix of this scheme is secret"):
        attacked(release, {"known-records": 5})
