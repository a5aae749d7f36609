"""Carry out a scenario's tasks, and join their results in order."""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime

from auditor import registry
from auditor.audit.base.request import ReleaseAudit, SoFar
from auditor.base import WorkersLost
from auditor.base.types import frozen
from auditor.expectations.base import judge
from auditor.process.containment import Interrupted, check, contained
from auditor.results.measurements import Measurements, spread_over_replicates
from auditor.results.model import AuditResult, Partial
from auditor.results.records import Evidence
from auditor.runs.result_parts import (
    provenance,
    summaries_of_plugins,
    summaries_of_schemes,
    summary_of_data,
)
from auditor.runs.tasks import FinishedTasks, Keep, carry_out_all, first_look, plan
from auditor.runs.workers import Crew
from auditor.scenario.model import Scenario
from auditor.scenario.read_plugins import untried

FIRST_SECONDS = 2.0
"""Longest first look."""
SO_FAR_SECONDS, SO_FAR_SHARE = 1.0, 0.03
"""Least interval of results so far, and largest share of time."""


@frozen
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
    run, partial = _Run(scenario, listener, command), None
    try:
        with ExitStack() as opened:
            finished = None
            if keep is not None:
                finished = FinishedTasks(keep, scenario, run.tasks, run.digests)
                opened.callback(finished.close)
                run.whole |= finished.read()
                run.spent = finished.spent
            run.look_first()
            run.carry_out(opened.enter_context(Crew(workers, cluster)), finished)
    except (Interrupted, WorkersLost) as reason:
        if run.missing:
            partial = run.partial(str(reason), getattr(reason, "signal", None))
    return run.result(partial)


class _Run:
    """Tasks of a run, audits of finished tasks, and audits so far."""

    def __init__(self, scenario: Scenario, listener: Listener | None, command: str) -> None:
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self._scenario, self._listener, self._command = scenario, listener, command
        self._data, self.digests, tables = zip(*map(summary_of_data, scenario.points), strict=True)
        self.tasks, self.spent = list(plan(scenario, tables)), 0.0
        self.whole: dict[int, list[ReleaseAudit]] = {}
        self._so_far: dict[int, Callable[[], list[ReleaseAudit]]] = {}
        self._shown, self._next = Progress(0, len(self.tasks), ""), -math.inf

    @property
    def missing(self) -> list[int]:
        return [number for number in range(len(self.tasks)) if number not in self.whole]

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
                    self._so_far[number] = first_look(task).copy
            if time.perf_counter() > until:
                break
        if self._so_far:
            self._show_so_far()

    def carry_out(self, crew: Crew, finished: FinishedTasks | None) -> None:
        lap = time.perf_counter()
        results = carry_out_all(self.tasks, self.missing, crew, self._advance, self._tell)
        with closing(results):
            for number, audits in results:
                check()
                now = time.perf_counter()
                if finished is not None:
                    audits = finished.write(number, audits, now - lap)
                self.whole[number], lap = audits, now
                self._so_far.pop(number, None)
                if self.missing:
                    self._show_so_far()
        if finished is not None:
            finished.finish()

    def _tell(self, number: int, made: SoFar) -> None:
        self._so_far[number] = lambda: [made()]
        self._show_so_far()

    def _advance(self, done: int, total: int, label: str) -> None:
        if self._listener is not None:
            self._shown = Progress(done, total, label)
            self._listener(self._shown)

    def _show_so_far(self) -> None:
        started = time.perf_counter()
        if self._listener is not None and started > self._next:
            result = self.result(self.partial("so far"), so_far=True)
            self._listener(replace(self._shown, so_far=result))
            took = time.perf_counter() - started
            self._next = started + took + max(SO_FAR_SECONDS, took / SO_FAR_SHARE)

    def result(self, partial: Partial | None, so_far: bool = False) -> AuditResult:
        """Results of all audits; ``so_far`` without remedies."""
        scenario = self._scenario
        every = {number: made() for number, made in self._so_far.items()} | self.whole
        audits = [audit for number in sorted(every) for audit in every[number]]
        missing = [
            (task.use.id, task.here.point) for task in map(self.tasks.__getitem__, self.missing)
        ]
        measurements = spread_over_replicates(
            Measurements.concatenated(audit.measurements for audit in audits)
        )
        evidence = Evidence(measurements, [audit.evidence for audit in audits])
        plugins, references = summaries_of_plugins(scenario)
        left_out = untried(scenario)
        names = [*(use.name for use in scenario.attacks), *left_out]
        seconds = time.perf_counter() - self._clock + self.spent
        return AuditResult.model_construct(  # all parts were checked when made
            name=scenario.name,
            scenario=scenario.spec(),
            provenance=provenance(
                scenario.seed,
                scenario.places.file,
                self._data,
                self._started,
                seconds,
                self._command,
            ),
            data=list({summary.model_dump_json(): summary for summary in self._data}.values()),
            releases=summaries_of_schemes(self.tasks, evidence, so_far),
            plugins=plugins,
            references=references,
            expectations=judge(scenario.expect, scenario.places, evidence, missing),
            measurements=measurements,
            distributions=[spread for audit in audits for spread in audit.distributions],
            pictures=[picture for audit in audits for picture in audit.pictures],
            attack_kinds={name: registry.get("attack", name).attack_kind for name in names},
            untried=left_out,
            left_out=list(scenario.left_out),
            partial=partial,
        )
