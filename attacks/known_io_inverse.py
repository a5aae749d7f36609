"""Known input–output inverse: learn what was done to the records, copies from originals, from a few known in clear; and undo it.

Least squares the other way round than known-io-regression: it finds the matrix, and takes the noise for nothing.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``M x + t + R``, pooled copies side by side, d = kn' | (d,) | chen2007; liu2008, section 4.1 |
| ``M̂`` | ``C_yx C_xx⁺`` over the known records: regression of copies on originals | (d, N) | |
| ``M̂⁺`` | ``M̂⁻¹`` if square; else the pseudo-inverse, copies and attributes in units of their deviation | (N, d) | |
| ``x̂`` | ``x̄_p + M̂⁺ (y − ȳ_p)`` | (N,) | liu2008, section 4.1 |
| error | ``M⁺ K_R M⁺ᵀ``, as p grows | (N, N) | |

The survey prints ``M̂⁻¹ y`` for as many independent known records as attributes or more; the intercept is the translation that chen2007 may
add. With fewer records, or fewer columns than attributes, the least of the estimates that fit is taken.

The estimate is unbiased record by record, once p is large, and so leaves all of the noise: ``σ²`` under added noise, as if copies were
taken at their word (``ndr``), where known-io-regression shrinks and leaves ``σ²/(1 + σ²)``. Copies count alike: the pool of a good and a
bad one is worse than the good one. What it needs less of is records: N + 1 of them to find M̂, whatever the number of copies.

Theory is the closed form for the map as it was learnt, as of known-io-regression; without noise, records that span leave nothing. The
inverse of a matrix that is normal about ``M`` has no mean square: where noise or few records leave ``M̂`` near a singular one, the error is
now 1, now 1,000, and what one draw of records says of the next is nothing.

Reference: chen2007, as liu2008, section 4.1, describes it. Exact on a matrix without noise; fails as far as there is noise.
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.linear_algebra import regression
from auditor.plugin import Array, register

from ._fitted_map import FittedMap

RANK = 1e-12
"""Share of the largest singular value below which one is rounding, of ``M̂`` in units of deviations."""


@register
class KnownInputOutputInverse(FittedMap):
    """Learns the matrix that made the copies by regressing them on records known in clear, and inverts it."""

    name = "known-io-inverse"
    inverts = True
    reference = "chen2007; liu2008, section 4.1"
    wins = (
        "Exact on a matrix without noise once N + 1 independent records are known; with noise it leaves all of it, and loses to "
        "known-io-regression, unless p is near kN."
    )

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        """Return ``M̂⁺``."""
        return inverse_map(C_xx, C_xy, np.sqrt(np.clip(np.diag(C_yy), 0.0, None)))


def inverse_map(C_xx: Array, C_xy: Array, deviations: Array) -> Array:
    """Return ``M̂⁺``, shape (N, d), of ``M̂ = C_yx C_xx⁺``.

    Parameters
    ----------
    C_xx, C_xy : ndarrays of shape (N, N), (N, d)
        Covariances over the known records; ``C_xx`` may be singular.
    deviations : ndarray of shape (d,)
        Of the copies.

    Examples
    --------
    >>> inverse_map(np.array([[2.0]]), np.array([[1.0]]), np.array([3.0]))
    array([[2.]])
    """
    x, y = (np.where(size > 0, size, 1.0) for size in (np.sqrt(np.clip(np.diag(C_xx), 0.0, None)), deviations))
    M = regression(C_xy.T, C_xx)
    return np.asarray(x[:, None] * np.linalg.pinv(M * x / y[:, None], rcond=RANK) / y)
