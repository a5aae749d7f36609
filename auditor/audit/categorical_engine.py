"""Audit of releases of categories: a few passes over the table, with sums by outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.outcome import Attempt
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.base.session import Session, cell_context, cells_of
from auditor.audit.categorical.attack_records import AttackRecords
from auditor.audit.categorical.belief_gap import Gap, GapJob, belief_gap
from auditor.audit.categorical.error_bars import Fit
from auditor.audit.categorical.first_pass import CountJob
from auditor.audit.categorical.fitting import fit_of, fitted_parts, parts_of, view_of
from auditor.audit.categorical.other_rows import other_row_records
from auditor.audit.categorical.posterior_pass import Fitted, Found, MeasureJob, Try
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.release_records import (
    marginal_tests,
    pooling_evidence,
    release_records,
)
from auditor.audit.counts.outcome_counts import MOST_CELLS, batches, possible_cells
from auditor.audit.law_tests.categorical import (
    count_tests,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.known_rows import draws_of
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.errors import AuditorError, NotApplicable
from auditor.numerics.random_streams import stream
from auditor.process.containment import contained
from auditor.results.evidence import LawTest, ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement
from auditor.scenario.model import AttackUse
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import categories_of
from auditor.schemes.replacement.matrix_law import MatrixLaw
from auditor.schemes.replacement.neighbour_coins import MOST_COPIES, between, drawn_between
from auditor.types import Coalition


class CategoricalEngine:
    """Engine for copies of categories."""

    hands_out_passes = True

    def block_width(self, table: Table) -> int:
        """Return the width that blocks of codes are divided by."""
        return BLOCK_WIDTH

    def ahead(self, request: ReleaseRequest) -> None:
        """Return nothing: each pass depends on the one before."""

    def attempts(self, request: ReleaseRequest) -> Mapping[int, Callable[[], Attempt]]:
        """Return none: one pass serves all attacks."""
        return {}

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return the common part of the records of a release."""
        names = categories_of(request.table).names
        return cell_context(request, levels, copies, names, np.ones(len(names)))

    def open(self, request: ReleaseRequest) -> UniformRelease:
        """Return the release; no copy is drawn."""
        here, table = request.scenario, request.table
        seed = noise_seed(here.data.source, here.seed, table.fingerprint())
        return UniformRelease(
            here,
            categories_of(table),
            request.use,
            self.context(request, request.levels, request.copies),
            Key(seed, request.use.id, request.replicate),
            request.share,
            table,
        )

    def session(
        self, request: ReleaseRequest, context: CellContext, coalitions: list[Coalition]
    ) -> CategoricalSession:
        """Return the open release, after the first pass."""
        return CategoricalSession(self.open(request), request.pooling)


class CategoricalSession(Session):
    """One release of categories under audit.

    Attributes
    ----------
    stated : bool
        Whether the law states each copy's transitions, from another copy or the original.
    scored : tuple of int
        Copies whose random draws are tested by scores.
    counted : Counted
    between : list of Between
        Copies between two others whose draws were counted.
    """

    by_coalition = False

    def __init__(self, release: UniformRelease, pooling: bool) -> None:
        self.release, self.pooling = release, pooling
        self.scenario, self.context = release.scenario, release.context
        self.coalitions, self.halves = release.coalitions, release.halves()
        law, data, singles = release.law, release.data, tuple(release.singles)
        replicate = release.key.replicate
        few = law.multilevel and len(law.levels) <= MOST_COPIES
        self.between = between(law.levels) if few else []
        self.draws = draws_of(self.scenario.knowledge, data.rows, self.scenario.seed, replicate)
        self.stated = law.by_retention or isinstance(law, MatrixLaw)
        scored = scored_copies(singles, data.rows) if self.stated and replicate == 1 else ()
        self.scored = tuple(scored)
        self.counted = release.go_through(
            CountJob(
                data.size,
                singles,
                tuple(self.between),
                self.draws,
                law.multilevel and self.scenario.measure("history-size") is not None,
                sources(law.of(singles), singles) if self.stated else (),
                self.scored,
                scored_rows(len(self.scored), data.rows),
            )
        )
        self._parts: dict[Try, dict[Try, Fitted]] = {}
        self._fits: dict[Try, Fit] = {}
        self._failed: dict[Try, tuple[str, str]] = {}
        self._sums = Found()
        self._gaps: dict[Try, dict[Coalition, Gap]] = {}

    def release_records(self) -> list[Measurement]:
        """Return the figures of the release itself; then attack it, in one pass."""
        found = release_records(self.release, self.counted)
        for use, knowledge in cells_of(self.scenario):
            name = use.id, knowledge.label
            with noted(self._failed, name):
                view = view_of(self.release, self.counted, knowledge)
                self._fits[name] = fit = fit_of(self.release, use, knowledge)
                self._parts[name] = fitted_parts(self.release, view, fit, use, self.halves)
        self._measure()
        self._find_gaps()
        return found

    def _measure(self) -> None:
        """Sum every attack's posteriors; a failure of the pass is one of all attacks."""
        fitted = {key: fit for each in self._parts.values() for key, fit in each.items()}
        if not fitted:
            return
        known = {key: draw for key, draw in self.draws.items() if draw.clear}
        known |= {half.name: half.rows for half in self.halves}
        job = MeasureJob(self.release.data.size, self.release.groups, fitted, known)
        with contained() as failure:
            found = self.release.go_through(job)
        if failure.error is not None:
            self._failed |= dict.fromkeys(self._parts, ("failed", failure.reason))
            return
        for name, parts in self._parts.items():
            failed = [found.failed[key] for key in parts if key in found.failed]
            if failed:
                self._failed[name] = failed[0]
                continue
            for key in parts:
                self._sums.add(Found({name: found.sums.get(key, {})}))

    def _find_gaps(self) -> None:
        """Compute the gap between every coalition's belief and its best copy's, if requested."""
        release, n, s = self.release, self.release.data.rows, self.release.data.size
        fitted = {name: next(iter(parts.values())) for name, parts in self._parts.items()}
        fitted = {
            name: fit
            for name, fit in fitted.items()
            if name not in self._failed and fit.hidden is None and not fit.serial
        }
        if self.scenario.measure("belief-gap") is None or not fitted or release.estimated:
            return
        several = [c for c in release.needed if len(c) > 1]
        for batch in batches([(c, min(possible_cells(n, s, len(c)), MOST_CELLS)) for c in several]):
            counted = release.go_through(GapJob(n, s, tuple(batch))).outcomes
            for coalition, outcomes in counted.items():
                law = release.law.of(coalition)
                for name, fit in fitted.items():
                    with noted(self._failed, name):
                        alone = fit.inferences[(coalition[law.best - 1],)]
                        gap = belief_gap(outcomes, law, fit.inferences[coalition], alone)
                        self._gaps.setdefault(name, {})[coalition] = gap

    def attempt(
        self, use: AttackUse, knowledge: Knowledge, coalitions: Sequence[Coalition]
    ) -> Attempt:
        """Return the outcome of one attack, from the pass that served all."""
        name = use.id, knowledge.label
        if name in self._failed:
            status, reason = self._failed[name]
            raise (NotApplicable if status == "not-applicable" else AuditorError)(reason)
        found = AttackRecords(
            self.release,
            name,
            view_of(self.release, self.counted, knowledge),
            self._fits[name],
            next(iter(self._parts[name].values())),
            self._sums.sums[name],
            self._gaps.get(name, {}),
        )
        return Attempt(Measurements.of(found.records(coalitions)), [])

    def later_records(self) -> list[Measurement]:
        """Return the information in other rows, for copies without a law."""
        perfect = [state for state in self.scenario.knowledge if isinstance(state, Perfect)]
        if not perfect:
            return []
        parts = parts_of(self.release.data, perfect[0])
        return other_row_records(self.release, self.halves, parts)

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations."""
        release = self.release
        evidence.law.extend(self._law_tests())
        evidence.facts["marginal"] = marginal_tests(release, self.counted)
        if self.between:
            evidence.facts["drawn"] = drawn_between(
                release.law, release.data.prior, self.between, self.counted.between
            )
        if self.pooling:
            evidence.pooling.update(pooling_evidence(release))

    def _law_tests(self) -> list[LawTest]:
        release, data, singles = self.release, self.release.data, self.release.singles
        if not self.stated or not singles:
            return []
        dense = partial(self.counted.dense, size=data.size)
        tests = count_tests(release.law.of(singles), singles, dense, data.rows)
        if self.scored:
            columns = [np.concatenate(parts) for parts in zip(*self.counted.rows, strict=True)]
            key = release.key
            rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
            values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
            originals = dict(zip(data.names, values, strict=True))
            tests += score_tests(release.law.of(self.scored), columns, self.scored, originals, rng)
        return tests


@contextmanager
def noted(failed: dict[Try, tuple[str, str]], name: Try) -> Iterator[None]:
    """Record the failure of an attack, so that the others continue."""
    with contained() as failure:
        yield
    if failure.error is not None:
        failed[name] = (failure.status, failure.reason)
