"""Request to audit one release, its levels and copies, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np

from auditor import registry
from auditor.adversary.attack import expand_all
from auditor.audit.numeric.error_bars import Errors, Figure, with_total
from auditor.audit.numeric.error_tally import Tally, spread_shares
from auditor.audit.numeric.release import Drawn, Release, Share, make_scheme, open_release
from auditor.base import PluginError
from auditor.base.types import Array, Coalition, Coalitions, frozen, unprinted
from auditor.data.table import Audited, Table
from auditor.numerics.blocks import Job, P, added_up, stripes, walk
from auditor.numerics.statistics import quantile
from auditor.results.measurements import Measurements
from auditor.results.records import (
    Distribution,
    ErrorBar,
    InsiderGain,
    LawTest,
    Measurement,
    PairedCell,
    PairedGain,
    Pairs,
    Picture,
    ReleaseEvidence,
    Status,
)
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import TableMoments, table_moments
from auditor.schemes.replacement.base import categories_of

# -- Flat records of results, from figures and arrays of errors ------------------------------------


ALL = "*"
"""The attribute of figures over all attributes."""
UNBOUNDED = -math.inf, math.inf
SHARED = "sweep", "scheme", "knowledge", "attack", "replicate"
"""Fields of a context that all its records have."""


class Bar(NamedTuple):
    """Standard error, distances to the ends of the 95 % interval, and source."""

    std_error: float
    below: float
    above: float
    source: ErrorBar

    @classmethod
    def normal(cls, std_error: float, source: ErrorBar, degrees: float = math.inf) -> Bar:
        """Bar of a normal figure, or by Student's t."""
        reach = quantile(0.975, degrees) * std_error
        return cls(std_error, reach, reach, source)

    def times(self, factor: float) -> Bar:
        """Bar of a multiple of the figure."""
        ends = self.below * factor, self.above * factor
        return Bar(self.std_error * factor, *ends, self.source)


@unprinted
class CellContext:
    """Common part of the records of one release.

    Attributes
    ----------
    variances : ndarray of shape (N,)
        Each attribute's variance in the table, divisor n.
    copies : int
        Number of released copies; 0 if unknown.
    attack, knowledge : str or None
        None for figures of the release itself.
    """

    sweep: dict[str, Any]
    scheme: str
    levels: tuple[float, ...]
    replicate: int
    attributes: tuple[str, ...]
    variances: Array
    copies: int
    attack: str | None = None
    knowledge: str | None = None

    def __post_init__(self) -> None:
        names = tuple("'*'" if name == ALL else name for name in self.attributes)
        object.__setattr__(self, "attributes", names)

    def levels_of(self, coalition: Coalition) -> tuple[float, ...]:
        """Levels of a coalition's copies; empty if unknown."""
        return tuple(self.levels[copy - 1] for copy in coalition) if self.levels else ()

    def of_columns(self, attributes: tuple[str, ...], variances: Array) -> CellContext:
        """Context for other columns."""
        return replace(self, attributes=attributes, variances=variances)

    def under(self, attack: str | None, knowledge: str | None) -> CellContext:
        """Context for one attack with one state of knowledge."""
        return replace(self, attack=attack, knowledge=knowledge)

    @property
    def shared(self) -> dict[str, Any]:
        """Fields that all records have."""
        return {name: getattr(self, name) for name in SHARED}

    @property
    def everybody(self) -> Coalition:
        """All copies."""
        return tuple(range(1, self.copies + 1))

    def empty(self, coalition: Coalition, status: str, reason: str) -> Measurement:
        """Record of a cell without a measurement."""
        return self.record("distortion", coalition, status=cast(Status, status), reason=reason)

    def record(
        self,
        metric: str,
        coalition: Coalition,
        value: float | None = None,
        bar: Bar | None = None,
        theory: float | None = None,
        *,
        attribute: str = ALL,
        bounds: tuple[float, float] = UNBOUNDED,
        status: Status = "ok",
        reason: str | None = None,
        missing: ErrorBar = "none",
    ) -> Measurement:
        """One record, with its 95 % interval cut at the metric's bounds.

        ``reason`` explains a missing measurement, ``missing`` an absent error bar. A theory of NaN
        is none.
        """
        low = high = None
        if value is not None and bar is not None:
            low, high = max(bounds[0], value - bar.below), min(bounds[1], value + bar.above)
        return Measurement(
            **self.shared,
            coalition=coalition,
            levels=self.levels_of(coalition),
            attribute=attribute,
            metric=metric,
            value=value,
            std_error=bar and bar.std_error,
            ci_low=low,
            ci_high=high,
            theory=None if theory is None or math.isnan(theory) else theory,
            status=status,
            reason=reason if bar is None else None,
            error_bar=bar.source if bar else missing,
        )

    def estimate(
        self,
        metric: str,
        coalition: Coalition,
        value: float,
        std_error: float,
        theory: float | None = None,
        *,
        degrees: float = math.inf,
        error_bar: ErrorBar = "sampling",
        **more: Any,
    ) -> Measurement:
        """``record`` with an interval by Student's t."""
        bar = Bar.normal(std_error, error_bar, degrees)
        return self.record(metric, coalition, value, bar, theory, **more)


@frozen
class Cells:
    """Coalitions under one attack, or of a release; some are wanted.

    Attributes
    ----------
    wanted : sequence of int
        Places of coalitions.
    """

    context: CellContext
    coalitions: Coalitions
    wanted: Sequence[int]

    @classmethod
    def all(cls, context: CellContext, coalitions: Coalitions) -> Cells:
        """Cells that are all wanted."""
        return cls(context, coalitions, range(len(coalitions)))

    def records(
        self,
        metric: str,
        figure: Figure,
        bar: ErrorBar,
        bounds: tuple[float, float] = (0.0, math.inf),
    ) -> list[Measurement]:
        """A metric's records, see ``table``."""
        return self.table({metric: (figure, bounds)}, bar)

    def table(
        self,
        figures: Mapping[str, tuple[Figure, tuple[float, float]]],
        bar: ErrorBar,
        missing: ErrorBar = "none",
    ) -> list[Measurement]:
        """Records of metrics, each with its bounds.

        Arrays have shape (B, N), or (B, N + 1) with ``*`` last; NaN for none. ``missing`` replaces
        the source of an absent error bar.
        """
        numbers = {
            metric: np.stack(figure, axis=-1).tolist() for metric, (figure, _) in figures.items()
        }
        return [
            self.context.record(
                metric,
                self.coalitions[b],
                value,
                None if math.isnan(error) else Bar(error, below, above, bar),
                theory,
                attribute=name,
                bounds=figures[metric][1],
                missing=missing,
            )
            for b in self.wanted
            for j, name in enumerate((*self.context.attributes, ALL))
            for metric, each in numbers.items()
            for value, error, below, above, theory in each[b][j : j + 1]
            if not math.isnan(value)
        ]

    def withheld(
        self, metric: str, reason: str, attributes: Sequence[str] = (ALL,)
    ) -> list[Measurement]:
        """Records with the reason for no measurement."""
        return [
            self.context.record(
                metric, self.coalitions[b], attribute=name, status="not-applicable", reason=reason
            )
            for b in self.wanted
            for name in attributes
        ]


def error_records(cells: Cells, errors: Errors) -> list[Measurement]:
    """Distortion, rmse, normalized error and gain of wanted coalitions."""
    positive, distortion = (0.0, math.inf), errors.distortion
    redrawn = errors.bar in ("redraws", "sampling", "replicates-needed")
    return cells.table(
        {
            "distortion": (distortion, positive),
            "rmse": (distortion.root(), positive),
            "normalized_error": (distortion.over(with_total(cells.context.variances)), positive),
            "collusion_gain": (errors.gain, UNBOUNDED),
        },
        errors.bar,
        "replicates-needed" if redrawn else "none",
    )


def distribution_records(cells: Cells, tally: Tally) -> list[Distribution]:
    """Distribution of absolute errors over the records, by attribute."""
    if "counts" not in tally.sums:
        return []
    context = cells.context
    shares = spread_shares(tally.sums["counts"], tally.spread_rows)
    edges = np.linspace(0.0, tally.reach, tally.bins + 1)[:, None] * tally.scale
    return [
        Distribution(
            **context.shared,
            coalition=cells.coalitions[place],
            attribute=attribute,
            edges=tuple(edges[:, column].tolist()),
            shares=tuple(shares[place, column, :-1].tolist()),
            above=float(shares[place, column, -1]),
        )
        for place in cells.wanted
        for column, attribute in enumerate(context.attributes)
    ]


# --------------------------------------------------------------------------------------------------


MOST_STEPS = 256
"""Steps of a pass: five for each of fifty workers."""
SoFar = Callable[[], "ReleaseAudit"]
"""Returns the audit of a release so far."""
Tell = Callable[[SoFar], None]
Step = Callable[["ReleaseRequest"], Any]
"""Part of an audit that any process can carry out, given the request; can be pickled."""
Open = Callable[["ReleaseRequest"], Drawn]
"""Opens the requested release in any process."""


@unprinted
class ReleaseRequest:
    """One scheme at one sweep point in one replicate.

    Attributes
    ----------
    scenario : Scenario
        At the sweep point.
    point : dict
        The swept values.
    replicate : int
        From 1.
    pooling : bool
        Whether evidence on gains by pooling is needed.
    share : callable, optional
        Carries steps out, perhaps in other processes, and yields results in order. Raises
        AuditorError if a step fails. None: no steps.
    tell : callable, optional
        Receives a function for the audit so far after every attack.
    brief : bool
        Whether only attacks are wanted, and no further evidence.
    kept : dict
        Objects that steps share within one process.
    """

    scenario: Scenario
    point: dict[str, Any]
    table: Table
    use: SchemeUse
    replicate: int = 1
    pooling: bool = False
    share: Callable[[Sequence[Step]], Iterator[Any]] | None = None
    tell: Tell | None = None
    brief: bool = False
    kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Levels in order of release; a plugin's own may raise anything."""
        return release_levels(self.use, self.scenario, self.replicate)

    @cached_property
    def copies(self) -> int:
        """Number of copies that the scheme releases."""
        return release_copies(self.use, self.scenario)

    @cached_property
    def coalitions(self) -> list[Coalition]:
        """Coalitions of the scenario."""
        return list(expand_all(self.scenario.coalitions, self.copies, self.scenario.seed))

    def context(self, levels: tuple[float, ...] = (), copies: int = 0) -> CellContext:
        """Common part of the records of the release; its copies may be unknown."""
        if _categorical(self.use):
            names = categories_of(self.table).names
            columns = names, np.ones(len(names))
        else:
            columns = self.table.attributes, np.diag(self.moments.covariance)
        return CellContext(self.point, self.use.id, levels, self.replicate, *columns, copies)

    def audited(self) -> tuple[ReleaseRequest, Audited]:
        """Request for the part of the table that copies are of, and that part."""
        table = perturbed_table(self.use, self.table)
        part = make_scheme(self.use, self.scenario.base, table).audited(table)
        if table is not self.table:
            note = f"one noise for all records of a unit: {table.rows:,} units of {self.table.rows:,} records, each counted once"
            part = part._replace(notes=(note, *part.notes))
        return self if part.table is self.table else replace(self, table=part.table), part

    @cached_property
    def moments(self) -> TableMoments:
        """The table's own."""
        return table_moments(self.table)

    def in_steps(self, open: Open, width: int) -> Share | None:
        """Function that carries out a job on the release in steps, if it may."""
        return self.share and partial(done_in_steps, self, open, width)


def release_of(request: ReleaseRequest) -> Release:
    """Requested release of numbers; no copy is drawn."""
    here, table, moments = request.scenario, request.table, request.moments
    facts = request.use, request.levels, request.replicate
    release = open_release(here, table, moments, *facts)
    if table.streamed and not release.scheme.needs_table:
        release.share = request.in_steps(release_of, table.width)
    return release


def _parts(
    job: Job[Any], open: Open, width: int, cut: tuple[int, int], request: ReleaseRequest
) -> list[Any]:
    """Job's parts on some stripes, first to last (exclusive)."""
    return list(walk(job, open(request).block, request.table.rows, width, *cut))


def done_in_steps(request: ReleaseRequest, open: Open, width: int, job: Job[P]) -> P:
    """Job's result for the whole table, its stripes divided into steps."""
    assert request.share is not None
    count = len(stripes(request.table.rows, width))
    each = math.ceil(count / MOST_STEPS)
    cuts = [(first, min(first + each, count)) for first in range(0, count, each)]
    parts = request.share([partial(_parts, job, open, width, cut) for cut in cuts])
    return added_up(job, chain.from_iterable(parts))


def release_levels(use: SchemeUse, scenario: Scenario, replicate: int = 1) -> tuple[float, ...]:
    """Levels of one use of a scheme, in order of release; empty if unknown."""
    if use.levels is not None:
        return use.levels.resolve(scenario.seed, replicate)
    levels = make_scheme(use, scenario.base).default_levels()
    if not isinstance(levels, tuple) or not all(
        isinstance(level, (int, float)) for level in levels
    ):
        raise PluginError("the scheme's default levels are no tuple of numbers")
    return levels


def release_copies(use: SchemeUse, scenario: Scenario) -> int:
    """Number of copies that one use of a scheme releases."""
    return make_scheme(use, scenario.base).count(release_levels(use, scenario))


def perturbed_table(use: SchemeUse, table: Table) -> Table:
    """Table that a scheme perturbs: the records, or one for each unit."""
    return table.of_units(_categorical(use)) if use.per_unit else table


def _categorical(use: SchemeUse) -> bool:
    return bool(registry.get("scheme", use.name).engine == "categorical")


def with_singles(coalitions: Iterable[Coalition]) -> list[Coalition]:
    """Coalitions and their members alone, by size."""
    every = set(coalitions)
    every |= {(copy,) for coalition in every for copy in coalition}
    return sorted(every, key=lambda coalition: (len(coalition), coalition))


@frozen
class ReleaseAudit:
    """Outcome of the audit of one release."""

    measurements: Measurements
    distributions: list[Distribution]
    pictures: list[Picture]
    evidence: ReleaseEvidence


@frozen
class Attempt:
    """Outcome of one attack and knowledge, or the insider's gains.

    Attributes
    ----------
    paired : dict
        Gains over copies chosen before any measurement.
    told : bool
        Whether the attack knows the table's distinct values.
    tests, gains : list, dict
        Tests of the law, and the insider's gains by pooling.
    """

    measurements: Measurements
    distributions: list[Distribution]
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    told: bool = False
    tests: list[LawTest] = field(default_factory=list)
    gains: Pairs[Coalition, InsiderGain] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Measurement]) -> Attempt:
        """Outcome that consists of records alone."""
        return cls(Measurements.of(list(records)), [])

    @classmethod
    def joined(cls, parts: Sequence[Attempt]) -> Attempt:
        """Outcomes on different coalitions as one."""
        return cls(
            Measurements.concatenated(part.measurements for part in parts),
            [spread for part in parts for spread in part.distributions],
            {cell: gain for part in parts for cell, gain in part.paired.items()},
            any(part.told for part in parts),
        )
