"""Audit of one release by the engine that its scheme names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from auditor import registry
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.outcome import Attempt, ReleaseAudit, nothing_of
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.base.session import Session
from auditor.audit.categorical_engine import CategoricalEngine
from auditor.audit.numeric_engine import NumericEngine
from auditor.data.table import Audited, Table
from auditor.numerics.passes import Job
from auditor.process.containment import contained
from auditor.results.evidence import ReleaseEvidence
from auditor.scenario.model import SchemeUse
from auditor.schemes.base.scheme import by_engine
from auditor.types import Coalition


class Engine(Protocol):
    """Audit of releases of one kind."""

    hands_out_passes: bool
    """Whether an audit hands out passes over files (``ReleaseRequest.share``); main process only."""

    def block_width(self, table: Table) -> int:
        """Return the number of columns that blocks are divided by (``auditor.numerics.blocks``)."""

    def ahead(self, request: ReleaseRequest) -> Job[Any] | None:
        """Return the job over a file that can be done before the audit, if any."""

    def attempts(self, request: ReleaseRequest) -> Mapping[int, Callable[[], Attempt]]:
        """Return the attempts that read all rows, by number (``cells_of``).

        The audit makes those that are not in ``ReleaseRequest.attempts``. A negative number is a
        part that the rest of the audit need not wait for (``ReleaseAudit.with_gains``).
        """

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return the common part of the records of a release."""

    def open(self, request: ReleaseRequest) -> Any:
        """Return the release; no copy is drawn."""

    def session(
        self, request: ReleaseRequest, context: CellContext, coalitions: list[Coalition]
    ) -> Session:
        """Return the open release, after the first pass."""


ENGINES: dict[str, Engine] = {"numeric": NumericEngine(), "categorical": CategoricalEngine()}
"""By the name that ``Scheme.engine`` states."""


def engine_of(use: SchemeUse) -> Engine:
    """Return the engine for a scheme's releases.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    return by_engine(ENGINES, registry.get("scheme", use.name))


def audit_release(request: ReleaseRequest) -> ReleaseAudit:
    """Return the audit of one release; if it fails, every cell has the reason."""
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
        coalitions = expand_all(scenario.coalitions, context.copies, scenario.seed)
        with contained() as failure:
            session = engine.session(request, context, coalitions)
            measurements, distributions = session.run(request.attempts, evidence)
            return ReleaseAudit(measurements, distributions, evidence)
    return nothing_of(scenario, context, evidence, coalitions, failure.reason)
