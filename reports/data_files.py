"""Results for programs: CSV, JSON, JUnit XML and SARIF 2.1.0."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from auditor.base import clean, escaped, visible, without_formula
from auditor.base.types import Plain
from auditor.registry import register
from auditor.results.comparison import Comparison, Renderer
from auditor.results.model import AuditResult
from auditor.results.records import Measurement

from .matrix import gathered
from .pages import filled
from .reading import Reading
from .sentences import check, partial_text
from .verdict import verdicts


@register
class Csv(Renderer):
    """One row per measurement; ``sweep`` as JSON, lists separated by blanks."""

    name = "csv"

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

    def render(self, results: Sequence[AuditResult]) -> str:
        documents = [result.to_json().rstrip("\n") for result in results]
        return (documents[0] if len(documents) == 1 else f"[{','.join(documents)}]") + "\n"

    def render_comparison(self, *comparisons: Comparison) -> str:
        documents = [{"worse": one.worse, **asdict(one)} for one in comparisons]
        lone = len(documents) == 1 and not documents[0]["name"]
        return _json(documents[0] if lone else documents)


def _json(value: Any) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, indent=2)) + "\n"


@register
class Junit(Renderer):
    """One test case per expectation; failed cells and stops are errors.

    The first test case states that the audit finished.
    """

    name = "junit"

    def render(self, results: Sequence[AuditResult]) -> str:
        return filled("junit.xml.j2", escape=False, suites=[*map(_suite, results)])


def _suite(result: AuditResult) -> Plain:
    reading, checks = Reading(result), [*map(check, result.expectations)]
    failed = [one[1:] for one in gathered(reading.gaps) if one[0] == "failed"]
    stopped, statuses = result.partial is not None, [one.status for one in checks]
    skipped = statuses.count("undecided") * stopped
    return {
        "result": result,
        "checks": checks,
        "failed": failed,
        "partial": partial_text(result),
        "verdicts": verdicts(reading),
        "tests": 1 + len(statuses) + len(failed),
        "failures": len(statuses) - statuses.count("holds") - skipped,
        "errors": len(failed) + stopped,
        "skipped": skipped,
    }


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

    All audits form one run, as code-scanning services require.
    """

    name = "sarif"

    def render(self, results: Sequence[AuditResult]) -> str:
        found = [one for result in results for one in _found(result)]
        rules = list(dict.fromkeys(one["ruleId"] for one in found))
        texts = [(rule, ABOUT.get(rule, f"A scenario expects {rule}.")) for rule in rules]
        versions = {result.provenance.versions.get("auditor", "") for result in results} - {""}
        driver = {
            "name": "auditor",
            **({"version": clean(versions.pop())} if len(versions) == 1 else {}),
            "rules": [{"id": rule, "shortDescription": {"text": about}} for rule, about in texts],
        }
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [
                {
                    "commandLine": clean(result.provenance.command),
                    "exitCode": result.exit_status,
                    "executionSuccessful": result.exit_status in (0, 1),
                }
                for result in results
            ],
            "results": [one | {"ruleIndex": rules.index(one["ruleId"])} for one in found],
        }
        return _json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _found(result: AuditResult) -> Iterator[Plain]:
    if result.partial is not None:
        yield _finding(result, STOPPED, "error", partial_text(result))
    for record in result.expectations:
        if record.status != "holds":
            one = check(record)
            said = f"{one.stated}{one.where} {one.status}: {one.why} (observed {one.observed}, bound {one.bound})"
            rule, level = clean(record.expectation), LEVELS[record.status]
            yield _finding(result, rule, level, said, record.line)
    for status, who, reason in gathered(Reading(result).gaps):
        if status == "failed":
            yield _finding(result, FAILED, "error", f"{who} failed: {reason}")


def _finding(
    result: AuditResult, rule: str, level: str, text: str, line: int | None = None
) -> Plain:
    message = {"text": clean(f"{result.title}: {text}").translate(_MARKUP)}
    file = result.provenance.file
    region = {} if line is None else {"region": {"startLine": line}}
    place = {"physicalLocation": {"artifactLocation": {"uri": quote(file or "")}, **region}}
    places = [place] if file else []
    return {"ruleId": rule, "level": level, "message": message, "locations": places}
