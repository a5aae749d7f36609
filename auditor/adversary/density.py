"""Reconstruct the distribution of one attribute from perturbed values.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``π_b`` | probability that ``x`` lies in bin b | (B,) | |
| ``c_m`` | perturbed values counted in cell m, ``n`` in all | (m,) | |
| ``f_R`` | density of the noise | | |
| ``L_mb`` | likelihood of cell m given bin b: ``f_R(y_m − x_b)`` at midpoints (iteration), averaged over the bin (EM) | (m, B) | |
| step | ``π_b ← (π_b/n) Σ_m c_m L_mb / Σ_b' L_mb' π_b'`` | | agrawal2000; agrawal2001 |

Agrawal and Srikant's iteration approximates EM, which never lowers the likelihood. Both stop at
statistically insignificant gains: run to convergence, deconvolution makes spikes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditor.process.deferred import scipy
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.types import Array

Method = Literal["em", "iteration"]

MOST_STEPS = 2000
LEAST_LIKELIHOOD = 1e-250
"""Likelihood below which a cell is impossible under every bin; division would overflow."""
GAIN = 0.1
"""EM stops when a step gains less log-likelihood, in nats over all records."""
CHI_SQUARE_SHARE = 0.01
"""The iteration stops when steps differ by less than this share of the χ² test's 95 % point
(agrawal2000)."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """A distribution that is flat within bins.

    Attributes
    ----------
    edges : ndarray of shape (B + 1,)
        Ascending, in data units.
    mass : ndarray of shape (B,)
        Probabilities, sum 1.
    steps : int
        Steps of the reconstruction.
    """

    edges: Array
    mass: Array
    steps: int = 0

    @property
    def midpoints(self) -> Array:
        """Midpoints of the bins, shape (B,)."""
        return (self.edges[:-1] + self.edges[1:]) / 2.0

    @property
    def density(self) -> Array:
        """Density in each bin, shape (B,)."""
        return self.mass / np.diff(self.edges)


def reconstruct(
    y: Array,
    counts: Array,
    edges: Array,
    noise: NoiseDensity,
    method: Method = "em",
    steps: int = MOST_STEPS,
) -> Histogram:
    """Return the distribution of original values, given perturbed counts.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Midpoints of the cells; cells should be narrow relative to the noise, *not checked*.
    counts : ndarray of shape (m,)
        ``c_m``.
    edges : ndarray of shape (B + 1,)
        Bins of the original values.
    noise : NoiseDensity
        Independent of the original.
    method : 'em' or 'iteration'
    steps : int
        Most steps.

    Notes
    -----
    Source: agrawal2000 (``iteration``); agrawal2001 (``em``). Impossible cells are omitted. If all
    are, the distribution is flat.
    """
    y, c = y[counts > 0], counts[counts > 0]
    L = noise.likelihood(y, edges, midpoints=method == "iteration")
    possible = L.max(axis=1) > LEAST_LIKELIHOOD
    L, c = L[possible], c[possible]
    n, B = float(c.sum()), len(edges) - 1
    mass = np.diff(edges) / (edges[-1] - edges[0])
    if n == 0:
        return Histogram(edges, mass)
    enough = CHI_SQUARE_SHARE * float(scipy.special.chdtri(max(1, B - 1), 0.05))
    last = -np.inf
    for step in range(1, steps + 1):
        mixed = L @ mass
        likelihood = float(c @ np.log(mixed))
        new = mass * (L.T @ (c / mixed)) / n
        new /= new.sum()
        change = n * float(((new - mass) ** 2 / np.maximum(mass, 1e-300)).sum())
        mass = new
        if (method == "em" and likelihood - last < GAIN) or (
            method == "iteration" and change < enough
        ):
            return Histogram(edges, mass, step)
        last = likelihood
    return Histogram(edges, mass, steps)
