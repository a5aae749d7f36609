"""Is one copy alone what conventional retention-replacement would have made? A chi-square test of its law, and a distance from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.types import Array

LEAST_EXPECTED = 5.0
"""Cells that expect fewer records are pooled: the statistic would not follow its law there."""


def test_of_chances(counts: NDArray[np.integer[Any]], share: Array) -> tuple[float, int]:
    """Return p-value and degrees of freedom of the test that a copy shows each value with the chances stated of it.

    Parameters
    ----------
    counts : ndarray of shape (s, s)
        Records by original (row) and released value (column).
    share : ndarray of shape (s, s)
        The chance of each released value by original, as ``T(p)``.

    Notes
    -----
    Counts of (x, y) against ``n_x T[x, y]``; cells that expect fewer than five records are pooled,
    the diagonal ones and the others apart. An outcome that the law makes impossible gives p = 0;
    too few records to test anything give p = 1 and 0 degrees.
    """
    if (counts[share <= 0] > 0).any():
        return 0.0, 1
    expected = counts.sum(axis=1, keepdims=True) * share
    observed, forecast = _pooled(counts, expected)
    degrees = _degrees(counts, expected)
    if degrees < 1:
        return 1.0, 0
    statistic = float(((observed - forecast) ** 2 / forecast).sum())
    return float(scipy.special.chdtrc(degrees, statistic)), degrees


def gap_of_chances(counts: NDArray[np.integer[Any]], t: Array) -> tuple[float, float]:
    """Return how far what a copy shows is from the chances stated of it, and the standard error of that if it has them; see the test.

    Notes
    -----
    The squared L2 distance of xiao2009's Figure 6, averaged over records and corrected for
    sampling, so that its mean is 0 under the law: ``Σ_y c(c − 1)/(n(n − 1)) − 2 Σ_y (c/n) T[x, y] +
    Σ_y T[x, y]²`` for the n records of value x, c of which show y. Its variance is then ``2 tr Σ² /
    (n(n − 1))`` with ``Σ = diag(t) − t tᵀ``. Values of one record tell nothing; (0, 0) when all are
    such.
    """
    counts = counts.astype(np.float64)
    n = counts.sum(axis=1)
    met = np.where(n >= 2, n, 0.0)
    if not met.any():
        return 0.0, 0.0
    pairs = np.maximum(n * (n - 1), 1.0)
    squares = (t**2).sum(axis=1)
    G = (
        (counts * (counts - 1)).sum(axis=1) / pairs
        - 2 * (counts * t).sum(axis=1) / np.maximum(n, 1.0)
        + squares
    )
    trace = squares - 2 * (t**3).sum(axis=1) + squares**2
    error = np.sqrt((met**2) @ (2 * trace / pairs)) / met.sum()
    return float(met @ G / met.sum()), float(error)


def _cells(expected: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number the cells: large ones each for itself, small ones of the diagonal and of the rest as two more, impossible ones −1."""
    size = len(expected)
    diagonal = np.eye(size, dtype=bool)
    large = expected >= LEAST_EXPECTED
    numbers = np.where(
        large,
        np.cumsum(large).reshape(size, size) - 1,
        np.where(diagonal, large.sum(), large.sum() + 1),
    )
    return np.where(expected > 0, numbers, -1)


def _pooled(
    counts: NDArray[np.integer[Any]], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    cells = _cells(expected)
    inside = cells >= 0
    observed = np.asarray(np.bincount(cells[inside], counts[inside]), dtype=np.float64)
    forecast = np.asarray(np.bincount(cells[inside], expected[inside]), dtype=np.float64)
    keep = forecast >= LEAST_EXPECTED
    return observed[keep], forecast[keep]


def _degrees(counts: NDArray[np.integer[Any]], expected: NDArray[np.float64]) -> int:
    """Cells less one for every row total that the tested cells hold fixed: at least this many are free."""
    observed, _ = _pooled(counts, expected)
    whole = ((expected >= LEAST_EXPECTED) | (expected <= 0)).all(axis=1) & (
        expected.sum(axis=1) > 0
    )
    pooled = (~whole & (expected.sum(axis=1) > 0)).any()
    return int(observed.size - whole.sum() - bool(pooled))
