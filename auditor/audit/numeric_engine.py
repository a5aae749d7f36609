"""Engine for releases of numbers: moments for linear attacks, else rows.

Figures of a numeric release itself, and evidence on pooling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from auditor import registry
from auditor.adversary.affine import check_real
from auditor.adversary.attack import CategoricalAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.attempts.cells import attack_outcome, number_counts
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.records import CellContext, promise_records, scheme_record
from auditor.audit.base.release import Release, open_release
from auditor.audit.base.request import Attempt, ReleaseRequest, parts_in_steps
from auditor.audit.base.session import (
    INSIDER,
    PER_DEVIATION,
    JointCounts,
    Session,
    cell_context,
    cells_of,
    in_order_of_promise,
    is_linear,
    made_attack,
)
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.insider.gain import MOST_VALUES, insider_gains
from auditor.audit.insider.noise_gain import noise_gains, unresolved
from auditor.audit.insider_noise.records import insider_noise_records
from auditor.audit.law_tests.numeric import law_rows, law_tests, looked_at
from auditor.audit.measures.closeness import Baseline, baseline, group_codes, sampled_of
from auditor.audit.measures.diagnosis import column_figures, noise_figures
from auditor.audit.measures.empirical_guarantee import release_guarantees
from auditor.audit.measures.entropy import entropy_records, floor_records
from auditor.audit.measures.every_cell import every_cell_records
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.measures.released_as_is import blank_records, kept_records, shown_records
from auditor.audit.measures.utility import column_of, geometry_records, utility_records
from auditor.audit.numeric.limits import TREE_ROWS
from auditor.audit.numeric.moment_pass import MomentJob, Stripe, draws_of
from auditor.audit.numeric.views import EstimatedNoise
from auditor.data.table import ShownColumn
from auditor.numerics.blocks import added_up
from auditor.numerics.moments import Moments
from auditor.process.containment import contained
from auditor.results.evidence import InsiderGain, Pooling, ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, ErrorBar, Measurement, Picture
from auditor.scenario.model import AttackUse
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices
from auditor.types import Array, Coalition


def release_records(opened: Opened, context: CellContext) -> Iterator[Measurement]:
    """Yield the figures of the release that the scenario asks for."""
    scenario, release, asked = opened.scenario, opened.release, opened.scenario.measure
    if asked("seconds"):
        yield scheme_record(context, "seconds", release.seconds)
    facts = release.scheme.facts(release.levels, release.moments)
    check_real(*facts.values())
    yield from (
        scheme_record(context, name, float(value)) for name, value in facts.items() if asked(name)
    )
    yield from release_guarantees(context, scenario, release, opened.law, opened.coalitions)
    yield from blank_records(context, release, opened.coalitions)
    if opened.gathered.noise is not None:
        yield from noise_records(context, opened.gathered.noise)
    if asked("entropy-privacy"):
        yield from entropy_records(context, release.table, opened.law, opened.coalitions)
    if asked("error-bounds"):
        K_X = release.moments.covariance
        yield from floor_records(context, scenario.data, K_X, opened.law, opened.coalitions)
    if scenario.utility is not None:
        yield from utility_records(context, scenario, release.table, release.whole_copies())
    if asked("geometry"):
        yield from geometry_records(context, release.columns, scenario.seed)
    if asked("anonymity"):
        kept = release.scheme.promises(release.blocks(), opened.coalitions)
        yield from promise_records(context, kept)


def noise_records(context: CellContext, noise: EstimatedNoise) -> list[Measurement]:
    """Return estimated levels, distances from schemes' laws, and dependence on the data."""
    records, levels = [], zip(noise.levels.tolist(), noise.std_errors.tolist(), strict=True)
    for place, (level, error) in enumerate(levels, start=1):
        metric = f"estimated_level(copy {place})"
        if np.isfinite(error):
            bar: ErrorBar = "jackknife"
            bounds = 0.0, math.inf
            record = context.estimate(metric, (place,), level, error, bounds=bounds, error_bar=bar)
        else:
            record = context.record(metric, (place,), level)
        records.append(record)
    figures = {f"off_law({name})": distance for name, distance in noise.distances.items()}
    figures["noise_on_data"] = noise.dependence
    return records + [scheme_record(context, name, value) for name, value in figures.items()]


def without_law_records(opened: Opened, context: CellContext) -> list[Measurement]:
    """Return errors over all cells of files, and figures of copies without a stated law."""
    release, table, law = opened.release, opened.release.table, opened.law
    copies, found = release.scheme.handed_in(table), list[Measurement]()
    if copies:
        whole = table.whole
        found += every_cell_records(
            context, whole.attributes, whole.values, copies, opened.coalitions
        )
    stated = law is not None and law.distribution != "unstated"
    if (
        (stated and table.units is None)
        or not opened.gathered.copies.joint
        or release.transformed is not None
        or table.streamed
    ):
        return found
    copies, steps = release.whole_copies(), table.resolution.steps
    made = release.scheme.makes_copies  # then the owner chose the values that are kept
    if not stated and not made:
        found += diagnosis(opened, context, copies)
    if not stated:
        found += shown_records(context, table.values, copies, opened.coalitions, steps)
        for one in opened.coalitions if not made else ():
            if len(one) == 1:
                found += kept_records(context, table.values, [copies[one[0] - 1]], steps, one)
    if any(isinstance(knowledge, Perfect) for knowledge in opened.scenario.knowledge):
        found += _fitted_records(opened, context, copies)
        if not made and not stated:
            found += insider_noise_records(context, table.values, copies, opened.coalitions)
    return found


def diagnosis(opened: Opened, context: CellContext, copies: list[Array]) -> list[Measurement]:
    """Return figures of the noise of copies from files, and of the columns shown beside it."""
    table, shown = opened.release.table, opened.release.scheme.shown(opened.release.table)
    originals = {}
    for column in shown:
        with contained():  # the original has no such column, or blanks in it
            originals[column.name] = column_of(opened.scenario, table, column.name)
    return [
        *noise_figures(context, table.values, copies, table.resolution.steps),
        *column_figures(context, table.values, shown, originals),
    ]


def _fitted_records(opened: Opened, context: CellContext, copies: list[Array]) -> list[Measurement]:
    scheme, table = opened.release.scheme, opened.release.table
    keys = None if table.keys is None else table.keys.in_order
    X, cells, whole = table.values, copies, table.whole
    if table.cut is not None:  # columns that a copy lacks may be predicted from others
        rows = table.cut.rows
        X = whole.values[rows]
        handed = [copy[rows, : whole.width] for copy in scheme.handed_in(table)]
        cells = [np.where(np.isnan(copy).all(axis=0), 0.0, copy) for copy in handed]
        context = context.of_columns(whole.attributes, X.var(axis=0))
    exact, shown = None if scheme.makes_copies else whole.resolution.steps, scheme.shown(table)
    if table.units is not None:
        shown.append(ShownColumn(0, "unit", table.units))
    asked = opened.scenario.data.tolerance if opened.scenario.asks_closeness else None
    by = [(name, column_of(opened.scenario, table, name)) for name in opened.scenario.grouped_by]
    asks = asked, by, table.units
    return fitted_records(context, X, cells, opened.coalitions, keys, exact, shown, *asks)


def learnt_gains(opened: Opened) -> dict[Coalition, InsiderGain]:
    """Return the insider's gains by pooling, in the first replicate."""
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
        np.concatenate(each) for each in zip(*((x, *copies) for x, copies in rows), strict=True)
    )
    proved = opened.law is not None and release.scheme.makes_copies
    return insider_gains(opened.needed, x, copies, opened.law, proved)


def pooling(opened: Opened, gains: Mapping[Coalition, InsiderGain]) -> dict[Coalition, Pooling]:
    """Return the evidence on pooling, by coalition of two copies or more."""
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


class NumericEngine:
    """Engine for copies of numbers, or of classes of records."""

    divides_held_tables = True

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return the common part of the records of a release."""
        variances = np.diag(request.moments.covariance)
        return cell_context(request, levels, copies, request.table.attributes, variances)

    def open(self, request: ReleaseRequest) -> Release:
        """Return the release; no copy is drawn."""
        return open_release(
            request.scenario,
            request.table,
            request.moments,
            request.use,
            request.levels,
            request.replicate,
        )

    def audit(
        self, request: ReleaseRequest, evidence: ReleaseEvidence
    ) -> tuple[Measurements, list[Distribution], list[Picture]]:
        """Return all records of one release, and fill in the evidence."""
        stripes = None
        if request.share is not None and request.table.streamed:
            stripes = self._gathered_in_steps(request)
        session = self._session(request, stripes)
        numbers = [] if request.share is None else self._numbers_in_steps(request)
        attempts = self._attempts_in_steps(request, numbers, stripes) if numbers else ()
        return session.run(evidence, numbers, attempts, request.tell, request.brief)

    def _gathered_in_steps(self, request: ReleaseRequest) -> list[Stripe] | None:
        """Return all moments as one stripe; None if the scheme needs the whole table."""
        here, table = request.scenario, request.table
        if registry.get("scheme", request.use.name).needs_table:
            return None
        draws = draws_of(here.knowledge, table.rows, here.seed, request.replicate)
        apart, centre = self.open(request).groups_apart(request.pooling), request.moments.mean
        job = MomentJob(table.rows, table.width, request.copies, centre, draws, apart)
        return [added_up(job, parts_in_steps(request, self.open, table.width, job))]

    def _numbers_in_steps(self, request: ReleaseRequest) -> list[int]:
        here, table = request.scenario, request.table
        counted = wanted_tally(here, np.ones(table.width), table).of_all
        cells = cells_of(here)
        by_rows = [
            number
            for number in in_order_of_promise(cells)
            if counted or not is_linear(cells[number][0])
        ]
        return [INSIDER] * request.pooling + by_rows  # the longest first

    def _attempts_in_steps(
        self, request: ReleaseRequest, numbers: list[int], stripes: list[Stripe] | None
    ) -> Iterator[tuple[int, Attempt]]:
        assert request.share is not None
        steps = [partial(self._attempt, number, stripes) for number in numbers]
        return zip(numbers, request.share(steps), strict=True)

    def _attempt(
        self, number: int, stripes: list[Stripe] | None, request: ReleaseRequest
    ) -> Attempt:
        session = self._session(request, stripes)
        if number == INSIDER:
            return session.gains()
        return session.tried(*cells_of(request.scenario)[number])

    def _session(self, request: ReleaseRequest, stripes: list[Stripe] | None) -> NumericSession:
        if "session" not in request.kept:
            here, release = request.scenario, self.open(request)
            coalitions = expand_all(here.coalitions, request.copies, here.seed)
            opened = Opened.of(here, release, coalitions, request.pooling, stripes)
            context = self.context(request, request.levels, request.copies)
            request.kept["session"] = NumericSession(opened, context)
        session: NumericSession = request.kept["session"]
        return session


class NumericSession(Session):
    """One numeric release under audit."""

    def __init__(self, opened: Opened, context: CellContext) -> None:
        self.opened, self.context = opened, context
        self.scenario, self.coalitions = opened.scenario, opened.coalitions

    @cached_property
    def baseline(self) -> Baseline | None:
        """Success of guesses without copies, if closeness is requested."""
        if not self.scenario.asks_closeness:
            return None
        table = self.opened.release.table
        found = baseline(table, self.scenario.data.tolerance)
        groups = [
            (name, group_codes(sampled_of(table, column_of(self.scenario, table, name))))
            for name in self.scenario.grouped_by
        ]
        units = None if table.units is None else sampled_of(table, table.units)
        return replace(found, groups=groups, units=units)

    def release_records(self) -> list[Measurement]:
        """Return the figures of the release itself."""
        return list(release_records(self.opened, self.context))

    def attempt(
        self, use: AttackUse, knowledge: Knowledge, coalitions: Sequence[Coalition]
    ) -> Attempt:
        """Return the outcome of one attack."""
        opened, attack = replace(self.opened, coalitions=coalitions), made_attack(use)
        data = opened.release.table.categorical
        if isinstance(attack, CategoricalAttack) and data is not None and not attack.serial:
            found = binned_records(
                opened.release.table,
                opened.release.blocks,
                opened.law,
                opened.needed,
                coalitions,
                self.context.under(use.id, knowledge.label),
                knowledge,
            )
            return Attempt(Measurements.of(found), [])
        return attack_outcome(opened, attack, use.id, knowledge, self.context, self.baseline)

    def joint_counts(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> tuple[JointCounts, float]:
        """Return an attribute's counts, and a cell's width in standard deviations."""
        column = self.context.attributes.index(attribute)
        attack = made_attack(use)
        counts = number_counts(self.opened, attack, knowledge, coalition, column)
        return counts, 1.0 / PER_DEVIATION

    def later_records(self) -> list[Measurement]:
        """Return figures of copies without a stated law."""
        return without_law_records(self.opened, self.context)

    def gains(self) -> Attempt:
        """Return the insider's gains by pooling."""
        return Attempt(Measurements.of([]), [], gains=learnt_gains(self.opened.by_record))

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations."""
        opened, table = self.opened.by_record, self.opened.release.table
        evidence.law.extend(law_tests(opened.release, opened.law_within))
        if opened.estimated:
            evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
        if opened.pooling:
            for found in made.values():
                evidence.paired.update(found.paired)
            gains = made[INSIDER] if INSIDER in made else self.gains()
            evidence.pooling.update(pooling(opened, gains.gains))
