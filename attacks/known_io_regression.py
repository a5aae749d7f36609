"""Known input–output regression: learn the map from copies to originals from a few records known in clear, and apply it to all the rest.

Least squares over the known records, with an intercept, pooled copies side by side. Nothing need be known of the noise or the data.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | records known in clear | scalar | |
| ``C_xy, C_yy`` | covariances over the known records | (N, kN), (kN, kN) | |
| ``W`` | ``C_xy (C_yy + λ diag C_yy)⁺`` | (N, kN) | least squares for λ = 0 |
| ``x̂`` | ``x̄_p + W (y − ȳ_p)`` | (N,) | |
| ``RSS(λ)`` | ``tr(C_xx − 2 W C_yx + W C_yy Wᵀ)``, attributes in units of their variance | scalar | |
| ``df(λ)`` | ``1 + Σ s/(s + λ)``, s the eigenvalues of the copies' correlations | scalar | |
| ``GCV(λ)`` | ``RSS / (1 − df/p)²`` | scalar | Golub, Heath and Wahba 1979 |

``W`` tends to the joint LLSE's as p grows, whatever the distribution (its moments are sample moments of the same law), from above by about
``1 + kN/p``; on jointly normal rows by ``(1 + 1/p)(p − 2)/(p − kN − 2)`` exactly, on average over known records.
With ``p ≤ kN`` the records fit many maps: the least of them is taken (minimum norm, every copy scaled to variance 1). Near ``p = kN + 1``
plain least squares learns the noise and is worse than guessing the mean; ``ridge: gcv`` is what a careful attacker does.

The records judged are not the known ones, and their noise knows nothing of the map: theory is the closed form for the map as it was fitted,
over that noise, and holds for any table (``auditor.audit.numeric.closed_form``). Transformed copies are judged as they were before they
were transformed. Copies with other columns have no theory but 0, where the known records undo the matrix.

Copies with other columns than the original (a random projection's) have no joint moments: the same map is then fitted to the records
themselves, and run over rows.

Reference: li2012 (6) with moments of the known records in place of the law's; known input–output pairs are the setting of liu2008,
section 4.1. The survey's own least squares, which go from originals to copies and are inverted (chen2007), are ``known-io-inverse``. Works
on every numeric scheme; fails under corner-wave noise to gain from pooling, where more copies are only more to learn.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import in_own_units
from auditor.plugin import Array, PluginParameters, register

from ._fitted_map import FittedMap

RIDGES = np.concatenate([[0.0], np.logspace(-6, 3, 46)])
"""Ridges that cross-validation tries, as shares of the copies' variance."""


@register
class KnownInputOutputRegression(FittedMap):
    """Learns the map from pooled copies to originals by least squares from records known in clear."""

    name = "known-io-regression"
    reference = "li2012, eq. 6, with moments of known pairs (liu2008, section 4.1)"
    wins = "Wins with a few hundred records and an unknown law; loses to llse by about 1 + kN/p, and with p near kN to guessing the mean."

    class Parameters(PluginParameters):
        """How the map is kept from learning the noise."""

        ridge: Annotated[float, Field(ge=0)] | Literal["gcv"] = Field(
            0.0, description="share of the copies' variance added to it; 'gcv': chosen by generalised cross-validation"
        )

    @property
    def undoes_a_matrix(self) -> bool:
        """Without a ridge it does."""
        return bool(self.parameters.ridge == 0)

    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        """Return the map of least squares, or with a ridge."""
        return ridge_map(C_xx, C_xy, C_yy, records, self.parameters.ridge)


def ridge_map(C_xx: Array, C_xy: Array, C_yy: Array, records: int, ridge: float | str) -> Array:
    """Return ``W = C_xy (C_yy + λ diag C_yy)⁺``, shape (N, d).

    Parameters
    ----------
    C_xx, C_xy, C_yy : ndarrays of shape (N, N), (N, d), (d, d)
        Covariances over the known records; ``C_yy`` may be singular.
    records : int
        ``p``.
    ridge : float or 'gcv'
        ``λ``, as a share of each copy's variance; ``gcv`` takes the one of ``RIDGES`` with the least generalised cross-validation error.

    Notes
    -----
    With λ = 0 and a singular ``C_yy`` the map of least norm in units of standard deviations.
    """
    correlations, scale = in_own_units(C_yy)
    s, Q = np.linalg.eigh(correlations)
    keep = s > len(s) * np.finfo(float).eps * max(float(s[-1]), 0.0)
    s, Q = s[keep], Q[:, keep]
    B = (C_xy / scale) @ Q  # covariances with the copies' principal components
    lam = _least_gcv(np.diag(C_xx), B, s, records) if ridge == "gcv" else float(ridge)
    return np.asarray((B / (s + lam)) @ Q.T / scale)


def _least_gcv(variances: Array, B: Array, s: Array, records: int) -> float:
    """Return the ridge with the least ``RSS / (1 − df/p)²``; infinite fits (``df ≥ p``) are left out."""
    unit = np.where(variances > 0, variances, 1.0)
    explained = (B**2 / unit[:, None]).sum(axis=0)  # by component, over attributes
    total = float((variances / unit).sum())
    shrunk = s + RIDGES[:, None]
    rss = total - 2.0 * (explained / shrunk).sum(axis=1) + (explained * s / shrunk**2).sum(axis=1)
    df = 1.0 + (s / shrunk).sum(axis=1)
    gcv = np.where(df < records - 1e-9, rss / (1.0 - np.minimum(df / records, 1.0 - 1e-12)) ** 2, np.inf)
    return float(RIDGES[int(np.argmin(gcv))]) if np.isfinite(gcv).any() else float(RIDGES[-1])
