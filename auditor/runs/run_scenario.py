"""Run a scenario: carry out its tasks, and put the results together in one order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime

from auditor import registry
from auditor.audit.base.outcome import ReleaseAudit
from auditor.errors import WorkersLost
from auditor.expectations.base import listed
from auditor.expectations.stopped_runs import Missing, undecided
from auditor.process.containment import OURS, contained
from auditor.process.interrupt import Interrupted, check
from auditor.results.evidence import Evidence
from auditor.results.measurements import Measurements
from auditor.results.model import AuditResult, Partial
from auditor.results.records import ExpectationRecord
from auditor.runs.finished_tasks import FinishedTasks, Keep
from auditor.runs.result_parts import (
    provenance,
    spread_over_replicates,
    summaries_of_plugins,
    summaries_of_schemes,
    summary_of_data,
)
from auditor.runs.tasks import Task, carry_out_all, plan
from auditor.runs.workers import Crew
from auditor.scenario.model import ExpectationUse, Scenario
from auditor.scenario.read import at_point
from auditor.scenario.read_plugins import untried

ALWAYS = "noise-follows-law"
"""The expectation of every audit; it is in the results only if it fails."""
IMPLICIT_LEVEL = 1e-4
"""Its level over all schemes: one false alarm in ten thousand audits of honest noise."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run, in tasks and steps."""

    done: int
    total: int
    current: str


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

    Parameters
    ----------
    scenario : Scenario
    workers : int
        Processes; the results are the same bytes for any number.
    cluster : str, optional
        Address of a running Dask scheduler, instead of processes here.
    listener : callable, optional
        Called after every task and step.
    command : str
        The command line, for the record.
    keep : Keep, optional
        Place of finished tasks, and whether to reuse them.

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
    points = scenario.sweep_points()
    summaries, digests = zip(
        *(summary_of_data(at_point(scenario, point), point) for point in points), strict=True
    )
    tasks = list(plan(scenario, points, estimated=workers > 1 or cluster is not None))
    found: dict[int, list[ReleaseAudit]] = {}
    partial, spent = None, 0.0
    try:
        with ExitStack() as opened:
            finished = None
            if keep is not None:
                finished = opened.enter_context(FinishedTasks(keep, scenario, tasks, digests))
                found.update(finished.read())
                spent = finished.spent
            crew = opened.enter_context(Crew(workers, cluster))
            _carry_out_missing(tasks, crew, finished, listener, found)
    except (Interrupted, WorkersLost) as reason:
        if len(found) < len(tasks):
            partial = Partial(
                finished=len(found),
                tasks=len(tasks),
                why=str(reason),
                signal=getattr(reason, "signal", None),
            )
    audits = [audit for number in sorted(found) for audit in found[number]]
    duration = time.perf_counter() - clock + spent
    missing = [
        Missing(dict(task.point), task.scenario().schemes[task.scheme].id)
        for number, task in enumerate(tasks)
        if number not in found
    ]
    measurements = spread_over_replicates(
        Measurements.concatenated(audit.measurements for audit in audits)
    )
    evidence = Evidence(measurements, [audit.evidence for audit in audits])
    left_out = untried(scenario)
    attacks = [*(use.name for use in scenario.attacks), *left_out]
    plugins, references = summaries_of_plugins(scenario)
    return AuditResult.model_construct(  # all parts were made here, so they are not checked again
        name=scenario.name,
        scenario=scenario.spec(),
        provenance=provenance(scenario, summaries, started, duration, command),
        data=list({summary.model_dump_json(): summary for summary in summaries}.values()),
        releases=summaries_of_schemes(scenario, points, evidence),
        plugins=plugins,
        references=references,
        expectations=judge(scenario, evidence, missing),
        measurements=measurements,
        distributions=[spread for audit in audits for spread in audit.distributions],
        pictures=[picture for audit in audits for picture in audit.pictures],
        attack_kinds={name: str(registry.get("attack", name).attack_kind) for name in attacks},
        untried=left_out,
        left_out=list(scenario.left_out),
        partial=partial,
    )


def _carry_out_missing(
    tasks: Sequence[Task],
    crew: Crew,
    finished: FinishedTasks | None,
    listener: Listener | None,
    found: dict[int, list[ReleaseAudit]],
) -> None:
    """Carry out the tasks that are not found yet, and add their results."""
    missing = [number for number in range(len(tasks)) if number not in found]
    before = len(found)

    def advance(done: int, total: int, label: str) -> None:
        if listener is not None:
            listener(Progress(before + done, before + total, label))

    if before and not missing:
        advance(0, 0, "")
    lap = time.perf_counter()
    with closing(carry_out_all([tasks[number] for number in missing], crew, advance)) as results:
        for place, audits in results:
            check()
            number, now = missing[place], time.perf_counter()
            if finished is not None:
                audits = finished.write(number, audits, now - lap)
            found[number], lap = audits, now
    if finished is not None:
        finished.finish()


def judge(
    scenario: Scenario, evidence: Evidence, missing: Sequence[Missing] = ()
) -> list[ExpectationRecord]:
    """Return the verdict on every expectation; one that covers missing tasks is undecided."""
    found = []
    for use in scenario.judged:
        record = undecided(_judged(use, evidence), use.expectation, missing)
        line = scenario.places.problem(("expect", use.place), "").line
        found.append(record.model_copy(update={"line": line}))
    # every audit expects noise to follow its law: schemes that fail, unless already judged
    expected = registry.get("expectation", ALWAYS)
    asked = [use.expectation.parameters for use in scenario.judged if use.name == ALWAYS]
    whole = [each for each in asked if each.sweep is None]
    schemes = list(dict.fromkeys(release.scheme for release in evidence.releases))
    for scheme in schemes:
        if any(each.scheme is None or scheme in listed(each.scheme) for each in whole):
            continue
        expectation = expected(scheme=scheme, level=IMPLICIT_LEVEL / len(schemes))
        record = _judged(ExpectationUse(ALWAYS, expectation, {"scheme": scheme}), evidence)
        found += [undecided(record, expectation, missing)] if record.status == "fails" else []
    return found


def _judged(use: ExpectationUse, evidence: Evidence) -> ExpectationRecord:
    """Return a verdict; an expectation that fails to judge is undecided."""
    if type(use.expectation).__module__.partition(".")[0] not in OURS:
        evidence = deepcopy(evidence)  # writes of a plugin must not reach the results
    with contained() as failure:
        return use.expectation.record(use.name, use.where, evidence)
    return ExpectationRecord(
        expectation=use.name,
        where=use.where,
        status="undecided",
        observed=None,
        bound=None,
        why=f"could not be judged: {failure.reason}",
        failed=True,
    )
