"""Tables with categories from large files, surveyed piece by piece.

Small ones are then held in memory, as numbers and codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auditor.data.clean import Asked, numbers_of_pieces
from auditor.data.columns.categorical_table import (
    CategoricalTable,
    bins_between,
    check_size,
    edges_of,
)
from auditor.data.columns.category_rules import Categories
from auditor.data.columns.checks import check_rows
from auditor.data.columns.quantiles import quantiles
from auditor.data.formats.parts import Piece
from auditor.data.streamed import rows as streamed
from auditor.data.streamed.codes import Coder, FileCodes
from auditor.data.streamed.domains import Findings, survey
from auditor.data.streamed.rows import FileRows
from auditor.data.table import Table
from auditor.errors import DataError
from auditor.numerics.blocks import row_blocks
from auditor.text.column_names import counted
from auditor.types import Array

CELL_BYTES = 64
"""Memory of a cell of any kind as read: 50 to 60 bytes for text."""
CSV_FACTOR = 32
"""Memory per byte of CSV: a cell has at least two, a character and a delimiter."""


def is_large(pieces: Sequence[Piece], columns: int) -> bool:
    """Whether columns of any kind are too many to be read whole."""
    sizes = (
        piece.rows * columns * CELL_BYTES
        if piece.rows >= 0
        else (piece.stop - piece.place) * CSV_FACTOR
        for piece in pieces
    )
    return sum(sizes) > streamed.HELD_BYTES


@dataclass(frozen=True)
class Categorized:
    """Surveyed columns of large files.

    Attributes
    ----------
    chosen : Categories
    names : tuple of str
        The table's columns, of any kind.
    numeric : tuple of N str
        Columns that additive schemes can use.
    content : ndarray of shape (n, N) or FileRows
        Their numbers; always ``FileRows`` unless N is 0.
    findings : Findings
    drop : bool
        Whether records that lack any value are excluded.
    """

    chosen: Categories
    names: tuple[str, ...]
    numeric: tuple[str, ...]
    content: Array | FileRows = field(repr=False)
    findings: Findings = field(repr=False)
    drop: bool

    def codes(self, table: Table) -> FileCodes:
        """Return the categories' places and conversion.

        ``table`` holds the numbers, not rescaled.
        """
        coders = [self._bins(name, rule, table) for name, rule in self.chosen.bins.items()]
        for name, domain in self.chosen.domains.items():
            coders.append(Coder(self.findings.columns[name].domain(name, domain)))
        check_size([coder.attribute for coder in coders])
        columns = self.names if self.drop else tuple(coder.attribute.name for coder in coders)
        return FileCodes(
            columns,
            tuple(coders),
            tuple(self.findings.pieces),
            tuple(self.findings.counts),
            self.drop,
        )

    def _bins(self, name: str, rule: Mapping[str, Any], table: Table) -> Coder:
        column = self.numeric.index(name)
        kind, argument = next(iter(rule.items()))
        if kind == "quantile":
            edges = np.unique(
                quantiles(
                    lambda: _values(table, column), table.rows, np.linspace(0, 1, argument + 1)
                )
            )
        else:
            edges = edges_of(rule, float(table.scan.low[column]), float(table.scan.high[column]))
        fill = table.content.fill if isinstance(table.content, FileRows) else None
        return Coder(
            bins_between(name, edges), edges, np.nan if fill is None else float(fill[column])
        )


def _values(table: Table, column: int) -> Iterator[Array]:
    for start, stop in row_blocks(table.rows, table.width):
        yield table.read(start, stop)[:, column]


def categorize(
    pieces: Sequence[Piece], names: Sequence[str], given: bool, asked: Asked, chosen: Categories
) -> Categorized:
    """Survey columns of files.

    Parameters
    ----------
    pieces : sequence of Piece
    names : sequence of str
        Columns to survey.
    given : bool
        Whether the user named them; otherwise unusable columns are excluded.
    asked : Asked
    chosen : Categories
        At least one column.

    Raises
    ------
    DataError
        They cannot be audited; no message holds a value.
    """
    chosen.check_known(names)
    drop = asked.missing == "drop"
    findings = survey(pieces, names, asked.rows, drop and given, chosen.domains)
    check_rows(findings.found, asked.rows)
    if not given:
        kept = [name for name in names if name in chosen.columns or findings.columns[name].varied]
        if drop:
            findings = survey(findings.pieces, kept, asked.rows, drop, chosen.domains)
        names = kept
    if drop and sum(findings.counts) < 2:
        raise DataError(
            f"an audit needs at least 2 records; `missing: drop` leaves {counted(sum(findings.counts), 'record')}"
        )
    chosen.check_complete([name for name in chosen.domains if findings.columns[name].missing])
    numbers = [name for name in names if name not in chosen.beside]
    numeric = tuple(
        name for name in numbers if name not in chosen.domains or findings.columns[name].varied
    )
    content: Array | FileRows = np.empty((sum(findings.counts), 0))
    if numeric:
        beside = tuple(name for name in names if name not in numeric)
        content = numbers_of_pieces(findings.pieces, numeric, asked, beside)
    return Categorized(chosen, tuple(names), numeric, content, findings, drop)


def held_if_small(table: Table) -> Table:
    """Return the table with numbers and codes in memory if it is small."""
    data = table.categorical
    assert data is not None
    others = sum(name not in table.attributes for name in data.names)
    if table.rows * (table.width + others) * 8 > streamed.HELD_BYTES:
        return table
    content, codes = np.ascontiguousarray(table.values), data.codes
    content.setflags(write=False)
    codes.setflags(write=False)
    return replace(table, content=content, categorical=CategoricalTable(data.attributes, codes))
