"""Table of the strongest attack of each kind, and untried kinds."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.results.model import AuditResult

from ..figures.figures import braces, clipped, number, with_error
from ..figures.gaps import untried_text
from ..figures.kinds import Strongest, strongest_by_kind, untried_kinds
from ..figures.reading import Reading
from ..wording.sentences import share
from .document import Block, Fold, Items, Name, Paragraph, Row, Table

LEAD = "Of those who hold most copies: normalized error over all attributes, its theory, and the attribute that is rebuilt best."
HEADS = ("attack, knowledge", "copies", "leaves unknown", "theory", "most exposed")


def kinds(reading: Reading) -> list[Block]:
    """Return the table; empty below two measured kinds."""
    rows = [
        Row(one.kind, _cells(one), group=one.setting.scheme) for one in strongest_by_kind(reading)
    ]
    return (
        [Paragraph(LEAD, "lead"), Table("kind", HEADS, rows, "plain", group="scheme")]
        if rows
        else []
    )


def untried(result: AuditResult) -> Sequence[Block]:
    """Return a note on untried kinds and attacks; empty if all were tried."""
    by_kind, more = untried_kinds(result)
    lines = [*by_kind.items(), *([("of kinds that were tried", more)] if more else [])]
    names = Items(
        [
            (f"{clipped(kind, 60)}: ", Name(", ".join(clipped(name, 60) for name in attacks)))
            for kind, attacks in lines
        ]
    )
    fold = Fold("Attacks that apply and were not tried", [names], open=False)
    return (
        [Paragraph(untried_text([clipped(kind, 60) for kind in by_kind], more), "note"), fold]
        if lines
        else []
    )


def _cells(one: Strongest) -> tuple[str, ...]:
    shown = f"{share(one.shown)} {one.found}" if one.found else with_error(one.shown)
    theory = (
        "–"
        if one.shown.theory is None
        else share(one.shown._replace(value=one.shown.theory, low=None, high=None))
    )
    theory = (
        theory
        if one.found or one.shown.theory is None
        else number(one.shown.theory, one.shown.half)
    )
    exposed = f"{clipped(one.exposed[0], 24)}\n{with_error(one.exposed[1])}" if one.exposed else "–"
    return (
        f"{one.setting.attack}\n{one.setting.knowledge}",
        braces(one.shown.coalition),
        shown,
        theory,
        exposed,
    )
