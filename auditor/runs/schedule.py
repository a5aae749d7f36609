"""What a run is cut into: tasks that carry paths, places and aggregates, and yield aggregates, in any process or on any machine.

Releases of a table in memory are a task each. A table that stays in its files is gone through in passes: steps of some stripes each read
the rows, make copies of them and do the jobs that releases ask for. What an engine knows to be needed ahead is done in one pass for all
releases together; then each release is a task again. Where an engine hands out passes, as each depends on the one before it, the audit is
carried out here, and their steps elsewhere. What stripes yield is added up in order, so that results are the same bytes for any cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from auditor.audit.base.outcome import ReleaseAudit
from auditor.audit.engine import audit_release, engine_of
from auditor.process.environment import one_thread
from auditor.process.memory import keep_freed_memory
from auditor.runs.checkpoint import Unfinished
from auditor.runs.passes import Checkpoint, PassTask, add_up, handed_out, passed, shared_out, steps_ahead
from auditor.runs.tables import table_of
from auditor.runs.task import Place, Task
from auditor.runs.workers import Crew
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

TASKS_PER_SCHEME = 16
"""Replicates are dealt out in at most so many shares: cheap ones should not each pay for a task."""


def plan(scenario: Scenario, points: Sequence[dict[str, Any]]) -> Iterator[Task]:
    """Yield the release tasks of a scenario, in the order of its results."""
    for point in points:
        here = at_point(scenario, point)
        table, _ = table_of(here)
        place = Place(scenario.document, None if scenario.base is None else str(scenario.base), scenario.name, tuple(point.items()))
        for scheme, released in enumerate(here.schemes):
            replicates = here.replicates_of(released)
            numbers, share = range(1, replicates + 1), 1 if table.streamed else math.ceil(replicates / TASKS_PER_SCHEME)
            pooling = any(use.asks_pooling(released.id, point) for use in scenario.judged)
            for first in range(0, replicates, share):
                yield Task(place, scheme, tuple(numbers[first : first + share]), pooling, table if table.streamed else None)


def carry_out_all(
    tasks: Sequence[Task], crew: Crew, advance: Callable[[int, int, str], None] = lambda done, total, label: None,
    begun: Unfinished | None = None,
) -> Iterator[tuple[Task, list[ReleaseAudit]]]:  # fmt: skip
    """Yield every task with its result as it is finished; tables in memory first.

    Parameters
    ----------
    tasks : sequence of Task
    crew : Crew
    advance : callable
        Told how many of how many steps are done, and of one that is under way: steps are begun in order, so the first not done is.
    begun : Unfinished, optional
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
            batches.setdefault((json.dumps(task.place.point), task.replicates, type(engine)), []).append(task)
    passes = [(list[PassTask](), held), *((steps_ahead(batch), batch) for batch in batches.values())]
    total, done = len(tasks) + sum(len(steps) for steps, _ in passes), 0
    for steps, batch in passes:
        wholes: dict[int, Any] = {}
        ahead: dict[int, PassTask | Task] = dict(enumerate((*steps, *batch)))
        if ahead:
            advance(done, total, ahead[0].label)

        def finished(place: int, ahead: dict[int, PassTask | Task] = ahead) -> None:
            nonlocal done
            done, last = done + 1, ahead.pop(place)
            advance(done, total, next(iter(ahead.values()), last).label)  # the first that is not done; where all are, the last

        with closing(passed(steps, crew, Checkpoint(begun, {task.scheme: places[task.identity] for task in batch}))) as parts:
            for place, (step, found) in enumerate(zip(steps, parts, strict=True)):
                add_up(wholes, step, found)
                finished(place)
        ready = [replace(task, share=handed_out(wholes[task.scheme])) if task.scheme in wholes else task for task in batch]
        with closing(crew.as_done(carry_out, ready)) as results:
            for place, result in results:
                finished(len(steps) + place)
                yield batch[place], result
    for task in kept_here:
        share = shared_out(task, crew, Checkpoint(begun, {task.scheme: places[task.identity]}))
        yield task, carry_out(replace(task, share=share))
        done += 1
        advance(done, total, task.label)


def carry_out(task: Task) -> list[ReleaseAudit]:
    """Carry out one task; runs in a worker.

    Linear algebra is held to one thread: its sums depend on the number of threads, and results must not.
    """
    keep_freed_memory()
    with one_thread():
        table = table_of(task.place.scenario())[0] if task.table is None else task.table
        requests = [task.place.request(task.scheme, table, replicate, task.pooling, task.share) for replicate in task.replicates]
        return [audit_release(request) for request in requests]
