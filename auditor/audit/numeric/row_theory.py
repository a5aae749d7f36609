"""Theory that needs the true rows an attack was fitted to: the audit asks for it after all estimates were made.

Some errors are no expectation over noise but follow from the table itself
(``Reconstruction.row_theory``). For these the original is read again, block by block, and no copy
is drawn again; nothing is read for an attack that has no such theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Reconstruction
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.read_only import readable
from auditor.types import Array


@dataclass(frozen=True)
class Originals:
    """A table's rows, block by block as often as wanted, for theory alone; blocks cannot be written to.

    Attributes
    ----------
    table : Table
    without : ndarray of int
        Rows left out, ascending.
    """

    table: Table
    without: NDArray[np.intp] = field(repr=False)

    def __iter__(self) -> Iterator[Array]:
        """Yield arrays of shape (b, N), in order of rows."""
        for start, stop in row_blocks(self.table.rows, self.table.width):
            x = self.table.read(start, stop)
            first, last = np.searchsorted(self.without, (start, stop))
            left = np.delete(x, self.without[first:last] - start, axis=0) if last > first else x
            yield readable([left])[0]


def with_row_theory(
    expected: Array, fitted: Sequence[Reconstruction], seen: Originals, judged: Originals
) -> Array:
    """Return the expected errors of attacks, those that follow from the true rows in place of their own where there are any.

    Parameters
    ----------
    expected : ndarray of shape (B,)
        Squared errors summed over rows and attributes; NaN for none.
    fitted : sequence of B Reconstruction
        Their estimates were made: from here on they are shown true rows.
    seen : Originals
        The rows whose copies they were fitted to.
    judged : Originals
        The rows they are judged on.
    """
    out = expected.copy()
    for place, each in enumerate(fitted):
        theory = each.row_theory(seen)
        if theory is not None:
            out[place] = sum(float(theory(x).sum()) for x in judged)
    return out
