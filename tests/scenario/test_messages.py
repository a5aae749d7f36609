"""Messages of a scenario and stated levels."""

import pytest

import auditor
from auditor import registry
from auditor.base import ScenarioError
from auditor.scenario.read import EVERY, read_scenario
from auditor.scenario.yaml_document import scalar

BASE = {
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 60},
    "schemes": [{"name": "corner-wave", "levels": [0.25, 1.0, 0.5]}],
    "attacks": ["llse"],
}


def rows(table):
    return [line.split(" ~ ") for line in table.strip().splitlines()]


def the_problem(fields):
    with pytest.raises(ScenarioError) as caught:
        read_scenario({**BASE, **fields})
    (found,) = caught.value.problems
    return str(found)


SECTIONS = r"""
schema: true ~ schema must be 1, the version that this program reads; got True
data: null ~ data must be a source's name, a path or a mapping with `source`; got nothing
data: nothere.csv ~ data.source names a file that is not there: 'nothere.csv'
data: {source: cps, rows: 2.5} ~ data.rows must be an integer; got 2.5
data: {source: cps, sheet: Pay} ~ data.sheet is of a file; a registered source has none
data: {source: cps, standardize: 1} ~ data.standardize must be true or false; got 1
schemes: 5 ~ schemes must be a list; got 5
schemes: [5] ~ schemes[0] must be a name, or a mapping with `name` and parameters; got 5
schemes: [{name: corner-wave, levels: [1], already-out: 1.5}] ~ schemes[0].already-out must be a number of copies, or a share of them below 1; got 1.5
schemes: [corner-wave] ~ schemes[0].levels is required: a list in order of release, or a range, as {uniform: [0.25, 1.0], count: 5
attacks: [] ~ attacks must name at least one
attacks: [{name: llse, power: 3}] ~ attacks[0].power is not a known field
measures: [speed] ~ measures[0] must be a measure; got 'speed'
sweep: {"data.rows": []} ~ sweep["data.rows"] must be a list of values to try; got []
sweep: {sweep: [{}]} ~ sweep.sweep cannot be swept; any section except sweep and expect can
sweep: {title: [a, 3]} ~ sweep.title[1] makes an invalid scenario: title must be text; got 3
sweep: {"schemes[*].levels[0]": [1, 2], "schemes[0].levels": [[3]]} ~ sweep["schemes[0].levels"] would overwrite what schemes[*].levels[0] has set: put it first, or leave one 
expect: [{exposure: {unknown: {at-least: 1.5}}}] ~ expect[0].exposure.unknown.at-least must be at most 1; got 1.5
expect: [within] ~ expect[0] needs a bound: at-least, at-most or between
expect: [{distortion: {at-least: .nan}}] ~ expect[0].distortion.at-least must be a finite number; got nan
expect: [{theorem-3: {coalition: some}}] ~ expect[0].theorem-3.coalition must be copy numbers or a set of coalitions; got 'some'
nonsense: 1 ~ nonsense is not a known field
"""
LEVELS = r"""
[] ~ schemes[0].levels must have 1 or more entries; got []
[1, x] ~ schemes[0].levels[1] must be a number; got 'x'
[true] ~ schemes[0].levels[0] must be a number; got True
[-0.5] ~ schemes[0].levels cannot be used: level 1 must be a finite noise multiple σ² ≥ 0; got -0.5
{uniform: [0, 1]} ~ schemes[0].levels.count is required: number of levels
{uniform: [1, 0], count: 2} ~ schemes[0].levels.uniform needs low ≤ high; got [1, 0]
{log-uniform: [0, 1], count: 2} ~ schemes[0].levels.log-uniform needs low > 0; got 0
{unifrom: [0, 1], count: 2} ~ schemes[0].levels must be a list of levels, or a mapping with one of uniform, log-uniform, linear, scale,
"""
COALITIONS = r"""
single ~ coalitions[1] must be copy numbers or a set of coalitions; got 'single'; did you mean 'singles'?
{copies: [2, 2]} ~ coalitions[1].copies names a copy twice; got [2, 2]
{random: 1000000000} ~ coalitions[1].random must be at most 1,100,000; got 1000000000
"""
KNOWLEDGE = r"""
estimated ~ knowledge[0].estimated.rows is required: number of released rows
{known-attributes: [a, a]} ~ knowledge[0].known-attributes names a column twice; got ['a', 'a']
{model: {target: a, predictors: [b]}} ~ knowledge[0].model.rows is required: number of released rows
{model: {target: a, predictors: [b, a], rows: 9}} ~ knowledge[0].model.predictors names the target; got ['b', 'a']
{model: {target: a, predictors: [b], rows: 9, intercept: 1}} ~ knowledge[0].model.predictors cannot be given with coefficients; leave one of them out
{model: {target: a, coefficients: {b: 1}, intercept: 1, residual-variance: -1, rows: 9}} ~ knowledge[0].model.residual-variance must be at least 0; got -1
{model: {target: a, rows: 9, tree: {mean: 1, varience: 2}}} ~ knowledge[0].model.tree.varience is not a known field; did you mean 'variance'?
{model: {target: a, rows: 9, tree: {split: b, at: 1, below: {mean: 1, variance: 0}}}} ~ knowledge[0].model.tree.above is required
{model: {target: a, rows: 9, tree: {mean: 1, variance: 0}, known: true}} ~ knowledge[0].model.known has nothing to give: the tree has no predictors
{model: {target: a, predictors: [b], depth: 0, rows: 9}} ~ knowledge[0].model.depth must be at least 1; got 0
{rules: {tree: a}} ~ knowledge[0].rules.tree must be a mapping with target, predictors, depth; got 'a'
{rules: {margins: [b, [a, a]]}} ~ knowledge[0].rules.margins[1] names a column twice; got ['a', 'a']
{rules: {if-then: [{if: {a: 1}}]}} ~ knowledge[0].rules.if-then[0].then is required: {column: value}
{rules: {if-then: [{then: {a: 1}, confidence: 0.5}]}} ~ knowledge[0].rules.if-then[0].support is required with the other of confidence and support
{perfect: null, estimated: {rows: 3}} ~ knowledge[0] must be a state of knowledge; got {'perfect': None, 'estimated': {'rows': 3}}
"""


@pytest.mark.parametrize(("table", "of"), [
    (SECTIONS, lambda fields: scalar(f"{{{fields}}}")),
    (LEVELS, lambda levels: {"schemes": [{"name": "corner-wave", "levels": scalar(levels)}]}),
    (COALITIONS, lambda entry: {"coalitions": ["all", scalar(entry)]}),
    (KNOWLEDGE, lambda entry: {"knowledge": [scalar(entry)]}),
], ids=["sections", "levels", "coalitions", "knowledge"])  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(table, of):
    for wrong, message in rows(table):
        assert message in the_problem(of(wrong))


def test_a_sweep_has_at_most_ten_thousand_points():
    sweep = {"seed": list(range(101)), "data.rows": list(range(10, 111))}
    assert the_problem({"sweep": sweep}) == "sweep has 10,201 combinations; at most 10,000"


NUMBERS = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 60}


def scenario(**changes):
    whole = {
        "data": NUMBERS, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}],
        "coalitions": ["subsets"], "attacks": EVERY,
    }  # fmt: skip
    return whole | changes


def names(**changes):
    return {use.name for use in read_scenario(scenario(**changes)).attacks}


def test_all_are_attacks_that_can_use_the_knowledge_and_be_the_strongest():
    with_moments, with_records = names(), names(knowledge=[{"known-records": 20}])
    assert {"llse", "map-estimate", "svd-filter", "mixture-estimate"} <= with_moments
    assert "known-io-regression" in with_records - with_moments
    assert "llse" in with_moments - with_records
    assert not with_moments & {"posterior", "homogeneity", "ica", "udr", "pca-filter"}
    assert names(knowledge=["perfect", {"known-records": 20}]) >= with_moments | with_records
    turned = names(
        schemes=[{"name": "rotation-noise", "levels": [0.3]}], knowledge=[{"known-records": 20}]
    )
    assert {"ica", "known-io-regression"} <= turned
    assert "llse" not in turned


def test_the_resolved_scenario_names_them_and_reads_the_same():
    first = read_scenario(scenario())
    assert read_scenario(first.spec()).attacks == first.attacks


@pytest.mark.slow
def test_what_a_scenario_leaves_out_is_told():
    assert auditor.run(scenario(attacks=["llse"])).untried == sorted(
        names() - {"llse"}, key=registry.names("attack").index
    )
    whole = auditor.run(scenario(attacks=EVERY))
    assert whole.untried == []
    assert whole.attack_kinds == {
        name: registry.get("attack", name).attack_kind for name in names()
    }


def test_what_is_wrong_is_told():
    for attacks, message in [
        ("al", "unknown attack"),
        ([{"name": EVERY}], "unknown attack"),
        ([{"name": "llse", "coalitions": ["singels"]}], "did you mean 'singles'"),
        ([{"name": "llse", "coalition": ["singles"]}], "did you mean 'coalitions'"),
        ([{"name": "llse", "coalitions": []}], "at least one"),
    ]:
        with pytest.raises(ScenarioError, match=message):
            read_scenario(scenario(attacks=attacks))
