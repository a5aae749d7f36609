"""Statements of the papers that no scenario measures."""

import numpy as np
import pytest

import auditor
from auditor.data.sources.built_in import DiscretisedGaussian
from auditor.schemes.corner_wave import min_covariance
from auditor.schemes.generalisation.classes import Rules, mondrian
from auditor.schemes.replacement.law import UniformLaw, odds_ratio
from auditor_attacks.posterior import Bayes

LEVELS = np.array([0.25, 0.4, 1.0, 2.5])
K_X = np.array([[4.0, 1.5], [1.5, 2.0]])


@pytest.mark.parametrize("m", [2, 10, 200])
def test_huang2005_section_1_numbers_that_are_the_same_are_found_by_their_mean(m):
    z = np.random.default_rng(1).standard_normal(400)
    release = auditor.perturb(
        np.tile(z[:, None], m), "independent", [1.0], noise={"variance": 25.0}, seed=2
    )
    V, noise = z.var(), 25.0 / m
    found = auditor.attack("bayes-estimate", release)
    assert found.theory == pytest.approx(V * noise / (V + noise), rel=1e-9)
    # one number, m times
    np.testing.assert_allclose(found.values, np.tile(found.values[:, :1], m), atol=1e-9)


def test_li2011_equation_26_is_the_inverse_of_corner_wave_noise_and_equation_25_follows():
    """Block tridiagonal, with c_i = σ_1²/(σ_{i+1}² − σ_i²)."""
    c = LEVELS[0] / np.diff(LEVELS)
    T = (
        np.diag(np.r_[c[0] * LEVELS[1] / LEVELS[0], c[:-1] + c[1:], c[-1]])
        - np.diag(c, 1)
        - np.diag(c, -1)
    )
    first = np.linalg.inv(LEVELS[0] * K_X)
    inverse = np.linalg.inv(np.kron(min_covariance(LEVELS), K_X))
    np.testing.assert_allclose(np.kron(T, first), inverse, rtol=1e-9, atol=1e-9)
    H = np.tile(np.eye(2), (len(LEVELS), 1))
    np.testing.assert_allclose(H.T @ inverse @ H, first, rtol=1e-9)


def test_xiao2009_section_7_the_value_shown_is_the_likeliest_unless_others_are_51_times_as_frequent():
    p, s = 0.5, 50
    assert odds_ratio(p, s) == pytest.approx(51.0)
    law, shown = UniformLaw((p,), s, True), np.arange(s)
    for odds, likeliest in ((50.9, 0), (51.1, 1)):
        prior = np.ones(s)
        prior[1] = odds
        assert Bayes(prior / prior.sum(), law).posterior([shown[:1]]).argmax() == likeliest
    prior = DiscretisedGaussian().weights()
    likeliest = Bayes(prior, law).posterior([shown]).argmax(axis=1)
    np.testing.assert_array_equal(likeliest == shown, prior * 51.0 > prior.max())
    assert likeliest[0] in (24, 25)  # who is shown 1 believes in the middle


def test_li2011_equations_27_to_29_draw_by_the_factors_of_two_small_matrices():
    """(L_Σ ⊗ L_0) vec(N) = vec(L_0 N L_Σᵀ); L_Σ sums independent increments."""
    L_Sigma, L_0 = np.linalg.cholesky(min_covariance(LEVELS)), np.linalg.cholesky(K_X)
    increments = np.sqrt(np.diff(LEVELS, prepend=0.0))
    np.testing.assert_allclose(L_Sigma, np.tril(np.ones((4, 4))) * increments, atol=1e-12)
    whole = np.linalg.cholesky(np.kron(min_covariance(LEVELS), K_X))
    N = np.random.default_rng(3).standard_normal((2, 4))
    np.testing.assert_allclose(
        whole @ N.ravel(order="F"), (L_0 @ N @ L_Sigma.T).ravel(order="F"), atol=1e-12
    )


def test_liu2008_figure_12_1_eigenvalues_of_a_random_matrix_fill_a_semicircle():
    """Density (2/π)√(1 − x²); shares are exact to some log(p)/p = 0.015."""
    p = 400
    A = np.random.default_rng(4).standard_normal((p, p))
    x = np.clip(np.linalg.eigvalsh((A + A.T) / np.sqrt(8 * p)), -1.0, 1.0)
    share = 0.5 + (x * np.sqrt(1 - x**2) + np.arcsin(x)) / np.pi
    assert np.abs(share - (np.arange(p) + 0.5) / p).max() < 0.015


def test_liu2008_section_5_with_many_quasi_identifiers_k_anonymity_leaves_little():
    """2,048 normal records, halved eight times in classes of eight; 2/π of a variance each time.

    Sixteen attributes keep at most 1 − 8/16 · 2/π = 0.68 of their variance within classes."""
    X, left = np.random.default_rng(5).standard_normal((2048, 16)), {}
    for attributes in (1, 4, 16):
        Q = X[:, :attributes]
        numbers = mondrian(Q, np.zeros(len(Q), dtype=np.intp), Rules(5, np.zeros(1))).numbers
        parts = [np.flatnonzero(numbers == k) for k in np.unique(numbers)]
        left[attributes] = sum(len(rows) * Q[rows].var(axis=0) for rows in parts).mean() / len(Q)
    assert left[1] < 0.01 < left[4] < 0.5 < left[16] < 0.69
    # by the sides of their means only: every record is unique, or none
    for attributes, alone in ((4, 0.0), (16, (1 - 2**-16) ** 2047)):
        counts = np.unique(X[:, :attributes] > 0, axis=0, return_counts=True)[1]
        assert (counts == 1).sum() / len(X) == pytest.approx(alone, abs=0.02)
