"""What the page's charts draw, as tables of text: one part for each chart, in the order of the page, for the terminal and for Markdown.

A chart has controls to choose an adversary by; a table tells of the leading one, or of the first that has figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from auditor.results.renderer import clean
from reports.figures.along import SweepPoint, frontier, measure_points, sweep_lines, swept_paths
from reports.figures.curves import curve
from reports.figures.figures import Figure, braces, clipped, number, with_error
from reports.figures.guesses import TRUTH
from reports.figures.matrix import sweep_table
from reports.figures.reading import ERROR, EVERYTHING, Reading, Setting, adversary_text, lowest, plain, unique
from reports.figures.spreads import Spread, spreads
from reports.figures.strongest import leader
from reports.figures.units import PATHS, data_unit, metric_title

SECONDS = "seconds"


class Table(NamedTuple):
    """One table: a row for each step of something, a column for each scheme.

    Attributes
    ----------
    note : str
        What its cells hold.
    first : str
        Head of the first column.
    rows : list of (str, list of str)
        What a row is of, and its cells, one a scheme; what stands below in a cell follows a line end.
    what : str
        What rows are called that are left out.
    """

    note: str
    first: str
    rows: list[tuple[str, list[str]]]
    what: str

    def columns(self) -> list[int]:
        """Return the places of the schemes that have any figure in it."""
        places = range(max((len(cells) for _, cells in self.rows), default=0))
        return [place for place in places if any(cells[place] != "–" for _, cells in self.rows)]


class Part(NamedTuple):
    """One section: its title as the page has it, who it tells of, and its tables."""

    title: str
    aside: str
    tables: list[Table]


def parts(reading: Reading) -> list[Part]:
    """Return a part for every chart of the page except the first, the collusion curves, which are drawn."""
    made = [coalitions(reading), distributions(reading), by_copies(reading), useful(reading), *sweeps(reading)]
    return [part for part in made if part is not None]


def titled(what: str, path: str) -> str:
    """Name a swept path as the scenario has it, and in plain words where there are any: ``Sweep of data.rows: records``."""
    words = PATHS.get(path)
    return f"{what} {clean(path)}{f': {words}' if words and words != path else ''}"


def shown_of(reading: Reading, settings: Sequence[Setting]) -> Setting | None:
    """Return the leading setting, or the first of these where they know nothing of the leading adversary; None of none."""
    lead = leader(reading)
    if lead is not None and any(one == lead._replace(scheme=one.scheme) for one in settings):
        return lead
    return settings[0] if settings else None


def collusion(reading: Reading) -> tuple[Setting, Table] | None:
    """Return whose collusion curves are shown, and the curves as a table; None where no adversary was measured at two sizes."""
    found = shown_of(reading, [one for one in reading.settings(ERROR) if len(curve(reading, one)) > 1])
    if found is None:
        return None
    curves = [{p.size: p for p in curve(reading, found._replace(scheme=name))} for name in reading.schemes]
    sizes = sorted({size for one in curves for size in one})
    by_prefix = all(point.prefix for one in curves for point in one.values())
    which = "in order of release" if by_prefix else "the worst coalition of each size"
    rows = [(str(size), [with_error(one[size].shown if size in one else None) for one in curves]) for size in sizes]
    return found, Table(f"normalized error against copies pooled ({which})", "copies", rows, "sizes")


def coalitions(reading: Reading) -> Part | None:
    """The coalition map: of each size the worst coalition and the span of the errors."""
    setting = shown_of(reading, [one for one in reading.settings(ERROR) if len(reading.figures(one)) > 1])
    if setting is None:
        return None
    found = {name: _by_size(reading, setting._replace(scheme=name)) for name in reading.schemes}
    sizes = sorted({size for groups in found.values() for size in groups})
    rows = [(str(size), [_span(found[name].get(size, [])) for name in reading.schemes]) for size in sizes]
    note = "normalized error of the worst coalition of each size, and how high others go"
    return Part("Coalition map", who(reading, setting), [Table(note, "copies", rows, "sizes")])


def _by_size(reading: Reading, setting: Setting) -> dict[int, list[Figure]]:
    groups: dict[int, list[Figure]] = {}
    for coalition, shown in reading.figures(setting).items():
        groups.setdefault(len(coalition), []).append(shown)
    return groups


def _span(group: list[Figure]) -> str:
    worst = lowest(group)
    if worst is None:
        return "–"
    highest = max(shown.value for shown in group)
    further = f" to {number(highest, worst.half)}" if highest > worst.value else ""
    return f"{with_error(worst)}\n{clipped(braces(worst.coalition), 14)}{further}"


def distributions(reading: Reading) -> Part | None:
    """Which absolute error half and nine tenths of the records stay below."""
    found, _ = spreads(reading, 1)
    setting = shown_of(reading, [one.setting for one in found])
    if setting is None:
        return None
    told = [one for one in found if one.setting == setting._replace(scheme=one.setting.scheme)]
    held = {(one.attribute, one.setting.scheme): one for one in told}
    attributes = unique(one.attribute for one in told)
    rows = [(clipped(name, 60), [_quantiles(held.get((name, scheme))) for scheme in reading.schemes]) for name in attributes]
    note = f"absolute error that half | 9 in 10 of the records stay below, {data_unit(reading)}"
    aside = f"{who(reading, setting)}, {braces(told[0].coalition)}"
    return Part("Error distributions", aside, [Table(note, "", rows, "attributes")])


def _quantiles(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    last = f">{number(spread.bins[-1].high)}"
    return " | ".join(last if (at := spread.quantile(share)) is None else number(float(f"{at:.3g}")) for share in (0.5, 0.9))


def by_copies(reading: Reading) -> Part | None:
    """What an adversary achieves in other terms by the number of copies pooled; of categories, how probable the truth is."""
    points = measure_points(reading)
    everything = [point for point in points if point.attribute == EVERYTHING] or points
    setting = shown_of(reading, [point.setting for point in everything])
    if setting is None:
        return None
    told = [p for p in everything if p.setting == setting._replace(scheme=p.setting.scheme)]
    metric, attribute = next(((p.metric, p.attribute) for p in told if p.metric == TRUTH), (told[0].metric, told[0].attribute))
    found = {(p.size, p.setting.scheme): p.shown for p in told if (p.metric, p.attribute) == (metric, attribute)}
    rows = [(str(size), [with_error(found.get((size, name))) for name in reading.schemes]) for size in sorted({size for size, _ in found})]
    guessed = any(metric == TRUTH for _, metric, _ in reading.keys())
    title = "Guesses and beliefs by copies pooled" if guessed else "Other measures by copies pooled"
    note = f"{metric_title(metric, reading, attribute)} of the coalition of each size that achieves most"
    return Part(title, who(reading, setting), [Table(note, "copies", rows, "sizes")])


def useful(reading: Reading) -> Part | None:
    """Privacy against utility: what each coalition's copies are good for, and what they leave unknown."""
    points = sorted(frontier(reading), key=lambda point: any(word in point.metric for word in ("error", "loss")))
    setting = shown_of(reading, [point.setting for point in points])
    if setting is None:
        return None
    told = [p for p in points if p.setting == setting._replace(scheme=p.setting.scheme)]
    metric = told[0].metric
    found = {(p.utility.coalition, p.setting.scheme): p for p in told if p.metric == metric}

    def cell(coalition: tuple[int, ...], scheme: str) -> str:
        one = found.get((coalition, scheme))
        return "–" if one is None else f"{with_error(one.utility)}\n{with_error(one.shown)}"

    held = unique(coalition for coalition, _ in found)
    rows = [(clipped(braces(coalition), 15), [cell(coalition, name) for name in reading.schemes]) for coalition in held]
    note = f"{metric_title(metric, reading)}, and below it the normalized error"
    return Part("Privacy and utility", who(reading, setting), [Table(note, "copies", rows, "coalitions")])


def sweeps(reading: Reading) -> list[Part]:
    """What each swept path did: to an adversary's error, to the release itself, and to the seconds that it took."""
    paths, points, made = swept_paths(reading), sweep_lines(reading), []
    for number_of, path in enumerate(paths):
        here = [point for point in points if point.path == path]
        for what, timed in (("Sweep of", False), ("Runtime against", True)):
            told = [point for point in here if (point.metric == SECONDS) == timed]
            if told:
                made.append(Part(titled(what, path), "", _swept(reading, paths, path, told, number_of)))
    return made


def _swept(reading: Reading, paths: list[str], path: str, told: Sequence[SweepPoint], place: int) -> list[Table]:
    if place:
        return [Table(f"The tables of {clean(paths[0])} have a row for every combination", "", [], "")]
    made = []
    for metric, knowledge, attack in _telling(reading, told):
        rows = sweep_table(reading, metric, knowledge, attack)
        cells = [(_point(reading.points[row.point], paths), [with_error(shown) for shown in row.figures]) for row in rows]
        whose = f", {adversary_text(knowledge, attack)}" if attack else ""
        made.append(Table(f"{metric_title(metric, reading)}{whose}", clean(path) if len(paths) == 1 else "", cells, "sweep points"))
    return made


def _point(point: dict[str, Any], paths: list[str]) -> str:
    """Write a sweep point for its row: one path heads the column, of several each has a line."""
    told = [(path, clipped(plain(point[path]), 80)) for path in paths if path in point]
    return "\n".join(value if len(paths) == 1 else f"{clean(path)} = {value}" for path, value in told) or "–"


def _telling(reading: Reading, told: Sequence[SweepPoint]) -> list[tuple[str, str | None, str | None]]:
    """Return the metrics worth a table: what the scenario makes a statement of, the leading error, and those of the release itself."""
    everything = [(p.metric, p.setting.knowledge, p.setting.attack) for p in told if p.attribute == EVERYTHING]
    lead, held = leader(reading), {*everything}
    stated = [record.expectation for record in reading.result.expectations]
    first = [(metric, lead.knowledge, lead.attack) for metric in [*stated, ERROR]] if lead else []
    found = [key for key in first if key in held][:2] + [key for key in everything if key[2] is None]
    return unique(found) or everything[:1]


def who(reading: Reading, setting: Setting) -> str:
    """Name an adversary, and the sweep point where there is a sweep."""
    where = reading.point_text(setting.point)
    return f"{adversary_text(setting.knowledge, setting.attack)}{f' at {where}' if where else ''}"
