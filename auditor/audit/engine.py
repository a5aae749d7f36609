"""Audit of one release by its scheme's engine, with one rule of failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from auditor import registry
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.outcome import ReleaseAudit, nothing_of
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.categorical_engine import CategoricalEngine
from auditor.audit.numeric_engine import NumericEngine
from auditor.data.table import Audited
from auditor.process.containment import contained
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement
from auditor.scenario.model import SchemeUse
from auditor.schemes.base.scheme import by_engine
from auditor.types import Coalition


class Engine(Protocol):
    """Audit of releases of one kind."""

    divides_held_tables: bool
    """Whether steps of one release save time if its table is in memory."""

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return what every record of a release shares."""

    def audit(
        self,
        request: ReleaseRequest,
        context: CellContext,
        coalitions: list[Coalition],
        evidence: ReleaseEvidence,
    ) -> tuple[Sequence[Measurement], list[Distribution]]:
        """Audit the release, and fill in the evidence."""


ENGINES: dict[str, Engine] = {"numeric": NumericEngine(), "categorical": CategoricalEngine()}
"""By the name that ``Scheme.engine`` states."""


def engine_of(use: SchemeUse) -> Engine:
    """Return the engine that a scheme's releases are audited by.

    Raises
    ------
    PluginError
        The scheme names none that there is.
    """
    return by_engine(ENGINES, registry.get("scheme", use.name))


def audit_release(request: ReleaseRequest) -> ReleaseAudit:
    """Return what the audit of one release yields; where it fails, every cell says why."""
    engine, use = engine_of(request.use), request.use
    coalitions, context, part = (
        list[Coalition]([()]),
        engine.context(request, (), 0),
        Audited(request.table),
    )
    with contained() as failure:  # without levels nobody knows of copies, let alone coalitions
        request, part = request.audited()
        context = engine.context(request, request.levels, request.copies)
    evidence = ReleaseEvidence(
        request.point,
        use.id,
        use.name,
        context.copies,
        request.replicate,
        part.table.rows,
        notes=part.notes,
        understated=part.understated,
    )
    if failure.error is None:
        coalitions = expand_all(request.scenario.coalitions, context.copies, request.scenario.seed)
        with contained() as failure:
            measurements, distributions = engine.audit(request, context, coalitions, evidence)
            return ReleaseAudit(Measurements.of(measurements), distributions, evidence)
    return nothing_of(request.scenario, context, evidence, coalitions, failure.reason)
