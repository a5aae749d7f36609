"""Verdict of each scheme on exposure and pooling.

Pooling *endangers* if the interval of an attack's gain lies above 0, or if pooled copies have
smaller classes or weaker guarantees than each copy. It *gains nothing* if every interval ends below
the margin. Otherwise it is *undecided*. Intervals are widened for the number of coalitions
(Bonferroni). The scenario's own ``no-collusion-gain`` overrides the verdict.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from auditor.base.types import Plain
from auditor.results.metrics import unused_columns
from auditor.results.records import BELIEVED, KEPT, SHOWN, VERDICTS

from . import sentences as say
from .figures import (
    SCALE,
    Z95,
    Figure,
    Severity,
    clipped,
    copies,
    isolated,
    listed,
    number,
    percent,
    said,
    severity,
    share,
)
from .matrix import (
    EXACT,
    Guesses,
    by_strength,
    guesses,
    guesses_categories,
    judged,
    label,
    losses,
    lowest_attribute,
    strongest,
)
from .reading import (
    BEYOND,
    ERROR,
    EVERYTHING,
    GAIN,
    Figures,
    Reading,
    Setting,
    best_single,
    lowest,
    nine_digits,
)
from .sentences import Classes, Numbers

Finding = Literal["exact", "gain", "no-gain", "undecided", "refuted", "alone", "not-measured"]
LABELS: dict[str, str] = {
    "exact": "rebuilt",
    "gain": "pooling reveals more",
    "no-gain": "no collusion gain",
    "undecided": "pooling undecided",
    "refuted": "promise refuted",
    "alone": "pooling not measured",
    "not-measured": "not measured",
}
State = Literal["bad", "open", "good", "plain"]
MARKS: dict[State, str] = {"bad": "✗", "open": "?", "good": "✓", "plain": "·"}
HALF = 0.5
"""Target if the scenario states none: half of every attribute stays unknown."""
FINE = 2
"""Highest acceptable rank: at least half of each attribute's variance is unknown."""
LITTLE = 0.1
"""Share of the error without copies that copies must remove to count as a cause."""
MARGIN = 0.01
"""Margin of ``no-collusion-gain``; smaller gains, relative to the best copy's error, count as
none."""
NO_GAIN = ("no-collusion-gain", "theorem-4")
LAW = "noise-follows-law"
DISCLOSED, NEWS = "disclosed", "disclosed_beyond_chance"
WITHOUT_COPIES = "error_without_copies"
BESIDE_ERRORS = {"anonymity_k": "", "epsilon": "ε", "gaussian_dp": "μ"}
"""Measures of a release beside errors, and the symbol of a guarantee."""
WHOLE, GUESSED, AWAY = "all attributes", "categories", "sensitive values"
AS_THEY_ARE, EXACTLY, BELIEF = "single values", "exact values", "most exposed value"
"""Measures beside the errors of attributes."""


class Exposure(NamedTuple):
    """Share of an attribute that a coalition leaves unknown, against a target.

    ``what`` names the measure if it is of no single attribute. ``single`` is the share that the
    coalition's best copy leaves.
    """

    scheme: str
    attribute: str
    what: str
    setting: Setting
    left: Figure
    who: str
    single: float | None
    target: float

    @property
    def name(self) -> str:
        """The attribute, or the measure."""
        return self.attribute or self.what

    @property
    def text(self) -> str:
        """The share and the target."""
        name = isolated(clipped(self.name, 40))
        return f"{share(self.left)} of {name} unknown, target {percent(self.target)}"

    @property
    def state(self) -> State:
        """``good`` or ``bad`` if the whole interval is above or below the target."""
        low, high = self.left.low, self.left.high
        if (self.left.value if high is None else high) < self.target:
            return "bad"
        return "good" if low is not None and low >= self.target else "open"


class Decision(NamedTuple):
    """Finding on pooling and its sentence.

    ``beside_errors`` marks a finding on classes or guarantees.
    """

    finding: Finding
    sentence: str
    gain: Figure | None = None
    beside_errors: bool = False


class Verdict:
    """Verdict on one scheme, from its strongest attack.

    Attributes
    ----------
    setting : Setting
        The strongest attack; empty without a figure.
    target : float
        Smallest share that must stay unknown.
    asked : str
        Outcome of the scenario's `exposure`; empty without one.
    """

    def __init__(self, reading: Reading, scheme: str) -> None:
        self.reading, self.scheme = reading, scheme
        self.setting = strongest(reading, scheme) or Setting(0, scheme, None, None)
        self.found = losses(reading, self.setting)
        self.worst = lowest(self.found.values())
        self.given_names = reading.given(self.setting)
        self.total = reading.copies_of(scheme, self.setting.point)
        self.target, self.asked = target_of(reading, scheme)
        self.numbers = self._numbers(self.setting)

    def _numbers(self, setting: Setting) -> Numbers:
        if guesses_categories(self.reading, setting):
            return Classes(self.total, self.reading, setting)
        given = sorted(self.reading.given(setting))
        return Numbers(self.total, [clipped(name, 60) for name in given])

    # -- exposure

    @cached_property
    def categories(self) -> bool:
        """Whether the scheme perturbs categories."""
        found = self.reading.settings(BEYOND, self.scheme)
        return any(guesses_categories(self.reading, one) for one in found)

    def _here(self, metric: str) -> list[Setting]:
        return [one for one in self.reading.settings(metric) if one[:2] == self.setting[:2]]

    def _peers(self, metric: str) -> list[Setting]:
        """Settings without attributes in clear, unless the strongest attack has some."""
        return [
            one for one in self._here(metric) if self.given_names or not self.reading.given(one)
        ]

    @cached_property
    def guesses(self) -> tuple[Guesses, Setting] | None:
        """Most accurate guesses of categories, and their adversary."""
        made = [
            (found, one)
            for one in self._peers(BEYOND)
            for held in self.reading.figures(one, BEYOND)
            if (found := guesses(self.reading, one, held))
        ]

        def rank(pair: tuple[Guesses, Setting]) -> tuple[float, int]:
            return nine_digits(-pair[0].right.floor), len(pair[0].right.coalition)

        return min(made, key=rank, default=None)

    @cached_property
    def beside(self) -> dict[str, tuple[Figure, str, Setting]]:
        """Values that classes give away, that copies show, or that beliefs near.

        Share, sentence and attack by measure.
        """
        figures, found = self.reading.figures, dict[str, tuple[Figure, str, Setting]]()
        if self.worst is None:
            return found
        disclosed = [
            (one, news, shown[news.coalition])
            for one in self._here(DISCLOSED)
            for shown in [figures(one, DISCLOSED)]
            for news in figures(one, NEWS).values()
        ]
        if disclosed:
            by, news, away = max(disclosed, key=lambda one: (one[1].floor, -len(one[1].coalition)))
            who = f"Classes of {copies(away.coalition, self.total)}"
            beyond = f"; beyond chance {share(news)}" * (share(away) != share(news))
            said = f"{who} give away the sensitive value of {share(away)} of the records ({clipped(by.attack, 60)}{beyond})."
            found[AWAY] = news, said, by
        if (name := self._most(SHOWN)) and _sure(name[1]):
            shown = name[1]
            one = len(shown.coalition) == 1
            who = f"Copy {shown.coalition[0]} shows" if one else "Two copies or more agree on"
            found[AS_THEY_ARE] = (
                shown,
                f"{who} {share(shown)} of the values of {clipped(name[0], 60)} as they are, beyond chance.",
                self.setting,
            )
        if name := self._most(KEPT):
            few = (
                f"follow exactly from {copies(name[1].coalition, self.total)}, more than by chance"
            )
            said = f"Of {clipped(name[0], 60)} {share(name[1])} of the values {few}."
            found[EXACTLY] = name[1], said, self.setting
        beliefs = [
            (shown, one)
            for one in self._peers(BELIEVED)
            for shown in figures(one, BELIEVED).values()
        ]
        believed, by = max(beliefs, key=lambda one: one[0].floor, default=(None, self.setting))
        if believed and _sure(believed):
            rises = f"rises {share(believed)} of the way from its share to certainty"
            said = f"In records with the most exposed value, the belief in it {rises}."
            found[BELIEF] = believed, said, by
        return found

    def _most(self, metric: str) -> tuple[str, Figure] | None:
        every = [
            (name, shown)
            for one in self._here(metric)
            for name in self.reading.attributes
            for shown in self.reading.figures(one, metric, name).values()
        ]
        return max(every, key=lambda one: one[1].floor, default=None)

    @cached_property
    def exposures(self) -> list[Exposure]:
        """Shares left of attributes and by further measures, by state and share.

        Adversaries with attributes in clear are excluded if others exist.
        """
        reading, worst = self.reading, self.worst
        if worst is None:
            return []
        settings = reading.settings(ERROR, self.scheme)
        peers = [each for each in settings if not reading.given(each)] or settings
        peers.sort(key=lambda each: each != self.setting)  # it is named among equals
        made = []
        for name in reading.attributes:
            hidden = [each for each in peers if name not in reading.given(each)]
            least = lowest_attribute(reading, hidden, [name])
            if least is not None:
                setting, _, left = least
                single = best_single(reading.unknown(setting, name), left.coalition)
                made.append(self._exposure(left, setting, name, single=single))
        whole = reading.figures(self.setting).get(worst.coalition)
        if whole and len(made) != 1:
            made.append(self._exposure(whole, self.setting, what=WHOLE))
        if self.guesses is not None:
            found, setting = self.guesses
            right = found.right.turned(found.mistakes)
            made.append(self._exposure(right, setting, what=GUESSED))
        for what, (shown, _, setting) in self.beside.items():
            if what != EXACTLY:
                made.append(self._exposure(shown.complement, setting, what=what))
        return sorted(made, key=lambda one: ([*MARKS].index(one.state), one.left.value))

    def _exposure(
        self,
        left: Figure,
        setting: Setting,
        attribute: str = "",
        what: str = "",
        single: Figure | None = None,
    ) -> Exposure:
        alone = single.value if single and single.coalition != left.coalition else None
        who = copies(left.coalition, self.total)
        return Exposure(self.scheme, attribute, what, setting, left, who, alone, self.target)

    @property
    def most_exposed(self) -> Exposure | None:
        """The exposure that decides the state."""
        return next(iter(self.exposures), None)

    @property
    def left(self) -> float:
        """The share left by the exposure that decides."""
        return self.most_exposed.left.value if self.most_exposed else math.inf

    @property
    def severity(self) -> Severity | None:
        """Severity of the exposure that decides."""
        return self.most_exposed.left.severity if self.most_exposed else None

    @property
    def grade(self) -> str:
        """The severity in words, for example ``severe`` or ``rebuilt (age)``."""
        if (one := self.most_exposed) is None or self.finding == "exact":
            return ""
        of = f" ({clipped(one.attribute, 30)})" if one.attribute else ""
        return f"{one.left.severity.word}{of}"

    @cached_property
    def given(self) -> tuple[Exposure, float | None] | None:
        """Exposure to an adversary with attributes in clear, and the error without copies.

        Only if the copies remove `LITTLE` of that error, and less is left than to others.
        """
        reading, found = self.reading, []
        worst = lowest(reading.figures(self.setting).values())
        if self.given_names or worst is None:
            return None
        for one in reading.settings(ERROR, self.scheme):
            given = reading.given(one)
            for name in reading.attributes if given else ():
                shown = lowest(reading.unknown(one, name).values())
                if name not in given and shown and shown.ceiling < worst.ceiling:
                    without = reading.figures(one, WITHOUT_COPIES, name).values()
                    alone = next((each.value for each in without), None)
                    if alone is None or shown.ceiling < (1 - LITTLE) * alone:
                        named = "" if name == EVERYTHING else name
                        exposed = self._exposure(shown, one, named, what="all other attributes")
                        found.append((exposed, alone))
        return min(found, key=lambda one: (one[0].left.ceiling, one[0].attribute), default=None)

    # -- outcome

    @cached_property
    def understated(self) -> bool:
        """Whether excluded data are more exposed."""
        releases = self.reading.result.releases
        return any(one.understated for one in releases if one.scheme == self.scheme)

    @cached_property
    def unused(self) -> bool:
        """Whether no attack could use a shown column."""
        records = self.reading.result.measurements
        return bool(unused_columns(one for one in records if one.scheme == self.scheme))

    @property
    def label(self) -> str:
        """Exposure and finding in short, with a warning on excluded data."""
        found, to = LABELS[self.finding], ""
        label = say.capital(found)
        if self.grade:
            exposed = self.given[0] if self.given else None
            if exposed and self.severity and exposed.left.severity.rank > self.severity.rank:
                names = sorted(self.reading.given(exposed.setting))
                who = listed([clipped(name, 30) for name in names])
                to = f", {exposed.left.severity.word} to whoever knows {who}"
            label = f"Exposure {self.grade}{to} · {found}"
        label += " · some values known exactly" if EXACTLY in self.beside else ""
        label += " · a shown column was not used" if self.unused else ""
        return f"{label} · what was left out is more exposed" if self.understated else label

    @cached_property
    def state(self) -> State:
        """``good`` only if all intervals are at or above the target."""
        states = {one.state for one in self.exposures}
        if (
            self.finding in ("exact", "refuted")
            or "bad" in states
            or (self.given and self.given[0].left.severity.rank > FINE)
            or self.decision.beside_errors
            or self.understated
            or EXACTLY in self.beside
            or self.asked == "fails"
        ):
            return "bad"
        if not states:
            return "plain"
        pooled = self.finding in ("no-gain", "gain") or (
            self.finding == "alone" and self.total == 1
        )
        asked = self.asked in ("", "holds")
        return "good" if states == {"good"} and pooled and not self.unused and asked else "open"

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
        """Exposure, disclosed values, pooling, and adversaries, one sentence each."""
        point = self.reading.point_text(self.setting.point)
        where = f" at {point}" if point else ""
        who = f"Strongest attack overall: {label(self.reading, self.setting, 'which ')}{where}."
        plainly = [said for _, said, _ in self.beside.values()][:1]
        found = [self.exposure, *plainly, self.sentence, self.left_to_given]
        return [*filter(None, found), *[who] * bool(self.worst)]

    @property
    def left_to_given(self) -> str:
        """Sentence on the adversary with attributes in clear."""
        if self.given is None:
            return ""
        exposed, alone = self.given
        without = "" if alone is None else f", without any copy {percent(alone)}"
        names = sorted(self.reading.given(exposed.setting))
        known = isolated(listed([clipped(name, 60) for name in names]))
        name, who = isolated(clipped(exposed.name, 60)), clipped(exposed.setting.attack, 60)
        left = f"{share(exposed.left)} of the variance of {name} unknown ({who})"
        return (
            f"An adversary who already knows {known} of every record is left with {left}{without}."
        )

    @property
    def exposure(self) -> str:
        """The exposure with the least share left, in a sentence; empty if exact."""
        one = self.most_exposed
        if one is None or self.finding == "exact":
            return ""
        to = isolated(label(self.reading, one.setting, "which "))
        return f"Most exposed: {one.text}, to {to}, from {one.who}."

    # -- pooling

    @property
    def finding(self) -> Finding:
        """Finding on pooling."""
        return self.decision.finding

    @property
    def sentence(self) -> str:
        """Sentence on pooling."""
        return self.decision.sentence

    @cached_property
    def decision(self) -> Decision:
        """Finding on pooling, after the scenario's own expectations."""
        if self.worst is None:
            return Decision("not-measured", "No attack gave a normalized error for this scheme.")
        decided = self._pooling(self.worst)
        if decided.finding in ("no-gain", "undecided"):
            steps = (self._in_one_attribute, self._to_another_attack, self._beside_errors)
            decided = next(filter(None, (step(decided) for step in steps)), decided)
        return self._heeding(decided, say.capital(self.numbers.leaves(self.worst)))

    def _pooling(self, worst: Figure) -> Decision:
        numbers, single = self.numbers, best_single(self.found, worst.coalition)
        if worst.value < EXACT:
            return Decision("exact", numbers.exact(worst, single))
        gains = _gains(self.reading, self.setting, self.found)
        bounds = _widened(gains)
        own = self.reading.figures(self.setting, GAIN).get(worst.coalition)
        if not bounds:
            left = numbers.leaves(worst)
            alone = "One copy is released" if self.total == 1 else "Pooled copies were not measured"
            return Decision("alone", f"{alone}; {left}.")
        if (gain := _paying(gains, self.found)) is not None:
            return Decision("gain", _said(numbers, gain, self.found), gain)
        if all(gain.high is not None and gain.high <= MARGIN for gain in bounds):
            return Decision("no-gain", say.nothing(bounds, single or worst, numbers), own)
        return Decision("undecided", say.undecided(bounds, worst, numbers), own)

    def _in_one_attribute(self, decided: Decision) -> Decision | None:
        """Verdict that pooling endangers one attribute.

        Other attributes dominate the overall error.
        """
        pairs = [
            (name, gain)
            for name in self.reading.attributes
            if name not in (EVERYTHING, *self.given_names)
            for gain in self.reading.figures(self.setting, GAIN, name).values()
            if len(gain.coalition) > 1
        ]
        bounds = _widened([gain for _, gain in pairs])
        found = [pair for pair, one in zip(pairs, bounds, strict=True) if _pays(one)]
        if not found:
            return None
        name, gain = max(found, key=lambda one: (one[1].value, -len(one[1].coalition)))
        errors = self.reading.figures(self.setting, ERROR, name)
        if gain.coalition not in errors:
            return None
        said = _said(Numbers(self.total, attribute=clipped(name, 60)), gain, errors)
        return Decision("gain", f"{said} All attributes together do not show it.", gain)

    def _to_another_attack(self, decided: Decision) -> Decision | None:
        """Pooling helps a weaker attack below the best single copy's error.

        On large tables, row attacks may have no error bar.
        """
        reading = self.reading
        single = lowest(shown for held, shown in self.found.items() if len(held) == 1)
        for other in by_strength(reading, judged(reading, self._peers(ERROR))) if single else ():
            errors = losses(reading, other)
            gains = [
                gain
                for gain in _gains(reading, other, errors)
                if single and errors[gain.coalition].ceiling < single.value
            ]
            if (paying := _paying(gains, errors)) is not None:
                own = decided.gain
                said = f"{_said(self._numbers(other), paying, errors)} That is {label(reading, other, 'which ')}"
                if own:
                    settled = "which is undecided" if own.half else "without an error bar"
                    said += f"; the strongest attack gains {percent(own.value)}, {settled}"
                return Decision("gain", f"{said}.", own)
        return None

    def _beside_errors(self, decided: Decision) -> Decision | None:
        """Verdict that pooled copies have smaller classes or weaker guarantees.

        Both are exact, so they count without a measured gain.
        """
        for metric, symbol in BESIDE_ERRORS.items():
            sign = 1 if symbol else -1
            held = [self.reading.figures(one, metric) for one in self._here(metric)]
            if (pair := _pooled_worse(held, sign)) is not None:
                now, alone = (number(one.value) for one in pair)
                left = "alone" if now == "1" else f"among {now}"
                said = f"leaves some record {left}, where each of these copies has {alone} or more in every class"
                if symbol:
                    copy = f"copy {pair[1].coalition[0]} alone has {alone}"
                    said = f"weakens what they guarantee: {symbol} {now}, where {copy}"
                who = copies(pair[0].coalition, self.total)
                return Decision("gain", f"Pooling {who} {said}.", beside_errors=True)
        return None

    def _heeding(self, decided: Decision, leaves: str) -> Decision:
        """Let the scenario's worst expectation on the scheme override the finding.

        A failed `noise-follows-law` has priority.
        """
        asked = [
            one
            for names, statuses in (((LAW,), ("fails",)), (NO_GAIN, VERDICTS))
            for status in statuses
            for one in self.reading.result.expectations
            if one.expectation in names
            and one.status == status
            and _admits(one.where.get("scheme"), self.scheme)
        ]
        if not asked:
            return decided
        record, now = asked[0], decided.finding
        said, status = say.expectation(record), record.status
        if status == "holds" and now in ("undecided", "alone", "no-gain"):
            if now != "no-gain" and self._covered(record.where):
                text = f"Pooling gains less than the margin of the scenario. {said}"
                return decided._replace(finding="no-gain", sentence=text)
            return decided
        if (status == "fails" and now not in ("exact", "gain")) or (
            status == "undecided" and now in ("no-gain", "alone")
        ):
            finding: Finding = "refuted" if status == "fails" else "undecided"
            return decided._replace(finding=finding, sentence=f"{said} {leaves}.")
        return decided._replace(sentence=f"{decided.sentence} {said}")

    def _covered(self, where: Plain) -> bool:
        if any(field in where for field in ("coalition", "attribute", "sweep")):
            return False
        who = _admits(where.get("attack"), self.setting.attack)
        return who and _admits(where.get("knowledge"), self.setting.knowledge)


def most_telling(found: Sequence[Verdict]) -> Verdict | None:
    """Verdict with the strongest reconstruction; None if none."""
    return min((one for one in found if one.exposures), key=lambda one: one.left, default=None)


def verdicts(reading: Reading) -> list[Verdict]:
    """Verdict on every scheme, in scenario order."""
    return [Verdict(reading, scheme) for scheme in reading.schemes]


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


def _sure(shown: Figure) -> bool:
    return severity(1.0 - shown.floor) != SCALE[-1]


def _gains(reading: Reading, setting: Setting, errors: Figures) -> list[Figure]:
    """Gains of pooled copies; 0 for guesses no better than the mean."""
    found = reading.figures(setting, GAIN)
    return [
        found[held] if shown.floor < 1 else found[held]._replace(value=0.0, low=0.0, high=0.0)
        for held, shown in errors.items()
        if len(held) > 1 and held in found
    ]


def _widened(gains: Sequence[Figure]) -> list[Figure]:
    """Gains with simultaneous intervals (Bonferroni)."""
    factor = NormalDist().inv_cdf(1 - 0.025 / max(1, len(gains))) / Z95
    return [
        gain
        if gain.low is None or gain.high is None
        else gain._replace(
            low=gain.value - factor * (gain.value - gain.low),
            high=gain.value + factor * (gain.high - gain.value),
        )
        for gain in gains
    ]


def _pays(gain: Figure) -> bool:
    return gain.low is not None and gain.low > 0 and gain.value > MARGIN


def _paying(gains: list[Figure], errors: Figures) -> Figure | None:
    """Sure gain with the lowest error."""
    return min(
        filter(_pays, _widened(gains)),
        key=lambda gain: (errors[gain.coalition].value, len(gain.coalition)),
        default=None,
    )


def _said(numbers: Numbers, gain: Figure, errors: Figures) -> str:
    held = gain.coalition
    return numbers.paying(gain, errors[held], best_single(errors, held))


def _pooled_worse(held: list[Figures], sign: int) -> tuple[Figure, Figure] | None:
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


def _admits(wanted: Any, value: str | None) -> bool:
    return wanted is None or value in (wanted if isinstance(wanted, list) else [wanted])
