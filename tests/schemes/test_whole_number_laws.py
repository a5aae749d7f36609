"""Geometric and Skellam processes: exact laws of increments and bridges."""

from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from auditor.numerics.random_streams import stream
from auditor.schemes.base.noise_density import geometric_rate, log_skellam
from auditor.schemes.divisible_noise import GEOMETRIC, SKELLAM, rate_gap, split_weights

REACH = 60
K = np.arange(-REACH, REACH + 1)
LEVELS = [
    (0.0, 0.5, 2.0), (0.3, 0.5, 0.50001), (1e-6, 1.0, 4.0), (1.0, 1.0001, 3.0), (0.5, 1.0, 1.5),
]  # fmt: skip


def ratio(v):
    """``q`` of variance ``v = 2q/(1 − q)²``."""
    return v / (v + 1 + np.sqrt(2 * v + 1))


def geometric_step(k, low, high):
    """The law of ``Z_high − Z_low``, by the chance in terms of q."""
    q_b, q_c = ratio(low), ratio(high)
    stays = ((1 - q_c) / (1 - q_b)) ** 2 * q_b / q_c
    return stays * (k == 0) + (1 - stays) * (1 - q_c) / (1 + q_c) * q_c ** np.abs(k)


def skellam_step(k, low, high):
    return ive(np.abs(k), high - low)


STEP = {"geometric": geometric_step, "skellam": skellam_step}
PROCESS = {"geometric": GEOMETRIC, "skellam": SKELLAM}


def geometric_bridge(u, gap, low, middle, high):
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
    parts = log_skellam(u, middle - low) + log_skellam(gap - u, high - middle)
    return np.exp(parts - log_skellam(np.array(float(gap)), high - low))


BRIDGE = {"geometric": geometric_bridge, "skellam": skellam_bridge}


@cache
def bridges(law, reach, low, middle, high):
    """P(U | gap), shape (gaps, values), each from −reach to reach."""
    wide = np.arange(-reach, reach + 1)
    return np.array([BRIDGE[law](wide, gap, low, middle, high) for gap in wide])


def test_a_hand_worked_bridge():
    """V = 4 means q = ½."""
    none, whole, below, above, within = map(float, split_weights(np.array(0.0), 0.0, 1.5, 4.0))
    stay, g_b, g_c = 1.5 / 4, 0.5, 1 / 3
    assert none == 0.0  # without an original the first step is fresh
    assert abs(whole - stay * g_b) < 1e-15
    assert abs(within - (1 - stay) * g_b * g_c) < 1e-15
    assert abs(below - (1 - stay) * g_b * g_c * (1 / 6) / (1 - 1 / 6)) < 1e-15
    assert above == below


@pytest.mark.parametrize("law", STEP)
@pytest.mark.parametrize(("low", "middle", "high"), LEVELS)
@pytest.mark.parametrize("gap", [0, -3])
def test_the_bridge_is_the_law_of_one_increment_given_the_sum(law, low, middle, high, gap):
    """Bayes' rule by enumeration, to a total variation of 1e-12."""
    joint = STEP[law](K, low, middle) * STEP[law](gap - K, middle, high)
    assert np.abs(BRIDGE[law](K, gap, low, middle, high) - joint / joint.sum()).sum() < 2e-12


@pytest.mark.parametrize("law", STEP)
def test_any_order_of_four_levels_has_the_same_joint_law(law):
    levels, z = (0.004, 0.006, 0.015, 0.02), np.arange(-3, 4)
    grid = np.meshgrid(*[z] * 4, indexing="ij")

    def given(new, held):
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


def bridged(law, rng, gap, *levels):
    return PROCESS[law].between(rng, gap, *levels)


def joint_counts(law, rows, seed):
    levels, rng, process, z = (0.4, 0.9, 1.6), stream(seed, law), PROCESS[law], np.arange(-2, 3)
    low = process.increment(rng, 0.0, levels[0], rows)
    gap = process.increment(rng, levels[0], levels[2], rows)
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
    assert agrees(*joint_counts(law, 20_000, 1))


VARIANCES = (0.05, 0.15, 0.3)
PRIOR = np.array([0.5, 0.1, 0.3, 0.1])
Y = np.arange(-10, 14)


def joint_of_one_process(law):
    """P(x, y_1, y_2, y_3)."""
    a, b, c = VARIANCES
    x, y1, y2, y3 = np.ix_(np.arange(4), Y, Y, Y)
    second, third = (
        bridges(law, 24, 0.0, a, c)[y3 - x + 24, y1 - x + 24],
        bridges(law, 24, a, b, c)[y3 - y1 + 24, y2 - y1 + 24],
    )
    return PRIOR[x] * STEP[law](y3 - x, 0.0, c) * second * third


def right(joint, coalition):
    others = tuple(copy for copy in (1, 2, 3) if copy not in coalition)
    return joint.sum(axis=others).max(axis=0).sum()


@pytest.mark.parametrize("law", STEP)
def test_the_posterior_given_a_coalition_is_that_given_its_best_copy(law):
    joint = joint_of_one_process(law)
    assert abs(joint.sum() - 1) < 1e-9  # mass outside of the grid
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
