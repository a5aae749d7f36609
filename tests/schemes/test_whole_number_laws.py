"""Geometric and Skellam processes: the law of increments and bridges against enumeration, in any order of levels; Theorem 4 by exact posteriors."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from auditor.numerics.random_streams import stream
from auditor.schemes import geometric, skellam
from auditor.schemes.base.noise_density import NoiseDensity, geometric_rate, log_skellam
from auditor.schemes.geometric import rate_gap, split_weights

REACH = 60
K = np.arange(-REACH, REACH + 1)
LEVELS = [
    (0.0, 0.5, 2.0),
    (0.3, 0.5, 0.50001),
    (1e-6, 1.0, 4.0),
    (1.0, 1.0001, 3.0),
    (0.5, 1.0, 1.5),
]


def ratio(v):
    """``q`` of variance ``v = 2q/(1 − q)²``: the smaller root of ``v q² − 2(v + 1) q + v = 0``."""
    return v / (v + 1 + np.sqrt(2 * v + 1))


def geometric_step(k, low, high):
    """The law of ``Z_high − Z_low``, by the chance in terms of q: 0, or fresh."""
    q_b, q_c = ratio(low), ratio(high)
    stays = ((1 - q_c) / (1 - q_b)) ** 2 * q_b / q_c
    return stays * (k == 0) + (1 - stays) * (1 - q_c) / (1 + q_c) * q_c ** np.abs(k)


def skellam_step(k, low, high):
    return ive(np.abs(k), high - low)


STEP = {"geometric": geometric_step, "skellam": skellam_step}
MODULE = {"geometric": geometric, "skellam": skellam}
PROCESS = {"geometric": geometric.GEOMETRIC, "skellam": skellam.SKELLAM}


def geometric_bridge(u, gap, low, middle, high):
    """P(U = u) as ``geometric.bridge`` draws it, given its weights."""
    d = abs(gap)
    ways = split_weights(np.array(float(d)), low, middle, high)
    none, whole, below, above, within = (float(way) / float(sum(ways)) for way in ways)
    u = u * (1 if gap >= 0 else -1)
    q, rho = np.exp(-geometric_rate(middle) - geometric_rate(high)), np.exp(-rate_gap(middle, high))
    inside = (
        np.where((u >= 0) & (u <= d), rho ** np.clip(u, 0, d), 0.0)
        / (rho ** np.arange(d + 1.0)).sum()
    )
    outside = (
        np.where(u < 0, below, above)
        * (1 - q)
        * q ** np.clip(np.where(u < 0, -u - 1, u - d - 1), 0, None)
    )
    return (
        none * (u == 0)
        + whole * (u == d)
        + within * inside
        + np.where((u < 0) | (u > d), outside, 0.0)
    )


def skellam_bridge(u, gap, low, middle, high):
    """P(U = u) as ``skellam.bridge`` draws it, from its log-probabilities."""
    parts = log_skellam(u, middle - low) + log_skellam(gap - u, high - middle)
    return np.exp(parts - log_skellam(np.array(float(gap)), high - low))


BRIDGE = {"geometric": geometric_bridge, "skellam": skellam_bridge}


@cache
def bridges(law, reach, low, middle, high):
    """P(U | gap), shape (gaps, values), each from −reach to reach."""
    wide = np.arange(-reach, reach + 1)
    return np.array([BRIDGE[law](wide, gap, low, middle, high) for gap in wide])


@pytest.mark.parametrize("law", STEP)
@pytest.mark.parametrize(("low", "middle", "high"), LEVELS)
def test_increments_add_up(law, low, middle, high):
    """Noise of a lower variance plus an increment has the law of the higher; the increment's is the density's that the release states."""
    added = np.convolve(STEP[law](K, 0.0, middle), STEP[law](K, middle, high), mode="same")
    assert np.abs(added - NoiseDensity(law, np.sqrt(high)).pdf(K)).sum() < 1e-12
    assert (
        np.abs(STEP[law](K, 0.0, middle) - NoiseDensity(law, np.sqrt(middle)).pdf(K)).sum() < 1e-12
    )


def test_a_hand_worked_bridge():
    """v = 4 means q = ½. From 0 to 4 by way of 1.5 (q = ⅓), gap 0: both steps 0 or cancelling."""
    none, whole, below, above, within = map(float, split_weights(np.array(0.0), 0.0, 1.5, 4.0))
    stay, g_b, g_c = 1.5 / 4, 0.5, 1 / 3
    assert none == 0.0  # with nothing below, the first step is fresh
    assert abs(whole - stay * g_b) < 1e-15
    assert abs(within - (1 - stay) * g_b * g_c) < 1e-15
    assert abs(below - (1 - stay) * g_b * g_c * (1 / 6) / (1 - 1 / 6)) < 1e-15
    assert above == below


@pytest.mark.parametrize("law", STEP)
@pytest.mark.parametrize(("low", "middle", "high"), LEVELS)
@pytest.mark.parametrize("gap", [0, 1, -3, 17])
def test_the_bridge_is_the_law_of_one_increment_given_the_sum(law, low, middle, high, gap):
    """Bayes' rule by enumeration, to a total variation of 1e-12."""
    joint = STEP[law](K, low, middle) * STEP[law](gap - K, middle, high)
    assert np.abs(BRIDGE[law](K, gap, low, middle, high) - joint / joint.sum()).sum() < 2e-12


@pytest.mark.parametrize("law", STEP)
def test_any_order_of_four_levels_has_the_same_joint_law(law):
    """All 24 orders, each copy from its two neighbours: the same probability of every outcome of four copies."""
    levels, z = (0.004, 0.006, 0.015, 0.02), np.arange(-3, 4)
    grid = np.meshgrid(*[z] * 4, indexing="ij")

    def given(new, held):
        """P(copy ``new`` | its neighbours among ``held``), on the grid."""
        below = max((c for c in held if c < new), default=None)
        above = min((c for c in held if c > new), default=None)
        low, base = (0.0, 0) if below is None else (levels[below], grid[below])
        if above is None:
            return STEP[law](grid[new] - base, low, levels[new])
        return bridges(law, 6, low, levels[new], levels[above])[
            np.asarray(grid[above] - base) + 6, np.asarray(grid[new] - base) + 6
        ]

    upwards = np.prod([given(c, range(c)) for c in range(4)], axis=0)
    for order in permutations(range(4)):
        other = np.prod([given(c, order[:place]) for place, c in enumerate(order)], axis=0)
        assert np.abs(other - upwards).max() < 1e-14


@pytest.mark.parametrize("v", [1e-12, 1e-3, 1.0, 1e6, 1e15])
def test_close_variances_and_long_gaps_keep_their_digits(v):
    """``dλ/dv = −1/(v√(2v + 1))``: the difference of close variances' rates is that, and weights are finite for any gap."""
    close = v * (1 + 2**-40)
    assert abs(rate_gap(v, close) / ((close - v) / v / np.sqrt(2 * v + 1)) - 1) < 1e-11
    gaps = np.array([0.0, 1.0, 1e6, 1e15])
    for middle in (close, 1.5 * v, 3.999999 * v):
        found = np.array(np.broadcast_arrays(*split_weights(gaps, v, middle, 4 * v)))
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert (found.sum(axis=0) > 0).all()


def bridged(law, rng, gap, *levels):
    """Draw one attribute by the process."""
    return PROCESS[law].between(rng, gap, *levels)


@pytest.mark.parametrize("law", STEP)
def test_extreme_draws_are_whole_and_split_the_gap(law):
    rng, module = stream(3, law), MODULE[law]
    for low, middle, high in (
        (1e-12, 2e-12, 3e-12),
        (0.0, 1e-9, 1e9),
        (1e14, 1.5e14, 2e14),
        (1.0, 1.0, 2.0),
        (0.0, 0.0, 0.0),
        (1.0, 2.0, 2.0),
    ):
        gap = module.increment(rng, low, high, 500)
        U = bridged(law, rng, gap, low, middle, high)
        assert (U == np.rint(U)).all()
        assert np.abs(U).max() <= 64 * np.sqrt(middle) + np.abs(gap).max()
        if middle == high:
            assert (gap == U).all()
        if middle == low:
            assert not U.any()
    # 70,000 deviations: half of it, or all or nothing
    far = bridged(law, rng, np.full(300, -1e9), 0.0, 1e8, 2e8)
    assert (np.abs(far + 5e8) <= 5.1e8).all()


def joint_counts(law, rows, seed):
    """Draw the noise of three copies, the middle one last, and return counts and expected counts of outcomes within ±2."""
    levels, rng, module, z = (0.4, 0.9, 1.6), stream(seed, law), MODULE[law], np.arange(-2, 3)
    low = module.increment(rng, 0.0, levels[0], rows)
    gap = module.increment(rng, levels[0], levels[2], rows)
    copies = low, low + bridged(law, rng, gap, *levels), low + gap
    inside = np.all([np.abs(copy) <= 2 for copy in copies], axis=0)
    places = np.ravel_multi_index([(copy[inside] + 2).astype(int) for copy in copies], (5, 5, 5))
    a, b, c = np.meshgrid(z, z, z, indexing="ij")
    step = STEP[law]
    p = (
        step(a, 0.0, levels[0])
        * step(b - a, levels[0], levels[1])
        * step(c - b, levels[1], levels[2])
    ).ravel()
    return np.append(np.bincount(places, minlength=125), rows - inside.sum()), rows * np.append(
        p, 1 - p.sum()
    )


def agrees(found, expected):
    many = expected >= 10
    found, expected = (
        np.append(found[many], found[~many].sum()),
        np.append(expected[many], expected[~many].sum()),
    )
    return stats.chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1) > 1e-6


@pytest.mark.parametrize("law", STEP)
def test_drawn_copies_have_the_joint_law(law):
    """χ² with one false alarm in a million."""
    assert agrees(*joint_counts(law, 20_000, 1))


# -- Theorem 4 by exact posteriors

VARIANCES = (0.05, 0.15, 0.3)
PRIOR = np.array([0.5, 0.1, 0.3, 0.1])
Y = np.arange(-10, 14)


def joint_of_one_process(law):
    """P(x, y_1, y_2, y_3): the most perturbed copy first, the others by bridges, as a release on demand is made."""
    a, b, c = VARIANCES
    x, y1, y2, y3 = np.ix_(np.arange(4), Y, Y, Y)
    second, third = (
        bridges(law, 24, 0.0, a, c)[y3 - x + 24, y1 - x + 24],
        bridges(law, 24, a, b, c)[y3 - y1 + 24, y2 - y1 + 24],
    )
    return PRIOR[x] * STEP[law](y3 - x, 0.0, c) * second * third


def right(joint, coalition):
    """Chance that the likeliest value given a coalition's copies is the record's."""
    others = tuple(copy for copy in (1, 2, 3) if copy not in coalition)
    return joint.sum(axis=others).max(axis=0).sum()


@pytest.mark.parametrize("law", STEP)
def test_the_posterior_given_a_coalition_is_that_given_its_best_copy(law):
    joint = joint_of_one_process(law)
    assert abs(joint.sum() - 1) < 1e-9  # what lies outside of the grid
    for size in (2, 3):
        for coalition in combinations((1, 2, 3), size):
            others = tuple(copy for copy in (1, 2, 3) if copy not in coalition)
            seen = joint.sum(axis=others, keepdims=True)
            best = joint.sum(
                axis=tuple(copy for copy in (1, 2, 3) if copy != coalition[0]), keepdims=True
            )
            posterior = seen / seen.sum(axis=0).clip(1e-300)
            alone = best / best.sum(axis=0).clip(1e-300)
            likely = np.broadcast_to(seen.sum(axis=0, keepdims=True) > 1e-6, posterior.shape)
            assert np.abs(posterior - alone)[likely].max() < 1e-9
            assert abs(right(joint, coalition) - right(joint, coalition[:1])) < 1e-9
