"""Base of masking schemes: a copy is a random function of the whole table.

No noise law is stated, so attacks that need a law do not apply, and figures have no closed form.
The remaining attacks use the copy as the estimate, or learn from records known exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import row_blocks
from auditor.numerics.random_streams import Rng, stream
from auditor.schemes.base.scheme import Key, MadeCopies, Scheme, TableMoments
from auditor.text import counted
from auditor.types import Array


class MaskedScheme(Scheme):
    """Base of the schemes ``Y_i = mask(X, level_i)``.

    Each copy has the table's records and columns, and independent random numbers.
    """

    # a copy has the original's columns in their units, so attacks on additive noise apply
    family = "additive"
    needs_table = True

    @abstractmethod
    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """Return one copy of a table, shape (n, N), rows in place.

        ``X`` is only read.
        """

    def least_rows(self, levels: Sequence[float]) -> int:
        """Return the fewest records needed at these levels."""
        return 1

    def law(self, levels: Sequence[float], table: TableMoments) -> None:
        """Return None: the perturbation depends on the values."""

    def sampler(
        self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0
    ) -> MadeCopies:
        """Return the sampler of copies ``existing + 1 … M``.

        Raises
        ------
        AuditorError
            The table is missing, or has too few records.
        """
        whole = self.whole_table
        self._check_rows(whole, levels[existing:])
        streams = [
            stream(key.seed, "masked", key.scheme, key.replicate, copy)
            for copy in range(existing + 1, len(levels) + 1)
        ]
        made = [
            self.mask(whole.values, level, rng)
            for level, rng in zip(levels[existing:], streams, strict=True)
        ]
        return MadeCopies(made, row_blocks(whole.rows, whole.width))

    def check_levels(self, levels: Sequence[float]) -> None:
        super().check_levels(levels)
        if self.table is not None:
            self._check_rows(self.table, levels)

    def _check_rows(self, table: Table, levels: Sequence[float]) -> None:
        least = self.least_rows(levels) if levels else 1
        if table.rows < least:
            needed = f"at least {counted(least, 'record')} at level {max(levels):g}"
            raise AuditorError(f"{self.name} needs {needed}; the table has {table.rows:,}")
