"""The page's charts as Vega-Lite documents; colours are CSS variables, so light and dark are the page's choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports._chart_data import ChartData

COLOURS = 8
"""How many series colours the style sheet defines; more series repeat them with other shapes and dashes."""
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "stroke"]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4]]
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
    "line": {"strokeWidth": 2.25, "strokeCap": "round"},
}  # fmt: skip

_TIP = [alt.Tooltip("s:N", title="scheme"), alt.Tooltip("c:N", title="coalition"), alt.Tooltip("m:N", title="measured")]
_THEORY_TIP = alt.Tooltip("t:Q", title="theory", format=".4f")
_ERROR_AXIS = alt.Y("y:Q", title="normalized error", scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=6))


def _parameters(data: ChartData) -> list[Any]:
    return [alt.param(name=control.name, value=control.chosen) for control in data.controls]


def _colour(schemes: Sequence[str]) -> alt.Color:
    colours = [f"var(--c{index % COLOURS + 1})" for index in range(len(schemes))]
    return alt.Color("s:N", title=None, scale=alt.Scale(domain=list(schemes), range=colours))


def _shape(schemes: Sequence[str]) -> alt.Shape:
    shapes = [_SHAPES[index % len(_SHAPES)] for index in range(len(schemes))]
    return alt.Shape("s:N", title=None, scale=alt.Scale(domain=list(schemes), range=shapes))


def _faded() -> tuple[Any, Any]:
    """Return a selection by a click in the legend, and the opacity that follows it."""
    chosen = alt.selection_point(name="legend", fields=["s"], bind="legend")
    return chosen, alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))


def _document(chart: Any, height: int = 340) -> dict[str, Any]:
    document: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    document.pop("config", None)
    return document


_RECORDS = "datum.a == attribute && datum.v == adversary && datum.p == point"


def collusion_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Error against copies pooled: points, a 95 % band, and theory as a thin dashed line."""
    chosen, opacity = _faded()
    # past a dozen sizes the axis chooses its own ticks
    ticks = alt.Axis(tickMinStep=1, format="d", grid=False, tickCount=min(12, data.facts["sizes"]))
    x = alt.X("k:Q", title="copies pooled", axis=ticks, scale=alt.Scale(nice=False, zero=False, padding=14))
    base = alt.Chart(alt.NamedData("rows")).transform_filter(_RECORDS).encode(x=x, color=_colour(schemes))
    band = base.mark_area(fillOpacity=0.18).encode(
        y=alt.Y("lo:Q", title="normalized error"), y2="hi:Q", opacity=opacity
    )
    line = base.mark_line().encode(y=_ERROR_AXIS, opacity=opacity)
    theory = (
        base.transform_filter("isValid(datum.t)").mark_line(strokeDash=[3, 4], strokeWidth=1.25)
        .encode(y="t:Q", detail="s:N", color=alt.value("var(--ink)"), opacity=opacity)
    )  # fmt: skip
    tips = [*_TIP, alt.Tooltip("k:Q", title="copies pooled"), _THEORY_TIP]
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=_ERROR_AXIS, shape=_shape(schemes), tooltip=tips, opacity=opacity
    )
    return _document(alt.layer(band, line, theory, points.add_params(chosen)).add_params(*_parameters(data)))


def map_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Every coalition by size, schemes side by side; the worst of each scheme ringed."""
    chosen, opacity = _faded()
    offset = alt.XOffset("s:N", scale=alt.Scale(domain=list(schemes)))
    x = alt.X("k:O", title="copies in the coalition", axis=alt.Axis(labelAngle=0, grid=False, labelOverlap=True))
    base = (
        alt.Chart(alt.NamedData("rows"))
        .transform_filter(_RECORDS)
        .encode(x=x, xOffset=offset, y=_ERROR_AXIS, color=_colour(schemes))
    )
    bars = base.mark_rule(strokeWidth=1, strokeOpacity=0.5).encode(
        y=alt.Y("lo:Q", title="normalized error"), y2="hi:Q", opacity=opacity
    )
    points = base.mark_point(filled=True, size=42, fillOpacity=0.7).encode(
        shape=_shape(schemes), tooltip=[*_TIP, _THEORY_TIP], opacity=opacity
    )
    worst = (
        base.transform_filter("datum.w == 1")
        .mark_point(filled=False, size=210, strokeWidth=2, shape="circle")
        .encode(tooltip=[*_TIP, _THEORY_TIP], opacity=opacity)
    )
    return _document(alt.layer(bars, points.add_params(chosen), worst).add_params(*_parameters(data)))


def histogram_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Share of the records in each bin of absolute error."""
    chosen, opacity = _faded()
    base = _distribution(schemes).encode(opacity=opacity)
    y = alt.Y("y:Q", title="share of records", axis=alt.Axis(format="~%", tickCount=5))
    area = base.mark_area(interpolate="step-after", fillOpacity=0.1, line={"strokeWidth": 2}).encode(
        y=alt.Y("y:Q", title="share of records", axis=alt.Axis(format="~%", tickCount=5), stack=None)
    )
    tips = [
        _TIP[0],
        alt.Tooltip("x:Q", title="error from", format=".4~g"),
        alt.Tooltip("x2:Q", title="to", format=".4~g"),
    ]
    points = base.mark_point(filled=True, size=46, fillOpacity=0.001).encode(
        y=y, tooltip=[*tips, alt.Tooltip("y:Q", title="share", format=".2%")]
    )
    return _document(alt.layer(area, points.add_params(chosen)).add_params(*_parameters(data)), 280)


def cumulative_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """Share of the records with an absolute error up to a bound."""
    chosen, opacity = _faded()
    base = _distribution(schemes).encode(
        x=alt.X(
            "x2:Q",
            title="absolute error, data units",
            axis=alt.Axis(grid=False, tickCount=6),
            scale=alt.Scale(zero=True),
        ),
        y=alt.Y(
            "u:Q",
            title="share of records up to",
            axis=alt.Axis(format="~%", tickCount=5),
            scale=alt.Scale(domain=[0, 1]),
        ),
        opacity=opacity,
    )
    tips = [
        _TIP[0],
        alt.Tooltip("x2:Q", title="error up to", format=".4~g"),
        alt.Tooltip("u:Q", title="share", format=".2%"),
    ]
    points = base.mark_point(filled=True, size=46, fillOpacity=0.001).encode(tooltip=tips)
    return _document(alt.layer(base.mark_line(), points.add_params(chosen)).add_params(*_parameters(data)), 280)


def _distribution(schemes: Sequence[str]) -> Any:
    x = alt.X(
        "x:Q", title="absolute error, data units", axis=alt.Axis(grid=False, tickCount=6), scale=alt.Scale(zero=True)
    )
    wanted = f"{_RECORDS} && datum.g == coalition"
    return alt.Chart(alt.NamedData("rows")).transform_filter(wanted).encode(x=x, color=_colour(schemes))


def sweep_chart(data: ChartData, schemes: Sequence[str]) -> dict[str, Any]:
    """One metric against a swept parameter: error bars, and theory as a thin dashed line."""
    chosen, opacity = _faded()
    scale = (
        alt.Scale(type="log", nice=False, padding=14)
        if data.facts["log"]
        else alt.Scale(zero=False, nice=False, padding=14)
    )
    # the title is a list, so that a path is shown as text and never read as a number or a field
    title = [data.facts["path"]]
    ticks = alt.Axis(grid=False, format="~s", tickCount=6) if data.facts["log"] else alt.Axis(grid=False)
    x = (
        alt.X("x:Q", title=title, scale=scale, axis=ticks)
        if data.facts["numeric"]
        else alt.X("x:O", title=title, sort=None)
    )
    wanted = "datum.f == figure && (datum.v == adversary || datum.v < 0)"
    base = (
        alt.Chart(alt.NamedData("rows")).transform_filter(wanted).encode(x=x, color=_colour(schemes), opacity=opacity)
    )
    extra: dict[str, Any] = {"detail": alt.Detail("o:N")}
    if data.facts["others"]:
        extra = {"strokeDash": alt.StrokeDash("o:N", title=None, scale=alt.Scale(range=_DASHES))}
    y = alt.Y("y:Q", title="value of the metric", scale=alt.Scale(zero=True))
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("lo:Q", title="value of the metric"), y2="hi:Q")
    line = base.mark_line().encode(y=y, **extra)
    theory = (
        base.transform_filter("isValid(datum.t)").mark_line(strokeDash=[3, 4], strokeWidth=1.25)
        .encode(y="t:Q", detail=["s:N", "o:N"], color=alt.value("var(--ink)"))
    )  # fmt: skip
    other = [alt.Tooltip("o:N", title="at")] if data.facts["others"] else []
    tips = [*_TIP, alt.Tooltip("x", type="nominal", title="swept value"), *other, _THEORY_TIP]
    points = base.mark_point(filled=True, size=64, opacity=1).encode(y=y, shape=_shape(schemes), tooltip=tips)
    return _document(alt.layer(bars, line, theory, points.add_params(chosen)).add_params(*_parameters(data)))
