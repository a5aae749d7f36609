"""Document of advice: recommended release, frontier, command and method."""

import math

from auditor.base import clean
from auditor.results.records import Advice, Exposed, Tried

from .charts import Chart, specified
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    Block,
    Code,
    Document,
    Drawing,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
)
from .figures import clipped, copies, isolated, number, percent
from .matrix import attribute_text
from .reading import unique
from .sentences import STATUS_MARKS, capital, scenario_yaml

CAPTION = (
    "A point is a release. Upwards: share unknown of the most exposed attribute. To the right: loss of use. "
    "Bars: 95 of 100 single releases. Dashed: the target. The ring marks the recommended release."
)
ADVERSARY = (
    "Every attack that applies to an adversary who knows means, correlations and the law of the noise exactly, and holds any set of the "
    "copies. Not tried: adversaries who know some records, a sample or other columns; name them under `knowledge` in the scenario."
)
HOW = (
    "On paper: the error of the best linear attack (for retention, of exact Bayes) is an upper bound on the share unknown. It also ranks "
    "pooled copies. Measured: the errors of the strongest attacks, on a single copy that is equivalent to all copies under the law, then "
    "on the whole release. There every attack is measured, unless only a sample of the records is. "
    "± is the largest deviation of a release from the mean of many, 95 times in 100. "
    "The target is met if every draw leaves it, and their mean exceeds it so far that `exposure` will hold in 199 of 200 audits of a new "
    "release with normal errors. By any law, a new release leaves less than all of R draws with probability 1/(R + 1). The target is "
    "missed if `exposure` will fail in 199 of 200. In between no level is recommended. Fewer records spread more and need more noise."
)
GUARANTEE = (
    "Of (ε, δ) differential privacy under the law of the noise: the risk that a holder of all copies distinguishes any record from "
    "another within the stated bounds. The bounds also determine the noise, so its size discloses nothing about the table."
)
MET = {"holds": "met", "undecided": "open", "fails": "missed"}
LARGE = 10
"""Growth from which it is written as a factor."""
MOST = {TERMINAL: 24, MARKDOWN: 100, PAGE: 200}


def levels_text(one: Tried) -> str:
    """Format a release's levels: ``1.21, 2.42, 4.84``, shortened if many."""
    shown = [f"{level:g}" for level in one.levels]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:2], "…", shown[-1]])


def share_text(one: Exposed) -> str:
    """Format the measured share unknown and its spread over releases."""
    return f"{100 * one.unknown:.1f} ± {100 * one.half:.1f} %"


def _name(one: Exposed) -> str:
    return clipped(attribute_text(one.attribute), 40)


def loss_text(advice: Advice, loss: float) -> str:
    """Format a loss of use, a standard error's growth or a difference."""
    if math.isnan(loss):
        return "–"
    if advice.utility != "mean":
        return f"{loss:.3f}"
    return f"+{percent(loss)}" if loss < LARGE else f"×{1 + loss:,.0f}"


def advice_document(advice: Advice) -> Document:
    """Document that recommends a release."""
    taken, all_rows = advice.chosen, f"all {advice.rows:,}"
    some = f"{advice.rows:,} of {advice.all_rows:,}" if advice.rows < advice.all_rows else all_rows
    method = {
        "Adversary.": ADVERSARY,
        "Exposure.": HOW,
        "Loss of use.": f"{capital(advice.use)}, averaged over attributes and, to compare releases, over copies.",
        "ε.": f"{GUARANTEE} Here δ is {advice.delta:g}." if taken.epsilon else "",
        "Search.": f"The grid is {advice.grid}. Each figure is a mean of up to {advice.replicates} draws of the noise on {some} records.",
    }
    notes = Items([*map(isolated, advice.notes)])
    command = Code("command", "sh", clean(advice.command), "Command")
    scenario = Code("yaml", "yaml", scenario_yaml(advice.scenario), "Scenario")
    return Document(
        "advice",
        "comparison",
        f"Advice for {advice.data}",
        f"{taken.scheme} at {levels_text(taken)} leaves {percent(advice.target)} or more unknown",
        "✓",
        [Items(_recommended(advice))],
        [
            Section("frontier", "Risk and use of what was tried", _frontier(advice), first=True),
            Section("make", "Make the copies", [command], first=True),
            Section("scenario", "Audit them", [scenario]),
            Section(
                "method",
                "How this was found",
                [*(Paragraph(text, "plain", term) for term, text in method.items()), notes],
            ),
        ],
    )


def _recommended(advice: Advice) -> list[str]:
    taken, weaker = advice.chosen, advice.weaker
    shown = taken.exposed
    assert shown is not None
    pooling = "adds nothing to the least perturbed copy, whatever the attack"
    if taken.pooling > 0:
        pooling = (
            f"removes {percent(taken.pooling)} of the share that the least perturbed copy leaves"
        )
    if len(taken.levels) == 1:
        pooling = "there is one copy"
    lines = [
        f"Exposure: the strongest attack ({shown.attack}) leaves {share_text(shown)} of {_name(shown)} unknown, "
        f"from {copies(shown.coalition, len(taken.levels))}.",
        f"Pooling: {pooling}.",
        f"Loss of use, copy by copy: {', '.join(loss_text(advice, loss) for loss in taken.losses)} ({advice.use}).",
    ]
    price, least = loss_text(advice, taken.loss), loss_text(advice, advice.loss_on_average)
    if price != least:
        lines.append(
            f"Price of being sure: a loss of {price} on average over copies. From {least} on, the mean of many releases meets the target, "
            "and about every other single one misses it."
        )
    if (epsilon := taken.epsilon) is not None:
        pure = "" if math.isinf(epsilon.pure) else f", and {number(epsilon.pure)} at δ = 0"
        lines.append(
            f"Guarantee against a holder of all copies: ε = {number(epsilon.at_delta)} at δ = {advice.delta:g}{pure}."
        )
    if weaker is None or weaker.exposed is None:
        return [*lines, "No weaker release of the grid fails the target for sure."]
    return [
        *lines,
        f"The next weaker release that an audit of {advice.rows:,} records can distinguish is {levels_text(weaker)}, by "
        f"{advice.step}. It misses the target: it leaves {share_text(weaker.exposed)} of {_name(weaker.exposed)} unknown "
        f"({weaker.exposed.attack}). In between, the noise draw decides.",
    ]


def _frontier(advice: Advice) -> list[Block]:
    private = ["ε"] * (advice.chosen.epsilon is not None)
    heads = ("on paper", "measured", "pooling", "loss", *private, "target")
    rows, chart = [_row(advice, one) for one in advice.frontier], _chart(advice)
    lead = "Share unknown of the most exposed attribute, its reduction by pooling, and the copies' loss of use."
    return [
        Paragraph(lead, "lead"),
        Paragraph(chart.caption, "lead", media=(PAGE,)),
        *[Drawing(chart, media=(TERMINAL, PAGE))] * bool(chart.rows),
        Table("levels of the copies", heads, rows, "plain", "releases", "scheme", MOST),
    ]


def _row(advice: Advice, one: Tried) -> Row:
    private = () if one.epsilon is None else (number(one.epsilon.at_delta),)
    pooling = percent(one.pooling) if one.pooling > 0 else "nothing"
    measured, verdict, who = "–", "–", "not measured: it would lose more"
    if one.exposed is not None:
        measured = share_text(one.exposed)
        verdict = f"{STATUS_MARKS[one.verdict]} {MET[one.verdict]}"
        whole = "" if one.in_full else "; by one equivalent copy"
        who = f"{one.exposed.attack}, {_name(one.exposed)}{whole}"
    cells = (percent(one.on_paper), measured, pooling, loss_text(advice, one.loss))
    return Row(levels_text(one), (*cells, *private, verdict), who, one.scheme)


def _chart(advice: Advice) -> Chart:
    measured = [(one, one.exposed) for one in advice.frontier if one.exposed and one.losses]
    names = unique(clean(one.scheme) for one, _ in measured)
    rows = [
        {
            "s": clean(one.scheme),
            "i": names.index(clean(one.scheme)),
            "x": one.loss,
            "k": one.loss,
            "y": shown.unknown,
            "lo": max(0.0, shown.unknown - shown.half),
            "hi": shown.unknown + shown.half,
            "c": levels_text(one),
            "m": share_text(shown),
            "g": advice.target,
            "w": int(one == advice.chosen),
        }
        for one, shown in measured
    ]
    return Chart(
        [row | {"_label": row["c"], "_cell": row["m"]} for row in rows],
        [],
        names,
        caption=f"{CAPTION} Loss: {advice.use}.",
        **specified("advice", names),
    )
