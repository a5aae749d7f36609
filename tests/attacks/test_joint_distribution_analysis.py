"""Distribution analysis of one attribute and of several."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

import auditor
from auditor.adversary.view import Histogram, expected_mass, reconstruct
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap
from auditor_attacks.attribute_posterior import median, shortest_interval
from auditor_attacks.joint_distribution_analysis import (
    Axis,
    Directions,
    Grid,
    JointDistributionAnalysis,
    OnGrids,
)
from tests.audited import cells

NAME = "joint-distribution-analysis"
seeds = st.integers(0, 2**32 - 1)
properties = settings(max_examples=20, deadline=None, derandomize=True)


def ring(n=1500, seed=0, strangers=0):
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, n)
    X = 3 * np.column_stack([np.cos(turn), np.sin(turn)]) + 0.1 * rng.normal(size=(n, 2))
    X[:strangers] = 0.1 * rng.normal(size=(strangers, 2))
    return X


def audited(folder, X, levels, scheme="independent", measures=("interval-privacy",), **attack):
    """Audit the attack on a table in a file."""
    pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).to_csv(
        folder / "x.csv", index=False
    )
    result = auditor.run({
        "seed": 1, "data": str(folder / "x.csv"), "schemes": [{"name": scheme, "levels": levels}], "coalitions": ["singles"], "replicates": 5,
        "attacks": [{"name": NAME} | attack], "measures": list(measures),
    })  # fmt: skip
    assert not (
        reasons := [record.reason for record in result.measurements if record.status == "failed"]
    ), reasons
    return {(m.metric, m.coalition[0]): m.value for m in cells(result, attribute="*", replicate=1)}


@given(seed=seeds, p=st.integers(1, 3), steps=st.integers(1, 3))
@properties
def test_a_step_of_em_is_the_one_printed(seed, p, steps):
    rng = np.random.default_rng(seed)
    shape, released = (3, 2, 4)[:p], (4, 5, 3)[:p]
    counts, L = (
        rng.integers(0, 20, released).astype(float),
        [rng.random((c, b)) + 0.01 for c, b in zip(released, shape, strict=True)],
    )
    counts.flat[0] += 1.0
    edges = [np.cumsum(rng.random(b + 1) + 0.1) for b in shape]
    mass = {
        b: np.prod([(e[i + 1] - e[i]) / (e[-1] - e[0]) for e, i in zip(edges, b, strict=True)])
        for b in product(*map(range, shape))
    }
    found = expected_mass(counts, L, edges, steps, gain=-np.inf)[1]
    for _ in range(steps):
        new = dict.fromkeys(mass, 0.0)
        for y in product(*map(range, released)):
            joint = {b: mass[b] * np.prod([L[j][y[j], b[j]] for j in range(p)]) for b in mass}
            for b in mass:
                new[b] += counts[y] * joint[b] / sum(joint.values()) / counts.sum()
        mass = new
    np.testing.assert_allclose([found[b] for b in mass], list(mass.values()), atol=1e-12)


def by_hand(mass, rare, confidence=0.9):
    edges, channel = np.arange(5.0), Combined(NoiseDensity("gaussian", 0.005), np.ones(1))
    grid = Grid([Axis(j, channel, edges) for j in range(2)], mass)
    return OnGrids(Directions(None, np.eye(2), np.eye(2), [channel] * 2), [grid], rare, confidence)


def test_regions_by_hand():
    mass = np.diag([0.25, 0.25, 0.25, 0.24])
    mass[0, 3] = 0.01
    y = np.array([[0.5, 3.5], [0.5, 0.5], [3.5, 3.5], [0.5, 2.5]])
    found = by_hand(mass, rare=0.02).regions([y])
    assert found.claims.tolist() == [True, False, False, False]
    assert (np.abs(found.low[0] - y[0]) < 0.05).all()
    assert ((found.low[0] < y[0]) & (y[0] < found.high[0])).all()
    assert not by_hand(mass, rare=0.005).regions([y]).claims.any()
    np.testing.assert_allclose(by_hand(mass, rare=0.02).rows([y]), y, atol=1e-9)


def test_strangers_are_found_by_two_attributes_and_not_by_one(tmp_path):
    X = ring(1000, strangers=5) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    two, one = (audited(tmp_path, X, [0.0005], "correlated", dimensions=dimensions, bins=40, rare=8) for dimensions in (2, 1))  # fmt: skip
    none = audited(tmp_path, X[5:], [0.0005], "correlated", bins=40, rare=8)
    assert one["rare_claimed", 1] == 0.0
    assert two["rare_disclosed", 1] * 1000 >= none["rare_disclosed", 1] * 995 + 4


@pytest.mark.parametrize(
    "parameters",
    [{"dimensions": 3, "bins": 41}, {"bins": 257}, {"dimensions": 4}, {"rare": 0.0}, {"confidence": 1.0}],
)  # fmt: skip
def test_grids_that_are_too_large_are_refused(parameters):
    with pytest.raises(ValidationError) as refused:
        JointDistributionAnalysis.Parameters(**parameters)
    if "bins" in parameters:
        assert "bins each" in str(refused.value)


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
def test_steps_are_those_printed(method, distribution):
    rng = np.random.default_rng(1)
    edges, y = np.linspace(-2, 3, 8), np.linspace(-4, 5, 40)
    counts = rng.integers(0, 50, size=40).astype(float)
    noise = NoiseDensity(distribution, 0.7)
    mass = np.full(7, 1 / 7)
    reachable = noise.likelihood(y, edges, midpoints=method == "iteration").sum(axis=1) > 0
    for _ in range(3):
        mass = naive_step(mass, y[reachable], counts[reachable], edges, noise, method)
    found = reconstruct(y, counts, edges, noise, method, steps=3)
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
def test_intervals_hold_what_they_claim(few_redraws):
    """At 90 %, on skewed data under Gaussian noise."""
    result = auditor.run({
        "seed": 8, "data": {"source": "census-like", "rows": 4000},
        "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}], "attacks": ["distribution-analysis"], "coalitions": ["singles", "all"],
        "measures": [{"interval-privacy": 0.9}],
    })  # fmt: skip
    shares = [r for r in result.measurements if r.metric == "localised_share"]
    assert len(shares) == 9
    assert all(0.87 < r.value < 0.93 for r in shares)


def test_intervals_of_fine_laplace_noise_hold_what_they_claim():
    """95 % to 3.5 standard errors of a share of 10,000; the Gaussian quantile holds 93.7 %."""
    result = auditor.run({
        "seed": 8, "data": {"source": "gaussian", "covariance": [[1, 0.3], [0.3, 1]], "rows": 10_000},
        "schemes": [{"name": "laplace", "levels": [0.01]}], "attacks": ["joint-distribution-analysis"],
        "measures": [{"interval-privacy": 0.95}],
    })  # fmt: skip
    shares = [r.value for r in result.measurements if r.metric == "localised_share"]
    assert all(abs(share - 0.95) < 0.0077 for share in shares)
    assert len(shares) == 3
