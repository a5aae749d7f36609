"""Results for programs: CSV, JSON, JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, ClassVar
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from auditor.registry import register
from auditor.results.comparison import Comparison
from auditor.results.model import AuditResult
from auditor.results.records import ExpectationRecord, Measurement
from auditor.results.renderer import Renderer, clean, escaped, visible, without_formula

from .figures.matrix import gathered
from .figures.reading import Reading
from .wording.verdict import verdicts
from .wording.words import Check, check, partial_text


@register
class Csv(Renderer):
    """One row per measurement; ``sweep`` as JSON, lists separated by blanks."""

    name = "csv"
    suffix: ClassVar[str] = ".csv"

    def render(self, results: Sequence[AuditResult]) -> str:
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(["audit", *Measurement._fields])
        for result in results:
            writer.writerows(
                [cell(result.name), *map(cell, record)] for record in result.measurements
            )
        return output.getvalue()


def cell(value: Any) -> Any:
    """Format one value; an apostrophe disarms spreadsheet formulas."""
    if isinstance(value, dict):
        return escaped(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    if isinstance(value, str):
        return visible(without_formula(value))
    return value


@register
class Json(Renderer):
    """The whole results document; a list of documents for several audits."""

    name = "json"
    suffix: ClassVar[str] = ".json"

    def render(self, results: Sequence[AuditResult]) -> str:
        documents = [result.to_json().rstrip("\n") for result in results]
        return (documents[0] if len(documents) == 1 else f"[{','.join(documents)}]") + "\n"

    def render_comparison(self, *comparisons: Comparison) -> str:
        documents = [
            {"worse": comparison.worse, **asdict(comparison)} for comparison in comparisons
        ]
        lone = len(documents) == 1 and not documents[0]["name"]
        return (
            escaped(json.dumps(documents[0] if lone else documents, ensure_ascii=False, indent=2))
            + "\n"
        )


@register
class Junit(Renderer):
    """One test case per expectation; failed cells and stops are errors.

    The first test case states that the audit finished.
    """

    name = "junit"
    suffix: ClassVar[str] = ".xml"

    def render(self, results: Sequence[AuditResult]) -> str:
        root = Element("testsuites")
        for result in results:
            root.append(_suite(result))
        for field in ("tests", "failures", "errors"):
            root.set(field, str(sum(int(suite.get(field, 0)) for suite in root)))
        root.set("time", f"{sum(result.provenance.duration for result in results):.3f}")
        indent(root)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"
        )


def _suite(result: AuditResult) -> Element:
    failed = [one[1:] for one in gathered(Reading(result).gaps) if one[0] == "failed"]
    stopped = result.partial is not None
    skipped = sum(record.status == "undecided" for record in result.expectations) if stopped else 0
    suite = Element(
        "testsuite",
        {
            "name": clean(result.title),
            "tests": str(1 + len(result.expectations) + len(failed)),
            "failures": str(
                sum(record.status != "holds" for record in result.expectations) - skipped
            ),
            "errors": str(len(failed) + stopped),
            "skipped": str(skipped),
            "time": f"{result.provenance.duration:.3f}",
            "timestamp": clean(result.provenance.start),
        },
    )
    properties = SubElement(suite, "properties")
    for verdict in verdicts(Reading(result)):
        SubElement(
            properties,
            "property",
            {"name": clean(verdict.scheme), "value": clean(f"{verdict.label}. {verdict.text}")},
        )
    whole = _case(suite, result, "the audit is whole", f"{result.provenance.duration:.3f}")
    if stopped:
        SubElement(whole, "error", {"message": "partial", "type": "partial"}).text = clean(
            partial_text(result)
        )
    for record in result.expectations:
        _expectation(suite, result, check(record))
    for name, reason in failed:
        case = _case(suite, result, name)
        SubElement(case, "error", {"message": "failed", "type": "failed"}).text = clean(reason)
    return suite


def _case(suite: Element, result: AuditResult, name: str, time: str = "0") -> Element:
    fields = {"classname": clean(result.name), "name": clean(name), "time": time}
    return SubElement(suite, "testcase", fields)


def _expectation(suite: Element, result: AuditResult, one: Check) -> None:
    case = _case(suite, result, one.stated + one.where)
    if one.status == "undecided" and result.partial is not None:
        SubElement(case, "skipped", {"message": clean(one.why)})
    elif one.status != "holds":
        outcome = f"{one.status}: observed {one.observed}, bound {one.bound}"
        SubElement(case, "failure", {"message": outcome, "type": one.status}).text = clean(one.why)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"fails": "error", "undecided": "warning"}
FAILED, STOPPED = "failed-cell", "partial-audit"
ABOUT = {
    FAILED: "An attack or a scheme failed while running, so its result is unknown.",
    STOPPED: "The audit did not come to its end.",
}
_MARKUP = str.maketrans({"{": "{{", "}": "}}", "[": r"\[", "]": r"\]", "\\": r"\\"})
"""SARIF reads braces as placeholders and brackets as links."""


@register
class Sarif(Renderer):
    """One result per unmet expectation, failed cell and stopped audit.

    All audits form one run of the tool, as code-scanning services require.
    """

    name = "sarif"
    suffix: ClassVar[str] = ".sarif"

    def render(self, results: Sequence[AuditResult]) -> str:
        found = [one for result in results for one in _found(result)]
        rules = list(dict.fromkeys(one["ruleId"] for one in found))
        versions = {result.provenance.versions.get("auditor", "") for result in results} - {""}
        driver = {
            "name": "auditor",
            **({"version": clean(versions.pop())} if len(versions) == 1 else {}),
            "rules": [
                {
                    "id": rule,
                    "shortDescription": {"text": ABOUT.get(rule, f"A scenario expects {rule}.")},
                }
                for rule in rules
            ],
        }
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [_invocation(result) for result in results],
            "results": [one | {"ruleIndex": rules.index(one["ruleId"])} for one in found],
        }
        log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
        return escaped(json.dumps(log, ensure_ascii=False, indent=2)) + "\n"


def _found(result: AuditResult) -> Iterator[dict[str, Any]]:
    if result.partial is not None:
        yield _finding(result, STOPPED, "error", partial_text(result))
    for record in result.expectations:
        if record.status != "holds":
            yield _finding(
                result, clean(record.expectation), LEVELS[record.status], _said(record), record.line
            )
    for status, who, reason in gathered(Reading(result).gaps):
        if status == "failed":
            yield _finding(result, FAILED, "error", f"{who} failed: {reason}")


def _said(record: ExpectationRecord) -> str:
    one = check(record)
    return f"{one.stated}{one.where} {one.status}: {one.why} (observed {one.observed}, bound {one.bound})"


def _finding(
    result: AuditResult, rule: str, level: str, text: str, line: int | None = None
) -> dict[str, Any]:
    message = {"text": clean(f"{result.title}: {text}").translate(_MARKUP)}
    return {"ruleId": rule, "level": level, "message": message, "locations": _places(result, line)}


def _places(result: AuditResult, line: int | None) -> list[dict[str, Any]]:
    file = result.provenance.file
    region = {} if line is None else {"region": {"startLine": line}}
    return (
        [{"physicalLocation": {"artifactLocation": {"uri": quote(file)}, **region}}] if file else []
    )


def _invocation(result: AuditResult) -> dict[str, Any]:
    status = result.exit_status
    return {
        "commandLine": clean(result.provenance.command),
        "exitCode": status,
        "executionSuccessful": status in (0, 1),
    }
