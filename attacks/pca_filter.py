"""PCA filtering: project the copy on the data's principal components.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``K_X`` | the data's covariance: known, or ``Cov(Y) − Sigma_r`` clipped | (N, N) | huang2005, Theorems 5.1 and 8.2 |
| ``λ_i, Q̂`` | its eigenvalues, falling, and first p eigenvectors | scalar, (N, p) | huang2005, section 5.2.2 |
| ``p`` | components kept | scalar | huang2005, footnote 1 |
| ``x̂`` | ``m + Q̂ Q̂ᵀ (y − m)`` | (N,) | huang2005, section 5.2.2, with ERRATA |
| error | ``Σ_{i>p} λ_i / N + σ² p / N`` for white noise | scalar | huang2005, (7) and Theorem 5.2 |
| ``Sigma_r`` | covariance of the noise, of any shape | (N, N) | huang2005 (14) |

p is a number, the fewest components with a share of the variance, or the index of the largest gap
between eigenvalues, ``λ_{N+1} = 0``. Copies are averaged with minimum-variance weights.
"""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.adversary.single_copy import (
    CovarianceSource,
    combined_noise,
    estimated_covariance,
    filter_map,
)
from auditor.numerics.linear_algebra import descending_eigen
from auditor.plugin import (
    Affine,
    Array,
    LinearAttack,
    NotApplicable,
    Perfect,
    PluginParameters,
    View,
    register,
)

ROUNDING = 1e-12
"""Share of the total variance that counts as rounding error."""


class VarianceShare(PluginParameters):
    """Fewest components that hold a share of the data's variance."""

    variance_share: Annotated[float, Field(gt=0, le=1)]


Components = Annotated[int, Field(ge=1)] | Literal["largest-gap"] | VarianceShare


@register
class PCAFilter(LinearAttack):
    """Projection on the data's principal components (PCA-DR)."""

    name = "pca-filter"
    reference = "huang2005, section 5.2; liu2008, section 3.4"
    knowledge = ("perfect", "estimated")
    assumes = "The adversary knows the data's mean and covariance, or the law of the noise and rows to estimate them from."
    wins = (
        "Wins when attributes are so correlated that few components hold nearly all variance; loses to udr when the components "
        "dropped matter, to the copy as it is under noise shaped like the data, and to bayes-estimate always when covariances are known."
    )

    class Parameters(PluginParameters):
        """Components kept, and source of the covariance."""

        components: Components = "largest-gap"
        """how many: an integer, {variance-share: 0.95}, or largest-gap between eigenvalues, to 0 included"""
        covariance: CovarianceSource = "knowledge"
        """knowledge: exact where it is known; copies: estimated from the released rows even then"""

    def affine(self, view: View) -> Affine:
        known = isinstance(view.knowledge, Perfect) and self.parameters.covariance == "knowledge"
        if known:
            mean, K_X = view.data_moments
        else:
            mean, covariance = view.combined(view.held)
            K_X = estimated_covariance(covariance, combined_noise(view, covariance))
        values, V = descending_eigen(K_X)
        V = V[:, : components_kept(values, self.parameters.components)]
        return filter_map(view, V @ V.T, mean, fixed=known)


def components_kept(values: Array, components: int | str | VarianceShare) -> int:
    """p, from 1 to N.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ_i``, largest first; negative eigenvalues count as 0.
    components : int, 'largest-gap' or VarianceShare

    Raises
    ------
    NotApplicable
        ``components`` exceeds the number of attributes.

    Examples
    --------
    >>> components_kept(np.array([400.0, 390.0, 10.0]), "largest-gap"), components_kept(np.array([9.0, 8.5, 8.0]), "largest-gap")
    (2, 3)
    >>> components_kept(np.array([90.0, 6.0, 4.0]), VarianceShare(variance_share=0.95))
    2
    """
    values = np.clip(values, 0.0, None)
    N = len(values)
    if isinstance(components, VarianceShare):
        total = math.fsum(values)
        reached = np.cumsum(values) >= (components.variance_share - ROUNDING) * total
        return int(np.argmax(reached)) + 1
    if components == "largest-gap":
        return int(np.argmax(values - np.append(values[1:], 0.0))) + 1
    if int(components) > N:
        raise NotApplicable(f"components is {components}, but there are only {N} attributes")
    return int(components)
