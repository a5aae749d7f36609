"""Passes over a table: moments, range, fingerprint, recording steps.

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
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from auditor.base.types import Array
from auditor.numerics.blocks import row_blocks, stripes
from auditor.process.environment import one_thread

if TYPE_CHECKING:
    from concurrent.futures import Future


Read = Callable[[int, int], Array]
"""Returns rows ``start`` to ``stop`` of a table, shape (stop − start, N)."""


@dataclass(frozen=True, eq=False)
class Part:
    """Scan of some rows; ``digests`` are SHA-256 of each block."""

    rows: int
    mean: Array
    products: Array
    low: Array
    high: Array
    digests: bytes

    @classmethod
    def of(cls, x: Array, shift: Array) -> Part:
        """Scan of one block, shape (b, N)."""
        columns = np.array(x.T, order="C")  # for fast loops
        low, high = columns.min(axis=1), columns.max(axis=1)
        columns -= shift[:, None]
        mean = columns @ np.ones(len(x)) / len(x)
        columns -= mean[:, None]
        digest = hashlib.sha256(np.ascontiguousarray(x).data).digest()
        return cls(len(x), mean, columns @ columns.T, low, high, digest)

    def __add__(self, other: Part) -> Part:
        rows = self.rows + other.rows
        apart, share = other.mean - self.mean, other.rows / rows
        return Part(
            rows,
            self.mean + apart * share,
            self.products + other.products + np.outer(apart, apart) * (self.rows * share),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.digests + other.digests,
        )


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of one pass over a table.

    Attributes
    ----------
    shift, residue : ndarrays of shape (N,)
        ``s`` and ``m``: the mean is their sum, precise relative to the spread.
    covariance : ndarray of shape (N, N)
        Divisor n.
    low, high : ndarrays of shape (N,)
        Least and largest value.
    digest
        SHA-256 over the blocks' digests.
    """

    rows: int
    shift: Array = field(repr=False)
    residue: Array = field(repr=False)
    covariance: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    digest: str

    @property
    def mean(self) -> Array:
        """Mean, shape (N,)."""
        return self.shift + self.residue


@dataclass(frozen=True, eq=False)
class Scale:
    """Standardisation ``(x − shift − residue) / std``, arrays of shape (N,)."""

    shift: Array = field(repr=False)
    residue: Array = field(repr=False)
    std: Array = field(repr=False)

    @classmethod
    def of(cls, scan: Scan) -> Scale:
        """Scale from a table's own moments (divisor n)."""
        return cls(scan.shift, scan.residue, np.sqrt(np.diag(scan.covariance)))

    def apply(self, x: Array) -> None:
        """Rescale rows in place; shift and residue have other rounding units."""
        x -= self.shift
        x -= self.residue
        x /= self.std

    def undone(self, x: Array) -> Array:
        """Rows in original units, up to rounding."""
        return x * self.std + self.residue + self.shift


def scan(read: Read, rows: int, width: int) -> Scan:
    """Scan of a table of finite numbers."""
    blocks = row_blocks(rows, width)

    def scan_stripe(stripe: tuple[int, int]) -> Part:
        # overflow is refused later, by name
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return reduce(add, (Part.of(read(*block), shift) for block in blocks[slice(*stripe)]))

    with one_thread():  # sums depend on the number of threads
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            shift = read(*blocks[0]).mean(axis=0)
            shift = np.where(np.isfinite(shift), shift, 0.0)
            cuts = stripes(rows, width)
            # a small table is finished before a thread starts
            parts = in_threads(scan_stripe, cuts) if len(cuts) > 1 else map(scan_stripe, cuts)
            whole = reduce(add, parts)
    digest = hashlib.sha256(whole.digests).hexdigest()
    covariance = whole.products / whole.rows
    return Scan(whole.rows, shift, whole.mean, covariance, whole.low, whole.high, digest)


T = TypeVar("T")
R = TypeVar("R")

MOST_THREADS = 4
"""Each holds a batch of records; more would saturate disk or memory."""


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield each item's result in order, with few started in advance."""
    # milliseconds, wasted on one stripe
    from concurrent.futures import ThreadPoolExecutor

    threads = min(MOST_THREADS, os.cpu_count() or 1)
    waiting: deque[Future[R]] = deque()
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


@dataclass(frozen=True, eq=False)
class Resolution:
    """Recording steps of the columns, shape (N,), NaN for a continuous column.

    ``commonest``: share of the most frequent value.
    """

    steps: Array = field(repr=False)
    commonest: Array = field(repr=False)


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
                self.unit = math.gcd(
                    self.unit * 10 ** (places - self.places),
                    int(np.gcd.reduce(whole.astype(np.int64))),
                )
                self.places = places
                return
        self.continuous = True

    @property
    def step(self) -> float:
        """Step in units of the values; NaN if none."""
        return math.nan if self.continuous or self.unit == 0 else self.unit / 10.0**self.places


def resolution(blocks: Callable[[], Iterable[Array]], rows: int, width: int) -> Resolution:
    """Resolution of a table from its blocks of shape (b, N).

    Examples
    --------
    >>> x = np.array([[20.0, 0.25, 0.1234567], [30.0, 1.5, 3.0], [30.0, 0.75, 3.0]])
    >>> resolution(lambda: [x], 3, 3).steps.tolist()
    [10.0, 0.25, nan]
    """
    every = max(1, math.ceil(rows * width / COUNTED_VALUES))
    grids, held, before = [Grid() for _ in range(width)], [], 0
    for x in blocks():
        for grid, column in zip(grids, x.T, strict=True):
            grid.add(column)
        held.append(x[-before % every :: every])
        before += len(x)
    steps, sample = np.array([grid.step for grid in grids]), np.concatenate(held)
    return Resolution(
        steps,
        np.array([_commonest(column, step) for column, step in zip(sample.T, steps, strict=True)]),
    )


def _commonest(column: Array, step: float) -> float:
    return (
        math.nan
        if math.isnan(step)
        else float(np.unique(np.rint(column / step), return_counts=True)[1].max() / len(column))
    )
