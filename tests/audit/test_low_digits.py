"""Codes in low digits are found, whatever they hold and from whichever digit on; honest copies are not accused, rounded or not.

Honest releases are accused once in 10,000 times at most, by a bound, so that no test here fails by chance more often than once in 100 runs.
"""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import ndtr

import auditor
from auditor.audit.law_tests.chosen_rows import grids, rows_of
from auditor.audit.drawn_law.low_digits import innovations, low_digits_test
from auditor.audit.drawn_law.rows import row_tests
from auditor.numerics.statistics import wave_tail
from auditor.schemes.base.noise_law import KroneckerNoise, psd_root
from auditor.schemes.planted.innovations import ranks
from auditor.selftest import CaseTable

LEVELS = np.array([0.3, 0.6, 0.9])
CERTAIN = 1e-6


def release(code=None, rows=1000, seed=1, kind="lognormal", share=0.5):
    """Law, table and corner-wave copies at three levels; ``code(x, g)`` changes innovations in this share of rows."""
    rng = np.random.default_rng(seed)
    x = CaseTable(records=kind).frame(rows, rng).to_numpy()
    law = KroneckerNoise(np.minimum.outer(LEVELS, LEVELS), np.cov(x.T, bias=True).reshape(x.shape[1], -1))
    g = rng.standard_normal((3, *x.shape))
    fair = g.copy()
    if code is not None:
        code(x, g)
    g = np.where(rng.random((rows, 1)) < share, g, fair)
    z = np.cumsum(math.sqrt(0.3) * g, axis=0) @ psd_root(law.shape).T
    return law, x, [x + each for each in z]


def found_in(law, x, copies):
    return low_digits_test(law, rows_of([(x, copies)], [1, 2, 3], True), [1, 2, 3])


def written(values, frequency, held):
    """The same values, with digits after those worth 1/frequency that hold a share."""
    return (np.floor(values * frequency) + held) / frequency


def noise_in(frequency):
    def code(x, g):
        g[1] = written(g[1], frequency, ndtr(g[0]))

    return code


def record_in(frequency):
    def code(x, g):
        g[1] = written(g[1], frequency, 1.0 - ranks(x))

    return code


def in_the_sum_of_attributes(x, g):
    total = g[1].sum(axis=1)
    g[1][:, 0] += written(total, 1000.0, ndtr(g[0][:, 0])) - total


def of_the_other_attribute_in_the_third_copy(x, g):
    g[2] = written(g[2], 1000.0, ndtr(g[0][:, ::-1]))


CODES = {
    "2nd decimal": noise_in(100.0), "3rd": noise_in(1000.0), "6th": noise_in(1e6), "sevenths": noise_in(7000.0), "thirds": noise_in(1000 / 3),
    "pi": noise_in(1000 * math.pi), "record": record_in(1000.0), "record, 6th": record_in(1e6), "record, sevenths": record_in(700.0),
    "sum": in_the_sum_of_attributes, "another's": of_the_other_attribute_in_the_third_copy,
}  # fmt: skip


QUICK = ("3rd", "sevenths", "record, 6th", "sum")


@pytest.mark.parametrize("code", [pytest.param(CODES[name], id=name, marks=() if name in QUICK else pytest.mark.slow) for name in CODES])
def test_a_code_in_low_digits_is_found_in_a_thousand_rows(code):
    assert found_in(*release(code)).p < CERTAIN


def test_a_code_in_the_digits_of_a_copy_or_in_a_tenth_of_the_rows_is_found():
    law, x, copies = release()
    z = copies[0] - x
    for changed, held in ((1, ndtr(z / z.std(axis=0))), (0, ranks(x))):
        told = list(copies)
        told[changed] = written(copies[changed], 100.0, held)
        assert found_in(law, x, told).p < CERTAIN
    assert found_in(*release(noise_in(1000.0), rows=6000, share=0.1)).p < CERTAIN


@pytest.mark.slow
@pytest.mark.parametrize("frequency", [7000.0, 1e6])
def test_a_code_is_found_in_any_of_eight_copies_whichever_other_it_holds(frequency):
    """Of 28 pairs: where functions w were left out rather than added up, 11 and 18 were found."""
    levels, rows = np.linspace(0.3, 1.0, 8), 8000
    for held, told in combinations(range(8), 2):
        rng = np.random.default_rng(100 * held + told)
        x = np.exp(rng.normal(size=(rows, 2)) @ np.array([[1.0, 0.5], [0.0, 0.8]]))
        law = KroneckerNoise(np.minimum.outer(levels, levels), np.cov(x.T, bias=True))
        g = rng.standard_normal((8, rows, 2))
        fair = g.copy()
        g[told] = written(g[told], frequency, ndtr(g[held]) if held else 1.0 - ranks(x))
        g = np.where(rng.random((rows, 1)) < 0.5, g, fair)
        z = np.cumsum(np.sqrt(np.diff(levels, prepend=0.0))[:, None, None] * g, axis=0) @ psd_root(law.shape).T
        everyone = list(range(1, 9))
        test = low_digits_test(law, rows_of([(x, [x + each for each in z])], everyone, True), everyone)
        assert test.p < CERTAIN, (told, held)


ROUNDINGS = {
    "as it is": lambda y: y,
    "single precision": lambda y: y.astype(np.float32).astype(np.float64),
    "three decimals": lambda y: np.round(y, 3),
    "six decimals": lambda y: np.round(y, 6),
    "public grid": lambda y: np.round(y * 2.0**20) / 2.0**20,
    "parts of 3,000": lambda y: np.round(3000 * y) / 3000,
    "off by the last bit": lambda y: np.round(y, 4) + 50.0 - 50.0,
    "off by the last bit of single precision": lambda y: np.round(y, 4).astype(np.float32).astype(np.float64),
    "five significant digits": lambda y: np.round(y / (ten := 10.0 ** np.floor(np.log10(np.abs(y)))), 4) * ten,
}


@pytest.mark.parametrize(("kind", "rounding"), [
    pytest.param(kind, rounding, marks=() if kind == "heaped" and "off" in rounding else pytest.mark.slow)
    for kind, rounding in product(("heaped", "lognormal", "normal"), ROUNDINGS)])  # fmt: skip
def test_honest_copies_are_not_accused_however_they_are_rounded(kind, rounding):
    """By no test of single rows: «equal copies» and «repeats» were found of copies on a grid that was not seen."""
    for exact in (True, False):
        law, x, copies = release(rows=1500, kind=kind, seed=5)
        x = x if exact else np.round(x, 2)
        copies = [ROUNDINGS[rounding](copy) for copy in copies]
        tests = row_tests(law, rows_of([(x, copies)], [1, 2, 3], True), ("a", "b"), [1, 2, 3])
        assert min((test.p for test in tests), default=1.0) > 1e-5


def test_copies_that_are_made_for_release_are_not_accused():
    for seed, kind in enumerate(("normal", "lognormal", "heaped")):
        law, x, _ = release(kind=kind, seed=seed)
        copies = auditor.perturb(x, "corner-wave", LEVELS.tolist(), seed=seed).copies
        assert found_in(law, x, copies).p > 1e-4


def test_copies_that_are_one_another_s_noise_by_law_are_left_to_other_tests():
    """Of linearly dependent copies and of one copy out twice the digits say everything, as their law does."""
    law, x, copies = release(rows=300)
    tied = np.sqrt(np.outer(LEVELS, LEVELS))
    z = (copies[0] - x) / math.sqrt(0.3)
    assert found_in(KroneckerNoise(tied, law.shape), x, [x + math.sqrt(level) * z for level in LEVELS]).p > 1e-4
    twice = KroneckerNoise(np.full((3, 3), 0.3), law.shape)
    assert found_in(twice, x, [copies[0]] * 3).p > 1e-4


def test_one_attribute_a_constant_one_and_few_rows():
    law, x, copies = release(rows=300)
    one = KroneckerNoise(law.level_covariance, law.shape[:1, :1])
    assert found_in(one, x[:, :1], [copy[:, :1] for copy in copies]).p > 1e-4
    still = KroneckerNoise(law.level_covariance, law.shape * np.outer([1, 0], [1, 0]))
    flat = np.column_stack([x[:, 0], np.full(300, 7.0)])
    assert found_in(still, flat, [np.column_stack([copy[:, 0], flat[:, 1]]) for copy in copies]).p > 1e-4
    assert found_in(law, x[:3], [copy[:3] for copy in copies]).p > 1e-4
    assert low_digits_test(KroneckerNoise(np.eye(3), law.shape, distribution="uniform"), rows_of([(x, copies)], [1, 2, 3], True), [1]) is None


# -- the parts -------------------------------------------------------------------------------------------------------------


def test_innovations_of_nested_copies_are_their_differences_and_of_fresh_ones_themselves():
    K_0 = np.array([[4.0, 0.6e-6], [0.6e-6, 1e-12]])  # in units a million times apart
    for Sigma, tied in ((np.minimum.outer([0.5, 0.2], [0.5, 0.2]), 1.0), (np.diag([0.5, 0.2]), 0.0)):
        first, second = innovations(np.kron(Sigma, K_0), 2)
        assert (first.place, second.place, second.before) == (1, 0, (1,))
        np.testing.assert_allclose(second.B, np.hstack([np.eye(2), -tied * np.eye(2)]), atol=1e-7)
        np.testing.assert_allclose(second.C, (0.3 if tied else 0.5) * K_0, rtol=1e-9)
        np.testing.assert_allclose(second.whiten @ second.C @ second.whiten.T, np.eye(2), atol=1e-9)


def test_the_largest_sum_is_that_of_the_formula_as_written():
    """One attribute, one copy, 300 rows: only decimals, the digits of the copy, and the record's rank."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 1))
    y = written(x + rng.normal(size=(300, 1)), 10.0, ranks(x))
    found = low_digits_test(KroneckerNoise(np.eye(1), np.eye(1)), rows_of([(x, [y])], [1], True), [1])
    largest = 0.0
    for k, sign, f in product((1, 2), (1, -1), 10.0 ** np.arange(9)):
        w = np.exp(2j * np.pi * k * ranks(x)) if sign == 1 else np.exp(-2j * np.pi * k * ranks(x))
        w = w - w.mean()
        largest = max(largest, abs(sum(w[i, 0] * np.exp(2j * np.pi * f * y[i, 0]) for i in range(300))) ** 2 / (np.abs(w) ** 2).sum())
    assert found.observed == pytest.approx(math.sqrt(largest / 300), rel=1e-4)
    assert found.observed > 0.9


def test_the_bound_holds_by_hand_and_by_drawing():
    """P(t ≥ a) ≤ a e^(1−a): 1 at a = 1; of one row t is 1. Of 2, 5 and 50 phases with unequal weights, 50,000 draws each: four errors."""
    assert wave_tail(1.0) == wave_tail(0.3) == 1.0
    assert wave_tail(4.0) == pytest.approx(4 * math.exp(-3))
    rng = np.random.default_rng(4)
    for n in (2, 5, 50):
        c = rng.uniform(0.1, 2.0, n)
        t = np.abs(np.exp(2j * np.pi * rng.random((50_000, n))) @ c) ** 2 / (c**2).sum()
        for a in (1.5, 3.0, 6.0):
            share = (t >= a).mean()
            assert share <= wave_tail(a) + 4 * math.sqrt(share * (1 - share) / len(t))


def test_grids_that_were_not_seen():
    """Off by the last bit of larger values, in single precision, thirds, significant digits; and continuous values have none."""
    values = np.random.default_rng(5).normal(size=(300, 6)) * 100
    values[:, 0] = np.round(values[:, 0], 2) + 1000.0 - 1000.0
    values[:, 1] = np.round(values[:, 1], 2).astype(np.float32)
    values[:, 2] = np.round(values[:, 2] * 3) / 3 * 1.1 / 1.1
    values[:, 3] = ROUNDINGS["five significant digits"](values[:, 3])
    values[:, 4] = values[:, 4].astype(np.float32)
    found = grids(values)
    assert found[:4] == pytest.approx([0.01, 0.01, 1 / 3, 0.01])
    assert 2.0**-24 * 64 < found[4] < 2.0**-23 * 512
    assert found[5] < 1e-12
