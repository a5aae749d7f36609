"""Document of advice: recommended release, frontier, command and method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.results.renderer import clean

from ..figures.curves import Line
from ..figures.figures import braces, number, percent
from ..figures.reading import unique
from ..wording.advice import (
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
from ..wording.scenario_text import scenario_yaml
from ..wording.sentences import capital
from ..wording.words import STATUS_MARKS
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    Block,
    Code,
    Document,
    Figure,
    Items,
    Name,
    Paragraph,
    Row,
    Section,
    Table,
)

if TYPE_CHECKING:
    from auditor.results.advice import Advice, Tried

MOST = {TERMINAL: 24, MARKDOWN: 100, PAGE: 200}


def advice_document(advice: Advice) -> Document:
    """Return the document that recommends a release."""
    taken = advice.chosen
    headline = (
        f"{taken.scheme} at {levels_text(taken)} leaves {percent(advice.target)} or more unknown"
    )
    sections = [
        Section("frontier", "Risk and use of what was tried", _frontier(advice)),
        Section(
            "make", "Make the copies", [Code("command", "sh", clean(advice.command), "Command")]
        ),
        Section(
            "scenario",
            "Audit them",
            [Code("yaml", "yaml", scenario_yaml(advice.scenario), "Scenario")],
        ),
        Section(
            "method",
            "How this was found",
            [
                Paragraph(ADVERSARY, "plain", "Adversary."),
                Paragraph(HOW, "plain", "Exposure."),
                Paragraph(
                    f"{capital(advice.use)}, averaged over attributes and, to compare releases, over copies.",
                    "plain",
                    "Loss of use.",
                ),
                *(
                    [Paragraph(f"{GUARANTEE} Here δ is {advice.delta:g}.", "plain", "ε.")]
                    if taken.epsilon is not None
                    else []
                ),
                Paragraph(_searched(advice), "plain", "Search."),
                *([Items([(Name(note),) for note in advice.notes])] if advice.notes else []),
            ],
        ),
    ]
    return Document(
        "advice",
        "comparison",
        f"Advice for {advice.data}",
        headline,
        "better",
        "✓",
        [_recommended(advice)],
        sections,
    )


def _recommended(advice: Advice) -> Block:
    taken = advice.chosen
    assert taken.exposed is not None
    lines = [
        f"Exposure: the strongest attack ({taken.exposed.attack}) leaves {share_text(taken)} of {attribute_text(taken)} unknown, "
        f"from {braces(taken.exposed.coalition)}.",
        f"Pooling: {pooling_text(taken)}.",
        f"Loss of use, copy by copy: {', '.join(loss_text(advice, loss) for loss in taken.losses)} ({advice.use}).",
    ]
    price, least = loss_text(advice, taken.loss), loss_text(advice, advice.loss_on_average)
    if price != least:
        lines.append(
            f"Price of being sure: a loss of {price} on average over copies. From {least} on, the mean of many releases meets the target, "
            "and about every other single one misses it."
        )
    if taken.epsilon is not None:
        lines.append(
            f"Guarantee against a holder of all copies: ε = {epsilon_text(advice, taken)}."
        )
    weaker = advice.weaker
    if weaker is None or weaker.exposed is None:
        return Items([*lines, "No weaker release of the grid fails the target for sure."])
    return Items(
        [
            *lines,
            f"The next weaker release that an audit of {advice.rows:,} records can distinguish is {levels_text(weaker)}, by "
            f"{advice.step}. It misses the target: it leaves {share_text(weaker)} of {attribute_text(weaker)} unknown "
            f"({weaker.exposed.attack}). In between, the noise draw decides.",
        ]
    )


def _frontier(advice: Advice) -> list[Block]:
    rows = [
        Row(levels_text(one), _cells(advice, one), _who(one), one.scheme) for one in advice.frontier
    ]
    private = advice.chosen.epsilon is not None
    heads = ("on paper", "measured", "pooling", "loss", *(["ε"] if private else []), "target")
    lead = "Share unknown of the most exposed attribute, its reduction by pooling, and the copies' loss of use."
    return [
        Paragraph(lead, "lead"),
        Figure("frontier", _lines(advice), media=(TERMINAL, PAGE)),
        Table("levels of the copies", heads, rows, "plain", "releases", "scheme", MOST),
    ]


def _cells(advice: Advice, one: Tried) -> Sequence[str]:
    private = () if one.epsilon is None else (number(one.epsilon.at_delta),)
    loss, pooling = (
        loss_text(advice, one.loss),
        percent(one.pooling) if one.pooling > 0 else "nothing",
    )
    if one.exposed is None:
        return (percent(one.on_paper), "–", pooling, loss, *private, "–")
    return (
        percent(one.on_paper),
        share_text(one),
        pooling,
        loss,
        *private,
        f"{STATUS_MARKS[one.verdict]} {MET[one.verdict]}",
    )


def _who(one: Tried) -> str:
    if one.exposed is None:
        return "not measured: it would lose more"
    return f"{one.exposed.attack}, {attribute_text(one)}" + (
        "" if one.in_full else "; by one equivalent copy"
    )


def _lines(advice: Advice) -> list[Line]:
    measured = [one for one in advice.frontier if one.exposed is not None and one.losses]
    return [
        Line(
            scheme,
            [
                (one.loss, one.exposed.unknown)
                for one in measured
                if one.scheme == scheme and one.exposed
            ],
            "unknown against loss",
        )
        for scheme in unique(one.scheme for one in measured)
    ]


def _searched(advice: Advice) -> str:
    some = (
        f"{advice.rows:,} of {advice.all_rows:,}"
        if advice.rows < advice.all_rows
        else f"all {advice.rows:,}"
    )
    return f"The grid is {advice.grid}. Each figure is a mean of {advice.replicates} draws of the noise on {some} records."
