"""Close guesses and median errors, over all records and by group.

| metric | value | without help from the copies |
| --- | --- | --- |
| ``close`` | share of records estimated within the tolerance, minus that of one constant | 0 |
| ``median_error_ratio`` | median absolute error over the smallest one of a constant | 1 |
| ``group_error(COLUMN, k of G)`` | squared error over the group's own variance | 1 |
| ``group_close(COLUMN, k of G)`` | ``close`` in the group | 0 |

The first two are computed on some ``ROWS`` records, evenly spaced in every block. They show
exposure that a long tail's squared error hides.

``unit_error`` and ``unit_close`` weight all units equally; ``weighted_error`` and
``weighted_close`` use a column's weights.

Groups are numbered by size, never named by value. Groups below ``FEWEST`` sampled records have no
figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from auditor.audit.base.request import UNBOUNDED, Cells
from auditor.audit.numeric.error_bars import Figure, redraw_bars
from auditor.audit.numeric.error_tally import Tally, reportable, size_quantile
from auditor.base.types import Array, Indices
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.statistics import Z_95
from auditor.results.records import ErrorBar, Measurement

ROWS = 20_000
"""Sampled records: the standard error of a share is at most 0.4 %."""
SHARE_OF_SPREAD = 0.1
"""Default tolerance as a share of the interquartile range."""

Tolerances = Mapping[str, float | Mapping[str, float]]
"""Largest errors of close guesses, by column: absolute, or ``{"relative": p}``."""


@dataclass(frozen=True, repr=False)
class Baseline:
    """Tolerances, and the success of the best guess without copies.

    Attributes
    ----------
    absolute, relative : ndarray of shape (N,)
        An estimate of x is close within ``absolute + relative·|x|``.
    close : ndarray of shape (N,)
        Largest share of records close to one constant.
    median : ndarray of shape (N,)
        Smallest median absolute error of a constant guess.
    stride : int
        Every ``stride``-th record of a block is sampled.
    groups : sequence of (column, ndarray of shape (n,))
        Group of each sampled record, by column (``worst_groups``).
    units, weights : ndarray of shape (n,), optional
        Unit and weight of each sampled record.
    """

    absolute: Array
    relative: Array
    close: Array
    median: Array
    stride: int
    groups: Sequence[tuple[str, Indices]] = ()
    units: Indices | None = None
    weights: Array | None = None

    def reach(self, scale: Array, x: Array) -> Array:
        """Largest close error, shape (b, 1, N)."""
        return self.absolute + self.relative * np.abs(x)[:, None, :]


def baseline(table: Table, tolerances: Tolerances) -> Baseline:
    """Tolerances of every column, and the success of constant guesses.

    Parameters
    ----------
    tolerances : mapping
        By column: in its units, or ``{"relative": p}``. By default a tenth of the interquartile
        range, or of 1.35 standard deviations if that is 0.
    """
    stride = max(1, table.rows // ROWS)
    blocks = row_blocks(table.rows, table.width)
    X = np.concatenate([table.read(a, b)[::stride] for a, b in blocks])
    return of_records(X, table.attributes, tolerances, stride)


def sampled_of(table: Table, values: Any) -> Any:
    """One value per record, for the sampled records."""
    blocks, stride = row_blocks(table.rows, table.width), max(1, table.rows // ROWS)
    return np.concatenate([values[a:b][::stride] for a, b in blocks])


def of_records(
    X: Array, attributes: Sequence[str], tolerances: Tolerances, stride: int = 1
) -> Baseline:
    """Baseline of sampled records X, shape (n, N)."""
    low, high = np.quantile(X, (0.25, 0.75), axis=0)
    spread = np.where(high > low, high - low, 1.35 * X.std(axis=0))
    absolute, relative = SHARE_OF_SPREAD * spread, np.zeros(X.shape[1])
    for name, asked in tolerances.items():
        if name in attributes:
            j = attributes.index(name)
            absolute[j], relative[j] = (
                (0.0, asked["relative"]) if isinstance(asked, Mapping) else (asked, 0.0)
            )
    reach = absolute + relative * np.abs(X)
    columns = range(X.shape[1])
    return Baseline(
        absolute,
        relative,
        np.array([best_constant_share(X[:, j], reach[:, j]) for j in columns]),
        np.array([least_median_error(X[:, j]) for j in columns]),
        stride,
    )


def best_constant_share(x: Array, reach: Array, weights: Array | None = None) -> float:
    """Largest share of records x within ``reach`` of one constant.

    Records may have ``weights`` that sum to 1.

    Examples
    --------
    >>> best_constant_share(np.array([1.0, 2.0, 3.0, 9.0]), np.full(4, 1.0))
    0.75
    """
    w = np.full(len(x), 1.0 / len(x)) if weights is None else weights
    first, last = np.argsort(x - reach), np.argsort(x + reach)
    starts, ends = (x - reach)[first], (x + reach)[last]
    over = np.concatenate([[0.0], np.cumsum(w[last])])
    covered = np.cumsum(w[first]) - over[np.searchsorted(ends, starts)]
    return float(covered.max())


def least_median_error(x: Array) -> float:
    """Half the length of the shortest interval that holds half of the records.

    Examples
    --------
    >>> least_median_error(np.array([1.0, 2.0, 3.0, 9.0]))
    0.5
    """
    ordered, half = np.sort(x), math.ceil(len(x) / 2)
    return float((ordered[half - 1 :] - ordered[: len(x) - half + 1]).min()) / 2


def sampled(scale: Array, base: Baseline) -> Tally:
    """Empty tally for ``closeness_records``; ``scale``: deviations, (N,)."""
    tally, reach = Tally(scale, (base,), sizes=True), partial(base.reach, scale)
    also: list[GroupTally] = [GroupTally(*one, reach) for one in base.groups]
    if base.units is not None:
        size = np.bincount(base.units)[base.units]
        if np.ptp(size) > 0:
            also.append(WeightTally("unit", base.units, reach, weights=1 / size))
    if base.weights is not None:
        units = np.arange(len(base.weights)) if base.units is None else base.units
        also.append(WeightTally("weighted", units, reach, weights=base.weights))
    if also:
        tally.also = GroupTallies(also)
    return tally


def closeness_records(cells: Cells, tally: Tally, base: Baseline) -> list[Measurement]:
    """Both metrics of every coalition and attribute, with 95 % intervals.

    ``tally`` is of the sampled records, with hits within the tolerance first.
    """
    n, hits, exact = tally.rows, tally.sums["hits"][0], "expected_hits" in tally.sums
    unknown = np.full(hits.shape, math.nan)
    expected = tally.sums["expected_hits"][0] / n if exact else unknown
    share = hits / n
    centre, error = wilson(share, n)
    method: ErrorBar = "sampling"
    if exact and base.stride == 1:
        error = np.sqrt(tally.sums["hit_variance"][0]) / n
        centre, method = share, "closed-form"
    known = base.median > 0
    scale = np.divide(tally.scale, base.median, out=np.full(len(known), math.nan), where=known)
    shift = 0.5 * Z_95 / math.sqrt(n)
    low, median, high = (
        size_quantile(tally.sums["size_counts"], 0.5 + step) * scale
        for step in (-shift, 0.0, shift)
    )
    off, reach = centre - share, Z_95 * error
    close = Figure(share - base.close, error, reach - off, reach + off, expected - base.close)
    spread = (high - low) / (2 * Z_95)
    ratio = Figure(median, spread, median - low, high - median, unknown)
    if tally.redrawn is not None:
        (near, ratios), part = tally.redrawn
        method = "redraws"
        close = Figure(close.value, *redraw_bars(share, near, part), close.theory)
        ratio = Figure(median, *redraw_bars(median, ratios * scale, part), unknown)
    records = []
    if isinstance(tally.also, GroupTallies):
        for one in tally.also.each:
            records += one.records(cells, best_constant_share)
    records += cells.records("close", close, method, UNBOUNDED)
    if reportable(0.5, n):
        bar: ErrorBar = "sampling" if tally.redrawn is None else "redraws"
        records += cells.records("median_error_ratio", ratio, bar, UNBOUNDED)
    return records


def wilson(share: Array, n: int) -> tuple[Array, Array]:
    """Centre and standard error of Wilson's interval of a share of n records."""
    z = Z_95
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    error = np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return centre, error


FEWEST, MOST_VALUES, PARTS = 50, 50, 10
"""Fewest records of a group, most values of a column of numbers that are groups of their own, and
parts of equal size for more."""


@dataclass(repr=False)
class GroupTally:
    """Squared errors and close guesses of sampled records, by group.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Group of each sampled record; −1 for small groups.
    reach : callable
        Largest close error of records x, shape (b, 1, N).
    errors, hits : list of ndarrays of shape (b, B, N)
    """

    column: str
    codes: Indices
    reach: Callable[[Array], Array]
    errors: list[Array] = field(default_factory=list)
    x: list[Array] = field(default_factory=list)

    def add(self, errors: Array, x: Array) -> None:
        """Add errors of shape (b, B, N), and true values of shape (b, N)."""
        self.errors.append(np.abs(errors).astype(np.float32))
        self.x.append(x.copy())

    def records(self, cells: Cells, best: Callable[..., float]) -> list[Measurement]:
        """Both metrics; none if some records were left out.

        ``best(x, reach)`` is the share of records close to one constant.
        """
        errors, x = np.concatenate(self.errors), np.concatenate(self.x)
        if len(x) != len(self.codes):
            return []
        reach = np.broadcast_to(self.reach(x), (len(x), 1, x.shape[1]))[:, 0]
        return list(self.figures(cells, best, errors, x, reach))

    def figures(
        self, cells: Cells, best: Callable[..., float], errors: Array, x: Array, reach: Array
    ) -> Iterator[Measurement]:
        """Yield both metrics of every group."""
        groups = int(self.codes.max()) + 1
        for g in range(groups):
            rows = self.codes == g
            n, own, near = int(rows.sum()), x[rows].var(axis=0), reach[rows]
            for b in cells.wanted:
                for j, name in enumerate(cells.context.attributes):
                    e = errors[rows, b, j].astype(np.float64)
                    figures = {}
                    if own[j] > 0:
                        left = e**2 / own[j]
                        figures["group_error"] = float(left.mean()), float(left.std() / n**0.5)
                    hit, constant = e <= near[:, j], best(x[rows, j], near[:, j])
                    z = (hit.sum() + Z_95**2 / 2) / (n + Z_95**2)  # Agresti–Coull
                    spread = float(np.sqrt(z * (1 - z) / n))
                    figures["group_close"] = float(hit.mean()) - constant, spread
                    for metric, (value, error) in figures.items():
                        yield cells.context.estimate(
                            f"{metric}({self.column}, {g + 1} of {groups})",
                            cells.coalitions[b],
                            value,
                            error,
                            attribute=name,
                        )._replace(reason=f"the group by {self.column!r} has {n:,} records")


@dataclass(repr=False)
class WeightTally(GroupTally):
    """Weighted figures over all records; ``codes`` are units."""

    weights: Array = field(default_factory=lambda: np.empty(0))

    def figures(
        self, cells: Cells, best: Callable[..., float], errors: Array, x: Array, reach: Array
    ) -> Iterator[Measurement]:
        """Yield both metrics, with standard errors over independent units."""
        w = self.weights / self.weights.sum()
        units = np.unique(self.codes, return_inverse=True)[1].ravel()
        for j, name in enumerate(cells.context.attributes):
            variance = float(w @ (x[:, j] - w @ x[:, j]) ** 2)
            constant = best(x[:, j], reach[:, j], w)
            for b in cells.wanted:
                e = errors[:, b, j].astype(np.float64)
                figures = {"close": (e <= reach[:, j]) - constant}
                if variance > 0:
                    figures["error"] = e**2 / variance
                for metric, each in figures.items():
                    value = float(w @ each)
                    error = float(np.linalg.norm(np.bincount(units, w * (each - value))))
                    yield cells.context.estimate(
                        f"{self.column}_{metric}", cells.coalitions[b], value, error, attribute=name
                    )


@dataclass
class GroupTallies:
    """Tallies by several columns."""

    each: list[GroupTally]

    def add(self, errors: Array, x: Array) -> None:
        """Add records to each."""
        for one in self.each:
            one.add(errors, x)


def group_codes(values: Any) -> Indices:
    """Each record's group, numbered by size; −1 for groups below ``FEWEST``.

    Examples
    --------
    >>> group_codes(np.repeat(["a", "b", "c"], [60, 3, 90])).tolist()[::60]
    [1, -1, 0]
    """
    values = np.asarray(values)
    if values.dtype.kind == "f" and len(np.unique(values)) > MOST_VALUES:
        values = np.searchsorted(np.quantile(values, np.arange(1, PARTS) / PARTS), values)
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rank = np.full(len(counts), -1)
    many = order[counts[order] >= FEWEST]
    rank[many] = np.arange(len(many))
    return rank[codes.ravel()]
