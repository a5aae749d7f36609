"""One pass over a table: mean, covariance, range and fingerprint.

| symbol | meaning | shape |
| --- | --- | --- |
| ``s`` | a point near the data: the first block's mean | (N,) |
| ``m`` | mean of ``x − s`` | (N,) |
| ``P`` | ``Σ (x − s − m)(x − s − m)ᵀ`` | (N, N) |

A block's moments are about its own mean and joined by the rule of Chan, Golub and LeVeque (1979),
which is as exact as two passes (at an offset of 10⁷, raw squares are lost to rounding). Blocks are
joined within a stripe, then stripes (``auditor.numerics.blocks.stripes``), always in order. So the
result does not depend on the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.data.columns.threads import in_threads
from auditor.numerics.blocks import row_blocks, stripes
from auditor.process.environment import one_thread
from auditor.types import Array

Read = Callable[[int, int], Array]
"""Returns rows ``start`` to ``stop`` of a table, shape (stop − start, N)."""


@dataclass(frozen=True, eq=False)
class Part:
    """Scan of some rows.

    Attributes
    ----------
    rows : int
    mean : ndarray of shape (N,)
        ``m``.
    products : ndarray of shape (N, N)
        ``P``.
    low, high : ndarrays of shape (N,)
        Least and largest value.
    digests : tuple of bytes
        SHA-256 of each block.
    """

    rows: int
    mean: Array = field(repr=False)
    products: Array = field(repr=False)
    low: Array = field(repr=False)
    high: Array = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, x: Array, shift: Array) -> Part:
        """Return the scan of one block, shape (b, N)."""
        columns = np.array(x.T, order="C")  # a row is too short for fast loops
        low, high = columns.min(axis=1), columns.max(axis=1)
        columns -= shift[:, None]
        mean = columns @ np.ones(len(x)) / len(x)
        columns -= mean[:, None]
        digest = hashlib.sha256(np.ascontiguousarray(x).data).digest()
        return cls(len(x), mean, columns @ columns.T, low, high, (digest,))

    def __add__(self, other: Part) -> Part:
        """Return the scan of both parts' rows."""
        rows = self.rows + other.rows
        apart = other.mean - self.mean
        products = (
            self.products
            + other.products
            + np.outer(apart, apart) * (self.rows * (other.rows / rows))
        )
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Part(
            rows,
            self.mean + apart * (other.rows / rows),
            products,
            low,
            high,
            self.digests + other.digests,
        )


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of one pass over a table.

    Attributes
    ----------
    rows : int
        ``n``.
    shift, residue : ndarrays of shape (N,)
        ``s`` and ``m``: the mean is their sum, with a precision relative to the spread.
    covariance : ndarray of shape (N, N)
        Divisor n.
    low, high : ndarrays of shape (N,)
        Least and largest value.
    digest : str
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

    @classmethod
    def join(cls, parts: Iterable[Part], shift: Array) -> Scan:
        """Return the scan of a table from its stripes, in order."""
        whole = joined(parts)
        digest = hashlib.sha256(b"".join(whole.digests)).hexdigest()
        return cls(
            whole.rows,
            shift,
            whole.mean,
            whole.products / whole.rows,
            whole.low,
            whole.high,
            digest,
        )


@dataclass(frozen=True, eq=False)
class Scale:
    """Standardisation ``(x − shift − residue) / std``, arrays of shape (N,)."""

    shift: Array = field(repr=False)
    residue: Array = field(repr=False)
    std: Array = field(repr=False)

    @classmethod
    def of(cls, scan: Scan) -> Scale:
        """Return the scale of a table from its own moments (divisor n)."""
        return cls(scan.shift, scan.residue, np.sqrt(np.diag(scan.covariance)))

    def apply(self, x: Array) -> None:
        """Rescale rows in place.

        Shift and residue are subtracted separately: their rounding units differ.
        """
        x -= self.shift
        x -= self.residue
        x /= self.std

    def undone(self, x: Array) -> Array:
        """Return rows in their original units, up to rounding."""
        return np.asarray(x * self.std + self.residue + self.shift)


def joined(parts: Iterable[Part]) -> Part:
    """Return the parts as one, joined in order."""
    rest = iter(parts)
    whole = next(rest)
    # overflow is refused by name afterwards
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for part in rest:
            whole = whole + part
    return whole


def first_shift(read: Read, rows: int, width: int) -> Array:
    """Return the first block's mean, shape (N,); 0 where not finite."""
    start, stop = row_blocks(rows, width)[0]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = read(start, stop).mean(axis=0)
    return np.where(np.isfinite(mean), mean, 0.0)


def scan_stripes(
    read: Read, rows: int, width: int, shift: Array, wanted: Sequence[int] | None = None
) -> list[Part]:
    """Return the scans of some stripes, by number; of all by default."""
    blocks, cuts = row_blocks(rows, width), stripes(rows, width)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return [
            joined(Part.of(read(*blocks[k]), shift) for k in range(*cuts[number]))
            for number in (range(len(cuts)) if wanted is None else wanted)
        ]


def scan(open_: Callable[[], Read], rows: int, width: int) -> Scan:
    """Return the scan of a table of finite numbers.

    Parameters
    ----------
    open_ : callable
        Returns a reader for one thread's own use.
    rows, width : int
        The table's shape.
    """
    with one_thread():  # sums in linear algebra depend on its number of threads
        shift, numbers = first_shift(open_(), rows, width), range(len(stripes(rows, width)))
        # a small table is finished before a thread starts
        each = in_threads if len(numbers) > 1 else map
        found = each(lambda number: scan_stripes(open_(), rows, width, shift, [number]), numbers)
        return Scan.join((part for parts in found for part in parts), shift)
