"""Figures of a uniform release itself, whatever the attack: time, history, distances from its law, privacy, and what pooling buys."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.categorical.law import history_size
from auditor.categorical.making import UniformRelease
from auditor.categorical.marginal import marginal_gap, marginal_test
from auditor.categorical.measures import (
    growth_bound,
    largest_retention_for_breach,
    largest_retention_for_growth,
)
from auditor.categorical.pooling import CoalitionLooks
from auditor.categorical.records import Cell
from auditor.expectation import Pooling
from auditor.records import scheme_record
from auditor.results import Measurement
from auditor.scenario.coalitions import Coalition

Array = NDArray[np.float64]


def release_records(release: UniformRelease) -> list[Measurement]:
    """Return time, history size, distance of each copy from its law, and bounds on what every coalition can learn."""
    scenario, records = release.scenario, []
    if scenario.measure("seconds"):
        records.append(scheme_record(release.context, "seconds", release.seconds))
    if scenario.measure("history-size") and release.law.multilevel:
        records.append(_history(release))
    if scenario.measure("marginal-gap"):
        records += [_marginal_gap(release, number) for number in release.singles]
    for coalition in release.coalitions:
        records += _bounds(release, coalition)
    if scenario.measure("empirical-epsilon"):
        records += _empirical_epsilons(release)
    return [*records, *_admissible(release)]


def _bounds(release: UniformRelease, coalition: Coalition) -> list[Measurement]:
    """Differential privacy of a coalition's copies, and by how much they can make any belief grow."""
    cell, law = Cell(release.context, None, None, coalition), release.law.of(coalition)
    epsilon = law.epsilon()
    if math.isfinite(epsilon):
        cell.add("epsilon", epsilon, theory=epsilon)
    if release.scenario.measure("delta-growth"):
        bound = growth_bound(law.odds())
        cell.add("growth_bound", bound, theory=bound)
    return cell.records


def _empirical_epsilons(release: UniformRelease) -> list[Measurement]:
    """A lower bound on every coalition's ε from trials on two values, each at the stated confidence, beside the exact one."""
    from auditor.distinguishing import Trials  # a second to import, which every other audit would pay for

    measure = release.scenario.measure("empirical-epsilon")
    assert measure is not None
    key = replace(release.key, scheme=f"{release.key.scheme} trials")
    trials = Trials(release.scheme, release.context.levels, release.law.size, int(measure.options["trials"]), key)
    records = []
    for coalition in release.coalitions:
        cell, epsilon = Cell(release.context, None, None, coalition), release.law.of(coalition).epsilon()
        found = trials.audit(coalition, float(measure.options["confidence"]))
        cell.add("empirical_epsilon", found.epsilon, theory=epsilon if math.isfinite(epsilon) else None)
        records += cell.records
    return records


def _admissible(release: UniformRelease) -> list[Measurement]:
    """Largest retention of one copy that keeps to the bounds asked for, over this domain."""
    cell, size = Cell(release.context, None, None, tuple(range(1, len(release.context.levels) + 1))), release.law.size
    growth, breach = release.scenario.measure("delta-growth"), release.scenario.measure("rho-breach")
    if growth is not None:
        delta = float(growth.options["delta"])
        p = largest_retention_for_growth(delta, size)
        cell.add(f"admissible_retention(delta {delta:g})", p, theory=p)
    if breach is not None:
        low, high = float(breach.options["rho1"]), float(breach.options["rho2"])
        p = largest_retention_for_breach(low, high, size)
        cell.add(f"admissible_retention(rho {low:g} {high:g})", p, theory=p)
    return cell.records


def _history(release: UniformRelease) -> Measurement:
    """Elements of a tuple's compressed history, and Lemma 2's exact mean."""
    sizes, law = release.copies.history_sizes(), release.law
    cell = Cell(release.context, None, None, tuple(range(1, len(law.levels) + 1)))
    error = float(sizes.std() / math.sqrt(sizes.size))
    cell.add("history_size", float(sizes.mean()), error, history_size(law.levels, law.size), "jackknife")
    return cell.records[0]


def _marginal_gap(release: UniformRelease, number: int) -> Measurement:
    cell, data = Cell(release.context, None, None, (number,)), release.data
    gap, error = marginal_gap(data.codes, release.copy(number), release.context.levels[number - 1], data.size)
    cell.add("marginal_gap", gap, error, 0.0, "closed-form")
    return cell.records[0]


def marginal_tests(release: UniformRelease) -> list[tuple[int, float, float, int]]:
    """Return for every copy that some coalition holds: number, level, p-value of the chi-square test, degrees of freedom."""
    tests, data = [], release.data
    for number in release.singles:
        level = release.context.levels[number - 1]
        tests.append((number, level, *marginal_test(data.codes, release.copy(number), level, data.size)))
    return tests


def pooling_evidence(release: UniformRelease) -> dict[Coalition, Pooling]:
    """Return the evidence on what pooling buys each coalition of two copies or more."""
    looks = CoalitionLooks(release.data.codes, release.data.size, release.copy, release.context.levels)
    return {c: looks.evidence(c, release.law.of(c).best_is_sufficient()) for c in release.needed if len(c) > 1}
