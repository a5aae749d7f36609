"""The table that is audited, as every other module sees it: named numeric columns, read block by block."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.columns.hierarchy import Hierarchy
from auditor.data.columns.resolution import Resolution, resolution
from auditor.data.columns.scan import Scale, Scan, scan
from auditor.numerics.blocks import row_blocks
from auditor.numerics.read_only import seal

if TYPE_CHECKING:  # what few tables have; who makes one of those has imported it
    from auditor.data.columns.record_keys import RecordKeys
    from auditor.data.streamed.rows import FileRows


@dataclass(frozen=True, eq=False)
class Cut:
    """Which records and columns of another table a table holds: arrays of places, ascending."""

    whole: Table = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    columns: NDArray[np.intp] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Promised:
    """Records that are made when somebody first asks for one: their source knows the rest without them.

    Attributes
    ----------
    shape : (int, int)
        ``(n, N)``.
    moments : (ndarray of shape (N,), ndarray of shape (N, N))
        Mean and covariance with divisor n, before they are standardised and without the rounding of a table that was made.
    make : callable
        Returns the table, with them in memory.
    """

    shape: tuple[int, int]
    moments: tuple[NDArray[np.float64], NDArray[np.float64]] = field(repr=False)
    make: Callable[[], Table] = field(repr=False)

    @cached_property
    def table(self) -> Table:
        """The table with its records."""
        return self.make()


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric microdata: ``n`` records (rows) by ``N`` attributes (columns).

    Attributes
    ----------
    attributes : tuple of str
        Column names, unique.
    content : ndarray of shape (n, N), FileRows or Promised
        Finite, C-contiguous float64, in data units; of a large file not the values but where they are, or what makes them.
    source : str
        Where it came from, as written in the scenario.
    description, licence : str
        Shown wherever the data are named.
    categorical : CategoricalTable or None
        The same records as categories, when the scenario bins a column or names categories; ``N`` may be 0 then.
    scanned : Scan or None
        What a pass over the records found, before they were standardised; found when it is asked for if nobody has yet.
    standardized : bool
        Whether the content is the records brought to mean 0 and variance 1.
    hierarchies : mapping
        Column → its declared hierarchy; the content then holds places among its leaves.
    dates : mapping
        Columns that were read as days → the format of their text, or None: copies from files are read likewise.
    keys : RecordKeys or None
        What identifies the records, where the scenario names a column that does.
    cut : Cut or None
        What the table is a part of, if it is one: copies from files may lack some of the original's records or columns.
    dropped : bool
        Whether records with a blank were left out, if there were any: those of a copy are treated alike.
    bounds : mapping
        Column → (low, high), as stated from outside; empty where none are.
    first_batch : int or None
        How many records the first batch had, where they arrived in batches: noise is scaled to these.
    population : callable or None
        Finds the covariance of the law that the records were drawn from, (N, N) in the content's units, where their source states one.
    """

    attributes: tuple[str, ...]
    content: NDArray[np.float64] | FileRows | Promised = field(repr=False)
    source: str = "array"
    description: str = ""
    licence: str = ""
    categorical: CategoricalTable | None = field(default=None, repr=False)
    scanned: Scan | None = field(default=None, repr=False)
    standardized: bool = False
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict, repr=False)
    dates: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    keys: RecordKeys | None = field(default=None, repr=False)
    cut: Cut | None = field(default=None, repr=False)
    dropped: bool = False
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    first_batch: int | None = None
    population: Callable[[], NDArray[np.float64] | None] | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return int(self.content.shape[0])

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return int(self.content.shape[1])

    @property
    def streamed(self) -> bool:
        """Whether the records stay in their file, to be read block by block."""
        return not isinstance(self.content, (np.ndarray, Promised)) or (self.categorical is not None and self.categorical.streamed)

    @property
    def records(self) -> NDArray[np.float64] | FileRows:
        """The content, made if it is not yet."""
        return self.content.table.records if isinstance(self.content, Promised) else self.content

    @property
    def values(self) -> NDArray[np.float64]:
        """All records, shape (n, N): for what cannot be done block by block. Of a large file they are read into memory, every time."""
        records = self.records
        return records if isinstance(records, np.ndarray) else records.read(0, self.rows)

    @property
    def whole(self) -> Table:
        """The table that this one is a part of; itself if it is whole."""
        return self if self.cut is None else self.cut.whole

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Table:
        """Return some records and columns, by their places, ascending: in memory, unless they are all."""
        if len(rows) == self.rows and len(columns) == self.width:
            return self
        data, content = self.categorical, self.values[np.ix_(rows, columns)]
        seal(content)
        return replace(
            self, attributes=tuple(self.attributes[j] for j in columns), content=content, scanned=None,
            categorical=None if data is None else CategoricalTable(data.attributes, data.codes[rows]),
            keys=None, cut=Cut(self, rows, columns), first_batch=None, population=None,
        )  # fmt: skip

    def cut_out(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return those of the whole table's values, one for each record or one for each record and column, that are this part's."""
        if self.cut is None:
            return values
        return values[self.cut.rows] if values.ndim == 1 else values[np.ix_(self.cut.rows, self.cut.columns)]

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return rows ``start`` to ``stop`` (exclusive) as an array of shape (stop − start, N); do not write to it."""
        records = self.records
        return records[start:stop] if isinstance(records, np.ndarray) else records.read(start, stop)

    def shares(self, column: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distinct values of a column, ascending, and the share of the records that have each."""
        blocks = row_blocks(self.rows, self.width)
        found = [np.unique(self.read(start, stop)[:, column], return_counts=True) for start, stop in blocks]
        values, place = np.unique(np.concatenate([each for each, _ in found]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([count for _, count in found]))
        return values, counts / self.rows

    @cached_property
    def scan(self) -> Scan:
        """What a pass over the records tells, before they were standardised."""
        if isinstance(self.content, Promised):
            return self.content.table.scan
        return self.scanned if self.scanned is not None else scan(self._reader, self.rows, self.width)

    @cached_property
    def resolution(self) -> Resolution:
        """In what steps each column was recorded, found in a pass over all records; of a standardised table in standard deviations."""
        found = resolution(self._unscaled, self.rows, self.width)
        return replace(found, steps=found.steps / Scale.of(self.scan).std) if self.standardized else found

    def _unscaled(self) -> Iterator[NDArray[np.float64]]:
        """Yield the records block by block in the units that they were recorded in."""
        for start, stop in row_blocks(self.rows, self.width):
            x = self.read(start, stop)
            yield Scale.of(self.scan).undone(x) if self.standardized else x

    def _reader(self) -> Callable[[int, int], NDArray[np.float64]]:
        """Return what reads rows in a thread of its own."""
        return self.read if isinstance(self.records, np.ndarray) else replace(self.records).read

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact mean, shape (N,), and covariance with divisor n, shape (N, N)."""
        mean, K = self.content.moments if isinstance(self.content, Promised) else (self.scan.mean, self.scan.covariance)
        if not self.standardized:
            return mean, K
        std = np.sqrt(np.diag(K))
        return np.zeros(self.width), K / np.outer(std, std)

    def head(self, rows: int) -> Table:
        """Return the first so many records as they are here, in memory: a table of their own."""
        return replace(
            self, content=self.read(0, rows), categorical=None, scanned=None, standardized=False, keys=None, cut=None, first_batch=None,
            population=None,
        )

    def fingerprint(self) -> str:
        """Return a SHA-256 over names, shape and values: tells tables apart, says nothing of a large one's content."""
        shape = (self.rows, self.width)
        digest = hashlib.sha256(repr((self.attributes, shape, self.standardized, self.scan.digest)).encode())
        if self.categorical is not None:
            digest.update(self.categorical.fingerprint().encode())
        if self.keys is not None:
            digest.update(self.keys.digest.encode())
        if self.first_batch is not None:
            digest.update(f"first batch {self.first_batch}".encode())
        return digest.hexdigest()


class Audited(NamedTuple):
    """The part of a table that is audited.

    Attributes
    ----------
    table : Table
    notes : tuple of str
        What a reader must know of the rest.
    understated : bool
        Whether some of the rest is less perturbed, so that figures of the part say too little of how exposed it is.
    """

    table: Table
    notes: tuple[str, ...] = ()
    understated: bool = False
