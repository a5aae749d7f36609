"""Univariate reconstruction: the posterior mean of each attribute by itself, blind to what the others say.

Shrinks every attribute to its mean as far as its own noise deserves; the benchmark that shows what correlations give away.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``λ_jj`` | variance of attribute j, ``K_X``'s diagonal | scalar | huang2005, section 4 |
| ``σ_j²`` | variance of the noise in attribute j of the combined copies | scalar | |
| ``g_j`` | ``λ_jj / (λ_jj + σ_j²)`` | scalar | huang2005, section 4 |
| ``x̂_j`` | ``mu_j + g_j (y_j − mu_j)`` | scalar | |
| error | ``λ_jj σ_j² / (λ_jj + σ_j²)`` | scalar | |

A coalition's copies are first combined with the weights of least noise that the law of the noise gives (``auditor.filters``).
An ``estimated`` adversary takes ``λ̂_jj = max(0, Var(y_j) − σ_j²)`` and the mean from its rows.

Reference: huang2005, section 4. The posterior mean for Gaussian data, the best linear guess from one attribute for any. Fails to use
correlations: equal to ``bayes-estimate`` when attributes and their noise are uncorrelated, worse else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.attack import Affine, LinearAttack, View
from auditor.filters import combined_noise, filter_map, held_rows
from auditor.knowledge import Estimated, Perfect
from auditor.registry import register

Array = NDArray[np.float64]


@register
class UnivariateReconstruction(LinearAttack):
    """Posterior mean of each attribute by itself (Gaussian closed form), blind to correlations between attributes."""

    name = "udr"
    reference = "huang2005, section 4"
    knowledge = (Perfect.name, Estimated.name)
    assumes = "The adversary knows the law of the noise, and each attribute's mean and variance or rows to estimate them from."
    wins = "As good as any attack on uncorrelated attributes; loses to all that use correlations where there are any."

    def affine(self, view: View) -> Affine:
        """Return one gain an attribute, on the coalition's combined copies."""
        mean, covariance = view.combined(held_rows(view))
        noise = np.diag(combined_noise(view, covariance))
        if isinstance(view.knowledge, Perfect) and view.exact_mean is not None and view.exact_covariance is not None:
            return filter_map(view, np.diag(univariate_gain(np.diag(view.exact_covariance), noise)), view.exact_mean, fixed=True)
        spread = np.clip(np.diag(covariance) - noise, 0.0, None)
        return filter_map(view, np.diag(univariate_gain(spread, noise)), mean, fixed=False)


def univariate_gain(variance: Array, noise: Array) -> Array:
    """Return ``g_j = λ_jj / (λ_jj + σ_j²)``, shape (N,); 0 for an attribute that does not vary.

    Parameters
    ----------
    variance, noise : ndarrays of shape (N,)
        ``λ_jj`` and ``σ_j²``, in squared data units.

    Examples
    --------
    >>> univariate_gain(np.array([100.0, 0.0]), np.array([25.0, 25.0]))
    array([0.8, 0. ])
    """
    return np.divide(variance, variance + noise, out=np.zeros(len(variance)), where=variance > 0)
