"""The public grid that released numbers lie on: in a double's last digits an original could be read off its noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``σ_j`` | smallest deviation of the noise that any copy above level 0 has in attribute j | (N,) |
| ``g_j`` | a power of two: every released value of attribute j is a whole multiple of it | (N,) |
| ``r_j`` | largest size that a value can be expected to have | (N,) |

``x + z`` is rounded to as many bits as a double has at that size, so which last bits occur depends on ``x``. A multiple of ``g`` far above
those bits can be reached from every ``x``: the chance of it is the noise's density, smoothed over one cell. Rounding adds ``g²/12`` to the
noise's variance: with ``g ≤ 2⁻²⁰ σ`` a share of 8·10⁻¹⁴, below what any figure here resolves.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.moments import subtract_row
from auditor.types import Array

FINENESS = 2.0**-20
"""Grid beside the smallest noise, where numbers have bits enough."""
COARSEST = 2.0**-8
"""Of numbers with few bits: ``g²/12`` is then a millionth of the variance, which changes no conclusion."""
DOUBLE_BITS, SINGLE_BITS = 51, 23
"""Multiples of the grid that numbers of 64 and 32 bits hold exactly, as a power of two, with room for the sum below or the sign."""
FARTHEST, FARTHEST_OF_LONG_TAILS = 16.0, 64.0
"""Deviations beyond which no draw lies of Gaussian and bounded noise, and of noise with exponential tails: a share of ``e^{−90}``."""


def grid_of(deviations: Array, largest: Array, bits: int, units: Array | None = None, farthest: float = FARTHEST) -> Array:
    """Return ``g``, shape (N,), 0 where an attribute has no noise; NaN where numbers of so many bits cannot hold noise and value.

    Parameters
    ----------
    deviations : ndarray of shape (M, N)
        The noise of every copy in every attribute.
    largest : ndarray of shape (N,)
        Largest absolute value of the originals.
    bits : int
        ``DOUBLE_BITS`` or ``SINGLE_BITS``.
    units : ndarray of shape (N,), optional
        Of noise on a lattice, which is the grid then.
    farthest : float
        Deviations beyond which no draw of the noise lies.

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
    """Round rows, shape (b, N), to multiples of the grid, in place; columns of grid 0 stay as they are.

    At ``1.5·2⁵²·g`` doubles lie ``g`` apart: the sum is rounded to the grid, half to even, and the difference is exact.
    """
    shift = 1.5 * 2.0**52 * grid
    subtract_row(rows, -shift, rows)
    subtract_row(rows, shift, rows)
