"""Proved bounds on errors, in words."""

from __future__ import annotations

from ..figures.figures import Figure, copies, number
from ..figures.matrix import MatrixCell
from ..figures.reading import Reading, Setting, lowest

FLOOR, CEILING = "error_floor", "error_ceiling"
PROVED = "Proved: to whoever has copies alone so much of the variance stays unknown on average, whatever the attack: "


def least_possible(reading: Reading, point: int) -> list[tuple[str, str]]:
    """Return each scheme's least error, as ``5.65 % from both copies``."""
    found = []
    for scheme in reading.schemes:
        least = lowest(reading.figures(Setting(point, scheme, None, None), FLOOR).values())
        if least is not None:
            found.append(
                (
                    scheme,
                    f"{number(100.0 * least.value)} % from {copies(least.coalition, reading.copies_of(scheme, point))}",
                )
            )
    return found


def bounds_of(reading: Reading, cell: MatrixCell) -> list[tuple[str, str]]:
    """Return the proved bounds on a cell's error.

    Adversaries with attributes in clear are excluded.
    """
    if cell.setting is None or cell.given:
        return []
    everybody = _at(reading, cell.setting._replace(knowledge=None, attack=None), FLOOR, cell)
    low, high = (_at(reading, cell.setting, metric, cell) for metric in (FLOOR, CEILING))
    range_of = (
        f"{number(low.value)} {'or more' if high is None else f'to {number(high.value)}'}"
        if low is not None
        else ""
    )
    made = (
        [("From copies alone no attack leaves less than", f"{number(everybody.value)}, on average")]
        if everybody
        else []
    )
    return [*made, *([("By a theorem on this attack", range_of)] if range_of else [])]


def _at(reading: Reading, setting: Setting, metric: str, cell: MatrixCell) -> Figure | None:
    return reading.figures(setting, metric).get(cell.coalition)
