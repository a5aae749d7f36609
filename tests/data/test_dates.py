from datetime import date

import numpy as np
import pandas as pd
import pytest

from auditor.base.errors import DataError, ScenarioError
from auditor.data.columns.dates import days_of, in_days
from auditor.data.copies import read_copy
from auditor.scenario.read import read_scenario
from tests.loading import load_table

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
        {"categorical": ["a"]},
        {"order": "a"},
        {"hierarchies": {"a": {"b": [1, 2], "c": [3]}}},
    ):
        with pytest.raises(ScenarioError, match=r"dates|order"):
            data(dates=["a"], **beside)
