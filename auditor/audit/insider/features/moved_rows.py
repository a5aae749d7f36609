"""Feature families for moved rows: cells of the row where a record went.

Rows move one by one (``MovedRows``), or in blocks that are shifted or turned round:

| symbol | meaning | shape |
| --- | --- | --- |
| ``x, y`` | standard ranks of the originals, 0 where unknown, and of the copy's cells | (n, N) |
| window | ``WINDOW`` consecutive records, one every ``HOP`` | W |
| ``A_k`` | ``Σ_j (Σ_t x_tj · y_(t+k)j)²`` over a window's records t, k up to ``FURTHEST`` | |
| | for rows turned round, with ``y_(k−t)j`` | |
| ``p_t`` | place of record t, by that k of the windows near it by which ``SIDE`` records before or after it fit best | (n,) |
| fit | ``Σ_j (Σ_t x_tj · y_(t+k)j)² / Σ_t y_(t+k)j²`` | |
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from auditor.audit.insider.feature import MOST_PAIRED, Columns, Feature, Known, Shown
from auditor.base.types import Array, Indices
from auditor.numerics.statistics import beyond_chance, column_ranks, standard_ranks
from auditor.registry import register

FOLLOWED = 20
"""Neighbours that must move by the same distance before it counts as a rule."""
REACH, RULES = 8, 3
"""Neighbours on either side that vote for a record's place, and distances that are tried for
each."""


@register
class MovedRows(Feature):
    """Cells at the distance that stands out of all, forwards and from the end, and where a record's neighbours say that it went."""

    name, learns = "moved-rows", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        n, few = len(shown.flat), min(shown.flat.shape[1], MOST_PAIRED)
        there = np.isfinite(known.left)
        x = np.zeros(n)
        x[there] = standard_ranks(known.x[there][:, [known.attribute]])[:, 0]
        least = beyond_chance(2 * n * few) * np.sqrt(max(1, there.sum()))
        for c in range(few):
            moved = correlations(x, standard_ranks(shown.flat[:, [c]])[:, 0])
            for turned, k in enumerate(moved.argmax(axis=1).tolist()):
                if moved[turned, k] > least:
                    yield (
                        f"cell {c}, {k} rows {'from the end' if turned else 'further'}",
                        partial(at_distance, c, -1 if turned else 1, k),
                    )
        for copy in range(min(shown.cells.shape[1], MOST_PAIRED)):
            if (place := followed(known, shown.filled[:, copy])) is not None:
                for j in range(min(shown.cells.shape[2], MOST_PAIRED)):
                    yield (
                        f"cell {j} of copy {copy} where the record went",
                        partial(at_place, copy, j, place),
                    )


def correlations(x: Array, y: Array) -> Array:
    """Return ``|Σ_t x_t y_(k + t)|`` and ``|Σ_t x_t y_(−k − t)|`` by k, shape (2, n), without own rows."""
    n = len(x)
    of_x, of_y = np.fft.rfft(x).conj(), np.fft.rfft(y)
    moved = np.abs([np.fft.irfft(of_y * of_x, n), np.fft.irfft(of_y.conj() * of_x, n)])
    moved[0, 0] = 0.0
    return moved


def at_distance(c: int, step: int, k: int, shown: Shown) -> Array:
    """Return the cell k rows further, or that of the row which is as far from the end."""
    n = len(shown.flat)
    return shown.flat[step * (np.arange(n) + k) % n, c]


def at_place(copy: int, j: int, place: Indices, shown: Shown) -> Array:
    """Return the cell of the row in a record's new place."""
    return shown.filled[place, copy, j]


def followed(known: Known, y: Array) -> Indices | None:
    """Return where each record went, shape (n,), if known records show a rule; else None."""
    n, there = len(y), np.flatnonzero(np.isfinite(known.left))
    best: tuple[int, Array] = (FOLLOWED, np.empty(0))
    for j in range(y.shape[1]):
        for x, cells in ((known.x[:, j], y[:, j]), (known.ranks[:, j], column_ranks(y[:, j]))):
            q = np.full(n, np.nan)
            q[there] = nearest(x[there], cells)
            moved = q - np.arange(n)
            step = moved[1:] - moved[:-1]
            _, times = np.unique(step[np.isfinite(step) & (moved[1:] != 0)], return_counts=True)
            if times.max(initial=0) > best[0]:
                best = int(times.max()), q
    return voted(best[1]) if len(best[1]) else None


def nearest(x: Array, cells: Array) -> Array:
    """Return the place of the cell that is nearest to each value; NaN where several cells are."""
    order = cells.argsort(kind="stable")
    ordered = cells[order]
    above = np.searchsorted(ordered, x).clip(1, len(cells) - 1)
    at = above - (x - ordered[above - 1] < ordered[above] - x)
    alone = (ordered[np.minimum(at + 1, len(cells) - 1)] != ordered[at]) | (at == len(cells) - 1)
    found = np.where(
        alone & ((ordered[np.maximum(at - 1, 0)] != ordered[at]) | (at == 0)), order[at], -1
    )
    # a place that two records claim is neither's
    once = np.bincount(found + 1, minlength=len(cells) + 1)[found + 1] == 1
    return np.where(once & (found >= 0), found, np.nan)


def voted(q: Array) -> Indices:
    """Return each record's place, by the commonest distances from its known neighbours' places."""
    n, told, weights = len(q), list[Array](), list[float]()
    for k in (step for step in range(-REACH, REACH + 1) if step):
        near = np.full(n, np.nan)
        near[max(k, 0) : n + min(k, 0)] = q[max(-k, 0) : n - max(k, 0)]
        d, times = np.unique((q - near)[np.isfinite(q - near)], return_counts=True)
        for rule in np.argsort(-times, kind="stable")[:RULES]:
            if times[rule] > FOLLOWED / 2:
                told.append(near + d[rule])
                share = float(times[rule]) / float(times.sum())
                weights.append(share / (1.02 - share))  # odds that the rule holds
    if not told:
        return np.arange(n)
    candidates = np.stack(told, axis=1)
    candidates[(candidates < 0) | (candidates >= n)] = np.nan
    votes = np.zeros(candidates.shape)
    for place, weight in zip(candidates.T, weights, strict=True):
        votes += (candidates == place[:, None]) * weight
    best = np.take_along_axis(candidates, votes.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(np.isfinite(best), best, np.arange(n)).astype(np.intp)


WINDOW, HOP, FURTHEST = 64, 16, 1024
"""Records of a window, records from one window to the next, and the largest distance that is
tried."""
TURNED = 2160
"""Length of the Fourier transforms, at least ``WINDOW + 2 FURTHEST``."""
SIDE = 8
"""Records on one side that tell on which side of a block's edge a record stands."""
MOST_COLUMNS, MOST_SCANNED = 4, 20_000
"""Columns with the most different values, which place records; and records that are scanned."""
LOOKED_AT, STRETCHES = 4_000, 4
"""Records, in stretches from all over, that decide whether a long table is scanned."""


@register
class MovedBlocks(Feature):
    """Cells of the row where a record went, if near records moved by the same distance or were turned round together."""

    name, learns = "moved-blocks", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        """Yield the columns."""
        there = np.flatnonzero(np.isfinite(known.left))
        if len(shown.flat) < 2 * WINDOW or len(shown.flat) > MOST_SCANNED:
            return
        x = np.zeros(known.x.shape)
        x[there] = standard_ranks(known.x[there])
        y = standard_ranks(shown.filled[:, 0])
        if (np.abs((x[there] * y[there]).mean(axis=0)) > 0.2).any():
            return  # records are where they were
        place = best_of(x, y, np.arange(len(x)), *windows(x, y))
        for j in range(min(y.shape[1], MOST_COLUMNS)):
            yield f"cell {j} where near rows went", partial(at_place, 0, j, place)


def places(x: Array, y: Array) -> Indices:
    """Return ``p``, shape (n,), from ranks (n, N); even records are placed by odd ones, and vice versa."""
    tells, found = (
        np.argsort([-len(np.unique(column)) for column in y.T], kind="stable")[: 2 * MOST_COLUMNS],
        np.arange(len(x)),
    )
    x, y = x[:, tells], y[:, tells]
    for half in (0, 1):
        others = np.where((np.arange(len(x)) % 2 != half)[:, None], x, 0.0)
        found[half::2] = best_of(others, y, np.arange(half, len(x), 2), *windows(others, y))
    return found


def parts(n: int, most: int | None = None) -> list[slice]:
    """Return ``STRETCHES`` parts of a table, or the ends of them that have so many records together."""
    edges = np.linspace(0, n, STRETCHES + 1).astype(int).tolist()
    return [
        slice(start if most is None else stop - most // STRETCHES, stop)
        for start, stop in pairwise(edges)
    ]


def windows(x: Array, y: Array) -> tuple[Indices, Indices]:
    """Return s = 1, −1 and a of the best fits ``p = a + s·t`` of each window, shapes (w, 2)."""
    starts = np.arange(0, len(x) - WINDOW + 1, HOP)
    far = np.pad(y, ((FURTHEST, FURTHEST), (0, 0)))
    offsets = np.empty((len(starts), 2), dtype=np.intp)
    for some in np.array_split(np.arange(len(starts)), -(-len(starts) * x.shape[1] // 256)):
        # Correlations with all distances at once, by Fourier transforms of 2,160 = 2⁴·3³·5 numbers:
        # (window, column, distance).
        near = np.fft.rfft(
            sliding_window_view(far, WINDOW + 2 * FURTHEST, axis=0)[starts[some]], TURNED
        )
        window = sliding_window_view(x, WINDOW, axis=0)[starts[some]]
        for way, turned in enumerate((window, window[:, :, ::-1])):
            A = (
                np.fft.irfft(near * np.fft.rfft(turned, TURNED).conj(), TURNED)[
                    :, :, : 2 * FURTHEST + 1
                ]
                ** 2
            ).sum(axis=1)
            if way == 0:
                A[:, FURTHEST] = 0.0  # a record's own row
            offsets[some, way] = A.argmax(axis=1) - FURTHEST
    offsets[:, 1] += 2 * starts + WINDOW - 1
    return np.broadcast_to(np.array([1, -1]), offsets.shape), offsets


def best_of(x: Array, y: Array, rows: Indices, step: Indices, offset: Indices) -> Indices:
    """Return where ``rows`` went, by the fits of the six windows nearest to each."""
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
        # of x's squares, what y explains: all where it is x
        fit = (A**2 / np.where(square > 0, square, 1.0)).sum(axis=2)
        most = np.maximum(most, np.where(inside, fit, -1.0))
    best = most.argmax(axis=1)[:, None]
    return np.clip(np.take_along_axis(to, best, axis=1)[:, 0], 0, len(y) - 2 * edge - 1)
