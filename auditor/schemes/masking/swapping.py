"""Data swapping and rank swapping.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``s``, share of a column's values that are exchanged | scalar in [0, 1] | dalenius1982 |
| ``2h`` | ``2⌊s n / 2⌋`` records, drawn anew for every column and paired at random; each gets the other's value | scalar | |
| ``within`` | unperturbed column in which the records of a pair agree | | |

Every column keeps its distribution exactly; with ``within`` also jointly with that column. A share
``1 − s`` of all values is released unperturbed. Squared error hides this, since a swapped value is
an independent draw with error twice the variance. One copy does not show which values are swapped.
Several independent copies mostly agree on the original.

Rank swapping: values of a column exchanged with others of similar rank.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``p``, largest change of a value's rank, as a share of the records | scalar in [0, 1] | moore1996 |
| ``w`` | ``⌊p n⌋`` | scalar | |
| ``i ↔ j`` | from the lowest rank up: a free i is exchanged with a random free j among ``i + 1 … i + w`` | | |

Every column keeps its distribution exactly; correlations shrink. A value is known to an interval of
``2w`` ranks, which is narrow in the middle of a dense column. Copies are independent, so pooling
intersects the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError, did_you_mean
from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import check_shares
from auditor.schemes.masking.masked import MaskedScheme
from auditor.types import Array, Indices


@register
class DataSwapping(MaskedScheme):
    """A share of each column's values (level) swapped between random records.

    Independent in every copy.
    """

    name = "data-swapping"
    claims = "Nothing under collusion: two of three copies agree on most originals. Every column keeps its values."
    reference = "dalenius1982; hundepool2012, chapter 3"
    assumes = "Doubt about the owner of a value is enough protection, and recipients never pool their copies."
    level_of_original = 0.0
    trial_levels = (0.2, 0.6, 0.4)

    class Parameters(PluginParameters):
        """Restriction on the pairs."""

        within: str | None = Field(
            None,
            description="column whose value both records of a pair have; it is not swapped itself",
        )

    def check_levels(self, levels: Sequence[float]) -> None:
        check_shares(levels, "the share of values exchanged", zero=True, one=True)

    def check_table(self, table: Table, asked: DataUse) -> None:
        super().check_table(table, asked)
        self._kept(table)

    def _kept(self, table: Table) -> int | None:
        name = self.parameters.within
        if name is not None and name not in table.attributes:
            raise AuditorError(
                f"within: there is no attribute {name!r}{did_you_mean(name, table.attributes)}"
            )
        return None if name is None else table.attributes.index(name)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y, kept = X.copy(), None if self.table is None else self._kept(self.table)
        strata = [np.arange(len(X))] if kept is None else rows_by_value(X[:, kept])
        for j in (column for column in range(X.shape[1]) if column != kept):
            for rows in strata:
                one, other = pairs(rows, level, rng)
                Y[one, j], Y[other, j] = X[other, j], X[one, j]
        return Y


def rows_by_value(x: Array) -> list[Indices]:
    """Return the rows of each distinct value of a column, ascending.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_value(np.array([3.0, 1.0, 3.0]))]
    [[1], [0, 2]]
    """
    return np.split(
        np.argsort(x, kind="stable"), np.cumsum(np.unique(x, return_counts=True)[1])[:-1]
    )


def pairs(rows: Indices, share: float, rng: Rng) -> tuple[Indices, Indices]:
    """Return random pairs of rows as two arrays, shapes (h,).

    ``h = ⌊share · n / 2⌋``.
    """
    half = int(share * len(rows) / 2)
    chosen = rng.permutation(rows)[: 2 * half]
    return chosen[:half], chosen[half:]


SWAP, SHIFT = 5e-7, 2e-11
"""Seconds per exchange, and per rank of the window to close its gap."""


@register
class RankSwapping(MaskedScheme):
    """Values swapped with others at most a share p of ranks away (level p).

    Each column separately, independent in every copy.
    """

    name = "rank-swapping"
    claims = "Nothing under collusion: a value's rank lies in the intersection of all intervals. Every column keeps its values."
    reference = "moore1996; hundepool2012, chapter 3"
    assumes = "Values of similar rank differ in size, and recipients never pool their copies."
    level_of_original = 0.0
    trial_levels = (0.05, 0.2, 0.1)

    def check_levels(self, levels: Sequence[float]) -> None:
        check_shares(levels, "p, the share of all ranks that a value may move", zero=True, one=True)

    def making_seconds(self, levels: Sequence[float], rows: int, width: int) -> float:
        return sum((SWAP + SHIFT * level * rows) * rows * width for level in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            order = np.argsort(x, kind="stable")
            Y[order, j] = x[order[partners(len(x), int(level * len(x)), rng)]]
        return Y


def partners(n: int, window: int, rng: Rng) -> Indices:
    """Return the rank that every rank is exchanged with, shape (n,).

    At most ``window`` away; its own rank if none is free.
    """
    other, u = np.arange(n), rng.random(n).tolist()
    # Free ranks, ascending, from `free[first]` to the end of the window. One list slides over all
    # ranks: a new search per window is a hundred times as slow for wide windows.
    free, first, end = list[int](), 0, 0
    while first < len(free) or end < n:
        i = free[first] if first < len(free) else end
        stop = min(i + window + 1, n)
        free.extend(range(end, stop))
        first, end = first + 1, max(end, stop)
        if first < len(free):
            j = free.pop(first + int(u[i] * (len(free) - first)))
            other[i], other[j] = j, i
    return other
