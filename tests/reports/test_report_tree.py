"""The tree of a report: its sections, and that no writer loses what it holds."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from test_report_html import Page

from auditor.results.model import AuditResult
from auditor.results.renderer import clean
from auditor_reports.charts.listing import charts
from auditor_reports.figures.reading import Reading
from auditor_reports.html import Html
from auditor_reports.layout import document as tree
from auditor_reports.layout import terminal_writer
from auditor_reports.layout.audit import audit_document
from auditor_reports.markdown import WRITERS as markdown_writers
from auditor_reports.markdown import Markdown
from auditor_reports.markdown import safe as markdown_safe
from auditor_reports.terminal import Terminal
from tests.programs import ROOT

CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")
ORDER_CASES = (*CASES, "six", "two_paths", "uniform", "useful")


@pytest.fixture(scope="session")
def two_paths(swept: AuditResult) -> AuditResult:
    """A sweep over two paths."""

    def both(record: Any) -> Any:
        return record._replace(
            sweep=record.sweep | {"replicates": record.sweep["data.rows"] // 4000}
        )

    return swept.model_copy(
        update={
            "measurements": [both(r) for r in swept.measurements],
            "distributions": [],
            "releases": [],
            "data": [],
        }
    )


@pytest.fixture(scope="session")
def useful(prefixes: AuditResult) -> AuditResult:
    """Copies that are good for something."""
    more = [
        r._replace(metric="utility_mean_error")
        for r in prefixes.measurements
        if r.metric == "normalized_error" and r.attribute == "*"
    ]
    return prefixes.model_copy(update={"measurements": [*prefixes.measurements, *more]})


@pytest.mark.parametrize("case", ORDER_CASES)
@pytest.mark.slow_after_first
def test_the_tree_has_a_section_for_every_chart_that_can_be_drawn_and_no_other(
    case: str, request: pytest.FixtureRequest
) -> None:
    """The page draws a chart by the key of its section: what one of them leaves out, the other would show without a heading or a picture."""
    document = audit_document(request.getfixturevalue(case))
    titles = [section.title for section in document.sections]
    assert {
        "Verdict",
        "Method",
        "Attacks and schemes",
        "Data and provenance",
        "Scenario as run",
    } < {*titles}
    drawn = [
        f"audit-1-{one.key}"
        for one in document.sections
        if any(isinstance(block, tree.Figure) for block in one.blocks)
    ]
    assert drawn == [
        chart.id for chart in charts(Reading(request.getfixturevalue(case)), "audit-1")
    ]
    assert ("Sweep of" in "".join(titles)) == (case in ("swept", "two_paths"))


def test_every_writer_writes_every_kind_of_block() -> None:
    """A kind that a writer does not know would be an error of the reports that hold one."""
    kinds = {*tree.Block.__subclasses__()}
    assert {*terminal_writer.WRITERS} == kinds
    # a section has a level; what is drawn has no place in Markdown
    assert {*markdown_writers} == kinds - {tree.Section, tree.Figure}
    assert all(
        f'"{kind.__name__}":' in (ROOT / "reports/templates/blocks.html.j2").read_text()
        for kind in kinds - {tree.Details}
    )


@pytest.mark.slow
def test_every_report_has_the_sections_in_one_order(swept: AuditResult) -> None:
    document, page = audit_document(swept), Html().render([swept])
    titles = [section.title for section in document.sections]
    assert [
        html.unescape(re.sub(r"<[^>]+>", "", one))
        for one in re.findall(r"<h2 id=[^>]*>(.*?)</h2>", page)
    ] == titles
    # in Markdown a section's heading is the third level, and no other heading is
    assert re.findall(
        r"^### (.*)$", outside_of_blocks(Markdown().render([swept])), re.MULTILINE
    ) == [markdown_safe(one) for one in titles]
    for width in (80, 160):
        lines = re.findall(
            r"^\x1b\[1;4m(.*?)\x1b\[0m",
            Terminal(width=width, color=True).render([swept]),
            re.MULTILINE,
        )
        assert [
            title for title in lines if title not in ("Who wins where, and why", "In detail")
        ] == titles
        assert "In detail" in lines


def test_every_row_of_a_sweep_over_two_paths_says_which_it_is(two_paths: AuditResult) -> None:
    points = [record.sweep for record in two_paths.measurements]
    output = (
        Terminal(width=80)
        .render([two_paths])
        .partition("\nSweep of data.rows: records")[2]
        .partition("\nRuntime")[0]
    )
    markdown = (
        Markdown()
        .render([two_paths])
        .partition("### Sweep of data.rows: records")[2]
        .partition("### Runtime")[0]
    )
    for point in points:
        assert f"data.rows = {point['data.rows']}  " in output
        assert (
            f"| data.rows = {point['data.rows']}; replicates = {point['replicates']} |" in markdown
        )


def outside_of_blocks(text: str) -> str:
    """Return a Markdown text without its fenced blocks."""
    return re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def texts(blocks: list[tree.Block], medium: str) -> Iterator[str]:
    """Yield every text that a medium has a place for, as the tree holds it."""
    for block in tree.shown(blocks, medium):
        match block:
            case tree.Section(title=title, blocks=held) | tree.Fold(summary=title, blocks=held):
                yield title
                yield from texts([*held], medium)
            case tree.Paragraph(text=text):
                yield tree.said(text)
            case tree.Items(lines=lines):
                yield from map(tree.said, lines)
            case tree.Terms(terms=terms):
                yield from (one.meaning for one in terms)
            case tree.Verdicts(found=found):
                yield from (text for one in found for text in (one.label, one.sentence))
            case tree.Checks(found=checks):
                yield from (
                    text
                    for one in checks
                    for text in (one.status, one.observed, one.bound, one.why)
                )
            case tree.Matrix(rows=compared):
                yield from (
                    text
                    for row in compared
                    for cell in row.cells
                    for text in (cell.error, cell.single, cell.right, cell.gap)
                )
            case tree.Table():
                kept, more = tree.cut(block.rows, block.most, medium, block.what)
                yield from (
                    line.rstrip(".")
                    for row in kept
                    for cell in row.cells
                    for line in cell.split("\n")
                    if cell != "–"
                )
                yield more


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow_after_first
def test_no_writer_loses_what_the_tree_holds(case: str, request: pytest.FixtureRequest) -> None:
    result = request.getfixturevalue(case)
    blocks = [*audit_document(result).sections]
    written = {
        tree.TERMINAL: Terminal(width=400).render([result]), tree.MARKDOWN: Markdown().render([result]),
        tree.PAGE: Page(Html().render([result])).text,
    }  # fmt: skip
    for medium, text in written.items():
        known, output = unwrapped(text), [*texts([*blocks], medium)]
        assert len(output) > 60
        for one in output:
            wanted = unwrapped(markdown_safe(one) if medium == tree.MARKDOWN else clean(one))
            assert wanted in known or wanted.replace("x̂", "x′") in known, (medium, one)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_terminal_of_any_width_has_every_sentence_and_figure(
    failed: AuditResult, width: int
) -> None:
    document, text = audit_document(failed), unwrapped(Terminal(width=width).render([failed]))
    kinds = (tree.Paragraph, tree.Items, tree.Fold, tree.Verdicts, tree.Checks, tree.Matrix)
    for section in document.sections:
        for one in texts(
            [block for block in section.blocks if isinstance(block, kinds)], tree.TERMINAL
        ):
            assert unwrapped(clean(one)) in text
