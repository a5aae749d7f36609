"""A report as a tree: what is said and in which order; nothing of how a medium lays it out, and nothing escaped.

The modules `audit` and `changes` build trees; each writer walks one and makes every text safe for its medium. A block that only some
media have a place for names them: what the page draws, text tells in tables.
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
"""What a short name of a state of knowledge begins with."""
TERMINAL, MARKDOWN, PAGE = "terminal", "markdown", "page"
TEXT, EVERYWHERE = (TERMINAL, MARKDOWN), (TERMINAL, MARKDOWN, PAGE)


class Name(str):
    """A name that comes from the data or the scenario; a page keeps its direction of writing apart from the text around it."""

    __slots__ = ()


Text = str | tuple[str, ...]
"""A text, or the pieces of one, of which names are `Name`."""


def said(text: Text) -> str:
    """Return a text without the difference between names and words."""
    return text if isinstance(text, str) else "".join(text)


def sentence(text: str) -> str:
    """End a text with a full stop."""
    return f"{text.rstrip().rstrip('.')}."


@dataclass(frozen=True)
class Block:
    """One thing that a section holds."""

    media: tuple[str, ...] = field(default=EVERYWHERE, kw_only=True)


@dataclass(frozen=True)
class Paragraph(Block):
    """Sentences: a ``lead`` after a heading, a ``hint`` for a screen, not for paper; a text goes on from the ``term`` that it explains."""

    text: Text
    role: Literal["plain", "lead", "hint", "note", "alert"] = "plain"
    term: str = ""


@dataclass(frozen=True)
class Items(Block):
    """A list; ``most`` bounds its lines by medium."""

    lines: Sequence[Text]
    most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms(Block):
    """Terms and what they mean."""

    terms: Sequence[Definition]
    role: Literal["definitions", "provenance", "references"] = "definitions"


@dataclass(frozen=True)
class Code(Block):
    """Text to be copied, never broken or cut, safe for every medium as it is; without a title the page folds it under its language."""

    key: str
    language: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Fold(Block):
    """Blocks under a line that says what they are; a page can close them."""

    summary: str
    blocks: Sequence[Block]
    open: bool = True


class Row(NamedTuple):
    """A row of a table: what stands ``below`` its name, the ``group`` that it is in with its neighbours, the document that it speaks of.

    In a cell, what stands below follows a line end.
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
        Heads; ``group`` is that of the rows' groups.
    kind : str
        ``schemes`` has a column a scheme, and is split where they do not fit; ``plain`` and ``figures`` stay whole; ``entries`` holds
        sentences, which text tells row by row.
    what : str
        What rows are called that are left out of more than ``most`` allows the medium.
    """

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]
    kind: Literal["schemes", "plain", "figures", "entries"] = "schemes"
    what: str = "rows"
    group: str = ""
    most: Mapping[str, int] = field(default_factory=dict)

    def sentences(self, row: Row) -> str:
        """Tell a row of entries: what its first cell says, then the others, each after its head."""
        first, *others = (" ".join(sentence(line) for line in cell.split("\n")) for cell in row.cells)
        heads = (f"{capital(head)}: {text}" for head, text in zip(self.columns[1:], others, strict=True) if text != "–.")
        return " ".join([f"({row.below}): {first}" if row.below else first, *heads])


class Detail(NamedTuple):
    """What a cell of the comparison opens: its facts and what was assumed, or why there is no figure."""

    attack: str
    scheme: str
    facts: Sequence[Fact] = ()
    assumed: Sequence[Assumption] = ()
    why: str = ""

    def lines(self, between: str) -> list[str]:
        """Return the facts in a line, and one for each assumption that the figures say something of."""
        line = between.join(f"{clipped(fact.term, 60)}: {fact.text}" for fact in shortened(self.facts))
        return [line, *(f"{one.who}: {one.text} {one.here}" for one in self.assumed if one.here)]


class Graded(NamedTuple):
    """A cell of the comparison, written out.

    Attributes
    ----------
    gap : str
        What stands in place of figures: ``n/a``, ``✗ failed``, ``–``; empty where there are figures.
    error, right : str
        The worst coalition's normalized error, and the share of records that it guesses right; either may be empty.
    single, alone : str
        The error of its best member, or which copy it is, if it is one.
    exposed : tuple of str
        Attribute that is worse off than all together, and its error; empty where there is none.
    order : float
        What a column is sorted by.
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
    """The comparison, and the scale of severity; ``pools`` where any coalition of two or more was measured.

    ``brief`` has a line for each adversary, of the strongest only.
    """

    schemes: Sequence[str]
    rows: Sequence[Adversary]
    pools: bool
    brief: bool = False


@dataclass(frozen=True)
class Details(Block):
    """Details in the open, for media whose cells open nothing."""

    found: Sequence[Detail]


@dataclass(frozen=True)
class Verdicts(Block):
    """A card for each scheme; ``point`` is the sweep point that needs no mention; ``brief`` has a line for each reason."""

    found: Sequence[Verdict]
    point: str
    brief: bool = False


@dataclass(frozen=True)
class Checks(Block):
    """The expectations and how they came out; ``brief`` says why only of those that do not hold."""

    found: Sequence[Check]
    brief: bool = False


@dataclass(frozen=True)
class Figure(Block):
    """A chart by reference: the page draws the one of that key, a terminal plots ``curves`` if there are any."""

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
    """A report on one audit, or on what changed between two.

    Attributes
    ----------
    kind : str
        ``audit`` or ``comparison``.
    name, headline : str
        What it is about, and how that came out.
    state, mark : str
        The same in a word and in a character.
    facts : sequence of str
        Table and time.
    summary : str
        The verdicts counted.
    opening : sequence of Block
        What must be read first.
    overview : Row or None
        How a table of several audits tells of it.
    reading : Reading or None
        What the page's charts are drawn from.
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
    """Return what a medium has a place for; sections and folds that would be empty are left out."""
    return [one for one in blocks if medium in one.media and (not isinstance(one, (Section, Fold)) or shown(one.blocks, medium))]


def cut(found: Sequence[Any], most: Mapping[str, int], medium: str, what: str = "") -> tuple[Sequence[Any], str]:
    """Return as many rows or lines as a medium may have, and what is said of the others."""
    kept = found[: most.get(medium)]
    hidden = len(found) - len(kept)
    return kept, f"… and {hidden:,} more {what}".rstrip() if hidden else ""


def overview(documents: Sequence[Document]) -> Table:
    """Return a table of several audits, or of several comparisons."""
    rows = [one.overview for one in documents if one.overview]
    if any(one.kind == "comparison" for one in documents):
        return Table("audit", ("outcome", "cells compared", "what changed"), rows, "plain")
    return Table("audit", ("outcome", "expectations", "strongest reconstruction"), rows, "plain")
