"""Audit of releases of numbers: moments for linear attacks, rows for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from auditor import registry
from auditor.adversary.categorical_attack import CategoricalAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.cells import attack_outcome
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.outcome import NOTHING, Attempt
from auditor.audit.base.records import CellContext
from auditor.audit.base.release import Release, open_release
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.base.session import (
    INSIDER,
    Session,
    cell_context,
    cells_of,
    is_linear,
    made_attack,
)
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.law_tests.numeric import law_tests
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.numeric.known_rows import draws_of
from auditor.audit.numeric.moment_pass import MomentJob
from auditor.audit.numeric_release import (
    learnt_gains,
    pooling,
    release_records,
    without_law_records,
)
from auditor.data.table import Table
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement
from auditor.scenario.model import AttackUse
from auditor.types import Coalition


class NumericEngine:
    """Engine for copies of numbers, or of classes of records."""

    hands_out_passes = False

    def block_width(self, table: Table) -> int:
        """Return the table's width."""
        return table.width

    def ahead(self, request: ReleaseRequest) -> MomentJob | None:
        """Return the moments that every attack needs; None if the scheme needs all rows at once."""
        here, table, moments = request.scenario, request.table, request.moments
        if registry.get("scheme", request.use.name).needs_table:
            return None
        draws = draws_of(here.knowledge, table.rows, here.seed, request.replicate)
        apart = self.open(request).groups_apart(request.pooling)
        centre, deviation = moments.mean, moments.deviation
        return MomentJob(table.rows, table.width, request.copies, centre, deviation, draws, apart)

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return the common part of the records of a release."""
        variances = np.diag(request.moments.covariance)
        return cell_context(request, levels, copies, request.table.attributes, variances)

    def open(self, request: ReleaseRequest) -> Release:
        """Return the release; no copy is drawn."""
        return open_release(
            request.scenario,
            request.table,
            request.moments,
            request.use,
            request.levels,
            request.replicate,
        )

    def session(
        self, request: ReleaseRequest, context: CellContext, coalitions: list[Coalition]
    ) -> NumericSession:
        """Return the open release, with moments gathered here or elsewhere."""
        job = None if request.share is None else self.ahead(request)
        stripes = None if request.share is None or job is None else request.share(job)
        release = self.open(request)
        opened = Opened.of(request.scenario, release, coalitions, request.pooling, stripes)
        return NumericSession(opened, context)

    def attempts(self, request: ReleaseRequest) -> Mapping[int, Callable[[], Attempt]]:
        """Return attempts over rows, and the insider's gains, by number."""
        here = request.scenario

        @cache
        def session() -> NumericSession:
            context = self.context(request, request.levels, request.copies)
            coalitions = expand_all(here.coalitions, request.copies, here.seed)
            return self.session(request, context, coalitions)

        counted = wanted_tally(here, np.ones(request.table.width), request.table).of_all
        found: dict[int, Callable[[], Attempt]] = {
            number: partial(lambda *cell: session().tried(*cell), use, knowledge)
            for number, (use, knowledge) in enumerate(cells_of(here))
            if counted or not is_linear(use)
        }
        if request.pooling:
            found[INSIDER] = lambda: session().gains()
        return found


class NumericSession(Session):
    """One numeric release under audit."""

    def __init__(self, opened: Opened, context: CellContext) -> None:
        self.opened, self.context = opened, context
        self.scenario, self.coalitions = opened.scenario, opened.coalitions

    def release_records(self) -> list[Measurement]:
        """Return the figures of the release itself."""
        return list(release_records(self.opened, self.context))

    def attempt(
        self, use: AttackUse, knowledge: Knowledge, coalitions: Sequence[Coalition]
    ) -> Attempt:
        """Return the outcome of one attack."""
        opened, attack = replace(self.opened, coalitions=coalitions), made_attack(use)
        data = opened.release.table.categorical
        if isinstance(attack, CategoricalAttack) and data is not None and not attack.serial:
            found = binned_records(
                opened.release.table,
                opened.release.blocks,
                opened.law,
                opened.needed,
                coalitions,
                self.context,
                use.id,
                knowledge,
            )
            return Attempt(Measurements.of(found), [])
        return attack_outcome(opened, attack, use.id, knowledge, self.context)

    def later_records(self) -> list[Measurement]:
        """Return figures of copies without a stated law."""
        return without_law_records(self.opened, self.context)

    def gains(self) -> Attempt:
        """Return the insider's gains by pooling."""
        return replace(NOTHING, gains=learnt_gains(self.opened.by_record))

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations."""
        opened, table = self.opened.by_record, self.opened.release.table
        evidence.law.extend(law_tests(opened.release, opened.law_within, opened.gathered.groups))
        if opened.estimated:
            evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
        if opened.pooling:
            for found in made.values():
                evidence.paired.update(found.paired)
            gains = made[INSIDER] if INSIDER in made else self.gains()
            evidence.pooling.update(pooling(opened, gains.gains))
