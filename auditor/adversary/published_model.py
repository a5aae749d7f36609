"""Moments of the data given a published linear regression.

The adversary's estimate is ``x_t = â + b̂·x_O + ê``. The published figures replace its own. The
other attributes' moments and the residual's correlations stay as estimated.

| symbol | meaning | shape |
| --- | --- | --- |
| ``O, t, U`` | the predictors, the target, all other attributes | |
| ``a, b, s²`` | the published intercept, coefficients and residual variance; with a hat as estimated | scalar, (m,), scalar |
| ``mu_t`` | ``a + b·mu_O`` | scalar |
| ``K_tO, K_tt`` | ``bᵀK_OO``, ``bᵀK_OO b + s²`` | (m,), scalar |
| ``K_tU`` | ``bᵀK_OU + (s/ŝ) Cov(ê, x_U)``, ``Cov(ê, x_U) = K̂_tU − b̂ᵀK̂_OU`` | (u,) |
| ``M`` | ``K_OO^½ (K̂_OO^½)⁺``: for known predictors ``K_UO = K̂_UO Mᵀ``, as ``M x̂_O`` has their covariance | (m, m) |

These are moments of linear functions of random variables, so they are positive semi-definite and
bounded by the published figures.

Source: huang2005 section 3 and kantarcioglu2004. Not checked: normal attributes. For others the
regression is still the best linear estimate, with the stated error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import SampleMoments
from auditor.numerics.linear_algebra import regression, symmetric_root
from auditor.types import Array


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """``x_t = a + b·x_O + residual``, with attributes by index.

    Attributes
    ----------
    target : int
    on : ndarray of shape (m,)
        Indices of the predictors.
    coefficients : ndarray of shape (m,)
    intercept, variance : float
        ``a`` in the target's units, and ``s²`` in their square, ≥ 0.
    """

    target: int
    on: NDArray[np.intp]
    coefficients: Array
    intercept: float
    variance: float


def least_squares(mean: Array, covariance: Array, target: int, on: NDArray[np.intp]) -> LinearModel:
    """Return the regression of an attribute on others, from their moments."""
    b = regression(covariance[[target]][:, on], covariance[np.ix_(on, on)])[0]
    s2 = max(0.0, float(covariance[target, target] - b @ covariance[on, target]))
    return LinearModel(target, on, b, float(mean[target] - b @ mean[on]), s2)


@dataclass(frozen=True, eq=False, repr=False)
class ModelledMoments(SampleMoments):
    """Sample moments and a published regression.

    Attributes
    ----------
    model : LinearModel
    predictors : tuple of ndarrays of shapes (m,) and (m, m), or None
        Exact mean and covariance of the predictors, if known.
    """

    model: LinearModel
    predictors: tuple[Array, Array] | None = None

    def completed(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Return moments with the published regression."""
        return with_model(mean, covariance, self.model, self.predictors)


def with_model(
    mean: Array,
    covariance: Array,
    model: LinearModel,
    predictors: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """Return mean, (N,), and covariance, (N, N), under a published regression.

    Parameters
    ----------
    mean, covariance : ndarrays of shapes (N,) and (N, N)
        As estimated; the covariance may be singular.
    model : LinearModel
    predictors : tuple of ndarrays, optional
        Mean and covariance of the predictors, in place of the estimates.
    """
    O, t, b = model.on, model.target, model.coefficients  # noqa: E741 - the symbols above
    own = least_squares(mean, covariance, t, O)
    residual = covariance[t] - own.coefficients @ covariance[O]  # Cov(ê, x)
    mu, K = mean.copy(), covariance.copy()
    if predictors is not None:
        mu[O] = predictors[0]
        K[O] = (
            symmetric_root(predictors[1])
            @ np.linalg.pinv(symmetric_root(K[np.ix_(O, O)]), rcond=1e-7, hermitian=True)
            @ K[O]
        )
        K[:, O] = K[O].T
        K[np.ix_(O, O)] = predictors[1]
    mu[t] = model.intercept + b @ mu[O]
    K[t] = (
        b @ K[O] + (np.sqrt(model.variance / own.variance) if own.variance > 0 else 0.0) * residual
    )
    K[t, O] = b @ K[np.ix_(O, O)]  # exact where ê is uncorrelated with x_O
    K[t, t] = b @ K[t, O] + model.variance
    K[:, t] = K[t]
    return mu, K
