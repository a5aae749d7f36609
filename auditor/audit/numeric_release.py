"""Figures of a numeric release itself, and evidence on pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from auditor.adversary.attack import check_real
from auditor.adversary.knowledge import Perfect
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.records import CellContext, promise_records, scheme_record
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.insider.gain import MOST_VALUES, insider_gains
from auditor.audit.insider.noise_gain import noise_gains, unresolved
from auditor.audit.insider_noise.records import insider_noise_records
from auditor.audit.law_tests.numeric import law_rows, looked_at
from auditor.audit.measures.diagnosis import column_figures, noise_figures
from auditor.audit.measures.empirical_guarantee import release_guarantees
from auditor.audit.measures.entropy import entropy_records, floor_records
from auditor.audit.measures.every_cell import every_cell_records
from auditor.audit.measures.released_as_is import blank_records, kept_records, shown_records
from auditor.audit.measures.utility import column_of, geometry_records, utility_records
from auditor.audit.numeric.limits import TREE_ROWS
from auditor.audit.numeric.views import EstimatedNoise
from auditor.base.types import Array, Coalition
from auditor.data.table import ShownColumn
from auditor.numerics.moments import Moments
from auditor.process.containment import contained
from auditor.results.evidence import InsiderGain, Pooling
from auditor.results.records import ErrorBar, Measurement
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices


def release_records(opened: Opened, context: CellContext) -> Iterator[Measurement]:
    """Yield the figures of the release that the scenario asks for."""
    scenario, release, asked = opened.scenario, opened.release, opened.scenario.measure
    if asked("seconds"):
        yield scheme_record(context, "seconds", release.seconds)
    facts = release.scheme.facts(release.levels, release.moments)
    check_real(*facts.values())
    yield from (
        scheme_record(context, name, float(value)) for name, value in facts.items() if asked(name)
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
        kept = release.scheme.promises(release.blocks(), opened.coalitions)
        yield from promise_records(context, kept)


def noise_records(context: CellContext, noise: EstimatedNoise) -> list[Measurement]:
    """Return estimated levels, distances from schemes' laws, and dependence on the data."""
    records, levels = [], zip(noise.levels.tolist(), noise.std_errors.tolist(), strict=True)
    for place, (level, error) in enumerate(levels, start=1):
        metric = f"estimated_level(copy {place})"
        if np.isfinite(error):
            bar: ErrorBar = "jackknife"
            bounds = 0.0, math.inf
            record = context.estimate(metric, (place,), level, error, bounds=bounds, error_bar=bar)
        else:
            record = context.record(metric, (place,), level)
        records.append(record)
    figures = {f"off_law({name})": distance for name, distance in noise.distances.items()}
    figures["noise_on_data"] = noise.dependence
    return records + [scheme_record(context, name, value) for name, value in figures.items()]


def without_law_records(opened: Opened, context: CellContext) -> list[Measurement]:
    """Return errors over all cells of files, and figures of copies without a stated law."""
    release, table, law = opened.release, opened.release.table, opened.law
    copies, found = release.scheme.handed_in(table), list[Measurement]()
    if copies:
        whole = table.whole
        found += every_cell_records(
            context, whole.attributes, whole.values, copies, opened.coalitions
        )
    stated = law is not None and law.distribution != "unstated"
    if (
        (stated and table.units is None and not any(n for _, n in release.scheme.beside(table)))
        or not opened.gathered.copies.joint
        or release.transformed is not None
        or table.streamed
    ):
        return found
    copies, steps = release.whole_copies(), table.resolution.steps
    made = release.scheme.makes_copies  # then the owner chose the values that are kept
    if not stated and not made:
        found += diagnosis(opened, context, copies)
    if not stated:
        found += shown_records(context, table.values, copies, opened.coalitions, steps)
        for one in opened.coalitions if not made else ():
            if len(one) == 1:
                found += kept_records(context, table.values, [copies[one[0] - 1]], steps, one)
    if any(isinstance(knowledge, Perfect) for knowledge in opened.scenario.knowledge):
        found += _fitted_records(opened, context, copies)
        if not made and not stated:
            found += insider_noise_records(context, table.values, copies, opened.coalitions)
    return found


def diagnosis(opened: Opened, context: CellContext, copies: list[Array]) -> list[Measurement]:
    """Return figures of the noise of copies from files, and of the columns shown beside it."""
    table, shown = opened.release.table, opened.release.scheme.shown(opened.release.table)
    originals = {}
    for column in shown:
        with contained():  # the original has no such column, or blanks in it
            originals[column.name] = column_of(opened.scenario, table, column.name)
    return [
        *noise_figures(context, table.values, copies, table.resolution.steps),
        *column_figures(context, table.values, shown, originals),
    ]


def _fitted_records(opened: Opened, context: CellContext, copies: list[Array]) -> list[Measurement]:
    scheme, table = opened.release.scheme, opened.release.table
    keys = None if table.keys is None else table.keys.in_order
    X, cells, whole = table.values, copies, table.whole
    if table.cut is not None:  # columns that a copy lacks may be predicted from others
        rows = table.cut.rows
        X = whole.values[rows]
        handed = [copy[rows, : whole.width] for copy in scheme.handed_in(table)]
        cells = [np.where(np.isnan(copy).all(axis=0), 0.0, copy) for copy in handed]
        context = context.of_columns(whole.attributes, X.var(axis=0))
    exact, shown = None if scheme.makes_copies else whole.resolution.steps, scheme.shown(table)
    if table.units is not None:
        shown.append(ShownColumn(0, "unit", table.units))
    asked = opened.scenario.data.tolerance if opened.scenario.asks_closeness else None
    by = [(name, column_of(opened.scenario, table, name)) for name in opened.scenario.grouped_by]
    weight = opened.scenario.data.weight
    weights = None if weight is None else column_of(opened.scenario, table, weight)
    asks = asked, by, table.units, weights
    return fitted_records(context, X, cells, opened.coalitions, keys, exact, shown, *asks)


def learnt_gains(opened: Opened) -> dict[Coalition, InsiderGain]:
    """Return the insider's gains by pooling, in the first replicate."""
    release = opened.release
    if (
        not opened.gathered.copies.joint
        or release.key.replicate > 1
        or all(len(coalition) == 1 for coalition in opened.needed)
    ):
        return {}
    most = min(TREE_ROWS, MOST_VALUES // (release.copies * release.table.width))
    rows = looked_at(release, most if release.kept else law_rows(release))
    x, *copies = (
        np.concatenate(each) for each in zip(*((x, *copies) for x, copies in rows), strict=True)
    )
    proved = opened.law is not None and release.scheme.makes_copies
    return insider_gains(opened.needed, x, copies, opened.law, proved)


def pooling(opened: Opened, gains: Mapping[Coalition, InsiderGain]) -> dict[Coalition, Pooling]:
    """Return the evidence on pooling, by coalition of two copies or more."""
    release, law = opened.release, opened.law
    several = [coalition for coalition in opened.needed if len(coalition) > 1]
    if not several:
        return {}
    if not opened.gathered.copies.joint:
        told = release.scheme.sufficient(release.blocks(), several)
        return {one: Pooling(says, by_classes=True) for one, says in told.items()}
    total = Moments.merge(opened.gathered.groups)
    noise = noise_gains(several, total, law) if isinstance(law, KroneckerNoise) else {}
    useless = None if law is None else makes_useless(law)
    lost = unresolved(several, total, release.table.width)
    return {
        one: Pooling(
            None if useless is None else one_suffices(useless, one),
            noise.get(one),
            one in lost,
            gains.get(one),
            release.scheme.makes_copies,
        )
        for one in several
    }
