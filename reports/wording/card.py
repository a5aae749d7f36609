"""Verdict of one scheme: exposure, finding, grade and sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..figures.figures import (
    Figure,
    Severity,
    Text,
    clipped,
    copies,
    listed,
    said,
    severity,
    with_error,
)
from ..figures.reading import EVERYTHING, Setting, ceiling
from ..figures.strongest import Guesses
from . import sentences as say

Finding = Literal["exact", "gain", "no-gain", "undecided", "refuted", "alone", "not-measured"]
LABELS: dict[str, str] = {
    "exact": "rebuilt",
    "gain": "pooling endangers records",
    "no-gain": "no collusion gain",
    "undecided": "pooling undecided",
    "refuted": "promise refuted",
    "alone": "pooling not measured",
    "not-measured": "not measured",
}
State = Literal["bad", "open", "good", "plain"]
MARKS: dict[State, str] = {"bad": "✗", "good": "✓", "open": "?", "plain": "·"}
HALF = 0.5
"""Target if the scenario states none: half of every attribute stays unknown."""
FINE = 2
"""Highest acceptable rank: at least half of each attribute's variance is unknown."""
LITTLE = 0.1
"""Share of the error without copies that copies must remove to count as a cause."""


class Exposure(NamedTuple):
    """The attribute with the lowest error.

    ``tied`` attributes are within its error bars. ``by`` names another adversary.
    """

    attribute: str
    shown: Figure
    tied: tuple[str, ...]
    by: str = ""

    @property
    def severity(self) -> Severity:
        """Severity of this attribute's upper bound."""
        return severity(ceiling(self.shown))


class Disclosure(NamedTuple):
    """Records whose sensitive value an attack on classes claims rightly.

    ``news`` is the share beyond chance, ``single`` the share from one copy.
    """

    by: str
    shown: Figure
    news: Figure
    single: Figure | None


class Given(NamedTuple):
    """Error of an adversary with attributes in clear, on the other attributes.

    ``attribute`` has the lowest error; ``*`` means all others. ``alone`` is the error without copies.
    """

    attribute: str
    shown: Figure
    attack: str
    names: tuple[str, ...]
    alone: float | None

    @property
    def severity(self) -> Severity:
        return severity(ceiling(self.shown))

    @property
    def rank(self) -> int:
        """Rank of the severity if copies remove at least `LITTLE` of the error, else 0."""
        by_copies = self.alone is None or ceiling(self.shown) < (1 - LITTLE) * self.alone
        return self.severity.rank if by_copies else 0


class Scale(NamedTuple):
    """Share that one measure leaves unknown, and the measure's figure as text."""

    what: str
    left: Figure
    shown: str


@dataclass(frozen=True)
class Verdict:
    """Verdict on one scheme.

    Attributes
    ----------
    setting : Setting or None
        The strongest attack.
    worst, single : Figure or None
        Normalized error of worst coalition and best member.
    shown, kept : (str, Figure) or None
        Attribute with most unperturbed values, in a copy or among perturbed values.
    beside_errors : bool
        Whether the finding rests on classes or guarantees.
    target : float
        Smallest share that must stay unknown.
    asked : str
        Outcome of the scenario's `exposure`; empty without one.
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
    unused: bool = False
    beside_errors: bool = False
    target: float = HALF
    asked: str = ""
    total: int = 0

    @property
    def label(self) -> str:
        """Exposure and finding in short, with a warning on excluded data."""
        found = LABELS[self.finding]
        label = (
            f"Exposure {self.grade}{self._to_given} · {found}" if self.grade else say.capital(found)
        )
        label += " · some values known exactly" if self.kept else ""
        label += " · a shown column was not used" if self.unused else ""
        return f"{label} · what was left out is more exposed" if self.understated else label

    @property
    def state(self) -> State:
        """``good`` only if all intervals are at or above the target."""
        if (
            self.finding in ("exact", "refuted")
            or any((ceiling(left) < self.target) for left in self.exposures)
            or (self.given and self.given.rank > FINE)
            or self.beside_errors
            or self.understated
            or self.kept
            or self.asked == "fails"
        ):
            return "bad"
        if not self.exposures:
            return "plain"
        sure = all(left.low is not None and left.low >= self.target for left in self.exposures)
        pooled = self.finding in ("no-gain", "gain") or (
            self.finding == "alone" and self.total == 1
        )
        return (
            "good"
            if sure and pooled and not self.unused and self.asked in ("", "holds")
            else "open"
        )

    @property
    def exposures(self) -> list[Figure]:
        """Shares left of every measure and of the most exposed attribute."""
        return [*(one.left for one in self.scales), *([self.exposed.shown] if self.exposed else [])]

    @property
    def rank(self) -> int:
        """Rank of the worst severity over adversaries; 0 if not measured."""
        return max(self.severity.rank if self.severity else 0, self.given.rank if self.given else 0)

    @property
    def _to_given(self) -> str:
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
        return " ".join(map(said, self.reasons))

    @property
    def reasons(self) -> list[Text]:
        """Exposure, pooling and strongest attack, one sentence each."""
        where = f" at {self.where}" if self.where else ""
        who = f"Strongest attack measured: {self.who}{where}." if self.who else ""
        away = self._given_away() or self._as_they_are()
        return [
            one for one in (self.exposure, away, self.sentence, self._left_to_given, who) if one
        ]

    @property
    def _left_to_given(self) -> Text:
        if self.given is None:
            return ""
        attribute, shown, attack, names, alone = self.given
        rest = "" if attribute == EVERYTHING else clipped(attribute, 60)
        known = [clipped(name, 60) for name in names]
        return say.left_to_given(shown, clipped(attack, 60), known, rest, alone)

    def _given_away(self) -> str:
        if self.disclosed is None or self.disclosed.shown.value <= 0:
            return ""
        by, shown, news, _ = self.disclosed
        alike = say.share(shown) == say.share(news)
        chance = "" if alike else f", which is {say.share(news)} of what is not known without it"
        return f"Of {say.share(shown)} of the records the class gives the sensitive value away ({clipped(by, 60)}){chance}."

    def _as_they_are(self) -> str:
        if self.shown is not None:
            name, shown = self.shown
            one = len(shown.coalition) == 1
            who = f"Copy {shown.coalition[0]} shows" if one else "Two copies or more agree on"
            return f"{who} {say.share(shown)} of the values of {clipped(name, 60)} as they are, beyond chance."
        if self.kept is not None:
            name, shown = self.kept
            who = copies(shown.coalition, self.total)
            few = f"follow exactly from {who}, more than by chance"
            return f"Of {clipped(name, 60)} {say.share(shown)} of the values {few}."
        if self.believed is None:
            return ""
        rises = f"rises {say.share(self.believed)} of the way from its share to certainty"
        return f"In records with the most exposed value, the belief in it {rises}."

    @property
    def exposure(self) -> Text:
        """The most exposed attribute in a sentence; empty for exact reconstruction."""
        if self.exposed is None or self.finding == "exact":
            return ""
        name, shown, tied, by = self.exposed
        others = [clipped(other, 60) for other in tied]
        return say.exposure(clipped(name, 60), shown, others, by)

    @property
    def scales(self) -> list[Scale]:
        """Shares that the worst coalition leaves unknown, by measure."""
        found = []
        if (guessed := self.guesses) is not None:
            left = guessed.right.turned(guessed.mistakes)
            found.append(Scale("right guesses", left, say.share(guessed.right)))
        if self.worst is not None:
            found.append(Scale("normalized error", self.worst, with_error(self.worst)))
        shares = {
            "sensitive values given away": self.disclosed and self.disclosed.news,
            "values shown as they are": self.shown and self.shown[1],
            "belief in one value": self.believed,
        }
        found += [
            Scale(what, shown.turned(lambda value: 1.0 - value), say.share(shown))
            for what, shown in shares.items()
            if shown
        ]
        return found

    @property
    def severity(self) -> Severity | None:
        """The worst severity of any measure, or of the most exposed attribute."""
        return self.singled_out.severity if self.singled_out else self.whole

    @property
    def whole(self) -> Severity | None:
        """Severity of all attributes together."""
        steps = [severity(one.left.value) for one in self.scales]
        return max(steps, key=lambda step: step.rank, default=None)

    @property
    def singled_out(self) -> Exposure | None:
        """The most exposed attribute, if its severity exceeds the overall one."""
        one, whole = self.exposed, self.whole
        return one if one and whole and one.severity.rank > whole.rank else None

    @property
    def grade(self) -> str:
        """The severity in words, for example ``severe`` or ``rebuilt (age)``."""
        if self.severity is None or self.finding == "exact":
            return ""
        one = self.singled_out
        return self.severity.word + (f" ({clipped(one.attribute, 30)})" if one else "")

    @property
    def left(self) -> float:
        """The least share left by any measure, or of the most exposed attribute."""
        return min((one.value for one in self.exposures), default=math.inf)

    @property
    def strongest(self) -> str:
        """The strongest reconstruction in short: its error or its right guesses."""
        if (one := self.singled_out) is not None:
            return f"{with_error(one.shown)} of {clipped(one.attribute, 24)}"
        worst = min(self.scales, key=lambda scale: scale.left.value, default=None)
        return f"{worst.what} {worst.shown}" if worst else "–"


def most_telling(found: list[Verdict]) -> Verdict | None:
    """Verdict with the strongest reconstruction; None if none."""
    return min((one for one in found if one.exposures), key=lambda one: one.left, default=None)
