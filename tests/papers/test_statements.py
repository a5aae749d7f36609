"""Statements of the papers that no scenario measures."""

import numpy as np
import pytest

import auditor
from auditor.data.sources.categories import DiscretisedGaussian
from auditor.schemes.base.plans import min_covariance
from auditor.schemes.replacement.law import UniformLaw, odds_ratio
from auditor_attacks.posterior import Bayes

LEVELS = np.array([0.25, 0.4, 1.0, 2.5])
K_X = np.array([[4.0, 1.5], [1.5, 2.0]])


@pytest.mark.parametrize("m", [2, 10, 200])
def test_huang2005_section_1_numbers_that_are_the_same_are_found_by_their_mean(m: int) -> None:
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


def test_xiao2009_section_7_the_value_shown_is_the_likeliest_unless_others_are_51_times_as_frequent() -> (
    None
):
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
