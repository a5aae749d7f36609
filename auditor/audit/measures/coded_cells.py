"""What cells say that no line through them follows: residues, cells that undo one another, and noise that other records share.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x`` | an attribute of the records | (n,) |
| ``Y`` | cells of a coalition | (n, p) |
| ``v`` | a column of ``Y``; or of two copies' columns of the attribute ``y_c − y_d``, ``y_c / y_d`` and ``y_c XOR y_d`` | (n,) |
| ``m`` | a modulus: powers of ten, and the largest of which all differences of ``x − v`` between records are multiples | scalar |
| ``r`` | ``v mod m``, a quotient or XOR, of which ranks correlate most with ``x``: more than those of a line do, by no chance | (n, 1) |
| ``s`` | mean of a column's cells over other records: one, two or four before or after, or those with the same cell elsewhere | (n, q) |

Noise in whole hundreds leaves an age as it was, ``y mod 100``, and so do low digits that hold it; two shares of a secret look like noise
each, and are its sum ``mod m``. Noise that is one draw for a block of records, or for all with the same code, is told by their mean; at a
block's edge that mean is taken, of those before and those after, which is nearer to the record's own cell.
*Not found*: ciphers, and what takes three cells of a record to undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from auditor.audit.measures.moved_rows import ENOUGH, parts
from auditor.numerics.statistics import beyond_chance, standard, standard_ranks
from auditor.types import Array, Indices

LOOKED_AT = 2_000
"""Records by which it is decided what tells most: from all over those that teach."""
POWERS = range(-6, 10)
"""Of ten, that are tried as moduli."""
MOST_PAIRED = 8
"""Copies, the first, of which each two are tried together."""
MOST_ALIKE = 0.25
"""Different values of a column, as a share of its records, by which records are alike: of more they are alone, or two or three."""
BESIDE = 1, 2, 4
"""Records on either side whose mean is taken."""


def residue(x: Array, Y: Array, own: Array) -> Array:
    """Return ``r``, shape (n, 1); none, (n, 0), where nothing tells more than a line and than each cell.

    Parameters
    ----------
    x : ndarray of shape (n,)
    Y : ndarray of shape (n, p)
    own : ndarray of shape (n, k)
        The attribute's columns, by copy.
    """
    some = slice(None, None, -(-len(x) // LOOKED_AT))
    line = np.column_stack([np.ones(len(x)), Y])[some]
    of, known = standard_ranks(x[some, None]), standard_ranks(np.column_stack([line @ np.linalg.lstsq(line, x[some])[0], Y[some]]))
    if (of.T @ known).max() > ENOUGH * len(of):
        return np.empty((len(x), 0))
    tried = standard_ranks(np.column_stack(list(guesses(x[some], Y[some], own[some]))))
    beyond = [further(of[part], known[part], tried[part]) for part in (slice(None), *parts(len(of)))]
    if np.max(beyond) <= beyond_chance(np.size(beyond)):
        return np.empty((len(x), 0))
    return next(islice(guesses(x, Y, own), int(np.max(beyond, axis=0).argmax()), None))[:, None]


def further(of: Array, known: Array, tried: Array) -> Array:
    """Return how far ranks tried, shape (n, g), correlate with ``of``, shape (n, 1), beyond all that are known, in standard errors."""
    by_known, by_tried = (np.abs(standard(of).T @ standard(ranks)).ravel() / np.sqrt(len(of)) for ranks in (known, tried))
    return np.asarray(by_tried - by_known.max())


def guesses(x: Array, Y: Array, own: Array) -> Iterator[Array]:
    """Yield each ``v mod m``, and each ``v`` that is no difference; zeros where there is none, so that all are in one order."""
    pairs = list(combinations(own.T[:MOST_PAIRED], 2))
    for v in (*Y.T, *(y - z for y, z in pairs)):
        # Of powers below 1, which are no sums of powers of two, what is left of whole numbers must be 0.
        yield from (np.mod(v, 10.0**power) if power >= 0 else np.mod(v * 10.0**-power, 1.0) for power in POWERS)
        apart = x - v
        step = common_step(apart - apart[0])
        # From the attribute's least value on: it begins again where the attribute ends, if that spans no more.
        yield np.mod(v + apart[0] - x.min(), step) if step > 0 else np.zeros_like(x)
    for y, z in pairs:
        yield np.divide(y, z, out=np.zeros_like(y), where=np.abs(z) > 1e-12 * np.abs(z).max())
        whole = all((0 <= part.min() and part.max() < 2.0**53 and (part == np.floor(part)).all()) for part in (y, z))
        yield (y.astype(np.int64) ^ z.astype(np.int64)).astype(float) if whole else np.zeros_like(x)


def common_step(values: Array) -> float:
    """Return the largest number of which all values are multiples, with up to six decimals; 0 if there is none.

    Examples
    --------
    >>> common_step(np.array([0.0, 0.5, -2.0])), common_step(np.array([0.0, 300.0, 800.0])), common_step(np.array([0.0, np.pi]))
    (0.5, 100.0, 0.0)
    """
    for unit in 10.0 ** np.arange(7):
        scaled = values * unit
        whole = np.round(scaled)
        size = np.abs(whole)
        if size.max(initial=0.0) < 2.0**53 and (np.abs(scaled - whole) <= 1e-6 + 1e-12 * size).all():
            return float(np.gcd.reduce(whole.astype(np.int64)) / unit)
    return 0.0


def shared(Y: Array) -> Array:
    """Return ``s`` of a copy's cells Y, shape (n, N), in the table's order: shape (n, q), of the columns that go by it."""
    n, N = Y.shape
    least = beyond_chance(N * N) / np.sqrt(n)
    values = [np.unique(column, return_inverse=True)[1].ravel() for column in Y.T]
    found, scores = list[Array](), standard_ranks(Y)
    for j, score in enumerate(scores.T):
        for before, after in (beside(Y[:, j], rows) for rows in BESIDE if score[1:] @ score[:-1] / n > least):
            found.append(np.where(np.abs(Y[:, j] - before) < np.abs(Y[:, j] - after), before, after))  # near by choice: no test
        alike_in = [c for c, which in enumerate(values) if c != j and which.max() < MOST_ALIKE * n]
        means = [alike(Y[:, j], values[c]) for c in alike_in]
        # A column that goes with the other says so itself, and its groups' means no more.
        by_means = [float(score @ standard_ranks(mean[:, None])[:, 0]) for mean in means]
        told = [(by - abs(float(score @ scores[:, c]))) / n for c, by in zip(alike_in, by_means, strict=True)]
        if max(told, default=0.0) > least:
            found.append(means[int(np.argmax(told))])
    return np.column_stack([np.empty((n, 0)), *found])


def beside(y: Array, rows: int) -> tuple[Array, Array]:
    """Return the mean of so many cells before each, and after it, shape (n,); at an end those there are, or the cell itself.

    Examples
    --------
    >>> [side.tolist() for side in beside(np.array([0.0, 8.0, 1.0, 3.0, 0.0, 0.0]), 4)]
    [[0.0, 0.0, 4.0, 3.0, 3.0, 3.0], [3.0, 1.0, 1.0, 0.0, 0.0, 0.0]]
    """

    def before(values: Array) -> Array:
        """Return the mean of those before each."""
        places, sums = np.arange(len(values)), np.concatenate([[0.0], np.cumsum(values)])
        count = np.minimum(places, rows)
        return np.asarray(np.where(count > 0, sums[places] - sums[places - count], values) / np.maximum(count, 1))

    return before(y), before(y[::-1])[::-1]


def alike(y: Array, which: Indices) -> Array:
    """Return the mean cell of the other records of each one's group, shape (n,); of one that is alone the mean of all.

    Examples
    --------
    >>> alike(np.array([1.0, 3.0, 5.0, 9.0]), np.array([0, 0, 0, 1])).tolist()
    [4.0, 3.0, 2.0, 4.5]
    """
    counts = np.bincount(which)[which] - 1
    return np.asarray(np.where(counts > 0, (np.bincount(which, y)[which] - y) / np.maximum(counts, 1), y.mean()))
