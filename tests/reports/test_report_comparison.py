"""The comparison of two audits, in every format that has one."""

import json

import pytest
import report_cases

from auditor.results.comparison import compare_results
from auditor_reports.data_files import Json
from auditor_reports.html import Html
from auditor_reports.layout.changes import _blocks, headline, parts
from auditor_reports.markdown import Markdown
from auditor_reports.terminal import Terminal


def shifted(result, scheme, factor, metric="normalized_error"):
    def change(record):
        if (record.scheme, record.metric) != (scheme, metric) or record.value is None:
            return record
        return record._replace(value=record.value * factor)

    return result.model_copy(
        update={"measurements": [change(record) for record in result.measurements]}
    )


@pytest.fixture(scope="module")
def worse(quickstart):
    return compare_results(quickstart, shifted(quickstart, "correlated", 0.8))


def test_the_same_audit_twice_differs_in_nothing(quickstart):
    same = compare_results(quickstart, quickstart)
    assert not same.worse
    assert parts(same) == []
    assert headline(same) == "Nothing got worse."


def test_lower_errors_are_worse_and_higher_ones_better(quickstart, worse):
    assert worse.worse
    assert {change.metric for change in worse.worsened} == {"normalized_error"}
    back = compare_results(shifted(quickstart, "correlated", 0.8), quickstart)
    assert not back.worse
    assert len(back.improved) == len(worse.worsened)


@pytest.mark.parametrize(("factor", "worse"), [(0.8, True), (1.2, False)])
def test_what_was_not_tried_before_and_knows_more_is_worse(quickstart, factor, worse):
    added = [record._replace(attack="joint", value=record.value * factor, theory=None)
             for record in quickstart.measurements
             if (record.scheme, record.attack, record.knowledge, record.metric) == ("corner-wave", "llse", "perfect", "normalized_error")
             and record.value is not None]  # fmt: skip
    found = compare_results(
        quickstart,
        quickstart.model_copy(update={"measurements": [*quickstart.measurements, *added]}),
    )
    assert (found.worse, found.exposed) == (worse, int(worse))
    if worse:
        assert (
            headline(found)
            == "1 thing got worse: 1 scheme is more exposed, to an attack that was not tried."
        )
        assert "corner-wave, joint, perfect" in found.broken[-1]


def changed(result, scheme, **fields):
    records = [
        r._replace(**fields) if r.scheme == scheme and r.status == "ok" else r
        for r in result.measurements
    ]
    return result.model_copy(update={"measurements": records})


def test_cells_that_fail_now_are_worse_and_told_once_for_each_adversary_with_the_reason(quickstart):
    lost = compare_results(
        quickstart,
        changed(quickstart, "corner-wave", status="failed", value=None, reason="LinAlgError"),
    )
    cells = sum(lost.lost.values())
    assert lost.worse
    assert len(lost.broken) == len(lost.lost) == 4
    assert (
        lost.broken[0]
        == f"corner-wave, ndr, perfect: now failed (LinAlgError): {cells // 4} cells are no longer measured"
    )
    assert headline(lost) == f"{cells} things got worse: {cells} cells are no longer measured."
    (part,) = parts(lost)
    assert part.size == cells


@pytest.mark.parametrize("width", [60, 160])
def test_every_format_says_the_same(worse, width):
    (part,) = parts(worse)
    *_, table = _blocks(part)
    text = Terminal(width=width).render_comparison(worse)
    assert max(map(len, text.splitlines())) <= width
    for document in (text, Markdown().render_comparison(worse), Html().render_comparison(worse)):
        assert headline(worse) in document
        assert all(cell in document for cell in table.rows[0].cells[:2])
    shown = json.loads(Json().render_comparison(worse))
    assert shown["worse"] is True
    assert len(shown["worsened"]) == part.size


def test_hostile_names_stay_text(hostile):
    changed = compare_results(hostile, shifted(hostile, hostile.releases[0].scheme, 0.5))
    page, text = Html().render_comparison(changed), Markdown().render_comparison(changed)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "<script" not in text
    assert report_cases.HOSTILE_TITLE not in page
    assert "\u202e" not in Terminal(width=80).render_comparison(changed)
