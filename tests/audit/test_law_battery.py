"""The battery of law tests: valid p-values, sums by formula, causes."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from auditor.audit.law_tests.battery import Scores, battery, chaos_exponent


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


def test_less_noise_in_the_largest_hundredth_is_found():
    """Records far out are known best; a rank and 24 bins of it do not show them."""
    rng = np.random.default_rng(2**40)
    X, g = rng.normal(size=(10_000, 1)), rng.normal(size=(10_000, 2))
    g *= np.where(X > np.quantile(X, 0.99), 0.5, 1.0)
    test = found(stats.norm.cdf(g), X)["correlations"]
    assert test.where.endswith("is correlated with 'x0' in its highest 1%: r =")
    assert test.p < 1e-4


def test_correlations_with_other_rows_are_those_of_every_distance_as_written():
    """Two columns of 30 rows on a circle."""
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
