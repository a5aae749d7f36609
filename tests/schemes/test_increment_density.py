"""The law of an increment of a process: by its characteristic function, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.schemes.base.noise_density import geometric_rate
from auditor.schemes.base.noise_law import KroneckerNoise, increment_density


def naive_increment(distribution, low, high, k):
    """Probabilities of whole increments from a Fourier series of the ratio of characteristic functions."""
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


def test_the_ratio_of_geometric_noise_gives_the_share_of_shared_cells():
    """``((1 − q_c)/(1 − q_b))²·q_b/q_c = v_b/v_c``."""
    b, c = (np.exp(-geometric_rate(v)) for v in (1.5, 7.0))
    assert ((1 - c) / (1 - b)) ** 2 * b / c == pytest.approx(1.5 / 7.0)
