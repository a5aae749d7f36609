"""Audit one release of numbers: moments gathered once, then every attack with every state of knowledge on every coalition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.categorical_attack import CategoricalAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.handed_back import check_real
from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.adversary.published_tree import TreeMoments
from auditor.audit.anonymity.inferences import Inferences, inference_records
from auditor.audit.attempts.linear import linear_errors
from auditor.audit.attempts.opened import Opened, wants_groups
from auditor.audit.attempts.over_rows import row_errors
from auditor.audit.base.outcome import Attempt
from auditor.audit.base.records import (
    ALL,
    CellContext,
    distribution_records,
    error_records,
    noise_records,
    promise_records,
    scheme_record,
)
from auditor.audit.base.release import Release, open_release
from auditor.audit.base.request import ReleaseRequest, parts_in_steps
from auditor.audit.categorical.binned_columns import binned_records
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.insider.gain import MOST_VALUES, insider_gains
from auditor.audit.insider.noise_gain import noise_gains, unresolved
from auditor.audit.insider_noise.records import insider_noise_records
from auditor.audit.law_tests.numeric import law_rows, law_tests, looked_at
from auditor.audit.measures.closeness import Baseline, baseline, closeness_records, sampled
from auditor.audit.measures.error_bounds import attack_bound_records, floor_records
from auditor.audit.measures.every_cell import every_cell_records
from auditor.audit.measures.geometry import geometry_records
from auditor.audit.measures.guarantee_records import (
    audited_records,
    guarantee_records,
    guarantees_of,
)
from auditor.audit.measures.known_alone import errors_alone, errors_in_leaves, number_records
from auditor.audit.measures.naming import Naming, naming_records
from auditor.audit.measures.privacy import entropy_records, tally_records, wanted_tally
from auditor.audit.measures.record_hits import WholeRecords, wanted_hits, whole_record_records
from auditor.audit.measures.released_as_is import kept_records, shown_records
from auditor.audit.measures.utility import utility_records
from auditor.audit.numeric.error_bars import Paired
from auditor.audit.numeric.gather import Stripe, draws_of
from auditor.audit.numeric.limits import TREE_ROWS
from auditor.audit.numeric.moment_pass import MomentJob
from auditor.audit.numeric.views import Gathered
from auditor.data.shown_columns import ShownColumn
from auditor.errors import NotApplicable, PluginError
from auditor.numerics.blocks import row_blocks
from auditor.numerics.moments import Moments
from auditor.numerics.passes import added_up
from auditor.process.containment import contained
from auditor.results.evidence import InsiderGain, PairedCell, PairedGain, Pooling, ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement
from auditor.scenario.model import AttackUse, PluginUse, Scenario
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices
from auditor.types import Array, Coalition

INSIDER = -1
"""Number of the attempt that measures the insider's gains by pooling."""


class NumericEngine:
    """Audits copies of numbers: by moments if attacks are linear, else by rows."""

    divides_held_tables = True

    def context(
        self, request: ReleaseRequest, levels: tuple[float, ...], copies: int
    ) -> CellContext:
        """Return what every record of a release shares."""
        variances = np.diag(request.moments.covariance)
        return CellContext(
            sweep=request.point,
            scheme=request.use.id,
            levels=levels,
            replicate=request.replicate,
            attributes=request.table.attributes,
            variances=variances,
            copies=copies,
        )

    def open(self, request: ReleaseRequest) -> Release:
        """Return the release, its copies not drawn yet."""
        here, table = request.scenario, request.table
        return open_release(
            here, table, request.moments, request.use, request.levels, request.replicate
        )

    def audit(
        self,
        request: ReleaseRequest,
        context: CellContext,
        coalitions: list[Coalition],
        evidence: ReleaseEvidence,
    ) -> tuple[Measurements, list[Distribution]]:
        """Make the copies once, gather their moments, and let every attack try every coalition."""
        stripes = None
        if request.share is not None and request.table.streamed:
            stripes = self._gathered_in_steps(request)
        session = self._session(request, stripes)
        made = {} if request.share is None else self._attempts_in_steps(request, stripes)
        found = session.run(made)
        session.testify(evidence, made)
        return found

    def _gathered_in_steps(self, request: ReleaseRequest) -> list[Stripe] | None:
        """Return all moments as one stripe; None if the scheme needs the whole table."""
        here, table, moments = request.scenario, request.table, request.moments
        if registry.get("scheme", request.use.name).needs_table:
            return None
        release = self.open(request)
        law = release.scheme.law(release.levels, moments.scale)
        job = MomentJob(
            table.rows,
            table.width,
            request.copies,
            moments.mean,
            draws_of(here.knowledge, table.rows, here.seed, request.replicate),
            apart=wants_groups(release, law, request.pooling),
        )
        return [added_up(job, parts_in_steps(request, self.open, table.width, job))]

    def _attempts_in_steps(
        self, request: ReleaseRequest, stripes: list[Stripe] | None
    ) -> dict[int, Attempt]:
        """Return the attempts that go through all rows, and the insider's gains, by number."""
        here, table = request.scenario, request.table
        counted = wanted_tally(here, np.ones(table.width), table).of_all
        numbers = [INSIDER] if request.pooling else []
        numbers += [
            number for number, (use, _) in enumerate(cells_of(here)) if counted or not _linear(use)
        ]
        assert request.share is not None
        steps = [partial(self._attempt, number, stripes) for number in numbers]
        return dict(zip(numbers, request.share(steps), strict=True))

    def _attempt(
        self, number: int, stripes: list[Stripe] | None, request: ReleaseRequest
    ) -> Attempt:
        session = self._session(request, stripes)
        return (
            session.gains()
            if number == INSIDER
            else session.attempt(*cells_of(request.scenario)[number])
        )

    def _session(self, request: ReleaseRequest, stripes: list[Stripe] | None) -> Session:
        """Return the release with its moments gathered, once per request and process."""
        if "session" not in request.kept:
            coalitions = expand_all(
                request.scenario.coalitions, request.copies, request.scenario.seed
            )
            opened = Opened.of(
                request.scenario, self.open(request), coalitions, request.pooling, stripes
            )
            check_copies(opened.gathered)
            context = self.context(request, request.levels, request.copies)
            request.kept["session"] = Session(opened, context)
        session: Session = request.kept["session"]
        return session


def cells_of(scenario: Scenario) -> list[tuple[AttackUse, Knowledge]]:
    """Return every attack with every state of knowledge, in the order of results: by their places there attempts are known."""
    return [(use, knowledge) for knowledge in scenario.knowledge for use in scenario.attacks]


def _linear(use: AttackUse) -> bool:
    """Whether an attack is linear; also true if it cannot be made, which its cells record."""
    with contained():
        return isinstance(registry.get("attack", use.name)(use.parameters).form(), LinearAttack)
    return True


def check_copies(gathered: Gathered) -> None:
    """Refuse copies that are not finite; the harness does not trust what a plugin draws."""
    if not gathered.finite or not all(
        np.isfinite(group.products).all() for group in gathered.groups
    ):
        raise PluginError("the scheme drew values that are not finite")


class Session:
    """One release under audit: its own figures, and the cells that attacks, knowledge and coalitions make."""

    def __init__(self, opened: Opened, context: CellContext) -> None:
        self.opened, self.context = opened, context
        self.paired: dict[PairedCell, PairedGain] = {}
        self.told: list[tuple[str, str]] = []

    @cached_property
    def baseline(self) -> Baseline:
        """Success of guesses without copies."""
        return baseline(self.opened.release.table, self.opened.scenario.data.tolerance)

    def run(self, made: Mapping[int, Attempt]) -> tuple[Measurements, list[Distribution]]:
        """Return the records of the release and of every cell; attempts that were made elsewhere are given by number."""
        cells, spreads = (
            [Measurements.of(release_records(self.opened, self.context))],
            list[Distribution](),
        )
        for number, (use, knowledge) in enumerate(cells_of(self.opened.scenario)):
            found = made[number] if number in made else self.attempt(use, knowledge)
            cells.append(found.measurements)
            spreads += found.distributions
            self.paired.update(found.paired)
            self.told += [(use.id, knowledge.label)] * found.told
        more = beyond_the_part(self.opened, self.context) + without_a_law(self.opened, self.context)
        return Measurements.concatenated([*cells, more]), spreads

    def attempt(self, use: AttackUse, knowledge: Knowledge) -> Attempt:
        """Return what one attack comes to on the coalitions that it tries; where it fails that is recorded, and does not stop others."""
        tried = [
            coalition
            for coalition in self.opened.coalitions
            if use.tries(coalition, self.context.copies)
        ]
        return Attempt.joined(
            self._tried(replace(self.opened, coalitions=tried), use, knowledge) if tried else []
        )

    def gains(self) -> Attempt:
        """Return the insider's gains by pooling, and nothing else."""
        opened = self.opened.by_record
        gains = learnt_gains(opened) if opened.gathered.copies.joint else {}
        return Attempt(Measurements.of([]), [], gains=gains)

    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in what expectations judge the release by; what trees gain may have been found elsewhere."""
        opened, table = self.opened.by_record, self.opened.release.table
        evidence.law.extend(law_tests(opened.release, opened.law_within))
        if self.told:
            evidence.facts["told"] = list(dict.fromkeys(self.told))
        if opened.estimated:
            evidence.facts["fitted"] = opened.release.copies * table.width / table.rows
        if opened.pooling:
            evidence.paired.update(self.paired)
        if opened.pooling and opened.gathered.copies.joint:
            insider = made[INSIDER].gains if INSIDER in made else learnt_gains(opened)
            evidence.pooling.update(pooling_evidence(opened, insider))
        elif opened.pooling:
            several = [coalition for coalition in opened.needed if len(coalition) > 1]
            told = opened.release.scheme.sufficient(opened.release.blocks(), several)
            evidence.pooling.update(
                {coalition: Pooling(says, by_classes=True) for coalition, says in told.items()}
            )

    def _tried(self, opened: Opened, use: PluginUse, knowledge: Knowledge) -> list[Attempt]:
        """Return the outcome of one attack; when it fails, coalition by coalition, so that only the cells at fault are lost."""
        with contained() as failure:
            return [self._attempt(opened, use, knowledge)]
        if len(opened.coalitions) > 1:
            return [
                found
                for one in opened.coalitions
                for found in self._tried(replace(opened, coalitions=[one]), use, knowledge)
            ]
        empty = [
            self.context.empty(use.id, knowledge.label, one, failure.status, failure.reason)
            for one in opened.coalitions
        ]
        return [Attempt(Measurements.of(empty), [])]

    def _attempt(self, opened: Opened, use: PluginUse, knowledge: Knowledge) -> Attempt:
        """Return the outcome of one attack with one state of knowledge on every coalition."""
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        scenario, release, context, needed = (
            opened.scenario,
            opened.release,
            self.context,
            opened.needed,
        )
        opened.gathered.shares.asked = False
        if (
            isinstance(attack, CategoricalAttack)
            and release.table.categorical is not None
            and not attack.serial
        ):
            found = binned_records(
                release.table,
                release.blocks,
                opened.law,
                needed,
                opened.coalitions,
                context,
                use.id,
                knowledge,
            )
            return Attempt(Measurements.of(found), [])
        attack.check(release.scheme.family, knowledge)
        if isinstance(attack, LinearAttack) and not opened.gathered.copies.joint:
            attack = attack.over_rows()
        scale = np.sqrt(np.diag(release.moments.covariance))
        tally = wanted_tally(scenario, scale, release.table)
        if scenario.asks_closeness:
            tally.sample, tally.stride = sampled(scale, self.baseline), self.baseline.stride
        hits, inferences, namings = list[WholeRecords](), list[Inferences](), list[Naming]()
        if isinstance(attack, LinearAttack):
            errors = linear_errors(opened, attack, knowledge, tally)
        elif isinstance(attack, RowAttack):
            hits, inferences, namings = (
                wanted_hits(scenario, len(needed)),
                [Inferences() for _ in needed],
                [Naming() for _ in needed],
            )
            errors = row_errors(opened, attack, knowledge, tally, hits, inferences, namings)
        else:
            raise NotApplicable(f"{use.name} is neither a linear nor a row-level attack")
        if not np.isfinite(errors.distortion.value).all():
            raise PluginError("the attack's errors are beyond what double precision can square")
        cell, wanted = (use.id, knowledge.label), opened.wanted
        told = opened.gathered.shares.asked
        paired = paired_gains(
            cell, context, [(place, needed[place]) for place in wanted], errors.paired
        )
        table = error_records(context, *cell, needed, wanted, errors)
        fresh = opened.law is None or opened.law.tells_spread
        if (
            fresh
            and isinstance(attack, LinearAttack)
            and errors.bar == "redraws"
            and not np.isnan(errors.distortion.theory).all()
        ):
            # It counts all draws there are theory of, record by record; where there is no bar,
            # replicates are asked for as ever.
            bars = table.columns["error_bar"]
            table = table.replaced(
                error_bar=bars._replace(
                    values=["sampling" if bar == "redraws" else bar for bar in bars.values]
                )
            )
        cells = tally_records(scenario, context, *cell, needed, wanted, tally, release.table)
        if tally.sample is not None:
            cells += closeness_records(context, cell, needed, wanted, tally.sample, self.baseline)
        if (
            scenario.measure("error-bounds")
            and isinstance(attack, LinearAttack)
            and release.transformed is None
        ):
            cells += attack_bound_records(
                context,
                attack,
                cell,
                knowledge,
                opened.gathered,
                [needed[place] for place in wanted],
            )
        if knowledge.in_clear:
            cells += number_records(context, use.id, knowledge, known_alone(opened, knowledge))
        for place in wanted if inferences else ():
            cells += inference_records(
                context, *cell, needed[place], inferences[place], release.table.attributes
            )
            cells += naming_records(context, *cell, needed[place], namings[place])
        if hits:
            cells += whole_record_records(
                context,
                *cell,
                [needed[place] for place in wanted],
                [hits[place] for place in wanted],
            )
        spreads = distribution_records(context, *cell, needed, wanted, tally)
        return Attempt(Measurements.concatenated([table, cells]), spreads, paired, told)


def paired_gains(
    cell: tuple[str, str],
    context: CellContext,
    places: Sequence[tuple[int, Coalition]],
    paired: Paired | None,
) -> dict[PairedCell, PairedGain]:
    """Return gains over copies chosen before anything was measured, for whoever judges what pooling buys."""
    if paired is None:
        return {}
    (attack, knowledge), parts = cell, (paired.gain, paired.std_error, paired.degrees)
    return {
        (knowledge, attack, coalition, name): (float(gain), float(error), float(degrees))
        for place, coalition in places
        for name, gain, error, degrees in zip(
            (*context.attributes, ALL), *(part[place] for part in parts), strict=True
        )
    }


def release_records(opened: Opened, context: CellContext) -> Iterator[Measurement]:
    """Yield the figures of the release itself that a scenario asks for, which no attack has a part in."""
    scenario, release, asked = opened.scenario, opened.release, opened.scenario.measure
    if asked("seconds"):
        yield scheme_record(context, "seconds", release.seconds)
    facts = release.scheme.facts(release.levels, release.moments)
    check_real(*facts.values())
    yield from (
        scheme_record(context, name, float(value)) for name, value in facts.items() if asked(name)
    )
    stated = guarantees_of(scenario, release, opened.law)
    if stated is not None:
        yield from guarantee_records(context, stated, opened.coalitions)
        yield from audited_records(context, scenario, release, stated, opened.coalitions)
    if opened.gathered.noise is not None:
        yield from noise_records(context, opened.gathered.noise)
    if asked("entropy-privacy"):
        yield from entropy_records(context, release.table, opened.law, opened.coalitions)
    if asked("error-bounds"):
        yield from floor_records(
            context, scenario.data, release.moments.covariance, opened.law, opened.coalitions
        )
    if scenario.utility is not None:
        yield from utility_records(context, scenario, release.table, release.whole_copies())
    if asked("geometry"):
        yield from geometry_records(context, release.columns, scenario.seed)
    if asked("anonymity"):
        yield from promise_records(
            context, release.scheme.promises(release.blocks(), opened.coalitions)
        )


def beyond_the_part(opened: Opened, context: CellContext) -> list[Measurement]:
    """Return errors over all that copies from files say, where what is audited is but the part that they have in common and in full."""
    whole = opened.release.table.whole
    copies = opened.release.scheme.handed_in(opened.release.table)
    return (
        every_cell_records(context, whole.attributes, whole.values, copies, opened.coalitions)
        if copies
        else []
    )


def known_alone(opened: Opened, knowledge: Knowledge) -> Array:
    """Return the squared errors of who was given attributes in clear, and no copy, shape (N,)."""
    view, table = opened.gathered.view(knowledge), opened.release.table
    if isinstance(view.given, TreeMoments):
        tree, X = (
            view.given.tree,
            np.concatenate([table.read(a, b) for a, b in row_blocks(table.rows, table.width)]),
        )
        return errors_in_leaves(X, tree.leaf_of(X[:, tree.on]), view.known_columns.tolist())
    return errors_alone(opened.release.moments.covariance, view.known_columns.tolist())


def without_a_law(opened: Opened, context: CellContext) -> list[Measurement]:
    """Return which values copies show that nobody states a whole law of, and what the originals teach whoever knows as much as it says."""
    release, table, law = opened.release, opened.release.table, opened.law
    stated = law is not None and law.distribution != "unstated"
    if (
        (stated and table.units is None)
        or not opened.gathered.copies.joint
        or release.transformed is not None
        or table.streamed
    ):
        return []
    copies, steps = release.whole_copies(), table.resolution.steps
    found = list[Measurement]()
    if not stated:
        found += shown_records(context, table.values, copies, opened.coalitions, steps)
    made = release.scheme.makes_copies  # whoever makes copies here chose what is kept in them
    for one in opened.coalitions if not made and not stated else ():
        found += (
            kept_records(context, table.values, [copies[one[0] - 1]], steps, one)
            if len(one) == 1
            else []
        )
    if any(isinstance(knowledge, Perfect) for knowledge in opened.scenario.knowledge):
        keys = None if table.keys is None else table.keys.in_order
        X, cells, here, whole = table.values, copies, context, table.whole
        if table.cut is not None:  # columns that a copy lacks may be predicted from others
            rows = table.cut.rows
            X = whole.values[rows]
            handed = [copy[rows, : whole.width] for copy in release.scheme.handed_in(table)]
            cells = [np.where(np.isnan(copy).all(axis=0), 0.0, copy) for copy in handed]
            here = context.of_columns(whole.attributes, X.var(axis=0))
        exact, shown = None if made else whole.resolution.steps, release.scheme.shown(table)
        if table.units is not None:
            shown.append(ShownColumn(0, "unit", table.units))
        found += fitted_records(here, X, cells, opened.coalitions, keys, exact, shown)
        if not made and not stated:
            found += insider_noise_records(context, table.values, copies, opened.coalitions)
    return found


def learnt_gains(opened: Opened) -> dict[Coalition, InsiderGain]:
    """Return the insider's gains by pooling; of one replicate, as they take about a second."""
    release = opened.release
    if release.key.replicate > 1 or all(len(coalition) == 1 for coalition in opened.needed):
        return {}
    wanted = min(TREE_ROWS, MOST_VALUES // (release.copies * release.table.width))
    parts = [
        (x, *copies)
        for x, copies in looked_at(release, wanted if release.kept else law_rows(release))
    ]
    x, *copies = (np.concatenate(each) for each in zip(*parts, strict=True))
    return insider_gains(
        opened.needed, x, copies, opened.law, opened.law is not None and release.scheme.makes_copies
    )


def pooling_evidence(
    opened: Opened, insider: Mapping[Coalition, InsiderGain]
) -> dict[Coalition, Pooling]:
    """Return the evidence on every coalition of two copies or more, with the insider's gains."""
    law, total = opened.law, Moments.merge(opened.gathered.groups)
    several = [coalition for coalition in opened.needed if len(coalition) > 1]
    if not several:
        return {}
    noise = noise_gains(several, total, law) if isinstance(law, KroneckerNoise) else {}
    useless = None if law is None else makes_useless(law)
    lost = unresolved(several, total, opened.release.table.width)
    proved = opened.release.scheme.makes_copies
    return {
        one: Pooling(
            None if useless is None else one_suffices(useless, one),
            noise.get(one),
            one in lost,
            insider.get(one),
            proved,
        )
        for one in several
    }
