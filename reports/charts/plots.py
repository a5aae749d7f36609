"""The page's charts as Altair charts, for notebooks and pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt  # import takes 0.25 s, and pages do not need it

from auditor.errors import AuditorError
from auditor.results.model import AuditResult

from ..figures.reading import Reading
from ..figures.series import ChartData
from .listing import Chart, charts, names
from .style import CONFIG

WIDTH, PAIR = 560, 360
"""Width in pixels of a single chart and of each of two side by side."""


class Plots:
    """Charts of one audit as Altair charts.

    Keyword arguments select the page's options by their text: ``attribute``, ``adversary``
    (``"llse, knows means and correlations exactly"``), ``point``, ``coalition``, ``figure``.
    Defaults are the page's.
    """

    def __init__(self, result: AuditResult) -> None:
        self._reading = Reading(result)
        self._charts = {
            chart.id.partition("-")[2]: chart for chart in charts(self._reading, "plot")
        }

    def __call__(self, name: str | None = None, **chosen: str) -> alt.Chart:
        """Draw the named chart, or the first available one.

        Raises
        ------
        AuditorError
            The results have no chart of this name, or no charts at all.
        """
        which = name or next(iter(self.available), None)
        if which not in self.available:
            what = f"{name} chart" if name else "chart"
            raise AuditorError(
                f"these results have no {what}; they have {', '.join(self.available) or 'none'}"
            )
        chart: alt.Chart = getattr(self, which)(**chosen)
        return chart

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"Plots({', '.join(self.available)})"

    @property
    def available(self) -> list[str]:
        """Names of the available charts."""
        return [name for name in _METHODS if any(_METHODS[name](key) for key in self._charts)]

    def collusion(self, **chosen: str) -> alt.Chart:
        """Error against copies pooled, with 95 % bands and theory."""
        return self._chart("collusion", chosen)

    def coalitions(self, **chosen: str) -> alt.Chart:
        """Error of every coalition by size, with the worst per scheme ringed."""
        return self._chart("coalitions", chosen)

    def errors(self, **chosen: str) -> alt.Chart:
        """Distribution of absolute errors over records: by bin, and cumulative."""
        return self._chart("errors", chosen)

    def measures(self, **chosen: str) -> alt.Chart:
        """Shares recovered, posteriors and breaches against copies pooled."""
        return self._chart("measures", chosen)

    def frontier(self, **chosen: str) -> alt.Chart:
        """Normalized error against utility."""
        return self._chart("frontier", chosen)

    def sweep(self, path: str | None = None, **chosen: str) -> alt.Chart:
        """A metric along a swept path, by default the first."""
        return self._chart("sweep", chosen, path)

    def runtime(self, path: str | None = None, **chosen: str) -> alt.Chart:
        """Seconds along a swept path, by default the first."""
        return self._chart("runtime", chosen, path)

    def _chart(self, name: str, chosen: dict[str, str], path: str | None = None) -> alt.Chart:
        found = [chart for key, chart in self._charts.items() if _METHODS[name](key)]
        found = [chart for chart in found if path is None or chart.data.facts.get("path") == path]
        if not found:
            raise AuditorError(
                f"these results have no {name} chart{f' along {path!r}' if path else ''}; they have {self.available}"
            )
        return drawn(found[0], chosen, names(self._reading))


_METHODS: dict[str, Callable[[str], bool]] = {
    "collusion": lambda key: key == "collusion",
    "coalitions": lambda key: key == "map",
    "errors": lambda key: key == "errors",
    "measures": lambda key: key == "by-size",
    "frontier": lambda key: key == "frontier",
    "sweep": lambda key: key.startswith("sweep"),
    "runtime": lambda key: key.startswith("runtime"),
}


def drawn(chart: Chart, chosen: dict[str, str], schemes: list[str]) -> alt.Chart:
    """Return a chart of the page as one Altair chart."""
    values = _choices(chart.data, chosen)
    width = WIDTH if len(chart.views) == 1 else PAIR
    views = [
        {key: part for key, part in view.items() if key not in ("params", "$schema")}
        | {"width": width}
        for view in chart.views
    ]
    document = views[0] if len(views) == 1 else {"hconcat": views}
    document |= {
        "params": _parameters(chart.views, values),
        "datasets": {"rows": _rows(chart.data, values)},
        "title": chart.title,
        "config": CONFIG | {"background": "#ffffff"},
        "$schema": chart.views[0]["$schema"],
    }
    made: alt.Chart = alt.Chart.from_dict(
        json.loads(_coloured(json.dumps(titled(document, chart.data, values))))
    )
    return made


def titled(part: Any, data: ChartData, values: dict[str, int]) -> Any:
    """Return a document with the titles that belong to the chosen options."""
    if isinstance(part, dict):
        return {
            key: value if key == "datasets" else titled(value, data, values)
            for key, value in part.items()
        }
    if isinstance(part, list):
        known = {f"${name}": titles[values[name]] for name, titles in data.titles.items() if titles}
        return [
            known[one] if isinstance(one, str) and one in known else titled(one, data, values)
            for one in part
        ]
    return part


def _choices(data: ChartData, chosen: dict[str, str]) -> dict[str, int]:
    known = {control.name: control for control in data.controls}
    for name, text in chosen.items():
        if name not in known:
            raise AuditorError(f"unknown choice {name!r}; this chart has {list(known)}")
        if text not in known[name].options:
            raise AuditorError(f"{name} must be one of {known[name].options}; got {text!r}")
    return {
        name: control.options.index(chosen[name]) if name in chosen else control.chosen
        for name, control in known.items()
    }


def _parameters(views: list[dict[str, Any]], values: dict[str, int]) -> list[dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for parameter in (parameter for view in views for parameter in view.get("params", [])):
        name = parameter["name"]
        known = merged.setdefault(name, dict(parameter))
        if name in values:
            known["value"] = values[name]
        elif known != parameter:
            known["views"] = [*known["views"], *parameter["views"]]
    return list(merged.values())


FIELDS = {"attribute": "a", "adversary": "v", "point": "p", "coalition": "g", "figure": "f"}
"""Column that each control filters by."""


def _rows(data: ChartData, values: dict[str, int]) -> list[dict[str, Any]]:
    """Return the rows of the chosen options; adversary -1 always matches."""
    wanted = {FIELDS[name]: (value, -1) for name, value in values.items()}
    rows = (
        dict(zip(data.columns, row, strict=True))
        for row in zip(*data.columns.values(), strict=True)
    )
    return [row for row in rows if all(row[field] in allowed for field, allowed in wanted.items())]


def _coloured(text: str) -> str:
    """Replace CSS variables by the page's light colours."""
    palette = _palette()
    return re.sub(r"var\((--[\w-]+)\)", lambda found: palette[found[1]], text)


@cache
def _palette() -> dict[str, str]:
    style = (Path(__file__).parents[1] / "templates/report.css").read_text(encoding="utf-8")
    light = style.partition("@media")[0]
    return dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]{6})", light))
