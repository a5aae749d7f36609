"""Known input-output attack on rotations."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma
from scipy.stats import norm

from auditor.numerics.linear_algebra import haar
from auditor_attacks.known_io_rotation import FittingRotations, RotationGuess, success_probability


def chance(length, distance, tolerance, unknown):
    return float(
        success_probability(np.array([length]), np.array([distance]), tolerance, unknown)[0]
    )


def printed(length, distance, tolerance):
    return (
        1.0
        if length * tolerance >= 2 * distance
        else float(np.arcsin(length * tolerance / (2 * distance)) * 2 / np.pi)
    )


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
        [
            np.linalg.norm(found - x) <= tolerance * np.linalg.norm(x)
            for found in guess.guesses([x @ M.T])
        ]
    )
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
