"""Audit of one release by the engine that its scheme names."""

from dataclasses import replace
from importlib import import_module

from auditor import registry
from auditor.audit.base.request import ReleaseAudit, ReleaseRequest
from auditor.audit.base.session import Session
from auditor.base.types import Coalition
from auditor.data.table import Audited
from auditor.process.containment import contained
from auditor.results.measurements import Measurements
from auditor.results.records import ReleaseEvidence
from auditor.scenario.model import SchemeUse
from auditor.schemes.base.scheme import by_engine

SESSIONS = {
    "numeric": ("auditor.audit.numeric_engine", "NumericSession"),
    "categorical": ("auditor.audit.categorical.session", "CategoricalSession"),
}
"""By the name that ``Scheme.engine`` states; an engine takes 0.05 s to import."""


def session_of(use: SchemeUse) -> type[Session]:
    """Kind of session for a scheme's releases.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    module, name = by_engine(SESSIONS, registry.get("scheme", use.name))
    session: type[Session] = getattr(import_module(module), name)
    return session


def audit_release(request: ReleaseRequest) -> ReleaseAudit:
    """Audit of one release; if it fails, every cell has the reason."""
    session, use, scenario = session_of(request.use), request.use, request.scenario
    coalitions = list[Coalition]([()])
    context, part = request.context(), Audited(request.table)
    with contained() as failure:  # without levels the number of copies is unknown
        request, part = request.audited()
        context = request.context(request.levels, request.copies)
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
            return session.audit(request, evidence)
    records = [
        context.under(attack.id, knowledge.label).empty(coalition, "failed", failure.reason)
        for knowledge in scenario.knowledge
        for attack in scenario.attacks
        for coalition in coalitions
        if attack.tries(coalition, context.copies)
    ]
    records = records or [context.empty(context.everybody, "failed", failure.reason)]
    evidence = replace(evidence, pooling={}, paired={}, facts={}, law=[])
    return ReleaseAudit(Measurements.of(records), [], [], evidence)
