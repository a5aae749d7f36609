"""The expectation `exposure`."""

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.base import ScenarioError
from auditor.results.records import Evidence, ReleaseEvidence
from tests import audited


def record(attribute, value, error=0.01, **changes):
    bar = "closed-form" if error is not None else "replicates-needed"
    return audited.record(value, error, **({"attribute": attribute, "error_bar": bar} | changes))


def judge(records, releases=(), **parameters):
    plugin = registry.get("expectation", "exposure")
    return plugin(
        plugin.Parameters.model_validate({"unknown": {"at-least": 0.5}} | parameters)
    ).judge(Evidence(records, releases))


@pytest.mark.parametrize(("age", "error", "status"), [
    (0.7, 0.01, "holds"), (0.3, 0.01, "fails"), (0.52, 0.05, "undecided"), (0.7, None, "undecided"),
])  # fmt: skip
def test_the_worst_attribute_decides_and_not_their_mean(age, error, status):
    found = judge([record("*", 0.9), record("salary", 0.95), record("age", age, error)])
    assert found.status == status
    assert (
        "1 without an error bar; of copies made here five replicates or more give one" in found.why
    ) == (error is None)


@pytest.mark.parametrize(
    ("usual", "status"), [(1.2, "holds"), (0.7, "holds"), (0.48, "undecided"), (0.3, "undecided")]
)
def test_an_attack_that_goes_astray_in_one_draw_of_ten_is_judged_by_the_others(usual, status):
    values = [usual + 0.001 * k for k in range(9)] + [2600.0]
    error = float(np.std(values, ddof=1))
    drawn = [
        record("age", value, error, attack="svd-filter", replicate=k, error_bar="replicates")
        for k, value in enumerate(values, 1)
    ]
    assert judge(drawn).status == status
    assert judge(drawn, unknown={"at-most": 0.5}).status != "holds"


@pytest.mark.parametrize("metric", ["normalized_error", "median_error_ratio"])
@pytest.mark.parametrize(("low", "status"), [(0.97, "holds"), (0.3, "undecided")])
def test_an_estimate_far_worse_than_a_guess_is_judged_by_its_lower_end(metric, low, status):
    ends = {"ci_low": low, "ci_high": 9e3, "error_bar": "redraws"}
    others = record("salary", 0.95), record("age", 170.0, 5e3, metric=metric, **ends)
    assert judge([*others]).status == status


@pytest.mark.parametrize(("plugin", "rows", "status"), [
    ("published", 187, "undecided"), ("published", 188, "holds"), ("corner-wave", 187, "holds"),
])  # fmt: skip
def test_files_with_too_few_records_for_a_leak_of_the_bound_are_not_safe(plugin, rows, status):
    insider = record("age", 0.9, attack="fitted-to-originals")
    found = judge([insider], [ReleaseEvidence({}, "s", plugin, 1, 1, rows)])
    assert found.status == status
    assert ("about 190 records would do" in found.why) == (status == "undecided")


def test_it_looks_at_every_attack_and_coalition_and_names_the_one_that_knows_most():
    others = [record("age", 0.8), record("age", 0.8, coalition=(1, 2))]
    others.append(record("age", 0.2, attack="ica", coalition=(1, 2)))
    found = judge(others)
    assert (found.status, found.observed) == ("fails", 0.2)
    assert "ica, perfect, copies 1, 2, age" in found.why
    assert "2 attacks tried" in found.why
    assert judge(others, attack="llse").status == "holds"
    assert judge(others, coalition=[1]).status == "holds"


def test_what_was_given_in_clear_is_nobody_s_work_and_the_rest_is_judged():
    told = {"knowledge": "known-attributes(age)"}
    assert judge([record("age", 0.0, 0.0, **told), record("salary", 0.9, **told)]).status == "holds"
    assert judge([record("age", 0.0, 0.0, **told), record("salary", 0.1, **told)]).status == "fails"


def scenario(level, expect):
    values = np.random.default_rng(1).exponential(size=(400, 2)) * [1.0, 1000.0]
    return {
        "data": {"source": "inline", "values": {"x": values[:, 0].tolist(), "y": values[:, 1].tolist()}}, "attacks": ["ndr", "llse"],
        "schemes": [{"name": "corner-wave", "levels": [level, 2 * level]}], "coalitions": ["subsets"], "expect": [expect],
    }  # fmt: skip


def test_theory_refutes_it_in_a_real_audit_and_bears_it_out():
    """Llse leaves level/(1 + level) of every attribute."""
    bound = {"exposure": {"unknown": {"at-least": 0.5}}}
    for level, status in ((2.0, "holds"), (0.25, "fails")):
        assert auditor.run(scenario(level, bound)).expectations[0].status == status


@pytest.mark.parametrize(("unknown", "message"), [
    ({"atleast": 0.5}, "did you mean 'at-least'"), ({}, "needs a bound"), ({"at-least": -1}, "must be at least 0"),
    ({"at-least": 0.5, "at-most": 0.1}, "lower bound above"), (0.5, "must be a mapping"),
])  # fmt: skip
def test_bounds_that_are_none_are_refused(unknown, message):
    with pytest.raises(ScenarioError, match=message):
        auditor.run(scenario(1.0, {"exposure": {"unknown": unknown}}))


def test_a_k_anonymous_copy_is_not_called_safe_where_its_classes_agree():
    given = {"known-attributes": ["clump_thickness", "cell_size_uniformity"]}
    run = auditor.run({
        "data": {"source": "wisconsin", "missing": "drop", "columns": ["clump_thickness", "cell_size_uniformity", "mitoses"]},
        "schemes": [{"name": "k-anonymity", "quasi": ["clump_thickness", "cell_size_uniformity"], "sensitive": "mitoses", "levels": [5]}],
        "knowledge": [given], "attacks": ["linkage", {"name": "homogeneity", "confidence": 0.9}],
        "expect": [{"exposure": {"unknown": {"at-least": 0.75}, "attack": "linkage"}}, {"exposure": {"unknown": {"at-least": 0.75}}}],
    })  # fmt: skip
    assert [each.status for each in run.expectations] == ["holds", "fails"]


@pytest.mark.parametrize(("level", "status"), [(0.2, "holds"), (0.95, "fails")])
def test_one_column_of_categories_is_judged_by_the_error_that_it_has(level, status):
    run = auditor.run({
        "data": {"source": "salary-like", "rows": 2_000}, "schemes": [{"name": "uniform", "levels": [level]}], "attacks": ["posterior"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip
    assert run.expectations[0].status == status
