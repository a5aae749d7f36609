"""Univariate reconstruction: posterior mean of each attribute alone.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``f_X, f_R`` | densities of one attribute, and of the noise in its combined copies | | huang2005, section 4 |
| ``x̂_j`` | ``∫ x f_X(x) f_R(y_j − x) dx / ∫ f_X(x) f_R(y_j − x) dx`` | scalar | huang2005, section 4 |
| ``λ_jj`` | variance of attribute j, ``K_X``'s diagonal | scalar | |
| ``σ_j²`` | variance of the noise in attribute j of the combined copies | scalar | |
| ``g_j`` | ``λ_jj / (λ_jj + σ_j²)`` | scalar | |
| gaussian ``x̂_j`` | ``mu_j + g_j (y_j − mu_j)``, with error ``λ_jj σ_j² / (λ_jj + σ_j²)`` | scalar | |

``prior: gaussian`` is the best linear estimate from one attribute for any distribution.
``estimated`` knowledge uses ``λ̂_jj = max(0, Var(y_j) − σ_j²)`` and the mean of its rows. ``prior:
reconstructed`` is the paper's: ``f_X`` is estimated from the copies, flat in every bin, and the
integrals are exact, for noise of any law.

Copies are averaged with minimum-variance weights (``auditor.adversary.single_copy``); a
reconstructed prior under other noise than Gaussian uses all copies (``_channel``).

Equal to ``bayes-estimate`` if attributes and noise are uncorrelated and normal. A reconstructed
prior loses accuracy with few records or strong noise.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from auditor.adversary.single_copy import Method, combined_noise, filter_map
from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Affine,
    Array,
    Attack,
    CopyBlocks,
    Cost,
    LinearAttack,
    Perfect,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
)

from ._channel import channels
from ._posterior import estimated_by_attribute, histogram_mean, reconstructed_priors


@register
class UnivariateReconstruction(LinearAttack):
    """Posterior mean of each attribute alone, without correlations."""

    name = "udr"
    in_all = False
    attack_kind = "per attribute"
    reference = "huang2005, section 4.2, eq. 4"
    knowledge = ("perfect", "estimated")
    assumes = (
        "The adversary knows the law of the noise; a gaussian prior needs each attribute's mean and variance, "
        "or rows to estimate them from."
    )
    wins = (
        "As good as any attack on uncorrelated attributes, with the prior that fits: gaussian on normal data, reconstructed on "
        "clustered or skewed ones; loses to all that use correlations where there are any."
    )

    class Parameters(PluginParameters):
        """Source of the prior."""

        prior: Literal["gaussian", "reconstructed"] = "gaussian"
        """gaussian: the closed form, linear; reconstructed: f_X estimated from the copies"""
        method: Method = "em"
        """how a prior is reconstructed: em, or Agrawal and Srikant's iteration"""
        bins: int | None = Field(None, ge=1, le=2000)
        """bins of a reconstructed prior; by default 100 to 400"""

    def form(self) -> Attack:
        return (
            ReconstructedPrior(self.parameters)
            if self.parameters.prior == "reconstructed"
            else self
        )

    def affine(self, view: View) -> Affine:
        known = isinstance(view.knowledge, Perfect)
        mean, covariance = view.data_moments if known else view.combined(view.held)
        noise, spread = np.diag(combined_noise(view, covariance)), np.diag(covariance)
        if not known:
            spread = np.clip(spread - noise, 0.0, None)
        return filter_map(view, np.diag(univariate_gain(spread, noise)), mean, fixed=known)


class ReconstructedPrior(RowAttack):
    """Posterior means under reconstructed distributions, for any knowledge."""

    name = UnivariateReconstruction.name
    combines = True
    cost = Cost(4e-3, 1.6e-6)

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        p, found = self.parameters, channels(view)
        priors = reconstructed_priors(found, view, blocks, p.method, p.bins)
        return estimated_by_attribute(histogram_mean, found, priors)


def univariate_gain(variance: Array, noise: Array) -> Array:
    """``g_j = λ_jj / (λ_jj + σ_j²)``, shape (N,); 0 for a constant.

    Parameters
    ----------
    variance, noise : ndarrays of shape (N,)
        ``λ_jj`` and ``σ_j²``, in squared data units.

    Examples
    --------
    >>> univariate_gain(np.array([100.0, 0.0]), np.array([25.0, 25.0]))
    array([0.8, 0. ])
    """
    return quotient(variance, variance + noise, where=variance > 0)
