"""Posterior mode or mean of each record, for a prior of any shape.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``f_X`` | prior density: ``gaussian``, ``flat``, ``histogram``, ``kde`` or ``known`` | | |
| ``f_R`` | density of the noise in the coalition's copies | | |
| mode | ``argmax_x f_R(y − x) f_X(x)`` | (N,) | liu2008, (12.3) |
| mean | ``∫ x f_R(y − x) f_X(x) dx / ∫ f_R(y − x) f_X(x) dx`` | (N,) | huang2005, section 4 |

``histogram`` is reconstructed (``auditor.adversary.single_copy``) and flat in every bin. ``kde``
smooths it by a normal kernel one bin wide. ``known`` is the table's own value shares, with
``perfect`` knowledge: ``P(x | y) ∝ π_x Π_i f_i(y_i − x)`` over the distinct values. These treat
attributes one at a time, as the Gaussian prior does under other noise. ``histogram`` with
``estimate: mean`` is the univariate reconstruction (UDR) of huang2005, section 4.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from auditor.adversary.single_copy import Method
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import deviations
from auditor.plugin import (
    Array,
    CopyBlocks,
    Cost,
    ExactMoments,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
)

from ._channel import Channel, channels
from ._fitted_map import LinearMap
from ._posterior import (
    ByAttribute,
    Estimate,
    each_once,
    estimated_by_attribute,
    histogram_mean,
    histogram_mode,
    normal_bins,
    reconstructed_priors,
    smoothed,
)
from .llse import llse_weights

MOST_VALUES = 10_000
"""Most distinct values of an attribute with a known prior."""
CHUNK_VALUES = 2**20


@register
class MaximumAPosteriori(RowAttack):
    """Posterior mode or mean per record, under a chosen prior."""

    name = "map-estimate"
    attack_kind = "per attribute"
    combines = True
    cost = Cost(3e-3, 1.5e-7)
    reference = "liu2008, section 3.5, eq. 12.3"
    assumes = (
        "The adversary knows the law of the noise; a gaussian prior needs the data's moments, a known one every attribute's distribution, "
        "the others only the copies."
    )
    wins = (
        "Wins on skewed or clustered attributes while their shape shows through the noise; on normal data an estimated prior "
        "loses to llse; a gaussian prior equals bayes-estimate, a flat one ndr."
    )

    class Parameters(PluginParameters):
        """Prior and point estimate."""

        prior: Literal["gaussian", "flat", "histogram", "kde", "known"] = "histogram"
        """shape of the prior f_X; known: the table's own distribution, with perfect knowledge"""
        estimate: Literal["mode", "mean"] = "mode"
        """what to take of the posterior"""
        method: Method = "em"
        """how a prior is reconstructed: em, or Agrawal and Srikant's iteration"""
        bins: int | None = Field(None, ge=2, le=2000)
        """bins of a reconstructed prior; by default 100 to 400"""

    @property
    def least_squares(self) -> bool:
        return self.parameters.estimate == "mean"

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        p, found = self.parameters, channels(view)
        if p.prior == "flat":
            return ByAttribute([channel.value for channel in found])
        if p.prior == "known":
            mode = p.estimate == "mode"
            return ByAttribute([of_values(view, each, j, mode) for j, each in enumerate(found)])
        if p.prior == "gaussian":
            mu_X, K_X = view.data_moments
            if view.known_law.distribution == "gaussian":
                W = llse_weights(K_X, view.known_law, view.grain)
                return LinearMap(mu_X, np.tile(mu_X, len(view.copies)), W)
            std = deviations(K_X)
            priors = [normal_bins(*each) for each in zip(mu_X, std, found, strict=True)]
        else:
            priors = reconstructed_priors(found, view, blocks, p.method, p.bins)
        if p.prior == "kde":
            priors = [
                prior and smoothed(prior, each.noise)
                for prior, each in zip(priors, found, strict=True)
            ]
        estimate = histogram_mode if p.estimate == "mode" else histogram_mean
        return estimated_by_attribute(estimate, found, priors)


def of_values(view: View, channel: Channel, attribute: int, mode: bool) -> Estimate:
    """Estimator of one attribute's posterior mode or mean.

    Raises
    ------
    NotApplicable
        This knowledge does not give the attribute's distribution, or it has too many values.
    """
    known = view.given.distribution if isinstance(view.given, ExactMoments) else None
    if known is None:
        raise NotApplicable(
            f"needs the distribution of every attribute's values, which {view.knowledge.label} knowledge does not give"
        )
    values, shares = known(attribute)
    if len(values) > MOST_VALUES:
        reason = f"exact posteriors go over at most {MOST_VALUES:,} values"
        raise NotApplicable(
            f"{view.attributes[attribute]} has {len(values):,} distinct values; {reason}"
        )

    def estimate(copies: Array) -> Array:
        parts = (
            copies[start:stop] for start, stop in evenly(0, len(copies), len(values), CHUNK_VALUES)
        )
        return np.concatenate(
            [posterior_estimate(values, shares, channel, part, mode) for part in parts]
        )

    return (lambda copies: each_once(estimate, copies)) if channel.noise.on_lattice else estimate


def posterior_estimate(
    values: Array, shares: Array, channel: Channel, copies: Array, mode: bool
) -> Array:
    """Mode or mean of the posterior over values, shape (b,).

    A row that no value explains gets the estimate from its copies alone.

    Parameters
    ----------
    values, shares : ndarrays of shape (V,)
        Distinct values and their shares.
    copies : ndarray of shape (b, k)
    """
    if channel.exact:
        return channel.value(copies)
    log_weights = np.log(shares) + channel.log_likelihood(copies, values)
    top = log_weights.max(axis=1)
    explained = np.isfinite(top)
    if mode:
        found = values[log_weights.argmax(axis=1)]
    else:
        weights = np.exp(log_weights - np.where(explained, top, 0.0)[:, None])
        found = (weights @ values) / np.where(explained, weights.sum(axis=1), 1.0)
    return np.where(explained, found, channel.value(copies))
