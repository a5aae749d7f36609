"""Engine for releases of categories: a few passes, with sums by outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import Attempt, ReleaseRequest, parts_in_steps
from auditor.audit.base.session import CELLS, RECORDS, JointCounts, Session, cell_context, cells_of
from auditor.audit.categorical.attack_records import AttackRecords, Gap, GapJob, belief_gap
from auditor.audit.categorical.first_pass import Counting
from auditor.audit.categorical.other_rows import fitted_to_files
from auditor.audit.categorical.outcome_counts import MOST_CELLS, batches, possible_cells
from auditor.audit.categorical.posterior_pass import (
    Fit,
    Fitted,
    Found,
    MeasureJob,
    Try,
    fit_of,
    fitted_parts,
    parts_of,
    shares_of,
    view_of,
)
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.release_records import pooling_evidence, release_records
from auditor.audit.measures.diagnosis import unused_figures
from auditor.audit.numeric.moment_pass import Draw
from auditor.base.errors import AuditorError, NotApplicable
from auditor.base.types import Coalition
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.numerics.blocks import readable
from auditor.process.containment import contained
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement, Picture
from auditor.scenario.model import AttackUse
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import categories_of


class CategoricalSession(Session):
    """One release of categories under audit."""

    by_coalition = False

    def __init__(self, release: UniformRelease, pooling: bool) -> None:
        self.release, self.pooling = release, pooling
        self.scenario, self.context = release.scenario, release.context
        self.coalitions, self.halves = release.coalitions, release.halves()
        self.counting = Counting(release)
        self._parts: dict[Try, dict[Try, Fitted]] = {}
        self._fits: dict[Try, Fit] = {}
        self._failed: dict[Try, tuple[str, str]] = {}
        self._sums = Found()
        self._gaps: dict[Try, dict[Coalition, Gap]] = {}

    def release_records(self) -> list[Measurement]:
        """Return the figures of the release itself; then attack it, in one pass."""
        found = release_records(self.release, self.counting.counted)
        for use, knowledge in cells_of(self.scenario):
            name = use.id, knowledge.label
            with noted(self._failed, name):
                view = view_of(self.release, self.counting.counted, knowledge)
                self._fits[name] = fit = fit_of(self.release, use, knowledge)
                self._parts[name] = fitted_parts(self.release, view, fit, use, self.halves)
        self._measure()
        self._find_gaps()
        return found

    def _measure(self) -> None:
        fitted = {key: fit for each in self._parts.values() for key, fit in each.items()}
        if not fitted:
            return
        job = MeasureJob(self.release.data.size, self.release.groups, fitted, self.known)
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

    @property
    def known(self) -> dict[str, Draw]:
        """The rows that are not attacked, by name."""
        known = {key: draw for key, draw in self.counting.draws.items() if draw.clear}
        return known | {half.name: half.rows for half in self.halves}

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
            counted = release.go_through(GapJob(s, tuple(batch))).counts
            for coalition, counts in counted.items():
                law = release.law.of(coalition)
                for name, fit in fitted.items():
                    with noted(self._failed, name):
                        alone, together = (
                            fit.fits[c][0] for c in ((coalition[law.best - 1],), coalition)
                        )
                        gap = belief_gap(counts, coalition, law, together, alone)
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
            view_of(self.release, self.counting.counted, knowledge),
            self._fits[name],
            next(iter(self._parts[name].values())),
            self._sums.sums[name],
            self._gaps.get(name, {}),
        )
        return Attempt(Measurements.of(found.records(coalitions)), [])

    def joint_counts(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> tuple[JointCounts, float]:
        """Return the counts of the values that the posterior favours, by frequency."""
        if knowledge.in_clear:
            raise NotApplicable("guesses of categories depend on the known attributes")
        release, data = self.release, self.release.data
        part = parts_of(data, knowledge).get(attribute, np.arange(data.size))
        shares = shares_of(part, data.prior)
        cell = np.empty(shares.size, dtype=np.intp)  # the rarest values share the last cell
        cell[np.argsort(-shares, kind="stable")] = np.arange(shares.size).clip(max=CELLS - 1)
        values = np.eye(shares.size)[part] if shares.size < data.size else None
        cells, counts = cell[part], JointCounts(min(CELLS, shares.size), coalition)
        head = -(-RECORDS // len(release.groups))
        for index in range(len(release.groups)):
            block = release.block(index)
            x = block.x[:head]
            copies = [block.copy(copy)[:head] for copy in coalition]
            counts.add_copies(cells[x], [cells[copy] for copy in copies])
            for fitted in self._parts[use.id, knowledge.label].values():
                left = np.ones(x.size, dtype=bool)
                if fitted.hidden is not None:
                    left[self.known[fitted.hidden].within(block.first, block.first + x.size)[0]] = 0
                P = fitted.fits[coalition][0].checked(readable(copies))
                belief = P if values is None else P @ values
                counts.add(cells[x[left]], cell[belief.argmax(axis=1)][left])
        return counts, 0.0

    def later_records(self) -> list[Measurement]:
        """Return the information in other rows and columns, for copies from files."""
        perfect = any(isinstance(state, Perfect) for state in self.scenario.knowledge)
        found, release = fitted_to_files(self.release) if perfect else [], self.release
        if release.table is None:
            return found
        return [*found, *unused_figures(release.context, release.scheme, release.table, found)]

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations."""
        evidence.law.extend(self.counting.law_tests())
        evidence.facts.update(self.counting.facts())
        if self.pooling:
            evidence.pooling.update(pooling_evidence(self.release))


@contextmanager
def noted(failed: dict[Try, tuple[str, str]], name: Try) -> Iterator[None]:
    """Record the failure of an attack, so that the others continue."""
    with contained() as failure:
        yield
    if failure.error is not None:
        failed[name] = (failure.status, failure.reason)


class CategoricalEngine:
    """Engine for copies of categories."""

    divides_held_tables = False

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
        data, share = categories_of(table), partial(parts_in_steps, request, self.open, BLOCK_WIDTH)
        return UniformRelease(
            here,
            data,
            request.use,
            self.context(request, request.levels, request.copies),
            Key(seed, request.use.id, request.replicate),
            share if request.share is not None and data.streamed else None,
            table,
        )

    def audit(
        self, request: ReleaseRequest, evidence: ReleaseEvidence
    ) -> tuple[Measurements, list[Distribution], list[Picture]]:
        """Return all records of one release, and fill in the evidence."""
        return CategoricalSession(self.open(request), request.pooling).run(
            evidence, tell=request.tell, brief=request.brief
        )
