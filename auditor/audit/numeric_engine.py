"""Engine for releases of numbers: moments for linear attacks, else rows."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

from auditor.adversary.attack import CategoricalAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.attempts.cells import attack_outcome
from auditor.audit.attempts.guesses import number_guesses
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.request import Attempt, ReleaseAudit, ReleaseRequest, release_of
from auditor.audit.base.session import (
    INSIDER,
    Guesses,
    Session,
    cells_of,
    in_order_of_promise,
    is_linear,
    made_attack,
)
from auditor.audit.measures.privacy import Baseline, baseline_of
from auditor.audit.numeric.moment_pass import Stripe
from auditor.audit.numeric_evidence import add_evidence, insider_attempt
from auditor.audit.numeric_release import is_counted, release_figures, without_law_records
from auditor.base.types import Coalition, Coalitions
from auditor.results.records import Measurement, ReleaseEvidence
from auditor.scenario.model import AttackUse


class NumericSession(Session):
    """One release of numbers, or of classes of records, under audit."""

    divides_held_tables = True

    def __init__(self, request: ReleaseRequest, whole: Stripe | None = None) -> None:
        self.scenario, self.coalitions = request.scenario, request.coalitions
        self.context = request.context(request.levels, request.copies)
        asked = self.coalitions, request.pooling
        self.opened = Opened.of(self.scenario, release_of(request), *asked, whole)

    @classmethod
    def audit(cls, request: ReleaseRequest, evidence: ReleaseEvidence) -> ReleaseAudit:
        numbers, whole, share = list[int](), None, request.share
        session = _session(request)
        if share is not None:
            opened = session.opened
            whole = opened.gathered.whole if opened.release.share is not None else None
            cells = cells_of(request.scenario)
            counted = is_counted(request.scenario, request.table)
            rest = in_order_of_promise(cells)
            numbers = [INSIDER] * request.pooling
            numbers += [each for each in rest if counted or not is_linear(cells[each][0])]
        steps = [partial(_attempt, number, whole) for number in numbers]
        return session.run(evidence, request, numbers, share(steps) if share and steps else ())

    def release_records(self) -> Iterator[Measurement]:
        return release_figures(self.opened, self.context)

    @cached_property
    def _baseline(self) -> Baseline | None:
        """Success of guesses without copies, if closeness is requested."""
        return baseline_of(self.scenario, self.opened.release.table)

    def attempt(self, use: AttackUse, knowledge: Knowledge, coalitions: Coalitions) -> Attempt:
        opened, attack = replace(self.opened, coalitions=coalitions), made_attack(use)
        by_record = isinstance(attack, CategoricalAttack) and not attack.serial
        if by_record and opened.release.table.categorical is not None:
            from auditor.audit.categorical.binned_columns import binned_records

            context = self.context.under(use.id, knowledge.label)
            asked = opened.release, opened.needed, coalitions
            return Attempt.of(binned_records(*asked, context, knowledge))
        return attack_outcome(opened, attack, use.id, knowledge, self.context, self._baseline)

    def guesses(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> Guesses:
        column = self.context.attributes.index(attribute)
        return number_guesses(self.opened, made_attack(use), knowledge, coalition, column)

    def later_records(self) -> list[Measurement]:
        return without_law_records(self.opened, self.context)

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        add_evidence(self.opened, evidence, made)


def _attempt(number: int, whole: Stripe | None, request: ReleaseRequest) -> Attempt:
    session = _session(request, whole)
    if number == INSIDER:
        return insider_attempt(session.opened)
    return session.tried(*cells_of(request.scenario)[number])


def _session(request: ReleaseRequest, whole: Stripe | None = None) -> NumericSession:
    if "session" not in request.kept:
        request.kept["session"] = NumericSession(request, whole)
    session: NumericSession = request.kept["session"]
    return session
