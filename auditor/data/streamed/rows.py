"""Records that stay in their files, cleaned and rescaled block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import floats
from auditor.data.columns.scan import Scale
from auditor.data.formats.parts import Piece, numbers
from auditor.errors import DataError
from auditor.types import Array

HELD_BYTES = 2**26
"""Largest table held in memory (64 MB, in every process). Results do not depend on it: both kinds
use equal blocks.
"""


K = TypeVar("K", bound=np.generic)


class Cursor(Generic[K]):
    """Sequential reader of a piece that keeps decoded records for later.

    It holds no reference to its rows: a cycle would delay the release of open files and memory.
    """

    def __init__(self, parts: Iterator[NDArray[K]], position: int) -> None:
        self.position = position
        self._parts = parts
        self._left: NDArray[K] | None = None

    def take(self, start: int, out: NDArray[Any]) -> None:
        """Fill ``out`` with the records from ``start`` on."""
        filled = 0
        while filled < len(out):
            if self._left is None or not len(self._left):
                self._left = next(self._parts)
            skip = min(len(self._left), start - self.position)
            part = self._left[skip : skip + len(out) - filled]
            out[filled : filled + len(part)] = part
            self._left = self._left[skip + len(part) :]
            self.position += skip + len(part)
            filled += len(part)
            start += len(part)


class Pieced(ABC, Generic[K]):
    """Records of files, piece by piece.

    The last read position stays open, and is not sent to other processes.
    """

    counts: tuple[int, ...]

    @abstractmethod
    def decoded(self, piece: int) -> Iterator[NDArray[K]]:
        """Yield the records of a piece."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Number of the first record of each piece, and the total."""
        return (0, *accumulate(self.counts))

    def cursor(self, start: int) -> Cursor[K]:
        """Return the last reader if it can continue, else one for the piece."""
        piece = int(np.searchsorted(self.starts, start, side="right")) - 1
        cursor: Cursor[K] | None = self.__dict__.get("_open")
        if cursor is None or not self.starts[piece] <= cursor.position <= start:
            cursor = Cursor(self.decoded(piece), self.starts[piece])
            self.__dict__["_open"] = cursor
        return cursor

    def __getstate__(self) -> dict[str, Any]:
        """State without the open file."""
        return {name: value for name, value in self.__dict__.items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class FileRows(Pieced[np.float64]):
    """Records of some columns of large files, in order.

    Holds places and counts only, so it can be sent to other processes.

    Attributes
    ----------
    columns : tuple of N str
    pieces : tuple of Piece
    counts : tuple of int
        Records that each piece yields.
    drop : bool
        Whether records with a missing value are excluded.
    fill : ndarray of shape (N,) or None
        Replacement of missing values.
    scale : Scale or None
        Rescaling of values.
    beside : tuple of str
        Other columns of the table whose gaps also exclude a record.
    """

    columns: tuple[str, ...]
    pieces: tuple[Piece, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    drop: bool = False
    fill: Array | None = field(default=None, repr=False)
    scale: Scale | None = field(default=None, repr=False)
    beside: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, N)``."""
        return self.starts[-1], len(self.columns)

    def with_scale(self, scale: Scale) -> FileRows:
        """Return the same records, rescaled."""
        return replace(self, scale=scale)

    def read(self, start: int, stop: int) -> Array:
        """Return records ``start`` to ``stop`` (exclusive), shape (·, N).

        Cheapest in order: a piece is decoded from its start.

        Raises
        ------
        DataError
            A file is unreadable or has changed.
        """
        out = np.empty((stop - start, len(self.columns)))
        self.cursor(start).take(start, out)
        if self.fill is not None:
            np.copyto(out, self.fill, where=np.isnan(out))
        if self.scale is not None:
            self.scale.apply(out)
        return out

    def decoded(self, piece: int) -> Iterator[Array]:
        """Yield the records of a piece, including missing values."""
        return checked_parts(
            self.pieces[piece:],
            self.counts[piece:],
            partial(_numbers, self.columns, self.drop, self.beside),
        )


def checked_parts(
    pieces: Sequence[Piece], counts: Sequence[int], parts: Callable[[Piece], Iterator[NDArray[K]]]
) -> Iterator[NDArray[K]]:
    """Yield the records of pieces, and check the number in each piece."""
    for piece, expected in zip(pieces, counts, strict=True):
        found = 0
        for part in parts(piece):
            found += len(part)
            yield part
        if found != expected:
            break
    raise DataError(f"{Path(pieces[-1].path).name}: was changed while it was read")


def _numbers(
    columns: tuple[str, ...], drop: bool, beside: tuple[str, ...], piece: Piece
) -> Iterator[Array]:
    if drop and beside:
        for frame in piece.frames([*columns, *beside]):
            yield floats(frame.loc[frame.notna().all(axis=1), list(columns)])
    else:
        yield from (complete(part) if drop else part for part in numbers(piece, columns))


def complete(values: Array) -> Array:
    """Return the records without missing values."""
    gaps = np.isnan(values)
    return values[~gaps.any(axis=1)] if gaps.any() else values


def fill_values(
    rows: FileRows | Array, bounds: Sequence[tuple[int, int]], missing: NDArray[np.int64]
) -> Array:
    """Return the means of the present values, shape (N,), summed by block.

    Parameters
    ----------
    rows : FileRows or ndarray of shape (n, N)
    bounds : sequence of (int, int)
        The blocks.
    missing : ndarray of shape (N,)
        Number of values that each column lacks.
    """
    read = rows.read if isinstance(rows, FileRows) else lambda a, b: rows[a:b]
    with np.errstate(over="ignore"):
        total = sum(np.nansum(read(a, b), axis=0) for a, b in bounds)
    return np.asarray(total / (rows.shape[0] - missing))
