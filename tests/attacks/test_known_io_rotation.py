"""known-io-rotation: the exact chance for every number of known dimensions, the printed one shown wrong, and recovery in the span."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma
from scipy.stats import norm

from auditor.adversary.knowledge import KnownRecords
from auditor.audit.numeric.known_rows import chosen_rows
from auditor.errors import AuditorError
from auditor.runs.estimate import attack
from auditor.runs.perturb import perturb
from auditor.schemes.base.transform import haar
from auditor_attacks.known_io_rotation import FittingRotations, RotationGuess, success_probability


def chance(length: float, distance: float, tolerance: float, unknown: int) -> float:
    return float(
        success_probability(np.array([length]), np.array([distance]), tolerance, unknown)[0]
    )


def printed(length: float, distance: float, tolerance: float) -> float:
    """(12.6) as it is printed."""
    return (
        1.0
        if length * tolerance >= 2 * distance
        else float(np.arcsin(length * tolerance / (2 * distance)) * 2 / np.pi)
    )


def cap_by_quadrature(theta: float, c: int) -> float:
    """Share of the sphere S^{c−1} within an angle: ∫ sin^{c−2} over that angle, c ≥ 2."""
    whole = np.sqrt(np.pi) * gamma((c - 1) / 2) / gamma(c / 2)
    return quad(lambda t: np.sin(t) ** (c - 2), 0, theta)[0] / whole


@pytest.mark.parametrize("c", [2, 3, 4, 6, 11])
@pytest.mark.parametrize("tolerance", [0.1, 0.7, 1.2, 1.4142135623730951, 1.7, 1.95])
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


@given(st.integers(1, 12), st.floats(0, 2.5), st.floats(0, 2.5), st.floats(0.05, 1))
def test_a_chance_is_a_chance_and_grows_with_the_tolerance(c, a, b, distance):
    low, high = sorted((a, b))
    assert 0.0 <= chance(1, distance, low, c) <= chance(1, distance, high, c) <= 1.0


def known_pairs(c: int, seed: int, N: int = 7):
    rng = np.random.default_rng(seed)
    M, X_p, x = haar(N, rng), rng.standard_normal((N - c, N)), rng.standard_normal((1, N))
    return M, X_p, x, rng


@pytest.mark.parametrize("c", [1, 2, 3, 6])
@pytest.mark.parametrize("tolerance", [0.4, 0.9])
@pytest.mark.slow_after_first
def test_measured_success_is_the_exact_curve(c, tolerance):
    """4,000 guesses; two-sided at 1 in 10,000 for each of 8 cases."""
    M, X_p, x, rng = known_pairs(c, 10 * c)
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    assert fitting.unknown == c
    guess = RotationGuess(fitting, [haar(c, rng) for _ in range(4000)], centre=False, moved=False)
    hits = np.array(
        [
            np.linalg.norm(found - x) <= tolerance * np.linalg.norm(x)
            for found in guess.guesses([x @ M.T])
        ]
    )
    p = guess.chances([x @ M.T], tolerance)[0]
    assert abs(hits.mean() - p) <= norm.isf(0.00005) * np.sqrt(p * (1 - p) / hits.size) + 1e-12
    # The adversary computes from the copy what needs lengths and distances of the original.
    V = np.linalg.qr(X_p.T)[0]
    assert p == pytest.approx(
        chance(np.linalg.norm(x), np.linalg.norm(x - x @ V @ V.T), tolerance, c), abs=1e-9
    )


@pytest.mark.parametrize("c", [1, 3, 6])
@pytest.mark.slow_after_first
def test_the_printed_formula_is_wrong_but_for_two(c):
    """Off by more than 5 points somewhere, and refuted by 20,000 guesses (more than 6 standard errors); for c = 2 it is the curve."""
    M, X_p, _, rng = known_pairs(c, 3)
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    x = fitting.rest[:, :1].T  # a record wholly outside the span: d = ‖x‖
    guess = RotationGuess(fitting, [haar(c, rng) for _ in range(20_000)], centre=False, moved=False)
    hits = np.mean([np.linalg.norm(found - x) <= 0.8 for found in guess.guesses([x @ M.T])])
    error = 0.5 / np.sqrt(20_000)
    assert abs(hits - printed(1, 1, 0.8)) > max(0.05, 6 * error)
    assert abs(hits - chance(1, 1, 0.8, c)) < 4 * error
    assert all(chance(1, 1, e, 2) == pytest.approx(printed(1, 1, e)) for e in (0.1, 0.8, 1.5, 1.9))


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_every_guess_is_orthogonal_and_fits(p, seed):
    rng = np.random.default_rng(seed)
    M, X_p = haar(5, rng), rng.standard_normal((p, 5))
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    M_hat = (
        fitting.transformed @ fitting.spanned.T
        + fitting.rest_transformed @ haar(fitting.unknown, rng) @ fitting.rest.T
        if p < 5
        else (fitting.transformed @ fitting.spanned.T)
    )
    np.testing.assert_allclose(M_hat @ M_hat.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(X_p @ M_hat.T, X_p @ M.T, atol=1e-7)


def test_in_the_span_and_with_repeated_or_dependent_records_recovery_is_exact():
    rng = np.random.default_rng(5)
    M, base = haar(6, rng), rng.standard_normal((3, 6))
    X_p = np.vstack([base, base[0], 2 * base[1] - base[2], np.zeros(6)])
    fitting = FittingRotations.of(X_p, X_p @ M.T)
    assert fitting.unknown == 3
    guess = RotationGuess(fitting, [haar(3, rng)], centre=False, moved=False)
    inside = rng.standard_normal((4, 3)) @ base
    np.testing.assert_allclose(guess.rows([inside @ M.T]), inside, atol=1e-9)
    assert (guess.chances([inside @ M.T], 1e-6) == 1).all()
    full = rng.standard_normal((9, 6))
    exact = RotationGuess(
        FittingRotations.of(full, full @ M.T), [np.zeros((0, 0))], centre=False, moved=False
    )
    x = rng.standard_normal((5, 6))
    np.testing.assert_allclose(exact.rows([x @ M.T]), x, atol=1e-9)


@pytest.mark.parametrize("offset", [0, 1e4, 1e6, 1e8])
def test_recovery_is_exact_far_from_the_origin(offset):
    """Copies hold sixteen digits of a record's length: what is rebuilt is as good as that."""
    rng = np.random.default_rng(8)
    M, X_p, x = (
        haar(4, rng),
        rng.exponential(size=(12, 4)) + offset,
        rng.exponential(size=(50, 4)) + offset,
    )
    guess = RotationGuess(
        FittingRotations.of(X_p, X_p @ M.T), [np.zeros((0, 0))], centre=False, moved=False
    )
    np.testing.assert_allclose(guess.rows([x @ M.T]), x, rtol=0, atol=1e-13 * max(offset, 1))


def test_a_single_zero_record_teaches_nothing_and_does_not_crash():
    fitting = FittingRotations.of(np.zeros((1, 4)), np.zeros((1, 4)))
    assert fitting.unknown == 4
    assert np.isfinite(
        RotationGuess(fitting, [np.eye(4)], False, False).rows([np.ones((2, 4))])
    ).all()


def test_the_expected_error_is_twice_the_squared_distance():
    """3,000 guesses; two-sided, about 1 in 100,000."""
    M, X_p, x, rng = known_pairs(3, 8)
    guess = RotationGuess(
        FittingRotations.of(X_p, X_p @ M.T), [haar(3, rng) for _ in range(3000)], False, False
    )
    errors = np.array([((found - x) ** 2).sum() for found in guess.guesses([x @ M.T])])
    assert abs(errors.mean() - guess.expected(x)[0]) < 4.5 * errors.std() / np.sqrt(3000)


def test_with_a_translation_everything_is_about_the_known_mean():
    rng = np.random.default_rng(2)
    M, t, X_p = haar(4, rng), rng.standard_normal(4), rng.standard_normal((5, 4))
    fitting = FittingRotations.of(X_p, X_p @ M.T + t, moved=True)
    assert fitting.unknown == 0
    x = rng.standard_normal((3, 4))
    np.testing.assert_allclose(fitting.inside(x @ M.T + t), x, atol=1e-9)
    assert FittingRotations.of(X_p[:4], X_p[:4] @ M.T + t, moved=True).unknown == 1


def test_the_adversary_tells_which_record_is_most_exposed():
    """From its copy and two records alone; in the end that record is hit more often than others, and as often as it was told."""
    X = np.random.default_rng(1).exponential(size=(60, 4))
    release = perturb(X, "rotation", [0], seed=2)
    estimate = attack("known-io-rotation", release, knowledge={"known-records": 2}, seed=3)
    given = chosen_rows(KnownRecords(2), 60, 3, 1)
    V = np.linalg.qr(X[given].T)[0]
    length, distance = np.linalg.norm(X, axis=1), np.linalg.norm(X - X @ V @ V.T, axis=1)
    chances = estimate.chances(0.3)
    np.testing.assert_allclose(chances, success_probability(length, distance, 0.3, 2), atol=1e-7)
    assert (chances[given] == 1).all()
    others = np.setdiff1d(np.arange(60), given)
    # «relative length», section 4.1
    assert others[chances[others].argmax()] == others[(length / distance)[others].argmax()]
    assert (
        attack("known-io-regression", release, knowledge={"known-records": 20}).chances(0.3) is None
    )
    with pytest.raises(AuditorError, match="above 0"):
        estimate.chances(-1)
