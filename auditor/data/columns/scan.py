"""Passes over a table (moments, steps), and its rows in a private file.

| symbol | meaning | shape |
| --- | --- | --- |
| ``s`` | the first block's mean | (N,) |
| ``m`` | mean of ``x − s`` | (N,) |
| ``P`` | ``Σ (x − s − m)(x − s − m)ᵀ`` | (N, N) |

Blocks' moments about their means are joined by the rule of Chan, Golub and LeVeque (1979), as exact
as two passes. Blocks are joined within a stripe, then stripes
(``auditor.numerics.blocks.stripes``), in order: the result does not depend on the number of
workers.

A recording step is ``gcd(x·10^k) / 10^k``, with the fewest decimal places k ≤ 6 that write all
values. A column without a step is continuous.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import ceil, gcd, isnan, nan
from operator import add
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from auditor.base import DataError
from auditor.base.types import Array, Codes, Plain, Shape, unprinted
from auditor.data.columns.categorical_table import Attribute, bin_codes, joined
from auditor.numerics.blocks import row_blocks, stripes
from auditor.process.environment import one_thread

Read = Callable[[int, int], Array]
"""Returns rows ``start`` to ``stop`` of a table, shape (stop − start, N)."""


@unprinted
class Scan:
    """Result of a pass over some rows, or all.

    Attributes
    ----------
    mean : ndarray of shape (N,)
    products : ndarray of shape (N, N)
        ``P``.
    low, high : ndarrays of shape (N,)
        Least and largest value.
    digests
        SHA-256 of each block.
    """

    rows: int
    mean: Array
    products: Array
    low: Array
    high: Array
    digests: bytes

    @property
    def covariance(self) -> Array:
        """Covariance with divisor n."""
        return self.products / self.rows

    @property
    def digest(self) -> str:
        """SHA-256 over the blocks' digests."""
        return hashlib.sha256(self.digests).hexdigest()

    @property
    def largest(self) -> Array:
        """Largest absolute values, shape (N,)."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @classmethod
    def of(cls, x: Array, shift: Array) -> Scan:
        """Scan of one block, shape (b, N), less ``shift``."""
        columns = np.array(x.T, order="C")  # for fast loops
        low, high = columns.min(axis=1), columns.max(axis=1)
        columns -= shift[:, None]
        mean = columns @ np.ones(len(x)) / len(x)
        columns -= mean[:, None]
        digest = hashlib.sha256(np.ascontiguousarray(x).data).digest()
        return cls(len(x), mean, columns @ columns.T, low, high, digest)

    def __add__(self, other: Scan) -> Scan:
        rows = self.rows + other.rows
        apart, share = other.mean - self.mean, other.rows / rows
        return Scan(
            rows,
            self.mean + apart * share,
            self.products + other.products + np.outer(apart, apart) * (self.rows * share),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.digests + other.digests,
        )


@unprinted
class Scale:
    """Standardisation ``(x − mean) / std``, arrays of shape (N,)."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, scan: Scan) -> Scale:
        """Scale from a table's own moments (divisor n)."""
        return cls(scan.mean, np.sqrt(np.diag(scan.covariance)))

    def apply(self, x: Array) -> None:
        """Rescale rows in place."""
        x -= self.mean
        x /= self.std

    def undone(self, x: Array) -> Array:
        """Rows in original units, up to rounding."""
        return x * self.std + self.mean


def scan(read: Read, rows: int, width: int) -> Scan:
    """Scan of a table of finite numbers."""
    blocks = row_blocks(rows, width)

    def scan_stripe(stripe: tuple[int, int]) -> Scan:
        # overflow is refused later, by name
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return reduce(add, (Scan.of(read(*block), shift) for block in blocks[slice(*stripe)]))

    with one_thread():  # sums depend on the number of threads
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            shift = read(*blocks[0]).mean(axis=0)
            shift = np.where(np.isfinite(shift), shift, 0.0)
            cuts = stripes(rows, width)
            # a small table is finished before a thread starts
            parts = in_threads(scan_stripe, cuts) if len(cuts) > 1 else map(scan_stripe, cuts)
            whole = reduce(add, parts)
    return replace(whole, mean=shift + whole.mean)


T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 4
"""Each holds a batch of records; more would saturate disk or memory."""


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield each item's result in order, with few started in advance."""
    # milliseconds, wasted on one stripe
    from concurrent.futures import ThreadPoolExecutor

    threads = min(MOST_THREADS, os.cpu_count() or 1)
    waiting: deque[Any] = deque()
    # `close_up` finds threads by this name
    pool = ThreadPoolExecutor(threads, thread_name_prefix="auditor-pieces")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # No wait: after an error the generator may be collected in any thread at any moment, and a
        # starting thread holds the lock that the end of every other needs
        # (`threading._shutdown_locks_lock`).
        pool.shutdown(wait=False, cancel_futures=True)


MOST_PLACES = 6
SLACK = 1e-6
"""Tolerance of a whole multiple, in steps, for rounding of reading and scaling."""
LARGEST = 1e12
"""In units of the last decimal place: up to this value doubles are ten thousand times finer."""
COUNTED_VALUES = 2**22
"""Sample for the most frequent value, evenly spread: 32 MB, standard error below 0.1 % for ten
columns.
"""


@unprinted
class Resolution:
    """Recording steps of the columns, shape (N,), NaN for a continuous column.

    ``commonest``: share of the most frequent value.
    """

    steps: Array
    commonest: Array


@dataclass
class Grid:
    """Greatest common step so far, in last decimal places."""

    places: int = 0
    unit: int = 0
    continuous: bool = False

    def add(self, x: Array) -> None:
        """Add values, shape (b,)."""
        for places in range(self.places, MOST_PLACES + 1) if not self.continuous else ():
            u = x * 10.0**places
            size, whole = np.abs(u), np.rint(u)
            if (
                size.max(initial=0.0) <= LARGEST
                and (np.abs(u - whole) <= SLACK + 4.0 * np.finfo(np.float64).eps * size).all()
            ):
                self.unit = gcd(
                    self.unit * 10 ** (places - self.places),
                    int(np.gcd.reduce(whole.astype(np.int64))),
                )
                self.places = places
                return
        self.continuous = True

    @property
    def step(self) -> float:
        """Step in units of the values; NaN if none."""
        return nan if self.continuous or self.unit == 0 else self.unit / 10.0**self.places


def resolution(blocks: Callable[[], Iterable[Array]], rows: int, width: int) -> Resolution:
    """Resolution of a table from its blocks of shape (b, N).

    Examples
    --------
    >>> x = np.array([[20.0, 0.25, 0.1234567], [30.0, 1.5, 3.0], [30.0, 0.75, 3.0]])
    >>> resolution(lambda: [x], 3, 3).steps.tolist()
    [10.0, 0.25, nan]
    """
    every = max(1, ceil(rows * width / COUNTED_VALUES))
    grids, held, before = [Grid() for _ in range(width)], [], 0
    for x in blocks():
        for grid, column in zip(grids, x.T, strict=True):
            grid.add(column)
        held.append(x[-before % every :: every])
        before += len(x)
    steps, sample = np.array([grid.step for grid in grids]), np.concatenate(held)
    shares = [
        nan
        if isnan(step)
        else np.unique(np.rint(column / step), return_counts=True)[1].max() / len(column)
        for column, step in zip(sample.T, steps, strict=True)
    ]
    return Resolution(steps, np.array(shares))


# -- Rows of a large table as numbers, in a private file -------------------------------------------


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
            raise DataError(
                f"{tempfile.gettempdir()}: no room for the table as numbers ({error.strerror}); set TMPDIR to a "
                "larger disk"
            ) from None
        self.shape = (self.shape[0] + len(x), self.shape[1])
        self._state = _state(self.name)

    @property
    def is_here(self) -> bool:
        """Whether this process can read the file, on this machine."""
        return _state(self.name) == self._state

    def __getitem__(self, rows: slice) -> Array:
        W, (start, stop, _) = self.shape[1], rows.indices(self.shape[0])
        return np.fromfile(self.name, count=(stop - start) * W, offset=8 * start * W).reshape(-1, W)

    def __getstate__(self) -> Plain:
        return {**self.__dict__, "_file": None}


def _state(name: str) -> tuple[int, ...]:
    with suppress(OSError):
        state = Path(name).stat()
        return state.st_ino, state.st_size, state.st_mtime_ns
    return ()


@dataclass(frozen=True, repr=False)
class FileRows:
    """First ``width`` columns of a file's records, as numbers.

    ``make`` reads the files again on another machine.
    """

    scratch: Scratch = field(compare=False)
    make: Callable[[], Any] = field(compare=False)
    width: int
    scale: Scale | None = None

    @property
    def shape(self) -> Shape:
        """``(n, N)``."""
        return (self.scratch.shape[0], self.width)

    @cached_property
    def _here(self) -> Array | Scratch:
        found: Array | Scratch = self.scratch if self.scratch.is_here else self.make().content
        if found.shape != self.scratch.shape:
            raise DataError("the table was changed while it was read")
        return found

    def __getitem__(self, rows: slice) -> Array:
        """Records, shape (b, N).

        Raises
        ------
        DataError
            On another machine: a file is unreadable or has changed.
        """
        x = np.ascontiguousarray(self._here[rows][:, : self.width])
        if self.scale is not None:
            self.scale.apply(x)
        return x

    def __getstate__(self) -> Plain:
        return {name: value for name, value in self.__dict__.items() if name != "_here"}

    def __setstate__(self, state: Plain) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True, repr=False)
class FileCodes:
    """Codes of the records' categories, from columns ``places`` of the rows."""

    rows: FileRows
    attributes: tuple[Attribute, ...]
    places: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        """``(n,)``."""
        return self.rows.shape[:1]

    def __getitem__(self, rows: slice) -> Codes:
        return codes_from(self.rows[rows], self.attributes, self.places)


def codes_from(x: Array, attributes: Sequence[Attribute], places: Sequence[int]) -> Codes:
    """Product codes, (b,), from columns of numbers to bin, or of codes."""
    columns = [
        x[:, j].astype(int) if attribute.edges is None else bin_codes(x[:, j], attribute.edges)
        for attribute, j in zip(attributes, places, strict=True)
    ]
    return joined(attributes, columns)
