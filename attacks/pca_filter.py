"""PCA filtering: keep the data's principal components and let the noise of all the other directions go.

White noise spreads evenly over the directions while correlated data do not: p of N directions hold p/N of the noise.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``K_X`` | the data's covariance: known, or ``Cov(Y) − Sigma_r`` clipped | (N, N) | huang2005, Theorems 5.1 and 8.2 |
| ``λ_i, Q̂`` | its eigenvalues, falling, and first p eigenvectors | scalar, (N, p) | huang2005, section 5.2.2 |
| ``p`` | components kept | scalar | huang2005, footnote 1 |
| ``x̂`` | ``m + Q̂ Q̂ᵀ (y − m)`` | (N,) | huang2005, section 5.2.2, with ERRATA |
| error | ``Σ_{i>p} λ_i / N + σ² p / N`` for white noise | scalar | huang2005, (7) and Theorem 5.2 |
| ``Sigma_r`` | covariance of the noise, of any shape | (N, N) | huang2005 (14) |

p is a number, the fewest components with a share of the variance, or the place of the largest gap between eigenvalues, the one from
``λ_N`` to 0 included: without it p = N is impossible. A coalition's copies are first combined with the weights of least noise that the law
of the noise gives (``auditor.adversary.single_copy``). ``shrinkage: optimal`` multiplies each component kept by Gavish and Donoho's
factor; with the
covariance known that is ``λ/(λ + σ_i²)``, ``σ_i²`` the noise's variance along it.

Reference: huang2005, section 5. Fails when the components dropped hold more variance than the noise they carry: ``udr`` is then better.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.adversary.single_copy import (
    CovarianceSource,
    FilterParameters,
    combined_noise,
    direction_gains,
    estimated_covariance,
    filter_map,
    white_variance,
)
from auditor.numerics.linear_algebra import descending_eigen
from auditor.plugin import Affine, Array, Estimated, LinearAttack, NotApplicable, Perfect, PluginParameters, View, register

ROUNDING = 1e-12
"""Share of the total variance that is rounding, and no component."""


class VarianceShare(PluginParameters):
    """As many components as hold a share of the data's variance."""

    variance_share: Annotated[float, Field(gt=0, le=1)]


Components = Annotated[int, Field(ge=1)] | Literal["largest-gap"] | VarianceShare


@register
class PCAFilter(LinearAttack):
    """Projects the copy on the data's principal components, known or estimated (Huang, Du and Chen's PCA-DR)."""

    name = "pca-filter"
    reference = "huang2005, section 5.2; liu2008, section 3.4"
    knowledge = (Perfect.name, Estimated.name)
    assumes = "The adversary knows the data's mean and covariance, or the law of the noise and rows to estimate them from."
    wins = (
        "Wins when attributes are so correlated that few components hold nearly all variance; loses to udr when the components "
        "dropped matter, to the copy as it is under noise shaped like the data, and to bayes-estimate always when covariances are known."
    )

    class Parameters(FilterParameters):
        """Which components are kept, where the covariance comes from, and the filters' options."""

        components: Components = Field(
            "largest-gap", description="how many: an integer, {variance-share: 0.95}, or largest-gap between eigenvalues, to 0 included"
        )
        covariance: CovarianceSource = Field(
            "knowledge", description="knowledge: exact where it is known; copies: estimated from the released rows even then"
        )

    def affine(self, view: View) -> Affine:
        """Return the projection on the components kept, about the mean."""
        p, moments = self.parameters, view.held
        known = isinstance(view.knowledge, Perfect) and p.covariance == "knowledge"
        exact = known and (p.shrinkage == "none" or p.noise_variance == "known")
        # Whoever knows all that the map depends on need not look at the copies' moments.
        mean, covariance = view.data_moments if exact else view.combined(moments)
        noise = None if known and p.shrinkage == "none" else self._noise(view, covariance, 0 if exact else moments.count)
        if known:
            mean, K_X = view.data_moments
        else:
            assert noise is not None
            K_X = estimated_covariance(covariance, noise)
        values, V = descending_eigen(K_X)
        along = np.zeros(view.width) if noise is None else np.einsum("ij,ik,kj->j", V, noise, V, optimize=True)
        kept = components_kept(values, p.components)
        gains = direction_gains(values + along, kept, along, None if known else moments.count, p)
        return filter_map(view, (V * gains) @ V.T, mean, fixed=exact)

    def _noise(self, view: View, covariance: Array, rows: int) -> Array:
        """``Sigma_r``: by the law, or white with a variance estimated from the copies."""
        if self.parameters.noise_variance == "known":
            return combined_noise(view, covariance)
        return np.eye(view.width) * white_variance(view, covariance, descending_eigen(covariance)[0], self.parameters, rows)


def components_kept(values: Array, components: int | str | VarianceShare) -> int:
    """Return p, from 1 to N.

    Parameters
    ----------
    values : ndarray of shape (N,)
        ``λ_i``, largest first; those below 0 count as 0.
    components : int, 'largest-gap' or VarianceShare

    Raises
    ------
    NotApplicable
        More components are asked for than there are attributes.

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
