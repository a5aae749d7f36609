"""Joint linear least squares estimate from all pooled copies.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``H`` | k identities stacked | (kN, N) | li2012 (5) |
| ``K_Y`` | ``H K_X Hᵀ + K_Z`` | (kN, kN) | li2012, section 3.2 |
| ``x̂`` | ``mu_X + K_X Hᵀ K_Y⁻¹ (y − H mu_X)`` | (N,) | li2012 (6) |
| error | ``K_X − K_X Hᵀ K_Y⁻¹ H K_X`` | (N, N) | li2012 (7), first form |
| ``w, v`` | least-variance weights and their noise multiple | (k,), scalar | |
| ``G(v)`` | ``K_X (K_X + v K_0)⁻¹`` | (N, N) | |

For ``K_Z = Sigma ⊗ K_0`` equation 6 is ``x̂ = mu_X + G(v)·Σ w_i (y_i − mu_X)``. Only the first form
of (7) holds for singular ``K_X`` and ``K_Z``. With moments estimated from few rows, the unstructured
form gets *worse* with more copies.
"""

from collections.abc import Sequence

import numpy as np

from auditor.adversary.view import SampleMoments, combinations, grain_of_copies, without_noise
from auditor.numerics.combination import Levels, weights_by_attribute
from auditor.numerics.linear_algebra import EPS, Pencil, regression
from auditor.plugin import (
    Affine,
    AffineStack,
    Array,
    Coalition,
    Estimated,
    Knowledge,
    KroneckerNoise,
    LinearAttack,
    NoiseLaw,
    Perfect,
    View,
    register,
)


@register
class JointLLSE(LinearAttack):
    """Joint linear least squares error estimate from all pooled copies."""

    name = "llse"
    best_linear = True
    reference = "li2012, eq. 6"
    knowledge = ("perfect", "estimated", "model")
    assumes = "The adversary knows the law of the noise, and the data's mean and covariance or rows to estimate them from."
    wins = (
        "Optimal for Gaussian data; gains with every copy of fresh noise, recovers the table from linearly dependent ones; gains nothing "
        "under corner-wave noise, and loses to map-estimate on clustered data."
    )

    def affine(self, view: View) -> Affine:
        if _assumes_nothing(view.knowledge):
            return self._unstructured(view)
        mu_X, K_X = view.data_moments
        W = llse_weights(K_X, view.known_law, view.grain)
        return Affine(W, _offset(W, mu_X - view.centre), fixed=isinstance(view.knowledge, Perfect))

    def affine_batch(self, view: View, coalitions: Sequence[Coalition]) -> Sequence[Affine]:
        law = view.law
        if not isinstance(law, KroneckerNoise) or _assumes_nothing(view.knowledge):
            return super().affine_batch(view, coalitions)
        levels = Levels.of(law, view.copies, tuple(coalitions))
        mu_X, pencil, grain = known_together(view, law, levels)
        W = weights_by_attribute(levels, grain, pencil.gain)
        offsets, fixed = _offset(W, mu_X - view.centre), isinstance(view.knowledge, Perfect)
        return AffineStack(W, offsets, fixed, levels.coalitions)

    def _unstructured(self, view: View) -> Affine:
        sample, (mu_X, K_X) = view.held, view.data_moments
        W = regression(np.tile(K_X, len(view.copies)), view.held_covariance)
        return Affine(W, mu_X - view.centre - W @ sample.mean, fixed=False)


def known_together(view: View, law: KroneckerNoise, levels: Levels) -> tuple[Array, Pencil, Array]:
    """Mean, pencil and grain of each coalition's own view, stacked.

    Mean and grain have shape (B, N), or (N,) if equal for all coalitions. ``levels`` index the
    view's copies.

    Raises
    ------
    NotApplicable
        This knowledge does not give moments.
    """
    given, held = view.given, view.held
    if not isinstance(given, SampleMoments):
        return view.data_moments[0], view.pencil, view.grain
    w, v = levels.of_moments
    mean, covariance = combinations(w, held.mean, view.held_covariance)
    estimated = zip(view.centre + mean, without_noise(covariance, v, law), strict=True)
    completed = zip(*(given.completed(*each) for each in estimated), strict=True)
    mu_X, K_X = (np.array(part) for part in completed)
    first = [coalition[0] for coalition in levels.coalitions]
    variances = held.variances.reshape(-1, view.width)[first]
    grain = grain_of_copies(law, levels.extremes[1], view.centre**2 + variances)
    return mu_X, Pencil.of(K_X, K_X if law.follows_data else law.shape), grain


def _assumes_nothing(knowledge: Knowledge) -> bool:
    return isinstance(knowledge, Estimated) and knowledge.structure == "none"


def _offset(W: Array, mu: Array) -> Array:
    return mu - (W @ np.tile(mu, W.shape[-1] // mu.shape[-1])[..., None])[..., 0]


def llse_weights(K_X: Array, law: NoiseLaw, grain: Array | None = None) -> Array:
    """``W = K_X Hᵀ (H K_X Hᵀ + K_Z)⁺``, shape (N, kN), li2012 (6).

    Parameters
    ----------
    K_X : ndarray of shape (N, N)
        The data's covariance; may be singular.
    law : KroneckerNoise or DenseNoise
        The noise of the coalition's k copies; may be singular.
    grain : ndarray of shape (N,), optional
        Rounding of the copies (``View.grain``); by default the noise's last bit.
    """
    if isinstance(law, KroneckerNoise):
        grain = (
            np.full(len(K_X), EPS * max(1.0, float(np.diag(law.level_covariance).max())))
            if grain is None
            else grain
        )
        return weights_by_attribute(
            Levels.all(law.level_covariance), grain, Pencil.of(K_X, law.shape).gain
        )[0]
    k = law.copies
    return regression(np.tile(K_X, k), np.tile(K_X, (k, k)) + law.covariance)
