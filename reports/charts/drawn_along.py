"""Charts along a swept path, the number of copies or the utility."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures.series import ChartData, title_of
from .style import (
    DASHES,
    ERROR_TITLE,
    FADED,
    INK,
    RECORDS,
    STATED,
    THEORY_TIP,
    TIP,
    Part,
    between,
    colour,
    document,
    field,
    layer,
    quantity,
    shape,
    size,
    sizes_axis,
    width,
)

SHORT = "format(datum.value, datum.value < 1000 ? '~g' : '~s')"
"""Tick labels of a logarithmic axis: 0.2 and 20k, not 200m."""
TICKS = 12
"""Each swept value gets its own tick up to this number."""


def sweep_chart(data: ChartData, schemes: Sequence[str], value: str | None = None) -> Part:
    """Draw one metric against a swept path, with error bars and theory."""
    wanted = ["datum.f == figure && (datum.v == adversary || datum.v < 0)"]
    base = {"x": _swept_axis(data), "color": colour(schemes), "opacity": FADED}
    extra: Part = {"detail": field("o:N")}
    if data.facts["others"]:
        legend = {"orient": "bottom", "columns": 1, "labelLimit": 520}
        extra = {"strokeDash": field("o:N", title=None, scale={"range": DASHES}, legend=legend)}
    title = title_of("figure") if value is None else value
    other = [field("o:N", title="at")] if data.facts["others"] else []
    tips = [*TIP, field("x:N", title="swept value"), *other, THEORY_TIP]
    marked = base | {
        "y": quantity(title),
        "shape": shape(schemes),
        "size": size(schemes),
        "tooltip": tips,
    }
    if not data.facts["numeric"]:
        return _side_by_side(base, title, marked, wanted, data, schemes)
    line = layer(
        "line", base | {"y": quantity(title), "strokeWidth": width(schemes)} | extra, wanted
    )
    theory = _theory(base, [field("s:N"), field("o:N")], wanted)
    return document(
        "sweep",
        [_bars(base, title, wanted), line, theory, layer("point", marked, wanted, filled=True)],
        3,
        data,
    )


def _side_by_side(
    base: Part,
    title: str | list[str],
    marked: Part,
    wanted: list[str],
    data: ChartData,
    schemes: Sequence[str],
) -> Part:
    """Draw unordered words on the axis: series side by side, without lines."""
    aside = {"xOffset": field("s:N", scale={"domain": list(schemes)})}
    theory = layer(
        "tick",
        base | {"y": field("t:Q"), "color": INK} | aside,
        [*wanted, STATED],
        thickness=1.25,
        size=16,
    )
    return document(
        "sweep",
        [
            _bars(base | aside, title, wanted),
            theory,
            layer("point", marked | aside, wanted, filled=True),
        ],
        2,
        data,
    )


def _swept_axis(data: ChartData) -> Part:
    # a list, because Vega would read a string as a number or a field
    title = [data.facts["title"]]
    if not data.facts["numeric"]:
        # break lists of words into lines, so that labels fit side by side upright
        return field(
            "x:O",
            title=title,
            sort=None,
            axis={"labelAngle": 0, "labelExpr": "split(datum.label, ', ')", "grid": False},
        )
    at = data.facts["at"]
    own = {"values": at, "labelOverlap": True} if len(at) <= TICKS else {}
    if data.facts["log"]:
        ticks = {"grid": False, "labelExpr": SHORT, **(own or {"tickCount": 6})}
        return field(
            "x:Q", title=title, scale={"type": "log", "nice": False, "padding": 14}, axis=ticks
        )
    ticks = {"grid": False, "format": ",~r", **own} if own else {"grid": False, "tickCount": 8}
    return field(
        "x:Q", title=title, scale={"zero": False, "nice": False, "padding": 14}, axis=ticks
    )


def measure_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw one measure against copies pooled, with error bars and theory."""
    wanted, title = [f"{RECORDS} && datum.f == figure"], title_of("figure")
    base = {"x": sizes_axis(data), "color": colour(schemes), "opacity": FADED}
    tips = [*TIP, field("k:Q", title="copies pooled"), THEORY_TIP]
    marked = base | {
        "y": quantity(title),
        "shape": shape(schemes),
        "size": size(schemes),
        "tooltip": tips,
    }
    line = layer("line", base | {"y": quantity(title), "strokeWidth": width(schemes)}, wanted)
    theory = _theory(base, [field("s:N")], wanted)
    return document(
        "measure",
        [_bars(base, title, wanted), line, theory, layer("point", marked, wanted, filled=True)],
        3,
        data,
    )


def frontier_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw each coalition's normalized error against its copies' utility."""
    wanted = ["datum.f == figure && datum.v == adversary && datum.p == point"]
    x = field(
        "x:Q",
        title=title_of("figure"),
        scale={"zero": False, "nice": True, "padding": 14},
        axis={"grid": False},
    )
    base = {"x": x, "color": colour(schemes), "opacity": FADED}
    y = field("y:Q", title=ERROR_TITLE, scale={"zero": True})
    # ordered by error, which follows the levels; by utility, noise would cause a zigzag
    line = layer(
        "line", base | {"y": y, "order": field("y:Q"), "strokeWidth": width(schemes)}, wanted
    )
    reach = {"x": field("xlo:Q", title=title_of("figure")), "x2": {"field": "xhi"}, "y": y}
    across = layer("rule", base | reach, wanted, strokeWidth=1.5)
    tips = [*TIP, field("n:N", title="utility"), THEORY_TIP]
    points = layer(
        "point",
        base | {"y": y, "shape": shape(schemes), "size": size(schemes), "tooltip": tips},
        wanted,
        filled=True,
    )
    return document("frontier", [line, _bars(base, ERROR_TITLE, wanted), across, points], 3, data)


def _bars(base: Part, title: str | list[str], wanted: list[str]) -> Part:
    return layer("rule", base | between("lo", "hi", title), wanted, strokeWidth=1.5)


def _theory(base: Part, detail: list[Part], wanted: list[str]) -> Part:
    return layer(
        "line",
        base | {"y": field("t:Q"), "detail": detail, "color": INK},
        [*wanted, STATED],
        strokeDash=[3, 4],
        strokeWidth=1.25,
    )
