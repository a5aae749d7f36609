"""Request to audit one release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from auditor.audit.base.outcome import Attempt
from auditor.audit.base.uses import make_scheme, release_copies, release_levels
from auditor.data.table import Audited, Table
from auditor.numerics.passes import Job
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import TableMoments, table_moments


class Conclusion(NamedTuple):
    """What is made of all that a pass found: a function, and the type of the aggregates that it returns (``auditor.results.codec``)."""

    kind: type[Any]
    of: Callable[[Any], Any]


class Share(Protocol):
    """Has a job done for all stripes of a release by others; an ``AuditorError`` says why they could not."""

    def __call__(self, job: Job[Any], conclusion: Conclusion | None = None, /) -> Iterator[Any]:
        """Yield what each part of the rows yields, in order; or the conclusion alone."""


@dataclass(frozen=True)
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
        Has others do the work of a pass, or hands out what they found already; without it all is
        done here.
    attempts : mapping, optional
        What others found of attempts already, by number (``Engine.attempts``).
    """

    scenario: Scenario
    point: dict[str, Any]
    table: Table
    use: SchemeUse
    replicate: int = 1
    pooling: bool = False
    share: Share | None = field(default=None, repr=False)
    attempts: Mapping[int, Attempt] = field(default_factory=dict, repr=False)

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
