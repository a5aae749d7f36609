"""Guarantees from the law, against an accountant and equations."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from auditor.schemes.base import guarantees
from auditor.schemes.base.noise_density import NoiseDensity, geometric_rate
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise

ACCOUNTANT = json.loads((Path(__file__).parent / "accountant.json").read_text())
"""What Google's dp-accounting says; made by ``record_accountant.py``."""
K = np.array([[1.0, 0.5], [0.5, 2.0]])
SPANS = np.array([1.0, 2.0])
DELTA = 1e-5


def corner_wave(levels):
    return np.minimum.outer(levels, levels)


def scaled(levels):
    return np.sqrt(np.outer(levels, levels))


def of(law, copies, spans=SPANS):
    return {
        metric: figure.value
        for metric, figure in guarantees.Guarantees(law, spans, DELTA).of(copies).items()
    }


def product_law(distribution, levels, variances, *, one_process=False):
    Sigma = corner_wave(levels) if one_process else np.diag(levels)
    return KroneckerNoise(
        Sigma, np.diag(variances), distribution=distribution, one_process=one_process,
        units=np.ones(len(variances)),
    )  # fmt: skip


def test_delta_and_epsilon_are_the_accountants():
    for mu, epsilon, delta in ACCOUNTANT["gaussian_delta"]:
        assert guarantees.gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-15)
    for mu, delta, epsilon in ACCOUNTANT["gaussian_epsilon"]:
        assert guarantees.gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)
    for b, epsilon, delta in ACCOUNTANT["laplace_delta"]:
        if delta > 0:
            assert guarantees.laplace_epsilon(2.0 / b, delta) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize(("rate", "epsilon", "delta"), ACCOUNTANT["geometric_delta"])
def test_pure_epsilon_of_geometric_noise_is_where_the_accountants_delta_ends(rate, epsilon, delta):
    q = math.exp(-rate)
    pure = 3 * geometric_rate(2 * q / (1 - q) ** 2)
    assert pure == pytest.approx(3 * rate, rel=1e-9)
    assert (delta > 0) == (epsilon < pure - 1e-12)
    mu = guarantees.shift_mu(NoiseDensity("geometric", math.sqrt(2 * q) / (1 - q)), 3.0)
    assert guarantees.gaussian_delta(mu, epsilon) >= delta - 1e-12  # the promise of μ is true


def test_one_copy_of_one_attribute_is_the_change_over_the_deviation():
    found = of(KroneckerNoise(np.array([[0.25]]), np.array([[16.0]])), [1], np.array([6.0]))
    assert found["gaussian_dp"] == pytest.approx(3.0, rel=1e-12)  # 6 / (0.5·4)
    assert found["epsilon_at_delta"] == pytest.approx(guarantees.gaussian_epsilon(3.0, DELTA))
    assert math.isinf(found["epsilon"])


def test_independent_copies_add_precisions_and_corner_wave_costs_its_best_alone():
    levels = [0.5, 1.0, 0.8]
    alone = [of(KroneckerNoise(np.diag(levels), K), [copy])["gaussian_dp"] for copy in (1, 2, 3)]
    assert of(KroneckerNoise(np.diag(levels), K), [1, 2, 3])["gaussian_dp"] == pytest.approx(
        math.hypot(*alone), rel=1e-12
    )
    assert of(KroneckerNoise(corner_wave(levels), K), [1, 2, 3]) == of(
        KroneckerNoise(corner_wave(levels), K), [1]
    )
    assert of(KroneckerNoise(corner_wave(levels), K), [2, 3])["gaussian_dp"] == pytest.approx(
        alone[2], rel=1e-12
    )


@pytest.mark.parametrize("levels", [[0.5, 1.0], [1.0, 1.0 + 1e-9], [1e-6, 1e6]])
def test_two_scaled_copies_of_one_draw_guarantee_nothing_and_two_equal_ones_what_one_does(levels):
    assert math.isinf(of(KroneckerNoise(scaled(levels), K), [1, 2])["gaussian_dp"])
    once = of(KroneckerNoise(scaled([0.5]), K), [1])["gaussian_dp"]
    assert of(KroneckerNoise(scaled([0.5, 0.5]), K), [1, 2])["gaussian_dp"] == pytest.approx(
        once, rel=1e-9
    )


def test_noise_that_mixes_shapes_has_no_guarantee():
    assert set(of(DenseNoise(np.eye(6), 2), [1, 2, 3]).values()) == {math.inf}


@pytest.mark.parametrize("N", [1, 3, 12])
def test_the_worst_corner_is_the_longest_of_all(N):
    rng = np.random.default_rng(N)
    A, spans = rng.normal(size=(N, 2 * N)), rng.uniform(0.1, 9.0, N)
    C = A @ A.T
    found, inverse = guarantees.largest_length(C, spans), np.linalg.inv(C)
    corners = spans * np.array(list(product((-1, 1), repeat=N)))
    assert found.value == pytest.approx(
        np.sqrt(np.einsum("ki,ij,kj->k", corners, inverse, corners).max()), rel=1e-9
    )
    assert found.corner @ inverse @ found.corner == pytest.approx(found.value**2, rel=1e-9)
    inside = rng.uniform(-1, 1, (500, N)) * spans
    assert np.einsum("ki,ij,kj->k", inside, inverse, inside).max() <= found.value**2 * (1 + 1e-9)


def test_pure_epsilon_adds_up_over_attributes_and_independent_copies_and_a_process_costs_its_best():
    levels, variances = [2.0, 8.0], [1.0, 4.0]  # scales b: 1 and 2, and 2 and 4
    fresh, process = (
        product_law("laplace", levels, variances),
        product_law("laplace", levels, variances, one_process=True),
    )
    assert of(fresh, [1])["epsilon"] == pytest.approx(2.0)  # 1/1 + 2/2
    assert of(fresh, [1, 2])["epsilon"] == pytest.approx(3.0)
    assert of(process, [1, 2]) == of(process, [1])
    assert of(process, [1, 2])["epsilon"] == pytest.approx(2.0)
    q = 0.5
    geometric = product_law("geometric", [2 * q / (1 - q) ** 2], [1.0])
    assert of(geometric, [1], np.array([3.0]))["epsilon"] == pytest.approx(
        3 * math.log(2), rel=1e-12
    )


def test_uniform_noise_tells_some_records_apart_for_certain():
    law = product_law("uniform", [1.0, 1.0], [1.0, 4.0])
    found = guarantees.Guarantees(law, np.array([1e-7, 1e-7]), 1e-6).of([1])["epsilon_at_delta"]
    assert math.isinf(found.value)
    assert "for certain" in found.note


def trade_off(noise, change, t):
    missed, alarms = noise.cdf(t - change), noise.cdf(-t)
    return -norm.ppf(alarms) - norm.ppf(missed)


@pytest.mark.parametrize("distribution", ["laplace", "geometric", "skellam"])
@pytest.mark.parametrize("v", [0.1, 20.0, 2e4])
@pytest.mark.parametrize("d", [1, 7])
def test_mu_of_one_value_is_the_largest_over_all_tests_of_a_threshold(distribution, v, d):
    noise = NoiseDensity(distribution, math.sqrt(v))
    reach = 6 * math.sqrt(v) + d
    t = (
        d / 2 + np.linspace(-reach, reach, 4001)
        if distribution == "laplace"
        else np.arange(-math.ceil(reach), reach) + 0.5
    )
    found = trade_off(noise, d, t)
    assert guarantees.shift_mu(noise, float(d)) == pytest.approx(
        found[np.isfinite(found)].max(), rel=1e-9
    )
