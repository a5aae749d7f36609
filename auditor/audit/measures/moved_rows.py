"""Rows of a copy that were moved, each by a rule that near records follow, too: what these tell of where a record went.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x, y`` | standard ranks of the originals and of the copy's cells, in the table's order | (n, N) |
| half | records in even places, or in odd ones: either is told by the other half alone, ``x`` being 0 in its own places | |
| window | ``WINDOW`` consecutive records, one every ``HOP`` | W |
| ``A_k`` | ``Σ_j (Σ_t x_tj · y_(t+k)j)²`` over a window's records t, for distances k up to ``REACH``; of rows turned round ``y_(k−t)j`` | |
| ``p_t`` | where record t went: by that k of the windows near it by which ``SIDE`` records before or after it fit best | (n,) |
| fit | ``Σ_j (Σ_t x_tj · y_(t+k)j)² / Σ_t y_(t+k)j²`` | |
| ``q_t`` | the place of the cell nearest to record t's, of a column or of a sum of all: where it went, if values are as they were | (n,) |
| ``d`` | differences ``q_(t+1) − q_t`` that most neighbours have, but for those that are where they were: 2 of a riffle, 1 of blocks | |
| ``B`` | ``y`` in place ``p_t``: columns that correlate with an attribute more than chance, and the record before, explain | (n, r) |

Row by row a copy whose rows stand further on, so many in each block, looks as safe as a shuffled one, and whoever made it knows where they
are. Where values are as they were, any rule shows in ``d``, of which records in no order have none twenty times; then ``p_t`` is what most
of ``q_(t−k) + k·d`` are, of ``NEAR`` neighbours on either side. Else windows are compared. A record says nothing of its own place, so that
of rows in no order ``B`` is chance. In a series a record's place is told by its neighbours; what is found there must say more than these
say by themselves, and the record's own cells, in the whole table or in a quarter of it. *Not found*: rows shuffled within blocks; and where
values were perturbed besides, or are so few that they tell no row, other rules than blocks, blocks shorter than some fifty rows, columns
moved each by itself, and rows further away than ``REACH``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from auditor.numerics.statistics import beyond_chance, standard, standard_ranks
from auditor.types import Array, Indices

WINDOW, HOP = 64, 16
"""A half's 32 records of two attributes tell exact copies from the best of 4,096 distances by seven standard errors."""
REACH = 1024
SIDE = 8
"""Records of the other half on one side that tell on which side of a block's edge a record stands."""
MOST_COLUMNS = 8
"""Columns, those with the most different values, that tell where records went: each takes a second for 100,000 records."""
NEAR, RULES, FOLLOWED = 4, 3, 20
"""Neighbours on either side that tell a place, differences that are tried, and neighbours of which one says that there is a rule."""
LOOKED_AT, STRETCHES = 4_000, 4
"""Records, in stretches from all over, that say whether a table is gone through: few blocks between them are lost to this."""
ENOUGH = 0.87
"""Correlation of ranks from which three quarters of a column's variance are known, and nothing else is looked for."""


def moved_rows(X: Array, Y: Array) -> Array:
    """Return ``B`` of a copy, shape (n, r), of originals X, shape (n, N), and the copy's cells Y, shape (n, N), in the table's order."""
    n, x, y = len(X), standard_ranks(X), standard_ranks(Y)
    for place in whereabouts(X, Y, x, y) if n >= 2 * WINDOW else ():
        told = np.any([tells(x[some], y[some], y[place[some]]) for some in (slice(None), *parts(n))], axis=0)
        if told.any():
            return Y[place][:, told]
    return np.empty((n, 0))


def tells(x: Array, own: Array, there: Array) -> NDArray[np.bool_]:
    """Return which columns of ranks that stand elsewhere tell of an attribute, shape (N,): more than its own, and the record before."""
    n, N = x.shape
    x, own, there = (standard(part) for part in (x, own, there))
    r, by_own, before = np.abs(x.T @ there) / n, np.abs(x.T @ own) / n, np.abs((x[1:] * x[:-1]).sum(axis=0)) / n
    least = beyond_chance(N * N * (1 + STRETCHES)) / np.sqrt(n)
    return np.asarray((r > np.maximum(by_own, before[:, None]) + least).any(axis=0))


def whereabouts(X: Array, Y: Array, x: Array, y: Array) -> Iterator[Indices]:
    """Yield ``p`` by rules that values follow, and their ranks; by windows, of a long table if a stretch of it says that it is worth it."""
    yield from (place for part in ((X, Y), (x, y)) if (place := followed(*part)) is not None)
    if all((np.sum(x[some] * y[some], axis=0) > ENOUGH * np.square(x[some]).sum(axis=0)).all() for some in parts(len(x))):
        return  # they are where they were
    if len(X) <= LOOKED_AT or any(moved_rows(X[some], Y[some]).shape[1] for some in parts(len(X), LOOKED_AT)):
        yield places(x, y)


def parts(n: int, most: int | None = None) -> list[slice]:
    """Return ``STRETCHES`` parts of a table, or the ends of them that have so many records together."""
    edges = np.linspace(0, n, STRETCHES + 1).astype(int).tolist()
    return [slice(start if most is None else stop - most // STRETCHES, stop) for start, stop in pairwise(edges)]


def followed(x: Array, y: Array) -> Indices | None:
    """Return ``p``, shape (n,), by the differences ``d`` of the column, or sum of all, that has most of one; None where none has."""
    n, size = len(x), np.abs(x).max(axis=0)
    weights = 1.0 / (np.where(size > 1e-300, size, 1.0) * np.arange(1, x.shape[1] + 1))
    with np.errstate(over="ignore"):
        both = [sum(part[:, j] * weight for j, weight in enumerate(weights)) for part in (x, y)]  # bit for bit the same of the same cells
    q, rules, most = np.arange(n), np.empty(0, dtype=np.intp), FOLLOWED
    for of_x, of_y in (*zip(x.T, y.T, strict=True), both):
        order = of_y.argsort(kind="stable")
        cells = of_y[order]
        if np.count_nonzero(cells[1:] > cells[:-1]) < n / 2:
            continue  # which of the equal ones it is nobody can tell
        above = np.searchsorted(cells, of_x).clip(1, n - 1)
        nearest = order[above - (of_x - cells[above - 1] < cells[above] - of_x)]
        moved = nearest != np.arange(n)
        d, times = np.unique(np.diff(nearest)[moved[1:] & moved[:-1]], return_counts=True)
        times[d == 0] = 0
        if times.max(initial=0) > most:
            q, rules, most = nearest, d[np.argsort(-times)[:RULES]][np.sort(times)[::-1][:RULES] > FOLLOWED], times.max()
    if not len(rules):
        return None
    k = np.array([step for step in range(-NEAR, NEAR + 1) if step])
    near = np.pad(q, NEAR, constant_values=-(n**2))[np.arange(n)[:, None] + NEAR + k]
    told = np.hstack([near - k * d for d in rules])
    votes = np.zeros(told.shape)
    for place, weight in zip(told.T, np.tile(1.0 / k**2, len(rules)), strict=True):  # one by one: memory grows with the rows alone
        votes += (told == place[:, None]) * weight
    votes[(told < 0) | (told >= n)] = 0.0
    return np.asarray(np.take_along_axis(told, votes.argmax(axis=1)[:, None], axis=1)[:, 0].clip(0, n - 1))


def places(x: Array, y: Array) -> Indices:
    """Return ``p``, shape (n,), of ranks of shape (n, N)."""
    tells = np.argsort([-len(np.unique(column)) for column in y.T], kind="stable")[:MOST_COLUMNS]
    x, y, found = x[:, tells], y[:, tells], np.arange(len(x))
    for half in (0, 1):
        others = np.where((np.arange(len(x)) % 2 != half)[:, None], x, 0.0)
        step, sum_of = windows(others, y)
        found[half::2] = best_of(others, y, np.arange(half, len(x), 2), step, sum_of)
    return found


def windows(x: Array, y: Array) -> tuple[Indices, Indices]:
    """Return the two ways in which each window's records fit the copy best, ``p = a + s·t``: s, 1 and −1, and a, of shape (w, 2)."""
    starts = np.arange(0, len(x) - WINDOW + 1, HOP)
    far = np.pad(y, ((REACH, REACH), (0, 0)))
    offsets = np.empty((len(starts), 2), dtype=np.intp)
    for some in np.array_split(np.arange(len(starts)), -(-len(starts) * x.shape[1] // 256)):
        # Correlations with all distances at once, by Fourier transforms of 2,160 = 2⁴·3³·5 numbers: (window, column, distance).
        near = np.fft.rfft(sliding_window_view(far, WINDOW + 2 * REACH, axis=0)[starts[some]], 2160)
        window = sliding_window_view(x, WINDOW, axis=0)[starts[some]]
        for way, turned in enumerate((window, window[:, :, ::-1])):
            A = (np.fft.irfft(near * np.fft.rfft(turned, 2160).conj(), 2160)[:, :, : 2 * REACH + 1] ** 2).sum(axis=1)
            if way == 0:
                A[:, REACH] = 0.0  # a record's own row
            offsets[some, way] = A.argmax(axis=1) - REACH
    offsets[:, 1] += 2 * starts + WINDOW - 1
    return np.broadcast_to(np.array([1, -1]), offsets.shape), offsets


def best_of(x: Array, y: Array, rows: Indices, step: Indices, offset: Indices) -> Indices:
    """Return where the records in places ``rows`` went, by the ways of the six windows that begin before each, or just after."""
    window = np.clip(rows[:, None] // HOP + np.arange(-WINDOW // HOP, 2), 0, len(step) - 1)
    s, to = step[window].reshape(len(rows), -1), offset[window].reshape(len(rows), -1)
    to = to + s * rows[:, None]
    most, edge = np.full(to.shape, -1.0), 2 * SIDE + 1
    x, y = (np.pad(part, ((edge, edge), (0, 0))) for part in (x, y))
    inside = (to >= 0) & (to < len(y) - 2 * edge)
    for side in (-1, 1):
        A, square = np.zeros((2, *to.shape, x.shape[1]))
        for d in side * np.arange(1, 2 * SIDE, 2):
            there = y[np.where(inside, to, 0) + edge + s * d]
            A, square = A + x[rows + edge + d][:, None, :] * there, square + there**2
        fit = (A**2 / np.where(square > 0, square, 1.0)).sum(axis=2)  # of x's squares, what y explains: all where it is x
        most = np.maximum(most, np.where(inside, fit, -1.0))
    best = most.argmax(axis=1)[:, None]
    return np.asarray(np.clip(np.take_along_axis(to, best, axis=1)[:, 0], 0, len(y) - 2 * edge - 1))
