"""What rows that share their coins are told by: its scores, its sums and its bound, each beside a transcription that is slow and plain."""

import numpy as np
import pytest

from auditor.audit.drawn_law.shared_coins import (
    UNIT,
    Scores,
    beside,
    bits_of,
    by_place,
    exponents,
    lagged,
    other_rows_tests,
    shared_coins_tests,
    standard_scores,
)
from auditor.schemes.replacement.law import transition_matrix

RNG = np.random.default_rng


def test_scores_are_no_heavier_than_normal_ones_and_nearly_as_heavy():
    """``E exp(λe) ≤ exp(λ²/2)`` at every λ, and nearly equal at some (Kearns & Saul): no smaller variance would do."""
    lam = np.linspace(-30.0, 30.0, 60_001)
    for chance in (1e-6, 0.01, 0.2, 0.499, 0.5, 0.75, 0.999):
        fails, happens = standard_scores(np.array(chance)) / UNIT
        excess = np.log((1.0 - chance) * np.exp(lam * fails) + chance * np.exp(lam * happens)) - lam**2 / 2
        assert excess.max() < 2e-3
        assert excess[np.abs(lam) > 1e-2].max() > -2e-3
        assert (1.0 - chance) * fails + chance * happens == pytest.approx(0.0, abs=1 / UNIT)


@pytest.mark.parametrize("pi", [np.full(2, 0.5), np.array([0.9, 0.1]), np.full(5, 0.2), np.array([0.5, 0.3, 0.2, 0.0]), np.ones(1)], ids=str)
@pytest.mark.parametrize("retention", [0.0, 0.3, 0.9, 1.0])
def test_scores_have_mean_0_given_what_a_value_is_drawn_from(retention, pi):
    """By going through all values; and given that the value is changed, what replaces it has mean 0, too."""
    scores, T, s = Scores.of(retention, pi), transition_matrix(retention, len(pi), pi), len(pi)
    a, y = (part.ravel() for part in np.indices((s, s)))
    kept, replaced, changes, *_ = scores.series(a, y, np.arange(s * s)) / UNIT
    for series in (kept, replaced, changes):
        np.testing.assert_allclose((T.ravel() * series).reshape(s, s).sum(axis=1), 0.0, atol=1 / UNIT)
    if s > 2:
        assert not replaced[a == y].any()


def test_sums_by_place_are_those_of_rows_that_go_round_in_whatever_blocks_they_come():
    series = RNG(1).integers(-9, 9, (3, 100)).astype(np.int32)
    plain = np.zeros((3, 7), dtype=int)
    for row in range(100):
        plain[:, (row + row // 7) % 7] += series[:, row]
    for cut in (1, 5, 30, 100):
        assert (sum(by_place(series[:, a : a + cut], a, 7) for a in range(0, 100, cut)) == plain).all()


@pytest.mark.parametrize("L", [3, 8, 11])
def test_sums_at_lags_are_what_they_are_called(L):
    S = RNG(2).standard_normal((2, L))
    on, off = lagged(S)
    o = np.arange(L)
    np.testing.assert_allclose(on, np.array([(S * S[:, (o + h) % L]).sum(axis=1) for h in range(1, (L + 1) // 2)]).T, atol=1e-12)
    np.testing.assert_allclose(off, np.array([(S * S[:, (h - o) % L]).sum(axis=1) for h in range(L)]).T, atol=1e-12)


def test_so_large_a_sum_is_no_likelier_than_the_bound_says():
    """Of skewed coins, whose products have heavy tails, at every lag: false alarms of the bound are no more than it says, at any size.

    At t = 3 some 0.1 of the lags are allowed, and about a fiftieth are met. With one lag in 10⁵ at t = 12 none of 10⁵ is likely.
    """
    for chance in (0.02, 0.3, 0.5):
        fails, happens = standard_scores(np.array(chance)) / UNIT
        S = np.where(RNG(3).random((400, 500)) < chance, happens, fails)
        for R, twice in zip(lagged(S), (1, 2), strict=True):
            t = exponents(np.maximum(np.abs(R) - 2.0 * (twice - 1), 0.0), np.full(R.shape, 500.0 * twice), 1.0)
            for at in (1.0, 3.0, 5.0):
                assert (t >= at).mean() <= 2.0 * np.exp(-at)
            assert t.max() < np.log(2 * t.size) + 5.0


def test_it_says_which_copy_and_how_far():
    """In the second copy every other six rows have the coins of the six before."""
    rows, x = np.arange(6000), RNG(4).integers(0, 6, 6000)
    coins = RNG(5).random((2, 6000)) < 0.5
    coins[1] = coins[1, np.where(rows % 12 < 6, rows, rows - 6)]
    copies = np.where(coins, x, RNG(6).integers(0, 6, (2, 6000)))
    scores, order = Scores.of(0.5, np.full(6, 1 / 6)), np.argsort(x, kind="stable")
    vectors = {k + 1: by_place(scores.series(x, y, order), 0, 6000) for k, y in enumerate(copies)}
    (found,) = shared_coins_tests(vectors, 2, 6000)
    assert found.where == "the correlation of the values kept of copy 2 with those of rows 6 further on, is"
    assert found.p < 1e-10
    assert 0.3 < found.observed < 0.6
    assert shared_coins_tests({1: vectors[1]}, 1, 6000)[0].p == 1.0
    assert shared_coins_tests({1: vectors[1][:, :2]}, 1, 2) == []


def test_sums_beside_others_are_what_they_are_called():
    S, G, o = RNG(7).standard_normal((2, 11)), RNG(8).standard_normal((3, 11)), np.arange(11)
    plain = [[[(one * other[(o + h) % 11]).sum() for h in range(11)] for other in G] for one in S]
    np.testing.assert_allclose(beside(S, G), plain, atol=1e-12)


def test_of_rows_fewer_than_places_it_is_the_largest_correlation_and_its_normal_bound():
    """Row by row: scores of coins, and bits less their mean, at every lag; p = 2·tests·exp(−R²/2V)."""
    x, n = RNG(9).integers(0, 5, 200), 200
    y = np.where(RNG(10).random(n) < 0.5, x, RNG(11).integers(0, 5, n))
    series = Scores.of(0.5, np.full(5, 0.2)).series(x, y, np.argsort(x, kind="stable"))
    (found,) = other_rows_tests({1: by_place(series, 0, n)}, by_place(bits_of(x), 0, n), 1, n)
    most = 0.0
    for place, counted in enumerate((np.ones(n), series[2] != 0, series[2] != 0)):
        for bit in range(4):
            g = (x >> bit & 1) - (x >> bit & 1).mean()
            for lag in range(n):
                R, V = (series[place] / UNIT * np.roll(g, -lag)).sum(), (counted * np.roll(g, -lag) ** 2).sum()
                most = max(most, R**2 / (2 * V) if V > 0 else 0.0)
    assert found.tests == 3 * 4 * n
    assert found.p == pytest.approx(min(1.0, 2 * found.tests * np.exp(-most)), rel=1e-6)
    assert other_rows_tests({1: by_place(series[:, :2], 0, 2)}, by_place(bits_of(x[:2]), 0, 2), 1, 2) == []


def test_coins_beside_given_values_pass_the_bound_no_more_often_than_it_says():
    """At every lag, of skewed coins and values, several to a place: ``P(|R| ≥ √(2Vt)) ≤ 2 exp(−t)``."""
    values = RNG(12).integers(0, 3, (1, 6000))
    G = by_place((values == 0).astype(np.int32), 0, 500) - by_place(np.ones((1, 6000), np.int32), 0, 500) * (values == 0).mean()
    V = beside(np.full((1, 500), 12.0), G**2)
    for chance in (0.02, 0.3):
        scores = standard_scores(np.array(chance))
        coins = np.where(RNG(13).random((200, 6000)) < chance, scores[1], scores[0]).astype(np.int32)
        t = beside(by_place(coins, 0, 500) / UNIT, G) ** 2 / (2 * V)
        for at in (1.0, 3.0, 5.0):
            assert (t >= at).mean() <= 2.0 * np.exp(-at)
        assert t.max() < np.log(2 * t.size) + 5.0
