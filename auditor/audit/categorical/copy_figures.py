"""Figures of single copies of categories: fit to a law, shares, retention.

| symbol | meaning |
| --- | --- |
| ``T`` | chance of each released value by original, shape (s, s) |
| ``q, f`` | shares of the categories among the n originals, and in the copy |
| ``a`` | ``(1 − p)π`` |
| ``b`` | ``E f − q = a − (1 − p)q`` |
| ``C`` | covariance of f, ``(diag d − L)/n``, ``d = p(1 − p)q + a``, ``L = p(q aᵀ + a qᵀ) + a aᵀ`` |
| ``m`` | share of records that a copy leaves unchanged |
| ``p̂`` | ``(m − 1/s)/(1 − 1/s)``: likeliest retention, standard error ``√(m(1 − m)/n) / (1 − 1/s)`` |

``E‖f − q‖² = ‖b‖² + tr C``. As f is a mean over records, its variance is ``4 bᵀ C b + 2 tr C²``.

Two fresh copies agree by chance given the original; copies of one multilevel release agree with
probability ``T(p̂_j/p̂_i)``. Distances from these laws prove nothing, as retentions are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.schemes.replacement.law import UniformLaw, fresh_chances, step, transition_matrix
from auditor.types import Array, Codes

LEAST_EXPECTED = 5.0
"""Fewest expected records of a cell in the chi-square test; smaller cells are pooled."""
ENOUGH = 100
"""Fewest records of a value in ``off_uniform``: chances then have errors of 0.1 at most."""

Counts = NDArray[np.integer[Any]]


def test_of_chances(counts: Counts, share: Array) -> tuple[float, int]:
    """Return p-value and degrees of freedom of the chi-square test of a copy's law.

    Parameters
    ----------
    counts : ndarray of shape (s, s)
        Records by original (row) and released value (column).
    share : ndarray of shape (s, s)
        ``T``.

    Notes
    -----
    Cells that expect fewer than five records are pooled, on and off the diagonal. An impossible
    outcome gives p = 0; too few records give p = 1 and 0 degrees.
    """
    if (counts[share <= 0] > 0).any():
        return 0.0, 1
    expected = counts.sum(axis=1, keepdims=True) * share
    possible, large = expected > 0, expected >= LEAST_EXPECTED
    # each large cell by itself; two pools of small ones
    small = large.sum() + ~np.eye(len(expected), dtype=bool)
    cells = np.where(large, np.cumsum(large).reshape(large.shape) - 1, small)
    observed, forecast = (
        np.asarray(np.bincount(cells[possible], each[possible]), dtype=np.float64)
        for each in (counts, expected)
    )
    keep = forecast >= LEAST_EXPECTED
    # every row total fixes one cell; rows with pooled cells fix at most one together
    some = possible.any(axis=1)
    whole = (large | ~possible).all(axis=1) & some
    degrees = int(keep.sum() - whole.sum() - bool((~whole & some).any()))
    if degrees < 1:
        return 1.0, 0
    statistic = float(((observed[keep] - forecast[keep]) ** 2 / forecast[keep]).sum())
    return float(scipy.special.chdtrc(degrees, statistic)), degrees


def gap_of_chances(counts: Counts, t: Array) -> tuple[float, float]:
    """Return a copy's squared distance from its law, and its standard error under the law.

    Notes
    -----
    The squared L2 distance of xiao2009's Figure 6, averaged over records, with mean 0 under the
    law: ``Σ_y c(c − 1)/(n(n − 1)) − 2 Σ_y (c/n) T[x, y] + Σ_y T[x, y]²`` for the n records of value
    x, c of which show y. Its variance is ``2 tr Σ² / (n(n − 1))`` with ``Σ = diag(t) − t tᵀ``.
    Values of one record are left out; (0, 0) without others.
    """
    counts = counts.astype(np.float64)
    n = counts.sum(axis=1)
    met = np.where(n >= 2, n, 0.0)
    if not met.any():
        return 0.0, 0.0
    pairs, squares = np.maximum(n * (n - 1), 1.0), (t**2).sum(axis=1)
    cross = 2 * (counts * t).sum(axis=1) / np.maximum(n, 1.0)
    G = (counts * (counts - 1)).sum(axis=1) / pairs - cross + squares
    trace = squares - 2 * (t**3).sum(axis=1) + squares**2
    error = np.sqrt((met**2) @ (2 * trace / pairs)) / met.sum()
    return float(met @ G / met.sum()), float(error)


class ShareGap(NamedTuple):
    """``‖f − q‖²``, its standard error over the noise, and its mean."""

    value: float
    std_error: float
    mean: float


def share_gap(counts: Counts, level: float, pi: Array | None = None) -> ShareGap:
    """Return the distance of a copy's shares from the original's, by counts of shape (s, s).

    Examples
    --------
    >>> share_gap(np.array([[1, 1], [0, 0]]), 0.0).value
    0.5
    """
    n, p = int(counts.sum()), level
    q, f = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    a = np.broadcast_to(fresh_chances(p, q.size, pi), q.shape)
    b, d = a - (1.0 - p) * q, p * (1.0 - p) * q + a
    own = (2.0 * p * q + a) * a  # the diagonal of L
    aa, qa, qq = a @ a, q @ a, q @ q
    LL = 2.0 * p**2 * (qq * aa + qa**2) + 4.0 * p * qa * aa + aa**2  # tr L²
    squares = (d @ d - 2.0 * d @ own + LL) / n**2
    along = (d @ b**2 - 2.0 * p * (q @ b) * (a @ b) - (a @ b) ** 2) / n
    return ShareGap(
        float((f - q) @ (f - q)),
        float(np.sqrt(max(0.0, 4.0 * along + 2.0 * squares))),
        float(b @ b + (d - own).sum() / n),
    )


def retention(x: Counts, y: Counts, size: int) -> tuple[float, float]:
    """Return ``p̂`` and its standard error; below 0 for copies that avoid the original.

    Examples
    --------
    >>> retention(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)[0]
    0.5
    """
    if size == 1:
        return 1.0, 0.0
    m, scale = float(np.mean(x == y)), 1.0 - 1.0 / size
    return (m - 1.0 / size) / scale, math.sqrt(m * (1.0 - m) / x.size) / scale


def _level(x: Codes, y: Codes, size: int) -> float:
    return float(np.clip(retention(x, y, size)[0], 0.0, 1.0))


def off_uniform(x: Codes, y: Codes, size: int) -> float:
    """Return the largest ``|n_xy/n_x − T(p̂)[x, y]|`` over values of `ENOUGH` records; or 0."""
    counts = np.bincount(x.astype(np.intp) * size + y, minlength=size * size).reshape(size, size)
    common = counts.sum(axis=1) >= ENOUGH
    chances = counts[common] / counts[common].sum(axis=1, keepdims=True)
    law = transition_matrix(_level(x, y, size), size)
    return float(np.abs(chances - law[common]).max(initial=0.0))


def off_law(x: Codes, copies: Sequence[Codes], size: int, multilevel: bool) -> float:
    """Return the distance from the law of fresh copies, or of one multilevel release.

    The largest difference in the share of records for which two adjacent copies by retention agree,
    either among records that the better copy keeps or among the others.
    """
    levels, largest = tuple(_level(x, y, size) for y in copies), 0.0
    for i, j in pairwise(UniformLaw(levels, size, multilevel).descending):
        kept, agree = copies[i] == x, copies[i] == copies[j]
        p = step(levels[i], levels[j]) if multilevel else levels[j]
        same = p + (1.0 - p) / size
        by_law = np.where(kept | multilevel, same, (1.0 - p) / size)
        for some in (kept, ~kept):
            largest = max(largest, abs(float(np.mean(some & agree) - np.mean(some * by_law))))
    return largest
