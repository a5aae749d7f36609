"""Estimate the secret matrix from known records, and invert it.

Least squares of copies on originals. Noise is ignored.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``M x + t + R``, pooled copies side by side, d = kn' | (d,) | chen2007; liu2008, section 4.1 |
| ``M̂`` | ``C_yx C_xx⁺`` over the known records: regression of copies on originals | (d, N) | |
| ``M̂⁺`` | ``M̂⁻¹`` if square; else the pseudo-inverse, copies and attributes in units of their deviation | (N, d) | |
| ``x̂`` | ``x̄_p + M̂⁺ (y − ȳ_p)`` | (N,) | liu2008, section 4.1 |
| error | ``M⁺ K_R M⁺ᵀ``, as p grows | (N, N) | |

The survey has ``M̂⁻¹ y`` for at least N independent known records; the intercept covers the
translation of chen2007. With fewer records or columns the minimum-norm estimate is used. For large
p all noise remains: ``σ²`` under added noise, where known-io-regression leaves ``σ²/(1 + σ²)``.

Theory is the closed form for the fitted map. If ``M̂`` is nearly singular, one draw of records does
not predict the next.
"""

import numpy as np

from auditor.numerics.linear_algebra import deviations, regression
from auditor.plugin import Array, register

from ._fitted_map import FittedMap

RANK = 1e-12
"""Share of the largest singular value of the scaled ``M̂`` below which a value is rounding
error."""


@register
class KnownInputOutputInverse(FittedMap):
    """Estimate the matrix from known records by regression, and invert it."""

    name = "known-io-inverse"
    reference = "chen2007; liu2008, section 4.1"
    wins = (
        "Exact on a matrix without noise once N + 1 independent records are known; with noise it leaves all of it, and loses to "
        "known-io-regression, unless p is near kN."
    )

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        return inverse_map(C_xx, C_xy, deviations(C_yy))


def inverse_map(C_xx: Array, C_xy: Array, spread: Array) -> Array:
    """``M̂⁺``, shape (N, d), of ``M̂ = C_yx C_xx⁺``.

    Parameters
    ----------
    C_xx, C_xy : ndarrays of shape (N, N), (N, d)
        Covariances over the known records; ``C_xx`` may be singular.
    spread : ndarray of shape (d,)
        Of the copies.

    Examples
    --------
    >>> inverse_map(np.array([[2.0]]), np.array([[1.0]]), np.array([3.0]))
    array([[2.]])
    """
    x, y = (np.where(size > 0, size, 1.0) for size in (deviations(C_xx), spread))
    M = regression(C_xy.T, C_xx)
    return x[:, None] * np.linalg.pinv(M * x / y[:, None], rcond=RANK) / y
