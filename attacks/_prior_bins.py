"""Bins of one attribute's prior: lattice, normal and smoothed histogram."""

from __future__ import annotations

import numpy as np

from auditor.adversary.density import Histogram
from auditor.plugin import Array, NoiseDensity, scipy

from ._channel import Channel

PARTS = 4
"""Bins of a smoothed prior per histogram bin: a normal density varies by a percent within one."""
NORMAL_BINS = 512
"""Least bins of a normal prior over ten deviations on either side: 1/25 of a deviation each."""


def lattice_bins(low: float, high: float, most: int, unit: float) -> Array:
    """Return edges half a unit off the lattice, for at most ``most`` bins.

    The bins cover low to high, each with the same whole number of units.

    Examples
    --------
    >>> lattice_bins(2.0, 5.0, 4, 1.0)
    array([1.5, 2.5, 3.5, 4.5, 5.5])
    >>> lattice_bins(2.0, 5.0, 2, 1.0)
    array([1.5, 3.5, 5.5])
    """
    first, last = np.floor(low / unit + 0.5), np.floor(high / unit + 0.5)
    wide = max(1.0, np.ceil((last - first + 1.0) / most))
    return np.asarray(
        (first - 0.5 + wide * np.arange(np.ceil((last - first + 1.0) / wide) + 1.0)) * unit
    )


def smoothed(prior: Histogram, noise: NoiseDensity) -> Histogram:
    """Smooth a histogram by a normal kernel one bin wide.

    The result has bins a quarter as wide, or equal ones on a lattice.
    """
    edges, h = prior.edges, np.diff(prior.edges)
    if not noise.on_lattice:
        parts = edges[:-1, None] + h[:, None] * np.arange(PARTS) / PARTS
        edges = np.append(parts, edges[-1])
    mass = np.diff(scipy.special.ndtr((edges[:, None] - prior.midpoints) / h), axis=0) @ prior.mass
    return Histogram(edges, mass / mass.sum())


def normal_bins(mean: float, std: float, channel: Channel) -> Histogram | None:
    """Return a normal distribution in bins narrow relative to the noise.

    None without noise. A variance of 0 becomes one much smaller than the noise's.
    """
    if channel.exact:
        return None
    noise = channel.noise
    spread = max(std, 1e-3 * noise.std)
    count = int(np.clip(np.ceil(40.0 * spread / noise.std), NORMAL_BINS, 4 * NORMAL_BINS))
    low, high = mean - 10.0 * spread, mean + 10.0 * spread
    edges = (
        lattice_bins(low, high, count, noise.unit)
        if noise.on_lattice
        else np.linspace(low, high, count + 1)
    )
    mass = np.diff(scipy.special.ndtr((edges - mean) / spread))
    return Histogram(edges, mass / mass.sum())
