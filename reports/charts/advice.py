"""The frontier of advice as a chart of the page: what stays unknown against what the copies lose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
from altair.utils.schemapi import debug_mode

from auditor.results.renderer import clean
from reports.charts.listing import Chart
from reports.charts.style import colour, document, faded, shape, size, width
from reports.figures.reading import unique
from reports.figures.series import ChartData, columns
from reports.wording.advice import attribute_text, levels_text, loss_text, share_text

if TYPE_CHECKING:
    from auditor.results.advice import Advice

HEADERS = ["scheme", "levels", "loss of use", "share unknown", "attribute", "strongest attack", "measured on"]
CAPTION = (
    "A point is a release: upwards more stays unknown of the attribute that is worst off, to the right its copies lose more of their use. "
    "Bars: 95 of 100 single releases. Dashed: the target. The ring marks the recommended release."
)


def frontier_of_advice(advice: Advice, id: str) -> Chart:
    """Return the chart of everything that was measured."""
    measured = [one for one in advice.frontier if one.exposed is not None and one.losses]
    schemes = [clean(name) for name in unique(one.scheme for one in measured)]
    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    for one in measured:
        assert one.exposed is not None
        low, high = one.exposed.unknown - one.exposed.half, one.exposed.unknown + one.exposed.half
        rows.append({
            "s": clean(one.scheme), "i": schemes.index(clean(one.scheme)), "x": one.loss, "y": one.exposed.unknown, "lo": max(0.0, low),
            "hi": high, "c": levels_text(one), "m": share_text(one), "g": advice.target, "w": int(one == advice.chosen),
        })  # fmt: skip
        kind = "the whole release" if one.in_full else "one copy that tells as much"
        cells = (one.scheme, levels_text(one), loss_text(advice, one.loss), share_text(one), attribute_text(one), one.exposed.attack, kind)
        table.append([*map(clean, cells)])
    data = ChartData(columns(rows), [], HEADERS, table)
    alt_text = f"Scatter chart: share unknown against loss of use, for {len(schemes)} scheme{'s' if len(schemes) != 1 else ''}."
    with debug_mode(False):  # no comparison with the schema: see `reports.charts.style.document`
        return Chart(id, "Risk and use of what was tried", f"{CAPTION} Loss: {advice.use}.", alt_text, data, [_drawn(schemes)])


def _drawn(schemes: list[str]) -> dict[str, Any]:
    chosen, opacity = faded()
    x = alt.X("x:Q", title="loss of use", scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(grid=False))
    y = alt.Y("y:Q", title="share unknown", scale=alt.Scale(zero=True, nice=True))
    base = alt.Chart(alt.NamedData("rows")).encode(x=x, color=colour(schemes), opacity=opacity)
    line = base.mark_line().encode(y=y, order="x:Q", strokeWidth=width(schemes))
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("lo:Q", title="share unknown"), y2="hi:Q")
    tips = [alt.Tooltip("s:N", title="scheme"), alt.Tooltip("c:N", title="levels"), alt.Tooltip("m:N", title="unknown")]
    points = base.mark_point(filled=True).encode(y=y, shape=shape(schemes), size=size(schemes), tooltip=tips)
    ring = base.transform_filter("datum.w == 1").mark_point(filled=False, size=260, strokeWidth=2, shape="circle").encode(y=y)
    target = alt.Chart(alt.NamedData("rows")).mark_rule(strokeDash=[3, 4], color="var(--ink)").encode(y="mean(g):Q")
    return document(alt.layer(line, bars, target, ring, points.add_params(chosen)))
