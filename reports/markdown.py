"""The report as Markdown, for pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer, clean

from .layout import document as tree
from .layout.advice import advice_document
from .layout.audit import audit_document
from .layout.changes import changes_document
from .layout.grids import Grid, of_checks, of_table

if TYPE_CHECKING:
    from auditor.results.advice import Advice
    from auditor.results.comparison import Comparison


@register
class Markdown(Renderer):
    """The page as Markdown, with tables for charts and the scenario as code."""

    name = "markdown"
    suffix: ClassVar[str] = ".md"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the document: one section per audit after a summary of several."""
        return _documents([audit_document(result) for result in results])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the differences between two audits, worst first."""
        return _documents([changes_document(comparison) for comparison in comparisons])

    def render_advice(self, advice: Advice) -> str:
        """Return the recommended release and its reasons."""
        return _document(advice_document(advice))


def safe(text: tree.Text) -> str:
    """Escape Markdown and HTML markup, table separators and links."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", clean(tree.said(text)))
    return (
        escaped.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("://", ":&#8203;//")
        .replace("@", "&#64;")
    )


def _documents(documents: Sequence[tree.Document]) -> str:
    lead = (
        [f"# {len(documents)} audits\n", _table(tree.overview(documents))]
        if len(documents) > 1
        else []
    )
    return "\n".join([*lead, *map(_document, documents)])


def _document(document: tree.Document) -> str:
    """Return an audit with second-level heading; a lone comparison gets ``#``."""
    if document.kind == "comparison" and document.overview is None:
        return "\n".join(
            [
                f"# {safe(document.headline)}\n",
                *_blocks(document.opening),
                *_blocks(document.sections, level=2),
            ]
        )
    summary = tree.Paragraph(f"{document.headline}. {document.summary}".rstrip())
    return "\n".join(
        [
            f"## {safe(document.name)}\n",
            *_blocks([*document.opening, summary]),
            *_blocks(document.sections),
        ]
    )


def _blocks(blocks: Iterable[tree.Block], level: int = 3) -> list[str]:
    made = tree.shown(blocks, tree.MARKDOWN)
    return [
        _section(block, level) if isinstance(block, tree.Section) else WRITERS[type(block)](block)
        for block in made
    ]


def _section(section: tree.Section, level: int) -> str:
    return "\n".join(
        [f"{'#' * level} {safe(section.title)}\n", *_blocks(section.blocks, level + 1)]
    )


def _paragraph(block: tree.Paragraph) -> str:
    text = f"**{block.term}** {safe(block.text)}" if block.term else safe(block.text)
    return f"**{text}**\n" if block.role == "alert" else f"{text}\n"


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _items(block: tree.Items) -> str:
    lines, more = tree.cut(block.lines, block.most, tree.MARKDOWN)
    return _list(map(safe, filter(None, (*lines, more))))


def _terms(block: tree.Terms) -> str:
    return _list(
        f"**{safe(name)}**: {safe(f'{formula}: {meaning}' if formula else meaning)}"
        for name, formula, meaning in block.terms
    )


def _code(block: tree.Code) -> str:
    longest = max(map(len, re.findall("`+", block.text)), default=0)
    fence = "`" * max(3, longest + 1)
    title = f"{safe(block.title)}:\n\n" if block.title else ""
    return f"{title}{fence}{block.language}\n{block.text.rstrip(chr(10))}\n{fence}\n"


def _fold(block: tree.Fold) -> str:
    return "\n".join([f"{safe(block.summary)}:\n", *_blocks(block.blocks)])


def _verdicts(block: tree.Verdicts) -> str:
    return _list(
        f"**{safe(f'{one.scheme}: {one.label}.')}** {safe(one.text)}" for one in block.found
    )


def _details(block: tree.Details) -> str:
    lines = ((f"{one.attack} against {one.scheme}.", *one.lines("; ")) for one in block.found)
    return _list(
        f"**{safe(title)}** {safe(' '.join([f'{facts}.', *assumed]))}"
        for title, facts, *assumed in lines
    )


def _checks(block: tree.Checks) -> str:
    return _grid(of_checks(block))


def _matrix(block: tree.Matrix) -> str:
    rows = [[row.attack, row.knowledge, *map(_graded, row.cells)] for row in block.rows]
    return _grid(Grid(["attack", "knowledge", *block.schemes], rows))


def _graded(cell: tree.Graded) -> str:
    if cell.severity is None:
        return cell.gap
    error = f"{cell.error} (single {cell.single})" if cell.single else cell.error
    figures = (error, f"{cell.right} right" if cell.right else "", " ".join(cell.exposed))
    return f"{cell.severity.word}: {'; '.join(filter(None, figures))} {cell.mark}".rstrip()


def _table(block: tree.Table) -> str:
    if block.kind == "entries":
        rows, _ = tree.cut(block.rows, block.most, tree.MARKDOWN)
        return _list(f"**{safe(row.name)}** {safe(block.sentences(row))}" for row in rows)
    return _grid(of_table(block, tree.MARKDOWN))


def _grid(grid: Grid) -> str:
    lines = [[*grid.heads], ["---"] * len(grid.heads), *grid.rows]
    table = "".join(
        f"| {' | '.join(safe(cell.replace(chr(10), '; ')) for cell in line)} |\n" for line in lines
    )
    return table + (f"\n{grid.more}.\n" if grid.more else "")


WRITERS: dict[type[tree.Block], Callable[[Any], str]] = {
    tree.Paragraph: _paragraph,
    tree.Items: _items,
    tree.Terms: _terms,
    tree.Code: _code,
    tree.Fold: _fold,
    tree.Verdicts: _verdicts,
    tree.Details: _details,
    tree.Checks: _checks,
    tree.Matrix: _matrix,
    tree.Table: _table,
}
