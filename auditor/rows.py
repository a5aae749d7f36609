"""Row-level reconstruction: for attacks that are not linear, for shares of records recovered, and for spreads of errors.

Runs block by block; everything here is an average over records, and no record's estimate is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from auditor.attack import Reconstruction
from auditor.errors import PluginError
from auditor.linear import Coalition, Maps, crossed
from auditor.noise import NoiseLaw

if TYPE_CHECKING:
    from auditor.inferences import Inferences
    from auditor.whole_records import WholeRecords

Array = NDArray[np.float64]

CHUNK_VALUES = 2**22
"""Errors held at once (32 MB)."""

Blocks = Callable[[], Iterable[tuple[int, Array, list[Array]]]]
"""Yields (block number, original rows, all copies' rows), anew at every call."""


@dataclass
class Tally:
    """Sums over rows of what is measured of errors ``x̂ − x``, shape (b, B, N) at a time.

    Attributes
    ----------
    scale : ndarray of shape (N,)
        Each attribute's standard deviation in the table.
    tolerance : float or None
        For the share of records recovered within it, in standard deviations.
    bins, reach : int, float
        For the spread of absolute errors: bins up to ``reach`` standard deviations; 0 bins for none.
    """

    scale: Array
    tolerance: float | None = None
    bins: int = 0
    reach: float = 3.0
    rows: int = 0
    hits: Array | None = None
    counts: NDArray[np.int64] | None = None
    expected_hits: Array | None = field(default=None)
    hit_variance: Array | None = field(default=None)

    def add(self, errors: Array) -> None:
        """Count one block's errors."""
        size = np.abs(errors) / self.scale
        self.rows += len(errors)
        if self.tolerance is not None:
            hits = (size <= self.tolerance).sum(axis=0, dtype=np.float64)
            self.hits = hits if self.hits is None else self.hits + hits
        if self.bins:
            counts = self._histogram(size)
            self.counts = counts if self.counts is None else self.counts + counts

    def _histogram(self, size: Array) -> NDArray[np.int64]:
        """Return counts by cell, shape (B, N, bins + 1); the last bin is everything beyond the reach."""
        _, B, N = size.shape
        place = np.minimum(size * (self.bins / self.reach), self.bins).astype(np.int64)
        place += (np.arange(B * N) * (self.bins + 1)).reshape(B, N)
        return np.bincount(place.ravel(), minlength=B * N * (self.bins + 1)).reshape(B, N, self.bins + 1)

    def expect(self, bias: Array, spread: Array) -> None:
        """Add one block's exact chances of a hit, for an error that is normal with these means (b, B, N) and deviations (B, N).

        ``P(|e| ≤ t) = Φ((t − b)/s) − Φ((−t − b)/s)``: exact for a linear attack on this very table, whatever its distribution.
        """
        assert self.tolerance is not None
        t = self.tolerance * self.scale
        exact = spread <= 1e-9 * self.scale
        s = np.where(exact, 1.0, spread)
        chance = np.where(exact, np.abs(bias) <= t, ndtr((t - bias) / s) - ndtr((-t - bias) / s))
        hits, variance = chance.sum(axis=0), (chance * (1.0 - chance)).sum(axis=0)
        self.expected_hits = hits if self.expected_hits is None else self.expected_hits + hits
        self.hit_variance = variance if self.hit_variance is None else self.hit_variance + variance


def tally_linear(maps: Maps, blocks: Blocks, centre: Array, tally: Tally, K_X: Array, law: NoiseLaw | None) -> None:
    """Run linear maps over the rows and count their errors; adds the exact chances when weights and law are known."""
    B, N, MN = maps.weights.shape
    known = maps.fixed and law is not None and law.distribution == "gaussian" and tally.tolerance is not None
    spread = np.sqrt(np.clip(np.einsum("bnn->bn", crossed(maps, maps, K_X, law)[1]), 0.0, None)) if known and law is not None else None
    lost, flat, own = maps.lost, maps.weights.reshape(B * N, MN), maps.own.reshape(B * N, N)
    for _, x, copies in blocks():
        size = max(1, CHUNK_VALUES // (B * N))
        for start in range(0, len(x), size):
            v = x[start : start + size] - centre
            y = np.concatenate([copy[start : start + size] - centre for copy in copies], axis=1)
            tally.add((y @ flat.T - v @ own.T).reshape(len(v), B, N) + maps.offsets)
            if spread is not None:
                tally.expect(np.einsum("bij,rj->rbi", -lost, v) + maps.offsets, spread)


def tally_rows(
    reconstructions: Sequence[Reconstruction],
    coalitions: Sequence[Coalition],
    blocks: Blocks,
    counts: Sequence[Sequence[int]],
    tally: Tally,
    records: Sequence[WholeRecords] = (),
    inferences: Sequence[Inferences] = (),
) -> tuple[Array, Array]:
    """Run fitted attacks over the rows; return squared errors summed by row group, shape (G, B, N), and what theory expects, (B,).

    Parameters
    ----------
    counts : sequence of lists of int
        Rows of each row group, block by block.
    records : sequence of B WholeRecords, optional
        What to count of whole records.
    inferences : sequence of B Inferences, optional
        What to count of sensitive values learnt.

    Returns
    -------
    sums : ndarray of shape (G, B, N)
    expected : ndarray of shape (B,)
        Theory's squared errors summed over rows and attributes; NaN for an attack without theory.

    Raises
    ------
    PluginError
        An attack's estimate has the wrong shape, or is not finite.
    """
    sums: list[Array] = []
    expected = np.zeros(len(coalitions))
    for index, x, copies in blocks():
        held = [[copies[c - 1] for c in coalition] for coalition in coalitions]
        estimates = [_checked(fitted.rows(mine), x.shape) for fitted, mine in zip(reconstructions, held, strict=True)]
        for place, fitted in enumerate(reconstructions):
            theory = fitted.expected(x)
            expected[place] += np.nan if theory is None else theory.sum()
        for learnt, fitted, mine in zip(inferences, reconstructions, held, strict=False):
            learnt.add(fitted.inferred(mine), x)
        for counted, fitted, mine in zip(records, reconstructions, held, strict=False):
            counted.add(fitted, mine, x)
        errors = np.stack(estimates, axis=1) - x[:, None, :]
        tally.add(errors)
        stops = np.cumsum(counts[index])
        sums.extend((errors[stop - count : stop] ** 2).sum(axis=0) for stop, count in zip(stops, counts[index], strict=True) if count)
    return np.array(sums), expected


def _checked(estimate: Array, shape: tuple[int, ...]) -> Array:
    """The harness does not trust what a plugin returns."""
    estimate = np.asarray(estimate, dtype=np.float64)
    if estimate.shape != shape:
        raise PluginError(f"the attack returned an estimate of shape {estimate.shape} for rows of shape {shape}")
    if not np.isfinite(estimate).all():
        raise PluginError("the attack returned values that are not finite")
    return estimate


class CopyBlocks:
    """A coalition's copies, block by block, for an attack to be fitted to; never the original."""

    def __init__(self, blocks: Blocks, coalition: Coalition) -> None:
        self._blocks = blocks
        self._coalition = coalition

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield lists of k arrays of shape (b, N), in order of rows."""
        for _, _, copies in self._blocks():
            yield [copies[copy - 1] for copy in self._coalition]
