"""Tests of noise row by row are what their definitions say, however few passes over the rows they take."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, norm, t

from auditor.audit.drawn_law import low_digits
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.audit.drawn_law.column_tests import (
    CELLS,
    _in_order,
    distribution_test,
    joint_test,
    neighbours_test,
    other_rows_test,
    pairs_on_the_data_test,
    repeats_test,
    waves_test,
)
from auditor.audit.drawn_law.columns import Columns
from auditor.audit.drawn_law.low_digits import GRID, Column, Weight
from auditor.audit.drawn_law.rows import DIFFERENCE, SHARES, row_tests
from auditor.numerics.statistics import ranks
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise

N_ROWS = 5_001
LAW = KroneckerNoise(np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 4.0]]), np.array([[9.0, 1.0], [1.0, 1.0]]))
NAMES, COPIES = ("a", "b"), (2, 4, 5)


def noise(seed=1):
    z = np.random.default_rng(seed).multivariate_normal(np.zeros(6), LAW.covariance, N_ROWS).reshape(-1, 3, 2)
    z[:40, 1, 1] = z[:40, 0, 1] * math.sqrt(2.0)  # forty rows of one attribute are the first copy's, over its deviation
    return z


def found_of(law, z):
    x = np.random.default_rng(2).normal(size=(N_ROWS, 2))
    return {test.statistic: test for test in row_tests(law, Rows(x, z, np.full((3, 2), 1e-12)), NAMES, COPIES)}


@pytest.mark.parametrize("law", [LAW, DenseNoise(LAW.covariance, 2)], ids=["kronecker", "dense"])
def test_equal_copies_are_counted_pair_by_pair_as_written(law):
    z, found = noise(), []
    for i, k in ((1, 0), (2, 0), (2, 1)):
        for factor_of in (lambda own, other: 1.0, lambda own, other: math.sqrt(own / other)):
            for share in SHARES:
                for j in range(2):
                    own, other, both = (LAW.covariance[2 * a + j, 2 * b + j] for a, b in ((i, i), (k, k), (i, k)))
                    factor = factor_of(own, other)
                    deviation = math.sqrt(own + factor**2 * other - 2.0 * factor * both)
                    met = int((np.abs(z[:, i, j] - factor * z[:, k, j]) / deviation < share).sum())
                    blur = 1e-12 * (1.0 + factor) / deviation
                    if share >= 8.0 * blur:
                        chance = 2.0 * DIFFERENCE * (share + blur)
                        found.append(
                            (binom.sf(met - 1, N_ROWS, chance), met / N_ROWS, f"copies {COPIES[k]} and {COPIES[i]}, of {NAMES[j]!r}")
                        )
    test = found_of(law, z)["equal copies"]
    p, observed, which = min(found)
    assert test.tests == len(found) == 48
    assert test.p == pytest.approx(48 * p, rel=1e-6)
    assert test.p < 1e-9
    assert test.observed == observed
    assert which in test.where
    assert which == "copies 2 and 4, of 'b'"


def test_no_two_copies_tell_nothing():
    """Of linearly dependent copies, where differences over deviations are rounding, the differences as they are are tested."""
    tied = KroneckerNoise(np.sqrt(np.outer([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])), LAW.shape)
    g = noise()[:, :1]
    assert found_of(tied, g * np.sqrt([1.0, 2.0, 4.0])[:, None])["equal copies"].tests == 3 * 2 * len(SHARES)
    assert "equal copies" not in found_of(KroneckerNoise(np.ones((3, 3)), LAW.shape), np.repeat(g, 3, axis=1))


def test_the_row_with_least_noise_is_that_of_the_shortest_whitened_one():
    z = noise()
    z[17, 2] = [1e-7, -2e-7]
    test = found_of(LAW, z)["rows without noise"]
    W = np.linalg.inv(np.linalg.cholesky(4.0 * LAW.shape))
    assert test.observed == pytest.approx(np.linalg.norm(z[:, 2] @ W.T, axis=1).min() / math.sqrt(2.0))
    assert "copy 5" in test.where


def test_correlations_are_those_of_columns_of_length_1():
    rng = np.random.default_rng(3)
    g, w = rng.normal(size=(2, N_ROWS, 4))
    g[:, 3] = 0.0  # a copy without noise: 0, and no 0/0
    z = []
    for first, second in ((range(0, N_ROWS - 1, 2), range(1, N_ROWS - 1, 2)), (range(1, N_ROWS - 2, 2), range(2, N_ROWS - 1, 2))):
        z += [g[first, a] @ g[second, b] / np.linalg.norm(g[first, a]) for a in range(3) for b in range(4)]
        z += [w[first, a] @ w[second, a] / np.linalg.norm(w[first, a]) for a in range(4)]
    test = neighbours_test(g, w)
    assert test.observed == pytest.approx(np.abs(z).max() / math.sqrt(N_ROWS - 1), rel=1e-12)
    assert test.p == pytest.approx(min(1.0, 2.0 * test.tests * norm.sf(np.abs(z).max())))
    unit = [columns[:, :3] / np.linalg.norm(columns[:, :3], axis=0) for columns in (g, w)]
    r = max(*(abs(unit[1][:, a] @ unit[1][:, b]) for a, b in combinations(range(3), 2)),
            *(abs(unit[0][:, a] @ unit[1][:, b]) for a in range(3) for b in range(3) if a != b))  # fmt: skip
    joint = joint_test(g[:, :3], w[:, :3])
    assert joint.observed == pytest.approx(r, rel=1e-12)
    assert joint.p == pytest.approx(min(1.0, 18 * t.sf(r * math.sqrt((N_ROWS - 1) / (1 - r**2)), N_ROWS - 1)))


def test_counts_by_cell_are_those_of_all_rows_at_once():
    """Of 2.1 times as many rows as are counted at once."""
    law, values = KroneckerNoise(np.eye(1), np.eye(2)), np.random.default_rng(4).normal(size=(2150, 2)) * [1.0, 1.1]
    test = distribution_test(Columns.of(values, np.zeros(2), NAMES, law), law)
    gaps = [np.abs((ndtr(values) < edge).mean(axis=0) - edge) for edge in np.arange(1, CELLS + 1) / CELLS]
    assert test.observed == pytest.approx(np.max(gaps), rel=1e-12)
    assert "of b" in test.where


def test_values_in_order_from_0_to_1():
    values = np.concatenate([[1.0, 0.0, 1.0, 0.5, 0.5, 5e-324, 1.0 - 2.0**-53], np.random.default_rng(5).random(9_000), np.full(50, 0.3)])
    np.testing.assert_array_equal(_in_order(values), np.sort(values))
    np.testing.assert_array_equal(_in_order(values[::3]), np.sort(values[::3]))


def test_repeats_are_counted_in_every_column_and_among_all():
    law, rng = KroneckerNoise(np.eye(1), np.eye(2)), np.random.default_rng(6)
    values = rng.normal(size=(N_ROWS, 2))
    values[:30, 1] = -values[-30:, 1]
    columns = Columns.of(values, np.full(2, 1e-13), NAMES, law)
    test = repeats_test(columns, columns, law)
    assert (test.tests, test.observed) == (3, 30 / N_ROWS)
    assert "of b" in test.where
    values[:30] = rng.normal(size=(30, 2))
    values[100:140, 1] = values[:40, 0]
    columns = Columns.of(values, np.full(2, 1e-13), NAMES, law)
    assert repeats_test(columns, columns, law).observed == 40 / (2 * N_ROWS)


@pytest.mark.parametrize(("most", "shared"), [(6, [[0], [1], [2]]), (4, [[0, 2], [1]]), (1, [[0, 1, 2]])])
def test_what_is_swept_is_every_sum_on_the_grid_as_written(monkeypatch, most, shared):
    """Six pairs, of whose places nothing may be left from the one before; where transforms are few, functions w are added up."""
    monkeypatch.setattr(low_digits, "MOST_SWEPT", most)
    rng, n = np.random.default_rng(7), 1500
    values = rng.normal(size=(2, n))
    told = []
    for number in range(3):
        w = np.exp(2j * np.pi * rng.random(n))
        told.append(Weight((w / np.linalg.norm(w)).astype(np.complex64), 1, f"w{number}"))
    columns = [Column(np.ones(1), f"c{place}", place, np.ones(1), math.inf, True) for place in range(2)]
    found = list(low_digits._swept(columns, values, {0: told, 1: told}))
    expected = [(place, [told[each] for each in some]) for place in range(2) for some in shared]
    for one, (place, some) in zip(found, expected, strict=True):
        assert (one.column.name, [weight.name for weight in one.weights]) == (f"c{place}", [weight.name for weight in some])
        span, on_grid = np.ptp(values[place]), np.zeros(GRID, dtype=complex)
        for value, each in zip(values[place], sum(weight.values for weight in some), strict=True):
            on_grid[int((value - values[place].min()) * ((GRID - 1) / span))] += each
        sums = np.abs(np.fft.fft(on_grid / np.linalg.norm(sum(weight.values for weight in some))))
        both = {cycles: max(sums[cycles], sums[-cycles]) for cycles in range(math.ceil(span), GRID // 2)}
        assert one.t == pytest.approx(max(both.values()) ** 2, rel=1e-5)
        assert both[round(one.frequency * span)] == pytest.approx(max(both.values()), rel=1e-5)
        assert one.tests == 2 * len(both)
        wave = np.exp(2j * np.pi * one.frequency * values[place])
        alone = {weight.name: max(abs((weight.values * wave).sum()), abs((weight.values / wave).sum())) for weight in some}
        assert one.plainest() == (pytest.approx(max(alone.values()) / math.sqrt(n), rel=1e-5), max(alone, key=alone.__getitem__))


def test_ranks_of_equal_values_are_the_mean_of_theirs():
    np.testing.assert_array_equal(ranks(np.array([3.0, 1.0, 3.0, 2.0])), [0.875, 0.25, 0.875, 0.5])
    values = np.random.default_rng(9).integers(0, 30, 200).astype(float)
    by_hand = [((values < value).sum() + ((values == value).sum() + 1) / 2) / 200 for value in values]
    np.testing.assert_allclose(ranks(values), by_hand, rtol=1e-15)


def test_correlations_with_other_records_are_those_at_every_distance_row_by_row():
    """301 rows go round in a circle of 320 places (a length that is quick to transform), of which 19 hold nothing."""
    rng = np.random.default_rng(9)
    x, g, w = rng.normal(size=(301, 2)) ** 3, rng.normal(size=(301, 3)), rng.normal(size=(301, 3))
    w[0, 0] = -37.0  # of a size of 0, on a grid: it counts as −6
    test = other_rows_test(x, g, w, ["a", "b", "c"])
    d = x - x.mean(axis=0)
    side = d / (np.abs(d).mean(axis=0) + np.abs(d))
    most = {True: 0.0, False: 0.0}
    for data, noise in ((side, g), (np.abs(side).sum(axis=1, keepdims=True), np.clip(w, -6.0, 6.0))):
        a = data - data.mean(axis=0)
        a = np.vstack([a / np.sqrt((a**2).sum(axis=0)), np.zeros((19, a.shape[1]))])
        for lag in range(320):
            near = min(lag, 320 - lag) <= 8
            most[near] = max(most[near], abs(np.roll(a, -lag, axis=0)[:301].T @ noise).max())
    tests = {near: (17 if near else 303) * (2 + 1) * 3 for near in most}
    assert test.tests == 2 * tests[True]
    assert test.p == pytest.approx(min(1.0, *(4 * tests[near] * norm.sf(most[near]) for near in most)), rel=1e-3)
    assert other_rows_test(np.ones((301, 2)), g, w, ["a", "b", "c"]) is None


def test_pairs_and_the_data_are_products_row_by_row():
    rng = np.random.default_rng(10)
    x, e = rng.normal(size=(80, 2)) ** 3, rng.normal(size=(80, 3))
    d = x - x.mean(axis=0)
    a = (a := d / (np.abs(d).mean(axis=0) + np.abs(d))) - a.mean(axis=0)
    z = [(column * e[:, i] * e[:, k]).sum() / math.sqrt((column**2 * e[:, i] ** 2).sum()) for column in a.T for i, k in combinations(range(3), 2)]
    test = pairs_on_the_data_test(x, e)
    assert test.tests == len(z) == 6
    assert test.p == pytest.approx(min(1.0, 12 * norm.sf(max(map(abs, z)))))
    assert pairs_on_the_data_test(x, e[:, :1]) is None


def test_waves_are_sums_of_phases_at_every_frequency_in_three_orders():
    rng = np.random.default_rng(11)
    x, v = rng.normal(size=(90, 2)), rng.random((90, 3))
    test, most = waves_test(x, v, ["one", "two", "three"], ["a", "b"]), 0.0
    for order in (np.arange(90), x[:, 0].argsort(), x[:, 1].argsort()):
        for f in range(90):
            t = np.abs(np.exp(2j * np.pi * (v[order] - f * np.arange(90)[:, None] / 90)).sum(axis=0)) ** 2 / 90
            most = max(most, t.max())
    assert test.tests == 3 * 3 * 90
    assert test.observed == pytest.approx(math.sqrt(most / 90), rel=1e-5)
    assert test.p == pytest.approx(min(1.0, test.tests * most * math.exp(1 - most)), rel=1e-3)
