"""Check a recommendation on the rows to be released, and without their order.

The odds of a level's share unknown are ``g`` times the odds of its closed form, with g as last
measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor import registry
from auditor.adversary.attack import Attack
from auditor.results.model import AuditResult
from auditor.runs.advice.audits import Asked, by_closed_form
from auditor.runs.advice.candidates import Candidate
from auditor.runs.advice.columns import Chosen

MOST_CHECKED = 50_000
"""First rows on which a recommendation is checked."""
MOST_TRIES = 6
NEAR = 1.2
"""Attacks that leave at most this multiple of the least share are tried in a check."""
LESS, CUT = 1.25, 1.99
"""Least factor that advice mentions, of shares without and with serial attacks, and of levels; factor
of the target at which shares are cut off.
"""


def shares_left(asked: Asked, result: AuditResult) -> dict[str, float]:
    """Least share that each attack leaves of any attribute."""
    left: dict[str, float] = {}
    for name in {str(record.attack) for record in result.measurements if record.attack}:
        alone = [record for record in result.measurements if record.attack == name]
        if any(record.metric == "normalized_error" for record in alone):
            part = result.model_copy(update={"measurements": alone})
            left[name] = asked.exposed(part).unknown
    return left


def is_serial(name: str) -> bool:
    """Whether an attack uses the order of rows."""
    attack: type[Attack] = registry.get("attack", name)
    return attack.serial


@dataclass(frozen=True)
class Check:
    """Audits of one draw, on some rows and against some attacks."""

    asked: Asked
    candidate: Candidate
    data: Mapping[str, Any]
    attacks: Sequence[str]

    def left(self, place: int) -> float:
        """Share unknown of the worst attribute at a place of the grid."""
        candidate = self.candidate
        levels = candidate.alone(place) if candidate.curve else candidate.levels(place)
        scenario = self.asked.scenario(candidate.name, levels)
        scenario |= {"data": dict(self.data), "attacks": list(self.attacks), "replicates": 1}
        return self.asked.exposed(self.asked.measured(scenario)).unknown

    def first(self, place: int, share: float) -> int:
        """Place near the first that leaves the target, from the share left at one."""
        met = [place] if share >= self.asked.target else []
        for _ in range(MOST_TRIES):
            wanted = by_closed_form(self.candidate, place, share, self.asked.target)
            if wanted == place:
                break
            place, share = wanted, self.left(wanted)
            met += [place] if share >= self.asked.target else []
        return min(met, default=place)


def checked_place(
    asked: Asked, candidate: Candidate, place: int, result: AuditResult, chosen: Chosen
) -> tuple[int, str]:
    """Place that meets the target on the rows of a release, and a note.

    ``result`` is the audit of the sample at ``place``. No weaker place is returned.
    """
    rows = min(chosen.all_rows, MOST_CHECKED)
    shares = shares_left(asked, result)
    near = NEAR * min(shares.values())
    attacks = sorted(name for name, share in shares.items() if share <= near or is_serial(name))
    check = Check(asked, candidate, {**chosen.data, "rows": rows}, attacks)
    share = check.left(place)
    note = f"checked on the first {rows:,} records, in order"
    if share >= asked.target:
        return place, f"{note}: {share:.3f} stays unknown"
    return max(
        place, check.first(place, share)
    ), f"{note}, which need more noise than the sample: there {share:.3f} stays unknown"


def shuffled_note(
    asked: Asked, candidate: Candidate, place: int, result: AuditResult
) -> str | None:
    """Note on the noise that suffices without the order of rows, if much less."""
    shares = shares_left(asked, result)
    serial = [share for name, share in shares.items() if is_serial(name)]
    others = {name: share for name, share in shares.items() if not is_serial(name)}
    if not serial or not others:
        return None
    least = min(others.values())
    # shares are cut off at twice the target
    if least < min(LESS * min(serial), CUT * asked.target):
        return None
    attacks = [name for name, share in others.items() if share <= NEAR * least]
    there = Check(asked, candidate, asked.data, attacks).first(place, least)
    if LESS * candidate.levels(there)[0] > candidate.levels(place)[0]:
        return None
    now, then = candidate.levels(place)[0], candidate.levels(there)[0]
    return (
        f"the order of the records tells of them: if they are shuffled first, {candidate.name} at about "
        f"{then:g} in place of {now:g} would do"
    )
