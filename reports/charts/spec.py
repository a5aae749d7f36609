"""Vega-Lite views: one layered chart of a quantity, in CSS-variable colours."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparklines(rows: Sequence[Sequence[float]]) -> list[str]:
    """Draw rows of columns on a common scale from 0."""
    top = max((height for row in rows for height in row), default=0.0) or 1.0
    return ["".join(BLOCKS[math.ceil(8 * max(0.0, one) / top)] for one in row) for row in rows]


Part = dict[str, Any]
"""Part of a Vega-Lite document, for example a layer or a channel."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
KINDS = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}

COLOURS = 8
"""Number of series colours in the style sheet; further series differ by shape and dash."""
ERROR_TITLE = "normalized error (share of variance)"
SHAPES = "circle square triangle-up diamond cross triangle-down triangle-right stroke".split()
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4]]
_FILE = Path(__file__).parents[1] / "templates/vega.json"
CONFIG: Part = json.loads(_FILE.read_text(encoding="utf-8"))
"""Vega-Lite configuration. Screen readers skip marks, because the figure has a name and a table."""


def field(name: str, **more: Any) -> Part:
    """Return a column's channel: ``y:Q`` by kind."""
    column, _, kind = name.partition(":")
    return {"field": column, "type": KINDS[kind], **more}


def layer(mark: str, encoding: Part, *wanted: str, **look: Any) -> Part:
    """Return a layer of marks for the rows that pass every filter."""
    filters = {"transform": [{"filter": one} for one in wanted]} if wanted else {}
    return {"mark": {"type": mark, **look}, "encoding": encoding, **filters}


FADED: Part = {"condition": [{"param": "legend", "value": 1}], "value": 0.12}
"""Opacity of series that a click in the legend did not choose."""
INK = {"value": "var(--ink)"}
TIPS = {"s": "series", "c": "coalition", "m": "measured"}


def series(names: Sequence[str], values: Sequence[Any], **more: Any) -> Part:
    """Return a channel with one value per series, in scenario order."""
    repeated = [values[place % len(values)] for place in range(len(names))]
    return field("s:N", title=None, scale={"domain": list(names), "range": repeated}, **more)


def falling(names: Sequence[str], first: float, last: float) -> Part:
    """Return a size that falls with the series, so that coinciding marks stay visible."""
    scale = {"domain": [0, max(1, len(names) - 1)], "range": [first, last], "zero": False}
    return field("i:Q", scale=scale, legend=None)


def quantity(title: Any, **axis: Any) -> Part:
    """Return the y axis of a metric of any magnitude, from 0."""
    label = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~r')"
    ticks = axis or {"labelExpr": label, "tickCount": 6}
    return field("y:Q", title=title, scale={"zero": True, "nice": True}, axis=ticks)


def sizes_axis(sizes: Sequence[int]) -> Part:
    """Return the axis of the number of copies, with up to 12 ticks by size."""
    ticks = {"values": sizes} if len(sizes) <= 12 else {"tickCount": 12, "tickMinStep": 1}
    axis = {"format": "d", "grid": False, **ticks}
    scale = {"nice": False, "zero": False, "padding": 14}
    return field("k:Q", title="copies pooled", axis=axis, scale=scale)


def view(
    x: Part,
    y: Part,
    names: Sequence[str],
    layers: Sequence[str],
    *wanted: str,
    tips: Part | None = None,
    more: Part | None = None,
    marks: str = "points",
    height: int = 340,
) -> Part:
    """Return a Vega-Lite document with the named layers.

    Parameters
    ----------
    x, y : dict
        Channels of the axes.
    names : sequence of str
        Series in the order of the legend.
    layers : sequence of str
        Keys of ``made``, below ``marks``, in which the legend selects.
    wanted : str
        Filters of the rows.
    tips : dict, optional
        Further columns of the tooltip and their titles.
    more : dict, optional
        Further channels of every layer.
    """
    colours = [f"var(--c{index})" for index in range(1, COLOURS + 1)]
    base = {"x": x, "color": series(names, colours), "opacity": FADED, **(more or {})}
    up = {"y": y}
    bar = {"y": {**y, "field": "lo"}, "y2": {"field": "hi"}}
    reach = {"x": {**x, "field": "xlo"}, "x2": {"field": "xhi"}, **up}
    area = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "hi"}}
    stated = {"y": {**y, "field": "t"}, "detail": [field("s:N"), field("o:N")], "color": INK}
    tip = [field(f"{name}:N", title=title) for name, title in (TIPS | (tips or {})).items()]
    look = {"shape": series(names, SHAPES), "size": falling(names, 170, 48), "tooltip": tip}
    thick, real = {"strokeWidth": falling(names, 4.5, 1.75)}, "isValid(datum.t)"
    dashes = up | {"strokeDash": series(names, DASHES)} | thick
    dashed, stepped = {"strokeDash": [3, 4]}, {"interpolate": "step-after"}

    def over(mark: str, encoding: Part, *further: str, **look: Any) -> Part:
        return layer(mark, base | encoding, *wanted, *further, **look)

    made = {
        "band": over("area", bar, fillOpacity=0.18),
        "bars": over("rule", bar, strokeWidth=1.5),
        "across": over("rule", reach, strokeWidth=1.5),
        "line": over("line", up | thick | {"detail": field("o:N")}),
        "filled": over("area", up, "datum.i == 0", fillOpacity=0.16, **stepped),
        "steps": over("line", dashes, **stepped),
        "curve": over("line", dashes),
        "theory": over("line", stated, real, strokeWidth=1.25, **dashed),
        "ticks": over("tick", stated, real, thickness=1.25, size=12),
        "ring": over("point", up, "datum.w == 1", filled=False, size=230, strokeWidth=2),
        "points": over("point", up | look, filled=True),
        "target": layer("rule", {"y": field("g:Q", aggregate="mean"), "color": INK}, **dashed),
        "rects": over("rect", area, "datum.k == 1"),
        "diagonal": layer("rule", area | {"color": INK}, *wanted, "datum.k == 2", **dashed),
        "columns": over("rect", area | {"y2": {"datum": 0}, "tooltip": tip}),
    }
    legend = {"name": "legend", "bind": "legend", "views": ["points"]}
    return {
        "$schema": SCHEMA,
        "data": {"name": "rows"},
        "width": "container",
        "height": height,
        "params": [legend | {"select": {"type": "point", "fields": ["s"]}}],
        "layer": [*(made[name] for name in layers), made[marks] | {"name": "points"}],
    }
