"""Convert raw columns to finite numbers and codes; treat gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data import file_rows
from auditor.data.columns.categorical_table import (
    CategoricalTable,
    Categories,
    bins_between,
    check_size,
    edges_of,
)
from auditor.data.columns.checks import Gaps, are_complete, check_rows
from auditor.data.columns.kinds import identifies
from auditor.data.columns.scan import Scan, in_threads
from auditor.data.columns.survey import Column, Domains, Survey
from auditor.data.file_rows import Coder, FileRows, Numbers, ProductCodes
from auditor.data.formats.parts import Held, Records
from auditor.errors import DataError
from auditor.numerics.blocks import row_blocks
from auditor.text.column_names import counted
from auditor.types import Array, Flags


@dataclass(frozen=True)
class Asked:
    """A scenario's selection of records.

    Attributes
    ----------
    rows : int or None
        Number of first records.
    missing : {'refuse', 'drop', 'mean', 'keep'}
    named : bool
        Whether the user named the columns: booleans then mean 0 and 1.
    """

    rows: int | None
    missing: Gaps
    named: bool


@dataclass(frozen=True)
class Cleaned:
    """Surveyed records of a table.

    Attributes
    ----------
    numeric : tuple of N str
        Columns of finite numbers.
    required : tuple of str
        Columns whose gaps exclude a record.
    numbers : FileRows
    survey : Survey
    chosen : Categories
    blanks : ndarray of shape (n, N) or None
        Cells that hold their column's mean.
    """

    numeric: tuple[str, ...]
    required: tuple[str, ...]
    numbers: FileRows
    survey: Survey
    chosen: Categories
    blanks: Flags | None = None

    def categories(self, rows: Array | FileRows, scan: Scan) -> CategoricalTable | None:
        """Return the records as categories; None without categorical columns.

        Parameters
        ----------
        rows : ndarray of shape (n, N) or FileRows
            The numbers, not rescaled.
        scan : Scan
            Their scan.

        Raises
        ------
        DataError
            The product domain is too large, or bins are not distinct.
        """
        if not self.chosen.columns:
            return None
        assert isinstance(self.numbers.decode, Numbers)
        fill, coders = self.numbers.decode.fill, []
        for name, rule in self.chosen.bins.items():
            j = self.numeric.index(name)
            if "quantile" in rule:
                column = np.concatenate([x[:, j] for x in blocks_of(rows)])
                shares = np.linspace(0, 1, rule["quantile"] + 1)
                edges = np.unique(np.quantile(column, shares, overwrite_input=True))
            else:
                edges = edges_of(rule, float(scan.low[j]), float(scan.high[j]))
            coders.append(Coder(bins_between(name, edges), np.nan if fill is None else fill[j]))
        for name, domain in self.chosen.domains.items():
            coders.append(Coder(self.survey.columns[name].domain(name, domain)))
        attributes = tuple(coder.attribute for coder in coders)
        check_size(attributes)
        decode = ProductCodes(tuple(coders), self.required)
        return CategoricalTable(attributes, held(replace(self.numbers, decode=decode)))


def cleaned(
    pieces: Sequence[Records], names: Sequence[str], asked: Asked, chosen: Categories
) -> Cleaned:
    """Survey columns and return the conversion to numbers and codes.

    Parameters
    ----------
    pieces : sequence of Piece or Held
    names : sequence of str
        The table's columns. Unless the user named them, categories exclude non-numeric and
        constant columns.
    asked : Asked
    chosen : Categories

    Raises
    ------
    DataError
        They cannot be audited.
    """
    chosen.check_known(names)
    drop = asked.missing == "drop"
    select = bool(chosen.columns) and not asked.named
    pieces, counts, found = surveyed(
        pieces, names, asked.rows, names if drop and not select else (), chosen.domains
    )
    check_rows(found.rows, asked.rows)
    if select:
        names = [name for name in names if name in chosen.columns or found.columns[name].varied]
        if drop:
            pieces, counts, found = surveyed(pieces, names, None, names, chosen.domains)
    columns = found.columns
    if not drop:
        chosen.check_complete([name for name in chosen.domains if columns[name].missing.count])
    numeric = tuple(
        name
        for name in names
        if name not in chosen.beside and (name not in chosen.domains or columns[name].varied)
    )
    found.check_numbers(numeric, asked.named, asked.missing, identifies)
    if drop and found.kept < 2:
        raise DataError(
            f"an audit needs at least 2 records; `missing: drop` leaves {counted(found.kept, 'record')}"
        )
    gaps = any(columns[name].missing.count for name in names)
    required = tuple(names) if drop and gaps else ()
    rows = FileRows(tuple(pieces), tuple(counts), Numbers(numeric, required))
    blanks = None
    if asked.missing == "mean" and any(columns[name].missing.count for name in numeric):
        means, blanks = _means(rows)
        rows = replace(rows, decode=Numbers(numeric, fill=means))
    return Cleaned(numeric, required, rows, found, chosen, blanks)


def held(rows: FileRows) -> NDArray[Any] | FileRows:
    """Return the records, in memory if they are small or have no file."""
    in_memory = any(isinstance(piece, Held) for piece in rows.pieces)
    if not in_memory and int(np.prod(rows.shape)) * 8 > file_rows.HELD_BYTES:
        return rows
    found = rows.read(0, rows.shape[0])
    found.setflags(write=False)
    return found


def surveyed(
    pieces: Sequence[Records],
    names: Sequence[str],
    rows: int | None,
    required: Sequence[str],
    domains: Domains,
) -> tuple[list[Records], list[int], Survey]:
    """Return pieces, their counts of kept records, and the survey.

    Parameters
    ----------
    pieces : sequence of Piece or Held
    names : sequence of str
        Columns to survey.
    rows : int or None
        Number of records to survey.
    required : sequence of str
        Columns whose gaps exclude a record.
    domains : mapping
        Columns whose values are collected, or compared with a declared domain.
    """
    look = partial(_survey_of_piece, names=names, required=required, domains=domains)
    taken: list[Records] = []
    counts, whole = [], Survey({name: Column() for name in names})
    if rows is not None:
        pieces = [piece if piece.rows >= 0 else replace(piece, rows=rows) for piece in pieces]
    for piece, found in zip(pieces, in_threads(look, pieces), strict=False):
        if rows is not None and whole.rows + found.rows > rows:
            found = look(replace(piece, rows=rows - whole.rows))
        whole.join(found)
        taken.append(replace(piece, rows=found.rows))
        counts.append(found.kept)
        if whole.rows == rows:
            break
    return taken, counts, whole


def _survey_of_piece(
    piece: Records, names: Sequence[str], required: Sequence[str], domains: Domains
) -> Survey:
    survey = Survey({name: Column() for name in names})
    for frame in piece.frames(tuple(names)):
        survey.add(frame, are_complete(frame, required) if required else None, domains)
    return survey


def blocks_of(rows: Array | FileRows) -> Any:
    """Yield the records block by block, shape (b, N)."""
    for a, b in row_blocks(*rows.shape):
        yield rows[a:b] if isinstance(rows, np.ndarray) else rows.read(a, b)


def _means(rows: FileRows) -> tuple[Array, Flags]:
    """Return the means of the present values, (N,), summed by block, and the blanks, (n, N)."""
    total, blanks = np.zeros(rows.shape[1]), np.empty(rows.shape, dtype=bool)
    for (a, b), x in zip(row_blocks(*rows.shape), blocks_of(rows), strict=True):
        blanks[a:b] = np.isnan(x)
        with np.errstate(over="ignore"):
            total = total + np.nansum(x, axis=0)
    return total / (len(blanks) - blanks.sum(axis=0)), blanks
