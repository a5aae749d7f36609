"""Details of a comparison cell, proved bounds and marks of the strongest attacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..figures.figures import Z95, Figure, copies, number, percent, with_error
from ..figures.matrix import MatrixCell, MatrixRow
from ..figures.reading import Reading, Setting, ceiling, lowest
from ..figures.strongest import Guesses, judged, least, losses
from .sentences import share

FAR = 4.0
"""Standard errors of disagreement with theory; chance 1 in 16,000 cells."""
LEVELS = 12
"""Largest number of levels to list."""
FLOOR = "error_floor"
PROVED = "Proved: from copies alone, no attack leaves less of the variance unknown on average than "
BEST, NEAR = "★", "☆"
MARKS = f"{BEST} strongest against its scheme  {NEAR} not told apart from it by the error bars"


class Fact(NamedTuple):
    """One line of a detail."""

    term: str
    text: str


def facts(reading: Reading, knowledge: str, cell: MatrixCell) -> list[Fact]:
    """Facts of a cell: copies, levels, errors, theory, attributes."""
    shown = cell.shown
    if cell.setting is None or shown is None:
        return []
    where, alone = reading.point_text(cell.setting.point), len(cell.coalition) == 1
    levels = ", ".join(map(number, shown.levels[:LEVELS]))
    levels += " …" if len(shown.levels) > LEVELS else ""
    who = copies(cell.coalition, reading.copies_of(cell.scheme, cell.setting.point))
    runs = f"{shown.replicates} replicate{'s' if shown.replicates != 1 else ''}"
    counted = " (in 1 − probability of the truth)" if cell.guesses else ""
    single = cell.single if cell.pooled else None
    found = [
        Fact("Knowledge", knowledge),
        Fact("Sweep point", where),
        Fact("Worst coalition", who),
        Fact("Its level" if alone else "Its levels", levels),
        *(_guessed(cell, cell.guesses) if cell.guesses else ()),
        Fact("Normalized error", with_error(cell.worst) if cell.worst else ""),
        Fact("Theory", _theory(cell.worst) if cell.worst else ""),
        Fact("Error bar from", f"{shown.error_bar}, {runs}"),
        Fact(
            "Most revealing single copy",
            f"{with_error(single)} ({copies(single.coalition, 99)})" if single else "",
        ),
        Fact(
            f"Collusion gain{counted}", _with_theory(cell.gain) if cell.gain and not alone else ""
        ),
    ]
    for name, one in cell.attributes:
        found.append(Fact(name, with_error(one) + ", given in clear" * (name in cell.given)))
    return [fact for fact in found if fact.text]


def _guessed(cell: MatrixCell, found: Guesses) -> list[Fact]:
    single = share(found.single) if cell.pooled and found.single else ""
    bits = f"{with_error(found.bits)} bits" if found.bits else ""
    return [
        Fact("Right guesses", share(found.right)),
        Fact("Right guesses from the most revealing copy", single),
        Fact("Right guesses without any copy", percent(found.blind)),
        Fact("Probability given to the truth", _with_theory(found.truth)),
        Fact("Information on a record", bits),
    ]


def _with_theory(shown: Figure) -> str:
    theory = f", theory {number(shown.theory, shown.half)}"
    return with_error(shown) + (theory if shown.theory is not None else "")


def _theory(shown: Figure) -> str:
    if shown.theory is None:
        return "no closed form"
    distance, judged = _distance_to_theory(shown), "no error bar to judge it by"
    if distance is not None:
        verb = "agrees" if distance <= FAR else "disagrees"
        judged = f"{verb}, {distance:.1f} standard errors apart"
    return f"{number(shown.theory, shown.half)}, {judged}"


def assumptions(reading: Reading, attack: str, scheme: str) -> list[Fact]:
    """Assumptions of a cell's attack and scheme."""
    found = []
    for plugin in reading.result.plugins:
        if (plugin.kind, plugin.id) in (("attack", attack), ("scheme", scheme)):
            found += [Fact(f"The {plugin.kind} assumes", plugin.assumes)]
            found += [Fact("When it wins and fails", plugin.wins)]
    return [one for one in found if one.text]


def _distance_to_theory(shown: Figure) -> float | None:
    if shown.theory is None or shown.half is None:
        return None
    distance = abs(shown.value - shown.theory)
    if distance <= 1e-9 * max(1.0, abs(shown.theory)):
        return 0.0
    return distance / (shown.half / Z95) if shown.half else None


def least_possible(reading: Reading, point: int) -> list[tuple[str, str]]:
    """Each scheme's least error, as ``5.65 % from both copies``."""
    found = []
    for scheme in reading.schemes:
        least = lowest(reading.figures(Setting(point, scheme, None, None), FLOOR).values())
        if least is not None:
            who = copies(least.coalition, reading.copies_of(scheme, point))
            found.append((scheme, f"{number(100.0 * least.value)} % from {who}"))
    return found


def marks(reading: Reading, rows: Sequence[MatrixRow]) -> dict[tuple[str, str, str], str]:
    """★ or ☆ by knowledge, attack and scheme; empty for one adversary."""
    found: dict[tuple[str, str, str], str] = {}
    for place in range(len(reading.schemes)):
        held = {(row.knowledge, row.attack): row.cells[place] for row in rows}
        settings = {one.setting: who for who, one in held.items() if one.setting}
        contest = {
            one: shown
            for one in judged(reading, [*settings])
            if (shown := lowest(losses(reading, one).values())) is not None
        }
        best = least(reading, [*contest])
        if best is None or sum(cell.measured for cell in held.values()) < 2:
            continue
        for one, shown in contest.items():
            reach = ((shown.half or 0.0) ** 2 + (contest[best].half or 0.0) ** 2) ** 0.5
            mark = BEST if _equal(shown, contest[best]) else NEAR
            if mark == BEST or shown.value - contest[best].value <= reach:
                found[*settings[one], one.scheme] = mark
    return found


def _equal(shown: Figure, best: Figure) -> bool:
    near = abs(ceiling(shown) - ceiling(best)) <= 1e-9 * max(1e-9, abs(ceiling(best)))
    return near and abs(shown.value - best.value) <= 1e-9
