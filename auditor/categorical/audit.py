"""Audit one uniform release: have it made, and let every categorical attack infer from every coalition's copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.attack import Attack
from auditor.audit import ReleaseAudit, failure_reason, release_levels
from auditor.categorical.attack import CategoricalAttack, CategoricalView, KnownPairs
from auditor.categorical.figures import marginal_tests, pooling_evidence, release_records
from auditor.categorical.gap import belief_gap
from auditor.categorical.making import UniformRelease
from auditor.categorical.measuring import Measured, gain_in_theory, measure
from auditor.categorical.neighbours import MOST_COPIES, drawn_between
from auditor.categorical.records import Cell, cell_records, gain_record
from auditor.categorical.scheme import categories_of
from auditor.data.table import Table
from auditor.errors import AuditorError, NotApplicable
from auditor.expectation import ReleaseEvidence
from auditor.knowledge import Estimated, Knowledge, KnownRecords, Perfect
from auditor.records import CellContext
from auditor.results import Measurement
from auditor.scenario.coalitions import Coalition
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scheme import Key
from auditor.streams import stream

Array = NDArray[np.float64]


def audit_uniform(scenario: Scenario, point: dict[str, Any], table: Table, use: SchemeUse, replicate: int, pooling: bool) -> ReleaseAudit:
    """Audit one uniform scheme at one sweep point in one replicate; arguments as for ``audit_release``."""
    levels = release_levels(use, scenario)
    data = categories_of(table)
    context = CellContext(point, use.id, levels, replicate, data.names, np.ones(len(data.names)))
    evidence = ReleaseEvidence(point, use.id, use.name, levels, replicate, data.rows)
    try:
        release = UniformRelease(scenario, data, use, context, Key(scenario.seed, use.id, replicate))
        measurements = release_records(release)
    except Exception as error:
        reason = failure_reason(error)
        records = [context.empty(a.id, k.label, None, "failed", reason) for k in scenario.knowledge for a in scenario.attacks]
        return ReleaseAudit(records, [], evidence)
    measurements += AttackSession(release).run()
    evidence.facts["marginal"] = marginal_tests(release)
    if release.law.multilevel and len(levels) <= MOST_COPIES:
        evidence.facts["drawn"] = drawn_between(data.codes, data.size, levels, release.copy)
    if pooling:
        evidence.pooling.update(pooling_evidence(release))
    return ReleaseAudit(measurements, [], evidence)


@dataclass
class AttackSession:
    """Every attack, with every state of knowledge, on one release."""

    release: UniformRelease

    def run(self) -> list[Measurement]:
        """Return the records of every cell; an attack that fails is recorded, and does not stop the others."""
        measurements: list[Measurement] = []
        for knowledge in self.release.scenario.knowledge:
            for use in self.release.scenario.attacks:
                try:
                    measurements += self._attack(use, knowledge)
                except NotApplicable as reason:
                    measurements += self._empty(use, knowledge, "not-applicable", str(reason))
                except Exception as error:
                    measurements += self._empty(use, knowledge, "failed", failure_reason(error))
        return measurements

    def _empty(self, use: PluginUse, knowledge: Knowledge, status: str, reason: str) -> list[Measurement]:
        return [self.release.context.empty(use.id, knowledge.label, coalition, status, reason) for coalition in self.release.coalitions]

    def _attack(self, use: PluginUse, knowledge: Knowledge) -> list[Measurement]:
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        attack.check(self.release.scheme.family, knowledge)
        if not isinstance(attack, CategoricalAttack):
            raise NotApplicable(f"{use.name} does not attack categories")
        view = self.view(knowledge)
        predicates = attack.predicates(self.release.data.labels)
        found: dict[Coalition, Measured] = {}
        wants_gap = self.release.scenario.measure("belief-gap") is not None and not isinstance(knowledge, KnownRecords)
        hidden = self._hidden_rows(knowledge)
        for coalition in self.release.needed:
            inference = attack.infer(view.coalition(coalition))
            found[coalition] = measure(self.release, inference, coalition, predicates, hidden)
            if wants_gap and len(coalition) > 1:
                law = self.release.law.of(coalition)
                alone = attack.infer(view.coalition((coalition[law.best - 1],)))
                copies = [self.release.copy(number) for number in coalition]
                found[coalition].gap = belief_gap(self.release.data.codes, copies, law, inference, alone)
        return [record for coalition in self.release.coalitions for record in self._records(use.id, knowledge, coalition, found)]

    def _records(self, attack: str, knowledge: Knowledge, coalition: Coalition, found: Mapping[Coalition, Measured]) -> list[Measurement]:
        cell, measured = Cell(self.release.context, attack, knowledge.label, coalition), found[coalition]
        data = self.release.data
        odds = self.release.law.of(coalition).odds() if isinstance(knowledge, Perfect) else None
        cell_records(cell, measured.sums, measured.closed, data.prior, data.scores, odds)
        best = min(coalition, key=lambda copy: found[(copy,)].sums.groups.sum())
        if measured.gap is not None:
            if measured.gap.measured is not None:
                cell.add("belief_gap", measured.gap.measured, measured.gap.std_error, measured.gap.computed, "jackknife")
            cell.add("largest_belief_gap", measured.gap.largest, theory=measured.gap.largest)
        gain_record(cell, measured.sums, found[(best,)].sums, gain_in_theory(found, coalition))
        return cell.records

    def view(self, knowledge: Knowledge) -> CategoricalView:
        """Return the view of an adversary that holds every copy that some coalition does."""
        members = tuple(self.release.singles)
        sample, pairs = None, None
        if isinstance(knowledge, Estimated):
            rows = self._rows("estimated", knowledge.rows)
            sample = tuple(np.bincount(self.release.copy(k)[rows], minlength=self.release.data.size).astype(np.float64) for k in members)
        if isinstance(knowledge, KnownRecords):
            rows = self._rows("known-records", knowledge.count)
            pairs = KnownPairs(self.release.data.codes[rows], tuple(self.release.copy(k)[rows] for k in members))
        prior = self.release.data.prior if isinstance(knowledge, Perfect) else None
        return CategoricalView(members, self.release.law.of(members), knowledge, self.release.data.labels, prior, sample, pairs)

    def _rows(self, what: str, count: int) -> NDArray[np.intp]:
        n = self.release.data.rows
        if count > n:
            raise AuditorError(f"knowledge of {count} rows needs that many; the table has {n}")
        return np.sort(stream(self.release.scenario.seed, what, self.release.key.replicate).permutation(n)[:count])

    def _hidden_rows(self, knowledge: Knowledge) -> NDArray[np.intp] | None:
        """Return the records to be attacked: all, or those that are not known in clear."""
        if not isinstance(knowledge, KnownRecords):
            return None
        known = self._rows("known-records", knowledge.count)
        if known.size == self.release.data.rows:
            raise NotApplicable("every record is known in clear: none is left to attack")
        return np.delete(np.arange(self.release.data.rows), known)
