"""Filters by the leading directions of a covariance."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.adversary.attack import filter_map
from auditor.adversary.view import combinations, combined_noise, noise_of
from auditor.numerics.combination import Levels, spread_out
from auditor.numerics.linear_algebra import descending_eigen, noise_edge, projection_error_range
from auditor.plugin import (
    Affine,
    AffineStack,
    Array,
    Coalition,
    KroneckerNoise,
    LinearAttack,
    Moments,
    NotApplicable,
    Perfect,
    PluginParameters,
    View,
    register,
)

from .mixture_estimate import normal_prior


class SampleFilter(LinearAttack):
    """Project the combined copy on leading directions of its spectrum."""

    assumes = "Noise is white, of known variance; nothing is known of the data."

    @abstractmethod
    def kept(self, values: Array, variance: float, rows: int) -> int:
        """Number of directions to keep."""

    def _kept(self, view: View) -> int:
        _, covariance, values, _ = view.spectrum
        variance = float(np.trace(combined_noise(view, covariance))) / view.width
        return self.kept(values, variance, view.held.count)

    def affine(self, view: View) -> Affine:
        mean, _, _, V = view.spectrum
        V = V[:, : self._kept(view)]
        return filter_map(view, V @ V.T, mean, fixed=False)

    def affine_batch(self, view: View, coalitions: Sequence[Coalition]) -> Sequence[Affine]:
        law = view.law
        if not isinstance(law, KroneckerNoise):
            return super().affine_batch(view, coalitions)
        levels = Levels.of(law, view.copies, tuple(coalitions))
        w, v = levels.of_moments
        mean, covariance = combinations(w, view.held.mean, view.held_covariance)
        values, V = descending_eigen(covariance)
        variances = (
            np.trace(noise_of(view, law, v[:, None, None], covariance), 0, 1, 2) / view.width
        )
        kept = [self.kept(*one, view.held.count) for one in zip(values, variances, strict=True)]
        V = V * (np.arange(view.width) < np.array(kept)[:, None])[:, None]
        F = V @ V.mT
        offsets = mean - (F @ mean[..., None])[..., 0]
        return AffineStack(spread_out(w, F), offsets, False, levels.coalitions)

    def error_bounds(self, view: View, joint: Moments) -> tuple[float, float] | None:
        """Bounds on the error by eigenvalues alone.

        Summed over attributes; unbounded above for rows other than the fitted. For fitted rows both
        include ``(m − mu_X)²``.
        """
        kept, same = self._kept(view), view.held.count == joint.count
        N, w = view.width, view.weights
        K, mean = (
            joint.covariance().reshape(len(w) + 1, N, len(w) + 1, N),
            joint.mean.reshape(len(w) + 1, N),
        )
        data, noise, copy = (
            np.einsum("a,aibj,b->ij", v, K, v)
            for v in (np.r_[1.0, 0.0 * w], np.r_[-w.sum(), w], np.r_[0.0, w])
        )
        lambda_X, lambda_R, added = (
            descending_eigen(part)[0] for part in (data, noise, copy - data)
        )
        low, high = projection_error_range(lambda_X, lambda_R, added, kept)
        off = float(((w @ mean[1:] - mean[0]) ** 2).sum())
        return (low + off, high + off) if same else (low, np.inf)


@register
class SpectralFilter(SampleFilter):
    """Keep directions above the random-matrix bound of noise.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``λ̂_j, v̂_j`` | eigenvalues and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, Protocol 2 |
    | ``Q`` | records / attributes | scalar | liu2008, section 3.2 |
    | ``λ_max`` | random-matrix bound ``σ²(1 + 1/√Q)²`` of noise | scalar | liu2008, section 3.2 |
    | ``k`` | number of ``λ̂_j > λ_max``; 0 when none is | scalar | liu2008, Protocol 2, with ERRATA |
    | ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, Protocol 2, with ERRATA |

    Copies are averaged with minimum-variance weights (``auditor.adversary.view``). Coloured noise
    is treated as white with its mean variance, as in huang2005, Experiment 4. ``estimated`` knowledge
    limits the filter to its rows.
    """

    name = "spectral-filter"
    in_all = False
    reference = "kargupta2003; liu2008, section 3.2, Protocol 2"
    wins = (
        "Wins without knowing the data when a few strong components stand clear of the noise and the rest is negligible; "
        "loses to pca-filter and bayes-estimate when weak components reach the bound, and under coloured noise."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        return int((values > noise_edge(rows, len(values), variance)).sum())


@register
class SVDFilter(SampleFilter):
    """Keep directions of at least twice the noise's variance.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``λ̂_j, v̂_j`` | eigenvalues, falling, and eigenvectors of the copy's sample covariance | scalar, (N,) | liu2008, section 3.3 |
    | ``k`` | ``min{j : λ̂_j < 2σ²} − 1``; N when no eigenvalue is below | scalar | liu2008, section 3.3, with ERRATA |
    | ``x̂`` | ``m + Σ_{j≤k} v̂_j v̂_jᵀ (y − m)``, m the copy's mean | (N,) | liu2008, section 3.3 |

    Copies and noise are treated as in ``spectral-filter``. Below ``1/(√2 − 1)² ≈ 5.8`` rows per attribute
    noise alone crosses ``2σ²``.
    """

    name = "svd-filter"
    reference = "guo2006; liu2008, section 3.3"
    wins = (
        "Picks near the best number of directions when rows are many; with fewer than about six rows an attribute it keeps "
        "pure noise, and it loses to bayes-estimate wherever components are comparable to the noise, and to the copy as it is "
        "under noise shaped like the data."
    )

    def kept(self, values: Array, variance: float, rows: int) -> int:
        return int((values >= 2.0 * variance).sum())


ROUNDING = 1e-12
"""Share of the total variance that counts as rounding error."""


class VarianceShare(PluginParameters):
    """Fewest components that hold a share of the data's variance."""

    variance_share: Annotated[float, Field(gt=0, le=1)]


Components = Annotated[int, Field(ge=1)] | Literal["largest-gap"] | VarianceShare


@register
class PCAFilter(LinearAttack):
    """Projection on the data's principal components (PCA-DR).

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

    name = "pca-filter"
    in_all = False
    reference = "huang2005, section 5.2; liu2008, section 3.4"
    knowledge = ("perfect", "estimated")
    assumes = "The adversary knows the data's mean and covariance, or the law of the noise and rows to estimate them from."
    wins = (
        "Wins when attributes are so correlated that few components hold nearly all variance; loses to udr when the components "
        "dropped matter, to the copy as it is under noise shaped like the data, and to bayes-estimate always when covariances are known."
    )

    class Parameters(PluginParameters):
        """Components kept."""

        components: Components = "largest-gap"
        """how many: an integer, {variance-share: 0.95}, or largest-gap between eigenvalues, to 0 included"""

    def affine(self, view: View) -> Affine:
        known = isinstance(view.knowledge, Perfect)
        mean, K_X = view.data_moments if known else normal_prior(view, view.averaging)[:2]
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
