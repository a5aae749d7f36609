"""The report as Markdown, for pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from auditor.registry import register
from auditor.results.renderer import clean

from .figures.figures import Text, said
from .layout import document as tree
from .layout.audit import DocumentRenderer


@register
class Markdown(DocumentRenderer):
    """The page as Markdown, with tables for charts and the scenario as code."""

    name = "markdown"
    suffix: ClassVar[str] = ".md"

    def written(self, documents: Sequence[tree.Document]) -> str:
        """Return one section per document after a summary of several."""
        lead = [f"# {len(documents)} audits\n", _table(tree.overview(documents))]
        return "\n".join([*(lead if len(documents) > 1 else []), *map(_document, documents)])


def safe(text: Text) -> str:
    """Escape Markdown and HTML markup, table separators and links."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", clean(said(text)))
    swaps = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": ":&#8203;//", "@": "&#64;"}
    for sign, entity in swaps.items():
        escaped = escaped.replace(sign, entity)
    return escaped


def _document(document: tree.Document) -> str:
    alone = document.kind == "comparison" and document.overview is None
    title = f"# {safe(document.headline)}\n" if alone else f"## {safe(document.name)}\n"
    outcome = (
        [tree.Paragraph(document.headline)] if document.kind == "comparison" and not alone else []
    )
    opening = _blocks([*document.opening, *outcome])
    return "\n".join([title, *opening, *_blocks(document.sections, 2 if alone else 3)])


def _blocks(blocks: Iterable[tree.Block], level: int = 3) -> list[str]:
    return [
        _section(block, level) if isinstance(block, tree.Section) else WRITERS[type(block)](block)
        for block in tree.shown(blocks, tree.MARKDOWN)
    ]


def _section(section: tree.Section, level: int) -> str:
    title = f"{'#' * level} {safe(section.title)}\n"
    return "\n".join([title, *_blocks(section.blocks, level + 1)])


def _first(block: tree.First) -> str:
    one = block.headline
    lines = [
        f"**{one.mark} {safe(one.gate)}**",
        safe(one.number),
        safe(one.bar.text if one.bar else ""),
    ]
    points = _list(f"{begin} {safe(text)}".removeprefix("· ") for begin, text in block.points)
    return "\n\n".join([*filter(None, lines), points])


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


def _table(block: tree.Table) -> str:
    heads, rows_of, more = block.grid(tree.MARKDOWN)
    lines = [[*heads], ["---"] * len(heads), *rows_of]
    table = "".join(
        f"| {' | '.join(safe(cell.replace(chr(10), '; ')) for cell in line)} |\n" for line in lines
    )
    return table + (f"\n{more}.\n" if more else "")


WRITERS: dict[type[tree.Block], Callable[[Any], str]] = {
    tree.First: _first,
    tree.Paragraph: _paragraph,
    tree.Items: _items,
    tree.Terms: _terms,
    tree.Code: _code,
    tree.Table: _table,
    tree.Matrix: lambda block: _table(block.table()),
    tree.Bars: lambda block: _table(block.table),
    tree.Checks: lambda block: _table(block.table),
}
