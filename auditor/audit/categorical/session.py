"""Engine for categories: a pass counts, one pass per attack measures."""

from collections.abc import Mapping

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import cells_of
from auditor.audit.base.request import ALL, Attempt, ReleaseRequest, with_singles
from auditor.audit.base.session import CELLS, RECORDS, Guesses, Session
from auditor.audit.categorical.attack_records import attack_records
from auditor.audit.categorical.other_rows import insider_records
from auditor.audit.categorical.posterior_pass import Attacker, Fitted, MeasureJob, posteriors
from auditor.audit.categorical.release import UniformRelease, copies_between, count_pairs, law_tests
from auditor.audit.categorical.release_records import pooling_evidence, release_records
from auditor.base import NotApplicable
from auditor.base.types import Coalition, Coalitions, Indices
from auditor.results.records import Measurement, ReleaseEvidence
from auditor.scenario.model import AttackUse


class CategoricalSession(Session):
    """One release of categories under audit."""

    def __init__(self, request: ReleaseRequest) -> None:
        self.release, self.pooling = (release := UniformRelease(request)), request.pooling
        self.scenario, self.context = release.scenario, release.context
        self.coalitions, self.counted = release.coalitions, count_pairs(release)
        self._fitted: dict[tuple[str, str], list[Fitted]] = {}

    def release_records(self) -> list[Measurement]:
        return list(release_records(self.release, self.counted))

    def attempt(self, use: AttackUse, knowledge: Knowledge, coalitions: Coalitions) -> Attempt:
        release = self.release
        attacker = Attacker.of(release, self.counted, use, knowledge)
        self._fitted[attacker.name] = parts = attacker.fitted(with_singles(coalitions))
        sums = release.go_through(MeasureJob(release.groups, parts)).sums
        return Attempt.of(attack_records(attacker, parts[0], sums, coalitions))

    def guesses(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> Guesses:
        if knowledge.in_clear:
            raise NotApplicable("guesses of categories depend on the known attributes")
        release, data = self.release, self.release.data
        several = len(data.attributes) > 1 and attribute != ALL
        part = cells_of([attribute], data.attributes) if several else np.arange(data.size)
        shares = np.bincount(part, data.prior)
        cell = np.empty(shares.size, dtype=int)  # the rarest values share the last cell
        cell[np.argsort(-shares, kind="stable")] = np.arange(shares.size).clip(max=CELLS - 1)
        values = np.eye(shares.size)[part] if shares.size < data.size else None
        cells, found = cell[part], list[list[Indices]]()
        head = -(-RECORDS // len(release.groups))
        for a, b in release.bounds:
            columns = release.rows(coalition, [(a, stop := min(b, a + head))])
            for fitted in self._fitted[use.id, knowledge.label]:
                rows = fitted.judged(a, stop)
                for P, _, some, u in posteriors(
                    fitted.fits[coalition], columns[0], columns[1:], rows
                ):
                    belief = P if values is None else P @ values
                    shown = [cells[column[rows[some]]] for column in columns]
                    found.append([*shown, cell[belief.argmax(axis=1)][u]])
        x, *copies, guess = (np.concatenate(each) for each in zip(*found, strict=True))
        return Guesses(min(CELLS, shares.size), 0.0, x, copies, guess)

    def later_records(self) -> list[Measurement]:
        return insider_records(self.release)

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        evidence.law.extend(law_tests(self.release, self.counted))
        if drawn := copies_between(self.release, self.counted):
            evidence.facts["drawn"] = drawn
        if self.pooling:
            evidence.pooling.update(pooling_evidence(self.release))
