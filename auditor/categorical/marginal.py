"""Is one copy alone what conventional uniform perturbation would have made? A chi-square test of its law given the original."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from auditor.categorical.draws import Codes
from auditor.categorical.law import transition_matrix

LEAST_EXPECTED = 5.0
"""Cells that expect fewer records are pooled: the statistic would not follow its law there."""


def marginal_test(x: Codes, y: Codes, level: float, size: int) -> tuple[float, int]:
    """Return p-value and degrees of freedom of the test that ``y`` has the law ``T(p)`` given ``x``.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Originals and a copy, as codes.
    level : float
        ``p``.
    size : int
        ``s``.

    Notes
    -----
    Counts of (x, y) against ``n_x T(p)[x, y]``; cells that expect fewer than five records are pooled, the diagonal ones and the others
    apart. An outcome that the law makes impossible gives p = 0; too few records to test anything give p = 1 and 0 degrees.
    """
    counts = np.bincount(x.astype(np.intp) * size + y, minlength=size * size).reshape(size, size)
    share = transition_matrix(level, size)
    if (counts[share <= 0] > 0).any():
        return 0.0, 1
    expected = counts.sum(axis=1, keepdims=True) * share
    observed, forecast = _pooled(counts, expected)
    degrees = _degrees(counts, expected)
    if degrees < 1:
        return 1.0, 0
    statistic = float(((observed - forecast) ** 2 / forecast).sum())
    return float(chdtrc(degrees, statistic)), degrees


def _cells(expected: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number the cells: large ones each for itself, small ones of the diagonal and of the rest as two more, impossible ones −1."""
    size = len(expected)
    diagonal = np.eye(size, dtype=bool)
    large = expected >= LEAST_EXPECTED
    numbers = np.where(large, np.cumsum(large).reshape(size, size) - 1, np.where(diagonal, large.sum(), large.sum() + 1))
    return np.where(expected > 0, numbers, -1)


def _pooled(counts: NDArray[np.intp], expected: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    cells = _cells(expected)
    inside = cells >= 0
    observed = np.asarray(np.bincount(cells[inside], counts[inside]), dtype=np.float64)
    forecast = np.asarray(np.bincount(cells[inside], expected[inside]), dtype=np.float64)
    keep = forecast >= LEAST_EXPECTED
    return observed[keep], forecast[keep]


def _degrees(counts: NDArray[np.intp], expected: NDArray[np.float64]) -> int:
    """Cells less one for every row total that the tested cells hold fixed: at least this many are free."""
    observed, _ = _pooled(counts, expected)
    whole = ((expected >= LEAST_EXPECTED) | (expected <= 0)).all(axis=1) & (expected.sum(axis=1) > 0)
    pooled = (~whole & (expected.sum(axis=1) > 0)).any()
    return int(observed.size - whole.sum() - bool(pooled))
