"""Document tree of a report, independent of medium and escaping.

The modules `audit`, `advice` and `changes` build trees. Each writer renders one and escapes every
text. A block lists the media that show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..figures.curves import Line
from ..figures.figures import clipped
from ..figures.reading import Reading
from ..figures.severity import Severity
from ..wording.card import Verdict
from ..wording.detail import Assumption, Fact, shortened
from ..wording.method import Definition
from ..wording.sentences import capital
from ..wording.words import Check

ALIAS = "knowledge "
"""Prefix of a short name of a state of knowledge."""
TERMINAL, MARKDOWN, PAGE = "terminal", "markdown", "page"
TEXT, EVERYWHERE = (TERMINAL, MARKDOWN), (TERMINAL, MARKDOWN, PAGE)


class Name(str):
    """A name from data or scenario; pages isolate its writing direction."""

    __slots__ = ()


Text = str | tuple[str, ...]
"""A text, or its pieces, in which names are `Name`."""


def said(text: Text) -> str:
    """Join the pieces of a text."""
    return text if isinstance(text, str) else "".join(text)


def sentence(text: str) -> str:
    """End a text with one full stop."""
    return f"{text.rstrip().rstrip('.')}."


@dataclass(frozen=True)
class Block:
    """One element of a section."""

    media: tuple[str, ...] = field(default=EVERYWHERE, kw_only=True)


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

    lines: Sequence[Text]
    most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms(Block):
    """Terms and their definitions."""

    terms: Sequence[Definition]
    role: Literal["definitions", "provenance", "references"] = "definitions"


@dataclass(frozen=True)
class Code(Block):
    """Text to copy, never broken or cut; the page folds untitled text."""

    key: str
    language: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Fold(Block):
    """Blocks under a summary line; a page can close the group."""

    summary: str
    blocks: Sequence[Block]
    open: bool = True


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
    """A table.

    Attributes
    ----------
    first, columns : str, sequence of str
        Heads; ``group`` is the head of the rows' groups.
    kind : str
        ``schemes`` has one column per scheme and may be split; ``plain`` and ``figures`` stay
        whole. ``entries`` holds sentences, which text writes row by row.
    what : str
        Name of the rows beyond the limit ``most``.
    """

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]
    kind: Literal["schemes", "plain", "figures", "entries"] = "schemes"
    what: str = "rows"
    group: str = ""
    most: Mapping[str, int] = field(default_factory=dict)

    def sentences(self, row: Row) -> str:
        """Write a row of entries as sentences, each cell after its head."""
        first, *others = (
            " ".join(sentence(line) for line in cell.split("\n")) for cell in row.cells
        )
        heads = (
            f"{capital(head)}: {text}"
            for head, text in zip(self.columns[1:], others, strict=True)
            if text != "–."
        )
        return " ".join([f"({row.below}): {first}" if row.below else first, *heads])


class Detail(NamedTuple):
    """A comparison cell's facts and assumptions, or the reason for its gap."""

    attack: str
    scheme: str
    facts: Sequence[Fact] = ()
    assumed: Sequence[Assumption] = ()
    why: str = ""

    def lines(self, between: str) -> list[str]:
        """Return one line of facts, and one per assumption with a figure."""
        line = between.join(
            f"{clipped(fact.term, 60)}: {fact.text}" for fact in shortened(self.facts)
        )
        return [line, *(f"{one.who}: {one.text} {one.here}" for one in self.assumed if one.here)]


class Graded(NamedTuple):
    """A comparison cell as text.

    Attributes
    ----------
    gap : str
        ``n/a``, ``✗ failed`` or ``–`` instead of figures.
    error, right : str
        The worst coalition's normalized error and share of right guesses.
    single, alone : str
        Its best member's error, or the copy's name if it has one copy.
    exposed : tuple of str
        Attribute graded worse than all together, and its error.
    order : float
        Sort key of a column.
    """

    gap: str
    severity: Severity | None = None
    error: str = ""
    right: str = ""
    single: str = ""
    alone: str = ""
    exposed: tuple[str, ...] = ()
    mark: str = ""
    order: float | None = None
    detail: Detail | None = None


class Adversary(NamedTuple):
    """An adversary against every scheme."""

    attack: str
    knowledge: str
    cells: Sequence[Graded]


@dataclass(frozen=True)
class Matrix(Block):
    """The comparison and the severity scale.

    ``pools`` means that a coalition of two or more was measured. ``brief`` has one line per strong
    adversary.
    """

    schemes: Sequence[str]
    rows: Sequence[Adversary]
    pools: bool
    brief: bool = False


@dataclass(frozen=True)
class Details(Block):
    """Details as text, for media without cells that open."""

    found: Sequence[Detail]


@dataclass(frozen=True)
class Verdicts(Block):
    """A card per scheme; ``point`` is the default sweep point."""

    found: Sequence[Verdict]
    point: str
    brief: bool = False


@dataclass(frozen=True)
class Checks(Block):
    """Expectations and outcomes; ``brief`` explains only failures."""

    found: Sequence[Check]
    brief: bool = False


@dataclass(frozen=True)
class Figure(Block):
    """A chart by key for the page, or ``curves`` for a terminal plot."""

    key: str
    curves: Sequence[Line] = ()


@dataclass(frozen=True)
class Section(Block):
    """A part with a heading."""

    key: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A report on one audit, or on the changes between two.

    Attributes
    ----------
    name, headline : str
        Subject and outcome.
    state, mark : str
        The outcome as a word and a character.
    facts : sequence of str
        Table and time.
    summary : str
        Count of verdicts.
    opening : sequence of Block
        Blocks before the sections.
    overview : Row or None
        Row in a table of several audits.
    reading : Reading or None
        Source of the page's charts.
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
    summary: str = ""
    overview: Row | None = None
    reading: Reading | None = None


def shown(blocks: Iterable[Block], medium: str) -> list[Block]:
    """Return a medium's blocks, without empty sections and folds."""
    return [
        one
        for one in blocks
        if medium in one.media
        and (not isinstance(one, (Section, Fold)) or shown(one.blocks, medium))
    ]


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
