"""Records and columns complete in the original and all copies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from auditor.base.errors import DataError
from auditor.base.text import closest, counted, listed, quoted
from auditor.base.types import Indices
from auditor.data.copies import Copy
from auditor.data.table import Audited, Table
from auditor.results.disclosure import FEWEST_RECORDS

T = TypeVar("T")
NEARER = 1e-4
"""P-value of the rank test that excluded records were perturbed less."""

MOST_CELLS = 256
"""Most cells per record over all copies for attacks on incomplete records (`every-cell`)."""
BARER = 0.5
"""An excluded column counts as less perturbed if its squared error is below this share of the
audited minimum.
"""
LESS = ": it is less perturbed than what was audited, and more exposed than the figures say"


def common_part(table: Table, copies: Sequence[Copy]) -> Audited:
    """Complete records of the common columns, with notes.

    A suppressed cell discloses no value, but imputed would count as protected. Such records may be
    perturbed less elsewhere, so errors of excluded cells are noted.

    Raises
    ------
    DataError
        No column is common, fewer than ten records remain, or a column is constant.
    """
    columns = np.flatnonzero(np.logical_and.reduce([copy.said for copy in copies]))
    if not len(columns):
        raise DataError(
            "no column is in all copies; audit those that share some in an entry of `schemes:` of their own"
        )
    rows = np.flatnonzero(np.logical_and.reduce([copy.full(columns) for copy in copies]))
    part = table.part(rows, columns)
    notes = [n for copy in copies for n in (*copy.notes, *_lacking(copy, table, columns))]
    if part is table:
        return Audited(table, tuple(notes))
    if len(rows) < table.rows and len(rows) < FEWEST_RECORDS:
        raise DataError(_too_few(len(rows), copies))
    part.check()
    which = (
        ""
        if part.width == table.width
        else f", in {listed(part.attributes)}, which all copies have"
    )
    kept = f"{len(rows):,} of {counted(table.rows, 'record')}"
    notes.append(f"audited are {kept}, those that the original and all copies have in full{which}")
    if table.width * len(copies) <= MOST_CELLS:
        notes.append(
            "all records and columns are under every-cell: the best linear attack, learnt from the originals, on every cell held"
        )
    rest = [found for copy in copies for found in _not_audited(copy, table, rows, columns)]
    return Audited(
        part,
        (*notes, *(f"{note}{LESS if bare else ''}" for note, bare in rest)),
        any(bare for _, bare in rest),
    )


def remembered(key: Hashable, find: Callable[[], T]) -> T:
    """Cached result; the key must contain all it depends on."""
    if key not in _remembered:
        _remembered.update({key: find()})
        while len(_remembered) > REMEMBERED:
            del _remembered[next(iter(_remembered))]
    found: T = _remembered[key]
    return found


_remembered: dict[Hashable, Any] = {}
REMEMBERED = 4
"""Number of tables and releases cached per process."""


def _too_few(found: int, copies: Sequence[Copy]) -> str:
    had = f"original and copies have {counted(found, 'record')} in common and in full"
    problem = f"{had}; an audit of some records needs {FEWEST_RECORDS}"
    nothing = [quoted(copy.name) for copy in copies if not copy.held.any()]
    if nothing:
        return f"{problem}: {nothing[0]} has none of the original's; are its keys the same, and written alike?"
    return f"{problem}; audit fewer copies at a time, or fewer columns with `columns:`"


def _lacking(copy: Copy, table: Table, columns: Indices) -> Iterator[str]:
    name, records, cells = quoted(copy.name), int((~copy.held).sum()), copy.suppressed[:, columns]
    for column in (table.attributes[j] for j in np.flatnonzero(~copy.said)):
        near = [quoted(other) for other in closest(column, copy.others)]
        yield f"{name}: lacks column {quoted(column)}, which is not audited{f'; is it {near[0]}?' if near else ''}"
    if records:
        yield f"{name}: lacks {records:,} of the original's {counted(table.rows, 'record')}"
    if copy.beyond:
        yield f"{name}: has {counted(copy.beyond, 'record')} that the original has not, which are left out"
    if cells.any():
        share, most = (
            cells[copy.held].mean(),
            quoted(table.attributes[columns[int(cells.sum(axis=0).argmax())]]),
        )
        where = f"{counted(int(cells.any(axis=1).sum()), 'record')}, most in column {most}"
        yield f"{name}: {cells.sum():,} of its cells are missing ({share:.1%}), in {where}; these records are left out"


def _not_audited(
    copy: Copy, table: Table, rows: Indices, columns: Indices
) -> Iterator[tuple[str, bool]]:
    from scipy.stats import mannwhitneyu  # takes a second

    name, off = quoted(copy.name), (copy.values - table.values) ** 2 / np.diag(table.moments()[1])
    audited, others = off[np.ix_(rows, columns)], np.delete(off, rows, axis=0)[:, columns]
    for j in np.setdiff1d(np.flatnonzero(copy.said), columns):
        if np.isfinite(off[:, j]).sum() >= FEWEST_RECORDS:
            far, column = float(np.nanmean(off[:, j])), quoted(table.attributes[j])
            lead = f"{name}: column {column} is not audited, as another copy lacks it; audit it in an entry of `schemes:` of its own"
            apart = f"Cells differ from the original by {far:.2g} of the variance (mean square)"
            yield f"{lead}. {apart}", far < BARER * audited.mean(axis=0).min()
    parts = [(others[np.isfinite(others[:, j]), j], audited[:, j], j) for j in range(len(columns))]
    # By column: a mean over fewer cells has another distribution.
    found = [
        (mannwhitneyu(*two, alternative="less").pvalue, *two, j)
        for *two, j in parts
        if len(two[0]) >= FEWEST_RECORDS
    ]
    if found:
        p, beside, theirs, j = min(found, key=lambda each: each[0])
        lead = f"{name}: cells of records that are not audited differ from the original by {beside.mean():.2g} of the variance (mean square"
        yield (
            f"{lead}, column {quoted(table.attributes[columns[j]])}), those audited by {theirs.mean():.2g}",
            p * len(found) < NEARER,
        )
