"""Sums over records of errors, for shares, quantiles and intervals.

Quantiles are of counts on a fixed grid, with at least ten records on either side.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base import scipy
from auditor.base.types import Array
from auditor.numerics.linear_algebra import quotient
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.metrics import HIGHEST, LOWEST

FLOOR, DECADES, PER_DECADE = 1e-6, 10, 400
"""Grid of error sizes in standard deviations: steps of 0.6 %, from 1e-6 to 1e4."""


class Tolerance(NamedTuple):
    """Largest error of a recovered value x: ``absolute + relative·|x|``.

    Attributes
    ----------
    absolute, relative : float or ndarray of shape (N,)
        In the attribute's unit, and as a share of the true value; NaN: nothing is recovered.
    """

    absolute: Array | float
    relative: Array | float = 0.0

    def reach(self, x: Array) -> Array:
        """Largest error, shape (b, 1, N), of true values, shape (b, N)."""
        return self.absolute + self.relative * np.abs(x)[:, None, :]


@dataclass
class Tally:
    """Sums over rows of functions of errors ``x̂ − x``, shape (b, B, N).

    Attributes
    ----------
    scale : ndarray of shape (N,)
        Each attribute's standard deviation in the table.
    bins, reach, head : int, float, int or None
        Bins of absolute errors, up to ``reach`` standard deviations, over the first ``head``
        records of blocks.
    sizes, candidates : bool
        Whether to count errors by size, and possible values.
    least : ndarray of shape (N,) or float
        Least counted size, in standard deviations.
    confidence : float or None
        Posterior probability of intervals.
    sample, stride : Tally or None, int
        Tally of every ``stride``-th record of a block.
    kept : list of (errors, true values), or None
        Errors of every record too, if a list.
    redrawn : (ndarray of shape (2, R, B, N), float), or None
        Shares of hits and median errors in other draws, and the share of records drawn again.
    sums : dict of str to ndarray
        ``hits``, ``expected_hits``, ``hit_variance``, shape (T, B, N); ``counts`` and
        ``size_counts``, shape
        (B, N, bins); ``left``, ``width`` (in standard deviations), their squares, and ``inside``,
        shape
        (B, N), NaN if an attack has none.
    rows, spread_rows : int
        Records counted, and records in the distribution.
    """

    scale: Array
    tolerances: tuple[Tolerance, ...] = ()
    bins: int = 0
    reach: float = 3.0
    sizes: bool = False
    least: Array | float = FLOOR
    confidence: float | None = None
    head: int | None = None
    sample: Tally | None = None
    stride: int = 1
    kept: list[tuple[Array, Array]] | None = None
    redrawn: tuple[Array, float] | None = None
    candidates: bool = False
    sums: dict[str, Any] = field(default_factory=lambda: defaultdict(int))
    rows: int = 0
    spread_rows: int = 0

    @property
    def of_all(self) -> bool:
        """Whether all records are needed, not the heads of blocks alone."""
        spread = self.bins and self.head is None
        return bool(self.tolerances or spread or self.sizes or self.confidence)

    @property
    def in_order(self) -> bool:
        """Whether all records are needed, or records in order."""
        return self.of_all or (self.sample is not None and self.sample.kept is not None)

    def add(self, errors: Array, x: Array, start: int = 0) -> None:
        """Count errors, shape (b, B, N), of a block's rows from ``start`` on.

        ``x`` are true values, shape (b, N). Errors become absolute values.
        """
        if self.sample is not None:
            cut = slice(-start % self.stride, None, self.stride)
            self.sample.add(errors[cut].copy(), x[cut])
        if self.kept is not None:
            self.kept.append((errors.astype(np.float32), x.copy()))
        distance = np.abs(errors, out=errors)
        # repeated for every map: numpy loops over the last axes
        scale = np.tile(self.scale, (errors.shape[1], 1))
        self.rows += len(errors)
        if self.tolerances:
            hits = [(distance <= t.reach(x)).sum(axis=0) for t in self.tolerances]
            self.sums["hits"] += np.array(hits, dtype=np.float64)
        if self.bins:
            head = None if self.head is None else max(0, self.head - start)
            near = distance[:head] * (self.bins / self.reach / scale)
            self.sums["counts"] += _by_cell(np.minimum(near, self.bins, out=near), self.bins + 1)
            self.spread_rows += len(near)
        if self.sizes:
            place = np.log10(np.maximum(distance / scale, self.least) / FLOOR) * PER_DECADE
            cells = DECADES * PER_DECADE
            self.sums["size_counts"] += _by_cell(np.minimum(place, cells), cells + 1)

    def expect(self, bias: Array, spread: Array, x: Array) -> None:
        """Add one block's exact probabilities of a hit, for normal errors.

        With means (b, B, N) and standard deviations (B, N), ``P(|e| ≤ t) = Φ((t − b)/s) − Φ((−t −
        b)/s)``. Hits of different records are independent: variance ``Σ p(1 − p)``.
        """
        exact = spread <= 1e-9 * self.scale  # no noise but rounding
        s = np.where(exact, 1.0, spread)
        chances = []
        for tolerance in self.tolerances:
            t = tolerance.reach(x)
            inside = scipy.special.ndtr((t - bias) / s) - scipy.special.ndtr((-t - bias) / s)
            chances.append(np.where(exact, np.abs(bias) <= t, inside))
        p = np.array(chances)
        self.sums["expected_hits"] += p.sum(axis=1)
        self.sums["hit_variance"] += (p * (1.0 - p)).sum(axis=1)

    def average(self, name: str, values: Array) -> None:
        """Add one block's values, shape (b, B, N), to a mean with a standard error."""
        self.sums[name] += values.sum(axis=0)
        self.sums[f"{name}_square"] += (values**2).sum(axis=0)

    def localise(self, low: Array, high: Array, x: Array) -> None:
        """Add one block's intervals, shapes (b, B, N)."""
        slack = 1e-9 * self.scale
        inside = (low - slack <= x[:, None, :]) & (x[:, None, :] <= high + slack)
        self.average("width", (high - low) / self.scale)
        self.average("inside", np.where(np.isnan(low), np.nan, inside))


def _by_cell(place: Array, cells: int) -> NDArray[np.int64]:
    """Counts by cell, (B, N, cells), of places, (b, B, N)."""
    _, B, N = place.shape
    flat = place.astype(np.int64)
    flat += (np.arange(B * N) * cells).reshape(B, N)
    return np.bincount(flat.ravel(order="K"), minlength=B * N * cells).reshape(B, N, cells)


def spread_shares(counts: NDArray[np.int64], rows: int) -> Array:
    """Shares of records, (..., bins), averaged within runs of ``bins``.

    Examples
    --------
    >>> spread_shares(np.array([20, 4, 0, 6, 0]), 30).round(3).tolist()
    [0.667, 0.083, 0.083, 0.083, 0.083]
    """
    shares, size = np.empty(counts.shape), counts.shape[-1]
    for share, held in zip(shares.reshape(-1, size), counts.reshape(-1, size), strict=True):
        for first, stop, records in bins(held) or [(0, size, held.sum())]:
            share[first:stop] = records / (stop - first) / rows
    return shares


def bins(counts: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Runs of cells, ``(first, stop, records)``, with ≥ 10 records or 0.

    Empty cells are a run only next to cells of ten records, which hides extreme records.

    Examples
    --------
    >>> bins(np.array([0, 4, 7, 0, 12, 3, 0])), bins(np.array([0, 12, 0])), bins(np.array([9, 0]))
    ([(0, 3, 11), (3, 7, 15)], [(0, 1, 0), (1, 2, 12), (2, 3, 0)], [])
    """
    found, full = list[tuple[int, int, int]](), counts >= FEWEST_RECORDS
    first, held = 0, 0
    for cell, count in enumerate(counts.tolist()):
        if full[cell] and not held and first < cell and (not first or full[first - 1]):
            found.append((first, cell, 0))
            first = cell
        held += count
        if held >= FEWEST_RECORDS:
            found.append((first, cell + 1, held))
            first, held = cell + 1, 0
    if found and first < len(counts):
        merge = held or not full[first - 1]
        start, _, before = found.pop() if merge else (first, 0, 0)
        found.append((start, len(counts), before + held))
    return found


def reportable(probability: float, rows: int) -> bool:
    """Whether a quantile may be reported.

    With ten records on either side, not among the outermost 5 %.
    """
    beyond = rows * min(probability, 1.0 - probability)
    return LOWEST <= probability <= HIGHEST and beyond >= FEWEST_RECORDS - 1e-9


def size_quantile(counts: NDArray[np.int64], probability: float) -> Array:
    """Quantile of error sizes, shape (...), in standard deviations.

    From counts of shape (..., cells). Log-linear within a cell, so within 0.6 % of the records'
    quantile; errors below 1e-6 count as 0.
    """
    cumulative = np.cumsum(counts, axis=-1)
    target = np.clip(probability, 0.0, 1.0) * cumulative[..., -1:]
    place = np.minimum((cumulative < target).sum(axis=-1, keepdims=True), counts.shape[-1] - 1)
    here = np.take_along_axis(counts, place, axis=-1)
    before = np.take_along_axis(cumulative, place, axis=-1) - here
    share = quotient(target - before, here)
    value = FLOOR * 10.0 ** ((place + np.clip(share, 0.0, 1.0)) / PER_DECADE)
    return np.where(place == 0, 0.0, value)[..., 0]


# -- Sample sizes and memory limits of a numeric audit ---------------------------------------------


KEEP_BYTES = 2**29
"""Copies up to this size stay in memory; larger copies are drawn again, block by block."""
CHUNK_VALUES = 2**15
"""Errors held at once: 256 KB, for a core's own cache."""
REDRAWS = 39
"""Redraws of moments. They all miss an event of probability 1/20 in 13 % of audits; ten would miss it
in 60 %."""
ROWS_AGAIN, MOST_AGAIN = 4_000, 20_000
"""Records of a large table that are perturbed again, for error bars: where errors over more records
are steadier, and elsewhere."""
FEWEST_HELD = 1_000
"""Most records with attacks fitted again to each redraw. Fits to more vary little: fixed fits show
0.96 of the spread."""
SHARED_VALUES = 2**17
"""Most values of a redraw that attacks share: 1 MB."""
RUNS, HELD_DRAWS = 8, 3
"""Runs of neighbouring records among them, and draws of each on which fitted attacks are held
fixed: 16 degrees of freedom."""
TREE_ROWS, FEWEST_TREE_ROWS = 20_000, 400
"""Most and fewest rows for trees: about a second for two attributes of three copies."""
TREE_FITS, TREE_TARGETS = 8, 16
"""Coalitions for which trees are fitted, the largest first, and their attributes in total."""
TREE_WORK, TREE_COLUMNS = 2**22, 32
"""Most rows times attributes times columns for trees, and most differences as features."""
FOLDS = 10
"""Folds of chosen rows, to be resampled (``auditor.audit.numeric.error_bars``)."""


def trees_shown(rows: int, width: int, copies: int) -> tuple[int, int]:
    """Numbers of a coalition's copies and of rows for trees.

    Examples
    --------
    >>> trees_shown(20_000, 2, 5), trees_shown(20_000, 2, 30), trees_shown(20_000, 30, 3)
    ((5, 20000), (17, 20000), (2, 1941))
    """
    shown = min(copies, max(2, 1 + TREE_COLUMNS // width))
    return shown, max(FEWEST_TREE_ROWS, min(rows, TREE_WORK // (width * (width * shown + 12))))
