"""What the original and all copies have in common: the records that are audited, and what is to be said of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.data.columns.checks import check_varied
from auditor.data.copies import Copy
from auditor.data.table import Table
from auditor.errors import DataError
from auditor.text.column_names import counted, quoted


class Audited(NamedTuple):
    """The part of a table that is audited, and what a reader must know of the rest."""

    table: Table
    notes: tuple[str, ...] = ()


def common_part(table: Table, copies: Sequence[Copy]) -> Audited:
    """Return the records that the original and every copy have (an inner join), with a note on each copy that is another's lack.

    Raises
    ------
    DataError
        They have fewer than two records in common, or a column does not vary in these.
    """
    rows = np.flatnonzero(np.logical_and.reduce([copy.held for copy in copies]))
    if len(rows) < 2:
        raise DataError(_too_few(len(rows), copies))
    notes = [note for copy in copies for note in _notes(copy)]
    part = table.part(rows, np.arange(table.width))
    if part is not table:
        check_varied(part.attributes, part.scan.low, part.scan.high, np.diag(part.scan.covariance))
        notes.append(f"audited are the {len(rows):,} of {counted(table.rows, 'record')} that original and copies have in common")
    return Audited(part, tuple(notes))


def _too_few(found: int, copies: Sequence[Copy]) -> str:
    nothing = [copy.name for copy in copies if not copy.held.any()]
    why = f": {quoted(nothing[0])} has none of the original's; are its keys the same, and written alike?" if nothing else ""
    return f"original and copies have {counted(found, 'record')} in common, and an audit needs 2{why}"


def _notes(copy: Copy) -> list[str]:
    name, lacking = quoted(copy.name), int((~copy.held).sum())
    notes = [f"{name}: lacks {lacking:,} of the original's {counted(len(copy.held), 'record')}"] if lacking else []
    if copy.beyond:
        notes.append(f"{name}: has {counted(copy.beyond, 'record')} that the original has not, which are left out")
    return notes
