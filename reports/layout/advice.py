"""The document of advice: the recommended release first, then everything that was tried, then how to make it and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.results.renderer import clean
from reports.figures.curves import Line
from reports.figures.figures import braces, number, percent
from reports.figures.reading import unique
from reports.layout.document import MARKDOWN, PAGE, TERMINAL, Block, Code, Document, Figure, Items, Name, Paragraph, Row, Section, Table
from reports.wording.advice import (
    ADVERSARY,
    GUARANTEE,
    HOW,
    MET,
    attribute_text,
    epsilon_text,
    levels_text,
    loss_text,
    pooling_text,
    share_text,
)
from reports.wording.scenario_text import scenario_yaml
from reports.wording.sentences import capital
from reports.wording.words import STATUS_MARKS

if TYPE_CHECKING:
    from auditor.results.advice import Advice, Tried

MOST = {TERMINAL: 24, MARKDOWN: 100, PAGE: 200}
def advice_document(advice: Advice) -> Document:
    """Return the document on which release to make."""
    taken = advice.chosen
    headline = f"{taken.scheme} at {levels_text(taken)} leaves {percent(advice.target)} or more unknown"
    sections = [
        Section("frontier", "Risk and use of what was tried", _frontier(advice)),
        Section("make", "Make the copies", [Code("command", "sh", clean(advice.command), "Command")]),
        Section("scenario", "Audit them", [Code("yaml", "yaml", scenario_yaml(advice.scenario), "Scenario")]),
        Section("method", "How this was found", [
            Paragraph(ADVERSARY, "plain", "Adversary."), Paragraph(HOW, "plain", "Exposure."),
            Paragraph(f"{capital(advice.use)}, averaged over attributes and, to compare releases, over copies.", "plain", "Loss of use."),
            *([Paragraph(f"{GUARANTEE} Here δ is {advice.delta:g}.", "plain", "ε.")] if taken.epsilon is not None else []),
            Paragraph(_searched(advice), "plain", "Search."),
            *([Items([(Name(note),) for note in advice.notes])] if advice.notes else []),
        ]),
    ]  # fmt: skip
    return Document("advice", "comparison", f"Advice for {advice.data}", headline, "better", "✓", [_recommended(advice)], sections)


def _recommended(advice: Advice) -> Block:
    taken = advice.chosen
    assert taken.exposed is not None
    lines = [
        f"Exposure: the strongest attack ({taken.exposed.attack}) leaves {share_text(taken)} of {attribute_text(taken)} unknown, "
        f"from {braces(taken.exposed.coalition)}.",
        f"Pooling: {pooling_text(taken)}.",
        f"Loss of use, copy by copy: {', '.join(loss_text(advice, loss) for loss in taken.losses)} ({advice.use}).",
    ]
    if taken.epsilon is not None:
        lines.append(f"Guarantee, to whoever holds all copies: ε = {epsilon_text(advice, taken)}.")
    weaker = advice.weaker
    if weaker is None or weaker.exposed is None:
        return Items([*lines, "None of the grid is weaker and fails the target."])
    between = f"; of {advice.between} level{'s' * (advice.between > 1)} between, the draw decides" if advice.between else ""
    return Items([
        *lines, f"The next weaker on the grid that fails the target is {levels_text(weaker)}{between}. It leaves {share_text(weaker)} of "
        f"{attribute_text(weaker)} ({weaker.exposed.attack}).",
    ])  # fmt: skip


def _frontier(advice: Advice) -> list[Block]:
    rows = [Row(levels_text(one), _cells(advice, one), _who(one), one.scheme) for one in advice.frontier]
    private = advice.chosen.epsilon is not None
    heads = ("on paper", "measured", "pooling", "loss", *(["ε"] if private else []), "target")
    lead = "What stays unknown of the attribute that is worst off, what pooling takes off that, and what copies lose of their use."
    return [
        Paragraph(lead, "lead"),
        Figure("frontier", _lines(advice), media=(TERMINAL, PAGE)),
        Table("levels of the copies", heads, rows, "plain", "releases", "scheme", MOST),
    ]


def _cells(advice: Advice, one: Tried) -> Sequence[str]:
    private = () if one.epsilon is None else (number(one.epsilon.at_delta),)
    loss, pooling = loss_text(advice, one.loss), percent(one.pooling) if one.pooling > 0 else "nothing"
    if one.exposed is None:
        return (percent(one.on_paper), "–", pooling, loss, *private, "–")
    return (percent(one.on_paper), share_text(one), pooling, loss, *private, f"{STATUS_MARKS[one.verdict]} {MET[one.verdict]}")


def _who(one: Tried) -> str:
    if one.exposed is None:
        return "not measured: it would lose more"
    return f"{one.exposed.attack}, {attribute_text(one)}" + ("" if one.in_full else "; by one copy that tells as much")


def _lines(advice: Advice) -> list[Line]:
    """Return the measured exposure against the loss of use, a line a scheme."""
    measured = [one for one in advice.frontier if one.exposed is not None and one.losses]
    return [
        Line(scheme, [(one.loss, one.exposed.unknown) for one in measured if one.scheme == scheme and one.exposed], "unknown against loss")
        for scheme in unique(one.scheme for one in measured)
    ]


def _searched(advice: Advice) -> str:
    some = f"{advice.rows:,} of {advice.all_rows:,}" if advice.rows < advice.all_rows else f"all {advice.rows:,}"
    return f"The grid is {advice.grid}. Each figure is a mean of {advice.replicates} draws of the noise on {some} records."
