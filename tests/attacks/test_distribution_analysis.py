"""Distribution analysis: agrawal2000, agrawal2001, liu2008."""

from itertools import pairwise

import numpy as np
import pytest

import auditor
from auditor.adversary.single_copy import Histogram, reconstruct
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Overlap
from auditor_attacks.distribution_analysis import median, shortest_interval

UNIT = Overlap(NoiseDensity("uniform", 1 / np.sqrt(3.0)), np.ones(1))
"""Uniform noise on [−1, 1]."""
TWO_CLUSTERS = Histogram(
    np.linspace(-1, 7, 33), np.where(np.isin(np.arange(32) // 4, (1, 6)), 0.125, 0.0)
)
"""½ on [0, 1], ½ on [5, 6] (liu2008, section 3.6)."""


def test_the_surveys_example():
    low, high = shortest_interval(TWO_CLUSTERS, UNIT, np.array([[1.0]]), 1.0)
    assert (low[0], high[0]) == pytest.approx((0.0, 1.0))
    flat = Histogram(TWO_CLUSTERS.edges, np.full(32, 1 / 32))
    low, high = shortest_interval(flat, UNIT, np.array([[1.0]]), 1.0)
    assert (low[0], high[0]) == pytest.approx((0.0, 2.0))
    assert median(TWO_CLUSTERS, UNIT, np.array([[1.0]]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize(("y", "width"), [(1.0, 0.95), (1.75, 0.25 * 0.95), (-0.5, 0.5 * 0.95)])
def test_widths_by_hand(y, width):
    """Uniform posterior on the overlap of [y − 1, y + 1] with a cluster."""
    low, high = shortest_interval(TWO_CLUSTERS, UNIT, np.array([[y]]), 0.95)
    assert high[0] - low[0] == pytest.approx(width, abs=1e-9)


def naive_step(mass, y, counts, edges, noise, method):
    new = np.zeros(len(mass))
    for value, count in zip(y, counts, strict=True):
        if method == "iteration":
            given_bin = [noise.pdf(np.array(value - (a + b) / 2)) for a, b in pairwise(edges)]
        else:
            given_bin = [(noise.cdf(np.array(value - a)) - noise.cdf(np.array(value - b))) / (b - a)
                         for a, b in pairwise(edges)]  # fmt: skip
        joint = mass * np.array(given_bin)
        if joint.sum() > 0:
            new += count * joint / joint.sum()
    return new / new.sum()


@pytest.mark.parametrize("method", ["em", "iteration"])
@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
@pytest.mark.parametrize("steps", [3])
def test_steps_are_those_printed(method, distribution, steps):
    rng = np.random.default_rng(1)
    edges, y = np.linspace(-2, 3, 8), np.linspace(-4, 5, 40)
    counts = rng.integers(0, 50, size=40).astype(float)
    noise = NoiseDensity(distribution, 0.7)
    mass = np.full(7, 1 / 7)
    reachable = noise.likelihood(y, edges, midpoints=method == "iteration").sum(axis=1) > 0
    for _ in range(steps):
        mass = naive_step(mass, y[reachable], counts[reachable], edges, noise, method)
    found = reconstruct(y, counts, edges, noise, method, steps=steps)
    np.testing.assert_allclose(found.mass, mass, atol=1e-12)


@pytest.mark.parametrize(("method", "off"), [("em", 0.1), ("iteration", 0.2)])
@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_two_clusters_are_found_again(method, off, distribution):
    """Total variation distance on bins of ½; likelihoods at midpoints blur edges by a bin."""
    rng, noise = np.random.default_rng(5), NoiseDensity(distribution, 0.4)
    x = rng.random(20_000) + 5.0 * (rng.random(20_000) < 0.5)
    edges, cells = np.linspace(-2, 8, 21), np.linspace(-4, 10, 1401)
    draw = rng.normal(size=20_000) if distribution == "gaussian" else np.sqrt(3) * rng.uniform(-1, 1, 20_000)  # fmt: skip
    counts = np.histogram(x + 0.4 * draw, cells)[0].astype(float)
    found = reconstruct((cells[:-1] + cells[1:]) / 2, counts, edges, noise, method)
    assert 0.5 * np.abs(found.mass - np.histogram(x, edges)[0] / 20_000).sum() < off


@pytest.mark.slow_after_first
def test_intervals_hold_what_they_claim():
    """At 90 %, on skewed data under Gaussian noise."""
    result = auditor.run({
        "seed": 8, "data": {"source": "census-like", "rows": 4000},
        "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}], "attacks": ["distribution-analysis"], "coalitions": ["singles", "all"],
        "measures": [{"interval-privacy": 0.9}],
    })  # fmt: skip
    shares = [r for r in result.measurements if r.metric == "localised_share"]
    assert len(shares) == 9
    assert all(0.87 < r.value < 0.93 for r in shares)
