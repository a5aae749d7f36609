"""The charts along something: a swept path, the number of copies, or the usefulness of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports.charts.style import (
    DASHES,
    ERROR_TITLE,
    RECORDS,
    THEORY_TIP,
    TIP,
    colour,
    document,
    faded,
    parameters,
    quantity,
    shape,
    size,
    sizes_axis,
    width,
)
from reports.figures.series import ChartData, title_of

SHORT = "format(datum.value, datum.value < 1000 ? '~g' : '~s')"
"""How ticks of a logarithmic axis are written: 0.2 and 20k, not 200m."""
TICKS = 12
"""Up to so many swept values each has its own tick."""


def sweep_chart(data: ChartData, schemes: Sequence[str], value: str | None = None) -> dict[str, Any]:
    """One metric against a swept path: error bars, and theory as a thin dashed line."""
    chosen, opacity = faded()
    wanted = "datum.f == figure && (datum.v == adversary || datum.v < 0)"
    chart = alt.Chart(alt.NamedData("rows")).transform_filter(wanted)
    base = chart.encode(x=_swept_axis(data), color=colour(schemes), opacity=opacity)
    extra: dict[str, Any] = {"detail": alt.Detail("o:N")}
    if data.facts["others"]:
        legend = alt.Legend(orient="bottom", columns=1, labelLimit=520)
        extra = {"strokeDash": alt.StrokeDash("o:N", title=None, scale=alt.Scale(range=DASHES), legend=legend)}
    title = title_of("figure") if value is None else value
    y = quantity(title)
    other = [alt.Tooltip("o:N", title="at")] if data.facts["others"] else []
    tips = [*TIP, alt.Tooltip("x", type="nominal", title="swept value"), *other, THEORY_TIP]
    points = base.mark_point(filled=True).encode(y=y, shape=shape(schemes), size=size(schemes), tooltip=tips)
    if not data.facts["numeric"]:
        return _side_by_side(base, title, points.add_params(chosen), data, schemes)
    layers = [_bars(base, title), base.mark_line().encode(y=y, strokeWidth=width(schemes), **extra), _theory(base, ["s:N", "o:N"])]
    return document(alt.layer(*layers, points.add_params(chosen)).add_params(*parameters(data)))


def _side_by_side(base: Any, title: str | list[str], points: Any, data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Draw words on the axis without lines between them, as they have no order: series side by side, theory as a short line."""
    aside = {"xOffset": alt.XOffset("s:N", scale=alt.Scale(domain=list(schemes)))}
    stated = base.transform_filter("isValid(datum.t)").mark_tick(thickness=1.25, size=16)
    theory = stated.encode(y="t:Q", color=alt.value("var(--ink)"), **aside)
    layers = [_bars(base, title).encode(**aside), theory, points.encode(**aside)]
    return document(alt.layer(*layers).add_params(*parameters(data)))


def _swept_axis(data: ChartData) -> alt.X:
    # the title is a list, so that a path is shown as text and never read as a number or a field
    title = [data.facts["title"]]
    if not data.facts["numeric"]:
        # a list of words is broken into lines, so that labels stand upright side by side
        return alt.X("x:O", title=title, sort=None, axis=alt.Axis(labelAngle=0, labelExpr="split(datum.label, ', ')", grid=False))
    at = data.facts["at"]
    own = {"values": at, "labelOverlap": True} if len(at) <= TICKS else {}
    if data.facts["log"]:
        ticks = alt.Axis(grid=False, labelExpr=SHORT, **(own or {"tickCount": 6}))
        return alt.X("x:Q", title=title, scale=alt.Scale(type="log", nice=False, padding=14), axis=ticks)
    ticks = alt.Axis(grid=False, format=",~r", **own) if own else alt.Axis(grid=False, tickCount=8)
    return alt.X("x:Q", title=title, scale=alt.Scale(zero=False, nice=False, padding=14), axis=ticks)


def measure_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """One measure against copies pooled: error bars, and theory as a thin dashed line."""
    chosen, opacity = faded()
    x = sizes_axis(data)
    chart = alt.Chart(alt.NamedData("rows")).transform_filter(f"{RECORDS} && datum.f == figure")
    base = chart.encode(x=x, color=colour(schemes), opacity=opacity)
    y = quantity(title_of("figure"))
    tips = [*TIP, alt.Tooltip("k:Q", title="copies pooled"), THEORY_TIP]
    points = base.mark_point(filled=True).encode(y=y, shape=shape(schemes), size=size(schemes), tooltip=tips)
    layers = [_bars(base, title_of("figure")), base.mark_line().encode(y=y, strokeWidth=width(schemes)), _theory(base, ["s:N"])]
    return document(alt.layer(*layers, points.add_params(chosen)).add_params(*parameters(data)))


def frontier_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """What an attacker cannot rebuild from a coalition's copies against what those copies are good for."""
    chosen, opacity = faded()
    wanted = "datum.f == figure && datum.v == adversary && datum.p == point"
    chart = alt.Chart(alt.NamedData("rows")).transform_filter(wanted)
    x = alt.X("x:Q", title=title_of("figure"), scale=alt.Scale(zero=False, nice=True, padding=14), axis=alt.Axis(grid=False))
    base = chart.encode(x=x, color=colour(schemes), opacity=opacity)
    y = alt.Y("y:Q", title=ERROR_TITLE, scale=alt.Scale(zero=True))
    # in order of what is left unknown, which follows the levels: in order of utility, noise would make the line run to and fro
    line = base.mark_line().encode(y=y, order="y:Q", strokeWidth=width(schemes))
    across = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("xlo:Q", title=title_of("figure")), x2="xhi:Q", y=y)
    tips = [*TIP, alt.Tooltip("n:N", title="utility"), THEORY_TIP]
    points = base.mark_point(filled=True).encode(y=y, shape=shape(schemes), size=size(schemes), tooltip=tips)
    layers = [line, _bars(base, ERROR_TITLE), across, points.add_params(chosen)]
    return document(alt.layer(*layers).add_params(*parameters(data)))


def _bars(base: Any, title: str | list[str]) -> Any:
    return base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("lo:Q", title=title), y2="hi:Q")


def _theory(base: Any, detail: list[str]) -> Any:
    lines = base.transform_filter("isValid(datum.t)").mark_line(strokeDash=[3, 4], strokeWidth=1.25)
    return lines.encode(y="t:Q", detail=detail, color=alt.value("var(--ink)"))
