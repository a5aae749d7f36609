"""The command line as its users and their scripts meet it."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

from auditor import registry
from auditor.plugin import Renderer
from auditor.process.environment import shipped_scenarios
from tests.programs import PATIENCE, ROOT, environment, python

HOLDS = """\
title: Small and quick
seed: 1
data: {source: cps, columns: [age, salary], rows: 400}
schemes:
  - {name: correlated, levels: [0.25, 1.0]}
  - {name: corner-wave, levels: [0.25, 1.0]}
attacks: [ndr, llse]
expect:
  - collusion-gain: {scheme: correlated, attack: llse, at-least: 0.05}
  - matches-theory
"""
FAILS = HOLDS.replace("at-least: 0.05", "at-least: 0.9")


@pytest.fixture
def folder(here):
    Path("holds.yaml").write_text(HOLDS)
    Path("fails.yaml").write_text(FAILS)
    return here


@pytest.fixture
def auditor(command):
    return command


def shell(*arguments, folder):
    return python("-m", "auditor", *arguments, cwd=folder)


def test_a_run_from_the_shell_prints_the_report_writes_three_files_and_exits_0(folder):
    done = shell("run", "holds.yaml", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Small and quick" in done.stdout
    assert "2 of 2 hold" in done.stdout
    assert "2 of 2 done" in done.stderr
    assert sorted(path.name for path in (folder / "audit" / "holds").iterdir()) == [
        "finished-tasks", "report.html", "results.json", "results.parquet",
    ]  # fmt: skip
    made = json.loads((folder / "audit/holds/results.json").read_text())["provenance"]
    assert made["command"] == "auditor run holds.yaml"


def test_an_expectation_that_does_not_hold_exits_1(folder, auditor):
    changed = ("holds.yaml", "--set", "expect=[no-collusion-gain: {scheme: correlated}]")
    for arguments in (("fails.yaml",), changed):
        assert auditor("run", *arguments, "--quiet")[0] == 1
    assert (folder / "audit/fails/report.html").exists()


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("data.columns=[age, salry]", "there is no column 'salry'; did you mean 'salary'?"),
        ("knowledge=[{estimated: {rows: 401}}]", "needs 401 released rows"),
        ("coalitions=[[1, 3]]", "only 2 copies are released"),
        ("data.rows=many", "data.rows must be an integer; got 'many'"),
        ("attacks[7]=llse", "attacks has 2 items, numbered from 0; got [7]"),
        ("title=[", "not valid YAML"),
    ],
)
def test_a_request_that_cannot_be_met_exits_2_and_runs_nothing(folder, auditor, change, shown):
    status, out, err = auditor("run", "holds.yaml", "--set", change)
    assert (status, out) == (2, "")
    assert shown in err
    assert "Traceback" not in err
    assert not (folder / "audit").exists()


def test_every_wrong_command_exits_2(folder, auditor):
    wrong = "run|run nothere.yaml|run holds.yaml --workers 0|run holds.yaml --seed -1|run holds.yaml --nonsense"
    for arguments in f"{wrong}|nonsense|show nothing|report nothere|compare x|run .".split("|"):
        status, out, err = auditor(*arguments.split())
        assert (status, out) == (2, "")
        assert err
        assert "Traceback" not in err


def test_one_wrong_scenario_of_several_runs_none_and_every_mistake_is_told(folder, auditor):
    Path("wrong.yaml").write_text(HOLDS.replace("seed: 1", "sed: 1"))
    Path("greedy.yaml").write_text(HOLDS.replace("rows: 400", "rows: 400000"))
    status, _, err = auditor("run", "holds.yaml", "wrong.yaml", "nothere.yaml")
    assert status == 2
    assert "wrong.yaml:2:1: sed is not a known field; did you mean 'seed'?" in err
    assert "nothere.yaml: no such scenario file" in err
    status, _, err = auditor("run", "holds.yaml", "greedy.yaml")
    assert status == 2
    assert "greedy.yaml:3:51: data.rows cannot be used" in err
    assert not (folder / "audit").exists()


def test_a_folder_that_cannot_be_written_is_told_before_the_run(folder, auditor):
    status, out, err = auditor("run", "holds.yaml", "--output", "fails.yaml/sub")
    assert (status, out) == (2, "")
    assert "fails.yaml/sub/holds: cannot be written (Not a directory)" in err


def test_seed_and_set_change_the_scenario_and_are_kept_in_the_results(folder, auditor):
    auditor(
        *"run holds.yaml --quiet --seed 9 --set data.rows=300 --set".split(),
        "schemes[corner-wave].levels=[0.5, 2]",
    )
    results = json.loads(Path("audit/holds/results.json").read_text())
    assert results["scenario"]["seed"] == results["provenance"]["seed"] == 9
    assert results["scenario"]["data"]["rows"] == results["data"][0]["rows"] == 300
    assert results["scenario"]["schemes"][1]["levels"] == [0.5, 2.0]
    command = "auditor run holds.yaml --set data.rows=300 --set 'schemes[corner-wave].levels=[0.5, 2]' --seed 9"
    assert results["provenance"]["command"] == command


def test_junit_is_written_beside_the_report_and_short_options_are_the_long_ones(folder, auditor):
    status, out, err = auditor(
        "run", "holds.yaml", "fails.yaml", "-o", "out", "-j", 1, "-q", "--junit-xml", "found.xml"
    )
    assert (status, err) == (1, "")
    assert [line.split(": ")[1] for line in out.splitlines()] == "holds holds fails holds".split()
    suites = ElementTree.parse("found.xml").getroot()
    assert [suite.get("failures") + suite.get("tests") for suite in suites] == ["03", "13"]
    assert all(float(suite.find("testcase").get("time")) > 0 for suite in suites)
    assert auditor("report", "out/holds", "--format", "json", "-o", "again.json")[0] == 0
    assert auditor("-V")[1] == auditor("--version")[1] != ""


def test_a_renderer_of_a_plugin_is_a_format(folder, auditor, monkeypatch):
    one_line = type("OneLine", (Renderer,), {"render": lambda self, results: "One line\n"})
    monkeypatch.setitem(registry._plugins["renderer"], "one-line", one_line)
    assert auditor("run", "holds.yaml", "--format", "one-line")[:2] == (0, "One line\n")


@pytest.mark.parametrize("form", ["table", "json", "junit", "sarif"])
@pytest.mark.slow
def test_every_format_of_a_run_goes_to_standard_output_alone(folder, auditor, form):
    status, out, _ = auditor("run", "holds.yaml", "--format", form)
    assert status == 0
    assert auditor("report", "audit/holds", "--format", form)[:2] == (0, out)
    if form == "json":
        assert json.loads(out)["schema_version"] == 1
    elif form == "junit":
        assert len(ElementTree.fromstring(out).findall(".//testcase")) >= 2
    elif form == "sarif":
        assert json.loads(out)["runs"][0]["results"] == []
    else:
        assert "Small and quick" in out


def test_check_prints_the_plan_and_runs_nothing(folder, auditor):
    status, out, err = auditor("check", "holds.yaml", "fails.yaml")
    assert (status, err) == (0, "")
    assert "holds: Small and quick" in out
    assert "valid; 2 releases × 1 replicate, 12 cells, 2 expectations" in out
    assert "corner-wave: 400 rows × 2, 2 copies, 3 coalitions, 6 cells" in out
    assert not (folder / "audit").exists()


def test_list_gives_one_line_for_each(auditor):
    for what in ["attacks", "schemes", "sources", "expectations", "scenarios", "cases"]:
        status, out, _ = auditor("list", what)
        assert status == 0
        listed = [line.split()[0] for line in out.splitlines()]
        if what == "scenarios":
            assert listed == [path.stem for path in shipped_scenarios()]
        else:
            assert set(registry.names(what.removesuffix("s"))) - {"metric"} <= set(listed)
        assert all(len(line.split(maxsplit=1)) == 2 for line in out.splitlines())
        assert what in auditor("list")[1]


def test_show_explains_every_plugin(auditor):
    for kind in ["attack", "scheme", "source", "expectation", "case"]:
        for name in registry.names(kind):
            status, out, err = auditor("show", name)
            assert (status, err) == (0, "")
            cls = registry.get(kind, name)
            assert f"{name}: {kind}" in out
            assert cls.summary() in out
            for field, info in cls.Parameters.model_fields.items():
                assert (info.alias or field) in out


@pytest.mark.slow
def test_the_schema_takes_every_shipped_scenario_and_refuses_broken_ones(auditor):
    schema = json.loads(auditor("schema")[1])
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    templates = sorted((ROOT / "auditor/scenario").rglob("*.yaml"))
    for path in [*shipped_scenarios(), *templates]:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert list(check.iter_errors(document)) == []
        assert not check.is_valid({key: value for key, value in document.items() if key != "data"})
    for broken in (
        {"attaks": ["llse"]}, {"data": {"source": "cps", "colums": ["age"]}}, {"schemes": [{"name": "corner-wav", "levels": [1]}]},
        {"schemes": [{"name": "corner-wave", "levels": [-1]}]}, {"schemes": [{"name": "corner-wave", "levels": [1], "algorithm": "x"}]},
        {"attacks": []}, {"attacks": ["lsse"]}, {"knowledge": ["perfekt"]}, {"knowledge": [{"estimated": {"rows": 1}}]},
        {"coalitions": ["single"]}, {"seed": -1}, {"replicates": 0}, {"expect": [{"no-such": {}}]}, {"schema": 2},
        {"expect": [{"distortion": {"atleast": 1}}]}, {"data": {"source": "cps", "rows": 1}}, {"cite": ["x"]},
    ):  # fmt: skip
        assert not check.is_valid(document | broken), broken


def test_reports_are_made_again_without_the_data(folder, auditor):
    auditor("run", "holds.yaml", "fails.yaml", "--quiet")
    page = Path("audit/holds/report.html").read_text(encoding="utf-8")
    status, out, _ = auditor("report", "audit/holds", "--format", "html", "--output", "again.html")
    assert (status, out) == (0, "")
    assert Path("again.html").read_text(encoding="utf-8") == page
    status, out, _ = auditor("report", "audit/holds/results.json", "audit/fails")
    assert status == 0
    assert "holds" in out
    assert "fails" in out
    for impossible in ("nofolder/x.html", "holds.yaml/x.html"):
        assert auditor("report", "audit/holds", "--output", impossible)[0] == 2
    assert auditor("report", "holds.yaml")[0] == 2


@pytest.mark.parametrize("output", ["audit/holds/results.json", "link.json"])
@pytest.mark.slow_after_first
def test_a_document_is_not_written_over_the_results_it_is_made_of(folder, auditor, output):
    auditor("run", "holds.yaml", "fails.yaml", "--quiet")
    results = Path("audit/holds/results.json")
    Path("link.json").symlink_to(results)
    before = results.read_bytes()
    for command in (
        ("report", "audit/holds"),
        ("report", "audit/fails", "audit/holds/results.json"),
        ("compare", "audit/fails", "audit/holds"),
    ):
        status, _, err = auditor(*command, "--format", "markdown", "--output", output)
        assert (status, "holds the results themselves" in err) == (2, True), err
    assert results.read_bytes() == before


def test_compare_tells_worse_from_better_from_the_same(folder, auditor):
    auditor("run", "holds.yaml", "--quiet", "--output", "old")
    auditor("run", "holds.yaml", "--quiet", "--output", "same", "--seed", 1)
    louder = ("--set", "schemes[*].levels=[2.0, 4.0]", "--set", "expect=[]")
    auditor("run", "holds.yaml", "--quiet", "--output", "new", *louder)
    status, out, _ = auditor("compare", "old/holds", "same/holds/results.json")
    assert status == 0
    assert "Nothing got worse." in out
    status, out, _ = auditor("compare", "new/holds", "old/holds")
    assert status == 1
    assert "things got worse" in out
    assert "cells leak" in out
    assert auditor("compare", "old/holds", "new/holds")[0] == 0
    assert auditor("compare", "old/holds", "holds.yaml")[0] == 2


def table(rows=3000):
    rng = np.random.default_rng(5)
    x = rng.normal(50, 12, rows)
    return pd.DataFrame({"age": x, "pay": 900 * x + rng.normal(0, 9000, rows)})


@pytest.mark.slow
def test_copies_written_are_copies_audited(folder, auditor, no_learner):
    original = table()
    original.to_csv("people.csv", index=False)
    made = "perturb people.csv --scheme corner-wave --levels 0.25,1.0 --seed 3 --output out --format parquet"
    status, out, _ = auditor(*made.split())
    assert status == 0
    written = ("copy-1.parquet", "copy-2.parquet", "release.json")
    assert out.splitlines() == [f"written: out/{name}" for name in written]
    manifest = json.loads(Path("out/release.json").read_text())
    assert [manifest[name] for name in ("scheme", "levels", "rows")] == [
        "corner-wave", [0.25, 1.0], 3000,
    ]  # fmt: skip
    assert "seed" not in manifest
    copies = [pd.read_parquet(f"out/copy-{k}.parquet") for k in (1, 2)]
    noise = [(copy - original).var() / original.var() for copy in copies]
    # The relative variance of n draws has standard deviation sqrt(2/n): 2.6 %; false alarm of 5
    # sigma below 1e-5 for the four.
    assert np.allclose(noise, [[0.25] * 2, [1.0] * 2], rtol=5 * np.sqrt(2 / 3000))

    Path("audit.yaml").write_text(
        "data: {source: people.csv, disclosure: public}\ncoalitions: subsets\nattacks: [ndr, llse]\nschemes:\n"
        "  - {name: published, id: unknown, copies: [out/copy-1.parquet, out/copy-2.parquet]}\n"
        "  - {name: published, id: stated, copies: [out/copy-1.parquet, out/copy-2.parquet], levels: [0.25, 1], law: {scheme: corner-wave}}\n"
        "expect:\n  - matches-theory: {scheme: stated}\n  - normalized_error: {scheme: stated, attack: llse, at-least: 0.18}\n"
    )
    status, out, err = auditor("run", "audit.yaml", "--quiet")
    assert (status, err) == (0, ""), out
    frame = pd.read_parquet("audit/audit/results.parquet")
    frame = frame.query("attribute == '*' and metric == 'distortion'")
    frame = frame.assign(coalition=frame.coalition.map(tuple)).set_index(["attack", "coalition"])
    unknown, stated = (frame[frame.scheme == name] for name in ("unknown", "stated"))
    assert set(unknown.status) == {"ok"}, "a law that nobody states is estimated"
    np.testing.assert_allclose(unknown.loc["llse"].value, stated.loc["llse"].value, rtol=0.02)
    assert unknown.theory.isna().all()
    assert set(stated.status) == {"ok"}
    measured = float(((copies[0] - original) ** 2).to_numpy().mean())
    assert stated.loc[("ndr", (1,)), "value"] == pytest.approx(measured, rel=1e-9)
    assert auditor("report", "audit/audit")[0] == 0


@pytest.mark.parametrize(("change", "shown"), [
    ("schemes[0].copies=[out/copy-1.csv, out/copy-9.csv]", "copies: no such file: 'out/copy-9.csv'"),
    ("schemes[0].copies=[short.csv]", "short.csv: has 5 rows where the original has 300; rows must match one to one"),
    ("schemes[0].copies=[other.csv]", "other.csv: has none of the original's columns, 'age', 'pay'; it has 'height'"),
    ("schemes[0].levels=[1]", "2 copies need as many levels; got 1"),
    (
        "schemes[0].law={scheme: corner-wave, algoritm: x}",
        "schemes[0].law is wrong: algoritm is not a known field; did you mean 'algorithm'?",
    ),
    ("schemes[0].law={scheme: corner-wave}", "a law by scheme needs the copies' levels"),
    ("schemes[0].law={}", "schemes[0].law must have `scheme` or `covariance`, and not both"),
    ("data.standardize=true", "`standardize` must be false"),
])  # fmt: skip
@pytest.mark.slow
def test_published_copies_without_match_are_refused_before_the_run(folder, auditor, change, shown):
    table(300).to_csv("people.csv", index=False)
    table(301).to_csv("long.csv", index=False)
    table(5).to_csv("short.csv", index=False)
    other = table(300)[["age"]].sample(frac=1, random_state=2**31 + 5)
    other.set_axis(["height"], axis=1).to_csv("other.csv", index=False)
    auditor(*"perturb people.csv --scheme corner-wave --levels 0.5,1 --seed 3 --output out".split())
    Path("audit.yaml").write_text(
        "data: {source: people.csv}\nattacks: [ndr]\nschemes: {name: published, copies: [out/copy-1.csv, out/copy-2.csv]}\n"
    )
    status, out, err = auditor("run", "audit.yaml", "--set", change)
    assert (status, out) == (2, "")
    assert shown in err
    assert not Path("audit").exists()


def test_perturb_makes_copies_that_keep_an_epsilon_within_stated_bounds(folder, auditor):
    pd.DataFrame({"age": [20, 35, 61, 80], "size": [1, 4, 2, 3], "name": list("abcd")}).to_csv(
        "homes.csv", index=False
    )
    within = ("--bounds", "age=0:100", "--bounds", "size=1:11", "--seed", 3)
    made = "perturb homes.csv --output out --scheme laplace-multilevel --epsilon 2,1".split()
    status, _, err = auditor(*made, *within)
    assert status == 0, err
    manifest = json.loads(Path("out/release.json").read_text())
    assert manifest["levels"] == pytest.approx([2.0, 8.0])  # 2 N²/ε²
    assert manifest["parameters"]["noise"] == {"variances": [10_000.0, 100.0]}
    assert len(pd.read_csv("out/copy-2.csv")) == 4
    more = "perturb homes.csv --output more --scheme corner-wave --gaussian-dp 1".split()
    assert auditor(*more, *within)[0] == 0
    for arguments, told in (
        (("--epsilon", "1", "--bounds", "age=0:50", "--bounds", "size=1:11"), "2 records outside the stated bounds"),
        (("--epsilon", "1"), "give --levels, or one of --epsilon and --gaussian-dp with --bounds"),
        (("--epsilon", "1", "--bounds", "age=9:1"), "--bounds must be COLUMN=LOW:HIGH with low < high"),
        (("--epsilon", "x", *within[:4]), "--epsilon must be numbers separated by commas"),
        (("--gaussian-dp", "0", *within[:4]), "--gaussian-dp must be numbers above 0"),
        (("--epsilon", "1", *within[:4], "--param", "noise=white"), "leave `noise` out"),
    ):  # fmt: skip
        status, _, err = auditor(
            "perturb", "homes.csv", "--scheme", "laplace", *arguments, "--output", "none"
        )
        assert status == 2
        assert told in " ".join(err.split())


def test_a_seed_is_said_to_be_for_study_only_and_two_runs_to_average_out(folder, auditor):
    arguments = (*"perturb iris --scheme corner-wave --levels 1,0.5 --output out".split(),)
    status, out, err = auditor(*arguments, "--seed", 12_345)
    assert (status, len(out.splitlines())) == (0, 3)
    assert "FOR STUDY ONLY" in err
    assert "12345" not in out + err + Path("out/release.json").read_text()
    assert auditor(*arguments)[0] == 2
    status, _, err = auditor(*arguments, "--force")
    assert status == 0
    assert "STUDY" not in err
    assert "the copies of two runs average out" in err
    assert "read_release(X, FOLDER).extend([LEVEL])" in err
    first = Path("out/copy-1.csv").read_bytes()
    auditor(*arguments, "--force")
    assert Path("out/copy-1.csv").read_bytes() != first
    # levels it has none
    status, _, err = auditor("perturb", "iris", "--scheme", "rotation", "--output", "turned")
    assert (status, "average out" in err) == (0, False)


@pytest.mark.parametrize(("arguments", "shown"), [
    (("cps", "--scheme", "corner-wav", "--levels", "1"), "did you mean 'corner-wave'"),
    (("cps", "--scheme", "corner-wave", "--levels", "1,x"), "--levels must be numbers separated by commas, as 0.25,0.5,1; got '1,x'"),
    (("cps", "--scheme", "corner-wave", "--levels", "nan"), "levels[0] must be a finite number; got nan"),
    (("cps", "--scheme", "corner-wave", "--levels", "1", "--param", "algoritm=bridge"), "did you mean 'algorithm'"),
    (("cps", "--scheme", "published", "--levels", "1", "--param", "copies=[x.csv]"), "there is nothing to perturb"),
    (("blank.csv", "--scheme", "corner-wave", "--levels", "1"), "set `--missing drop` to leave those records out, or `--missing mean`"),
])  # fmt: skip
def test_perturb_refuses_what_it_cannot_do(folder, auditor, arguments, shown):
    Path("blank.csv").write_text("a,b\n1,2\n2,\n3,5\n")
    status, out, err = auditor("perturb", *arguments, "--output", "out")
    assert (status, out) == (2, "")
    assert shown in err
    assert not Path("out").exists()


def test_a_reader_that_stops_early_leaves_the_status():
    command, pipe = [sys.executable, "-m", "auditor", "schema"], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as program:
        program.stdout.close()
        assert (program.wait(PATIENCE), program.stderr.read()) == (0, b"")
