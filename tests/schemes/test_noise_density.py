"""The distributions of noise against scipy's, and the root and cumulants of a process with independent increments against its law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.schemes.base.noise_density import (
    DISTRIBUTIONS,
    LATTICE,
    Distribution,
    NoiseDensity,
    excess_kurtosis,
)
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless

V = 2.5


def peers(v: float) -> dict[str, stats.rv_continuous]:
    s, q = np.sqrt(v), ((v + 1) - np.sqrt(2 * v + 1)) / v
    return {
        "gaussian": stats.norm(scale=s), "uniform": stats.uniform(-np.sqrt(3) * s, 2 * np.sqrt(3) * s),
        "laplace": stats.laplace(scale=s / np.sqrt(2)), "geometric": stats.dlaplace(-np.log(q)), "skellam": stats.skellam(v / 2, v / 2),
    }  # fmt: skip


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("v", [0.3, V, 40.0])
def test_density_distribution_function_and_moments_are_those_of_a_peer(
    distribution: Distribution, v: float
) -> None:
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


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_bins_hold_all_probability_and_far_tails_keep_their_digits(
    distribution: Distribution,
) -> None:
    noise, edges = NoiseDensity(distribution, np.sqrt(V)), np.linspace(-60.0, 60.0, 97)
    assert noise.between(-edges).sum() == pytest.approx(1.0, abs=1e-12)
    below, above = noise.between(np.array([9.5, 8.5])), noise.between(np.array([-8.5, -9.5]))
    assert below == pytest.approx(above, rel=1e-9)
    assert distribution == "uniform" or below > 0


@pytest.mark.parametrize("distribution", ["laplace", "geometric", "skellam"])
def test_increments_of_one_process_have_the_law_s_covariance_and_fourth_cumulants(
    distribution: Distribution,
) -> None:
    levels, shape = [0.5, 2.0, 0.5, 1.0], np.diag([4.0, 9.0])
    law = KroneckerNoise(
        np.minimum.outer(levels, levels),
        shape,
        distribution=distribution,
        one_process=True,
        units=np.array([1.0, 0.5]),
    )
    np.testing.assert_allclose(law.root @ law.root.T, law.covariance, atol=1e-12)
    assert law.excess_kurtosis is not None
    # Cumulants of independent parts add: Σ_l root_il⁴ κ_l is the fourth cumulant of each copy's own
    # noise.
    fourth = (law.root**4) @ law.excess_kurtosis
    own = [
        (level * d) ** 2 * excess_kurtosis(distribution, level * d / u**2)
        for level in levels
        for d, u in ((4.0, 1.0), (9.0, 0.5))
    ]
    np.testing.assert_allclose(fourth, own, rtol=1e-10)


def test_the_least_perturbed_copy_of_one_process_makes_the_others_useless_and_of_independent_noise_none_does() -> (
    None
):
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


def test_skellam_tails_beyond_what_is_summed_are_those_of_the_sum() -> None:
    """Of variance 10,201 against probabilities added up, near 0, far out and between points of the lattice."""
    noise, k = NoiseDensity("skellam", 101.0), np.arange(0.0, 6000.0)
    pdf = noise.pdf(k)
    beyond = np.cumsum(pdf[::-1])[::-1] - pdf
    chosen = np.array([0, 1, 50, 101, 505, 909, 2020])
    np.testing.assert_allclose(noise.cdf(-k[chosen]), (beyond + pdf / 2)[chosen], rtol=1e-7)
    np.testing.assert_allclose(noise.cdf(-k[chosen] - 0.5), beyond[chosen], rtol=1e-7)
