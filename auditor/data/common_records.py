"""What the original and all copies have in common, in full: the records that are audited, and what is to be said of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import check_varied
from auditor.data.copies import Copy
from auditor.data.table import Table
from auditor.errors import DataError
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.text.column_names import counted, quoted

NEARER = 1e-4
"""Chance that records perturbed alike, by ranks of their squared errors, look as if those that were left out had been perturbed less."""


class Audited(NamedTuple):
    """The part of a table that is audited, and what a reader must know of the rest."""

    table: Table
    notes: tuple[str, ...] = ()


def common_part(table: Table, copies: Sequence[Copy]) -> Audited:
    """Return the records that the original and every copy have in full, with notes on what each copy lacks.

    A cell that a copy lacks (local suppression) says nothing of its value. Filled in by a mean it would count as well protected, and hide
    how exposed the cells are that are there. So audited are records that are complete in all copies. How far a copy's other cells are
    from the original is noted, since who suppresses cells of a record may have perturbed the rest of it less.

    Raises
    ------
    DataError
        They have fewer than ten records in common where some were left out, or a column does not vary in these.
    """
    rows = np.flatnonzero(np.logical_and.reduce([copy.full for copy in copies]))
    part = table.part(rows, np.arange(table.width))
    notes = [note for copy in copies for note in _notes(copy, table)]
    if part is table:
        return Audited(table, tuple(notes))
    if len(rows) < FEWEST_RECORDS:
        raise DataError(_too_few(len(rows), copies))
    check_varied(part.attributes, part.scan.low, part.scan.high, np.diag(part.scan.covariance))
    notes.append(f"audited are the {len(rows):,} of {counted(table.rows, 'record')} that the original and all copies have in full")
    return Audited(part, (*notes, *filter(None, (_others(copy, table, rows) for copy in copies))))


def _too_few(found: int, copies: Sequence[Copy]) -> str:
    problem = f"original and copies have {counted(found, 'record')} in common and in full; an audit of some records needs {FEWEST_RECORDS}"
    nothing = [quoted(copy.name) for copy in copies if not copy.held.any()]
    if nothing:
        return f"{problem}: {nothing[0]} has none of the original's; are its keys the same, and written alike?"
    return f"{problem}; audit fewer copies at a time, or fewer columns with `columns:`"


def _notes(copy: Copy, table: Table) -> list[str]:
    name, lacking, cells = quoted(copy.name), int((~copy.held).sum()), copy.suppressed
    notes = [f"{name}: lacks {lacking:,} of the original's {counted(table.rows, 'record')}"] if lacking else []
    if copy.beyond:
        notes.append(f"{name}: has {counted(copy.beyond, 'record')} that the original has not, which are left out")
    if cells.any():
        share, most = cells[copy.held].mean(), quoted(table.attributes[int(cells.sum(axis=0).argmax())])
        where = f"{counted(int(cells.any(axis=1).sum()), 'record')}, most in column {most}"
        notes.append(f"{name}: {cells.sum():,} of its cells are missing ({share:.1%}), in {where}; these records are left out")
    return notes


def _others(copy: Copy, table: Table, rows: NDArray[np.intp]) -> str:
    """Return how far the cells that a copy has of other records are from the original, beside those of the records audited."""
    off = (copy.values - table.values) ** 2 / np.diag(table.moments()[1])
    there = ~np.isnan(off)
    mean = np.where(there, off, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)  # by record, as noise may be shared by its cells
    audited, others = mean[rows], np.delete(mean, rows)[np.delete(there.any(axis=1), rows)]
    if len(others) < FEWEST_RECORDS:
        return ""
    from scipy.stats import mannwhitneyu  # a second, which every start would pay

    nearer = mannwhitneyu(others, audited, alternative="less").pvalue < NEARER
    less = ": less perturbed than what was audited" if nearer else ""
    far = f"{others.mean():.2g} of their variance from the original, those audited {audited.mean():.2g}"
    return f"{quoted(copy.name)}: cells that it has of other records are on average {far}{less}"
