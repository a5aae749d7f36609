"""Cross-fitted learner: linear model and boosted trees on helpful columns.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x`` | attribute of the records; the learner sees it in training rows alone | (n,) |
| ``f`` | first prediction, by least squares on cells | (n,) |
| ``r`` | ``x − f`` | (n,) |
| ``v`` | column of a feature family | (n,) |
| ``m(v)`` | mean of ``r`` (or of ``r y``, y the attribute's first cell) among training rows in one bin of ``v``, shrunk to 0 | (n,) |
| score | mean of ``r² − (r − m)²`` over held-out rows, in standard errors | scalar |

Training rows are dealt at random into two parts. A column is learnt, and its bin means are taken,
on one part, and scored on the other, both ways. Columns with a score above ``HELPS`` enter the
model with their bin means from the other part, at most ``MOST_CHOSEN``, the best of each family
first. Least squares on cells and chosen columns give a second prediction. scikit-learn's histogram
gradient boosting predicts the residual.

Assumed, *not checked*: records are perturbed alike, except for what a column shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from auditor import registry
from auditor.audit.insider.feature import Column, Feature, Known, Shown
from auditor.base.types import Array, Indices
from auditor.data.copies import many_alike
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import column_ranks

MOST_ROWS = 20_000
"""Rows of a table that the learner is fitted to and judged on."""
FEWEST_ROWS = 200
"""Training rows from which on columns are scored and trees are grown; fewer have least squares on
cells."""
BINS = 64
"""Bins of a column at most."""
HELPS = 3.5
"""Score above which a column is used."""
FAR = 8.0
"""Mean sizes of a gain beyond which it counts no more: a few records with long tails neither make
nor hide a column."""
FAR_OUT = 3.0
"""Deviations at which a cell is cut off that a prediction is a multiple of."""
MOST_CHOSEN, MOST_OF_FAMILY = 12, 4
"""Columns that are used, and of one family."""
MOST_BESIDE = 16
"""Shown columns that trees are given."""
SCORED_ROWS = 2_500
"""Rows of either part that columns are scored on."""


class Trees(NamedTuple):
    """Size of boosted trees: number, leaves, learning rate, and records in a leaf at least."""

    number: int
    leaves: int
    rate: float
    least: int


STRONG, WEAK = Trees(100, 16, 0.1, 10), Trees(20, 8, 0.12, 20)
"""Trees that rebuild originals, and trees whose predictions hardly vary with the training rows."""


class Encoder(NamedTuple):
    """Bins of a column, and means of targets in them.

    Shapes (b,) and (b + 2, T). Codes are their own bins.
    """

    edges: Array | None
    means: Array

    def __call__(self, v: Array | Indices) -> Array:
        """Return the means for each value, shape (n, T); 0 for codes that were not met."""
        return self.means[np.minimum(binned(v, self.edges), len(self.means) - 1)]


class Chosen(NamedTuple):
    """A column that helped, with its bins, their means, and its values."""

    column: Column
    encoder: Encoder
    saved: float
    """Share of a target's mean square that bin means save in held-out rows."""
    values: Array
    """Column, mean of ``r`` and mean of ``r y`` times y in all rows, those of training rows learnt
    from the other part, shape (n, 3)."""

    def of(self, shown: Shown, slope: Slope) -> Array:
        """Return these values for any cells."""
        v = self.column(shown)
        return _columns(v, self.encoder(v), slope(shown))


class Slope(NamedTuple):
    """First cell ``y`` of an attribute, in its deviations in the training rows."""

    attribute: int
    mean: float
    deviation: float

    def __call__(self, shown: Shown) -> Array:
        """Return y, shape (n,), at most ``FAR_OUT`` from 0."""
        return np.clip(
            (shown.filled[:, 0, self.attribute] - self.mean) / self.deviation, -FAR_OUT, FAR_OUT
        )


def _columns(v: Array | Indices, means: Array, y: Array) -> Array:
    """Return a column, its predictions of r, and of r as a multiple of y, shape (n, 3)."""
    return np.column_stack([v.astype(np.float64), means[:, 0], means[:, 1] * y])


@dataclass(frozen=True, eq=False)
class Task:
    """Prediction of one attribute in one half of the rows, learnt from the other half.

    Attributes
    ----------
    known : Known
        Of the training rows.
    targets : ndarray of shape (n, 2)
        ``r``, and ``r y``.
    taught : ndarray of int
        Training rows.
    parts : tuple of two ndarrays of int
        These, dealt into two parts.
    slope : Slope
        Computes ``y``.
    run : int
        Rows of a run of neighbours, whose residuals may depend on one another.
    """

    known: Known
    targets: Array
    taught: Indices
    parts: tuple[Indices, Indices]
    slope: Slope
    run: int

    @classmethod
    def of(
        cls, shown: Shown, known: Known, taught: Indices, rng: np.random.Generator, run: int
    ) -> Task:
        """Deal the training rows into two parts, by runs of neighbours."""
        first, second = dealt(len(taught), rng, run)
        y = shown.filled[taught, 0, known.attribute]
        slope = Slope(known.attribute, float(y.mean()), float(y.std()) or 1.0)
        parts = taught[first], taught[second]
        return cls(
            known,
            np.column_stack([known.left, known.left * slope(shown)]),
            taught,
            parts,
            slope,
            run,
        )


def edges_of(v: Array | Indices) -> Array | None:
    """Return edges of about ``BINS`` bins with equal counts; None for codes."""
    if v.dtype.kind in "iu":
        return None
    some, bins = np.sort(v[:: max(1, len(v) // (16 * BINS))]), min(BINS, max(8, len(v) // 100))
    edges = some[len(some) * np.arange(1, bins) // bins]
    return edges[np.concatenate([[True], edges[1:] > edges[:-1]])]


def binned(v: Array | Indices, edges: Array | None) -> Indices:
    """Return each value's bin."""
    return np.asarray(v if edges is None else np.searchsorted(edges, v), dtype=np.intp)


def bin_means(bins: Indices, targets: Array, size: int) -> Array:
    """Return means of targets by bin, shape (size, T), shrunk to 0 by their noise."""
    counts = np.bincount(bins, minlength=size)
    means = (
        np.stack([np.bincount(bins, t, size) for t in targets.T], axis=1)
        / np.maximum(counts, 1)[:, None]
    )
    m, size = len(bins), int((counts > 0).sum())
    between = counts @ means**2
    within = (np.einsum("ij,ij->j", targets, targets) - between) / max(1, m - size)
    signal = (between - size * within) / m  # variance of the true means, by moments
    shrink = np.divide(
        within, signal, out=np.full(len(signal), np.inf), where=signal > 1e-12 * within
    )
    return means / (1.0 + shrink / np.maximum(counts, 1)[:, None])


def families() -> list[Feature]:
    """Return one of each registered feature family, in the order of their names."""
    return [registry.get("feature", name)() for name in registry.names("feature")]


def helpful(shown: Shown, tasks: Sequence[Task]) -> list[list[Chosen]]:
    """Return the columns that help each task, best first."""
    found: list[list[Chosen]] = [[] for _ in tasks]
    for family in families():
        if family.learns:
            tried = [_learnt(family, shown, task) for task in tasks]
        else:
            tried = [[] for _ in tasks]
            for _, column in family.columns(shown, tasks[0].known):
                v = column(shown)
                edges = edges_of(v)
                bins = binned(v, edges)
                for each, task in zip(tried, tasks, strict=True):
                    each.append(
                        _try(shown, column, [v, v, v], [bins, bins, bins], [edges] * 3, task)
                    )
        for best, each in zip(found, tried, strict=True):
            best += sorted((one for one in each if one is not None), key=lambda one: -one.saved)[
                :MOST_OF_FAMILY
            ]
    return [sorted(best, key=lambda one: -one.saved)[:MOST_CHOSEN] for best in found]


def _learnt(family: Feature, shown: Shown, task: Task) -> list[Chosen | None]:
    by_part = [
        dict(family.columns(shown, known))
        for known in (task.known, *map(task.known.only, task.parts))
    ]
    tried = []
    for name, column in by_part[0].items():
        if all(name in each for each in by_part):
            values = [each[name](shown) for each in by_part]
            edges = [edges_of(v) for v in values]
            tried.append(
                _try(
                    shown,
                    column,
                    values,
                    [binned(*each) for each in zip(values, edges, strict=True)],
                    edges,
                    task,
                )
            )
    return tried


def _try(
    shown: Shown,
    column: Column,
    values: Sequence[Array | Indices],
    bins: Sequence[Indices],
    edges: Sequence[Array | None],
    task: Task,
) -> Chosen | None:
    """Return a column if it helps, with values learnt from the other part."""
    size = int(bins[0].max()) + 1
    if size == 1:
        return None
    size = max(int(each.max()) + 1 for each in bins)
    means = [
        bin_means(each[part], task.targets[part], size)
        for each, part in zip(bins[1:], task.parts, strict=True)
    ]
    tests = [
        (means[k], bins[1 + k], task.parts[1 - k][:: max(1, len(task.parts[1 - k]) // SCORED_ROWS)])
        for k in (0, 1)
    ]
    gains = np.concatenate(
        [(m := mean[which[rows]]) * (2.0 * task.targets[rows] - m) for mean, which, rows in tests]
    )
    mean, far = gains.sum(axis=0) / len(gains), FAR * np.abs(gains).sum(axis=0) / len(gains)
    bounded = np.clip(gains, -far, far)
    total, squares = bounded.sum(axis=0), np.einsum("ij,ij->j", bounded, bounded)
    if task.run > 1:
        runs = np.concatenate([rows // task.run for _, _, rows in tests])
        sums = np.add.reduceat(bounded, np.flatnonzero(np.diff(runs, prepend=-1)))
        squares = np.maximum(squares, np.einsum("ij,ij->j", sums, sums))
    helps = (mean > 0) & (total > HELPS * np.sqrt(squares))
    if not helps.any():
        return None
    power = np.maximum((task.targets[task.taught] ** 2).mean(axis=0), 1e-300)
    encoder = Encoder(
        edges[0],
        np.vstack(
            [bin_means(bins[0][task.taught], task.targets[task.taught], size), np.zeros((1, 2))]
        ),
    )
    y = task.slope(shown)
    found = _columns(values[0], encoder.means[bins[0]], y)
    for k in (0, 1):
        rows = task.parts[1 - k]
        found[rows] = _columns(values[1 + k][rows], means[k][bins[1 + k][rows]], y[rows])
    return Chosen(column, encoder, float((np.where(helps, mean, 0.0) / power).max()), found)


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Prediction of an attribute from cells.

    ``low`` and ``high`` bound predictions to three times the range of the training rows.
    """

    chosen: list[Chosen]
    slope: Slope
    linear: Array
    scale: tuple[Array, Array]
    trees: Any
    low: float
    high: float
    robust: Any = None
    """Trees of medians, which long tails do not move."""

    def predict(self, shown: Shown) -> Array:
        """Return what the model adds to the first prediction, shape (n,)."""
        return self.steps(shown)[1]

    def steps(self, shown: Shown) -> tuple[Array, ...]:
        """Return predictions by least squares, with trees, and of medians, shapes (n,)."""
        values = np.hstack([shown.flat, *(one.of(shown, self.slope) for one in self.chosen)])
        linear = self.linear_only(values)
        more = (
            0.0
            if self.trees is None
            else self.trees.predict(_for_trees(values, shown, self.slope.attribute))
        )
        found = np.clip(linear, self.low, self.high), np.clip(linear + more, self.low, self.high)
        if self.robust is None:
            return found
        return *found, self.robust.predict(_for_trees(values, shown, self.slope.attribute))

    def linear_only(self, values: Array) -> Array:
        """Return least squares alone, shape (n,), of columns of shape (n, q)."""
        return np.column_stack([np.ones(len(values)), _scaled(values, self.scale)]) @ self.linear


def fit(
    shown: Shown,
    x: Array,
    folds: Sequence[Indices],
    size: Trees,
    name: str,
    first: Array | None = None,
    run: int = 1,
) -> list[list[Model]]:
    """Return a model for each attribute and fold of training rows.

    Parameters
    ----------
    x : ndarray of shape (n, N)
        Originals.
    folds : sequence of ndarray of int
        Training rows of each fold; a model sees originals of no others.
    name : str
        Names the random streams.
    first : ndarray of shape (folds, n, N), optional
        First predictions, whose residuals the models predict; without them models predict x itself,
        and columns are scored on the residuals of least squares on cells.
    run : int
        Rows of a run of neighbours that training rows are dealt in.
    """
    ranks, N, tasks = column_ranks(x), x.shape[1], list[Task]()
    for j in range(N):
        for number, taught in enumerate(folds):
            base = (
                least_squares(shown.flat, x[:, j], taught) if first is None else first[number, :, j]
            )
            known = Known(j, x, ranks, float(x[:, j].min()), x[:, j] - base).only(taught)
            tasks.append(Task.of(shown, known, taught, stream(0, "insider", name, j, number), run))
    enough = min(map(len, folds)) >= FEWEST_ROWS
    chosen = helpful(shown, tasks) if enough else [[] for _ in tasks]
    goals = [x[:, task.known.attribute] if first is None else task.known.left for task in tasks]
    models = [
        _model(shown, task, best, goal, size if enough else None)
        for task, best, goal in zip(tasks, chosen, goals, strict=True)
    ]
    return [models[j * len(folds) : (j + 1) * len(folds)] for j in range(N)]


def _model(
    shown: Shown, task: Task, chosen: list[Chosen], goal: Array, size: Trees | None
) -> Model:
    taught, values = task.taught, np.hstack([shown.flat, *(one.values for one in chosen)])
    raw = np.concatenate(
        [np.zeros(shown.flat.shape[1], dtype=bool), np.tile([True, False, False], len(chosen))]
    )
    scale, y = _scale(values[taught]), goal.copy()
    y[~np.isfinite(y)] = 0.0
    # A ratio with a divisor near 0 is far off in few rows: other parts decide whether least squares
    # are better without such columns.
    scales = scale[1], np.where(raw, np.inf, scale[1]), np.full(len(raw), np.inf)
    used = min(scales, key=lambda some: _held_out(values, (scale[0], some), y, task))
    design = np.column_stack([np.ones(len(taught)), _scaled(values[taught], (scale[0], used))])
    linear: Array = np.linalg.lstsq(design, y[taught], rcond=1e-10)[0].astype(np.float64)
    low, high = float(y[taught].min()), float(y[taught].max())
    model = Model(
        chosen, task.slope, linear, (scale[0], used), None, low - (high - low), high + (high - low)
    )
    rest = y[taught] - model.linear_only(values[taught])
    if size is None or rest.std() <= 1e-9 * y[taught].std():
        return model
    cells = _for_trees(values, shown, task.known.attribute)[taught]
    robust = None
    if size is STRONG:
        robust = grower(size, len(taught), "absolute_error").fit(cells, y[taught])
    return replace(model, trees=grower(size, len(taught)).fit(cells, rest), robust=robust)


def _held_out(values: Array, scale: tuple[Array, Array], y: Array, task: Task) -> float:
    design, error = np.column_stack([np.ones(len(values)), _scaled(values, scale)]), 0.0
    for here, there in (task.parts, task.parts[::-1]):
        weights = np.linalg.lstsq(design[here], y[here], rcond=1e-10)[0]
        error += float(((y[there] - design[there] @ weights) ** 2).sum())
    return error


def least_squares(values: Array, x: Array, taught: Indices) -> Array:
    """Return the least-squares prediction of x, shape (n,), fitted to some rows."""
    values = _scaled(values, _scale(values[taught]))
    design = np.column_stack([np.ones(len(values)), values])
    return design @ np.linalg.lstsq(design[taught], x[taught], rcond=1e-10)[0]


def _scale(values: Array) -> tuple[Array, Array]:
    mean, spread = values.mean(axis=0), values.std(axis=0)
    return mean, np.where(spread > 1e-12 * np.abs(values).max(axis=0, initial=0.0), spread, np.inf)


def _scaled(values: Array, scale: tuple[Array, Array]) -> Array:
    return (values - scale[0]) / scale[1]


def _for_trees(values: Array, shown: Shown, attribute: int) -> Array:
    """Return the columns for trees: cells with blanks, columns, differences and place.

    Shown columns are among them whether or not they helped: a long tail may have hidden it.
    """
    flat = shown.cells.reshape(len(shown.cells), -1)
    rest = values[:, flat.shape[1] :]
    beside = [v for _, v in shown.beside if v.dtype.kind == "f" or many_alike(v)][:MOST_BESIDE]
    place = np.arange(len(flat), dtype=np.float64)
    means = shown.group_means(attribute)
    return np.column_stack([flat, rest, shown.differences[:, :16], *beside, means, place])


def grower(size: Trees, rows: int, loss: str = "squared_error") -> Any:
    """Return unfitted trees; equal for any number of threads."""
    # imported here: it costs a second
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss=loss,
        max_iter=size.number,
        max_leaf_nodes=size.leaves,
        learning_rate=size.rate,
        min_samples_leaf=max(size.least, rows // 100),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )


def halves(n: int, name: str, run: int = 1) -> list[Indices]:
    """Return two parts of n rows, dealt at random in runs of neighbours."""
    return dealt(n, stream(0, "insider halves", name), run)


def dealt(n: int, rng: np.random.Generator, run: int) -> list[Indices]:
    """Return two parts of n rows, dealt at random in runs of neighbours."""
    runs = rng.permutation(-(-n // run))
    first = np.isin(np.arange(n) // run, runs[: len(runs) // 2])
    return [np.flatnonzero(first), np.flatnonzero(~first)]
