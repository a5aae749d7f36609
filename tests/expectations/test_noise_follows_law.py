"""`noise-follows-law` on planted faults and honest releases."""

import math
import warnings
from itertools import product

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.expectations.base import IMPLICIT_LEVEL
from auditor.expectations.noise_follows_law import NoiseFollowsLaw
from auditor.results.records import Evidence, LawTest, ReleaseEvidence
from auditor.scenario.arguments import make_plugin
from auditor.schemes.base.scheme import Key
from auditor.schemes.corner_wave import ORIGINAL, Step
from auditor_reports.reading import Reading
from auditor_reports.verdict import verdicts
from tests.audit.law_faults import FAULTS, GRIDS, HONEST, KINDS, drawn, honest, law_tests_of, table

ROWS = 20_000


def judged(tests, **parameters):
    release = ReleaseEvidence({}, "scheme", "scheme", 1, 1, ROWS, law=tests)
    return NoiseFollowsLaw(NoiseFollowsLaw.Parameters(**parameters)).judge(Evidence([], [release]))


QUICK = {
    "unperturbed rows", "a period", "sizes together", "shared in a twentieth", "the next record", "one unperturbed row", "heavy tails",
    "5 % less noise in a column of one copy", "9 % of the noise 37 rows earlier", "parity of the rank", "side by the sign of a product",
    "another copy's rows backwards", "noise at level 0", "unperturbed rows on a grid", "one more cell in ten at rest",
    "geometric-multilevel: a period", "digits: sevenths", "digits of a copy", "self-test: ranks-that-add-up", "self-test: fine-bands",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS],
)
def test_a_fault_of_the_catalogue_is_found_at_10_000_rows(name):
    verdict = judged(FAULTS[name].tests(10_000, 1))
    assert verdict.status == "fails", verdict
    assert verdict.observed <= IMPLICIT_LEVEL


def test_a_message_is_in_a_statistician_s_terms():
    why = judged(FAULTS["9 % of the noise 37 rows earlier"].tests(20_000, 1)).why
    assert "is correlated with its own value 37 rows earlier: r = 0.0" in why


def test_a_rotation_whose_noise_is_missing_in_some_rows_is_found():
    plugin = make_plugin("scheme", "rotation-noise", {"noise": "fresh"})
    release = drawn(table("skewed", 10_000), plugin, [0.5], 4)
    (turn,) = plugin.transforms(1, release.release.moments, Key(4, "rotation-noise"))

    def bare(x, copies, law, rng):
        return [np.where(rng.random((len(x), 1)) < 0.01, x @ turn.matrix.T + turn.shift, copies[0])]

    assert judged(law_tests_of(release, bare, 0)).status == "fails"
    honest = drawn(table("skewed", 10_000), plugin, [0.5], 4)
    assert judged(law_tests_of(honest, None, 0)).status == "holds"


@pytest.mark.parametrize(
    ("case", "kind"),
    [pytest.param(case, kind, marks=pytest.mark.slow if (i + 3 * j) % 14 else ())
     for (i, case), (j, kind) in product(enumerate(HONEST), enumerate(KINDS)) if (i + 3 * j) % 7 == 0],
)  # fmt: skip
def test_honest_noise_is_left_alone(case, kind):
    scheme, levels, parameters = case
    verdict = judged(
        honest(scheme, levels, parameters, kind, 1000 if kind == "wide" else 3000, 7),
        resolution=0.9,
    )
    assert verdict.status == (
        "holds" if scheme != "rotation" or verdict.observed is not None else "undecided"
    ), verdict


@pytest.mark.parametrize("rows", [3, 50])
@pytest.mark.parametrize("case", [case for case in HONEST if case[0] != "rotation"][::2])
def test_honest_noise_of_a_tiny_table_is_left_alone(case, rows):
    scheme, levels, parameters = case
    assert judged(honest(scheme, levels, parameters, "skewed", rows, 1)).status == "undecided"


@pytest.mark.parametrize(
    "grid",
    [grid if grid != "1 decimal" else pytest.param(grid, marks=pytest.mark.slow) for grid in GRIDS],
)
@pytest.mark.parametrize("kind", ["counts", "skewed", "duplicate"])
def test_copies_on_a_grid_are_left_alone(kind, grid):
    for scheme, levels in (("corner-wave", [0.25, 0.25, 0.5]), ("linearly-dependent", [0.25, 1.0])):
        tests = honest(scheme, levels, {}, kind, 3000, 5, grid)
        assert judged(tests, resolution=0.9).status == "holds"


def test_noise_below_the_data_s_last_digit_is_not_tested_and_gives_no_warning():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = auditor.run({"seed": 1, "data": "iris", "schemes": [{"name": "corner-wave", "levels": [5e-307]}], "attacks": ["ndr"],
                              "expect": ["noise-follows-law"]})  # fmt: skip
    assert [str(each.message) for each in warned if issubclass(each.category, RuntimeWarning)] == []
    assert result.expectations[0].status == "undecided"


def test_holm_over_statistics_and_what_is_told():
    honest = [
        LawTest("mean", 0.2, 4, ROWS, 1.0, 0.0, "a mean is"),
        LawTest("size", 1.0, 4, ROWS, 0.1, 0.1, "a share is"),
    ]
    assert judged(honest).observed == pytest.approx(0.4)
    bad = judged([*honest, LawTest("repeats", 1e-6, 4, ROWS, 0.1, 0.0, "the share of repeats is")])
    assert (bad.status, bad.observed, bad.bound) == ("fails", pytest.approx(3e-6), IMPLICIT_LEVEL)
    shown = "repeats of scheme: the share of repeats is 0.1, by law 0 (p = 1e-06, 20,000 rows)"
    assert bad.why == f"1 of 3 statistics contradict the stated law; {shown}"
    at_level = LawTest("repeats", 1e-6, 4, ROWS, 0.1, 0.0, "x")
    assert judged([*honest, at_level], level=1e-6).status == "holds"


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
    """Draws its second copy with the first one's innovation."""

    name = "lie-reuses"

    def level_covariance(self, levels):
        return 0.1 * np.diag(levels) + 0.9 * np.sqrt(np.outer(levels, levels))

    def plan(self, levels, existing=0):
        second = Step(
            2,
            ((ORIGINAL, 1.0),),
            ((1, 0.9 * math.sqrt(levels[-1])), (2, math.sqrt(0.19 * levels[-1]))),
        )
        return [Step(1, ((ORIGINAL, 1.0),), ((1, math.sqrt(levels[0])),)), second][
            existing : len(levels)
        ]


@pytest.fixture(scope="module", autouse=True)
def _schemes_that_lie():
    with registry.lent("scheme", OneNormal, ReusesLater):
        yield


def scenario(**changes):
    return {
        "schema": 1, "title": "test", "seed": 1, "attacks": ["llse"], "schemes": [{"name": "lie-one-normal", "levels": [0.25]}],
        "data": {"source": "gaussian", "covariance": [[1.0, 0.0], [0.0, 1.0]], "rows": ROWS}, "expect": ["matches-theory"],
    } | changes  # fmt: skip


def test_it_is_part_of_every_audit_and_of_every_report_when_it_fails():
    result = auditor.run(scenario())
    found = [(record.expectation, record.where, record.status) for record in result.expectations]
    assert found == [
        ("matches-theory", {}, "holds"),
        ("noise-follows-law", {"scheme": "lie-one-normal"}, "fails"),
    ]
    assert result.exit_status == 1
    for renderer in ("markdown", "html", "table", "junit"):
        assert "noise-follows-law" in str(registry.get("renderer", renderer)().render([result])), (
            renderer
        )


def test_it_is_left_out_where_it_holds_and_told_once_where_it_was_asked_for():
    honest = [{"name": "corner-wave", "levels": [0.25, 0.5]}]
    assert [
        record.expectation for record in auditor.run(scenario(schemes=honest)).expectations
    ] == ["matches-theory"]
    asked = auditor.run(scenario(schemes=honest, expect=["noise-follows-law"]))
    assert [(record.expectation, record.status) for record in asked.expectations] == [
        ("noise-follows-law", "holds")
    ]
    assert [
        record.status for record in auditor.run(scenario(expect=["noise-follows-law"])).expectations
    ] == ["fails"]
    two = auditor.run(
        scenario(
            schemes=[*honest, *scenario()["schemes"]],
            expect=[{"noise-follows-law": {"scheme": "corner-wave"}}],
        )
    )
    assert [record.status for record in two.expectations] == ["holds", "fails"]


def test_no_verdict_of_a_report_calls_a_scheme_safe_whose_law_is_broken():
    result = auditor.run(
        scenario(
            schemes=[
                {"name": "lie-one-normal", "levels": [0.25]},
                {"name": "corner-wave", "levels": [0.25, 0.5]},
            ]
        )
    )
    found = {verdict.scheme: verdict for verdict in verdicts(Reading(result))}
    assert found["lie-one-normal"].finding == "refuted"
    words = "The expectation noise-follows-law (scheme = lie-one-normal) fails."
    assert words in found["lie-one-normal"].sentence
    assert found["corner-wave"].finding != "refuted"
