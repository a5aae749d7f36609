"""First screen of a report: gate, number, reasons and next step."""

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from auditor.base.types import Names
from auditor.results.disclosure import WITHHELD
from auditor.results.metrics import causes
from auditor.results.model import AuditResult, SchemeSummary
from auditor.results.records import FITTED, UNSEARCHED, VERDICTS, ExpectationRecord, Remedy

from .document import First
from .figures import Figure, clipped, copies, isolated, listed, number, percent, rounded, share
from .matrix import EXACT, attribute_text, label, untried_text
from .reading import Reading
from .sentences import capital, check, counts, exactly, left_out, outcome
from .verdict import AS_THEY_ARE, EXACTLY, GUESSED, Exposure, State, Verdict, most_telling

SAFE, UNSAFE, OPEN = "Safe against everything tried", "Not safe to release", "Not decided"
MOST = 3
"""Number of reasons."""
AGAIN = ". Before a further copy, audit it together with these."
FURTHEST = 30
"""Half-widths per distance from the target up to which a number of records is stated."""
ADVISE = "Add noise: `auditor advise` finds levels that leave half of every attribute unknown."
MORE = "Add noise, or audit more records or replicates."
MEASURE = "Estimates scale the closed form by what the attack left here; `auditor advise` measures what all attacks leave."


def headline(reading: Reading, found: Sequence[Verdict]) -> First:
    """First screen of an audit; of a paper's figure, its claims."""
    result = reading.result
    if reproduces_a_figure(result):
        return _claims(result)
    state = _state(result, found)
    one = most_telling([one for one in found if one.state == state] or found)
    bar = one.most_exposed if one else None
    if one is None or bar is None:
        why, action = "no attack gave an error for the released copies", "Name `attacks: all`."
        missed = _missed(result)
        if missed and missed.why.startswith(WITHHELD):
            why, action = missed.why, "Audit a larger table."
        return First("open", f"{OPEN}: {why}", action=action)
    several = len(found) > 1
    number = _number(reading, one, bar, several=several)
    said = (one.exposure, one.sentence)
    reasons = [each for each in one.reasons[:-1] if each not in said and each not in number]
    if several:
        least, pooled = _of_schemes(found, one)
        reasons = [*least, *reasons[:1], *pooled]
    else:
        reasons.append(one.sentence)
    if state == "bad":
        reasons[:0] = [one.sentence] * (several and bar.state != "bad")
        because = causes(reading.result.measurements, brief=True)[:1]
        reasons[:0] = [isolated(f"{capital(why)}.") for why in because]
        missed = _missed(result)
        if missed and missed.status == "fails" and bar.state != "bad":
            why = re.split(r"(?<=\)); ", missed.why)[0]
            reasons.insert(0, f"`{missed.expectation}` fails: {isolated(clipped(why, 250))}.")
    attacks = {each.attack for each in result.measurements if each.attack and each.status == "ok"}
    which = (
        f"Strongest attack, of {len(attacks)} tried" if len(attacks) > 1 else "Only attack tried"
    )
    reasons.append(f"{which}: {label(reading, bar.setting, 'which ')}.")
    if state == "good":  # first: attacks not tried, columns not used
        unused = [untried_text(result), *left_out(result)]
        unused = unused[1:] if result.left_out else unused  # the budget's note names the attacks
        reasons = [*filter(None, unused), *reasons]
    gate, action = _gate_and_action(reading, state, found, one, bar)
    return First(state, gate, number, bar, reasons[:MOST], action)


def reproduces_a_figure(result: AuditResult) -> bool:
    """Whether the scenario reproduces a paper's figure without exposure."""
    cited = result.scenario.get("cite")
    asked = any(one.expectation == "exposure" for one in result.expectations)
    keys = [f"{key}-" for key in cited] if isinstance(cited, list) else []
    named = result.name.startswith((*keys, "survey-")) or bool(result.scenario.get("sweep"))
    return named and not asked and bool(result.expectations)


def _claims(result: AuditResult) -> First:
    made = sorted(map(check, result.expectations), key=lambda one: VERDICTS.index(one.status))
    came = outcome(result)
    # neutral: claims are no exposure verdict
    state: State = "plain" if came == "holds" else "bad" if made[0].status == "fails" else "open"
    gate = "All claims hold" if state == "plain" else "Not all claims hold"
    gate = f"{gate}: {counts(result)}"
    reasons = [f"{isolated(one.stated + one.where)} {one.status}: {one.why}" for one in made]
    return First(state, gate, reasons=reasons[:MOST])


def _state(result: AuditResult, found: Sequence[Verdict]) -> State:
    states = {one.state for one in found}
    if "bad" in states:
        return "bad"
    whole = result.partial is None and not result.failed and _missed(result) is None
    return "good" if whole and states == {"good"} else "open"


def _missed(result: AuditResult) -> ExpectationRecord | None:
    missed = [one for one in result.expectations if one.status != "holds"]
    return min(missed, key=lambda one: one.status != "fails", default=None)


def _gate_and_action(
    reading: Reading, state: State, found: Sequence[Verdict], one: Verdict, bar: Exposure
) -> tuple[str, str]:
    result, every = reading.result, len(found)
    good = [each.scheme for each in _alternatives(found, one) if each.state == "good"]
    if state == "good":
        best = dict.fromkeys(
            max(_alternatives(found, each), key=lambda one: (one.finding == "no-gain", one.left))
            for each in found
        )
        of = f" of {_names([each.scheme for each in best])}" * (every > 1)
        return SAFE + " within the budget" * bool(result.left_out), f"Release the copies{of}{AGAIN}"
    if state == "bad":
        bad = sum(each.state == "bad" for each in found)
        which = (
            f" with {bad} of {every} schemes"
            if bad < every
            else f", with any of the {every} schemes"
        )
        action = next(iter(remedies(reading, sorted(found, key=lambda each: -each.left))), ADVISE)
        if good:
            action = f"Release copies of {_names(good)} instead."
        elif {EXACTLY, AS_THEY_ARE} & {*one.beside}:
            seen = ", or leave columns meant to be seen out of `columns`" * (
                AS_THEY_ARE in one.beside
            )
            action = f"Perturb the values that the copies show unchanged{seen}; then audit again."
        elif one.finding == "refuted":
            action = "Check how the copies were made: they do not keep their scheme's promise."
        return UNSAFE + which * (every > 1), action
    missed, left, target = _missed(result), bar.left, bar.target
    named = f"`{missed.expectation if missed else 'exposure'}`"
    interval = f"{percent(max(0.0, left.low or 0.0))} to {percent(min(1.0, left.high or 1.0))}"
    chain = (
        (result.partial, "the audit did not finish", "Run it again with `--resume`."),
        (
            result.failed,
            "a part of the audit failed",
            "Mend the part that failed; `--full` names it.",
        ),
        (left.half is None, "the exposure has no error bar", "Set `replicates: 5` or more."),
        (
            bar.state == "open",
            f"the interval {interval} includes the target {percent(target)}",
            _records(
                reading.rows_of(one.setting.point), left, target, missed.why if missed else ""
            ),
        ),
        (
            one.finding == "alone" and one.total > 1,
            "pooled copies were not tried",
            "Measure pooled copies: `coalitions: [subsets]`.",
        ),
        (one.finding == "undecided", "whether pooling helps is open", MORE),
        (
            one.unused,
            "no attack could use a shown column",
            "Leave that column out, or declare a random one as `key`.",
        ),
        (
            missed and UNSEARCHED in missed.why,
            UNSEARCHED,
            "Add `perfect` to `knowledge`, so that an insider searches the files.",
        ),
        (
            missed and missed.status == "fails",
            f"{named} fails",
            "Make the expectation hold, or state the bound that you accept.",
        ),
        (True, f"{named} is undecided", MORE),
    )
    return next((f"{OPEN}: {why}", action) for found, why, action in chain if found)


def _records(rows: int, left: Figure, target: float, why: str) -> str:
    """Advise the number of records that would decide, if it is within reach.

    The number of the expectation, if it states one.
    """
    distance = abs(left.value - target)
    if not (left.half and rows and distance < left.half < FURTHEST * distance):
        return MORE
    stated = re.search(r"records to decide, about ([\d,]+) would do", why)
    need = stated[1] if stated else number(float(f"{rows * (1.2 * left.half / distance) ** 2:.2g}"))
    return f"Audit about {need} records to decide, or add noise."


def _number(reading: Reading, one: Verdict, bar: Exposure, *, several: bool) -> str:
    shown, plural, guessed = bar.left, len(bar.left.coalition) > 1, one.guesses
    if bar.what in one.beside:
        return f"{isolated(one.scheme)}: {one.beside[bar.what][1]}"
    names = [_recipients(reading, one.scheme).get(copy, "") for copy in shown.coalition]
    named = all(names) and len(names) <= MOST
    who = isolated(listed(names)) if named else capital(copies(shown.coalition, one.total))
    of = f" of {isolated(one.scheme)}" if several and one.scheme not in names else ""
    begin = f"{who}{of} {'together' if plural else 'alone'} "
    (s, es), without = ("", "") if plural else ("s", "es"), "; without copies"
    if guessed and bar.what == GUESSED:
        every = [each for table in reading.result.data[:1] for each in table.attributes]
        kept = [each for each in every if each.values] or every
        columns = [clipped(each.name, 40) for each in kept]
        right = f" for {share(guessed[0].right)} of the records"
        value = isolated(listed(columns[:MOST]) or "value")
        blind = f"{right}{without} a guess is right for {percent(guessed[0].blind)}."
        return f"{begin}name{s} the right {value}{blind}"
    what = isolated(clipped(bar.attribute, 40)) if bar.attribute else "the records"
    spread = reading.deviation_of(one.setting.point, bar.attribute) if bar.attribute else None
    if shown.value < EXACT:
        off = f"{without} a guess is off by ± {rounded(spread)}." if spread else "."
        return f"{begin}rebuild{s} {what}{exactly(shown)}{off}"
    if spread is None:
        return f"{begin}leave{s} {share(shown)} of {what} unknown{without} 100 %."
    error = rounded(math.sqrt(min(max(0.0, shown.value), 1.0)) * spread)
    return f"{begin}guess{es} {what} to ± {error} (typical error){without} ± {rounded(spread)}."


def _recipients(reading: Reading, scheme: str) -> dict[int, str]:
    stated = reading.result.scenario.get("schemes")
    for one in stated if isinstance(stated, list) else ():
        files = one.get("copies") if isinstance(one, dict) and one.get("id") == scheme else None
        if isinstance(files, list) and all(isinstance(file, str) for file in files):
            return {copy: clipped(PurePath(file).stem, 40) for copy, file in enumerate(files, 1)}
    return {}


def _of_schemes(found: Sequence[Verdict], worst: Verdict) -> tuple[list[str], list[str]]:
    same = [one for one in _alternatives(found, worst) if one.exposures]
    best = max(same, key=lambda one: one.left)
    helped = [one.scheme for one in found if one.finding in ("exact", "gain")]
    safe = [one.scheme for one in found if one.finding == "no-gain"]
    others = f"; not against {_names(safe)}" * bool(safe)
    pooled = f"Pooling copies helps against {_names(helped)}{others}."
    least = f"The least exposed scheme, {isolated(best.scheme)}, leaves {best.exposures[0].text}."
    return [least] * (best is not worst), [pooled] * bool(helped)


def _alternatives(found: Sequence[Verdict], one: Verdict) -> Sequence[Verdict]:
    """Verdicts of schemes that perturb columns of the same kind: numbers, or categories."""
    return [each for each in found if each.categories == one.categories]


def _names(schemes: Names) -> str:
    more = " …" if len(schemes) > 4 else ""
    return isolated(listed([clipped(name, 40) for name in schemes[:4]]) + more)


def remedies(reading: Reading, found: Sequence[Verdict]) -> list[str]:
    """Remedies for schemes that leave less than half unknown."""
    lines = []
    for one in found:
        point = reading.points[one.setting.point]
        for release in reading.result.releases:
            if (release.scheme, release.sweep) == (one.scheme, point) and release.remedy:
                lines.append(isolated(remedy_text(release, release.remedy)))
    return [*lines, MEASURE] if lines else []


def remedy_text(release: SchemeSummary, remedy: Remedy) -> str:
    """Advise the levels that would leave half unknown.

    An estimate is the closed form scaled to the measured error (`auditor.runs.result_parts`).
    """
    what = clipped(attribute_text(remedy.attribute), 40)
    basis = "estimate" if remedy.estimated else f"{clipped(remedy.attack, 40)}, closed form"
    name, other = clipped(release.scheme, 60), ""
    if remedy.lossless is not None:
        scheme = "uniform-multilevel" if remedy.kind == "retention" else "corner-wave"
        other = f"use {scheme} at {_levels(remedy.kind, [remedy.lossless])}"
    if remedy.levels:
        instead = f"; or {other}, which pooling does not weaken" if other else ""
        return f"Use {name} at {_levels(remedy.kind, remedy.levels)}, which would leave half of {what} unknown ({basis}){instead}."
    if remedy.attack == FITTED:
        return f"Perturb or leave out the columns that {name} shows, and shuffle its rows: they reveal {what}, and no level helps."
    if other:
        return f"Instead of {name} {other}: attacks with a closed form leave half of {what} unknown. `auditor advise` tries all."
    who = "one who knows the other attributes"
    return f"Publish less about the dependence of columns than {name} does: no level leaves half of {what} unknown to {who}."


def _levels(kind: str, levels: Sequence[float]) -> str:
    shown = [f"{level:g}" for level in levels]
    text = ", ".join(shown) if len(shown) <= 2 else f"{shown[0]} … {shown[-1]}"
    return f"retention of at most {text}" if kind == "retention" else f"levels of at least {text}"
