"""Knowledge of several coalitions and draws, stacked in arrays.

| symbol | meaning | shape |
| --- | --- | --- |
| ``w, v`` | weights of each coalition's best combination of all M copies, and its noise multiple | (B, M), (B,) |
| ``m, C`` | mean and covariance of the copies over the adversary's rows, in each draw | (MN,), (MN, MN) |
| ``mu_X, K_X`` | ``Σ w_i m_i``, and ``Σ w_i C_ij w_j`` less the noise | (R, B, N), (R, B, N, N) |

Each equals ``View.data_moments`` and ``View.grain`` of the coalition's own view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.adversary.given import SampleMoments
from auditor.adversary.view import View, combinations, grain_of_copies, without_noise
from auditor.numerics.combination import Levels
from auditor.numerics.linear_algebra import Pencil
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.types import Array


class Known(NamedTuple):
    """Moments of the data as known by each coalition in each draw.

    Without the first two axes if all know the same.

    Attributes
    ----------
    mean : ndarray of shape (R, B, N)
        ``mu_X``, in data units.
    pencil : Pencil
        Of ``K_X`` and the noise's ``K_0``.
    grain : ndarray of shape (R, B, N)
        Rounding of the copies (``View.grain``).
    """

    mean: Array
    pencil: Pencil
    grain: Array


def known_together(views: Sequence[View], law: KroneckerNoise, levels: Levels) -> Known:
    """Return the moments that coalitions know.

    Parameters
    ----------
    views : sequence of R views
        Of all M copies, one per draw; only moments differ.
    law : KroneckerNoise
        The views' law.
    levels : Levels
        Of the coalitions, by index in the views' copies.

    Raises
    ------
    NotApplicable
        This knowledge does not give moments.
    """
    view, N = views[0], views[0].width
    given = view.given
    if not isinstance(given, SampleMoments):
        return Known(view.data_moments[0], view.pencil, view.grain)
    w, v = levels.of_moments
    parts = [combinations(w, draw.held.mean, draw.held_covariance) for draw in views]
    mean, covariance = (np.array(part) for part in zip(*parts, strict=True))
    covariance = without_noise(covariance, v, law)
    completed = map(
        given.completed, (view.centre + mean).reshape(-1, N), covariance.reshape(-1, N, N)
    )
    mu_X, K_X = (
        np.reshape(part, like.shape)
        for part, like in zip(zip(*completed, strict=True), (mean, covariance), strict=True)
    )
    first = [coalition[0] for coalition in levels.coalitions]
    variances = np.array([draw.held.variances.reshape(-1, N)[first] for draw in views])
    grain = grain_of_copies(law, levels.extremes[1], view.centre**2 + variances)
    return Known(mu_X, Pencil.of(K_X, K_X if law.follows_data else law.shape), grain)
