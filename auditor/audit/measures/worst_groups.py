"""Figures of each group of records, for ``exposure: {by: COLUMN}``.

| metric | value in one group | without help from the copies |
| --- | --- | --- |
| ``group_error(COLUMN, k of G)`` | squared error over the group's own variance | 1 |
| ``group_close(COLUMN, k of G)`` | share within the tolerance, minus that of one constant | 0 |

``unit_error`` and ``unit_close`` are over all records, with equal weights of all units.

Groups are numbered by size and never named by their value. Groups below ``FEWEST`` sampled records
have no figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.audit.base.records import Cells
from auditor.numerics.statistics import Z_95
from auditor.results.records import Measurement
from auditor.types import Array, Indices

FEWEST, MOST_VALUES, PARTS = 50, 50, 10
"""Fewest records of a group, most values of a column of numbers that are groups of their own, and
parts of equal size for more."""


@dataclass(repr=False)
class GroupTally:
    """Squared errors and close guesses of sampled records, by group.

    Attributes
    ----------
    column : str
    codes : ndarray of shape (n,)
        Group of each sampled record, numbered by size; −1 for small groups.
    reach : callable
        Returns the largest close error of records x, shape (b, 1, N).
    errors, hits : list of ndarrays of shape (b, B, N)
    """

    column: str
    codes: Indices
    reach: Callable[[Array], Array]
    errors: list[Array] = field(default_factory=list)
    x: list[Array] = field(default_factory=list)

    def add(self, errors: Array, x: Array) -> None:
        """Add the next records: errors of shape (b, B, N), and true values of shape (b, N)."""
        self.errors.append(np.abs(errors).astype(np.float32))
        self.x.append(x.copy())

    def records(self, cells: Cells, best: Callable[..., float]) -> list[Measurement]:
        """Return both metrics of every group; none if some records were left out.

        ``best(x, reach)`` returns the share of records close to one constant.
        """
        context, found = cells.context, list[Measurement]()
        errors, x = np.concatenate(self.errors), np.concatenate(self.x)
        if len(x) != len(self.codes):
            return []
        reach = np.broadcast_to(self.reach(x), (len(x), 1, x.shape[1]))
        groups = int(self.codes.max()) + 1
        for g in range(groups):
            rows = self.codes == g
            n, own, near = int(rows.sum()), x[rows].var(axis=0), reach[rows, 0]
            for b in cells.wanted:
                for j, name in enumerate(context.attributes):
                    e = errors[rows, b, j].astype(np.float64)
                    figures = {}
                    if own[j] > 0:
                        left = e**2 / own[j]
                        figures["group_error"] = float(left.mean()), float(left.std() / n**0.5)
                    hit, constant = e <= near[:, j], best(x[rows, j], near[:, j])
                    z = (hit.sum() + Z_95**2 / 2) / (n + Z_95**2)  # Agresti–Coull
                    spread = float(np.sqrt(z * (1 - z) / n))
                    figures["group_close"] = float(hit.mean()) - constant, spread
                    found += [
                        context.estimate(
                            f"{metric}({self.column}, {g + 1} of {groups})",
                            cells.coalitions[b],
                            value,
                            error,
                            attribute=name,
                        )._replace(reason=f"the group by {self.column!r} has {n:,} records")
                        for metric, (value, error) in figures.items()
                    ]
        return found


class UnitTally(GroupTally):
    """Figures with the weight of each unit shared out among its records."""

    def records(self, cells: Cells, best: Callable[..., float]) -> list[Measurement]:
        """Return ``unit_error`` and ``unit_close``; see ``GroupTally``."""
        context, found = cells.context, list[Measurement]()
        errors, x = np.concatenate(self.errors), np.concatenate(self.x)
        if len(x) != len(self.codes):
            return []
        codes = np.unique(self.codes, return_inverse=True)[1].ravel()
        counts = np.bincount(codes)
        U, weights = len(counts), 1.0 / (counts[codes] * len(counts))
        reach = np.broadcast_to(self.reach(x), (len(x), 1, x.shape[1]))[:, 0]
        for j, name in enumerate(context.attributes):
            variance = float(weights @ (x[:, j] - weights @ x[:, j]) ** 2)
            constant = best(x[:, j], reach[:, j], weights)
            for b in cells.wanted:
                e = errors[:, b, j].astype(np.float64)
                figures = {"unit_close": (e <= reach[:, j]) - constant}
                if variance > 0:
                    figures["unit_error"] = e**2 / variance
                for metric, each in figures.items():
                    of_unit = np.bincount(codes, each) / counts
                    value, error = float(of_unit.mean()), float(of_unit.std() / U**0.5)
                    found.append(
                        context.estimate(metric, cells.coalitions[b], value, error, attribute=name)
                    )
        return found


@dataclass
class GroupTallies:
    """Tallies by several columns."""

    each: list[GroupTally]

    def add(self, errors: Array, x: Array) -> None:
        """Add the next records to each."""
        for one in self.each:
            one.add(errors, x)


def group_codes(values: Any) -> Indices:
    """Return each record's group, numbered by size; −1 for groups below ``FEWEST``.

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
