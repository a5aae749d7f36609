"""What changed between two audits, beyond their error bars; what got worse is what leaks more."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from auditor.numerics.statistics import Z_95, holm, two_sided
from auditor.results.in_clear import in_clear
from auditor.results.metrics import METRICS, base
from auditor.results.records import Measurement, cells, describe, pooled, uncertainty

if TYPE_CHECKING:
    from auditor.results.model import AuditResult

LEVEL = 0.05
NOTICED = 0.01
"""Share of an exposure by which another attack must better it to be worse news, where error bars do
not tell."""


@dataclass(frozen=True)
class Change:
    """One cell that differs.

    Attributes
    ----------
    old, new : float
        The values, over all replicates.
    old_error, new_error : float or None
        Their standard errors.
    p_value : float
        Of no difference, adjusted for the number of cells compared (Holm).
    group : str
        The cell without its coalition and attribute: scheme, attack, knowledge, sweep point.
    """

    cell: str
    metric: str
    old: float
    new: float
    worse: bool
    old_error: float | None = None
    new_error: float | None = None
    p_value: float = 0.0
    group: str = ""

    def __str__(self) -> str:
        return f"{self.cell}: {self.metric} {self.old:.4g} → {self.new:.4g}"


@dataclass(frozen=True)
class Comparison:
    """What changed between two audits.

    Attributes
    ----------
    worsened, improved : list of Change
        Cells that leak more, or less, beyond their error bars; the largest change first.
    verdicts, broken : list of str
        Expectations that hold now and did not; and what else got worse: expectations that held and
        do not, cells that are no longer measured, an audit that is partial or has no cell in common
        with the old one, attributes that are more exposed to what is new.
    new, missing : list of str
        Cells that only the new, or only the old, audit has; expectations, too.
    compared : int
        Cells that both have.
    only_new, only_old : dict of str to int
        The same cells counted by scheme, attack, knowledge and sweep point.
    lost : dict of str to int
        Cells that both have and only the old one measured, counted likewise.
    stated_new, stated_old : list of str
        Expectations that only the new, or only the old, audit states, each with its outcome.
    refuted : int
        How many expectations of `broken` held, or were undecided, and are worse now.
    exposed : int
        How many of `broken`, the last, are attributes that an attack which the old audit did not
        try rebuilds better than any it tried.
    old, now : str
        What the audits are called and when they ran.
    data : str
        Whether both are of the same data, as far as their fingerprints tell.
    name : str
        The scenario's, where several are compared; empty for two audits alone.
    """

    worsened: list[Change]
    improved: list[Change]
    verdicts: list[str]
    broken: list[str]
    new: list[str]
    missing: list[str]
    compared: int
    old: str = ""
    now: str = ""
    only_new: dict[str, int] = field(default_factory=dict)
    only_old: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    stated_new: list[str] = field(default_factory=list)
    stated_old: list[str] = field(default_factory=list)
    refuted: int = 0
    exposed: int = 0
    data: str = ""
    name: str = ""

    @property
    def worse(self) -> bool:
        """Whether anything got worse: more leaks, an expectation no longer holds, or what was measured is not any more."""
        return bool(self.worsened or self.broken)

    def text(self) -> str:
        """Return the comparison in words."""
        parts = [
            f"{self.compared} cells compared: {len(self.worsened)} worse, {len(self.improved)} better",
            *filter(None, [self.data]),
        ]
        for title, items in (
            ("worse", [*map(str, self.worsened), *self.broken]),
            ("better", [*map(str, self.improved), *self.verdicts]),
            ("new", self.new),
            ("missing", self.missing),
        ):
            if items:
                shown = items[:50]
                more = [f"… and {len(items) - 50} more"] if len(items) > 50 else []
                parts.append("\n".join([f"{title}:", *(f"  {item}" for item in [*shown, *more])]))
        return "\n\n".join(parts)


Cells = dict[tuple[Any, ...], list[Measurement]]


def compare_results(old: AuditResult, new: AuditResult) -> Comparison:
    """Return what changed, cell by cell, matched by meaning: sweep point, scheme, knowledge, attack, coalition, attribute, metric.

    A difference counts when it is beyond both error bars (two-sided, Holm over all cells, 5 %);
    without error bars any difference beyond rounding does. Cells whose metric leaks neither way, as
    ``seconds``, are left out. Measurements of the two audits are taken as independent, which is
    conservative when they share a seed.
    """
    said_by_shares = all(
        any(r.metric == "normalized_error" for r in result.measurements) for result in (old, new)
    )
    dropped = {"rmse", "distortion"} if said_by_shares else {"rmse"}
    before, after = (
        cells(r for r in result.measurements if _leaks(r, dropped)) for result in (old, new)
    )
    ok_before = {key: group for key, group in before.items() if _measured(group)}
    ok_after = {key: group for key, group in after.items() if _measured(group)}
    shared = [key for key in ok_before if key in ok_after]
    changes = _changes(shared, ok_before, ok_after)
    lost = _lost(after[key] for key in ok_before if key in after and key not in ok_after)
    better, broken = _verdicts(old, new)
    exposed = _more_exposed(ok_before, ok_after)
    stated_new, stated_old = _stated(new, old), _stated(old, new)
    appeared = [group for key, group in after.items() if key not in before]
    gone = [group for key, group in before.items() if key not in after]
    return Comparison(
        worsened=[change for change in changes if change.worse],
        improved=[change for change in changes if not change.worse],
        verdicts=better,
        broken=[
            *broken,
            *map(_lost_text, lost.items()),
            *_stopped(new),
            *_strangers(ok_before, shared, lost),
            *exposed,
        ],
        new=[*_distinct(appeared), *stated_new],
        missing=[*_distinct(gone), *stated_old],
        compared=len(shared),
        old=_called(old),
        now=_called(new),
        only_new=_counted(appeared),
        only_old=_counted(gone),
        lost=lost,
        stated_new=stated_new,
        stated_old=stated_old,
        refuted=len(broken),
        exposed=len(exposed),
        data=_same_data(old, new),
    )


def _same_data(old: AuditResult, new: AuditResult) -> str:
    """Say whether two audits are of the same data; fingerprints made under different keys do not tell."""
    if old.provenance.fingerprint_key != new.provenance.fingerprint_key:
        return "Whether the data are the same cannot be told: their fingerprints were made under different keys, on different machines."
    before, after = (
        [table.fingerprint for table in result.data] or [result.provenance.fingerprint]
        for result in (old, new)
    )
    return "The data are the same." if before == after else "The data are not the same."


def _called(result: AuditResult) -> str:
    part = result.partial
    cut = "" if part is None else f" (partial: {part.finished} of {part.tasks} tasks)"
    return f"{result.title}, {result.provenance.start}{cut}"


def _stopped(result: AuditResult) -> list[str]:
    """An audit that was stopped has not shown that nothing got worse."""
    part = result.partial
    return (
        []
        if part is None
        else [f"the audit is partial: {part.finished} of {part.tasks} tasks were finished"]
    )


def _strangers(before: Cells, shared: list[tuple[Any, ...]], lost: dict[str, int]) -> list[str]:
    """Two audits of different things have not shown that nothing got worse either: the wrong file, or every name changed."""
    return (
        ["no cell of the old audit is in the new one: nothing was compared"]
        if before and not shared and not lost
        else []
    )


def _more_exposed(before: Cells, after: Cells) -> list[str]:
    """Say where what only the new audit tried leaves less of an attribute unknown than anything that the old one measured.

    An attack that was not tried before shows no change of any cell; a release is as exposed as the
    strongest attack finds it all the same.
    """
    strongest = _strongest(before)
    lines = []
    for place, group in _strongest(
        {key: group for key, group in after.items() if key not in before}
    ).items():
        if place in strongest:
            (left, error), (was, was_error) = pooled(group), pooled(strongest[place])
            reach = Z_95 * math.hypot(error or 0.0, was_error or 0.0)
            if was - left > max(reach, NOTICED * was):
                lines.append(
                    f"{_label(group[0])}: leaves {100 * left:.3g} % of the variance unknown, and was not tried; "
                    f"the strongest that was leaves {100 * was:.3g} % ({_label(strongest[place][0])})"
                )
    return lines


def _strongest(measured: Cells) -> dict[tuple[Any, ...], list[Measurement]]:
    """Return the cell that leaves least of any one attribute unknown, by sweep point and scheme; of adversaries who were given none."""
    found: dict[tuple[Any, ...], list[Measurement]] = {}
    for key, group in measured.items():
        record = group[0]
        if (
            record.metric == "normalized_error"
            and record.attribute != "*"
            and not in_clear(record.knowledge)
        ):
            place = key[0], record.scheme
            if place not in found or pooled(group)[0] < pooled(found[place])[0]:
                found[place] = group
    return found


def _lost(groups: Iterable[list[Measurement]]) -> dict[str, int]:
    """Count cells that are no longer measured, by who has them and by what became of them."""
    firsts = (next((record for record in now if record.status != "ok"), now[0]) for now in groups)
    became = {"failed": "failed", "not-applicable": "not applicable"}
    return dict(
        Counter(
            f"{_group(first)}: now {became.get(first.status, 'no value')}{f' ({first.reason})' if first.reason else ''}"
            for first in firsts
        )
    )


def _lost_text(item: tuple[str, int]) -> str:
    outcome, count = item
    return f"{outcome}: {count:,} {'cell is' if count == 1 else 'cells are'} no longer measured"


def _stated(here: AuditResult, there: AuditResult) -> list[str]:
    """Return the expectations that only one of two audits states, with their outcome."""
    known = {_statement(record) for record in there.expectations}
    return [
        f"expectation {_readable(record)}: {record.status}"
        for record in here.expectations
        if _statement(record) not in known
    ]


def _leaks(record: Measurement, dropped: set[str]) -> bool:
    """One metric per error is enough: rmse and distortion say what the normalized error says, in other units."""
    metric = METRICS.get(base(record.metric))
    return metric is not None and metric.leak != "neither" and record.metric not in dropped


def _scale(metric: str, *values: float) -> float:
    """Return the size that rounding is relative to: 1 for shares and probabilities, which pass through 0, else the values' own."""
    return (
        1.0
        if METRICS[base(metric)].unit.startswith(("share", "probability"))
        else max(map(abs, values))
    )


def _measured(group: list[Measurement]) -> bool:
    return all(record.status == "ok" and record.value is not None for record in group)


def _changes(shared: list[tuple[Any, ...]], before: Cells, after: Cells) -> list[Change]:
    pairs = [(before[key], after[key], pooled(before[key]), pooled(after[key])) for key in shared]
    p_values = holm(
        [
            two_sided(
                b - a,
                math.hypot(uncertainty(group), uncertainty(other)),
                _scale(group[0].metric, a, b),
            )
            for group, other, (a, _), (b, _) in pairs
        ]
    )
    changes = []
    for (group, _, (a, error_a), (b, error_b)), p in zip(pairs, p_values, strict=True):
        if p <= LEVEL:
            record = group[0]
            worse = b < a if METRICS[base(record.metric)].leak == "low" else b > a
            changes.append(
                Change(
                    cell=_label(record),
                    metric=record.metric,
                    old=a,
                    new=b,
                    worse=worse,
                    old_error=error_a,
                    new_error=error_b,
                    p_value=p,
                    group=_group(record),
                )
            )
    return sorted(
        changes,
        key=lambda change: (
            -abs(change.new - change.old) / _scale(change.metric, change.old, change.new)
        ),
    )


def _label(record: Measurement) -> str:

    sweep = ", ".join(f"{path}={value}" for path, value in record.sweep.items())
    held = (
        f"{'copy' if len(record.coalition) == 1 else 'copies'} {describe(record.coalition)}"
        if record.coalition
        else ""
    )
    about = "all attributes" if record.attribute == "*" else record.attribute
    parts = [record.scheme, record.attack or "", record.knowledge or "", held, about, sweep]
    return ", ".join(part for part in parts if part)


def _group(record: Measurement) -> str:
    sweep = ", ".join(f"{path}={value}" for path, value in record.sweep.items())
    return ", ".join(
        part for part in (record.scheme, record.attack, record.knowledge, sweep) if part
    )


def _counted(groups: Iterable[list[Measurement]]) -> dict[str, int]:
    return dict(Counter(_group(group[0]) for group in groups))


def _distinct(groups: Any) -> list[str]:
    return list(dict.fromkeys(_label(group[0]) for group in groups))


def _verdicts(old: AuditResult, new: AuditResult) -> tuple[list[str], list[str]]:
    """Return expectations that hold now and did not, and those that held and do not."""
    before = {_statement(record): record.status for record in old.expectations}
    better: list[str] = []
    broken: list[str] = []
    for record in new.expectations:
        was = before.get(_statement(record))
        if was is None or was == record.status:
            continue
        line = f"expectation {_readable(record)}: {was} → {record.status}"
        (
            better
            if record.status == "holds"
            else broken
            if was == "holds"
            else better
            if was == "fails"
            else broken
        ).append(line)
    return better, broken


def _readable(record: Any) -> str:
    """Write an expectation as reports do."""
    where = ", ".join(
        f"{name} = {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in record.where.items()
    )
    return f"{record.expectation} ({where})" if where else str(record.expectation)


def _statement(record: Any) -> str:
    return f"{record.expectation} {json.dumps(record.where, sort_keys=True)}"
