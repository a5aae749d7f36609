"""The verdict's sentences: plain words around figures that the verdict has already weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from auditor.results import ExpectationRecord
from reports._figures import Figure, copies, number, percent, spelled, times
from reports._words import where_text

LEAST = 5e-6
"""Gains below this are written as none."""


class Bound(NamedTuple):
    """A collusion gain and its interval, widened for the number of gains looked at."""

    gain: Figure
    low: float | None
    high: float | None


def paying(gain: Figure, pooled: Figure, single: Figure | None, total: int) -> str:
    """Pooling reduces the error."""
    left = 1 - gain.value
    if single and abs(left * single.value - pooled.value) > (pooled.half or 0.0) + (single.half or 0.0):
        left = pooled.value / single.value  # the gain is in another measure, as categories have it
    factor = times(1 / max(1e-12, left))
    before = f" from {share(single)}" if single else ""
    who = copies(gain.coalition, total)
    return (
        f"Pooling {who} rebuilds the records {factor} more accurately (in squared error) than the best single copy: "
        f"the share of the variance left unknown falls{before} to {share(pooled)}."
    )


def exact(worst: Figure, single: Figure | None, total: int) -> str:
    """Nothing of the records remains unknown."""
    who, error = copies(worst.coalition, total), f"normalized error {number(worst.value)}"
    if len(worst.coalition) == 1:
        return f"{capital(who)} alone rebuilds the records exactly ({error})."
    before = f", while the best single copy leaves {share(single)} of the variance unknown" if single else ""
    return f"Pooling {who} rebuilds the records exactly ({error}){before}."


def nothing(bounds: Sequence[Bound], single: Figure, total: int) -> str:
    """No coalition does better than its best member."""
    ceiling, count = max(bound.high or 0.0 for bound in bounds), len(bounds)
    who = "the one coalition measured gains" if count == 1 else f"none of the {spelled(count)} coalitions gains"
    if ceiling < LEAST:
        much = "nothing" if count == 1 else "anything"
        return f"Pooling buys nothing: {who} {much} over its best copy alone; {leaves(single, total, begin=False)}."
    most, bound = max(bound.gain.value for bound in bounds), "at most" if count == 1 else "more than"
    measured = f"largest measured gain {percent(most)}"
    return (
        f"Pooling buys nothing: {who} {bound} {percent(ceiling)} over its best copy alone ({measured}); "
        f"{leaves(single, total, begin=False)}."
    )


def undecided(bounds: Sequence[Bound], worst: Figure, margin: float, total: int) -> str:
    """The intervals allow both that pooling pays and that it does not."""
    gain, low, high = max(bounds, key=lambda bound: bound.gain.value if bound.high is None else bound.high)
    who = copies(gain.coalition, total)
    if low is None or high is None:
        why = f"the gain of {who} is {percent(gain.value)}, measured without an error bar"
    elif low < -1 and high > 1:
        why = f"too little was measured to bound the gain of {who} at all"
    else:
        why = (
            f"the gain of {who} lies between {percent(low)} and {percent(min(1.0, high))}, "
            f"which settles neither that pooling pays nor that it gains less than {percent(margin)}"
        )
    return f"Undecided whether pooling pays: {why}; {leaves(worst, total, begin=False)}."


def alone(worst: Figure, total: int) -> str:
    """Nobody pooled."""
    return f"No coalition of two or more was measured; {leaves(worst, total, begin=False)}."


def held(gain: Figure | None, said: str) -> str:
    """The scenario's own test settled what the intervals alone would not."""
    size = f" (largest gain measured here {percent(gain.value)})" if gain else ""
    return f"Pooling buys nothing beyond the margin that the scenario states{size}. {said}"


def expectation(record: ExpectationRecord) -> str:
    """Say how an expectation came out."""
    status = "is undecided" if record.status == "undecided" else record.status
    return f"The expectation {record.expectation}{where_text(record.where)} {status}."


def leaves(shown: Figure, total: int, *, begin: bool = True) -> str:
    """Say what a coalition leaves unknown."""
    who = copies(shown.coalition, total)
    verb = "leaves" if len(shown.coalition) == 1 else "leave"
    return f"{capital(who) if begin else who} {verb} {share(shown)} of the variance unknown"


def exposure(attribute: str, shown: Figure, rivals: Sequence[str]) -> list[tuple[str, bool]]:
    """Say which attribute is rebuilt best, in pieces; those with True are names, which a page sets apart."""
    said = [("Most exposed: ", False), (attribute, True), (f" ({share(shown)} of its variance unknown)", False)]
    if len(rivals) == 1:
        said += [("; within the error bars, ", False), (rivals[0], True), (" is just as exposed", False)]
    elif rivals:
        said += [(f"; within the error bars, {spelled(len(rivals))} others are just as exposed", False)]
    return [*said, (".", False)]


def share(shown: Figure | None) -> str:
    """Write a normalized error as a percentage of the variance with its error bar."""
    if shown is None:
        return "–"
    if abs(shown.value) < 1e-4:
        return percent(shown.value)
    half = None if shown.half is None else 100 * shown.half
    decimals = 1 if not half else min(2, max(0, -math.floor(math.log10(half))))
    bar = "" if half is None else f" ± {half:.{decimals}f}" if half >= 0.005 else " ± <0.01"
    return f"{100 * shown.value:.{decimals}f}{bar} %"


def capital(text: str) -> str:
    """Begin a sentence."""
    return text[:1].upper() + text[1:]
