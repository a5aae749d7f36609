"""Chart of the advice: share unknown against loss of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from auditor.results.renderer import clean

from ..figures.reading import unique
from ..figures.series import ChartData, columns
from ..wording.advice import attribute_text, levels_text, loss_text, share_text
from .listing import Chart
from .style import FADED, Part, between, colour, document, field, layer, shape, size, width

if TYPE_CHECKING:
    from auditor.results.advice import Advice

HEADERS = [
    "scheme",
    "levels",
    "loss of use",
    "share unknown",
    "attribute",
    "strongest attack",
    "measured on",
]
CAPTION = (
    "A point is a release: upwards more stays unknown of the attribute that is worst off, to the right its copies lose more of their use. "
    "Bars: 95 of 100 single releases. Dashed: the target. The ring marks the recommended release."
)


def frontier_of_advice(advice: Advice, id: str) -> Chart:
    """Return the chart of every measured release."""
    measured = [one for one in advice.frontier if one.exposed is not None and one.losses]
    schemes = [clean(name) for name in unique(one.scheme for one in measured)]
    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    for one in measured:
        assert one.exposed is not None
        low, high = one.exposed.unknown - one.exposed.half, one.exposed.unknown + one.exposed.half
        rows.append(
            {
                "s": clean(one.scheme),
                "i": schemes.index(clean(one.scheme)),
                "x": one.loss,
                "y": one.exposed.unknown,
                "lo": max(0.0, low),
                "hi": high,
                "c": levels_text(one),
                "m": share_text(one),
                "g": advice.target,
                "w": int(one == advice.chosen),
            }
        )
        kind = "the whole release" if one.in_full else "one equivalent copy"
        cells = (
            one.scheme,
            levels_text(one),
            loss_text(advice, one.loss),
            share_text(one),
            attribute_text(one),
            one.exposed.attack,
            kind,
        )
        table.append([*map(clean, cells)])
    data = ChartData(columns(rows), [], HEADERS, table)
    alt_text = f"Scatter chart: share unknown against loss of use, for {len(schemes)} scheme{'s' if len(schemes) != 1 else ''}."
    return Chart(
        id,
        "Risk and use of what was tried",
        f"{CAPTION} Loss: {advice.use}.",
        alt_text,
        data,
        [_drawn(data, schemes)],
    )


def _drawn(data: ChartData, schemes: list[str]) -> Part:
    x = field("x:Q", title="loss of use", scale={"zero": True, "nice": True}, axis={"grid": False})
    y = field("y:Q", title="share unknown", scale={"zero": True, "nice": True})
    base = {"x": x, "color": colour(schemes), "opacity": FADED}
    line = layer("line", base | {"y": y, "order": field("x:Q"), "strokeWidth": width(schemes)})
    bars = layer("rule", base | between("lo", "hi", "share unknown"), strokeWidth=1.5)
    tips = [
        field("s:N", title="scheme"),
        field("c:N", title="levels"),
        field("m:N", title="unknown"),
    ]
    points = layer(
        "point",
        base | {"y": y, "shape": shape(schemes), "size": size(schemes), "tooltip": tips},
        filled=True,
    )
    ring = layer(
        "point",
        base | {"y": y},
        ["datum.w == 1"],
        filled=False,
        size=260,
        strokeWidth=2,
        shape="circle",
    )
    target = layer("rule", {"y": field("mean(g):Q")}, strokeDash=[3, 4], color="var(--ink)")
    return document("advice", [line, bars, target, ring, points], 4, data)
