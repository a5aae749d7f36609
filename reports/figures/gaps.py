"""Cells without a figure, grouped by reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from auditor.results.records import grouped
from auditor.results.renderer import clean

from .figures import clipped, listed
from .matrix import MatrixRow
from .reading import Gap, Reading, unique


class Gathered(NamedTuple):
    """One attack's gaps with one reason.

    Attributes
    ----------
    places : list of (list of str, list of str)
        States of knowledge and schemes; each pair is listed once.
    cells : int
        Total number of sweep points, coalitions and replicates.
    """

    status: str
    attack: str | None
    reason: str
    places: list[tuple[list[str], list[str]]]
    cells: int


def gathered(gaps: Iterable[Gap]) -> list[Gathered]:
    """Group gaps by attack and reason, failures first."""
    found = grouped(((gap.status, gap.attack, gap.reason), gap) for gap in gaps)
    groups = [
        Gathered(*key, _places(group), sum(gap.cells for gap in group))
        for key, group in found.items()
    ]
    return sorted(groups, key=lambda group: group.status != "failed")


def apart(reading: Reading, rows: Sequence[MatrixRow]) -> tuple[list[Gathered], list[Gathered]]:
    """Split gaps into unsuited adversaries' and all others.

    An unsuited adversary is not applicable to any scheme. Without a comparison, the first list is
    empty.
    """
    unsuited = (
        {(row.knowledge, row.attack) for row in rows if row.unsuited}
        if any(row.reported for row in rows)
        else set()
    )
    found = [(gap, (gap.knowledge, gap.attack) in unsuited) for gap in reading.gaps]
    return gathered(gap for gap, folded in found if folded), gathered(
        gap for gap, folded in found if not folded
    )


def _places(gaps: Sequence[Gap]) -> list[tuple[list[str], list[str]]]:
    knowledge = grouped((gap.scheme, gap.knowledge or "") for gap in gaps)
    same_states = grouped((tuple(unique(states)), scheme) for scheme, states in knowledge.items())
    return [
        ([state for state in states if state], schemes) for states, schemes in same_states.items()
    ]


def _place_text(states: Sequence[str], schemes: Sequence[str]) -> str:
    """Format a place: ``(knowledge: perfect) against rotation, k-anonymity``."""
    states, schemes = ([clipped(name, 60) for name in names] for names in (states, schemes))
    return f"{f'(knowledge: {listed(states)}) ' if states else ''}against {listed(schemes)}"


def without_figures(
    attack: str | None, places: Iterable[tuple[Sequence[str], Sequence[str]]]
) -> str:
    """Name an adversary: ``ica (knowledge: perfect) against rotation``."""
    return f"{clean(attack) if attack else 'the release'} {'; '.join(_place_text(*place) for place in places)}"


def gap_text(group: Gathered) -> str:
    """Name a group: ``ica (knowledge: perfect) against rotation (3 cells)``."""
    return f"{without_figures(group.attack, group.places)} ({group.cells:,} {'cell' if group.cells == 1 else 'cells'})"


def unsuited_text(count: int) -> str:
    """State the number of adversaries that are not applicable to any scheme."""
    return f"{count} {'adversary is' if count == 1 else 'adversaries are'} not applicable to any scheme"


def untried_text(kinds: Iterable[str], more: Sequence[str]) -> str:
    """Name the applicable kinds of attack that were not tried.

    For kinds that were tried, count the attacks left out.
    """
    which = ", ".join(kinds)
    if not which and not more:
        return ""
    attacks = f"{len(more):,} more {'attack' if len(more) == 1 else 'attacks'}"
    rest = f"; nor {attacks} of kinds that were" if more else ""
    left = (
        f"Not tried: {which}{rest}"
        if which
        else f"Every kind of attack was tried; {attacks} {'applies' if len(more) == 1 else 'apply'}"
    )
    return f"{left}. `attacks: all` tries every attack that applies."


def limited_text(attacks: Sequence[str | Mapping[str, Any]]) -> str:
    """State which attacks ran on some coalitions only.

    Not checked: results files may be edited, so malformed entries are ignored.
    """
    groups: dict[str, list[str]] = {}
    for attack in attacks if isinstance(attacks, list) else ():
        if isinstance(attack, Mapping) and isinstance(attack.get("coalitions"), list):
            on = ", ".join(
                entry if isinstance(entry, str) else "a choice of its own"
                for entry in attack["coalitions"]
            )
            groups.setdefault(on, []).append(clipped(str(attack.get("id", attack.get("name"))), 60))
    return " ".join(
        f"Tried on some coalitions only ({on}): {', '.join(names)}." for on, names in groups.items()
    )


def unmeasured_text(count: int) -> str:
    """State the number of adversaries without a normalized error."""
    return f"{count} {'adversary has' if count == 1 else 'adversaries have'} no normalized error against any scheme"


def given_text(states: str) -> str:
    """State which figures exclude attributes given in clear."""
    return f"Figures of {clean(states)} are over the attributes that were not given in clear."
