"""Carry out a scenario's tasks, and join their results in order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from auditor.audit.base.request import ReleaseAudit
from auditor.base import WorkersLost
from auditor.expectations.base import Missing, judge
from auditor.process.containment import Interrupted, check, contained
from auditor.results.measurements import Measurements, spread_over_replicates
from auditor.results.model import AuditResult, Partial, Provenance
from auditor.results.records import DataSummary, Evidence
from auditor.runs.finished_tasks import FinishedTasks, Keep
from auditor.runs.result_parts import (
    attack_kinds,
    provenance,
    summaries_of_plugins,
    summaries_of_schemes,
    summary_of_data,
)
from auditor.runs.tasks import Task, carry_out_all, first_look, plan
from auditor.runs.workers import Crew
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point
from auditor.scenario.read_plugins import untried

FIRST_SECONDS = 2.0
"""Longest first look."""
SO_FAR_SECONDS, SO_FAR_SHARE = 1.0, 0.03
"""Least interval of results so far, and largest share of time."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run, in tasks and steps.

    ``so_far`` has verdicts that can only get worse, if it may have changed.
    """

    done: int
    total: int
    current: str
    so_far: AuditResult | None = None


Listener = Callable[[Progress], None]


def run_scenario(
    scenario: Scenario,
    workers: int = 1,
    cluster: str | None = None,
    listener: Listener | None = None,
    command: str = "",
    keep: Keep | None = None,
) -> AuditResult:
    """Run an audit.

    ``workers`` processes, or the Dask scheduler at ``cluster``, carry it out; results are the same bytes.
    ``listener`` is called after every task and step. ``keep`` has finished tasks.

    Returns
    -------
    AuditResult
        ``partial`` after a signal, or if workers were lost.

    Raises
    ------
    AuditorError
        The data cannot be audited. A failing attack or scheme is a record, not an error.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    points = [at_point(scenario, point) for point in scenario.sweep_points()]
    summaries, digests = zip(*map(summary_of_data, points), strict=True)
    tasks = list(plan(scenario, points, estimated=workers > 1 or cluster is not None))
    found, partial, spent = _Found(tasks, listener), None, 0.0

    def result(partial: Partial | None, so_far: bool) -> AuditResult:
        duration = time.perf_counter() - clock + spent
        origin = provenance(scenario, summaries, started, duration, command)
        return _result(scenario, points, summaries, origin, found, partial, so_far)

    found.result = result
    try:
        with ExitStack() as opened:
            finished = None
            if keep is not None:
                finished = opened.enter_context(
                    FinishedTasks(keep, scenario, points, tasks, digests)
                )
                found.whole.update(finished.read())
                spent = finished.spent
            found.look_first()
            crew = opened.enter_context(Crew(workers, cluster))
            _carry_out_missing(crew, finished, found)
    except (Interrupted, WorkersLost) as reason:
        if found.missing:
            partial = found.partial(str(reason), getattr(reason, "signal", None))
    return result(partial, False)


class _Found:
    result: Callable[[Partial | None, bool], AuditResult]

    def __init__(self, tasks: Sequence[Task], listener: Listener | None) -> None:
        self.tasks, self._listener = tasks, listener
        self.whole: dict[int, list[ReleaseAudit]] = {}
        self.so_far: dict[int, list[ReleaseAudit]] = {}
        self._shown, self._next = Progress(0, len(tasks), ""), -math.inf

    @property
    def missing(self) -> list[int]:
        return [number for number in range(len(self.tasks)) if number not in self.whole]

    def audits(self) -> list[ReleaseAudit]:
        every = self.so_far | self.whole
        return [audit for number in sorted(every) for audit in every[number]]

    def partial(self, why: str, signal: str | None = None) -> Partial:
        return Partial(finished=len(self.whole), tasks=len(self.tasks), why=why, signal=signal)

    def look_first(self) -> None:
        if self._listener is None:
            return
        until = time.perf_counter() + FIRST_SECONDS
        for number in self.missing:
            task = self.tasks[number]
            if task.replicates[0] == 1 and task.table is None:
                with contained():
                    self.so_far[number] = first_look(task)
            if time.perf_counter() > until:
                break
        if self.so_far:
            self._show_so_far()

    def tell(self, number: int, audit: ReleaseAudit) -> None:
        self.so_far[number] = [audit]
        self._show_so_far()

    def finish(self, number: int, audits: list[ReleaseAudit]) -> None:
        self.whole[number] = audits
        if self.missing:
            self._show_so_far()

    def advance(self, done: int, total: int, label: str) -> None:
        if self._listener is not None:
            self._shown = Progress(done, total, label)
            self._listener(self._shown)

    def _show_so_far(self) -> None:
        started = time.perf_counter()
        if self._listener is not None and started > self._next:
            result = self.result(self.partial("so far"), True)
            self._listener(replace(self._shown, so_far=result))
            took = time.perf_counter() - started
            self._next = started + took + max(SO_FAR_SECONDS, took / SO_FAR_SHARE)


def _result(
    scenario: Scenario,
    points: Sequence[Scenario],
    summaries: Sequence[DataSummary],
    origin: Provenance,
    found: _Found,
    partial: Partial | None,
    so_far: bool,
) -> AuditResult:
    audits = found.audits()
    missing = [
        Missing(dict(task.point), task.scenario().schemes[task.scheme].id)
        for task in map(found.tasks.__getitem__, found.missing)
    ]
    measurements = spread_over_replicates(
        Measurements.concatenated(audit.measurements for audit in audits)
    )
    evidence = Evidence(measurements, [audit.evidence for audit in audits])
    releases = summaries_of_schemes(points, evidence, so_far)
    plugins, references = summaries_of_plugins(scenario)
    expectations, left_out = judge(scenario, evidence, missing), untried(scenario)
    return AuditResult.model_construct(  # all parts were checked when made
        name=scenario.name,
        scenario=scenario.spec(),
        provenance=origin,
        data=list({summary.model_dump_json(): summary for summary in summaries}.values()),
        releases=releases,
        plugins=plugins,
        references=references,
        expectations=expectations,
        measurements=measurements,
        distributions=[spread for audit in audits for spread in audit.distributions],
        pictures=[picture for audit in audits for picture in audit.pictures],
        attack_kinds=attack_kinds(scenario, left_out),
        untried=left_out,
        left_out=list(scenario.left_out),
        partial=partial,
    )


def _carry_out_missing(crew: Crew, finished: FinishedTasks | None, found: _Found) -> None:
    missing, before = found.missing, len(found.whole)

    def advance(done: int, total: int, label: str) -> None:
        found.advance(before + done, before + total, label)

    def tell(place: int, audit: ReleaseAudit) -> None:
        found.tell(missing[place], audit)

    if before and not missing:
        advance(0, 0, "")
    lap, tasks = time.perf_counter(), [found.tasks[number] for number in missing]
    with closing(carry_out_all(tasks, crew, advance, tell)) as results:
        for place, audits in results:
            check()
            number, now = missing[place], time.perf_counter()
            if finished is not None:
                audits = finished.write(number, audits, now - lap)
            found.finish(number, audits)
            lap = now
    if finished is not None:
        finished.finish()
