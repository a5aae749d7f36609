"""`benchmarks.same_results` finds the figure that differs between two results, and no other."""

from __future__ import annotations

import pytest

import auditor
from auditor.results.model import AuditResult
from benchmarks.same_results import compared

SCENARIO = {
    "schema": 1,
    "seed": 1,
    "data": {"source": "iris", "columns": ["sepal_length", "petal_length"]},
    "schemes": [{"name": "corner-wave", "levels": [0.5, 1.0]}],
    "attacks": ["llse"],
    "measures": ["error-distribution"],
    "expect": ["no-collusion-gain"],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> AuditResult:
    """A small audit, as it is read from its folder."""
    folder = tmp_path_factory.mktemp("results")
    auditor.run(SCENARIO).save(folder)
    return AuditResult.load(folder)


def changed(result: AuditResult, number: int, **values) -> AuditResult:
    records = list(result.measurements)
    records[number] = records[number]._replace(**values)
    return result.model_copy(update={"measurements": records})


def place(result: AuditResult, metric: str) -> int:
    return next(number for number, r in enumerate(result.measurements) if r.metric == metric and r.std_error)


def test_equal_results_are_the_same(saved):
    found = compared(saved, saved)
    assert found.same
    assert found.row() == f"{found.figures:,} | same |  |  |  |  | "


def test_rounding_is_no_difference_and_what_is_more_is_found_with_its_size_in_standard_errors(saved):
    number = place(saved, "normalized_error")
    record = saved.measurements[number]
    assert compared(saved, changed(saved, number, value=record.value * (1.0 + 1e-12))).same
    found = compared(saved, changed(saved, number, value=record.value + 3.0 * record.std_error))
    assert not found.same
    assert (found.differ, found.relative, found.new, found.gone) == (1, False, 0, 0)
    assert found.largest == pytest.approx(3.0)
    assert found.where == f"corner-wave, llse, {record.coalition}, normalized_error, {record.attribute}"


def test_another_error_bar_is_a_difference_where_the_value_is_not(saved):
    number = place(saved, "distortion")
    found = compared(saved, changed(saved, number, std_error=saved.measurements[number].std_error * 1.01))
    assert (found.differ, found.largest) == (1, 0.0)


def test_histograms_verdicts_and_records_that_are_new_or_gone_are_told(saved):
    number = place(saved, "normalized_error")
    assert compared(saved, changed(saved, number, attribute="age")).row().endswith("| 1 | 1 | ")
    bars = saved.distributions[0]
    other = saved.model_copy(update={"distributions": [bars._replace(above=bars.above + 0.1), *saved.distributions[1:]]})
    assert compared(saved, other).differ == 1
    failed = saved.expectations[0].model_copy(update={"status": "fails"})
    assert compared(saved, saved.model_copy(update={"expectations": [failed]})).verdicts == "no-collusion-gain: no longer undecided"


def test_seconds_are_left_out(saved):
    before, after = (changed(saved, 0, metric="seconds", value=value) for value in (1.0, 2.0))
    assert compared(before, after).same
