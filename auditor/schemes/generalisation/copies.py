"""k-anonymous copies, alone and pooled: what stands in which column, which records look alike, and what is released of the others.

| symbol | meaning | shape |
| --- | --- | --- |
| copy | lower bounds, upper bounds, other attributes, a flag for suppression | (b, 2q + N − q + 1) |
| look | bounds and flags of every copy side by side: records alike in it cannot be told apart by their quasi-identifiers | (b, k(2q + 1)) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array


@dataclass(frozen=True)
class Layout:
    """Where a copy has what; it is public, and nobody else knows of columns.

    Attributes
    ----------
    quasi, others : tuples of int
        Places in the original.
    sensitive : int
        Place of the sensitive attribute among ``others``.
    """

    quasi: tuple[int, ...]
    others: tuple[int, ...]
    sensitive: int

    @classmethod
    def of(cls, attributes: Sequence[str], quasi: Sequence[str], sensitive: str) -> Layout:
        """Return the layout of copies of a table with these columns."""
        others = tuple(place for place, name in enumerate(attributes) if name not in quasi)
        return cls(tuple(map(attributes.index, quasi)), others, others.index(attributes.index(sensitive)))

    @property
    def target(self) -> int:
        """Place of the sensitive attribute in the original."""
        return self.others[self.sensitive]

    def compose(self, X: Array, low: Array, high: Array, suppressed: NDArray[np.bool_]) -> Array:
        """Return a copy; of a suppressed record nothing is left but column means."""
        others = X[:, list(self.others)]
        others = np.where(suppressed[:, None], others.mean(axis=0), others)
        return np.hstack([low, high, others, suppressed[:, None].astype(np.float64)])

    def middles(self, copy: Array) -> Array:
        """Return each record as one copy shows it: the middle of its bounds, and the other attributes, in the original's order."""
        q = len(self.quasi)
        out = np.empty((len(copy), q + len(self.others)))
        out[:, list(self.quasi)] = (copy[:, :q] + copy[:, q : 2 * q]) / 2.0
        out[:, list(self.others)] = copy[:, 2 * q : -1]
        return out

    def signatures(self, copies: Sequence[Array]) -> Array:
        """Return what a coalition sees of each record's identity, shape (b, k(2q + 1)).

        Whether a record is suppressed is seen too: its bounds are the whole domain, and so may those of released records be.
        """
        seen = [part for copy in copies for part in (copy[:, : 2 * len(self.quasi)], copy[:, -1:])]
        return np.hstack(seen) + 0.0  # −0 and 0 are one bound, and two as bytes

    def released(self, copies: Sequence[Array]) -> tuple[Array, NDArray[np.bool_]]:
        """Return sensitive values by the first copy that does not suppress the record, shape (b,), and which have one, shape (b,)."""
        column = 2 * len(self.quasi) + self.sensitive
        value, there = copies[0][:, column].copy(), copies[0][:, -1] == 0
        for copy in copies[1:]:
            take = ~there & (copy[:, -1] == 0)
            value[take], there = copy[take, column], there | take
        return value, there
