"""The strongest attack of each kind against each scheme: what its largest coalition leaves unknown, or finds.

The comparison has every attack at the coalition that is worst for it. Kinds of attack are compared on equal terms, by what those who hold
most copies achieve: over all attributes, for which theory is stated, and beside that in the attribute that is rebuilt best.
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
"""What attacks that are after no estimate are measured by: shares of records, of which more is worse."""


class Strongest(NamedTuple):
    """The strongest attack of one kind against one scheme.

    Attributes
    ----------
    shown : Figure
        What its largest coalition leaves unknown of all attributes, or the share that it guesses or finds.
    found : str
        Of what that is a share; empty for a normalized error.
    exposed : tuple of (str, Figure) or None
        The attribute of which that coalition leaves least, if there are several.
    """

    kind: str
    setting: Setting
    shown: Figure
    found: str
    exposed: tuple[str, Figure] | None


def strongest_by_kind(reading: Reading) -> list[Strongest]:
    """Return them scheme by scheme at the comparison's sweep point; empty unless attacks of two kinds at least were measured there."""
    names = {plugin.id: plugin.name for plugin in reading.result.plugins if plugin.kind == "attack"}
    point, kinds = reference_point(reading), reading.result.attack_kinds
    of_kind = [(kinds.get(names.get(setting.attack or "", "")), setting) for setting in reading.settings() if setting.point == point]
    groups = grouped(((setting.scheme, kind), setting) for kind, setting in of_kind if kind)
    found = [_strongest(reading, kind, settings) for (_, kind), settings in groups.items()]
    measured = sorted((row for row in found if row is not None), key=lambda row: reading.schemes.index(row.setting.scheme))
    return measured if len({row.kind for row in measured}) > 1 else []


def untried_kinds(result: AuditResult) -> tuple[dict[str, list[str]], list[str]]:
    """Return the attacks left out of kinds that were not tried at all, by kind, and the attacks left out of kinds that were tried."""
    kinds, tried = result.attack_kinds, {plugin.name for plugin in result.plugins if plugin.kind == "attack"}
    had = {kinds.get(name) for name in tried}
    found = grouped((kinds.get(name, "of no stated kind"), name) for name in result.untried if kinds.get(name) not in had)
    return found, [name for name in result.untried if kinds.get(name) in had]


def _strongest(reading: Reading, kind: str, settings: Sequence[Setting]) -> Strongest | None:
    for metric, found in FOUND.items():
        shares = [(setting, held) for setting in settings if (held := _largest(reading.figures(setting, metric), most=True))]
        if shares:
            setting, shown = max(shares, key=lambda one: floor(one[1]))
            return Strongest(kind, setting, shown, found, None)
    ranked = [(setting, held) for setting in judged(reading, settings) if (held := _largest(losses(reading, setting)))]
    return _least(reading, kind, ranked) if ranked else None


def _least(reading: Reading, kind: str, ranked: Sequence[tuple[Setting, Figure]]) -> Strongest:
    setting, loss = min(ranked, key=lambda one: ceiling(one[1]))
    if guesses_categories(reading, setting) and (right := reading.figures(setting, RIGHT).get(loss.coalition)):
        return Strongest(kind, setting, right, "guessed right", None)
    hidden = [name for name in reading.attributes if name != EVERYTHING and name not in reading.given(setting.knowledge)]
    errors = [(name, reading.figures(setting, ERROR, name).get(loss.coalition)) for name in hidden]
    exposed = min(((name, shown) for name, shown in errors if shown), key=lambda one: ceiling(one[1]), default=None)
    return Strongest(kind, setting, loss, "", exposed if len(reading.attributes) > 2 else None)


def _largest(found: dict[tuple[int, ...], Figure], *, most: bool = False) -> Figure | None:
    """Return the figure of the coalition that holds most copies; of several as large, of the one that is worst for the owner."""
    size = max(map(len, found), default=0)
    held = [shown for coalition, shown in found.items() if len(coalition) == size]
    return max(held, key=floor, default=None) if most else lowest(held)
