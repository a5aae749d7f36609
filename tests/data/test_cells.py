"""Cells: bounds, resolution, formulas and value sets."""

import json
from datetime import date
from fractions import Fraction

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from auditor.base import DataError, ScenarioError
from auditor.data.columns.checks import days_of, in_days
from auditor.data.columns.scan import resolution
from auditor.data.copies import read_copy
from auditor.data.formats.parts import header
from auditor.runs.check import check_data
from auditor.runs.tables import table_of
from auditor.scenario.json_schema import scenario_schema
from auditor.scenario.read import read_scenario
from tests.loading import load_table

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
        read_scenario(json.loads(json.dumps(scenario.spec()))).data.bounds == scenario.data.bounds
    )


@pytest.mark.parametrize(("bounds", "told"), [
    ([0, 1], "data.bounds must be a mapping; got [0, 1]"),
    ({"age": [5, 5]}, "data.bounds.age needs low < high"),
    ({"age": [9, 1]}, "data.bounds.age needs low < high"),
    ({"age": [0, float("nan")]}, "data.bounds.age[1] must be a finite number"),
    ({"age": [0, float("inf")]}, "data.bounds.age[1] must be a finite number"),
    ({"age": [0, 1e200]}, "at most 1e+35 apart"),
    ({"age": [0, 10**400]}, "data.bounds.age[1] must be a number"),
    ({"age": [0, True]}, "data.bounds.age[1] must be a number"),
    ({"age": 120}, "data.bounds.age must be [low, high]; got 120"),
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


RNG = np.random.default_rng(8)


def of(*columns, block=1000):
    x = np.column_stack(columns).astype(float)
    return resolution(
        lambda: (x[start : start + block] for start in range(0, len(x), block)), *x.shape
    )


@pytest.mark.parametrize(("values", "step"), [([18, 25, 61], 1.0), ([19.99, 5, 0.01], 0.01), ([-20, 15, 0], 5.0), ([1e11, 1e11 + 3, 4], 1.0)])  # fmt: skip
def test_steps_by_hand(values, step):
    assert of(values).steps[0] == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("values", [RNG.normal(size=9), [0, 0, 0], [1 / 3, 1, 2]])
def test_a_column_without_a_step_has_none(values):
    found = of(values)
    assert np.isnan(found.steps[0])
    assert np.isnan(found.commonest[0])


@given(
    units=st.lists(st.integers(-500, 500), min_size=2, max_size=30).filter(any),
    places=st.integers(0, 4),
    block=st.integers(1, 9),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_it_is_the_greatest_common_divisor_in_any_blocks(units, places, block):
    step = Fraction(
        of([unit / 10**places for unit in units], block=block).steps[0]
    ).limit_denominator(10**4)
    exact = [Fraction(unit, 10**places) / step for unit in units]
    assert all(one.denominator == 1 for one in exact)
    assert np.gcd.reduce([one.numerator for one in exact]) == 1


NAMES = ["=1+1", "@sum", "+pay", "-tax", " =x", "age"]


@pytest.fixture
def people(here):
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(40, len(NAMES))), columns=NAMES)
    table.to_csv("people.csv", index=False)
    return here


def test_copies_have_no_formula_in_column_names_and_are_audited_by_the_table_s(people, command):
    assert (
        command(
            "perturb", "people.csv", "--scheme", "corner-wave", "--levels", "0.5", "--output", "out"
        )[0]
        == 0
    )
    copy = people / "out" / "copy-1.csv"
    assert not any(
        name.lstrip().startswith(("=", "+", "-", "@"))
        for name in copy.read_text().splitlines()[0].split(",")
    )
    assert header(copy) == NAMES
    status, out, err = command(
        "attack", "ndr", str(copy), "--original", "people.csv", "--output", "estimate.csv"
    )
    assert status == 0, out + err
    assert (people / "estimate.csv").read_text().startswith("'=1+1,'@sum,'+pay,'-tax,' =x,age\n")


DAYS = pd.to_datetime(["2003-12-31", "1969-12-31", "2024-02-29", "9999-12-30"])
BY_HAND = [
    (date.fromisoformat(day) - date(1970, 1, 1)).days
    for day in ("2003-12-31", "1969-12-31", "2024-02-29", "9999-12-30")
]


def loaded(path, **options):
    from auditor.data.columns.categorical_table import Categories

    categories = Categories({}, options.pop("categorical", {}))
    return load_table(str(path), rng=np.random.default_rng(0), categories=categories, **options)


@pytest.mark.parametrize("form", [None, "%d.%m.%Y", "%d %b %Y"])
def test_days_are_counted_as_pythons_calendar_counts_them(form):
    assert days_of(pd.Series(DAYS.strftime(form or "%Y-%m-%d")), form).tolist() == BY_HAND
    assert days_of(pd.Series(DAYS), form).tolist() == BY_HAND
    assert days_of(pd.Series([day.date() for day in DAYS]), form).tolist() == BY_HAND


def test_a_time_of_day_is_a_fraction_and_an_offset_is_taken_off():
    assert days_of(pd.Series(["1970-01-02T06:00", "1970-01-02 06:00:00+06:00", None])).tolist()[
        :2
    ] == [1.25, 1.0]


@pytest.mark.parametrize("cell", ["now", "31.12.2003", ""])
def test_what_is_no_date_is_told_by_its_place_and_not_quoted(cell):
    frame = pd.DataFrame({"hired": ["2003-12-31", cell]})
    with pytest.raises(DataError) as refused:
        in_days(frame, {"hired": None})
    assert str(refused.value) == (
        "column 'hired' holds what is no date by ISO 8601 (year-month-day) (1 cell, in data row 2)"
    )
    assert refused.value.path == ("dates", "hired")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_has_dates_beside_its_numbers(tmp_path, kind):
    frame = pd.DataFrame({"x": [1.0, 2.0, 5.0, None], "day": DAYS, "name": list("abcd")})
    path = tmp_path / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    table = loaded(path, columns=["x"], dates={"day": None}, missing="drop")
    assert table.attributes == ("x", "day")
    assert table.values.tolist() == [[1.0, BY_HAND[0]], [2.0, BY_HAND[1]], [5.0, BY_HAND[2]]]
    # a copy may be written as the original is
    copy = read_copy(path, table.part(np.arange(3), np.arange(2)), None, False, "")
    assert copy.values[:, 1].tolist() == BY_HAND[:3]


def test_a_scenario_says_which_columns_are_dates_and_how_they_are_written():
    def data(**fields):
        document = {
            "data": {"source": "iris", **fields},
            "schemes": [{"name": "corner-wave", "levels": [1.0]}],
            "attacks": ["llse"],
        }
        return read_scenario(document).data

    assert data(dates=["a", "b"]).dates == {"a": None, "b": None}
    assert data(dates={"a": "%d/%m/%Y"}).spec()["dates"] == {"a": "%d/%m/%Y"}
    for wrong in (7, ["a", 1], {"a": "%d/%m"}, {"a": "%Q"}, {"a": 3}, {"a": "year"}):
        with pytest.raises(ScenarioError, match="dates"):
            data(dates=wrong)
    for beside in (
        {"categorical": ["a"]}, {"order": "a"}, {"hierarchies": {"a": {"b": [1, 2], "c": [3]}}},
    ):  # fmt: skip
        with pytest.raises(ScenarioError, match=r"dates|order"):
            data(dates=["a"], **beside)
