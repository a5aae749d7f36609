"""Guesses of blank cells that were filled by the column's mean.

The best linear estimate of a column from a coalition's copies is nearer to the mean where the cell
was filled. A recipient guesses «blank» within a distance of the mean.

| symbol | meaning | shape |
| --- | --- | --- |
| ``d`` | ``|x̂ − m|``: distance of the estimate from the mean | (n,) |
| ``t`` | distance within which most guesses are right, from one half of the records | scalar |

Estimate and ``t`` are fitted on one half of the records and judged on the other. All records within
``t = ∞``, or none, is the best guess without copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from auditor.audit.base.records import ALL, CellContext
from auditor.audit.base.release import Release
from auditor.results.records import Measurement
from auditor.types import Array, Coalition, Flags

ROWS = 20_000
"""First records that are looked at: the standard error is at most 0.4 %."""


def blank_records(
    context: CellContext, release: Release, coalitions: Sequence[Coalition]
) -> Iterator[Measurement]:
    """Yield shares of records guessed right, of each copy alone and of the largest coalition.

    Over all columns: the column with the largest gain.
    """
    blanks, parts, rows = release.table.blanks, list[tuple[Array, Array]](), 0
    if blanks is None:
        return
    for _, x, copies in release.blocks():
        held = np.stack(copies if release.undo is None else release.undo(copies))
        parts.append((x.copy(), held.copy()))
        rows += len(x)
        if rows >= ROWS:
            break
    X = np.concatenate([x for x, _ in parts])
    Y = np.concatenate([held for _, held in parts], axis=1)
    largest = max(coalitions, key=len)
    for coalition in coalitions:
        if len(coalition) > 1 and coalition != largest:
            continue
        seen = np.hstack([Y[copy - 1] for copy in coalition])
        found = {
            context.attributes[j]: guessed(X[:, j], seen, blanks[:rows, j])
            for j in np.flatnonzero(blanks[:rows].any(axis=0))
        }
        if found:
            found[ALL] = max(found.values(), key=lambda shares: shares[0] - shares[1])
        for name, (right, usual) in found.items():
            error = math.sqrt(right * (1.0 - right) / rows)
            for metric, value in (("blank_guessed", right), ("blank_gain", right - usual)):
                yield context.estimate(
                    metric, coalition, value, error, attribute=name, bounds=(-1.0, 1.0)
                )


def guessed(x: Array, seen: Array, blank: Flags) -> tuple[float, float]:
    """Return the shares of records guessed right with copies and without.

    Parameters
    ----------
    x : ndarray of shape (n,)
        A column, filled.
    seen : ndarray of shape (n, k)
        Columns of the copies.
    blank : ndarray of shape (n,)
        Whether the cell was filled.
    """
    halves = np.arange(len(x)) % 2 == 0
    right = 0.0
    for taught in (halves, ~halves):
        centre = seen[taught].mean(axis=0)
        weights = np.linalg.lstsq(seen[taught] - centre, x[taught] - x[taught].mean(), rcond=None)[
            0
        ]
        distance = np.abs((seen - centre) @ weights)
        order = np.argsort(distance[taught])
        # right guesses if the k nearest are taken for blank, and all others not
        gain = np.concatenate([[0], np.cumsum(np.where(blank[taught][order], 1, -1))])
        k = int(gain.argmax())
        reach = -1.0 if k == 0 else distance[taught][order][k - 1]
        right += np.count_nonzero((distance[~taught] <= reach) == blank[~taught])
    share = blank.mean()
    return float(right / len(x)), float(max(share, 1.0 - share))
