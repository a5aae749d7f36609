"""What several coalitions of one size know of the data, each from its own copies, in several draws: stacked, in place of a view for each.

| symbol | meaning | shape |
| --- | --- | --- |
| ``w, v`` | weights of each coalition's best combination of copies, and its noise multiple | (B, k), (B,) |
| ``m, C`` | mean and covariance of each coalition's copies, over the rows that are estimated from | (R, B, kN), (R, B, kN, kN) |
| ``mu_X, K_X`` | ``Σ w_i m_i``, and ``Σ w_i C_ij w_j`` less the noise | (R, B, N), (R, B, N, N) |

Each is what the coalition's own view has (``View.data_moments``, ``View.grain``), worked out by the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import SampleMoments
from auditor.adversary.view import View, combination, grain_of_copies, grain_of_moments, without_noise
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.linear_algebra import Pencil
from auditor.numerics.moments import neighbours
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.types import Array


class Known(NamedTuple):
    """What coalitions know of the data in each draw, stacked; without the first two axes where all know the same.

    Attributes
    ----------
    mean : ndarray of shape (R, B, N)
        ``mu_X``, in data units.
    pencil : Pencil
        ``K_X`` and the noise's ``K_0``, as each knows them.
    grain : ndarray of shape (R, B, N)
        What its copies are rounded to (``View.grain``).
    """

    mean: Array
    pencil: Pencil
    grain: Array


def levels_among(law: KroneckerNoise, index: NDArray[np.intp]) -> Array:
    """Return the level covariance of each coalition, shape (B, k, k); of one with copies 1 to k a window on that of all."""
    run = neighbours(index[0])
    if len(index) == 1 and isinstance(run, slice):
        return law.level_covariance[None, run, run]
    return np.asarray(law.level_covariance[index[:, :, None], index[:, None, :]])


def known_together(views: Sequence[View], law: KroneckerNoise, index: NDArray[np.intp]) -> Known:
    """Return what coalitions of one size know of the data.

    Parameters
    ----------
    views : sequence of R views
        Of all M copies, in one draw each; they differ in moments alone.
    law : KroneckerNoise
        The views'.
    index : ndarray of shape (B, k)
        Each coalition's copies, by their places among the views'.

    Raises
    ------
    NotApplicable
        This knowledge does not give moments.
    """
    view, N = views[0], views[0].width
    given = view.given
    if not isinstance(given, SampleMoments):
        return Known(view.data_moments[0], view.pencil, view.grain)
    Sigma = levels_among(law, index)
    w, v = best_unbiased_combination(Sigma, grain_of_moments(Sigma))
    places = (index[:, :, None] * N + np.arange(N)).reshape(len(index), -1)
    run = neighbours(places[0])
    if len(index) == 1 and isinstance(run, slice):  # copies 1 to k: a window on each draw's covariance, which is not cut out
        parts = [combination(w[0], draw.held.mean[run], draw.held_covariance[run, run]) for draw in views]
        mean, covariance = (np.array(part)[:, None] for part in zip(*parts, strict=True))
    else:
        stacked = np.array([draw.held_covariance[places[:, :, None], places[:, None, :]] for draw in views])
        mean, covariance = combination(w, np.array([draw.held.mean[places] for draw in views]), stacked)
    covariance = without_noise(covariance, v, law)
    completed = map(given.completed, (view.centre + mean).reshape(-1, N), covariance.reshape(-1, N, N))
    mu_X, K_X = (np.reshape(part, like.shape) for part, like in zip(zip(*completed, strict=True), (mean, covariance), strict=True))
    variances = np.array([draw.held.variances[places[:, :N]] for draw in views])
    grain = grain_of_copies(law, np.einsum("bkk->bk", Sigma).max(axis=1), view.centre**2 + variances)
    return Known(mu_X, Pencil.of(K_X, K_X if law.follows_data else law.shape), grain)
