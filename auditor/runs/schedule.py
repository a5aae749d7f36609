"""What a run is cut into: tasks that carry paths, places and aggregates, and yield aggregates, in any process or on any machine.

Releases of a table in memory are a task each. A table that stays in its files is gone through once for all schemes together: tasks of
some stripes each read the rows, make every scheme's copies of them and take their moments; then each release is a task again, which
needs no row for linear attacks. Where an engine asks for passes as it goes their stripes are shared out likewise. What stripes yield is
added up in order, so that results are the same bytes for any cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from auditor.audit.base.outcome import ReleaseAudit
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.engine import audit_release, engine_of
from auditor.runs import moment_pass
from auditor.runs.checkpoint import Unfinished
from auditor.runs.moment_pass import GatherTask, Joined, KnownSums, gather_tasks
from auditor.runs.release_passes import audit_by_passes
from auditor.runs.tables import table_of
from auditor.runs.task import Place, Task
from auditor.runs.workers import Crew
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

TASKS_PER_SCHEME = 16
"""Replicates are dealt out in at most so many shares: cheap ones should not each pay for a task."""


def plan(scenario: Scenario, points: Sequence[dict[str, Any]]) -> Iterator[Task]:
    """Yield the release tasks of a scenario, in the order of its results."""
    pooling = any(use.expectation.needs_pooling for use in scenario.judged)
    for point in points:
        here = at_point(scenario, point)
        table, _ = table_of(here)
        place = Place(scenario.document, None if scenario.base is None else str(scenario.base), scenario.name, tuple(point.items()))
        numbers = range(1, here.replicates + 1)
        share = 1 if table.streamed else math.ceil(here.replicates / TASKS_PER_SCHEME)
        for scheme in range(len(here.schemes)):
            for first in range(0, here.replicates, share):
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
    held = [task for task in tasks if task.table is None]
    as_it_goes = [task for task in tasks if task.table is not None and not _ahead(task)]
    batches: dict[Any, list[Task]] = {}
    for task in tasks:
        if task.table is not None and _ahead(task):
            batches.setdefault((json.dumps(task.place.point), task.replicates), []).append(task)
    passes = [(gather_tasks(batch), batch) for batch in batches.values()]
    total, done = len(tasks) + sum(len(steps) for steps, _ in passes), 0
    for steps, batch in [([], held), *passes]:
        joined = Joined()
        ahead: dict[int, GatherTask | Task] = dict(enumerate((*steps, *batch)))
        if ahead:
            advance(done, total, ahead[0].label)
        known = KnownSums(begun, {task.scheme: places[task.identity] for task in batch})
        with closing(known.gathered(steps, crew)) as gathered:
            for place, (step, found) in enumerate(zip(steps, gathered, strict=True)):
                joined.add(step, found)
                done += 1
                del ahead[place]
                advance(done, total, _first(ahead, step))
        ready = [replace(task, taken=joined.of(task.scheme)) for task in batch]
        with closing(crew.as_done(carry_out, ready)) as finished:
            for place, result in finished:
                done += 1
                del ahead[len(steps) + place]
                advance(done, total, _first(ahead, batch[place]))
                yield batch[place], result
    for task in as_it_goes:
        yield task, audit_by_passes(task, crew, moment_pass.TASKS_PER_PASS)
        done += 1
        advance(done, total, task.label)


def _ahead(task: Task) -> bool:
    return engine_of(task.place.scenario().schemes[task.scheme]).ahead


def _first(ahead: dict[int, GatherTask | Task], last: GatherTask | Task) -> str:
    """Return what progress shows: the first step that is not done; where all are, the last."""
    return next(iter(ahead.values()), last).label


def carry_out(task: Task) -> list[ReleaseAudit]:
    """Carry out one task; runs in a worker.

    Linear algebra is held to one thread: its sums depend on the number of threads, and results must not.
    """
    with threadpool_limits(limits=1):
        here = task.place.scenario()
        table = table_of(here)[0] if task.table is None else task.table
        use, point = here.schemes[task.scheme], dict(task.place.point)
        requests = [ReleaseRequest(here, point, table, use, replicate, task.pooling, task.taken) for replicate in task.replicates]
        return [audit_release(request) for request in requests]
