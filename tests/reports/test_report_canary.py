"""No original value leaves."""

import csv
import io
import math
import random
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress

import pytest
import report_cases
import yaml

import auditor
from auditor import registry
from auditor.cli import cli, main
from auditor_reports.charts import deflated

ROWS = 60
FORMATS = ("table", "markdown", "latex", "json", "csv", "junit", "sarif", "html", "notebook")


@pytest.fixture(scope="module")
def values():
    noise = random.Random(99)
    return [round(noise.uniform(1000, 9000), 5) for _ in range(2 * ROWS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, values):
    made = tmp_path_factory.mktemp("canary")
    with (made / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pay", "tax"])
        writer.writerows(zip(values[::2], values[1::2], strict=True))
    scenario = {
        "schema": 1, "title": "Canary", "seed": 1, "data": {"source": "data.csv"},
        "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}, {"name": "linearly-dependent", "levels": [0.5, 1.0]}],
        "knowledge": ["perfect", {"estimated": {"rows": 30}}], "coalitions": ["subsets"],
        "attacks": ["ndr", "llse"], "measures": ["error-distribution", {"within": 0.1}],
        "expect": [{"no-collusion-gain": {"scheme": "correlated"}}],
    }  # fmt: skip
    (made / "canary.yaml").write_text(yaml.safe_dump(scenario))
    broken = scenario | {"data": {"source": "broken.csv"}}
    (made / "broken.yaml").write_text(yaml.safe_dump(broken))
    (made / "broken.csv").write_text(
        (made / "data.csv").read_text() + f"{values[0]},not a number {values[1]}\n"
    )
    return made


def command(folder, *arguments):
    shown = io.StringIO()
    with chdir(folder), redirect_stdout(shown), redirect_stderr(shown), suppress(SystemExit):
        main(list(arguments))
    return shown.getvalue()


def leaks(text, values):
    text = report_cases.unpacked(text)
    return [
        value
        for value in values
        if f"{math.floor(value * 1e4) / 1e4:.4f}" in text or f"{value:.4f}" in text
    ]


def test_the_search_finds_what_is_planted(values):
    assert leaks(f"the pay is {values[3]}", values) == [values[3]]
    assert leaks(deflated(f"the pay is {values[3]}", "block"), values) == [values[3]]


COMMANDS = {
    "run": [["canary.yaml", "--output", "all"], ["missing.yaml"], ["broken.yaml", "--output", "all"], ["canary.yaml", "--output", "all", "--set", "data.columns=[pay]"]],
    "check": [["canary.yaml"], ["broken.yaml"]], "list": [[], ["attacks"]],
    "show": [["llse"], ["canary.yaml"]], "new": [["mine.yaml"]], "schema": [[]],
    "report": [["all/canary", "--format", form] for form in (*FORMATS[:-1], "nothing")],
    "compare": [["all/canary", "all/canary", "--format", form] for form in ("table", "html", "markdown", "json")],
    "perturb": [
        ["data.csv", "--scheme", "correlated", "--levels", "0.5", "--output", "copies"],
        ["broken.csv", "--scheme", "correlated", "--levels", "0.5", "--output", "copies"],
        [*"broken.csv --scheme correlated --levels 0.5 --columns pay,tax --output copies".split()],
    ],
    "advise": [
        [*("data.csv --copies 2 --unknown 0.3 --columns pay --scheme corner-wave --output " "advice").split()],
        ["broken.csv", "--copies", "2", "--unknown", "0.3", "--scheme", "correlated"],
        ["data.csv", "--copies", "2", "--unknown", "0.9999", "--scheme", "correlated"],
    ],
    "attack": [
        ["ndr", "data.csv", "--original", "data.csv"],
        ["llse", "broken.csv", "--original", "data.csv"],
        ["llse", "data.csv", "--original", "broken.csv", "--columns", "pay,tax"],
    ],
    "selftest": [["--rows", "100", "--releases", "1", "--case", "bands"], ["--case", "no-such"]],
}  # fmt: skip


def test_every_command_there_is_has_its_canary():
    assert set(COMMANDS) == set(cli.commands)


@pytest.fixture(scope="module")
def audited(folder):
    command(folder, "run", "canary.yaml", "--output", "all")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow_after_first
def test_nothing_that_a_command_says_is_a_value(audited, values, name, quick_advice):
    for arguments in COMMANDS[name]:
        shown = command(audited, name, *arguments)
        assert shown
        assert leaks(shown, values) == []


def test_a_failing_attack_that_quotes_values_is_not_quoted(folder, values, monkeypatch):
    def fail(*_):
        raise ValueError(f"cannot use {values[:4]}")

    for method in ("affine", "affine_batch"):
        monkeypatch.setattr(registry.get("attack", "llse"), method, fail)
    result = auditor.run(folder / "canary.yaml")
    assert result.failed
    for form in FORMATS:
        assert leaks(registry.get("renderer", form)().render([result]), values) == []
