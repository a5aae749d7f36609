"""What the original and all copies have in common, and in full: what is audited, and what is to be said of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import check_varied
from auditor.data.copies import Copy
from auditor.data.table import Table
from auditor.errors import DataError
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.text.column_names import counted, listed, quoted
from auditor.text.spelling import closest

NEARER = 1e-4
"""Chance that records perturbed alike, by ranks of their squared errors, look as if those that were left out had been perturbed less."""


class Audited(NamedTuple):
    """The part of a table that is audited, and what a reader must know of the rest."""

    table: Table
    notes: tuple[str, ...] = ()


def common_part(table: Table, copies: Sequence[Copy]) -> Audited:
    """Return what the original and every copy have: columns that none lacks, of records complete in these; with notes on what each lacks.

    A cell that a copy does not have (local suppression) says nothing of its value. Filled in by a mean it would count as well protected,
    and hide how exposed the cells are that are there. How far a copy's cells that are not audited are from the original is noted, since who
    suppresses a cell may have perturbed the rest of the record less, and a column that one copy lacks may stand bare in another.

    Raises
    ------
    DataError
        They have no column in common, or fewer than ten records where some were left out; or a column does not vary in these.
    """
    columns = np.flatnonzero(np.logical_and.reduce([copy.said for copy in copies]))
    if not len(columns):
        raise DataError("no column is in all copies; audit those that share some in an entry of `schemes:` of their own")
    rows = np.flatnonzero(np.logical_and.reduce([copy.full(columns) for copy in copies]))
    part = table.part(rows, columns)
    notes = [note for copy in copies for note in _lacking(copy, table, columns)]
    if part is table:
        return Audited(table, tuple(notes))
    if len(rows) < table.rows and len(rows) < FEWEST_RECORDS:
        raise DataError(_too_few(len(rows), copies))
    check_varied(part.attributes, part.scan.low, part.scan.high, np.diag(part.scan.covariance))
    which = "" if part.width == table.width else f", in {listed(part.attributes)}, which all copies have"
    kept = f"{len(rows):,} of {counted(table.rows, 'record')}"
    notes.append(f"audited are {kept}, those that the original and all copies have in full{which}")
    return Audited(part, (*notes, *(note for copy in copies for note in _not_audited(copy, table, rows, columns))))


def _too_few(found: int, copies: Sequence[Copy]) -> str:
    had = f"original and copies have {counted(found, 'record')} in common and in full"
    problem = f"{had}; an audit of some records needs {FEWEST_RECORDS}"
    nothing = [quoted(copy.name) for copy in copies if not copy.held.any()]
    if nothing:
        return f"{problem}: {nothing[0]} has none of the original's; are its keys the same, and written alike?"
    return f"{problem}; audit fewer copies at a time, or fewer columns with `columns:`"


def _lacking(copy: Copy, table: Table, columns: NDArray[np.intp]) -> Iterator[str]:
    """Yield what a copy lacks: columns, records, and cells of the columns that are audited."""
    name, records, cells = quoted(copy.name), int((~copy.held).sum()), copy.suppressed[:, columns]
    for column in (table.attributes[j] for j in np.flatnonzero(~copy.said)):
        near = [quoted(other) for other in closest(column, copy.others)]
        yield f"{name}: lacks column {quoted(column)}, which is not audited{f'; is it {near[0]}?' if near else ''}"
    if records:
        yield f"{name}: lacks {records:,} of the original's {counted(table.rows, 'record')}"
    if copy.beyond:
        yield f"{name}: has {counted(copy.beyond, 'record')} that the original has not, which are left out"
    if cells.any():
        share, most = cells[copy.held].mean(), quoted(table.attributes[columns[int(cells.sum(axis=0).argmax())]])
        where = f"{counted(int(cells.any(axis=1).sum()), 'record')}, most in column {most}"
        yield f"{name}: {cells.sum():,} of its cells are missing ({share:.1%}), in {where}; these records are left out"


def _not_audited(copy: Copy, table: Table, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Iterator[str]:
    """Yield how far a copy's cells that are not audited are from the original: of columns, and of records beside those audited."""
    from scipy.stats import mannwhitneyu  # a second, which every start would pay

    name, off = quoted(copy.name), (copy.values - table.values) ** 2 / np.diag(table.moments()[1])
    for j in np.setdiff1d(np.flatnonzero(copy.said), columns):
        if np.isfinite(off[:, j]).sum() >= FEWEST_RECORDS:
            lead = f"{name}: column {quoted(table.attributes[j])} is not audited, since another copy lacks it, and is on average"
            yield f"{lead} {np.nanmean(off[:, j]):.2g} of its variance from the original; audit it in an entry of `schemes:` of its own"
    others = np.delete(off, rows, axis=0)
    parts = [(others[np.isfinite(others[:, j]), j], off[rows, j], j) for j in columns]
    # Column by column, as a mean over fewer cells of a record has another distribution; the one that looks worst is told.
    found = [(mannwhitneyu(*two, alternative="less").pvalue, *two, j) for *two, j in parts if len(two[0]) >= FEWEST_RECORDS]
    if found:
        p, beside, audited, j = min(found, key=lambda each: each[0])
        less = ": less perturbed than what was audited" if p * len(found) < NEARER else ""
        lead = f"{name}: of other records its cells are, in column {quoted(table.attributes[j])}, on average"
        yield f"{lead} {beside.mean():.2g} of the variance from the original, those audited {audited.mean():.2g}{less}"
