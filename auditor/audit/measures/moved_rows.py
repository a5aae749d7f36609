"""Rows of a copy that were moved by blocks, each by a distance of its own or turned round: what near records tell of where a record went.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x, y`` | standard ranks of the originals and of the copy's cells, in the table's order | (n, N) |
| half | records in even places, or in odd ones: either is told by the other half alone, ``x`` being 0 in its own places | |
| window | ``WINDOW`` consecutive records, one every ``HOP`` | W |
| ``A_k`` | ``Σ_j (Σ_t x_tj · y_(t+k)j)²`` over a window's records t, for distances k up to ``REACH``; of rows turned round ``y_(k−t)j`` | |
| ``p_t`` | where record t went: by that k of the windows near it by which ``SIDE`` records before or after it fit best | (n,) |
| fit | ``Σ_j (Σ_t x_tj · y_(t+k)j)² / Σ_t y_(t+k)j²`` | |
| ``B`` | ``y`` in place ``p_t``: columns that correlate with an attribute more than chance, and the record before, explain | (n, r) |

Row by row a copy whose rows stand further on, so many in each block, looks as safe as a shuffled one, and whoever made it knows where they
are. A record says nothing of its own place, so that of rows in no order ``B`` is chance. In a series a record's place is told by its
neighbours; what is found there must say more than these say by themselves. *Not found*: blocks shorter than some fifty rows, rows shuffled
within blocks, columns moved each by itself, and rows further away than ``REACH``.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from auditor.numerics.statistics import standard_ranks
from auditor.process.deferred import scipy
from auditor.types import Array, Indices

WINDOW, HOP = 64, 16
"""A half's 32 records of two attributes tell exact copies from the best of 4,096 distances by seven standard errors."""
REACH = 1024
SIDE = 8
"""Records of the other half on one side that tell on which side of a block's edge a record stands."""
MOST_COLUMNS = 8
"""Columns, those with the most different values, that tell where records went: each takes a second for 100,000 records."""
LOOKED_AT = 4_000
"""Records, the first, that say whether a table is gone through: its rows were moved all over, or a few blocks are lost to this."""
BY_CHANCE = 1e-4
"""Chance that a copy of rows in no order is said to have them moved by blocks."""


def moved_rows(X: Array, Y: Array) -> Array:
    """Return ``B`` of a copy, shape (n, r), of originals X, shape (n, N), and the copy's cells Y, shape (n, N), in the table's order."""
    n, N = X.shape
    if n < 2 * WINDOW or (n > LOOKED_AT and not moved_rows(X[:LOOKED_AT], Y[:LOOKED_AT]).shape[1]):
        return np.empty((n, 0))  # a long table is gone through where its first rows say that it is worth it
    x, y = standard_ranks(X), standard_ranks(Y)
    place = places(x, y)
    r, before = x.T @ y[place] / n, np.abs((x[1:] * x[:-1]).sum(axis=0)) / n
    least = -scipy.special.ndtri(BY_CHANCE / (2 * N * N)) / np.sqrt(n)
    return Y[place][:, (np.abs(r) > before[:, None] + least).any(axis=0)]


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
