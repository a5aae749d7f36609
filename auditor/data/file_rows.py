"""Rows of a large table as numbers, in a private file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from auditor.base.errors import DataError
from auditor.base.types import Array, Codes
from auditor.data.columns.categorical_table import Attribute, bin_codes, joined
from auditor.data.columns.scan import Scale

HELD_BYTES = 2**26
"""Largest table held in memory (64 MB, in every process). Results do not depend on it: both kinds
use equal blocks.
"""
OPEN_FILES = Path("/proc/self/fd")


class Scratch:
    """Rows of float64, shape (n, W), in a private file, deleted with its last reference.

    It holds original values. On Linux it has no name, and the user's processes open it by number.
    Elsewhere its mode is 0600.
    """

    def __init__(self, width: int) -> None:
        unnamed = OPEN_FILES.is_dir()
        make: Any = tempfile.TemporaryFile if unnamed else tempfile.NamedTemporaryFile
        self._file: IO[bytes] | None = make(prefix="auditor-")
        assert self._file is not None
        self.name = f"/proc/{os.getpid()}/fd/{self._file.fileno()}" if unnamed else self._file.name
        self.shape = (0, width)

    def append(self, x: Array) -> None:
        """Write the next rows, shape (b, W).

        Raises
        ------
        DataError
            The disk is full.
        """
        assert self._file is not None
        try:
            self._file.write(np.ascontiguousarray(x).data)
            self._file.flush()
        except OSError as error:
            where = f"{tempfile.gettempdir()}: no room for the table as numbers"
            raise DataError(f"{where} ({error.strerror}); set TMPDIR to a larger disk") from None
        self.shape = (self.shape[0] + len(x), self.shape[1])
        self._state = _state(self.name)

    @property
    def is_here(self) -> bool:
        """Whether this process can read the file, on this machine."""
        return _state(self.name) == self._state

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start:stop``."""
        W = self.shape[1]
        return np.fromfile(self.name, count=(stop - start) * W, offset=8 * start * W).reshape(-1, W)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None}


def _state(name: str) -> tuple[int, ...]:
    with suppress(OSError):
        state = Path(name).stat()
        return state.st_ino, state.st_size, state.st_mtime_ns
    return ()


@dataclass(frozen=True)
class FileRows:
    """First ``width`` columns of a file's records, as numbers.

    ``make`` reads the files again on another machine.
    """

    scratch: Scratch = field(repr=False, compare=False)
    make: Callable[[], Array | Scratch] = field(repr=False, compare=False)
    width: int
    scale: Scale | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, N)``."""
        return (self.scratch.shape[0], self.width)

    @cached_property
    def _here(self) -> Array | Scratch:
        found = self.scratch if self.scratch.is_here else self.make()
        if found.shape != self.scratch.shape:
            raise DataError("the table was changed while it was read")
        return found

    def read(self, start: int, stop: int) -> Array:
        """Records ``start:stop``, shape (stop − start, N).

        Raises
        ------
        DataError
            On another machine: a file is unreadable or has changed.
        """
        here = self._here
        x = here[start:stop] if isinstance(here, np.ndarray) else here.read(start, stop)
        x = np.ascontiguousarray(x[:, : self.width])
        if self.scale is not None:
            self.scale.apply(x)
        return x

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_here"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class FileCodes:
    """Codes of the records' categories, from columns ``places`` of the rows."""

    rows: FileRows = field(repr=False)
    attributes: tuple[Attribute, ...]
    places: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n,)``."""
        return self.rows.shape[:1]

    def read(self, start: int, stop: int) -> Codes:
        """Codes of records ``start:stop``."""
        return codes_from(self.rows.read(start, stop), self.attributes, self.places)


def codes_from(x: Array, attributes: Sequence[Attribute], places: Sequence[int]) -> Codes:
    """Product codes, (b,), from columns of numbers to bin, or of codes."""
    columns = [
        x[:, j].astype(np.intp) if attribute.edges is None else bin_codes(x[:, j], attribute.edges)
        for attribute, j in zip(attributes, places, strict=True)
    ]
    return joined(attributes, columns)
