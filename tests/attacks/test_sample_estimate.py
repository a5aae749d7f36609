"""The sample estimate: Bayes' rule over a sample's records as it is written, and the exact posterior mean that it converges to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from attacks._deconvolution import Mixture, Posterior
from attacks.sample_estimate import Kernel, weighed_covariance
from auditor.adversary.knowledge import KnownSample
from auditor.audit.numeric.gather import chosen_rows

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def test_hand_values():
    """Two records, ±1, in noise of variance ½: ``tanh(2u)``; one record and a kernel: a half of the way to what is seen."""
    points, u = np.array([[1.0], [-1.0]]), np.array([[-2.0], [0.0], [0.3]])
    np.testing.assert_allclose(Kernel(points, np.array([0.5]), 0.0).mean(u), np.tanh(2 * u), atol=1e-9)
    np.testing.assert_allclose(Kernel(points[:1], np.array([0.5]), 1.0).mean(u), (1.0 + u) / 2, atol=1e-9)


@given(seed=seeds, bandwidth=st.sampled_from([0.0, 0.3, 2.0]))
@properties
def test_estimate_and_likelihood_are_those_of_the_equation_written_out(seed, bandwidth):
    rng = np.random.default_rng(seed)
    records, u, c = rng.normal(size=(7, 3)), rng.normal(size=(5, 3)), rng.uniform(0.2, 0.8, 3)
    h2K, noise = np.diag(bandwidth**2 * c), np.diag(1.0 - c)
    T = h2K + noise
    expected, total = np.empty_like(u), 0.0
    for i, row in enumerate(u):
        q = np.array([np.exp(-0.5 * (row - x) @ np.linalg.inv(T) @ (row - x)) / np.sqrt(np.linalg.det(T)) for x in records])
        expected[i] = sum(q[j] * (x + h2K @ np.linalg.inv(T) @ (row - x)) for j, x in enumerate(records)) / q.sum()
        total += np.log(q.sum())
    kernel = Kernel(records, c, bandwidth)
    np.testing.assert_allclose(kernel.mean(u), expected, atol=1e-7)
    assert kernel.log_likelihood(u) == pytest.approx(total, rel=1e-7, abs=1e-7)


def test_a_row_far_from_every_record_takes_the_nearest():
    np.testing.assert_allclose(Kernel(np.array([[0.0], [1.0]]), np.array([0.5]), 0.0).mean(np.array([[1e4], [-1e4]])), [[1.0], [0.0]])


ATOMS = np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0], [2.0, -2.0]])


def test_of_few_values_it_is_the_exact_posterior_mean():
    """A population of four kinds: 2,000 records are as good as knowing how common each is, to a part in a thousand."""
    rng = np.random.default_rng(1)
    X = ATOMS[rng.choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1])]
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.5}, seed=2)
    found = auditor.attack("sample-estimate", release, knowledge={"known-sample": 2000})
    judged = ~np.isnan(np.asarray(found.values)).any(axis=1)
    prior = Mixture(np.array([0.4, 0.3, 0.2, 0.1]), ATOMS, np.zeros((4, 2, 2)))
    exact = Posterior(prior, np.full(2, 1.5)).mean(np.asarray(release.copies[0])[judged])
    excess = ((np.asarray(found.values)[judged] - exact) ** 2).sum(axis=1).mean() / X.var(axis=0).sum()
    # shares estimated from m records are off by p(1 − p)/m, and the estimate by less than the atoms' spread times that: 3·(1/2000)·K
    assert excess < 0.005
    llse = auditor.attack("llse", release).normalized_error
    assert found.normalized_error < 0.8 * llse


def test_its_excess_over_the_exact_posterior_mean_falls_as_the_sample_grows():
    rng = np.random.default_rng(3)
    which = rng.random(9000) < 0.5
    X = np.where(which[:, None], [2.0, 1.0], [-2.0, -1.0]) + 0.4 * rng.normal(size=(9000, 2))
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.0}, seed=4)
    prior = Mixture(np.full(2, 0.5), np.array([[2.0, 1.0], [-2.0, -1.0]]), np.array([0.16 * np.eye(2)] * 2))
    exact = Posterior(prior, np.ones(2)).mean(np.asarray(release.copies[0]))

    def excess(size):
        values = np.asarray(auditor.attack("sample-estimate", release, knowledge={"known-sample": size}).values)
        return np.nanmean(((values - exact) ** 2).sum(axis=1)) / X.var(axis=0).sum()

    few, some, many = excess(10), excess(200), excess(4000)
    assert many < some < few
    assert many < 0.002  # of the variance


@pytest.mark.parametrize("knowledge", [{"known-records": 300}, {"unmatched-records": 300}, {"known-sample": 300}], ids=str)
def test_records_in_clear_serve_whatever_they_are_called(knowledge):
    X = np.sign(np.random.default_rng(5).normal(size=(900, 2)))
    release = auditor.perturb(X, "independent", [0.2], seed=6)
    found = np.asarray(auditor.attack("sample-estimate", release, knowledge=knowledge).values)
    judged = ~np.isnan(found).any(axis=1)
    assert judged.sum() >= 600
    assert ((found - X)[judged] ** 2).mean() < 0.5 * auditor.attack("llse", release).distortion


def test_a_second_corner_wave_copy_changes_no_estimate_and_a_second_fresh_one_does():
    X = np.sign(np.random.default_rng(7).normal(size=(800, 2)))
    wave, fresh = (auditor.perturb(X, scheme, [0.5, 0.7], seed=8) for scheme in ("corner-wave", "correlated"))
    known = {"known-sample": 200}
    best, pooled = (auditor.attack("sample-estimate", wave, knowledge=known, coalition=c).values for c in ([1], [1, 2]))
    np.testing.assert_array_equal(pooled, best)
    best, pooled = (auditor.attack("sample-estimate", fresh, knowledge=known, coalition=c).distortion for c in ([1], [1, 2]))
    assert pooled < 0.85 * best


def test_nobody_without_records_can_use_it():
    release = auditor.perturb(np.eye(3)[[0, 1, 2, 0]], "independent", [0.5], seed=1)
    with pytest.raises(auditor.AuditorError, match="cannot use perfect knowledge"):
        auditor.attack("sample-estimate", release)


def apart(release, size, **parameters):
    """Estimates and true values of the rows that are not in the sample, and the sample."""
    X = np.asarray(release.original)
    given_rows = chosen_rows(KnownSample(size), len(X), 3, 1)
    rest = np.setdiff1d(np.arange(len(X)), given_rows)
    found = auditor.attack("sample-estimate", release, coalition="all", knowledge={"known-sample": size}, seed=3, **parameters)
    return np.asarray(found.values)[rest], X[rest], X[given_rows]


@pytest.mark.parametrize("parameters", [{}, {"bandwidth": 0.0}], ids=str)
@pytest.mark.parametrize("scheme", ["independent", "correlated", "corner-wave"])
def test_huge_noise_leaves_the_sample_s_mean(scheme, parameters):
    """At σ² = 1e8 a copy moves the estimate by 1e-4 of its 4 standard deviations. Of white noise the copies' covariance is rounding beside
    the noise's: taken for the data's, it made the estimates 600 standard deviations large."""
    X = np.random.default_rng(0).exponential(size=(600, 3))
    found, _, sample = apart(auditor.perturb(X, scheme, [1e8], seed=1), 100, **parameters)
    np.testing.assert_allclose(found, np.broadcast_to(sample.mean(axis=0), found.shape), atol=2e-3)


def test_tiny_noise_leaves_the_nearest_record_without_a_kernel_and_the_value_itself_with_one():
    X = np.random.default_rng(0).exponential(size=(600, 3))
    release = auditor.perturb(X, "independent", [1e-6], seed=1)
    found, rest, sample = apart(release, 100, bandwidth=0.0)
    distances = ((rest[:, None] - sample) ** 2).sum(axis=2)
    first, second = np.sort(distances, axis=1)[:, :2].T
    clear = second - first > 0.05  # beside it the noise decides nothing
    assert clear.mean() > 0.5
    np.testing.assert_allclose(found[clear], sample[distances.argmin(axis=1)][clear], atol=1e-6)
    np.testing.assert_allclose(apart(release, 100)[0], rest, atol=1e-2)


@pytest.mark.parametrize("scheme", ["independent", "correlated"])
def test_a_large_sample_of_normal_data_makes_it_the_llse(scheme):
    X = np.random.default_rng(0).normal(size=(6000, 2)) @ np.array([[1.0, 0.6], [0.0, 1.0]])
    release = auditor.perturb(X, scheme, [0.5, 0.8], seed=1)
    linear = np.asarray(auditor.attack("llse", release, coalition="all").values)
    rest = np.setdiff1d(np.arange(6000), chosen_rows(KnownSample(4000), 6000, 3, 1))
    for parameters in ({}, {"bandwidth": 0.0}):
        found = apart(release, 4000, **parameters)[0]
        assert ((found - linear[rest]) ** 2).mean() < 0.01 * ((linear - X)[rest] ** 2).mean()


@pytest.mark.parametrize("scheme", ["correlated", "corner-wave", "linearly-dependent"])
def test_a_total_beside_its_parts_and_noise_that_cancels(scheme):
    """Singular K_X, singular K_Z: no estimate leaves the plane that the data lie in, and linearly dependent copies give the values away."""
    parts = np.random.default_rng(4).exponential(size=(400, 2))
    found, rest, _ = apart(auditor.perturb(np.c_[parts, parts.sum(axis=1)], scheme, [0.5, 0.8], seed=1), 150)
    np.testing.assert_allclose(found[:, 0] + found[:, 1], found[:, 2], atol=1e-8)
    if scheme == "linearly-dependent":
        np.testing.assert_allclose(found, rest, atol=1e-6)


def test_covariances_of_records_and_of_copies_are_weighed_as_they_are_known_by_hand():
    """K = 1 from 11 records; of 10 copies in noise of variance 1 precision is 10·(1/2)² = 2.5 against 10: share 0.2 of K = 3."""
    one = np.ones((1, 1))
    np.testing.assert_allclose(weighed_covariance(one, 11, 3 * one, 10, one), 0.8 + 0.2 * 3)
    np.testing.assert_allclose(weighed_covariance(0 * one, 1, 3 * one, 10, one), 3.0)
