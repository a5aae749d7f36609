"""What a cell's detail says beyond its numbers: whether theory and measurement agree, and which assumptions held here."""

from __future__ import annotations

from typing import NamedTuple

from auditor.results import PluginSummary
from reports._figures import Z95, Figure, percent
from reports._guesses import losses
from reports._matrix import MatrixCell
from reports._reading import Reading
from reports._verdict import MARGIN

FAR = 4.0
"""Standard errors between measurement and theory from which they do not agree; by chance once in 16,000 cells."""


class Assumption(NamedTuple):
    """What an attack or a scheme assumes, and what this cell says of it."""

    who: str
    text: str
    here: str


def agreement(shown: Figure) -> str:
    """Say how far measurement and closed form are apart."""
    apart = _apart(shown)
    if shown.theory is None:
        return "no closed form"
    if apart is None:
        return "no error bar to judge it by"
    if apart <= FAR:
        return "agrees with the measurement" if apart < 0.05 else f"agrees, {apart:.1f} standard errors apart"
    return f"disagrees, {apart:.0f} standard errors apart"


def assumptions(reading: Reading, attack: str, knowledge: str, cell: MatrixCell) -> list[Assumption]:
    """Return what the attack and the scheme of a cell assume, each with what the cell says of it, and when the attack wins and fails."""
    found = []
    for plugin in reading.result.plugins:
        if (plugin.kind, plugin.id) not in (("attack", attack), ("scheme", cell.scheme)):
            continue
        if plugin.assumes:
            found.append(Assumption(f"The {plugin.kind} assumes", plugin.assumes, _here(reading, plugin, knowledge, cell)))
        if plugin.wins:
            found.append(Assumption("When it wins and fails", plugin.wins, ""))
    return found


def _here(reading: Reading, plugin: PluginSummary, knowledge: str, cell: MatrixCell) -> str:
    if plugin.kind == "attack":
        shown = cell.worst or (cell.guesses.truth if cell.guesses else None)
        return f"{_attack_here(shown)} {_known_here(knowledge)}".strip()
    pooled = cell.setting is not None and any(len(coalition) > 1 for coalition in losses(reading, cell.setting))
    if pooled and len(cell.coalition) == 1:
        return "Its protection holds here: no coalition rebuilds more than this one copy."
    return _scheme_here(cell.gain)


def _attack_here(worst: Figure | None) -> str:
    apart = None if worst is None else _apart(worst)
    if apart is None:
        return "Not checked here: there is no closed form to hold the measurement against."
    if apart <= FAR:
        return "Borne out here: the closed form that rests on it agrees with the measurement."
    return "Does not hold here: the closed form that rests on it disagrees with the measurement."


KNOWN = {
    "perfect": "What it knows of the data is exact here.",
    "estimated": "What it knows of the data is estimated here, from the rows released, and holds as far as the estimate does.",
    "known-records": "What it knows of the data is learnt here from the records known, and holds as far as they tell.",
    "unmatched-records": "What it knows of the data is learnt here from records known without their rows, and holds as far as they tell.",
    "known-sample": "What it knows of the data is learnt here from a sample of the population, and holds as far as the sample tells.",
    "known-attributes": "What it knows of the data is exact here, and so are the attributes it was given.",
    "uniform-prior": "It takes all values for alike here, which holds only for data that are.",
}
"""How far each state of knowledge grants what an attack assumes to know."""


def _known_here(knowledge: str) -> str:
    return KNOWN.get(knowledge.partition("(")[0], "")


def _scheme_here(gain: Figure | None) -> str:
    if gain is None or gain.low is None or gain.high is None:
        return "Not put to the test here: nobody pooled."
    if gain.low > 0 and gain.value > MARGIN:
        return f"Its protection does not hold here: this coalition gains {percent(gain.value)} by pooling."
    if gain.high <= MARGIN:
        return "Its protection holds here: this coalition gains nothing by pooling."
    return "Not settled here: the gain's error bar is too wide."


def _apart(shown: Figure) -> float | None:
    """Return the distance of measurement and theory in standard errors; None where either is missing."""
    if shown.theory is None or shown.half is None:
        return None
    distance = abs(shown.value - shown.theory)
    if distance <= 1e-9 * max(1.0, abs(shown.theory)):
        return 0.0
    return distance / (shown.half / Z95) if shown.half else None
