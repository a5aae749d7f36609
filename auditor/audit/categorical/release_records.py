"""Figures of a uniform release itself, whatever the attack: time, history, distances from its law, privacy, and what pooling buys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import scheme_record
from auditor.audit.categorical.cell_records import Bar, Cell
from auditor.audit.categorical.estimated_records import estimated_records
from auditor.audit.categorical.first_pass import Counted
from auditor.audit.categorical.marginal_test import gap_of_chances, test_of_chances
from auditor.audit.categorical.posterior_measures import (
    growth_bound,
    largest_retention_for_breach,
    largest_retention_for_growth,
)
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.categorical.share_gap import share_gap
from auditor.audit.insider.category_gain import category_gains
from auditor.audit.insider.learner import MOST_ROWS
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.numerics.blocks import row_blocks
from auditor.results.evidence import Pooling
from auditor.results.records import Measurement
from auditor.schemes.published_categories import PublishedCategories
from auditor.schemes.replacement.law import history_size, transition_matrix
from auditor.types import Array, Coalition, Codes

LEARNT_BLOCKS = 4
"""Blocks of a long table that the insider's rows are taken from."""


def release_records(release: UniformRelease, counted: Counted) -> list[Measurement]:
    """Return time, history size, distance of each copy from its law, and bounds on what every coalition can learn."""
    scenario, records = release.scenario, []
    if scenario.measure("seconds"):
        records.append(scheme_record(release.context, "seconds", counted.seconds))
    if counted.history.size:
        records.append(_history(release, counted.history))
    if scenario.measure("marginal-gap"):
        records += [_marginal_gap(release, counted, number) for number in release.singles]
    if scenario.measure("share-gap") and release.scheme.by_retention:
        records += [_share_gap(release, counted, number) for number in release.singles]
    for coalition in release.coalitions if not release.estimated else ():
        records += _bounds(release, coalition)
    if scenario.measure("empirical-epsilon") and release.scheme.makes_copies:
        records += _empirical_epsilons(release)
    if isinstance(release.scheme, PublishedCategories):
        records += estimated_records(release, release.data.codes, release.scheme.held())
    return [*records, *(_admissible(release) if release.scheme.by_retention else ())]


def _bounds(release: UniformRelease, coalition: Coalition) -> list[Measurement]:
    """Differential privacy of a coalition's copies, and by how much they can make any belief grow."""
    cell, law = Cell(release.context, None, None, coalition), release.law.of(coalition)
    epsilon = law.epsilon() * (1 if release.table is None else release.table.unit_size)
    if math.isfinite(epsilon):
        cell.add("epsilon", epsilon, theory=epsilon)
    if release.scenario.measure("delta-growth"):
        bound = growth_bound(law.odds())
        cell.add("growth_bound", bound, theory=bound)
    return cell.records


def _empirical_epsilons(release: UniformRelease) -> list[Measurement]:
    """A lower bound on every coalition's ε from trials on two values, each at the stated confidence, beside the exact one."""
    # a second to import, which every other audit would pay for
    from auditor.audit.measures.empirical_epsilon import Trials

    measure = release.scenario.measure("empirical-epsilon")
    assert measure is not None
    key = replace(release.key, scheme=f"{release.key.scheme} trials")
    trials = Trials(
        release.scheme,
        release.context.levels,
        release.law.size,
        int(measure.options["trials"]),
        key,
    )
    records = []
    for coalition in release.coalitions:
        cell, epsilon = (
            Cell(release.context, None, None, coalition),
            release.law.of(coalition).epsilon(),
        )
        found = trials.audit(coalition, float(measure.options["confidence"]))
        cell.add(
            "empirical_epsilon", found.epsilon, theory=epsilon if math.isfinite(epsilon) else None
        )
        records += cell.records
    return records


def _admissible(release: UniformRelease) -> list[Measurement]:
    """Largest retention of one copy that keeps to the bounds asked for, over this domain and with these replacements."""
    cell, size = Cell(release.context, None, None, release.context.everybody), release.law.rarity
    growth, breach = (
        release.scenario.measure("delta-growth"),
        release.scenario.measure("rho-breach"),
    )
    if growth is not None:
        delta = float(growth.options["delta"])
        p = largest_retention_for_growth(delta, size)
        cell.add(f"admissible_retention(delta {delta:g})", p, theory=p)
    if breach is not None:
        low, high = float(breach.options["rho1"]), float(breach.options["rho2"])
        p = largest_retention_for_breach(low, high, size)
        cell.add(f"admissible_retention(rho {low:g} {high:g})", p, theory=p)
    return cell.records


def _history(release: UniformRelease, records: NDArray[np.int64]) -> Measurement:
    """Elements of a tuple's compressed history, how many records have each number, and their mean (xiao2009, proof of Lemma 2)."""
    law, sizes, n = release.law, np.arange(records.size), int(records.sum())
    cell = Cell(release.context, None, None, tuple(range(1, len(law.levels) + 1)))
    mean = float(records @ sizes / n)
    error = math.sqrt(float(records @ (sizes - mean) ** 2 / n) / n)
    cell.add(
        "history_size",
        mean,
        Bar.normal(error, "jackknife"),
        history_size(law.levels, release.data.prior, law.pi),
    )
    return cell.records[0]


def _pairs(release: UniformRelease, counted: Counted, number: int) -> NDArray[np.int64]:
    return counted.dense(0, number, release.data.size)


def _chances(release: UniformRelease, number: int) -> Array:
    """What the law says one copy shows of each value, shape (s, s); of copies from files the nearest law of retention."""
    law = release.law
    if release.scheme.by_retention:
        return transition_matrix(law.levels[number - 1], law.size, law.pi)
    return law.transition_matrix(None, number)


def _marginal_gap(release: UniformRelease, counted: Counted, number: int) -> Measurement:
    cell = Cell(release.context, None, None, (number,))
    gap, error = gap_of_chances(_pairs(release, counted, number), _chances(release, number))
    cell.add("marginal_gap", gap, Bar.normal(error, "closed-form"), 0.0)
    return cell.records[0]


def _share_gap(release: UniformRelease, counted: Counted, number: int) -> Measurement:
    cell = Cell(release.context, None, None, (number,))
    gap = share_gap(
        _pairs(release, counted, number), release.law.levels[number - 1], release.law.pi
    )
    bar, mean = (
        (None, None) if release.estimated else (Bar.normal(gap.std_error, "closed-form"), gap.mean)
    )
    cell.add("share_gap", gap.value, bar, mean, bounds=(0.0, 2.0))
    return cell.records[0]


def marginal_tests(
    release: UniformRelease, counted: Counted
) -> list[tuple[int, float, float, int]]:
    """Return for every copy that some coalition holds: number, level, p-value of the chi-square test, degrees of freedom."""
    tests = []
    for number in release.singles if not release.estimated else ():
        level = release.law.levels[number - 1]
        tests.append(
            (
                number,
                level,
                *test_of_chances(_pairs(release, counted, number), _chances(release, number)),
            )
        )
    return tests


def pooling_evidence(release: UniformRelease) -> dict[Coalition, Pooling]:
    """Return the evidence on what pooling buys each coalition of two copies or more."""
    several = [c for c in release.needed if len(c) > 1]
    says = {
        c: None if release.estimated else release.law.of(c).best_is_sufficient() for c in several
    }
    gains = {}
    if release.key.replicate == 1:
        wanted = [c for c in several if says[c] is not False]
        gains = category_gains(
            wanted, release.law.levels, release.data.size, partial(_rows_to_learn, release)
        )
    proved = release.scheme.makes_copies
    return {c: Pooling(says[c], insider=gains.get(c), proved=proved) for c in several}


def _rows_to_learn(
    release: UniformRelease, numbers: Sequence[int]
) -> tuple[Codes, dict[int, Codes]]:
    """Return originals and copies of rows from evenly spread blocks."""
    bounds = row_blocks(release.data.rows, BLOCK_WIDTH)
    few = np.unique(np.linspace(0, len(bounds) - 1, LEARNT_BLOCKS).astype(np.intp)).tolist()
    blocks = [release.block(index) for index in few]
    each = -(-MOST_ROWS // len(blocks))
    x = np.concatenate([block.x[:each] for block in blocks])
    copies = {k: np.concatenate([block.copy(k)[:each] for block in blocks]) for k in numbers}
    return x, copies
