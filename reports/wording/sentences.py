"""Sentences of the verdict around given figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from auditor.results.records import ExpectationRecord

from ..figures.figures import Figure, percent, spelled
from .words import where_text


class Bound(NamedTuple):
    """A collusion gain and its interval, widened for multiple coalitions."""

    gain: Figure
    low: float | None
    high: float | None


def held(gain: Figure | None, said: str) -> str:
    """State that the scenario's own test found no gain."""
    size = f" (largest gain measured here {percent(gain.value)})" if gain else ""
    return f"Pooling buys nothing beyond the margin that the scenario states{size}. {said}"


def expectation(record: ExpectationRecord) -> str:
    """State an expectation's outcome."""
    status = "is undecided" if record.status == "undecided" else record.status
    return f"The expectation {record.expectation}{where_text(record.where)} {status}."


def exposure(
    attribute: str, shown: Figure, tied: Sequence[str], by: str = "", near: str = ""
) -> list[tuple[str, bool]]:
    """Name the most exposed attribute, in pieces; True marks names."""
    said = [
        ("Most exposed: ", False),
        (attribute, True),
        (f" ({share(shown)} of its variance unknown", False),
    ]
    said += [(" to ", False), (by, True)] if by else []
    said += [(f", {near}", False)] if near else []
    said += [(")", False)]
    if len(tied) == 1:
        said += [
            ("; within the error bars, ", False),
            (tied[0], True),
            (" is just as exposed", False),
        ]
    elif tied:
        said += [
            (f"; within the error bars, {spelled(len(tied))} others are just as exposed", False)
        ]
    return [*said, (".", False)]


def left_to_given(
    shown: Figure, attack: str, given: Sequence[str], attribute: str, alone: float | None
) -> list[tuple[str, bool]]:
    """State the error of an adversary with attributes in clear, in pieces.

    An empty ``attribute`` means all other attributes. ``alone`` is the error without copies. True
    marks names.
    """
    names: list[tuple[str, bool]] = []
    for place, name in enumerate(given):
        names += [
            ((", " if place < len(given) - 1 else " and ") if place else "", False),
            (name, True),
        ]
    rest = [(attribute, True)] if attribute else [("the others", False)]
    without = "" if alone is None else f", without any copy {percent(alone)}"
    return [
        ("An adversary who already knows ", False),
        *names,
        (f" of every record is left with {share(shown)} of the variance of ", False),
        *rest,
        (f" unknown ({attack}){without}.", False),
    ]


def share(shown: Figure | None) -> str:
    """Format a share with its error bar as a percentage."""
    if shown is None:
        return "–"
    if abs(shown.value) < 1e-4:
        return percent(shown.value)
    half = 100 * shown.half if shown.half else None
    decimals = 1 if not half else min(2, max(0, -math.floor(math.log10(half))))
    bar = "" if half is None else f" ± {half:.{decimals}f}" if half >= 0.005 else " ± <0.01"
    return f"{100 * shown.value:.{decimals}f}{bar} %"


def capital(text: str) -> str:
    """Capitalize an ASCII letter; μ stays, because its capital resembles M."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
