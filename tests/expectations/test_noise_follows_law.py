"""Planted leaks are found at 20,000 rows, honest releases of every scheme are left alone, and p-values are no smaller than they say."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2, kstest, t

import auditor
from auditor import registry
from auditor.audit.base.release import Release as AuditedRelease
from auditor.audit.law_tests.chosen_rows import grids, runs
from auditor.audit.drawn_law.column_tests import repeats_test
from auditor.audit.drawn_law.columns import Columns
from auditor.audit.drawn_law.moments import moment_tests, whitening
from auditor.audit.law_tests.numeric import law_tests
from auditor.audit.numeric.gather import Stripe
from auditor.audit.numeric.moment_pass import MomentJob, NumberBlock
from auditor.data.microdata import as_table
from auditor.expectations.noise_follows_law import NoiseFollowsLaw
from auditor.numerics.blocks import row_blocks
from auditor.numerics.moments import Moments
from auditor.results.evidence import Evidence, LawTest, ReleaseEvidence
from auditor.runs.perturb import make_plugin
from auditor.runs.run_scenario import IMPLICIT_LEVEL
from auditor.schemes.base.additive import ORIGINAL, Step
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.planted import noise
from reports.figures.reading import Reading
from reports.wording.verdict import verdicts

ROWS = 20_000


def table(kind, rows=ROWS):
    rng = np.random.default_rng(14)
    base = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, 3))
    return {
        "skewed": np.exp(base),
        "heavy": rng.standard_t(2.1, (rows, 3)),
        "far": base + 1e7,
        "counts": rng.poisson(3.0, (rows, 2)).astype(float),
        "totals": np.column_stack([base, base.sum(axis=1)]),
    }[kind]


def found(X, scheme, levels, seed, change=None, **parameters):
    """Return what an audit finds of one release, whose copies are changed by ``change(x, copies, law, rng)``."""
    data = as_table(X)
    moments, plugin = table_moments(data), make_plugin("scheme", scheme, parameters)
    key, use = Key(seed, scheme), SimpleNamespace(already_out=0)
    release = AuditedRelease(data, moments, plugin, use, tuple(levels), key)
    copies, drawing = [np.empty_like(data.values) for _ in levels], release.drawing()
    for index, (a, b) in enumerate(row_blocks(data.rows, data.width)):
        drawing.block(index, data.values[a:b], [copy[a:b] for copy in copies])
    law = plugin.law(levels, moments) if release.transformed is None else release.transformed.law
    if change is not None:
        copies = change(data.values, copies, law, np.random.default_rng(seed))
    release._kept = [np.ascontiguousarray(copy) for copy in copies]
    whole = Stripe()
    job = MomentJob(data.rows, data.width, len(levels), moments.mean, moments.deviation, {})
    for part in job.stripes(NumberBlock.of(block, True, release.undo) for block in release.blocks()):
        whole.add(part)
    return law_tests(release, law, [whole.groups[number] for number in sorted(whole.groups)])


def judged(tests, **parameters):
    release = ReleaseEvidence({}, "scheme", "scheme", 1, 1, ROWS, law=tests)
    return NoiseFollowsLaw(NoiseFollowsLaw.Parameters(**parameters)).judge(Evidence([], [release]))


# -- leaks: each returns other copies ------------------------------------------------------------------------------------


def noise_of(x, copies):
    return [copy - x for copy in copies]


def planted(case):
    """A leak of the self-test's catalogue, done to copies that are there."""

    def change(x, copies, law, rng):
        return case().release(x, case().noise(x, noise_of(x, copies), rng))

    change.__name__ = case.name
    return change


one_normal_for_all_columns, unperturbed_rows, a_period, shared_rows, sizes_together = map(
    planted, (noise.OneNormalForAllColumns, noise.UnperturbedRows, noise.PeriodicGenerator, noise.SharedRows, noise.SizesTogether)
)
shared_in_a_twentieth, grows_with_the_record, follows_the_data, quiet_column, shuffled_rows = map(
    planted, (noise.SharedInATwentieth, noise.GrowsWithTheRecord, noise.FollowsTheData, noise.QuietColumn, noise.ShuffledRows)
)


def a_mean(x, copies, law, rng):
    return [copy + 0.06 * (copy - x).std(axis=0) for copy in copies]


def three_unperturbed_rows(x, copies, law, rng):
    bare = np.isin(np.arange(len(x)), (7, 1000, 19_999))
    return [np.where(bare[:, None], x, copy) for copy in copies]


def the_last_rows(x, copies, law, rng):
    """What is left over after the last whole block of 64 is forgotten."""
    bare = np.arange(len(x)) >= len(x) // 64 * 64
    return [np.where(bare[:, None], x, copy) for copy in copies]


def one_cell_in_a_hundred(x, copies, law, rng):
    """One attribute of one copy is out as it is in one row of a hundred."""
    changed = [copy.copy() for copy in copies]
    changed[-1][:, 0] = np.where(rng.random(len(x)) < 0.01, x[:, 0], changed[-1][:, 0])
    return changed


def antithetic_rows(x, copies, law, rng):
    """The second half of the rows has the first half's noise, with the other sign."""
    half = len(x) // 2
    return [x + np.concatenate([(z := copy - x)[:half], -z[:half], z[2 * half :]]) for copy in copies]


def bounded(x, copies, law, rng):
    """The right covariance, of uniform innovations."""
    u = rng.uniform(-math.sqrt(3), math.sqrt(3), (len(x), law.copies * law.width))
    z = (u @ law.root.T).reshape(len(x), law.copies, law.width)
    return [x + z[:, k] for k in range(law.copies)]


def heavy_tailed(x, copies, law, rng):
    u = rng.standard_t(5, (len(x), law.copies * law.width)) / math.sqrt(5 / 3)
    z = (u @ law.root.T).reshape(len(x), law.copies, law.width)
    return [x + z[:, k] for k in range(law.copies)]


def one_copy_handed_out_twice(x, copies, law, rng):
    """In one row of a hundred the second copy is the first."""
    rows = rng.random(len(x)) < 0.01
    return [copies[0], np.where(rows[:, None], copies[0], copies[1]), *copies[2:]]


def hangs_on_the_row_before(x, copies, law, rng):
    """Each row's noise holds a twentieth of that of the row before."""
    changed = []
    for z in noise_of(x, copies):
        for _ in range(1):
            z = math.sqrt(1 - 0.07**2) * z + 0.07 * np.roll(z, 1, axis=0)
        changed.append(x + z)
    return changed


def late_copy(x, copies, law, rng):
    """The second copy's noise is a tenth of the first copy's of the row before."""
    z, t = noise_of(x, copies), np.sqrt(np.diag(law.level_covariance))
    return [copies[0], x + math.sqrt(1 - 0.1**2) * z[1] + 0.1 * t[1] / t[0] * np.roll(z[0], 1, axis=0), *copies[2:]]


def sizes_by_block(x, copies, law, rng):
    """Every 64 rows share a small part of their noise."""
    changed = []
    for z in noise_of(x, copies):
        common = rng.normal(size=(len(x) // 625, x.shape[1])).repeat(625, axis=0) * z.std(axis=0)
        changed.append(x + math.sqrt(1 - 0.1**2) * z + 0.1 * common)
    return changed


def another_copy_s_rows(x, copies, law, rng):
    """The second copy has the first one's noise, a thousand rows on."""
    z, t = noise_of(x, copies), np.sqrt(np.diag(law.level_covariance))
    return [copies[0], x + t[1] / t[0] * np.roll(z[0], -1000, axis=0), *copies[2:]]


def another_copy_s_rows_backwards(x, copies, law, rng):
    """The second copy has the first one's noise from the last row to the first, with the other sign."""
    z, t = noise_of(x, copies), np.sqrt(np.diag(law.level_covariance))
    return [copies[0], x - t[1] / t[0] * z[0][::-1], *copies[2:]]


def other_records(x, copies, rng, lag, share):
    """The first copy's noise holds this share of the normal scores of the record so many rows on; scores of iid records are as random."""
    z, score = copies[0] - x, ndtri((x.argsort(axis=0).argsort(axis=0) + rng.random(x.shape)) / len(x))
    return [x + math.sqrt(1 - share**2) * z + share * z.std(axis=0) * np.roll(score, -lag, axis=0), *copies[1:]]


def the_next_record(x, copies, law, rng):
    return other_records(x, copies, rng, 1, 0.1)


def a_record_far_before(x, copies, law, rng):
    return other_records(x, copies, rng, -4321, 0.1)


def louder_before_a_far_out_record(x, copies, law, rng):
    """The first copy's noise is large where the next record lies far out."""
    z, score = copies[0] - x, np.abs(ndtri((x.argsort(axis=0).argsort(axis=0) + 0.5) / len(x)))
    size = np.where(np.roll(score, -1, axis=0) > 0.6745, 1.2, math.sqrt(2 - 1.2**2))
    return [x + size * z, *copies[1:]]


LEAKS = [
    the_next_record, a_record_far_before, louder_before_a_far_out_record,
    one_normal_for_all_columns, a_mean, unperturbed_rows, three_unperturbed_rows, the_last_rows, one_cell_in_a_hundred, a_period,
    antithetic_rows, shared_rows, bounded, heavy_tailed, grows_with_the_record, follows_the_data, shared_in_a_twentieth,
    one_copy_handed_out_twice, hangs_on_the_row_before, late_copy, sizes_together, sizes_by_block, quiet_column, shuffled_rows,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["skewed", pytest.param("far", marks=pytest.mark.slow)])
@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_planted_leak_is_found(leak, kind):
    verdict = judged(found(table(kind), "correlated", [0.25, 0.5, 1.0], 1, leak))
    assert verdict.status == "fails", verdict
    assert verdict.observed <= IMPLICIT_LEVEL


def first_copy_s(x, copies, score):
    return [x + (copies[0] - x).std(axis=0) * score, *copies[1:]]


def function_of_the_record(x, copies, law, rng):
    """No chance at all: it goes round a thousand times from the least record to the largest."""
    turns = 1000 * (x.argsort(axis=0).argsort(axis=0) + rng.random(x.shape)) / len(x)
    return first_copy_s(x, copies, ndtri(turns % 1.0))


def function_of_the_row_s_number(x, copies, law, rng):
    """A sequence that fills the unit interval evenly, of which neighbours are not correlated: 1 − 6α(1 − α) is 0."""
    alpha = 0.5 - math.sqrt(1 / 12)
    return first_copy_s(x, copies, ndtri((alpha * np.arange(len(x))[:, None] + rng.random(x.shape[1])) % 1.0))


def side_by_sign_of_product(x, copies, law, rng):
    """Either copy's noise is independent of the record, and so are both of each other; where they agree in sign it lies above the median."""
    z, side = noise_of(x, copies), np.where(x > np.median(x, axis=0), 1.0, -1.0)
    return [copies[0], x + np.abs(z[1]) * np.sign(z[0]) * side, *copies[2:]]


@pytest.mark.parametrize(
    ("leak", "statistic"),
    [(function_of_the_record, "waves"), (function_of_the_row_s_number, "waves"), (side_by_sign_of_product, "pairs and the data")],
    ids=lambda one: getattr(one, "__name__", one),
)  # fmt: skip
@pytest.mark.parametrize("kind", ["skewed", "heavy"])
def test_noise_that_is_random_to_every_other_test_is_found(leak, statistic, kind):
    tests = found(table(kind)[:, :1], "independent", [0.5, 1.0], 1, leak)
    assert judged(tests).status == "fails"
    assert next(test for test in tests if test.statistic == statistic).p < 1e-12


@pytest.mark.parametrize("lag", [1, -1, 2500])
def test_a_copy_that_hides_another_record_whole_is_found(lag):
    """All noise is that record's score: by any other test it is as random as the records are."""
    x = table("skewed", 5000)[:, :1]
    tests = found(x, "independent", [0.5, 1.0], 1, lambda x, copies, law, rng: other_records(x, copies, rng, lag, 1.0))
    assert [test.statistic for test in tests if test.p < 1e-3] == ["data of other rows"]


@pytest.mark.parametrize("scheme", ["correlated", "independent"])
@pytest.mark.parametrize("leak", [another_copy_s_rows, another_copy_s_rows_backwards], ids=lambda leak: leak.__name__)
def test_noise_that_comes_again_in_another_copy_is_found(leak, scheme):
    """Each copy alone keeps the law, and so does each row: nothing was said. Not found where values are 1e7 times their noise."""
    for kind in ("skewed", "counts"):
        assert judged(found(table(kind), scheme, [0.25, 0.5, 1.0], 1, leak)).status == "fails"


@pytest.mark.parametrize("leak", [unperturbed_rows, a_period, bounded, shared_rows, shared_in_a_twentieth, sizes_together],
                         ids=lambda leak: leak.__name__)  # fmt: skip
def test_a_leak_is_found_among_nested_copies_of_one_attribute(leak):
    verdict = judged(found(table("skewed")[:, :1], "corner-wave", [0.25, 0.5], 2, leak))
    assert verdict.status == "fails", verdict


def test_noise_in_a_copy_that_should_have_none_is_found():
    changed = found(table("skewed"), "corner-wave", [0.0, 0.5], 3, lambda x, copies, law, rng: [copies[0] + 1e-6, copies[1]])
    assert min(changed, key=lambda test: test.p).statistic == "no noise by law"


@pytest.mark.filterwarnings("error")
def test_a_copy_that_is_the_original_is_found_by_every_test_of_its_rows():
    """0/0 was no number, and that is larger than no bound: correlations with the row before found nothing, and numpy warned."""
    tests = found(table("skewed", 1000), "corner-wave", [0.25, 0.5], 3, lambda x, copies, law, rng: [x.copy(), copies[1]])
    assert all(math.isfinite(test.p) and math.isfinite(test.observed) for test in tests)
    assert {"rows without noise", "repeats", "neighbouring rows", "distribution"} <= {test.statistic for test in tests if test.p < 1e-6}


def test_a_second_draw_where_the_law_has_one_is_found():
    def a_little_more(x, copies, law, rng):
        return [copies[0], copies[1] + 0.01 * copies[1].std(axis=0) * rng.normal(size=x.shape)]

    assert judged(found(table("skewed"), "linearly-dependent", [0.25, 0.5], 3, a_little_more)).status == "fails"


def test_a_rotation_whose_noise_is_missing_in_some_rows_is_found():
    def bare(x, copies, law, rng):
        return [np.where(rng.random((len(x), 1)) < 0.01, turn.apply_to(x), copy) for turn, copy in zip(TURNS, copies, strict=True)]

    data = as_table(table("skewed"))
    scheme = make_plugin("scheme", "rotation-noise", {"noise": "fresh"})
    transforms = scheme.transforms(1, table_moments(data), Key(4, "rotation-noise"))
    TURNS = [SimpleNamespace(apply_to=lambda x, t=t: x @ t.matrix.T + t.shift) for t in transforms]
    assert judged(found(table("skewed"), "rotation-noise", [0.5], 4, bare, noise="fresh")).status == "fails"
    assert judged(found(table("skewed"), "rotation-noise", [0.5], 4, noise="fresh")).status == "holds"


# -- honest releases -----------------------------------------------------------------------------------------------------

HONEST = [
    ("independent", [0.25, 1.0], {}),
    ("independent", [0.25, 0.5], {"distribution": "uniform"}),
    ("independent", [0.5, 0.5], {"distribution": "uniform", "noise": "data"}),
    ("correlated", [0.3, 0.3, 2.0], {}),
    ("linearly-dependent", [0.25, 1.0, 0.5], {}),
    ("corner-wave", [0.25, 1.0, 0.5], {}),
    ("corner-wave", [0.5, 0.5, 0.0, 1.0, 1.0001], {"algorithm": "sequential"}),
    ("corner-wave", [0.5, 0.7, 1.0], {"algorithm": "parallel", "noise": "white"}),
    ("corner-wave", [0.5, 0.7, 0.6], {"algorithm": "on-demand", "noise": {"variance": 25.0}}),
    ("corner-wave", [0.5, 0.5 + 1e-7, 0.5 + 1e-12], {}),
    ("rotation", [0.0], {}),
    ("rotation-noise", [0.25, 0.5], {"noise": "corner-wave"}),
]


@pytest.mark.parametrize("kind", ["skewed", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("heavy", "far", "counts", "totals"))])
@pytest.mark.parametrize(("scheme", "levels", "parameters"), HONEST)
def test_honest_noise_is_left_alone(scheme, levels, parameters, kind):
    """False alarms: 60 cases at one in ten thousand each, so one run of this in 165."""
    tests = found(table(kind, 5000), scheme, levels, 0, **parameters)
    assert judged(tests, resolution=0.5).status == "holds", judged(tests)


def rounded(grid):
    return lambda x, copies, law, rng: [np.round(copy / grid) * grid for copy in copies]


@pytest.mark.parametrize("grid", [2.0**-20, 2.0**-10, 0.001, 0.01])
@pytest.mark.parametrize("kind", ["counts", "skewed"])
def test_copies_on_a_grid_are_left_alone(kind, grid):
    for scheme, levels in (("corner-wave", [0.25, 0.25, 0.5]), ("linearly-dependent", [0.25, 1.0])):
        assert judged(found(table(kind), scheme, levels, 5, rounded(grid))).status == "holds"


def test_noise_below_the_data_s_last_digit_is_not_tested_and_gives_no_warning():
    """Rounding is 1e154 times its size, and the square of that no double."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = auditor.run({"seed": 1, "data": "iris", "schemes": [{"name": "corner-wave", "levels": [5e-307]}], "attacks": ["ndr"],
                              "expect": ["noise-follows-law"]})  # fmt: skip
    assert [str(each.message) for each in warned if issubclass(each.category, RuntimeWarning)] == []
    assert result.expectations[0].status == "undecided"


def test_a_leak_is_found_on_a_grid():
    def change(x, copies, law, rng):
        return rounded(0.001)(x, unperturbed_rows(x, copies, law, rng), law, rng)

    assert judged(found(table("counts"), "correlated", [0.25, 0.5], 6, change)).status == "fails"


@pytest.mark.slow
def test_repeats_are_told_from_values_that_a_grid_brings_together():
    """Of many rows on a grid a tenth is within reach of another by chance: honest p-values are bounds, and 5 % more are found."""
    n, law = 4_000, KroneckerNoise(np.eye(1), np.eye(1))
    rng, grain = np.random.default_rng(3), np.array([0.1 / (8 * 0.4 * n)])
    p = []
    for _ in range(200):
        t = rng.standard_normal((n, 1))
        p.append(repeats_test(Columns.of(np.rint(t / grain) * grain, grain, ["a"], law), None, law).p)
        t[: n // 20] = t[-n // 20 :]
    assert np.mean(np.array(p) <= 0.05) <= 0.05  # by chance up to 10 of 200; the bound is far from tight
    assert repeats_test(Columns.of(np.rint(t / grain) * grain, grain, ["a"], law), None, law).p < 0.01


def test_rows_that_repeat_are_told_where_single_values_cannot_be():
    n, grain = 20_000, np.full(4, 2.0**-12)
    law, rng = KroneckerNoise(np.eye(2), np.eye(2)), np.random.default_rng(4)
    t = rng.standard_normal((n, 4))

    def tested(rows):
        columns = Columns.of(np.rint(rows / grain) * grain, grain, list("abcd"), law)
        return repeats_test(columns, columns, law)

    honest = tested(t)
    assert honest.p == 1.0  # no pair is met, where 0.02 are expected
    t[n // 2 :] = t[: n // 2]
    found = tested(t)
    assert found.p < 1e-9
    assert 0.4 < found.observed <= 0.5  # but for those on the bounds of a cell


@pytest.mark.slow
def test_p_values_are_no_smaller_than_they_say():
    """Of each statistic, over honest releases: no share of p-values below q is above q by more than chance (one-sided KS, 1e-5)."""
    p: dict[str, list[float]] = {}
    cases = [("correlated", [0.5, 1.0], {}), ("corner-wave", [0.5, 1.0], {}), ("independent", [0.5, 1.0], {"distribution": "uniform"})]
    X = {kind: table(kind, 1500) for kind in ("skewed", "heavy")}
    for seed in range(30):
        for place, (scheme, levels, parameters) in enumerate(cases):
            for kind in X:
                for test in found(X[kind], scheme, levels, [1000, 3000, 5000][place] + 2 * seed + (kind == "heavy"), **parameters):
                    p.setdefault(test.statistic, []).append(test.p)
    assert len(p) == 16
    for statistic, values in p.items():
        assert kstest(values, "uniform", alternative="greater").pvalue > 1e-5, statistic
        assert np.mean(np.array(values) <= 0.01) <= 0.01 + 5 * math.sqrt(0.01 * 0.99 / len(values)), statistic


# -- the parts, by hand and by transcription -----------------------------------------------------------------------------


def test_the_covariance_test_is_that_of_the_whitened_noise_as_written():
    rng, law = np.random.default_rng(3), KroneckerNoise(np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    n, x = 500, rng.normal(size=(500, 2)) * [1.0, 50.0]
    z = rng.multivariate_normal(np.zeros(4), law.covariance, n)
    rows = np.hstack([x, np.tile(x, 2) + z])
    test = next(test for test in moment_tests(law, [Moments.of(rows[:200]), Moments.of(rows[200:])], ("a", "b"))
                if test.statistic == "covariance")  # fmt: skip
    A, B = whitening(law.level_covariance).rows, whitening(law.shape).rows
    u = z @ np.kron(A, B).T
    S, p = u.T @ u, []
    for k in range(4):
        p.append(2 * min(chi2.cdf(S[k, k], n), chi2.sf(S[k, k], n)))
        for other in range(k):
            r = S[k, other] / math.sqrt(S[k, k] * S[other, other])
            p.append(2 * t.sf(abs(r) * math.sqrt((n - 1) / (1 - r**2)), n - 1))
    assert test.tests == len(p) == 10
    assert test.p == pytest.approx(min(1.0, 10 * min(p)), rel=1e-6)


def test_a_law_as_one_matrix_gives_the_same_verdicts():
    law = KroneckerNoise(np.diag([1.0, 2.0]), np.eye(2))
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 2))
    z = rng.normal(size=(3000, 4)) * np.sqrt([1.0, 1.0, 2.0, 2.0])
    groups = [Moments.of(np.hstack([x, np.tile(x, 2) + z]))]
    one, other = (moment_tests(each, groups, ("a", "b")) for each in (law, DenseNoise(law.covariance, 2)))
    for a, b in zip(one, other, strict=True):
        assert (a.statistic, a.tests) == (b.statistic, b.tests)
        assert a.p == pytest.approx(b.p, rel=1e-6)


def test_whitening_leaves_out_what_has_no_noise():
    W, null = whitening(np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert W.shape == (1, 3)
    assert null.shape == (1, 3)
    assert abs(null[0] @ [2.0, 1.0, 5.0]) < 1e-12  # noise (2, 1)·g is all there is


def test_the_grid_of_copies_is_found():
    values = np.random.default_rng(5).normal(size=(300, 4)) * 100
    values[:, 0] = np.round(values[:, 0])
    values[:, 1] = np.round(values[:, 1] / 0.05) * 0.05
    values[:, 2] = np.round(values[:, 2] * 1024) / 1024
    whole, twentieths, binary, none = grids(values)
    assert (whole, binary) == (1.0, 1 / 1024)
    assert twentieths == pytest.approx(0.05)
    assert none < 1e-12


@pytest.mark.parametrize(("length", "wanted"), [(10, 100), (1000, 128), (65_536, 4096), (200, 10)])
def test_rows_that_are_looked_at_include_the_first_and_the_last(length, wanted):
    chosen = runs(length, wanted)
    assert (chosen[0], chosen[-1]) == (0, length - 1)
    assert len(chosen) <= max(wanted, 128)
    assert np.unique(chosen).size == len(chosen)


def test_holm_over_statistics_and_what_is_told():
    honest = [LawTest("mean", 0.2, 4, ROWS, 1.0, 0.0, "a mean is"), LawTest("size", 1.0, 4, ROWS, 0.1, 0.1, "a share is")]
    assert judged(honest).observed == pytest.approx(0.4)
    bad = judged([*honest, LawTest("repeats", 1e-6, 4, ROWS, 0.1, 0.0, "the share of repeats is")])
    assert (bad.status, bad.observed, bad.bound) == ("fails", pytest.approx(3e-6), IMPLICIT_LEVEL)
    shown = "repeats of scheme: the share of repeats is 0.1, by law 0 (p = 1e-06, 20,000 rows)"
    assert bad.why == f"1 of 3 statistics contradict the stated law; {shown}"
    assert judged([*honest, LawTest("repeats", 1e-6, 4, ROWS, 0.1, 0.0, "x")], level=1e-6).status == "holds"


def test_few_rows_are_undecided():
    verdict = judged([LawTest("mean", 0.2, 4, 100, 1.0, 0.0, "a mean is")])
    assert verdict.status == "undecided"
    assert "could hide in so few rows (100); add rows" in verdict.why
    assert judged([]).status == "undecided"


# -- in an audit -----------------------------------------------------------------------------------------------------------


class OneNormal(make_plugin("scheme", "independent", {}).__class__):
    """States white noise, and draws one normal for all columns."""

    name = "lie-one-normal"

    def sampler(self, levels, table, key, existing=0):
        scale = math.sqrt(np.trace(table.covariance) / len(table.covariance))
        return OneNormalSampler([scale * math.sqrt(level) for level in levels], key)


class OneNormalSampler:
    def __init__(self, scales, key):
        self._scales, self._key = scales, key

    def block(self, index, x, out, existing=0):
        for copy, scale in enumerate(self._scales):
            rng = np.random.default_rng([self._key.seed, index, copy])
            out[copy][...] = x + scale * rng.normal(size=(len(x), 1))


class ReusesLater(make_plugin("scheme", "correlated", {}).__class__):
    """Draws its second copy with the first one's innovation, whoever drew that."""

    name = "lie-reuses"

    def level_covariance(self, levels):
        return 0.1 * np.diag(levels) + 0.9 * np.sqrt(np.outer(levels, levels))

    def plan(self, levels, existing=0):
        second = Step(2, ((ORIGINAL, 1.0),), ((1, 0.9 * math.sqrt(levels[-1])), (2, math.sqrt(0.19 * levels[-1]))))
        return [Step(1, ((ORIGINAL, 1.0),), ((1, math.sqrt(levels[0])),)), second][existing : len(levels)]


@pytest.fixture(scope="module", autouse=True)
def _schemes_that_lie():
    registry.discover()
    for cls in (OneNormal, ReusesLater):
        registry.register(cls)
    yield
    for cls in (OneNormal, ReusesLater):
        del registry._plugins["scheme"][cls.name]


def scenario(**changes):
    return {
        "schema": 1, "title": "test", "seed": 1, "attacks": ["llse"], "schemes": [{"name": "lie-one-normal", "levels": [0.25]}],
        "data": {"source": "gaussian", "covariance": [[1.0, 0.0], [0.0, 1.0]], "rows": ROWS}, "expect": ["matches-theory"],
    } | changes  # fmt: skip


def test_it_is_part_of_every_audit_and_of_every_report_when_it_fails():
    result = auditor.run(scenario())
    found = [(record.expectation, record.where, record.status) for record in result.expectations]
    assert found == [("matches-theory", {}, "holds"), ("noise-follows-law", {"scheme": "lie-one-normal"}, "fails")]
    assert result.exit_status == 1
    for renderer in ("markdown", "html", "table", "junit"):
        assert "noise-follows-law" in str(registry.get("renderer", renderer)().render([result])), renderer


def test_it_is_left_out_where_it_holds_and_told_once_where_it_was_asked_for():
    honest = [{"name": "corner-wave", "levels": [0.25, 0.5]}]
    assert [record.expectation for record in auditor.run(scenario(schemes=honest)).expectations] == ["matches-theory"]
    asked = auditor.run(scenario(schemes=honest, expect=["noise-follows-law"]))
    assert [(record.expectation, record.status) for record in asked.expectations] == [("noise-follows-law", "holds")]
    assert [record.status for record in auditor.run(scenario(expect=["noise-follows-law"])).expectations] == ["fails"]
    two = auditor.run(scenario(schemes=[*honest, *scenario()["schemes"]], expect=[{"noise-follows-law": {"scheme": "corner-wave"}}]))
    assert [record.status for record in two.expectations] == ["holds", "fails"]


def test_an_extension_that_would_break_the_law_is_refused():
    X = np.random.default_rng(5).normal(size=(2000, 1))
    auditor.perturb(X, scheme="lie-reuses", levels=[0.5, 0.8], seed=1)
    release = auditor.perturb(X, scheme="lie-reuses", levels=[0.5], seed=1)
    with pytest.raises(auditor.AuditorError, match="draws copy 2 with the innovation of copy 1, which is out already"):
        release.extend([0.8], seed=2)


def test_no_verdict_of_a_report_calls_a_scheme_safe_whose_law_is_broken():
    result = auditor.run(scenario(schemes=[{"name": "lie-one-normal", "levels": [0.25]}, {"name": "corner-wave", "levels": [0.25, 0.5]}]))
    found = {verdict.scheme: verdict for verdict in verdicts(Reading(result))}
    assert found["lie-one-normal"].finding == "refuted"
    assert "The expectation noise-follows-law (scheme = lie-one-normal) fails." in found["lie-one-normal"].sentence
    assert found["corner-wave"].finding != "refuted"
