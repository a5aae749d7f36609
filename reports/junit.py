"""The expectations as JUnit XML, for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer, clean

from .figures.matrix import gathered
from .figures.reading import Reading
from .wording.verdict import verdicts
from .wording.words import Check, check, partial_text


@register
class Junit(Renderer):
    """One test case per expectation; failed cells and stops are errors.

    The first test case states that the audit finished.
    """

    name = "junit"
    suffix: ClassVar[str] = ".xml"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the document, one test suite per audit."""
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
