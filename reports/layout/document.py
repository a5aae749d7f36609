"""Document tree of a report, independent of medium and escaping.

A block lists the media that show it. Writers escape every text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..charts.chart import Chart
from ..figures.figures import Severity, Text, clipped, percent
from ..wording.detail import Fact
from ..wording.headline import Bar, Headline
from ..wording.sentences import Definition, share
from ..wording.words import Check

TERMINAL, MARKDOWN, PAGE = "terminal", "markdown", "page"
TEXT, EVERYWHERE = (TERMINAL, MARKDOWN), (TERMINAL, MARKDOWN, PAGE)


def sentence(text: str) -> str:
    """End a text with one full stop."""
    return f"{text.rstrip().rstrip('.')}."


@dataclass(frozen=True)
class Block:
    """One element of a section."""

    media: tuple[str, ...] = field(default=EVERYWHERE, kw_only=True)

    def content(self, medium: str) -> object:
        """Return rows or text, which are false in an empty block."""
        return getattr(self, "rows", getattr(self, "text", True))


@dataclass(frozen=True)
class Paragraph(Block):
    """Sentences, optionally after the ``term`` that they explain.

    A ``lead`` follows a heading. A ``hint`` is for a screen, not for paper.
    """

    text: Text
    role: Literal["plain", "lead", "hint", "note", "alert"] = "plain"
    term: str = ""


@dataclass(frozen=True)
class Items(Block):
    """A list; ``most`` limits its lines by medium."""

    rows: Sequence[Text]
    most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms(Block):
    """Terms and their definitions."""

    rows: Sequence[Definition]
    role: Literal["definitions", "provenance", "references"] = "definitions"


@dataclass(frozen=True)
class Code(Block):
    """Text to copy, never broken or cut; the page folds untitled text."""

    key: str
    language: str
    text: str
    title: str = ""


class Detail(NamedTuple):
    """A comparison cell's facts and assumptions, or the reason for its gap."""

    attack: str
    scheme: str
    facts: Sequence[Fact] = ()
    assumed: Sequence[Fact] = ()
    why: str = ""


class Graded(NamedTuple):
    """A comparison cell as text: ``gap``, or ``figure`` and what is ``below`` it.

    ``order`` is the sort key of a column.
    """

    gap: str
    severity: Severity | None = None
    figure: str = ""
    below: Sequence[str] = ()
    mark: str = ""
    order: float | None = None
    detail: Detail | None = None

    def text(self, *, brief: bool) -> str:
        """Return the grade, the figure and, unless ``brief``, what follows it."""
        if self.severity is None:
            return self.gap
        if brief and self.order is not None and self.order >= 0.0005:
            # three decimals for all neighbours, except values that would round to 0
            return f"{self.severity.word} {self.order:.3f}{self.mark}"
        first = f"{self.severity.word} {self.figure} {self.mark}".rstrip()
        return first.partition(" ±")[0] if brief else "\n".join([first, *self.below])


class Adversary(NamedTuple):
    """An adversary against every scheme; ``kind`` is its attack's kind."""

    attack: str
    knowledge: str
    kind: str
    cells: Sequence[Graded]


class Row(NamedTuple):
    """A row of a table.

    ``below`` follows the name, ``group`` joins neighbours, ``target`` is the row's document. In a
    cell, lines after the first are secondary.
    """

    name: str
    cells: Sequence[str]
    below: str = ""
    group: str = ""
    target: str = ""


@dataclass(frozen=True)
class Table(Block):
    """A table; ``group`` is the head of the rows' groups.

    ``schemes`` has one column per scheme and may be split; ``plain`` and ``figures`` stay whole.
    ``what`` names the rows beyond the limit ``most``.
    """

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]
    kind: Literal["schemes", "plain", "figures"] = "schemes"
    what: str = "rows"
    group: str = ""
    most: Mapping[str, int] = field(default_factory=dict)

    def grid(self, medium: str) -> tuple[list[str], list[list[str]], str]:
        """Return heads, rows and a note on the rows beyond the medium's limit."""
        rows, more = cut(self.rows, self.most, medium, self.what)
        groups = [self.group] if self.group else []
        lines = [
            [f"{row.name} {row.below}".rstrip(), *([row.group] if groups else []), *row.cells]
            for row in rows
        ]
        return [self.first, *groups, *self.columns], lines, more

    def table(self) -> Table:
        """Return the table."""
        return self


@dataclass(frozen=True)
class Matrix(Block):
    """The comparison, strongest adversary first, and the severity scale."""

    schemes: Sequence[str]
    rows: Sequence[Adversary]

    def table(self, *, brief: bool = False, most: int | None = None) -> Table:
        """Return the comparison as a table of text."""
        return Table(
            "attack",
            self.schemes,
            [
                Row(
                    clipped(row.attack, 14) if brief else row.attack,
                    [cell.text(brief=brief) for cell in row.cells],
                    "" if brief else row.kind,
                    row.knowledge,
                )
                for row in self.rows[:most]
            ],
            group="knowledge",
        )


@dataclass(frozen=True)
class First(Block):
    """The first screen."""

    headline: Headline

    @property
    def points(self) -> list[tuple[str, Text]]:
        """The reasons and the next step, each after its begin."""
        next_step = [("Next:", self.headline.action)] if self.headline.action else []
        return [*(("·", reason) for reason in self.headline.reasons), *next_step]


@dataclass(frozen=True)
class Bars(Block):
    """Exposure by scheme and attribute, against the target."""

    rows: Sequence[Bar]

    def table(self) -> Table:
        """Return the bars as a table of text."""
        heads = ("stays unknown", "from", "best copy alone", "target")
        rows = [
            Row(
                bar.attribute or "all",
                (
                    share(bar.left),
                    bar.who,
                    "–" if bar.single is None else percent(bar.single),
                    f"≥ {percent(bar.target)}",
                ),
                group=bar.scheme,
            )
            for bar in self.rows
        ]
        return Table("attribute", heads, rows, "plain", group="scheme")


@dataclass(frozen=True)
class Checks(Block):
    """Expectations and outcomes."""

    found: Sequence[Check]

    def table(self) -> Table:
        """Return the expectations as a table of text."""
        rows = [
            Row(
                one.stated + one.where,
                (f"{one.mark} {one.status}", one.observed, one.bound, one.why),
            )
            for one in self.found
        ]
        return Table("expectation", ("status", "observed", "bound", "why"), rows, "plain")


@dataclass(frozen=True)
class Figure(Block):
    """A chart of the page; a terminal draws it as a plot if it is ``drawn``."""

    chart: Chart


@dataclass(frozen=True)
class Section(Block):
    """A part with a heading; the page folds it unless it is ``first``."""

    key: str
    title: str
    blocks: Sequence[Block]
    first: bool = False

    def content(self, medium: str) -> object:
        """Return the medium's blocks."""
        return shown(self.blocks, medium)


@dataclass(frozen=True)
class Document:
    """A report on one audit, or on the changes between two.

    ``opening`` precedes the sections. ``overview`` is the row in a table of several audits.
    """

    id: str
    kind: Literal["audit", "comparison"]
    name: str
    headline: str
    state: str
    mark: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    facts: Sequence[str] = ()
    overview: Row | None = None

    @property
    def charts(self) -> list[Chart]:
        """The charts of the page."""
        return _charts(self.sections)


def _charts(blocks: Iterable[Block]) -> list[Chart]:
    found = []
    for block in blocks:
        found += [block.chart] if isinstance(block, Figure) else []
        found += _charts(block.blocks) if isinstance(block, Section) else []
    return found


def shown(blocks: Iterable[Block], medium: str) -> list[Block]:
    """Return a medium's blocks that are not empty; none if all are leads."""
    found = [one for one in blocks if medium in one.media and one.content(medium)]
    leads = [one for one in found if isinstance(one, Paragraph) and one.role == "lead"]
    return found if len(leads) < len(found) else []


def cut(
    found: Sequence[Any], most: Mapping[str, int], medium: str, what: str = ""
) -> tuple[Sequence[Any], str]:
    """Return the rows within a medium's limit, and a note on the others."""
    kept = found[: most.get(medium)]
    hidden = len(found) - len(kept)
    return kept, f"… and {hidden:,} more {what}".rstrip() if hidden else ""


def overview(documents: Sequence[Document]) -> Table:
    """Return a table of several audits or comparisons."""
    rows = [one.overview for one in documents if one.overview]
    if any(one.kind == "comparison" for one in documents):
        return Table("audit", ("outcome", "cells compared", "what changed"), rows, "plain")
    return Table("audit", ("outcome", "expectations", "strongest reconstruction"), rows, "plain")
