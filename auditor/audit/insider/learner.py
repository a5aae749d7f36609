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
predict again. Gradient boosting (scikit-learn) predicts the residual. Rows that a column divides by
relations (``divided``) have their own models.

Assumed, *not checked*: records with equal columns and places are perturbed equally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.audit.insider.feature import Column, Feature, Known, Shown, moved_rows
from auditor.base import scipy
from auditor.base.types import Array, Flags, Indices, unprinted
from auditor.data.columns.kinds import many_alike
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
SURELY, MOST_TRIED, FEWEST_TOGETHER, MOST_DIVISIONS, WORTH = 4.5, 12, 16, 2, 0.7
"""Normal deviate of a division (chance 3e-6), most that are tried, fewest training rows of a part
from either half, most divisions in turn, and most of the whole's mean error that one of the part's
own may be.
"""


class Trees(NamedTuple):
    """Boosted trees: number, leaves, learning rate, least records in a leaf, most bins."""

    number: int
    leaves: int
    rate: float
    least: int
    bins: int = 255


FEWEST_TREES = 40
"""Trees for few rows, where more take seconds."""
STRONG, WEAK = Trees(50, 16, 0.2, 10, BINS), Trees(20, 8, 0.12, 20)
"""Trees for originals, and trees with stable predictions."""


class Chosen(NamedTuple):
    """A column that helped, with its values, the edges of its bins, and their mean residuals.

    Codes are their own bins.
    """

    column: Column
    edges: Array | None
    means: Array
    saved: float
    """Mean square that bin means save in held-out rows."""
    values: Array
    """Column and mean in all rows, means of training rows from the other part, (n, 2)."""


def encoded(v: Array | Indices, edges: Array | None, means: Array) -> Array:
    """Column and its means, shape (n, 2); mean 0 for unknown codes."""
    return np.column_stack([v, means[np.minimum(binned(v, edges), len(means) - 1)]])


class Level(NamedTuple):
    """A column, its bins in a task's rows, whether these have an order and may divide rows.

    ``of`` is the place of the only prediction that may use it, −1 for all.
    """

    column: Column
    bins: Indices
    ordered: bool
    divides: bool
    of: int


@unprinted
class Task:
    """Predictions of attributes in some rows from the others.

    Attributes
    ----------
    known : sequence of Known
        Of the training rows, by prediction.
    taught : ndarray of int
        Training rows.
    parts : tuple of two ndarrays of int
        Their halves.
    run : int
        Rows of a run of neighbours.
    levels : list of Level
        Columns that were tried.
    chosen : list of lists of Chosen
        Columns that help each prediction, best first.
    """

    known: Sequence[Known]
    taught: Indices
    parts: tuple[Indices, Indices]
    run: int
    levels: list[Level] = field(default_factory=list)
    chosen: list[list[Chosen]] = field(default_factory=list)

    @cached_property
    def rows(self) -> Indices:
        """Rows that decide on a division."""
        return few_of(self.taught)

    @cached_property
    def tested(self) -> list[Indices]:
        """Rows of the second and of the first half for scores."""
        return [part[:: max(1, len(part) // SCORED_ROWS)] for part in self.parts[::-1]]

    @cached_property
    def starts(self) -> Indices:
        """Places among tested rows where runs of neighbours begin."""
        runs = np.concatenate([rows // self.run for rows in self.tested])
        return np.flatnonzero(np.diff(runs, prepend=-1))

    @cached_property
    def left(self) -> Array:
        """Residuals by prediction, shape (N, n)."""
        return np.array([one.left for one in self.known])

    def inside(self, k: int, here: Flags) -> Task:
        """One prediction in the rows of a part."""
        taught, *halves = (rows[here[rows]] for rows in (self.taught, *self.parts))
        return Task([self.known[k].only(taught)], taught, (halves[0], halves[1]), self.run)


def few_of(rows: Indices) -> Indices:
    """At most twice ``SCORED_ROWS``, evenly spaced."""
    few = min(len(rows), 2 * SCORED_ROWS)
    return rows[np.linspace(0, len(rows) - 1, few).astype(np.intp)]


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
    """Means of each row of r, (N, m), by bin, shape (N, size), shrunk to 0 by their noise."""
    counts = np.bincount(bins, minlength=size)
    means = np.array([np.bincount(bins, one, size) for one in r]) / np.maximum(counts, 1)
    m, met = len(bins), int(np.count_nonzero(counts))
    between = means**2 @ counts
    within = (np.einsum("jt,jt->j", r, r) - between) / max(1, m - met)
    signal = (between - met * within) / m  # variance of the true means, by moments
    there = signal > 1e-12 * within
    shrink = np.where(there, within / np.where(there, signal, 1.0), np.inf)
    return np.asarray(means / (1.0 + shrink[:, None] / np.maximum(counts, 1)))


def families() -> list[Feature]:
    """One of each registered feature family, by name."""
    return [registry.get("feature", name)() for name in registry.names("feature")]


def look(shown: Shown, tasks: Sequence[Task]) -> None:
    """Try all columns in each task and choose helpful columns; none for few rows."""
    enough = min(len(task.taught) for task in tasks) >= FEWEST_ROWS
    for task in tasks:
        task.chosen[:] = [[] for _ in task.known]
    for family in families() if enough else ():
        for task, found in zip(tasks, _tried(family, shown, tasks), strict=True):
            for best, tried in zip(task.chosen, found, strict=True):
                best += sorted(tried, key=lambda one: -one.saved)[:MOST_OF_FAMILY]
    for task in tasks:
        task.chosen[:] = [
            sorted(best, key=lambda one: -one.saved)[:MOST_CHOSEN] for best in task.chosen
        ]


class Binned(NamedTuple):
    """A column's values, and their bins with the edges, shapes (n,), (n,) and (b,)."""

    values: Array | Indices
    bins: Indices
    edges: Array | None

    @classmethod
    def of(cls, v: Array | Indices) -> Binned:
        """Column with its bins."""
        return cls(v, binned(v, edges := edges_of(v)), edges)


def _tried(family: Feature, shown: Shown, tasks: Sequence[Task]) -> list[list[list[Chosen]]]:
    found: list[list[list[Chosen]]] = [[[] for _ in task.known] for task in tasks]

    def tried(column: Column, learnt: Sequence[Binned], task: Task, best: Any, k: int) -> None:
        one = learnt[0]
        small = np.min_scalar_type(int(one.bins.max()))  # a level is kept for every column and task
        bins = one.bins[task.rows].astype(small)
        task.levels.append(Level(column, bins, one.edges is not None, family.divides, k))
        some = slice(None) if k < 0 else slice(k, k + 1)
        if len(learnt) == 3:
            for chosen, helps in zip(best[some], _try(column, learnt, task, some), strict=True):
                chosen += helps

    if not family.learns:
        for _, column in family.columns(shown, tasks[0].known[0]):
            one = Binned.of(column(shown))
            for task, best in zip(tasks, found, strict=True):
                tried(column, [one] * 3, task, best, -1)
        return found
    for task, best in zip(tasks, found, strict=True):
        for k, known in enumerate(task.known):
            learnt = [
                dict(family.columns(shown, each)) for each in (known, *map(known.only, task.parts))
            ]
            for name, column in learnt[0].items():
                same = [columns[name] for columns in learnt if name in columns]
                tried(column, [Binned.of(one(shown)) for one in same], task, best, k)
    return found


def _try(column: Column, learnt: Sequence[Binned], task: Task, some: slice) -> list[list[Chosen]]:
    """The column, for each prediction that it helps."""
    values, bins, edges = zip(*learnt, strict=True)
    size, r = max(int(each.max()) + 1 for each in bins), task.left[some]
    found: list[list[Chosen]] = [[] for _ in r]
    if size == 1:
        return found
    means = [
        bin_means(each[part], r[:, part], size)
        for each, part in zip(bins[1:], task.parts, strict=True)
    ]
    gains = np.hstack(
        [
            (m := mean[:, which[rows]]) * (2.0 * r[:, rows] - m)
            for mean, which, rows in zip(means, bins[1:], task.tested, strict=True)
        ]
    )
    far = FAR * np.abs(gains).mean(axis=1, keepdims=True)
    bounded = np.clip(gains, -far, far)
    squares = np.einsum("jt,jt->j", bounded, bounded)
    if task.run > 1:
        sums = np.add.reduceat(bounded, task.starts, axis=1)
        squares = np.maximum(squares, (sums**2).sum(axis=1))
    saved = gains.mean(axis=1)
    for k in np.flatnonzero((saved > 0) & (bounded.sum(axis=1) > HELPS * np.sqrt(squares))):
        whole = bin_means(bins[0][task.taught], r[[k]][:, task.taught], size)[0]
        whole = np.append(whole, 0.0)
        shown = encoded(values[0], edges[0], whole)
        for v, mean, which, rows in zip(values[1:], means, bins[1:], task.parts[::-1], strict=True):
            shown[rows] = np.column_stack([v, mean[k][which]])[rows]
        found[k] = [Chosen(column, edges[0], whole, float(saved[k]), shown)]
    return found


def divided(shown: Shown, task: Task, x: Array) -> Iterator[Iterator[tuple[Flags, Array]]]:
    """Yield each x's surest divisions of rows by columns' bins, and the part's numbers.

    | symbol | meaning | shape |
    | --- | --- | --- |
    | ``x, s`` | values to predict; their normal scores less the mean by bin | (m, N) |
    | ``u`` | normal scores of columns | (m, C) |
    | ``a`` | size of residuals of x by least squares on all numbers | (m, N) |
    | ``b`` | by bin, fitted to the other half of the rows | (m, N) |
    | ``w`` | normal scores of numbers, less the mean by bin | (m, q) |
    | ``ρ`` | slope of w on s; 0 if not clear | (q,) |
    | ``e`` | ``u s``; ``|w| − |w − ρ s|``; ``a − b`` | (m,) |

    Variance ratios of the means of ``e`` by bin are made normal deviates (Wilson and Hilferty).
    ``a − b`` is tested against a mean of 0.

    Parameters
    ----------
    x : ndarray of shape (N, n)
        Values of the training rows.
    """
    rows, some = task.rows, [one for one in task.levels if one.ordered]
    m, N = len(rows), len(x)
    y, half = x[:, rows].T, np.arange(m) % 2
    numbers = shown.numbers[:, :MOST_BESIDE]
    D = np.column_stack([np.ones(m), standardised(numbers[rows], 1e-300)])
    scores, W = (
        standardised(scipy.special.ndtri(column_ranks(v) - 0.5 / m), 1e-9)
        for v in (y, numbers[rows])
    )
    U = np.column_stack([normal_scores(one.bins) for one in some])
    of_size, ones = U**2, np.ones(m)
    mine = np.array([one.of for one in some]) == np.arange(N)[:, None]
    mine |= np.array([one.of for one in some]) < 0
    a = np.abs(y - D @ np.linalg.lstsq(D, y, rcond=1e-10)[0])
    squares = (D[:, :, None] * D[:, None, :]).reshape(m, -1)
    crossed, width = (D[:, :, None] * y[:, None, :]).reshape(m, -1), D.shape[1]
    best: list[list[tuple[float, tuple[Column, Column | None, Array]]]] = [[] for _ in x]
    for gate in (one for one in task.levels if one.divides):
        bins = gate.bins.astype(np.intp)
        n, d = np.bincount(bins), len(np.unique(bins)) - 1
        if not 0 < d < m // 4:
            continue
        of_half = sums_by(2 * bins + half, ones)
        gram = (of_half @ squares).reshape(-1, width, width) + 1e-9 * np.eye(width)
        fits = np.linalg.solve(gram, (of_half @ crossed).reshape(-1, width, N))
        other = np.minimum(2 * bins + 1 - half, len(fits) - 1)
        gain = a - np.abs(y - np.einsum("tw,twk->tk", D, fits[other]))
        n = np.maximum(n, 1)[:, None]
        of_bin = sums_by(bins, ones)
        own, w = (of_bin @ U).astype(np.float64), W - (of_bin @ W / n)[bins]
        mean = np.array([np.bincount(bins, column) for column in scores.T]).T / n
        rest = scores - mean[bins]
        whole = ((rest.astype(np.float32) ** 2).T @ of_size).astype(np.float64)
        for k in range(N):
            rho = w.T @ rest[:, k] / max(float(rest[:, k] @ rest[:, k]), 1e-300)
            rho[np.abs(rho) * np.sqrt(m) < SURELY] = 0.0
            V = np.abs(w) - np.abs(w - rest[:, [k]] * rho)
            of_e = sums_by(bins, scores[:, k]) @ U - mean[:, [k]] * own  # sums of e by bin
            of_e, total = np.hstack([of_e, of_bin @ V]), np.append(whole[k], (V**2).sum(axis=0))
            between = (of_e**2 / n).sum(axis=0)
            within = np.maximum((total - between) / (m - d - 1), 1e-9 * total / m + 1e-300)
            ratio = (between - of_e.sum(axis=0) ** 2 / m) / d / within
            z = (np.cbrt(ratio) - (1.0 - 2.0 / (9.0 * d))) / np.sqrt(2.0 / (9.0 * d))
            e = gain[:, k]
            z[: len(some)][~mine[k]] = -np.inf
            z = np.append(z, e.sum() / np.sqrt((e**2).sum() + 1e-300))
            if z.max() > SURELY:
                c = int(z.argmax())
                helps = some[c].column if c < len(some) else None
                of_all = np.column_stack([V, e])
                e = of_all[:, c - len(some)] if helps is None else U[:, c] * rest[:, k]
                best[k].append((float(z.max()), (gate.column, helps, e)))
    for each, one, size in zip(best, x, a.T, strict=True):
        surest = sorted(each, key=lambda found: -found[0])[:MOST_TRIED]
        tried = (_part(shown, rows, numbers, one, size, *found) for _, found in surest)
        yield filter(None, tried)


def _part(
    shown: Shown,
    rows: Indices,
    numbers: Array,
    x: Array,
    a: Array,
    gate: Column,
    helps: Column | None,
    gain: Array,
) -> tuple[Flags, Array] | None:
    if helps is not None:
        numbers = np.column_stack([numbers, helps(shown)])
    v = gate(shown)
    inside = part_of(v, rows, gain)
    if not inside[rows].any():
        return None
    fit = least_squares(numbers, x, rows[inside[rows]])
    inside = part_of(v, rows, a - np.abs(x - fit)[rows])
    return (inside, numbers) if inside[rows].sum() > FEWEST_TOGETHER else None


def normal_scores(bins: Indices) -> NDArray[np.float32]:
    """Standardised normal scores of ordered bins, with equal ranks in a bin; 0 for one bin."""
    counts = np.bincount(bins)
    rank = np.clip((np.cumsum(counts) - counts / 2.0) / len(bins), 1e-9, 1.0 - 1e-9)
    score = scipy.special.ndtri(rank)
    score -= counts @ score / len(bins)
    deviation = np.sqrt(counts @ score**2 / len(bins))
    return (score / deviation if deviation > 1e-9 else 0.0 * score).astype(np.float32)[bins]


def sums_by(bins: Indices, weights: Array) -> Any:
    """Sparse matrix that sums weighted rows by bin, shape (b, m)."""
    each = weights.astype(np.float32), bins, np.arange(len(bins) + 1)
    return scipy.sparse.csr_array(each, (len(bins), int(bins.max()) + 1)).T.tocsr()


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

    def predict(self, shown: Shown, rows: Indices) -> Array:
        """Addition to the first prediction of some rows, in their own parts, shape (n,)."""
        if self.inside is None:
            return self.steps(shown, rows)[1]
        return np.where(self.inside, *(part.predict(shown, rows) for part in self.parts))

    def steps(self, shown: Shown, rows: Indices) -> Array:
        """Predictions by least squares, with trees, and of medians, if any; shape (q, n).

        NaN in rows without a request, as trees are slow.
        """
        chosen = [encoded(one.column(shown), one.edges, one.means) for one in self.chosen]
        values = np.hstack([shown.flat, shown.differences, *chosen])
        linear = self.linear_only(values[rows])
        steps = [np.clip(each, self.low, self.high) for each in (linear, linear)]
        if self.trees is not None:
            seen = _for_trees(values, shown, self.attribute)[rows]
            steps[1] = np.clip(linear + self.trees.predict(seen), self.low, self.high)
            steps += [] if self.robust is None else [self.robust.predict(seen)]
        found = np.full((len(steps), len(values)), np.nan)
        found[:, rows] = steps
        return found

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
    N, tasks, goals = x.shape[1], list[Task](), list[Array]()
    moved = moved_rows(shown, x)
    for number, taught in enumerate(folds):
        known = list[Known]()
        for j in range(N):
            base = (
                least_squares(shown.flat, x[:, j], taught) if first is None else first[number, :, j]
            )
            one = Known(j, x, float(x[:, j].min()), x[:, j] - base, moved)
            known.append(one.only(taught))
        units = np.unique(shown.units[taught], return_inverse=True)[1] // run
        first_part, second = dealt(units, stream(0, "insider", name, 0, number))
        tasks.append(Task(known, taught, (taught[first_part], taught[second]), run))
        goals.append(x.T if first is None else tasks[-1].left)
    look(shown, tasks)
    found = [_in_parts(shown, *each, size) for each in zip(tasks, goals, strict=True)]
    return [list(models) for models in zip(*found, strict=True)]


def _in_parts(
    shown: Shown, task: Task, goals: Array, size: Trees, divisions: int = MOST_DIVISIONS
) -> list[Model]:
    """Model of each prediction, in parts if the rows divide."""
    models = [_model(shown, task, k, goal, size) for k, goal in enumerate(goals)]
    for k, each in enumerate(divided(shown, task, goals) if divisions and task.levels else ()):
        model, goal = models[k], goals[k]
        for inside, numbers in each:
            own = task.taught[inside[task.taught]]
            before = np.abs(goal - model.predict(shown, own))[own].mean()
            parts = [task.inside(k, here) for here in (inside, ~inside)]
            if (
                error_within(numbers[own], goal[own]) > WORTH * before
                or min(len(half) for part in parts for half in part.parts) < FEWEST_TOGETHER
            ):
                continue
            for part in parts:
                look(shown, [part])
            found = [_in_parts(shown, part, goal[None], size, divisions - 1)[0] for part in parts]
            models[k] = replace(model, inside=inside, numbers=numbers, parts=found)
            break
    return models


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


def _model(shown: Shown, task: Task, k: int, goal: Array, size: Trees) -> Model:
    taught, cells = task.taught, np.hstack([shown.flat, shown.differences])
    chosen, attribute = task.chosen[k], task.known[k].attribute
    values = np.hstack([cells, *(one.values for one in chosen)])
    raw = np.r_[np.zeros(cells.shape[1], dtype=bool), np.tile([True, False], len(chosen))]
    scale, y = _scale(values[taught]), goal.copy()
    y[~np.isfinite(y)] = 0.0
    # Ratios with a divisor near 0 are far off in few rows, so least squares may omit such columns.
    scales = scale[1], np.where(raw, np.inf, scale[1])
    used = min(scales, key=lambda some: _held_out(values, (scale[0], some), y, task))
    design = np.column_stack([np.ones(len(taught)), _scaled(values[taught], (scale[0], used))])
    linear: Array = np.linalg.lstsq(design, y[taught], rcond=1e-10)[0].astype(np.float64)
    low, high = float(y[taught].min()), float(y[taught].max())
    model = Model(
        attribute, chosen, linear, (scale[0], used), None, low - (high - low), high + (high - low)
    )
    rest = y[taught] - model.linear_only(values[taught])
    if len(taught) < FEWEST_ROWS or rest.std() <= 1e-9 * y[taught].std():
        return model
    seen, robust = _for_trees(values, shown, attribute)[taught], None
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


def dealt(groups: Indices, rng: np.random.Generator, parts: int = 2) -> list[Indices]:
    """Places of rows in parts, dealt at random by group; groups of shape (n,)."""
    _, of = np.unique(groups, return_inverse=True)
    count = int(of.max()) + 1
    part = np.empty(count, dtype=np.intp)
    part[rng.permutation(count)] = np.arange(count) * parts // count
    return [np.flatnonzero(part[of] == place) for place in range(parts)]
