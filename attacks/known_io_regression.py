"""Regression of originals on copies, fitted to known records.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | number of known records | scalar | |
| ``C_xy, C_yy`` | covariances over the known records | (N, kN), (kN, kN) | |
| ``W`` | ``C_xy (C_yy + λ diag C_yy)⁺`` | (N, kN) | least squares for λ = 0 |
| ``x̂`` | ``x̄_p + W (y − ȳ_p)`` | (N,) | |
| ``RSS(λ)`` | ``tr(C_xx − 2 W C_yx + W C_yy Wᵀ)``, attributes in units of their variance | scalar | |
| ``df(λ)`` | ``1 + Σ s/(s + λ)``, s the eigenvalues of the copies' correlations | scalar | |
| ``GCV(λ)`` | ``RSS / (1 − df/p)²`` | scalar | Golub, Heath and Wahba 1979 |

As p grows, ``W`` tends to the joint LLSE's; the error is larger by a factor of about ``1 + kN/p``
(on normal rows ``(1 + 1/p)(p − 2)/(p − kN − 2)``, averaged over known records). For ``p ≤ kN`` the
map has minimum norm, with copies scaled to variance 1. Near ``p = kN + 1`` plain least squares is
worse than the mean; use ``ridge: gcv``.

Theory is the fitted map's closed form over the other records, in original coordinates. For copies
of another width it is 0 if the known records undo the matrix, else unknown.
"""

from typing import Literal

import numpy as np
from pydantic import NonNegativeFloat

from auditor.numerics.linear_algebra import in_own_units
from auditor.plugin import Array, PluginParameters, register

from ._fitted_map import FittedMap

RIDGES = np.concatenate([[0.0], np.logspace(-6, 3, 46)])
"""Ridges tried by cross-validation, relative to the copies' variance."""


@register
class KnownInputOutputRegression(FittedMap):
    """Least-squares map from pooled copies to originals by known records."""

    name = "known-io-regression"
    reference = "li2012, eq. 6, with moments of known pairs (liu2008, section 4.1)"
    wins = "Wins with a few hundred records and an unknown law; loses to llse by about 1 + kN/p, and with p near kN to guessing the mean."

    class Parameters(PluginParameters):
        """Regularisation of the map."""

        ridge: NonNegativeFloat | Literal["gcv"] = 0.0
        """share of the copies' variance added to it; 'gcv': chosen by generalised cross-validation"""

    @property
    def undoes_a_matrix(self) -> bool:
        return bool(self.parameters.ridge == 0)

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        return ridge_map(C_xx, C_xy, C_yy, records, self.parameters.ridge)


def ridge_map(C_xx: Array, C_xy: Array, C_yy: Array, records: int, ridge: float | str) -> Array:
    """``W = C_xy (C_yy + λ diag C_yy)⁺``, shape (N, d).

    Parameters
    ----------
    C_xx, C_xy, C_yy : ndarrays of shape (N, N), (N, d), (d, d)
        Covariances over the known records; ``C_yy`` may be singular.
    records : int
        ``p``.
    ridge : float or 'gcv'
        ``λ``, relative to each copy's variance; ``gcv`` minimises generalised cross-validation over
        ``RIDGES``.

    Notes
    -----
    With λ = 0 and a singular ``C_yy``, the map has minimum norm in units of standard deviations.
    """
    correlations, scale = in_own_units(C_yy)
    s, Q = np.linalg.eigh(correlations)
    keep = s > len(s) * np.finfo(float).eps * max(float(s[-1]), 0.0)
    s, Q = s[keep], Q[:, keep]
    B = (C_xy / scale) @ Q
    lam = _least_gcv(np.diag(C_xx), B, s, records) if ridge == "gcv" else float(ridge)
    return (B / (s + lam)) @ Q.T / scale


def _least_gcv(variances: Array, B: Array, s: Array, records: int) -> float:
    unit = np.where(variances > 0, variances, 1.0)
    explained = (B**2 / unit[:, None]).sum(axis=0)
    total = float((variances / unit).sum())
    shrunk = s + RIDGES[:, None]
    rss = total - 2.0 * (explained / shrunk).sum(axis=1) + (explained * s / shrunk**2).sum(axis=1)
    df = 1.0 + (s / shrunk).sum(axis=1)
    gcv = np.where(
        df < records - 1e-9, rss / (1.0 - np.minimum(df / records, 1.0 - 1e-12)) ** 2, np.inf
    )
    return float(RIDGES[int(np.argmin(gcv))]) if np.isfinite(gcv).any() else float(RIDGES[-1])
