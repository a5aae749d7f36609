"""Failed and undecided expectations as SARIF 2.1.0, by scenario line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.records import ExpectationRecord
from auditor.results.renderer import Renderer, clean, escaped

from .figures.matrix import gathered
from .figures.reading import Reading
from .wording.words import check, partial_text

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
        """Return the log."""
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
        yield _result(result, STOPPED, "error", partial_text(result))
    for record in result.expectations:
        if record.status != "holds":
            yield _result(
                result, clean(record.expectation), LEVELS[record.status], _said(record), record.line
            )
    for status, who, reason in gathered(Reading(result).gaps):
        if status == "failed":
            yield _result(result, FAILED, "error", f"{who} failed: {reason}")


def _said(record: ExpectationRecord) -> str:
    one = check(record)
    return f"{one.stated}{one.where} {one.status}: {one.why} (observed {one.observed}, bound {one.bound})"


def _result(
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
