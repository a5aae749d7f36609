"""What the page's charts draw, as columns of plain values, with the table that stands behind each chart.

Field names are ours and fixed; names that come from data or a scenario are values only, never field names, so nothing
in them can reach an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reports._curves import coalition_map, curves, distribution_bins, sweep_lines
from reports._figures import Figure, braces, clean, number, plus_minus, with_error
from reports._reading import EVERYTHING, Reading, adversary_text, unique

ROWS = 8000
"""Rows that one chart may hold, so that the page stays small."""
TABLE_ROWS = 300
"""Rows of a data table in the page; the results file holds all."""


class Control(NamedTuple):
    """A choice above a chart: ``name`` is the chart's parameter, whose value is the option's number."""

    name: str
    label: str
    options: list[str]
    chosen: int = 0


@dataclass(frozen=True)
class ChartData:
    """Rows of a chart by column, the controls that filter them, and the same as a table to read."""

    columns: dict[str, list[Any]]
    controls: list[Control]
    headers: list[str]
    table: list[list[str]]
    left_out: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> list[list[str]]:
        """The rows that the page's table shows."""
        return self.table[:TABLE_ROWS]


class _Options:
    """Numbers the options of a control in order of first appearance."""

    def __init__(self, name: str, label: str, known: Iterable[str] = ()) -> None:
        self.name, self.label = name, label
        self.numbers: dict[str, int] = {}
        for text in known:
            self(text)

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def control(self, chosen: int = 0) -> Control:
        return Control(
            self.name, self.label, [clean(text) for text in self.numbers], min(chosen, len(self.numbers) - 1)
        )


def attribute_text(attribute: str) -> str:
    """Name an attribute; ``*`` is all of them together."""
    return "all attributes" if attribute == EVERYTHING else attribute


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [_short(row[name]) for row in rows] for name in rows[0]} if rows else {}


def _short(value: Any) -> Any:
    """Six significant digits are more than a pixel; the table and the results file have the rest."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _values(shown: Figure) -> dict[str, Any]:
    low, high = (shown.value, shown.value) if shown.low is None or shown.high is None else (shown.low, shown.high)
    return {
        "y": shown.value, "lo": low, "hi": high, "t": shown.theory,
        "m": with_error(shown), "c": braces(shown.coalition),
    }  # fmt: skip


def _cells(shown: Figure) -> list[str]:
    return [
        braces(shown.coalition), number(shown.value, shown.half), plus_minus(shown.half, shown.value),
        number(shown.theory, shown.half), shown.error_bar,
    ]  # fmt: skip


_FIGURE_HEADERS = ["coalition", "value", "± 95 %", "theory", "error bar from"]


class _Choices:
    """The three choices that the error charts share: attribute, adversary, sweep point."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.attribute = _Options("attribute", "Attribute", map(attribute_text, reading.attributes))
        self.adversary = _Options("adversary", "Adversary")
        self.point = _Options("point", "Sweep point")

    def row(self, setting: Any, attribute: str) -> dict[str, Any]:
        return {
            "s": clean(setting.scheme), "a": self.attribute(attribute_text(attribute)),
            "v": self.adversary(adversary_text(setting.knowledge, setting.attack)),
            "p": self.point(self.reading.point_text(setting.point) or "–"),
        }  # fmt: skip

    def controls(self, adversary: str = "") -> list[Control]:
        chosen = self.adversary.numbers.get(adversary, 0)
        return [self.attribute.control(), self.adversary.control(chosen), self.point.control()]


def _setting_cells(reading: Reading, setting: Any, attribute: str) -> list[str]:
    names = [setting.scheme, adversary_text(setting.knowledge, setting.attack), attribute_text(attribute)]
    where = reading.point_text(setting.point)
    return [clean(name) for name in (*names, where)] if len(reading.points) > 1 else [clean(name) for name in names]


def _setting_headers(reading: Reading) -> list[str]:
    return ["scheme", "adversary", "attribute", *(["sweep point"] if len(reading.points) > 1 else [])]


def collusion_data(reading: Reading, adversary: str = "", limit: int = ROWS) -> ChartData:
    """Collusion curves: error against the number of copies pooled."""
    choices, rows, table = _Choices(reading), [], []
    everything = curves(reading)
    found = everything[:limit]
    for point in found:
        rows.append({**choices.row(point.setting, point.attribute), "k": point.size, **_values(point.shown)})
        cells = _cells(point.shown)
        cells.insert(1, number(point.mean, point.shown.half))
        table.append([*_setting_cells(reading, point.setting, point.attribute), str(point.size), *cells])
    headers = [*_setting_headers(reading), "copies pooled", "coalition", "mean of that size", *_FIGURE_HEADERS[1:]]
    facts = {"prefix": all(point.prefix for point in found), "sizes": len({point.size for point in found})}
    return ChartData(_columns(rows), choices.controls(adversary), headers, table, len(everything) - len(found), facts)


def map_data(reading: Reading, adversary: str = "", limit: int = ROWS) -> ChartData:
    """The coalition map: every coalition by size."""
    choices, rows, table = _Choices(reading), [], []
    points, left_out = coalition_map(reading, limit)
    for point in points:
        size = len(point.shown.coalition)
        rows.append(
            {**choices.row(point.setting, point.attribute), "k": size, "w": int(point.worst), **_values(point.shown)}
        )
        table.append(
            [
                *_setting_cells(reading, point.setting, point.attribute),
                *_cells(point.shown),
                "worst" if point.worst else "",
            ]
        )
    table.sort(key=lambda cells: cells[-1] != "worst")
    return ChartData(
        _columns(rows),
        choices.controls(adversary),
        [*_setting_headers(reading), *_FIGURE_HEADERS, "note"],
        table,
        left_out,
    )


def distribution_data(reading: Reading, limit: int = ROWS) -> ChartData:
    """Error distributions: share of the records by absolute error, and up to it."""
    choices, coalition, rows, table = _Choices(reading), _Options("coalition", "Coalition"), [], []
    choices.attribute = _Options("attribute", "Attribute")
    everything = distribution_bins(reading)
    for item in everything[:limit]:
        record = item.record
        setting = (reading.point_of(record.sweep), record.scheme, record.knowledge, record.attack)
        place = {
            "s": clean(record.scheme), "a": choices.attribute(attribute_text(record.attribute)),
            "v": choices.adversary(adversary_text(record.knowledge, record.attack)),
            "p": choices.point(reading.point_text(setting[0]) or "–"), "g": coalition(braces(record.coalition)),
        }  # fmt: skip
        rows.append({**place, "x": item.low, "x2": item.high, "y": item.share, "u": item.cumulative})
        cells = [
            record.scheme,
            adversary_text(record.knowledge, record.attack),
            record.attribute,
            reading.point_text(setting[0]),
        ]
        spread = [
            braces(record.coalition),
            number(item.low),
            number(item.high),
            number(item.share),
            number(item.cumulative),
        ]
        table.append([*(clean(cell) for cell in cells), *spread])
    headers = [
        "scheme",
        "adversary",
        "attribute",
        "sweep point",
        "coalition",
        "error from",
        "to",
        "share of records",
        "share up to",
    ]
    if len(reading.points) < 2:
        headers, table = [h for h in headers if h != "sweep point"], [row[:3] + row[4:] for row in table]
    controls = [*choices.controls(), coalition.control(len(coalition.numbers) - 1)]
    return ChartData(_columns(rows), controls, headers, table, len(everything) - len(rows))


def sweep_data(reading: Reading, path: str, adversary: str = "", limit: int = ROWS) -> ChartData:
    """Every metric along one swept path."""
    figures, adversaries, rows, table = _Options("figure", "Metric"), _Options("adversary", "Adversary"), [], []
    points = [point for point in sweep_lines(reading) if point.path == path]
    points.sort(key=lambda point: point.metric not in ("normalized_error", "seconds"))
    for point in points[:limit]:
        setting, what = point.setting, f"{point.metric}, {attribute_text(point.attribute)}"
        who = -1 if setting.attack is None else adversaries(adversary_text(setting.knowledge, setting.attack))
        rows.append({
            "s": clean(setting.scheme), "f": figures(what), "v": who, "x": _axis_value(point.at),
            "o": clean(point.others), **_values(point.shown),
        })  # fmt: skip
        cells = [setting.scheme, adversary_text(setting.knowledge, setting.attack), what, point.at, point.others]
        table.append([*(clean(cell) for cell in cells), *_cells(point.shown)])
    numeric = all(isinstance(row["x"], (int, float)) for row in rows)
    values = unique(row["x"] for row in rows)
    wide = numeric and min(values, default=0) > 0 and max(values) / min(values) >= 30
    headers = ["scheme", "adversary", "metric", path, "other paths", *_FIGURE_HEADERS]
    facts = {"numeric": numeric, "log": wide, "others": any(row["o"] for row in rows), "path": clean(path)}
    return ChartData(
        _columns(rows),
        [figures.control(), adversaries.control(adversaries.numbers.get(adversary, 0))],
        headers,
        table,
        len(points) - len(rows),
        facts,
    )


def _axis_value(value: Any) -> Any:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else clean(value)
