"""Request to audit one release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from auditor.audit.base.outcome import ReleaseAudit
from auditor.audit.base.uses import make_scheme, release_copies, release_levels
from auditor.data.table import Audited, Table
from auditor.numerics.blocks import stripes
from auditor.numerics.passes import Job, walk
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import TableMoments, table_moments

MOST_STEPS = 256
"""Steps of a pass: five for each of fifty workers."""
Tell = Callable[[ReleaseAudit], None]
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
        The swept values, for the records.
    table : Table
    use : SchemeUse
    replicate : int
        From 1.
    pooling : bool
        Whether an expectation needs evidence on what pooling buys.
    share : callable, optional
        Carries steps out, perhaps in other processes, and yields their results in order. Raises
        AuditorError if a step fails. Without it, nothing is divided into steps.
    tell : callable, optional
        Receives the audit so far after every attack, in this process.
    brief : bool
        Whether only attacks are wanted, and no further evidence.
    kept : dict
        What steps of this request share within one process.
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
        """The scheme's levels, in order of release; a plugin's own may raise anything."""
        return release_levels(self.use, self.scenario, self.replicate)

    @cached_property
    def copies(self) -> int:
        """How many copies the scheme releases."""
        return release_copies(self.use, self.scenario)

    def audited(self) -> tuple[ReleaseRequest, Audited]:
        """Return the request for the part of the table that copies are of, and that part."""
        part = make_scheme(self.use, self.scenario.base, self.table).audited(self.table)
        return self if part.table is self.table else replace(self, table=part.table), part

    @cached_property
    def moments(self) -> TableMoments:
        """The table's own."""
        return table_moments(self.table)


@dataclass(frozen=True, repr=False)
class Stripes:
    """Step that does a job on stripes ``first`` to ``stop`` (exclusive) of a release."""

    job: Job[Any]
    open: Callable[[ReleaseRequest], Any]
    width: int
    first: int
    stop: int

    def __call__(self, request: ReleaseRequest) -> list[Any]:
        """Return the job's parts."""
        block = self.open(request).block
        return list(walk(self.job, block, request.table.rows, self.width, self.first, self.stop))


def parts_in_steps(
    request: ReleaseRequest, open: Callable[[ReleaseRequest], Any], width: int, job: Job[Any]
) -> Iterator[Any]:
    """Yield a job's parts in order, its stripes divided into steps."""
    assert request.share is not None
    count = len(stripes(request.table.rows, width))
    each = math.ceil(count / MOST_STEPS)
    cuts = [(first, min(first + each, count)) for first in range(0, count, each)]
    for parts in request.share([Stripes(job, open, width, *cut) for cut in cuts]):
        yield from parts
