"""Sums over records of what is measured of their errors one by one: shares recovered, quantiles, spreads, intervals.

Everything here is an average over records. Quantiles come from counts on a fixed grid, never from a
record's own error, and only where ten records lie on either side: a quantile further out can betray
an outlying record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.results.metrics import HIGHEST, LOWEST
from auditor.types import Array

Counts = NDArray[np.int64]
S = TypeVar("S", np.int64, np.float64)

FEWEST_BEYOND = 10
"""Records that must lie on either side of a quantile."""
FEWEST_IN_BIN = 10
"""Records in a bin of a spread of errors, before it is merged with its neighbours."""
FLOOR, DECADES, PER_DECADE = 1e-6, 10, 400
"""The grid of error sizes in standard deviations: steps of 0.6 %, from a millionth to ten
thousand."""


@dataclass(frozen=True)
class Tolerance:
    """How near to its true value a record counts as recovered.

    Attributes
    ----------
    size : float
        > 0.
    of : 'std', 'absolute' or 'relative'
        In standard deviations of the attribute, in its own units, or as a share of the true value.
    """

    size: float
    of: Literal["std", "absolute", "relative"] = "std"

    @property
    def label(self) -> str:
        """How metric names tell several tolerances apart: ``0.1 std``."""
        return f"{self.size:g} {self.of}"

    def reach(self, scale: Array, x: Array) -> Array:
        """Return the largest error that counts, shape (N,) or (b, 1, N), for deviations (N,) and true values (b, N)."""
        if self.of == "relative":
            return np.asarray(self.size * np.abs(x)[:, None, :])
        return np.asarray(self.size * scale if self.of == "std" else np.full_like(scale, self.size))


class Reach(Protocol):
    """What tells records recovered from others: how large an error counts."""

    def reach(self, scale: Array, x: Array) -> Array:
        """Return the largest error that counts, shape (N,) or (b, 1, N), for deviations (N,) and true values (b, N)."""


@dataclass(frozen=True)
class Rounding:
    """An estimate counts as exact when it rounds to the true value; half-way between two values it counts as neither.

    Attributes
    ----------
    steps : ndarray of shape (N,)
        Resolution of each column; NaN for a continuous one, of which nothing is exact.
    """

    steps: Array = field(repr=False)

    def reach(self, scale: Array, x: Array) -> Array:
        """Return just under half a step, shape (N,); the margin is for what rounding of doubles does to a tie."""
        return np.asarray((0.5 - 1e-9) * self.steps)


@dataclass
class Tally:
    """Sums over rows of what is measured of errors ``x̂ − x``, shape (b, B, N) at a time.

    Attributes
    ----------
    scale : ndarray of shape (N,)
        Each attribute's standard deviation in the table.
    tolerances : tuple of Tolerance or Rounding
        For the shares of records recovered within them.
    bins, reach : int, float
        For the spread of absolute errors: bins up to ``reach`` standard deviations; 0 bins for
        none.
    sizes : bool
        Whether to count errors by size, for quantiles.
    confidence : float or None
        Share of the posterior that intervals should hold, for attacks that give any.
    head : int or None
        Records of each block whose spread is counted, from its start; None: all.
    sample, stride : Tally or None, int
        Tally of every so many records of a block.
    spread_rows : int
        Records whose spread was counted.
    hits, expected_hits, hit_variance : lists of ndarrays of shape (B, N)
        By tolerance.
    counts, size_counts : ndarrays of shape (B, N, bins)
    candidates : bool
        Whether to count the values that attacks think possible.
    left, left_square : ndarrays of shape (B, N)
        Sums of the numbers of values left, and of their squares; NaN for attacks that count none.
    width, width_square, inside : ndarrays of shape (B, N)
        Sums of intervals' widths (standard deviations), their squares, and of records that lie in
        theirs; NaN for no intervals.
    """

    scale: Array
    tolerances: tuple[Reach, ...] = ()
    bins: int = 0
    reach: float = 3.0
    sizes: bool = False
    confidence: float | None = None
    head: int | None = None
    sample: Tally | None = None
    stride: int = 1
    rows: int = 0
    spread_rows: int = 0
    hits: list[Array] = field(default_factory=list)
    counts: Counts | None = None
    size_counts: Counts | None = None
    expected_hits: list[Array] = field(default_factory=list)
    hit_variance: list[Array] = field(default_factory=list)
    width: Array | None = None
    width_square: Array | None = None
    inside: Array | None = None
    candidates: bool = False
    left: Array | None = None
    left_square: Array | None = None

    @property
    def of_all(self) -> bool:
        """Whether anything is to be counted of all records, and not of the heads of blocks alone."""
        return bool(
            self.tolerances or (self.bins and self.head is None) or self.sizes or self.confidence
        )

    @property
    def spread_alone(self) -> Tally:
        """An empty tally of the spread and nothing else, of all records it is shown."""
        return Tally(self.scale, bins=self.bins, reach=self.reach)

    def add(self, errors: Array, x: Array, start: int = 0) -> None:
        """Count errors of a block's rows from ``start`` on, shape (b, B, N), at true values of shape (b, N); errors lose their signs."""
        if self.sample is not None:
            cut = slice(-start % self.stride, None, self.stride)
            self.sample.add(errors[cut].copy(), x[cut])
        distance = np.abs(errors, out=errors)
        # written out, as numpy works on what two operands have in common of a row
        scale = np.tile(self.scale, (errors.shape[1], 1))
        self.rows += len(errors)
        hits = [
            (distance <= t.reach(self.scale, x)).sum(axis=0, dtype=np.float64)
            for t in self.tolerances
        ]
        self.hits = _added(self.hits, hits)
        if self.bins:
            near = distance[: None if self.head is None else max(0, self.head - start)] * (
                self.bins / self.reach / scale
            )
            self.counts = _sum(
                self.counts, _by_cell(np.minimum(near, self.bins, out=near), self.bins + 1)
            )
            self.spread_rows += len(near)
        if self.sizes:
            size = distance / scale
            place = np.log10(np.maximum(size, FLOOR) / FLOOR) * PER_DECADE
            self.size_counts = _sum(
                self.size_counts,
                _by_cell(np.minimum(place, DECADES * PER_DECADE), DECADES * PER_DECADE + 1),
            )

    def expect(self, bias: Array, spread: Array, x: Array) -> None:
        """Add one block's exact chances of a hit, for an error that is normal with these means (b, B, N) and deviations (B, N).

        ``P(|e| ≤ t) = Φ((t − b)/s) − Φ((−t − b)/s)``: exact for a linear attack on this very table,
        whatever its distribution.
        """
        exact = spread <= 1e-9 * self.scale  # no noise but rounding: a record is a hit or is not
        s = np.where(exact, 1.0, spread)
        expected, variance = [], []
        for tolerance in self.tolerances:
            t = tolerance.reach(self.scale, x)
            chance = np.where(
                exact,
                np.abs(bias) <= t,
                scipy.special.ndtr((t - bias) / s) - scipy.special.ndtr((-t - bias) / s),
            )
            # Hits of different records are independent, each a Bernoulli draw: their number has
            # mean Σ p and variance Σ p(1 − p).
            expected.append(chance.sum(axis=0))
            variance.append((chance * (1.0 - chance)).sum(axis=0))
        self.expected_hits, self.hit_variance = (
            _added(self.expected_hits, expected),
            _added(self.hit_variance, variance),
        )

    def leave(self, candidates: Array) -> None:
        """Count one block's values left, shape (b, B, N), NaN where an attack does not say."""
        self.left, self.left_square = (
            _sum(self.left, candidates.sum(axis=0)),
            _sum(self.left_square, (candidates**2).sum(axis=0)),
        )

    def localise(self, low: Array, high: Array, x: Array) -> None:
        """Count one block's intervals, shapes (b, B, N), NaN where an attack gives none."""
        width = (high - low) / self.scale
        slack = 1e-9 * self.scale
        inside = np.where(
            np.isnan(low), np.nan, (low - slack <= x[:, None, :]) & (x[:, None, :] <= high + slack)
        )
        self.width, self.width_square = (
            _sum(self.width, width.sum(axis=0)),
            _sum(self.width_square, (width**2).sum(axis=0)),
        )
        self.inside = _sum(self.inside, inside.sum(axis=0))


def _by_cell(place: Array, cells: int) -> Counts:
    """Return counts by cell, shape (B, N, cells), of places of shape (b, B, N) within [0, cells).

    Each map and attribute has a run of cells of its own in one long row, so that a single
    ``bincount`` counts them all.
    """
    _, B, N = place.shape
    flat = place.astype(np.int64)
    flat += (np.arange(B * N) * cells).reshape(B, N)
    return np.bincount(flat.ravel(order="K"), minlength=B * N * cells).reshape(B, N, cells)


def _sum(total: NDArray[S] | None, part: NDArray[S]) -> NDArray[S]:
    return part if total is None else total + part


def _added(total: Sequence[Array], part: Sequence[Array]) -> list[Array]:
    return list(part) if not total else [a + b for a, b in zip(total, part, strict=True)]


def spread_shares(counts: Counts, rows: int) -> Array:
    """Return shares of records by bin, shape (..., bins); bins of fewer than ten records have the mean share of a run of bins.

    Every run holds ten records or more. The empty bins after the last record are a run if the bin
    before them holds ten records.

    Examples
    --------
    >>> spread_shares(np.array([20, 4, 0, 6, 0]), 30).round(3).tolist()
    [0.667, 0.083, 0.083, 0.083, 0.083]
    """
    left = counts[..., ::-1].cumsum(axis=-1)[..., ::-1]
    run, held = np.zeros(counts.shape, dtype=np.intp), np.zeros(counts.shape[:-1], dtype=np.int64)
    for k in range(counts.shape[-1]):
        before = max(0, k - 1)
        ends = (left[..., k] >= FEWEST_IN_BIN) | (
            (left[..., k] == 0) & (counts[..., before] >= FEWEST_IN_BIN)
        )
        begins = (held >= FEWEST_IN_BIN) & ends
        held = np.where(begins, 0, held) + counts[..., k]
        run[..., k] = run[..., before] + begins
    place = run + (np.arange(held.size) * counts.shape[-1]).reshape(*held.shape, 1)
    total, bins = np.bincount(place.ravel(), counts.ravel()), np.bincount(place.ravel())
    return np.asarray(total[place] / bins[place] / rows)


def reportable(probability: float, rows: int) -> bool:
    """Whether a quantile of that many records may be reported: ten records on either side, and none of the outermost 5 %."""
    return (
        LOWEST <= probability <= HIGHEST
        and rows * min(probability, 1.0 - probability) >= FEWEST_BEYOND - 1e-9
    )


def size_quantile(counts: Counts, probability: float) -> Array:
    """Return the quantile of errors counted by size, shape (...), in standard deviations, for counts of shape (..., cells).

    Linear in the logarithm within a cell, so within 0.6 % of the records' own; errors below a
    millionth count as 0.
    """
    cumulative = np.cumsum(counts, axis=-1)
    total = cumulative[..., -1:]
    target = np.clip(probability, 0.0, 1.0) * total
    place = np.minimum((cumulative < target).sum(axis=-1, keepdims=True), counts.shape[-1] - 1)
    here = np.take_along_axis(counts, place, axis=-1)
    before = np.take_along_axis(cumulative, place, axis=-1) - here
    share = np.clip(
        np.divide(target - before, here, out=np.zeros(here.shape), where=here > 0), 0.0, 1.0
    )
    value = FLOOR * 10.0 ** ((place + share) / PER_DECADE)
    return np.asarray(np.where(place == 0, 0.0, value)[..., 0])
