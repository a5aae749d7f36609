"""k-anonymous copies pooled: which records look alike in all of them, and what is released of the sensitive attribute.

| symbol | meaning | shape |
| --- | --- | --- |
| copy | lower bounds, upper bounds, other attributes, a flag for suppression; see ``auditor.schemes.k_anonymity`` | (b, 2q + N − q + 1) |
| look | bounds and flags of every copy side by side: records alike in it cannot be told apart by their quasi-identifiers | (b, k(2q + 1)) |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array


def looks(copies: Sequence[Array], quasi: int) -> Array:
    """Return what a coalition sees of each record's identity, shape (b, k(2q + 1)), with ``quasi`` quasi-identifiers.

    Whether a record is suppressed is seen too: its bounds are the whole domain, and so may those of released records be.
    """
    seen = [part for copy in copies for part in (copy[:, : 2 * quasi], copy[:, -1:])]
    return np.hstack(seen) + 0.0  # −0 and 0 are one bound, and two as bytes


def released(copies: Sequence[Array], column: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return a column's values by the first copy that does not suppress the record, shape (b,), and which have one, shape (b,)."""
    value, there = copies[0][:, column].copy(), copies[0][:, -1] == 0
    for copy in copies[1:]:
        take = ~there & (copy[:, -1] == 0)
        value[take], there = copy[take, column], there | take
    return value, there
