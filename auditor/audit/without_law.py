"""Figures of numeric copies without a stated law."""

from functools import partial

import numpy as np

from auditor.adversary.knowledge import Perfect
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.request import CellContext
from auditor.audit.insider.fitted import fitted_records
from auditor.audit.insider_noise.coincidences import coincidences
from auditor.audit.insider_noise.generators import known_generators
from auditor.audit.insider_noise.noise_density import noise_density
from auditor.audit.measures.every_cell import NoiseAttack, every_cell_records, finding_records
from auditor.audit.measures.privacy import Baseline, of_records, with_weights
from auditor.audit.measures.released_as_is import (
    column_figures,
    kept_records,
    noise_figures,
    shown_records,
    unused_figures,
)
from auditor.audit.measures.utility import column_of
from auditor.base.types import Array, Indices
from auditor.process.containment import contained
from auditor.results.records import Measurement

STRETCHES, STRETCH = 20, 5_040
"""Stretches of a large file that the insider reads, and their rows: any period up to 10 fits."""


def without_law_records(opened: Opened, context: CellContext) -> list[Measurement]:
    """Figures of files, of copies without a law, and of unused columns."""
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
        (
            stated
            and not (opened.scenario.data.unit or opened.scenario.data.shown or table.keys)
            and not any(n for _, n in release.scheme.beside(table))
        )
        or not opened.release.joint
        or release.transformed is not None
        or (table.streamed and release.scheme.makes_copies)
    ):
        return found
    some: Places = slice(None)
    if table.streamed and table.rows > STRETCHES * STRETCH:  # evenly spread stretches
        starts = np.linspace(0, table.rows // STRETCH - 1, STRETCHES).astype(np.intp) * STRETCH
        some = (starts[:, None] + np.arange(STRETCH)).ravel()
        X = np.concatenate([table.read(start, start + STRETCH) for start in starts])
    else:
        X = table.values
    copies, steps = [copy[some] for copy in release.whole_copies()], table.resolution.steps
    made = release.scheme.makes_copies  # then the owner chose the values that are kept
    if not stated and not made:
        found += diagnosis(opened, context, X, copies, some)
    if not stated:
        found += shown_records(context, X, copies, opened.coalitions, steps)
        for one in opened.coalitions if not made else ():
            if len(one) == 1:
                found += kept_records(context, X, [copies[one[0] - 1]], steps, one)
    if any(isinstance(knowledge, Perfect) for knowledge in opened.scenario.knowledge):
        found += _fitted_records(opened, context, X, copies, some)
        if not made and not stated:
            shown = [
                column.at(some) for column in (*release.scheme.shown(table), *table.key_columns)
            ]
            attacks: dict[str, NoiseAttack] = {
                "coincidences": coincidences,
                "noise-density": noise_density,
                "known-generator": partial(known_generators, numbers=shown),
            }
            for name, attack in attacks.items():
                found += finding_records(context, name, attack, X, copies, opened.coalitions)
    return found


Places = Indices | slice
"""Places of the records that are read, or all."""


def diagnosis(
    opened: Opened, context: CellContext, X: Array, copies: list[Array], some: Places
) -> list[Measurement]:
    """Figures of the noise of copies from files, and of shown columns."""
    table, shown = opened.release.table, opened.release.scheme.shown(opened.release.table)
    originals = {}
    for column in shown:
        with contained():  # the original has no such column, or blanks in it
            originals[column.name] = column_of(opened.scenario, table, column.name)[some]
    return [
        *noise_figures(context, X, copies, table.resolution.steps),
        *column_figures(context, X, [column.at(some) for column in shown], originals),
    ]


def _fitted_records(
    opened: Opened, context: CellContext, X: Array, copies: list[Array], some: Places
) -> list[Measurement]:
    scheme, table = opened.release.scheme, opened.release.table
    cells, whole = copies, table.whole
    if table.cut is not None:  # columns that a copy lacks may be predicted from others
        rows = table.cut.rows[some]
        X = whole.values[rows]
        handed = [copy[rows, : whole.width] for copy in scheme.handed_in(table)]
        cells = [np.where(np.isnan(copy).all(axis=0), 0.0, copy) for copy in handed]
        context = context.of_columns(whole.attributes, X.var(axis=0))
    exact = None if scheme.makes_copies else whole.resolution.steps
    shown = [column.at(some) for column in (*scheme.shown(table), *table.shown, *table.key_columns)]
    scenario = opened.scenario
    names = context.attributes

    def closeness(X: Array, rows: Indices) -> Baseline:
        base = of_records(X, names, scenario.data.tolerance)
        return with_weights(base, scenario, table, lambda values: values[some][rows])

    asks = closeness if scenario.asks_closeness else None
    return fitted_records(context, X, cells, opened.coalitions, exact, shown, asks)
