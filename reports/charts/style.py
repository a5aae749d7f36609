"""How charts look: colours are CSS variables, so light and dark are the page's choice; series differ in more than colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures.series import ChartData

Part = dict[str, Any]
"""A part of a Vega-Lite document: a layer, or what one channel of it shows."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
KINDS = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}

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


def field(name: str, **more: Any) -> Part:
    """Return a channel that shows a column, named with the kind of its values, as ``y:Q``; ``mean(y):Q`` shows its mean."""
    column, _, kind = name.partition(":")
    function, _, within = column.removesuffix(")").rpartition("(")
    return {**({"aggregate": function} if function else {}), "field": within, "type": KINDS[kind], **more}


def layer(mark: str, encoding: Part, wanted: Sequence[str] = (), also: Sequence[Part] = (), **look: Any) -> Part:
    """Return marks of one kind for the rows wanted, after other transforms."""
    transforms = [*({"filter": one} for one in wanted), *also]
    return {"mark": {"type": mark, **look}, "encoding": encoding, **({"transform": transforms} if transforms else {})}


TIP = [field("s:N", title="scheme"), field("c:N", title="coalition"), field("m:N", title="measured")]
THEORY_TIP = field("t:Q", title="theory", format=".4~g")
ERROR_TITLE = "normalized error (share of variance)"
ERROR_AXIS = field("y:Q", title=ERROR_TITLE, scale={"zero": True, "nice": True}, axis={"tickCount": 6})
FADED: Part = {"condition": [{"param": "legend", "value": 1}], "value": 0.12}
"""Opacity of what is not chosen by a click in the legend."""
INK = {"value": "var(--ink)"}


def colour(schemes: Sequence[str], *, lines: bool = False) -> Part:
    """Colour by scheme, in the order of the scenario; the legend shows points, or lines."""
    colours = [f"var(--c{index % COLOURS + 1})" for index in range(len(schemes))]
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolSize": 300} if lines else {}
    return field("s:N", title=None, scale={"domain": list(schemes), "range": colours}, legend=legend)


def shape(schemes: Sequence[str]) -> Part:
    """Mark by scheme."""
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(schemes))]
    return field("s:N", title=None, scale={"domain": list(schemes), "range": shapes})


def dash(schemes: Sequence[str]) -> Part:
    """Dash by scheme."""
    dashes = [DASHES[index % len(DASHES)] for index in range(len(schemes))]
    return field("s:N", title=None, scale={"domain": list(schemes), "range": dashes})


def size(schemes: Sequence[str]) -> Part:
    """Draw later schemes smaller, so that points that fall together all show."""
    return field("i:Q", scale=_falling(len(schemes), 170, 48), legend=None)


def width(schemes: Sequence[str]) -> Part:
    """Draw later schemes thinner, so that lines that fall together all show."""
    return field("i:Q", scale=_falling(len(schemes), 4.5, 1.75), legend=None)


def _falling(count: int, first: float, last: float) -> Part:
    return {"domain": [0, max(1, count - 1)], "range": [first, last], "zero": False}


def between(low: str, high: str, title: str | list[str] | None) -> Part:
    """Return the channels of what reaches from one column's value up to another's."""
    return {"y": field(f"{low}:Q", title=title), "y2": {"field": high}}


def quantity(title: str | list[str]) -> Part:
    """Return the axis of a metric of any size."""
    label = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~r')"
    return field("y:Q", title=title, scale={"zero": True}, axis={"labelExpr": label, "tickCount": 6})


def sizes_axis(data: ChartData) -> Part:
    """Return the axis of the number of copies: a tick for each size, or past a dozen of them the axis's own choice."""
    sizes = data.facts["sizes"]
    ticks = {"values": sizes} if len(sizes) <= 12 else {"tickCount": 12, "tickMinStep": 1}
    axis = {"format": "d", "grid": False, **ticks}
    return field("k:Q", title="copies pooled", axis=axis, scale={"nice": False, "zero": False, "padding": 14})


def document(name: str, layers: Sequence[Part], points: int, data: ChartData, height: int = 340) -> Part:
    """Return a Vega-Lite document without configuration, which the page adds; its controls are parameters that filters read.

    It is written by hand: Altair takes as long to make its documents as all else that a page takes, and as long again to be imported.
    ``tests/reports/test_report_html.py`` compares charts of every kind with Altair's schema.

    Parameters
    ----------
    name : str
        What the points are called in the document, another in each that may stand beside it.
    layers : sequence of dict
    points : int
        Which layer the legend's choice belongs to.
    data : ChartData
    height : int
        In pixels.
    """
    named = [{**one, "name": name} if place == points else one for place, one in enumerate(layers)]
    legend = {"name": "legend", "select": {"type": "point", "fields": ["s"]}, "bind": "legend", "views": [name]}
    chosen = [{"name": control.name, "value": control.chosen} for control in data.controls]
    return {
        "$schema": SCHEMA, "data": {"name": "rows"}, "width": "container", "height": height, "params": [legend, *chosen], "layer": named,
    }  # fmt: skip


RECORDS = "datum.a == attribute && datum.v == adversary && datum.p == point"
"""What the three controls that most charts share filter by."""
STATED = "isValid(datum.t)"
"""Rows that theory says something of."""
