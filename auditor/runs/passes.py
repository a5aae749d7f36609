"""A pass over the rows of a table that stays in its files, for one release or for many: cut into steps that any process may take.

Steps carry places and jobs, which hold what attacks estimated and never rows, and yield counts and
sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from auditor.audit.base.request import Conclusion, Share
from auditor.audit.engine import engine_of
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import stripes
from auditor.numerics.passes import Job, added_up, walk
from auditor.process.containment import contained
from auditor.process.environment import one_thread
from auditor.results.codec import CodecError, codec
from auditor.runs.checkpoint import Unfinished
from auditor.runs.task import Place, Task
from auditor.runs.workers import Crew

TASKS_PER_PASS = 256
"""A table in its files is gone through in at most so many shares: five for each of fifty
workers."""
WAVE_BYTES = 2**28
"""Results of a pass that may wait to be added up: tasks are handed out in waves that yield no
more."""
FEWEST_IN_WAVE = 8
"""Tasks in a wave, however much they yield."""

Jobs = Mapping[int, Job[Any]]
"""By a scheme's place in the scenario; all of one engine."""
Found = Mapping[int, list[Any] | str]
"""By the same: the parts that a job found, or why its copies could not be made."""


@dataclass(frozen=True)
class PassTask:
    """Jobs to be done for stripes ``first`` to ``stop`` (exclusive) in the ``number``-th pass over releases of one table.

    Where adversaries are given rows in clear its result holds these, so of it only what
    ``Job.storable`` returns may be written to disk.
    """

    place: Place
    table: Table
    replicate: int
    jobs: Jobs = field(repr=False)
    number: int
    width: int
    first: int
    stop: int

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"rows of stripes {self.first + 1} to {self.stop}, replicate {self.replicate}"

    @property
    def name(self) -> str:
        """What tells it from the other steps of its releases."""
        return f"pass-{self.number}-stripes-{self.first}-{self.stop}"


def steps_of(task: Task, jobs: Jobs, number: int = 0) -> list[PassTask]:
    """Return the steps of a pass that is the ``number``-th of a task's release, and of those beside it; none without a job."""
    place, table = task.place, task.table
    assert table is not None
    width = engine_of(place.scenario().schemes[task.scheme]).block_width(table)
    count = len(stripes(table.rows, width)) if jobs else 0
    share = max(1, math.ceil(count / TASKS_PER_PASS))
    cuts = [(first, min(first + share, count)) for first in range(0, count, share)]
    return [PassTask(place, table, task.replicates[0], jobs, number, width, *cut) for cut in cuts]


def steps_ahead(batch: Sequence[Task]) -> list[PassTask]:
    """Return the pass that serves releases of one table in one replicate, before they are audited."""
    jobs: dict[int, Job[Any]] = {}
    for task in batch:
        assert task.table is not None
        with contained():  # where it fails the audit will, and says why
            request = task.place.request(task.scheme, task.table, task.replicates[0])
            job = engine_of(request.use).ahead(request)
            jobs |= {} if job is None else {task.scheme: job}
    return steps_of(batch[0], jobs)


def go_through(task: PassTask) -> Found:
    """Do jobs side by side, so that every row is read once; where one fails, the others go on. Runs in a worker."""

    def parts(scheme: int, job: Job[Any]) -> Iterator[list[Any]]:
        request = task.place.request(scheme, task.table, task.replicate)
        block = engine_of(request.use).open(request).block
        yield from walk(job, block, task.table.rows, task.width, task.first, task.stop)

    with one_thread():
        going = {scheme: parts(scheme, job) for scheme, job in task.jobs.items()}
        found: dict[int, list[Any]] = {scheme: [] for scheme in going}
        failed: dict[int, str] = {}
        while going:
            for scheme, each in list(going.items()):  # each goes on by one block
                more = None
                with contained() as failure:
                    more = next(each, None)
                if failure.error is not None:
                    failed[scheme] = failure.reason
                if more is None:
                    del going[scheme]
                found[scheme] += more or []
    return {**found, **failed}


@dataclass(frozen=True)
class Checkpoint:
    """What is kept on disk of a pass until its tasks are finished: of every step, what each of its jobs says may be."""

    begun: Unfinished | None
    """None keeps nothing."""
    places: Mapping[int, int]
    """Scheme → the place of the task that its parts belong to."""

    def read(self, step: PassTask) -> dict[int, list[Any]]:
        """Return the parts that were kept of a step, by scheme; nothing of a scheme where there is none, or none that makes sense."""
        if self.begun is None:
            return {}
        parts = {
            scheme: job.restored(self.begun.read(self.places[scheme], step.name))
            for scheme, job in step.jobs.items()
        }
        return {
            scheme: each
            for scheme, each in parts.items()
            if len(each) == (1 if step.jobs[scheme].exact else step.stop - step.first)
        }

    def keep(self, step: PassTask, found: Found) -> None:
        """Keep what may be kept of what a step found."""
        if self.begun is not None:
            kept = {
                scheme: step.jobs[scheme].storable(parts)
                for scheme, parts in found.items()
                if not isinstance(parts, str)
            }
            self.begun.keep(
                step.name,
                {self.places[scheme]: each for scheme, each in kept.items() if each is not None},
            )

    def known(self, scheme: int, name: str, kind: Any) -> Any:
        """Return the aggregates that were kept under a name; None where there are none, or none that make sense."""
        if self.begun is not None:
            with suppress(CodecError, TypeError, ValueError, RecursionError):
                return codec(kind)[1](self.begun.read(self.places[scheme], name))
        return None

    def note(self, scheme: int, name: str, kind: Any, found: Any) -> None:
        """Keep aggregates under a name, which the task's result will hold as they are."""
        if self.begun is not None:
            self.begun.keep(name, {self.places[scheme]: codec(kind)[0](found)})


def passed(
    steps: Sequence[PassTask], crew: Crew, checkpoint: Checkpoint
) -> Generator[Found, None, None]:
    """Yield what each step finds, in order; of a job whose parts are kept only the rest is done, if there is any."""
    known = [checkpoint.read(step) for step in steps]
    left = [
        replace(step, jobs=_left(step.jobs, parts))
        for step, parts in zip(steps, known, strict=True)
    ]
    with closing(_in_waves([step for step in left if step.jobs], crew)) as results:
        for step, parts in zip(left, known, strict=True):
            found = next(results) if step.jobs else {}
            checkpoint.keep(
                step, {scheme: each for scheme, each in found.items() if scheme not in parts}
            )
            yield {
                **parts,
                **{scheme: _joined(parts.get(scheme), each) for scheme, each in found.items()},
            }


def _left(jobs: Jobs, known: Mapping[int, Any]) -> Jobs:
    left = {scheme: job.rest if scheme in known else job for scheme, job in jobs.items()}
    return {scheme: job for scheme, job in left.items() if job is not None}


def _joined(known: list[Any] | None, rest: list[Any] | str) -> list[Any] | str:
    if known is None or isinstance(rest, str):
        return rest
    for part, other in zip(known, rest, strict=True):
        part.add(other)
    return known


def _in_waves(steps: Sequence[PassTask], crew: Crew) -> Generator[Found, None, None]:
    if not steps:
        return
    rows = steps[0].table.rows
    stripe = math.ceil(rows / len(stripes(rows, steps[0].width)))  # records, about
    most = max(
        sum(job.weight(stripe * (step.stop - step.first)) for job in step.jobs.values())
        for step in steps
    )
    wave = max(FEWEST_IN_WAVE, WAVE_BYTES // max(1, most))
    for start in range(0, len(steps), wave):
        yield from crew.carry_out(go_through, steps[start : start + wave])


def add_up(wholes: dict[int, Any], step: PassTask, found: Found) -> None:
    """Add what a step found to what those before it did, by scheme; one that failed on some rows has failed."""
    for scheme, parts in found.items():
        whole: Any = wholes.setdefault(scheme, step.jobs[scheme].begin())
        if isinstance(parts, str) or isinstance(whole, str):
            wholes[scheme] = whole if isinstance(whole, str) else parts
            continue
        for part in parts:
            whole.add(part)


def handed_out(whole: Any) -> Share:
    """Return what hands out what a pass ahead of the audit found, or why it failed; it may travel."""
    return partial(_parts, whole if isinstance(whole, str) else [whole])


def shared_out(task: Task, crew: Crew, checkpoint: Checkpoint) -> Share:
    """Return what has the passes of one release done by a crew, as its audit asks for them."""
    numbers = itertools.count(1)

    def parts(job: Job[Any], number: int) -> Iterator[Any]:
        for found in passed(steps_of(task, {task.scheme: job}, number), crew, checkpoint):
            yield from _parts(found[task.scheme])

    def share(job: Job[Any], conclusion: Conclusion | None = None, /) -> Iterator[Any]:
        number = next(numbers)
        if conclusion is None:
            yield from parts(job, number)
        else:
            name = f"pass-{number}"
            if (found := checkpoint.known(task.scheme, name, conclusion.kind)) is None:
                found = conclusion.of(added_up(job, parts(job, number)))
                checkpoint.note(task.scheme, name, conclusion.kind, found)
            yield found

    return share


def _parts(
    found: list[Any] | str, job: Job[Any] | None = None, conclusion: Conclusion | None = None, /
) -> Iterator[Any]:
    if isinstance(found, str):
        raise AuditorError(found)  # a reason that may be reported
    yield from found
