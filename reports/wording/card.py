"""Verdict card of one scheme: finding, sentences, grade and scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..figures.figures import Figure, clipped, listed, percent, spelled, with_error
from ..figures.guesses import Guesses
from ..figures.reading import EVERYTHING, Setting, floor
from ..figures.severity import Severity, severity
from . import sentences as say
from .exposed import Axis, Disclosure, Exposure, Given

Finding = Literal["exact", "gain", "no-gain", "undecided", "refuted", "alone", "not-measured"]

LABELS: dict[str, str] = {
    "exact": "rebuilt exactly",
    "gain": "pooling endangers records",
    "no-gain": "no collusion gain",
    "undecided": "pooling undecided",
    "refuted": "promise refuted",
    "alone": "pooling not measured",
    "not-measured": "not measured",
}

Pieces = list[tuple[str, bool]]
"""A text in pieces; True marks names, which a page isolates."""

State = Literal["bad", "open", "good", "plain"]
STATES: dict[str, State] = {
    "exact": "bad",
    "gain": "bad",
    "refuted": "bad",
    "no-gain": "good",
    "undecided": "open",
}
MARKS: dict[State, str] = {"bad": "✗", "good": "✓", "open": "?", "plain": "·"}
FINE = 2
"""Highest acceptable rank: at least half of each attribute's variance is unknown."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on one scheme.

    Attributes
    ----------
    setting : Setting or None
        The strongest attack's setting.
    worst, single : Figure or None
        Normalized error of the worst coalition, and of its best member.
    guesses : Guesses or None
        The worst coalition's guesses of categories.
    gain : Figure or None
        The worst coalition's collusion gain.
    exposed : Exposure or None
        The most exposed attribute, if there are several.
    given : Given or None
        A stronger adversary with attributes in clear.
    disclosed : Disclosure or None
        Sensitive values that classes of records disclose.
    shown, kept : (str, Figure) or None
        The attribute with most unperturbed values and their share: in a copy, or among perturbed
        values.
    believed : Figure or None
        Rise of the belief in one true value, if large.
    understated : bool
        Whether excluded data are less perturbed than audited data.
    beside_errors : bool
        Whether the finding rests on classes or guarantees instead of errors.
    """

    scheme: str
    finding: Finding
    sentence: str
    setting: Setting | None = None
    worst: Figure | None = None
    single: Figure | None = None
    gain: Figure | None = None
    exposed: Exposure | None = None
    who: str = ""
    where: str = ""
    guesses: Guesses | None = None
    given: Given | None = None
    disclosed: Disclosure | None = None
    shown: tuple[str, Figure] | None = None
    kept: tuple[str, Figure] | None = None
    believed: Figure | None = None
    understated: bool = False
    beside_errors: bool = False

    @property
    def label(self) -> str:
        """Exposure and finding in short, with a warning on excluded data."""
        found = (
            f"Exposure {self.grade}{self._to_given} · {LABELS[self.finding]}"
            if self.grade
            else say.capital(LABELS[self.finding])
        )
        found = f"{found} · some values stand as they were" if self.kept else found
        return f"{found} · what was left out is more exposed" if self.understated else found

    @property
    def state(self) -> State:
        """``good`` only if exposure is acceptable and pooling adds nothing."""
        return (
            "bad"
            if self.rank > FINE or self.understated or self.kept
            else STATES.get(self.finding, "plain")
        )

    @property
    def rank(self) -> int:
        """Rank of the worst severity over adversaries; 0 if not measured."""
        return max(self.severity.rank if self.severity else 0, self.given.rank if self.given else 0)

    @property
    def _to_given(self) -> str:
        """Severity to an adversary with attributes in clear, if it is the worst."""
        if self.given is None or self.severity is None or self.given.rank <= self.severity.rank:
            return ""
        who = listed([clipped(name, 30) for name in self.given.names])
        return f", {self.given.severity.word} to whoever knows {who}"

    @property
    def mark(self) -> str:
        """Character of the state."""
        return MARKS[self.state]

    @property
    def text(self) -> str:
        """The reasons as one text."""
        return " ".join("".join(text for text, _ in reason).strip() for reason in self.reasons)

    @property
    def reasons(self) -> list[Pieces]:
        """Exposure, pooling and strongest attack, as pieces of sentences."""
        said = (
            self._given_away() or self._as_they_are(),
            self.sentence,
            self._strongest_attack("measured"),
        )
        away, pooling, who = ([(text, False)] for text in said)
        found = [self.exposure, away, pooling, self._left_to_given, who]
        return [reason for reason in found if any(text for text, _ in reason)]

    @property
    def brief(self) -> list[str]:
        """The reasons for the first screen, one line each."""
        exposed, open_ = (
            "".join(text for text, _ in self.exposure),
            self.finding in ("exact", "undecided", "refuted", "not-measured"),
        )
        alone = open_ or self.beside_errors or (self.finding == "gain" and not self._pooled)
        shown = [self.sentence] if alone else [self._guessed(), self._unknown()]
        given = "".join(text for text, _ in self._left_to_given) if self._to_given else ""
        lines = (
            exposed,
            self._given_away(),
            self._as_they_are(),
            *shown,
            given,
            self._strongest_attack(),
        )
        return [line for line in lines if line]

    @property
    def _left_to_given(self) -> Pieces:
        if self.given is None:
            return []
        attribute, shown, attack, names, alone = self.given
        rest = "" if attribute == EVERYTHING else clipped(attribute, 60)
        return say.left_to_given(
            shown, clipped(attack, 60), [clipped(name, 60) for name in names], rest, alone
        )

    @property
    def _pooled(self) -> bool:
        return any(axis.single for axis in self.axes)

    def _unknown(self) -> str:
        if self.worst is None:
            return ""
        if self.exposed is not None and self.exposed.shown == self.worst and not self._pooled:
            return ""  # already stated for the only attribute
        if self.single is None or self.single.coalition == self.worst.coalition:
            alone = (
                f"Copy {self.worst.coalition[0]} alone leaves"
                if len(self.worst.coalition) == 1
                else "Pooling leaves"
            )
            nothing = ", and pooling takes nothing away" if self.finding == "no-gain" else ""
            return f"{alone} {say.share(self.worst)} of the variance unknown{nothing}."
        return f"Pooling leaves {say.share(self.worst)} of the variance unknown, the most revealing copy {say.share(self.single)}."

    def _given_away(self) -> str:
        if self.disclosed is None or self.disclosed.shown.value <= 0:
            return ""
        by, shown, news, _ = self.disclosed
        chance = (
            ""
            if say.share(shown) == say.share(news)
            else f", which is {say.share(news)} of what is not known without it"
        )
        return f"Of {say.share(shown)} of the records the class gives the sensitive value away ({clipped(by, 60)}){chance}."

    def _as_they_are(self) -> str:
        if self.kept is not None and self.shown is None:
            name, shown = self.kept
            few = "are unperturbed among perturbed ones, more than by chance: an attacker who identifies them knows these"
            return f"Of {clipped(name, 60)} {say.share(shown)} of the values {few}."
        if self.shown is None:
            return self._one_value()
        name, shown = self.shown
        who = (
            f"Copy {shown.coalition[0]} shows"
            if len(shown.coalition) == 1
            else "Two copies or more agree on"
        )
        return f"{who} {say.share(shown)} of the values of {clipped(name, 60)} as they are, beyond chance."

    def _one_value(self) -> str:
        if self.believed is None:
            return ""
        rises = f"rises {say.share(self.believed)} of the way from its share to certainty"
        return f"Of the value that is given away most, belief where it is true {rises}."

    def _guessed(self) -> str:
        if self.guesses is None:
            return ""
        found, blind = self.guesses, f"without any copy {percent(self.guesses.blind)}"
        alone = (
            f", from the most revealing copy alone {say.share(found.single)}"
            if found.single
            else ""
        )
        return (
            f"The best guess is right for {say.share(found.right)} of the records{alone}; {blind}."
        )

    def _strongest_attack(self, how: str = "") -> str:
        where = f" at {self.where}" if self.where else ""
        return f"Strongest attack{how and f' {how}'}: {self.who}{where}." if self.who else ""

    @property
    def exposure(self) -> Pieces:
        """The most exposed attribute in pieces; empty for exact reconstruction."""
        if self.exposed is None or self.finding == "exact":
            return []
        name, shown, tied, by, near = self.exposed
        return say.exposure(
            clipped(name, 60), shown, [clipped(other, 60) for other in tied], by, near
        )

    @property
    def axes(self) -> list[Axis]:
        """Scales of the worst coalition: guesses, error, classes, values shown."""
        found = (
            self._guess_axis(),
            self._error_axis(),
            self._class_axis(),
            self._shown_axis(),
            self._value_axis(),
        )
        return [axis for axis in found if axis is not None]

    def _error_axis(self) -> Axis | None:
        if self.worst is None:
            return None
        other = (
            None
            if self.single is None or self.single.coalition == self.worst.coalition
            else self.single
        )
        return Axis(
            "share of the variance unknown",
            "Normalized error",
            with_error(self.worst),
            with_error(other) if other else "",
            len(self.worst.coalition) == 1,
            self.worst.value,
            other.value if other else None,
            severity(self.worst.value),
        )

    def _class_axis(self) -> Axis | None:
        if self.disclosed is None:
            return None
        _, _, news, single = self.disclosed
        other = None if single is None or single.coalition == news.coalition else single
        left, single_left = (
            min(1.0, 1.0 - news.value),
            None if other is None else min(1.0, 1.0 - other.value),
        )
        return Axis(
            "the bar shows the others",
            "Sensitive values given away, beyond chance",
            say.share(news),
            say.share(other) if other else "",
            len(news.coalition) == 1,
            left,
            single_left,
            severity(left),
            said="given away",
        )

    def _shown_axis(self) -> Axis | None:
        if self.shown is None:
            return None
        return _axis_of(
            self.shown[1],
            "the bar shows the others",
            "Values shown as they are",
            "shown as they are",
        )

    def _value_axis(self) -> Axis | None:
        if self.believed is None:
            return None
        return _axis_of(
            self.believed,
            "the bar shows the doubt left",
            "Belief in one value",
            "of the way to certainty of one value",
        )

    def _guess_axis(self) -> Axis | None:
        found = self.guesses
        if found is None:
            return None
        other = (
            None
            if found.single is None or found.single.coalition == found.right.coalition
            else found.single
        )
        return Axis(
            "the bar shows the wrong ones left",
            "Right guesses",
            say.share(found.right),
            say.share(other) if other else "",
            len(found.right.coalition) == 1,
            found.left,
            found.single_left if other else None,
            severity(found.left),
            percent(found.blind),
            "right",
        )

    @property
    def severity(self) -> Severity | None:
        """The worst severity on any scale, or of the most exposed attribute."""
        return self.singled_out.severity if self.singled_out else self.whole

    @property
    def whole(self) -> Severity | None:
        """Severity of all attributes together."""
        return max((axis.severity for axis in self.axes), key=lambda step: step.rank, default=None)

    @property
    def singled_out(self) -> Exposure | None:
        """The most exposed attribute, if its severity exceeds the overall one."""
        whole = self.whole
        if whole is None or self.exposed is None or self.exposed.severity.rank <= whole.rank:
            return None
        return self.exposed

    @property
    def grade(self) -> str:
        """The severity in words, for example ``severe`` or ``rebuilt (age)``."""
        if self.severity is None or self.finding == "exact":
            return ""
        one = self.singled_out
        return (
            self.severity.word
            if one is None
            else f"{self.severity.word} ({clipped(one.attribute, 30)})"
        )

    @property
    def left(self) -> float:
        """The least share left on any scale, or of the most exposed attribute."""
        one = self.singled_out
        return min(
            [*(axis.left for axis in self.axes), *([one.shown.value] if one else [])],
            default=math.inf,
        )

    @property
    def strongest(self) -> str:
        """The strongest reconstruction in short: its error or its right guesses."""
        if self.singled_out:
            return (
                f"{with_error(self.singled_out.shown)} of {clipped(self.singled_out.attribute, 24)}"
            )
        worst = min(self.axes, key=lambda axis: axis.left, default=None)
        return "–" if worst is None else f"{worst.worst} {worst.said}".rstrip()


def _axis_of(shown: Figure, scale: str, title: str, said: str) -> Axis:
    alone, grade = len(shown.coalition) == 1, severity(1.0 - floor(shown))
    return Axis(
        scale, title, say.share(shown), "", alone, 1.0 - shown.value, None, grade, said=said
    )


def most_telling(found: list[Verdict]) -> Verdict | None:
    """Return the verdict with the strongest reconstruction; None if none."""
    return min(
        (verdict for verdict in found if verdict.axes),
        key=lambda verdict: verdict.left,
        default=None,
    )


SUMMARY: dict[str, str] = {
    "exact": "rebuilt exactly",
    "gain": "rebuilt better by pooling copies",
    "refuted": "not as its expectation promised",
    "undecided": "undecided",
    "no-gain": "where pooling gains nothing",
    "alone": "where pooling was not measured",
    "not-measured": "not measured",
}


def summary(found: list[Verdict]) -> str:
    """Count exposed schemes and findings, worst first; empty for one scheme."""
    if len(found) < 2:
        return ""
    exposed = sum(verdict.rank > FINE for verdict in found)
    lead = (
        f"{_scheme_count(exposed, len(found))} leave{'s' * (exposed == 1)} less than half of some attribute unknown"
        if exposed
        else ""
    )
    counts = [(kind, sum(verdict.finding == kind for verdict in found)) for kind in SUMMARY]
    parts = [f"{spelled(count)} {SUMMARY[kind]}" for kind, count in counts if count]
    if len(parts) == 1:
        parts = [
            f"{'both' if len(found) == 2 else 'all'} {SUMMARY[kind]}"
            for kind, count in counts
            if count
        ]
    every = (
        lead
        if exposed == len(found)
        else ". ".join(filter(None, [lead, f"{say.capital(spelled(len(found)))} schemes"]))
    )
    return f"{every}: {', '.join(parts)}."


def _scheme_count(count: int, total: int) -> str:
    every = "Both schemes" if total == 2 else f"All {spelled(total)} schemes"
    return every if count == total else say.capital(f"{spelled(count)} of {spelled(total)} schemes")
