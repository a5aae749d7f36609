"""Passes that an audit asks for as it goes, shared out: tasks carry places and what attacks learnt, and yield counts and sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from auditor.audit.base.outcome import FailedElsewhereError, ReleaseAudit
from auditor.audit.base.request import ReleaseRequest
from auditor.audit.categorical.release import Job
from auditor.audit.engine import audit_release, engine_of
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks, stripes
from auditor.process.containment import contained
from auditor.runs.workers import Crew

if TYPE_CHECKING:
    from auditor.runs.task import Place, Task

WAVE_BYTES = 2**28
"""Results of a pass that may wait to be added up: tasks are handed out in waves that yield no more."""
FEWEST_IN_WAVE = 8
"""Tasks in a wave, however much they yield."""


@dataclass(frozen=True)
class PassTask:
    """A job to be done for some stripes of one release, for a table that stays in its files.

    The job holds what attacks learnt (priors, chances), never rows; where adversaries are given rows in clear the result holds these, so it
    must not be written to disk.
    """

    place: Place
    scheme: int
    replicate: int
    table: Table
    job: Job[Any] = field(repr=False)
    first: int
    stop: int

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"scheme {self.scheme + 1}, rows of stripes {self.first + 1} to {self.stop}, replicate {self.replicate}"


def audit_by_passes(task: Task, crew: Crew, most_tasks: int) -> list[ReleaseAudit]:
    """Audit releases of a table that stays in its files.

    Parameters
    ----------
    task : Task
        With a table.
    crew : Crew
        Who goes through the rows; what a pass finds is judged here.
    most_tasks : int
        Shares that a pass is cut into at most.
    """
    here, table = task.place.scenario(), task.table
    assert table is not None
    bounds, cuts = row_blocks(table.rows, BLOCK_WIDTH), stripes(table.rows, BLOCK_WIDTH)
    count, share = len(cuts), math.ceil(len(cuts) / most_tasks)
    most = share * max(bounds[stop - 1][1] - bounds[first][0] for first, stop in cuts)  # records in a task
    audits = []
    for replicate in task.replicates:

        def shared(job: Job[Any], replicate: int = replicate) -> Iterator[Any]:
            steps = [PassTask(task.place, task.scheme, replicate, table, job, a, min(a + share, count)) for a in range(0, count, share)]
            wave = max(FEWEST_IN_WAVE, WAVE_BYTES // max(1, job.weight(most)))
            for start in range(0, len(steps), wave):
                for parts in crew.carry_out(go_through, steps[start : start + wave]):
                    if isinstance(parts, str):
                        raise FailedElsewhereError(parts)
                    yield from parts

        with threadpool_limits(limits=1):
            use, point = here.schemes[task.scheme], dict(task.place.point)
            audits.append(audit_release(ReleaseRequest(here, point, table, use, replicate, task.pooling, share=shared)))
    return audits


def go_through(task: PassTask) -> list[Any] | str:
    """Do a job for some stripes and return its parts, or why it could not be done; runs in a worker."""
    with threadpool_limits(limits=1):
        here = task.place.scenario()
        with contained() as failure:
            use = here.schemes[task.scheme]
            release = engine_of(use).open(ReleaseRequest(here, dict(task.place.point), task.table, use, task.replicate))
            return list(release.parts(task.job, task.first, task.stop))
        return failure.reason
