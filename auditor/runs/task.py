"""One task of a run: some replicates of one scheme at one sweep point, as text and places, so that it can travel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor.audit.base.outcome import Attempt
from auditor.audit.base.request import ReleaseRequest, Share
from auditor.data.table import Table
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point, rebuild


@dataclass(frozen=True)
class Place:
    """A scenario at one sweep point, as text: rebuilt wherever a task is carried out."""

    document: dict[str, Any] = field(repr=False)
    base: str | None
    name: str
    point: tuple[tuple[str, Any], ...]

    def scenario(self) -> Scenario:
        """Return the scenario, rebuilt once in a process."""
        return _scenario_at(json.dumps([self.document, self.point]), self.base, self.name)

    def request(self, scheme: int, table: Table, replicate: int, *more: Any) -> ReleaseRequest:
        """Return the request to audit one release; ``more`` are the request's other fields, in order."""
        here = self.scenario()
        return ReleaseRequest(here, dict(self.point), table, here.schemes[scheme], replicate, *more)


@dataclass(frozen=True)
class Task:
    """Some replicates of one scheme at one sweep point.

    Attributes
    ----------
    place : Place
    scheme : int
        Its place in the scenario.
    replicates : tuple of int
    pooling : bool
        Whether an expectation needs evidence on what pooling buys.
    table : Table or None
        Where the rows are, for a table that stays in its files; others are loaded where the task is
        carried out.
    seconds : float
        How long it may take, for whoever deals tasks out; 0 where nobody asked.
    share : callable or None
        Has the passes over such a table's rows done by others, or hands out what they found
        (``ReleaseRequest.share``).
    attempts : mapping
        What others found of attempts on it already (``ReleaseRequest.attempts``).
    """

    place: Place
    scheme: int
    replicates: tuple[int, ...]
    pooling: bool
    table: Table | None = None
    seconds: float = 0.0
    share: Share | None = field(default=None, repr=False)
    attempts: Mapping[int, Attempt] = field(default_factory=dict, repr=False)

    @property
    def label(self) -> str:
        """What progress shows."""
        where = ", ".join(f"{path}={value}" for path, value in self.place.point)
        return f"{self.place.scenario().schemes[self.scheme].id}{f' at {where}' if where else ''}, replicate {self.replicates[0]}"

    def request(self, table: Table, replicate: int) -> ReleaseRequest:
        """Return the request to audit one of its releases."""
        return self.place.request(
            self.scheme, table, replicate, self.pooling, self.share, self.attempts
        )

    def audited_request(self, table: Table) -> ReleaseRequest:
        """Return the request for its first release, of the part of the table that copies are of."""
        return self.request(table, self.replicates[0]).audited()[0]

    @property
    def identity(self) -> str:
        """What tells the task from the others of its run, in every run of the same scenario on the same data."""
        return json.dumps([self.place.point, self.scheme, self.replicates])


@dataclass(frozen=True)
class AttemptTask:
    """The ``number``-th attempt on a task's release (``Engine.attempts``)."""

    task: Task
    number: int

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.task.label}, {f'attempt {self.number + 1}' if self.number >= 0 else 'what trees gain'}"

    @property
    def name(self) -> str:
        """What tells it from the other steps of its task."""
        return f"attempt-{self.number}"


@lru_cache(maxsize=64)
def _scenario_at(text: str, base: str | None, name: str) -> Scenario:
    document, point = json.loads(text)
    return at_point(rebuild(document, None if base is None else Path(base), name), dict(point))
