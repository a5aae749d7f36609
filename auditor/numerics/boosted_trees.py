"""Gradient boosting with histograms (Friedman 2001; Ke et al. 2017), many small problems at once, in numpy alone.

| symbol | meaning | shape |
| --- | --- | --- |
| ``f`` | what is foretold so far | (F, n) for F fits to n rows |
| ``g`` | gradient of the squared error, ``f − y``, in single precision | (F, n) |
| ``G, m`` | sum of g over the training rows of a leaf, and their number | (F, leaves) |
| ``v`` | value of a leaf, ``−G / (m + λ)`` | (F, leaves) |
| gain | of a cut, ``G_l²/(m_l + λ) + G_r²/(m_r + λ) + v G`` | by column and bin |

The figures are those of scikit-learn's ``HistGradientBoostingRegressor`` to the last bit, which tests hold them to: columns are cut at the
same 254 quantiles, histograms are added up in the order of the rows and the larger child's is its parent's less the smaller's, and the leaf
with the largest gain is split next. Importing that library takes longer than all of its fits that a small audit needs, and each of its fits
bins the columns again and grows its trees by itself: here those that are shown the same columns share the bins, and a step of all fits is
taken in one call of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.sorted_edges import edges_below
from auditor.types import Array

TREES, LEAVES, RATE, PENALTY = 20, 8, 0.12, 1.0
"""Trees of a fit, leaves of a tree, the share of a leaf's value that is added, and ``λ``."""
BINS = 256
"""Of a column, the last one for missing values, of which there are none here."""
AT_ONCE = 2**21
"""Values of all fits that are grown together: their places in histograms take 16 MB."""


class Task(NamedTuple):
    """What trees are to foretell, attribute by attribute: columns, shape (n, c), targets, (n, N), and which rows are for training, (n,)."""

    columns: Array
    targets: Array
    taught: NDArray[np.bool_]


def foretold(tasks: Sequence[Task], least: int) -> list[Array]:
    """Return what trees taught on some of the rows foretell in all of them, task by task, shape (n, N).

    Parameters
    ----------
    tasks : sequence of Task
        Of as many rows each, and as many attributes.
    least : int
        Training rows in a leaf at least.
    """
    n, N = tasks[0].targets.shape
    width = max(task.columns.shape[1] for task in tasks)
    codes = np.zeros((len(tasks), width, n), dtype=np.uint8)
    for code, task in zip(codes, tasks, strict=True):
        code[: task.columns.shape[1]] = [_binned(column, task.taught) for column in task.columns.T]
    fits = np.arange(len(tasks) * N)
    some = max(1, AT_ONCE // (n * width))
    found = [_Fits(codes, tasks, fits[start : start + some]).boosted(least) for start in range(0, len(fits), some)]
    return list(np.concatenate(found).reshape(len(tasks), N, n).swapaxes(1, 2))


def _binned(column: Array, taught: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return how many of the edges between bins, which are quantiles of the training rows, are below each value."""
    values = np.sort(column[taught])
    distinct = values[np.concatenate([[True], values[1:] != values[:-1]])]
    if len(distinct) < BINS:
        edges = (distinct[:-1] + distinct[1:]) / 2.0
    else:
        edges = np.unique(np.percentile(values, np.linspace(0, 100, BINS)[1:-1], method="averaged_inverted_cdf"))
    return edges_below(edges, column)


class _Fits:
    """Fits that are grown together, of columns in bins ``codes``, shape (tasks, c, n); ``fits`` are numbered task by task."""

    def __init__(self, codes: NDArray[np.uint8], tasks: Sequence[Task], fits: NDArray[np.intp]) -> None:
        self._task, attribute = np.divmod(fits, tasks[0].targets.shape[1])
        self._codes = codes
        self._y = np.stack([tasks[i].targets[:, j] for i, j in zip(self._task, attribute, strict=True)])
        self._taught = np.stack([tasks[i].taught for i in self._task])
        c = codes.shape[1]
        first = self._task.min()
        self._places = (codes[first : self._task.max() + 1].swapaxes(1, 2) + np.arange(c) * BINS).reshape(-1, c)
        self._shift = (self._task - first - np.arange(len(fits))) * len(tasks[0].targets)
        """From a place in (F, n) to that of the row in ``_places``."""

    def boosted(self, least: int) -> Array:
        """Return what every fit foretells, shape (F, n)."""
        every = np.arange(len(self._y))
        rows, root = self._laid(every, self._taught)
        shape = (len(every), self._codes.shape[1], BINS)
        reached = _counted(root, shape).cumsum(axis=-1)
        found = np.stack([np.full(len(y), y[taught].mean()) for y, taught in zip(self._y, self._taught, strict=True)])
        for _ in range(TREES):
            g = (found - self._y).astype(np.float32)
            leaf, value = self._grown(g, _counted(root, shape, g.ravel()[rows]), reached, least)
            found += (RATE * value).ravel()[leaf + LEAVES * every[:, None]]
        return found

    def _laid(self, fits: NDArray[np.intp], rows: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return places in (F, n) of rows of some fits, in order, and those of their values in these fits' histograms, shape (rows, c)."""
        at = np.flatnonzero(rows)
        where = at // rows.shape[1]
        at += ((fits - np.arange(len(fits))) * rows.shape[1])[where]
        places = self._places[at + self._shift[fits][where]]
        places += (where * (places.shape[1] * BINS))[:, None]
        return at, places

    def _grown(self, g: NDArray[np.float32], sums: Array, reached: Array, least: int) -> tuple[NDArray[np.uint8], Array]:
        """Return the leaf of each row, shape (F, n), and the leaves' values, shape (F, leaves), of one tree for each fit."""
        leaves = _Leaves(sums, reached, self._taught.sum(axis=1), least)
        leaf = np.zeros(g.shape, dtype=np.uint8)
        for new in range(1, LEAVES):
            fits, old = leaves.next()
            if not len(fits):
                break
            column, edge = leaves.split(fits, old, new)
            own, here = leaf[fits], old.astype(np.uint8)[:, None]  # bytes, as of wider numbers all rows' would be widened
            own += ((own == here) & (self._codes[self._task[fits], column] > edge.astype(np.uint8)[:, None])) * (new - here)
            leaf[fits] = own
            if new < LEAVES - 1:
                small = leaves.smaller(fits, old, new).astype(np.uint8)
                rows, places = self._laid(fits, (own == small[:, None]) & self._taught[fits])
                shape = (len(fits), *sums.shape[1:])
                leaves.look(fits, old, new, _counted(places, shape, g.ravel()[rows]), _counted(places, shape).cumsum(axis=-1))
        return leaf, leaves.value


def _counted(places: NDArray[np.intp], shape: tuple[int, int, int], weights: NDArray[np.float32] | None = None) -> Array:
    """Return histograms of rows by fit, column and bin: the sums of their weights, added up in their order, or their numbers."""
    spread = None if weights is None else np.repeat(weights.astype(np.float64), shape[1])
    return np.bincount(places.ravel(), spread, shape[0] * shape[1] * shape[2]).reshape(shape).astype(np.float64, copy=False)


class _Leaves:
    """The leaves of one growing tree for each fit, with histograms of the gradient and the best cut of each."""

    def __init__(self, sums: Array, reached: Array, count: NDArray[np.intp], least: int) -> None:
        F = len(sums)
        self._sums, self._reached = np.empty((2, LEAVES, *sums.shape))
        self._sums[0], self._reached[0] = sums, reached
        self._G, self._m, self.value, self._gain, self._G_left, self._m_left = np.zeros((6, F, LEAVES))
        self._G[:, 0], self._m[:, 0] = sums[:, 0].sum(axis=1), count
        self._cut = np.zeros((F, LEAVES), dtype=np.intp)
        self._least = least
        self._weigh(np.arange(F), np.zeros(F, dtype=np.intp))

    def next(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the fits in which there is something to gain, and the leaf of each whose cut gains most."""
        best = self._gain.argmax(axis=1)
        fits = np.flatnonzero(self._gain.max(axis=1) > 0.0)
        return fits, best[fits]

    def split(self, fits: NDArray[np.intp], old: NDArray[np.intp], new: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Cut a leaf of each fit, of which the right part becomes leaf ``new``; return columns and the last bins that stay."""
        for whole, left in ((self._G, self._G_left), (self._m, self._m_left)):
            whole[fits, new] = whole[fits, old] - left[fits, old]
            whole[fits, old] = left[fits, old]
        for part in (old, new):
            self.value[fits, part] = -self._G[fits, part] / (self._m[fits, part] + PENALTY)
        self._gain[fits, old] = 0.0
        return np.divmod(self._cut[fits, old], BINS)

    def smaller(self, fits: NDArray[np.intp], old: NDArray[np.intp], new: int) -> NDArray[np.intp]:
        """Return which of the two leaves has fewer training rows."""
        return np.where(self._m[fits, old] < self._m[fits, new], old, new)

    def look(self, fits: NDArray[np.intp], old: NDArray[np.intp], new: int, sums: Array, reached: Array) -> None:
        """Find the best cuts of two leaves, given histograms of the smaller one, that of the numbers of rows cumulated."""
        small = self.smaller(fits, old, new)
        for held, part in ((self._sums, sums), (self._reached, reached)):
            held[old + new - small, fits] = held[old, fits] - part
            held[small, fits] = part
        self._weigh(fits, old)
        self._weigh(fits, np.full_like(old, new))

    def _weigh(self, fits: NDArray[np.intp], leaf: NDArray[np.intp]) -> None:
        """Find the best cut of one leaf of each fit."""
        G_left, m_left = np.cumsum(self._sums[leaf, fits], axis=-1), self._reached[leaf, fits]
        G, m = self._G[fits, leaf][:, None, None], self._m[fits, leaf][:, None, None]
        gain, right, spare = m_left + PENALTY, G - G_left, m - m_left
        few = np.minimum(m_left, spare) < self._least
        spare += PENALTY  # from here on in place, as new arrays take longer than what is done to them
        np.divide(G_left, gain, out=gain)
        gain *= G_left
        gain += G * self.value[fits, leaf][:, None, None]
        np.divide(right, spare, out=spare)
        spare *= right
        gain += spare
        gain[few] = 0.0
        best = gain.reshape(len(fits), -1).argmax(axis=1)
        for kept, found in ((self._gain, gain), (self._G_left, G_left), (self._m_left, m_left)):
            kept[fits, leaf] = found.reshape(len(fits), -1)[np.arange(len(fits)), best]
        self._cut[fits, leaf] = best
