"""Moved rows: cells of the row where a record went, found from its neighbours in the file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.numerics.statistics import beyond_chance, column_ranks, standard_ranks
from auditor.registry import register
from auditor.types import Array, Indices

FOLLOWED = 20
"""Neighbours that must move by the same distance before it counts as a rule."""
REACH, RULES = 8, 3
"""Neighbours on either side that vote for a record's place, and distances that are tried for
each."""


@register
class MovedRows(Feature):
    """Cells at the distance that stands out of all, forwards and from the end, and where a record's neighbours say that it went."""

    name, learns = "moved-rows", True

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
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
    """Return ``|Σ_t x_t y_(k + t)|`` and ``|Σ_t x_t y_(−k − t)|`` for every k, shape (2, n); a record's own row is left out."""
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
    """Return where each record went, shape (n,), if known records with the same value show a rule; else None."""
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
    """Return each record's place, by the commonest distances from the places of its known neighbours on either side."""
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
