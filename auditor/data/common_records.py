"""What the original and all copies have in common, and in full: what is audited, and what is to be said of the rest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import check_varied
from auditor.data.copies import Copy
from auditor.data.table import Audited, Table
from auditor.errors import DataError
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.text.column_names import counted, listed, quoted
from auditor.text.spelling import closest

NEARER = 1e-4
"""Chance that records perturbed alike, by ranks of their squared errors, look as if those that were left out had been perturbed less."""

MOST_CELLS = 256
"""Cells of a record in all copies up to which records and columns that are not complete are attacked too (`every-cell`)."""
BARER = 0.5
"""A column that is not audited is called less perturbed if its squared error is below this share of the least of those that are."""
LESS = ": it is less perturbed than what was audited, and more exposed than the figures say"


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
    if table.width * len(copies) <= MOST_CELLS:
        notes.append("all records and columns are under every-cell: the best linear attack, learnt from the originals, on every cell held")
    rest = [found for copy in copies for found in _not_audited(copy, table, rows, columns)]
    return Audited(part, (*notes, *(f"{note}{LESS if bare else ''}" for note, bare in rest)), any(bare for _, bare in rest))


def remembered(key: Hashable, find: Callable[[], Audited]) -> Audited:
    """Return what was found under a key, which says all that it depends on; of the last few, as every step of an audit asks for it."""
    if key not in _remembered:
        _remembered.update({key: find()})
        while len(_remembered) > REMEMBERED:
            del _remembered[next(iter(_remembered))]
    return _remembered[key]


_remembered: dict[Hashable, Audited] = {}
REMEMBERED = 4
"""As many tables as a process keeps of scenarios."""


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


def _not_audited(copy: Copy, table: Table, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Iterator[tuple[str, bool]]:
    """Yield how far a copy's cells that are not audited differ from the original, of columns and of records, and whether by less."""
    from scipy.stats import mannwhitneyu  # a second, which every start would pay

    name, off = quoted(copy.name), (copy.values - table.values) ** 2 / np.diag(table.moments()[1])
    audited, others = off[np.ix_(rows, columns)], np.delete(off, rows, axis=0)[:, columns]
    for j in np.setdiff1d(np.flatnonzero(copy.said), columns):
        if np.isfinite(off[:, j]).sum() >= FEWEST_RECORDS:
            far, column = float(np.nanmean(off[:, j])), quoted(table.attributes[j])
            lead = f"{name}: column {column} is not audited, as another copy lacks it; audit it in an entry of `schemes:` of its own"
            apart = f"Cells differ from the original by {far:.2g} of the variance (mean square)"
            yield f"{lead}. {apart}", far < BARER * audited.mean(axis=0).min()
    parts = [(others[np.isfinite(others[:, j]), j], audited[:, j], j) for j in range(len(columns))]
    # Column by column, as a mean over fewer cells of a record has another distribution; the one that looks worst is told.
    found = [(mannwhitneyu(*two, alternative="less").pvalue, *two, j) for *two, j in parts if len(two[0]) >= FEWEST_RECORDS]
    if found:
        p, beside, theirs, j = min(found, key=lambda each: each[0])
        lead = f"{name}: cells of records that are not audited differ from the original by {beside.mean():.2g} of the variance (mean square"
        yield f"{lead}, column {quoted(table.attributes[columns[j]])}), those audited by {theirs.mean():.2g}", p * len(found) < NEARER
