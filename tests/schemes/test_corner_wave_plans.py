"""Exact laws of plans, without sampling."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from auditor.base import PluginError
from auditor.schemes import corner_wave
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, makes_useless, one_suffices
from auditor.schemes.base.scheme import Key, TableMoments

ALGORITHMS = ("bridge", "parallel", "sequential", "on-demand")
EPS = np.finfo(float).eps

# A grid has repeated levels and zeros often, and levels that dense linear algebra can distinguish.
grid_levels = st.lists(st.integers(0, 24).map(lambda k: k / 8), min_size=1, max_size=9)
any_levels = st.lists(
    st.one_of(
        st.just(0.0),
        st.sampled_from([0.25, 0.5, 0.5 + 1e-15, 0.5 + 2e-15, 1.0, np.nextafter(1.0, 2.0)]),
        st.floats(1e-12, 1e6),
    ),
    min_size=1,
    max_size=12,
)


def minimum(levels):
    """``Sigma_ij = min(σ_i², σ_j²)`` (li2011 (19)), as written."""
    return np.array([[min(a, b) for b in levels] for a in levels])


def drawn(algorithm, levels, splits=()):
    scheme = corner_wave.CornerWave(algorithm=algorithm)
    cuts = [0, *sorted(set(splits)), len(levels)]
    steps = [step for a, b in itertools.pairwise(cuts) for step in scheme.plan(levels[:b], a)]
    return corner_wave.implied_level_covariance(steps, len(levels))


def rounding(levels):
    return 8 * len(levels) * EPS * max(levels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(levels=grid_levels, data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_algorithm_draws_from_min_after_any_extensions(algorithm, levels, data):
    splits = data.draw(st.lists(st.integers(0, len(levels)), max_size=4))
    np.testing.assert_allclose(
        drawn(algorithm, levels, splits), minimum(levels), rtol=0, atol=100 * EPS * max(levels)
    )


@pytest.mark.parametrize("algorithm", ["bridge", "sequential"])
@given(levels=any_levels)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_bridge_and_sequential_draw_from_min_however_close_the_levels(algorithm, levels):
    np.testing.assert_allclose(
        drawn(algorithm, levels), minimum(levels), rtol=0, atol=rounding(levels)
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_states_min(algorithm):
    levels = [0.8, 0.2, 0.8, 0.0, 1.5]
    np.testing.assert_array_equal(
        corner_wave.CornerWave(algorithm=algorithm).level_covariance(levels), minimum(levels)
    )


@given(levels=grid_levels)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_theorem_5_covariance_min_and_independent_increments_are_one_law(levels):
    levels = sorted(levels)
    difference = np.eye(len(levels)) - np.eye(len(levels), k=-1)
    increments = np.diag(np.diff(levels, prepend=0.0))
    stated = corner_wave.CornerWave().level_covariance(levels)
    np.testing.assert_allclose(difference @ stated @ difference.T, increments, atol=1e-12)
    sums = np.linalg.inv(difference)
    np.testing.assert_allclose(sums @ increments @ sums.T, stated, atol=1e-12)


def solve_exactly(A, b):
    """Gauss's elimination in rational numbers."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def conditional_exactly(given_levels, s):
    cross = [min(a, s) for a in given_levels]
    weights = (
        solve_exactly([[min(a, b) for b in given_levels] for a in given_levels], cross)
        if given_levels
        else []
    )
    return weights, s - sum(w * c for w, c in zip(weights, cross, strict=True))


rational_arrivals = st.lists(
    st.fractions(min_value=Fraction(1, 1000), max_value=4, max_denominator=1000), min_size=1,
    max_size=7, unique=True,
)  # fmt: skip


@given(arrivals=rational_arrivals)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_bridge_plan_carries_out_equations_17_and_18(arrivals):
    # as floats, so that only the plan's own rounding is left
    levels = [Fraction(float(s)) for s in arrivals]
    for k, step in enumerate(corner_wave.bridge_plan([float(s) for s in levels])):
        weights, variance = conditional_exactly(levels[:k], levels[k])
        planned = dict(step.parents)
        for copy, weight in enumerate(weights, start=1):
            assert planned.get(copy, 0.0) == pytest.approx(float(weight), rel=8 * EPS, abs=8 * EPS)
        assert dict(step.fresh)[k + 1] ** 2 == pytest.approx(float(variance), rel=16 * EPS)


def test_dense_conditional_agrees_with_rationals():
    """Equations 17 and 18 for two new copies at once; copies at 1 and 1.5 lie between."""
    given_levels, new = [Fraction(1), Fraction(3, 2), Fraction(1, 4)], [Fraction(1, 2), Fraction(2)]
    weights, covariance = corner_wave.conditional_gaussian(
        np.array(given_levels, float), np.array(new, float)
    )
    exact = [conditional_exactly(given_levels, s) for s in new]
    np.testing.assert_allclose(weights, np.array([row for row, _ in exact], float), atol=1e-14)
    np.testing.assert_allclose(covariance, np.diag([float(v) for _, v in exact]), atol=1e-14)


def test_a_step_of_the_bridge_reads_at_most_two_copies():
    levels = list(np.random.default_rng(5).uniform(0, 1, 500))
    assert all(len(step.parents) <= 2 for step in corner_wave.bridge_plan(levels))


@pytest.mark.parametrize("covariance", [0.0, 0.1, 0.24999, 0.25, 0.25001, 0.4, 0.5])
def test_theorem_1_independent_if_and_only_if_covariance_is_the_lower_level(covariance):
    """Theorem 1, levels 0.25 < 1, jointly Gaussian."""
    law = KroneckerNoise(np.array([[0.25, covariance], [covariance, 1.0]]), np.eye(2))
    assert one_suffices(makes_useless(law), [1, 2]) == (covariance == 0.25)


@given(levels=any_levels, data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_corollary_1_by_law_any_copies_in_any_scale(levels, data):
    law = KroneckerNoise(minimum(levels), np.diag([1.0, 1e10]))
    members = data.draw(st.sets(st.integers(1, len(levels)), min_size=1))
    assert one_suffices(makes_useless(law), sorted(members))
    assert one_suffices(makes_useless(DenseNoise(law.covariance, 2)), sorted(members))


def near_equal_levels():
    rng = np.random.default_rng(14)
    return [list(0.3 + 1e-15 * rng.random(10)) for _ in range(60)]


def test_errata_14_near_equal_levels_do_not_break_the_bridge():
    for levels in near_equal_levels():
        np.testing.assert_allclose(
            drawn("bridge", levels), minimum(levels), rtol=0, atol=rounding(levels)
        )


ADDITIVE = [
    corner_wave.Correlated(), corner_wave.Independent(), corner_wave.LinearlyDependent(),
    *(corner_wave.CornerWave(algorithm=algorithm) for algorithm in ALGORITHMS),
]  # fmt: skip


@pytest.mark.parametrize(
    "scheme",
    ADDITIVE,
    ids=lambda scheme: f"{scheme.name} {getattr(scheme.parameters, 'algorithm', '')}".strip(),
)
@given(levels=grid_levels, data=st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_an_extension_continues_the_law_whatever_drew_the_copies_that_are_out(scheme, levels, data):
    existing = data.draw(st.integers(0, len(levels)))
    steps, Sigma = scheme.plan(levels, existing), scheme.level_covariance(levels)
    corner_wave.check_plan(steps, len(levels), existing)
    found = corner_wave.implied_level_covariance(steps, len(levels), Sigma[:existing, :existing])
    # a root of a singular Sigma is good to √eps
    np.testing.assert_allclose(found, Sigma, rtol=0, atol=1e-7 * max(levels))


class Reuses(corner_wave.Correlated):
    """Draws the second copy with the first one's innovation."""

    name = "reuses-an-innovation"

    def level_covariance(self, levels):
        return np.diag(np.asarray(levels) * 0.1) + 0.9 * np.sqrt(np.outer(levels, levels))

    def plan(self, levels, existing=0):
        a, b = 0.9, math.sqrt(1 - 0.9**2)
        steps = [corner_wave.Step(1, ((corner_wave.ORIGINAL, 1.0),), ((1, math.sqrt(levels[0])),))]
        if len(levels) == 2:
            sigma = math.sqrt(levels[1])
            steps.append(
                corner_wave.Step(
                    2, ((corner_wave.ORIGINAL, 1.0),), ((1, a * sigma), (2, b * sigma))
                )
            )
        return steps[existing:]


def test_a_plan_that_needs_the_noise_of_a_copy_that_is_out_is_refused():
    X = np.random.default_rng(5).normal(size=(2000, 1))
    moments = TableMoments(X.mean(axis=0), np.cov(X.T, bias=True).reshape(1, 1), len(X))
    scheme, levels = Reuses(), (0.5, 0.8)
    np.testing.assert_allclose(
        corner_wave.implied_level_covariance(scheme.plan(levels), 2),
        scheme.level_covariance(levels),
        atol=1e-12,
    )
    # one request: both copies share an innovation, and may
    scheme.sampler(levels, moments, Key(1, scheme.name))
    said = r"'reuses-an-innovation' broke its contract: `plan` draws copy 2 from the innovation of copy 1"
    with pytest.raises(PluginError, match=said):
        scheme.sampler(levels, moments, Key(2, scheme.name), existing=1)
