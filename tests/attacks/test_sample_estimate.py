"""The sample estimate against the exact posterior mean."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.knowledge import KnownSample
from auditor.audit.numeric.moment_pass import chosen_rows
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Product
from auditor_attacks.sample_estimate import Kernel, OverRecords

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def test_hand_values():
    """Two records, ±1, in noise of variance ½."""
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
        q = np.array([np.exp(-0.5 * (row - x) @ np.linalg.inv(T) @ (row - x)) / np.sqrt(np.linalg.det(T)) for x in records])  # fmt: skip
        expected[i] = (sum(q[j] * (x + h2K @ np.linalg.inv(T) @ (row - x)) for j, x in enumerate(records)) / q.sum())  # fmt: skip
        total += np.log(q.sum())
    kernel = Kernel(records, c, bandwidth)
    np.testing.assert_allclose(kernel.mean(u), expected, atol=1e-7)
    assert kernel.log_likelihood(u) == pytest.approx(total, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("parameters", [{}, {"bandwidth": 0.0}], ids=str)
@pytest.mark.parametrize("scheme", ["independent", "corner-wave"])
def test_huge_noise_leaves_the_sample_s_mean(scheme, parameters):
    X = np.random.default_rng(0).exponential(size=(600, 3))
    release = auditor.perturb(X, scheme, [1e8], seed=1)
    given_rows = chosen_rows(KnownSample(100), len(X), 3, 1)
    found = auditor.attack(
        "sample-estimate", release, coalition="all", knowledge={"known-sample": 100}, seed=3,
        **parameters,
    )  # fmt: skip
    left = np.delete(np.asarray(found.values), given_rows, axis=0)
    mean = X[given_rows].mean(axis=0)
    np.testing.assert_allclose(left, np.broadcast_to(mean, left.shape), atol=2e-3)


def test_two_records_under_laplace_noise_by_hand():
    """Records 0 and 1, scale 1, copies ½ and 2 of equal noise."""
    channel = Product((NoiseDensity("laplace", np.sqrt(2.0)),) * 2, (0, 1))
    found = OverRecords([channel], np.array([[0.0], [1.0]])).rows(
        [np.array([[0.5]]), np.array([[2.0]])]
    )
    assert found[0, 0] == pytest.approx(np.e / (1 + np.e), rel=1e-12)
