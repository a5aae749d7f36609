"""Audit one release of numbers: moments gathered once, then every attack with every state of knowledge on every coalition."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.adversary.affine import Affine, AffineStack
from auditor.adversary.attack import Attack, LinearAttack, Reconstruction, RowAttack
from auditor.adversary.categorical_attack import CategoricalAttack
from auditor.adversary.handed_back import check_finite_maps, check_real, check_shape
from auditor.adversary.knowledge import Knowledge, KnownRecords
from auditor.adversary.view import View
from auditor.audit.anonymity.inferences import Inferences, inference_records
from auditor.audit.base.outcome import FailedElsewhereError, Taken
from auditor.audit.base.records import ALL, CellContext, distribution_records, error_records, promise_records, scheme_record
from auditor.audit.base.release import Release, open_release
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.drawn_law.numeric import law_tests
from auditor.audit.measures.geometry import geometry_records
from auditor.audit.measures.privacy import entropy_records, tally_records, wanted_tally
from auditor.audit.measures.record_hits import WholeRecords, whole_record_records
from auditor.audit.measures.utility import utility_records
from auditor.audit.numeric.error_bars import Errors, Paired, from_groups, from_redraws, quietest, rounded_off, with_total
from auditor.audit.numeric.error_tally import Tally
from auditor.audit.numeric.held_out_theory import with_theory
from auditor.audit.numeric.linear_errors import Sharp, audit_linear, squared_errors
from auditor.audit.numeric.reconstruct import CopyBlocks, errors_by_rows, tally_linear, tally_rows
from auditor.audit.numeric.redraws import REDRAWS, Redraws, seed_of
from auditor.audit.numeric.row_selection import RowSelection
from auditor.audit.numeric.row_theory import with_hindsight
from auditor.audit.numeric.stacked_maps import Maps, by_size
from auditor.audit.numeric.transformed_copies import backs, undone
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.audit.pooling.differences import near_copies, with_differences
from auditor.audit.pooling.linear import pooling_evidence
from auditor.audit.pooling.noise_dependence import dependences
from auditor.audit.workload import numeric_workload
from auditor.data.table import Table
from auditor.errors import AuditorError, NotApplicable, PluginError
from auditor.numerics.blocks import BLOCK_VALUES, JACKKNIFE_GROUPS, row_blocks
from auditor.numerics.moments import Moments
from auditor.process.containment import contained, known
from auditor.results.evidence import ROW_REDRAWS, Dependence, PairedCell, PairedGain, ReleaseEvidence
from auditor.results.records import FEWEST_REPLICATES, Distribution, ErrorBar, Measurement
from auditor.scenario.model import PluginUse, Scenario
from auditor.schemes.base.noise_law import DenseNoise, GaussianNoise, NoiseLaw
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.base.transform import Turned
from auditor.types import Array, Blocks, Coalition

MOST_MOMENT_BYTES = 4 * 2**30
"""For the joint moments of a release: of the copies that numbers can be audited in at once."""


class NumericEngine:
    """Audits copies of numbers: by moments where attacks are linear, else row by row. K-anonymous classes are columns of bounds here."""

    ahead = True

    def context(self, request: ReleaseRequest, levels: tuple[float, ...]) -> CellContext:
        """Return what every record of a release shares."""
        variances = np.diag(request.moments.covariance)
        return CellContext(request.point, request.use.id, levels, request.replicate, request.table.attributes, variances)

    def open(self, request: ReleaseRequest) -> Release:
        """Return the release, its copies not drawn yet."""
        return open_release(request.scenario, request.table, request.moments, request.use, request.levels, request.replicate)

    def audit(
        self, request: ReleaseRequest, context: CellContext, coalitions: list[Coalition], evidence: ReleaseEvidence
    ) -> tuple[list[Measurement], list[Distribution]]:
        """Make the copies once, gather their moments, and let every attack try every coalition."""
        session = Session(request.scenario, self.open(request), coalitions, context, request.pooling, request.taken)
        check_copies(session.gathered)
        found = session.run()
        session.testify(evidence)
        return found

    def check_size(self, scheme: Scheme, table: Table, copies: int) -> None:
        """Refuse a release whose moments would not fit: they grow with the square of copies × attributes, not with rows."""
        width = table.width
        if width == 0:
            raise AuditorError("the table has no column of numbers to add noise to")
        joint = copies if scheme.output_width(width) == width else 0
        size = 8 * ((joint + 1) * width) ** 2 * (JACKKNIFE_GROUPS + 2)
        if size > MOST_MOMENT_BYTES:
            raise AuditorError(
                f"{copies:,} copies of {width} attributes need {size / 2**30:,.1f} GiB for their joint moments, more than the "
                f"{MOST_MOMENT_BYTES / 2**30:.0f} GiB allowed; audit fewer copies at a time"
            )

    workload = staticmethod(numeric_workload)


def check_copies(gathered: Gathered) -> None:
    """Refuse copies that are not finite; the harness does not trust what a plugin draws."""
    if not gathered.finite or not all(np.isfinite(group.products).all() for group in gathered.groups):
        raise PluginError("the scheme drew values that are not finite")


def _check_law(law: NoiseLaw | None, copies: int, width: int) -> None:
    """Refuse a law of something else than the noise in these copies; the harness does not trust what a plugin states."""
    if law is None:
        return
    if not isinstance(law, (GaussianNoise, DenseNoise)):
        raise PluginError(f"the scheme stated a {known(type(law)).__name__} for the law of its noise")
    parts = (law.level_covariance, law.shape) if isinstance(law, GaussianNoise) else (law.covariance,)
    sizes = (copies, width) if isinstance(law, GaussianNoise) else (copies * width,)
    for part, size in zip(parts, sizes, strict=True):
        if np.shape(part) != (size, size) or not np.isfinite(part).all():
            raise PluginError(f"the scheme stated no finite law for {copies} copies of {width} attributes")


class Session:
    """One release under audit: its moments, and the cells that attacks, knowledge and coalitions make."""

    def __init__(
        self, scenario: Scenario, release: Release, coalitions: list[Coalition], context: CellContext, pooling: bool = False,
        taken: Taken | None = None,
    ) -> None:  # fmt: skip
        if taken is not None and taken.failure:
            raise FailedElsewhereError(taken.failure)
        self.scenario = scenario
        self.pooling = pooling
        self.paired: dict[PairedCell, PairedGain] = {}
        self._redraws: dict[str, Redraws] = {}
        self.release = release
        self.coalitions = coalitions
        self.context = context
        members = {(copy,) for coalition in coalitions for copy in coalition}
        self.needed = sorted(members | set(coalitions), key=lambda coalition: (len(coalition), coalition))
        self.law = release.scheme.law(release.levels, release.moments)
        _check_law(self.law, release.copies, release.table.width)
        table, joint = release.table, release.scheme.output_width(release.table.width) == release.table.width
        copies = ReleasedCopies(
            table, release.moments, release.levels, self.law, release.blocks, joint, release.scheme.public, turned=release.turned
        )
        draws, stripes = (None, None) if taken is None else (taken.draws, None if taken.stripe is None else [taken.stripe])
        self.rows = RowSelection(table, scenario.knowledge, scenario.seed, release.key.replicate, draws)
        self.gathered = Gathered(copies, self.rows, stripes)
        if taken is not None:
            release.seconds = self.gathered.seconds

    def run(self) -> tuple[list[Measurement], list[Distribution]]:
        """Return the records of every cell; an attack that fails is recorded, and does not stop the others."""
        measurements: list[Measurement] = []
        distributions: list[Distribution] = []
        if self.scenario.measure("seconds"):
            measurements.append(scheme_record(self.context, "seconds", self.release.seconds))
        facts = self.release.scheme.facts(self.release.levels, self.release.moments)
        check_real(*facts.values())
        measurements += [scheme_record(self.context, name, float(value)) for name, value in facts.items() if self.scenario.measure(name)]
        if self.scenario.measure("entropy-privacy"):
            measurements += entropy_records(self.context, self.release.table, self.law, self.coalitions)
        if self.scenario.utility is not None:
            measurements += utility_records(self.context, self.scenario, self.release.table, self.release.whole_copies())
        if self.scenario.measure("geometry"):
            measurements += geometry_records(self.context, self.release.blocks, self.scenario.seed)
        if self.scenario.measure("anonymity"):
            measurements += promise_records(self.context, self.release.scheme.promises(self.release.blocks(), self.coalitions))
        for knowledge in self.scenario.knowledge:
            for use in self.scenario.attacks:
                cells, spreads = self._tried(use, knowledge)
                measurements += cells
                distributions += spreads
        return measurements, distributions

    def testify(self, evidence: ReleaseEvidence) -> None:
        """Fill in what expectations judge the release by."""
        evidence.law.extend(law_tests(self.release, self.law_within, self.gathered.groups))
        if self.pooling:
            evidence.paired.update(self.paired)
        if self.pooling and self.gathered.copies.joint:
            groups, near = self.told_apart()
            evidence.pooling.update(pooling_evidence(self.needed, groups, self.release.table.width, self.law, self.signs(), near))

    def signs(self) -> dict[Coalition, Dependence]:
        """Return signs that copies foretell one another's noise beyond what covariances say; one replicate of added noise shows them."""
        if not self.release.scheme.adds_noise or self.release.key.replicate > 1:
            return {}
        table, blocks = self.release.table, self.release.blocks()
        if table.streamed:  # its rows are gone through once for everybody; the first block tells enough
            blocks, rows = islice(blocks, 1), row_blocks(table.rows, table.width)[0][1]
            return dependences(self.needed, blocks, rows, table.width, self.law)
        return dependences(self.needed, blocks, table.rows, table.width, self.law)

    def told_apart(self) -> tuple[list[Moments], NDArray[np.intp] | None]:
        """Return moments by row group, beside those of differences where copies are too near each other for moments to tell apart."""
        table, groups = self.release.table, self.gathered.groups
        near = near_copies(Moments.merge(groups), table.width)
        if near is None:
            return groups, None
        return with_differences(self._undone(self.release.blocks)(), table.rows, self.release.moments.mean, near), near

    def _tried(self, use: PluginUse, knowledge: Knowledge) -> tuple[list[Measurement], list[Distribution]]:
        """Return the records of one attack; when it fails, coalition by coalition, so that only the cells at fault are lost."""
        with contained() as failure:
            return self._attack(use, knowledge)
        if len(self.coalitions) > 1:
            parts = [self._only(coalition)._tried(use, knowledge) for coalition in self.coalitions]
            return [cell for cells, _ in parts for cell in cells], [spread for _, spreads in parts for spread in spreads]
        return self._empty(use, knowledge, failure.status, failure.reason), []

    def _only(self, coalition: Coalition) -> Session:
        """Return this session for one coalition, and the single copies its gain is measured against."""
        one = copy(self)
        one.coalitions = [coalition]
        one.needed = sorted({coalition, *((member,) for member in coalition)}, key=lambda c: (len(c), c))
        return one

    def _empty(self, use: PluginUse, knowledge: Knowledge, status: str, reason: str) -> list[Measurement]:
        return [self.context.empty(use.id, knowledge.label, coalition, status, reason) for coalition in self.coalitions]

    def _attack(self, use: PluginUse, knowledge: Knowledge) -> tuple[list[Measurement], list[Distribution]]:
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        if isinstance(attack, CategoricalAttack) and self.release.table.categorical is not None:
            release, context = self.release, self.context
            return binned_records(
                release.table, release.blocks, self.law, self.needed, self.coalitions, context, use.id, knowledge
            ), []
        attack.check(self.release.scheme.family, knowledge)
        tally = self._tally()
        records, inferences = self._whole_records(), [Inferences() for _ in self.needed]
        if isinstance(attack, LinearAttack) and not self.gathered.copies.joint:
            attack = attack.over_rows()
        if isinstance(attack, LinearAttack):
            errors, records = self._linear(attack, knowledge, tally), []
        elif isinstance(attack, RowAttack):
            errors = self._rowwise(attack, knowledge, tally, records, inferences)
        else:
            raise NotApplicable(f"{use.name} is neither a linear nor a row-level attack")
        if not np.isfinite(errors.distortion).all():
            raise PluginError("the attack's errors are beyond what double precision can square")
        asked = set(self.coalitions)
        wanted = [place for place, coalition in enumerate(self.needed) if coalition in asked]
        self._note_pairs(use, knowledge, wanted, errors.paired)
        cells = error_records(self.context, use.id, knowledge.label, self.needed, wanted, errors)
        if isinstance(attack, LinearAttack) and errors.bar == "redraws" and not np.isnan(errors.theory).all():
            cells = [cell._replace(error_bar="sampling") for cell in cells]  # it counts all draws there are theory of, record by record
        cells += tally_records(self.scenario, self.context, use.id, knowledge.label, self.needed, wanted, tally)
        names = self.release.table.attributes
        for place in wanted:
            cells += inference_records(self.context, use.id, knowledge.label, self.needed[place], inferences[place], names)
        if records:
            chosen = [records[place] for place in wanted]
            cells += whole_record_records(self.context, use.id, knowledge.label, [self.needed[place] for place in wanted], chosen)
        spreads = distribution_records(self.context, use.id, knowledge.label, self.needed, wanted, tally)
        return cells, spreads

    def _tally(self) -> Tally:
        return wanted_tally(self.scenario, np.sqrt(np.diag(self.release.moments.covariance)), self.release.table.rows)

    def _whole_records(self) -> list[WholeRecords]:
        measure = self.scenario.measure("records-within")
        return [] if measure is None else [WholeRecords(float(measure.options["tolerance"])) for _ in self.needed]

    def _linear(self, attack: LinearAttack, knowledge: Knowledge, tally: Tally) -> Errors:
        batches = self._affines(attack, self.gathered.view(knowledge), self.release.turned)
        maps = Maps.pad(batches, self.needed, self.release.copies)
        check_finite_maps(maps.weights, maps.offsets)
        K_X, law = self.release.moments.covariance, self.law_within
        judged = self.gathered.judged(knowledge)
        self._count(maps, knowledge, tally)
        again = None if maps.fixed or law is None or self._replicated else self._again(attack, knowledge)
        why: ErrorBar = "jackknife" if law is None else "replicates-needed"

        def by_rows(places: NDArray[np.intp]) -> Sharp:
            blocks, counts = self.rows.judged(knowledge, self.release.blocks)
            return Sharp(*errors_by_rows(maps.at(places), self._undone(blocks), counts, self.release.moments.mean))

        errors = audit_linear(self.needed, maps, judged, K_X, law, again, self._rivals(), why, by_rows)
        if law is None or not _apart(batches, knowledge):
            return errors
        return with_theory(errors, maps, Moments.merge(judged), np.diag(K_X), law)

    @property
    def _replicated(self) -> bool:
        """Whether the spread between replicates will take the place of any estimated error bar."""
        return self.scenario.replicates >= FEWEST_REPLICATES

    @property
    def law_within(self) -> NoiseLaw | None:
        """The law of the noise, or of what there was before copies were turned."""
        return self.law if self.release.turned is None else self.release.turned.law

    def _count(self, maps: Maps, knowledge: Knowledge, tally: Tally) -> None:
        """Count errors record by record, if that was asked for; a spread from the heads of the blocks where those are enough."""
        centre, K_X, law = self.release.moments.mean, self.release.moments.covariance, self.law_within
        if tally.head is not None and tally.bins:
            head = tally.head
            spread = tally.spread_alone
            heads, _ = self.rows.judged(knowledge, lambda: self.release.heads(head))
            tally_linear(maps, self._undone(heads), centre, spread, K_X, law)
            tally.counts, tally.spread_rows = spread.counts, spread.spread_rows
            bins, tally.bins = tally.bins, 0
            if tally.wanted:
                tally_linear(maps, self._undone(self.rows.judged(knowledge, self.release.blocks)[0]), centre, tally, K_X, law)
            tally.bins = bins
        elif tally.wanted:
            tally_linear(maps, self._undone(self.rows.judged(knowledge, self.release.blocks)[0]), centre, tally, K_X, law)

    def _undone(self, blocks: Blocks) -> Blocks:
        return undone(self.release.turned, blocks)

    def _affines(self, attack: LinearAttack, view: View, turned: Turned | None) -> list[Sequence[Affine]]:
        """Return the maps of all coalitions, run by run of one size."""
        batches = []
        for _, run in by_size(self.needed):
            batch = attack.affine_batch(view, run)
            if len(batch) != len(run):
                raise PluginError(f"the attack returned {len(batch)} maps for {len(run)} coalitions")
            for affine in batch[:1] if isinstance(batch, AffineStack) else batch:  # those of a stack have one shape
                check_shape(affine, view)
            batches.append(backs(turned, batch, run))
        return batches

    def _again(self, attack: LinearAttack, knowledge: Knowledge) -> Array | None:
        """Return mean squared errors of a linear attack in other draws of this release, shape (R, B, N); None where one cannot be made."""
        law, key, release = self.law_within, self.release.key, self.release
        assert law is not None
        redraws, found = self._redraws.get(knowledge.label) or Redraws(self.gathered, knowledge, law), []
        self._redraws[knowledge.label] = redraws
        for number in range(REDRAWS):
            seed = seed_of(key.audit_seed, key.scheme, key.replicate, number)
            turned = release.scheme.turned(release.levels, release.moments, replace(key, seed=seed))
            view, judged = redraws.one(number, seed, turned)
            try:
                maps = Maps.pad(self._affines(attack, view, turned), self.needed, release.copies)
            except NotApplicable:  # what was drawn is too little for the attack
                return None
            found.append(squared_errors(maps, judged) / judged.count)
        return np.array(found)

    def _rowwise(
        self, attack: RowAttack, knowledge: Knowledge, tally: Tally, records: list[WholeRecords], inferences: list[Inferences]
    ) -> Errors:
        fitted, sums, counts, expected = self._over_rows(attack, knowledge, tally, records, inferences)
        expected = with_hindsight(expected, fitted, *self.rows.originals(knowledge))
        variances, rivals = np.diag(self.release.moments.covariance), self._rivals()
        again = self._rows_again(attack, knowledge)
        if again is None:
            errors = from_groups(self.needed, sums, counts, variances, rivals, "replicates-needed")
        else:
            scale = with_total(variances)
            distortion, others = (rounded_off(with_total(each), scale) for each in (sums.sum(axis=0) / sum(counts), again))
            errors = from_redraws(self.needed, distortion, others, scale, rivals)
        theory = errors.theory.copy()
        theory[:, -1] = expected / sum(counts) / variances.size
        return replace(errors, theory=theory)

    def _over_rows(
        self, attack: RowAttack, knowledge: Knowledge, tally: Tally, records: Sequence[WholeRecords] = (),
        inferences: Sequence[Inferences] = (),
    ) -> tuple[list[Reconstruction], Array, list[int], Array]:  # fmt: skip
        """Return the fitted attacks, their squared errors summed by row group and the groups' sizes, and what theory expects."""
        view = self.gathered.view(knowledge)
        fitted = [attack.fit(view.coalition(c), CopyBlocks(self.rows.seen(knowledge, self.release.blocks), c)) for c in self.needed]
        blocks, counts = self.rows.judged(knowledge, self.release.blocks)
        sums, expected = tally_rows(fitted, self.needed, blocks, counts, tally, records, inferences)
        return fitted, sums, [count for groups in counts for count in groups if count], expected

    def _rows_again(self, attack: RowAttack, knowledge: Knowledge) -> Array | None:
        """Return mean squared errors of an attack on rows in other draws of this release, shape (R, B, N).

        None where replicates tell anyway, where a draw takes long (more than one block of rows), or where copies are not ours to draw.
        """
        release, scenario = self.release, self.scenario
        table, key = release.table, release.key
        if self._replicated or table.rows * table.width > BLOCK_VALUES or not release.scheme.makes_copies:
            return None
        found = []
        for number in range(ROW_REDRAWS):
            other = replace(scenario, seed=seed_of(key.audit_seed, key.scheme, key.replicate, number))
            drawn = open_release(other, table, release.moments, release.use, release.levels, key.replicate)
            session = Session(other, drawn, self.coalitions, self.context)
            session.needed = self.needed
            try:
                _, sums, counts, _ = session._over_rows(attack, knowledge, Tally(np.ones(table.width)))
            except NotApplicable:
                return None
            found.append(sums.sum(axis=0) / sum(counts))
        return np.array(found)

    def _rivals(self) -> NDArray[np.intp] | None:
        """Return the single copies to pair coalitions with, when an expectation asks what pooling buys."""
        if not self.pooling or self.law is None:
            return None
        return quietest(self.needed, self.law, self.release.moments.covariance)

    def _note_pairs(self, use: PluginUse, knowledge: Knowledge, wanted: Sequence[int], paired: Paired | None) -> None:
        names = (*self.context.attributes, ALL)
        for place in wanted if paired is not None else ():
            for column, name in enumerate(names):
                assert paired is not None
                found = tuple(float(part[place, column]) for part in (paired.gain, paired.std_error, paired.degrees))
                self.paired[knowledge.label, use.id, self.needed[place], name] = found  # type: ignore[assignment]


def _apart(batches: Sequence[Sequence[Affine]], knowledge: Knowledge) -> bool:
    """Whether every map was learnt from records in clear alone, which it is not judged on."""
    if not isinstance(knowledge, KnownRecords):
        return False
    return all(not isinstance(batch, AffineStack) and all(affine.apart for affine in batch) for batch in batches)
