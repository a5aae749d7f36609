"""Huang, Du and Chen 2005: Theorems 4.1, 5.1 and 8.2."""

import numpy as np
import pytest

import auditor
from auditor.adversary.single_copy import Histogram, estimated_covariance
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap, Product
from auditor_attacks._posterior import histogram_mean, histogram_mode

PRIOR = Histogram(np.array([-2.0, -1.0, 0.0, 3.0, 4.0]), np.array([0.5, 0.1, 0.1, 0.3]))
"""Lopsided, and far from normal: mean, mode and the copy itself are three different guesses."""

NOISES = {
    "gaussian": Combined(NoiseDensity("gaussian", 1.0), np.ones(1)),
    "uniform": Overlap(NoiseDensity("uniform", 1.0), np.full(1, np.sqrt(3.0))),
    "laplace": Product((NoiseDensity("laplace", 1.0),), (0,)),
}


def mean_square_error(y, guesses, channel):
    # middles of cells; every edge of a bin is an edge of a cell
    x = np.linspace(-2.0, 4.0, 60_001)[1:] - 5e-5
    f = PRIOR.density[np.searchsorted(PRIOR.edges, x) - 1] * channel.noise.pdf(y - x)
    f /= f.sum()
    return np.array([(f * (x - z) ** 2).sum() for z in guesses])


@pytest.mark.parametrize("noise", NOISES)
def test_theorem_4_1_the_posterior_mean_has_the_least_mean_square_error(noise):
    channel = NOISES[noise]
    for y in (-2.3, -0.7, 0.4, 1.9, 3.6):
        mean = float(histogram_mean(PRIOR, channel, np.array([[y]]))[0])
        away = np.array([0.0, 0.05, -0.05, 0.5, -0.5, 2.0, -2.0])
        e = mean_square_error(y, mean + away, channel)
        assert e.argmin() == 0
        # the sum's cells are 1e-4 wide; a jump of f adds as much
        np.testing.assert_allclose(e[1:] - e[0], away[1:] ** 2, atol=3e-4)


def test_theorem_4_1_no_other_guess_from_the_copy_does_better_on_records():
    rng, n = np.random.default_rng(41), 40_000
    place = rng.choice(4, n, p=PRIOR.mass)
    x = PRIOR.edges[place] + rng.random(n) * np.diff(PRIOR.edges)[place]
    y = (x + rng.standard_normal(n))[:, None]
    mean = float(PRIOR.mass @ PRIOR.midpoints)
    variance = float(PRIOR.mass @ (PRIOR.midpoints**2 + np.diff(PRIOR.edges) ** 2 / 12)) - mean**2
    channel = NOISES["gaussian"]
    best = (histogram_mean(PRIOR, channel, y) - x) ** 2
    line = mean + variance / (variance + 1.0) * (y[:, 0] - mean)
    for other in (histogram_mode(PRIOR, channel, y), y[:, 0], np.full(n, mean), line):
        worse = (other - x) ** 2 - best
        assert worse.mean() > 5 * worse.std() / np.sqrt(n)


SIGMA_R = {
    "white": ({"variance": 25.0}, 25.0 * np.eye(3)),
    "coloured": ({"matrix": [[9, 2, 0], [2, 4, 1], [0, 1, 16]]}, None),
}


@pytest.mark.parametrize("noise", SIGMA_R)
def test_theorems_5_1_and_8_2_the_copys_covariance_is_the_datas_and_the_noises(noise):
    """``Cov(X_i + R_i, X_j + R_j) = Cov(X_i, X_j) + σ²[i = j]``."""
    n, (spec, Sigma_r) = 20_000, SIGMA_R[noise]
    Sigma_r = np.array(spec["matrix"], dtype=float) if Sigma_r is None else Sigma_r
    X = np.random.default_rng(51).standard_normal((n, 3)) @ np.array(
        [[5.0, 3.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 4.0]]
    )
    K_X = np.cov(X.T, ddof=0)
    options = {"noise": spec, "seed": 52}
    K_Y = np.cov(auditor.perturb(X, "independent", [1.0], **options).copies[0].T, ddof=0)
    k, r = np.diag(K_X), np.diag(Sigma_r)
    both = np.outer(k, r)
    spread = np.sqrt((both + both.T + 2 * K_X * Sigma_r + np.outer(r, r) + Sigma_r**2) / n)
    assert (np.abs(K_Y - K_X - Sigma_r) < 4.5 * spread).all()
    # «All we need to do is to subtract σ²»: the filters' estimate of the data's covariance
    assert (np.abs(estimated_covariance(K_Y, Sigma_r) - K_X) < 4.5 * spread).all()
