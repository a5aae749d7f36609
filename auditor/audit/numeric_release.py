"""Figures of a numeric release itself, and of guesses without its copies."""

from collections.abc import Iterator

import numpy as np

from auditor.adversary.attack import check_real
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.request import Bar, CellContext
from auditor.audit.measures.empirical_guarantee import release_guarantees
from auditor.audit.measures.entropy import entropy_records, floor_records
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.measures.released_as_is import blank_records
from auditor.audit.measures.utility import geometry_records, utility_records
from auditor.audit.numeric.views import EstimatedNoise
from auditor.audit.without_law import without_law_records as without_law_records
from auditor.data.table import Table
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario


def release_figures(opened: Opened, context: CellContext) -> Iterator[Measurement]:
    """Yield the requested figures."""
    release, coalitions = opened.release, opened.coalitions
    scenario, asked, law = opened.scenario, opened.scenario.measure, opened.law
    if asked("seconds"):
        yield context.record("seconds", context.everybody, opened.gathered.whole.seconds)
    facts = release.scheme.facts(release.levels, release.moments)
    check_real(*facts.values())
    for name, value in facts.items():
        if asked(name):
            yield context.record(name, context.everybody, float(value))
    yield from release_guarantees(context, scenario, release, law, coalitions)
    yield from blank_records(context, release, coalitions)
    if opened.gathered.noise is not None:
        yield from _noise_records(context, opened.gathered.noise)
    if asked("entropy-privacy"):
        yield from entropy_records(context, release.table, law, coalitions)
    if asked("error-bounds"):
        K_X = release.moments.covariance
        yield from floor_records(context, scenario.data, K_X, law, coalitions)
    if scenario.utility is not None:
        yield from utility_records(context, scenario, release.table, release.whole_copies())
    if asked("geometry"):
        yield from geometry_records(context, release.columns, scenario.seed)
    if asked("anonymity"):
        for one, kept in release.scheme.promises(release.blocks(), coalitions).items():
            yield from (context.record(metric, one, value) for metric, value in kept.items())


def _noise_records(context: CellContext, noise: EstimatedNoise) -> Iterator[Measurement]:
    """Yield estimated levels, distances from laws, dependence on the data."""
    levels = zip(noise.levels.tolist(), noise.std_errors, strict=True)
    for place, (level, error) in enumerate(levels, start=1):
        bar = Bar.normal(float(error), "jackknife") if np.isfinite(error) else None
        metric, bounds = f"estimated_level(copy {place})", (0.0, np.inf)
        yield context.record(metric, (place,), level, bar, bounds=bounds)
    figures = {f"off_law({name})": distance for name, distance in noise.distances.items()}
    for name, value in (*figures.items(), ("noise_on_data", noise.dependence)):
        yield context.record(name, context.everybody, value)


def is_counted(scenario: Scenario, table: Table) -> bool:
    """Whether a figure needs the errors of all records, of linear attacks too."""
    return wanted_tally(scenario, np.ones(table.width), table).of_all
