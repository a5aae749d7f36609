"""Noise far smaller or larger than the data: figures are finite, and nothing overflows on the way."""

import numpy as np
import pytest

from auditor.schemes.base.noise_density import NoiseDensity, excess_kurtosis
from auditor.schemes.base.noise_law import _excess


@pytest.mark.filterwarnings("error")
def test_the_gaussian_density_is_0_far_out():
    np.testing.assert_allclose(
        NoiseDensity("gaussian", 1e-160).pdf(np.array([-1e200, 1.0, 0.0])),
        [0.0, 0.0, 1e160 / np.sqrt(2 * np.pi)],
        rtol=1e-12,
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("distribution", ["laplace", "geometric", "skellam"])
@pytest.mark.parametrize("v", [1e-200, 1e-160, 1.0, 1e160, 1e200])
def test_the_excess_kurtosis_of_one_increment_is_the_distribution_s_own(distribution, v):
    np.testing.assert_allclose(
        _excess(distribution, np.array([0.0, v]), np.array([v, v])),
        [excess_kurtosis(distribution, v), 0.0],
    )
