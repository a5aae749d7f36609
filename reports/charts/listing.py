"""Charts of an audit in the order of the page, with captions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup

from auditor.results.renderer import clean

from ..figures.along import swept_paths
from ..figures.reading import Reading, Setting
from ..figures.series import ROWS, ChartData
from ..figures.strongest import leader
from ..figures.units import chart_title
from .drawn import collusion_chart, cumulative_chart, histogram_chart, map_chart
from .drawn_along import frontier_chart, measure_chart, sweep_chart
from .inert import deflated, json_block, packed
from .rows import collusion_data, distribution_data, map_data
from .rows_along import frontier_data, measure_data, sweep_data

Drawn = tuple[str, str, ChartData, list[dict[str, Any]]]
"""Caption, alternative text, rows and views of a chart."""


@dataclass(frozen=True)
class Chart:
    """A chart of the page: one or two views with common rows and controls."""

    id: str
    title: str
    caption: str
    alt: str
    data: ChartData
    views: list[dict[str, Any]]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.data.columns.values()), []))

    @property
    def block(self) -> dict[str, Any]:
        """Columns, views and titles for the page's script."""
        return {
            "columns": packed(self.data.columns),
            "views": self.views,
            "titles": self.data.titles,
        }

    @cached_property
    def packed(self) -> Markup:
        """Compressed block for the page."""
        return deflated(json_block(self.block), id=f"{self.id}-data")


def charts(reading: Reading, prefix: str, limit: int = ROWS) -> list[Chart]:
    """Return every chart with data, each with at most ``limit`` rows."""
    lead = leader(reading)
    made = {
        "collusion": _collusion(reading, lead, limit),
        "map": _map(reading, lead, limit),
        "errors": _spread(reading, lead, limit),
        "by-size": _measure(reading, lead, limit),
        "frontier": _frontier(reading, lead, limit),
    }
    for index, path in enumerate(swept_paths(reading)):
        made[f"sweep-{index}"] = _sweep(reading, path, lead, limit)
        made[f"runtime-{index}"] = _runtime(reading, path, limit)
    return [
        Chart(f"{prefix}-{key}", chart_title(reading, key), *drawn)
        for key, drawn in made.items()
        if drawn is not None
    ]


def names(reading: Reading) -> list[str]:
    """Return the schemes' names for charts."""
    return [clean(name) for name in reading.schemes]


def _count(reading: Reading) -> str:
    return f"{len(reading.schemes)} scheme{'s' if len(reading.schemes) != 1 else ''}"


def _collusion(reading: Reading, lead: Setting | None, limit: int) -> Drawn | None:
    data = collusion_data(reading, lead, limit)
    if not data.facts["curves"]:
        return None
    prefix = "Copies are pooled in order of release."
    which = prefix if data.facts["prefix"] else "At each size, the coalition with the lowest error."
    caption = f"{which} Line and points: measured. Band: 95 % interval. Dashed: theory, where there is a closed form."
    alt = f"Line chart: normalized error against the number of copies pooled, a line for each of {_count(reading)}."
    return caption, alt, data, [collusion_chart(data, names(reading))]


def _map(reading: Reading, lead: Setting | None, limit: int) -> Drawn | None:
    data = map_data(reading, lead, limit)
    if not data.facts["coalitions"]:
        return None
    caption = (
        "Every coalition that was measured, by size. Bars: 95 % interval. Short lines: theory. "
    )
    caption += "The ring marks the coalition with the lowest error in each scheme."
    if data.left_out:
        caption += f" {data.left_out:,} points between the lowest and the highest of their size are left out here."
    alt = f"Scatter chart: normalized error of every coalition by the number of its copies, for {_count(reading)}."
    return caption, alt, data, [map_chart(data, names(reading))]


def _spread(reading: Reading, lead: Setting | None, limit: int) -> Drawn | None:
    data = distribution_data(reading, lead, limit)
    if not data.table:
        return None
    caption = "How the absolute errors are spread over the records: by bin, and cumulated with a 95 % band."
    if data.left_out:
        caption += (
            " Shown here: the largest coalition, and single copies and prefixes as far as they fit."
        )
    alt = "Two line charts: share of the records by absolute error of the reconstruction, and share up to each error."
    views = [histogram_chart(data, names(reading)), cumulative_chart(data, names(reading))]
    return caption, alt, data, views


def _measure(reading: Reading, lead: Setting | None, limit: int) -> Drawn | None:
    data = measure_data(reading, lead, limit)
    if not data.table:
        return None
    caption = "What the attack achieves in other terms, at each size for the coalition that achieves most. "
    caption += "Bars: 95 % interval. Dashed: theory."
    alt = f"Line chart: a measure against the number of copies pooled, a line for each of {_count(reading)}."
    return caption, alt, data, [measure_chart(data, names(reading))]


def _frontier(reading: Reading, lead: Setting | None, limit: int) -> Drawn | None:
    data = frontier_data(reading, lead, limit)
    if not data.table:
        return None
    caption = "A point is a coalition's copies: upwards the attack leaves more unknown; across, what the copies are good for. "
    caption += "Of accuracies more is better, of errors and losses less. Bars: 95 % intervals."
    alt = f"Scatter chart: normalized error against utility, for {_count(reading)}."
    return caption, alt, data, [frontier_chart(data, names(reading))]


def _sweep(reading: Reading, path: str, lead: Setting | None, limit: int) -> Drawn | None:
    data = sweep_data(reading, path, lead, limit)
    if not data.table:
        return None
    theory = "Dashed: theory." if data.facts["numeric"] else "Short lines: theory."
    caption = f"Errors at the worst coalition of each point, others at the largest. Bars: 95 % interval. {theory}"
    alt = f"Line chart: a metric against the swept parameter {clean(path)}, a line for each of {len(data.facts['series'])} series."
    return caption, alt, data, [sweep_chart(data, data.facts["series"])]


def _runtime(reading: Reading, path: str, limit: int) -> Drawn | None:
    data = sweep_data(reading, path, None, limit, runtime=True)
    if not data.table:
        return None
    caption = "Processor seconds to make the copies, on the machine that ran the audit. Bars: 95 % interval over replicates."
    alt = f"Line chart: seconds against the swept parameter {clean(path)}, a line for each of {_count(reading)}."
    return caption, alt, data, [sweep_chart(data, names(reading), "time (seconds)")]
