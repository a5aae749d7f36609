"""Chart style: CSS-variable colours, shapes, dashes and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures.series import ChartData

Part = dict[str, Any]
"""Part of a Vega-Lite document, for example a layer or a channel."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
KINDS = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}

COLOURS = 8
"""Number of series colours in the style sheet; further series differ by shape and dash."""
SHAPES = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "stroke",
]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4]]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"

CONFIG: dict[str, Any] = {
    "aria": False,  # the figure has a name and a data table; screen readers skip its marks
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": "transparent"},
    "axis": {
        "domainColor": "var(--rule)",
        "tickColor": "var(--rule)",
        "gridColor": "var(--grid)",
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 10,
        "labelLimit": 140,
        "titleLimit": 320,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": "var(--ink)",
        "labelFontSize": 12,
        "labelLimit": 170,
        "columns": 4,
        "symbolSize": 80,
        "rowPadding": 6,
        "columnPadding": 18,
        "offset": 12,
    },
    "line": {"strokeWidth": 2.25, "strokeCap": "round", "strokeJoin": "round"},
}


def field(name: str, **more: Any) -> Part:
    """Return a column's channel: ``y:Q`` by kind, ``mean(y):Q`` for its mean."""
    column, _, kind = name.partition(":")
    function, _, within = column.removesuffix(")").rpartition("(")
    return {
        **({"aggregate": function} if function else {}),
        "field": within,
        "type": KINDS[kind],
        **more,
    }


def layer(
    mark: str, encoding: Part, wanted: Sequence[str] = (), also: Sequence[Part] = (), **look: Any
) -> Part:
    """Return a layer of marks for the filtered and transformed rows."""
    transforms = [*({"filter": one} for one in wanted), *also]
    return {
        "mark": {"type": mark, **look},
        "encoding": encoding,
        **({"transform": transforms} if transforms else {}),
    }


TIP = [
    field("s:N", title="scheme"),
    field("c:N", title="coalition"),
    field("m:N", title="measured"),
]
THEORY_TIP = field("t:Q", title="theory", format=".4~g")
ERROR_TITLE = "normalized error (share of variance)"
ERROR_AXIS = field(
    "y:Q", title=ERROR_TITLE, scale={"zero": True, "nice": True}, axis={"tickCount": 6}
)
FADED: Part = {"condition": [{"param": "legend", "value": 1}], "value": 0.12}
"""Opacity of series that a click in the legend did not choose."""
INK = {"value": "var(--ink)"}


def colour(schemes: Sequence[str], *, lines: bool = False) -> Part:
    """Colour by scheme, in scenario order."""
    colours = [f"var(--c{index % COLOURS + 1})" for index in range(len(schemes))]
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolSize": 300} if lines else {}
    return field(
        "s:N", title=None, scale={"domain": list(schemes), "range": colours}, legend=legend
    )


def shape(schemes: Sequence[str]) -> Part:
    """Mark by scheme."""
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(schemes))]
    return field("s:N", title=None, scale={"domain": list(schemes), "range": shapes})


def dash(schemes: Sequence[str]) -> Part:
    """Dash by scheme."""
    dashes = [DASHES[index % len(DASHES)] for index in range(len(schemes))]
    return field("s:N", title=None, scale={"domain": list(schemes), "range": dashes})


def size(schemes: Sequence[str]) -> Part:
    """Draw later schemes smaller, so that coinciding points stay visible."""
    return field("i:Q", scale=_falling(len(schemes), 170, 48), legend=None)


def width(schemes: Sequence[str]) -> Part:
    """Draw later schemes thinner, so that coinciding lines stay visible."""
    return field("i:Q", scale=_falling(len(schemes), 4.5, 1.75), legend=None)


def _falling(count: int, first: float, last: float) -> Part:
    return {"domain": [0, max(1, count - 1)], "range": [first, last], "zero": False}


def between(low: str, high: str, title: str | list[str] | None) -> Part:
    """Return the channels of a range between two columns."""
    return {"y": field(f"{low}:Q", title=title), "y2": {"field": high}}


def quantity(title: str | list[str]) -> Part:
    """Return the y axis of a metric of any magnitude."""
    label = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~r')"
    return field(
        "y:Q", title=title, scale={"zero": True}, axis={"labelExpr": label, "tickCount": 6}
    )


def sizes_axis(data: ChartData) -> Part:
    """Return the axis of the number of copies, with up to 12 ticks by size."""
    sizes = data.facts["sizes"]
    ticks = {"values": sizes} if len(sizes) <= 12 else {"tickCount": 12, "tickMinStep": 1}
    axis = {"format": "d", "grid": False, **ticks}
    return field(
        "k:Q", title="copies pooled", axis=axis, scale={"nice": False, "zero": False, "padding": 14}
    )


def document(
    name: str, layers: Sequence[Part], points: int, data: ChartData, height: int = 340
) -> Part:
    """Return a Vega-Lite document without configuration.

    Controls become parameters that filters read. Altair would double the time to write a page, so
    this is written by hand. ``tests/reports/test_report_html.py`` compares charts of every kind
    with Altair's schema.

    Parameters
    ----------
    name : str
        Name of the points' layer, unique on the chart.
    layers : sequence of dict
    points : int
        Index of the layer that the legend selects in.
    data : ChartData
    height : int
        In pixels.
    """
    named = [{**one, "name": name} if place == points else one for place, one in enumerate(layers)]
    legend = {
        "name": "legend",
        "select": {"type": "point", "fields": ["s"]},
        "bind": "legend",
        "views": [name],
    }
    chosen = [{"name": control.name, "value": control.chosen} for control in data.controls]
    return {
        "$schema": SCHEMA,
        "data": {"name": "rows"},
        "width": "container",
        "height": height,
        "params": [legend, *chosen],
        "layer": named,
    }


RECORDS = "datum.a == attribute && datum.v == adversary && datum.p == point"
"""Filter of the three controls that most charts share."""
STATED = "isValid(datum.t)"
"""Filter of rows with a theoretical value."""
