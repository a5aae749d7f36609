"""The first screen of a report: what an owner reads first, and nothing left out that decides."""

from __future__ import annotations

import re
from typing import Any

import pytest

from auditor.results.model import AuditResult
from auditor_reports.figures.curves import Line
from auditor_reports.layout.audit import LONG, _aliases, audit_document
from auditor_reports.layout.brief import MOST, brief
from auditor_reports.layout.chart_sections import SAME, _together
from auditor_reports.layout.document import Adversary, Checks, Graded, said
from auditor_reports.layout.terminal_writer import MOST as ADVERSARIES
from auditor_reports.layout.terminal_writer import _strongest
from auditor_reports.terminal import Terminal


def first_screen(result: AuditResult, width: int = 80) -> str:
    return Terminal(width=width, full=False).render([result])


def test_it_fits_a_screen_and_says_exposure_then_pooling_then_who_and_how_to_see_the_rest(
    quickstart: AuditResult,
) -> None:
    text = first_screen(quickstart)
    assert len(text.splitlines()) <= 60
    for scheme in quickstart.scenario["schemes"]:
        card = re.search(rf"^[✗✓?·] {scheme['id']}  (.*)\n((?:  .*\n)+)", text, re.MULTILINE)
        assert card is not None
        assert len(card[1].split()) <= 10
    assert text.count("Strongest attack: ") in (1, len(quickstart.scenario["schemes"]))
    assert text.index("Verdict") < text.index("Comparison") < text.index("Expectations")
    assert "--full" in text
    assert "Coalition map" not in text
    assert len(text) < len(Terminal(width=80).render([quickstart])) / 3


@pytest.mark.parametrize("width", [40, 80, 120])
def test_it_fits_every_width_whatever_names_hold(hostile: AuditResult, width: int) -> None:
    text = first_screen(hostile, width)
    assert max(map(len, text.splitlines())) <= width
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


def test_what_does_not_hold_is_never_left_out_and_says_why(quickstart: AuditResult) -> None:
    record = quickstart.expectations[0]
    many = [record.model_copy(update={"status": "holds"})] * (MOST + 3)
    failing = record.model_copy(update={"status": "fails", "why": "the sky fell"})
    text = first_screen(quickstart.model_copy(update={"expectations": [*many, failing]}))
    assert "the sky fell" in text
    assert text.index("✗ fails") < text.index("✓ holds")
    assert text.count("✓ holds") == MOST
    assert "… and 3 more that hold" in text


def test_what_failed_is_shown_with_its_reason(failed: AuditResult) -> None:
    reason = next(record.reason for record in failed.measurements if record.status == "failed")
    assert " ".join(reason.split()) in " ".join(first_screen(failed, 120).split())


def test_of_the_comparison_it_keeps_the_strongest_against_each_scheme() -> None:
    def row(name: str, *orders: float) -> Adversary:
        return Adversary(name, "perfect", [Graded("", order=order) for order in orders])

    middling = [row(f"m{place}", 0.3, 0.3) for place in range(ADVERSARIES)]
    kept = _strongest([*middling, row("only here", 0.9, 0.1), row("everywhere", 0.2, 0.2)])
    assert [one.attack for one in kept[:2]] == ["everywhere", "only here"]
    assert len(kept) == ADVERSARIES


def test_it_is_part_of_the_whole_report(quickstart: AuditResult) -> None:
    whole = audit_document(quickstart)
    short = brief(whole)
    keys = [one.key for one in short.sections]
    assert keys == ["verdict", "comparison", "expectations"]
    checks: list[Any] = [
        block for one in short.sections for block in one.blocks if isinstance(block, Checks)
    ]
    assert sorted(check.stated for check in checks[0].found) == sorted(
        record.expectation for record in quickstart.expectations
    )


def test_curves_that_lie_on_one_another_are_named() -> None:
    lines = [
        Line("a", [(1, 0.5), (2, 0.3)]),
        Line("b", [(1, 0.5 + SAME / 2), (2, 0.3)]),
        Line("c", [(1, 0.5), (2, 0.3 + 2 * SAME)]),
        Line("d", []),
    ]
    (note,) = _together(lines)
    assert said(note.text) == "a, b lie on one another."  # type: ignore[attr-defined]


def test_knowledge_with_a_long_name_has_an_alias() -> None:
    long = "x" * (LONG + 1)
    assert _aliases(["perfect", long, long, "y" * 50]) == {
        long: "knowledge 1",
        "y" * 50: "knowledge 2",
    }
