"""What the page shows of one audit, gathered for the template."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property

from auditor.results.model import AuditResult
from auditor.results.renderer import escaped
from reports.charts.listing import Chart, charts
from reports.figures.gaps import Gathered, apart
from reports.figures.guesses import losses
from reports.figures.matrix import MatrixRow, Measure, matrix, measured_schemes, measures, reference_point
from reports.figures.reading import Reading, adversary_text, unique
from reports.wording.card import Verdict, most_telling, summary
from reports.wording.method import Definition, error_bars, metric_definitions
from reports.wording.prose import prose, terms
from reports.wording.scenario_text import plain_scenario, scenario_yaml
from reports.wording.verdict import verdicts
from reports.wording.winners import Winner, marks, winners
from reports.wording.words import outcome, partial_text, provenance_line, reproduce, rows_text


@dataclass(frozen=True)
class Page:
    """One audit as the template reads it; ``measures`` by who has them, of the schemes that ``measured`` counts."""

    id: str
    result: AuditResult
    reading: Reading
    verdicts: list[Verdict]
    matrix: list[MatrixRow]
    measures: list[tuple[str, list[Measure]]]
    measured: list[int]
    charts: list[Chart]
    metrics: list[Definition]
    error_bars: list[tuple[str, str]]
    scenario_yaml: str
    scenario_json: str
    reproduce: str
    provenance: str
    table: str
    partial: str

    def within(self, limit: int) -> Page:
        """Return the same page with at most so many rows in each chart."""
        return replace(self, charts=charts(self.reading, self.id, limit))

    @cached_property
    def marks(self) -> dict[tuple[str, str, str], str]:
        """The strongest against each scheme, and who is not told apart from it, by knowledge, attack and scheme."""
        return marks(self.reading, self.told)

    @cached_property
    def winners(self) -> list[Winner]:
        """Who wins where; empty for a few attacks."""
        return winners(self.reading, self.matrix)

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
    def unsuited(self) -> int:
        """How many adversaries make no sense against any scheme; the page folds them under one line, with the reasons."""
        return sum(row.unsuited for row in self.matrix)

    @property
    def unsuited_gaps(self) -> list[Gathered]:
        """The reasons of those."""
        return apart(self.reading, self.matrix)[0]

    @property
    def gaps(self) -> list[Gathered]:
        """The reasons of all other cells without a figure."""
        return apart(self.reading, self.matrix)[1]

    @property
    def elsewhere(self) -> int:
        """How many adversaries measure something, and no normalized error of any scheme."""
        return len(self.matrix) - len(self.told) - self.unsuited

    @property
    def given(self) -> str:
        """The states of knowledge that hold attributes in clear."""
        return ", ".join(unique(row.knowledge for row in self.told if row.given))

    @property
    def pools(self) -> bool:
        """Whether any coalition of two or more copies was measured."""
        return any(len(coalition) > 1 for setting in self.reading.settings() for coalition in losses(self.reading, setting))

    @property
    def unmeasured(self) -> str:
        """The schemes without any other measure."""
        return ", ".join(name for place, name in enumerate(self.reading.schemes) if place not in self.measured)

    @property
    def numbers(self) -> bool:
        """Whether a verdict speaks of a normalized error."""
        return any(verdict.worst is not None for verdict in self.verdicts)

    @property
    def categories(self) -> bool:
        """Whether a verdict speaks of guesses of categories."""
        return any(verdict.guesses is not None for verdict in self.verdicts)

    @property
    def terms(self) -> str:
        """What the figures of the verdicts are."""
        return terms(numbers=self.numbers, categories=self.categories)

    @property
    def prose(self) -> list[tuple[str, str]]:
        """The method in words."""
        return prose(categories=self.categories)

    @property
    def lowest(self) -> Verdict | None:
        """The verdict with the strongest reconstruction of all schemes."""
        return most_telling(self.verdicts)

    @property
    def outcome(self) -> str:
        """Whether everything that was expected was proved."""
        return outcome(self.result)


def _measures(reading: Reading) -> tuple[list[tuple[str, list[Measure]]], list[int]]:
    """Return the other measures of each adversary, and the places of the schemes that have any."""
    rows = measures(reading)
    groups: dict[str, list[Measure]] = {}
    for row in rows:
        groups.setdefault(adversary_text(row.knowledge, row.attack), []).append(row)
    return list(groups.items()), measured_schemes(rows)


def page(result: AuditResult, number: int, limit: int) -> Page:
    """Gather what the page shows of one audit; ``limit`` bounds the rows of each chart."""
    reading = Reading(result)
    return Page(
        f"audit-{number}", result, reading, verdicts(reading), matrix(reading), *_measures(reading),
        charts(reading, f"audit-{number}", limit), metric_definitions(reading), error_bars(reading),
        scenario_yaml(result.scenario), escaped(json.dumps(plain_scenario(result.scenario), indent=2, ensure_ascii=False)),
        reproduce(result), provenance_line(result), rows_text(result), partial_text(result),
    )  # fmt: skip
