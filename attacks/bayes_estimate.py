"""Bayes estimate: posterior mean of Gaussian data under Gaussian noise.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``Sigma_x, mu_x`` | covariance and mean of the data | (N, N), (N,) | huang2005, section 6.1 |
| ``Sigma_r`` | covariance of the noise, whose mean is 0 | (N, N) | huang2005, Theorem 8.1 |
| ``x̂`` | ``(Sigma_x⁻¹ + I/σ²)⁻¹ (Sigma_x⁻¹ mu_x + y/σ²)`` | (N,) | huang2005 (11), white noise |
| ``x̂`` | ``(Sigma_x⁻¹ + Sigma_r⁻¹)⁻¹ (Sigma_x⁻¹ mu_x + Sigma_r⁻¹ y)`` | (N,) | huang2005 (13), any noise |
| ``F`` | ``Sigma_x (Sigma_x + Sigma_r)⁻¹``; ``x̂ = mu_x + F (y − mu_x)`` | (N, N) | equal to (13), without either inverse |
| error | ``Σ λ σ²/(λ + σ²) / N`` for white noise | scalar | |

The third form allows a singular ``Sigma_x``. ``estimated`` knowledge uses ``Cov(Y) − Sigma_r`` with
negative eigenvalues set to 0. Copies are averaged with minimum-variance weights; for noise of one
shape the estimate equals ``llse``.
"""

import numpy as np

from auditor.adversary.attack import filter_map
from auditor.numerics.linear_algebra import Pencil
from auditor.plugin import Affine, Array, LinearAttack, Perfect, PublishedModel, View, register

from .mixture_estimate import normal_prior


@register
class BayesEstimate(LinearAttack):
    """Posterior mean of Gaussian data under Gaussian noise (BE-DR)."""

    name = "bayes-estimate"
    in_all = False
    reference = "huang2005, eq. 11 and 13"
    knowledge = ("perfect", "estimated", "model")
    assumes = "The adversary knows the law of the noise, and the data's mean and covariance or rows to estimate them from."
    wins = (
        "Best of all linear attacks on one copy with known covariances; with covariances estimated from few rows an attribute, simpler "
        "attacks beat it where they fit: pca-filter when weak components vanish, udr when nothing is correlated."
    )

    def affine(self, view: View) -> Affine:
        if isinstance(view.knowledge, PublishedModel):
            # a published model needs noise of one shape: F = K_X (K_X + v K_0)⁺
            gain = view.pencil.gain(np.asarray(view.combined_variance))
            return filter_map(view, gain, view.data_moments[0], fixed=False)
        mu_x, Sigma_x, Sigma_r = normal_prior(view, view.averaging)
        fixed = isinstance(view.knowledge, Perfect)
        return filter_map(view, bayes_gain(Sigma_x, Sigma_r), mu_x, fixed)


def bayes_gain(Sigma_x: Array, Sigma_r: Array) -> Array:
    """``F = Sigma_x (Sigma_x + Sigma_r)⁺``, shape (N, N).

    Parameters
    ----------
    Sigma_x, Sigma_r : ndarrays of shape (N, N)
        Covariances of data and noise, positive semi-definite; either may be singular.

    Source: huang2005 (13).

    Examples
    --------
    >>> bayes_gain(np.array([[75.0]]), np.array([[25.0]]))
    array([[0.75]])
    """
    return Pencil.of(Sigma_x, Sigma_r).gain(np.asarray(1.0))
