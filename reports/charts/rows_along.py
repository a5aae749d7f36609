"""Rows of the charts along a swept path, the number of copies or utility."""

from __future__ import annotations

from typing import Any

from auditor.results.renderer import clean

from ..figures.adversary import label
from ..figures.along import frontier, measure_points, sweep_lines
from ..figures.figures import with_error
from ..figures.reading import ERROR, EVERYTHING, Reading, Setting, unique
from ..figures.series import (
    FIGURE_HEADERS,
    ChartData,
    Choices,
    Options,
    attribute_text,
    cells,
    columns,
    setting_cells,
    setting_headers,
    values,
)
from ..figures.units import metric_title, path_title

SECONDS = "seconds"


class _Series:
    """Lines along a sweep: one per scheme, or per attack on a single scheme."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.by_attack = (
            len(reading.schemes) == 1 and len({attack for _, attack in reading.adversaries}) > 1
        )
        attacks = unique(clean(attack) for _, attack in reading.adversaries)
        itself = any(setting.attack is None for setting in reading.settings())
        schemes = [clean(name) for name in reading.schemes]
        self.names = unique([*attacks, *(schemes if itself else [])]) if self.by_attack else schemes
        self.control = Options("adversary", "Knowledge" if self.by_attack else "Adversary")

    def row(self, setting: Setting) -> dict[str, Any]:
        if setting.attack is None:
            return {
                "s": clean(setting.scheme),
                "i": self.names.index(clean(setting.scheme)),
                "v": -1,
            }
        name = clean(setting.attack if self.by_attack else setting.scheme)
        return {"s": name, "i": self.names.index(name), "v": self.control(self.choice(setting))}

    def choice(self, setting: Setting) -> str:
        return str(setting.knowledge) if self.by_attack else label(self.reading, setting)


def sweep_data(
    reading: Reading, path: str, leading: Setting | None, limit: int, *, runtime: bool = False
) -> ChartData:
    """Return rows of each metric, or the seconds, along one swept path."""
    figures, series = Options("figure", "Metric"), _Series(reading)
    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    points = [
        point
        for point in sweep_lines(reading)
        if point.path == path and (point.metric == SECONDS) == runtime
    ]
    # order of priority within the limit: all attributes together, then the first expected metric,
    # then the normalized error
    stated = [
        record.expectation
        for record in reading.result.expectations
        if record.expectation in {p.metric for p in points}
    ][:1]
    points.sort(
        key=lambda point: (
            point.attribute != EVERYTHING,
            point.metric not in stated,
            point.metric != ERROR,
        )
    )
    titles: dict[str, str] = {}
    for point in points[:limit]:
        setting, what = point.setting, f"{point.metric}, {attribute_text(point.attribute)}"
        titles.setdefault(what, metric_title(point.metric, reading, point.attribute))
        along = {"f": figures(what), "x": _axis_value(point.at), "o": clean(point.others)}
        rows.append({**series.row(setting), **along, **values(point.shown)})
        labels = [setting.scheme, label(reading, setting), what, point.at, point.others]
        table.append([*(clean(cell) for cell in labels), *cells(point.shown)])
    who = series.control.numbers.get(series.choice(leading), 0) if leading else 0
    headers = ["scheme", "adversary", "metric", path, "other paths", *FIGURE_HEADERS]
    controls = [figures.control(), series.control.control(who)]
    facts = _axis(rows, path) | {
        "series": series.names if not runtime else [clean(name) for name in reading.schemes]
    }
    return ChartData(
        columns(rows),
        controls,
        headers,
        table,
        len(points) - len(rows),
        facts,
        {"figure": list(titles.values())},
    )


def _axis(rows: list[dict[str, Any]], path: str) -> dict[str, Any]:
    numeric = all(isinstance(row["x"], (int, float)) for row in rows)
    at = unique(row["x"] for row in rows)
    wide = numeric and min(at, default=0) > 0 and max(at) / min(at) >= 30
    labels = {
        "path": clean(path),
        "title": path_title(path),
        "others": any(row["o"] for row in rows),
    }
    return labels | {"numeric": numeric, "log": wide, "at": at}


def _axis_value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return clean(", ".join(map(str, value)))
    return (
        value if isinstance(value, (int, float)) and not isinstance(value, bool) else clean(value)
    )


def measure_data(reading: Reading, leading: Setting | None, limit: int) -> ChartData:
    """Return rows of other measures against the number of copies pooled."""
    choices, figures = Choices(reading, leading), Options("figure", "Measure")
    rows, table = [], []
    points = measure_points(reading)
    for point in points[:limit]:
        place = choices.row(point.setting, point.attribute)
        rows.append({**place, "f": figures(point.metric), "k": point.size, **values(point.shown)})
        where = setting_cells(reading, point.setting, point.attribute)
        table.append([*where, clean(point.metric), str(point.size), *cells(point.shown)])
    headers = [*setting_headers(reading), "measure", "copies pooled", *FIGURE_HEADERS]
    facts = {"sizes": sorted({point.size for point in points})}
    titles = {"figure": [metric_title(metric, reading) for metric in figures.numbers]}
    return ChartData(
        columns(rows),
        [figures.control(), *choices.controls()],
        headers,
        table,
        len(points) - len(rows),
        facts,
        titles,
    )


def frontier_data(reading: Reading, leading: Setting | None, limit: int) -> ChartData:
    """Return rows of normalized error against utility, one per coalition."""
    choices, figures = Choices(reading, leading), Options("figure", "Utility")
    rows, table = [], []
    points = frontier(reading)
    for point in points[:limit]:
        use = values(point.utility)
        across = {
            "f": figures(point.metric),
            "x": use["y"],
            "xlo": use["lo"],
            "xhi": use["hi"],
            "n": with_error(point.utility),
        }
        rows.append({**choices.row(point.setting, EVERYTHING), **across, **values(point.shown)})
        where = setting_cells(reading, point.setting, EVERYTHING)
        table.append([*where, clean(point.metric), with_error(point.utility), *cells(point.shown)])
    headers = [*setting_headers(reading), "metric", "utility", *FIGURE_HEADERS]
    titles = {"figure": [metric_title(metric, reading) for metric in figures.numbers]}
    return ChartData(
        columns(rows),
        [figures.control(), *choices.controls()],
        headers,
        table,
        len(points) - len(rows),
        {},
        titles,
    )
