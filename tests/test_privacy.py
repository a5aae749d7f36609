import json
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from plugin_packages import BROKEN_ATTACKS, BROKEN_SCHEMES, install

import auditor
from auditor.base import AuditorError
from tests.programs import environment, python

NUMBER = 123456.789
TEXT = "Gandalf the Grey"
CANARIES = ("123456.789", "123456", "123,456", "1.2345", "Gandalf", "gandalf")
"""As a number, rounded, grouped, in exponent form, and as text."""


def people(rows=200):
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"age": rng.normal(50, 12, rows), "pay": rng.normal(60_000, 9_000, rows)})
    table.loc[17, "pay"] = NUMBER
    return table


def scenario(folder, **fields):
    document = {
        "title": "Canary", "data": "people.csv",
        "schemes": [{"name": "corner-wave", "levels": [0.25, 1.0]}], "attacks": ["ndr", "llse"],
        "coalitions": ["subsets"], "measures": ["within", "error-distribution"],
        "expect": ["matches-theory", "no-collusion-gain"],
    } | fields  # fmt: skip
    people().to_csv(folder / "people.csv", index=False)
    (folder / "canary.yaml").write_text(json.dumps(document))


def shell(folder, *arguments):
    variables = environment(folder / "site")
    variables.pop("AUDITOR_DEBUG", None)
    done = python("-m", "auditor", *arguments, cwd=folder, env=variables)
    return done.returncode, done.stdout + done.stderr


def assert_no_canary(text):
    found = [canary for canary in CANARIES if canary in text]
    assert not found, [
        text[max(0, text.index(canary) - 80) : text.index(canary) + 40] for canary in found
    ]


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        yield from (number for item in value for number in numbers(item))
    elif isinstance(value, float):
        yield value
    elif isinstance(value, str):
        assert_no_canary(value)


def assert_no_original(folder, originals):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"results.json", "results.parquet", "report.html"}
    known = np.sort(np.asarray(originals, dtype=float).ravel())
    for path in files:
        if path.suffix != ".html":
            assert_no_canary(path.read_bytes().decode("latin-1"))
        else:
            assert not any(
                canary in path.read_text(encoding="utf-8")
                for canary in ("123456.789", "123,456", TEXT)
            )
        rows = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else []
        values = np.fromiter(
            numbers(json.loads(path.read_text()) if path.suffix == ".json" else rows), dtype=float
        )
        place = np.searchsorted(known, values)
        for near in (known[place.clip(max=known.size - 1)], known[(place - 1).clip(min=0)]):
            assert not np.isclose(values, near, rtol=1e-9, atol=0).any(), (
                f"{path.name} holds an original value"
            )


def test_a_run_that_works_gives_no_value_away(here, command):
    scenario(here)
    for form in ("table", "markdown", "json", "csv", "junit"):
        _, out, err = command("run", "canary.yaml", "--format", form)
        assert_no_canary(out + err)
    assert_no_original(here / "audit", people())


@pytest.mark.slow
def test_attacks_and_schemes_that_break_give_no_value_away_and_the_others_are_reported(tmp_path):
    install(tmp_path / "site", "broken", attacks=BROKEN_ATTACKS, schemes=BROKEN_SCHEMES)
    broken = [*"raises not-a-number wrong-shape row-raises row-nan row-shape row-fit".split()]
    schemes = ["corner-wave", "scheme-law", "scheme-raises", "scheme-nan"]
    scenario(
        tmp_path,
        attacks=["ndr", *broken, "raises-on-pairs", "row-fine"],
        schemes=[{"name": name, "levels": [0.25, 1.0, 0.5]} for name in schemes],
    )
    status, printed = shell(tmp_path, "run", "canary.yaml", "--workers", "2")
    assert status == 3, printed
    assert_no_canary(printed)
    assert_no_original(tmp_path / "audit", people())
    table = auditor.AuditResult.load(tmp_path / "audit/canary").frame()
    cells = table.groupby(["scheme", "attack", table.coalition.map(len)]).status.agg(
        lambda s: ", ".join(sorted(set(s)))
    )
    sound = cells["corner-wave"]
    assert set(sound[["ndr", "row-fine"]]) == {"ok"}
    assert set(sound[broken]) == {"failed"}
    assert sound["raises-on-pairs"].to_dict() == {1: "ok", 2: "failed", 3: "ok"}
    assert set(cells[schemes[1:]]) == {"failed"}
    assert set(table.groupby(["scheme", "attack"]).coalition.nunique()) == {7}
    reasons = table[table.status == "failed"].reason
    assert reasons.str.contains("withheld|not finite|of shape").all()
    assert "ValueError at attacks.py:" in " ".join(reasons)


@pytest.mark.parametrize(("content", "reported"), [
    (f"age,pay\n1,{NUMBER}\n2,{TEXT}\n3,4\n", "column 'pay' holds text, not numbers"),
    (f"age,pay\n1,{NUMBER}\n2,3,{NUMBER}\n", "line 3 has 3 cells under 2 column names"),
    (f"age,pay\n{TEXT},{NUMBER},{NUMBER}\n", "data row 1 has 3 cells under 2 column names"),
    (f"age,pay\n1,{NUMBER}\n2,inf\n", "column 'pay' has 1 infinite value"),
    (f"age,pay\n1,{NUMBER}\n2,\n", "column 'pay' has 1 missing value"),
    (f"age,pay\n1,{NUMBER}\n2,{NUMBER}\n", "column 'pay' is constant"),
    (f'age,pay\n1,{NUMBER}\n"{TEXT},2\n', "cannot be read as CSV"),
    (f"age,pay\n1,{NUMBER}\n", "the table has 1 record"),
    (f"{NUMBER},{NUMBER}5\n1,2\n3,4\n", "the first line holds numbers where the column names should be"),
    (f"age;pay,x\n1;{NUMBER},2\n", "separated by commas or semicolons"),
])  # fmt: skip
def test_a_table_that_cannot_be_read_is_told_without_its_values(here, command, content, reported):
    scenario(here)
    (here / "people.csv").write_text(content)
    for arguments in (
        ["run", "canary.yaml"],
        ["check", "canary.yaml"],
        ["perturb", "people.csv", "--scheme", "corner-wave", "--levels", "1", "--output", "x"],
    ):
        status, out, err = command(*arguments)
        assert status == 2
        assert reported in out + err
        assert_no_canary(out + err)
    assert not (here / "audit").exists()
    with pytest.raises(AuditorError) as caught:
        auditor.run(here / "canary.yaml")
    assert_no_canary(str(caught.value))
    assert caught.value.__cause__ is None


def test_a_bug_keeps_its_traceback_and_not_its_text(here, command, monkeypatch):
    from auditor.runs import run_scenario as engine

    def broken(*_, **__):
        raise RuntimeError(f"{NUMBER} {TEXT}")

    scenario(here)
    monkeypatch.setattr(engine, "run_scenario", broken)
    monkeypatch.delenv("AUDITOR_DEBUG", raising=False)
    status, out, err = command("run", "canary.yaml")
    assert status == 3
    assert "Traceback" in err
    assert "RuntimeError: message withheld" in err
    assert_no_canary(out + err)
    monkeypatch.setenv("AUDITOR_DEBUG", "1")
    assert TEXT in command("run", "canary.yaml")[2]


def test_what_python_prints_of_our_objects_holds_no_values():
    table = people()
    release = auditor.perturb(table, "corner-wave", [0.5], seed=1)
    estimate = auditor.attack("llse", release)
    first = str(table["age"].iloc[0])[:7]
    for shown in (repr(release), repr(estimate), repr(release.law), repr(release.extend([0.7]))):
        assert_no_canary(shown)
        assert first not in shown


@pytest.mark.parametrize("broken", [
    [[1.0, NUMBER], [2.0, math.inf]], [[1.0, NUMBER], [2.0, math.nan]], [[1.0, NUMBER]],
    [[1.0, TEXT]],
])  # fmt: skip
def test_python_s_errors_hold_no_values(broken):
    with pytest.raises(AuditorError) as caught:
        auditor.perturb(broken, "corner-wave", [1.0])
    assert_no_canary(str(caught.value))
