"""The charts of errors: collusion curves, the coalition map, distributions over the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports.charts.style import (
    ERROR_AXIS,
    ERROR_TITLE,
    RECORDS,
    THEORY_TIP,
    TIP,
    colour,
    dash,
    document,
    faded,
    parameters,
    shape,
    size,
    sizes_axis,
    width,
)
from reports.figures.series import ChartData, title_of


def collusion_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Error against copies pooled: points, a 95 % band, and theory as a thin dashed line."""
    chosen, opacity = faded()
    x = sizes_axis(data)
    base = alt.Chart(alt.NamedData("rows")).transform_filter(RECORDS).encode(x=x, color=colour(schemes), opacity=opacity)
    band = base.mark_area(fillOpacity=0.18).encode(y=alt.Y("lo:Q", title=ERROR_TITLE), y2="hi:Q")
    line = base.mark_line().encode(y=ERROR_AXIS, strokeWidth=width(schemes))
    theory = (
        base.transform_filter("isValid(datum.t)").mark_line(strokeDash=[3, 4], strokeWidth=1.25)
        .encode(y="t:Q", detail="s:N", color=alt.value("var(--ink)"))
    )  # fmt: skip
    tips = [*TIP, alt.Tooltip("k:Q", title="copies pooled"), THEORY_TIP]
    points = base.mark_point(filled=True).encode(y=ERROR_AXIS, shape=shape(schemes), size=size(schemes), tooltip=tips)
    return document(alt.layer(band, line, theory, points.add_params(chosen)).add_params(*parameters(data)))


def map_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Every coalition by size, schemes side by side; the worst of each scheme ringed."""
    chosen, opacity = faded()
    offset = alt.XOffset("s:N", scale=alt.Scale(domain=list(schemes)))
    x = alt.X("k:O", title="copies in the coalition", axis=alt.Axis(labelAngle=0, grid=False, labelOverlap=True))
    base = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(RECORDS)
        .encode(x=x, xOffset=offset, y=ERROR_AXIS, color=colour(schemes), opacity=opacity)
    )
    bars = base.mark_rule(strokeWidth=1, strokeOpacity=0.5).encode(y=alt.Y("lo:Q", title=ERROR_TITLE), y2="hi:Q")
    tips = [*TIP, THEORY_TIP]
    points = base.mark_point(filled=True, size=42, fillOpacity=0.7).encode(shape=shape(schemes), tooltip=tips)
    ring = base.transform_filter("datum.w == 1").mark_point(filled=False, size=210, strokeWidth=2, shape="circle")
    stated = base.transform_filter("isValid(datum.t)")
    theory = stated.mark_tick(thickness=1, size=10, opacity=0.7).encode(y="t:Q", color=alt.value("var(--ink)"))
    layers = [bars, theory, points.add_params(chosen), ring.encode(tooltip=tips)]
    return document(alt.layer(*layers).add_params(*parameters(data)))


def histogram_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Share of the records in each bin of absolute error."""
    chosen, opacity = faded()
    base = _distribution(schemes, "x:Q").transform_filter("datum.x2 > datum.x").encode(opacity=opacity)
    y = alt.Y("y:Q", title="share of records", axis=alt.Axis(format="~%", tickCount=5))
    steps = base.mark_line(interpolate="step-after", strokeCap="butt").encode(y=y, strokeDash=dash(schemes), strokeWidth=width(schemes))
    tips = [TIP[0], alt.Tooltip("x:Q", title="error from", format=".4~g"), alt.Tooltip("x2:Q", title="to", format=".4~g")]
    points = base.mark_point(filled=True, size=46, fillOpacity=0.001).encode(
        y=y, tooltip=[*tips, alt.Tooltip("y:Q", title="share", format=".2%")]
    )
    middle = base.transform_filter("isValid(datum.b)").transform_calculate(
        mid="(datum.x + datum.x2) / 2", low="max(0, datum.y - datum.b)", high="datum.y + datum.b"
    )
    bars = middle.mark_rule(strokeWidth=1.25).encode(x="mid:Q", y=alt.Y("low:Q", title=None), y2="high:Q")
    layers = alt.layer(steps, bars, points.add_params(chosen), _exactly(6))
    return document(layers.add_params(*parameters(data)), 280)


def cumulative_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Share of the records with an absolute error up to a bound."""
    chosen, opacity = faded()
    y = alt.Y("u:Q", title="share of records up to an error", axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(domain=[0, 1]))
    base = _distribution(schemes, "x2:Q").encode(y=y, opacity=opacity)
    tips = [TIP[0], alt.Tooltip("x2:Q", title="error up to", format=".4~g"), alt.Tooltip("u:Q", title="share", format=".2%")]
    points = base.mark_point(filled=True, size=46, fillOpacity=0.001).encode(tooltip=tips)
    line = base.mark_line(strokeCap="butt").encode(strokeDash=dash(schemes), strokeWidth=width(schemes))
    around = base.transform_filter("isValid(datum.e)").transform_calculate(
        low="max(0, datum.u - datum.e)", high="min(1, datum.u + datum.e)"
    )
    band = around.mark_area(fillOpacity=0.18).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    return document(alt.layer(band, line, points.add_params(chosen), _exactly(262)).add_params(*parameters(data)), 280)


_SPREAD = f"{RECORDS} && datum.g == coalition"


def _distribution(schemes: Sequence[str], field: str) -> Any:
    axis = alt.Axis(grid=False, tickCount=6, labelFlush=False)
    x = alt.X(field, title=title_of("attribute"), axis=axis, scale=alt.Scale(zero=True))
    chart = alt.Chart(alt.NamedData("rows")).transform_filter(f"{_SPREAD} && !isValid(datum.n)")
    return chart.encode(x=x, color=colour(schemes, lines=True))


def _exactly(y: int) -> Any:
    """Name the schemes rebuilt exactly: a curve of theirs would be one bar at 0 that flattens all others."""
    chart = alt.Chart(alt.NamedData("rows")).transform_filter(f"{_SPREAD} && isValid(datum.n)")
    words = chart.mark_text(align="right", baseline="middle", fontSize=12, limit=340)
    return words.encode(x=alt.value("width"), y=alt.value(y), text="n:N", color=alt.value("var(--ink)"))
