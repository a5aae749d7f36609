"""The report as Markdown, for pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from auditor.registry import register

from .audit_document import DocumentRenderer
from .document import (
    MARKDOWN,
    Block,
    Code,
    Document,
    First,
    Items,
    Paragraph,
    Section,
    Terms,
    cut,
    overview,
    shown,
)
from .figures import said


@register
class Markdown(DocumentRenderer):
    """The page as Markdown, with tables for charts and the scenario as code."""

    name = "markdown"
    suffix: ClassVar[str] = ".md"

    def written(self, documents: Sequence[Document]) -> str:
        lead = [f"# {len(documents)} audits\n", _table(overview(documents))]
        return "\n".join([*(lead if len(documents) > 1 else []), *map(_document, documents)])


def safe(text: str) -> str:
    """Escape Markdown and HTML markup, table separators and links."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", said(text))
    swaps = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": ":&#8203;//", "@": "&#64;"}
    for sign, entity in swaps.items():
        escaped = escaped.replace(sign, entity)
    return escaped


def _document(document: Document) -> str:
    alone = document.kind == "comparison" and document.overview is None
    title = f"# {safe(document.headline)}\n" if alone else f"## {safe(document.name)}\n"
    outcome = [Paragraph(document.headline)] if document.kind == "comparison" and not alone else []
    opening = _blocks([*document.opening, *outcome])
    return "\n".join([title, *opening, *_blocks(document.sections, 2 if alone else 3)])


def _blocks(blocks: Iterable[Block], level: int = 3) -> list[str]:
    return [
        _section(block, level)
        if isinstance(block, Section)
        else WRITERS.get(type(block), _table)(block)
        for block in shown(blocks, MARKDOWN)
    ]


def _section(section: Section, level: int) -> str:
    title = f"{'#' * level} {safe(section.title)}\n"
    return "\n".join([title, *_blocks(section.blocks, level + 1)])


def _first(block: First) -> str:
    one = block.headline
    lines = [
        f"**{one.mark} {safe(one.gate)}**",
        safe(one.number),
        safe(one.bar.text if one.bar else ""),
    ]
    points = _list(f"{begin} {safe(text)}".removeprefix("· ") for begin, text in block.points)
    return "\n\n".join([*filter(None, lines), points])


def _paragraph(block: Paragraph) -> str:
    text = f"**{block.term}** {safe(block.text)}" if block.term else safe(block.text)
    return f"**{text}**\n" if block.role == "alert" else f"{text}\n"


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _items(block: Items) -> str:
    lines, more = cut(block.rows, block.most, MARKDOWN)
    return _list(map(safe, filter(None, (*lines, more))))


def _terms(block: Terms) -> str:
    return _list(
        f"**{safe(name)}**: {safe(f'{formula}: {meaning}' if formula else meaning)}"
        for name, formula, meaning in block.rows
    )


def _code(block: Code) -> str:
    longest = max(map(len, re.findall("`+", block.text)), default=0)
    fence = "`" * max(3, longest + 1)
    title = f"{safe(block.title)}:\n\n" if block.title else ""
    return f"{title}{fence}{block.language}\n{block.text.rstrip(chr(10))}\n{fence}\n"


def _table(block: Any) -> str:
    heads, rows_of, more = block.table().grid(MARKDOWN)
    lines = [[*heads], ["---"] * len(heads), *rows_of]
    table = "".join(
        f"| {' | '.join(safe(cell.replace(chr(10), '; ')) for cell in line)} |\n" for line in lines
    )
    return table + (f"\n{more}.\n" if more else "")


WRITERS: dict[type[Block], Callable[[Any], str]] = {
    First: _first,
    Paragraph: _paragraph,
    Items: _items,
    Terms: _terms,
    Code: _code,
}
