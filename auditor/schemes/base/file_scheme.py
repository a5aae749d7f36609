"""Base of schemes that read existing copies from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditor.data.copies import check_joined_by_row, copy_file
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.schemes.base.scheme import Scheme


class FileScheme(Scheme):
    """Copies from files, made elsewhere; levels may be unknown.

    The parameters name the files (``copies``) and optionally a ``key`` column that joins them to
    the original.
    """

    claims = "The statements of its makers, which the audit tests."
    needs_levels = False
    makes_copies = False
    needs_table = True

    def count(self, levels: Sequence[float]) -> int:
        """Return the number of files."""
        return len(self.parameters.copies)

    def check_count(self, levels: Sequence[float]) -> None:
        """Refuse levels that are neither absent nor one per copy."""
        if levels and len(levels) != len(self.parameters.copies):
            raise AuditorError(
                f"{len(self.parameters.copies)} copies need as many levels; got {len(levels)}"
            )

    def check_join(self, asked: DataUse) -> str:
        """Refuse data that cannot be joined to the copies by row or by key.

        Returns the description of a record that a longer copy must lack.
        """
        if self.parameters.key is None:
            check_joined_by_row(asked)
        return (
            "; `missing: drop` left records of the original out, and a copy must lack the same ones"
            if asked.missing == "drop"
            else ""
        )

    @property
    def paths(self) -> list[Path]:
        """The files, in order of release."""
        return [copy_file(name, self.base) for name in self.parameters.copies]

    @property
    def audited_table(self) -> Table:
        """The audited records and columns."""
        if self.table is None:
            raise AuditorError(
                "published copies can be audited by a scenario only: there is nothing to perturb"
            )
        return self.table
