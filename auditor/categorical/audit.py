"""Audit one uniform release: make the copies, and let every categorical attack infer from every coalition's."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.attack import Attack
from auditor.audit import ReleaseAudit, failure_reason, make_scheme, release_levels
from auditor.blocks import JACKKNIFE_GROUPS
from auditor.categorical.attack import CategoricalAttack, CategoricalView, Inference, KnownPairs
from auditor.categorical.draws import Codes
from auditor.categorical.gap import Gap, belief_gap
from auditor.categorical.law import history_size
from auditor.categorical.marginal import marginal_gap, marginal_test
from auditor.categorical.measures import Expected, Frame, Sums, expected, quantities
from auditor.categorical.neighbours import MOST_COPIES, drawn_between
from auditor.categorical.pooling import CoalitionLooks
from auditor.categorical.records import Cell, cell_records, gain_record
from auditor.categorical.scheme import Copies, UniformScheme, categories_of
from auditor.data.categorical import CategoricalTable
from auditor.data.table import Table
from auditor.errors import AuditorError, NotApplicable
from auditor.expectation import ReleaseEvidence
from auditor.knowledge import Estimated, Knowledge, KnownRecords, Perfect
from auditor.records import CellContext, scheme_record
from auditor.results import Measurement
from auditor.scenario.coalitions import Coalition, expand_all
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scheme import Key
from auditor.streams import stream

Array = NDArray[np.float64]

BLOCK_NUMBERS = 2**18
"""Numbers of a block of posteriors: they stay in the cache while they are measured."""
MOST_OUTCOMES = 2**18
"""Outcomes times values up to which closed forms are summed over every outcome."""
KEEP_BYTES = 2**29


def audit_uniform(
    scenario: Scenario, point: dict[str, Any], table: Table, use: SchemeUse, replicate: int, pooling: bool
) -> ReleaseAudit:
    """Audit one uniform scheme at one sweep point in one replicate; arguments as for ``audit_release``."""
    levels = release_levels(use, scenario)
    data = categories_of(table)
    context = CellContext(point, use.id, levels, replicate, data.names, np.ones(len(data.names)))
    evidence = ReleaseEvidence(point, use.id, use.name, levels, replicate, data.rows)
    try:
        session = UniformSession(scenario, data, use, context, Key(scenario.seed, use.id, replicate))
        measurements = session.release_records()
    except Exception as error:
        reason = failure_reason(error)
        records = [context.empty(a.id, k.label, None, "failed", reason) for k in scenario.knowledge for a in scenario.attacks]
        return ReleaseAudit(records, [], evidence)
    measurements += session.run()
    evidence.facts["marginal"] = session.marginal()
    if session.law.multilevel and len(levels) <= MOST_COPIES:
        evidence.facts["drawn"] = drawn_between(session.data.codes, session.data.size, levels, session.copy)
    if pooling:
        evidence.pooling.update(session.pooling())
    return ReleaseAudit(measurements, [], evidence)


@dataclass
class Measured:
    """What one attack yields on one coalition."""

    sums: Sums
    closed: dict[str, Expected] | None
    gap: Gap | None = None


@dataclass
class UniformSession:
    """One uniform release under audit."""

    scenario: Scenario
    data: CategoricalTable
    use: SchemeUse
    context: CellContext
    key: Key
    seconds: float = 0.0
    _held: dict[int, Codes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        scheme = make_scheme(self.use, self.scenario.base)
        assert isinstance(scheme, UniformScheme)
        self.scheme = scheme
        levels, n = self.context.levels, self.data.rows
        self.law = scheme.channel(levels, self.data.size)
        self.coalitions = expand_all(self.scenario.coalitions, len(levels), self.scenario.seed)
        members = {copy for coalition in self.coalitions for copy in coalition}
        self.needed = sorted({(copy,) for copy in members} | set(self.coalitions), key=lambda c: (len(c), c))
        self.copies = self._request(scheme, levels)
        self.groups = np.arange(n) * min(JACKKNIFE_GROUPS, n) // n

    def _request(self, scheme: UniformScheme, levels: tuple[float, ...]) -> Copies:
        """Ask for every copy in order, those that were out already first; time the rest."""
        copies = scheme.copies(self.data.codes, self.data.size, self.key)
        share = self.use.already_out
        early = min(len(levels) - 1, int(share) if isinstance(share, int) else math.floor(share * len(levels)))
        for level in levels[:early]:
            copies.skip(level)
        timed = self.scenario.measure("seconds") is not None
        if timed and early:
            copies.warm(levels[early:])  # set-up belongs to the first request, not to one more
        start = time.perf_counter()
        for level in levels[early:]:
            copies.ask(level) if timed else copies.skip(level)
        self.seconds = time.perf_counter() - start
        return copies

    def copy(self, number: int) -> Codes:
        """Return a copy, shape (n,), kept while there is room."""
        if number in self._held:
            return self._held[number]
        values = self.copies.copy(number)
        if (len(self._held) + 1) * values.nbytes <= KEEP_BYTES:
            self._held[number] = values
        return values

    # -- figures of the release itself ------------------------------------------------------------------------------------

    def release_records(self) -> list[Measurement]:
        """Return time, history size, and the differential privacy of every coalition."""
        records = []
        if self.scenario.measure("seconds"):
            records.append(scheme_record(self.context, "seconds", self.seconds))
        if self.scenario.measure("history-size") and self.law.multilevel:
            records.append(self._history())
        if self.scenario.measure("marginal-gap"):
            records += [self._marginal_gap(number) for number in self._singles]
        for coalition in self.coalitions:
            epsilon = self.law.of(coalition).epsilon()
            if math.isfinite(epsilon):
                cell = Cell(self.context, None, None, coalition)
                cell.add("epsilon", epsilon, theory=epsilon)
                records += cell.records
        return records

    def _history(self) -> Measurement:
        """Elements of a tuple's compressed history, and Lemma 2's exact mean."""
        sizes = self.copies.history_sizes()
        cell = Cell(self.context, None, None, tuple(range(1, len(self.context.levels) + 1)))
        error = float(sizes.std() / math.sqrt(sizes.size))
        cell.add("history_size", float(sizes.mean()), error, history_size(self.law.levels, self.law.size), "jackknife")
        return cell.records[0]

    def _marginal_gap(self, number: int) -> Measurement:
        cell, level = Cell(self.context, None, None, (number,)), self.context.levels[number - 1]
        gap, error = marginal_gap(self.data.codes, self.copy(number), level, self.data.size)
        cell.add("marginal_gap", gap, error, 0.0, "closed-form")
        return cell.records[0]

    @property
    def _singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def marginal(self) -> list[tuple[int, float, float, int]]:
        """Return for every copy that some coalition holds: number, level, p-value of the chi-square test, degrees of freedom."""
        tests = []
        for number in self._singles:
            level = self.context.levels[number - 1]
            tests.append((number, level, *marginal_test(self.data.codes, self.copy(number), level, self.data.size)))
        return tests

    def pooling(self) -> dict[Coalition, Any]:
        """Return the evidence on what pooling buys each coalition of two copies or more."""
        looks = CoalitionLooks(self.data.codes, self.data.size, self.copy, self.context.levels)
        return {c: looks.evidence(c, self.law.of(c).best_is_sufficient()) for c in self.needed if len(c) > 1}

    # -- attacks --------------------------------------------------------------------------------------------------------------

    def run(self) -> list[Measurement]:
        """Return the records of every cell; an attack that fails is recorded, and does not stop the others."""
        measurements: list[Measurement] = []
        for knowledge in self.scenario.knowledge:
            for use in self.scenario.attacks:
                try:
                    measurements += self._attack(use, knowledge)
                except NotApplicable as reason:
                    measurements += self._empty(use, knowledge, "not-applicable", str(reason))
                except Exception as error:
                    measurements += self._empty(use, knowledge, "failed", failure_reason(error))
        return measurements

    def _empty(self, use: PluginUse, knowledge: Knowledge, status: str, reason: str) -> list[Measurement]:
        return [self.context.empty(use.id, knowledge.label, coalition, status, reason) for coalition in self.coalitions]

    def _attack(self, use: PluginUse, knowledge: Knowledge) -> list[Measurement]:
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        attack.check(self.scheme.family, knowledge)
        if not isinstance(attack, CategoricalAttack):
            raise NotApplicable(f"{use.name} does not attack categories")
        view = self.view(knowledge)
        predicates = attack.predicates(self.data.labels)
        found: dict[Coalition, Measured] = {}
        wants_gap = self.scenario.measure("belief-gap") is not None and not isinstance(knowledge, KnownRecords)
        hidden = self._hidden_rows(knowledge)
        for coalition in self.needed:
            inference = attack.infer(view.coalition(coalition))
            found[coalition] = self._measure(inference, coalition, predicates, hidden)
            if wants_gap and len(coalition) > 1:
                best = self.law.of(coalition).best - 1
                alone = attack.infer(view.coalition((coalition[best],)))
                copies = [self.copy(number) for number in coalition]
                found[coalition].gap = belief_gap(self.data.codes, copies, best, inference, alone)
        return [record for coalition in self.coalitions for record in self._records(use.id, knowledge, coalition, found)]

    def _records(self, attack: str, knowledge: Knowledge, coalition: Coalition, found: Mapping[Coalition, Measured]) -> list[Measurement]:
        cell, measured = Cell(self.context, attack, knowledge.label, coalition), found[coalition]
        scores, prior = self.data.scores, self.data.prior
        variance = None if scores is None else float(prior @ (scores - prior @ scores) ** 2)
        odds = self.law.of(coalition).odds() if isinstance(knowledge, Perfect) else None
        cell_records(cell, measured.sums, measured.closed, prior, variance, odds)
        best = min(coalition, key=lambda copy: found[(copy,)].sums.groups.sum())
        if measured.gap is not None:
            cell.add("belief_gap", measured.gap.measured, measured.gap.std_error, measured.gap.computed, "jackknife")
        gain_record(cell, measured.sums, found[(best,)].sums, _gain_in_theory(found, coalition))
        return cell.records

    def view(self, knowledge: Knowledge) -> CategoricalView:
        """Return the view of an adversary that holds every copy that some coalition does."""
        members = tuple(self._singles)
        sample, pairs = None, None
        if isinstance(knowledge, Estimated):
            rows = self._rows("estimated", knowledge.rows)
            sample = tuple(np.bincount(self.copy(k)[rows], minlength=self.data.size).astype(np.float64) for k in members)
        if isinstance(knowledge, KnownRecords):
            rows = self._rows("known-records", knowledge.count)
            pairs = KnownPairs(self.data.codes[rows], tuple(self.copy(k)[rows] for k in members))
        prior = self.data.prior if isinstance(knowledge, Perfect) else None
        return CategoricalView(members, self.law.of(members), knowledge, self.data.labels, prior, sample, pairs)

    def _rows(self, what: str, count: int) -> NDArray[np.intp]:
        n = self.data.rows
        if count > n:
            raise AuditorError(f"knowledge of {count} rows needs that many; the table has {n}")
        return np.sort(stream(self.scenario.seed, what, self.key.replicate).permutation(n)[:count])

    def _hidden_rows(self, knowledge: Knowledge) -> NDArray[np.intp] | None:
        """Return the records to be attacked: all, or those that are not known in clear."""
        if not isinstance(knowledge, KnownRecords):
            return None
        known = self._rows("known-records", knowledge.count)
        if known.size == self.data.rows:
            raise NotApplicable("every record is known in clear: none is left to attack")
        return np.delete(np.arange(self.data.rows), known)

    # -- measuring -------------------------------------------------------------------------------------------------------------

    def _measure(
        self, inference: Inference, coalition: Coalition, predicates: Mapping[str, Any], hidden: NDArray[np.intp] | None
    ) -> Measured:
        rho = self.scenario.measure("rho-breach")
        bounds = None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"]))
        exact = inference.fixed and np.array_equal(inference.prior, self.data.prior)
        frame = Frame(inference.prior, exact, self.data.scores, bounds, predicates)
        sums = Sums(self.data.size, int(self.groups[-1]) + 1)
        copies = [self.copy(number) for number in coalition]
        x, groups = self.data.codes, self.groups
        if hidden is not None:
            copies, x, groups = [copy[hidden] for copy in copies], x[hidden], groups[hidden]
        closed = None
        outcomes = self.data.size ** len(copies)
        if outcomes * 8 <= x.size and outcomes * self.data.size <= MOST_OUTCOMES:
            self._by_outcome(inference, frame, sums, copies, x, groups)
        else:
            self._by_record(inference, frame, sums, copies, x, groups)
        if inference.fixed and hidden is None:
            closed = self._closed(inference, frame, coalition)
        return Measured(sums, closed)

    def _by_record(
        self, inference: Inference, frame: Frame, sums: Sums, copies: list[Codes], x: Codes, groups: NDArray[np.intp]
    ) -> None:
        rows = max(64, BLOCK_NUMBERS // self.data.size)
        for a in range(0, x.size, rows):
            part = [copy[a : a + rows] for copy in copies]
            found = quantities(inference.checked(part), frame)
            sums.add(found, np.arange(part[0].size), x[a : a + rows].astype(np.intp), groups[a : a + rows])

    def _by_outcome(
        self, inference: Inference, frame: Frame, sums: Sums, copies: list[Codes], x: Codes, groups: NDArray[np.intp]
    ) -> None:
        """A posterior for every outcome there can be, and a look-up for every record."""
        s, k = self.data.size, len(copies)
        place = np.ravel_multi_index(tuple(copy.astype(np.intp) for copy in copies), (s,) * k)
        met, inverse = np.unique(place, return_inverse=True)
        table = [np.asarray(part, dtype=copies[0].dtype) for part in np.unravel_index(met, (s,) * k)]
        found, G = quantities(inference.checked(table), frame), sums.groups.size
        if met.size * s * G * 4 > x.size:
            sums.add(found, inverse, x.astype(np.intp), groups)
            return
        alike = np.bincount((inverse * s + x) * G + groups, minlength=met.size * s * G)  # records of one outcome, value and group
        kinds = np.flatnonzero(alike)
        sums.add(found, kinds // (s * G), kinds // G % s, kinds % G, alike[kinds].astype(np.float64))

    def _closed(self, inference: Inference, frame: Frame, coalition: Coalition) -> dict[str, Expected] | None:
        """Sum over every outcome the law allows; of multilevel copies the best stands for all (``best_is_sufficient``)."""
        law = self.law.of(coalition)
        place = law.best - 1
        members = (place,) if law.multilevel else tuple(range(len(coalition)))
        if law.multilevel and not law.best_is_sufficient():
            return None
        s, k = self.data.size, len(members)
        if s ** (k + 1) > MOST_OUTCOMES:
            return None
        given = law.of([member + 1 for member in members]).given_original().reshape(s, -1)
        possible = np.flatnonzero(given.any(axis=0))
        outcome = np.unravel_index(possible, (s,) * k)
        if law.multilevel:  # every copy shows what the best one does: as likely as any other outcome with the same posterior
            outcome = outcome * len(coalition)
        table = [np.asarray(part, dtype=self.data.codes.dtype) for part in outcome]
        found = quantities(inference.checked(table), frame)
        return expected(given[:, possible], self.data.prior, found, self.data.rows)


def _gain_in_theory(found: Mapping[Coalition, Measured], coalition: Coalition) -> float | None:
    forms = [found[c].closed for c in [coalition, *((copy,) for copy in coalition)]]
    errors = [1.0 - form["reconstruction_probability"].value for form in forms if form is not None]
    if len(errors) < len(forms):
        return None
    alone = min(errors[1:])
    return 0.0 if alone <= 0 else 1.0 - errors[0] / alone
