"""Cross-fitted learner: linear model and boosted trees on helpful columns.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x`` | attribute, seen in training rows only | (n,) |
| ``f`` | first prediction, by least squares on cells | (n,) |
| ``r`` | ``x − f`` | (n,) |
| ``v`` | column of a feature family | (n,) |
| ``m(v)`` | mean of ``r`` in training rows of one bin of ``v``, shrunk to 0 | (n,) |
| score | mean of ``r² − (r − m)²`` over held-out rows, in standard errors | scalar |

A column is learnt on one random half of the training rows and scored on the other, both ways. At
most ``MOST_CHOSEN`` columns with a score above ``HELPS`` enter the model with bin means from the
other half, the best of each family first. Least squares on cells, differences and chosen columns
predict again. Gradient boosting (scikit-learn) predicts the residual. Rows that a column divides
from the rest because relations differ there (``divided``), and the rest, have their own models.

Assumed, *not checked*: records are perturbed alike, except for what a column or the place shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from auditor import registry
from auditor.audit.insider.feature import Column, Feature, Known, Shown, moved_rows
from auditor.base import scipy
from auditor.base.types import Array, Flags, Indices, unprinted
from auditor.data.copies import many_alike
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import column_ranks, standardised

MOST_ROWS = 20_000
"""Most rows that the learner is fitted to and judged on."""
FEWEST_ROWS = 200
"""Fewest training rows for scores and trees; otherwise least squares on cells."""
BINS = 64
"""Most bins of a column."""
HELPS = 3.5
"""Score above which a column is used."""
FAR = 8.0
"""Mean sizes of a gain at which it is cut off, because of long tails."""
MOST_CHOSEN, MOST_OF_FAMILY = 12, 4
"""Most chosen columns, in all and of one family."""
MOST_BESIDE = 16
"""Most shown columns for trees."""
SCORED_ROWS = 2_500
"""Most rows of either part for scores."""
SURELY, FEWEST_TOGETHER, MOST_DIVISIONS, WORTH = 4.5, 16, 2, 0.7
"""Normal deviate of a division (chance 3e-6), fewest training rows of a part from either half, most
divisions in turn, and most of the whole's mean error that one of the part's own may be.
"""


class Trees(NamedTuple):
    """Boosted trees: number, leaves, learning rate, least records in a leaf, most bins."""

    number: int
    leaves: int
    rate: float
    least: int
    bins: int = 255


FEWEST_TREES = 40
"""Trees for few rows, where more take seconds and leave 1.5 % of a first step."""
STRONG, WEAK = Trees(100, 16, 0.1, 10, BINS), Trees(20, 8, 0.12, 20)
"""Trees for originals, and trees with stable predictions."""


class Encoder(NamedTuple):
    """Bins of a column, and means of the residual, (b,) and (b + 2,).

    Codes are their own bins.
    """

    edges: Array | None
    means: Array

    def __call__(self, v: Array | Indices) -> Array:
        """Column and its means, shape (n, 2); mean 0 for unknown codes."""
        return np.column_stack(
            [v, self.means[np.minimum(binned(v, self.edges), len(self.means) - 1)]]
        )


class Chosen(NamedTuple):
    """A column that helped, with its bins, their means, and its values."""

    column: Column
    encoder: Encoder
    saved: float
    """Mean square that bin means save in held-out rows."""
    values: Array
    """Column and mean in all rows, means of training rows from the other part, (n, 2)."""


@unprinted
class Task:
    """Prediction of one attribute in some rows from the others.

    Attributes
    ----------
    known : Known
        Of the training rows.
    taught : ndarray of int
        Training rows.
    parts : tuple of two ndarrays of int
        Their halves.
    run : int
        Rows of a run of neighbours.
    """

    known: Known
    taught: Indices
    parts: tuple[Indices, Indices]
    run: int

    @property
    def rows(self) -> Indices:
        """Rows that decide on a division."""
        return self.taught[:: max(1, len(self.taught) // (2 * SCORED_ROWS))]


class Level(NamedTuple):
    """A column, its bins in a task's rows, and whether it has an order and may divide rows."""

    column: Column
    bins: Indices
    ordered: bool
    divides: bool


def edges_of(v: Array | Indices) -> Array | None:
    """Edges of about ``BINS`` bins with equal counts; None for codes."""
    if v.dtype.kind in "iu":
        return None
    some, bins = np.sort(v[:: max(1, len(v) // (16 * BINS))]), min(BINS, max(8, len(v) // 100))
    edges = some[len(some) * np.arange(1, bins) // bins]
    return edges[np.concatenate([[True], edges[1:] > edges[:-1]])]


def binned(v: Array | Indices, edges: Array | None) -> Indices:
    """Each value's bin."""
    return np.asarray(v if edges is None else np.searchsorted(edges, v), dtype=np.intp)


def bin_means(bins: Indices, r: Array, size: int) -> Array:
    """Means of r by bin, shape (size,), shrunk to 0 by their noise."""
    counts = np.bincount(bins, minlength=size)
    means = np.bincount(bins, r, size) / np.maximum(counts, 1)
    m, met = len(bins), int(np.count_nonzero(counts))
    between = float(counts @ means**2)
    within = (float(r @ r) - between) / max(1, m - met)
    signal = (between - met * within) / m  # variance of the true means, by moments
    shrink = np.float64(within) / signal if signal > 1e-12 * within else np.inf
    return np.asarray(means / (1.0 + shrink / np.maximum(counts, 1)))


def families() -> list[Feature]:
    """One of each registered feature family, by name."""
    return [registry.get("feature", name)() for name in registry.names("feature")]


def helpful(shown: Shown, tasks: Sequence[Task]) -> tuple[list[list[Chosen]], list[list[Level]]]:
    """Columns that help each task, best first, and all columns; none for few rows."""
    found: list[list[Chosen]] = [[] for _ in tasks]
    levels: list[list[Level]] = [[] for _ in tasks]
    enough = min(len(task.taught) for task in tasks) >= FEWEST_ROWS
    for family in families() if enough else ():
        for best, tried in zip(found, _tried(family, shown, tasks, levels), strict=True):
            best += sorted(tried, key=lambda one: -one.saved)[:MOST_OF_FAMILY]
    return [sorted(best, key=lambda one: -one.saved)[:MOST_CHOSEN] for best in found], levels


class Binned(NamedTuple):
    """A column's values, and their bins with the edges, shapes (n,), (n,) and (b,)."""

    values: Array | Indices
    bins: Indices
    edges: Array | None

    @classmethod
    def of(cls, v: Array | Indices) -> Binned:
        """Column with its bins."""
        return cls(v, binned(v, edges := edges_of(v)), edges)


def _tried(
    family: Feature, shown: Shown, tasks: Sequence[Task], levels: list[list[Level]]
) -> list[list[Chosen]]:
    found: list[list[Chosen]] = [[] for _ in tasks]
    places = list(zip(found, levels, tasks, strict=True))

    def level(column: Column, one: Binned, task: Task) -> Level:
        small = np.min_scalar_type(int(one.bins.max()))  # a level is kept for every column and task
        bins = one.bins[task.rows].astype(small)
        return Level(column, bins, one.edges is not None, family.divides)

    if not family.learns:
        for _, column in family.columns(shown, tasks[0].known):
            one = Binned.of(column(shown))
            for each, own, task in places:
                own.append(level(column, one, task))
                each += _try(column, [one] * 3, task)
        return found
    for each, own, task in places:
        learnt = [
            dict(family.columns(shown, known))
            for known in (task.known, *map(task.known.only, task.parts))
        ]
        for name, column in learnt[0].items():
            own.append(level(column, one := Binned.of(column(shown)), task))
            if all(name in columns for columns in learnt):
                rest = [Binned.of(columns[name](shown)) for columns in learnt[1:]]
                each += _try(column, [one, *rest], task)
    return found


def _try(column: Column, learnt: Sequence[Binned], task: Task) -> list[Chosen]:
    values, bins, edges = zip(*learnt, strict=True)
    size, r = max(int(each.max()) + 1 for each in bins), task.known.left
    if size == 1:
        return []
    means = [
        bin_means(each[part], r[part], size)
        for each, part in zip(bins[1:], task.parts, strict=True)
    ]
    tested = [part[:: max(1, len(part) // SCORED_ROWS)] for part in task.parts[::-1]]
    gains = np.concatenate(
        [
            (m := mean[which[rows]]) * (2.0 * r[rows] - m)
            for mean, which, rows in zip(means, bins[1:], tested, strict=True)
        ]
    )
    far = FAR * np.abs(gains).mean()
    bounded = np.clip(gains, -far, far)
    squares = float(bounded @ bounded)
    if task.run > 1:
        runs = np.concatenate([rows // task.run for rows in tested])
        sums = np.add.reduceat(bounded, np.flatnonzero(np.diff(runs, prepend=-1)))
        squares = max(squares, float(sums @ sums))
    if gains.mean() <= 0 or bounded.sum() <= HELPS * np.sqrt(squares):
        return []
    encoder = Encoder(
        edges[0], np.append(bin_means(bins[0][task.taught], r[task.taught], size), 0.0)
    )
    found = encoder(values[0])
    for v, mean, which, rows in zip(values[1:], means, bins[1:], task.parts[::-1], strict=True):
        found[rows] = np.column_stack([v, mean[which]])[rows]
    return [Chosen(column, encoder, float(gains.mean()), found)]


def divided(
    shown: Shown, levels: Sequence[Level], task: Task, x: Array
) -> tuple[Flags, Array] | None:
    """Surest division of the rows by the bins of a column, and numbers that help in the part.

    | symbol | meaning |
    | --- | --- |
    | ``u, s`` | normal scores of a column, and of x less their mean by bin |
    | ``a`` | size of residuals of x by least squares on all numbers |
    | ``b`` | likewise by bin, fitted to the other half of the rows |
    | ``e`` | ``u s`` for each column, and ``a − b`` |

    The variance ratio of the means of ``u s`` by bin is made a normal deviate (Wilson and
    Hilferty). ``a − b`` is tested against a mean of 0.
    """
    rows, some = task.rows, [one for one in levels if one.ordered]
    m, sure, best = len(rows), SURELY, None
    y, half = x[rows, None], np.arange(m) % 2
    numbers = shown.numbers[:, :MOST_BESIDE]
    D = np.column_stack([np.ones(m), standardised(numbers[rows], 1e-300)])
    ranks = column_ranks(np.column_stack([y, *(one.bins for one in some)])) - 0.5 / m
    x_scores, U = np.split(standardised(scipy.special.ndtri(ranks), 1e-9), [1], axis=1)
    both, of_size = (each.astype(np.float32, "C") for each in (np.hstack([U * x_scores, U]), U**2))
    a = np.abs(y - D @ np.linalg.lstsq(D, y, rcond=1e-10)[0])
    squares, width = (D[:, :, None] * D[:, None, :]).reshape(m, -1), D.shape[1]
    for gate in (one for one in levels if one.divides):
        bins = gate.bins.astype(np.intp)
        of, n, d = *sums_by(bins), len(np.unique(bins)) - 1
        if not 0 < d < m // 4:
            continue
        of_half, _ = sums_by(2 * bins + half)
        gram = (of_half @ squares).reshape(-1, width, width) + 1e-9 * np.eye(width)
        fits = np.linalg.solve(gram, (of_half @ (D * y))[:, :, None])[:, :, 0]
        other = np.minimum(2 * bins + 1 - half, len(fits) - 1)
        gain = a - np.abs(y - (D * fits[other]).sum(axis=1, keepdims=True))
        mean = of @ x_scores / n
        rest = x_scores - mean[bins]
        sums, own = np.hsplit((of @ both).astype(np.float64), 2)
        sums -= mean * own  # of e by bin
        whole = (rest[:, 0].astype(np.float32) ** 2 @ of_size).astype(np.float64)
        between = (sums**2 / n).sum(axis=0)
        within = np.maximum((whole - between) / (m - d - 1), 1e-9 * whole / m + 1e-300)
        ratio = (between - sums.sum(axis=0) ** 2 / m) / d / within
        z = (np.cbrt(ratio) - (1.0 - 2.0 / (9.0 * d))) / np.sqrt(2.0 / (9.0 * d))
        z = np.append(z, gain.sum() / np.sqrt((gain**2).sum() + 1e-300))
        if z.max() > sure:
            sure, k = float(z.max()), int(z.argmax())
            found = (some[k].column, U[:, [k]] * rest) if k < len(some) else (None, gain)
            best = gate.column, found[0], found[1][:, 0]
    if best is None:
        return None
    gate_of, helps, gain = best
    if helps is not None:
        numbers = np.column_stack([numbers, helps(shown)])
    v = gate_of(shown)
    inside = part_of(v, rows, gain)
    if not inside[rows].any():
        return None
    fit = least_squares(numbers, x, rows[inside[rows]])
    inside = part_of(v, rows, a[:, 0] - np.abs(x - fit)[rows])
    return (inside, numbers) if inside[rows].sum() > FEWEST_TOGETHER else None


def sums_by(bins: Indices) -> tuple[Any, Array]:
    """Sparse matrix that sums rows by bin, and numbers of rows, shape (bins, 1)."""
    shape = len(bins), int(bins.max()) + 1
    of = scipy.sparse.csr_array(
        (np.ones(shape[0], np.float32), bins, np.arange(shape[0] + 1)), shape
    )
    return of.T.tocsr(), np.maximum(np.bincount(bins), 1)[:, None]


def part_of(v: Array | Indices, rows: Indices, e: Array) -> Flags:
    """Rows in the bins of v with the largest means of e, or in one stretch with a larger sum.

    Parameters
    ----------
    v : ndarray of shape (n,)
    e : ndarray of shape (len(rows),)
    """
    every = Binned.of(v)
    bins, e = every.bins[rows], e - e.mean()
    n = np.bincount(bins, minlength=int(every.bins.max()) + 1)
    sums = np.bincount(bins, e, len(n))
    order = np.argsort(-sums / np.maximum(n, 1), kind="stable")
    size, total = n[order].cumsum()[:-1], sums[order].cumsum()[:-1]
    cut = int((total**2 / np.maximum(size * (len(rows) - size), 1)).argmax())
    inside = np.isin(every.bins, order[: cut + 1])
    here = inside[rows]
    if every.edges is None or here.all():
        return inside
    e -= (e[here].mean() + e[~here].mean()) / 2.0
    order = rows[np.argsort(v[rows], kind="stable")]
    total = np.append(0.0, e[np.argsort(v[rows], kind="stable")].cumsum())
    last = int((total - np.minimum.accumulate(total)).argmax())
    first = int(total[: last + 1].argmin())
    if total[last] - total[first] < e[here].sum():
        return inside
    ends = np.concatenate([[-np.inf], v[order], [np.inf]])
    low, high = (ends[[first, last]] + ends[[first + 1, last + 1]]) / 2.0
    return np.asarray((low < v) & (v <= high))


@unprinted
class Model:
    """Prediction of an attribute from cells.

    ``low`` and ``high`` bound predictions: three times the range of the training rows.
    """

    attribute: int
    chosen: list[Chosen]
    linear: Array
    scale: tuple[Array, Array]
    trees: Any
    low: float
    high: float
    robust: Any = None
    """Trees of medians, which long tails do not move."""
    inside: Flags | None = None
    """Rows of a part that a column divides from the rest, shape (n,)."""
    numbers: Array | None = None
    """Numbers that help in the part, shape (n, q)."""
    parts: Sequence[Model] = ()
    """Models of the part and of the rest."""

    def predict(self, shown: Shown) -> Array:
        """Addition to the first prediction, in the rows' own parts, shape (n,)."""
        if self.inside is None:
            return self.steps(shown)[1]
        return np.where(self.inside, *(part.predict(shown) for part in self.parts))

    def steps(self, shown: Shown) -> tuple[Array, ...]:
        """Predictions by least squares, with trees, and of medians, shapes (n,)."""
        chosen = [one.encoder(one.column(shown)) for one in self.chosen]
        values = np.hstack([shown.flat, shown.differences, *chosen])
        linear = self.linear_only(values)
        more = (
            0.0
            if self.trees is None
            else self.trees.predict(_for_trees(values, shown, self.attribute))
        )
        found = np.clip(linear, self.low, self.high), np.clip(linear + more, self.low, self.high)
        if self.robust is None:
            return found
        return *found, self.robust.predict(_for_trees(values, shown, self.attribute))

    def linear_only(self, values: Array) -> Array:
        """Least squares alone, shape (n,), of columns of shape (n, q)."""
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
    """Model for each attribute and fold of training rows.

    Parameters
    ----------
    x : ndarray of shape (n, N)
        Originals.
    folds : sequence of ndarray of int
        Training rows of each fold.
    name : str
        Names the random streams.
    first : ndarray of shape (folds, n, N), optional
        First predictions, whose residuals the models predict. Otherwise they predict x.
    run : int
        Rows of a run of neighbours.
    """
    ranks, N, tasks = column_ranks(x), x.shape[1], list[Task]()
    moved = moved_rows(shown, x, ranks)
    for j in range(N):
        for number, taught in enumerate(folds):
            base = (
                least_squares(shown.flat, x[:, j], taught) if first is None else first[number, :, j]
            )
            known = Known(j, x, ranks, float(x[:, j].min()), x[:, j] - base, moved)
            known = known.only(taught)
            first_part, second = dealt(len(taught), stream(0, "insider", name, j, number), run)
            tasks.append(Task(known, taught, (taught[first_part], taught[second]), run))
    goals = [x[:, task.known.attribute] if first is None else task.known.left for task in tasks]
    models = [
        _in_parts(shown, task, best, levels, goal, size, MOST_DIVISIONS)
        for task, best, levels, goal in zip(tasks, *helpful(shown, tasks), goals, strict=True)
    ]
    return [models[j * len(folds) : (j + 1) * len(folds)] for j in range(N)]


def _in_parts(
    shown: Shown,
    task: Task,
    best: list[Chosen],
    levels: Sequence[Level],
    goal: Array,
    size: Trees,
    divisions: int,
) -> Model:
    model = _model(shown, task, best, goal, size)
    division = divided(shown, levels, task, goal) if divisions and levels else None
    if division is None:
        return model
    (inside, numbers), parts = division, list[Model]()
    own = task.taught[inside[task.taught]]
    before = np.abs(goal - model.predict(shown))[own].mean()
    if error_within(numbers[own], goal[own]) > WORTH * before:
        return model
    for here in (inside, ~inside):
        taught, *halves = (rows[here[rows]] for rows in (task.taught, *task.parts))
        if min(map(len, halves)) < FEWEST_TOGETHER:
            return model
        part = Task(task.known.only(taught), taught, (halves[0], halves[1]), task.run)
        (best,), (more,) = helpful(shown, [part])
        parts.append(_in_parts(shown, part, best, more, goal, size, divisions - 1))
    return replace(model, inside=inside, numbers=numbers, parts=parts)


def error_within(numbers: Array, y: Array) -> float:
    """Mean error by the best line, or by the mean of both neighbours along a number.

    Examples
    --------
    >>> error_within(np.arange(6.0)[:, None], np.arange(6.0) ** 2)
    1.0
    """
    line = least_squares(numbers, y, np.arange(len(y)))
    along = y[np.argsort(numbers, axis=0, kind="stable")]
    curves = np.abs(along[1:-1] - (along[:-2] + along[2:]) / 2.0).mean(axis=0)
    return float(min(np.abs(y - line).mean(), curves.min()))


def _model(shown: Shown, task: Task, chosen: list[Chosen], goal: Array, size: Trees) -> Model:
    taught, cells = task.taught, np.hstack([shown.flat, shown.differences])
    values = np.hstack([cells, *(one.values for one in chosen)])
    raw = np.r_[np.zeros(cells.shape[1], dtype=bool), np.tile([True, False], len(chosen))]
    scale, y = _scale(values[taught]), goal.copy()
    y[~np.isfinite(y)] = 0.0
    # Ratios with a divisor near 0 are far off in few rows, so least squares may do without them.
    scales = scale[1], np.where(raw, np.inf, scale[1])
    used = min(scales, key=lambda some: _held_out(values, (scale[0], some), y, task))
    design = np.column_stack([np.ones(len(taught)), _scaled(values[taught], (scale[0], used))])
    linear: Array = np.linalg.lstsq(design, y[taught], rcond=1e-10)[0].astype(np.float64)
    low, high = float(y[taught].min()), float(y[taught].max())
    model = Model(
        task.known.attribute,
        chosen,
        linear,
        (scale[0], used),
        None,
        low - (high - low),
        high + (high - low),
    )
    rest = y[taught] - model.linear_only(values[taught])
    if len(taught) < FEWEST_ROWS or rest.std() <= 1e-9 * y[taught].std():
        return model
    seen, robust = _for_trees(values, shown, task.known.attribute)[taught], None
    if size is STRONG:
        robust = grower(size, len(taught), "absolute_error").fit(seen, y[taught])
    return replace(model, trees=grower(size, len(taught)).fit(seen, rest), robust=robust)


def _held_out(values: Array, scale: tuple[Array, Array], y: Array, task: Task) -> float:
    design, error = np.column_stack([np.ones(len(values)), _scaled(values, scale)]), 0.0
    for here, there in (task.parts, task.parts[::-1]):
        weights = np.linalg.lstsq(design[here], y[here], rcond=1e-10)[0]
        error += float(((y[there] - design[there] @ weights) ** 2).sum())
    return error


def least_squares(values: Array, x: Array, taught: Indices) -> Array:
    """Least-squares prediction of x, shape (n,), fitted to some rows."""
    values = _scaled(values, _scale(values[taught]))
    design = np.column_stack([np.ones(len(values)), values])
    return design @ np.linalg.lstsq(design[taught], x[taught], rcond=1e-10)[0]


def _scale(values: Array) -> tuple[Array, Array]:
    mean, spread = values.mean(axis=0), values.std(axis=0)
    return mean, np.where(spread > 1e-12 * np.abs(values).max(axis=0, initial=0.0), spread, np.inf)


def _scaled(values: Array, scale: tuple[Array, Array]) -> Array:
    return (values - scale[0]) / scale[1]


def _for_trees(values: Array, shown: Shown, attribute: int) -> Array:
    """Columns for trees: cells with blanks, columns, differences and place."""
    flat, known = shown.cells.reshape(len(shown.cells), -1), shown.differences.shape[1]
    rest = values[:, flat.shape[1] + known :]
    numbers = [v for _, v in shown.beside if v.dtype.kind != "U"]
    beside = [v for v in numbers if v.dtype.kind == "f" or many_alike(v)][:MOST_BESIDE]
    place = np.arange(len(flat), dtype=np.float64)
    means = shown.group_means(attribute)
    return np.column_stack([flat, rest, shown.differences[:, :16], *beside, means, place])


def grower(size: Trees, rows: int, loss: str = "squared_error") -> Any:
    """Unfitted trees; equal for any number of threads."""
    # imported here: it costs a second
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss=loss,
        max_iter=min(size.number, max(FEWEST_TREES, rows // 5)),
        max_leaf_nodes=size.leaves,
        max_bins=size.bins,
        learning_rate=size.rate,
        min_samples_leaf=max(size.least, rows // 100),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    )


def dealt(n: int, rng: np.random.Generator, run: int = 1, parts: int = 2) -> list[Indices]:
    """Parts of n rows, dealt at random in runs of neighbours."""
    runs = -(-n // run)
    part = np.empty(runs, dtype=np.intp)
    part[rng.permutation(runs)] = np.arange(runs) * parts // runs
    return [np.flatnonzero(part[np.arange(n) // run] == place) for place in range(parts)]
