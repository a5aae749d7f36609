"""Audit one uniform release: have it made, and let every categorical attack infer from every coalition's copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.adversary.attack import Attack
from auditor.adversary.categorical_attack import (
    CategoricalAttack,
    CategoricalView,
    Inference,
    probabilities,
)
from auditor.adversary.given import NOTHING, Given, Prior, SampleCounts
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, Perfect, PublishedRules
from auditor.adversary.published_rules import cells_of, published_prior
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest, parts_in_steps
from auditor.audit.categorical.belief_gap import Gap, GapJob, belief_gap
from auditor.audit.categorical.cell_records import (
    FILES,
    ONE_RELEASE,
    Bar,
    Bars,
    Cell,
    belief_record,
    cell_records,
    closed_bars,
    gain_record,
    variance,
)
from auditor.audit.categorical.first_pass import CountJob
from auditor.audit.categorical.halves import Half, halves_of, jackknifed, put_together
from auditor.audit.categorical.other_rows import other_row_records
from auditor.audit.categorical.posterior_measures import Frame, Sums, error_without_copies
from auditor.audit.categorical.posterior_pass import (
    Fitted,
    Found,
    Measured,
    MeasureJob,
    Try,
    closed_forms,
    gain_in_theory,
)
from auditor.audit.categorical.redraws import Fit, bars_of
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.release_records import (
    marginal_tests,
    pooling_evidence,
    release_records,
)
from auditor.audit.categorical.release_redraws import serial_bars
from auditor.audit.counts.outcome_counts import MOST_CELLS, batches, possible_cells
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.law_tests.categorical import (
    count_tests,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.measures.known_alone import METRIC
from auditor.audit.numeric.gather import draws_of, key_of
from auditor.data.columns.categorical_table import BLOCK_WIDTH, split
from auditor.data.shown_columns import ShownColumn
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.errors import NotApplicable, PluginError
from auditor.numerics.random_streams import stream
from auditor.process.containment import contained
from auditor.results.evidence import LawTest, ReleaseEvidence
from auditor.results.records import Distribution, Measurement
from auditor.scenario.model import AttackUse
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import categories_of
from auditor.schemes.replacement.draws import MOST_COPIES, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw
from auditor.types import Array, Coalition


class CategoricalEngine:
    """Audits copies of categories: a few passes over the table, none of which keeps a record."""

    divides_held_tables = False

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return what every record of a release shares."""
        names = categories_of(request.table).names
        return CellContext(
            sweep=request.point,
            scheme=request.use.id,
            levels=levels,
            replicate=request.replicate,
            attributes=names,
            variances=np.ones(len(names)),
            copies=copies,
        )

    def open(self, request: ReleaseRequest) -> UniformRelease:
        """Return the release, its copies not drawn yet."""
        data, use, context = (
            categories_of(request.table),
            request.use,
            self.context(request, request.levels, request.copies),
        )
        seed = noise_seed(
            request.scenario.data.source, request.scenario.seed, request.table.fingerprint()
        )
        share = partial(parts_in_steps, request, self.open, BLOCK_WIDTH)
        return UniformRelease(
            request.scenario,
            data,
            use,
            context,
            Key(seed, use.id, request.replicate),
            share if request.share is not None and data.streamed else None,
            request.table,
        )

    def audit(
        self,
        request: ReleaseRequest,
        context: CellContext,
        coalitions: list[Coalition],
        evidence: ReleaseEvidence,
    ) -> tuple[list[Measurement], list[Distribution]]:
        """Have the copies counted, and let every attack infer from every coalition's."""
        release = self.open(request)
        session = AttackSession(release)
        measurements = (
            release_records(release, session.counted)
            + session.run()
            + session.by_other_rows()
            + numbers_beside(release, request.table, coalitions)
        )
        evidence.law.extend(session.law_tests())
        evidence.facts["marginal"] = marginal_tests(release, session.counted)
        if session.between:
            evidence.facts["drawn"] = drawn_between(
                release.law, release.data.prior, session.between, session.counted.between
            )
        if request.pooling:
            evidence.pooling.update(pooling_evidence(release))
        return measurements, []


def numbers_beside(
    release: UniformRelease, table: Table, coalitions: Sequence[Coalition]
) -> list[Measurement]:
    """Return what the files of categorical copies show of columns of numbers in the audited table."""
    scheme = release.scheme
    perfect = any(isinstance(knowledge, Perfect) for knowledge in release.scenario.knowledge)
    if scheme.makes_copies or not perfect or not table.width or table.streamed:
        return []
    copies, X = [codes.astype(np.uint32) for codes in scheme.handed_in(table)], table.values
    cells = np.zeros((len(copies), *X.shape))
    beside = list[ShownColumn]()
    for column in scheme.shown(table):
        if column.name in table.attributes and column.values.dtype.kind == "f":
            cells[column.copy - 1, :, table.attributes.index(column.name)] = column.values
        else:
            beside.append(column)
    for number, codes in enumerate(copies, start=1):
        parts = zip(release.data.names, split(release.data, codes), strict=True)
        beside += [ShownColumn(number, name, part.astype(np.intp)) for name, part in parts]
    context = release.context.of_columns(table.attributes, X.var(axis=0))
    steps = table.resolution.steps
    return fitted_records(context, X, list(cells), coalitions, None, steps, beside)


class AttackSession:
    """Every attack, with every state of knowledge, on one release.

    Attributes
    ----------
    stated : bool
        Whether the law states each copy's transition from the copy before or from the original.
    scored : tuple of int
        Copies whose coins are scored.
    counted : Counted
        What one pass over the release counted.
    between : list of Between
        Copies between two others whose coins were counted.
    """

    def __init__(self, release: UniformRelease) -> None:
        self.release, scenario = release, release.scenario
        levels = release.law.levels
        self.halves = halves_of(release)
        self.between = (
            between(levels) if release.law.multilevel and len(levels) <= MOST_COPIES else []
        )
        self.draws = draws_of(
            scenario.knowledge, release.data.rows, scenario.seed, release.key.replicate
        )
        history = release.law.multilevel and scenario.measure("history-size") is not None
        self._fits: dict[Try, Fit] = {}
        singles = tuple(release.singles)
        self.stated = release.law.by_retention or isinstance(release.law, MatrixLaw)
        # Replicates are made alike: one is scored.
        self.scored = (
            tuple(scored_copies(singles, release.data.rows))
            if self.stated and release.key.replicate == 1
            else ()
        )
        job = CountJob(
            release.data.size,
            singles,
            tuple(self.between),
            self.draws,
            history,
            sources(release.law.of(singles), singles) if self.stated else (),
            self.scored,
            scored_rows(len(self.scored), release.data.rows),
        )
        self.counted = release.go_through(job)

    def law_tests(self) -> list[LawTest]:
        """Return the tests of the stated law; none where no law is stated."""
        release, data, singles = self.release, self.release.data, self.release.singles
        if not self.stated or not singles:
            return []
        tests = count_tests(
            release.law.of(singles), singles, partial(self.counted.dense, size=data.size), data.rows
        )
        if self.scored:
            columns = [np.concatenate(parts) for parts in zip(*self.counted.rows, strict=True)]
            rng = stream(
                release.key.audit_seed, release.key.scheme, release.key.replicate, "scores"
            )
            values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
            originals = dict(zip(data.names, values, strict=True))
            tests += score_tests(release.law.of(self.scored), columns, self.scored, originals, rng)
        return tests

    def run(self) -> list[Measurement]:
        """Return the records of every cell; an attack that fails is recorded, and does not stop the others."""
        tries = [
            (use, knowledge)
            for knowledge in self.release.scenario.knowledge
            for use in self.release.scenario.attacks
        ]
        parts: dict[Try, dict[Try, Fitted]] = {}
        failed: dict[Try, tuple[str, str]] = {}
        for use, knowledge in tries:
            with noted(failed, (use.id, knowledge.label)):
                parts[use.id, knowledge.label] = self._parts(use, knowledge)
        fitted = {name: next(iter(each.values())) for name, each in parts.items()}
        measured = self._measured(
            {key: fit for each in parts.values() for key, fit in each.items()}
        )
        found = put_together(measured, {name: list(each) for name, each in parts.items()})
        failed.update(found.failed)
        by_outcome = {
            name: fit
            for name, fit in fitted.items()
            if name not in failed and fit.hidden is None and not fit.serial
        }
        gaps = self._gaps(by_outcome, failed)
        measurements = []
        for use, knowledge in tries:
            name, records = (use.id, knowledge.label), list[Measurement]()
            if name not in failed:
                with noted(failed, name):
                    records = self._records(
                        use, knowledge, fitted[name], found.sums[name], gaps.get(name, {})
                    )
            measurements += (
                records if name not in failed else self._empty(use, knowledge, *failed[name])
            )
        return measurements

    def by_other_rows(self) -> list[Measurement]:
        """Return what other rows of copies without a law tell of a record, to whoever knows how they were made."""
        perfect = next(
            (
                knowledge
                for knowledge in self.release.scenario.knowledge
                if isinstance(knowledge, Perfect)
            ),
            None,
        )
        return (
            []
            if perfect is None
            else other_row_records(self.release, self.halves, self._parts_of(perfect))
        )

    def _measured(self, fitted: Mapping[Try, Fitted]) -> Found:
        """Return what all attacks yield; what stops the pass itself stops them all."""
        if not fitted:
            return Found()
        clear = {key: draw for key, draw in self.draws.items() if draw.clear} | {
            half.name: half.rows for half in self.halves
        }
        data, groups = self.release.data, self.release.groups
        with contained() as failure:
            return self.release.go_through(
                MeasureJob(data.size, groups, fitted, clear, self.release.estimated)
            )
        return Found(failed={name: ("failed", failure.reason) for name in fitted})

    def _empty(
        self, use: AttackUse, knowledge: Knowledge, status: str, reason: str
    ) -> list[Measurement]:
        return [
            self.release.context.empty(use.id, knowledge.label, coalition, status, reason)
            for coalition in self._tried(use)
        ]

    def _tried(self, use: AttackUse) -> list[Coalition]:
        """Return the coalitions that an attack is tried on."""
        return [
            coalition
            for coalition in self.release.coalitions
            if use.tries(coalition, self.release.context.copies)
        ]

    def _parts(self, use: AttackUse, knowledge: Knowledge) -> dict[Try, Fitted]:
        """Return an attack fitted once, or with what each half of the records teaches of a law that nobody states."""
        name = use.id, knowledge.label
        # which are what that adversary learns from
        if not self.halves or isinstance(knowledge, KnownRecords):
            return {name: self._fitted(use, knowledge)}
        return {
            (use.id, f"{knowledge.label}, {half.name}"): self._fitted(use, knowledge, half)
            for half in self.halves
        }

    def _fitted(self, use: AttackUse, knowledge: Knowledge, half: Half | None = None) -> Fitted:
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        attack.check(self.release.scheme.family, knowledge)
        if not isinstance(attack, CategoricalAttack):
            raise NotApplicable(f"{use.name} does not attack categories")
        view, data, rho = (
            self.view(knowledge),
            self.release.data,
            self.release.scenario.measure("rho-breach"),
        )
        view = view if half is None else replace(view, law=half.law)
        bounds = None if rho is None else (float(rho.options["rho1"]), float(rho.options["rho2"]))
        predicates = attack.predicates(data.labels)
        known = cells_of(knowledge.in_clear, data.attributes) if knowledge.in_clear else None
        parts = self._parts_of(knowledge)

        def fit(seen: CategoricalView, coalition: Coalition) -> tuple[Inference, Frame]:
            inference = attack.infer(seen.coalition(coalition))
            check_inferences([inference], predicates, data.size)
            exact = inference.fixed and np.array_equal(inference.prior, data.prior)
            return inference, Frame(
                inference.prior, exact, data.scores, bounds, predicates, known, parts
            )

        needed, M = self.release.needed, self.release.context.copies
        # each coalition takes passes of its own: those that nobody asks about are left out
        if attack.serial:
            needed = [
                coalition for coalition in needed if len(coalition) == 1 or use.tries(coalition, M)
            ]
        found = {coalition: fit(view, coalition) for coalition in needed}
        hidden = key_of(knowledge) if isinstance(knowledge, KnownRecords) else half and half.name
        self._fits[use.id, knowledge.label] = fit
        return Fitted(
            {c: inference for c, (inference, _) in found.items()},
            {c: frame for c, (_, frame) in found.items()},
            hidden,
        )

    def _gaps(
        self, fitted: Mapping[Try, Fitted], failed: dict[Try, tuple[str, str]]
    ) -> dict[Try, dict[Coalition, Gap]]:
        """Return the gap between every coalition's belief and its best copy's, by attack and knowledge, if it is asked for."""
        gaps: dict[Try, dict[Coalition, Gap]] = {name: {} for name in fitted}
        if (
            self.release.scenario.measure("belief-gap") is None
            or not fitted
            or self.release.estimated
        ):
            return {}
        n, s = self.release.data.rows, self.release.data.size
        several = [
            (c, min(possible_cells(n, s, len(c)), MOST_CELLS))
            for c in self.release.needed
            if len(c) > 1
        ]
        for batch in batches(several):
            for coalition, outcomes in self.release.go_through(
                GapJob(n, s, tuple(batch))
            ).outcomes.items():
                law = self.release.law.of(coalition)
                for name, fit in fitted.items():
                    if name not in failed:
                        with noted(failed, name):
                            alone = fit.inferences[(coalition[law.best - 1],)]
                            gaps[name][coalition] = belief_gap(
                                outcomes, law, fit.inferences[coalition], alone
                            )
        return gaps

    def _records(
        self,
        use: AttackUse,
        knowledge: Knowledge,
        fitted: Fitted,
        sums: Mapping[Coalition, Sums],
        gaps: Mapping[Coalition, Gap],
    ) -> list[Measurement]:
        found, bars = {}, None
        for coalition, inference in fitted.inferences.items():
            closed = None
            if inference.fixed and fitted.hidden is None and not fitted.serial:
                closed = closed_forms(
                    self.release.law.of(coalition),
                    self.release.data,
                    inference,
                    fitted.frames[coalition],
                )
            if closed is None and bars is None:
                name = use.id, knowledge.label
                if self.release.estimated:
                    bars = jackknifed(sums) if alike(knowledge) else {}
                else:
                    bars = (
                        serial_bars(self.release, name, fitted, sums)
                        if fitted.serial
                        else self._bars(use, knowledge)
                    )
            mine = closed_bars(closed) if closed is not None else (bars or {}).get(coalition, {})
            found[coalition] = Measured(sums[coalition], closed, mine, gaps.get(coalition))
        cells = [
            record
            for coalition in self._tried(use)
            for record in self._cell(use.id, knowledge, coalition, found)
        ]
        return [*cells, *self._known_alone(use.id, knowledge, next(iter(fitted.frames.values())))]

    def _known_alone(self, attack: str, knowledge: Knowledge, frame: Frame) -> list[Measurement]:
        """Return what an adversary who was given attributes leaves of the others without any copy."""
        data, context = self.release.data, self.release.context
        unknown = variance(self._unknown(knowledge), data.scores)
        if frame.known is None or unknown <= 0:
            return []
        share = error_without_copies(data.prior, frame) / unknown
        return [
            context.record(
                METRIC, context.everybody, share, attack=attack, knowledge=knowledge.label
            )
        ]

    def _parts_of(self, knowledge: Knowledge) -> dict[str, NDArray[np.intp]]:
        """Return which value of each attribute the domain's values have; none where it is one, or some are known of every record."""
        attributes = self.release.data.attributes
        if len(attributes) == 1 or knowledge.in_clear:
            return {}
        return {attribute.name: cells_of([attribute.name], attributes) for attribute in attributes}

    def _unknown(self, knowledge: Knowledge) -> Array:
        """Return the shares of what an adversary was not given: of the other attributes' combinations, where it was given some."""
        attributes = self.release.data.attributes
        hidden = [
            attribute.name for attribute in attributes if attribute.name not in knowledge.in_clear
        ]
        prior = self.release.data.prior
        return (
            prior
            if not knowledge.in_clear
            else np.asarray(np.bincount(cells_of(hidden, attributes), prior), dtype=np.float64)
        )

    def _bars(self, use: AttackUse, knowledge: Knowledge) -> dict[Coalition, Bars]:
        """Return error bars from redraws; none from an attack that infers from what it was given, and not from another draw of it."""
        name, key = (use.id, knowledge.label), self.release.key
        rng = stream(key.audit_seed, key.scheme, key.replicate, "redraws", *name)
        with contained():
            return bars_of(
                self.view(knowledge), self.release.data, self.release.needed, self._fits[name], rng
            )
        return {}

    def _cell(
        self,
        attack: str,
        knowledge: Knowledge,
        coalition: Coalition,
        found: Mapping[Coalition, Measured],
    ) -> list[Measurement]:
        why = ONE_RELEASE if self.release.scheme.makes_copies else FILES
        cell, measured = (
            Cell(self.release.context, attack, knowledge.label, coalition, why),
            found[coalition],
        )
        data = self.release.data
        stated = isinstance(knowledge, Perfect) and self.release.law.by_retention
        odds = self.release.law.of(coalition).odds_by_value() if stated else None
        shares = {
            name: np.asarray(np.bincount(part, data.prior), dtype=np.float64)
            for name, part in self._parts_of(knowledge).items()
        }
        cell_records(
            cell,
            measured.sums,
            measured.closed,
            measured.bars,
            self._unknown(knowledge),
            data.scores,
            odds,
            shares,
        )
        belief_record(cell, measured.sums, self._unknown(knowledge))
        best = min(coalition, key=lambda copy: found[(copy,)].sums.groups.sum())
        if measured.gap is not None:
            if measured.gap.measured is not None:
                bar = (
                    None
                    if measured.gap.std_error is None
                    else Bar.normal(measured.gap.std_error, "jackknife")
                )
                cell.add(
                    "belief_gap", measured.gap.measured, bar, measured.gap.computed, varies=True
                )
            cell.add("largest_belief_gap", measured.gap.largest, theory=measured.gap.largest)
        # the gain's own jackknife
        own = measured.closed is not None or (self.release.estimated and alike(knowledge))
        gain_record(
            cell,
            measured.sums,
            found[(best,)].sums,
            gain_in_theory(found, coalition),
            None if own else measured.bars,
        )
        return cell.records

    def view(self, knowledge: Knowledge) -> CategoricalView:
        """Return the view of an adversary that holds every copy that some coalition does."""
        members, data = tuple(self.release.singles), self.release.data
        given: Given = Prior(data.prior) if isinstance(knowledge, Perfect) else NOTHING
        if isinstance(knowledge, PublishedRules):
            given = Prior(published_prior(knowledge, data.attributes, data.prior))
        if isinstance(knowledge, Estimated):
            given = SampleCounts(tuple(self.counted.samples[key_of(knowledge)].astype(np.float64)))
        if isinstance(knowledge, KnownRecords):
            if knowledge.count == data.rows:
                raise NotApplicable("every record is known in clear: none is left to attack")
            given = self.counted.pairs_of(key_of(knowledge))
        return CategoricalView(members, self.release.law.of(members), knowledge, data.labels, given)


def alike(knowledge: Knowledge) -> bool:
    """Whether every adversary of this knowledge is given the same: else one release does not tell how far its figures vary."""
    return not isinstance(knowledge, Estimated | KnownRecords)


def check_inferences(
    inferences: Iterable[Inference], predicates: Mapping[str, Any], size: int
) -> None:
    """Refuse what is no inference over the domain; nobody's word is taken.

    Raises
    ------
    PluginError
        Saying what was expected.
    """
    for inference in inferences:
        if not isinstance(inference, Inference) or not isinstance(inference.fixed, bool):
            raise PluginError("the attack returned no Inference")
        probabilities(inference.prior, (size,), "a prior")
    for holds in predicates.values():
        if np.shape(holds) != (size,) or np.asarray(holds).dtype != np.bool_:
            raise PluginError("a statement about values must be a mask over the domain")


@contextmanager
def noted(failed: dict[Try, tuple[str, str]], name: Try) -> Iterator[None]:
    """Note why an attack makes no sense or failed, rather than stop the others."""
    with contained() as failure:
        yield
    if failure.error is not None:
        failed[name] = (failure.status, failure.reason)
