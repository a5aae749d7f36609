"""Smoother of rows that follow an assumed trend, however strong the noise.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``c_t`` | row t of the coalition's combined copy, in coordinates of variance 1 with independent noise ν | (r,) | ``serial_filter`` |
| ``C_k`` | cosine transform of c along n rows | (r,) | |
| ``S_k`` | prior power ``∝ (2 − 2 cos(πk/n))^{−d}``, in sum n (1 − ν): a random walk (d = 1) or smooth (2) | (r,) | whittaker1923 |
| ``S_0`` | ``1 − ν`` | (r,) | |
| ``x̂`` | transform of ``S_k/(S_k + ν) C_k``, averaged over d by marginal likelihoods | (n, N) | wiener1949 |

``serial-filter`` first tests for a trend and misses most trends under strong noise. This adversary
expects one, as in a sorted table. *Not checked*: that rows have a trend. Otherwise ``llse`` is
better. References: whittaker1923, wiener1949.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.adversary.single_copy import combined_noise
from auditor.numerics.linear_algebra import Pencil
from auditor.plugin import (
    Array,
    Cost,
    Estimated,
    NotApplicable,
    Perfect,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
)

from .serial_filter import FEWEST_LINE_ROWS, MOST_LINE_ROWS, centred


@register
class TrendSmoother(RowAttack):
    """Wiener filter along the rows under the spectrum of a trend."""

    name = "trend-smoother"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(1e-3, 2e-7)
    reference = "whittaker1923; wiener1949"
    knowledge = (Perfect.name, Estimated.name)
    assumes = (
        "Rows are sorted or follow a trend; the adversary knows the law of the noise, which is independent between rows, "
        "and the data's mean and covariance or rows to estimate them from."
    )
    wins = "Wins on sorted tables under noise so strong that no trend shows; loses to llse on records in no order."

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        n = view.released.count
        if view.law is not None and view.law.serial is not None:
            raise NotApplicable("supposes noise that is independent between rows")
        if not FEWEST_LINE_ROWS <= n <= MOST_LINE_ROWS:
            raise NotApplicable(f"needs {FEWEST_LINE_ROWS} to {MOST_LINE_ROWS:,} rows, not {n:,}")
        mu, K_X = view.data_moments
        pencil = Pencil.of(K_X, combined_noise(view, view.combined(view.held)[1]))
        y = np.hstack([centred(view.weights, copies, mu) for copies in blocks])
        x = pencil.basis @ smoothed(pencil.inverse @ y, np.clip(1.0 - pencil.share, 0.0, 1.0))
        return Smoothed(x.T + mu)


def smoothed(c: Array, nu: Array) -> Array:
    """Return estimates of rows, shape (r, n), from rows of variance 1 with noise ``nu``."""
    n = c.shape[1]
    C, k = scipy.fft.dct(c, norm="ortho", axis=1), np.arange(1, n)
    estimates, likelihoods = [], []
    for d in (1, 2):
        shape = (2.0 - 2.0 * np.cos(np.pi * k / n)) ** -d
        S = (1.0 - nu)[:, None] * np.append(1.0, shape * (n / shape.sum()))
        power = np.maximum(S + nu[:, None], np.finfo(float).tiny)
        estimates.append(S / power * C)
        likelihoods.append(-0.5 * (np.log(power) + C * C / power).sum())
    weights = scipy.special.softmax(likelihoods)
    return np.asarray(scipy.fft.idct(np.tensordot(weights, estimates, 1), norm="ortho", axis=1))


@dataclass(repr=False)
class Smoothed(Reconstruction):
    """Estimates of all rows, shape (n, N)."""

    estimates: Array
    first: int = 0

    def at(self, first: int) -> Smoothed:
        return replace(self, first=first)

    def rows(self, copies: Sequence[Array]) -> Array:
        return self.estimates[self.first :][: len(copies[0])]
