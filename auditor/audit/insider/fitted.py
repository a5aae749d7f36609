"""The attack ``fitted-to-originals`` on copies without a law.

Each half of the rows is predicted by a learner fitted to originals of the other half.

Nine predictions of each attribute compete: the mean, least squares on cells and shown numbers, also
with means by shown code, least squares on cells and chosen columns, boosted trees on its residuals,
boosted trees of medians, their nearest value at a multiple of one step from a column, the commonest
line, and the densest curve. In each part that the learner divides from the rest, they compete again.
The smallest mean square error is reported. Close guesses have the smallest mean of errors cut off
at a constant's median error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import mode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.request import CellContext, Cells, error_records
from auditor.audit.insider.feature import FEW, Shown, alike_codes
from auditor.audit.insider.features.cells import common_step
from auditor.audit.insider.learner import (
    MOST_ROWS,
    STRONG,
    Model,
    dealt,
    few_of,
    fit,
    least_squares,
)
from auditor.audit.measures.every_cell import KNOWLEDGE, OWN_RECORDS, by_group
from auditor.audit.measures.privacy import Baseline, closeness_records, least_median_error, sampled
from auditor.audit.measures.released_as_is import kept_records
from auditor.base.types import Array, Coalition, Indices
from auditor.data.alignment import MOST_CELLS
from auditor.data.table import ShownColumn
from auditor.numerics.random_streams import stream
from auditor.results.records import FITTED, Measurement

FOLDED = 4_500
"""Rows over which more folds than two, at most five, are spread."""
MOST_LINES, WINDOWS = 4, ((5, 3), (24, 6))
"""Most chosen columns for lines and curves, and neighbours of a curve with their densest values:
for pure parts, and for a quarter among other rows."""


def fitted_records(
    context: CellContext,
    X: Array,
    copies: Sequence[Array],
    asked: Sequence[Coalition],
    steps: Array | None = None,
    shown: Sequence[ShownColumn] = (),
    closeness: Callable[[Array, Indices], Baseline] | None = None,
) -> list[Measurement]:
    """Errors of every copy alone, and of all together.

    None if there are too few records or too many cells.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    asked : sequence of tuple of int
        Coalitions that are audited.
    steps : ndarray of shape (N,), optional
        Units of the values, for the share of exact predictions.
    shown : sequence of ShownColumn
        Further columns.
    closeness : callable, optional
        Baseline of some records and their places, if close guesses are requested.
    """
    n, N = X.shape
    everybody = tuple(range(1, len(copies) + 1))
    coalitions = [one for one in asked if len(one) == 1 or one == everybody]
    if not coalitions or N * len(copies) > MOST_CELLS or n < OWN_RECORDS * (N * len(copies) + 1):
        return []
    needed = [
        *((copy,) for copy in everybody),
        *([everybody] if len(copies) > 1 and everybody in coalitions else []),
    ]
    rows = np.arange(n)[:: -(-n // MOST_ROWS)]
    base = closeness and closeness(X[rows], rows)
    guesses = {
        one: predictions(
            X,
            [copies[copy - 1] for copy in one],
            rows,
            [(column.name, column.values) for column in shown if column.copy in (0, *one)],
        )
        for one in needed
    }
    errors = [(guesses[one][0] - X[rows]) ** 2 for one in needed]
    found = by_group(needed, errors, X[rows].var(axis=0))
    context = context.under(FITTED, KNOWLEDGE)
    places = [needed.index(one) for one in coalitions]
    records = list(error_records(Cells(context, needed, places), found))
    if base is not None:
        tally = sampled(X[rows].std(axis=0), base)
        near = np.stack([guesses[one][1] - X[rows] for one in coalitions], axis=1)
        tally.add(near, X[rows])
        records += closeness_records(Cells.all(context, coalitions), tally, base)
    if steps is None:
        return records
    return records + [
        record
        for one in coalitions
        for record in kept_records(context, X[rows], guesses[one], steps, one)
    ]


def predictions(
    X: Array,
    copies: Sequence[Array],
    rows: Indices,
    beside: Sequence[tuple[str, NDArray[Any]]] = (),
) -> tuple[Array, Array]:
    """Cross-fitted predictions of some rows, shapes (len(rows), N).

    With least mean square error, and least mean error cut off at a constant's.
    """
    cells = Shown(np.stack(copies, axis=1))
    shown = replace(cells, beside=[*alike_codes(beside, cells.flat[:, :FEW]), *beside])
    guess, near = (np.empty((len(rows), X.shape[1])) for _ in range(2))
    parts = min(5, max(2, FOLDED // len(rows)))
    folds = folds_of(shown.units[rows], parts)
    fold = np.argsort(np.concatenate(folds))
    fold = np.repeat(np.arange(len(folds)), [len(each) for each in folds])[fold]
    taught = [np.delete(rows, each) for each in folds]
    for j, models in enumerate(fit(shown, X, taught, STRONG, "fitted")):
        found = [
            candidates(model, shown, X[:, j], shown.numbers, some, rows[each])
            for model, some, each in zip(models, taught, folds, strict=True)
        ]
        part = np.choose(fold, [which[rows] for _, which in found])
        chosen = np.choose(fold, [one[:, rows] for one in alike([one for one, _ in found])])
        left = np.abs(chosen - X[rows, j])
        cut = np.minimum(left, least_median_error(X[rows, j]))
        for here in (part == place for place in np.unique(part)):
            guess[here, j] = chosen[(left[:, here] ** 2).mean(axis=1).argmin(), here]
            near[here, j] = chosen[cut[:, here].mean(axis=1).argmin(), here]
    return guess, near


def alike(several: Sequence[Array]) -> list[Array]:
    """Predictions of shape (q, n), repeated up to the largest q."""
    most = max(map(len, several))
    return [np.resize(one, (most, one.shape[1])) for one in several]


def candidates(
    model: Model, shown: Shown, x: Array, numbers: Array, taught: Indices, rows: Indices
) -> tuple[Array, Indices]:
    """Competing predictions of some rows, and every row's part, shapes (q, n) and (n,)."""
    means = np.column_stack([numbers, shown.group_means(model.attribute)])
    each = [np.full(len(x), x[taught].mean())]  # the value may be a sum of two columns
    each += [least_squares(v, x, taught) for v in (numbers, means)]
    each = [*each, *model.steps(shown, rows)]
    columns = np.column_stack([numbers, *(one.values[:, 0] for one in model.chosen[:MOST_LINES])])
    each = [*[*each, each[-1]][:6], on_lattice(each[-1], x, numbers, taught)]
    tried = np.array([*each, on_line(x, columns, taught), along_best(x, columns, taught)])
    if model.inside is None or model.numbers is None:
        return tried, np.zeros(len(x), dtype=np.intp)
    found = [
        candidates(part, shown, x, model.numbers, taught[here[taught]], rows)
        for part, here in zip(model.parts, (model.inside, ~model.inside), strict=True)
    ]
    here, rest = alike([one for one, _ in found])
    part = 1 + np.where(model.inside, 3 * found[0][1], 3 * found[1][1] + 1)
    return np.vstack([tried, np.where(model.inside, here, rest)]), part


def on_line(x: Array, columns: Array, taught: Indices) -> Array:
    """Values on the commonest line of the column that shows most values exactly."""
    most, found, taught = 0, np.full(len(x), x[taught].mean()), few_of(taught)
    for v, slope in slopes(x, columns, taught):
        y = v[taught]
        rest = slope * x[taught] - y
        start = commonest(rest)
        hits = int((np.abs(rest - start) <= 1e-6 + 1e-9 * np.abs(y)).sum())
        if hits > most:
            most, found = hits, (v + start) / slope
    return found


def slopes(x: Array, columns: Array, taught: Indices) -> Iterator[tuple[Array, float]]:
    """Yield columns with their commonest slope between neighbours in the order of x, if not 0."""
    values, first = np.unique(x[taught], return_index=True)
    for v in columns.T if len(values) > 1 else ():
        if slope := commonest(np.diff(v[taught][first]) / np.diff(values)):
            yield v, slope


def commonest(values: Array) -> float:
    """Commonest value, to six decimals."""
    return mode(np.round(values, 6).tolist())


def along_best(x: Array, columns: Array, taught: Indices) -> Array:
    """Values on the densest curve along the column, and of the window, that errs least."""
    some, reach = few_of(taught), least_median_error(x[taught])
    errors = {
        (k, *window): np.minimum(
            np.abs(along(v, x, some[::2], *window) - x)[some[1::2]], reach
        ).mean()
        for k, v in enumerate(columns.T)
        for window in WINDOWS
    }
    k, *window = min(errors, key=lambda one: errors[one])
    return along(columns[:, k], x, taught, *window)


def along(v: Array, x: Array, taught: Indices, window: int, few: int) -> Array:
    """Curve through means of the densest ``few`` values of ``window`` neighbours along v.

    Examples
    --------
    >>> v = np.arange(8.0)
    >>> along(v, np.where(v == 3, 99.0, 2 * v), np.arange(8), 5, 3).round(1).tolist()
    [2.0, 2.0, 4.0, 6.0, 8.0, 10.0, 10.0, 10.0]
    """
    order = taught[np.argsort(v[taught], kind="stable")]
    if len(order) < window:
        return np.full(len(x), np.median(x[taught]))
    X, V = (np.lib.stride_tricks.sliding_window_view(each[order], window) for each in (x, v))
    place = np.argsort(X, axis=1, kind="stable")
    X, V = np.take_along_axis(X, place, axis=1), np.take_along_axis(V, place, axis=1)
    first = (X[:, few - 1 :] - X[:, : window - few + 1]).argmin(axis=1)
    near = first[:, None] + np.arange(few)
    at, to = (np.take_along_axis(each, near, axis=1).mean(axis=1) for each in (V, X))
    order = np.argsort(at, kind="stable")
    return np.interp(v, at[order], to[order])


def on_lattice(guess: Array, x: Array, known: Array, taught: Indices) -> Array:
    """Nearest values at multiples of a step from a known column over its slope.

    The column, of shape (n, q), with the largest step in the training rows; see ``slopes``.
    """
    best, apart = 0.0, guess
    for v, slope in slopes(x, known, taught):
        rest = slope * x[taught] - v[taught]
        step = common_step(rest - rest[0]) / abs(slope)
        best, apart = max((best, apart), (step, (v + rest[0]) / slope), key=lambda one: one[0])
    return apart + best * np.round((guess - apart) / best) if best else guess


def folds_of(units: Indices, parts: int = 2) -> list[Indices]:
    """Parts of rows that span no unit: a household would show a record's value."""
    return dealt(units, stream(0, "insider halves", "fitted"), parts)
