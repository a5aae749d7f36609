"""Parts of a result that are computed after the tasks."""

import platform
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from auditor import registry
from auditor.audit.base.request import release_levels
from auditor.data.source import is_public
from auditor.data.table import Table
from auditor.process.containment import contained
from auditor.process.environment import version
from auditor.results import table_register as owner
from auditor.results.measurements import Measurements
from auditor.results.metrics import WORKS, works_in
from auditor.results.model import PluginSummary, Provenance, Reference, SchemeSummary
from auditor.results.records import AttributeSummary, DataSummary, Evidence
from auditor.runs.remedies import remedy_of
from auditor.runs.tables import notes_of, table_of
from auditor.runs.tasks import Task
from auditor.scenario.model import Scenario

DRAWN_ANEW = "every replicate draws its levels anew, so that figures are means over such draws; the levels shown are the first replicate's"
PACKAGES = ("auditor", "numpy", "scipy", "pandas", "scikit-learn")


def summary_of_data(scenario: Scenario) -> tuple[DataSummary, str, Table | None]:
    """Table of a sweep point in aggregates, its digest, and itself if it stays in its files."""
    table, moments = table_of(scenario)
    public = is_public(scenario.data.source) or scenario.data.disclosure == "public"
    variances = np.diag(moments.covariance)
    # bit by bit: disclosure keys its secret shift on these numbers
    correlation = moments.covariance / np.sqrt(np.outer(variances, variances))
    digest = table.fingerprint()
    categories = () if table.categorical is None else table.categorical.attributes
    sizes = {attribute.name: attribute.size for attribute in categories}
    units: list[float | None] = [None] * table.width
    if table.standardized:
        units = np.sqrt(np.diag(table.scan.covariance)).tolist()
    figures = zip(table.attributes, moments.mean.tolist(), variances.tolist(), units, strict=True)
    attributes = [
        AttributeSummary(
            name=name, mean=mean, variance=variance, values=sizes.pop(name, None), unit=unit
        )
        for name, mean, variance, unit in figures
    ]
    attributes += [AttributeSummary(name=name, values=size) for name, size in sizes.items()]
    summary = DataSummary(
        source=table.source,
        rows=table.rows,
        attributes=attributes,
        correlation=np.clip(correlation, -1.0, 1.0).tolist(),
        description=table.description,
        licence=table.licence,
        fingerprint=owner.fingerprint(digest, public),
        disclosure="public" if public else "private",
        notes=notes_of(scenario, table),
        sweep={
            path: value
            for path, value in scenario.point.items()
            if path.partition(".")[0] in ("data", "seed")
        },
    )
    return summary, digest, table if table.streamed else None


def summaries_of_schemes(
    tasks: Sequence[Task], evidence: Evidence, so_far: bool = False
) -> list[SchemeSummary]:
    """Description of every release, by its first task.

    With a remedy if needed and not only ``so_far``.
    """
    measurements = Measurements.of(evidence.measurements)
    audited = {(str(release.sweep), release.scheme): release for release in evidence.releases}
    summaries = []
    for task in tasks:
        if task.replicates[0] > 1:
            continue
        here, use = task.here, task.use
        point = here.point
        cls, release = registry.get("scheme", use.name), audited.get((str(point), use.id))
        anew = getattr(use.levels, "each_replicate", False)
        levels, remedy = list[float](), None
        with contained():  # every cell of the scheme has the failure
            levels = list(release_levels(use, here))
            found = measurements.taken(measurements.where(scheme=use.id, sweep=point))
            if not so_far and len(found) and not anew:
                remedy = remedy_of(found, task.request(1))
        summaries.append(
            SchemeSummary(
                sweep=point,
                scheme=use.id,
                plugin=use.name,
                levels=levels,
                summary=cls.summary(),
                claims=cls.claims,
                notes=[*(release.notes if release else ()), *([DRAWN_ANEW] if anew else [])],
                understated=release is not None and release.understated,
                remedy=remedy,
            )
        )
    return summaries


def summaries_of_plugins(scenario: Scenario) -> tuple[list[PluginSummary], list[Reference]]:
    """Descriptions of the plugins, and the references that they cite."""
    uses: list[tuple[Any, Any]] = [("scheme", use) for use in scenario.schemes]
    uses += [("attack", use) for use in scenario.attacks]
    plugins = []
    for kind, use in uses:
        cls = registry.get(kind, use.name)
        plugins.append(
            PluginSummary(
                kind=kind,
                id=use.id,
                name=use.name,
                summary=cls.summary(),
                assumes=cls.assumes,
                wins=getattr(cls, "wins", ""),
                reference=cls.reference,
                parameters=use.parameters.model_dump(mode="json", by_alias=True),
            )
        )
    named = [plugin.reference for plugin in plugins]
    named += [use.expectation.reference for use in scenario.expect]
    keys = sorted({*scenario.cite, *works_in("; ".join(named))})
    return plugins, [Reference(key=key, text=WORKS[key]) for key in keys]


def provenance(
    seed: int,
    file: str,
    summaries: Sequence[DataSummary],
    started: datetime,
    duration: float,
    command: str,
) -> Provenance:
    """Record of a run."""
    versions = {package: version(package) for package in PACKAGES}
    public = all(summary.disclosure == "public" for summary in summaries)
    return Provenance(
        versions={"python": platform.python_version(), **versions},
        seed=seed,
        fingerprint=summaries[0].fingerprint,
        fingerprint_key="" if public else owner.key_name(),
        platform=f"{platform.system()} {platform.machine()}",
        start=started.isoformat(timespec="seconds"),
        duration=round(duration, 3),
        command=command,
        file=file,
    )
