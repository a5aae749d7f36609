"""Document of a comparison of two audits, worst changes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wording.differences import Part, basis, headline, more_text, parts
from ..wording.method import Definition
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    Block,
    Document,
    Items,
    Name,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
)

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison

MOST = {TERMINAL: 30, MARKDOWN: 200, PAGE: 500}
"""Listed differences per kind; the JSON format has all."""


def changes_document(comparison: Comparison, number: int = 1) -> Document:
    """Return the comparison's document; ``number`` is its place among several."""
    compared = [Definition("Old", "", comparison.old), Definition("New", "", comparison.now)]
    opening = [Terms(compared, "provenance"), Paragraph(basis(comparison), "note")]
    mark, state, word = ("✗", "worse", "worse") if comparison.worse else ("✓", "better", "no worse")
    if not comparison.compared and not comparison.worse:
        mark, state, word = "?", "open", "not compared"
    sections = [
        Section(part.key, f"{part.title} ({part.size:,})", _blocks(part))
        for part in parts(comparison)
    ]
    key, title = (
        "comparison" if number == 1 else f"comparison-{number}",
        comparison.name or "Comparison of two audits",
    )
    cells = (f"{mark} {word}", f"{comparison.compared:,}", headline(comparison))
    row = Row(title, cells, target=key) if comparison.name else None
    return Document(
        key, "comparison", title, headline(comparison), state, mark, opening, sections, overview=row
    )


def _blocks(part: Part) -> list[Block]:
    rows = [
        Row(f"{row.metric}: {row.cell}", (row.old, row.new, row.change), more_text(row))
        for row in part.rows
    ]
    lines = [Items([(Name(line),) for line in part.lines], MOST)] if part.lines else []
    return [
        *lines,
        *(
            [Table("cell", ("old", "new", "change"), rows, "figures", "differences", most=MOST)]
            if rows
            else []
        ),
    ]
