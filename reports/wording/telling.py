"""Sentences on a coalition's result, for numbers and categories."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures.figures import Figure, copies, listed, number, percent, spelled, times
from ..figures.guesses import guesses
from ..figures.reading import Reading, Setting
from .sentences import Bound, capital, share


class Numbers:
    """Sentences on the share of the variance unknown.

    Parameters
    ----------
    total : int
        Copies released.
    given : sequence of str
        Attributes known in clear; figures concern the others.
    """

    def __init__(self, total: int, given: Sequence[str] = ()) -> None:
        self.total, self.given = total, given

    def leaves(self, shown: Figure, *, begin: bool = True) -> str:
        """State a coalition's share unknown."""
        who = copies(shown.coalition, self.total)
        verb = "leaves" if len(shown.coalition) == 1 else "leave"
        return f"{capital(who) if begin else who} {verb} {share(shown)} of the variance unknown{self._given()}"

    def _given(self) -> str:
        if not self.given:
            return ""
        return f" to an adversary who was given {listed(self.given)} of every record"

    def paying(self, gain: Figure, pooled: Figure, single: Figure | None) -> str:
        """State that pooling reduces the error."""
        factor, before = (
            times(1 / max(1e-12, 1 - gain.value)),
            f" from {share(single)}" if single else "",
        )
        return (
            f"Pooling {copies(gain.coalition, self.total)} rebuilds the records {factor} more accurately (in squared error) than the most "
            f"revealing single copy: the share of the variance left unknown falls{before} to {share(pooled)}{self._given()}."
        )

    def exact(self, worst: Figure, single: Figure | None) -> str:
        """State an exact reconstruction."""
        who, error = copies(worst.coalition, self.total), f"normalized error {number(worst.value)}"
        if len(worst.coalition) == 1:
            return f"{capital(who)} alone rebuilds the records exactly ({error}){self._given()}."
        before = (
            f", while the most revealing single copy leaves {share(single)} of the variance unknown"
            if single
            else ""
        )
        return f"Pooling {who} rebuilds the records exactly ({error}){before}{self._given()}."


def into_smaller_classes(shown: Figure, single: Figure, total: int) -> str:
    """State that pooled copies distinguish more records than each copy."""
    who, least = copies(shown.coalition, total), number(shown.value)
    left = "leaves some record alone" if shown.value == 1 else f"leaves some record among {least}"
    return f"Pooling {who} {left}, where each of these copies has {number(single.value)} or more in every class."


def into_weaker_guarantees(symbol: str, shown: Figure, single: Figure, total: int) -> str:
    """State that pooling weakens a guarantee."""
    least = f"{symbol} {number(shown.value)}, where copy {single.coalition[0]} alone has {number(single.value)}"
    return f"Pooling {copies(shown.coalition, total)} weakens what they guarantee: {least}."


def paying_in_one(
    name: str, gain: Figure, pooled: Figure, single: Figure | None, total: int
) -> str:
    """State that pooling reduces one attribute's error only."""
    factor, before = (
        times(1 / max(1e-12, 1 - gain.value)),
        f" from {share(single)}" if single else "",
    )
    return (
        f"Pooling {copies(gain.coalition, total)} rebuilds {name} {factor} more accurately (in squared error) than the most revealing "
        f"single copy: the share of its variance left unknown falls{before} to {share(pooled)}. All attributes together do not show it."
    )


def paying_to_another(paying: str, who: str, gain: Figure | None) -> str:
    """State that pooling helps an attack other than the strongest."""
    settled = "which is undecided" if gain is not None and gain.half else "without an error bar"
    own = "" if gain is None else f"; the strongest attack gains {percent(gain.value)}, {settled}"
    return f"{paying} That is {who}{own}."


class Classes(Numbers):
    """Sentences on right guesses of categories; figures are ``1 − truth``."""

    def __init__(self, total: int, reading: Reading, setting: Setting) -> None:
        super().__init__(total)
        self.reading, self.setting = reading, setting

    def leaves(self, shown: Figure, *, begin: bool = True) -> str:
        """State the best guess's accuracy."""
        who, found = (
            copies(shown.coalition, self.total),
            guesses(self.reading, self.setting, shown.coalition),
        )
        start = f"{'From' if begin else 'from'} {who} "
        if found is None:
            return f"{start}the true value is given {share(_complement(shown))} probability"
        return f"{start}the best guess is right for {share(found.right)} of the records (without any copy: {percent(found.blind)})"

    def paying(self, gain: Figure, pooled: Figure, single: Figure | None) -> str:
        """State that pooling raises the true value's probability."""
        found = guesses(self.reading, self.setting, gain.coalition)
        before = (
            share(_complement(single))
            if single
            else percent(1 - pooled.value / max(1e-12, 1 - gain.value))
        )
        who = copies(gain.coalition, self.total)
        rises = f"the probability given to a record's true value rises from {before} to {share(_complement(pooled))}"
        if found is None:
            return f"Pooling {who}, {rises}."
        instead = (
            f" instead of {share(found.single)} from the most revealing single copy"
            if found.single
            else ""
        )
        return (
            f"Pooling {who}, the best guess is right for {share(found.right)} of the records{instead} (without any copy: "
            f"{percent(found.blind)}), and {rises}."
        )

    def exact(self, worst: Figure, single: Figure | None) -> str:
        """State that every record's value is known."""
        who = copies(worst.coalition, self.total)
        if len(worst.coalition) == 1:
            return f"{capital(who)} alone names every record's value."
        found = guesses(self.reading, self.setting, worst.coalition)
        alone = found.single if found else None
        before = (
            f", where the most revealing single copy's guess is right for {share(alone)} of the records"
            if alone
            else ""
        )
        return f"Pooling {who} names every record's value{before}."


def nothing(bounds: Sequence[Bound], single: Figure, numbers: Numbers) -> str:
    """State that no coalition improves on its best member."""
    ceiling, count = max(bound.high or 0.0 for bound in bounds), len(bounds)
    who = (
        "the one coalition measured gains"
        if count == 1
        else f"none of the {spelled(count)} coalitions gains"
    )
    if ceiling < LEAST:
        much = "nothing" if count == 1 else "anything"
        return f"Pooling buys nothing: {who} {much} over its best copy alone; {numbers.leaves(single, begin=False)}."
    most, bound = (
        max(bound.gain.value for bound in bounds),
        "at most" if count == 1 else "more than",
    )
    measured = f"largest measured gain {percent(most)}"
    gained = f"{who} {bound} {percent(ceiling)} over its best copy alone ({measured})"
    return f"Pooling buys nothing: {gained}; {numbers.leaves(single, begin=False)}."


def undecided(bounds: Sequence[Bound], worst: Figure, margin: float, numbers: Numbers) -> str:
    """State that the intervals decide neither way."""
    gain, low, high = max(
        bounds, key=lambda bound: bound.gain.value if bound.high is None else bound.high
    )
    who = copies(gain.coalition, numbers.total)
    if low is None or high is None:
        why = f"the gain of {who} is {percent(gain.value)}, measured without an error bar"
    elif low < -1 and high > 1:
        why = f"too little was measured to bound the gain of {who} at all"
    else:
        why = (
            f"the gain of {who} lies between {percent(low)} and {percent(min(1.0, high))}, "
            f"which settles neither that pooling endangers the records nor that it gains less than {percent(margin)}"
        )
    return f"Undecided whether pooling endangers the records: {why}; {numbers.leaves(worst, begin=False)}."


LEAST = 5e-6
"""Gains below this value are written as none."""


def alone(worst: Figure, numbers: Numbers) -> str:
    """State that no coalition of two or more was measured."""
    return f"No coalition of two or more was measured; {numbers.leaves(worst, begin=False)}."


def _complement(shown: Figure | None) -> Figure | None:
    return None if shown is None else shown._replace(value=1 - shown.value)
