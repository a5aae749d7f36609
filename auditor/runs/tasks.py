"""Tasks of a run: replicates of one scheme at one sweep point.

A task carries no records, unless they stay in files, and yields aggregates. A long release is divided into steps. Parts
are added in order, so results are the same bytes for any number of workers.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import partial
from typing import Any, NamedTuple

from auditor import registry
from auditor.audit.base.request import ReleaseAudit, ReleaseRequest, Step, Tell
from auditor.audit.base.session import cells_of, in_order_of_promise, made_attack
from auditor.audit.engine import audit_release, session_of
from auditor.base import AuditorError
from auditor.base.types import frozen
from auditor.data.table import Table
from auditor.process.containment import contained
from auditor.process.environment import keep_freed_memory, one_thread
from auditor.runs.plan import line_of
from auditor.runs.tables import table_of
from auditor.runs.workers import Crew, Numbered
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scenario.read_plugins import applies

TASKS_PER_SCHEME = 16
"""Most tasks for a scheme's replicates."""

Advance = Callable[[int, int, str], None]
"""Receives the steps done, all steps, and the label of one under way."""


@frozen
class Task:
    """Some replicates of one scheme at one sweep point.

    Attributes
    ----------
    here : Scenario
        The scenario at the sweep point.
    scheme : int
        Its place in the scenario.
    pooling : bool
        Whether the gain of pooling needs evidence.
    table : Table or None
        A table that stays in its files; others are loaded by each process.
    """

    here: Scenario = field(repr=False)
    scheme: int
    replicates: tuple[int, ...]
    pooling: bool
    table: Table | None = field(default=None, repr=False)

    @property
    def use(self) -> SchemeUse:
        """Its scheme."""
        return self.here.schemes[self.scheme]

    @property
    def seconds(self) -> float:
        """Estimated time; 0 if unknown."""
        with contained():  # the audit will fail with the reason
            line = line_of(self.here, self.use, self.table or table_of(self.here)[0])
            return line.work.seconds * len(self.replicates) / line.replicates
        return 0.0

    @property
    def label(self) -> str:
        """Label for the progress display."""
        where = ", ".join(f"{path}={value}" for path, value in self.here.point.items())
        return f"{self.use.id}{f' at {where}' if where else ''}, replicate {self.replicates[0]}"

    @property
    def divisible(self) -> bool:
        """Whether several workers can share its steps."""
        held = self.table is not None or session_of(self.use).divides_held_tables
        return len(self.replicates) == 1 and held

    def request(self, replicate: int) -> ReleaseRequest:
        """Request to audit one release."""
        here = self.here
        table = table_of(here)[0] if self.table is None else self.table
        return ReleaseRequest(here, here.point, table, self.use, replicate, self.pooling)


def plan(scenario: Scenario, tables: Sequence[Table | None]) -> Iterator[Task]:
    """Yield the tasks of a scenario in the order of its results.

    ``tables`` are those of the sweep points that stay in their files.
    """
    for here, table in zip(scenario.points, tables, strict=True):
        for scheme, use in enumerate(here.schemes):
            replicates = here.replicates_of(use)
            share = math.ceil(replicates / TASKS_PER_SCHEME) if table is None else 1
            for first in range(1, replicates + 1, share):
                some = tuple(range(first, min(first + share, replicates + 1)))
                yield Task(here, scheme, some, here.asks_pooling(use.id), table)


def first_look(task: Task) -> list[ReleaseAudit]:
    """Audit of the first replicate by the most promising attack, if one applies."""
    here, family = task.here, registry.get("scheme", task.use.name).family
    for number in in_order_of_promise(cells := cells_of(here)):
        use, knowledge = cells[number]
        with contained():
            if applies(made_attack(use), family, knowledge):
                here = replace(here, attacks=(use,), measures=(), utility=None)
                request = task.request(task.replicates[0])
                with one_thread():
                    return [
                        audit_release(replace(request, scenario=here, pooling=False, brief=True))
                    ]
    return []


def carry_out_all(
    tasks: Sequence[Task],
    missing: Sequence[int],
    crew: Crew,
    advance: Advance,
    tell: Callable[[int, ReleaseAudit], None],
) -> Numbered[list[ReleaseAudit]]:
    """Yield number and result of every missing task; tasks divided into steps last.

    ``tell`` receives number and audit so far of tasks in this process.
    """
    seconds = {number: 0.0 if crew.alone else tasks[number].seconds for number in missing}
    most = sum(seconds.values()) / crew.workers
    divided = [
        number
        for number in missing
        if (len(missing) == 1 or seconds[number] > most) and tasks[number].divisible
    ]
    whole = [number for number in missing if number not in set(divided)]
    whole.sort(key=lambda number: -seconds[number])  # a long task begun last would run alone
    results: Numbered[list[ReleaseAudit]]
    if crew.alone:
        results = crew.as_done(lambda at: carry_out(tasks[at], None, partial(tell, at)), whole)
    else:
        results = crew.as_done(carry_out, [tasks[number] for number in whole])
    left = {number: tasks[number].label for number in (*whole, *divided)}
    with closing(results):
        progress = _Progress(len(tasks), left, advance)
        for place, result in results:
            progress.finish(whole[place])
            yield whole[place], result
    for number in divided:
        share = partial(_in_steps, tasks[number], crew, progress)
        result = carry_out(tasks[number], share, partial(tell, number))
        progress.finish(number)
        yield number, result


def carry_out(
    task: Task,
    share: Callable[[Sequence[Step]], Iterator[Any]] | None = None,
    tell: Tell | None = None,
) -> list[ReleaseAudit]:
    """Audit the releases of one task, in any process.

    Linear algebra uses one thread, because its sums depend on the number of threads.
    """
    keep_freed_memory()
    with one_thread():
        return [
            audit_release(replace(task.request(replicate), share=share, tell=tell))
            for replicate in task.replicates
        ]


# -- steps of one release --------------------------------------------------------------------------


class _Failed(NamedTuple):
    reason: str


def _in_steps(task: Task, crew: Crew, progress: _Progress, steps: Sequence[Step]) -> Iterator[Any]:
    progress.add(len(steps))
    # files may change before the next run
    work = partial(_carry_out_step, task, secrets.token_hex(8))
    with closing(crew.in_order(work, steps)) as results:
        for result in results:
            progress.step()
            if isinstance(result, _Failed):
                raise AuditorError(result.reason)
            yield result


def _carry_out_step(task: Task, mark: str, step: Step) -> Any:
    keep_freed_memory()
    with one_thread(), contained() as failure:
        if _last[0] != mark:
            _last[:] = "", None  # before the next is opened
            _last[:] = mark, task.request(task.replicates[0]).audited()[0]
        return step(_last[1])
    return _Failed(failure.reason)


_last: list[Any] = ["", None]
"""Mark and request of the release with the last step of this process."""


class _Progress:
    def __init__(self, total: int, left: dict[int, str], advance: Advance) -> None:
        self._done, self._total, self._advance = total - len(left), total, advance
        self._left, self._label = left, ""
        self._show()

    def finish(self, number: int) -> None:
        self._label = self._left.pop(number)
        self.step()

    def add(self, steps: int) -> None:
        self._total += steps
        self._show()

    def step(self) -> None:
        self._done += 1
        self._show()

    def _show(self) -> None:
        self._advance(self._done, self._total, next(iter(self._left.values()), self._label))
