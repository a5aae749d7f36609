"""Audit of one release by the engine that its scheme names, and the engine for numbers.

Errors of linear attacks come from moments, others from rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from auditor import registry
from auditor.adversary.attack import check_real
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.cells import attack_outcome, number_guesses
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.release import release_of
from auditor.audit.base.request import Attempt, Bar, ReleaseAudit, ReleaseRequest, done_in_steps
from auditor.audit.base.session import (
    INSIDER,
    Guesses,
    Outcome,
    Session,
    cells_of,
    in_order_of_promise,
    infers_categories,
    is_linear,
    made_attack,
)
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.categorical.session import CategoricalSession
from auditor.audit.insider.gain import MOST_VALUES, insider_gains, noise_gains, unresolved
from auditor.audit.law_tests.numeric import law_rows, law_tests, looked_at
from auditor.audit.measures.closeness import Baseline, baseline, group_codes, sampled_of
from auditor.audit.measures.empirical_guarantee import release_guarantees
from auditor.audit.measures.entropy import entropy_records, floor_records
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.measures.released_as_is import blank_records
from auditor.audit.measures.utility import column_of, geometry_records, utility_records
from auditor.audit.numeric.error_tally import TREE_ROWS
from auditor.audit.numeric.moment_pass import MomentJob, Stripe, draws_of
from auditor.audit.numeric.views import EstimatedNoise
from auditor.audit.without_law import without_law_records
from auditor.base.types import Coalition, Coalitions
from auditor.data.table import Audited
from auditor.numerics.blocks import Moments
from auditor.process.containment import contained
from auditor.results.measurements import Measurements
from auditor.results.records import InsiderGain, Measurement, Pooling, ReleaseEvidence
from auditor.scenario.model import AttackUse, SchemeUse
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices
from auditor.schemes.base.scheme import by_engine


class NumericSession(Session):
    """One release of numbers, or of classes of records, under audit."""

    divides_held_tables = True

    def __init__(self, request: ReleaseRequest, whole: Stripe | None = None) -> None:
        self.scenario, self.coalitions = request.scenario, request.coalitions
        self.context = request.context(request.levels, request.copies)
        asked = self.coalitions, request.pooling
        self.opened = Opened.of(self.scenario, release_of(request), *asked, whole)

    @classmethod
    def audit(cls, request: ReleaseRequest, evidence: ReleaseEvidence) -> Outcome:
        """All records of one release, and fill in the evidence."""
        numbers, whole, share = list[int](), None, request.share
        if share is not None:
            whole = _gathered_in_steps(request) if request.table.streamed else None
            here, table, cells = request.scenario, request.table, cells_of(request.scenario)
            # whether a figure needs the errors of all records, of linear attacks too
            counted = wanted_tally(here, np.ones(table.width), table).of_all
            numbers = [INSIDER] * request.pooling
            for number in in_order_of_promise(cells):
                if counted or not is_linear(cells[number][0]):
                    numbers.append(number)
        session = _session(request, whole)
        steps = [partial(_attempt, number, whole) for number in numbers]
        return session.run(evidence, request, numbers, share(steps) if share and steps else ())

    def release_records(self) -> Iterator[Measurement]:
        """Yield the requested figures of the release itself."""
        opened, context, release = self.opened, self.context, self.opened.release
        scenario, asked, law = self.scenario, self.scenario.measure, opened.law
        if asked("seconds"):
            yield context.record("seconds", context.everybody, release.seconds)
        facts = release.scheme.facts(release.levels, release.moments)
        check_real(*facts.values())
        for name, value in facts.items():
            if asked(name):
                yield context.record(name, context.everybody, float(value))
        yield from release_guarantees(context, scenario, release, law, self.coalitions)
        yield from blank_records(context, release, self.coalitions)
        if opened.gathered.noise is not None:
            yield from self._noise_records(opened.gathered.noise)
        if asked("entropy-privacy"):
            yield from entropy_records(context, release.table, law, self.coalitions)
        if asked("error-bounds"):
            K_X = release.moments.covariance
            yield from floor_records(context, scenario.data, K_X, law, self.coalitions)
        if scenario.utility is not None:
            yield from utility_records(context, scenario, release.table, release.whole_copies())
        if asked("geometry"):
            yield from geometry_records(context, release.columns, scenario.seed)
        if asked("anonymity"):
            for one, kept in release.scheme.promises(release.blocks(), self.coalitions).items():
                yield from (context.record(metric, one, value) for metric, value in kept.items())

    def _noise_records(self, noise: EstimatedNoise) -> Iterator[Measurement]:
        """Yield estimated levels, distances from laws, dependence on the data."""
        context, levels = self.context, zip(noise.levels.tolist(), noise.std_errors, strict=True)
        for place, (level, error) in enumerate(levels, start=1):
            bar = Bar.normal(float(error), "jackknife") if np.isfinite(error) else None
            metric, bounds = f"estimated_level(copy {place})", (0.0, np.inf)
            yield context.record(metric, (place,), level, bar, bounds=bounds)
        figures = {f"off_law({name})": distance for name, distance in noise.distances.items()}
        for name, value in (*figures.items(), ("noise_on_data", noise.dependence)):
            yield context.record(name, context.everybody, value)

    @cached_property
    def _baseline(self) -> Baseline | None:
        """Success of guesses without copies, if closeness is requested."""
        scenario, table = self.scenario, self.opened.release.table
        if not scenario.asks_closeness:
            return None

        def column(name: str) -> Any:
            return sampled_of(table, column_of(scenario, table, name))

        weight = scenario.data.weight
        return replace(
            baseline(table, scenario.data.tolerance),
            groups=[(name, group_codes(column(name))) for name in scenario.grouped_by],
            units=None if table.units is None else sampled_of(table, table.units),
            weights=None if weight is None else column(weight),
        )

    def attempt(self, use: AttackUse, knowledge: Knowledge, coalitions: Coalitions) -> Attempt:
        """Outcome of one attack."""
        opened, attack = replace(self.opened, coalitions=coalitions), made_attack(use)
        if infers_categories(attack) and opened.release.table.categorical is not None:
            context = self.context.under(use.id, knowledge.label)
            release, asked = opened.release, (opened.needed, coalitions)
            return Attempt.of(
                binned_records(
                    release.table, release.blocks, opened.law, *asked, context, knowledge
                )
            )
        return attack_outcome(opened, attack, use.id, knowledge, self.context, self._baseline)

    def guesses(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> Guesses:
        """Cells of an attribute's originals, copies and estimates."""
        column = self.context.attributes.index(attribute)
        return number_guesses(self.opened, made_attack(use), knowledge, coalition, column)

    def later_records(self) -> list[Measurement]:
        """Figures of copies without a stated law."""
        return without_law_records(self.opened, self.context)

    def gains(self) -> dict[Coalition, InsiderGain]:
        """Insider's gains by pooling, in the first replicate."""
        opened = self.opened.by_record
        release = opened.release
        if (
            not opened.gathered.copies.joint
            or release.key.replicate > 1
            or all(len(coalition) == 1 for coalition in opened.needed)
        ):
            return {}
        most = min(TREE_ROWS, MOST_VALUES // (release.copies * release.table.width))
        rows = looked_at(release, most if release.kept else law_rows(release))
        x, *copies = (
            np.concatenate(each) for each in zip(*((x, *held) for x, held in rows), strict=True)
        )
        proved = opened.law is not None and release.scheme.makes_copies
        return insider_gains(opened.needed, x, copies, opened.law, proved)

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence: tests of the law, gains by pooling."""
        opened, table = self.opened.by_record, self.opened.release.table
        evidence.law.extend(law_tests(opened.release, opened.law_within))
        if opened.estimated:
            evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
        if opened.pooling:
            for found in made.values():
                evidence.paired.update(found.paired)
            gains = made[INSIDER].gains if INSIDER in made else self.gains()
            evidence.pooling.update(pooling(opened, gains))


def pooling(opened: Opened, gains: Mapping[Coalition, InsiderGain]) -> dict[Coalition, Pooling]:
    """Evidence on pooling, by coalition of two copies or more."""
    release, law = opened.release, opened.law
    several = [coalition for coalition in opened.needed if len(coalition) > 1]
    if not several:
        return {}
    if not opened.gathered.copies.joint:
        told = release.scheme.sufficient(release.blocks(), several)
        return {one: Pooling(says, by_classes=True) for one, says in told.items()}
    total = Moments.merge(opened.gathered.groups)
    noise = noise_gains(several, total, law) if isinstance(law, KroneckerNoise) else {}
    useless = None if law is None else makes_useless(law)
    lost = unresolved(several, total, release.table.width)
    return {
        one: Pooling(
            None if useless is None else one_suffices(useless, one),
            noise.get(one),
            one in lost,
            gains.get(one),
            release.scheme.makes_copies,
        )
        for one in several
    }


def _gathered_in_steps(request: ReleaseRequest) -> Stripe | None:
    """All moments; None if the scheme needs the whole table."""
    here, table, release = request.scenario, request.table, release_of(request)
    if release.scheme.needs_table:
        return None
    draws = draws_of(here.knowledge, table.rows, here.seed, request.replicate)
    job = MomentJob(table.rows, table.width, request.copies, request.moments.mean, draws)
    return done_in_steps(request, release_of, table.width, job)


def _attempt(number: int, whole: Stripe | None, request: ReleaseRequest) -> Attempt:
    session = _session(request, whole)
    if number == INSIDER:
        return replace(Attempt.of([]), gains=session.gains())
    return session.tried(*cells_of(request.scenario)[number])


def _session(request: ReleaseRequest, whole: Stripe | None) -> NumericSession:
    if "session" not in request.kept:
        request.kept["session"] = NumericSession(request, whole)
    session: NumericSession = request.kept["session"]
    return session


SESSIONS: dict[str, type[Session]] = {"numeric": NumericSession, "categorical": CategoricalSession}
"""By the name that ``Scheme.engine`` states."""


def session_of(use: SchemeUse) -> type[Session]:
    """Kind of session for a scheme's releases.

    Raises
    ------
    PluginError
        The scheme names an unknown engine.
    """
    return by_engine(SESSIONS, registry.get("scheme", use.name))


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
            return ReleaseAudit(*session.audit(request, evidence), evidence)
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
