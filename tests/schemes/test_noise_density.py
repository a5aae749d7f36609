"""Noise distributions against scipy, and their processes."""

import numpy as np
import pytest
from scipy import stats

from auditor.schemes.base.noise_density import DISTRIBUTIONS, LATTICE, NoiseDensity, excess_kurtosis
from auditor.schemes.base.noise_law import KroneckerNoise, _excess, increment_density, makes_useless


def peers(v):
    s, q = np.sqrt(v), ((v + 1) - np.sqrt(2 * v + 1)) / v
    return {
        "gaussian": stats.norm(scale=s), "uniform": stats.uniform(-np.sqrt(3) * s, 2 * np.sqrt(3) * s),
        "laplace": stats.laplace(scale=s / np.sqrt(2)), "geometric": stats.dlaplace(-np.log(q)), "skellam": stats.skellam(v / 2, v / 2),
    }  # fmt: skip


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("v", [0.3, 40.0])
def test_density_distribution_function_and_moments_are_those_of_a_peer(distribution, v):
    peer, noise = peers(v)[distribution], NoiseDensity(distribution, float(np.sqrt(v)))
    if distribution in LATTICE:
        k = np.arange(-9.0, 10.0)
        np.testing.assert_allclose(noise.pdf(k), peer.pmf(k), rtol=1e-10)
        # scipy's own Skellam tails are known to that
        np.testing.assert_allclose(
            noise.cdf(k), peer.cdf(k) - peer.pmf(k) / 2, rtol=1e-8, atol=1e-15
        )
        np.testing.assert_allclose(noise.cdf(k + 0.5), peer.cdf(k), rtol=1e-8)
        assert (noise.pdf(k + 0.5) == 0).all()
    else:
        t = np.linspace(-7, 7, 29)
        np.testing.assert_allclose(noise.pdf(t), peer.pdf(t), rtol=1e-12)
        np.testing.assert_allclose(noise.cdf(t), peer.cdf(t), rtol=1e-12)
    variance, excess = peer.stats(moments="vk")
    assert variance == pytest.approx(v)
    assert noise.excess_kurtosis == pytest.approx(float(excess), abs=1e-9)


def test_the_least_perturbed_copy_of_one_process_makes_the_others_useless_and_of_independent_noise_none_does():
    levels = np.array([1.0, 0.25, 4.0])
    one = KroneckerNoise(
        np.minimum.outer(levels, levels), np.eye(2), distribution="laplace", one_process=True
    )
    fresh = KroneckerNoise(np.diag(levels), np.eye(2), distribution="laplace")
    assert makes_useless(one).tolist() == [
        [True, False, True],
        [True, True, True],
        [False, False, True],
    ]
    assert not makes_useless(fresh).any()


def naive_increment(distribution, low, high, k):
    u = 2 * np.pi * np.arange(4096) / 4096
    psi = 1 - np.cos(u)
    ratio = (
        (1 + low * psi) / (1 + high * psi)
        if distribution == "geometric"
        else np.exp(-(high - low) * psi)
    )
    return np.fft.ifft(ratio).real[k]


@pytest.mark.parametrize("distribution", ["geometric", "skellam"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (1.5, 2.0), (0.2, 9.0)])
def test_an_increment_on_a_lattice_has_the_probabilities_of_its_characteristic_function(
    distribution, low, high
):
    law = KroneckerNoise(
        np.eye(1), np.eye(1), distribution=distribution, one_process=True, units=np.ones(1)
    )
    found, k = increment_density(law, low, high, 0), np.arange(8)
    middle, chance = found.distribution(k.astype(float))
    expected = naive_increment(distribution, low, high, k)
    np.testing.assert_allclose(chance, expected, atol=1e-12)
    below = 0.5 * (1 - expected[0]) + np.cumsum(expected) - expected / 2
    np.testing.assert_allclose(middle, below, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("distribution", ["laplace", "geometric", "skellam"])
@pytest.mark.parametrize("v", [1e-200, 1.0, 1e200])
def test_the_excess_kurtosis_of_one_increment_is_the_distribution_s_own(distribution, v):
    np.testing.assert_allclose(
        _excess(distribution, np.array([0.0, v]), np.array([v, v])),
        [excess_kurtosis(distribution, v), 0.0],
    )
