"""Partial disclosure: LLSE given the true values of some attributes.

Moments given the known values replace ``mu_X`` and ``K_X`` in the joint LLSE.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``K`` | the known attributes | | |
| ``B`` | ``K_{X,K} K_{K,K}⁺``: regression of all attributes on the known; rows of known ones are the identity | (N, |K|) | |
| ``m`` | ``mu_X + B (x_K − mu_K)`` | (N,) | |
| ``K_{X|K}`` | ``K_X − B K_{K,X}``: 0 in the known rows and columns | (N, N) | |
| ``w, v`` | least-variance weights and their noise multiple | (k,), scalar | |
| ``G`` | ``K_{X|K} (K_{X|K} + v K_0)⁺`` | (N, N) | li2012 (6) |
| ``x̂`` | ``m + G·Σ w_i (y_i − m)`` | (N,) | |

``W = wᵀ ⊗ G`` and ``V = (I − G) B``: the best linear estimate, optimal for Gaussian data.
"""

import numpy as np

from auditor.numerics.linear_algebra import clip_to_psd, regression
from auditor.plugin import (
    Affine,
    Array,
    ExactMoments,
    Indices,
    LinearAttack,
    NotApplicable,
    Pair,
    View,
    register,
)

from .llse import llse_weights


@register
class PartialDisclosure(LinearAttack):
    """Joint LLSE of unknown attributes, given true values of others."""

    name = "partial-disclosure"
    attack_kind = "with attributes"
    reference = "huang2005, section 3; li2012, eq. 6"
    knowledge = ("known-attributes", "model")
    assumes = (
        "The adversary knows the law of the noise, some attributes of every record, and the data's mean and covariance, or rows to "
        "estimate them from and a regression on these attributes."
    )
    wins = "Wins over llse wherever a known attribute is correlated with an unknown one; equals it where none is."

    def affine(self, view: View) -> Affine:
        if not view.known_columns.size:
            raise NotApplicable("needs the true values of some attributes of every record")
        mu_X, K_X = view.data_moments
        B, conditional = given(K_X, view.known_columns)
        W = llse_weights(conditional, view.known_law, view.grain)
        kept = np.eye(view.width) - W.reshape(view.width, -1, view.width).sum(axis=1)  # I − G
        V = np.zeros_like(K_X)
        V[:, view.known_columns] = kept @ B
        mu = mu_X - view.centre
        return Affine(W, (kept - V) @ mu, fixed=isinstance(view.given, ExactMoments), known=V)


def given(K_X: Array, known: Indices, noise: Array | None = None) -> Pair:
    """``B``, shape (N, |K|), and ``K_{X|K}``, shape (N, N).

    ``K_X`` may be singular. Known values may have noise of variances ``noise``, shape (|K|,). Then
    ``B = K_XK (K_KK + diag(noise))⁻¹``, and no row of ``K_{X|K} = K_X − B K_KX`` is 0.
    """
    if noise is not None and noise.any():
        B = regression(K_X[:, known], K_X[np.ix_(known, known)] + np.diag(noise))
        return B, clip_to_psd(K_X - B @ K_X[known], K_X)
    B = regression(K_X[:, known], K_X[np.ix_(known, known)])
    B[known] = np.eye(len(known))
    conditional = clip_to_psd(K_X - B @ K_X[known], K_X)
    conditional[known], conditional[:, known] = 0.0, 0.0
    return B, conditional
