"""The sample estimate: Bayes' rule over a sample's records as it is written, and the exact posterior mean that it converges to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.adversary.knowledge import KnownSample
from auditor.audit.numeric.known_rows import chosen_rows
from auditor.numerics.linear_algebra import Pencil
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Overlap, Product
from auditor_attacks._deconvolution import Mixture, Posterior
from auditor_attacks.sample_estimate import Kernel, OverRecords, kernel_points, weighed_covariance

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def test_hand_values():
    """Two records, ±1, in noise of variance ½: ``tanh(2u)``; one record and a kernel: a half of the way to what is seen."""
    points, u = np.array([[1.0], [-1.0]]), np.array([[-2.0], [0.0], [0.3]])
    np.testing.assert_allclose(
        Kernel(points, np.array([0.5]), 0.0).mean(u), np.tanh(2 * u), atol=1e-9
    )
    np.testing.assert_allclose(
        Kernel(points[:1], np.array([0.5]), 1.0).mean(u), (1.0 + u) / 2, atol=1e-9
    )


@given(seed=seeds, bandwidth=st.sampled_from([0.0, 0.3, 2.0]))
@properties
def test_estimate_and_likelihood_are_those_of_the_equation_written_out(seed, bandwidth):
    rng = np.random.default_rng(seed)
    records, u, c = rng.normal(size=(7, 3)), rng.normal(size=(5, 3)), rng.uniform(0.2, 0.8, 3)
    h2K, noise = np.diag(bandwidth**2 * c), np.diag(1.0 - c)
    T = h2K + noise
    expected, total = np.empty_like(u), 0.0
    for i, row in enumerate(u):
        q = np.array(
            [
                np.exp(-0.5 * (row - x) @ np.linalg.inv(T) @ (row - x)) / np.sqrt(np.linalg.det(T))
                for x in records
            ]
        )
        expected[i] = (
            sum(q[j] * (x + h2K @ np.linalg.inv(T) @ (row - x)) for j, x in enumerate(records))
            / q.sum()
        )
        total += np.log(q.sum())
    kernel = Kernel(records, c, bandwidth)
    np.testing.assert_allclose(kernel.mean(u), expected, atol=1e-7)
    assert kernel.log_likelihood(u) == pytest.approx(total, rel=1e-7, abs=1e-7)


def test_a_row_far_from_every_record_takes_the_nearest():
    np.testing.assert_allclose(
        Kernel(np.array([[0.0], [1.0]]), np.array([0.5]), 0.0).mean(np.array([[1e4], [-1e4]])),
        [[1.0], [0.0]],
    )


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
    excess = ((np.asarray(found.values)[judged] - exact) ** 2).sum(axis=1).mean() / X.var(
        axis=0
    ).sum()
    # shares estimated from m records are off by p(1 − p)/m, and the estimate by less than the
    # atoms' spread times that: 3·(1/2000)·K
    assert excess < 0.005
    llse = auditor.attack("llse", release).normalized_error
    assert found.normalized_error < 0.8 * llse


def test_its_excess_over_the_exact_posterior_mean_falls_as_the_sample_grows():
    rng = np.random.default_rng(3)
    which = rng.random(9000) < 0.5
    X = np.where(which[:, None], [2.0, 1.0], [-2.0, -1.0]) + 0.4 * rng.normal(size=(9000, 2))
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.0}, seed=4)
    prior = Mixture(
        np.full(2, 0.5), np.array([[2.0, 1.0], [-2.0, -1.0]]), np.array([0.16 * np.eye(2)] * 2)
    )
    exact = Posterior(prior, np.ones(2)).mean(np.asarray(release.copies[0]))

    def excess(size):
        values = np.asarray(
            auditor.attack("sample-estimate", release, knowledge={"known-sample": size}).values
        )
        return np.nanmean(((values - exact) ** 2).sum(axis=1)) / X.var(axis=0).sum()

    few, some, many = excess(10), excess(200), excess(4000)
    assert many < some < few
    assert many < 0.002  # of the variance


@pytest.mark.parametrize(
    "knowledge",
    [{"known-records": 300}, {"unmatched-records": 300}, {"known-sample": 300}],
    ids=str,
)
def test_records_in_clear_serve_whatever_they_are_called(knowledge):
    X = np.sign(np.random.default_rng(5).normal(size=(900, 2)))
    release = auditor.perturb(X, "independent", [0.2], seed=6)
    found = np.asarray(auditor.attack("sample-estimate", release, knowledge=knowledge).values)
    judged = ~np.isnan(found).any(axis=1)
    assert judged.sum() >= 600
    assert ((found - X)[judged] ** 2).mean() < 0.5 * auditor.attack("llse", release).distortion


def test_a_second_corner_wave_copy_changes_no_estimate_and_a_second_fresh_one_does():
    X = np.sign(np.random.default_rng(7).normal(size=(800, 2)))
    wave, fresh = (
        auditor.perturb(X, scheme, [0.5, 0.7], seed=8) for scheme in ("corner-wave", "correlated")
    )
    known = {"known-sample": 200}
    best, pooled = (
        auditor.attack("sample-estimate", wave, knowledge=known, coalition=c).values
        for c in ([1], [1, 2])
    )
    np.testing.assert_array_equal(pooled, best)
    best, pooled = (
        auditor.attack("sample-estimate", fresh, knowledge=known, coalition=c).distortion
        for c in ([1], [1, 2])
    )
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
    found = auditor.attack(
        "sample-estimate",
        release,
        coalition="all",
        knowledge={"known-sample": size},
        seed=3,
        **parameters,
    )
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
    found, rest, _ = apart(
        auditor.perturb(np.c_[parts, parts.sum(axis=1)], scheme, [0.5, 0.8], seed=1), 150
    )
    np.testing.assert_allclose(found[:, 0] + found[:, 1], found[:, 2], atol=1e-8)
    if scheme == "linearly-dependent":
        np.testing.assert_allclose(found, rest, atol=1e-6)


def test_covariances_of_records_and_of_copies_are_weighed_as_they_are_known_by_hand():
    """K = 1 from 11 records; of 10 copies in noise of variance 1 precision is 10·(1/2)² = 2.5 against 10: share 0.2 of K = 3."""
    one = np.ones((1, 1))
    np.testing.assert_allclose(weighed_covariance(one, 11, 3 * one, 10, one), 0.8 + 0.2 * 3)
    np.testing.assert_allclose(weighed_covariance(0 * one, 1, 3 * one, 10, one), 3.0)
    # one record says nothing of a variance, whatever rounding does to the copies' share
    for variance in np.linspace(0.001, 2.0, 50):
        np.testing.assert_allclose(
            weighed_covariance(0 * one, 1, variance * one, 40, one), variance
        )


# -- noise of other laws
# ------------------------------------------------------------------------------------------------


def test_two_records_under_laplace_noise_by_hand():
    """Records 0 and 1, scale 1, copies ½ and 2 of equal noise: exponents −½ − 2 and −½ − 1, so 1 has odds e : 1."""
    channel = Product((NoiseDensity("laplace", np.sqrt(2.0)),) * 2, (0, 1))
    found = OverRecords([channel], np.array([[0.0], [1.0]])).rows(
        [np.array([[0.5]]), np.array([[2.0]])]
    )
    assert found[0, 0] == pytest.approx(np.e / (1 + np.e), rel=1e-12)


@given(seed=seeds, distribution=st.sampled_from(["laplace", "geometric", "skellam"]))
@properties
def test_weights_are_products_of_densities_over_attributes_and_copies(seed, distribution):
    rng = np.random.default_rng(seed)
    noise = [[NoiseDensity(distribution, s) for s in rng.uniform(0.5, 3.0, 2)] for _ in range(3)]
    records, copies = (
        rng.integers(-4, 5, size=(6, 3)).astype(float),
        [rng.integers(-6, 7, size=(5, 3)).astype(float) for _ in range(2)],
    )
    found = OverRecords([Product(tuple(each), (0, 1)) for each in noise], records).rows(copies)
    for row in range(5):
        q = np.array(
            [
                np.prod(
                    [
                        noise[a][i].pdf(np.array(copies[i][row, a] - x[a]))
                        for a in range(3)
                        for i in range(2)
                    ]
                )
                for x in records
            ]
        )
        np.testing.assert_allclose(found[row], q @ records / q.sum(), atol=1e-9)


def test_gaussian_densities_are_the_kernel_without_a_bandwidth():
    """Identity covariances: the pencil's coordinates are the data's over √2, its noise ½."""
    rng = np.random.default_rng(2)
    records, y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    found = OverRecords([Combined(NoiseDensity("gaussian", 1.0), np.ones(1))] * 2, records).rows(
        [y]
    )
    kernel = Kernel(records / np.sqrt(2.0), np.full(2, 0.5), 0.0).mean(y / np.sqrt(2.0))
    np.testing.assert_allclose(found, kernel * np.sqrt(2.0), atol=1e-7)


def test_what_no_record_can_have_led_to_is_taken_from_the_copies():
    channel = Overlap(NoiseDensity("uniform", 1 / np.sqrt(3.0)), np.ones(1))
    found = OverRecords([channel], np.array([[0.0], [0.5]])).rows([np.array([[0.2], [7.0], [1.2]])])
    np.testing.assert_allclose(found[:, 0], [0.25, 7.0, 0.5])


def test_points_drawn_from_the_kernel_come_to_its_closed_form():
    """Gaussian noise, for which there is one: with 67 points a record means are off by some 0.1 deviations of the posterior."""
    rng = np.random.default_rng(4)
    records, y = rng.normal(size=(30, 2)), rng.normal(size=(40, 2))
    pencil, found = (
        Pencil.of(np.eye(2), np.eye(2)),
        [Combined(NoiseDensity("gaussian", 1.0), np.ones(1))] * 2,
    )
    drawn = OverRecords(found, kernel_points(records, pencil, 0.6, found, rng)).rows([y])
    kernel = Kernel(records @ pencil.inverse.T, pencil.share, 0.6)
    np.testing.assert_allclose(drawn, kernel.mean(y @ pencil.inverse.T) @ pencil.basis.T, atol=0.15)
    near, far = (
        OverRecords(found, kernel_points(records, pencil, h, found, rng)).log_likelihood([y])
        for h in (0.6, 5.0)
    )
    exact = [
        Kernel(records @ pencil.inverse.T, pencil.share, h).log_likelihood(y @ pencil.inverse.T)
        for h in (0.6, 5.0)
    ]
    assert near - far == pytest.approx(exact[0] - exact[1], rel=0.05)


def test_on_a_lattice_points_are_drawn_by_whole_steps():
    found = [
        Product((NoiseDensity("geometric", 1.0, 0.25),), (0,)),
        Product((NoiseDensity("laplace", 1.0),), (0,)),
    ]
    points = kernel_points(
        np.array([[0.25, 0.1]]),
        Pencil.of(np.eye(2), np.eye(2)),
        0.5,
        found,
        np.random.default_rng(1),
    )
    np.testing.assert_array_equal(points[:, 0] * 4, np.rint(points[:, 0] * 4))
    assert len(np.unique(points[:, 1])) == len(points) == 2000


def test_under_laplace_noise_a_kernel_is_worth_having_where_records_are_few():
    X, alone, smoothed = np.random.default_rng(6).normal(size=(1500, 2)), [], []
    for seed in range(6):
        release = auditor.perturb(X, "laplace", [0.5], seed=seed)
        for found, more in ((alone, {"bandwidth": 0.0}), (smoothed, {})):
            found.append(
                auditor.attack(
                    "sample-estimate", release, seed=seed, knowledge={"known-sample": 40}, **more
                ).distortion
            )
    assert (np.array(smoothed) < alone).all()
    assert sum(smoothed) < 0.98 * sum(alone)
