"""A scenario made for a table."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

from auditor.base import DataError
from auditor.data.columns import checks
from auditor.data.describe import describe_frames
from auditor.scenario.draft import beside, draft, select, template, template_names, text
from auditor.scenario.json_schema import scenario_schema
from auditor.scenario.read import read_scenario

DEPARTMENTS = ["Sales", "Research", "Legal", "Operations", "Finance", "Support"]


def staff(rows=5_000):
    rng = np.random.default_rng(17)
    age = rng.integers(20, 66, rows)
    hired = pd.to_datetime("2024-01-01") - pd.to_timedelta(
        rng.integers(0, 365 * (age - 18)), unit="D"
    )
    salary = pd.Series(np.round(np.exp(rng.normal(10.6, 0.35, rows) + 0.01 * (age - 40)), 2)).where(
        rng.random(rows) > 0.08
    )
    names = [
        "".join(letters).title()
        for letters in rng.choice(list("abcdefghijklmnoprstuvwy"), (rows, 12))
    ]
    return pd.DataFrame({
        "employee_id": np.arange(10_001, 10_001 + rows), "name": names, "hired": hired.strftime("%Y-%m-%d"), "salary": salary, "age": age,
        "department": rng.choice(DEPARTMENTS, rows, p=[0.3, 0.2, 0.1, 0.2, 0.1, 0.1]),
    })  # fmt: skip


def cells(frame):
    return {cell for name in frame for cell in frame[name].dropna().astype(str) if len(cell) > 2}


def told(frame, messages):
    return cells(frame) & set(re.findall(r"[\w.-]*\w", messages))


@pytest.fixture
def auditor(command):
    return command


def test_a_column_of_lists_is_left_out(here, auditor):
    staff(300).assign(lists=[[1, 2]] * 300).to_parquet("staff.parquet")
    status, _, err = auditor("new", "audit.yaml", "--data", "staff.parquet")
    assert (status, err) == (0, "")
    assert "lists" not in yaml.safe_load(Path("audit.yaml").read_text())["data"]["columns"]


def test_a_scenario_for_a_staff_file_audits_what_can_be_and_says_why_the_rest_is_not(here, auditor):
    staff(1_500).to_csv("staff.csv", index=False)
    status, out, err = auditor("new", "audit.yaml", "--data", "staff.csv")
    made = Path("audit.yaml").read_text(encoding="utf-8")
    assert (status, err) == (0, "")
    assert "auditor run audit.yaml" in out
    assert told(staff(1_500), made + out) == set()
    scenario = read_scenario("audit.yaml")
    assert scenario.data.columns == ["salary", "age"]
    assert scenario.data.dates == {"hired": None}
    assert scenario.data.categorical == {"department": None}
    assert scenario.data.missing == "drop"
    assert [
        use.id for use in scenario.schemes
    ] == "correlated corner-wave uniform-multilevel".split()
    assert "'employee_id' goes up or down evenly" in made
    assert "'name' is text that is different in every record" in made
    assert re.search(r"- salary +# in steps of 0\.01, \d% blank\n", made)


@pytest.mark.slow
def test_it_runs_without_an_edit(here, auditor):
    staff(1_000).to_csv("staff.csv", index=False)
    assert auditor("new", "audit.yaml", "--data", "staff.csv")[0] == 0
    jsonschema.validate(
        yaml.safe_load(Path("audit.yaml").read_text(encoding="utf-8")), scenario_schema()
    )
    status, out, err = auditor("check", "audit.yaml")
    assert status == 0
    assert told(staff(1_000), out + err) == set()
    status, out, err = auditor("run", "audit.yaml")
    assert status == 0
    assert "4 of 4 hold" in out
    results = json.loads(Path("audit/audit/results.json").read_text(encoding="utf-8"))
    names = {record["attribute"] for record in results["measurements"]}
    assert names == {"salary", "age", "hired", "*"}
    assert told(staff(1_000), out + err) == set()


def chosen(**columns):
    return select(describe_frames([pd.DataFrame(columns)]))


def test_nothing_to_audit_is_told_in_one_line_without_a_value():
    with pytest.raises(DataError) as refused:
        chosen(name=[f"Alice{place}" for place in range(50)], city=["Rome"] * 50)
    assert str(refused.value) == (
        "no column holds numbers, dates or categories that an audit could use: 'name' is text that is different in every record; "
        "'city' is the same in every record"
    )


NAMES = [
    "a: b", "no", "1e3", "- x", 'q"t', "{a}", "a\nb", "null", "é\u202ex", "😀", "\x85", "", "a\\x",
    "*",
]  # fmt: skip


def test_any_name_is_written_so_that_it_is_read_back():
    for name in NAMES:
        from auditor.scenario.yaml_document import load

        assert load(f"a: [{text(name)}]\nb: {text(name)}\n{text(name)}: 1\n").value == {
            "a": [name], "b": name, name: 1,
        }  # fmt: skip
        assert text(name).isprintable()


def test_names_in_comments_cannot_leave_them():
    frame = pd.DataFrame({
        "x": np.random.default_rng(0).normal(size=50), "y\nseed: 7": "same",
        "z": np.arange(50.0) ** 2,
    })  # fmt: skip
    assert yaml.safe_load(draft("t.csv", describe_frames([frame])))["seed"] == 1


@pytest.mark.parametrize(("name", "content", "why"), [
    ("t.csv", "", "the file is empty"), ("t.csv", "a,b\n37.25,HIV\n", "at least 2 records"),
    ("t.csv", "name\n" + "".join(f"Alice{place}\n" for place in range(60)), "no column holds numbers"),
    ("t.parquet", "Alice,HIV\n", "cannot be read as Parquet"),
])  # fmt: skip
def test_unreadable_data_are_reported_in_one_line(here, auditor, monkeypatch, name, content, why):
    monkeypatch.setattr(checks, "MOST_COLUMNS", 98)  # in place of 5,000
    Path(name).write_text(content)
    status, out, err = auditor("new", "a.yaml", "--data", name)
    assert (status, out) == (2, "")
    assert why in err
    assert len(err.splitlines()) == 1
    assert "Alice" not in err
    assert "HIV" not in err
    assert not Path("a.yaml").exists()


@pytest.mark.parametrize("name", template_names())
def test_a_template_is_commented_and_valid(here, auditor, name):
    assert auditor("new", "a.yaml", "--template", name)[0] == 0
    assert Path("a.yaml").read_bytes() == template(name)
    assert template(name).count(b"#") > 3
    assert read_scenario("a.yaml").expect


@pytest.mark.slow
# the others are shorter than scenarios that are shipped
@pytest.mark.parametrize("name", ["levels", "published"])
def test_a_template_runs_as_it_stands(here, auditor, name):
    assert auditor("new", "a.yaml", "--template", name)[0] == 0
    assert auditor("run", "a.yaml", "--quiet")[0] == (1 if name == "published" else 0)


def test_a_template_leaves_files_alone_and_unknown_names_have_a_nearest(here, auditor):
    assert "did you mean 'k-anonymity'" in auditor("new", "a.yaml", "--template", "kanonymity")[2]
    assert (
        "give one of them" in auditor("new", "a.yaml", "--template", "uniform", "--data", "iris")[2]
    )
    assert auditor("new", "a.yaml", "--template", "published")[0] == 0
    assert {str(path) for path in Path().rglob("*.csv")} == set(beside("published"))
    told = auditor("new", "b.yaml", "--template", "published")[2]
    assert "are there already" in told
    assert all(path in told for path in beside("published"))
    assert auditor("new", "b.yaml", "--template", "published", "--force")[0] == 0


@pytest.mark.parametrize(
    "options",
    [(), ("--force",), ("--data", "iris", "--force"), ("--template", "uniform", "--force")],
)
@pytest.mark.parametrize("name", ["staff.csv"])
def test_a_table_is_never_overwritten_by_a_scenario(here, auditor, name, options):
    Path(name).write_text("age;pay\n31;1200\n")
    status, _, error = auditor("new", name, *options)
    assert status == 2
    assert name in error
    assert "auditor new audit.yaml" in error
    assert "1200" not in error
    assert Path(name).read_text() == "age;pay\n31;1200\n"


def test_a_scenario_for_an_original_and_its_copies_runs(here, command):
    rng = np.random.default_rng(2**40 + 77)
    table = pd.DataFrame({
        "id": rng.permutation(400), "pay": rng.lognormal(7, 0.4, 400).round(2),
        "age": rng.normal(40, 9, 400).round(2), "region": rng.choice(list("abcd"), 400),
        "member": rng.integers(2, size=400),
    })  # fmt: skip
    table.to_csv("staff.csv", index=False)
    for number in (1, 2):
        names = ["pay", "age", "member"]
        noise = rng.normal(size=(400, 3)) * 2 * table[names].std().to_numpy()
        copy = table.assign(
            **{name: table[name] + Z for name, Z in zip(names, noise.T, strict=True)}
        )
        copy.drop(columns=["age"] if number == 2 else []).to_csv(f"copy-{number}.csv", index=False)
    order = ("new", "audit.yaml", "--data", "staff.csv", "--copies", "copy-1.csv", "copy-2.csv")
    assert command(*order)[0] == 0
    text = Path("audit.yaml").read_text(encoding="utf-8")
    assert "copies:\n      - copy-1.csv\n      - copy-2.csv" in text
    assert "key: id" in text
    assert "'age' is not in every copy" in text
    assert "'region' is in a copy as it is" in text
    assert "- member                     # whole numbers" in text  # 0 and 1, but not in the copies
    assert command("check", "audit.yaml")[0] == 0
    for wrong in (order[:2] + order[4:], ("new", "a.yaml", "b.yaml", *order[2:])):
        status, _, err = command(*wrong)
        assert status == 2
        assert err.startswith("error: ")
