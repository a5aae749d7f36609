"""Charts of errors: collusion curves, coalition map, error distributions."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures.series import ChartData, title_of
from .style import (
    ERROR_AXIS,
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
    dash,
    document,
    field,
    layer,
    shape,
    size,
    sizes_axis,
    width,
)


def collusion_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw error against copies pooled, with 95 % bands and theory."""
    base = {"x": sizes_axis(data), "color": colour(schemes), "opacity": FADED}
    band = layer("area", base | between("lo", "hi", ERROR_TITLE), [RECORDS], fillOpacity=0.18)
    line = layer("line", base | {"y": ERROR_AXIS, "strokeWidth": width(schemes)}, [RECORDS])
    stated = base | {"y": field("t:Q"), "detail": field("s:N"), "color": INK}
    theory = layer("line", stated, [RECORDS, STATED], strokeDash=[3, 4], strokeWidth=1.25)
    tips = [*TIP, field("k:Q", title="copies pooled"), THEORY_TIP]
    marked = {"y": ERROR_AXIS, "shape": shape(schemes), "size": size(schemes), "tooltip": tips}
    points = layer("point", base | marked, [RECORDS], filled=True)
    return document("collusion", [band, line, theory, points], 3, data)


def map_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw each coalition's error by size and ring the worst per scheme."""
    axis = {"labelAngle": 0, "grid": False, "labelOverlap": True}
    base = {
        "x": field("k:O", title="copies in the coalition", axis=axis),
        "xOffset": field("s:N", scale={"domain": list(schemes)}),
        "y": ERROR_AXIS,
        "color": colour(schemes),
        "opacity": FADED,
    }
    bars = layer(
        "rule", base | between("lo", "hi", ERROR_TITLE), [RECORDS], strokeWidth=1, strokeOpacity=0.5
    )
    theory = layer(
        "tick",
        base | {"y": field("t:Q"), "color": INK},
        [RECORDS, STATED],
        thickness=1,
        size=10,
        opacity=0.7,
    )
    tips = [*TIP, THEORY_TIP]
    points = layer(
        "point",
        base | {"shape": shape(schemes), "tooltip": tips},
        [RECORDS],
        filled=True,
        size=42,
        fillOpacity=0.7,
    )
    worst = [RECORDS, "datum.w == 1"]
    ring = layer(
        "point",
        base | {"tooltip": tips},
        worst,
        filled=False,
        size=210,
        strokeWidth=2,
        shape="circle",
    )
    return document("map", [bars, theory, points, ring], 2, data)


def histogram_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw the share of records in each bin of absolute error."""
    base, wanted = _distribution(schemes, "x:Q"), [_DRAWN, "datum.x2 > datum.x"]
    y = field("y:Q", title="share of records", axis={"format": "~%", "tickCount": 5})
    lines = base | {"y": y, "strokeDash": dash(schemes), "strokeWidth": width(schemes)}
    steps = layer("line", lines, wanted, interpolate="step-after", strokeCap="butt")
    tips = [
        TIP[0],
        field("x:Q", title="error from", format=".4~g"),
        field("x2:Q", title="to", format=".4~g"),
    ]
    tips.append(field("y:Q", title="share", format=".2%"))
    points = layer(
        "point", base | {"y": y, "tooltip": tips}, wanted, filled=True, size=46, fillOpacity=0.001
    )
    ends = _made(
        mid="(datum.x + datum.x2) / 2", low="max(0, datum.y - datum.b)", high="datum.y + datum.b"
    )
    middle = base | between("low", "high", None) | {"x": field("mid:Q")}
    bars = layer("rule", middle, [*wanted, "isValid(datum.b)"], ends, strokeWidth=1.25)
    return document("histogram", [steps, bars, points, _exactly(6)], 2, data, 280)


def cumulative_chart(data: ChartData, schemes: Sequence[str]) -> Part:
    """Draw the cumulative share of records by absolute error."""
    axis = {"format": "~%", "tickCount": 5}
    y = field("u:Q", title="share of records up to an error", axis=axis, scale={"domain": [0, 1]})
    base = _distribution(schemes, "x2:Q") | {"y": y}
    tips = [
        TIP[0],
        field("x2:Q", title="error up to", format=".4~g"),
        field("u:Q", title="share", format=".2%"),
    ]
    points = layer(
        "point", base | {"tooltip": tips}, [_DRAWN], filled=True, size=46, fillOpacity=0.001
    )
    line = layer(
        "line",
        base | {"strokeDash": dash(schemes), "strokeWidth": width(schemes)},
        [_DRAWN],
        strokeCap="butt",
    )
    ends = _made(low="max(0, datum.u - datum.e)", high="min(1, datum.u + datum.e)")
    band = layer(
        "area",
        base | between("low", "high", None),
        [_DRAWN, "isValid(datum.e)"],
        ends,
        fillOpacity=0.18,
    )
    return document("cumulative", [band, line, points, _exactly(262)], 2, data, 280)


_SPREAD = f"{RECORDS} && datum.g == coalition"
_DRAWN = f"{_SPREAD} && !isValid(datum.n)"


def _distribution(schemes: Sequence[str], column: str) -> Part:
    axis = {"grid": False, "tickCount": 6, "labelFlush": False}
    x = field(column, title=title_of("attribute"), axis=axis, scale={"zero": True})
    return {"x": x, "color": colour(schemes, lines=True), "opacity": FADED}


def _made(**columns: str) -> list[Part]:
    return [{"calculate": formula, "as": name} for name, formula in columns.items()]


def _exactly(y: int) -> Part:
    """Name exactly reconstructed schemes; a bar at 0 would hide the others."""
    words = {"x": {"value": "width"}, "y": {"value": y}, "text": field("n:N"), "color": INK}
    return layer(
        "text",
        words,
        [f"{_SPREAD} && isValid(datum.n)"],
        align="right",
        baseline="middle",
        fontSize=12,
        limit=340,
    )
