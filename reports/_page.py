"""What the page shows of one audit, gathered for the template."""

from __future__ import annotations

import json
from dataclasses import dataclass

import yaml

from auditor.results import AuditResult
from reports._chart_list import Chart, charts
from reports._gaps import Gathered, gathered
from reports._matrix import MatrixRow, Measure, matrix, measures, reference_point
from reports._method import Definition, error_bars, metric_definitions
from reports._reading import Reading
from reports._verdict import Verdict, summary, verdicts
from reports._words import outcome, partial_text, provenance_line, reproduce, rows_text


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
    gaps: list[Gathered]
    metrics: list[Definition]
    error_bars: list[tuple[str, str]]
    scenario_yaml: str
    scenario_json: str
    reproduce: str
    provenance: str
    table: str
    partial: str

    @property
    def point(self) -> str:
        """The sweep point that the comparison shows; empty when nothing is swept."""
        return self.reading.point_text(reference_point(self.reading)) if len(self.reading.points) > 1 else ""

    @property
    def started(self) -> str:
        """When the audit began, to the minute."""
        return self.result.provenance.start[:16].replace("T", " ") + " UTC" * self.result.provenance.start.endswith("+00:00")

    @property
    def summary(self) -> str:
        """The verdicts counted: ``Of four schemes, one was rebuilt exactly, …``."""
        return summary(self.verdicts)

    @property
    def told(self) -> list[MatrixRow]:
        """The rows of the comparison that say something: with a figure, or a failure, against some scheme."""
        return [row for row in self.matrix if row.tells]

    @property
    def untold(self) -> int:
        """How many adversaries have no figure against any scheme; the page lists them with the reasons."""
        return len(self.matrix) - len(self.told)

    @property
    def lowest(self) -> Verdict | None:
        """The verdict with the strongest reconstruction of all schemes."""
        measured = [verdict for verdict in self.verdicts if verdict.worst]
        return min(measured, key=lambda verdict: verdict.worst.value if verdict.worst else 0.0, default=None)

    @property
    def outcome(self) -> str:
        """Whether everything that was expected was proved."""
        return outcome(self.result)


def page(result: AuditResult, number: int, limit: int) -> Page:
    """Gather what the page shows of one audit; ``limit`` bounds the rows of each chart."""
    reading = Reading(result)
    scenario = json.loads(json.dumps(result.scenario, default=str))
    return Page(
        f"audit-{number}", result, reading, verdicts(reading), matrix(reading), measures(reading),
        charts(reading, f"audit-{number}", limit), gathered(reading.gaps), metric_definitions(reading), error_bars(reading),
        yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=100),
        json.dumps(scenario, indent=2, ensure_ascii=False),
        reproduce(result), provenance_line(result), rows_text(result), partial_text(result),
    )  # fmt: skip
