"""Records as numbers or codes, decoded from their pieces by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import DataError
from auditor.base.types import Array, Codes, Indices
from auditor.data.columns.categorical_table import (
    Attribute,
    bin_codes,
    code_type,
    codes_in,
    domain_size,
    joined,
)
from auditor.data.columns.checks import Frame, are_complete, column_floats, floats
from auditor.data.columns.scan import Scale
from auditor.data.formats.parts import Records

HELD_BYTES = 2**26
"""Largest table held in memory (64 MB, in every process). Results do not depend on it: both kinds
use equal blocks.
"""


@dataclass(frozen=True)
class Numbers:
    """Conversion to numbers.

    ``required`` are columns whose gaps exclude a record; ``fill``, shape (N,), replaces missing values.
    """

    names: tuple[str, ...]
    required: tuple[str, ...] = ()
    fill: Array | None = field(default=None, repr=False)
    scale: Scale | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return tuple(dict.fromkeys((*self.names, *self.required)))

    @property
    def empty(self) -> Array:
        """No records."""
        return np.empty((0, len(self.names)))

    def __call__(self, frame: Frame) -> Array:
        """Return records of shape (b, N)."""
        x = floats(frame, self.names)
        x = x[are_complete(frame, self.required)] if self.required else x
        x = x if self.fill is None else np.where(np.isnan(x), self.fill, x)
        if self.scale is not None:
            self.scale.apply(x)
        return x


@dataclass(frozen=True)
class Coder:
    """Conversion of one column to bins, or to places among labels."""

    attribute: Attribute
    fill: float = np.nan

    def __call__(self, column: Any) -> Indices:
        """Return the code of every record, shape (b,); −1 for an unknown label."""
        if self.attribute.edges is None:
            return codes_in(self.attribute.labels, column)
        x = column_floats(column)
        return bin_codes(np.where(np.isnan(x), self.fill, x), self.attribute.edges)


@dataclass(frozen=True)
class ProductCodes:
    """Conversion to codes of a product domain.

    ``required`` are columns whose gaps exclude a record.
    """

    coders: tuple[Coder, ...]
    required: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Attributes of the codes."""
        return tuple(coder.attribute for coder in self.coders)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return tuple(dict.fromkeys((*(a.name for a in self.attributes), *self.required)))

    @property
    def empty(self) -> Codes:
        """No records."""
        return np.empty(0, dtype=code_type(domain_size(self.attributes)))

    def __call__(self, frame: Frame) -> Codes:
        """Return codes of shape (b,).

        Raises
        ------
        LookupError
            A label is unknown.
        """
        codes = [coder(frame[coder.attribute.name]) for coder in self.coders]
        if self.required:
            kept = are_complete(frame, self.required)
            codes = [part[kept] for part in codes]
        if any((part < 0).any() for part in codes):
            raise LookupError
        return joined(self.attributes, codes)


Decoder = Numbers | ProductCodes


class Cursor:
    """Sequential reader that keeps decoded records for later.

    It holds no reference to its rows: a cycle would delay the release of open files and memory.
    """

    def __init__(self, parts: Iterator[NDArray[Any]], position: int) -> None:
        self.position = position
        self._parts = parts
        self._left: NDArray[Any] = np.empty(0)

    def take(self, start: int, out: NDArray[Any]) -> None:
        """Fill ``out`` with the records from ``start`` on."""
        filled = 0
        while filled < len(out):
            if not len(self._left):
                self._left = next(self._parts)
            skip = min(len(self._left), start + filled - self.position)
            part = self._left[skip : skip + len(out) - filled]
            out[filled : filled + len(part)] = part
            self._left = self._left[skip + len(part) :]
            self.position += skip + len(part)
            filled += len(part)


@dataclass(frozen=True)
class FileRows:
    """Records in order, read from their pieces; ``counts`` has how many each yields.

    It holds places and counts only, so it can be sent to other processes. The last read position
    stays open, and is not sent.
    """

    pieces: tuple[Records, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    decode: Decoder

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Number of the first record of each piece, and the total."""
        return (0, *accumulate(self.counts))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, N)`` for numbers, ``(n,)`` for codes."""
        return (self.starts[-1], *self.decode.empty.shape[1:])

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return records ``start`` to ``stop`` (exclusive).

        Cheapest in order: a piece is decoded from its start.

        Raises
        ------
        DataError
            A file is unreadable or has changed.
        """
        out = np.empty((stop - start, *self.shape[1:]), dtype=self.decode.empty.dtype)
        self._cursor(start).take(start, out)
        return out

    def _cursor(self, start: int) -> Cursor:
        piece = int(np.searchsorted(self.starts, start, side="right")) - 1
        cursor: Cursor | None = self.__dict__.get("_open")
        if cursor is None or not self.starts[piece] <= cursor.position <= start:
            parts = _decoded(self.pieces[piece:], self.counts[piece:], self.decode)
            cursor = self.__dict__["_open"] = Cursor(parts, self.starts[piece])
        return cursor

    def __getstate__(self) -> dict[str, Any]:
        """State without the open file."""
        return {name: value for name, value in self.__dict__.items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _decoded(
    pieces: Sequence[Records], counts: Sequence[int], decode: Decoder
) -> Iterator[NDArray[Any]]:
    for piece, expected in zip(pieces, counts, strict=True):
        found = 0
        for frame in piece.frames(decode.columns):
            try:
                part = decode(frame)
            except LookupError:
                break
            found += len(part)
            yield part
        if found != expected:
            break
    raise DataError(f"{Path(pieces[-1].path).name}: was changed while it was read")
