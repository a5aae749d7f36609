"""Public grid of released numbers, which hides the originals' last digits.

| symbol | meaning | shape |
| --- | --- | --- |
| ``σ_j`` | smallest deviation of the noise in attribute j, over copies above level 0 | (N,) |
| ``g_j`` | a power of two: every released value of attribute j is a whole multiple of it | (N,) |
| ``r_j`` | largest expected size of a value | (N,) |

A double rounds ``x + z`` to its last bits, so the possible last bits depend on ``x``. A multiple of
``g`` far above these bits is reachable from every ``x``. Rounding adds ``g²/12`` to the noise
variance: with ``g ≤ 2⁻²⁰ σ`` a share of 8·10⁻¹⁴.
"""

from __future__ import annotations

import numpy as np

from auditor.types import Array

FINENESS = 2.0**-20
"""Grid relative to the smallest noise, for numbers with enough bits."""
COARSEST = 2.0**-8
"""Coarsest grid, for numbers with few bits: ``g²/12`` is a millionth of the variance."""
DOUBLE_BITS, SINGLE_BITS = 51, 23
"""Base-2 logarithm of the grid multiples that 64-bit and 32-bit numbers hold exactly, with one or
two bits to spare.
"""
FARTHEST, FARTHEST_OF_LONG_TAILS = 16.0, 64.0
"""Deviations beyond which no draw lies, for Gaussian and bounded noise, and for exponential tails
(``e^{−90}``).
"""


def grid_of(
    deviations: Array,
    largest: Array,
    bits: int,
    units: Array | None = None,
    farthest: float = FARTHEST,
) -> Array:
    """Return the grid ``g`` of each attribute, shape (N,).

    0 without noise; NaN where numbers of this many bits cannot hold noise and value.

    Parameters
    ----------
    deviations : ndarray of shape (M, N)
        Standard deviations of the noise.
    largest : ndarray of shape (N,)
        Largest absolute value of the originals.
    bits : int
        ``DOUBLE_BITS`` or ``SINGLE_BITS``.
    units : ndarray of shape (N,), optional
        Units of noise on a lattice; they are then the grid.
    farthest : float
        Number of deviations that no draw exceeds.

    Examples
    --------
    >>> grid_of(np.array([[1.0, 0.0]]), np.array([100.0, 1.0]), SINGLE_BITS)
    array([1.52587891e-05, 0.00000000e+00])
    """
    smallest = np.where(deviations > 0, deviations, np.inf).min(axis=0)
    noisy = np.isfinite(smallest)
    smallest = np.where(noisy, smallest, 1.0)
    reach = largest + farthest * deviations.max(axis=0)
    fine = np.floor(np.log2(FINENESS * smallest))
    held = np.ceil(np.log2(np.where(noisy, reach, 1.0))) - bits
    if units is not None:
        return np.where(noisy, np.where(np.log2(units) >= held, units, np.nan), 0.0)
    grid = np.exp2(np.maximum(fine, held))
    return np.where(noisy, np.where(grid <= COARSEST * smallest, grid, np.nan), 0.0)


def snap(rows: Array, grid: Array) -> None:
    """Round rows, shape (b, N), to the grid in place; grid 0 changes no value.

    At ``1.5·2⁵²·g`` doubles lie ``g`` apart, so the sum is rounded to the grid (half to even) and
    the difference is exact.
    """
    shift = 1.5 * 2.0**52 * grid
    rows += shift
    rows -= shift
