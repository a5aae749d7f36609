"""Engine for releases of numbers: moments for linear attacks, else rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from auditor import registry
from auditor.adversary.attack import CategoricalAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.cells import attack_outcome, number_counts
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.records import CellContext
from auditor.audit.base.release import Release, open_release
from auditor.audit.base.request import Attempt, ReleaseRequest, parts_in_steps
from auditor.audit.base.session import (
    INSIDER,
    PER_DEVIATION,
    JointCounts,
    Session,
    cell_context,
    cells_of,
    in_order_of_promise,
    is_linear,
    made_attack,
)
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.law_tests.numeric import law_tests
from auditor.audit.measures.closeness import Baseline, baseline, group_codes, sampled_of
from auditor.audit.measures.diagnosis import unused_figures
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.measures.utility import column_of
from auditor.audit.numeric.moment_pass import MomentJob, Stripe, draws_of
from auditor.audit.numeric_release import (
    learnt_gains,
    pooling,
    release_records,
    without_law_records,
)
from auditor.base.types import Coalition
from auditor.numerics.blocks import added_up
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement, Picture
from auditor.scenario.model import AttackUse


class NumericEngine:
    """Engine for copies of numbers, or of classes of records."""

    divides_held_tables = True

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

    def audit(
        self, request: ReleaseRequest, evidence: ReleaseEvidence
    ) -> tuple[Measurements, list[Distribution], list[Picture]]:
        """Return all records of one release, and fill in the evidence."""
        stripes = None
        if request.share is not None and request.table.streamed:
            stripes = self._gathered_in_steps(request)
        session = self._session(request, stripes)
        numbers = [] if request.share is None else self._numbers_in_steps(request)
        attempts = self._attempts_in_steps(request, numbers, stripes) if numbers else ()
        return session.run(evidence, numbers, attempts, request.tell, request.brief)

    def _gathered_in_steps(self, request: ReleaseRequest) -> list[Stripe] | None:
        """Return all moments as one stripe; None if the scheme needs the whole table."""
        here, table = request.scenario, request.table
        if registry.get("scheme", request.use.name).needs_table:
            return None
        draws = draws_of(here.knowledge, table.rows, here.seed, request.replicate)
        apart, centre = self.open(request).groups_apart(request.pooling), request.moments.mean
        job = MomentJob(table.rows, table.width, request.copies, centre, draws, apart)
        return [added_up(job, parts_in_steps(request, self.open, table.width, job))]

    def _numbers_in_steps(self, request: ReleaseRequest) -> list[int]:
        here, table = request.scenario, request.table
        counted = wanted_tally(here, np.ones(table.width), table).of_all
        cells = cells_of(here)
        by_rows = [
            number
            for number in in_order_of_promise(cells)
            if counted or not is_linear(cells[number][0])
        ]
        return [INSIDER] * request.pooling + by_rows  # the longest first

    def _attempts_in_steps(
        self, request: ReleaseRequest, numbers: list[int], stripes: list[Stripe] | None
    ) -> Iterator[tuple[int, Attempt]]:
        assert request.share is not None
        steps = [partial(self._attempt, number, stripes) for number in numbers]
        return zip(numbers, request.share(steps), strict=True)

    def _attempt(
        self, number: int, stripes: list[Stripe] | None, request: ReleaseRequest
    ) -> Attempt:
        session = self._session(request, stripes)
        if number == INSIDER:
            return session.gains()
        return session.tried(*cells_of(request.scenario)[number])

    def _session(self, request: ReleaseRequest, stripes: list[Stripe] | None) -> NumericSession:
        if "session" not in request.kept:
            here, release = request.scenario, self.open(request)
            coalitions = expand_all(here.coalitions, request.copies, here.seed)
            opened = Opened.of(here, release, coalitions, request.pooling, stripes)
            context = self.context(request, request.levels, request.copies)
            request.kept["session"] = NumericSession(opened, context)
        session: NumericSession = request.kept["session"]
        return session


class NumericSession(Session):
    """One numeric release under audit."""

    def __init__(self, opened: Opened, context: CellContext) -> None:
        self.opened, self.context = opened, context
        self.scenario, self.coalitions = opened.scenario, opened.coalitions

    @cached_property
    def baseline(self) -> Baseline | None:
        """Success of guesses without copies, if closeness is requested."""
        if not self.scenario.asks_closeness:
            return None
        table = self.opened.release.table
        found = baseline(table, self.scenario.data.tolerance)
        groups = [
            (name, group_codes(sampled_of(table, column_of(self.scenario, table, name))))
            for name in self.scenario.grouped_by
        ]
        units = None if table.units is None else sampled_of(table, table.units)
        weight = self.scenario.data.weight
        weights = (
            None if weight is None else sampled_of(table, column_of(self.scenario, table, weight))
        )
        return replace(found, groups=groups, units=units, weights=weights)

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
                self.context.under(use.id, knowledge.label),
                knowledge,
            )
            return Attempt(Measurements.of(found), [])
        return attack_outcome(opened, attack, use.id, knowledge, self.context, self.baseline)

    def joint_counts(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> tuple[JointCounts, float]:
        """Return an attribute's counts, and a cell's width in standard deviations."""
        column = self.context.attributes.index(attribute)
        attack = made_attack(use)
        counts = number_counts(self.opened, attack, knowledge, coalition, column)
        return counts, 1.0 / PER_DEVIATION

    def later_records(self) -> list[Measurement]:
        """Return figures of copies without a stated law."""
        found = without_law_records(self.opened, self.context)
        release = self.opened.release
        return [*found, *unused_figures(self.context, release.scheme, release.table, found)]

    def gains(self) -> Attempt:
        """Return the insider's gains by pooling."""
        return Attempt(Measurements.of([]), [], gains=learnt_gains(self.opened.by_record))

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations."""
        opened, table = self.opened.by_record, self.opened.release.table
        evidence.law.extend(law_tests(opened.release, opened.law_within))
        if opened.estimated:
            evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
        if opened.pooling:
            for found in made.values():
                evidence.paired.update(found.paired)
            gains = made[INSIDER] if INSIDER in made else self.gains()
            evidence.pooling.update(pooling(opened, gains.gains))
