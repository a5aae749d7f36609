"""Request to audit one release, its levels and copies, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from auditor import registry
from auditor.adversary.coalitions import expand_all
from auditor.audit.base.records import CellContext
from auditor.base.errors import PluginError
from auditor.base.types import Array, Coalition
from auditor.data.table import Audited, Table
from auditor.numerics.blocks import Job, P, added_up, stripes, walk
from auditor.results.evidence import InsiderGain, PairedCell, PairedGain, Pairs, ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement, Picture
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme, TableMoments, table_moments

MOST_STEPS = 256
"""Steps of a pass: five for each of fifty workers."""
Tell = Callable[["ReleaseAudit"], None]
"""Receives the audit of a release so far."""
Step = Callable[["ReleaseRequest"], Any]
"""Part of an audit that any process can carry out, given the request; can be pickled."""


@dataclass(frozen=True, repr=False)
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
        AuditorError if a step fails. Without it there are no steps.
    tell : callable, optional
        Receives the audit so far after every attack.
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
        return expand_all(self.scenario.coalitions, self.copies, self.scenario.seed)

    def context(
        self, levels: tuple[float, ...], copies: int, attributes: tuple[str, ...], variances: Array
    ) -> CellContext:
        """Common part of the records of the release."""
        point, scheme, replicate = self.point, self.use.id, self.replicate
        return CellContext(point, scheme, levels, replicate, attributes, variances, copies)

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


@dataclass(frozen=True, repr=False)
class Stripes:
    """A job on stripes ``first`` to ``stop`` (exclusive)."""

    job: Job[Any]
    open: Callable[[ReleaseRequest], Any]
    width: int
    first: int
    stop: int

    def __call__(self, request: ReleaseRequest) -> list[Any]:
        """Job's parts."""
        block = self.open(request).block
        return list(walk(self.job, block, request.table.rows, self.width, self.first, self.stop))


def done_in_steps(
    request: ReleaseRequest, open: Callable[[ReleaseRequest], Any], width: int, job: Job[P]
) -> P:
    """Job's result for the whole table, its stripes divided into steps."""
    assert request.share is not None
    count = len(stripes(request.table.rows, width))
    each = math.ceil(count / MOST_STEPS)
    cuts = [(first, min(first + each, count)) for first in range(0, count, each)]
    parts = request.share([Stripes(job, open, width, *cut) for cut in cuts])
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
    categories = registry.get("scheme", use.name).engine == "categorical"
    return table.of_units(categories) if use.per_unit else table


def make_scheme(use: SchemeUse, base: Path | None, table: Table | None = None) -> Scheme:
    """Scheme plugin of one use, with its folder, and the table if it needs it."""
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    scheme.base = base
    if scheme.needs_table:
        scheme.table = table
    return scheme


def already_out(use: SchemeUse, copies: int) -> int:
    """Number of copies that were released before; at least one is new."""
    share = use.already_out
    return min(copies - 1, int(share) if isinstance(share, int) else math.floor(share * copies))


def with_singles(coalitions: Iterable[Coalition]) -> list[Coalition]:
    """Coalitions and their members alone, by size."""
    every = set(coalitions)
    every |= {(copy,) for coalition in every for copy in coalition}
    return sorted(every, key=lambda coalition: (len(coalition), coalition))


@dataclass(frozen=True)
class ReleaseAudit:
    """Outcome of the audit of one release."""

    measurements: Measurements
    distributions: list[Distribution]
    pictures: list[Picture]
    evidence: ReleaseEvidence


@dataclass(frozen=True)
class Attempt:
    """Outcome of one attack and knowledge, or the insider's gains.

    Attributes
    ----------
    paired : dict
        Gains over copies chosen before any measurement.
    told : bool
        Whether the attack knows the table's distinct values.
    gains : dict
        The insider's gains by pooling.
    """

    measurements: Measurements
    distributions: list[Distribution]
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    told: bool = False
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


def nothing_of(
    scenario: Scenario,
    context: CellContext,
    evidence: ReleaseEvidence,
    coalitions: Sequence[Coalition],
    reason: str,
) -> ReleaseAudit:
    """Audit of a release that failed: every cell has the reason."""
    records = [
        context.under(attack.id, knowledge.label).empty(coalition, "failed", reason)
        for knowledge in scenario.knowledge
        for attack in scenario.attacks
        for coalition in coalitions
        if attack.tries(coalition, context.copies)
    ]
    records = records or [context.empty(None, "failed", reason)]
    evidence = replace(evidence, pooling={}, paired={}, facts={}, law=[])
    return ReleaseAudit(Measurements.of(records), [], [], evidence)
