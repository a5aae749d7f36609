"""Posterior mode and mean under priors of one attribute."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.view import Histogram
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap
from auditor_attacks.attribute_posterior import histogram_mean, histogram_mode

properties = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def channel(distribution, std, copies=1):
    if distribution == "uniform":
        return Overlap(NoiseDensity(distribution, std), np.full(copies, np.sqrt(3.0) * std))
    return Combined(NoiseDensity(distribution, std / np.sqrt(copies)), np.full(copies, 1 / copies))


def prior(rng, B=6):
    edges = np.sort(rng.normal(size=B + 1)) * 3.0
    edges += np.arange(B + 1) * 0.2
    return Histogram(edges, rng.dirichlet(np.ones(B)))


def flat_density(p, x):
    place = np.clip(np.searchsorted(p.edges, x, side="right") - 1, 0, len(p.mass) - 1)
    return np.where((x >= p.edges[0]) & (x <= p.edges[-1]), p.density[place], 0.0)


@given(seed=seeds, distribution=st.sampled_from(["gaussian", "uniform"]))
@properties
def test_mean_and_mode_are_those_of_the_posterior_on_a_fine_grid(seed, distribution):
    rng = np.random.default_rng(seed)
    p, c = prior(rng), channel(distribution, 0.8)
    x = float(rng.choice(p.midpoints))
    off = rng.normal() if distribution == "gaussian" else rng.uniform(-1.3, 1.3)
    y = np.array([[x + 0.8 * off]])
    grid = np.linspace(p.edges[0] - 12, p.edges[-1] + 12, 400_001)
    posterior = flat_density(p, grid) * c.noise.pdf(y[0, 0] - grid)
    if posterior.sum() == 0:
        return
    expected = (grid * posterior).sum() / posterior.sum()
    assert histogram_mean(p, c, y)[0] == pytest.approx(expected, abs=2e-3)
    # a mode may be at a bin's edge, where the density jumps
    near = histogram_mode(p, c, y)[0] + np.array([-1e-9, 0.0, 1e-9])
    at_mode = (flat_density(p, near) * c.noise.pdf(y[0, 0] - near)).max()
    assert at_mode >= posterior.max() * (1 - 2e-3)


def table(seed=0, n=400):
    return np.random.default_rng(seed).normal(size=(n, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize("estimate", ["mode", "mean"])
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 100}}], ids=str)
@pytest.mark.parametrize(("prior", "equal"), [("gaussian", "llse"), ("flat", "ndr")])
def test_a_gaussian_prior_is_linear_and_a_flat_one_takes_the_copies(estimate, knowledge, prior, equal):  # fmt: skip
    release = auditor.perturb(table(), "independent", [0.5, 1.0], seed=1)
    expected = auditor.attack(equal, release, knowledge=knowledge)
    shape = {"prior": prior, "estimate": estimate}
    found = auditor.attack("map-estimate", release, knowledge=knowledge, **shape)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-10)


def test_a_flat_prior_under_uniform_noise_takes_the_middle_of_what_all_copies_leave():
    X = table()
    release = auditor.perturb(X, "independent", [0.5, 1.0], seed=1, distribution="uniform")
    found = auditor.attack("map-estimate", release, prior="flat")
    a = np.sqrt(3 * np.array([0.5, 1.0]) * np.trace(np.cov(X.T, bias=True)) / 2)
    low = np.maximum(*(copy - reach for copy, reach in zip(release.copies, a, strict=True)))
    high = np.minimum(*(copy + reach for copy, reach in zip(release.copies, a, strict=True)))
    np.testing.assert_allclose(found.values, (low + high) / 2, atol=1e-12)
    assert found.distortion < auditor.attack("ndr", release).distortion
