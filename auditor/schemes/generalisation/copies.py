"""k-anonymous copies, alone and pooled.

A copy is a structured array of records, sliced and joined like any array.

| field | meaning | type |
| --- | --- | --- |
| ``class`` | number of the record's class: records equal in all quasi-identifiers; −1: suppressed | integer |
| ``low``, ``high`` | range of each attribute: of a quasi-identifier its class's, of any other the value itself | N numbers each |

In a suppressed record quasi-identifiers range over the whole domain, and other values are the
table's means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array, Block, ClassRecords, Coalition, Indices


def blank(rows: int, width: int) -> ClassRecords:
    """Return memory for records of ``width`` attributes."""
    return np.empty(
        rows,
        dtype=[("class", np.intp), ("low", np.float64, (width,)), ("high", np.float64, (width,))],
    )


def compose(
    values: Array, quasi: Sequence[int], numbers: Indices, low: Array, high: Array
) -> ClassRecords:
    """Return a copy.

    Parameters
    ----------
    values : ndarray of shape (n, N)
        Released values of all attributes that are no quasi-identifiers.
    quasi : sequence of q int
        Places of the quasi-identifiers.
    numbers : ndarray of shape (n,)
        Class of each record.
    low, high : ndarrays of shape (n, q)
        Its range in each quasi-identifier.
    """
    copy = blank(*values.shape)
    copy["class"], copy["low"], copy["high"] = numbers, values, values
    copy["low"][:, quasi], copy["high"][:, quasi] = low, high
    return copy


def to_columns(copy: ClassRecords, quasi: Sequence[int]) -> Array:
    """Return the released table, shape (n, q + N + 1).

    Lower bounds, upper bounds, other attributes, suppression flag.
    """
    low, high = copy["low"], copy["high"]
    return np.hstack(
        [low[:, quasi], high[:, quasi], np.delete(low, quasi, axis=1), copy["class"][:, None] < 0]
    )


def from_columns(columns: Array, quasi: Sequence[int]) -> ClassRecords:
    """Return a copy from the released table; see ``to_columns``."""
    q = len(quasi)
    low, high, others, suppressed = np.split(columns, [q, 2 * q, -1], axis=1)
    values = np.zeros((len(columns), q + others.shape[1]))
    values[:, np.delete(np.arange(values.shape[1]), quasi)] = others
    found = np.unique(columns[:, : 2 * q], axis=0, return_inverse=True)[1].ravel()
    return compose(values, quasi, np.where(suppressed[:, 0] > 0, -1, found), low, high)


def classes(copies: Sequence[ClassRecords]) -> Indices:
    """Return each record's class in every copy held, shape (b, k).

    Records equal in all cannot be distinguished by quasi-identifiers.
    """
    return np.stack([copy["class"] for copy in copies], axis=1)


def released(copies: Sequence[ClassRecords], attribute: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return an attribute's values from the first copy that has the record.

    Shape (b,), with an indicator of records that some copy does not suppress.
    """
    shown = classes(copies) >= 0
    values = np.stack([copy["low"][:, attribute] for copy in copies], axis=1)
    return values[np.arange(len(shown)), shown.argmax(axis=1)], np.asarray(shown.any(axis=1))


def ranges(copies: Sequence[ClassRecords]) -> tuple[Array, Array]:
    """Return each attribute's range over all copies that have the record.

    A record that all suppress has the first copy's range.
    """
    shown = classes(copies) >= 0
    shown[:, 0] |= ~shown.any(axis=1)
    low = [
        np.where(seen[:, None], copy["low"], -np.inf)
        for seen, copy in zip(shown.T, copies, strict=True)
    ]
    high = [
        np.where(seen[:, None], copy["high"], np.inf)
        for seen, copy in zip(shown.T, copies, strict=True)
    ]
    return np.max(low, axis=0), np.min(high, axis=0)


def tells(one: ClassRecords, other: ClassRecords) -> bool:
    """Whether a copy makes another useless: classes and ranges are nested.

    Then records share a class in both copies exactly when they share one in the first, and the
    first's ranges are the narrower ones.
    """
    mine, theirs = one["class"], other["class"]
    # place −1, the last, is for suppressed records
    of_class = np.empty(mine.max(initial=0) + 2, dtype=np.intp)
    of_class[mine] = theirs
    shown = theirs >= 0
    return bool(
        (of_class[mine] == theirs).all()
        and (mine >= 0)[shown].all()
        and (other["low"] <= one["low"])[shown].all()
        and (one["high"] <= other["high"])[shown].all()
    )


def sufficient(blocks: Iterable[Block], coalitions: Sequence[Coalition]) -> dict[Coalition, bool]:
    """Return whether one copy of each coalition makes its others useless."""
    parts = [[copy.copy() for copy in copies] for _, _, copies in blocks]
    whole = [np.concatenate(copy) for copy in zip(*parts, strict=True)]
    held = sorted({copy for coalition in coalitions for copy in coalition})
    told = {(i, j) for i in held for j in held if i != j and tells(whole[i - 1], whole[j - 1])}
    return {c: any(all(i == j or (i, j) in told for j in c) for i in c) for c in coalitions}
