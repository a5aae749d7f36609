"""What schemes have in common whose copies are there already, in files: there is nothing to draw, and levels need not be known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.data.copies import check_joined_by_row, copy_file
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.schemes.base.scheme import Scheme


class FileScheme(Scheme):
    """Copies from files, made elsewhere: its parameters name them, ``copies``, and may name a ``key`` that they are joined by."""

    claims = "Whatever its makers say; the audit takes nobody's word."
    needs_levels = False
    makes_copies = False
    needs_table = True

    def count(self, levels: Sequence[float]) -> int:
        """Return how many files there are; levels need not be known."""
        return len(self.parameters.copies)

    def check_count(self, levels: Sequence[float]) -> None:
        """Refuse levels that are neither left out nor one for each copy."""
        if levels and len(levels) != len(self.parameters.copies):
            raise AuditorError(f"{len(self.parameters.copies)} copies need as many levels; got {len(levels)}")

    def check_join(self, asked: DataUse) -> str:
        """Refuse data whose rows say nothing of a copy's, unless a key does; return what a copy must lack that has too many records."""
        if self.parameters.key is None:
            check_joined_by_row(asked)
        return "; `missing: drop` left records of the original out, and a copy must lack the same ones" if asked.missing == "drop" else ""

    @property
    def paths(self) -> list[Path]:
        """The files, in order of release."""
        return [copy_file(name, self.base) for name in self.parameters.copies]

    @property
    def audited_table(self) -> Table:
        """The records and columns that are audited."""
        if self.table is None:
            raise AuditorError("published copies can be audited by a scenario only: there is nothing to perturb")
        return self.table
