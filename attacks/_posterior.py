"""What one attribute's copies say of its value: the observation that several copies boil down to, and posteriors under binned priors.

| noise | k copies boil down to | the likelihood of x |
| --- | --- | --- |
| Gaussian | ``ȳ = Σ w_i y_i`` with the weights of least noise, variance ``s² = v·(K_0)_jj``: sufficient | normal density at ``ȳ − x`` |
| uniform | the overlap ``[max(y_i − a_i), min(y_i + a_i)]``, ``a_i = √3 σ_i``: sufficient | flat inside, 0 outside |

Attributes are looked at one at a time: what others say of this one is left to the attacks that use covariances. Under Gaussian noise an
estimate is then a function of ``ȳ`` alone, which is worked out on a grid and read off where rows are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from auditor.adversary.density import Histogram, Method, NoiseDensity, reconstruct
from auditor.plugin import Array, GaussianNoise, NotApplicable, Reconstruction, View

CELLS = 4096
"""Cells that perturbed values are counted in."""
CORE = 0.001
"""Share of the perturbed values on either side that may lie in the outermost bins."""
MOST_BINS = 400
FINE = 128
"""Points a grid has for each standard deviation of the noise: what is read off between two of them is off by some 1e-5 of it."""
STEEP = 8.0
"""An estimate that rises by more than so many steps between two points of the grid jumps there, as a mode does: nothing lies between."""
CHUNK_ROWS = 1024

Estimate = Callable[[Array], Array]
"""From copies of one attribute, shape (b, k), to an estimate, shape (b,), or to several, shape (e, b)."""


@dataclass(frozen=True)
class Channel:
    """What the copies of one attribute say of it.

    Attributes
    ----------
    noise : NoiseDensity
        Of the combination (Gaussian) or of the least noisy copy (uniform).
    weights : ndarray of shape (k,)
        Of the combination.
    reaches : ndarray of shape (k,)
        ``a_i``, half-widths of uniform noise.
    """

    noise: NoiseDensity
    weights: Array = field(repr=False)
    reaches: Array = field(repr=False)

    @property
    def bounded(self) -> bool:
        """Whether the noise is uniform."""
        return self.noise.distribution == "uniform"

    @property
    def exact(self) -> bool:
        """Whether the copies give the value away."""
        return self.noise.std == 0.0

    def value(self, copies: Array) -> Array:
        """Return ``ȳ`` (Gaussian) or the middle of the overlap (uniform), shape (b,), for copies of shape (b, k)."""
        if self.bounded:
            low, high = self.overlap(copies)
            return (low + high) / 2.0
        return copies @ self.weights

    def overlap(self, copies: Array) -> tuple[Array, Array]:
        """Return the interval that uniform noise leaves possible; rounding must not turn it inside out."""
        low, high = (copies - self.reaches).max(axis=1), (copies + self.reaches).min(axis=1)
        return np.minimum(low, high), np.maximum(low, high)

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the likelihood averaged over each bin, up to a factor of each row's own, shape (b, B)."""
        if self.bounded:
            low, high = self.overlap(copies)
            shared = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
            return np.asarray(np.clip(shared, 0.0, None) / np.diff(edges))
        return self.noise.likelihood(self.value(copies), edges)


def channels(view: View) -> list[Channel]:
    """Return what the coalition's copies say, attribute by attribute.

    Raises
    ------
    NotApplicable
        The law of the noise is unknown, mixes shapes, or is uniform with correlated attributes, whose own noise is not uniform.
    """
    law = view.law
    if not isinstance(law, GaussianNoise):
        raise NotApplicable("needs the law of the noise, of one shape across the copies")
    if law.follows_data:
        law = view.known_law
        assert isinstance(law, GaussianNoise)
    K_0, levels = law.shape, np.diag(law.level_covariance)
    if law.distribution == "uniform" and (K_0 - np.diag(np.diag(K_0))).any():
        raise NotApplicable("uniform noise that is correlated between attributes is not uniform in any one of them")
    std = np.sqrt(np.clip(np.diag(K_0), 0.0, None))
    smallest = float(levels.min()) if law.distribution == "uniform" else view.combined_variance
    return [
        Channel(NoiseDensity(law.distribution, float(np.sqrt(smallest) * s)), view.weights, np.sqrt(3.0 * levels) * s) for s in std
    ]


def reconstructed_priors(
    view: View, found: Sequence[Channel], blocks: Iterable[list[Array]], method: Method, bins: int | None, domain: Sequence[float] | None
) -> list[Histogram | None]:
    """Return each attribute's distribution, estimated from the released values; None where the copies give the values away.

    Parameters
    ----------
    found : sequence of N Channel
    blocks : iterable of lists of k ndarrays of shape (b, N)
        Gone through twice.
    method : 'em' or 'iteration'
    bins : int or None
        None: 100, or as many as make a bin no wider than half the noise, at most 400.
    domain : [low, high] or None
        Where originals lie; None: where all but a thousandth of the released values on either side do, and a bin beyond.
    """
    least = int(np.argmin(np.diag(view.law.level_covariance))) if isinstance(view.law, GaussianNoise) else 0
    values = [_Values(channel, j, least) for j, channel in enumerate(found)]
    for copies in blocks:
        for value in values:
            value.widen(copies)
    for copies in blocks:
        for value in values:
            value.count(copies)
    return [None if value.channel.exact else value.prior(method, bins, domain) for value in values]


class _Values:
    """Counts of one attribute's perturbed values."""

    def __init__(self, channel: Channel, attribute: int, least: int) -> None:
        self.channel, self._j, self._least = channel, attribute, least
        self._low, self._high = np.inf, -np.inf
        self._counts = np.zeros(CELLS)

    def _of(self, copies: list[Array]) -> Array:
        """A prior is estimated from the combination, or from the least noisy copy where noise is uniform (combined, it would not be)."""
        if self.channel.bounded:
            return copies[self._least][:, self._j]
        return np.stack([copy[:, self._j] for copy in copies], axis=1) @ self.channel.weights

    def widen(self, copies: list[Array]) -> None:
        y = self._of(copies)
        self._low, self._high = min(self._low, float(y.min())), max(self._high, float(y.max()))

    def count(self, copies: list[Array]) -> None:
        self._counts += np.histogram(self._of(copies), bins=CELLS, range=(self._low, self._high))[0]

    def prior(self, method: Method, bins: int | None, domain: Sequence[float] | None) -> Histogram:
        cells = np.linspace(self._low, self._high, CELLS + 1)
        edges = self._edges(cells, bins, domain)
        return _learnt(((cells[:-1] + cells[1:]) / 2.0).tobytes(), self._counts.tobytes(), edges.tobytes(), self.channel.noise, method)

    def _edges(self, cells: Array, bins: int | None, domain: Sequence[float] | None) -> Array:
        if domain is not None:
            return np.linspace(domain[0], domain[1], (bins or 100) + 1)
        cumulative = np.concatenate([[0.0], np.cumsum(self._counts)]) / self._counts.sum()
        low, high = np.interp([CORE, 1.0 - CORE], cumulative, cells)
        count = bins or int(np.clip(np.ceil(2.0 * (high - low) / self.channel.noise.std), 100, MOST_BINS))
        tails = [cells[0] - self.channel.noise.std], [cells[-1] + self.channel.noise.std]
        return np.unique(np.concatenate([tails[0], np.linspace(low, high, count - 1), tails[1]]))


@lru_cache(maxsize=256)
def _learnt(y: bytes, counts: bytes, edges: bytes, noise: NoiseDensity, method: Method) -> Histogram:
    """Return what ``reconstruct`` does, of arrays as bytes: once for all attacks that see these copies."""
    return reconstruct(np.frombuffer(y), np.frombuffer(counts), np.frombuffer(edges), noise, method)


def posterior_mass(prior: Histogram, channel: Channel, copies: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return posterior probabilities of the bins, shape (b, B), and which rows the prior can explain at all, shape (b,)."""
    mass = channel.likelihood(copies, prior.edges) * prior.mass
    total = mass.sum(axis=1)
    explained = total > 0
    return mass / np.where(explained, total, 1.0)[:, None], explained


def read_off(estimate: Callable[[Histogram, Channel, Array], Array], prior: Histogram, channel: Channel, rows: int) -> Estimate:
    """Return an estimate as a function of the copies, read off a grid of ``ȳ`` if that is less work than working it out row by row.

    Parameters
    ----------
    estimate : callable
        Of prior, channel and copies of shape (b, k); returns shape (b,) or (e, b).
    rows : int
        For so many rows; a grid has fewer than half as many points, reaches over the prior's bins, and copies beyond are worked out.
    """

    def direct(copies: Array) -> Array:
        parts = np.array_split(copies, max(1, len(copies) // CHUNK_ROWS))
        return np.concatenate([estimate(prior, channel, part) for part in parts], axis=-1)

    low, high = prior.edges[0], prior.edges[-1]
    if channel.bounded or 2 * FINE * (high - low) > channel.noise.std * (rows - 2):
        return direct
    grid, step = np.linspace(low, high, int(np.ceil(FINE * (high - low) / channel.noise.std)) + 1, retstep=True)
    table = read_off(estimate, prior, replace(channel, weights=np.ones(1)), 0)(grid[:, None])
    rise = np.diff(table)
    steep = np.abs(rise) > STEEP * step

    def from_table(copies: Array) -> Array:
        at = (channel.value(copies) - low) / step
        place = np.clip(at, 0, len(grid) - 2).astype(np.intp)
        share = np.where(steep[..., place], np.rint(at - place), at - place)
        found = np.asarray(table[..., place] + share * rise[..., place])
        beyond = (at < 0) | (at > len(grid) - 1)
        if beyond.any():
            found[..., beyond] = direct(copies[beyond])
        return found

    return from_table


class ByAttribute(Reconstruction):
    """An estimate of each attribute by itself."""

    def __init__(self, estimates: Sequence[Estimate]) -> None:
        self._estimates = estimates

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return each attribute's estimates."""
        return np.stack([estimate(y) for estimate, y in zip(self._estimates, by_attribute(copies), strict=True)], axis=1)


def estimated_by_attribute(
    estimate: Callable[[Histogram, Channel, Array], Array], found: Sequence[Channel], priors: Sequence[Histogram | None], rows: int
) -> ByAttribute:
    """Return one and the same estimate of each attribute under its own prior; None stands for a value that the copies give away."""
    return ByAttribute([
        channel.value if prior is None else read_off(estimate, prior, channel, rows) for channel, prior in zip(found, priors, strict=True)
    ])


def by_attribute(copies: Sequence[Array]) -> list[Array]:
    """Return the copies of each attribute, N of shape (b, k), of k copies of shape (b, N)."""
    return [np.stack([copy[:, j] for copy in copies], axis=1) for j in range(copies[0].shape[1])]


def truncated_mean(mean: Array, std: Array | float, low: Array, high: Array) -> Array:
    """Return the mean of a normal distribution cut to [low, high], all of shapes that broadcast; its nearer end where it has no mass.

    ``mean + std·(φ(a) − φ(b)) / (Φ(b) − Φ(a))``, taken on the side of the origin where the difference keeps its digits.
    """
    a, b = (low - mean) / std, (high - mean) / std
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    mass = ndtr(b) - ndtr(a)
    gap = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
    shift = np.divide(gap, mass, out=np.zeros_like(gap), where=mass > 1e-300)
    inside = np.clip(mean + std * np.where(flip, -shift, shift), low, high)
    return np.asarray(np.where(mass > 1e-300, inside, np.clip(mean, low, high)))
