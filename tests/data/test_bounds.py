import json

import jsonschema
import pandas as pd
import pytest

from auditor.base.errors import ScenarioError
from auditor.runs.check import check_data, table_of
from auditor.scenario.json_schema import scenario_schema
from auditor.scenario.read import read_scenario, rebuild

BASE = {"schemes": [{"name": "corner-wave", "levels": [0.5]}], "attacks": ["llse"]}


@pytest.fixture
def ages(tmp_path):
    pd.DataFrame({"age": [20.0, 31.0, 99.0, 40.0], "income": [1.5, 2.5, 7.25, -3.0]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    return tmp_path / "t.csv"


def asked(source, bounds, **data):
    return {**BASE, "data": {"source": str(source), "bounds": bounds, **data}}


def the_problem(document):
    with pytest.raises(ScenarioError) as caught:
        check_data(read_scenario(document))
    assert len(caught.value.problems) == 1, caught.value
    return str(caught.value)


def test_bounds_become_spans_and_are_read_again_as_they_were_written(ages):
    bounds = {"age": [0, 120], "income": [-5, 10.5]}
    scenario = read_scenario(asked(ages, bounds))
    jsonschema.validate(asked(ages, bounds), scenario_schema())
    _, moments = table_of(scenario)
    assert moments.spans.tolist() == [120.0, 15.5]
    assert (
        rebuild(json.loads(json.dumps(scenario.spec())), None, "x").data.bounds
        == scenario.data.bounds
    )


@pytest.mark.parametrize(("bounds", "told"), [
    ([0, 1], "data.bounds must map columns to [low, high]"),
    ({"age": [5, 5]}, "data.bounds.age needs low < high"),
    ({"age": [9, 1]}, "data.bounds.age needs low < high"),
    ({"age": [0, float("nan")]}, "two finite numbers"),
    ({"age": [0, float("inf")]}, "two finite numbers"),
    ({"age": [0, 1e200]}, "at most 1e+35 apart"),
    ({"age": [0, 10**400]}, "two finite numbers"),
    ({"age": [False, True]}, "two finite numbers"),
    ({"age": 120}, "two finite numbers"),
])  # fmt: skip
def test_bounds_that_are_none_are_told_where_they_stand(ages, bounds, told):
    assert told in the_problem(asked(ages, bounds))


def test_an_unknown_column_is_told_with_the_nearest_name(ages):
    told = "data.bounds.agee cannot be used: there is no audited column of numbers 'agee'; did you mean 'age'?"
    assert told in the_problem(asked(ages, {"agee": [0, 120], "income": [-5, 10]}))
    assert "names a column that is not audited; did you mean 'age'?" in the_problem(
        asked(ages, {"agee": [0, 9]}, columns=["age"])
    )


def test_every_column_needs_them_as_a_guarantee_is_of_whole_records(ages):
    assert "must name every column of numbers" in the_problem(asked(ages, {"age": [0, 120]}))


def test_records_outside_are_counted_and_no_value_is_told(ages):
    told = the_problem(asked(ages, {"age": [0, 35], "income": [0, 5]}))
    assert "column 'age' has 2 records outside the stated bounds, and so do 'income'" in told
    assert not any(value in told for value in ("99", "40", "7.25", "-3"))
    for one_sided in ({"age": [0, 35], "income": [-5, 9]}, {"age": [30, 99], "income": [-5, 9]}):
        assert "outside the stated bounds" in the_problem(asked(ages, one_sided))
