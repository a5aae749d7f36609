"""Values that a copy shows as they are: squared error, in which a few large values count for most, may not show them at all.

| symbol | meaning |
| --- | --- |
| ``s`` | share of the records whose released value rounds to the original; of a continuous column: is it, in single precision |
| | of several copies: the value that most of them show, if two or more do |
| ``c`` | share of the records with the commonest value: what always naming that one is right of |
| ``1 − (1 − s)/(1 − c)`` | of the values that this misses, the share that are shown; 0 where a copy shows no more |
| ``u`` | how far a cell, or a guess, is from the value, over how near it must be to round to it; at most 1 is a hit |
| ``C, A, B`` | records that are hit; with ``1 < u ≤ 2w + 1``, where w is the least with 64 in A; with ``2w + 1 < u ≤ 4w + 1`` |
| ``μ`` | hits that noise makes whose law goes on smoothly, or with a peak as Laplace's: ``A/2 · 1/Σ_{k ≤ w} q^k``, ``q = (B/A)^(1/w)``; |
| | or, if that is more, hits of ``y_t`` by the 16 records with cells nearest to ``y_t`` but not equal: values that are exchanged |

A copy that is cut off at its 97th percentile keeps nine tenths of the variance of a long tail
unknown, and shows 97 of 100 values. Of copies whose noise follows a law ``noise-follows-law`` looks
for records without any; those without a law have this figure.

Of copies from files some records may stand as they were among others that are perturbed, in every
second row or in one of a hundred: to a mean over records they are as nothing, and to whoever knows
which they are the table. ``C − μ`` of them are too many. Values that 2 % of the records have are
left out, and 0, as bounds that are cut off at, fillings and what is multiplied are hit without
having been kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import CellContext
from auditor.numerics.statistics import Z_95
from auditor.results.in_clear import KEPT, SHOWN
from auditor.results.records import Measurement
from auditor.types import Array, Coalition, Indices

Mask = NDArray[np.bool_]
SINGLE = 2.0**-23
"""What single precision keeps of a value, as a share of its size."""
MOST_COMPARED = 16
"""Copies of which it is asked which agree: the first."""
HEAPED = 0.02
"""Share of a column's cells from which one value is a heap."""
NEAREST, BESIDE = 64, 8
"""Records that tell how many are hit by chance: by their distance, and on either side by their
cells."""
WIDER = 1.0, 2.0**7, 2.0**14
"""Times single precision, how near a continuous value counts as kept: one that is off by a
millionth is known as well."""
TOO_MANY, FEWEST_KEPT = 5.0, 6
"""Deviations of ``C − μ``, of variance 4 μ + 1 with what μ itself is off by, and hits, from which
on values were kept."""


def shown_records(
    context: CellContext,
    X: Array,
    copies: Sequence[Array],
    asked: Sequence[Coalition],
    steps: Array,
) -> list[Measurement]:
    """Return the share of each attribute's values that each copy shows as they are, and that all copies show two times at least.

    Parameters
    ----------
    context : CellContext
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N)
    asked : sequence of tuple of int
        The coalitions that are audited: others are left out.
    steps : ndarray of shape (N,)
        What values are recorded in, NaN of continuous columns.
    """
    common, records = np.array([commonest(x) for x in X.T]), list[Measurement]()
    for coalition in (one for one in asked if len(one) in (1, len(copies))):
        share = as_they_are(X, said([copies[copy - 1] for copy in coalition]), steps).mean(axis=0)
        beyond = np.clip(
            1.0 - np.divide(1.0 - share, 1.0 - common, out=np.ones_like(share), where=common < 1.0),
            0.0,
            None,
        )
        error = np.divide(
            np.sqrt(share * (1.0 - share) / len(X)),
            1.0 - common,
            out=np.zeros_like(share),
            where=common < 1.0,
        )
        for name, value, spread in zip(
            context.attributes, beyond.tolist(), error.tolist(), strict=True
        ):
            interval = max(0.0, value - Z_95 * spread), min(1.0, value + Z_95 * spread)
            records.append(
                context.record(
                    SHOWN, coalition, value, spread, interval, attribute=name, error_bar="sampling"
                )
            )
    return records


def said(copies: Sequence[Array]) -> Array:
    """Return the values of a copy, or those that two of several copies agree on and NaN elsewhere, shape (n, N)."""
    if len(copies) == 1:
        return copies[0]
    found = [
        most_shown(np.column_stack(columns))
        for columns in zip(*(copy.T for copy in copies), strict=True)
    ]
    return np.column_stack([np.where(number > 1, value, np.nan) for value, number in found])


def most_shown(Y: Array) -> tuple[Array, Indices]:
    """Return the value that most of some copies' cells hold, and how many do, shapes (n,), of cells of shape (n, k); of ties the first.

    Examples
    --------
    >>> most_shown(np.array([[1.0, 2.0, 2.0], [3.0, 4.0, 5.0]]))
    (array([2., 3.]), array([2, 1]))
    """
    Y = Y[:, :MOST_COMPARED]
    number = (Y[:, :, None] == Y[:, None, :]).sum(axis=2)
    best = number.argmax(axis=1)[:, None]
    return np.take_along_axis(Y, best, axis=1)[:, 0], np.take_along_axis(number, best, axis=1)[:, 0]


def kept_records(
    context: CellContext,
    X: Array,
    guesses: Sequence[Array],
    steps: Array,
    coalition: Coalition,
    attack: str | None = None,
) -> list[Measurement]:
    """Return the share of each attribute's values that were kept, of those with any: by the guess, shape (n, N) or (n, 1), with most."""
    found, knowledge = list[Measurement](), None if attack is None else "perfect"
    for x, name, step, *cells in zip(
        X.T,
        context.attributes,
        steps,
        *(np.broadcast_to(Y, X.shape).T for Y in guesses),
        strict=True,
    ):
        share = max(kept(x, y, step) for y in cells)
        error = np.sqrt(share * max(0.0, 1.0 - share) / len(X))
        interval = max(0.0, share - Z_95 * error), min(1.0, share + Z_95 * error)
        if share > 0:
            who = {"attribute": name, "attack": attack, "knowledge": knowledge}
            found.append(
                context.record(KEPT, coalition, share, error, interval, **who, error_bar="sampling")
            )
    return found


def kept(x: Array, y: Array, step: float) -> float:
    """Return ``C − μ`` as a share of the records that may be among them, where it is too much for chance, else 0.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(2, 1_000))
    >>> [round(kept(x[0], np.where(np.arange(1_000) < some, x[0], x[0] + x[1]), np.nan), 3) for some in (0, 20)]
    [0.0, 0.02]
    """
    return max(
        _kept(x, y, within(x, step) * wider) for wider in (WIDER if np.isnan(step) else WIDER[:1])
    )


def _kept(x: Array, y: Array, reach: Array) -> float:
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    free = (counts[which] < max(2.0, HEAPED * len(x))) & (x != 0)
    left = np.abs(y - x)
    hit = free & (left <= reach)
    if hit.sum() < FEWEST_KEPT:
        return 0.0
    rest = free & ~hit & (reach > 0)
    chance = max(by_noise(left[rest], reach[rest]), by_others(x, y, reach, free))
    beyond = float(hit.sum() - chance)
    return beyond / float(free.sum()) if beyond > TOO_MANY * np.sqrt(4.0 * chance + 1.0) else 0.0


def by_noise(left: Array, reach: Array) -> float:
    """Return how many records noise hits, as those that it does not hit tell."""
    with np.errstate(over="ignore"):
        u = np.sort(left / reach)
        w = np.ceil((u[min(NEAREST, len(u)) - 1] - 1.0) / 2.0) if len(u) else 0.0
        A, B = np.diff(np.searchsorted(u, [1.0, 2.0 * w + 1.0, 4.0 * w + 1.0], "right"))
    if not 0.0 < w < np.inf:
        return 0.0
    rate = np.log(A / max(0.5, min(A, B))) / w  # q = e^−rate
    return float(A / 2.0 / (-np.expm1(-rate * w) / np.expm1(rate) if rate > 0 else w))


def by_others(x: Array, y: Array, reach: Array, free: Mask) -> float:
    """Return how many cells of the records ``free`` are hit by the value of another with a cell beside theirs."""
    order, places = np.argsort(y, kind="stable"), np.arange(1, BESIDE + 1)[:, None]
    cells, reach = y[free], reach[free]
    below, above = (
        np.searchsorted(y[order], cells, "left") - places,
        np.searchsorted(y[order], cells, "right") + places - 1,
    )
    near = x[order[np.clip(np.concatenate([below, above]), 0, len(x) - 1)]]
    return float((np.abs(near - cells) <= reach).sum() / len(near))


def within(X: Array, steps: Array | float) -> Array:
    """Return how near a value must be to round to the original, shape as X."""
    return np.asarray(np.where(np.isnan(steps), SINGLE * np.abs(X), (0.5 - 1e-9) * steps))


def as_they_are(X: Array, Y: Array, steps: Array) -> Mask:
    """Return which released values are the originals, shape (n, N).

    Examples
    --------
    >>> as_they_are(np.array([[30.0, 0.1], [31.0, 0.2]]), np.array([[30.4, 0.1], [31.6, 0.21]]), np.array([1.0, np.nan])).tolist()
    [[True, True], [False, False]]
    """
    return np.asarray(np.abs(Y - X) <= within(X, steps))


def commonest(x: Array) -> float:
    """Return the share of the records that have a column's commonest value."""
    return float(np.unique(x, return_counts=True)[1].max() / len(x))
