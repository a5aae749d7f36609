"""Posteriors of one attribute under a prior in bins, fitted to the copies.

A smooth channel's estimate is a function of one number, so it is tabulated and interpolated.
"""

from collections.abc import Callable, Sequence

import numpy as np

from auditor.adversary.single_copy import Histogram, Method, reconstruct
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Flags,
    NoiseDensity,
    Reconstruction,
    View,
    scipy,
    stream,
    unprinted,
)

from ._channel import Channel, alone, by_attribute
from ._fits import fitted_once, some_rows

MOST_CELLS = 4096
"""Most cells that count perturbed values, and their number on a lattice."""
FEWEST_CELLS, CELLS_A_DEVIATION = 256, 32
"""Fewest cells, and cells per noise deviation: their width adds 8·10⁻⁵ to the noise variance."""
CORE = 0.001
"""Share of the perturbed values on either side that may lie in the outermost bins."""
MOST_BINS = 400
PARTS = 4
"""Bins of a smoothed prior per histogram bin: a normal density varies by a percent within one."""
NORMAL_BINS = 512
"""Least bins of a normal prior over ten deviations on either side: 1/25 of a deviation each."""
FINE, BEYOND, MOST_TABLED = 32, 5.0, 2**14
"""Points of a table per noise deviation, deviations beyond the prior's bins, and most points. The
interpolation error of a mean is about 1.6e-4 of a deviation."""
CHUNK_ROWS = 1024

Estimate = Callable[[Array], Array]
"""Map copies of one attribute, shape (b, k), to estimates, shape (b,) or (e, b)."""
Estimator = Callable[[Histogram, Channel, Array], Array]


def lattice_bins(low: float, high: float, most: int, unit: float) -> Array:
    """Edges half a unit off the lattice, for at most ``most`` bins.

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
    return (first - 0.5 + wide * np.arange(np.ceil((last - first + 1.0) / wide) + 1.0)) * unit


def even_bins(low: float, high: float, count: int, noise: NoiseDensity) -> Array:
    """Edges of equal bins, at most ``count``, whole units wide on a lattice."""
    if noise.on_lattice:
        return lattice_bins(low, high, count, noise.unit)
    return np.linspace(low, high, count + 1)


def smoothed(prior: Histogram, noise: NoiseDensity) -> Histogram:
    """Smooth by a normal kernel one bin wide; bins get a quarter as wide.

    On a lattice they stay.
    """
    edges, h = prior.edges, np.diff(prior.edges)
    if not noise.on_lattice:
        edges = np.append(edges[:-1, None] + h[:, None] * np.arange(PARTS) / PARTS, edges[-1])
    mass = np.diff(scipy.special.ndtr((edges[:, None] - prior.midpoints) / h), axis=0) @ prior.mass
    return Histogram(edges, mass / mass.sum())


def normal_bins(mean: float, std: float, channel: Channel) -> Histogram | None:
    """Normal distribution in bins narrow relative to the noise.

    None without noise.
    """
    if channel.exact:
        return None
    noise = channel.noise
    spread = max(std, 1e-3 * noise.std)
    count = int(np.clip(np.ceil(40.0 * spread / noise.std), NORMAL_BINS, 4 * NORMAL_BINS))
    edges = even_bins(mean - 10.0 * spread, mean + 10.0 * spread, count, noise)
    mass = np.diff(scipy.special.ndtr((edges - mean) / spread))
    return Histogram(edges, mass / mass.sum())


def reconstructed_priors(
    found: Sequence[Channel],
    view: View,
    blocks: CopyBlocks,
    method: Method,
    bins: int | None,
    domain: Sequence[float] | None = None,
) -> list[Histogram | None]:
    """Estimate each attribute's distribution from random rows; None if exact.

    Parameters
    ----------
    bins : int or None
        None: 100 to 400, with bins no wider than half the noise deviation.
    domain : [low, high] or None
        Range of the originals. None: the central 99.8 % of released values, and a bin beyond on
        either side.
    """
    # the random rows of all attacks are equal, so that reconstructions are shared
    rows = some_rows(blocks, stream(view.seed, "distribution"))
    copies = by_attribute(np.split(rows, len(view.copies), axis=1))
    return [
        None
        if channel.exact
        else _reconstructed(channel.observed(y), channel.noise, method, bins, domain)
        for channel, y in zip(found, copies, strict=True)
    ]


def _reconstructed(
    y: Array, noise: NoiseDensity, method: Method, bins: int | None, domain: Sequence[float] | None
) -> Histogram:
    low, high = float(y.min()), float(y.max())
    count = MOST_CELLS
    if not noise.on_lattice:
        fine = CELLS_A_DEVIATION * (high - low) / noise.std
        count = int(np.clip(fine, FEWEST_CELLS, MOST_CELLS))
    counts, cells = np.histogram(y, even_bins(low, high, count, noise))
    if domain is not None:
        most = bins or (MOST_BINS if noise.on_lattice else 100)
        edges = even_bins(domain[0], domain[1], most, noise)
    else:
        cumulative = np.append(0.0, np.cumsum(counts)) / counts.sum()
        low, high = np.interp([CORE, 1.0 - CORE], cumulative, cells)
        most = bins or int(np.clip(np.ceil(2.0 * (high - low) / noise.std), 100, MOST_BINS))
        if noise.on_lattice:
            core = lattice_bins(low, high, bins or MOST_BINS, noise.unit)
            beyond = noise.unit * np.ceil(noise.std / noise.unit)
        else:
            core, beyond = np.linspace(low, high, most - 1), noise.std
        reached = np.append(cells[[0, -1]], core)
        edges = np.unique([reached.min() - beyond, *core, reached.max() + beyond])
    middle = (cells[:-1] + cells[1:]) / 2.0
    kind, observed = ("histogram", noise, method), (middle, counts.astype(float), edges)
    return fitted_once(lambda: reconstruct(*observed, noise, method), kind, *observed)


def posterior_mass(prior: Histogram, likelihood: Array) -> tuple[Array, Flags]:
    """Bins' posterior, (b, B), and mask of explained rows, (b,)."""
    mass = likelihood * prior.mass
    total = mass.sum(axis=1)
    explained = total > 0
    return mass / np.where(explained, total, 1.0)[:, None], explained


def histogram_mean(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Posterior mean under a prior flat in every bin, shape (b,).

    A row that the prior cannot explain gets the estimate from its copies alone.
    """
    likelihood, inside = channel.within(copies, prior.edges)
    mass, explained = posterior_mass(prior, likelihood)
    return np.where(explained, np.einsum("rb,rb->r", mass, inside), channel.value(copies))


def histogram_mode(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Posterior mode under a prior flat in every bin, shape (b,).

    The most likely point of the bin of largest density; under uniform noise its midpoint.
    """
    points, log_likelihood = channel.peaks(copies, prior.edges)
    log_posterior = np.log(np.maximum(prior.density, 1e-300)) + log_likelihood
    rows, best = np.arange(len(points)), log_posterior.argmax(axis=1)
    possible = np.isfinite(log_posterior[rows, best])
    return np.where(possible, points[rows, best], channel.value(copies))


def read_off(estimate: Estimator, prior: Histogram, channel: Channel) -> Estimate:
    """Estimate, (b,) or (e, b), tabulated for a smooth channel."""

    def direct(copies: Array, channel: Channel = channel) -> Array:
        parts = np.array_split(copies, max(1, len(copies) // CHUNK_ROWS))
        return np.concatenate([estimate(prior, channel, part) for part in parts], axis=-1)

    if channel.noise.on_lattice:
        return lambda copies: each_once(direct, copies)
    reach = BEYOND * channel.noise.std
    low, high = prior.edges[0] - reach, prior.edges[-1] + reach
    count = int(FINE * (high - low) / channel.noise.std)
    if not channel.smooth or count > MOST_TABLED:
        return direct
    table = direct(np.linspace(low, high, count + 1)[:, None], alone(channel))
    rise = np.diff(table, append=table[..., -1:])

    def interpolated(copies: Array) -> Array:
        place = np.clip((channel.value(copies) - low) * count / (high - low), 0.0, count)
        k = place.astype(int)
        return table[..., k] + (place - k) * rise[..., k]

    return interpolated


def each_once(estimate: Estimate, copies: Array) -> Array:
    found, place = np.unique(copies, axis=0, return_inverse=True)
    return estimate(found)[..., place.ravel()]


@unprinted
class ByAttribute(Reconstruction):
    """Estimate each attribute separately."""

    estimates: Sequence[Estimate]

    def rows(self, copies: Arrays) -> Array:
        each = zip(self.estimates, by_attribute(copies), strict=True)
        return np.stack([estimate(y) for estimate, y in each], axis=-1)


def estimated_by_attribute(
    estimate: Estimator, found: Sequence[Channel], priors: Sequence[Histogram | None]
) -> ByAttribute:
    """One estimator per attribute; a prior of None means exact."""
    return ByAttribute(
        [
            channel.value if prior is None else read_off(estimate, prior, channel)
            for channel, prior in zip(found, priors, strict=True)
        ]
    )
