"""Estimates read off a grid: those worked out row by row, wherever rows are many enough for a grid."""

import numpy as np
import pytest

from auditor.adversary.density import Histogram
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap
from auditor_attacks._posterior import FINE, read_off
from auditor_attacks.distribution_analysis import median, shortest_interval
from auditor_attacks.map_estimate import histogram_mean, histogram_mode, kde_mean, kde_mode

S = 0.5
MANY = 10**6


def spiky(bins: int = 60) -> Histogram:
    """As a skewed attribute's prior looks once EM has been at it: heavy and light bins in turn, some empty, a long tail."""
    rng = np.random.default_rng(5)
    mass = rng.gamma(0.3, size=bins) * np.exp(-np.arange(bins) / 15.0)
    mass[10:14] = 0.0
    return Histogram(np.linspace(0.0, 15.0, bins + 1), mass / mass.sum())


def drawn(prior: Histogram, channel: Combined, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Originals from a prior and their copies, as the channel makes them."""
    rng = np.random.default_rng(7)
    bins = rng.choice(len(prior.mass), size=n, p=prior.mass)
    x = rng.uniform(prior.edges[bins], prior.edges[bins + 1])
    noise = rng.standard_normal((n, len(channel.weights)))
    scale = channel.noise.std / np.sqrt(np.sum(channel.weights**2))
    return x, x[:, None] + scale * noise


def interval(prior, channel, copies):
    return np.stack(shortest_interval(prior, channel, copies, 0.9))


@pytest.mark.parametrize(
    "estimate", [histogram_mean, histogram_mode, kde_mean, kde_mode, median, interval]
)
def test_what_is_read_off_a_grid_is_what_is_worked_out(estimate):
    prior, channel = spiky(), Combined(NoiseDensity("gaussian", S), np.array([0.3, 0.7]))
    x, copies = drawn(prior, channel, 20_000)
    found, exact = (
        read_off(estimate, prior, channel, MANY)(copies),
        estimate(prior, channel, copies),
    )
    assert found.shape == exact.shape
    assert (found != exact).any(), "the grid was not used"
    # A row whose ȳ is within half a step of a jump may be put on its other side, where the
    # posterior is as high: few are, and the error over all rows does not feel it. Between jumps an
    # estimate bends over a length of S, of which a step is 1/128.
    near = np.abs(found - exact) < 0.5 * S / FINE
    assert near.mean() > 0.98
    for one, other in zip(np.atleast_2d(found), np.atleast_2d(exact), strict=True):
        assert np.mean((one - x) ** 2) == pytest.approx(np.mean((other - x) ** 2), rel=1e-3)


def test_copies_beyond_the_grid_are_worked_out():
    prior, channel = spiky(), Combined(NoiseDensity("gaussian", S), np.ones(1))
    copies = np.array([[-3.0], [-0.2], [15.2], [18.0]])
    np.testing.assert_array_equal(
        read_off(histogram_mean, prior, channel, MANY)(copies),
        histogram_mean(prior, channel, copies),
    )


GAUSSIAN, UNIFORM = (
    Combined(NoiseDensity("gaussian", S), np.ones(1)),
    Overlap(NoiseDensity("uniform", S), np.array([S * np.sqrt(3.0)])),
)


@pytest.mark.parametrize(
    ("channel", "rows"), [(GAUSSIAN, 2 * FINE * 30), (UNIFORM, MANY)], ids=["few", "bounded"]
)
def test_few_rows_and_bounded_noise_are_worked_out_row_by_row(channel, rows):
    """15 wide at 1/256 a step: 3,841 points, which pay from some 7,682 rows on; an overlap is two numbers and no point of a grid."""
    prior = spiky()
    copies = np.random.default_rng(1).uniform(0.0, 15.0, size=(7_000, 1))
    np.testing.assert_array_equal(
        read_off(histogram_mean, prior, channel, rows)(copies),
        histogram_mean(prior, channel, copies),
    )
