"""Partial disclosure: true values of some attributes, known from elsewhere, sharpen the guess of the others.

What is known of a record moves its prior: a conditional mean and a smaller conditional covariance take the place of ``mu_X`` and ``K_X``
in the joint LLSE.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``K`` | the known attributes | | |
| ``B`` | ``K_{X,K} K_{K,K}⁺``: regression of all attributes on the known; their own rows are the identity | (N, |K|) | |
| ``m`` | ``mu_X + B (x_K − mu_K)`` | (N,) | |
| ``K_{X|K}`` | ``K_X − B K_{K,X}``: 0 in the known rows and columns | (N, N) | |
| ``w, v`` | least-variance weights and their noise multiple | (k,), scalar | |
| ``G`` | ``K_{X|K} (K_{X|K} + v K_0)⁺`` | (N, N) | li2012 (6) |
| ``x̂`` | ``m + G·Σ w_i (y_i − m)`` | (N,) | |

So ``W = wᵀ ⊗ G`` and ``V = (I − G) B``: linear in copies and known values, its error a closed form like any other's. It is the best linear
guess from both, and for Gaussian data the best of all.

Reference: the partial value disclosure of huang2005, section 3, which its section 9 leaves to future work, with li2012 (6). Fails to help
when attributes are uncorrelated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.linear_algebra import clip_to_psd, regression
from auditor.plugin import Affine, Array, ExactMoments, KnownAttributes, LinearAttack, NotApplicable, PublishedModel, View, register

from .llse import llse_weights


@register
class PartialDisclosure(LinearAttack):
    """The joint LLSE of the unknown attributes, given the true values of others."""

    name = "partial-disclosure"
    attack_kind = "with attributes"
    reference = "huang2005, section 3; li2012, eq. 6"
    knowledge = (KnownAttributes.name, PublishedModel.name)
    assumes = (
        "The adversary knows the law of the noise, some attributes of every record, and the data's mean and covariance, or rows to "
        "estimate them from and a regression on these attributes."
    )
    wins = "Wins over llse wherever a known attribute is correlated with an unknown one; equals it where none is."

    def affine(self, view: View) -> Affine:
        """Return the conditional LLSE for one coalition: where the true mean is known, with no offset beyond centring on it."""
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


def given(K_X: Array, known: NDArray[np.intp], noise: Array | None = None) -> tuple[Array, Array]:
    """Return ``B``, shape (N, |K|), and ``K_{X|K}``, shape (N, N), for the places of the known attributes.

    ``K_X`` may be singular: a total is then known with its parts. What is known may have noise of its own, of these variances, shape
    (|K|,): then ``B = K_XK (K_KK + diag(noise))⁻¹``, and ``K_{X|K} = K_X − B K_KX`` is of no attribute 0.
    """
    if noise is not None and noise.any():
        B = regression(K_X[:, known], K_X[np.ix_(known, known)] + np.diag(noise))
        return B, clip_to_psd(K_X - B @ K_X[known], K_X)
    B = regression(K_X[:, known], K_X[np.ix_(known, known)])
    B[known] = np.eye(len(known))
    conditional = clip_to_psd(K_X - B @ K_X[known], K_X)
    conditional[known], conditional[:, known] = 0.0, 0.0
    return B, conditional
