"""Verdict of each scheme: one sentence from the results.

The verdict concerns the strongest measured attack, by the upper bound of its overall normalized
error (for categories, of ``1 − truth``). An adversary with attributes in clear has a separate
sentence.

Pooling *endangers* in any of these cases:

- The interval of an attack's gain lies above 0.
- Classes of pooled copies are smaller than each copy's.
- Pooled copies guarantee less than each copy.

Pooling *buys nothing* if every interval ends below the margin. Otherwise the verdict is
*undecided*. Intervals are widened for the number of coalitions (Bonferroni). A stricter
``no-collusion-gain`` of the scenario overrides it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from auditor.results.in_clear import BELIEVED, KEPT, SHOWN
from auditor.results.records import ExpectationRecord

from ..figures.adversary import label, phrase
from ..figures.figures import Z95, Figure, braces, clipped, number
from ..figures.guesses import guesses, guesses_categories, losses
from ..figures.reading import (
    ERROR,
    EVERYTHING,
    GAIN,
    Reading,
    Setting,
    best_single,
    ceiling,
    floor,
    lowest,
)
from ..figures.severity import SCALE, severity
from ..figures.spreads import spread_of
from ..figures.strongest import EXACT, gain_of, judged, least, lowest_attribute, strongest
from . import sentences as say
from . import telling
from .card import FINE, Verdict
from .exposed import Disclosure, Exposure, Given
from .sentences import Bound
from .telling import Classes, Numbers

MARGIN = 0.01
"""Margin of ``no-collusion-gain``; smaller gains, relative to the best copy's error, count as
none."""

NO_GAIN = ("no-collusion-gain", "theorem-4")
LAW = "noise-follows-law"
DISCLOSED, NEWS = "disclosed", "disclosed_beyond_chance"
SMALLEST = "anonymity_k"
WITHOUT_COPIES = "error_without_copies"
GUARANTEES = {"epsilon": "ε", "gaussian_dp": "μ"}


def verdicts(reading: Reading) -> list[Verdict]:
    """Return the verdict on every scheme, in scenario order."""
    worse = {release.scheme for release in reading.result.releases if release.understated}
    return [
        replace(verdict(reading, scheme), understated=scheme in worse) for scheme in reading.schemes
    ]


def verdict(reading: Reading, scheme: str) -> Verdict:
    """Return the verdict on one scheme."""
    setting = strongest(reading, scheme)
    if setting is None:
        return Verdict(scheme, "not-measured", "No attack gave a normalized error for this scheme.")
    found = losses(reading, setting)
    worst = lowest(found.values())
    assert worst is not None
    errors, numbers = reading.figures(setting), _teller(reading, setting)
    alone = best_single(found, worst.coalition)
    base = Verdict(
        scheme,
        "alone",
        "",
        setting,
        errors.get(worst.coalition),
        None if alone is None else errors.get(alone.coalition),
        gain_of(reading, setting, worst.coalition),
        _exposed(reading, setting, worst.coalition),
        label(reading, setting),
        reading.point_text(setting.point),
        guesses(reading, setting, worst.coalition),
        _given_more(reading, setting),
        _disclosed(reading, setting),
        shown=_shown(reading, setting),
        kept=_most(reading, setting, KEPT),
        believed=_believed(reading, setting, worst.coalition),
    )
    gains = [gain_of(reading, setting, coalition) for coalition in found if len(coalition) > 1]
    decided = _decided(base, found, worst, [gain for gain in gains if gain is not None], numbers)
    if decided.finding in ("no-gain", "undecided"):
        decided = (
            _paying_in_one(reading, setting, decided)
            or _paying_to_another(reading, setting, decided)
            or _into_smaller_classes(reading, setting, decided)
            or _into_weaker_guarantees(reading, setting, decided)
            or decided
        )
    return heeding(decided, reading.result.expectations, numbers.leaves(worst))


def _disclosed(reading: Reading, setting: Setting) -> Disclosure | None:
    here = [
        one
        for one in reading.settings(DISCLOSED)
        if (one.scheme, one.point) == (setting.scheme, setting.point)
    ]
    # version 0.1 has no NEWS
    shares = {one: reading.figures(one, NEWS) or reading.figures(one, DISCLOSED) for one in here}
    found = [(one, news) for one, each in shares.items() for news in each.values()]
    if not found:
        return None
    who, news = max(found, key=lambda one: (floor(one[1]), -len(one[1].coalition)))
    singles = shares[who]
    alone = [singles[(copy,)] for copy in news.coalition if (copy,) in singles]
    return Disclosure(
        str(who.attack),
        reading.figures(who, DISCLOSED)[news.coalition],
        news,
        max(alone, key=floor, default=None),
    )


def _shown(reading: Reading, setting: Setting) -> tuple[str, Figure] | None:
    """Return the attribute with most unperturbed values, if surely a quarter."""
    most = _most(reading, setting, SHOWN)
    return most if most is not None and severity(1.0 - floor(most[1])) != SCALE[-1] else None


def _most(reading: Reading, setting: Setting, metric: str) -> tuple[str, Figure] | None:
    here = [
        one
        for one in reading.settings(metric)
        if (one.scheme, one.point) == (setting.scheme, setting.point)
    ]
    found = [
        (name, shown)
        for one in here
        for name in reading.attributes
        for shown in reading.figures(one, metric, name).values()
    ]
    return max(found, key=lambda one: floor(one[1]), default=None)


def _believed(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Figure | None:
    """Return the rise of belief in one value, if surely a quarter of the way."""
    found = reading.figures(setting, BELIEVED).get(coalition)
    return found if found is not None and severity(1.0 - floor(found)) != SCALE[-1] else None


def _teller(reading: Reading, setting: Setting) -> Numbers:
    total = reading.copies_of(setting.scheme, setting.point)
    if guesses_categories(reading, setting):
        return Classes(total, reading, setting)
    return Numbers(total, [clipped(name, 60) for name in sorted(reading.given(setting.knowledge))])


def _given_more(reading: Reading, setting: Setting) -> Given | None:
    """Return a stronger adversary who knows attributes in clear, if any."""
    if reading.given(setting.knowledge):
        return None
    found = [
        one
        for other in reading.settings(ERROR)
        if other.scheme == setting.scheme
        for one in _left_to(reading, other)
    ]
    more = min(
        found,
        key=lambda one: (
            -one.rank if one.rank > FINE else 0,
            ceiling(one.shown),
            one.attribute != EVERYTHING,
        ),
        default=None,
    )
    worst = lowest(reading.figures(setting).values())
    return None if more is None or worst is None or ceiling(more.shown) >= ceiling(worst) else more


def _left_to(reading: Reading, setting: Setting) -> Iterator[Given]:
    given = reading.given(setting.knowledge)
    for name in reading.attributes if given else ():
        shown = lowest(reading.figures(setting, ERROR, name).values())
        if name not in given and shown is not None:
            alone = next(
                (one.value for one in reading.figures(setting, WITHOUT_COPIES, name).values()), None
            )
            yield Given(name, shown, str(setting.attack), tuple(sorted(given)), alone)


def _decided(
    base: Verdict,
    found: dict[tuple[int, ...], Figure],
    worst: Figure,
    gains: list[Figure],
    numbers: Numbers,
) -> Verdict:
    single = best_single(found, worst.coalition)
    if worst.value < EXACT:
        return replace(base, finding="exact", sentence=numbers.exact(worst, single))
    if not gains:
        return replace(base, finding="alone", sentence=telling.alone(worst, numbers))
    bounds = [Bound(gain, *_simultaneous(gain, len(gains))) for gain in gains]
    paying = [
        bound.gain
        for bound in bounds
        if bound.low is not None and bound.low > 0 and bound.gain.value > MARGIN
    ]
    if paying:
        # of the coalitions with a gain, the lowest error
        gain = min(paying, key=lambda gain: (found[gain.coalition].value, len(gain.coalition)))
        sentence = numbers.paying(gain, found[gain.coalition], best_single(found, gain.coalition))
        return replace(base, finding="gain", gain=gain, sentence=sentence)
    if all(bound.high is not None and bound.high <= MARGIN for bound in bounds):
        return replace(
            base, finding="no-gain", sentence=telling.nothing(bounds, single or worst, numbers)
        )
    return replace(
        base, finding="undecided", sentence=telling.undecided(bounds, worst, MARGIN, numbers)
    )


def _paying_in_one(reading: Reading, setting: Setting, decided: Verdict) -> Verdict | None:
    """Return the verdict that pooling endangers one attribute.

    The overall error does not show the gain, because other attributes dominate it.
    """
    given = reading.given(setting.knowledge)
    names = [name for name in reading.attributes if name != EVERYTHING and name not in given]
    gains = [
        (name, gain)
        for name in names
        for gain in reading.figures(setting, GAIN, name).values()
        if len(gain.coalition) > 1
    ]
    bounds = [(name, Bound(gain, *_simultaneous(gain, len(gains)))) for name, gain in gains]
    paying = [
        (name, bound.gain)
        for name, bound in bounds
        if bound.low is not None and bound.low > 0 and bound.gain.value > MARGIN
    ]
    if not paying:
        return None
    name, gain = max(paying, key=lambda one: (one[1].value, -len(one[1].coalition)))
    errors = reading.figures(setting, ERROR, name)
    pooled = errors.get(gain.coalition)
    if pooled is None:
        return None
    total = reading.copies_of(setting.scheme, setting.point)
    sentence = telling.paying_in_one(
        clipped(name, 60), gain, pooled, best_single(errors, gain.coalition), total
    )
    return replace(decided, finding="gain", sentence=sentence)


def _paying_to_another(reading: Reading, setting: Setting, decided: Verdict) -> Verdict | None:
    """Return the verdict that pooling helps a weaker attack.

    Its pooled error must be below the best single copy's. On large tables without replicates, row
    attacks have no error bar, while the best linear attack usually has one.
    """
    single = lowest(
        shown for coalition, shown in losses(reading, setting).items() if len(coalition) == 1
    )
    here = [
        one
        for one in reading.settings(ERROR)
        if (one.scheme, one.point) == (setting.scheme, setting.point)
    ]
    others = [one for one in judged(reading, here) if _peers(reading, one, setting)]
    while single is not None and (other := least(reading, others)) is not None:
        others = [one for one in others if one != other]
        found = losses(reading, other)
        gains = [gain_of(reading, other, coalition) for coalition in found if len(coalition) > 1]
        worst = lowest(found.values())
        assert worst is not None  # `least` returns only settings with figures
        bounded = [
            gain
            for gain in gains
            if gain is not None and ceiling(found[gain.coalition]) < single.value
        ]
        paying = _decided(decided, found, worst, bounded, _teller(reading, other))
        if paying.finding == "gain":
            who = phrase(reading, other)
            return replace(
                decided,
                finding="gain",
                sentence=telling.paying_to_another(paying.sentence, who, decided.gain),
            )
    return None


def _into_smaller_classes(reading: Reading, setting: Setting, decided: Verdict) -> Verdict | None:
    """Return the verdict that pooled copies have smaller classes."""
    here = [
        one
        for one in reading.settings(SMALLEST)
        if (one.scheme, one.point) == (setting.scheme, setting.point)
    ]
    found = [
        (shown, best_single(figures, shown.coalition))
        for figures in (reading.figures(one, SMALLEST) for one in here)
        for shown in figures.values()
        if len(shown.coalition) > 1
    ]
    smaller = [
        (shown, single)
        for shown, single in found
        if single is not None and shown.value < single.value
    ]
    if not smaller:
        return None
    shown, single = min(smaller, key=lambda one: (one[0].value, len(one[0].coalition)))
    sentence = telling.into_smaller_classes(
        shown, single, reading.copies_of(setting.scheme, setting.point)
    )
    return replace(decided, finding="gain", sentence=sentence, beside_errors=True)


def _into_weaker_guarantees(reading: Reading, setting: Setting, decided: Verdict) -> Verdict | None:
    """Return the verdict that pooled copies guarantee less than each copy.

    The margin is relative. Guarantees are exact, so they count even if no attack measures a gain.
    """
    for metric, symbol in GUARANTEES.items():
        here = [
            one
            for one in reading.settings(metric)
            if (one.scheme, one.point) == (setting.scheme, setting.point)
        ]
        for figures in (reading.figures(one, metric) for one in here):
            weaker = [
                (shown, alone)
                for shown in figures.values()
                if (alone := _weakest(figures, shown.coalition)) is not None
                and shown.value > alone.value * (1.0 + MARGIN)
            ]
            if weaker:
                shown, alone = max(weaker, key=lambda one: (one[0].value, -len(one[0].coalition)))
                sentence = telling.into_weaker_guarantees(
                    symbol, shown, alone, reading.copies_of(setting.scheme, setting.point)
                )
                return replace(decided, finding="gain", sentence=sentence, beside_errors=True)
    return None


def _weakest(figures: dict[tuple[int, ...], Figure], coalition: tuple[int, ...]) -> Figure | None:
    alone = [figures[(copy,)] for copy in coalition if (copy,) in figures]
    return max(alone, key=lambda one: one.value) if len(alone) == len(coalition) > 1 else None


def heeding(verdict: Verdict, expectations: list[ExpectationRecord], leaves: str) -> Verdict:
    """Let the scenario's worst expectation on the scheme override the verdict.

    A failed `noise-follows-law` has priority, because proofs need the law.
    """
    broken = next(
        (
            r
            for r in expectations
            if r.expectation == LAW and r.status == "fails" and _is_about(r.where, verdict)
        ),
        None,
    )
    if broken is not None:
        return _heeded(verdict, broken, leaves)
    about = [
        record
        for record in expectations
        if record.expectation in NO_GAIN and _is_about(record.where, verdict)
    ]
    for status in ("fails", "undecided", "holds"):
        record = next((record for record in about if record.status == status), None)
        if record is not None:
            return _heeded(verdict, record, leaves)
    return verdict


def _heeded(verdict: Verdict, record: ExpectationRecord, leaves: str) -> Verdict:
    said, now = say.expectation(record), verdict.finding
    if record.status == "fails" and now not in ("exact", "gain"):
        return replace(verdict, finding="refuted", sentence=f"{said} {leaves}.")
    if record.status == "undecided" and now in ("no-gain", "alone"):
        return replace(verdict, finding="undecided", sentence=f"{said} {leaves}.")
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
    setting = verdict.setting
    if setting is None or any(field in where for field in ("coalition", "attribute", "sweep")):
        return False
    return _admits(where.get("attack"), setting.attack) and _admits(
        where.get("knowledge"), setting.knowledge
    )


def _admits(wanted: Any, value: str | None) -> bool:
    return wanted is None or value in (wanted if isinstance(wanted, list) else [wanted])


def _simultaneous(gain: Figure, count: int) -> tuple[float | None, float | None]:
    """Widen a 95 % interval for ``count`` intervals (Bonferroni)."""
    if gain.low is None or gain.high is None:
        return None, None
    factor = NormalDist().inv_cdf(1 - 0.025 / count) / Z95
    return gain.value - factor * (gain.value - gain.low), gain.value + factor * (
        gain.high - gain.value
    )


def _exposed(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Exposure | None:
    """Return the most exposed attribute, of any adversary if clearly lower."""
    here = _exposed_to(reading, setting, coalition)
    if here is None:
        return None
    others = [
        one
        for one in reading.settings(ERROR)
        if one.scheme == setting.scheme and _peers(reading, one, setting)
    ]
    found = lowest_attribute(reading, others)
    if found is None or not _errors_differ(found[2], here.shown):
        return here
    other, name, shown = found
    who = phrase(reading, other)
    where = f" at {reading.point_text(other.point)}" if other.point != setting.point else ""
    return Exposure(
        name,
        shown,
        (),
        f"{who}, copies {braces(shown.coalition)}{where}",
        _near(reading, other, shown.coalition, name),
    )


def _peers(reading: Reading, other: Setting, setting: Setting) -> bool:
    """Whether two adversaries are comparable in attributes known in clear."""
    return not reading.given(other.knowledge) or bool(reading.given(setting.knowledge))


def _exposed_to(reading: Reading, setting: Setting, coalition: tuple[int, ...]) -> Exposure | None:
    given = reading.given(setting.knowledge)
    named = [name for name in reading.attributes if name != EVERYTHING and name not in given]
    found = [(name, reading.figures(setting, ERROR, name).get(coalition)) for name in named]
    measured = [(name, shown) for name, shown in found if shown is not None]
    if len(measured) < (2 if guesses_categories(reading, setting) else 1):
        return None
    first, least = min(measured, key=lambda item: item[1].value)
    tied = [name for name, shown in measured if name != first and not _errors_differ(least, shown)]
    return Exposure(first, least, tuple(tied), near=_near(reading, setting, coalition, first))


def _near(reading: Reading, setting: Setting, coalition: tuple[int, ...], attribute: str) -> str:
    """State the typical distance of estimates, in the column's own units."""
    if guesses_categories(reading, setting):
        return ""
    spread, root = (
        spread_of(reading, setting, coalition, attribute),
        reading.figures(setting, "rmse", attribute).get(coalition),
    )
    half, unit = (
        None if spread is None else spread.quantile(0.5),
        reading.unit_of(setting.point, attribute),
    )
    reach = half if half is not None else None if root is None else root.value
    if not reach:
        return ""
    figure = f"± {number(reach * (unit or 1.0), 0.05 * reach * (unit or 1.0))}{'' if unit else ' standard deviations'}"
    return (
        f"half of its values known to within {figure}"
        if half is not None
        else f"its values known to {figure}, root mean square"
    )


def _errors_differ(least: Figure, other: Figure) -> bool:
    reach = ((least.half or 0.0) ** 2 + (other.half or 0.0) ** 2) ** 0.5
    return bool(other.value - least.value > max(reach, EXACT))
