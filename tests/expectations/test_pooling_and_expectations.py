"""Expectations must fail on releases that deserve it, hold on those that do not, and say so when the data cannot tell.

Schemes that lie about their law are registered for this module alone. Seeds are fixed; each
statistical test states its false-alarm rate."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import auditor
from auditor import registry
from auditor.audit.insider.noise_gain import noise_gains
from auditor.expectations.metric import MetricBound
from auditor.expectations.no_collusion_gain import NoCollusionGain
from auditor.expectations.ranking import GrowthRate, Ranking
from auditor.expectations.theory import MatchesTheory, Theorem3, agreement, theorem_3
from auditor.numerics.moments import Moments
from auditor.numerics.statistics import (
    holm,
    jackknife_error,
    observations_needed,
    one_sided,
    quantile,
    rows_needed,
    share_tests,
    two_sided,
)
from auditor.results.evidence import Evidence, InsiderGain, Pooling, ReleaseEvidence
from auditor.results.records import Measurement
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.planted import MaxForMin, OneNeighbour, draw_from
from tests.planted_cases import FreshRepeats

properties = settings(max_examples=60, deadline=None, derandomize=True)
GAUSSIAN = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 20_000}


# -- schemes that lie
# --------------------------------------------------------------------------------------------------


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
    """Claims corner-wave's law and has its covariance, but its noise is not jointly Gaussian: ``bend`` changes it."""

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
    """Every record's noise is drawn larger or smaller, in all its copies alike: a scale mixture."""

    name = "lie-shared-size"

    def bend(self, x, Z, rng):
        size = 1.0 / np.sqrt(rng.gamma(2.5, 1.0 / 1.5, (len(x), 1)))
        return [size * z for z in Z]


class SquaredIncrement(Bent):
    """The second copy adds the centred square of the first one's noise: uncorrelated, and wholly foretold."""

    name = "lie-squared-increment"

    def bend(self, x, Z, rng):
        g = Z[0] / Z[0].std(axis=0)
        return [Z[0], Z[0] + Z[0].std(axis=0) * (g**2 - 1.0) / math.sqrt(2.0)]


class NoiseByRecord(Bent):
    """The second copy adds more to records that lie further out: it tells how far out they lie."""

    name = "lie-noise-by-record"

    def bend(self, x, Z, rng):
        far = np.abs(x - x.mean(axis=0)) / x.std(axis=0)
        return [Z[0], Z[0] + far * (Z[1] - Z[0])]


class IndependentIncrements(Bent):
    """No Gaussian, yet honest: what the second copy adds is uniform and independent of everything."""

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
        "schema": 1,
        "title": "test",
        "seed": 1,
        "data": GAUSSIAN,
        "schemes": [{"name": scheme, "levels": levels}],
        "coalitions": ["subsets"],
        "attacks": ["llse"],
        "expect": expect,
    }
    return auditor.run(scenario | changes)


def verdict(scheme, levels, expect, **changes):
    return run(scheme, levels, [expect], **changes).expectations[0]


@pytest.mark.parametrize(
    ("scheme", "levels"),
    [
        ("fresh-repeats", [0.5, 1.0, 0.5]),
        ("one-neighbour", [1.0, 0.5]),
        ("max-for-min", [0.5, 1.0]),
    ],
)
@pytest.mark.slow
def test_a_release_made_by_a_wrong_scheme_fails_on_the_data_though_its_law_is_fine(scheme, levels):
    found = verdict(scheme, levels, {"no-collusion-gain": {}})
    assert found.status == "fails"
    assert found.why.startswith("on the data")
    assert found.observed > 0.1


@pytest.mark.parametrize(
    "scheme", ["lie-shared-size", "lie-squared-increment", "lie-noise-by-record"]
)
@pytest.mark.slow_after_first
def test_the_right_covariance_is_not_enough(scheme):
    """Nothing linear gains here, but what the second copy adds predicts the first one's noise, or the record, and a learner gains by it."""
    found = verdict(scheme, [0.5, 1.0], {"no-collusion-gain": {}})
    # sizes alone gain little more than the margin
    assert found.status == ("undecided" if scheme == "lie-shared-size" else "fails")
    assert "insider learner" in found.why
    wary = verdict(scheme, [0.5, 1.0], {"no-collusion-gain": {"margin": 0.6}})
    assert wary.status == "undecided"


def test_nothing_follows_from_a_law_that_the_noise_contradicts():
    """Independent increments of any distribution protect, but these have another covariance."""
    found = verdict("uniform-increments", [0.5, 1.0], {"no-collusion-gain": {}})
    assert found.status == "undecided"
    assert "the noise does not follow its law" in found.why


@pytest.mark.parametrize("attacks", [["llse"], ["ndr"]])
@pytest.mark.slow_after_first
def test_a_liar_is_found_though_no_attack_here_would_profit(attacks):
    """Attacks that trust the law weigh only the first copy; the noise itself tells."""
    result = run("one-neighbour", [1.0, 0.5], [{"no-collusion-gain": {}}], attacks=attacks)
    gains = [
        r.value
        for r in result.measurements
        if r.metric == "collusion_gain" and len(r.coalition) == 2
    ]
    assert max(gains) == pytest.approx(0.0, abs=1e-12)
    assert "the noise drawn in one-neighbour" in result.expectations[0].why


@pytest.mark.parametrize(
    "scheme",
    ["honest-max", "honest-half-shared", "correlated", "independent", "linearly-dependent"],
)
def test_a_scheme_that_states_a_leaking_law_fails_by_law(scheme):
    found = verdict(scheme, [0.5, 1.0], {"no-collusion-gain": {}})
    assert found.status == "fails"
    assert "by law" in found.why


def test_the_alias_is_the_same_expectation():
    assert (
        verdict("correlated", [0.5, 1.0], {"theorem-4": {}}).why
        == verdict("correlated", [0.5, 1.0], {"no-collusion-gain": {}}).why
    )


@pytest.mark.slow_after_first
def test_corner_wave_holds_and_says_how():
    found = verdict("corner-wave", [1.0, 0.5, 1.0, 0.7], {"no-collusion-gain": {}})
    assert found.status == "holds"
    for way in ("by law", "by theory", "on the data"):
        assert way in found.why


@pytest.mark.slow
def test_a_filter_keeps_a_leaking_scheme_out():
    schemes = [
        {"name": "correlated", "levels": [0.5, 1.0]},
        {"name": "corner-wave", "levels": [0.5, 1.0]},
    ]
    result = run(
        "",
        [],
        [{"no-collusion-gain": {"scheme": "corner-wave"}}, {"no-collusion-gain": {}}],
        schemes=schemes,
    )
    assert [record.status for record in result.expectations] == ["holds", "fails"]


@pytest.mark.slow
def test_a_leak_at_one_sweep_point_is_not_outvoted_by_the_next():
    """The law, and the gains, are judged point by point: a leak at two copies of one level, none at two levels."""
    found = verdict(
        "fresh-repeats",
        [0.5],
        {"no-collusion-gain": {}},
        sweep={"schemes[0].levels": [[0.5, 0.5], [0.5, 1.0]]},
    )
    assert found.status == "fails"


def test_by_law_every_sweep_point_counts():
    releases = [
        ReleaseEvidence({"p": k}, "s", "s", 2, 1, 10_000, {(1, 2): pooling(k > 0)}) for k in (0, 1)
    ]
    assert NoCollusionGain().judge(Evidence([], releases)).status == "fails"


@pytest.mark.parametrize(
    ("sufficient", "gain"), [(False, 0.0), (True, 0.3)], ids=["by-law", "on-the-data"]
)
def test_a_leak_in_the_last_coalition_is_found(sufficient, gain):
    last = pooling(sufficient, gain, copies=(2, 3))
    evidence = {(1, 2): pooling(True), (1, 3): pooling(True), (2, 3): last}
    found = NoCollusionGain().judge(
        Evidence([], [ReleaseEvidence({}, "s", "s", 3, 1, 10_000, evidence)])
    )
    assert found.status == "fails"
    assert "2, 3" in found.why


@pytest.mark.slow
def test_sweep_points_may_differ_in_width():
    found = verdict(
        "corner-wave",
        [0.5, 1.0],
        {"no-collusion-gain": {}},
        sweep={"data.covariance": [[[1.0]], [[1.0, 0.5], [0.5, 1.0]]]},
    )
    assert found.status == "holds"


def pooling(sufficient, gain=0.0, error=1e-5, copies=(1, 2)):
    found = InsiderGain(copies[0], copies, (math.sqrt(gain),), (error,), (100.0,), 20_000)
    return Pooling(sufficient, insider=found)


# -- too little data
# ---------------------------------------------------------------------------------------------------


def test_too_few_rows_are_undecided_and_the_number_told_decides():
    levels, small = [0.5, 0.7, 1.0], GAUSSIAN | {"rows": 300}
    few = run("corner-wave", levels, [{"no-collusion-gain": {}}], data=small)
    assert few.expectations[0].status == "undecided"
    assert few.exit_status == 1
    rows = int(
        re.search(r"about ([\d,]+) rows would settle it", few.expectations[0].why)[1].replace(
            ",", ""
        )
    )
    assert 300 < rows < 100_000
    assert (
        verdict(
            "corner-wave", levels, {"no-collusion-gain": {}}, data=small | {"rows": rows}
        ).status
        == "holds"
    )


def test_without_a_law_the_learner_must_show_it():
    data = GAUSSIAN | {"rows": 300}
    assert (
        verdict(
            "no-law-stated", [0.5, 0.7, 1.0], {"no-collusion-gain": {}}, data=data, attacks=["ndr"]
        ).status
        == "undecided"
    )


def test_the_share_of_noise_taken_off_is_that_of_a_regression():
    """R² of Z_b on Z_j − Z_b, row by row and attribute by attribute after whitening, against ``noise_gains``."""
    rng = np.random.default_rng(3)
    K_0 = np.array([[4.0, 1.0], [1.0, 2.0]])
    law = KroneckerNoise(np.minimum.outer([0.7, 0.5, 1.0], [0.7, 0.5, 1.0]), K_0)
    X, Z = rng.standard_normal((200, 2)), rng.multivariate_normal(np.zeros(6), law.covariance, 200)
    v = np.hstack([X, *(X + Z[:, 2 * k : 2 * k + 2] for k in range(3))])
    found = noise_gains([(1,), (1, 2, 3)], Moments.of(v), law)[1, 2, 3]
    white = (
        (Z.reshape(200, 3, 2) @ np.linalg.inv(np.linalg.cholesky(K_0)).T)
        .transpose(0, 2, 1)
        .reshape(400, 3)
    )
    y, D = white[:, 1], white[:, [0, 2]] - white[:, [1]]
    residual = y - D @ np.linalg.lstsq(D, y, rcond=None)[0]
    assert found.share == pytest.approx(1 - residual @ residual / (y @ y), rel=1e-9)
    assert (found.regressors, found.observations) == (2, 400)


def test_share_tests_against_the_f_distribution_and_simulation():
    """At ρ = 0 the F test's p-value; at ρ² = 1 % the chance of a statistic as small. False alarm of the simulation: 1 in 10,000."""
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


def test_observations_needed_decide_with_their_power():
    n, rng = observations_needed(4, 0.01, 0.01, 0.8), np.random.default_rng(5)
    shares = rng.chisquare(4, 2000) / n
    power = np.mean([share_tests([(float(share), 4, n)], 0.01)[0] <= 0.01 for share in shares])
    assert power == pytest.approx(0.8, abs=3.9 * math.sqrt(0.16 / 2000) + 0.01)


def test_more_rows_are_named_even_when_the_estimate_lies_above_the_margin():
    insider = InsiderGain(1, (1, 2), (math.sqrt(0.02),), (0.05,), (100.0,), 200)
    release = ReleaseEvidence({}, "s", "s", 2, 1, 200, {(1, 2): Pooling(None, insider=insider)})
    found = NoCollusionGain().judge(Evidence([], [release]))
    assert found.status == "undecided"
    z = quantile(1 - 0.05) + quantile(0.8)
    assert f"about {math.ceil(200 * (z * 0.05 / 0.1) ** 2):,} rows would settle it" in found.why


def test_too_few_rows_to_learn_from_are_undecided_and_no_crash():
    found = verdict(
        "corner-wave", [0.5, 0.7, 1.0], {"no-collusion-gain": {}}, data=GAUSSIAN | {"rows": 6}
    )
    assert found.status in ("undecided", "holds")


def test_nothing_to_pool_is_undecided():
    assert verdict("corner-wave", [0.5], {"no-collusion-gain": {}}).status == "undecided"


def test_margin_and_level_are_the_test_s():
    """A gain of 2 % ± 0.1 %: above a margin of 1 %, below one of 3 %."""
    release = ReleaseEvidence(
        {}, "s", "s", 2, 1, 10_000, {(1, 2): pooling(None, gain=0.02, error=0.001)}
    )
    assert NoCollusionGain().judge(Evidence([], [release])).status == "fails"
    assert NoCollusionGain(margin=0.03).judge(Evidence([], [release])).status == "holds"


def skewed(rows, seed=60):
    """Three lognormal amounts on scales 1 to 100, and their total: skewed, and exactly singular."""
    parts = np.exp(np.random.default_rng(seed).normal(size=(rows, 3))) * [1.0, 10.0, 100.0]
    columns = {"a": parts[:, 0], "b": parts[:, 1], "c": parts[:, 2], "total": parts.sum(axis=1)}
    return {
        "source": "inline",
        "values": {name: column.tolist() for name, column in columns.items()},
    }


@pytest.mark.parametrize(
    ("rows", "replicates", "tables"),
    [
        (30, 1, 10),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((30, 10, 10), (60, 40, 5))),
    ],
)
def test_corner_wave_is_never_refuted_on_few_skewed_rows(rows, replicates, tables):
    """Undecided, or holds, for every table: a guard once refuted half of those of 30 rows (a miss: 2⁻¹⁰, 2⁻⁵).

    Of 60 rows, 40 releases suffice: with error bars of a third the size all five tables are
    refuted, as they are by a hundred releases."""
    for seed in range(tables):
        found = verdict(
            "corner-wave",
            [0.4, 0.2, 1.0, 0.7],
            {"no-collusion-gain": {}},
            seed=seed,
            data=skewed(rows, seed),
            replicates=replicates,
        )
        assert found.status != "fails", found.why


def test_nothing_to_test_is_not_called_too_few_rows():
    found = verdict("corner-wave", [0.5, 1.0], {"no-collusion-gain": {}}, coalitions=["singles"])
    assert found.status == "undecided"
    assert "no coalition of two copies or more was audited" in found.why
    assert "too few rows" not in found.why


# -- statistics by hand
# ------------------------------------------------------------------------------------------------


def test_holm_by_hand():
    """Ascending 0.01, 0.03, 0.04 times 3, 2, 1, never falling: 0.03, 0.06, 0.06."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
@properties
def test_holm_is_the_step_down_of_bonferroni(p):
    """At any α: reject in ascending order while ``p_(i) ≤ α/(m − i + 1)``."""
    adjusted = holm(p)
    for alpha in (0.01, 0.05, 0.3):
        rejected, m = set(), len(p)
        for rank, place in enumerate(sorted(range(m), key=lambda k: p[k])):
            if (m - rank) * p[place] > alpha:
                break
            rejected.add(place)
        assert {k for k in range(m) if adjusted[k] <= alpha} == rejected


def test_one_sided_by_hand():
    """``P(T > (bound − estimate)/se)``: (0.01 − 0.00)/0.005 = 2, normal 0.02275; t(31) 0.0272."""
    assert one_sided(0.0, 0.01, 0.005) == pytest.approx(0.0227501, rel=1e-5)
    assert one_sided(0.0, 0.01, 0.005, 31) == pytest.approx(stats.t.sf(2, 31))
    assert one_sided(0.02, 0.01, 0.005) == pytest.approx(1 - 0.0227501, rel=1e-5)


def test_one_sided_without_error_is_decided_by_the_estimate():
    assert (one_sided(0.0, 0.01, 0.0), one_sided(0.01, 0.01, 0.0)) == (0.0, 1.0)


def test_two_sided_by_hand():
    assert two_sided(1.96, 1.0, 1.0) == pytest.approx(0.05, abs=1e-4)
    assert two_sided(1e-12, 0.0, 1.0) == 1.0  # rounding
    assert two_sided(1e-3, 0.0, 1.0) == 0.0


def test_jackknife_by_hand():
    """Of a mean of 1, 2, 3, 6 it is s/√n: left-out means 11/3, 10/3, 3, 2 give sqrt(3/4 · 14/9) = sqrt(7/6)."""
    values = np.array([1.0, 2.0, 3.0, 6.0])
    left_out = (values.sum() - values) / 3
    assert jackknife_error(left_out) == pytest.approx(math.sqrt(7 / 6))
    assert jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / 2)


def test_rows_needed_by_hand():
    """100 rows, se 0.02, distance 0.01, quantiles 2.5: 100·(2.5·2)² = 2500."""
    assert rows_needed(100, 0.02, 0.01, 2.5) == 2500
    assert rows_needed(100, 0.02, 0.0, 2.5) is None


# -- verdicts on made measurements
# -------------------------------------------------------------------------------------


def record(value, error, theory=None, **changes):
    fields = {
        "sweep": {},
        "scheme": "s",
        "knowledge": "perfect",
        "attack": "llse",
        "coalition": (1,),
        "levels": (0.5,),
        "replicate": 1,
        "attribute": "*",
        "metric": "normalized_error",
        "value": value,
        "std_error": error,
        "ci_low": None,
        "ci_high": None,
        "theory": theory,
        "status": "ok",
        "reason": None,
        "error_bar": "closed-form",
    }
    return Measurement(**(fields | changes))


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
    ],
)
def test_a_lower_bound(value, error, theory, status):
    bound = MetricBound(metric="normalized_error", at_least=0.4)
    assert bound.judge(evidence(record(value, error, theory))).status == status


@pytest.mark.parametrize(
    ("value", "status"),
    [(0.5, "holds"), (0.2, "fails"), (0.8, "fails"), (0.405, "undecided"), (0.595, "undecided")],
)
def test_bounds_on_both_sides(value, status):
    bound = MetricBound(metric="normalized_error", between=[0.4, 0.6])
    assert bound.judge(evidence(record(value, 0.01))).status == status


def test_a_bound_over_many_cells_is_widened():
    """1.8 errors below the bound refute it for one cell (5 %) and not for one of a hundred (Holm)."""
    bound = MetricBound(metric="normalized_error", at_least=0.4)
    unlucky = record(0.382, 0.01, coalition=(100,))
    assert bound.judge(evidence(unlucky)).status == "fails"
    others = [record(0.9, 0.01, coalition=(k,)) for k in range(1, 100)]
    assert bound.judge(evidence(unlucky, *others)).status == "undecided"


def test_replicates_are_pooled_before_a_bound_is_judged():
    """Four replicates at one error inside are two errors inside together."""
    bound = MetricBound(metric="normalized_error", at_least=0.4)
    records = [record(0.41, 0.01, replicate=k) for k in range(1, 5)]
    assert bound.judge(evidence(*records)).status == "holds"


def test_a_bound_nothing_matches_is_undecided():
    bound = MetricBound(metric="normalized_error", at_least=0.4, attack="ndr")
    assert bound.judge(evidence(record(0.5, 0.01))).status == "undecided"


def test_matches_theory_holds_and_fails_and_is_undecided():
    def judged(*args):
        return MatchesTheory(metric="normalized_error").judge(evidence(record(*args))).status

    assert judged(0.51, 0.01, 0.5) == "holds"
    assert judged(0.55, 0.01, 0.5) == "fails"
    assert judged(0.51, 0.20, 0.5) == "undecided"  # too coarse


def test_matches_theory_fails_when_the_theory_is_wrong():
    """A scheme 5 % louder than it says: its noise variance differs from theory by far more than the error bar of 20,000 rows."""
    found = verdict("lie-louder", [0.5, 1.0], {"matches-theory": {}})
    assert found.status == "fails"
    assert "differ from theory" in found.why


@pytest.mark.parametrize(
    "scheme",
    ["corner-wave", "correlated", "independent", "honest-half-shared", "linearly-dependent"],
)
def test_matches_theory_holds_for_honest_schemes(scheme):
    """False alarm 1 % a scheme by the expectation's own level; the seed is fixed."""
    assert verdict(scheme, [0.5, 1.0], {"matches-theory": {}}, seed=2).status == "holds"


@pytest.mark.parametrize(
    "scheme", ["independent", "correlated", "corner-wave", "linearly-dependent"]
)
def test_an_error_at_the_edge_of_rounding_is_no_difference(scheme):
    """At level 1e-12 theory may just be told as 0 and the measured error just not, or the other way round."""
    for seed in range(3):
        expect = [{"matches-theory": {}}, *([{"theorem-3": {}}] if scheme == "correlated" else [])]
        result = run(
            scheme,
            [1e-12, 1e6],
            expect,
            seed=seed,
            attacks=["llse", "ndr"],
            data=GAUSSIAN | {"rows": 300},
        )
        assert [e.status for e in result.expectations] == ["holds"] * len(expect)


@pytest.mark.slow
def test_matches_theory_raises_false_alarms_at_its_stated_rate():
    """At most 1 % of true theories refuted: no more of 150 than Bin(150, 0.01) allows (1e-4)."""
    false = sum(
        verdict(
            "independent",
            [0.5, 1.0],
            {"matches-theory": {}},
            seed=seed,
            data=GAUSSIAN | {"rows": 1000},
        ).status
        == "fails"
        for seed in range(100, 250)
    )
    assert false <= stats.binom.isf(1e-4, 150, 0.01)


def test_theorem_3_by_hand():
    assert theorem_3([1.0, 4.0]) == pytest.approx(4 / 9)
    assert theorem_3([0.0, 4.0]) == 0.0


def test_theorem_3_holds_for_fresh_noise_shaped_like_the_data():
    assert verdict("correlated", [0.5, 1.0, 2.0], {"theorem-3": {}}).status == "holds"


@pytest.mark.parametrize("scheme", ["corner-wave", "honest-half-shared", "linearly-dependent"])
def test_theorem_3_fails_for_any_other_law(scheme):
    assert verdict(scheme, [0.5, 1.0], {"theorem-3": {"scheme": scheme}}).status == "fails"


def test_theorem_3_fails_for_levels_that_are_not_those_released():
    """Theory 1/3 and 4/9 for levels 0.5 and 0.8; the record's levels say 0.5 and 0.9."""
    good, wrong = (
        record(1 / 3, 0.001, 1 / 3),
        record(4 / 9, 0.001, 4 / 9, coalition=(2,), levels=(0.9,)),
    )
    assert Theorem3().judge(evidence(good)).status == "holds"
    assert Theorem3().judge(evidence(good, wrong)).status == "fails"


def test_theorem_3_needs_something_to_judge():
    assert verdict("corner-wave", [0.5, 1.0], {"theorem-3": {}}).status == "undecided"


@pytest.mark.parametrize(
    ("llse", "ndr", "status"),
    [
        ((0.3, 0.01), (0.5, 0.01), "holds"),
        ((0.5, 0.01), (0.3, 0.01), "fails"),
        ((0.5, 0.1), (0.48, 0.1), "undecided"),
    ],
)
def test_ranking_of_two_attacks(llse, ndr, status):
    found = Ranking(order=["llse", "ndr"]).judge(
        evidence(record(*llse), record(*ndr, attack="ndr"))
    )
    assert found.status == status


def test_ranking_allows_the_slack():
    records = [record(0.5, 0.001), record(0.48, 0.001, attack="ndr")]
    assert Ranking(order=["llse", "ndr"]).judge(evidence(*records)).status == "fails"
    assert Ranking(order=["llse", "ndr"], slack=0.05).judge(evidence(*records)).status == "holds"


def test_ranking_by_scheme_knowledge_and_coalition():
    low, high = record(0.3, 0.01), record(0.5, 0.01)
    for by, field, names, values in (
        ("scheme", "scheme", ["a", "b"], ["a", "b"]),
        (
            "knowledge",
            "knowledge",
            ["perfect", "estimated(rows=9)"],
            ["perfect", "estimated(rows=9)"],
        ),
        ("coalition", "coalition", [[1, 2], [1]], [(1, 2), (1,)]),
    ):
        records = [
            item._replace(**{field: value}) for item, value in zip((low, high), values, strict=True)
        ]
        assert Ranking(order=names, by=by).judge(evidence(*records)).status == "holds"
        assert Ranking(order=names[::-1], by=by).judge(evidence(*records)).status == "fails"


def test_growth_rate_is_the_slope_of_logarithms():
    """Seconds 1, 4, 16 at M = 1, 2, 4: exponent 2."""
    records = [
        record(x**2, None, metric="seconds", sweep={"m": x}, attack=None, knowledge=None)
        for x in (1.0, 2.0, 4.0)
    ]
    assert GrowthRate(against="m", at_most=1.9).judge(evidence(*records)).status == "fails"
    found = GrowthRate(against="m", at_most=2.1).judge(evidence(*records))
    assert (found.status, found.observed) == ("holds", pytest.approx(2.0))


def test_growth_rate_needs_three_points():
    records = [record(x, None, metric="seconds", sweep={"m": x}) for x in (1.0, 2.0)]
    assert GrowthRate(against="m", at_most=1.0).judge(evidence(*records)).status == "undecided"


def test_exit_status_follows_the_worst_verdict():
    assert run("corner-wave", [0.5, 1.0], [{"no-collusion-gain": {}}]).exit_status == 0
    assert run("correlated", [0.5, 1.0], [{"no-collusion-gain": {}}]).exit_status == 1


def drawn(values, theories, metric="distortion", bar="replicates"):
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.01 * values[0]
    return [record(value, spread, metric=metric, theory=theory, replicate=k + 1)._replace(error_bar=bar)
            for k, (value, theory) in enumerate(zip(values, theories, strict=True))]  # fmt: skip


def test_one_release_says_nothing_of_theory_over_secret_draws():
    """The error bar of one release is of its rows: a coin that fell is 0 or twice its theory, whatever the rows."""
    for value in (0.0, 2.0):
        found = MatchesTheory(resolution=0.9).judge(
            evidence(*drawn([value], [1.0], bar="jackknife"))
        )
        assert found.status == "undecided"
        assert "at least 8 replicates" in found.why
    assert MatchesTheory().judge(evidence(*drawn([1.0], [1.0], bar="jackknife"))).status == "holds"


@pytest.mark.parametrize(
    ("shape", "R"), [(0.5, 10), (1.0, 10), (2.0, 16), ("coin", 10), ("coin", 16)]
)
@pytest.mark.slow_after_first
def test_a_true_theory_is_refuted_no_more_often_than_stated(shape, R):
    """Skewed errors and coins, 2,000 times, each replicate with a theory of its own: at most 1 % and three standard errors of that."""
    rng = np.random.default_rng(R)
    refuted = 0
    for _ in range(2000):
        theories = rng.lognormal(size=R)
        draws = rng.integers(0, 2, R) * 2.0 if shape == "coin" else rng.gamma(shape, 1.0 / shape, R)
        group = drawn(theories * draws, theories)
        refuted += agreement(group, float(theories.mean())).p <= 0.01
    assert refuted / 2000 <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / 2000)


def test_a_wrong_theory_is_refuted_by_replicates_in_pairs():
    """Theory differs tenfold between replicates, and is 10 % off in each: the spread between replicates would hide it."""
    rng = np.random.default_rng(0)
    theories = 10.0 ** rng.uniform(0, 1, 10)
    right, wrong = theories * rng.normal(1.0, 0.02, 10), theories * rng.normal(1.1, 0.02, 10)
    assert MatchesTheory().judge(evidence(*drawn(right, theories))).status == "holds"
    assert MatchesTheory().judge(evidence(*drawn(wrong, theories))).status == "fails"
    assert (
        MatchesTheory(metric="records_within")
        .judge(evidence(*drawn(wrong[:5], theories[:5], "records_within")))
        .status
        == "fails"
    )
    assert MatchesTheory().judge(evidence(*drawn(wrong[:5], theories[:5]))).status == "undecided"


@pytest.mark.parametrize(("low", "high", "status"), [((0.9, 0.2), (1.0, 0.2), "undecided"), ((0.9, 0.01), (1.0, 0.01), "holds"),
                                                     ((1.1, 0.2), (1.0, 0.2), "undecided"), ((1.0, 0.0), (1.0, 0.0), "holds")])  # fmt: skip
def test_a_ranking_wants_evidence_and_not_luck(low, high, status):
    records = [record(*low), record(*high, attack="ndr")]
    assert Ranking(order=["llse", "ndr"]).judge(evidence(*records)).status == status


def test_theory_given_a_draw_settles_a_ranking_only_if_replicates_agree():
    def ranked(first, second, bar="replicates"):
        records = [
            record(1.0, 0.3, theory=t, replicate=k)._replace(error_bar=bar)
            for k, t in enumerate(first)
        ]
        records += [
            record(1.05, 0.3, attack="ndr", theory=t, replicate=k)._replace(error_bar=bar)
            for k, t in enumerate(second)
        ]
        return Ranking(order=["llse", "ndr"]).judge(evidence(*records)).status

    assert ranked([0.9] * 3, [1.0] * 3) == "holds"
    assert ranked([0.9, 0.9, 1.1], [1.0] * 3) == "undecided"
    assert ranked([1.1] * 3, [1.0] * 3) == "undecided"  # three unlucky draws
    assert ranked([1.1] * 3, [1.0] * 3, "closed-form") == "fails"
