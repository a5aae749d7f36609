"""Audit one release: make the copies once, gather their moments, and let every attack try every coalition."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.attack import Affine, AffineStack, Attack, LinearAttack, Reconstruction, RowAttack, View
from auditor.blocks import BLOCK_VALUES, row_blocks
from auditor.categorical.attack import CategoricalAttack
from auditor.categorical.worlds import binned_records
from auditor.containment import contained, known
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.dependence import dependences
from auditor.differences import near_copies, with_differences
from auditor.drawn_noise import law_tests
from auditor.errors import AuditorError, NotApplicable, PluginError
from auditor.expectation import Dependence, PairedCell, PairedGain, ReleaseEvidence
from auditor.gathered import Gathered
from auditor.gathering import Blocks, Draw, Stripe
from auditor.geometry import geometry_records
from auditor.given_map import with_theory
from auditor.hindsight import with_hindsight
from auditor.inferences import Inferences, inference_records
from auditor.knowledge import Knowledge, KnownRecords
from auditor.linear import (
    Errors,
    Paired,
    Sharp,
    audit_linear,
    from_groups,
    from_redraws,
    quietest,
    rounded_off,
    squared_errors,
    with_total,
)  # fmt: skip
from auditor.maps import Maps, by_size
from auditor.moments import Moments
from auditor.noise import DenseNoise, GaussianNoise, NoiseLaw
from auditor.pooling import pooling_evidence
from auditor.privacy import entropy_records, tally_records, wanted_tally
from auditor.records import ALL, CellContext, distribution_records, error_records, scheme_record
from auditor.redraws import REDRAWS, ROW_REDRAWS, Redraws, seed_of
from auditor.results import FEWEST_REPLICATES, Distribution, ErrorBar, Measurement
from auditor.rows import CopyBlocks, check_real, errors_by_rows, tally_linear, tally_rows
from auditor.scenario.coalitions import Coalition, expand_all
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scheme import Key, Sampler, Scheme, TableMoments
from auditor.tally import Tally
from auditor.turned import Turned, backs
from auditor.utility import utility_records
from auditor.whole_records import WholeRecords, whole_record_records

Array = NDArray[np.float64]

MOST_WEIGHT = 1e100
"""Its square, times any variance that is taken, is still a double."""
HEADS_BYTES = 2**24
"""The first records of all blocks are kept from one release to the next up to this size."""
KEEP_BYTES = 2**29
"""Copies up to this size stay in memory for row-level work; larger ones are drawn again, block by block."""


def table_moments(table: Table) -> TableMoments:
    """Return the table's exact mean and covariance (divisor n)."""
    mean, covariance = table.moments()
    return TableMoments(mean, covariance, table.rows)


def _heads_of(table: Table, rows: int) -> Iterable[Array]:
    """Return the first records of every block; of a file they are kept for the table's next release, as few cost as much as many."""
    bounds = row_blocks(table.rows, table.width)
    found = (table.read(a, min(a + rows, b)) for a, b in bounds)
    if not table.streamed or len(bounds) * rows * table.width * 8 > HEADS_BYTES:
        return found
    key = (table.fingerprint(), rows)
    if key not in _kept_heads:
        _kept_heads.clear()
        _kept_heads[key] = list(found)
    return _kept_heads[key]


_kept_heads: dict[tuple[str, int], list[Array]] = {}
"""By a table's fingerprint and how many of each block; of one table."""


@dataclass
class Release:
    """One release while it is audited: where its copies come from, and what is known of them."""

    table: Table
    moments: TableMoments
    scheme: Scheme
    use: SchemeUse
    levels: tuple[float, ...]
    key: Key
    seconds: float = 0.0
    _kept: list[Array] | None = field(default=None, repr=False)
    _heads: tuple[int, list[tuple[int, Array, list[Array]]]] | None = field(default=None, repr=False)

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return len(self.levels)

    def blocks(self) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield (block number, original rows, copies' rows); the arrays are overwritten by the next block."""
        bounds = row_blocks(self.table.rows, self.table.width)
        if self._kept is not None:
            for index, (a, b) in enumerate(bounds):
                yield index, self.table.read(a, b), [copy[a:b] for copy in self._kept]
            return
        yield from self._drawn(bounds)

    @property
    def kept(self) -> bool:
        """Whether the copies are in memory."""
        return self._kept is not None

    def heads(self, rows: int) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield the same for the first records of every block; drawn anew, once, rather than taken from what was kept of all."""
        if self._heads is None or self._heads[0] != rows:
            kept = list(self._drawn_heads(rows))
            self._heads = (rows, kept) if sum(copy.nbytes for _, _, copies in kept for copy in copies) <= KEEP_BYTES // 4 else None
            yield from kept
        else:
            yield from self._heads[1]

    def _drawn_heads(self, rows: int) -> Iterator[tuple[int, Array, list[Array]]]:
        drawing, columns = self.drawing(), self.scheme.output_width(self.table.width)
        bounds = row_blocks(self.table.rows, self.table.width)
        originals = _heads_of(self.table, rows) if drawing.in_order else (self.table.read(a, b) for a, b in bounds)
        for index, x in enumerate(originals):
            copies = [np.empty((len(x), columns)) for _ in self.levels]
            drawing.block(index, x, copies)
            yield index, x[:rows], [copy[:rows] for copy in copies]

    def whole_copies(self) -> list[Array]:
        """Return the copies as arrays of shape (n, N), for what cannot be done block by block."""
        parts = [[copy.copy() for copy in copies] for _, _, copies in self.blocks()]
        return [np.concatenate(copy) for copy in zip(*parts, strict=True)]

    def _drawn(self, bounds: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Array, list[Array]]]:
        n, N = self.table.rows, self.table.width
        keep = not self.table.streamed and n * self.scheme.output_width(N) * self.copies * 8 <= KEEP_BYTES
        memory = [np.empty((n if keep else bounds[0][1], self.scheme.output_width(N))) for _ in range(self.copies)]
        drawing = self.drawing()
        self.seconds = 0.0
        for index, (a, b) in enumerate(bounds):
            x = self.table.read(a, b)
            out = [copy[a:b] if keep else copy[: b - a] for copy in memory]
            self.seconds += drawing.block(index, x, out)
            yield index, x, out
        if keep:
            self._kept = memory

    @cached_property
    def turned(self) -> Turned | None:
        """What was done to the copies, if they are the original plus noise but for a matrix."""
        return self.scheme.turned(self.levels, self.moments, self.key)

    @property
    def undo(self) -> Callable[[Sequence[Array]], list[Array]] | None:
        """What turns rows of all copies back, if they were turned."""
        return None if self.turned is None else self.turned.undo

    def drawing(self) -> Drawing:
        """Return what draws this release's copies, those that are out already first."""
        early = self._already_out()
        samplers = [(0, self.scheme.sampler(self.levels[:early], self.moments, self.key))] if early else []
        return Drawing([*samplers, (early, self.scheme.sampler(self.levels, self.moments, self.key, early))])

    def _already_out(self) -> int:
        share = self.use.already_out
        return min(self.copies - 1, int(share) if isinstance(share, int) else math.floor(share * self.copies))


class Drawing:
    """Draws the copies of one release, block by block, as one request or two."""

    def __init__(self, requests: Sequence[tuple[int, Sampler]]) -> None:
        self._requests = requests
        self.in_order = all(getattr(sampler, "in_order", False) for _, sampler in requests)

    def block(self, index: int, x: Array, out: Sequence[Array]) -> float:
        """Write the copies of one block of rows; return the seconds that the last request took."""
        for existing, sampler in self._requests:
            start = time.thread_time()
            sampler.block(index, x, out, existing)
            elapsed = time.thread_time() - start
        return elapsed


@dataclass(frozen=True)
class ReleaseAudit:
    """What one release's audit yields."""

    measurements: list[Measurement]
    distributions: list[Distribution]
    evidence: ReleaseEvidence


def audit_release(
    scenario: Scenario, point: dict[str, Any], table: Table, moments: TableMoments, use: SchemeUse, replicate: int, pooling: bool,
    taken: Taken | None = None,
) -> ReleaseAudit:  # fmt: skip
    """Audit one scheme at one sweep point in one replicate.

    Parameters
    ----------
    scenario : Scenario
        At the sweep point.
    point : dict
        The swept values, for the records.
    table : Table
    moments : TableMoments
        The table's own.
    use : SchemeUse
        The scheme.
    replicate : int
        From 1.
    pooling : bool
        Whether an expectation needs evidence on what pooling buys.
    taken : Taken, optional
        What others gathered of the release already.
    """
    if registry.get("scheme", use.name).family == "uniform":
        from auditor.categorical.audit import audit_uniform

        return audit_uniform(scenario, point, table, use, replicate, pooling)
    with contained() as failure:
        levels = release_levels(use, scenario)
    if failure.error is not None:  # without levels nobody knows of copies, let alone coalitions
        context = CellContext(point, use.id, (), replicate, table.attributes, np.diag(moments.covariance))
        return nothing_of(scenario, context, ReleaseEvidence(point, use.id, use.name, (), replicate, table.rows), [()], failure.reason)
    context = CellContext(point, use.id, levels, replicate, table.attributes, np.diag(moments.covariance))
    evidence = ReleaseEvidence(point, use.id, use.name, levels, replicate, table.rows)
    coalitions = expand_all(scenario.coalitions, len(levels), scenario.seed)
    with contained() as failure:
        release = open_release(scenario, table, moments, use, levels, replicate)
        session = Session(scenario, release, coalitions, context, pooling, taken)
        _check_copies(session.gathered)
        measurements, distributions = session.run()
        evidence.law.extend(law_tests(release, session.law_within, session.gathered.groups))
        if pooling:
            evidence.paired.update(session.paired)
        if pooling and session.gathered.joint:
            groups, near = session.told_apart()
            evidence.pooling.update(pooling_evidence(session.needed, groups, table.width, session.law, session.signs(), near))
        return ReleaseAudit(measurements, distributions, evidence)
    return nothing_of(scenario, context, evidence, coalitions, failure.reason)


def nothing_of(
    scenario: Scenario, context: CellContext, evidence: ReleaseEvidence, coalitions: Sequence[Coalition | None], reason: str
) -> ReleaseAudit:
    """Return the audit of a release that failed: every cell says why; one that nobody attacks says so once."""
    cells = [(attack.id, knowledge.label) for knowledge in scenario.knowledge for attack in scenario.attacks]
    records = [context.empty(attack, knowledge, coalition, "failed", reason) for attack, knowledge in cells for coalition in coalitions]
    evidence = replace(evidence, pooling={}, paired={}, facts={}, law=[])
    return ReleaseAudit(records or [context.empty(None, None, None, "failed", reason)], [], evidence)


@dataclass(frozen=True)
class Taken:
    """What was gathered of one release, by whoever went through its rows.

    Attributes
    ----------
    draws : dict
        The rows each state of knowledge chose.
    stripe : Stripe or None
        What was gathered of all stripes together.
    failure : str
        Why the release could not be made, if it could not.
    """

    draws: dict[str, Draw]
    stripe: Stripe | None
    failure: str = ""


class FailedElsewhereError(AuditorError):
    """The release failed where its rows were gone through; its text is a reason that may be told."""


def _check_copies(gathered: Gathered) -> None:
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


def open_release(
    scenario: Scenario, table: Table, moments: TableMoments, use: SchemeUse, levels: tuple[float, ...], replicate: int
) -> Release:
    """Return the release of one scheme, its copies not drawn yet."""
    scheme = make_scheme(use, scenario.base)
    if hasattr(scheme, "table"):
        scheme.table = table
    seed = noise_seed(scenario.data.source, scenario.seed, table.fingerprint())
    return Release(table, moments, scheme, use, levels, Key(seed, use.id, replicate))


def release_levels(use: SchemeUse, scenario: Scenario) -> tuple[float, ...]:
    """Return the levels of one use of a scheme, in order of release."""
    if use.levels is not None:
        return use.levels.resolve(scenario.seed)
    levels = make_scheme(use, scenario.base).default_levels()
    if not isinstance(levels, tuple) or not all(isinstance(level, (int, float)) for level in levels):
        raise PluginError("the scheme's default levels are no tuple of numbers")
    return levels


def make_scheme(use: SchemeUse, base: Path | None) -> Scheme:
    """Return the scheme plugin of one use, told where its files are."""
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    if hasattr(scheme, "base"):
        scheme.base = base
    return scheme


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
        self.gathered = Gathered(
            release.table, release.moments, release.levels, self.law, release.blocks, scenario.knowledge, scenario.seed,
            release.key.replicate, release.scheme.output_width(release.table.width), release.scheme.public,
            None if taken is None else taken.draws, None if taken is None or taken.stripe is None else [taken.stripe],
            turned=release.turned,
        )  # fmt: skip
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
            measurements += self.release.scheme.promises(self.context, self.release.blocks(), self.coalitions)
        for knowledge in self.scenario.knowledge:
            for use in self.scenario.attacks:
                cells, spreads = self._tried(use, knowledge)
                measurements += cells
                distributions += spreads
        return measurements, distributions

    def signs(self) -> dict[Coalition, Dependence]:
        """Return signs that copies foretell one another's noise beyond what covariances say; one replicate of added noise shows them."""
        if self.release.scheme.family != "additive" or self.release.key.replicate > 1:
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
        if isinstance(attack, LinearAttack) and not self.gathered.joint:
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
        check_finite_maps(maps)
        K_X, law = self.release.moments.covariance, self.law_within
        judged = self.gathered.measured(knowledge)
        self._count(maps, knowledge, tally)
        again = None if maps.fixed or law is None or self._replicated else self._again(attack, knowledge)
        why: ErrorBar = "jackknife" if law is None else "replicates-needed"

        def by_rows(places: NDArray[np.intp]) -> Sharp:
            blocks, counts = self.gathered.measured_rows(knowledge)
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
            heads, _ = self.gathered.measured_rows(knowledge, lambda: self.release.heads(head))
            tally_linear(maps, self._undone(heads), centre, spread, K_X, law)
            tally.counts, tally.spread_rows = spread.counts, spread.spread_rows
            bins, tally.bins = tally.bins, 0
            if tally.wanted:
                tally_linear(maps, self._undone(self.gathered.measured_rows(knowledge)[0]), centre, tally, K_X, law)
            tally.bins = bins
        elif tally.wanted:
            tally_linear(maps, self._undone(self.gathered.measured_rows(knowledge)[0]), centre, tally, K_X, law)

    def _undone(self, blocks: Blocks) -> Blocks:
        return blocks if self.release.turned is None else self.release.turned.undone(blocks)

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
        expected = with_hindsight(expected, fitted, *self.gathered.true_rows(knowledge))
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
        fitted = [attack.fit(view.coalition(c), CopyBlocks(self.gathered.seen_rows(knowledge), c)) for c in self.needed]
        blocks, counts = self.gathered.measured_rows(knowledge)
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


def check_finite_maps(maps: Maps) -> None:
    """Refuse maps that are not finite, all coalitions at once.

    Raises
    ------
    PluginError
        The harness does not trust what a plugin returns.
    """
    if not (np.isfinite(maps.weights).all() and np.isfinite(maps.offsets).all()):
        raise PluginError("the attack returned weights that are not finite")
    if np.abs(maps.weights).max(initial=0.0) > MOST_WEIGHT:
        raise PluginError("the attack returned weights beyond what double precision can square")


def check_affine(affine: Affine, view: View) -> None:
    """Refuse a map that is not finite, or that ``check_shape`` refuses.

    Raises
    ------
    PluginError
        The harness does not trust what a plugin returns.
    """
    check_shape(affine, view)
    check_finite_maps(Maps(affine.weights[None], affine.offset[None], affine.fixed))


def check_shape(affine: Affine, view: View) -> None:
    """Refuse a map of the wrong shape, or one that uses true values its adversary does not have.

    Raises
    ------
    PluginError
        The harness does not trust what a plugin returns.
    """
    if not isinstance(affine, Affine):
        raise PluginError(f"the attack returned a {known(type(affine)).__name__} where an Affine is expected")
    check_real(affine.weights, affine.offset, *(() if affine.known is None else (affine.known,)))
    N, shape = view.width, np.shape(affine.weights)
    if len(shape) != 2 or shape[0] != N or shape[1] % N or np.shape(affine.offset) != (N,):
        shapes = f"weights of shape {shape} and an offset of shape {np.shape(affine.offset)}"
        raise PluginError(f"the attack returned {shapes} for {N} attributes")
    if affine.known is None:
        return
    unknown = np.setdiff1d(np.arange(N), view.known_columns)
    if affine.known.shape != (N, N) or not np.isfinite(affine.known).all() or affine.known[:, unknown].any():
        raise PluginError("the attack weighs true values that its adversary does not know")
