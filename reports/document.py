"""Document tree of a report, independent of medium and escaping.

A block lists the media that show it. Writers escape every text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple

from auditor.base.types import Names, frozen

from .charts import Chart
from .figures import percent, share
from .matrix import MatrixRow
from .sentences import Check, Definition, capital
from .verdict import MARKS, Exposure, State

TERMINAL, MARKDOWN, PAGE = EVERYWHERE = ("terminal", "markdown", "page")
TEXT = (TERMINAL, MARKDOWN)
Most = Mapping[str, int]
"""Largest number of rows by medium."""


def sentence(text: str) -> str:
    """End a text with one full stop."""
    return f"{text.rstrip().rstrip('.')}."


@frozen
class Block:
    """One element of a section."""

    media: Names = field(default=EVERYWHERE, kw_only=True)

    def content(self, medium: str) -> object:
        """Rows or text, which are false in an empty block."""
        return getattr(self, "rows", getattr(self, "text", True))


@frozen
class Paragraph(Block):
    """Sentences, optionally after the ``term`` that they explain.

    A ``lead`` follows a heading. A ``hint`` is for a screen, not for paper.
    """

    text: str
    role: Literal["plain", "lead", "hint", "note", "alert"] = "plain"
    term: str = ""


@frozen
class Items(Block):
    """A list; ``most`` limits its lines by medium."""

    rows: Names
    most: Most = field(default_factory=dict)


@frozen
class Terms(Block):
    """Terms and their definitions."""

    rows: Sequence[Definition]
    role: Literal["definitions", "provenance", "references"] = "definitions"


@frozen
class Code(Block):
    """Text to copy, never broken or cut; the page folds untitled text."""

    key: str
    language: str
    text: str
    title: str = ""


class Row(NamedTuple):
    """A row of a table; lines of a cell after the first are secondary.

    ``below`` follows the name, ``group`` joins neighbours, ``target`` is the row's document.
    """

    name: str
    cells: Names
    below: str = ""
    group: str = ""
    target: str = ""


@frozen
class Table(Block):
    """A table; ``group`` is the head of the rows' groups.

    ``schemes`` has one column per scheme and may be split; ``plain`` and ``figures`` stay whole.
    ``what`` names the rows beyond the limit ``most``.
    """

    first: str
    columns: Names
    rows: Sequence[Row]
    kind: Literal["schemes", "plain", "figures"] = "schemes"
    what: str = "rows"
    group: str = ""
    most: Most = field(default_factory=dict)

    def grid(self, medium: str) -> tuple[list[str], list[list[str]], str]:
        """Heads, rows and a note on the rows beyond the medium's limit."""
        rows, more = cut(self.rows, self.most, medium, self.what)
        lines = [
            [f"{row.name} {row.below}".rstrip(), *[row.group] * bool(self.group), *row.cells]
            for row in rows
        ]
        return [self.first, *[self.group] * bool(self.group), *self.columns], lines, more

    def table(self) -> Table:
        """Table."""
        return self


@frozen
class Matrix(Block):
    """The comparison, strongest adversary first, and the severity scale."""

    schemes: Names
    rows: Sequence[MatrixRow]

    def table(self, *, brief: bool = False, most: int | None = None) -> Table:
        """Comparison as a table of text."""
        rows = [
            Row(
                row.attack,
                [cell.text(brief=brief) for cell in row.cells],
                "" if brief else row.kind,
                capital(row.knows),
            )
            for row in self.rows[:most]
        ]
        return Table("attack", self.schemes, rows, group="knowledge")


@frozen
class First(Block):
    """First screen: gate, number with its bar, reasons and next step.

    For a paper's figure, the gate counts the claims.
    """

    state: State
    gate: str
    number: str = ""
    bar: Exposure | None = None
    reasons: Names = ()
    action: str = ""

    @property
    def mark(self) -> str:
        """Character of the state."""
        return MARKS[self.state]

    @property
    def points(self) -> list[tuple[str, str]]:
        """The reasons and the next step, each after its begin."""
        found = [*(("·", reason) for reason in self.reasons), ("Next:", self.action)]
        return [one for one in found if one[1]]


@frozen
class Bars(Block):
    """Exposure by scheme and attribute, against the target."""

    rows: Sequence[Exposure]

    def table(self) -> Table:
        """Bars as a table of text."""
        rows = []
        for bar in self.rows:
            alone = "–" if bar.single is None else percent(bar.single)
            cells = (share(bar.left), bar.who, alone, f"≥ {percent(bar.target)}")
            rows.append(Row(bar.name, cells, group=bar.scheme))
        heads = ("stays unknown", "from", "best copy alone", "target")
        return Table("attribute", heads, rows, "plain", group="scheme")


@frozen
class Checks(Block):
    """Expectations and outcomes; a heading counts those that are left out."""

    found: Sequence[Check]

    def table(self) -> Table:
        """Expectations as a table of text."""
        rows = [
            Row(one.stated + one.where, (f"{one.mark} {one.status}", *one[4:]))
            for one in self.found
        ]
        return Table("expectation", ("status", "observed", "bound", "why"), rows, "plain")


@frozen
class Drawing(Block):
    """A chart of the page; a terminal draws it as a plot if it is ``drawn``."""

    chart: Chart


@frozen
class Section(Block):
    """A part with a heading; the page folds it unless it is ``first``."""

    key: str
    title: str
    blocks: Sequence[Block]
    first: bool = False

    def content(self, medium: str) -> object:
        """Medium's blocks."""
        return shown(self.blocks, medium)


@frozen
class Document:
    """A report on one audit, or on the changes between two.

    ``opening`` precedes the sections. ``overview`` is the row in a table of several audits.
    """

    id: str
    kind: Literal["audit", "comparison"]
    name: str
    headline: str
    mark: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    facts: Names = ()
    overview: Row | None = None

    @property
    def charts(self) -> bool:
        """Whether the page has a chart."""
        return _has_chart(self.sections)


def _has_chart(blocks: Iterable[Block]) -> bool:
    return any(
        _has_chart(one.blocks) if isinstance(one, Section) else isinstance(one, Drawing)
        for one in blocks
    )


def shown(blocks: Iterable[Block], medium: str) -> list[Block]:
    """Medium's blocks that are not empty; none if all are leads."""
    found = [one for one in blocks if medium in one.media and one.content(medium)]
    return found if any(getattr(one, "role", "") != "lead" for one in found) else []


def cut(found: Sequence[Any], most: Most, medium: str, what: str = "") -> tuple[Sequence[Any], str]:
    """Rows within a medium's limit, and a note on the others."""
    kept = found[: most.get(medium)]
    hidden = len(found) - len(kept)
    return kept, f"… and {hidden:,} more {what}".rstrip() if hidden else ""


def overview(documents: Sequence[Document]) -> Table:
    """Table of several audits or comparisons."""
    rows = [one.overview for one in documents if one.overview]
    audits = documents[0].kind == "audit"
    last = (
        ("expectations", "strongest reconstruction")
        if audits
        else ("cells compared", "what changed")
    )
    return Table("audit", ("outcome", *last), rows, "plain")
