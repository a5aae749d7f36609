"""Attempts on a table that stays in its files: each attack that goes through all rows by itself, with each state of knowledge, is a step.

Any process may take a step, once the pass ahead of the audit has found what every attack needs. What it comes to, figures that the task's
result will hold as they are, is kept until the task is finished: a run that goes on makes only the attempts that are left.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from auditor.audit.base.outcome import Attempt
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.engine import engine_of
from auditor.process.containment import contained
from auditor.process.environment import one_thread
from auditor.results.codec import CodecError, codec
from auditor.runs.checkpoint import Unfinished
from auditor.runs.task import Task
from auditor.runs.workers import Crew


@dataclass(frozen=True)
class AttemptTask:
    """The ``number``-th attempt on a task's release."""

    task: Task
    number: int

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.task.label}, attempt {self.number + 1}"

    @property
    def name(self) -> str:
        """What tells it from the other steps of its task."""
        return f"attempt-{self.number}"


def request_of(task: Task) -> ReleaseRequest:
    """Return the request to audit the release of a table in its files."""
    assert task.table is not None
    return task.place.request(task.scheme, task.table, task.replicates[0], task.pooling, task.share, task.attempts)


def attempts_on(batch: Sequence[Task]) -> list[AttemptTask]:
    """Return the attempts that are steps of their own, on releases that a pass ahead serves."""
    found: list[AttemptTask] = []
    for task in batch:
        with contained():  # where it fails the audit will, and says why
            request = request_of(task)
            found += [AttemptTask(task, number) for number in engine_of(request.use).attempts(request)]
    return found


def attempt(step: AttemptTask) -> Attempt | None:
    """Make one attempt; None where there is no release to attempt, which the audit will say. Runs in a worker."""
    with one_thread(), contained():
        request = request_of(step.task)
        return engine_of(request.use).attempts(request)[step.number]()
    return None


def attempted(
    steps: Sequence[AttemptTask], crew: Crew, begun: Unfinished | None, places: Mapping[int, int]
) -> Generator[tuple[int, Attempt | None], None, None]:
    """Yield place and outcome of each step: those kept first, then the others as they are made, of which those without a fault are kept.

    ``places`` are those of the tasks that steps belong to, by scheme.
    """
    encode, decode = codec(Attempt)
    left = []
    for place, step in enumerate(steps):
        kept = None if begun is None else begun.read(places[step.task.scheme], step.name)
        try:
            yield place, decode(kept)
        except (CodecError, TypeError, ValueError, RecursionError):
            left.append(place)
    with closing(crew.as_done(attempt, [steps[place] for place in left])) as results:
        for number, found in results:
            step = steps[left[number]]
            if begun is not None and found is not None and not found.measurements.where(status="failed").any():
                begun.keep(step.name, {places[step.task.scheme]: encode(found)})
            yield left[number], found
