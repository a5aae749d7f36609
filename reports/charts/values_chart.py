"""Values of the most exposed attribute: original, nearest copy and estimate."""

from __future__ import annotations

from typing import Any

from auditor.results.records import Picture
from auditor.results.renderer import clean

from ..figures.figures import Figure, clipped, copies, number, percent
from ..figures.matrix import attribute_text
from ..figures.reading import ERROR, Reading, Setting
from ..figures.strongest import lowest_attribute
from .chart import Chart, Rows, title_of
from .spec import field, quantity, sparklines, view

NAMES = ("original", "nearest copy", "as rebuilt")
CAPTION = (
    "The map has rebuilt values against original ones, equal on the dashed line. "
    "Each bin has ten records or more."
)


def pictures(reading: Reading) -> list[Picture]:
    """Return the pictures of numbers or of categories, the most exposed scheme first."""
    worst = lowest_attribute(reading, reading.settings(ERROR))
    scheme = worst[0].scheme if worst else ""
    found = sorted(reading.result.pictures, key=lambda one: one.scheme != scheme)
    return [one for one in found if bool(one.width) == bool(found[0].width)]


def described(reading: Reading, one: Picture) -> str:
    """State the attribute, the attack and the copies of a picture."""
    total = reading.copies_of(one.scheme, reading.point_of(one.sweep))
    name, attack = clipped(attribute_text(one.attribute), 40), clipped(one.attack, 40)
    held = f"{copies(one.coalition, total)} of {clipped(one.scheme, 40)}"
    return f"{name}, by {attack} from {held}"


def heights(one: Picture) -> list[tuple[str, list[float]]]:
    """Return the share of the records by cell, for each series that is known."""
    found = []
    for name, bins in zip(NAMES, (one.original, one.shown, one.estimate), strict=True):
        cells = [share / (stop - first) for first, stop, share in bins for _ in range(first, stop)]
        found += [(name, cells)] if cells else []
    return found


def values_lines(one: Picture) -> list[str]:
    """Return a picture as lines of text."""
    names, rows = zip(*heights(one), strict=True)
    return [f"{name:<12}  {line}" for name, line in zip(names, sparklines(rows), strict=True)]


def values(reading: Reading, prefix: str) -> Chart | None:
    """Return histograms of the values, and rebuilt values against original ones."""
    rows, found = Rows(reading, "release", names=NAMES), pictures(reading)
    for one in found:
        _add(rows, one)
    if not rows.rows:
        return None
    numbers = bool(found[0].width)
    ticks = {"tickCount": 6} if numbers else {"tickMinStep": 1, "format": "d"}
    scale = {"zero": False, "nice": False}
    x = field("x:Q", title=title_of("release"), axis={"grid": False, **ticks}, scale=scale)
    share = quantity("share of records by bin", format="~%", tickCount=5)
    dense = field("q:Q", scale={"type": "sqrt", "range": [0, 1]}, legend=None)
    rebuilt = x | {"field": "y", "title": "as rebuilt"}
    fill = {"opacity": dense, "color": {"value": "var(--c3)"}}
    wanted, steps = rows.wanted, ("filled",) if numbers else ()
    marks = "steps" if numbers else "columns"
    return rows.chart(
        f"{prefix}-values",
        "Values before and after",
        f"In the table, in the copy nearest to it, and rebuilt: {described(reading, found[0])}. {CAPTION}",
        "Histograms of the original, the nearest copy and the rebuilt values; and rebuilt values against original ones.",
        view(x, share, NAMES, steps, wanted, "datum.k == 0", marks=marks, height=220),
        view(x, rebuilt, NAMES, ("diagonal",), wanted, more=fill, marks="rects", height=220),
        first="values from",
        note="Share of the records by bin",
    )


def _add(rows: Rows, one: Picture) -> None:
    reading, point = rows.reading, rows.reading.point_of(one.sweep)
    deviation = reading.deviation_of(point, one.attribute)
    mean = reading.mean_of(point, one.attribute) if deviation else 0.0
    unit = "" if mean else " from the mean" if deviation else ", standard deviations from the mean"
    unit = unit if one.width else ": categories by frequency"
    title = f"{clipped(attribute_text(one.attribute), 40)}{unit}"
    option = described(reading, one), clean(title)
    setting = Setting(point, one.scheme, one.knowledge, one.attack)

    def at(cell: float) -> float:
        away = one.width * (cell - one.cells / 2)
        return away * (deviation or 1.0) + mean if one.width else cell + 0.5

    def add(series: str, share: float, cell: float, **fields: Any) -> None:
        shown = Figure(share, None, None, None, one.coalition, (), "none", 1)
        start = number(float(f"{at(cell):.3g}"))
        fields |= {"series": series, "cell": percent(share), "release": option}
        rows.add(setting, shown, start, **fields)

    for cell in range(one.cells + bool(one.width)):  # steps end at the last cell's end
        for place, (series, shares) in enumerate(heights(one)):
            begin, end = (0, 1) if one.width else (0.1 + 0.28 * place, 0.37 + 0.28 * place)
            share = shares[min(cell, one.cells - 1)]
            add(series, share, cell, k=0, q=0.0, x=at(cell + begin), x2=at(cell + end))
    diagonal = (0, one.cells, 0, one.cells, 0.0)
    for k, bins in ((1, one.joint), (2, (diagonal,))):
        for first, stop, low, high, share in bins:
            dense, ends = share / (stop - first) / (high - low), {"x": at(first), "x2": at(stop)}
            add(NAMES[-1], at(low), 0, k=k, q=dense, hi=at(high), **ends)
