"""Verdict of each scheme on exposure and pooling.

Pooling *endangers* if the interval of an attack's gain lies above 0, or if pooled copies have
smaller classes or weaker guarantees than each copy. It *buys nothing* if every interval ends
below the margin. Otherwise it is *undecided*. Intervals are widened for the number of coalitions
(Bonferroni). The scenario's own ``no-collusion-gain`` overrides the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from auditor.base.types import Coalition, Names, Plain, frozen
from auditor.results.metrics import unused_columns
from auditor.results.records import BELIEVED, KEPT, SHOWN, VERDICTS, ExpectationRecord

from . import sentences as say
from .figures import (
    SCALE,
    Z95,
    Figure,
    Severity,
    braces,
    clipped,
    copies,
    isolated,
    listed,
    number,
    percent,
    said,
    severity,
    share,
    spelled,
    with_error,
)
from .matrix import (
    EXACT,
    Guesses,
    guesses,
    guesses_categories,
    judged,
    label,
    least,
    losses,
    lowest_attribute,
    phrase,
    strongest,
)
from .reading import ERROR, EVERYTHING, GAIN, Reading, Setting, best_single, lowest
from .sentences import Bound, Classes, Numbers

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
    tied: Names
    by: str = ""


class Disclosure(NamedTuple):
    """Records whose sensitive value an attack on classes claims rightly.

    ``news`` is the share beyond chance.
    """

    by: str
    shown: Figure
    news: Figure


class Given(NamedTuple):
    """Error of an adversary with attributes in clear, on the other attributes.

    ``attribute`` has the lowest error; ``*`` means all others. ``alone`` is the error without copies.
    """

    attribute: str
    shown: Figure
    attack: str
    names: Names
    alone: float | None

    @property
    def rank(self) -> int:
        """Rank of the severity if copies remove at least `LITTLE` of the error, else 0."""
        by_copies = self.alone is None or self.shown.ceiling < (1 - LITTLE) * self.alone
        return self.shown.severity.rank if by_copies else 0


class Scale(NamedTuple):
    """Share that one measure leaves unknown, and the measure's figure as text."""

    what: str
    left: Figure
    shown: str


@frozen
class Verdict:
    """Verdict on one scheme.

    Attributes
    ----------
    setting : Setting or None
        The strongest attack.
    worst : Figure or None
        Normalized error of the worst coalition.
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
            or any(left.ceiling < self.target for left in self.exposures)
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
        return f", {self.given.shown.severity.word} to whoever knows {who}"

    @property
    def mark(self) -> str:
        """Character of the state."""
        return MARKS[self.state]

    @property
    def text(self) -> str:
        """The reasons as one text."""
        return " ".join(map(said, self.reasons))

    @property
    def reasons(self) -> list[str]:
        """Exposure, pooling and strongest attack, one sentence each."""
        where = f" at {self.where}" if self.where else ""
        who = f"Strongest attack measured: {self.who}{where}." if self.who else ""
        found = (self.exposure, self._plainly, self.sentence, self._left_to_given, who)
        return [one for one in found if one]

    @property
    def _left_to_given(self) -> str:
        if self.given is None:
            return ""
        attribute, shown, attack, names, alone = self.given
        without = "" if alone is None else f", without any copy {percent(alone)}"
        known = isolated(listed([clipped(name, 60) for name in names]))
        others = "the others" if attribute == EVERYTHING else isolated(clipped(attribute, 60))
        left = f"{share(shown)} of the variance of {others} unknown"
        return f"An adversary who already knows {known} of every record is left with {left} ({clipped(attack, 60)}){without}."

    @property
    def _plainly(self) -> str:
        """Values that classes give away, that copies show, or that beliefs near."""
        if self.disclosed is not None and self.disclosed.shown.value > 0:
            by, shown, news = self.disclosed
            said = share(shown)
            chance = f", which is {share(news)} of what is not known without it"
            chance *= said != share(news)
            return f"Of {said} of the records the class gives the sensitive value away ({clipped(by, 60)}){chance}."
        if self.shown is not None:
            name, shown = self.shown
            one = len(shown.coalition) == 1
            who = f"Copy {shown.coalition[0]} shows" if one else "Two copies or more agree on"
            return f"{who} {share(shown)} of the values of {clipped(name, 60)} as they are, beyond chance."
        if self.kept is not None:
            name, shown = self.kept
            who = copies(shown.coalition, self.total)
            few = f"follow exactly from {who}, more than by chance"
            return f"Of {clipped(name, 60)} {share(shown)} of the values {few}."
        if self.believed is None:
            return ""
        rises = f"rises {share(self.believed)} of the way from its share to certainty"
        return f"In records with the most exposed value, the belief in it {rises}."

    @property
    def exposure(self) -> str:
        """The most exposed attribute in a sentence; empty for exact reconstruction."""
        if self.exposed is None or self.finding == "exact":
            return ""
        name, shown, tied, by = self.exposed
        alike = ""
        if tied:
            others = f"{spelled(len(tied))} others are"
            if len(tied) == 1:
                others = f"{isolated(clipped(tied[0], 60))} is"
            alike = f"; within the error bars, {others} just as exposed"
        left = f"{share(shown)} of its variance unknown{f' to {isolated(by)}' * bool(by)}"
        return f"Most exposed: {isolated(clipped(name, 60))} ({left}){alike}."

    @property
    def scales(self) -> list[Scale]:
        """Shares that the worst coalition leaves unknown, by measure."""
        found = []
        if (guessed := self.guesses) is not None:
            left = guessed.right.turned(guessed.mistakes)
            found.append(Scale("right guesses", left, share(guessed.right)))
        if self.worst is not None:
            found.append(Scale("normalized error", self.worst, with_error(self.worst)))
        shares = {
            "sensitive values given away": self.disclosed and self.disclosed.news,
            "values shown as they are": self.shown and self.shown[1],
            "belief in one value": self.believed,
        }
        found += [
            Scale(what, shown.turned(lambda value: 1.0 - value), share(shown))
            for what, shown in shares.items()
            if shown
        ]
        return found

    @property
    def severity(self) -> Severity | None:
        """The worst severity of any measure, or of the most exposed attribute."""
        return self.singled_out.shown.severity if self.singled_out else self.whole

    @property
    def whole(self) -> Severity | None:
        """Severity of all attributes together."""
        steps = [severity(one.left.value) for one in self.scales]
        return max(steps, key=lambda step: step.rank, default=None)

    @property
    def singled_out(self) -> Exposure | None:
        """The most exposed attribute, if its severity exceeds the overall one."""
        one, whole = self.exposed, self.whole
        return one if one and whole and one.shown.severity.rank > whole.rank else None

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


MARGIN = 0.01
"""Margin of ``no-collusion-gain``; smaller gains, relative to the best copy's error, count as
none."""

NO_GAIN = ("no-collusion-gain", "theorem-4")
LAW = "noise-follows-law"
DISCLOSED, NEWS = "disclosed", "disclosed_beyond_chance"
WITHOUT_COPIES = "error_without_copies"
BESIDE_ERRORS = {"anonymity_k": "", "epsilon": "ε", "gaussian_dp": "μ"}
"""Measures of a release beside errors, and the symbol of a guarantee."""


def verdicts(reading: Reading) -> list[Verdict]:
    """Verdict on every scheme, in scenario order."""
    return [verdict(reading, scheme) for scheme in reading.schemes]


def verdict(reading: Reading, scheme: str) -> Verdict:
    """Verdict on one scheme."""
    setting = strongest(reading, scheme)
    if setting is None:
        return Verdict(scheme, "not-measured", "No attack gave a normalized error for this scheme.")
    judge = _Judge(reading, setting)
    decided = judge.pooling(judge.base())
    if decided.finding in ("no-gain", "undecided"):
        steps = judge.in_one_attribute, judge.to_another_attack, judge.beside_errors
        decided = next(filter(None, (step(decided) for step in steps)), decided)
    return heeding(decided, reading.result.expectations, judge.numbers.leaves(judge.worst))


def target_of(reading: Reading, scheme: str) -> tuple[float, str]:
    """Share that must stay unknown, and the outcome of this expectation."""
    found, bounds = list[str](), list[float]()
    for record in reading.result.expectations:
        if record.expectation == "exposure" and _admits(record.where.get("scheme"), scheme):
            least = _stated(record.where.get("unknown"), "at-least")
            if least is not None or _stated(record.where.get("close"), "at-most") is not None:
                found.append(record.status)
            bounds += [] if least is None else [least]
    return max(bounds, default=HALF), next((one for one in VERDICTS if one in found), "")


def _stated(bounds: Any, end: str) -> float | None:
    found = bounds.get(end) if isinstance(bounds, dict) else None  # results files may be edited
    return float(found) if isinstance(found, int | float) else None


class _Judge:
    """The strongest attack's setting, its figures, and other measures."""

    def __init__(self, reading: Reading, setting: Setting) -> None:
        self.reading, self.setting = reading, setting
        self.found = losses(reading, setting)
        worst = lowest(self.found.values())
        assert worst is not None  # `strongest` returns only settings with figures
        self.worst = worst
        self.given = reading.given(setting)
        self.total = reading.copies_of(setting.scheme, setting.point)
        if guesses_categories(reading, setting):
            self.numbers: Numbers = Classes(self.total, reading, setting)
        else:
            self.numbers = Numbers(self.total, [clipped(name, 60) for name in sorted(self.given)])

    def here(self, metric: str) -> list[Setting]:
        return [one for one in self.reading.settings(metric) if one[:2] == self.setting[:2]]

    @property
    def gains(self) -> list[Figure]:
        found = self.reading.figures(self.setting, GAIN)
        return [found[held] for held in self.found if len(held) > 1 and held in found]

    def paying(self, gains: list[Figure]) -> tuple[Figure, str] | None:
        surely, found = _paying(_bounds(gains)), self.found
        if not surely:
            return None
        gain = min(surely, key=lambda one: (found[one.coalition].value, len(one.coalition)))
        alone = best_single(found, gain.coalition)
        return gain, self.numbers.paying(gain, found[gain.coalition], alone)

    def base(self) -> Verdict:
        reading, setting, coalition = self.reading, self.setting, self.worst.coalition
        target, asked = target_of(reading, setting.scheme)
        releases = reading.result.releases
        return Verdict(
            setting.scheme,
            "alone",
            f"No coalition of two or more was measured; {self.numbers.leaves(self.worst, begin=False)}.",
            setting,
            reading.figures(setting).get(coalition),
            reading.figures(setting, GAIN).get(coalition),
            self.exposed(),
            label(reading, setting),
            reading.point_text(setting.point),
            guesses(reading, setting, coalition),
            self.given_more(),
            self.disclosed(),
            self.most(SHOWN, sure=True),
            self.most(KEPT),
            _sure(reading.figures(setting, BELIEVED).get(coalition)),
            any(one.understated for one in releases if one.scheme == setting.scheme),
            bool(
                unused_columns(r for r in reading.result.measurements if r.scheme == setting.scheme)
            ),
            target=target,
            asked=asked,
            total=self.total,
        )

    def disclosed(self) -> Disclosure | None:
        # version 0.1 has no NEWS
        shares = {
            one: self.reading.figures(one, NEWS) or self.reading.figures(one, DISCLOSED)
            for one in self.here(DISCLOSED)
        }
        found = [(one, news) for one, each in shares.items() for news in each.values()]
        if not found:
            return None
        who, news = max(found, key=lambda one: (one[1].floor, -len(one[1].coalition)))
        shown = self.reading.figures(who, DISCLOSED)[news.coalition]
        return Disclosure(str(who.attack), shown, news)

    def most(self, metric: str, *, sure: bool = False) -> tuple[str, Figure] | None:
        names = self.reading.attributes
        every = [
            (name, shown)
            for one in self.here(metric)
            for name in names
            for shown in self.reading.figures(one, metric, name).values()
        ]
        most = max(every, key=lambda one: one[1].floor, default=None)
        return most if most is None or not sure or _sure(most[1]) else None

    def given_more(self) -> Given | None:
        if self.given:
            return None
        others = self.reading.settings(ERROR, self.setting.scheme)
        found = [one for other in others for one in _left_to(self.reading, other)]
        more = min(
            found,
            key=lambda one: (
                -one.rank if one.rank > FINE else 0,
                one.shown.ceiling,
                one.attribute != EVERYTHING,
            ),
            default=None,
        )
        worst = lowest(self.reading.figures(self.setting).values())
        stronger = more and worst and more.shown.ceiling < worst.ceiling
        return more if stronger else None

    def pooling(self, base: Verdict) -> Verdict:
        found, numbers = self.found, self.numbers
        single = best_single(found, self.worst.coalition)
        if self.worst.value < EXACT:
            return replace(base, finding="exact", sentence=numbers.exact(self.worst, single))
        bounds = _bounds(self.gains)
        if not bounds:
            return base
        if (paying := self.paying(self.gains)) is not None:
            return replace(base, finding="gain", gain=paying[0], sentence=paying[1])
        if all(bound.high is not None and bound.high <= MARGIN for bound in bounds):
            said = say.nothing(bounds, single or self.worst, numbers)
            return replace(base, finding="no-gain", sentence=said)
        said = say.undecided(bounds, self.worst, MARGIN, numbers)
        return replace(base, finding="undecided", sentence=said)

    def in_one_attribute(self, decided: Verdict) -> Verdict | None:
        """Verdict that pooling endangers one attribute.

        Other attributes dominate the overall error.
        """
        pairs = [
            (name, gain)
            for name in self.reading.attributes
            if name != EVERYTHING and name not in self.given
            for gain in self.reading.figures(self.setting, GAIN, name).values()
            if len(gain.coalition) > 1
        ]
        bounds = _bounds([gain for _, gain in pairs])
        found = [pair for pair, one in zip(pairs, bounds, strict=True) if _paying([one])]
        if not found:
            return None
        name, gain = max(found, key=lambda one: (one[1].value, -len(one[1].coalition)))
        errors = self.reading.figures(self.setting, ERROR, name)
        if gain.coalition not in errors:
            return None
        numbers = Numbers(self.total, attribute=clipped(name, 60))
        said = numbers.paying(gain, errors[gain.coalition], best_single(errors, gain.coalition))
        said += " All attributes together do not show it."
        return replace(decided, finding="gain", sentence=said)

    def to_another_attack(self, decided: Verdict) -> Verdict | None:
        """Pooling helps a weaker attack below the best single copy's error.

        On large tables, row attacks may have no error bar.
        """
        single = lowest(shown for held, shown in self.found.items() if len(held) == 1)
        peers = [one for one in self.here(ERROR) if _peers(self.reading, one, self.setting)]
        others = [*judged(self.reading, peers)]
        while single is not None and (other := least(self.reading, others)) is not None:
            others.remove(other)
            rival = _Judge(self.reading, other)
            bounded = [g for g in rival.gains if rival.found[g.coalition].ceiling < single.value]
            if (paying := rival.paying(bounded)) is not None:
                said, own = f"{paying[1]} That is {phrase(self.reading, other)}", decided.gain
                if own:
                    settled = "which is undecided" if own.half else "without an error bar"
                    said += f"; the strongest attack gains {percent(own.value)}, {settled}"
                return replace(decided, finding="gain", sentence=f"{said}.")
        return None

    def beside_errors(self, decided: Verdict) -> Verdict | None:
        """Verdict that pooled copies have smaller classes or weaker guarantees.

        Both are exact, so they count without a measured gain.
        """
        for metric, symbol in BESIDE_ERRORS.items():
            sign = 1 if symbol else -1
            held = [self.reading.figures(one, metric) for one in self.here(metric)]
            if (pair := _pooled_worse(held, sign)) is not None:
                now, alone = (number(one.value) for one in pair)
                left = "alone" if now == "1" else f"among {now}"
                said = f"leaves some record {left}, where each of these copies has {alone} or more in every class"
                if symbol:
                    copy = f"copy {pair[1].coalition[0]} alone has {alone}"
                    said = f"weakens what they guarantee: {symbol} {now}, where {copy}"
                return replace(
                    decided,
                    finding="gain",
                    sentence=f"Pooling {copies(pair[0].coalition, self.total)} {said}.",
                    beside_errors=True,
                )
        return None

    def exposed(self) -> Exposure | None:
        reading, setting, coalition = self.reading, self.setting, self.worst.coalition
        names = [name for name in reading.attributes if name not in (EVERYTHING, *self.given)]
        found = [(name, reading.unknown(setting, name).get(coalition)) for name in names]
        measured = [(name, shown) for name, shown in found if shown is not None]
        if len(measured) < (2 if guesses_categories(reading, setting) else 1):
            return None
        first, best = min(measured, key=lambda item: item[1].value)
        peers = [
            one for one in reading.settings(ERROR, setting.scheme) if _peers(reading, one, setting)
        ]
        rival = lowest_attribute(reading, peers)
        if rival is not None and _errors_differ(rival[2], best):
            other, name, shown = rival
            at = f" at {reading.point_text(other.point)}" if other.point != setting.point else ""
            return Exposure(
                name, shown, (), f"{phrase(reading, other)}, copies {braces(shown.coalition)}{at}"
            )
        tied = [name for name, one in measured if name != first and not _errors_differ(best, one)]
        return Exposure(first, best, tuple(tied))


def _sure(shown: Figure | None) -> Figure | None:
    sure = shown is not None and severity(1.0 - shown.floor) != SCALE[-1]
    return shown if sure else None


def _left_to(reading: Reading, setting: Setting) -> Iterator[Given]:
    given = reading.given(setting)
    for name in reading.attributes if given else ():
        shown = lowest(reading.unknown(setting, name).values())
        if name not in given and shown is not None:
            without = reading.figures(setting, WITHOUT_COPIES, name).values()
            alone = next((one.value for one in without), None)
            yield Given(name, shown, str(setting.attack), tuple(sorted(given)), alone)


def _bounds(gains: list[Figure]) -> list[Bound]:
    factor = NormalDist().inv_cdf(1 - 0.025 / max(1, len(gains))) / Z95
    return [
        Bound(gain, None, None)
        if gain.low is None or gain.high is None
        else Bound(
            gain,
            gain.value - factor * (gain.value - gain.low),
            gain.value + factor * (gain.high - gain.value),
        )
        for gain in gains
    ]


def _paying(bounds: list[Bound]) -> list[Figure]:
    return [
        one.gain
        for one in bounds
        if one.low is not None and one.low > 0 and one.gain.value > MARGIN
    ]


def _pooled_worse(held: list[dict[Coalition, Figure]], sign: int) -> tuple[Figure, Figure] | None:
    """Worst coalition's figure and its worst member's, if pooling is worse."""
    worse = []
    for figures in held:
        for shown in figures.values():
            alone = [figures[(copy,)] for copy in shown.coalition if (copy,) in figures]
            single = max(alone, key=lambda one: sign * one.value, default=shown)
            margin = MARGIN * single.value * (sign > 0)
            if len(alone) == len(shown.coalition) and sign * (shown.value - single.value) > margin:
                worse.append((shown, single))
    return max(
        worse, key=lambda pair: (sign * pair[0].value, -len(pair[0].coalition)), default=None
    )


def heeding(verdict: Verdict, expectations: list[ExpectationRecord], leaves: str) -> Verdict:
    """Let the scenario's worst expectation on the scheme override the verdict.

    A failed `noise-follows-law` has priority.
    """

    def about(names: Names, status: str) -> list[ExpectationRecord]:
        found = [one for one in expectations if one.expectation in names and one.status == status]
        return [one for one in found if _admits(one.where.get("scheme"), verdict.scheme)]

    heeded = about((LAW,), "fails")
    for status in VERDICTS:
        heeded += about(NO_GAIN, status)
    return _heeded(verdict, heeded[0], leaves) if heeded else verdict


def _heeded(verdict: Verdict, record: ExpectationRecord, leaves: str) -> Verdict:
    said, now = say.expectation(record), verdict.finding
    if record.status == "fails" and now not in ("exact", "gain"):
        return replace(verdict, finding="refuted", sentence=f"{said} {leaves}.")
    if record.status == "undecided" and now in ("no-gain", "alone"):
        return replace(verdict, finding="undecided", sentence=f"{said} {leaves}.")
    if record.status == "holds" and now in ("undecided", "no-gain"):
        if now == "undecided" and _covers(record.where, verdict):
            gain = verdict.gain
            size = f" (largest gain measured here {percent(gain.value)})" if gain else ""
            return replace(
                verdict,
                finding="no-gain",
                sentence=f"Pooling buys nothing beyond the margin that the scenario states{size}. {said}",
            )
        return verdict
    return replace(verdict, sentence=f"{verdict.sentence} {said}")


def _covers(where: Plain, verdict: Verdict) -> bool:
    setting = verdict.setting
    if setting is None or any(field in where for field in ("coalition", "attribute", "sweep")):
        return False
    who = _admits(where.get("attack"), setting.attack)
    return who and _admits(where.get("knowledge"), setting.knowledge)


def _admits(wanted: Any, value: str | None) -> bool:
    return wanted is None or value in (wanted if isinstance(wanted, list) else [wanted])


def _peers(reading: Reading, other: Setting, setting: Setting) -> bool:
    return not reading.given(other) or bool(reading.given(setting))


def _errors_differ(least: Figure, other: Figure) -> bool:
    reach = ((least.half or 0.0) ** 2 + (other.half or 0.0) ** 2) ** 0.5
    return bool(other.value - least.value > max(reach, EXACT))
