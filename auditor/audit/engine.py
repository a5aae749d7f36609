"""Audit one release: make the copies once, gather their moments, and let every attack try every coalition."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor import registry
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.outcome import ReleaseAudit, Taken, nothing_of
from auditor.audit.base.records import CellContext
from auditor.audit.base.release import open_release, release_levels
from auditor.audit.categorical_engine import audit_uniform
from auditor.audit.drawn_law.numeric import law_tests
from auditor.audit.numeric_engine import Session, check_copies
from auditor.audit.pooling.linear import pooling_evidence
from auditor.data.table import Table
from auditor.process.containment import contained
from auditor.results.evidence import ReleaseEvidence
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import TableMoments


def audit_release(
    scenario: Scenario, point: dict[str, Any], table: Table, moments: TableMoments, use: SchemeUse, replicate: int, pooling: bool,
    taken: Taken | None = None,
) -> ReleaseAudit:  # fmt: skip
    """Audit one scheme at one sweep point in one replicate.

    Parameters
    ----------
    scenario : Scenario
        At the sweep point.
    point : dict
        The swept values, for the records.
    table : Table
    moments : TableMoments
        The table's own.
    use : SchemeUse
        The scheme.
    replicate : int
        From 1.
    pooling : bool
        Whether an expectation needs evidence on what pooling buys.
    taken : Taken, optional
        What others gathered of the release already.
    """
    if registry.get("scheme", use.name).family == "uniform":
        return audit_uniform(scenario, point, table, use, replicate, pooling)
    with contained() as failure:
        levels = release_levels(use, scenario)
    if failure.error is not None:  # without levels nobody knows of copies, let alone coalitions
        context = CellContext(point, use.id, (), replicate, table.attributes, np.diag(moments.covariance))
        return nothing_of(scenario, context, ReleaseEvidence(point, use.id, use.name, (), replicate, table.rows), [()], failure.reason)
    context = CellContext(point, use.id, levels, replicate, table.attributes, np.diag(moments.covariance))
    evidence = ReleaseEvidence(point, use.id, use.name, levels, replicate, table.rows)
    coalitions = expand_all(scenario.coalitions, len(levels), scenario.seed)
    with contained() as failure:
        release = open_release(scenario, table, moments, use, levels, replicate)
        session = Session(scenario, release, coalitions, context, pooling, taken)
        check_copies(session.gathered)
        measurements, distributions = session.run()
        evidence.law.extend(law_tests(release, session.law_within, session.gathered.groups))
        if pooling:
            evidence.paired.update(session.paired)
        if pooling and session.gathered.joint:
            groups, near = session.told_apart()
            evidence.pooling.update(pooling_evidence(session.needed, groups, table.width, session.law, session.signs(), near))
        return ReleaseAudit(measurements, distributions, evidence)
    return nothing_of(scenario, context, evidence, coalitions, failure.reason)
