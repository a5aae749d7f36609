"""Audit of one release by the engine that its scheme names."""

from __future__ import annotations

from typing import Protocol

from auditor import registry
from auditor.audit.base.request import CellContext, ReleaseAudit, ReleaseRequest, nothing_of
from auditor.audit.base.session import Outcome
from auditor.audit.categorical.session import CategoricalEngine
from auditor.audit.numeric_engine import NumericEngine
from auditor.base.types import Coalition
from auditor.data.table import Audited
from auditor.process.containment import contained
from auditor.results.records import ReleaseEvidence
from auditor.scenario.model import SchemeUse
from auditor.schemes.base.scheme import by_engine


class Engine(Protocol):
    """Audit of releases of one kind."""

    divides_held_tables: bool
    """Whether steps of one release save time if its table is in memory."""

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Common part of the records of a release."""

    def audit(self, request: ReleaseRequest, evidence: ReleaseEvidence) -> Outcome:
        """All records of one release, and fill in the evidence."""


ENGINES: dict[str, Engine] = {"numeric": NumericEngine(), "categorical": CategoricalEngine()}
"""By the name that ``Scheme.engine`` states."""


def engine_of(use: SchemeUse) -> Engine:
    """Engine for a scheme's releases.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    return by_engine(ENGINES, registry.get("scheme", use.name))


def audit_release(request: ReleaseRequest) -> ReleaseAudit:
    """Audit of one release; if it fails, every cell has the reason."""
    engine, use, scenario = engine_of(request.use), request.use, request.scenario
    coalitions = list[Coalition]([()])
    context, part = engine.context(request, (), 0), Audited(request.table)
    with contained() as failure:  # without levels the number of copies is unknown
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
        coalitions = request.coalitions
        with contained() as failure:
            return ReleaseAudit(*engine.audit(request, evidence), evidence)
    return nothing_of(scenario, context, evidence, coalitions, failure.reason)
