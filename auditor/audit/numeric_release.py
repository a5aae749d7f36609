"""Figures of a numeric release itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.adversary.attack import check_real
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.request import CellContext, ReleaseRequest
from auditor.audit.measures.closeness import Baseline, baseline, group_codes, sampled_of
from auditor.audit.measures.empirical_guarantee import release_guarantees
from auditor.audit.measures.entropy import entropy_records, floor_records
from auditor.audit.measures.privacy import wanted_tally
from auditor.audit.measures.released_as_is import blank_records
from auditor.audit.measures.utility import column_of, geometry_records, utility_records
from auditor.audit.numeric.views import EstimatedNoise
from auditor.results.records import ErrorBar, Measurement


def release_records(opened: Opened, context: CellContext) -> Iterator[Measurement]:
    """Yield the requested figures of the release."""
    scenario, release, asked = opened.scenario, opened.release, opened.scenario.measure
    if asked("seconds"):
        yield context.record("seconds", context.everybody, release.seconds)
    facts = release.scheme.facts(release.levels, release.moments)
    check_real(*facts.values())
    yield from (
        context.record(name, context.everybody, float(value))
        for name, value in facts.items()
        if asked(name)
    )
    yield from release_guarantees(context, scenario, release, opened.law, opened.coalitions)
    yield from blank_records(context, release, opened.coalitions)
    if opened.gathered.noise is not None:
        yield from noise_records(context, opened.gathered.noise)
    if asked("entropy-privacy"):
        yield from entropy_records(context, release.table, opened.law, opened.coalitions)
    if asked("error-bounds"):
        K_X = release.moments.covariance
        yield from floor_records(context, scenario.data, K_X, opened.law, opened.coalitions)
    if scenario.utility is not None:
        yield from utility_records(context, scenario, release.table, release.whole_copies())
    if asked("geometry"):
        yield from geometry_records(context, release.columns, scenario.seed)
    if asked("anonymity"):
        for one, kept in release.scheme.promises(release.blocks(), opened.coalitions).items():
            yield from (context.record(metric, one, value) for metric, value in kept.items())


def noise_records(context: CellContext, noise: EstimatedNoise) -> list[Measurement]:
    """Estimated levels, distances from laws, dependence on the data."""
    records, levels = [], zip(noise.levels.tolist(), noise.std_errors.tolist(), strict=True)
    for place, (level, error) in enumerate(levels, start=1):
        metric = f"estimated_level(copy {place})"
        if np.isfinite(error):
            bar: ErrorBar = "jackknife"
            bounds = 0.0, np.inf
            record = context.estimate(metric, (place,), level, error, bounds=bounds, error_bar=bar)
        else:
            record = context.record(metric, (place,), level)
        records.append(record)
    figures = {f"off_law({name})": distance for name, distance in noise.distances.items()}
    figures["noise_on_data"] = noise.dependence
    return records + [context.record(name, context.everybody, v) for name, v in figures.items()]


def counts_errors(request: ReleaseRequest) -> bool:
    """Whether a figure needs the errors of all records, of linear attacks too."""
    scenario, table = request.scenario, request.table
    return wanted_tally(scenario, np.ones(table.width), table).of_all


def baseline_of(opened: Opened) -> Baseline | None:
    """Success of guesses without copies, if closeness is requested."""
    scenario, table = opened.scenario, opened.release.table
    if not scenario.asks_closeness:
        return None

    def column(name: str) -> Any:
        return sampled_of(table, column_of(scenario, table, name))

    weight = scenario.data.weight
    return replace(
        baseline(table, scenario.data.tolerance),
        groups=[(name, group_codes(column(name))) for name in scenario.grouped_by],
        units=None if table.units is None else sampled_of(table, table.units),
        weights=None if weight is None else column(weight),
    )
