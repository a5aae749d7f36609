"""One scheme's verdict as reports show it: its finding, its sentence, and the scales it is placed on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from reports.figures.figures import Figure, clipped, percent, spelled, with_error
from reports.figures.guesses import Guesses
from reports.figures.reading import Setting, ceiling
from reports.figures.severity import Severity, severity
from reports.wording import sentences as say

Finding = Literal["exact", "gain", "no-gain", "undecided", "refuted", "alone", "not-measured"]

LABELS: dict[str, str] = {
    "exact": "Rebuilt exactly",
    "gain": "Pooling pays",
    "no-gain": "No collusion gain",
    "undecided": "Undecided",
    "refuted": "Promise refuted",
    "alone": "Single copies only",
    "not-measured": "Not measured",
}

MARKS: dict[str, str] = {"exact": "✗", "gain": "✗", "refuted": "✗", "no-gain": "✓", "undecided": "?"}


class Exposure(NamedTuple):
    """The attribute rebuilt best.

    Attributes
    ----------
    tied : tuple of str
        Attributes that the error bars cannot tell from it.
    by : str
        Who rebuilds it, where that is not the verdict's own attack and coalition; names in it come from the scenario.
    """

    attribute: str
    shown: Figure
    tied: tuple[str, ...]
    by: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is for this attribute, for sure."""
        return severity(ceiling(self.shown))


class Axis(NamedTuple):
    """One scale of a verdict, written out: 0 is an exact reconstruction, 1 no better than a guess without any copy.

    Attributes
    ----------
    title, what : str
        What the scale shows, and what its figures are: ``share of the variance unknown``, ``Normalized error``.
    worst, single : str
        Figures of the worst coalition and of its best member alone; ``single`` is empty where that is the same, or was not measured.
    alone : bool
        Whether the worst coalition is one copy.
    left, single_left : float
        Places on the scale.
    blind : str
        What needs no copy, for guesses; empty for errors, where it is 1.
    """

    title: str
    what: str
    worst: str
    single: str
    alone: bool
    left: float
    single_left: float | None
    severity: Severity
    blind: str


@dataclass(frozen=True)
class Verdict:
    """What the audit says of one scheme.

    Attributes
    ----------
    setting : Setting or None
        The strongest attack's setting.
    worst, single : Figure or None
        Normalized error of the coalition with the lowest one (for categories: with the best guesses), and of its best member alone.
    guesses : Guesses or None
        What that coalition guesses of categories.
    gain : Figure or None
        Collusion gain of that coalition.
    exposed : Exposure or None
        The attribute that the worst coalition rebuilds best, when there are several.
    given : list of (str, bool)
        What is left to an adversary who was given attributes in clear, in pieces; those with True are names.
    """

    scheme: str
    finding: Finding
    sentence: str
    setting: Setting | None = None
    worst: Figure | None = None
    single: Figure | None = None
    gain: Figure | None = None
    exposed: Exposure | None = None
    adversary: str = ""
    where: str = ""
    guesses: Guesses | None = None
    given: tuple[tuple[str, bool], ...] = ()

    @property
    def label(self) -> str:
        """Two or three words for the finding."""
        return LABELS[self.finding]

    @property
    def mark(self) -> str:
        """A character for the finding."""
        return MARKS.get(self.finding, "·")

    @property
    def text(self) -> str:
        """The sentence, what follows it, and who it is that rebuilds so much."""
        where = f" at {self.where}" if self.where else ""
        who = f"(Strongest attack measured: {clipped(self.adversary, 70)}{where}.)" if self.adversary else ""
        return " ".join(filter(None, (self.sentence, "".join(text for text, _ in self.aside), who)))

    @property
    def exposure(self) -> list[tuple[str, bool]]:
        """Name the most exposed attribute, in pieces; those with True are names. Empty when nothing remains unknown anyway."""
        if self.exposed is None or self.finding == "exact":
            return []
        name, shown, tied, by = self.exposed
        return say.exposure(clipped(name, 60), shown, [clipped(other, 60) for other in tied], by)

    @property
    def aside(self) -> list[tuple[str, bool]]:
        """What follows the sentence, in pieces; those with True are names that come from the data."""
        apart = [(" ", False)] if self.exposure and self.given else []
        return [*self.exposure, *apart, *self.given]

    @property
    def axes(self) -> list[Axis]:
        """The scales that the worst coalition is placed on: right guesses of categories, and the normalized error."""
        return [axis for axis in (self._guess_axis(), self._error_axis()) if axis is not None]

    def _error_axis(self) -> Axis | None:
        if self.worst is None:
            return None
        other = None if self.single is None or self.single.coalition == self.worst.coalition else self.single
        return Axis(
            "share of the variance unknown", "Normalized error", with_error(self.worst), with_error(other) if other else "",
            len(self.worst.coalition) == 1, self.worst.value, other.value if other else None, severity(self.worst.value), "",
        )  # fmt: skip

    def _guess_axis(self) -> Axis | None:
        found = self.guesses
        if found is None:
            return None
        other = None if found.single is None or found.single.coalition == found.right.coalition else found.single
        return Axis(
            "the bar shows the wrong ones left", "Right guesses", say.share(found.right), say.share(other) if other else "",
            len(found.right.coalition) == 1, found.left, found.single_left if other else None, severity(found.left), percent(found.blind),
        )  # fmt: skip

    @property
    def severity(self) -> Severity | None:
        """How bad the worst reconstruction is, on the scale where it is worst, or that of the most exposed attribute."""
        return self.singled_out.severity if self.singled_out else self.whole

    @property
    def whole(self) -> Severity | None:
        """How bad it is for all attributes together."""
        return max((axis.severity for axis in self.axes), key=lambda step: step.rank, default=None)

    @property
    def singled_out(self) -> Exposure | None:
        """The most exposed attribute, where it is worse off than all attributes together; None where it is not."""
        whole = self.whole
        if whole is None or self.exposed is None or self.exposed.severity.rank <= whole.rank:
            return None
        return self.exposed

    @property
    def grade(self) -> str:
        """The severity in words: ``severe``, or ``low; age rebuilt``; empty where nothing was measured or everything is rebuilt."""
        whole, one = self.whole, self.singled_out
        if whole is None or self.finding == "exact":
            return ""
        return whole.word if one is None else f"{whole.word}; {clipped(one.attribute, 30)} {one.severity.word}"

    @property
    def left(self) -> float:
        """How little is left, on the scale where that is least, or of an attribute that is worse off than all together."""
        one = self.singled_out
        return min([*(axis.left for axis in self.axes), *([one.shown.value] if one else [])], default=math.inf)

    @property
    def strongest(self) -> str:
        """The strongest reconstruction in short: its error, or its right guesses."""
        if self.singled_out:
            return f"{with_error(self.singled_out.shown)} of {clipped(self.singled_out.attribute, 24)}"
        worst = min(self.axes, key=lambda axis: axis.left, default=None)
        return "–" if worst is None else f"{worst.worst} right" if worst.blind else worst.worst


def most_telling(found: list[Verdict]) -> Verdict | None:
    """Return the verdict with the strongest reconstruction of all schemes; None where nothing was measured."""
    return min((verdict for verdict in found if verdict.axes), key=lambda verdict: verdict.left, default=None)


SUMMARY: dict[str, str] = {
    "exact": "rebuilt exactly",
    "gain": "rebuilt better by pooling copies",
    "refuted": "not as its expectation promised",
    "undecided": "undecided",
    "no-gain": "where pooling gains nothing",
    "alone": "with single copies only",
    "not-measured": "not measured",
}


def summary(found: list[Verdict]) -> str:
    """Count the verdicts of several schemes, worst first; empty for one scheme, whose own sentence says it."""
    if len(found) < 2:
        return ""
    counts = [(kind, sum(verdict.finding == kind for verdict in found)) for kind in SUMMARY]
    parts = [f"{spelled(count)} {SUMMARY[kind]}" for kind, count in counts if count]
    many = f"{say.capital(spelled(len(found)))} schemes"
    if len(parts) == 1:
        kind = next(kind for kind, count in counts if count)
        return f"{many}, {'both' if len(found) == 2 else 'all'} {SUMMARY[kind]}."
    return f"{many}: {', '.join(parts)}."
