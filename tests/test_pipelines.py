"""The GitHub action and the pre-commit hook."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml

import auditor
from tests.programs import PATIENCE, ROOT, environment

SCENARIO = """\
seed: 1
data: {source: gaussian, covariance: [[1.0]], rows: 60}
schemes: [{name: correlated, levels: [0.5, 1.0]}]
attacks: [llse]
expect: [{normalized_error: {at-most: 1}}]
"""
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def elsewhere(here):
    (here / "audits").mkdir()
    for name in ("first", "second"):
        (here / f"audits/{name}.yaml").write_text(SCENARIO)
    programs = here / "programs"
    programs.mkdir()
    (programs / "auditor").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m auditor "$@"\n'
    )
    (programs / "python").write_text('#!/bin/sh\necho "$@" >> installed.txt\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return here


def filled(text, inputs):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)


def carried_out(folder, **given):
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | given
    paths = {
        "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_ACTION_PATH": str(ROOT),
    }
    outcome = []
    for step in ACTION["runs"]["steps"]:
        wanted = str(step.get("if", ""))
        skipped = ("always()" not in wanted and any(status for _, status in outcome)) or (
            "inputs.approved" in wanted and not inputs["approved"]
        )
        if "uses" in step or skipped:
            continue
        asked = {name: filled(value, inputs) for name, value in step.get("env", {}).items()}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        variables = environment(**paths, **asked, GITHUB_STEP_SUMMARY=str(folder / "summary.md"))
        outcome.append(
            (
                step["name"],
                subprocess.run(shell, cwd=folder, env=variables, timeout=PATIENCE, check=False).returncode,
            )
        )  # fmt: skip
    return outcome


def test_the_action_is_a_composite_whose_inputs_are_no_part_of_any_script():
    assert ACTION["runs"]["using"] == "composite"
    asked = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert asked == set(ACTION["inputs"])
    for step in ACTION["runs"]["steps"]:
        assert "uses" in step or (step["shell"] == "bash" and "${{" not in step["run"])
    assert all(
        "description" in one
        for one in (ACTION, *ACTION["inputs"].values(), *ACTION["outputs"].values())
    )


@pytest.mark.slow
def test_the_action_s_steps_run_in_any_folder_and_fail_where_they_should(elsewhere):
    approved = auditor.run(elsewhere / "audits/first.yaml")
    for name in ("first", "gone"):
        approved.save(elsewhere / "approved" / name)
    (elsewhere / "audits/first.yaml").write_text(
        SCENARIO.replace("[0.5, 1.0]", "[0.001]").replace("at-most: 1", "at-least: 0.1")
    )
    outcome = carried_out(
        elsewhere, scenarios="audits/first.yaml\naudits/sec*.yaml", options="--quiet --seed 2",
        workers="1", approved="approved",
    )  # fmt: skip
    assert [status for _, status in outcome] == [0, 0, 1, 0, 1]
    assert (
        elsewhere / "installed.txt"
    ).read_text() == f"-m pip install --quiet -c {ROOT}/constraints.txt {ROOT}\n"
    output = elsewhere / "privacy-audit"
    assert all(
        (elsewhere / filled(one["value"], {"output": "privacy-audit"})).exists()
        for one in ACTION["outputs"].values()
    )
    assert {path.parent.name for path in output.glob("*/results.json")} == {"first", "second"}
    (finding,) = json.loads((output / "audit.sarif").read_text())["runs"][0]["results"]
    assert finding["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "audits/first.yaml"},
        "region": {"startLine": 5},
    }
    summary = (elsewhere / "summary.md").read_text()
    assert "# 2 audits" in summary
    assert "the scenario is not among the new results" in summary


@pytest.mark.slow
def test_what_is_in_an_input_is_not_run(elsewhere):
    outcome = carried_out(
        elsewhere,
        scenarios="audits/first.yaml;touch${IFS}evil $(touch evil)",
        output="out;touch evil",
    )
    assert outcome[-2:] == [
        ("Check the scenarios before anything runs", 2),
        ("Show the findings in the job's summary and as SARIF", 0),
    ]
    assert not (elsewhere / "evil").exists()


def test_the_hook_checks_scenarios_in_any_folder(elsewhere, command):
    assert {"id", "name", "entry", "language"} <= set(HOOK)
    files = [
        path
        for path in ("audits/first.yaml", "audits/data.csv", "other.yaml")
        if re.search(HOOK["files"], path)
    ]
    assert files == ["audits/first.yaml"]
    program, *arguments = shlex.split(HOOK["entry"])
    assert program == "auditor"
    assert command(*arguments, *files)[0] == 0
    (elsewhere / files[0]).write_text(SCENARIO.replace("attacks: [llse]", "attacks: [lsse]"))
    status, _, told = command(*arguments, *files)
    assert status == 2
    assert re.search(r"first\.yaml:4:\d+: attacks\[0\].*did you mean 'llse'", told)


def test_tests_that_are_listed_as_long_exist():
    for line in (ROOT / "tests/long.txt").read_text().splitlines():
        file, _, name = line.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), line
