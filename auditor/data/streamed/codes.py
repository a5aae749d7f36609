"""Categories that stay in their files, read as codes block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import Attribute, bin_codes, code_type, joined
from auditor.data.columns.checks import floats
from auditor.data.formats.parts import Piece
from auditor.data.streamed.rows import Pieced, checked_parts
from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.types import Array, Codes


@dataclass(frozen=True)
class Coder:
    """Conversion of one column to codes.

    Attributes
    ----------
    attribute : Attribute
    edges : ndarray of shape (s + 1,) or None
        Of bins; None for a column whose values are the domain.
    fill : float
        Replacement of a missing number.
    """

    attribute: Attribute
    edges: Array | None = field(default=None, repr=False)
    fill: float = np.nan

    def codes(self, column: pd.Series[Any]) -> NDArray[np.intp]:
        """Return the code of every record, shape (b,).

        −1 for a value that is missing or not in the domain.
        """
        if self.edges is not None:
            values = floats(column.to_frame())[:, 0]
            return bin_codes(np.where(np.isnan(values), self.fill, values), self.edges)
        # few distinct values are looked up, not every record
        found, different = pd.factorize(column)
        place = pd.Index(self.attribute.labels, tupleize_cols=False).get_indexer(
            pd.Index(different.astype(object))
        )
        return np.asarray(np.append(place, -1)[found], dtype=np.intp)


@dataclass(frozen=True)
class FileCodes(Pieced[np.unsignedinteger]):
    """Records of large files as codes, in order.

    Holds places and counts only, so it can be sent to other processes.

    Attributes
    ----------
    columns : tuple of str
        Columns to read: the coders' own, and with ``drop`` all columns of the table.
    coders : tuple of Coder
        One for each attribute.
    pieces : tuple of Piece
    counts : tuple of int
        Records that each piece yields.
    drop : bool
        Whether records with a missing value are excluded.
    """

    columns: tuple[str, ...]
    coders: tuple[Coder, ...]
    pieces: tuple[Piece, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    drop: bool = False

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return self.starts[-1]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Attributes of the codes."""
        return tuple(coder.attribute for coder in self.coders)

    def read(self, start: int, stop: int) -> Codes:
        """Return records ``start`` to ``stop`` (exclusive), shape (stop − start,).

        Cheapest in order: a piece is decoded from its start.

        Raises
        ------
        DataError
            A file is unreadable or has changed.
        """
        size = int(np.prod([attribute.size for attribute in self.attributes], dtype=np.int64))
        out = np.empty(stop - start, dtype=code_type(size))
        self.cursor(start).take(start, out)
        return out

    def decoded(self, piece: int) -> Iterator[Codes]:
        """Yield the codes of a piece."""
        return checked_parts(
            self.pieces[piece:],
            self.counts[piece:],
            partial(_codes, self.columns, self.coders, self.drop),
        )


def _codes(
    columns: Sequence[str], coders: Sequence[Coder], drop: bool, piece: Piece
) -> Iterator[Codes]:
    for frame in piece.frames(columns):
        whole = frame[frame.notna().all(axis=1)] if drop else frame
        parts = [coder.codes(whole[coder.attribute.name]) for coder in coders]
        if any((part < 0).any() for part in parts):
            raise DataError(f"{Path(piece.path).name}: was changed while it was read")
        yield joined([coder.attribute for coder in coders], parts)
