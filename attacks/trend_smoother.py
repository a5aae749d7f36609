"""Smoothers of rows that follow an assumed trend, or resemble near rows.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``c_t`` | row t of the coalition's combined copy, in coordinates of variance 1 with independent noise ν | (r,) | ``serial_filter`` |
| ``C_k`` | cosine transform of c along n rows | (r,) | |
| ``f_k`` | ``2 − 2 cos(πk/n)``: power of a difference of adjacent rows | () | |
| ``S_k`` | prior power ``τ a (f_k + κ)^{−d} + 1 − τ``, times ``1 − ν``; the first factor ``a (…)`` sums to n | () | whittaker1923 |
| ``S_0`` | ``1 − ν`` | (r,) | |
| ``x̂`` | transform of ``S_k/(S_k + ν) C_k``, averaged over d, κ and τ by marginal likelihoods | (n, N) | wiener1949 |

With d = 1, rows follow a random walk (κ = 0) or an autoregression, with d = 2 their sum; a share τ
of the variance does. Coordinates have one law, or each its own: both count by their likelihoods.
``serial-filter`` first tests for dependence and misses most under strong noise and in few rows.
``trend-smoother`` expects a trend (κ = 0, τ = 1) without a test, as in a sorted table;
``matern-smoother`` averages over all of ``κ`` and ``SHARES``. Without an order of rows, which is
*not checked*, ``llse`` is better. References: whittaker1923, wiener1949; handcock1993 for the
spectra.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from auditor.adversary.view import combined_noise
from auditor.numerics.linear_algebra import Pencil
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    NotApplicable,
    Pair,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
    unprinted,
)

from .serial_filter import FEWEST_LINE_ROWS, MOST_LINE_ROWS, centred

SHARES = (1.0, 0.9, 0.7, 0.4, 0.0)
"""Shares τ of the variance that resembles near rows."""
EXACT = 128
"""Frequencies that are each a bin; 2 EXACT bins cover all."""
TINY = np.finfo(float).tiny


@register
class TrendSmoother(RowAttack):
    """Wiener filter along the rows under the spectrum of a trend."""

    name = "trend-smoother"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(1e-3, 2e-7)
    reference = "whittaker1923; wiener1949"
    knowledge = ("perfect", "estimated")
    assumes = (
        "Rows are sorted or follow a trend; the adversary knows the law of the noise, which is independent between rows, "
        "and the data's mean and covariance or rows to estimate them from."
    )
    wins = "Wins on sorted tables under noise so strong that no trend shows; loses to llse on records in no order."
    trend = True

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        check_rows(view, FEWEST_LINE_ROWS, MOST_LINE_ROWS)
        mu, K_X = view.data_moments
        pencil = Pencil.of(K_X, combined_noise(view, view.combined[1]))
        y = np.hstack([centred(view.weights, copies, mu) for copies in blocks])
        x, _ = smoothed(pencil.inverse @ y, np.clip(1.0 - pencil.share, 0.0, 1.0), self.trend)
        return Smoothed((pencil.basis @ x).T + mu)


@register
class MaternSmoother(TrendSmoother):
    """Wiener filter along the rows under an average of Matérn spectra."""

    name = "matern-smoother"
    reference = "handcock1993; wiener1949"
    assumes = (
        "Neighbouring rows are alike, on any scale; the adversary knows the law of the noise, which is independent between rows, "
        "and the data's mean and covariance or rows to estimate them from."
    )
    wins = "Wins in few rows or under strong noise, where serial-filter finds no dependence; close to llse on records in no order."
    trend = False


def check_rows(view: View, fewest: int, most: int) -> None:
    """Raise ``NotApplicable`` for other numbers of rows, and for serially dependent noise."""
    if view.law is not None and view.law.serial is not None:
        raise NotApplicable("supposes noise that is independent between rows")
    if not fewest <= (n := view.released.count) <= most:
        raise NotApplicable(f"needs {fewest:,} to {most:,} rows, not {n:,}")


def smoothed(c: Array, nu: Array, trend: bool = True) -> Pair:
    """Estimates of rows, and each row's share in its own, shapes (r, n).

    Of rows ``c``, shape (r, n), of variance 1 with noise ``nu``, shape (r,).
    """
    n, C = c.shape[1], scipy.fft.dct(c, norm="ortho", axis=1)
    start = np.unique([*range(min(n, EXACT)), *np.geomspace(1, n, 2 * EXACT)[:-1].astype(int)])
    size = np.diff(start, append=n)
    f = 2.0 - 2.0 * np.cos(np.pi * (start + (size - 1) / 2.0) / n)
    power = np.add.reduceat(C * C, start, axis=1) / size
    kappas = 4.0 ** -np.arange(n.bit_length())
    shapes = []
    for d, kappa in product((1, 2), (0.0,) if trend else (0.0, *kappas)):
        shape = np.append(1.0, (f[1:] + kappa) ** -d)
        shape[1:] *= n / (size[1:] @ shape[1:])
        shapes += [share * shape + 1.0 - share for share in ((1.0,) if trend else SHARES)]
    S = (1.0 - nu)[:, None] * np.array(shapes)[:, None]
    both = np.maximum(S + nu[:, None], TINY)
    likelihoods = -0.5 * (size * (np.log(both) + power / both)).sum(axis=2)
    one_law, log = likelihoods.sum(axis=1), scipy.special.logsumexp
    each = log(likelihoods - np.log(len(S)), axis=0).sum()
    shared = scipy.special.expit(log(one_law - np.log(len(S))) - each)
    weights = (1.0 - shared) * scipy.special.softmax(likelihoods, axis=0)
    weights += shared * scipy.special.softmax(one_law)[:, None]
    G = np.repeat(np.einsum("ma,mab->ab", weights, S / both), size, axis=1)
    # Σ_k G_k cos²(πk(t + ½)/n), whose cosines of 2k fold at n
    twice = np.zeros_like(G)
    twice[:, ::2] = G[:, : (n + 1) // 2]
    twice[:, 2::2] -= G[:, : n // 2 : -1]
    twice[:, 0] = 2.0 * G[:, 0]  # as φ_0² = 1/n
    own = G[:, 1:].sum(axis=1, keepdims=True) + scipy.fft.idct(twice, axis=1) * n
    return scipy.fft.idct(G * C, norm="ortho", axis=1), own / n


@unprinted
class Smoothed(Reconstruction):
    """Estimates of all rows, shape (n, N)."""

    estimates: Array
    first: int = 0
    stored = True

    def at(self, first: int) -> Smoothed:
        return replace(self, first=first)

    def rows(self, copies: Arrays) -> Array:
        return self.estimates[self.first :][: len(copies[0])]
