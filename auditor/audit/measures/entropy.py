"""Agrawal and Aggarwal's privacy in entropies: how large a set of values still looks equally likely, and what share the copies took.

| symbol | meaning | unit | source |
| --- | --- | --- | --- |
| ``h(X)`` | differential entropy of an attribute, ``−∫ f log₂ f`` | bits | agrawal2001 |
| ``2^h(X)`` | its privacy: the length of an interval with as much uncertainty | data units | |
| ``I(X; Y)`` | ``h(Y) − h(Z)``: what the coalition's copies tell | bits | |
| ``2^{h(X) − I}`` | privacy left, ``entropy_privacy`` (in standard deviations) | std | |
| ``1 − 2^{−I}`` | share of the privacy lost, ``privacy_loss`` | share | |

``f`` is the table's histogram, as entropy is of distributions and not of tables. Under noise on a
lattice it is how often each point of the lattice occurs, and ``h`` is ``−Σ p log₂(p/u)`` with u the
lattice's unit: ``2^h`` is u times the number of points. A property of the data and the coalition's
copies, whatever the attack; each attribute's own copies only. A recovery error can be small where
this loss is small, and the other way round: it weighs all values alike, where squared error weighs
far ones most.
"""

from __future__ import annotations

import numpy as np

from auditor.errors import NotApplicable
from auditor.process.deferred import scipy
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.types import Array

MOST_CELLS = 2**20
FAR = 20.0
"""Deviations, and units of a lattice, that hold all of noise with exponential tails but some
1e-12."""
BINS = (10, 1000)
"""Fewest and most bins of an attribute's histogram."""


def attribute_histogram(values: Array) -> tuple[Array, Array]:
    """Return edges, shape (B + 1,), and masses, shape (B,).

    Freedman–Diaconis bins, but at least one in fifty records, up to 100, as their rule sees no
    clusters; and never narrower than the smallest gap between two values, so that whole numbers
    make no comb.
    """
    low, high = float(values.min()), float(values.max())
    quarter, three = np.quantile(values, [0.25, 0.75])
    width = 2.0 * (three - quarter) / len(values) ** (1.0 / 3.0)
    fewest = int(np.clip(len(values) // 50, BINS[0], 100))
    bins = int(np.clip(np.ceil((high - low) / width) if width > 0 else fewest, fewest, BINS[1]))
    gap = float(np.diff(np.unique(values)).min())
    if (high - low) / bins < gap:
        low, high = low - gap / 2.0, high + gap / 2.0
        bins = max(1, round((high - low) / gap))
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    return edges, counts / len(values)


def lattice_histogram(values: Array, unit: float) -> tuple[Array, Array]:
    """Return edges, shape (B + 1,), and masses, shape (B,), of bins about the points of a lattice that the values lie on.

    Raises
    ------
    NotApplicable
        They lie on none of this unit, or are too far apart for a bin at every point.
    """
    steps = (values - values[0]) / unit
    points = np.rint(steps)
    if (np.abs(steps - points) > 1e-6 * np.maximum(1.0, np.abs(points))).any():
        raise NotApplicable(
            "values that are not whole multiples of the noise's unit apart keep what is below it in every copy"
        )
    first, last = float(points.min()), float(points.max())
    if last - first >= MOST_CELLS:
        raise NotApplicable(
            "the noise's unit is too small beside the attribute's range for its entropy to be computed"
        )
    counts = np.bincount((points - first).astype(np.intp))
    return values[0] + unit * (first - 0.5 + np.arange(len(counts) + 1)), counts / len(values)


def entropy(mass: Array, width: float | Array) -> float:
    """Return ``−Σ p log₂(p/width)``, the differential entropy in bits of a density that is flat in cells."""
    held = mass > 0
    p, w = mass[held], np.broadcast_to(width, mass.shape)[held]
    return float(-(p * np.log2(p / w)).sum())


def noise_entropy(noise: NoiseDensity) -> float:
    """Return ``h(Z)`` in bits: ``½ log₂(2πe s²)``, ``log₂(2a)`` of uniform and ``log₂(2eb)`` of Laplace noise; on a lattice a sum."""
    if noise.distribution == "uniform":
        return float(np.log2(2.0 * noise.reach))
    if noise.distribution == "laplace":
        return float(np.log2(np.sqrt(2.0) * np.e * noise.std))
    if noise.on_lattice:
        reach = np.ceil(_reach(noise) / noise.unit)
        return entropy(noise.pdf(noise.unit * np.arange(-reach, reach + 1.0)), noise.unit)
    return float(0.5 * np.log2(2.0 * np.pi * np.e * noise.std**2))


def information(edges: Array, mass: Array, noise: NoiseDensity) -> float:
    """Return ``I(X; X + Z)`` in bits for a histogram and independent noise.

    ``h(X + Z)`` by convolution on a grid of cells no wider than an eighth of the noise or half a
    bin; on a lattice, whose points the bins are then about (``lattice_histogram``), exactly.

    Raises
    ------
    NotApplicable
        The noise, or its unit, is so small beside the range that the grid would not fit.
    """
    width = float(edges[1] - edges[0])
    per_bin = 1 if noise.on_lattice else int(np.ceil(max(2.0, 8.0 * width / noise.std)))
    cell = width / per_bin
    reach = int(np.ceil(_reach(noise) / cell)) + 1
    if len(mass) * per_bin + 2 * reach > MOST_CELLS:
        grain = "the noise's unit" if noise.on_lattice else "the noise"
        raise NotApplicable(
            f"{grain} is too small beside the range of the copies for their entropy to be computed"
        )
    fine = np.repeat(mass / per_bin, per_bin)
    offsets: Array = np.arange(-reach, reach + 1) * np.float64(cell)
    kernel = (
        noise.pdf(offsets)
        if noise.on_lattice
        else noise.cdf(offsets + cell / 2.0) - noise.cdf(offsets - cell / 2.0)
    )
    released = np.clip(scipy.signal.fftconvolve(fine, kernel), 0.0, None)
    return max(0.0, entropy(released / released.sum(), cell) - noise_entropy(noise))


def _reach(noise: NoiseDensity) -> float:
    """Return how far out noise is counted."""
    if noise.distribution == "uniform":
        return noise.reach
    if noise.distribution == "gaussian":
        return 7.0 * noise.std
    return FAR * (noise.std + (noise.unit if noise.on_lattice else 0.0))
