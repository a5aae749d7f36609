"""Bins of a prior of one attribute: on a lattice, of a normal distribution, and finer ones of a smoothed histogram."""

from __future__ import annotations

import numpy as np

from auditor.adversary.density import Histogram
from auditor.plugin import Array, NoiseDensity, scipy

from ._channel import Channel

PARTS = 4
"""Bins of a smoothed prior to one of its histogram's: a normal a bin wide is flat within a quarter of it, to a percent."""
NORMAL_BINS = 512
"""Bins of a normal prior over ten deviations on either side, where noise is no narrower: flat within 1/25 of a deviation."""


def lattice_bins(low: float, high: float, most: int, unit: float) -> Array:
    """Return edges half a unit beside whole multiples of it, from low to high, at most so many bins: each of as many whole units.

    Examples
    --------
    >>> lattice_bins(2.0, 5.0, 4, 1.0)
    array([1.5, 2.5, 3.5, 4.5, 5.5])
    >>> lattice_bins(2.0, 5.0, 2, 1.0)
    array([1.5, 3.5, 5.5])
    """
    first, last = np.floor(low / unit + 0.5), np.floor(high / unit + 0.5)
    wide = max(1.0, np.ceil((last - first + 1.0) / most))
    return np.asarray((first - 0.5 + wide * np.arange(np.ceil((last - first + 1.0) / wide) + 1.0)) * unit)


def smoothed(prior: Histogram, noise: NoiseDensity) -> Histogram:
    """Return the mixture of normals at a histogram's bins in bins of its own: a quarter as wide, on a lattice as wide."""
    edges, h = prior.edges, np.diff(prior.edges)
    if not noise.on_lattice:
        parts = edges[:-1, None] + h[:, None] * np.arange(PARTS) / PARTS
        edges = np.append(parts, edges[-1])
    mass = np.diff(scipy.special.ndtr((edges[:, None] - prior.midpoints) / h), axis=0) @ prior.mass
    return Histogram(edges, mass / mass.sum())


def normal_bins(mean: float, std: float, channel: Channel) -> Histogram | None:
    """Return a normal distribution in bins that are fine beside the noise, if there is any; of no variance, one narrow beside it."""
    if channel.exact:
        return None
    noise = channel.noise
    spread = max(std, 1e-3 * noise.std)
    count = int(np.clip(np.ceil(40.0 * spread / noise.std), NORMAL_BINS, 4 * NORMAL_BINS))
    low, high = mean - 10.0 * spread, mean + 10.0 * spread
    edges = lattice_bins(low, high, count, noise.unit) if noise.on_lattice else np.linspace(low, high, count + 1)
    mass = np.diff(scipy.special.ndtr((edges - mean) / spread))
    return Histogram(edges, mass / mass.sum())
