"""Joint posterior mean given a record and the prediction of it from neighbouring rows.

A normal mixture over a record's attributes and over predictions from other rows of the copies. It
joins the non-Gaussian prior of ``mixture-estimate`` and the serial dependence of ``serial-filter``.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u_t`` | row t of the coalition's combined copy, in coordinates with independent noise of variances s | (r,) | ``mixture_estimate`` |
| ``f_t`` | neighbours at distances ``LAGS``, means of windows without row t; both of u and its signed logarithm | (F,) | |
| ``P_t`` | ``B_k f_t``: ridge regression of u on f, fitted without the rows of fold k, which has row t | (r,) | |
| ``p_t`` | leading principal components of the predictions that are better than the mean | (c,) | |
| ``v_t`` | ``[u_t, p_t]``, of noise variances ``[s, 0]`` | (r + c,) | |
| ``α, m, V`` | mixture of the noise-free v, by extreme deconvolution | | bovy2011 |
| ``x̂_t`` | posterior mean of the first r coordinates given ``v_t``, in data units | (N,) | bovy2011 |

Rows are neighbours in the table's order (``order:`` sorts it). Noise is independent between rows,
so ``P_t`` is free of row t's own noise; the order of a copy's own values would not be. Fitted to at
most 10,000 rows, in stretches. If no prediction is better than the mean by ``SURE_OF`` standard
errors, the attack is ``mixture-estimate``.

Reference: bovy2011; huang2005, section 3, for serial dependence. Wins on ordered records of skewed,
clustered or heaped attributes. On normal data it loses a little to ``serial-filter``, which has all
lags. Fails on unordered records and with few rows. Noise that is not Gaussian is treated as
Gaussian. *Not checked*: noise that is independent between rows, and dependence of equal form along
the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import clip_to_psd, descending_eigen
from auditor.plugin import (
    Array,
    Cost,
    Estimated,
    Indices,
    NotApplicable,
    Perfect,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
)

from ._deconvolution import CHUNK_VALUES, Mixture, NoisyRows, Posterior, learn
from .mixture_estimate import MixtureEstimate, Seen

LAGS, WINDOWS = (1,), (3, 10, 30)
"""Distances of single neighbours, and rows on either side of a mean. More features gain nothing on
autoregressive series."""
MOST_ROWS = 10_000
"""Rows used to fit predictions and prior."""
FOLDS, FEWEST_ROWS = 4, 200
RIDGE = 1e-3
"""Ridge per row, in units of the features' variance."""
MOST_PREDICTED = 3
"""Most components ``c``. More cost rows per covariance and gain little on the tables tried."""
SURE_OF = 3.0
"""Standard errors by which a prediction must be better than the mean. Of unordered tables of eight
attributes one in a hundred exceeds it."""


@register
class NeighbourMixture(RowAttack):
    """Mixture over a record and its prediction from neighbouring rows."""

    name = "neighbour-mixture"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(6e-3, 8e-6)
    reference = "bovy2011; huang2005, section 3"
    knowledge = (Perfect.name, Estimated.name)
    assumes = (
        "Rows follow one another (time, place, a sorted file); the adversary knows the law of the noise, which is independent between "
        "rows; the prior is learnt from the copies."
    )
    wins = (
        "Wins on ordered records whose attributes are skewed, clustered or heaped; on normal data it is close to serial-filter, on "
        "records in no order it is mixture-estimate."
    )

    class Parameters(PluginParameters):
        """Size of the mixture."""

        components: Annotated[int, Field(ge=2, le=64)] = Field(
            16, description="most components of the mixture"
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the posterior mean with predictions and prior fitted to the copies."""
        if view.law is not None and view.law.serial is not None:
            raise NotApplicable("supposes noise that is independent between rows")
        seen, most = Seen.of(view), self.parameters.components
        alone = MixtureEstimate(MixtureEstimate.Parameters(components=most))
        s = 1.0 - seen.pencil.share
        share = min(1.0, MOST_ROWS / max(1, view.released.count))
        parts = [[c[: int(np.ceil(share * len(c)))] for c in copies] for copies in blocks]
        stretches = [seen.coordinates(part) for part in parts]
        u = np.concatenate(stretches)
        if len(u) < FEWEST_ROWS or not s.any():
            return alone.fit(view, blocks)
        fold = np.concatenate([folds(part[0]) for part in parts])
        f = np.concatenate([features(stretch) for stretch in stretches])
        B = ridge_by_fold(f, u, fold)
        P = predicted(f, fold, B)
        gain = (u - u.mean(axis=0)) ** 2 - (u - P) ** 2
        sure = gain.mean(axis=0) > SURE_OF * gain.std(axis=0) / np.sqrt(len(u))
        if not sure.any():
            return alone.fit(view, blocks)
        to_p = components(P[:, sure])
        v = np.hstack([u, P[:, sure] @ to_p])
        s = np.append(s, np.zeros(to_p.shape[1]))
        covariance = np.cov(v.T, bias=True)
        start = clip_to_psd(covariance - np.diag(s), covariance)
        prior = Mixture(np.ones(1), v.mean(axis=0)[None], start[None])
        A = np.hstack([seen.pencil.basis, np.zeros((view.width, to_p.shape[1]))])
        prior = learn(prior, NoisyRows(v, s, np.zeros_like(s)), A, most)
        return WithNeighbours(
            seen, B, np.flatnonzero(sure), to_p, Posterior(prior, s), prior.means.size
        )


@dataclass(eq=False, repr=False)
class WithNeighbours(Reconstruction):
    """Posterior mean of rows given the rows and their predictions."""

    seen: Seen
    B: Array
    sure: Indices
    to_p: Array
    posterior: Posterior
    wide: int
    neighbours: int = max(*LAGS, *WINDOWS)

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return ``x̂``, shape (b, N)."""
        u = self.seen.coordinates(copies)
        P = predicted(features(u), folds(copies[0]), self.B)
        v = np.hstack([u, P[:, self.sure] @ self.to_p])
        for start, stop in evenly(0, len(v), self.wide, CHUNK_VALUES):
            v[start:stop] = self.posterior.mean(v[start:stop])
        return self.seen.values(v[:, : u.shape[1]])


def folds(copy: Array) -> Indices:
    """Return each row's fold, shape (b,), a hash of the row itself.

    So a row has its fold in any block. Equal rows share one.
    """
    bits = np.ascontiguousarray(copy, dtype=np.float64).view(np.uint64)
    odd = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * 2 + 1
    mixed = (bits ^ (bits >> np.uint64(29))) * odd
    return ((mixed.sum(axis=1, dtype=np.uint64) >> np.uint64(40)) % np.uint64(FOLDS)).astype(
        np.intp
    )


def features(u: Array) -> Array:
    """Return ``f``, shape (b, F), of rows of shape (b, r); 1 first.

    Beyond the ends of the table the nearest row stands in.
    """
    rows = np.arange(len(u))
    both = np.hstack([u, np.sign(u) * np.log1p(np.abs(u))])
    found = [both[np.clip(rows + lag, 0, len(u) - 1)] for h in LAGS for lag in (h, -h)]
    sums = np.vstack([np.zeros(both.shape[1]), np.cumsum(both, axis=0)])
    for w in WINDOWS:
        low, high = np.maximum(rows - w, 0), np.minimum(rows + w + 1, len(u))
        found.append((sums[high] - sums[low] - both) / np.maximum(high - low - 1, 1)[:, None])
    return np.hstack([np.ones((len(u), 1)), *found])


def ridge_by_fold(f: Array, u: Array, fold: Indices) -> Array:
    """Return ``B``, shape (FOLDS, F, r); each without the rows of its fold."""
    parts = [(f[fold == k], u[fold == k]) for k in range(FOLDS)]
    grams = np.array([a.T @ a for a, _ in parts])
    crossed = np.array([a.T @ b for a, b in parts])
    ridge = RIDGE * len(u) * np.diag(np.append(0.0, f.var(axis=0)[1:]) + 1e-12)
    return np.linalg.solve(grams.sum(axis=0) - grams + ridge, crossed.sum(axis=0) - crossed)


def predicted(f: Array, fold: Indices, B: Array) -> Array:
    """Return ``P``, shape (b, r)."""
    found = np.empty((len(f), B.shape[2]))
    for k, each in enumerate(B):
        found[fold == k] = f[fold == k] @ each
    return found


def components(P: Array) -> Array:
    """Return the map to at most ``MOST_PREDICTED`` standardised components of predictions."""
    values, Q = descending_eigen(np.atleast_2d(np.cov(P.T, bias=True)))
    kept = values[:MOST_PREDICTED] > 1e-9 * values[0]
    return Q[:, : len(kept)][:, kept] / np.sqrt(values[:MOST_PREDICTED][kept])
