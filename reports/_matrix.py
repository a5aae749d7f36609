"""The comparison: schemes across, attacks and knowledge down, worst coalition beside best single copy."""

from __future__ import annotations

from typing import NamedTuple

from reports._figures import Figure
from reports._reading import ERROR, EVERYTHING, GAIN, Reading, Setting, best_single, lowest
from reports._severity import Severity, severity
from reports._verdict import gain_of


class MatrixCell(NamedTuple):
    """What one attack with one knowledge achieves against one scheme, at the sweep point where it achieves most.

    Attributes
    ----------
    status : str
        ``ok``, ``not-applicable``, ``failed``, or ``missing`` for a pairing that was not in the scenario.
    worst : Figure or None
        Normalized error of the coalition with the lowest one.
    single : Figure or None
        Normalized error of that coalition's best member alone.
    attributes : list of (str, Figure)
        The worst coalition's normalized error for each attribute.
    """

    scheme: str
    status: str
    reason: str
    setting: Setting | None = None
    worst: Figure | None = None
    single: Figure | None = None
    gain: Figure | None = None
    attributes: tuple[tuple[str, Figure], ...] = ()

    @property
    def severity(self) -> Severity | None:
        """How bad the reconstruction is."""
        return None if self.worst is None else severity(self.worst.value)


class MatrixRow(NamedTuple):
    """One adversary against every scheme."""

    knowledge: str
    attack: str
    cells: list[MatrixCell]


def matrix(reading: Reading) -> list[MatrixRow]:
    """Return the comparison, in the order of the scenario; empty when no attack ran."""
    return [
        MatrixRow(knowledge, attack, [_cell(reading, scheme, knowledge, attack) for scheme in reading.schemes])
        for knowledge, attack in reading.adversaries
    ]


def _cell(reading: Reading, scheme: str, knowledge: str, attack: str) -> MatrixCell:
    best: tuple[Setting, Figure] | None = None
    for point in range(len(reading.points)):
        setting = Setting(point, scheme, knowledge, attack)
        worst = lowest(reading.figures(setting).values())
        if worst is not None and (best is None or worst.value < best[1].value):
            best = (setting, worst)
    if best is None:
        return _empty(reading, scheme, knowledge, attack)
    setting, worst = best
    found = reading.figures(setting)
    by_attribute = [(name, reading.figures(setting, ERROR, name).get(worst.coalition)) for name in reading.attributes]
    return MatrixCell(
        scheme, "ok", "", setting, worst,
        best_single(found, worst.coalition), gain_of(reading, setting, worst.coalition),
        tuple((name, shown) for name, shown in by_attribute if shown is not None and name != EVERYTHING),
    )  # fmt: skip


def _empty(reading: Reading, scheme: str, knowledge: str, attack: str) -> MatrixCell:
    """A cell without a normalized error: not applicable, failed, measured otherwise, or never asked for."""
    for gap in reading.gaps():
        if gap[:3] == (scheme, knowledge, attack):
            return MatrixCell(scheme, gap.status, gap.reason)
    return MatrixCell(scheme, "missing", "no normalized error was measured for this pairing")


class Measure(NamedTuple):
    """One metric beyond the normalized error, for one adversary (or the release itself), scheme by scheme."""

    metric: str
    knowledge: str | None
    attack: str | None
    figures: list[Figure | None]


ERRORS = frozenset({ERROR, "distortion", "rmse"})
SHOWN_ELSEWHERE = ERRORS | {GAIN}


def measures(reading: Reading) -> list[Measure]:
    """Return the metrics the comparison does not show, each at the largest coalition of its first sweep point."""
    rows: dict[tuple[str, str | None, str | None], dict[str, Figure]] = {}
    for setting, metric, attribute in reading.keys():
        if metric in SHOWN_ELSEWHERE or attribute != EVERYTHING:
            continue
        found = reading.figures(setting, metric, attribute)
        largest = found[max(found, key=len)]
        rows.setdefault((metric, setting.knowledge, setting.attack), {}).setdefault(setting.scheme, largest)
    return [Measure(*key, [row.get(scheme) for scheme in reading.schemes]) for key, row in rows.items()]


class SweepRow(NamedTuple):
    """One metric at one sweep point, scheme by scheme."""

    point: int
    figures: list[Figure | None]


def sweep_table(reading: Reading, metric: str, knowledge: str | None, attack: str | None) -> list[SweepRow]:
    """Return one metric of one adversary along the sweep, each figure the one that speaks for its setting."""
    rows = []
    for point in range(len(reading.points)):
        found = [reading.figures(Setting(point, scheme, knowledge, attack), metric) for scheme in reading.schemes]
        rows.append(SweepRow(point, [telling(metric, figures) for figures in found]))
    return [row for row in rows if any(row.figures)]


def telling(metric: str, found: dict[tuple[int, ...], Figure]) -> Figure | None:
    """Return the figure that speaks for a setting: the lowest of an error, else that of the largest coalition."""
    if metric in ERRORS:
        return lowest(found.values())
    return found[max(found, key=len)] if found else None
