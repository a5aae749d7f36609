"""Markov chain of one attribute along the rows, with any margin and with jumps.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | an attribute of the combined copy, with noise of variance s | (n,) | |
| ``x, π`` | grid over the copy's range, and the data's margin on it, by EM | (G,), (G,) | laird1978 |
| ``z`` | normal scores of x under π | (G,) | |
| ``T`` | ``(1 − p) N(z'; ρ z, 1 − ρ²) + p π``: a Gaussian copula, and jumps with probability p | (G, G) | |
| ``f_t, b_t`` | density of row t given earlier rows, and the likelihood of later rows | (G,) | rabiner1989 |

A random walk has ρ near 1, a household or a sorted key ρ = 1 and jumps. ρ and p maximise the
likelihood. Rows are independent unless it rises by ``SURE_OF``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, scipy

POINTS, STEPS = 96, 60
"""Grid points; EM steps."""
FITTED, LENGTH, OVERLAP = 2048, 256, 128
"""Rows of a fit at most, of a piece, and of an overlap between pieces."""
TOGETHER = 64
"""Pieces per array: 50 MB."""
# candidates; first pairs
RHO, JUMPS = (0.5, 0.8, 0.95, 0.98, 0.99, 0.995, 0.998, 0.9995, 1.0), (0.0, 0.02, 0.1, 0.3)
FIRST = (0.5, 0.0), (0.8, 0.0), (0.98, 0.0), (0.998, 0.02), (1.0, 0.1), (1.0, 0.3)
SURE_OF = 6.0
"""Least gain of log-likelihood over independent rows."""
TINY, LEAST = 1e-100, 1e-12
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
    """Chain of an attribute along the rows.

    Each ``group`` of rows starts from the density ``first``.
    """

    x: Array
    first: Array
    T: Array
    s: float
    group: int
    dependent: bool

    def passed(self, L: Array, starts: Mask) -> Iterator[tuple[Array, Array]]:
        """Yield densities of rows given earlier rows, (c, G), and likelihoods, (c, 1).

        ``L`` has likelihoods of rows, shape (n, c, G), and ``starts`` first rows of groups, (n, c).
        """
        f = self.first
        for here, new in zip(L, starts[:, :, None], strict=True):
            f = np.where(new, self.first, f)
            q = f * here
            total = q.sum(axis=1, keepdims=True)
            yield f, total
            f = (q / total) @ self.T

    def estimates(self, y: Array, first: int) -> Array:
        """Return means given other rows, means given all, and own shares, (3, n).

        Rows are from place ``first`` of the table.
        """
        n = len(y)
        pieces = np.arange(-OVERLAP, LENGTH + OVERLAP)[:, None] + np.arange(0, n, LENGTH)
        found = []
        for start in range(0, pieces.shape[1], TOGETHER):
            places = pieces[:, start : start + TOGETHER]
            L = self.likelihoods(y[np.clip(places, 0, n - 1)])
            L[(places < 0) | (places >= n)] = 1.0
            found.append(self.smoothed(L, (places + first) % self.group == 0))
        return np.concatenate(found, axis=2).swapaxes(1, 2).reshape(3, -1)[:, :n]

    def smoothed(self, L: Array, starts: Mask) -> Array:
        """Return estimates of pieces without their overlaps, shape (3, LENGTH, c)."""
        found = np.empty((3, LENGTH, L.shape[1]))
        b, before = np.ones(L.shape[1:]), [f for f, _ in self.passed(L, starts)]
        for t in range(len(L) - 1, OVERLAP - 1, -1):
            if t < OVERLAP + LENGTH:
                q = before[t] * b
                others, q = q @ self.x / q.sum(axis=1), q * L[t]
                mean, square = (q @ np.stack([self.x, self.x**2]).T / q.sum(axis=1)[:, None]).T
                found[:, t - OVERLAP] = others, mean, (square - mean**2) / self.s
            b = (L[t] * b) @ self.T.T
            b = np.where(starts[t][:, None], 1.0, b / b.max(axis=1, keepdims=True))
        return found

    def likelihoods(self, y: Array) -> Array:
        return np.exp(-0.5 * (y[..., None] - self.x) ** 2 / self.s) + TINY


def fitted_chain(
    y: Array, s: float, group: int, start: tuple[float, float] | None = None
) -> tuple[Chain, tuple[float, float]]:
    """Return the chain of maximum likelihood with ρ and p; ``start`` fixes ρ and p."""
    s = max(s, 1e-9 * y.var(), TINY)
    margin = 0.8 * np.sqrt(s)
    x = np.linspace(y.min() + margin, y.max() - margin, POINTS)
    c = -(-len(y) // LENGTH)
    places = np.arange(len(y) - len(y) % c).reshape(c, -1)
    places = places[:: -(-places.size // FITTED)].T
    starts = places % group == 0
    z = (x - y.mean()) ** 2 / max(y.var() - s, 0.01 * s)
    pi = 0.9 * np.exp(-0.5 * z) / np.exp(-0.5 * z).sum() + 0.1 / POINTS
    made = Chain(x, pi, np.eye(POINTS), s, group, False)
    L = made.likelihoods(y[places])
    flat = L.reshape(-1, POINTS)
    for _ in range(STEPS):
        pi = pi * (flat / (flat @ pi)[:, None]).mean(axis=0)
    pi = np.maximum(pi, LEAST) / np.maximum(pi, LEAST).sum()

    @cache
    def likelihood(rho: float, p: float) -> float:
        tried = replace(made, first=pi, T=transitions(pi, rho, p))
        return float(sum(np.log(total).sum() for _, total in tried.passed(L, starts)))

    rho, p = start or FIRST[0]
    if start is None:
        least = np.log(flat @ pi).sum() + SURE_OF
        rho, p = max(FIRST, key=lambda pair: likelihood(*pair))
        if likelihood(rho, p) < least:
            rho, p = 0.0, 1.0
        else:
            rho = max(RHO, key=lambda rho: likelihood(rho, p))
            p = max(JUMPS, key=lambda p: likelihood(rho, p))
            rho = max(RHO, key=lambda rho: likelihood(rho, p))
    made = replace(made, first=pi, T=transitions(pi, rho, p), dependent=p < 1.0)
    return made, (rho, p)


def transitions(pi: Array, rho: float, p: float) -> Array:
    """Return ``T``, with rows of sum 1."""
    ends = scipy.special.ndtri(np.append(0.0, np.cumsum(pi)) / pi.sum())
    ends[[0, -1]] = -np.inf, np.inf
    T = np.eye(len(pi))
    if rho < 1.0:
        z = scipy.special.ndtri(np.clip(np.cumsum(pi) - 0.5 * pi, LEAST, 1.0 - LEAST))
        reached = scipy.special.ndtr((ends - rho * z[:, None]) / np.sqrt(1.0 - rho * rho))
        T = np.diff(reached, axis=1) + LEAST * pi
        T /= T.sum(axis=1, keepdims=True)
    return (1.0 - p) * T + p * pi
