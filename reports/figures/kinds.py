"""Strongest attack of each kind against each scheme.

All kinds are compared at the largest coalition: over all attributes, and for the most exposed
attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.results.model import AuditResult
from auditor.results.records import grouped

from .figures import Figure
from .guesses import RIGHT, guesses_categories, losses
from .matrix import reference_point
from .reading import ERROR, EVERYTHING, Reading, Setting, ceiling, floor, lowest
from .strongest import judged

FOUND = {"named": "of rows named", "disclosed": "of values claimed rightly"}
"""Shares that measure attacks without an estimate; more is worse."""


class Strongest(NamedTuple):
    """The strongest attack of one kind against one scheme.

    Attributes
    ----------
    shown : Figure
        The largest coalition's overall normalized error, or its share of guesses or finds.
    found : str
        Meaning of the share; empty for a normalized error.
    exposed : tuple of (str, Figure) or None
        The attribute with the lowest error, if several exist.
    """

    kind: str
    setting: Setting
    shown: Figure
    found: str
    exposed: tuple[str, Figure] | None


def strongest_by_kind(reading: Reading) -> list[Strongest]:
    """Return the strongest attacks by scheme; empty below two measured kinds."""
    names = {plugin.id: plugin.name for plugin in reading.result.plugins if plugin.kind == "attack"}
    point, kinds = reference_point(reading), reading.result.attack_kinds
    of_kind = [
        (kinds.get(names.get(setting.attack or "", "")), setting)
        for setting in reading.settings()
        if setting.point == point
    ]
    groups = grouped(((setting.scheme, kind), setting) for kind, setting in of_kind if kind)
    found = [_strongest(reading, kind, settings) for (_, kind), settings in groups.items()]
    measured = sorted(
        (row for row in found if row is not None),
        key=lambda row: reading.schemes.index(row.setting.scheme),
    )
    return measured if len({row.kind for row in measured}) > 1 else []


def untried_kinds(result: AuditResult) -> tuple[dict[str, list[str]], list[str]]:
    """Return untried attacks of untried kinds, by kind, and of tried kinds."""
    kinds, tried = (
        result.attack_kinds,
        {plugin.name for plugin in result.plugins if plugin.kind == "attack"},
    )
    had = {kinds.get(name) for name in tried}
    found = grouped(
        (kinds.get(name, "of no stated kind"), name)
        for name in result.untried
        if kinds.get(name) not in had
    )
    return found, [name for name in result.untried if kinds.get(name) in had]


def _strongest(reading: Reading, kind: str, settings: Sequence[Setting]) -> Strongest | None:
    for metric, found in FOUND.items():
        shares = [
            (setting, held)
            for setting in settings
            if (held := _largest(reading.figures(setting, metric), most=True))
        ]
        if shares:
            setting, shown = max(shares, key=lambda one: floor(one[1]))
            return Strongest(kind, setting, shown, found, None)
    ranked = [
        (setting, held)
        for setting in judged(reading, settings)
        if (held := _largest(losses(reading, setting)))
    ]
    return _least(reading, kind, ranked) if ranked else None


def _least(reading: Reading, kind: str, ranked: Sequence[tuple[Setting, Figure]]) -> Strongest:
    setting, loss = min(ranked, key=lambda one: ceiling(one[1]))
    if guesses_categories(reading, setting) and (
        right := reading.figures(setting, RIGHT).get(loss.coalition)
    ):
        return Strongest(kind, setting, right, "guessed right", None)
    hidden = [
        name
        for name in reading.attributes
        if name != EVERYTHING and name not in reading.given(setting.knowledge)
    ]
    errors = [(name, reading.figures(setting, ERROR, name).get(loss.coalition)) for name in hidden]
    exposed = min(
        ((name, shown) for name, shown in errors if shown),
        key=lambda one: ceiling(one[1]),
        default=None,
    )
    return Strongest(kind, setting, loss, "", exposed if len(reading.attributes) > 2 else None)


def _largest(found: dict[tuple[int, ...], Figure], *, most: bool = False) -> Figure | None:
    """Return the largest coalition's figure, or the worst of several."""
    size = max(map(len, found), default=0)
    held = [shown for coalition, shown in found.items() if len(coalition) == size]
    return max(held, key=floor, default=None) if most else lowest(held)
