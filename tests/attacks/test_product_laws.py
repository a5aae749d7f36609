"""Posteriors under Laplace and lattice noise."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.view import Histogram
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Product
from auditor_attacks.attribute_posterior import histogram_mean, histogram_mode, posterior_estimate

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
LATTICE_LAWS = ("geometric", "skellam")


def independent(distribution, *stds):
    return Product(tuple(NoiseDensity(distribution, std) for std in stds), tuple(range(len(stds))))


def naive_likelihood(channel, copies, points):
    """``Π_i f_i(y_i − x)``, number by number."""

    def one(row, x):
        each = zip(channel.densities, row, strict=True)
        return np.prod([float(f.pdf(np.array(y - x))) for f, y in each])

    return np.array([[one(row, x) for x in points] for row in copies])


@pytest.mark.parametrize("distribution", LATTICE_LAWS)
def test_a_coin_under_lattice_noise_by_hand(distribution):
    """X is 0 or 1, as likely."""
    channel, noise = independent(distribution, 1.3), NoiseDensity(distribution, 1.3)
    f1, f2 = noise.pdf(np.array([1.0, 2.0]))
    prior = Histogram(np.array([-0.5, 0.5, 1.5]), np.array([0.5, 0.5]))
    y, mean = np.array([[2.0]]), pytest.approx(f1 / (f1 + f2), rel=1e-9)
    assert histogram_mean(prior, channel, y)[0] == mean
    points = np.array([0.0, 1.0]), np.array([0.5, 0.5]), channel, y
    assert [posterior_estimate(*points, mode)[0] for mode in (False, True)] == [mean, 1.0]


@given(seed=seeds, copies=st.integers(1, 3))
@properties
def test_laplace_posteriors_are_those_on_a_fine_grid(seed, copies):
    rng = np.random.default_rng(seed)
    channel = independent("laplace", *rng.uniform(0.1, 3.0, copies))
    edges = np.sort(rng.normal(size=7)) * 2.0 + 0.05 * np.arange(7)
    prior, y = Histogram(edges, rng.dirichlet(np.ones(6))), rng.normal(size=(2, copies)) * 3.0
    fine = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(4000) + 0.5) / 4000
    log_f = channel.log_likelihood(y, fine.ravel())
    np.testing.assert_allclose(
        np.exp(log_f[:1, ::400]), naive_likelihood(channel, y[:1], fine.ravel()[::400]), rtol=1e-9
    )
    weights = (
        np.exp(log_f - log_f.max(axis=1, keepdims=True)).reshape(2, 6, 4000) * prior.mass[:, None]
    )
    mean = (weights * fine).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    np.testing.assert_allclose(histogram_mean(prior, channel, y), mean, atol=2e-3)
    mode = histogram_mode(prior, channel, y)
    log_posterior = log_f + np.log(np.repeat(prior.density, 4000))
    beside = np.array([mode - 1e-9, mode, mode + 1e-9]).T
    place = np.searchsorted(edges, beside) - 1
    inside = (place >= 0) & (place < 6)
    at_mode = np.where(
        inside,
        channel.log_likelihood(y, beside) + np.log(prior.density)[np.clip(place, 0, 5)],
        -np.inf,
    ).max(axis=1)
    assert (at_mode >= log_posterior.max(axis=1) - 1e-6).all()


@given(
    seed=seeds, distribution=st.sampled_from(LATTICE_LAWS), copies=st.integers(1, 3),
    unit=st.sampled_from([1.0, 0.25]),
)  # fmt: skip
@properties
def test_lattice_posteriors_are_the_sums_written_out(seed, distribution, copies, unit):
    rng = np.random.default_rng(seed)
    channel = Product(
        tuple(NoiseDensity(distribution, std * unit, unit) for std in rng.uniform(0.3, 4.0, copies)),
        tuple(range(copies)),
    )  # fmt: skip
    values = np.arange(-3, 6) * unit
    shares, y = rng.dirichlet(np.ones(9)), rng.integers(-8, 9, size=(4, copies)) * unit
    joint = naive_likelihood(channel, y, values) * shares
    mean = joint @ values / joint.sum(axis=1)
    np.testing.assert_allclose(
        posterior_estimate(values, shares, channel, y, False), mean, atol=1e-9
    )
    binned = Histogram(np.arange(-3.5, 6) * unit, shares)
    np.testing.assert_allclose(histogram_mean(binned, channel, y), mean, atol=1e-9)
    best = values[joint.argmax(axis=1)]
    np.testing.assert_array_equal(posterior_estimate(values, shares, channel, y, True), best)
    np.testing.assert_allclose(histogram_mode(binned, channel, y), best, atol=1e-9)


def test_who_does_not_know_the_distribution_or_meets_too_many_values_is_told_so():
    X = np.random.default_rng(1).normal(size=(12_000, 1))
    release = auditor.perturb(X, "independent", [0.5], seed=1)
    for knowledge, match in [
        ("perfect", "12,000 distinct values; exact posteriors go over at most 10,000"),
        ({"estimated": {"rows": 50}}, "distribution of every attribute's values, which estimated"),
    ]:
        with pytest.raises(auditor.AuditorError, match=match):
            auditor.attack("map-estimate", release, prior="known", knowledge=knowledge)


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_the_exact_posterior_under_gaussian_and_uniform_noise_by_hand(distribution):
    """X is ±1, as likely."""
    X = np.tile([1.0, -1.0], 100)[:, None]
    release = auditor.perturb(X, "independent", [0.5], seed=2, distribution=distribution)
    found = auditor.attack("map-estimate", release, prior="known", estimate="mean").values
    found, y = (np.asarray(each)[:, 0] for each in (found, release.copies[0]))
    reach = np.sqrt(1.5)
    exact = (np.tanh(y / 0.5) if distribution == "gaussian" else np.where(np.abs(y) <= reach - 1, 0.0, np.sign(y)))  # fmt: skip
    np.testing.assert_allclose(found, exact, atol=1e-9)
