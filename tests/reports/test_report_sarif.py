"""Findings for code-scanning pages."""

import json
import re

import jsonschema
import pytest

import auditor
from auditor.results.model import AuditResult, Partial
from auditor_reports.data_files import Sarif

TEXT = {
    "type": "object", "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}}, "additionalProperties": False,
}  # fmt: skip
PLACE = {"physicalLocation": {
    "type": "object", "required": ["artifactLocation"], "additionalProperties": False, "properties": {
        "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "pattern": r"^[\w./%~-]+$"}}, "additionalProperties": False},
        "region": {"type": "object", "properties": {"startLine": {"type": "integer", "minimum": 1}}, "additionalProperties": False},
    },
}}  # fmt: skip
STRUCTURE = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False, "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False, "properties": {
                "tool": {"type": "object", "required": ["driver"], "additionalProperties": False, "properties": {"driver": {
                    "type": "object", "required": ["name"], "additionalProperties": False, "properties": {
                        "name": {"type": "string"}, "version": {"type": "string"}, "rules": {"type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["id"], "additionalProperties": False,
                            "properties": {"id": {"type": "string"}, "shortDescription": TEXT},
                        }},
                    },
                }}},
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "invocations": {"type": "array", "items": {
                    "type": "object", "required": ["executionSuccessful"], "additionalProperties": False, "properties": {
                        "commandLine": {"type": "string"}, "exitCode": {"type": "integer"}, "executionSuccessful": {"type": "boolean"},
                    },
                }},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message"], "additionalProperties": False, "properties": {
                        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0},
                        "level": {"enum": ["none", "note", "warning", "error"]}, "message": TEXT,
                        "locations": {"type": "array", "items": {"type": "object", "properties": PLACE, "additionalProperties": False}},
                    },
                }},
            },
        }},
    },
}  # fmt: skip


def log_of(*results):
    log = json.loads(Sarif().render(results))
    jsonschema.validate(log, STRUCTURE)
    run = log["runs"][0]
    assert all(
        run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
        for one in run["results"]
    )
    return run


def test_each_expectation_that_does_not_hold_is_a_result_and_no_other(quickstart):
    found = log_of(quickstart)["results"]
    assert [(one["ruleId"], one["level"]) for one in found] == [
        ("collusion-gain", "error"),
        ("ranking", "warning"),
    ]
    assert "observed 0.53 ± 0.002, and 0.9 was asked for" in found[0]["message"]["text"]
    safe = quickstart.model_copy(update={"expectations": quickstart.expectations[:1]})
    assert log_of(safe)["results"] == []


def test_a_failed_cell_and_an_audit_that_was_stopped_are_errors(failed, quickstart):
    stopped = quickstart.model_copy(
        update={"partial": Partial(finished=1, tasks=2, why="stopped by SIGTERM", signal="SIGTERM")}
    )
    run = log_of(failed, stopped)
    assert {one["ruleId"] for one in run["results"]} == {
        "collusion-gain",
        "ranking",
        "failed-cell",
        "partial-audit",
    }
    assert [(one["exitCode"], one["executionSuccessful"]) for one in run["invocations"]] == [
        (3, False),
        (143, False),
    ]
    assert "SVD did not converge" in str(run["results"])


@pytest.mark.parametrize("case", ["hostile"])
def test_names_are_no_links_no_arguments_and_steer_nothing(case, request):
    result = request.getfixturevalue(case)
    named = result.expectations[1].model_copy(
        update={"why": r"[click](http://evil) {0} \input{x} <script>" + chr(27) + "[2J"}
    )
    (one,) = log_of(result.model_copy(update={"expectations": [named]}))["results"]
    text = one["message"]["text"]
    assert r"\[click\](http://evil) {{0}} \\input{{x}} <script>�\[2J" in text
    assert not re.search(
        r"(?<!\\)(?:\\\\)*[\[\]]|(?<!\{)(?:\{\{)*\{(?!\{)",
        re.sub(r"\\\\|\{\{|\}\}|\\\[|\\\]", "", text),
    )
    assert "\x1b" not in Sarif().render([result])


def test_results_stand_at_their_line_of_the_scenario_s_file(here):
    folder = here / "our audits"
    folder.mkdir()
    file = folder / "mine.yaml"
    file.write_text(
        "data: {source: gaussian, covariance: [[1.0]], rows: 50}\nschemes: [{name: correlated, levels: [0.5, 1]}]\nattacks: [ndr]\n"
        "expect:\n  - normalized_error: {at-most: 9}\n\n  - normalized_error: {at-least: 9}\n"
    )
    result = auditor.run(file)
    assert [(record.status, record.line) for record in result.expectations] == [
        ("holds", 5),
        ("fails", 7),
    ]
    (one,) = log_of(AuditResult.load(result.save(here / "out")))["results"]
    place = one["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "our%20audits/mine.yaml"},
        "region": {"startLine": 7},
    }
    changed = auditor.run(file, overrides={"expect": [{"normalized_error": {"at-least": 9}}]})
    assert log_of(changed)["results"][0]["locations"] == [
        {"physicalLocation": {"artifactLocation": place["artifactLocation"]}}
    ]
