"""Run a scenario: have its tasks carried out on any number of workers, and put the results together in one order."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.audit.base.outcome import ReleaseAudit
from auditor.audit.base.uses import make_scheme, release_levels
from auditor.data.source import is_public
from auditor.data.table import Table
from auditor.errors import WorkersLost
from auditor.expectations.base import listed
from auditor.expectations.stopped_runs import Missing, undecided
from auditor.numerics.statistics import quantile
from auditor.process.containment import OURS, contained
from auditor.process.environment import version
from auditor.process.interrupt import Interrupted, check
from auditor.results import bibliography
from auditor.results import owner_key as owner
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.evidence import Evidence
from auditor.results.measurements import Measurements
from auditor.results.model import (
    AuditResult,
    Partial,
    PluginSummary,
    Provenance,
    Reference,
    SchemeSummary,
)
from auditor.results.records import (
    FEWEST_REPLICATES,
    AttributeSummary,
    DataSummary,
    ExpectationRecord,
)
from auditor.results.remedies import Remedy
from auditor.runs.finished_tasks import FinishedTasks, Keep, identify
from auditor.runs.remedies import remedy_of
from auditor.runs.tables import table_of
from auditor.runs.tasks import Task, carry_out_all, plan
from auditor.runs.workers import Crew
from auditor.scenario.model import ExpectationUse, Scenario, SchemeUse
from auditor.scenario.read import at_point
from auditor.scenario.read_plugins import untried
from auditor.schemes.base.scheme import TableMoments

ESTIMATED = ("redraws", "jackknife", "sampling", "replicates-needed")
"""Error bars that the spread between replicates, where there are enough, takes the place of."""

DRAWN_ANEW = "every replicate draws its levels anew, so that figures are means over such draws; the levels shown are the first replicate's"

ALWAYS = "noise-follows-law"
"""The expectation that every audit has; in its results when it fails."""
IMPLICIT_LEVEL = 1e-4
"""Its level over all schemes where nobody asked: of ten thousand audits of honest noise one is said
to fail."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

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
        Told after every task.
    command : str
        How the run was asked for, for the record.
    keep : Keep, optional
        Where to keep what is finished, and whether to use what an earlier run kept there.

    Returns
    -------
    AuditResult
        ``partial`` when ``Interrupted`` was raised while tasks were carried out, or workers were
        lost.

    Raises
    ------
    AuditorError
        The data cannot be audited; a failing attack or scheme is no error but a record.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    points = scenario.sweep_points()
    summaries, digests = zip(
        *(_summary_of_data(at_point(scenario, point), point) for point in points), strict=True
    )
    tasks = list(plan(scenario, points, estimated=workers > 1 or cluster is not None))
    found: dict[int, list[ReleaseAudit]] = {}
    partial, spent = None, 0.0
    try:
        with ExitStack() as opened:
            finished = None
            if keep is not None:
                identity = identify(scenario, tasks, list(zip(points, digests, strict=True)))
                finished = opened.enter_context(FinishedTasks(keep, identity))
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
    missing = [_missing(task) for number, task in enumerate(tasks) if number not in found]
    measurements = spread_over_replicates(
        Measurements.concatenated(audit.measurements for audit in audits)
    )
    evidence = Evidence(measurements, [audit.evidence for audit in audits])
    left_out = untried(scenario)
    return AuditResult.model_construct(  # all of it was made here: nothing is checked again
        name=scenario.name,
        scenario=scenario.spec(),
        provenance=_provenance(scenario, summaries, started, duration, command),
        data=_distinct(summaries),
        releases=_summaries_of_schemes(scenario, points, evidence),
        plugins=_summaries_of_plugins(scenario),
        references=_references(scenario),
        expectations=judge(scenario, evidence, missing),
        measurements=measurements,
        distributions=[spread for audit in audits for spread in audit.distributions],
        attack_kinds={
            name: str(registry.get("attack", name).attack_kind)
            for name in [*(use.name for use in scenario.attacks), *left_out]
        },
        untried=left_out,
        partial=partial,
    )


def _missing(task: Task) -> Missing:
    return Missing(dict(task.point), task.scenario().schemes[task.scheme].id)


def _carry_out_missing(
    tasks: Sequence[Task],
    crew: Crew,
    finished: FinishedTasks | None,
    listener: Listener | None,
    found: dict[int, list[ReleaseAudit]],
) -> None:
    """Carry out the tasks that are not found yet, and add their results as they are finished."""
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
            found[number] = (
                audits if finished is None else finished.write(number, audits, now - lap)
            )
            lap = now
    if finished is not None:
        finished.finish()


SIGNED = ("collusion_gain", "accuracy_gain", "exact_gain", "named_gain", "belief_gap", "close")
"""Metrics that may be below 0."""


def spread_over_replicates(measurements: Measurements) -> Measurements:
    """Return the measurements, with error bars from the replicates where there is no closed form.

    Replicates are other draws, all of whose figures are shown. With five or more of them the spread
    between them is the honest error of a single one, with Student's t for the interval.
    """
    bars, reasons = measurements.columns["error_bar"], measurements.columns["reason"]
    rough = np.isin(
        bars.places, [place for place, bar in enumerate(bars.values) if bar in ESTIMATED]
    )
    explained = np.array([reason is not None for reason in reasons.values], dtype=bool)[
        reasons.places
    ]
    other = measurements.where(status="ok") & _levels_drawn_anew(measurements)
    unknown = np.flatnonzero(rough | other | (measurements.where(status="ok") & explained))
    cell, infinite = (
        measurements.taken(unknown).cells(),
        ~np.isfinite(measurements.columns["value"][unknown]),
    )
    # an infinite guarantee is so in every draw
    spread = (np.bincount(cell) >= FEWEST_REPLICATES) & (np.bincount(cell, infinite) == 0)
    changed = unknown[spread[cell]]
    if not changed.size:
        return measurements
    some = measurements.taken(changed)
    cell, value = some.cells(), some.columns["value"]
    count = np.bincount(cell)
    wide = {each: quantile(0.975, each - 1) for each in set(count.tolist())}
    squares = (value - (np.bincount(cell, value) / count)[cell]) ** 2
    error = np.sqrt(np.bincount(cell, squares) / (count - 1))
    reach = (np.array([wide[each] for each in count.tolist()]) * error)[cell]
    low = np.where(
        [metric in SIGNED for metric in some.column("metric")],
        value - reach,
        np.maximum(0.0, value - reach),
    )
    found = {"std_error": error[cell], "ci_low": low, "ci_high": value + reach}
    columns = {name: measurements.columns[name].copy() for name in found}
    for name, figures in found.items():
        columns[name][changed] = figures
    return measurements.replaced(
        **columns, error_bar=bars.put(changed, "replicates"), reason=reasons.put(changed, None)
    )


def _levels_drawn_anew(measurements: Measurements) -> NDArray[np.bool_]:
    """Return which rows' cells have other levels in other replicates: a closed form is then of one draw, and its bar of the noise alone."""
    cell, levels = measurements.cells(), measurements.columns["levels"]
    size = max(1, len(levels.values))
    found = np.unique(cell * size + levels.places) // size  # every cell once for each of its levels
    return np.asarray(np.bincount(found, minlength=1)[cell] > 1)


def judge(
    scenario: Scenario, evidence: Evidence, missing: Sequence[Missing] = ()
) -> list[ExpectationRecord]:
    """Return the verdict on every expectation of the scenario; what tasks are missing leaves those that cover them undecided."""
    asked = [undecided(_judged(use, evidence), use.expectation, missing) for use in scenario.judged]
    lines = [scenario.places.problem(("expect", use.place), "").line for use in scenario.judged]
    placed = [
        record.model_copy(update={"line": line}) for record, line in zip(asked, lines, strict=True)
    ]
    return [*placed, *_unasked(scenario, evidence, missing)]


def _unasked(
    scenario: Scenario, evidence: Evidence, missing: Sequence[Missing]
) -> list[ExpectationRecord]:
    """Return the verdict on what every audit expects: that noise follows its law. Only of schemes whose noise does not."""
    expected = registry.get("expectation", ALWAYS)
    schemes = list(dict.fromkeys(release.scheme for release in evidence.releases))
    asked = [use.expectation.parameters for use in scenario.judged if use.name == ALWAYS]
    found = []
    for scheme in schemes:
        if any(
            each.sweep is None and (each.scheme is None or scheme in listed(each.scheme))
            for each in asked
        ):
            continue
        expectation = expected(scheme=scheme, level=IMPLICIT_LEVEL / len(schemes))
        record = _judged(ExpectationUse(ALWAYS, expectation, {"scheme": scheme}), evidence)
        found += [undecided(record, expectation, missing)] if record.status == "fails" else []
    return found


def _judged(use: ExpectationUse, evidence: Evidence) -> ExpectationRecord:
    """A judge that breaks leaves its expectation undecided, and an hour's measurements where they are."""
    if type(use.expectation).__module__.partition(".")[0] not in OURS:
        evidence = deepcopy(evidence)  # what it writes to must not reach the results
    with contained() as failure:
        return use.expectation.record(use.name, use.where, evidence)
    why = f"could not be judged: {failure.reason}"
    return ExpectationRecord(
        expectation=use.name,
        where=use.where,
        status="undecided",
        observed=None,
        bound=None,
        why=why,
        failed=True,
    )


def _summary_of_data(scenario: Scenario, point: dict[str, Any]) -> tuple[DataSummary, str]:
    """Return the table in aggregates, and its digest, which stays in memory and in the journal."""
    table, moments = table_of(scenario)
    public = is_public(scenario.data.source) or scenario.data.disclosure == "public"
    variances = np.diag(moments.covariance)
    correlation = moments.covariance / np.sqrt(np.outer(variances, variances))
    digest = table.fingerprint()
    summary = DataSummary(
        source=table.source,
        rows=table.rows,
        attributes=_summaries_of_attributes(table, moments),
        correlation=np.clip(correlation, -1.0, 1.0).tolist(),
        description=table.description,
        licence=table.licence,
        fingerprint=owner.fingerprint(digest, public),
        disclosure="public" if public else "private",
        sweep={
            path: value
            for path, value in point.items()
            if path.partition(".")[0] in ("data", "seed")
        },
    )
    return summary, digest


def _summaries_of_attributes(table: Table, moments: TableMoments) -> list[AttributeSummary]:
    sizes = (
        {}
        if table.categorical is None
        else {attribute.name: attribute.size for attribute in table.categorical.attributes}
    )
    variances = np.diag(moments.covariance)
    units = (
        np.sqrt(np.diag(table.scan.covariance)).tolist()
        if table.standardized
        else [None] * table.width
    )
    numeric = [
        AttributeSummary(
            name=name,
            mean=float(mean),
            variance=float(variance),
            values=sizes.pop(name, None),
            unit=unit,
        )
        for name, mean, variance, unit in zip(
            table.attributes, moments.mean, variances, units, strict=True
        )
    ]
    return [
        *numeric,
        *(AttributeSummary(name=name, values=size, unit=None) for name, size in sizes.items()),
    ]


def _distinct(summaries: Sequence[DataSummary]) -> list[DataSummary]:
    return list({summary.model_dump_json(): summary for summary in summaries}.values())


def _summaries_of_schemes(
    scenario: Scenario, points: Sequence[dict[str, Any]], evidence: Evidence
) -> list[SchemeSummary]:
    summaries, audited = (
        [],
        {(str(release.sweep), release.scheme): release for release in evidence.releases},
    )
    for point in points:
        here = at_point(scenario, point)
        for use in here.schemes:
            cls = registry.get("scheme", use.name)
            levels: list[float] = []
            release = audited.get((str(point), use.id))
            with contained():  # where it fails every cell of the scheme says so
                levels = list(release_levels(use, here))
            summary = SchemeSummary(
                sweep=point,
                scheme=use.id,
                plugin=use.name,
                levels=levels,
                summary=cls.summary(),
                claims=cls.claims,
                notes=[
                    *(release.notes if release else ()),
                    *([DRAWN_ANEW] if _draws_anew(use) else []),
                ],
                understated=release is not None and release.understated,
                remedy=_remedy(here, use, levels, point, evidence),
            )
            summaries.append(summary)
    return summaries


def _draws_anew(use: SchemeUse) -> bool:
    return use.levels is not None and use.levels.each_replicate


def _remedy(
    here: Scenario,
    use: SchemeUse,
    levels: Sequence[float],
    point: dict[str, Any],
    evidence: Evidence,
) -> Remedy | None:
    """Return what would leave half unknown of one release; nothing of tables with too few records to be told of."""
    every = Measurements.of(evidence.measurements)
    found = every.taken(every.where(scheme=use.id, sweep=point))
    table, moments = table_of(here)
    if not len(found) or table.rows < FEWEST_RECORDS or _draws_anew(use):
        return None
    with contained():  # a scheme that cannot be made has no figures to mend
        return remedy_of(found, make_scheme(use, here.base, table), levels, table, moments)
    return None


def _summaries_of_plugins(scenario: Scenario) -> list[PluginSummary]:
    summaries = []
    for kind, uses in (("scheme", scenario.schemes), ("attack", scenario.attacks)):
        for use in uses:
            cls = registry.get(kind, use.name)
            parameters = use.parameters.model_dump(mode="json", by_alias=True)
            summary = PluginSummary(
                kind=kind,
                id=use.id,
                name=use.name,
                summary=cls.summary(),
                assumes=cls.assumes,
                wins=getattr(cls, "wins", ""),
                reference=cls.reference,
                parameters=parameters,
            )
            summaries.append(summary)
    return summaries


def _references(scenario: Scenario) -> list[Reference]:
    named = [registry.get("scheme", use.name).reference for use in scenario.schemes]
    named += [registry.get("attack", use.name).reference for use in scenario.attacks]
    named += [use.expectation.reference for use in scenario.judged]
    keys = sorted({*scenario.cite, *bibliography.cited(named)})
    return [Reference(key=key, text=bibliography.text(key)) for key in keys]


def _provenance(
    scenario: Scenario,
    summaries: Sequence[DataSummary],
    started: datetime,
    duration: float,
    command: str,
) -> Provenance:
    packages = ("auditor", "numpy", "scipy", "pandas", "scikit-learn")
    return Provenance(
        versions={
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
        seed=scenario.seed,
        fingerprint=summaries[0].fingerprint,
        fingerprint_key=""
        if all(summary.disclosure == "public" for summary in summaries)
        else owner.key_name(),
        platform=f"{platform.system()} {platform.machine()}",
        start=started.isoformat(timespec="seconds"),
        duration=round(duration, 3),
        command=command,
        file=_file_of(scenario),
    )


def _file_of(scenario: Scenario) -> str:
    """Return the scenario's file as a repository would name it; of one elsewhere its name alone, as folders tell of the machine."""
    document = scenario.places.document
    path = Path(document.file if document is not None and document.file else "")
    with suppress(OSError, ValueError):  # the current folder is gone, or the file is not below it
        path = path.relative_to(Path.cwd()) if path.is_absolute() else path
    return (
        path.name
        if path.is_absolute() or ".." in path.parts
        else path.as_posix()
        if path.name
        else ""
    )
