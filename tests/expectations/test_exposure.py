"""The expectation that enough stays unknown, in the worst attribute, to the strongest adversary measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.errors import ScenarioError
from auditor.results.evidence import Evidence
from auditor.results.records import Measurement


def record(attribute: str, value: float, error: float | None = 0.01, **changes: Any) -> Measurement:
    fields: dict[str, Any] = dict(
        sweep={}, scheme="s", knowledge="perfect", attack="llse", coalition=(1,), levels=(1.0,), replicate=1, attribute=attribute,
        metric="normalized_error", value=value, std_error=error, ci_low=None, ci_high=None, theory=None, status="ok", reason=None,
        error_bar="closed-form" if error is not None else "replicates-needed",
    )  # fmt: skip
    return Measurement(**(fields | changes))


def judge(records: list[Measurement], **parameters: Any) -> Any:
    plugin = registry.get("expectation", "exposure")
    return plugin(
        plugin.Parameters.model_validate({"unknown": {"at-least": 0.5}} | parameters)
    ).judge(Evidence(records, []))


@pytest.mark.parametrize(("age", "error", "status"), [
    (0.7, 0.01, "holds"), (0.3, 0.01, "fails"), (0.52, 0.05, "undecided"), (0.7, None, "undecided"),
])  # fmt: skip
def test_the_worst_attribute_decides_and_not_their_mean(
    age: float, error: float | None, status: str
) -> None:
    found = judge([record("*", 0.9), record("salary", 0.95), record("age", age, error)])
    assert found.status == status
    assert (
        "1 without an error bar; of copies made here five replicates or more give one" in found.why
    ) == (error is None)


@pytest.mark.parametrize(
    ("usual", "status"), [(1.2, "holds"), (0.7, "holds"), (0.48, "undecided"), (0.3, "undecided")]
)
def test_an_attack_that_goes_astray_in_one_draw_of_ten_is_judged_by_the_others(
    usual: float, status: str
) -> None:
    """Of 0.3 nine times and 2,600 once it is not said that it fails: on average it errs by 260 times the variance."""
    values = [usual + 0.001 * k for k in range(9)] + [2600.0]
    error = float(np.std(values, ddof=1))
    drawn = [
        record("age", value, error, attack="svd-filter", replicate=k, error_bar="replicates")
        for k, value in enumerate(values, 1)
    ]
    assert judge(drawn).status == status
    assert judge(drawn, unknown={"at-most": 0.5}).status != "holds"


def test_it_looks_at_every_attack_and_coalition_and_names_the_one_that_knows_most() -> None:
    others = [
        record("age", 0.8),
        record("age", 0.8, coalition=(1, 2)),
        record("age", 0.2, attack="ica", coalition=(1, 2)),
    ]
    found = judge(others)
    assert (found.status, found.observed) == ("fails", 0.2)
    assert "ica, perfect, copies 1, 2, age" in found.why
    assert "2 attacks tried" in found.why
    assert judge(others, attack="llse").status == "holds"
    assert judge(others, coalition=[1]).status == "holds"


def test_what_was_given_in_clear_is_nobody_s_work_and_the_rest_is_judged() -> None:
    told = {"knowledge": "known-attributes(age)"}
    assert judge([record("age", 0.0, 0.0, **told), record("salary", 0.9, **told)]).status == "holds"
    assert judge([record("age", 0.0, 0.0, **told), record("salary", 0.1, **told)]).status == "fails"


@pytest.mark.parametrize(
    "records", [[], [record("age", 0.9, status="failed")], [record("age", 0.9, attack=None)]]
)
def test_nothing_measured_is_undecided(records: list[Measurement]) -> None:
    assert judge(records).status == "undecided"


def test_all_together_are_judged_only_where_none_is_told_apart() -> None:
    assert judge([record("*", 0.1)]).status == "fails"
    assert judge([record("*", 0.1), record("age", 0.9)]).status == "holds"
    assert judge([record("*", 0.1, attack="posterior"), record("age", 0.9)]).status == "fails"


def scenario(level: float, expect: Any) -> dict[str, Any]:
    values = np.random.default_rng(1).exponential(size=(400, 2)) * [1.0, 1000.0]
    return {
        "data": {"source": "inline", "values": {"x": values[:, 0].tolist(), "y": values[:, 1].tolist()}}, "attacks": ["ndr", "llse"],
        "schemes": [{"name": "corner-wave", "levels": [level, 2 * level]}], "coalitions": ["subsets"], "expect": [expect],
    }  # fmt: skip


def test_theory_refutes_it_in_a_real_audit_and_bears_it_out() -> None:
    """llse leaves level/(1 + level) of every attribute: 0.667 at 2, 0.2 at a quarter."""
    bound = {"exposure": {"unknown": {"at-least": 0.5}}}
    assert [
        auditor.run(scenario(level, bound)).expectations[0].status for level in (2.0, 0.25)
    ] == ["holds", "fails"]


@pytest.mark.parametrize(("unknown", "message"), [
    ({"atleast": 0.5}, "did you mean 'at-least'"), ({}, "needs a bound"), ({"at-least": -1}, "must be at least 0"),
    ({"at-least": 0.5, "at-most": 0.1}, "lower bound above"), (0.5, "must be a mapping"),
])  # fmt: skip
def test_bounds_that_are_none_are_refused(unknown: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        auditor.run(scenario(1.0, {"exposure": {"unknown": unknown}}))


@pytest.mark.parametrize(("share", "status"), [(0.2, "holds"), (0.5, "undecided"), (0.8, "fails")])
def test_sensitive_values_that_classes_give_away_are_not_unknown(share: float, status: str) -> None:
    """An attack that names the class's commonest value errs more in squares than who guesses the mean, and is right for most records."""
    records = [
        record("disease", 1.1),
        record("disease", share, metric="disclosed_beyond_chance", attack="homogeneity"),
    ]
    assert judge(records, unknown={"at-least": 0.5}).status == status


def test_a_k_anonymous_copy_is_not_called_safe_where_its_classes_agree() -> None:
    """Of 61 % of the records a claim is right, which is 31 % of the doubt; a squared error says that 111 % are left."""
    given = {"known-attributes": ["clump_thickness", "cell_size_uniformity"]}
    run = auditor.run({
        "data": {"source": "wisconsin", "missing": "drop", "columns": ["clump_thickness", "cell_size_uniformity", "mitoses"]},
        "schemes": [{"name": "k-anonymity", "quasi": ["clump_thickness", "cell_size_uniformity"], "sensitive": "mitoses", "levels": [5]}],
        "knowledge": [given], "attacks": ["linkage", {"name": "homogeneity", "confidence": 0.9}],
        "expect": [{"exposure": {"unknown": {"at-least": 0.75}, "attack": "linkage"}}, {"exposure": {"unknown": {"at-least": 0.75}}}],
    })  # fmt: skip
    assert [each.status for each in run.expectations] == ["holds", "fails"]


@pytest.mark.parametrize(
    ("rare", "alike", "status"),
    [(0.03, True, "holds"), (0.5, True, "fails"), (0.5, False, "holds")],
)
def test_a_class_of_the_value_that_nearly_everybody_has_gives_little_away(
    rare: float, alike: bool, status: str
) -> None:
    """Where 3 % have it, most classes of five are without it by chance, and are claimed rightly: naming nobody is right of 97 %."""
    rng = np.random.default_rng(5)
    sorted_by = np.sort(rng.uniform(0, 100, 1_000))
    ill = rng.random(1_000) < rare
    ill = np.sort(ill) if alike and rare == 0.5 else ill
    run = auditor.run({
        "data": {"source": "inline", "values": {"age": sorted_by.tolist(), "ill": ill.astype(float).tolist()}},
        "schemes": [{"name": "k-anonymity", "quasi": ["age"], "sensitive": "ill", "levels": [5]}],
        "knowledge": [{"known-attributes": ["age"]}], "attacks": ["homogeneity"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}, "attribute": "ill"}}],
    })  # fmt: skip
    values = {
        record.metric: record.value for record in run.measurements if record.attribute == "ill"
    }
    assert values["disclosed"] > 0.8 or not alike
    assert run.expectations[0].status == status


@pytest.mark.parametrize(("level", "status"), [(0.2, "holds"), (0.95, "fails")])
def test_one_column_of_categories_is_judged_by_the_error_that_it_has(
    level: float, status: str
) -> None:
    """It has none apart from that of all attributes, and was undecided even where it was rebuilt wholly."""
    run = auditor.run({
        "data": {"source": "salary-like", "rows": 2_000}, "schemes": [{"name": "uniform", "levels": [level]}], "attacks": ["posterior"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip
    assert run.expectations[0].status == status


def test_an_adversary_who_was_given_columns_of_categories_is_judged_beside_those_who_were_not() -> (
    None
):
    """Each column alone leaves more than 0.7 to who knows none; whoever knows two is left 0.4 of the third."""
    given = {"rules": {"margins": ["age", ["salary", "state_tax"]], "known": ["age", "salary"]}}
    run = auditor.run({
        "data": {"source": "cps", "columns": ["age", "salary", "state_tax"], "rows": 4_000,
                 "bin": {"age": {"quantile": 4}, "salary": {"quantile": 5}, "state_tax": {"quantile": 5}}},
        "schemes": [{"name": "uniform", "levels": [0.5]}], "knowledge": ["perfect", given], "attacks": ["posterior"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}, "knowledge": "perfect"}}, {"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip
    assert [each.status for each in run.expectations] == ["holds", "fails"]
