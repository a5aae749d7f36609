"""Values that a copy shows as they are: squared error, in which a few large values count for most, may not show them at all.

| symbol | meaning |
| --- | --- |
| ``s`` | share of the records whose released value rounds to the original; of a continuous column: is it, in single precision |
| | of several copies: the value that most of them show, if two or more do |
| ``c`` | share of the records with the commonest value: what always naming that one is right of |
| ``1 − (1 − s)/(1 − c)`` | of the values that this misses, the share that are shown; 0 where a copy shows no more |

A copy that is cut off at its 97th percentile keeps nine tenths of the variance of a long tail unknown, and shows 97 of 100 values. Of
copies whose noise follows a law ``noise-follows-law`` looks for records without any; those without a law have this figure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.audit.base.records import CellContext
from auditor.numerics.statistics import Z_95
from auditor.results.in_clear import SHOWN
from auditor.results.records import Measurement
from auditor.types import Array, Coalition, Indices

SINGLE = 2.0**-23
"""What single precision keeps of a value, as a share of its size."""
MOST_COMPARED = 16
"""Copies of which it is asked which agree: the first."""


def shown_records(context: CellContext, X: Array, copies: Sequence[Array], asked: Sequence[Coalition], steps: Array) -> list[Measurement]:
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
        beyond = np.clip(1.0 - np.divide(1.0 - share, 1.0 - common, out=np.ones_like(share), where=common < 1.0), 0.0, None)
        error = np.divide(np.sqrt(share * (1.0 - share) / len(X)), 1.0 - common, out=np.zeros_like(share), where=common < 1.0)
        for name, value, spread in zip(context.attributes, beyond.tolist(), error.tolist(), strict=True):
            interval = max(0.0, value - Z_95 * spread), min(1.0, value + Z_95 * spread)
            records.append(context.record(SHOWN, coalition, value, spread, interval, attribute=name, error_bar="sampling"))
    return records


def said(copies: Sequence[Array]) -> Array:
    """Return the values of a copy, or those that two of several copies agree on and NaN elsewhere, shape (n, N)."""
    if len(copies) == 1:
        return copies[0]
    found = [most_shown(np.column_stack(columns)) for columns in zip(*(copy.T for copy in copies), strict=True)]
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


def as_they_are(X: Array, Y: Array, steps: Array) -> Array:
    """Return which released values are the originals, shape (n, N).

    Examples
    --------
    >>> as_they_are(np.array([[30.0, 0.1], [31.0, 0.2]]), np.array([[30.4, 0.1], [31.6, 0.21]]), np.array([1.0, np.nan])).tolist()
    [[True, True], [False, False]]
    """
    return np.asarray(np.abs(Y - X) <= np.where(np.isnan(steps), SINGLE * np.abs(X), (0.5 - 1e-9) * steps))


def commonest(x: Array) -> float:
    """Return the share of the records that have a column's commonest value."""
    return float(np.unique(x, return_counts=True)[1].max() / len(x))
