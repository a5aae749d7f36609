"""Blocks, stripes and row groups of a table, and moments in one pass.

| unit | use | size |
| --- | --- | --- |
| block | of reading, drawing and attacking; own random stream | 2¹⁸ values |
| stripe | whole blocks: the least share of a pass per worker | 1 to 16 blocks |
| row group | separate moments, for the jackknife | 32 to 64 in a table, or 64 runs of stripes |
| piece, chunk | fits the cache during work | 2¹⁶ to 2¹⁸ values |

The partition depends on the table's shape alone. Stripes are added in order, so results are
identical for any number of workers.

| symbol | meaning | shape |
| --- | --- | --- |
| ``v`` | a row of ``[X, Y_1 … Y_M]`` less the table's mean, ``mu_X``, in every part | (d,), d = (M+1)N |
| ``t`` | ``Σ v`` over rows | (d,) |
| ``P`` | ``Σ v vᵀ`` over rows | (d, d) |

Moments of row groups add up. Rows are centred *before* products, against rounding.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Arrays, Flags, Indices, unprinted

BLOCK_VALUES = 2**18
"""Values in a block: seeding is 5 % of filling it, and it fits the cache.
"""

JACKKNIFE_GROUPS = 32
"""Groups for jackknife errors: their variance has error 1/sqrt(2·31) = 13 %.
"""

FEWEST_GROUPS = 8
"""Groups if each needs much memory: t(7) intervals are a sixth wider.
"""
MOST_PRODUCTS = 2**25
"""Most products in the moments of all groups."""


def row_blocks(rows: int, width: int) -> list[tuple[int, int]]:
    """``(start, stop)`` of every block of a table.

    Examples
    --------
    >>> row_blocks(100_000, 8)
    [(0, 32768), (32768, 65536), (65536, 98304), (98304, 100000)]
    """
    size = block_rows(width)
    return [(start, min(start + size, rows)) for start in range(0, rows, size)]


def block_rows(width: int) -> int:
    """Number of rows of every block except the last."""
    return max(64, BLOCK_VALUES // max(1, width))


STRIPES = 64
"""Most blocks with a stripe each."""
MOST_BLOCKS = 16
"""Blocks of the longest stripe."""


def stripes(rows: int, width: int) -> list[tuple[int, int]]:
    """``(first, stop)`` block numbers of every stripe.

    Examples
    --------
    >>> stripes(100_000, 8)
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    >>> len(stripes(20_000_000, 4)), stripes(20_000_000, 4)[:2], len(stripes(200_000_000, 4))
    (64, [(0, 4), (4, 9)], 192)
    """
    count = len(row_blocks(rows, width))
    return _split(0, count, min(count, STRIPES * math.ceil(count / (STRIPES * MOST_BLOCKS))))


def evenly(start: int, stop: int, width: int, values: int) -> list[tuple[int, int]]:
    """Divide rows ``start`` to ``stop`` into pieces of about ``values``."""
    size = max(64, values // max(1, width))
    return _split(start, stop, max(1, round((stop - start) / size)))


def row_groups(rows: int, width: int) -> list[list[tuple[int, int]]]:
    """Return, block by block, the contiguous row groups for moments.

    About ``min(rows, 32)`` groups, or one per block.
    """
    blocks = row_blocks(rows, width)
    target = rows / min(rows, JACKKNIFE_GROUPS)
    return [_split(start, stop, max(1, round((stop - start) / target))) for start, stop in blocks]


def block_head(rows: int, width: int, wanted: int) -> int | None:
    """Number of first records of every block in a sample.

    Some ``wanted`` records in all; None for every record.

    Examples
    --------
    >>> block_head(100_000, 2, 262_144), block_head(20_000_000, 4, 262_144)
    (None, 859)
    """
    if rows <= wanted:
        return None
    start, stop = row_blocks(rows, width)[0]
    return math.ceil(wanted * (stop - start) / rows)


def moment_groups(rows: int, width: int, columns: int = 0) -> list[list[tuple[int, int, int]]]:
    """Return, block by block, ``(group, start, stop)`` for joint moments.

    As ``row_groups`` for few blocks, else ``STRIPES`` groups of whole stripes; at most
    ``MOST_PRODUCTS`` products, but at least ``FEWEST_GROUPS`` groups.
    """
    cuts, lines = row_groups(rows, width), stripes(rows, width)
    if len(cuts) <= STRIPES:
        numbers = itertools.count()
        found = [[(next(numbers), a, b) for a, b in parts] for parts in cuts]
    else:
        together = len(lines) // STRIPES
        group = [number // together for number, cut in enumerate(lines) for _ in range(*cut)]
        found = [[(group[block], a, b) for a, b in parts] for block, parts in enumerate(cuts)]
    count, most = found[-1][-1][0] + 1, max(FEWEST_GROUPS, MOST_PRODUCTS // max(1, columns**2))
    return (
        found
        if count <= most
        else [[(number * most // count, a, b) for number, a, b in parts] for parts in found]
    )


def _split(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    cuts = [start + math.floor((stop - start) * k / parts) for k in range(parts + 1)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]


class Part(Protocol):
    """Result of a pass over some stripes."""

    def add(self, other: Any) -> None:
        """Add the result of later records."""


P = TypeVar("P", bound=Part)


class Job(ABC, Generic[P]):
    """Computation of a pass.

    Attributes
    ----------
    exact
        Whether parts may be added in any order.
    drawn
        Whether the copies' generators are used.
    """

    exact: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    @abstractmethod
    def begin(self) -> P:
        """Empty result."""

    @abstractmethod
    def take(self, block: Any, into: P) -> None:
        """Process one block."""

    def end(self, into: P) -> None:
        """Process the end of a stripe."""


def added_up(job: Job[P], parts: Iterable[P]) -> P:
    """Job's result for the whole table, from its parts in order."""
    whole = job.begin()
    for part in parts:
        whole.add(part)
    return whole


def walk(
    job: Job[P],
    block: Callable[[int, bool], Any],
    rows: int,
    width: int,
    first: int = 0,
    stop: int | None = None,
) -> Iterator[P]:
    """Process stripes ``first`` to ``stop`` of a table; all by default.

    ``block`` returns a block by number. Yields the part of each stripe, or one of an exact job.
    """
    into = None
    for a, b in stripes(rows, width)[first:stop]:
        into = job.begin() if into is None or not job.exact else into
        for index in range(a, b):
            job.take(block(index, job.drawn), into)
        job.end(into)
        if not job.exact:
            yield into
    if job.exact and into is not None:
        yield into


A = TypeVar("A", bound=NDArray[Any])


def seal(*parts: Any) -> None:
    """Make arrays permanently read-only, also in tuples and moments; ignore other objects."""
    for part in parts:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
        elif isinstance(part, tuple):
            seal(*part)
        elif type(part) is Moments:
            seal(part.total, part.products)


def readable(arrays: Sequence[A]) -> list[A]:
    """Read-only views of writable arrays."""
    views = [array.view() for array in arrays]
    seal(*views)
    return views


# -- Joint first and second moments of original and copies, in one pass ----------------------------


@unprinted
class Moments:
    """Sums over some rows, about a fixed centre (the table's mean).

    Attributes
    ----------
    total : (d,)
    products : (d, d)
    """

    count: int
    total: Array
    products: Array

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Moments of centred rows, shape (b, d)."""
        # a product with ones halves the time
        return cls(rows.shape[0], np.ones(rows.shape[0]) @ rows, rows.T @ rows)

    @classmethod
    def merge(cls, parts: Iterable[Moments]) -> Moments:
        """Sum of one or more moments, in order."""
        return reduce(
            lambda a, b: cls(a.count + b.count, a.total + b.total, a.products + b.products), parts
        )

    def __sub__(self, part: Moments) -> Moments:
        return Moments(
            self.count - part.count, self.total - part.total, self.products - part.products
        )

    @property
    def size(self) -> int:
        """``d``."""
        return self.total.size

    @property
    def mean(self) -> Array:
        """Mean about the centre, shape (d,)."""
        return self.total / self.count

    @property
    def variances(self) -> Array:
        """Diagonal of the covariance, divisor n, shape (d,)."""
        return (np.diag(self.products) - self.total * self.total / self.count) / self.count

    def covariance(self, divisor: int | None = None) -> Array:
        """Covariance, shape (d, d); divisor n by default."""
        centred = self.products - np.outer(self.total, self.total) / self.count
        return centred / (divisor or self.count)

    def of_copies(self, copies: Sequence[int], width: int) -> Moments:
        """Moments of some copies, by number from 1, alone."""
        return self.parts([copy + 1 for copy in copies], width)

    def parts(self, places: Sequence[int], width: int) -> Moments:
        """Moments of some of the stacked parts, numbered from 1."""
        if self.size == 0:
            return self
        index = attribute_index(places, width)
        return Moments(self.count, self.total[index], self.products[np.ix_(index, index)])


def centred(parts: Arrays, centre: Array) -> Array:
    """``[x, y_1 … y_M]`` less the centre, shape (b, d)."""
    return np.concatenate(parts, axis=1) - np.tile(centre, len(parts))


LAID_VALUES = 3 * 2**16
"""Values in a stacked piece, which fit the cache."""


class Stack:
    """Sums centred moments of stacked rows ``[x, y_1 … y_M]`` of tables."""

    def __init__(self, centre: Array, tables: int) -> None:
        self._centre, self._tables = centre, tables
        self._parts: list[Moments] = []

    def pieces(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Divide rows ``start`` to ``stop`` evenly into pieces."""
        return evenly(start, stop, self._tables * self._centre.size, LAID_VALUES)

    def add(self, parts: Arrays) -> None:
        """Add a piece: rows of every table, shapes (b, N)."""
        self._rows = centred(parts, self._centre)
        self._parts = [Moments.merge([*self._parts, Moments.of(self._rows)])]

    def rows(self, chosen: Indices | Flags) -> Array:
        """Some rows of the last piece, shape (r, d)."""
        return self._rows[chosen]

    def moments(self) -> Moments:
        """Moments added since the last call; not empty."""
        (found,), self._parts = self._parts, []
        return found


def attribute_index(copies: Sequence[int], width: int) -> Indices:
    """Places of copies' attributes in ``[Y_1 … Y_M]``, (kN,)."""
    first = (np.asarray(copies, dtype=int) - 1) * width
    return (first[:, None] + np.arange(width)).ravel()
