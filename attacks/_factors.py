"""Posterior mean of values times random factors.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y_i`` | ``x (1 + √v_i g)``, g standard normal | (N,) | kim2003 |
| ``ȳ, w`` | ``w Σ y_i/v_i`` with ``1/w = Σ 1/v_i``: mean x, variance ``w x²`` | (N,), scalar | |
| ``α, m, V`` | average of mixtures fitted to ``ȳ`` | (K,), (K, N), (K, N, N) | bovy2011 |
| ``S`` | ``w (m² + diag V)``: noise in a component | (K, N) | |
| ``c(l)`` | probability of a cell about l given other attributes | (n, L) | |
| ``L(l)`` | ``Π_i N(y_i; l, v_i l²)`` | (n, L) | kim2003 |
| ``h(l)`` | weight, by EM from ``c L`` and ``c`` (``_lattice``) | (L,) | |
| ``x̂`` | ``Σ_l l h c L / Σ_l h c L``, or ``Σ_k q_k b_k`` if cells are wide; 0 stays 0 | (n,) | |
"""

from __future__ import annotations

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.plugin import Array, Arrays, Reconstruction, scipy, unprinted

from ._deconvolution import GRAIN, Mixture, NoisyRows, Posterior, learn
from ._lattice import CONTINUOUS, FITTED_ROWS, FLOOR, alternate, learnt

SIZES = (2, 4, 16)
"""Most components: few suit noise that hides the shape."""
MOST_POINTS, FINE, LEAST = 128, 4096, 1e-4
"""Most points; sizes that quantiles are among, and their least relative size."""
MOST_VALUES, TABLED = 2**24, 16.0
"""Values at once; tabled points per deviation."""


@unprinted
class ScaledRows(NoisyRows):
    """Rows of noise variance ``w x²``."""

    w: float

    def noise(self, prior: Mixture) -> Array:
        return self.w * (prior.means**2 + np.diagonal(prior.covariances, axis1=1, axis2=2))


@unprinted
class Scaled(Reconstruction):
    """Posterior means, in units (N,)."""

    v: Array
    unit: Array
    posterior: Posterior
    points: list[Array]
    h: list[Array]

    def rows(self, copies: Arrays) -> Array:
        y = np.stack(copies)
        u = pooled(y, self.v) / self.unit
        x = self.unit * self.posterior.mean(u)
        for j, (points, h) in enumerate(zip(self.points, self.h, strict=True)):
            for start, stop in evenly(0, len(u), self.posterior.size * h.size, MOST_VALUES):
                c, L = self.cells(j, u[start:stop], y[:, start:stop, j])
                total = c * L @ h
                np.divide(c * L @ (h * points), total, x[start:stop, j], where=total > FLOOR)
        return np.where(y[0] == 0.0, 0.0, x)

    def cells(self, j: int, u: Array, y: Array) -> tuple[Array, Array]:
        """``c`` and ``L``, up to a factor, at attribute j's points."""
        points, a = self.points[j], np.eye(self.unit.size)[j]
        q, b, std, _ = self.posterior.without(a > 0.0).along(u, a)
        ends = np.r_[-np.inf, (points[1:] + points[:-1]) / 2.0, np.inf][: points.size + 1]
        c = np.zeros((len(u), points.size))
        for q_k, b_k, s in zip(q, b, std + GRAIN, strict=True):
            c += chances(q_k, b_k / s, ends / self.unit[j] / s)
        # Σ (y_i/l − 1)²/v_i, expanded
        log_L = (-0.5 / self.v @ y**2)[:, None] / points**2 + (1.0 / self.v @ y)[:, None] / points
        log_L -= self.v.size * np.log(np.abs(points))
        log_L -= log_L.max(axis=1, keepdims=True, initial=-np.inf)
        return c, np.exp(log_L.astype(np.float32))


def chances(q: Array, b: Array, ends: Array) -> Array:
    """Chances of cells under ``N(b, 1)``, times q, tabled if shorter."""
    place = (b - b.min()) * TABLED
    if place.max() >= len(b):
        return q[:, None] * np.diff(scipy.special.ndtr(ends - b[:, None]))
    grid = b.min() + np.arange(place.max() + 2.0) / TABLED
    first = place.astype(np.intp)
    share = q * (place - first)
    parts = np.stack([q - share, share], axis=1), np.stack([first, first + 1], axis=1)
    held = (*map(np.ravel, parts), np.arange(0, 2 * len(b) + 1, 2))
    table = np.diff(scipy.special.ndtr(ends - grid[:, None]))
    return np.asarray(scipy.sparse.csr_array(held, (len(b), len(grid))) @ table)


def pooled(copies: Array, v: Array) -> Array:
    """``ȳ``."""
    return np.average(copies, axis=0, weights=1.0 / v)


def of_factors(copies: Array, v: Array, mu: Array, K: Array, steps: Array) -> Reconstruction:
    """Fit to copies at levels above 0, given the data's moments."""
    unit = np.sqrt(np.diag(K) + GRAIN * (1.0 + mu**2))
    c, y, w = mu / unit, pooled(copies, v), 1.0 / (1.0 / v).sum()
    start = Mixture(np.ones(1), c[None], (K / np.outer(unit, unit))[None])
    rows = ScaledRows(y / unit, w * (c**2 + 1.0), 0.0 * c, w)
    fits = [learn(start, rows, np.eye(c.size), size).arrays for size in SIZES]
    alpha, m, V = (np.concatenate(each) for each in zip(*fits, strict=True))
    prior = Mixture(alpha / len(SIZES), m, V)
    found = Scaled(v, unit, Posterior(prior, rows.noise(prior)), [], [])
    few = slice(None, None, max(1, len(y) // FITTED_ROWS))
    for j, step in enumerate(np.broadcast_to(np.nan_to_num(steps), unit.shape)):
        std = unit[j] * np.sqrt(np.maximum(V[:, j, j], GRAIN))
        points = values(y[:, j], step, np.sqrt(w), prior.weights, unit[j] * m[:, j], std)
        found.points.append(points)
        near, L = found.cells(j, rows.u[few], copies[:, few, j])
        h = learnt(near * L, near, alternate(len(L)))
        found.h.append(np.ones(points.size) if h is None else h)
    return found


def values(y: Array, step: float, noise: float, weights: Array, m: Array, std: Array) -> Array:
    """Quantiles of a mixture, and sizes in ratios by ``noise``."""
    sizes = np.abs(y[y != 0.0])
    high = sizes.max(initial=0.0)
    whole = np.arange(step, high, step) if high < MOST_POINTS * step else sizes[:0]
    near = max(np.quantile(sizes, 0.01), high * LEAST, step) if high else 1.0
    count = CONTINUOUS * np.log(max(high / near, 1.0)) / noise
    if not high or (count > MOST_POINTS and not whole.size):
        return whole
    fine = np.geomspace(min(near, high * LEAST), high, FINE)
    if (y < 0.0).any():
        fine = np.r_[-fine[::-1], fine]
    below = scipy.special.ndtr((fine[:, None] - m) / std) @ weights
    middle = np.interp(np.linspace(0.0, 1.0, MOST_POINTS // 2 + 2)[1:-1], below, fine)
    found = np.r_[np.geomspace(near, high, int(min(count, MOST_POINTS)) + 2), middle, whole]
    found = step * np.rint(found / step) if step else found
    return np.unique(found[found != 0.0])
