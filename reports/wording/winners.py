"""Winners: the strongest adversary against each scheme, ties and reasons.

All are at the comparison's sweep point. Adversaries with attributes in clear are excluded, because
their overall error is lower by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.results.records import grouped

from ..figures.adversary import label
from ..figures.figures import Figure, with_error
from ..figures.guesses import losses
from ..figures.matrix import MatrixCell, MatrixRow
from ..figures.reading import Reading, ceiling, lowest
from ..figures.strongest import judged, least
from .sentences import share

ATTACKS = 3
"""Fewest attacks for a table of winners."""
BEST, NEAR = "★", "☆"
MARKS = f"{BEST} strongest against its scheme  {NEAR} not told apart from it by the error bars"


class Winner(NamedTuple):
    """The strongest adversary against a scheme.

    Attributes
    ----------
    who : str
        Attack and knowledge.
    figure : str
        Error of the worst coalition.
    tied : list of str
        Attacks with overlapping error bars, each with its states of knowledge.
    why : str
        The attack's ``wins``.
    """

    scheme: str
    who: str
    figure: str
    tied: list[str]
    why: str


def marks(reading: Reading, rows: Sequence[MatrixRow]) -> dict[tuple[str, str, str], str]:
    """Return ★ or ☆ by knowledge, attack and scheme; empty for one adversary."""
    found: dict[tuple[str, str, str], str] = {}
    for place in range(len(reading.schemes)):
        contest = _contest(reading, rows, place)
        best = least(reading, [cell.setting for _, cell, _ in contest if cell.setting])
        if best is None or sum(row.cells[place].measured for row in rows) < 2:
            continue
        first = next(shown for _, cell, shown in contest if cell.setting == best)
        for row, cell, shown in contest:
            mark = BEST if _equal(shown, first) else NEAR if _near(shown, first) else ""
            if mark:
                found[row.knowledge, row.attack, cell.scheme] = mark
    return found


def winners(reading: Reading, rows: Sequence[MatrixRow]) -> list[Winner]:
    """Return the winner against each scheme; empty for few attacks."""
    reported = [row for row in rows if row.reported]
    if len({row.attack for row in reported}) < ATTACKS:
        return []
    found = marks(reading, reported)
    made = []
    for place, scheme in enumerate(reading.schemes):
        best = least(
            reading,
            [cell.setting for _, cell, _ in _contest(reading, reported, place) if cell.setting],
        )
        if best is None:
            continue
        row = next(row for row in reported if (row.knowledge, row.attack) == best[2:])
        who, figure = label(reading, best), _figure(row.cells[place])
        made.append(
            Winner(scheme, who, figure, _tied(found, scheme, row), _why(reading, row.attack))
        )
    return made


def _contest(
    reading: Reading, rows: Sequence[MatrixRow], place: int
) -> list[tuple[MatrixRow, MatrixCell, Figure]]:
    found = [(row, row.cells[place]) for row in rows]
    competing = set(judged(reading, [cell.setting for _, cell in found if cell.setting]))
    found = [(row, cell) for row, cell in found if cell.setting in competing]
    ranked = [
        (row, cell, lowest(losses(reading, cell.setting).values()))
        for row, cell in found
        if cell.setting
    ]
    return [(row, cell, shown) for row, cell, shown in ranked if shown is not None]


def _equal(shown: Figure, best: Figure) -> bool:
    """Whether two attacks agree up to rounding."""
    return (
        abs(ceiling(shown) - ceiling(best)) <= 1e-9 * max(1e-9, abs(ceiling(best)))
        and abs(shown.value - best.value) <= 1e-9
    )


def _near(shown: Figure, best: Figure) -> bool:
    reach = ((shown.half or 0.0) ** 2 + (best.half or 0.0) ** 2) ** 0.5
    return bool(shown.value - best.value <= reach)


def _figure(cell: MatrixCell) -> str:
    return f"{share(cell.guesses.right)} right" if cell.guesses else with_error(cell.worst)


def _tied(found: dict[tuple[str, str, str], str], scheme: str, winner: MatrixRow) -> list[str]:
    others = [
        who
        for *who, against in found
        if against == scheme and who != [winner.knowledge, winner.attack]
    ]
    states = grouped((attack, knowledge) for knowledge, attack in others)
    return [f"{attack}: {', '.join(known)}" for attack, known in states.items()]


def _why(reading: Reading, attack: str) -> str:
    return next(
        (
            plugin.wins
            for plugin in reading.result.plugins
            if (plugin.kind, plugin.id) == ("attack", attack)
        ),
        "",
    )
