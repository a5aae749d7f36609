"""What several coalitions, of any size, know of the data, each from its own copies, in several draws: stacked, in place of a view for each.

| symbol | meaning | shape |
| --- | --- | --- |
| ``w, v`` | weights of each coalition's best combination of all M copies, and its noise multiple | (B, M), (B,) |
| ``m, C`` | mean and covariance of the copies, over the rows that are estimated from, in each draw | (MN,), (MN, MN) |
| ``mu_X, K_X`` | ``Σ w_i m_i``, and ``Σ w_i C_ij w_j`` less the noise | (R, B, N), (R, B, N, N) |

Each is what the coalition's own view has (``View.data_moments``, ``View.grain``), worked out by the same functions.
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


def known_together(views: Sequence[View], law: KroneckerNoise, levels: Levels) -> Known:
    """Return what coalitions know of the data.

    Parameters
    ----------
    views : sequence of R views
        Of all M copies, in one draw each; they differ in moments alone.
    law : KroneckerNoise
        The views'.
    levels : Levels
        Of the coalitions, by their copies' places among the views'.

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
    completed = map(given.completed, (view.centre + mean).reshape(-1, N), covariance.reshape(-1, N, N))
    mu_X, K_X = (np.reshape(part, like.shape) for part, like in zip(zip(*completed, strict=True), (mean, covariance), strict=True))
    first = [coalition[0] for coalition in levels.coalitions]
    variances = np.array([draw.held.variances.reshape(-1, N)[first] for draw in views])
    grain = grain_of_copies(law, levels.extremes[1], view.centre**2 + variances)
    return Known(mu_X, Pencil.of(K_X, K_X if law.follows_data else law.shape), grain)
