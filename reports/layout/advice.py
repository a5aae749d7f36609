"""Document of advice: recommended release, frontier, command and method."""

from __future__ import annotations

import math
from collections.abc import Sequence

from auditor.results.records import Advice, Tried
from auditor.results.renderer import clean

from ..charts.chart import Chart
from ..charts.spec import field, quantity, view
from ..figures.figures import Name, braces, clipped, number, percent
from ..figures.reading import unique
from ..wording.sentences import capital
from ..wording.words import STATUS_MARKS, scenario_yaml
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    Block,
    Code,
    Document,
    Figure,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
)

CAPTION = (
    "A point is a release: upwards more stays unknown of the attribute that is worst off, to the right its copies lose more of their use. "
    "Bars: 95 of 100 single releases. Dashed: the target. The ring marks the recommended release."
)
ADVERSARY = (
    "Every attack that applies to an adversary who knows means, correlations and the law of the noise exactly, and holds any set of the "
    "copies. Not tried: adversaries who know some records, a sample or other columns besides; name them under `knowledge` in the scenario."
)
HOW = (
    "On paper: the error of the best linear attack (for retention, of exact Bayes) is an upper bound on the share unknown. It also ranks "
    "pooled copies. Measured: the error of every attack, first on a single copy that is equivalent to all copies under the law, then on "
    "the whole release. ± is the deviation of one release from the mean of many, 95 times in 100. "
    "The target is met if the expectation `exposure` will hold in 199 of 200 audits of a new release, and missed if it will fail in 199 "
    "of 200. In between the noise draw decides, and no level is recommended. With fewer records the spread is larger: levels must differ "
    "more to be distinguished, and certainty needs more noise."
)
GUARANTEE = (
    "Of (ε, δ) differential privacy under the law of the noise: the risk that a holder of all copies distinguishes any record from "
    "another within the stated bounds. The bounds also determine the noise, so its size discloses nothing about the table."
)
MET = {"holds": "met", "undecided": "open", "fails": "missed"}


LARGE = 10
"""Growth from which it is written as a factor."""


def levels_text(one: Tried) -> str:
    """Format a release's levels: ``1.21, 2.42, 4.84``, shortened if many."""
    shown = [f"{level:g}" for level in one.levels]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:2], "…", shown[-1]])


def share_text(one: Tried) -> str:
    """Format the measured share unknown and its spread over releases."""
    assert one.exposed is not None
    return f"{100 * one.exposed.unknown:.1f} ± {100 * one.exposed.half:.1f} %"


def pooling_text(one: Tried) -> str:
    """State the effect of pooling."""
    if len(one.levels) == 1:
        return "there is one copy"
    if one.pooling <= 0:
        return "adds nothing to the least perturbed copy, whatever the attack"
    return f"takes {percent(one.pooling)} off what the least perturbed copy leaves"


def epsilon_text(advice: Advice, one: Tried) -> str:
    """Format ε at δ, and pure ε if it is finite."""
    assert one.epsilon is not None
    pure = "" if math.isinf(one.epsilon.pure) else f", and {number(one.epsilon.pure)} at δ = 0"
    return f"{number(one.epsilon.at_delta)} at δ = {advice.delta:g}{pure}"


def attribute_text(one: Tried) -> str:
    """Name the most exposed attribute."""
    assert one.exposed is not None
    return "the categories" if one.exposed.attribute == "*" else clipped(one.exposed.attribute, 40)


def loss_text(advice: Advice, loss: float) -> str:
    """Format a loss of use, a standard error's growth or a difference."""
    if math.isnan(loss):
        return "–"
    if advice.utility != "mean":
        return f"{loss:.3f}"
    return f"+{percent(loss)}" if loss < LARGE else f"×{1 + loss:,.0f}"


MOST = {TERMINAL: 24, MARKDOWN: 100, PAGE: 200}


def advice_document(advice: Advice) -> Document:
    """Return the document that recommends a release."""
    taken = advice.chosen
    headline = (
        f"{taken.scheme} at {levels_text(taken)} leaves {percent(advice.target)} or more unknown"
    )
    sections = [
        Section("frontier", "Risk and use of what was tried", _frontier(advice), first=True),
        Section(
            "make",
            "Make the copies",
            [Code("command", "sh", clean(advice.command), "Command")],
            first=True,
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
                Paragraph(
                    f"{GUARANTEE} Here δ is {advice.delta:g}." if taken.epsilon else "",
                    "plain",
                    "ε.",
                ),
                Paragraph(_searched(advice), "plain", "Search."),
                Items([(Name(note),) for note in advice.notes]),
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
    chart = _chart(advice)
    lead = "Share unknown of the most exposed attribute, its reduction by pooling, and the copies' loss of use."
    return [
        Paragraph(lead, "lead"),
        Paragraph(chart.caption, "lead", media=(PAGE,)),
        *([Figure(chart, media=(TERMINAL, PAGE))] if chart.rows else []),
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


def _chart(advice: Advice) -> Chart:
    measured = [one for one in advice.frontier if one.exposed is not None and one.losses]
    names = unique(clean(one.scheme) for one in measured)
    rows = []
    for one in measured:
        assert one.exposed is not None
        unknown, half = one.exposed.unknown, one.exposed.half
        rows.append(
            {
                "s": clean(one.scheme),
                "i": names.index(clean(one.scheme)),
                "x": one.loss,
                "k": one.loss,
                "y": unknown,
                "lo": max(0.0, unknown - half),
                "hi": unknown + half,
                "c": levels_text(one),
                "m": share_text(one),
                "g": advice.target,
                "w": int(one == advice.chosen),
                "_label": levels_text(one),
                "_cell": share_text(one),
            }
        )
    x = field("x:Q", title="loss of use", scale={"zero": True, "nice": True}, axis={"grid": False})
    y = quantity("share unknown", tickCount=6)
    order = {"order": field("x:Q")}
    views = view(x, y, names, ["line", "bars", "ring", "target"], more=order)
    return Chart(
        "advice-frontier",
        "Risk and use of what was tried",
        f"{CAPTION} Loss: {advice.use}.",
        "Scatter chart: share unknown against loss of use, for each scheme.",
        rows,
        [],
        names,
        [views],
        first="levels",
        note="",
        drawn=True,
    )


def _searched(advice: Advice) -> str:
    some = (
        f"{advice.rows:,} of {advice.all_rows:,}"
        if advice.rows < advice.all_rows
        else f"all {advice.rows:,}"
    )
    return f"The grid is {advice.grid}. Each figure is a mean of {advice.replicates} draws of the noise on {some} records."
