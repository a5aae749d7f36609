"""Groups of k or more similar records, replaced by means or draws.

MDAV (maximum distance to average vector), nearest neighbours, or runs of ranks. Time grows with
``n²/k``: seconds for n = 20,000, k = 3.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from auditor.base import AuditorError, counted
from auditor.base.types import Array, Indices, Levels
from auditor.numerics.random_streams import Rng
from auditor.numerics.statistics import standardised
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import LevelRange
from auditor.schemes.masking.masked import MaskedScheme

NEAREST, NEAREST_VALUE, GROUP = 3e-8, 4e-9, 6e-5
"""Seconds per comparison with a group's centre, per value, and per group redrawn.
"""


class GroupScheme(MaskedScheme):
    """Base of schemes whose level is k, the least size of a group."""

    level_range = LevelRange(
        "k, the least size of a group, an integer of at least 2", low=2, whole=True
    )
    trial_levels = (3.0, 10.0, 5.0)

    def check_levels(self, levels: Levels) -> None:
        super().check_levels(levels)
        most = max(levels, default=0)
        if self.table is not None and self.table.rows < most:
            needed = f"at least {counted(int(most), 'record')} at level {most:g}"
            raise AuditorError(f"{self.name} needs {needed}; the table has {self.table.rows:,}")


def grouping_seconds(rows: int, width: int, k: float) -> float:
    """Approximate seconds of MDAV on one core."""
    return (NEAREST + NEAREST_VALUE * width) * rows**2 / k


def mdav(Z: Array, k: int) -> Indices:
    """Groups by MDAV (domingo2002, fixed size), shape (n,).

    Alternately around the record furthest from the remaining mean, and the one furthest from it.
    The last group has up to 2k − 1 records.
    """
    g, left, made = np.zeros(len(Z), dtype=int), np.arange(len(Z)), 0

    def group(centre: Array) -> None:
        nonlocal left, made
        near = least(_squares(Z[left], centre), k)
        g[left[near]], left, made = made, np.delete(left, near), made + 1

    while len(left) >= 2 * k:
        far = Z[left[_squares(Z[left], Z[left].mean(axis=0)).argmax()]]
        opposite = Z[left[_squares(Z[left], far).argmax()]]
        group(far)
        if len(left) >= 2 * k:
            group(opposite)
    g[left] = made
    return g


def nearest_to_random(Z: Array, k: int, rng: Rng) -> Indices:
    """Groups of k around random records, shape (n,).

    The last join their nearest group. Source: aggarwal2004, static condensation.
    """
    order = rng.permutation(len(Z))
    # random memory order is 1.5 times as slow
    Z, left = Z[order], np.arange(len(Z))
    g, centres = np.zeros(len(Z), dtype=int), list[Array]()
    while len(left) >= k:
        near = least(_squares(Z[left], Z[left[0]]), k)
        g[left[near]] = len(centres)
        centres.append(Z[left[near]].mean(axis=0))
        left = np.delete(left, near)
    for row in left:
        g[row] = _squares(np.array(centres), Z[row]).argmin()
    return g[np.argsort(order)]


def runs(x: Array, k: int) -> Indices:
    """Runs of k in ascending order, the last of up to 2k − 1, (n,).

    Examples
    --------
    >>> runs(np.array([30.0, 10.0, 20.0, 50.0, 40.0]), 2).tolist()
    [1, 0, 0, 1, 1]
    """
    g = np.empty(len(x), dtype=int)
    g[np.argsort(x, kind="stable")] = np.minimum(np.arange(len(x)) // k, len(x) // k - 1)
    return g


def least(x: Array, k: int) -> Indices:
    """Places of the k least numbers, shape (k,); ties in order."""
    bound = np.partition(x, k - 1)[k - 1]
    below = np.flatnonzero(x < bound)
    return np.concatenate([below, np.flatnonzero(x == bound)[: k - below.size]])


def means(X: Array, g: Indices) -> Array:
    """Every record's group mean, shape (n, N)."""
    sums = np.zeros((g.max() + 1, X.shape[1]))
    np.add.at(sums, g, X)
    return (sums / np.bincount(g)[:, None])[g]


def _squares(Z: Array, centre: Array) -> Array:
    return np.square(Z - centre).sum(axis=1)


@register
class Condensation(GroupScheme):
    """Groups of k records (level = k) replaced by draws of their moments.

    ``y = m + P Λ^½ u``, m the group's mean, ``P Λ Pᵀ`` its covariance (divisor its size), u
    independent and uniform on ±√3. Pooled copies average out.
    """

    name = "condensation"
    claims = "Nothing under collusion: pooled draws average to their groups' means. No row of a copy is an original record."
    reference = "aggarwal2004; liu2008, section 1"
    assumes = "Records of a group differ widely, and recipients never pool their copies."

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        return sum(grouping_seconds(rows, width, k) / 2.0 + GROUP * rows / k for k in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        g, Y = nearest_to_random(standardised(X), int(level), rng), np.empty_like(X)
        for number in range(g.max() + 1):
            rows = np.flatnonzero(g == number)
            Y[rows] = drawn_alike(X[rows], rng)
        return Y


def drawn_alike(group: Array, rng: Rng) -> Array:
    """Draws with a group's mean and covariance (divisor k), (k, N)."""
    values, P = np.linalg.eigh(np.atleast_2d(np.cov(group.T, ddof=0)))
    u = np.sqrt(12.0) * (rng.random(group.shape) - 0.5)
    return group.mean(axis=0) + (u * np.sqrt(np.clip(values, 0.0, None))) @ P.T


@register
class MicroAggregation(GroupScheme):
    """Records, or each column's values, replaced by means of k (level = k).

    ``mdav``: groups of whole records, by distance in standard deviations, k-anonymous in all
    columns. ``univariate``: runs of k ranks per column, with little protection. Copies of two k
    give two means.
    """

    name = "micro-aggregation"
    claims = "By whole records: at least k records share each row of one copy. Nothing under collusion, and nothing column by column."
    reference = "domingo2002; hundepool2012, chapter 3"
    assumes = "Records of a group differ widely, so their mean discloses none of them, and recipients never pool copies of several k."

    class Parameters(PluginParameters):
        """Unit of grouping: records or columns."""

        method: Literal["mdav", "univariate"] = "mdav"
        """mdav: whole records; univariate: each column by itself"""

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        return (
            sum(grouping_seconds(rows, width, k) for k in levels)
            if self.parameters.method == "mdav"
            else 0.0
        )

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        if self.parameters.method == "mdav":
            return means(X, mdav(standardised(X), int(level)))
        return np.hstack([means(x[:, None], runs(x, int(level))) for x in X.T])
