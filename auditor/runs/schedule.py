"""What a run is cut into: tasks that carry paths, places and aggregates, and yield aggregates, in any process or on any machine.

Releases of a table in memory are a task each. A table that stays in its files is gone through in
passes: steps of some stripes each read the rows, make copies of them and do the jobs that releases
ask for. What an engine knows to be needed ahead is done in one pass for all releases together; then
each attempt that goes through the rows by itself is a step, and then each release is a task again,
beside which steps find out what trees gain of its copies. A release in memory is cut up so, too,
where it would take more than a worker's share of the time. Where an engine hands out passes, as
each depends on the one before it, the audit is carried out here, and their steps elsewhere. What
stripes yield is added up in order, so that results are the same bytes for any cut.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from auditor.audit.base.outcome import NOTHING, Attempt, ReleaseAudit
from auditor.audit.engine import audit_release, engine_of
from auditor.data.table import Table
from auditor.process.containment import contained
from auditor.process.environment import one_thread
from auditor.process.memory import keep_freed_memory
from auditor.runs.checkpoint import Unfinished
from auditor.runs.passes import (
    Checkpoint,
    PassTask,
    add_up,
    handed_out,
    passed,
    shared_out,
    steps_ahead,
)
from auditor.runs.plan import line_of
from auditor.runs.tables import table_of
from auditor.runs.task import AttemptTask, Place, Task
from auditor.runs.workers import Crew, Numbered
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

TASKS_PER_SCHEME = 16
"""Replicates are dealt out in at most so many shares: cheap ones should not each pay for a task."""


def plan(
    scenario: Scenario, points: Sequence[dict[str, Any]], shared: bool = False
) -> Iterator[Task]:
    """Yield the release tasks of a scenario, in the order of its results; ``shared`` among several, each says how long it may take."""
    for point in points:
        here = at_point(scenario, point)
        table, _ = table_of(here)
        place = Place(
            scenario.document,
            None if scenario.base is None else str(scenario.base),
            scenario.name,
            tuple(point.items()),
        )
        for scheme, released in enumerate(here.schemes):
            replicates = here.replicates_of(released)
            numbers, share = (
                range(1, replicates + 1),
                1 if table.streamed else math.ceil(replicates / TASKS_PER_SCHEME),
            )
            pooling = any(use.asks_pooling(released.id, point) for use in scenario.judged)
            seconds = 0.0
            with contained():  # where it fails the audit will, and says why
                seconds = (
                    line_of(here, point, released, table).work * share / replicates
                    if shared
                    else 0.0
                )
            for first in range(0, replicates, share):
                yield Task(
                    place,
                    scheme,
                    tuple(numbers[first : first + share]),
                    pooling,
                    table if table.streamed else None,
                    seconds,
                )


def carry_out_all(
    tasks: Sequence[Task],
    crew: Crew,
    advance: Callable[[int, int, str], None],
    begun: Unfinished | None,
) -> Iterator[tuple[Task, list[ReleaseAudit]]]:
    """Yield every task with its result as it is finished; tables in memory first.

    Parameters
    ----------
    tasks : sequence of Task
    crew : Crew
    advance : callable
        Told how many of how many steps are done, and of one that is under way: steps are begun in
        order, so the first not done is.
    begun : Unfinished or None
        Where what a pass has found is kept until its tasks are finished, by their places.
    """
    places = {task.identity: place for place, task in enumerate(tasks)}
    held, kept_here, batches = list[Task](), list[Task](), dict[Any, list[Task]]()
    for task in tasks:
        if task.table is None:
            held.append(task)
        elif (engine := engine_of(task.place.scenario().schemes[task.scheme])).hands_out_passes:
            kept_here.append(task)
        else:
            batches.setdefault(
                (json.dumps(task.place.point), task.replicates, type(engine)), []
            ).append(task)
    # the longest first: begun last it would be waited for alone
    held.sort(key=lambda task: -task.seconds)
    work = [
        Batch([], attempts_on(_long(held, crew.workers)), held),
        *map(Batch.of, batches.values()),
    ]
    total, done = len(tasks) + sum(len(batch.steps) + len(batch.attempts) for batch in work), 0
    for batch in work:
        ahead: dict[int, PassTask | AttemptTask | Task] = dict(
            enumerate((*batch.steps, *batch.attempts, *batch.tasks))
        )
        if ahead:
            advance(done, total, ahead[0].label)

        def finished(place: int, ahead: dict[int, PassTask | AttemptTask | Task] = ahead) -> None:
            nonlocal done
            done, last = done + 1, ahead.pop(place)
            # the first that is not done; where all are, the last
            advance(done, total, next(iter(ahead.values()), last).label)

        yield from _carried_out(
            batch,
            crew,
            Checkpoint(begun, {task.scheme: places[task.identity] for task in batch.tasks}),
            finished,
        )
    for task in kept_here:
        share = shared_out(task, crew, Checkpoint(begun, {task.scheme: places[task.identity]}))
        yield task, carry_out(replace(task, share=share))
        done += 1
        advance(done, total, task.label)


@dataclass(frozen=True)
class Batch:
    """Releases of one table in one replicate: what is done for all of them together, by attempts on each, and then for each.

    Or all releases of tables in memory, for which nothing is done ahead.
    """

    steps: list[PassTask]
    attempts: list[AttemptTask]
    tasks: list[Task]

    @classmethod
    def of(cls, tasks: list[Task]) -> Batch:
        """Return releases with the pass ahead of them, and attempts on those that it serves."""
        steps = steps_ahead(tasks)
        return cls(
            steps,
            attempts_on([task for task in tasks if steps and task.scheme in steps[0].jobs]),
            tasks,
        )


def _carried_out(
    batch: Batch, crew: Crew, checkpoint: Checkpoint, finished: Callable[[int], None]
) -> Iterator[tuple[Task, list[ReleaseAudit]]]:
    """Yield every task of a batch with its result; what is done ahead and the tasks are numbered in one row, for whoever counts them."""
    wholes: dict[int, Any] = {}
    made: dict[int, dict[int, Attempt]] = {}
    with closing(passed(batch.steps, crew, checkpoint)) as parts:
        for place, (step, found) in enumerate(zip(batch.steps, parts, strict=True)):
            add_up(wholes, step, found)
            finished(place)
    share = {scheme: handed_out(whole) for scheme, whole in wholes.items()}
    tried = [
        replace(each, task=replace(each.task, share=share.get(each.task.scheme)))
        for each in batch.attempts
    ]
    attempts, gains = (
        [each for each in tried if (each.number < 0) == apart] for apart in (False, True)
    )
    done = len(batch.steps)
    with closing(attempted(attempts, [], crew, checkpoint)) as outcomes:
        for place, outcome in outcomes:
            if outcome is not None:
                made.setdefault(attempts[place].task.scheme, {})[attempts[place].number] = outcome
            finished(done + place)
    done += len(attempts)
    tasks = [
        replace(task, share=share.get(task.scheme), attempts=made.get(task.scheme, {}))
        for task in batch.tasks
    ]
    for place, result in _with_gains(
        tasks, gains, crew, checkpoint, lambda place: finished(done + place)
    ):
        yield batch.tasks[place], result


def _with_gains(
    tasks: Sequence[Task],
    gains: Sequence[AttemptTask],
    crew: Crew,
    checkpoint: Checkpoint,
    finished: Callable[[int], None],
) -> Iterator[tuple[int, list[ReleaseAudit]]]:
    """Yield place and result of each task, with what trees gain of its copies, which steps beside them find out."""
    apart = {
        task.scheme: {step.number: NOTHING for step in gains if step.task.scheme == task.scheme}
        for task in tasks
    }
    ready = [replace(task, attempts={**task.attempts, **apart[task.scheme]}) for task in tasks]
    left, gained = (
        Counter(step.task.scheme for step in gains),
        defaultdict[int, list[Attempt | None]](list),
    )
    audited = dict[int, list[ReleaseAudit]]()
    with closing(attempted(gains, ready, crew, checkpoint)) as outcomes:
        for number, found in outcomes:
            finished(number)
            if number < len(gains):
                scheme = gains[number].task.scheme
                gained[scheme].append(found)
                left[scheme] -= 1
            else:
                audited[number - len(gains)] = found
            for place in [place for place in audited if not left[tasks[place].scheme]]:
                audits, parts = audited.pop(place), gained[tasks[place].scheme]
                failed = None in parts  # it will again, and the audit says why
                yield (
                    place,
                    carry_out(tasks[place])
                    if failed
                    else [audit.with_gains(filter(None, parts)) for audit in audits],
                )


def _step(step: AttemptTask | Task) -> Any:
    return attempt(step) if isinstance(step, AttemptTask) else carry_out(step)


def carry_out(task: Task) -> list[ReleaseAudit]:
    """Carry out one task; runs in a worker.

    Linear algebra is held to one thread: its sums depend on the number of threads, and results must
    not.
    """
    keep_freed_memory()
    with one_thread():
        table = _table(task)
        return [audit_release(task.request(table, replicate)) for replicate in task.replicates]


# -- attempts
# ----------------------------------------------------------------------------------------------------------------


def attempts_on(batch: Sequence[Task]) -> list[AttemptTask]:
    """Return the attempts that are steps of their own, what trees gain last."""
    found: list[AttemptTask] = []
    for task in batch:
        with contained():  # where it fails the audit will, and says why
            request = task.audited_request(_table(task))
            found += [
                AttemptTask(task, number) for number in engine_of(request.use).attempts(request)
            ]
    return sorted(found, key=lambda step: step.number < 0)


def _long(held: Sequence[Task], workers: int) -> list[Task]:
    """Return the releases that take more than a worker's share of the time of all; none where schemes do not tell one from the others."""
    if any(len(task.replicates) > 1 for task in held) or len({task.scheme for task in held}) < len(
        held
    ):
        return []
    return [task for task in held if task.seconds * workers > sum(each.seconds for each in held)]


def _table(task: Task) -> Table:
    return table_of(task.place.scenario())[0] if task.table is None else task.table


def attempt(step: AttemptTask) -> Attempt | None:
    """Make one attempt; None where there is no release to attempt, which the audit will say. Runs in a worker."""
    keep_freed_memory()
    with one_thread(), contained():
        return _attempts(step.task)[step.number]()
    return None


_opened: list[Any] = [None, None, {}]
"""The last release of a table in memory that attempts were made on in this process: table, task,
and what makes the others."""


def _attempts(task: Task) -> Mapping[int, Callable[[], Attempt]]:
    """Return what makes the attempts on a release, opened once where copies are kept as long as it is."""
    table, name = _table(task), json.dumps([task.place.document, task.identity])
    if table.streamed or _opened[0] is not table or _opened[1] != name:
        request = task.audited_request(table)
        found = engine_of(request.use).attempts(request)
        if table.streamed:
            return found
        _opened[:] = table, name, found
    kept: Mapping[int, Callable[[], Attempt]] = _opened[2]
    return kept


def attempted(
    steps: Sequence[AttemptTask], beside: Sequence[Task], crew: Crew, checkpoint: Checkpoint
) -> Numbered[Any]:
    """Yield place and outcome of each step, and after these in number of each task beside them, as they are done; those kept first.

    Those without a fault are kept: what an attempt comes to are figures that the task's result will
    hold as they are.
    """
    left = list[int]()
    for place, step in enumerate(steps):
        if (known := checkpoint.known(step.task.scheme, step.name, Attempt)) is None:
            left.append(place)
        else:
            yield place, known
    work: list[AttemptTask | Task] = [*(steps[place] for place in left), *beside]
    with closing(crew.as_done(_step, work)) as results:
        for number, found in results:
            if number >= len(left):
                yield len(steps) + number - len(left), found
                continue
            step = steps[left[number]]
            if found is not None and not found.measurements.where(status="failed").any():
                checkpoint.note(step.task.scheme, step.name, Attempt, found)
            yield left[number], found
