"""One section per chart: a reference to the chart, and tables for text.

Charts have controls for the adversary. Tables show the leading adversary, or the first with
figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from auditor.results.records import grouped
from auditor.results.renderer import clean

from ..figures.adversary import label
from ..figures.along import (
    FrontierPoint,
    MeasurePoint,
    SweepPoint,
    frontier,
    measure_points,
    sweep_lines,
    swept_paths,
)
from ..figures.curves import CurvePoint, Line, curve
from ..figures.figures import Figure as Shown
from ..figures.figures import braces, clipped, number, with_error
from ..figures.guesses import TRUTH
from ..figures.matrix import sweep_table
from ..figures.reading import ERROR, EVERYTHING, Reading, Setting, lowest, plain, unique
from ..figures.spreads import Spread, spreads
from ..figures.strongest import leader
from ..figures.units import chart_title, data_unit, metric_title
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    TEXT,
    Block,
    Figure,
    Name,
    Paragraph,
    Row,
    Section,
    Table,
)

P = TypeVar("P", Spread, MeasurePoint, FrontierPoint)
SECONDS = "seconds"
MOST = {TERMINAL: 12, MARKDOWN: 50}
"""Rows of a chart's table in text; the page has all."""


def chart_sections(reading: Reading) -> list[Section]:
    """Return a section for every chart of the page."""
    made = [
        collusion(reading),
        coalitions(reading),
        distributions(reading),
        by_copies(reading),
        useful(reading),
        *sweeps(reading),
    ]
    return [section for section in made if section is not None]


def by_scheme(
    reading: Reading, first: str, rows: Sequence[Row], what: str = "", group: str = ""
) -> list[Block]:
    """Return a table of the schemes with figures, and name the others."""
    places = [
        place
        for place in range(len(reading.schemes))
        if any(row.cells[place] != "–" for row in rows)
    ]
    chosen = [row._replace(cells=[row.cells[place] for place in places]) for row in rows]
    none = [Name(name) for place, name in enumerate(reading.schemes) if place not in places]
    rest = [Paragraph(("Of ", Name(", ".join(none)), " there are none."), "note")] if none else []
    return [
        Table(
            first,
            [reading.schemes[place] for place in places],
            chosen,
            "schemes",
            what,
            group,
            MOST if what else {},
        ),
        *rest,
    ]


def _section(
    reading: Reading, key: str, who: str, blocks: Sequence[Block], curves: Sequence[Line] = ()
) -> Section:
    lead = [Paragraph((Name(who),), "lead", media=TEXT)] if who else []
    return Section(
        key,
        chart_title(reading, key),
        [*lead, Figure(key, curves, media=(TERMINAL, PAGE)), *blocks],
    )


def _table(
    reading: Reading,
    note: str,
    first: str,
    rows: Sequence[Row],
    what: str,
    media: tuple[str, ...] = TEXT,
) -> list[Block]:
    blocks = by_scheme(reading, first, rows, what) if rows else []
    return [
        Paragraph(f"{note}.", "note", media=TEXT),
        *(replace(block, media=media) for block in blocks),
    ]


def shown_of(reading: Reading, settings: Sequence[Setting]) -> Setting | None:
    """Return the leading setting if it has figures, else the first or None."""
    lead = leader(reading)
    if lead is not None and any(one == lead._replace(scheme=one.scheme) for one in settings):
        return lead
    return settings[0] if settings else None


def told_of(reading: Reading, found: Sequence[P]) -> tuple[Setting | None, list[P]]:
    """Return `shown_of` and its entries against every scheme."""
    setting = shown_of(reading, [one.setting for one in found])
    return setting, [
        one
        for one in found
        if setting and one.setting == setting._replace(scheme=one.setting.scheme)
    ]


def collusion(reading: Reading) -> Section | None:
    """Return the collusion curves; None without an adversary at two sizes."""
    found = shown_of(
        reading, [one for one in reading.settings(ERROR) if len(curve(reading, one)) > 1]
    )
    if found is None:
        return None
    curves = [curve(reading, found._replace(scheme=name)) for name in reading.schemes]
    named = list(zip(reading.schemes, curves, strict=True))
    rows = _by_size(
        reading,
        {(point.size, name): with_error(point.shown) for name, points in named for point in points},
    )
    which = (
        "in order of release"
        if all(point.prefix for points in curves for point in points)
        else "the worst coalition of each size"
    )
    table = _table(
        reading,
        f"Normalized error against copies pooled ({which})",
        "copies",
        rows,
        "sizes",
        (MARKDOWN,),
    )
    drawn = [
        Line(name, [(p.size, p.shown.value) for p in points], _ends(points))
        for name, points in named
    ]
    return _section(reading, "collusion", who(reading, found), [*_together(drawn), *table], drawn)


SAME = 0.005
"""Curves that differ by at most this at every point coincide visually."""


def _together(lines: Sequence[Line]) -> list[Block]:
    groups: list[list[Line]] = []
    for line in lines:
        home = next((group for group in groups if _near(group[0], line)), None)
        home.append(line) if home else groups.append([line])
    hidden = [group for group in groups if len(group) > 1 and group[0].points]
    return [
        Paragraph((Name(", ".join(one.name for one in group)), " lie on one another."), "note")
        for group in hidden
    ]


def _near(one: Line, other: Line) -> bool:
    mine, theirs = dict(one.points), dict(other.points)
    return mine.keys() == theirs.keys() and all(
        abs(mine[size] - theirs[size]) <= SAME for size in mine
    )


def _ends(points: Sequence[CurvePoint]) -> str:
    return (
        f"{number(points[0].shown.value, points[0].shown.half)} → {with_error(points[-1].shown)}"
        if points
        else ""
    )


def coalitions(reading: Reading) -> Section | None:
    """Return the worst coalition and the span of errors at each size."""
    setting = shown_of(
        reading, [one for one in reading.settings(ERROR) if len(reading.figures(one)) > 1]
    )
    if setting is None:
        return None
    figures = ((name, reading.figures(setting._replace(scheme=name))) for name in reading.schemes)
    groups = grouped(
        ((len(coalition), name), shown)
        for name, found in figures
        for coalition, shown in found.items()
    )
    rows = _by_size(reading, {place: _span(group) for place, group in groups.items()})
    note = "Normalized error of the worst coalition of each size, and how high others go"
    return _section(
        reading, "map", who(reading, setting), _table(reading, note, "copies", rows, "sizes")
    )


def _by_size(reading: Reading, found: Mapping[tuple[int, str], str]) -> list[Row]:
    sizes = sorted({size for size, _ in found})
    return [
        Row(str(size), [found.get((size, name), "–") for name in reading.schemes]) for size in sizes
    ]


def _span(group: list[Shown]) -> str:
    worst, highest = lowest(group) or group[0], max(shown.value for shown in group)
    further = f" to {number(highest, worst.half)}" if highest > worst.value else ""
    return f"{with_error(worst)}\n{clipped(braces(worst.coalition), 14)}{further}"


def distributions(reading: Reading) -> Section | None:
    """Return the median and 90 % quantile of absolute errors."""
    found, _ = spreads(reading, 1)
    setting, chosen = told_of(reading, found)
    if setting is None:
        return None
    held = {(one.attribute, one.setting.scheme): one for one in chosen}
    attributes = unique(one.attribute for one in chosen)
    rows = [
        Row(clipped(name, 60), [_quantiles(held.get((name, scheme))) for scheme in reading.schemes])
        for name in attributes
    ]
    note = f"Absolute error that half | 9 in 10 of the records stay below, {data_unit(reading)}"
    whose = f"{who(reading, setting)}, {braces(chosen[0].coalition)}"
    return _section(
        reading, "errors", whose, _table(reading, note, "attribute", rows, "attributes")
    )


def _quantiles(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    last = f">{number(spread.bins[-1].high)}"
    return " | ".join(
        last if (at := spread.quantile(share)) is None else number(float(f"{at:.3g}"))
        for share in (0.5, 0.9)
    )


def by_copies(reading: Reading) -> Section | None:
    """Return another metric by number of copies, for categories the truth's."""
    points = measure_points(reading)
    setting, chosen = told_of(
        reading, [point for point in points if point.attribute == EVERYTHING] or points
    )
    if setting is None:
        return None
    metric, attribute = next(
        ((p.metric, p.attribute) for p in chosen if p.metric == TRUTH),
        (chosen[0].metric, chosen[0].attribute),
    )
    found = {
        (p.size, p.setting.scheme): with_error(p.shown)
        for p in chosen
        if (p.metric, p.attribute) == (metric, attribute)
    }
    note = f"{metric_title(metric, reading, attribute)} of the coalition of each size that achieves most"
    return _section(
        reading,
        "by-size",
        who(reading, setting),
        _table(reading, note, "copies", _by_size(reading, found), "sizes"),
    )


def useful(reading: Reading) -> Section | None:
    """Return each coalition's utility and normalized error."""
    setting, chosen = told_of(reading, frontier(reading))
    if setting is None:
        return None
    metric = chosen[0].metric
    found = {(p.utility.coalition, p.setting.scheme): p for p in chosen if p.metric == metric}

    def cell(coalition: tuple[int, ...], scheme: str) -> str:
        one = found.get((coalition, scheme))
        return "–" if one is None else f"{with_error(one.utility)}\n{with_error(one.shown)}"

    held = unique(coalition for coalition, _ in found)
    rows = [
        Row(clipped(braces(coalition), 15), [cell(coalition, name) for name in reading.schemes])
        for coalition in held
    ]
    note = f"{metric_title(metric, reading)}, and below it the normalized error"
    return _section(
        reading,
        "frontier",
        who(reading, setting),
        _table(reading, note, "copies", rows, "coalitions"),
    )


def sweeps(reading: Reading) -> list[Section]:
    """Return the sections of each swept path: metrics and seconds."""
    paths, points, made = swept_paths(reading), sweep_lines(reading), []
    for number_of, path in enumerate(paths):
        here = [point for point in points if point.path == path]
        for key, timed in (("sweep", False), ("runtime", True)):
            chosen = [point for point in here if (point.metric == SECONDS) == timed]
            if chosen:
                made.append(
                    _section(
                        reading,
                        f"{key}-{number_of}",
                        "",
                        _swept(reading, paths, path, chosen, number_of),
                    )
                )
    return made


def _swept(
    reading: Reading, paths: list[str], path: str, chosen: Sequence[SweepPoint], place: int
) -> list[Block]:
    if place:
        return _table(
            reading, f"The tables of {clean(paths[0])} have a row for every combination", "", [], ""
        )
    made: list[Block] = []
    for metric, knowledge, attack in _telling(reading, chosen):
        rows = sweep_table(reading, metric, knowledge, attack)
        cells = [
            Row(_point(reading.points[row.point], paths), [*map(with_error, row.figures)])
            for row in rows
        ]
        setting = next(
            p.setting
            for p in chosen
            if (p.setting.knowledge, p.setting.attack) == (knowledge, attack)
        )
        whose = f", {label(reading, setting)}" if attack else ""
        first = clean(path) if len(paths) == 1 else "sweep point"
        made += _table(
            reading, f"{metric_title(metric, reading)}{whose}", first, cells, "sweep points"
        )
    return made


def _point(point: dict[str, Any], paths: list[str]) -> str:
    settings = [(path, clipped(plain(point[path]), 80)) for path in paths if path in point]
    return (
        "\n".join(
            value if len(paths) == 1 else f"{clean(path)} = {value}" for path, value in settings
        )
        or "–"
    )


def _telling(
    reading: Reading, chosen: Sequence[SweepPoint]
) -> list[tuple[str, str | None, str | None]]:
    """Return the metrics for tables.

    These are the first expected metric, the leading error and metrics of the release itself.
    """
    everything = [
        (p.metric, p.setting.knowledge, p.setting.attack)
        for p in chosen
        if p.attribute == EVERYTHING
    ]
    lead, held = leader(reading), {*everything}
    stated = [record.expectation for record in reading.result.expectations]
    first = [(metric, lead.knowledge, lead.attack) for metric in [*stated, ERROR]] if lead else []
    found = [key for key in first if key in held][:2] + [
        key for key in everything if key[2] is None
    ]
    return unique(found) or everything[:1]


def who(reading: Reading, setting: Setting) -> str:
    """Name an adversary and its sweep point."""
    where = reading.point_text(setting.point)
    return f"{label(reading, setting)}{f' at {where}' if where else ''}"
