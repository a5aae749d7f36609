"""Values of the most exposed attribute: original, nearest copy and estimate."""

from __future__ import annotations

from auditor.results.records import Picture
from auditor.results.renderer import clean

from ..figures.figures import Figure, clipped, copies, number, percent
from ..figures.labels import attribute_text
from ..figures.reading import Reading, Setting, ceiling
from .character_plot import sparklines
from .chart import Chart, Rows, title_of
from .spec import field, quantity, view

NAMES = ("original", "nearest copy", "as rebuilt")
CAPTION = (
    "Left: the data before perturbation, in the copy nearest to them, and as the strongest attack of the scenario rebuilds them. "
    "Right: rebuilt against original; on the dashed line they are equal. Each bin has ten records or more."
)


def pictures(reading: Reading) -> list[Picture]:
    """Return the pictures of one kind, most exposed first."""

    def left(one: Picture) -> float:
        setting = Setting(reading.point_of(one.sweep), one.scheme, one.knowledge, one.attack)
        found = reading.unknown(setting, one.attribute).get(one.coalition)
        return ceiling(found) if found else 1.0

    found = sorted(reading.result.pictures, key=left)
    return [one for one in found if bool(one.width) == bool(found[0].width)]


def described(reading: Reading, one: Picture) -> str:
    """State the attribute, the copies and the attack of a picture."""
    total = reading.copies_of(one.scheme, reading.point_of(one.sweep))
    held = f"{copies(one.coalition, total)} of {clipped(one.scheme, 40)}"
    return f"{clipped(attribute_text(one.attribute), 40)} from {held} by {clipped(one.attack, 40)}"


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
    dense = field("q:Q", scale={"type": "sqrt", "range": [0.06, 1]}, legend=None)
    rebuilt = x | {"field": "y", "title": "as rebuilt"}
    fill = {"opacity": dense, "color": {"value": "var(--c3)"}}
    wanted, steps, marks = rows.wanted, (("steps",) if numbers else ()), "points"
    marks = "points" if numbers else "columns"
    return rows.chart(
        f"{prefix}-values",
        "Values before and after",
        CAPTION,
        "Histograms of the original, the nearest copy and the rebuilt values; and rebuilt values against original ones.",
        view(x, share, NAMES, steps, wanted, "datum.k == 0", marks=marks, height=260),
        view(x, rebuilt, NAMES, ("diagonal",), wanted, more=fill, marks="rects", height=260),
        first="values from",
        note="Share of the records by bin",
    )


def _add(rows: Rows, one: Picture) -> None:
    reading, point = rows.reading, rows.reading.point_of(one.sweep)
    mean = reading.mean_of(point, one.attribute)
    deviation = reading.deviation_of(point, one.attribute)
    known = mean is not None and deviation is not None
    mean, deviation = mean or 0.0, deviation or 1.0
    name = clipped(attribute_text(one.attribute), 40)
    unit = "" if known else " (standard deviations from the mean)"
    title = f"{name}{unit}" if one.width else f"{name}: categories by frequency"
    option = described(reading, one), clean(title)
    setting = Setting(point, one.scheme, one.knowledge, one.attack)

    def at(cell: float) -> float:
        place = one.width * (cell - one.cells / 2) if one.width else cell + 0.5
        return place * deviation + mean if one.width and known else place

    def add(series: str, share: float, label: str, **fields: float) -> None:
        shown = Figure(share, None, None, None, one.coalition, (), "none", 1)
        cell = percent(share)
        rows.add(setting, shown, label, series=series, cell=cell, release=option, **fields)

    lines = heights(one)
    for cell in range(one.cells):
        for place, (series, shares) in enumerate(lines):
            beside = (0.1 + 0.28 * place, 0.37 + 0.28 * place) if not one.width else (0, 1)
            ends = {"x": at(cell + beside[0]), "x2": at(cell + beside[1])}
            add(series, shares[cell], number(float(f"{at(cell):.3g}")), k=0, q=0.0, **ends)
    label = number(float(f"{at(0):.3g}"))
    for a, b, low, high, share in one.joint:
        ends = {"x": at(a), "x2": at(b), "hi": at(high)}
        each = share / (b - a) / (high - low)
        add(NAMES[-1], at(low), label, k=1, q=each, **ends)
    low, high = at(0), at(one.cells)
    add(NAMES[-1], low, label, k=2, q=0.0, x=low, x2=high, hi=high)
