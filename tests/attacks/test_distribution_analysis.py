"""Reconstruction of a distribution against the published steps written out, and localisation by hand: the survey's example 3.6."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.adversary.density import Histogram, reconstruct
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap
from auditor_attacks.distribution_analysis import median, shortest_interval

properties = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
UNIT = Overlap(NoiseDensity("uniform", 1 / np.sqrt(3.0)), np.ones(1))
"""Uniform noise on [−1, 1]."""
TWO_CLUSTERS = Histogram(
    np.linspace(-1, 7, 33), np.where(np.isin(np.arange(32) // 4, (1, 6)), 0.125, 0.0)
)
"""½ on [0, 1], ½ on [5, 6] (liu2008, section 3.6)."""


def test_the_surveys_example():
    """A released 1 leaves [0, 2] to who knows the noise, and [0, 1] to who knows the distribution."""
    low, high = shortest_interval(TWO_CLUSTERS, UNIT, np.array([[1.0]]), 1.0)
    assert (low[0], high[0]) == pytest.approx((0.0, 1.0))
    flat = Histogram(TWO_CLUSTERS.edges, np.full(32, 1 / 32))
    low, high = shortest_interval(flat, UNIT, np.array([[1.0]]), 1.0)
    assert (low[0], high[0]) == pytest.approx((0.0, 2.0))
    assert median(TWO_CLUSTERS, UNIT, np.array([[1.0]]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("y", "width"),
    [(1.0, 0.95), (0.5, 0.95), (1.75, 0.25 * 0.95), (6.5, 0.5 * 0.95), (-0.5, 0.5 * 0.95)],
)
def test_widths_by_hand(y, width):
    """Uniform posterior on the overlap of [y − 1, y + 1] with a cluster; 95 % of it is that share of its length."""
    low, high = shortest_interval(TWO_CLUSTERS, UNIT, np.array([[y]]), 0.95)
    assert high[0] - low[0] == pytest.approx(width, abs=1e-9)


def test_a_value_that_the_distribution_cannot_explain_is_taken_as_it_is():
    assert median(TWO_CLUSTERS, UNIT, np.array([[3.2]]))[0] == pytest.approx(3.2)


@given(seed=seeds, confidence=st.floats(0.5, 0.99))
@properties
def test_no_interval_of_bins_is_shorter(seed, confidence):
    """Brute force over every pair of edges: never shorter than the one found, and what is found holds the share."""
    rng = np.random.default_rng(seed)
    p = Histogram(np.cumsum(rng.random(9)), rng.dirichlet(np.ones(8)))
    c = Combined(NoiseDensity("gaussian", 1.0), np.ones(1))
    y = rng.normal(size=(3, 1)) + 2.0
    low, high = shortest_interval(p, c, y, confidence)
    mass = c.likelihood(y, p.edges) * p.mass
    mass /= mass.sum(axis=1, keepdims=True)
    for row in range(3):
        cumulative = np.concatenate([[0.0], np.cumsum(mass[row])])
        held = np.interp(high[row], p.edges, cumulative) - np.interp(low[row], p.edges, cumulative)
        assert held == pytest.approx(confidence, abs=1e-9) or held > confidence
        pairs = [
            (p.edges[b] - p.edges[a])
            for a in range(9)
            for b in range(a, 9)
            if cumulative[b] - cumulative[a] >= confidence - 1e-12
        ]
        assert not pairs or high[row] - low[row] <= min(pairs) + 1e-9


def naive_step(mass, y, counts, edges, noise, method):
    """One step, value by value, as agrawal2000 (section 3.1) and agrawal2001 (section 3) print it."""
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
@pytest.mark.parametrize("steps", [1, 3])
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


@pytest.mark.parametrize("method", ["em", "iteration"])
@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_two_clusters_are_found_again(method, distribution):
    """Total variation distance to the truth on bins of ½, from 20,000 values; likelihoods at midpoints blur edges by a bin."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(20_000) < 0.5, rng.random(20_000), 5 + rng.random(20_000))
    noise = NoiseDensity(distribution, 0.4)
    z = (
        rng.normal(size=20_000) * 0.4
        if distribution == "gaussian"
        else rng.uniform(-1, 1, size=20_000) * noise.reach
    )
    edges, cells = np.linspace(-2, 8, 21), np.linspace(-4, 10, 1401)
    counts = np.histogram(x + z, cells)[0].astype(float)
    found = reconstruct((cells[:-1] + cells[1:]) / 2, counts, edges, noise, method)
    truth = np.histogram(x, edges)[0] / 20_000
    assert 0.5 * np.abs(found.mass - truth).sum() < (0.1 if method == "em" else 0.2)


@pytest.mark.slow_after_first
def test_intervals_hold_what_they_claim():
    """At 90 %, on skewed data under Gaussian noise; 4,000 records: ± 1.5 points at three standard errors, as much for the learnt prior."""
    result = auditor.run({
        "seed": 8, "data": {"source": "census-like", "rows": 4000},
        "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}], "attacks": ["distribution-analysis"], "coalitions": ["singles", "all"],
        "measures": [{"interval-privacy": 0.9}],
    })  # fmt: skip
    shares = [r for r in result.measurements if r.metric == "localised_share"]
    assert len(shares) == 9
    assert all(0.87 < r.value < 0.93 for r in shares)


def test_likelihoods_are_as_exact_above_a_bin_as_below():
    """N(0, 1) beyond 20 deviations: 2.75e-89 on either side, though Φ(20) is 1 to rounding; and inside, what the two Φ give."""
    noise, edges = NoiseDensity("gaussian", 1.0), np.array([-1.0, 0.0, 1.0])
    found = noise.likelihood(np.array([21.0, -21.0, 0.3]), edges)
    assert found[0, 1] == pytest.approx(2.7536e-89, rel=1e-4)
    np.testing.assert_allclose(found[0], found[1][::-1], rtol=1e-12)
    np.testing.assert_allclose(found[2], -np.diff(noise.cdf(0.3 - edges)), rtol=1e-12)
