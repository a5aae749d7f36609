"""Details of a comparison cell: facts, agreement with theory, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.results.model import PluginSummary

from ..figures.figures import Z95, Figure, copies, number, percent, with_error
from ..figures.guesses import Guesses, losses
from ..figures.matrix import MatrixCell, MatrixRow
from ..figures.reading import Reading
from ..figures.strongest import strongest
from .bounds import bounds_of
from .sentences import share
from .verdict import MARGIN
from .winners import BEST, marks

FAR = 4.0
"""Standard errors of disagreement with theory; chance 1 in 16,000 cells."""


LEVELS = 12
"""Largest number of levels to list."""


class Fact(NamedTuple):
    """One line of a detail: a number if ``figure``, of one ``attribute``."""

    term: str
    text: str
    figure: bool = True
    attribute: bool = False


def facts(reading: Reading, knowledge: str, cell: MatrixCell) -> list[Fact]:
    """Return the facts of a cell: copies, levels, errors, theory, attributes."""
    shown = cell.worst or (cell.guesses.right if cell.guesses else None)
    if cell.setting is None or shown is None:
        return []
    where, alone = reading.point_text(cell.setting.point), len(cell.coalition) == 1
    levels = ", ".join(map(number, shown.levels[:LEVELS])) + (
        " …" if len(shown.levels) > LEVELS else ""
    )
    return [
        Fact("Knowledge", knowledge, False),
        *([Fact("Sweep point", where, False)] if where else []),
        Fact(
            "Worst coalition",
            copies(cell.coalition, reading.copies_of(cell.scheme, cell.setting.point)),
            False,
        ),
        *([Fact("Its level" if alone else "Its levels", levels)] if levels else []),
        *(_guessed(cell, cell.guesses) if cell.guesses else []),
        *(
            [
                Fact("Normalized error", with_error(cell.worst)),
                Fact("Theory", _theory(cell.worst), False),
            ]
            if cell.worst
            else []
        ),
        *(Fact(term, text) for term, text in bounds_of(reading, cell)),
        Fact(
            "Error bar from",
            f"{shown.error_bar}, {shown.replicates} replicate{'s' if shown.replicates != 1 else ''}",
            False,
        ),
        *_pooled(cell),
        *(
            Fact(name, with_error(one) + ", given in clear" * (name in cell.given), attribute=True)
            for name, one in cell.attributes
        ),
        *(
            [Fact("Over the sweep", f"{with_error(cell.span[0])} to {with_error(cell.span[1])}")]
            if cell.span
            else []
        ),
    ]


def shortened(found: Sequence[Fact], attributes: int = 12) -> list[Fact]:
    """Return the facts with a limited number of attributes."""
    after = next((place for place, fact in enumerate(found) if fact.attribute), len(found))
    named = [fact for fact in found if fact.attribute]
    left = len(named) - attributes
    more = [Fact("…", f"{left:,} more attributes in the page")] if left > 0 else []
    return [
        *found[:after],
        *named[:attributes],
        *more,
        *(fact for fact in found[after:] if not fact.attribute),
    ]


def strongest_cells(
    reading: Reading, rows: Sequence[MatrixRow]
) -> list[tuple[MatrixRow, MatrixCell]]:
    """Return the strongest adversary's cell for each measured scheme."""
    marked, found = marks(reading, rows), []
    for place, scheme in enumerate(reading.schemes):
        measured = [(row, row.cells[place]) for row in rows if row.cells[place].measured]
        best = [
            pair
            for pair in measured
            if marked.get((pair[0].knowledge, pair[0].attack, scheme)) == BEST
        ] or measured
        first = strongest(reading, scheme)
        found += sorted(
            best, key=lambda pair: first is None or (pair[0].knowledge, pair[0].attack) != first[2:]
        )[:1]
    return found


def _guessed(cell: MatrixCell, found: Guesses) -> list[Fact]:
    single = (
        [Fact("Right guesses from the most revealing copy", share(found.single))]
        if cell.pooled and found.single
        else []
    )
    return [
        Fact("Right guesses", share(found.right)),
        *single,
        Fact("Right guesses without any copy", percent(found.blind)),
        Fact("Probability given to the truth", _beside(found.truth)),
        *(
            [Fact("Information on a record", f"{with_error(found.bits)} bits")]
            if found.bits
            else []
        ),
    ]


def _pooled(cell: MatrixCell) -> list[Fact]:
    made = []
    if cell.pooled and cell.single:
        made.append(
            Fact(
                "Most revealing single copy",
                f"{with_error(cell.single)} ({copies(cell.single.coalition, 99)})",
            )
        )
    if cell.gain and len(cell.coalition) > 1:
        counted = " (in 1 − probability of the truth)" if cell.guesses else ""
        made.append(Fact(f"Collusion gain{counted}", _beside(cell.gain)))
    return made


def _beside(shown: Figure) -> str:
    return with_error(shown) + (
        f", theory {number(shown.theory, shown.half)}" if shown.theory is not None else ""
    )


def _theory(shown: Figure) -> str:
    agrees = agreement(shown)
    return agrees if shown.theory is None else f"{number(shown.theory, shown.half)}, {agrees}"


class Assumption(NamedTuple):
    """An assumption of attack or scheme, and the cell's evidence on it."""

    who: str
    text: str
    here: str


def agreement(shown: Figure) -> str:
    """State the distance of measurement and closed form."""
    distance = _distance_to_theory(shown)
    if shown.theory is None:
        return "no closed form"
    if distance is None:
        return "no error bar to judge it by"
    if distance <= FAR:
        return (
            "agrees with the measurement"
            if distance < 0.05
            else f"agrees, {distance:.1f} standard errors apart"
        )
    return f"disagrees, {distance:.0f} standard errors apart"


def assumptions(
    reading: Reading, attack: str, knowledge: str, cell: MatrixCell
) -> list[Assumption]:
    """Return the assumptions of a cell's attack and scheme, with evidence."""
    found = []
    for plugin in reading.result.plugins:
        if (plugin.kind, plugin.id) not in (("attack", attack), ("scheme", cell.scheme)):
            continue
        if plugin.assumes:
            found.append(
                Assumption(
                    f"The {plugin.kind} assumes",
                    plugin.assumes,
                    _here(reading, plugin, knowledge, cell),
                )
            )
        if plugin.wins:
            found.append(Assumption("When it wins and fails", plugin.wins, ""))
    return found


def _here(reading: Reading, plugin: PluginSummary, knowledge: str, cell: MatrixCell) -> str:
    if plugin.kind == "attack":
        shown = cell.worst or (cell.guesses.truth if cell.guesses else None)
        return f"{_attack_here(shown)} {KNOWN.get(knowledge.partition('(')[0], '')}".strip()
    pooled = cell.setting is not None and any(
        len(coalition) > 1 for coalition in losses(reading, cell.setting)
    )
    if pooled and len(cell.coalition) == 1:
        return "Its protection holds here: no coalition rebuilds more than this one copy."
    return _scheme_here(cell.gain if len(cell.coalition) > 1 else None)


def _attack_here(worst: Figure | None) -> str:
    distance = None if worst is None else _distance_to_theory(worst)
    if distance is None:
        return "Not checked here: there is no closed form to hold the measurement against."
    if distance <= FAR:
        return "Borne out here: the closed form that rests on it agrees with the measurement."
    return "Does not hold here: the closed form that rests on it disagrees with the measurement."


KNOWN = {
    "perfect": "What it knows of the data is exact here.",
    "estimated": "What it knows of the data is estimated here from the rows released, and is as accurate as the estimate.",
    "known-records": "What it knows of the data is estimated here from the known records, and is as accurate as the estimate.",
    "unmatched-records": "What it knows of the data is estimated here from known unmatched records, and is as accurate as the estimate.",
    "known-sample": "What it knows of the data is estimated here from a sample of the population, and is as accurate as the estimate.",
    "known-attributes": "What it knows of the data is exact here, including the attributes known in clear.",
    "model": "What it knows of the data is estimated here from the rows released, except the published regression.",
    "rules": "What it knows of the data is published here. Beyond it, it assumes the most uniform distribution.",
    "uniform-prior": "It assumes equal shares of all values here, which holds only for uniform data.",
}
"""Validity of an attack's assumptions for each state of knowledge."""


def _scheme_here(gain: Figure | None) -> str:
    if gain is None or gain.low is None or gain.high is None:
        return "Not put to the test here: nobody pooled."
    if gain.low > 0 and gain.value > MARGIN:
        return f"Its protection does not hold here: this coalition gains {percent(gain.value)} by pooling."
    if gain.high <= MARGIN:
        return "Its protection holds here: this coalition gains nothing by pooling."
    return "Not settled here: the gain's error bar is too wide."


def _distance_to_theory(shown: Figure) -> float | None:
    """Return |measured − theory| in standard errors; None if unknown."""
    if shown.theory is None or shown.half is None:
        return None
    distance = abs(shown.value - shown.theory)
    if distance <= 1e-9 * max(1.0, abs(shown.theory)):
        return 0.0
    return distance / (shown.half / Z95) if shown.half else None
