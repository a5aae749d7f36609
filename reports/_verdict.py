"""The verdict: for each scheme one sentence in plain words, generated from the results and never contradicting them.

It speaks of the strongest attack that was measured: the setting whose normalized error over all attributes is lowest for sure.
Pooling *pays* when the whole interval of a gain lies above 0, *buys nothing* when every interval ends below the margin,
and is *undecided* otherwise. Intervals are widened for the number of coalitions looked at (Bonferroni). A
``no-collusion-gain`` of the scenario about the same scheme has the last word, as its test is the stricter one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from auditor.results import ExpectationRecord
from reports import _sentences as say
from reports._figures import Z95, Figure, clipped, spelled
from reports._reading import ERROR, EVERYTHING, Reading, Setting, adversary_text, best_single, lowest
from reports._sentences import Bound
from reports._severity import Severity, severity
from reports._strongest import EXACT, gain_of, strongest

MARGIN = 0.01
"""Gains below this share of the best single copy's error count as none: the margin of ``no-collusion-gain``."""

NO_GAIN = ("no-collusion-gain", "theorem-4")

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


class Exposure(NamedTuple):
    """The attribute rebuilt best; ``rivals`` are those that the error bars cannot tell from it."""

    attribute: str
    shown: Figure
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What the audit says of one scheme.

    Attributes
    ----------
    setting : Setting or None
        The strongest attack's setting.
    worst, single : Figure or None
        Normalized error of the coalition with the lowest one, and of its best member alone.
    gain : Figure or None
        Collusion gain of that coalition.
    exposed : Exposure or None
        The attribute that the worst coalition rebuilds best, when there are several.
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

    @property
    def label(self) -> str:
        """Two or three words for the finding."""
        return LABELS[self.finding]

    @property
    def exposure(self) -> list[tuple[str, bool]]:
        """Name the most exposed attribute, in pieces; those with True are names. Empty when nothing remains unknown anyway."""
        if self.exposed is None or self.finding == "exact":
            return []
        name, shown, rivals = self.exposed
        return say.exposure(clipped(name, 60), shown, [clipped(rival, 60) for rival in rivals])

    @property
    def severity(self) -> Severity | None:
        """How bad the worst reconstruction is."""
        return None if self.worst is None else severity(self.worst.value)


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
    told = [f"{spelled(count)} {SUMMARY[kind]}" for kind, count in counts if count]
    return f"{say.capital(spelled(len(found)))} schemes: {', '.join(told)}."


def verdicts(reading: Reading) -> list[Verdict]:
    """Return the verdict on every scheme, in the order of the scenario."""
    return [verdict(reading, scheme) for scheme in reading.schemes]


def verdict(reading: Reading, scheme: str) -> Verdict:
    """Return the verdict on one scheme."""
    setting = strongest(reading, scheme)
    if setting is None:
        return Verdict(scheme, "not-measured", "No attack gave a normalized error for this scheme.")
    found = reading.figures(setting)
    worst = lowest(found.values())
    assert worst is not None
    single = best_single(found, worst.coalition)
    gains = [gain_of(reading, setting, coalition) for coalition in found if len(coalition) > 1]
    base = Verdict(
        scheme, "alone", "", setting, worst, single,
        gain_of(reading, setting, worst.coalition), _exposed(reading, setting, worst.coalition),
        adversary_text(setting.knowledge, setting.attack), reading.point_text(setting.point),
    )  # fmt: skip
    total = reading.copies_of(scheme, setting.point)
    decided = _decided(base, found, [gain for gain in gains if gain is not None], total)
    return heeding(decided, reading.result.expectations, total)


def _decided(base: Verdict, found: dict[tuple[int, ...], Figure], gains: list[Figure], total: int) -> Verdict:
    """Choose the finding and write its sentence."""
    worst = base.worst
    assert worst is not None
    if worst.value < EXACT:
        return replace(base, finding="exact", sentence=say.exact(worst, base.single, total))
    if not gains:
        return replace(base, finding="alone", sentence=say.alone(worst, total))
    bounds = [Bound(gain, *_simultaneous(gain, len(gains))) for gain in gains]
    paying = [bound.gain for bound in bounds if bound.low is not None and bound.low > 0 and bound.gain.value > MARGIN]
    if paying:
        # the coalition with the lowest error speaks, if it is one that gains; else the one that gains most
        gain = min(paying, key=lambda gain: (found[gain.coalition].value, len(gain.coalition)))
        sentence = say.paying(gain, found[gain.coalition], best_single(found, gain.coalition), total)
        return replace(base, finding="gain", gain=gain, sentence=sentence)
    if all(bound.high is not None and bound.high <= MARGIN for bound in bounds):
        return replace(base, finding="no-gain", sentence=say.nothing(bounds, base.single or worst, total))
    return replace(base, finding="undecided", sentence=say.undecided(bounds, worst, MARGIN, total))


def heeding(verdict: Verdict, expectations: list[ExpectationRecord], total: int) -> Verdict:
    """Let the scenario's own test of the scheme have the last word; of several, the one that went worst."""
    about = [record for record in expectations if record.expectation in NO_GAIN and _is_about(record.where, verdict)]
    for status in ("fails", "undecided", "holds"):
        record = next((record for record in about if record.status == status), None)
        if record is not None:
            return _heeded(verdict, record, total)
    return verdict


def _heeded(verdict: Verdict, record: ExpectationRecord, total: int) -> Verdict:
    said, now = say.expectation(record), verdict.finding
    if verdict.worst is None:
        return verdict
    if record.status == "fails" and now not in ("exact", "gain"):
        return replace(verdict, finding="refuted", sentence=f"{said} {say.leaves(verdict.worst, total)}.")
    if record.status == "undecided" and now in ("no-gain", "alone"):
        return replace(verdict, finding="undecided", sentence=f"{said} {say.leaves(verdict.worst, total)}.")
    if record.status == "holds" and now == "undecided":
        if _covers(record.where, verdict):
            return replace(verdict, finding="no-gain", sentence=say.held(verdict.gain, said))
        return verdict
    return (
        verdict
        if record.status == "holds" and now == "no-gain"
        else replace(verdict, sentence=f"{verdict.sentence} {said}")
    )


def _is_about(where: dict[str, Any], verdict: Verdict) -> bool:
    return _admits(where.get("scheme"), verdict.scheme)


def _covers(where: dict[str, Any], verdict: Verdict) -> bool:
    """Whether an expectation speaks of everything that the verdict does, so that its holding settles the question."""
    setting = verdict.setting
    if setting is None or any(field in where for field in ("coalition", "attribute", "sweep")):
        return False
    return _admits(where.get("attack"), setting.attack) and _admits(where.get("knowledge"), setting.knowledge)


def _admits(wanted: Any, value: str | None) -> bool:
    return wanted is None or value in (wanted if isinstance(wanted, list) else [wanted])


def _simultaneous(gain: Figure, count: int) -> tuple[float | None, float | None]:
    """Widen a 95 % interval so that all ``count`` of them hold together (Bonferroni)."""
    if gain.low is None or gain.high is None:
        return None, None
    factor = NormalDist().inv_cdf(1 - 0.025 / count) / Z95
    return gain.value - factor * (gain.value - gain.low), gain.value + factor * (gain.high - gain.value)


def _exposed(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Exposure | None:
    given = reading.given(setting.knowledge)
    named = [name for name in reading.attributes if name != EVERYTHING and name not in given]
    found = [(name, reading.figures(setting, ERROR, name).get(coalition)) for name in named]
    measured = [(name, shown) for name, shown in found if shown is not None]
    if len(measured) < 2:
        return None
    first, least = min(measured, key=lambda item: item[1].value)
    rivals = [name for name, shown in measured if name != first and not _apart(least, shown)]
    return Exposure(first, least, tuple(rivals))


def _apart(least: Figure, other: Figure) -> bool:
    """Whether two attributes' errors differ beyond their error bars."""
    reach = ((least.half or 0.0) ** 2 + (other.half or 0.0) ** 2) ** 0.5
    return bool(other.value - least.value > max(reach, EXACT))
