"""Statements of the papers that no scenario measures: proofs' equations, examples without a figure, the semicircle law."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.data.sources.categories import DiscretisedGaussian
from auditor.schemes.base.plans import min_covariance
from auditor.schemes.generalisation.partition import Rules, mondrian
from auditor.schemes.replacement.law import UniformLaw, odds_ratio
from auditor_attacks.posterior import Bayes

LEVELS = np.array([0.25, 0.4, 1.0, 2.5])
K_X = np.array([[4.0, 1.5], [1.5, 2.0]])


@pytest.mark.parametrize("m", [2, 10, 200])
def test_huang2005_section_1_numbers_that_are_the_same_are_found_by_their_mean(m: int) -> None:
    """m attributes all equal to z: the mean of m copies has noise σ²/m, and BE-DR leaves V·(σ²/m)/(V + σ²/m)."""
    z = np.random.default_rng(1).standard_normal(400)
    release = auditor.perturb(
        np.tile(z[:, None], m), "independent", [1.0], noise={"variance": 25.0}, seed=2
    )
    V, noise = z.var(), 25.0 / m
    found = auditor.attack("bayes-estimate", release)
    assert found.theory == pytest.approx(V * noise / (V + noise), rel=1e-9)
    # one number, m times
    np.testing.assert_allclose(found.values, np.tile(found.values[:, :1], m), atol=1e-9)


def test_li2011_equation_26_is_the_inverse_of_corner_wave_noise_and_equation_25_follows() -> None:
    """Block tridiagonal, with c_i = σ_1²/(σ_{i+1}² − σ_i²); ERRATA: for sorted levels, with K_Z1⁻¹ = K_X⁻¹/σ_1²."""
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


def test_li2011_equations_27_to_29_draw_by_the_factors_of_two_small_matrices() -> None:
    """(L_Σ ⊗ L_0) vec(N) = vec(L_0 N L_Σᵀ); L_Σ of corner-wave levels is the summing matrix times the increments' deviations."""
    L_Sigma, L_0 = np.linalg.cholesky(min_covariance(LEVELS)), np.linalg.cholesky(K_X)
    np.testing.assert_allclose(
        np.kron(L_Sigma, L_0), np.linalg.cholesky(np.kron(min_covariance(LEVELS), K_X)), atol=1e-12
    )
    N = np.random.default_rng(3).standard_normal((2, len(LEVELS)))
    np.testing.assert_allclose(
        np.kron(L_Sigma, L_0) @ N.ravel(order="F"),
        (L_0 @ N @ L_Sigma.T).ravel(order="F"),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        L_Sigma, np.tril(np.ones((4, 4))) * np.sqrt(np.diff(LEVELS, prepend=0.0)), atol=1e-12
    )


@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_liu2008_figure_12_1_eigenvalues_of_a_random_matrix_fill_a_semicircle(law: str) -> None:
    """Of (A + Aᵀ)/(2√(2p)): density (2/π)√(1 − x²) on [−1, 1]. Eigenvalues are rigid: their shares are exact to some log(p)/p = 0.015."""
    p = 400
    rng = np.random.default_rng(4)
    A = (
        rng.standard_normal((p, p))
        if law == "normal"
        else rng.uniform(-np.sqrt(3), np.sqrt(3), (p, p))
    )
    x = np.linalg.eigvalsh((A + A.T) / (2 * np.sqrt(2 * p)))
    inside = np.clip(x, -1.0, 1.0)
    share = 0.5 + (inside * np.sqrt(1 - inside**2) + np.arcsin(inside)) / np.pi
    assert np.abs(share - (np.arange(p) + 0.5) / p).max() < 0.015
    assert abs(x).max() < 1.05


def test_liu2008_section_5_with_many_quasi_identifiers_k_anonymity_leaves_little_and_without_it_everybody_is_alone() -> (
    None
):
    """Aggarwal's point. 2,048 records of independent normals: 8 halvings make classes of 8, of one attribute or of sixteen.

    A normal halved eight times keeps hardly any of its variance. Of sixteen, eight halvings take
    2/π of the variance of one each and leave 1 − 8/16 · 2/π = 0.68 of all, or somewhat less, as the
    widest is cut."""
    X = np.random.default_rng(5).standard_normal((2048, 16))
    left, alone = {}, {}
    for attributes in (1, 4, 16):
        Q = X[:, :attributes]
        parts = mondrian(Q, np.zeros(len(Q), dtype=np.intp), Rules(5))
        left[attributes] = sum(len(rows) * Q[rows].var(axis=0) for rows in parts).mean() / len(Q)
        # whether each attribute is above its mean, no more
        combinations, member = np.unique(Q > 0, axis=0, return_inverse=True)
        alone[attributes] = np.mean(
            np.bincount(member.ravel(), minlength=len(combinations))[member.ravel()] == 1
        )
    assert left[1] < 0.01
    assert left[1] < left[4] < left[16]
    assert 0.5 < left[16] < 0.69
    assert alone[1] == alone[4] == 0
    assert alone[16] == pytest.approx((1 - 2**-16) ** 2047, abs=0.02)


def test_xiao2009_section_7_the_value_shown_is_the_likeliest_unless_others_are_51_times_as_frequent() -> (
    None
):
    """«Always has the highest chance»: so it has up to prior odds of ``1 + s·p/(1 − p)``, which the tails of a normal like Figure 4b's exceed."""
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
