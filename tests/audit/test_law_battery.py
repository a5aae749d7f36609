"""The battery's p-values hold at any number of rows, its sums are what their formulas say, and its messages name the fault."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from auditor.audit.law_tests import battery as battery_of
from auditor.audit.law_tests.battery import Scores, added_up, battery, chaos_exponent, normal
from auditor.audit.law_tests.numeric import in_memory_tests
from auditor.schemes.base.noise_law import KroneckerNoise


def scores_of(u, grain=1e-14):
    d = u.shape[1]
    names = [f"noise of copy {k + 1} ('age')" for k in range(d)]
    return Scores(u, names, np.full(d, grain), np.arange(d))


def found(u, X=None, own=None, **options):
    X = np.random.default_rng(99).normal(size=(len(u), 1)) if X is None else X
    return {
        test.statistic: test
        for test in battery(scores_of(u, **options), X, [f"x{j}" for j in range(X.shape[1])], own)
    }


def tables(rng, n):
    """Skewed, sorted, constant, twice the same, and heavy tails."""
    x = np.exp(2.0 * rng.normal(size=n))
    return [
        x[:, None],
        np.sort(x)[:, None],
        np.column_stack([np.full(n, 3.0), x, x]),
        rng.standard_t(1.0, (n, 2)),
        np.zeros((n, 1)),
    ]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("n", [3, 10, 100, 600])
def test_p_values_are_no_smaller_than_they_say(n):
    """Of 250 honest sets of scores, one to seven columns: shares of p below 0.05 and 0.01, with three standard errors."""
    rng, every, least = np.random.default_rng(n), {}, []
    for k in range(250):
        u = rng.random((n, 1 + k % 7))
        own = scores_of(u[:, :1]) if k % 2 else None
        tests = found(u, tables(rng, n)[k % 5], own, grain=1e-14 if k % 3 else 1.0)
        least.append(min(1.0, len(tests) * min(test.p for test in tests.values())))
        for statistic, test in tests.items():
            assert math.isfinite(test.p), statistic
            assert math.isfinite(test.observed), statistic
            every.setdefault(statistic, []).append(test.p)
    for statistic, p in {**every, "all": least}.items():
        for level in (0.05, 0.01):
            assert np.mean(np.array(p) <= level) <= level + 3.0 * math.sqrt(level / len(p)), (
                statistic,
                level,
            )


def test_fewer_than_three_rows_and_no_columns_have_no_tests():
    assert battery(scores_of(np.full((2, 1), 0.5)), np.zeros((2, 1)), ["x"]) == []
    assert battery(scores_of(np.empty((50, 0))), np.zeros((50, 1)), ["x"]) == []


def test_a_message_says_which_noise_is_correlated_with_which_row():
    g = np.random.default_rng(1).normal(size=(20_000, 2))
    g[:, 0] = math.sqrt(1 - 0.09**2) * g[:, 0] + 0.09 * np.roll(g[:, 0], 37)
    test = found(stats.norm.cdf(g))["other rows"]
    assert (
        test.where
        == "noise of copy 1 ('age') is correlated with its own value 37 rows earlier: r ="
    )
    assert test.observed == pytest.approx(0.09, abs=0.02)
    assert test.p < 1e-20
    g = np.random.default_rng(2).normal(size=(5000, 2))
    g[5:, 1] = math.sqrt(0.75) * g[5:, 1] + 0.5 * g[:-5, 0]
    assert found(stats.norm.cdf(g))["other rows"].where == (
        "noise of copy 2 ('age') is correlated with noise of copy 1 ('age') 5 rows earlier: r ="
    )
    X = np.random.default_rng(3).normal(size=(5000, 1))
    g[:, 0] = math.sqrt(0.75) * g[:, 0] + 0.5 * np.roll(X[:, 0], -7)
    test = found(stats.norm.cdf(g), X)["other rows"]
    assert test.where == "noise of copy 1 ('age') is correlated with 'x0' 7 rows later: r ="


def test_noise_that_comes_again_at_half_of_the_rows_or_backwards_is_found():
    g = np.random.default_rng(4).normal(size=(1000, 1))
    half = np.concatenate([g[:500], -g[:500]])
    assert found(stats.norm.cdf(half))["other rows"].p < 1e-9
    mirrored = np.concatenate([g[:500], g[:500][::-1]])
    test = found(stats.norm.cdf(mirrored))["other rows"]
    assert test.p < 1e-9
    assert test.where.endswith("in reverse order of rows: r =")


def test_correlations_with_other_rows_are_those_of_every_distance_as_written():
    """Two columns of 30 rows on a circle: the largest exponent over lags, reverse orders and originals."""
    n, rng = 30, np.random.default_rng(5)
    u, X = rng.random((n, 2)), rng.normal(size=(n, 1))
    g, w = ndtri(u), ndtri(np.abs(2 * u - 1))
    ranks = (stats.rankdata(X, axis=0) - 0.5) / n
    exponents, count = [], 0

    def weight(k):
        return math.log(n / 16) if min(k, n - k) <= 4 else -math.log(2.0)

    for order in (np.arange(n), X[:, 0].argsort()):
        in_file = (order == np.arange(n)).all()
        for v in (g[order], w[order]):
            for a, b in ((0, 0), (0, 1), (1, 1)) if in_file else ((0, 0), (1, 1)):
                for k in range(n):
                    S = sum(v[i, a] * v[(i + k) % n, b] for i in range(n))
                    S /= 2.0 if a == b and k == 15 else 1.0
                    if 0 < k and (a != b or k <= 15):
                        exponents.append(chaos_exponent(np.float64(S), n / 2) + weight(k))
                    count += 1
                    if in_file:
                        S = sum(v[i, a] * v[(k - i) % n, b] for i in range(n))
                        squares = n if a == b else n / 2
                        exponents.append(chaos_exponent(np.float64(max(abs(S) - 2, 0)), squares))
                        count += 1
    for data, v in ((ndtri(ranks), g), (np.abs(2 * ranks - 1), w)):
        a = data[:, 0] - data.mean()
        for column in range(2):
            count += n
            for k in range(1, n):
                z = sum(a[(i - k) % n] * v[i, column] for i in range(n)) / np.linalg.norm(a)
                exponents.append(-math.log(2 * stats.norm.sf(abs(z))) + weight(k))
    test = found(u, X)["other rows"]
    assert test.tests == count
    assert test.p == pytest.approx(min(1.0, count * math.exp(-max(exponents))), rel=1e-3)


def test_the_bound_of_a_chaos_holds_by_drawing():
    """P(|S| ≥ 2F√x + 2x) ≤ 2e^(−x): autocorrelations of 40 values, 20,000 draws."""
    g = np.random.default_rng(7).normal(size=(20_000, 40))
    p = np.exp(-chaos_exponent((g[:, :-1] * g[:, 1:]).sum(axis=1), 20.0))
    assert np.mean(p <= 0.1) <= 0.1
    assert np.mean(p <= 0.01) <= 0.01
    assert chaos_exponent(np.float64(2 * 2 * math.sqrt(3.0) + 2 * 3.0), 4.0) == pytest.approx(
        3.0 - math.log(2.0)
    )


def test_cosines_are_those_of_the_formula():
    u = np.random.default_rng(8).random(50)
    expected = math.sqrt(2.0) * np.cos(np.pi * np.arange(1, 13) * u[:, None])
    np.testing.assert_allclose(battery_of._cosines(u), expected, atol=1e-4)


def test_ordinates_of_the_periodogram_are_exponential():
    """The last ordinate of an even number of rows too, which is χ²(1) before it is brought to the same chance."""
    rng = np.random.default_rng(9)
    for n in (8, 16):
        p = [found(rng.random((n, 1)), np.zeros((n, 1)))["periods"].p for _ in range(400)]
        assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 / 400)


def test_repeats_are_counted_in_columns_and_among_them():
    rng = np.random.default_rng(10)
    u = rng.random((1000, 2))
    u[500:510, 0] = 1.0 - u[:10, 0]  # the same sizes with the other sign
    test = found(u)["repeats"]
    assert (test.observed, test.p < 1e-60) == (10 / 2000, True)
    u = rng.random((1000, 2))
    u[:20, 1] = u[100:120, 0]
    assert found(u)["repeats"].p < 1e-60


def test_one_row_without_noise_and_sizes_too_near_0_are_found():
    u = np.random.default_rng(11).random((500, 3))
    u[41] = 0.5 + 1e-9
    scores = Scores(u, ["a", "b", "c"], np.full(3, 1e-14), np.zeros(3, dtype=np.intp))
    tests = {test.statistic: test for test in battery(scores, np.zeros((500, 1)), ["x"])}
    test = tests["sizes near 0"]
    assert test.where == "the least size in a row of a and b is"
    assert test.p == pytest.approx(test.tests * 500 * 2e-9**3, rel=1e-5)
    u = np.random.default_rng(14).random((4000, 2))
    u[::50, 1] = 0.5 + 1e-3 * (u[::50, 1] - 0.5)
    test = found(u)["sizes near 0"]
    assert test.p < 1e-9
    assert test.where == "the share of sizes below 0.008 in noise of copy 2 ('age') is"


def test_many_columns_are_added_up_in_groups_that_share_none():
    u = np.random.default_rng(12).random((2000, 30))
    few = added_up(scores_of(u), 6)
    r = np.corrcoef(few.g, rowvar=False)
    assert np.abs(r - np.eye(6)).max() < 0.1
    assert few.g.var(axis=0) == pytest.approx(np.ones(6), abs=0.15)
    again = np.vstack([u[:1000], u[:1000]])
    assert found(again)["other rows"].p < 1e-9


def test_a_function_of_two_columns_and_a_predictable_size_are_found():
    rng = np.random.default_rng(13)
    u = rng.random((2000, 3))
    u[:, 2] = (u[:, 0] + u[:, 1]) % 1.0
    assert found(u)["functions"].p < 1e-30
    X = rng.normal(size=(6000, 1))
    g = rng.normal(size=(6000, 1)) * np.where(
        np.floor(6 * stats.norm.cdf(X)) % 2 == 0, 1.3, math.sqrt(2 - 1.69)
    )
    assert found(stats.norm.cdf(g), X)["learned"].p < 1e-9


@pytest.mark.parametrize("less", [0.05, 0.1])
def test_a_column_of_one_copy_with_less_noise_fails_in_natural_coordinates(less):
    """Noise with 5 and 10 % less deviation in one column of one of three nested copies."""
    rng, n, levels = np.random.default_rng(5), 20_000, [0.25, 0.5, 1.0]
    law = KroneckerNoise(np.minimum.outer(levels, levels), np.array([[1.0, 0.5], [0.5, 1.0]]))
    x, z = rng.normal(size=(n, 2)), rng.normal(size=(n, 6)) @ law.root.T
    z[:, 3] *= 1.0 - less
    copies = [x + part for part in np.split(z, 3, axis=1)]
    tests = {test.statistic: test for test in in_memory_tests(x, copies, law, ["a", "b"], False)}
    assert tests["moments"].p < 1e-9
    assert "noise of copy 2 ('b')" in tests["moments"].where


def test_normal_scores_are_finite():
    assert np.isfinite(normal(np.array([0.0, 1.0, 0.5]))).all()
