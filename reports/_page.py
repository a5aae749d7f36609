"""What the page shows of one audit, gathered for the template."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml

from auditor.results import AuditResult
from reports._chart_data import ChartData, collusion_data, distribution_data, map_data, sweep_data
from reports._charts import collusion_chart, cumulative_chart, histogram_chart, map_chart, sweep_chart
from reports._curves import swept_paths
from reports._figures import clean
from reports._inert import packed
from reports._matrix import MatrixRow, Measure, matrix, measures
from reports._method import Definition, error_bars, metric_definitions
from reports._reading import Gap, Reading
from reports._verdict import Verdict, verdicts
from reports._words import provenance_line, reproduce, rows_text


@dataclass(frozen=True)
class Chart:
    """A figure of the page: one view or two side by side over the same rows and controls."""

    id: str
    title: str
    caption: str
    alt: str
    data: ChartData
    views: list[dict[str, Any]]

    @property
    def block(self) -> dict[str, Any]:
        """What the page's script needs to draw it."""
        return {"columns": packed(self.data.columns), "views": self.views}


@dataclass(frozen=True)
class Page:
    """One audit as the template reads it."""

    id: str
    result: AuditResult
    reading: Reading
    verdicts: list[Verdict]
    matrix: list[MatrixRow]
    measures: list[Measure]
    charts: list[Chart]
    gaps: list[Gap]
    metrics: list[Definition]
    error_bars: list[tuple[str, str]]
    scenario_yaml: str
    scenario_json: str
    reproduce: str
    provenance: str
    table: str

    @property
    def lowest(self) -> Verdict | None:
        """The verdict with the strongest reconstruction of all schemes."""
        measured = [verdict for verdict in self.verdicts if verdict.worst]
        return min(measured, key=lambda verdict: verdict.worst.value if verdict.worst else 0.0, default=None)

    @property
    def outcome(self) -> str:
        """Whether everything that was expected was proved."""
        if self.result.failed:
            return "failed"
        if not self.result.expectations:
            return "nothing expected"
        return "holds" if self.result.holds else "does not hold"


def page(result: AuditResult, number: int, limit: int) -> Page:
    """Gather what the page shows of one audit; ``limit`` bounds the rows of each chart."""
    reading = Reading(result)
    scenario = json.loads(json.dumps(result.scenario, default=str))
    return Page(
        f"audit-{number}", result, reading, verdicts(reading), matrix(reading), measures(reading),
        charts(reading, f"audit-{number}", limit), reading.gaps(), metric_definitions(reading), error_bars(reading),
        yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=100),
        json.dumps(scenario, indent=2, ensure_ascii=False),
        reproduce(result), provenance_line(result), rows_text(result),
    )  # fmt: skip


def charts(reading: Reading, prefix: str, limit: int) -> list[Chart]:
    """Return the figures that the results give rise to, in the order of the page."""
    found = verdicts(reading)
    leader = min((v for v in found if v.worst), key=lambda v: v.worst.value if v.worst else 0.0, default=None)
    adversary = leader.adversary if leader else ""
    made = [
        _collusion(reading, prefix, adversary, limit),
        _map(reading, prefix, adversary, limit),
        _spread(reading, prefix, limit),
    ]
    sweeps = [
        _sweep(reading, f"{prefix}-sweep-{index}", path, adversary, limit)
        for index, path in enumerate(swept_paths(reading))
    ]
    return [chart for chart in (*made, *sweeps) if chart is not None]


def _names(reading: Reading) -> list[str]:
    return [clean(name) for name in reading.schemes]


def _count(reading: Reading) -> str:
    return f"{len(reading.schemes)} scheme{'s' if len(reading.schemes) != 1 else ''}"


def _collusion(reading: Reading, prefix: str, adversary: str, limit: int) -> Chart | None:
    data = collusion_data(reading, adversary, limit)
    if not data.table:
        return None
    which = (
        "Copies are pooled in order of release."
        if data.facts["prefix"]
        else "At each size, the coalition with the lowest error."
    )
    caption = f"{which} Line and points: measured. Band: 95 % interval. Dashed: theory, where there is a closed form."
    alt = f"Line chart: normalized error against the number of copies pooled, a line for each of {_count(reading)}."
    views = [collusion_chart(data, _names(reading))]
    return Chart(f"{prefix}-collusion", "Collusion curves", caption, alt, data, views)


def _map(reading: Reading, prefix: str, adversary: str, limit: int) -> Chart | None:
    data = map_data(reading, adversary, limit)
    if len(set(data.columns.get("c", []))) < 2:
        return None
    caption = (
        "Every coalition that was measured, by size. The ring marks the coalition with the lowest error in each scheme."
    )
    if data.left_out:
        caption += f" {data.left_out:,} points between the lowest and the highest of their size are left out here."
    alt = f"Scatter chart: normalized error of every coalition by the number of its copies, for {_count(reading)}."
    return Chart(f"{prefix}-map", "Coalition map", caption, alt, data, [map_chart(data, _names(reading))])


def _spread(reading: Reading, prefix: str, limit: int) -> Chart | None:
    data = distribution_data(reading, limit)
    if not data.table:
        return None
    caption = "How the absolute errors are spread over the records: by bin on the left, cumulated on the right."
    alt = "Two line charts: share of the records by absolute error of the reconstruction, and share up to each error."
    views = [histogram_chart(data, _names(reading)), cumulative_chart(data, _names(reading))]
    return Chart(f"{prefix}-errors", "Error distributions", caption, alt, data, views)


def _sweep(reading: Reading, name: str, path: str, adversary: str, limit: int) -> Chart | None:
    data = sweep_data(reading, path, adversary, limit)
    if not data.table:
        return None
    caption = "Errors at the worst coalition of each point, others at the largest. Bars: 95 % interval. Dashed: theory."
    alt = f"Line chart: a metric against the swept parameter {clean(path)}, a line for each of {_count(reading)}."
    return Chart(name, f"Sweep of {clean(path)}", caption, alt, data, [sweep_chart(data, _names(reading))])
