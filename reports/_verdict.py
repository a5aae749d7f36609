"""The verdict: for each scheme one sentence in plain words, generated from the results and never contradicting them.

It speaks of the strongest attack that was measured: the setting with the lowest normalized error over all attributes.
Pooling *pays* when the whole interval of a gain lies above 0, *buys nothing* when every interval ends below the margin,
and is *undecided* otherwise. Intervals are widened for the number of coalitions looked at (Bonferroni). An expectation
of the scenario that was decided about the same setting has the last word, as its test is the stricter one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

from auditor.results import ExpectationRecord
from reports._figures import Z95, Figure, copies, number, percent, plus_minus, spelled, times
from reports._reading import ERROR, EVERYTHING, GAIN, Reading, Setting, adversary_text, best_single, lowest
from reports._severity import Severity, severity

MARGIN = 0.01
"""Gains below this share of the best single copy's error count as none: the margin of ``no-collusion-gain``."""
EXACT = 1e-6
"""Normalized errors below this are an exact reconstruction up to rounding."""

Finding = Literal["exact", "gain", "no-gain", "undecided", "refuted", "alone", "not-measured"]

LABELS: dict[str, str] = {
    "exact": "Rebuilt exactly",
    "gain": "Pooling pays",
    "no-gain": "Pooling buys nothing",
    "undecided": "Undecided",
    "refuted": "Promise refuted",
    "alone": "Single copies only",
    "not-measured": "Not measured",
}


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
    exposed : tuple of (str, Figure) or None
        The attribute rebuilt best by any coalition, when there are several.
    """

    scheme: str
    finding: Finding
    sentence: str
    setting: Setting | None = None
    worst: Figure | None = None
    single: Figure | None = None
    gain: Figure | None = None
    exposed: tuple[str, Figure] | None = None
    adversary: str = ""
    where: str = ""

    @property
    def label(self) -> str:
        """Two or three words for the finding."""
        return LABELS[self.finding]

    @property
    def severity(self) -> Severity | None:
        """How bad the worst reconstruction is."""
        return None if self.worst is None else severity(self.worst.value)


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
    assert worst is not None  # noqa: S101 - a setting is listed only with figures
    single = best_single(found, worst.coalition)
    gains = [gain_of(reading, setting, coalition) for coalition in found if len(coalition) > 1]
    base = Verdict(
        scheme, "alone", "", setting, worst, single,
        gain_of(reading, setting, worst.coalition), _exposed(reading, setting),
        adversary_text(setting.knowledge, setting.attack), reading.point_text(setting.point),
    )  # fmt: skip
    total = reading.copies_of(scheme, setting.point)
    decided = _decided(base, found, [gain for gain in gains if gain is not None], total)
    return _heeding(decided, reading.result.expectations)


def strongest(reading: Reading, scheme: str) -> Setting | None:
    """Return the setting of one scheme with the lowest normalized error."""
    best: tuple[float, Setting] | None = None
    for setting in reading.settings(ERROR):
        figure = lowest(reading.figures(setting).values()) if setting.scheme == scheme else None
        if figure is not None and (best is None or figure.value < best[0] * (1 - 1e-9)):
            best = (figure.value, setting)
    return None if best is None else best[1]


def gain_of(reading: Reading, setting: Setting, coalition: tuple[int, ...], attribute: str = EVERYTHING) -> Figure | None:
    """Return the collusion gain of a coalition: as measured on paired errors, else from the two normalized errors."""
    measured = reading.figures(setting, GAIN, attribute).get(coalition)
    if measured is not None or len(coalition) < 2:
        return measured
    found = reading.figures(setting, ERROR, attribute)
    pooled, single = found.get(coalition), best_single(found, coalition)
    if pooled is None or single is None or single.value <= 0:
        return None
    ratio, half = pooled.value / single.value, None
    if pooled.half is not None and single.half is not None:
        # the two errors are treated as independent, which is too cautious: they share their noise
        half = (pooled.half**2 + (ratio * single.half) ** 2) ** 0.5 / single.value
    low, high = (None, None) if half is None else (1 - ratio - half, 1 - ratio + half)
    return pooled._replace(value=1 - ratio, low=low, high=high, theory=None)


def _decided(base: Verdict, found: dict[tuple[int, ...], Figure], gains: list[Figure], total: int) -> Verdict:
    """Choose the finding and write its sentence."""
    worst = base.worst
    assert worst is not None  # noqa: S101
    if worst.value < EXACT:
        return replace(base, finding="exact", sentence=_exact_sentence(worst, base.single, total))
    if not gains:
        text = f"No coalition of two or more was measured; {_leaves(worst, total)}."
        return replace(base, finding="alone", sentence=_capital(text))
    bounds = [(gain, *_simultaneous(gain, len(gains))) for gain in gains]
    pooled = lowest(figure for coalition, figure in found.items() if len(coalition) > 1)
    paying = [item for item in bounds if item[1] is not None and item[1] > 0 and item[0].value > MARGIN]
    if paying:
        named = [item for item in paying if pooled is not None and item[0].coalition == pooled.coalition]
        gain = (named or [max(paying, key=lambda item: item[0].value)])[0][0]
        return _paying(base, found, gain, total)
    if all(high is not None and high <= MARGIN for _, _, high in bounds):
        return replace(base, finding="no-gain", sentence=_nothing_sentence(bounds, worst, base.single, total))
    return replace(base, finding="undecided", sentence=_undecided_sentence(bounds, worst, total))


def _paying(base: Verdict, found: dict[tuple[int, ...], Figure], gain: Figure, total: int) -> Verdict:
    pooled, single = found[gain.coalition], best_single(found, gain.coalition)
    sentence = (
        f"Pooling {copies(gain.coalition, total)} rebuilds the records {times(1 / max(1e-12, 1 - gain.value))} more accurately "
        f"than the best single copy: the share of the variance left unknown falls"
    )
    before = f" from {_share(single)}" if single else ""
    return replace(base, finding="gain", gain=gain, sentence=f"{sentence}{before} to {_share(pooled)}.")


def _exact_sentence(worst: Figure, single: Figure | None, total: int) -> str:
    if len(worst.coalition) == 1:
        return f"{_capital(copies(worst.coalition, total))} alone rebuilds the records exactly (normalized error {number(worst.value)})."
    alone = f", while the best single copy leaves {_share(single)} of the variance unknown" if single else ""
    who = copies(worst.coalition, total)
    return f"Pooling {who} rebuilds the records exactly (normalized error {number(worst.value)}){alone}."


def _nothing_sentence(bounds: list[Any], worst: Figure, single: Figure | None, total: int) -> str:
    most = max(bounds, key=lambda item: item[0].value)[0]
    ceiling = max(high for _, _, high in bounds)
    count = len(bounds)
    whose = "the one coalition measured gains at most" if count == 1 else f"none of the {spelled(count)} coalitions gains more than"
    alone = single or worst
    return (
        f"Pooling buys nothing: {whose} {percent(max(0.0, ceiling))} over its best copy alone "
        f"(largest measured gain {percent(most.value)}); {_leaves(alone, total)}."
    )


def _undecided_sentence(bounds: list[Any], worst: Figure, total: int) -> str:
    gain, low, high = max(bounds, key=lambda item: item[0].value if item[2] is None else item[2])
    if low is None:
        why = f"the gain of {copies(gain.coalition, total)} is {percent(gain.value)}, measured without an error bar"
    else:
        why = (
            f"the gain of {copies(gain.coalition, total)} lies between {percent(low)} and {percent(high)}, "
            f"which settles neither that pooling pays nor that it gains less than {percent(MARGIN)}"
        )
    return f"Undecided whether pooling pays: {why}; {_leaves(worst, total)}."


def _heeding(verdict: Verdict, expectations: list[ExpectationRecord]) -> Verdict:
    """Let the scenario's own tests of the same setting have the last word."""
    for record in expectations:
        if record.expectation not in ("no-collusion-gain", "theorem-4") or not _covers(record.where, verdict):
            continue
        said = f"The expectation {record.expectation} {record.status.replace('undecided', 'is undecided')}"
        if record.status == "fails":
            finding: Finding = verdict.finding if verdict.finding in ("exact", "gain") else "refuted"
            verdict = replace(verdict, finding=finding, sentence=_joined(verdict, finding, f"{said}."))
        elif record.status == "undecided" and verdict.finding in ("no-gain", "alone", "undecided"):
            verdict = replace(verdict, finding="undecided", sentence=_joined(verdict, "undecided", f"{said}."))
        elif record.status == "holds" and verdict.finding == "undecided":
            verdict = replace(verdict, finding="no-gain", sentence=_held(verdict, said))
        elif verdict.finding == "gain":
            verdict = replace(verdict, sentence=f"{verdict.sentence} {said}.")
    return verdict


def _joined(verdict: Verdict, finding: Finding, said: str) -> str:
    """Put the expectation first where the measured figures alone would have said something milder."""
    if finding == verdict.finding:
        return f"{verdict.sentence} {said}"
    shown = verdict.worst
    return f"{said} {_capital(_leaves(shown, 0))}." if shown else said


def _held(verdict: Verdict, said: str) -> str:
    size = f" (largest gain measured here {percent(verdict.gain.value)})" if verdict.gain else ""
    return f"Pooling buys nothing beyond the margin that the scenario states{size}. {said}."


def _covers(where: dict[str, Any], verdict: Verdict) -> bool:
    """Whether an expectation's filter lets this verdict's setting through."""
    if verdict.setting is None:
        return False
    ours = {"scheme": verdict.scheme, "attack": verdict.setting.attack, "knowledge": verdict.setting.knowledge}
    for field, value in ours.items():
        wanted = where.get(field)
        if wanted is not None and value not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return where.get("attribute", EVERYTHING) == EVERYTHING and where.get("coalition") in (None, "all", "*")


def _simultaneous(gain: Figure, count: int) -> tuple[float | None, float | None]:
    """Widen a 95 % interval so that all ``count`` of them hold together (Bonferroni)."""
    if gain.low is None or gain.high is None:
        return None, None
    factor = NormalDist().inv_cdf(1 - 0.025 / count) / Z95
    return gain.value - factor * (gain.value - gain.low), gain.value + factor * (gain.high - gain.value)


def _exposed(reading: Reading, setting: Setting) -> tuple[str, Figure] | None:
    named = [name for name in reading.attributes if name != EVERYTHING]
    found = [(name, lowest(reading.figures(setting, ERROR, name).values())) for name in named]
    measured = [(name, shown) for name, shown in found if shown is not None]
    return min(measured, key=lambda item: item[1].value) if len(measured) > 1 else None


def _leaves(shown: Figure, total: int) -> str:
    return f"{copies(shown.coalition, total)} {'leaves' if len(shown.coalition) == 1 else 'leave'} {_share(shown)} of the variance unknown"


def _share(shown: Figure | None) -> str:
    """Write a normalized error as a percentage of the variance with its error bar."""
    if shown is None:
        return "–"
    scaled = Figure(*(None if v is None else 100 * v for v in shown[:4]), *shown[4:])  # type: ignore[arg-type]
    if abs(scaled.value) < 0.01:
        return percent(shown.value)
    half = scaled.half
    decimals = 1 if half is None or half >= 0.05 else 2
    bar = "" if half is None else f" ± {half:.{decimals}f}" if half >= 0.005 else " ± <0.01"
    return f"{scaled.value:.{decimals}f}{bar} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
