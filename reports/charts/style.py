"""How charts look: colours are CSS variables, so light and dark are the page's choice; series differ in more than colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports.figures.series import ChartData

COLOURS = 8
"""How many series colours the style sheet defines; more series repeat them with other shapes and dashes."""
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "stroke"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4]]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"

CONFIG: dict[str, Any] = {
    "aria": False,  # the figure itself has a name and a data table; thousands of named marks would drown a reader
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": "transparent"},
    "axis": {
        "domainColor": "var(--rule)", "tickColor": "var(--rule)", "gridColor": "var(--grid)",
        "labelColor": "var(--muted)", "titleColor": "var(--muted)", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": 500, "titlePadding": 10, "labelLimit": 140, "titleLimit": 320,
    },
    "legend": {
        "orient": "top", "title": None, "labelColor": "var(--ink)", "labelFontSize": 12, "labelLimit": 170,
        "columns": 4, "symbolSize": 80, "rowPadding": 6, "columnPadding": 18, "offset": 12,
    },
    "line": {"strokeWidth": 2.25, "strokeCap": "round", "strokeJoin": "round"},
}  # fmt: skip

TIP = [alt.Tooltip("s:N", title="scheme"), alt.Tooltip("c:N", title="coalition"), alt.Tooltip("m:N", title="measured")]
THEORY_TIP = alt.Tooltip("t:Q", title="theory", format=".4~g")
ERROR_TITLE = "normalized error (share of variance)"
ERROR_AXIS = alt.Y("y:Q", title=ERROR_TITLE, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=6))


def parameters(data: ChartData) -> list[Any]:
    """Return the chart's controls as parameters that its filters read."""
    return [alt.param(name=control.name, value=control.chosen) for control in data.controls]


def colour(schemes: Sequence[str], *, lines: bool = False) -> alt.Color:
    """Colour by scheme, in the order of the scenario; the legend shows points, or lines."""
    colours = [f"var(--c{index % COLOURS + 1})" for index in range(len(schemes))]
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=300) if lines else alt.Legend()
    return alt.Color("s:N", title=None, scale=alt.Scale(domain=list(schemes), range=colours), legend=legend)


def shape(schemes: Sequence[str]) -> alt.Shape:
    """Mark by scheme."""
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(schemes))]
    return alt.Shape("s:N", title=None, scale=alt.Scale(domain=list(schemes), range=shapes))


def dash(schemes: Sequence[str]) -> alt.StrokeDash:
    """Dash by scheme."""
    dashes = [DASHES[index % len(DASHES)] for index in range(len(schemes))]
    return alt.StrokeDash("s:N", title=None, scale=alt.Scale(domain=list(schemes), range=dashes))


def size(schemes: Sequence[str]) -> alt.Size:
    """Draw later schemes smaller, so that points that fall together all show."""
    return alt.Size("i:Q", scale=_falling(len(schemes), 170, 48), legend=None)


def width(schemes: Sequence[str]) -> alt.StrokeWidth:
    """Draw later schemes thinner, so that lines that fall together all show."""
    return alt.StrokeWidth("i:Q", scale=_falling(len(schemes), 4.5, 1.75), legend=None)


def _falling(count: int, first: float, last: float) -> alt.Scale:
    return alt.Scale(domain=[0, max(1, count - 1)], range=[first, last], zero=False)


def quantity(title: str | list[str]) -> alt.Y:
    """Return the axis of a metric of any size."""
    label = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~r')"
    return alt.Y("y:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(labelExpr=label, tickCount=6))


def sizes_axis(data: ChartData) -> alt.X:
    """Return the axis of the number of copies: a tick for each size, or past a dozen of them the axis's own choice."""
    sizes = data.facts["sizes"]
    ticks = {"values": sizes} if len(sizes) <= 12 else {"tickCount": 12, "tickMinStep": 1}
    axis = alt.Axis(format="d", grid=False, **ticks)
    return alt.X("k:Q", title="copies pooled", axis=axis, scale=alt.Scale(nice=False, zero=False, padding=14))


def faded() -> tuple[Any, Any]:
    """Return a selection by a click in the legend, and the opacity that follows it."""
    chosen = alt.selection_point(name="legend", fields=["s"], bind="legend")
    return chosen, alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))


def document(chart: Any, height: int = 340) -> dict[str, Any]:
    """Return the chart as a Vega-Lite document without configuration, which the page adds.

    It is not compared with the schema, which takes a third of the time a page takes: no data decide what a chart may be made of.
    ``tests/reports/test_report_html.py`` compares charts of every kind.
    """
    made: dict[str, Any] = chart.properties(width="container", height=height).to_dict(validate=False)
    made.pop("config", None)
    return made


RECORDS = "datum.a == attribute && datum.v == adversary && datum.p == point"
"""What the three controls that most charts share filter by."""
