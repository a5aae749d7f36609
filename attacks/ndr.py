"""Noise-distribution reconstruction: the released value, ``x̂ = y``.

Several copies are averaged with minimum-variance weights.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y_i`` | copy i of a record | (N,) | |
| ``w`` | weights, sum 1, that minimise ``wᵀ Sigma w`` | (k,) | |
| ``x̂`` | ``Σ w_i y_i``: y itself of one copy | (N,) | huang2005, section 4.1 |
"""

import numpy as np

from auditor.numerics.combination import Levels, weights_by_attribute
from auditor.plugin import Affine, KroneckerNoise, LinearAttack, View, register


@register
class NoiseDistributionReconstruction(LinearAttack):
    """Released value as the estimate; pooled copies are averaged."""

    name = "ndr"
    reference = "huang2005, section 4.1"
    assumes = "Nothing about the data. The law of the noise, if known, gives the weights; else copies count alike."
    wins = "Wins when noise is small beside the data; loses to every attack that knows the data's moments."

    def affine(self, view: View) -> Affine:
        if not isinstance(view.law, KroneckerNoise):
            return Affine(view.averaging, np.zeros(view.width))
        W = weights_by_attribute(
            Levels.all(view.law.level_covariance), view.grain, lambda v: np.eye(view.width)[None]
        )
        return Affine(W[0], np.zeros(view.width))
