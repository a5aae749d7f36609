"""Verdicts on pooling, theory, bounds and rankings."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import auditor
from auditor import registry
from auditor.expectations.metric import MetricBound
from auditor.expectations.no_collusion_gain import NoCollusionGain
from auditor.expectations.ranking import GrowthRate, Ranking
from auditor.expectations.theory import MatchesTheory, Theorem3, agreement, theorem_3
from auditor.numerics.statistics import holm, share_tests
from auditor.results.records import Evidence, InsiderGain, Pooling, ReleaseEvidence
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.planted import MaxForMin, OneNeighbour, draw_from
from tests.audited import record
from tests.planted_cases import FreshRepeats

properties = settings(max_examples=60, deadline=None, derandomize=True)
GAUSSIAN = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 20_000}


class NoLawStated(CornerWave):
    """Draws as corner-wave does and states no law: the data alone must decide."""

    name = "no-law-stated"

    def law(self, levels, table):
        return None


class HonestMax(MaxForMin):
    """Draws from max in place of min, and says so."""

    name = "honest-max"

    def level_covariance(self, levels):
        return np.maximum.outer(np.array(levels), np.array(levels))


class HalfShared(CornerWave):
    """States, and draws from, noise of which half is common to all copies."""

    name = "honest-half-shared"

    def level_covariance(self, levels):
        return 0.5 * np.minimum.outer(np.array(levels), np.array(levels)) + 0.5 * np.diag(levels)

    def plan(self, levels, existing=0):
        return draw_from(self.level_covariance(levels))[existing:]


class Louder(CornerWave):
    """Claims corner-wave's law, but every copy is 5 % noisier than its level."""

    name = "lie-louder"

    def plan(self, levels, existing=0):
        return super().plan([1.05 * level for level in levels], existing)


class Bent(CornerWave):
    """Corner-wave's covariance, but noise bent by ``bend``."""

    def sampler(self, levels, table, key, existing=0):
        return BentSampler(super().sampler(levels, table, key, existing), self.bend)


class BentSampler:
    def __init__(self, honest, bend):
        self._honest, self._bend = honest, bend

    def block(self, index, x, out, existing=0):
        self._honest.block(index, x, out, existing)
        rng = np.random.default_rng(index)
        for copy, noise in zip(out, self._bend(x, [copy - x for copy in out], rng), strict=True):
            np.add(x, noise, out=copy)


class SharedSize(Bent):
    """One random scale of a record's noise in all copies."""

    name = "lie-shared-size"

    def bend(self, x, Z, rng):
        size = 1.0 / np.sqrt(rng.gamma(2.5, 1.0 / 1.5, (len(x), 1)))
        return [size * z for z in Z]


class SquaredIncrement(Bent):
    """The second copy adds the centred square of the first noise."""

    name = "lie-squared-increment"

    def bend(self, x, Z, rng):
        g = Z[0] / Z[0].std(axis=0)
        return [Z[0], Z[0] + Z[0].std(axis=0) * (g**2 - 1.0) / math.sqrt(2.0)]


class NoiseByRecord(Bent):
    """The second copy adds more noise to outlying records."""

    name = "lie-noise-by-record"

    def bend(self, x, Z, rng):
        far = np.abs(x - x.mean(axis=0)) / x.std(axis=0)
        return [Z[0], Z[0] + far * (Z[1] - Z[0])]


class IndependentIncrements(Bent):
    """Honest: the second copy adds independent uniform noise."""

    name = "uniform-increments"

    def bend(self, x, Z, rng):
        return [
            Z[0],
            Z[0] + Z[0].std(axis=0) * rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), Z[0].shape),
        ]


LIES = (
    FreshRepeats, NoLawStated, OneNeighbour, MaxForMin, HonestMax, HalfShared, Louder,
    SharedSize, SquaredIncrement, NoiseByRecord, IndependentIncrements,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _schemes_that_lie():
    with registry.lent("scheme", *LIES):
        yield


def run(scheme, levels, expect, **changes):
    scenario = {
        "schema": 1, "title": "test", "seed": 1, "data": GAUSSIAN, "schemes": [{"name": scheme, "levels": levels}],
        "coalitions": ["subsets"], "attacks": ["llse"], "expect": expect,
    }  # fmt: skip
    return auditor.run(scenario | changes)


def verdict(scheme, levels, expect, **changes):
    return run(scheme, levels, [expect], **changes).expectations[0]


@pytest.mark.parametrize(
    ("scheme", "levels"),
    [("fresh-repeats", [0.5, 1.0, 0.5]), ("one-neighbour", [1.0, 0.5]), ("max-for-min", [0.5, 1.0])],
)  # fmt: skip
@pytest.mark.slow
def test_a_release_made_by_a_wrong_scheme_fails_on_the_data_though_its_law_is_fine(scheme, levels):
    found = verdict(scheme, levels, {"no-collusion-gain": {}})
    assert found.status == "fails"
    assert found.why.startswith("on the data")
    assert found.observed > 0.1


@pytest.mark.parametrize(
    "scheme", ["lie-shared-size", "lie-squared-increment", "lie-noise-by-record"]
)
@pytest.mark.slow
def test_the_right_covariance_is_not_enough(scheme):
    claims = [{"no-collusion-gain": {}}, {"no-collusion-gain": {"margin": 0.6}}]
    found, wary, *_ = run(scheme, [0.5, 1.0], claims).expectations
    # sizes alone gain little more than the margin
    assert found.status == ("undecided" if scheme == "lie-shared-size" else "fails")
    assert ("does not follow" if scheme == "lie-shared-size" else "insider learner") in found.why
    assert wary.status == "undecided"


def test_nothing_follows_from_a_law_that_the_noise_contradicts():
    """Independent increments of any distribution protect, but these have another covariance."""
    found = verdict("uniform-increments", [0.5, 1.0], {"no-collusion-gain": {}})
    assert found.status == "undecided"
    assert "the noise does not follow its law" in found.why


@pytest.mark.parametrize("scheme", ["honest-max", "honest-half-shared", "correlated"])
def test_a_scheme_that_states_a_leaking_law_fails_by_law(scheme):
    found = verdict(scheme, [0.5, 1.0], {"no-collusion-gain": {}})
    assert found.status == "fails"
    assert "by law" in found.why


@pytest.mark.slow
def test_corner_wave_holds_and_says_how():
    found = verdict("corner-wave", [1.0, 0.5, 1.0, 0.7], {"no-collusion-gain": {}})
    assert found.status == "holds"
    for way in ("by law", "by theory", "on the data"):
        assert way in found.why


def pooling(sufficient, gain=0.0, error=1e-5, copies=(1, 2)):
    found = InsiderGain(copies[0], copies, (math.sqrt(gain),), (error,), (100.0,), 20_000)
    return Pooling(sufficient, insider=found)


def test_too_few_rows_are_undecided_and_the_number_told_decides():
    levels, small = [0.5, 0.7, 1.0], GAUSSIAN | {"rows": 300}
    few = run("corner-wave", levels, [{"no-collusion-gain": {}}], data=small)
    assert few.expectations[0].status == "undecided"
    assert few.exit_status == 1
    told = re.search(r"about ([\d,]+) rows would settle it", few.expectations[0].why)[1]
    rows = int(told.replace(",", ""))
    assert 300 < rows < 100_000
    data = small | {"rows": rows}
    assert verdict("corner-wave", levels, {"no-collusion-gain": {}}, data=data).status == "holds"


def test_share_tests_against_the_f_distribution_and_simulation():
    """At ρ = 0 the F test's p-value."""
    n, p, share = 500, 3, 0.012
    _, above = share_tests([(share, p, n)], 1e-15)
    F = (share / p) / ((1 - share) / (n - p))
    assert above == pytest.approx(stats.f.sf(F, p, n - p), rel=1e-6)
    rng, runs = np.random.default_rng(4), 4000
    D = rng.standard_normal((runs, n))
    y = rng.standard_normal((runs, n)) * math.sqrt(0.99) + D * 0.1
    r2 = (
        np.einsum("rn,rn->r", D, y) ** 2 / np.einsum("rn,rn->r", D, D) / np.einsum("rn,rn->r", y, y)
    )
    # the chance of that without any gain, which the test is divided by
    as_small = stats.f.cdf((n - 1) * r2 / (1 - r2), 1, n - 1)
    tested = np.array([share_tests([(share, 1, n)], 0.01)[0] for share in r2])
    assert np.mean(tested <= 0.05) <= 0.05
    rejected = np.mean(tested * as_small <= 0.05)
    assert rejected == pytest.approx(0.05, abs=3.9 * math.sqrt(0.05 * 0.95 / runs) + 0.005)


def test_margin_and_level_are_the_test_s():
    """A gain of 2 % ± 0.1 %."""
    release = ReleaseEvidence(
        {}, "s", "s", 2, 1, 10_000, {(1, 2): pooling(None, gain=0.02, error=0.001)}
    )
    assert NoCollusionGain().judge(Evidence([], [release])).status == "fails"
    assert NoCollusionGain(margin=0.03).judge(Evidence([], [release])).status == "holds"


def skewed(rows, seed=60):
    """Three lognormal amounts on scales 1 to 100, and their total."""
    parts = np.exp(np.random.default_rng(seed).normal(size=(rows, 3))) * [1.0, 10.0, 100.0]
    columns = {"a": parts[:, 0], "b": parts[:, 1], "c": parts[:, 2], "total": parts.sum(axis=1)}
    return {
        "source": "inline",
        "values": {name: column.tolist() for name, column in columns.items()},
    }


@pytest.mark.parametrize(
    ("rows", "replicates", "tables"),
    [(30, 1, 10), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((30, 10, 10), (60, 40, 5)))],
)  # fmt: skip
def test_corner_wave_is_never_refuted_on_few_skewed_rows(rows, replicates, tables):
    for seed in range(tables):
        data, levels = skewed(rows, seed), [0.4, 0.2, 1.0, 0.7]
        found = verdict(
            "corner-wave", levels, {"no-collusion-gain": {}}, seed=seed, data=data,
            replicates=replicates,
        )  # fmt: skip
        assert found.status != "fails", found.why


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
@properties
def test_holm_is_the_step_down_of_bonferroni(p):
    adjusted = holm(p)
    for alpha in (0.01, 0.05, 0.3):
        rejected, m = set(), len(p)
        for rank, place in enumerate(sorted(range(m), key=lambda k: p[k])):
            if (m - rank) * p[place] > alpha:
                break
            rejected.add(place)
        assert {k for k in range(m) if adjusted[k] <= alpha} == rejected


def evidence(*records, plugin="correlated"):
    return Evidence(records, [ReleaseEvidence({}, "s", plugin, 2, 1, 1000)])


@pytest.mark.parametrize(
    ("value", "error", "theory", "status"),
    [
        (0.50, 0.01, None, "holds"),  # ten errors inside
        (0.30, 0.01, None, "fails"),  # ten errors outside
        (0.41, 0.01, None, "undecided"),  # one error inside
        (0.39, 0.01, None, "undecided"),  # one error outside
        (0.40, 0.0, None, "holds"),  # exactly at the bound
        (0.50, 0.01, 0.39, "fails"),  # theory has the last word
        (0.0011, 0.001, None, "fails"),  # one wrong record: χ² of 2.4 degrees is below 0.007 of 2.4
        (0.06, 0.06, None, "undecided"),  # an exponential: 1 − exp(−0.15) = 0.14
    ],
)
def test_a_lower_bound(value, error, theory, status):
    bound = MetricBound(metric="normalized_error", at_least=0.4)
    assert bound.judge(evidence(record(value, error, theory=theory))).status == status


@pytest.mark.parametrize("degrees", [2, 8, 40])
def test_errors_of_few_squares_fail_a_true_bound_no_more_often_than_stated(degrees):
    draws, bound = 1_000, MetricBound(metric="normalized_error", at_least=0.4)
    means = np.random.default_rng(2**40 + degrees).chisquare(degrees, draws) * 0.4 / degrees
    errors = means * np.sqrt(2 / degrees)
    found = [
        bound.judge(evidence(record(*each))).status for each in zip(means, errors, strict=True)
    ]
    assert found.count("fails") <= 0.05 * draws + 3 * np.sqrt(0.05 * 0.95 * draws)


def test_a_bound_over_many_cells_is_widened():
    bound = MetricBound(metric="normalized_error", at_least=0.4)
    unlucky = record(0.382, 0.01, coalition=(100,))
    assert bound.judge(evidence(unlucky)).status == "fails"
    others = [record(0.9, 0.01, coalition=(k,)) for k in range(1, 100)]
    assert bound.judge(evidence(unlucky, *others)).status == "undecided"


def test_matches_theory_holds_and_fails_and_is_undecided():
    for value, error, status in [
        (0.51, 0.01, "holds"), (0.55, 0.01, "fails"), (0.51, 0.2, "undecided"),
    ]:  # fmt: skip
        judged = MatchesTheory(metric="normalized_error").judge(
            evidence(record(value, error, theory=0.5))
        )
        assert judged.status == status


@pytest.mark.parametrize("scheme", ["corner-wave", "honest-half-shared"])
def test_matches_theory_holds_for_honest_schemes(scheme):
    """False alarm 1 % a scheme by the expectation's own level."""
    assert verdict(scheme, [0.5, 1.0], {"matches-theory": {}}, seed=2).status == "holds"


def test_theorem_3_by_hand():
    assert theorem_3([1.0, 4.0]) == pytest.approx(4 / 9)
    assert theorem_3([0.0, 4.0]) == 0.0


@pytest.mark.parametrize(
    "scheme", ["correlated", "corner-wave", "honest-half-shared", "linearly-dependent"]
)
def test_theorem_3_holds_for_fresh_noise_shaped_like_the_data_only(scheme):
    found = verdict(scheme, [0.5, 1.0], {"theorem-3": {"scheme": scheme}})
    assert found.status == ("holds" if scheme == "correlated" else "fails")


def test_theorem_3_fails_for_levels_that_are_not_those_released():
    """Theory 1/3 and 4/9 for levels 0.5 and 0.8."""
    good, wrong = (
        record(1 / 3, 0.001, theory=1 / 3),
        record(4 / 9, 0.001, theory=4 / 9, coalition=(2,), levels=(0.9,)),
    )
    assert Theorem3().judge(evidence(good)).status == "holds"
    assert Theorem3().judge(evidence(good, wrong)).status == "fails"


def test_growth_rate_is_the_slope_of_logarithms():
    """Seconds 1, 4, 16 at M = 1, 2, 4: exponent 2."""
    records = [
        record(x**2, None, metric="seconds", sweep={"m": x}, attack=None, knowledge=None)
        for x in (1.0, 2.0, 4.0)
    ]
    assert GrowthRate(against="m", at_most=1.9).judge(evidence(*records)).status == "fails"
    found = GrowthRate(against="m", at_most=2.1).judge(evidence(*records))
    assert (found.status, found.observed) == ("holds", pytest.approx(2.0))


def drawn(values, theories, metric="distortion", bar="replicates"):
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.01 * values[0]
    return [record(value, spread, metric=metric, theory=theory, replicate=k + 1, error_bar=bar)
            for k, (value, theory) in enumerate(zip(values, theories, strict=True))]  # fmt: skip


def test_one_release_says_nothing_of_theory_over_secret_draws():
    for value in (0.0, 2.0):
        found = MatchesTheory(resolution=0.9).judge(
            evidence(*drawn([value], [1.0], bar="jackknife"))
        )
        assert found.status == "undecided"
        assert "at least 8 replicates" in found.why
    assert MatchesTheory().judge(evidence(*drawn([1.0], [1.0], bar="jackknife"))).status == "holds"


@pytest.mark.parametrize(("shape", "R"), [(0.5, 10), ("coin", 16)])
@pytest.mark.slow_after_first
def test_a_true_theory_is_refuted_no_more_often_than_stated(shape, R):
    rng = np.random.default_rng(R)
    refuted = 0
    for _ in range(2000):
        theories = rng.lognormal(size=R)
        draws = rng.integers(0, 2, R) * 2.0 if shape == "coin" else rng.gamma(shape, 1.0 / shape, R)
        group = drawn(theories * draws, theories)
        refuted += agreement(group, float(theories.mean())).p <= 0.01
    assert refuted / 2000 <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 2000)


def test_a_wrong_theory_is_refuted_by_replicates_in_pairs():
    """Theory differs tenfold between replicates, and is 10 % off in each."""
    rng = np.random.default_rng(0)
    theories = 10.0 ** rng.uniform(0, 1, 10)
    right, wrong = theories * rng.normal(1.0, 0.02, 10), theories * rng.normal(1.1, 0.02, 10)
    assert MatchesTheory().judge(evidence(*drawn(right, theories))).status == "holds"
    assert MatchesTheory().judge(evidence(*drawn(wrong, theories))).status == "fails"
    within = MatchesTheory(metric="records_within")
    assert (
        within.judge(evidence(*drawn(wrong[:5], theories[:5], "records_within"))).status == "fails"
    )
    assert MatchesTheory().judge(evidence(*drawn(wrong[:5], theories[:5]))).status == "undecided"


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        ((0.3, 0.01), (0.5, 0.01), "holds"), ((0.5, 0.01), (0.3, 0.01), "fails"),
        ((0.5, 0.1), (0.48, 0.1), "undecided"), ((0.9, 0.2), (1.0, 0.2), "undecided"),
        ((0.9, 0.01), (1.0, 0.01), "holds"), ((1.1, 0.2), (1.0, 0.2), "undecided"),
        ((1.0, 0.0), (1.0, 0.0), "holds"),
    ],
)  # fmt: skip
def test_a_ranking_wants_evidence_and_not_luck(low, high, status):
    records = [record(*low), record(*high, attack="ndr")]
    assert Ranking(order=["llse", "ndr"]).judge(evidence(*records)).status == status
