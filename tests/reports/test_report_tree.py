"""The tree of a report: its sections, and that no writer loses what it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_report_html import Page

from auditor.results.renderer import clean
from auditor_reports.figures.figures import said
from auditor_reports.html import Html
from auditor_reports.layout import document as tree
from auditor_reports.layout import terminal_writer
from auditor_reports.layout.audit import audit_document
from auditor_reports.markdown import WRITERS as markdown_writers
from auditor_reports.markdown import Markdown
from auditor_reports.markdown import safe as markdown_safe
from auditor_reports.terminal import Terminal
from auditor_reports.wording.sentences import share
from tests.programs import ROOT

CASES = ("quickstart", "prefixes", "failed", "swept", "hostile")


def test_every_writer_writes_every_kind_of_block() -> None:
    """A kind that a writer does not know would be an error of the reports that hold one."""
    kinds = {*tree.Block.__subclasses__()}
    assert {*terminal_writer.WRITERS} == kinds
    # a section has a level; what is drawn has no place in Markdown
    assert {*markdown_writers} == kinds - {tree.Section, tree.Figure}
    assert all(
        f'"{kind.__name__}":' in (ROOT / "reports/templates/blocks.html.j2").read_text()
        for kind in kinds
    )


def texts(blocks: list[tree.Block], medium: str) -> Iterator[str]:
    """Yield every text that a medium has a place for, as the tree holds it."""
    for block in tree.shown(blocks, medium):
        match block:
            case tree.Section(title=title, blocks=held):
                yield title
                yield from texts([*held], medium)
            case tree.Paragraph(text=text):
                yield said(text)
            case tree.Items(lines=lines):
                yield from map(said, lines)
            case tree.Terms(terms=terms):
                yield from (one.meaning for one in terms)
            case tree.First(headline=one):
                yield from map(said, (one.gate, one.number, *one.reasons, one.action))
            case tree.Bars(found=bars):
                yield from (share(bar.left) for bar in bars)
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
                    for text in (cell.figure, *cell.below, cell.gap)
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
    return " ".join(text.replace("`", "").split())  # the page has code elements


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow_after_first
def test_no_writer_loses_what_the_tree_holds(case: str, request: pytest.FixtureRequest) -> None:
    result = request.getfixturevalue(case)
    document = audit_document(result)
    blocks = [*document.opening, *document.sections]
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
