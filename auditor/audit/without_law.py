"""Figures of numeric copies without a stated law."""

from __future__ import annotations

import numpy as np

from auditor.adversary.knowledge import Perfect
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.records import CellContext
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.insider_noise.records import insider_noise_records
from auditor.audit.measures.diagnosis import column_figures, noise_figures, unused_figures
from auditor.audit.measures.every_cell import every_cell_records
from auditor.audit.measures.released_as_is import kept_records, shown_records
from auditor.audit.measures.utility import column_of
from auditor.base.types import Array
from auditor.data.table import ShownColumn
from auditor.process.containment import contained
from auditor.results.records import Measurement


def without_law_records(opened: Opened, context: CellContext) -> list[Measurement]:
    """Errors over all cells of files, figures of copies without a law, unused columns."""
    found, release = _found(opened, context), opened.release
    return [*found, *unused_figures(context, release.scheme, release.table, found)]


def _found(opened: Opened, context: CellContext) -> list[Measurement]:
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
    """Figures of the noise of copies from files, and of the columns shown beside it."""
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
