"""Run a scenario: cut it into tasks, carry them out on any number of workers, and put the results together in one order."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from auditor import bibliography, registry
from auditor.audit import ReleaseAudit, audit_release, failure_reason, release_levels, table_moments
from auditor.data.categories import Categories
from auditor.data.load import is_file, load_table
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.expectation import Evidence
from auditor.results import (
    AttributeSummary,
    AuditResult,
    DataSummary,
    ExpectationRecord,
    Measurement,
    PluginSummary,
    Provenance,
    Reference,
    SchemeSummary,
    cells,
)
from auditor.scenario.model import ExpectationUse, Scenario
from auditor.scenario.read import DATA_FIELDS, at_point, rebuild
from auditor.scheme import TableMoments
from auditor.statistics import quantile
from auditor.streams import stream

FEWEST_REPLICATES = 5
"""From so many replicates on their own spread is the error bar where there is no closed form."""

TASKS_PER_SCHEME = 16
"""Replicates are dealt out in at most so many shares: cheap ones should not each pay for a task."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    current: str


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class Task:
    """Some replicates of one scheme at one sweep point; carries what to read, never an array."""

    document: dict[str, Any]
    base: str | None
    name: str
    point: tuple[tuple[str, Any], ...]
    scheme: int
    replicates: tuple[int, ...]
    pooling: bool

    @property
    def label(self) -> str:
        """What progress shows."""
        where = ", ".join(f"{path}={value}" for path, value in self.point)
        return f"scheme {self.scheme + 1}{f' at {where}' if where else ''}, replicate {self.replicates[0]}"


def run_scenario(
    scenario: Scenario, workers: int = 1, cluster: str | None = None, listener: Listener | None = None, command: str = ""
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

    Raises
    ------
    AuditorError
        The data cannot be audited; a failing attack or scheme is no error but a record.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    points = scenario.sweep_points()
    summaries = [_summary_of_data(at_point(scenario, point), point) for point in points]
    tasks = list(plan(scenario, points))
    audits: list[ReleaseAudit] = []
    for done, (task, result) in enumerate(_carry_out(tasks, workers, cluster), start=1):
        audits.extend(result)
        if listener is not None:
            listener(Progress(done, len(tasks), task.label))
    measurements = spread_over_replicates([record for audit in audits for record in audit.measurements])
    evidence = Evidence(measurements, [audit.evidence for audit in audits])
    return AuditResult(
        name=scenario.name,
        scenario=scenario.spec(),
        provenance=_provenance(scenario, summaries, started, time.perf_counter() - clock, command),
        data=_distinct(summaries),
        releases=_summaries_of_schemes(scenario, points),
        plugins=_summaries_of_plugins(scenario),
        references=_references(scenario),
        expectations=judge(scenario, evidence),
        measurements=measurements,
        distributions=[spread for audit in audits for spread in audit.distributions],
    )


def plan(scenario: Scenario, points: Sequence[dict[str, Any]]) -> Iterator[Task]:
    """Yield the tasks of a scenario, in the order of its results."""
    share = math.ceil(scenario.replicates / TASKS_PER_SCHEME)
    numbers = range(1, scenario.replicates + 1)
    pooling = any(use.expectation.needs_pooling for use in scenario.expect)
    for point in points:
        for scheme in range(len(at_point(scenario, point).schemes)):
            for first in range(0, scenario.replicates, share):
                replicates = tuple(numbers[first : first + share])
                base = None if scenario.base is None else str(scenario.base)
                yield Task(scenario.document, base, scenario.name, tuple(point.items()), scheme, replicates, pooling)


def _carry_out(tasks: Sequence[Task], workers: int, cluster: str | None) -> Iterator[tuple[Task, list[ReleaseAudit]]]:
    """Yield every task with its result, in the tasks' order, whoever does them."""
    if cluster is not None:
        yield from zip(tasks, _on_cluster(tasks, cluster), strict=True)
    elif workers == 1 or len(tasks) == 1:
        yield from ((task, carry_out(task)) for task in tasks)
    else:
        from joblib import Parallel, delayed

        results = Parallel(n_jobs=workers, return_as="generator")(delayed(carry_out)(task) for task in tasks)
        yield from zip(tasks, results, strict=True)


def _on_cluster(tasks: Sequence[Task], address: str) -> Iterator[list[ReleaseAudit]]:
    try:
        from distributed import Client
    except ImportError:
        raise AuditorError("--cluster needs the package `distributed`: pip install 'auditor[cluster]'") from None
    try:
        connect: Callable[..., Any] = Client  # typed or not, by whether the package is installed where types are checked
        client = connect(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise AuditorError(f"no Dask scheduler answers at {address!r} ({type(error).__name__})") from None
    with client:
        for future in client.map(carry_out, tasks, pure=False):
            yield future.result()


def carry_out(task: Task) -> list[ReleaseAudit]:
    """Carry out one task; runs in a worker.

    Linear algebra is held to one thread: its sums depend on the number of threads, and results must not.
    """
    with threadpool_limits(limits=1):
        point = dict(task.point)
        scenario = _scenario_at(json.dumps([task.document, task.point]), task.base, task.name)
        table, moments = table_of(scenario)
        use = scenario.schemes[task.scheme]
        return [audit_release(scenario, point, table, moments, use, replicate, task.pooling) for replicate in task.replicates]


@lru_cache(maxsize=64)
def _scenario_at(text: str, base: str | None, name: str) -> Scenario:
    document, point = json.loads(text)
    return at_point(rebuild(document, None if base is None else Path(base), name), dict(point))


def table_of(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Return the scenario's table and its exact moments; kept, as every task of a run reads the same few tables."""
    base = None if scenario.base is None else str(scenario.base)
    with threadpool_limits(limits=1):
        return _table(json.dumps(scenario.data.spec(), sort_keys=True), base, scenario.seed, _stamp(scenario.data.source, scenario.base))


def _stamp(source: str, base: Path | None) -> tuple[str, int, int] | None:
    """Return what changes when a file does: in a long session a table that was edited must not be taken for the one kept."""
    for folder in (base or Path(), Path()):
        path = (folder / source).resolve()
        if is_file(source) and path.is_file():
            return str(path), path.stat().st_mtime_ns, path.stat().st_size
    return None


@lru_cache(maxsize=4)
def _table(spec: str, base: str | None, seed: int, stamp: tuple[str, int, int] | None) -> tuple[Table, TableMoments]:
    data = json.loads(spec)
    own = {key: value for key, value in data.items() if key not in DATA_FIELDS}
    table = load_table(
        data["source"],
        columns=data["columns"],
        rows=data["rows"],
        missing=data["missing"],
        standardize=data["standardize"],
        parameters=own,
        rng=stream(seed, "data"),
        base=None if base is None else Path(base),
        categories=Categories(data.get("bin", {}), data.get("categorical", {})),
    )
    return table, table_moments(table)


def spread_over_replicates(measurements: list[Measurement]) -> list[Measurement]:
    """Return the measurements, with error bars from the replicates where there is no closed form.

    A jackknife estimates the spread between draws; replicates are other draws. With five or more of them the spread between them is
    the honest error of a single one, with Student's t for the interval.
    """
    improved: dict[int, Measurement] = {}
    index = {id(record): place for place, record in enumerate(measurements)}
    for records in cells(record for record in measurements if record.error_bar in ("jackknife", "sampling")).values():
        if len(records) < FEWEST_REPLICATES:
            continue
        values = np.array([record.value for record in records], dtype=np.float64)
        error = float(values.std(ddof=1))
        reach = quantile(0.975, len(values) - 1) * error
        for record, value in zip(records, values.tolist(), strict=True):
            low = value - reach if record.metric == "collusion_gain" else max(0.0, value - reach)
            improved[index[id(record)]] = record._replace(std_error=error, ci_low=low, ci_high=value + reach, error_bar="replicates")
    return [improved.get(place, record) for place, record in enumerate(measurements)]


def judge(scenario: Scenario, evidence: Evidence) -> list[ExpectationRecord]:
    """Return the verdict on every expectation of the scenario."""
    return [_judged(use, evidence) for use in scenario.expect]


def _judged(use: ExpectationUse, evidence: Evidence) -> ExpectationRecord:
    """A judge that breaks leaves its expectation undecided, and an hour's measurements where they are."""
    try:
        return use.expectation.record(use.name, use.where, evidence)
    except Exception as error:
        why = f"could not be judged: {failure_reason(error)}"
        return ExpectationRecord(expectation=use.name, where=use.where, status="undecided", observed=None, bound=None, why=why)


def _summary_of_data(scenario: Scenario, point: dict[str, Any]) -> DataSummary:
    table, moments = table_of(scenario)
    variances = np.diag(moments.covariance)
    correlation = moments.covariance / np.sqrt(np.outer(variances, variances))
    return DataSummary(
        source=table.source,
        rows=table.rows,
        attributes=_summaries_of_attributes(table, moments),
        correlation=np.clip(correlation, -1.0, 1.0).tolist(),
        description=table.description,
        licence=table.licence,
        fingerprint=table.fingerprint(),
        sweep={path: value for path, value in point.items() if path.partition(".")[0] in ("data", "seed")},
    )


def _summaries_of_attributes(table: Table, moments: TableMoments) -> list[AttributeSummary]:
    sizes = {} if table.categorical is None else {attribute.name: attribute.size for attribute in table.categorical.attributes}
    variances = np.diag(moments.covariance)
    numeric = [
        AttributeSummary(name=name, mean=float(mean), variance=float(variance), values=sizes.pop(name, None))
        for name, mean, variance in zip(table.attributes, moments.mean, variances, strict=True)
    ]
    return [*numeric, *(AttributeSummary(name=name, values=size) for name, size in sizes.items())]


def _distinct(summaries: Sequence[DataSummary]) -> list[DataSummary]:
    return list({summary.model_dump_json(): summary for summary in summaries}.values())


def _summaries_of_schemes(scenario: Scenario, points: Sequence[dict[str, Any]]) -> list[SchemeSummary]:
    summaries = []
    for point in points:
        here = at_point(scenario, point)
        for use in here.schemes:
            cls = registry.get("scheme", use.name)
            levels = [level for level in release_levels(use, here) if not math.isnan(level)]
            summary = SchemeSummary(
                sweep=point, scheme=use.id, plugin=use.name, levels=levels, summary=cls.summary(), claims=cls.claims
            )
            summaries.append(summary)
    return summaries


def _summaries_of_plugins(scenario: Scenario) -> list[PluginSummary]:
    summaries = []
    for kind, uses in (("scheme", scenario.schemes), ("attack", scenario.attacks)):
        for use in uses:
            cls = registry.get(kind, use.name)
            parameters = use.parameters.model_dump(mode="json", by_alias=True)
            summary = PluginSummary(
                kind=kind, id=use.id, name=use.name, summary=cls.summary(), assumes=cls.assumes, reference=cls.reference,
                parameters=parameters,
            )  # fmt: skip
            summaries.append(summary)
    return summaries


def _references(scenario: Scenario) -> list[Reference]:
    named = [registry.get("scheme", use.name).reference for use in scenario.schemes]
    named += [registry.get("attack", use.name).reference for use in scenario.attacks]
    named += [use.expectation.reference for use in scenario.expect]
    keys = sorted({*scenario.cite, *bibliography.cited(named)})
    return [Reference(key=key, text=bibliography.text(key)) for key in keys]


def _provenance(
    scenario: Scenario, summaries: Sequence[DataSummary], started: datetime, duration: float, command: str
) -> Provenance:
    packages = ("auditor", "numpy", "scipy", "pandas", "scikit-learn")
    return Provenance(
        versions={"python": platform.python_version(), **{package: version(package) for package in packages}},
        seed=scenario.seed,
        fingerprint=summaries[0].fingerprint,
        platform=f"{platform.system()} {platform.machine()}",
        start=started.isoformat(timespec="seconds"),
        duration=round(duration, 3),
        command=command,
    )
