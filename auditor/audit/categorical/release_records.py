"""Records of a release of categories itself, and evidence on pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from auditor.audit.categorical.error_bars import Bar, Cell
from auditor.audit.categorical.first_pass import (
    Counted,
    gap_of_chances,
    off_law,
    retention,
    share_gap,
)
from auditor.audit.categorical.posterior_measures import (
    growth_bound,
    largest_retention_for_breach,
    largest_retention_for_growth,
)
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.insider.category_gain import category_gains
from auditor.audit.insider.learner import MOST_ROWS
from auditor.audit.law_tests.categorical import of_original
from auditor.base.types import Coalition, Codes
from auditor.data.columns.categorical_table import BLOCK_WIDTH, split
from auditor.numerics.blocks import row_blocks
from auditor.results.evidence import Pooling
from auditor.results.records import Measurement
from auditor.schemes.base.scheme import schemes_held_against
from auditor.schemes.published import PublishedCategories
from auditor.schemes.replacement.law import history_size

LEARNT_BLOCKS = 4
"""Blocks of a long table that the insider's rows are taken from."""


def release_records(release: UniformRelease, counted: Counted) -> list[Measurement]:
    """Return time, history size, distances of copies from their law, and bounds on leakage."""
    asked, everybody = release.scenario.measure, release.context.everybody
    cells = [whole := Cell(release.context, everybody)]
    if asked("seconds"):
        whole.add("seconds", counted.seconds)
    if counted.history.size:
        _add_history(whole, release, counted.history)
    for number in release.singles:
        cells.append(cell := Cell(release.context, (number,)))
        if asked("marginal-gap"):
            pairs = counted.dense(0, number, release.data.size)
            gap, error = gap_of_chances(pairs, of_original(release.law, number).matrix)
            cell.add("marginal_gap", gap, Bar.normal(error, "closed-form"), 0.0)
        if asked("share-gap") and release.scheme.by_retention:
            pairs = counted.dense(0, number, release.data.size)
            found = share_gap(pairs, release.law.levels[number - 1], release.law.pi)
            bar = None if release.estimated else Bar.normal(found.std_error, "closed-form")
            mean = None if release.estimated else found.mean
            cell.add("share_gap", found.value, bar, mean, bounds=(0.0, 2.0))
    for coalition in release.coalitions if not release.estimated else ():
        cells.append(cell := Cell(release.context, coalition))
        law = release.law.of(coalition)
        unit = 1 if release.table is None else release.table.unit_size
        if math.isfinite(epsilon := law.epsilon() * unit):
            cell.add("epsilon", epsilon, theory=epsilon)
        if asked("delta-growth"):
            bound = growth_bound(law.odds())
            cell.add("growth_bound", bound, theory=bound)
    if asked("empirical-epsilon") and release.scheme.makes_copies:
        cells += _empirical_epsilons(release)
    if isinstance(release.scheme, PublishedCategories):
        cells += _estimated(release, release.scheme)
    if release.scheme.by_retention:
        cells.append(cell := Cell(release.context, everybody))
        _add_admissible(cell, release)
    return [record for cell in cells for record in cell.records]


def _empirical_epsilons(release: UniformRelease) -> list[Cell]:
    from auditor.audit.measures.empirical_guarantee import Trials  # a second to import

    measure = release.scenario.measure("empirical-epsilon")
    assert measure is not None
    trials, confidence = int(measure.options["trials"]), float(measure.options["confidence"])
    key = replace(release.key, scheme=f"{release.key.scheme} trials")
    audit = Trials(release.scheme, release.context.levels, release.law.size, trials, key)
    cells = []
    for coalition in release.coalitions:
        cells.append(cell := Cell(release.context, coalition))
        epsilon = release.law.of(coalition).epsilon()
        theory = epsilon if math.isfinite(epsilon) else None
        cell.add("empirical_epsilon", audit.audit(coalition, confidence).epsilon, theory=theory)
    return cells


def _add_admissible(cell: Cell, release: UniformRelease) -> None:
    growth, breach = map(release.scenario.measure, ("delta-growth", "rho-breach"))
    if growth is not None:
        delta = float(growth.options["delta"])
        p = largest_retention_for_growth(delta, release.law.rarity)
        cell.add(f"admissible_retention(delta {delta:g})", p, theory=p)
    if breach is not None:
        low, high = float(breach.options["rho1"]), float(breach.options["rho2"])
        p = largest_retention_for_breach(low, high, release.law.rarity)
        cell.add(f"admissible_retention(rho {low:g} {high:g})", p, theory=p)


def _add_history(cell: Cell, release: UniformRelease, records: NDArray[np.int64]) -> None:
    law, sizes, n = release.law, np.arange(records.size), int(records.sum())
    mean = float(records @ sizes / n)
    error = math.sqrt(float(records @ (sizes - mean) ** 2 / n) / n)
    theory = history_size(law.levels, release.data.prior, law.pi)
    cell.add("history_size", mean, Bar.normal(error, "jackknife"), theory)


def _estimated(release: UniformRelease, scheme: PublishedCategories) -> list[Cell]:
    x, copies, size, cells = release.data.codes, scheme.held(), release.data.size, []
    for number, y in enumerate(copies, start=1):
        cells.append(cell := Cell(release.context, (number,)))
        parts = zip(
            release.data.attributes, split(release.data, x), split(release.data, y), strict=True
        )
        each = [(attribute.name, *retention(a, b, attribute.size)) for attribute, a, b in parts]
        whole = ("*", *retention(x, y, size))
        for name, value, error in [whole, *(each if len(each) > 1 else [])]:
            bar = Bar.normal(error, "closed-form")
            cell.add(f"estimated_retention(copy {number})", value, bar, attribute=name)
    cells.append(cell := Cell(release.context, release.context.everybody))
    for known in schemes_held_against("categorical") if len(copies) > 1 else ():
        cell.add(f"off_law({known.name})", off_law(x, copies, size, known.multilevel))
    return cells


def pooling_evidence(release: UniformRelease) -> dict[Coalition, Pooling]:
    """Return the evidence on the gain of each coalition of two copies or more."""
    several = [c for c in release.needed if len(c) > 1]
    says = {
        c: None if release.estimated else release.law.of(c).best_is_sufficient()
        for c in release.needed
        if len(c) > 1
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
    bounds = row_blocks(release.data.rows, BLOCK_WIDTH)
    few = np.unique(np.linspace(0, len(bounds) - 1, LEARNT_BLOCKS).astype(np.intp)).tolist()
    blocks = [release.block(index) for index in few]
    each = -(-MOST_ROWS // len(blocks))
    x = np.concatenate([block.x[:each] for block in blocks])
    copies = {k: np.concatenate([block.copy(k)[:each] for block in blocks]) for k in numbers}
    return x, copies
