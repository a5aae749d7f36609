"""Posteriors of one attribute under a binned prior fitted to the copies.

A ``Channel`` (``_channel``) gives the likelihood of one record's copies. A smooth channel's
estimate is a function of one number; for many rows it is tabulated on a grid and interpolated. On a
lattice, each distinct combination of copies is estimated once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.density import Histogram, Method, reconstruct
from auditor.numerics.linear_algebra import is_diagonal
from auditor.plugin import Array, KroneckerNoise, NoiseDensity, NotApplicable, Reconstruction, View

from ._channel import Channel, Combined, Overlap
from ._prior_bins import lattice_bins
from ._product import Product

MOST_CELLS = 4096
"""Most cells that count perturbed values, and their number on a lattice."""
FEWEST_CELLS, CELLS_A_DEVIATION = 256, 32
"""Fewest cells, and cells per noise deviation: their width adds 8·10⁻⁵ to the noise variance."""
CORE = 0.001
"""Share of the perturbed values on either side that may lie in the outermost bins."""
MOST_BINS = 400
FINE, SMOOTH = 128, 32
"""Grid points per standard deviation of the noise: the interpolation error is about 1e-5 of it.

``SMOOTH`` points suffice for a mean or a median, which have no jumps: about 1e-4."""
STEEP = 8.0
"""An estimate that rises by more than this many steps between grid points jumps, like a mode; no
interpolation."""
CHUNK_ROWS = 1024

Estimate = Callable[[Array], Array]
"""Map copies of one attribute, shape (b, k), to estimates, shape (b,) or (e, b)."""


def channels(view: View) -> list[Channel]:
    """Return the channel of each attribute for a coalition's copies.

    Raises
    ------
    NotApplicable
        The noise law is unknown, mixes shapes, or is uniform and correlated between attributes.
    """
    law = view.law
    if not isinstance(law, KroneckerNoise):
        raise NotApplicable("needs the law of the noise, of one shape across the copies")
    if law.follows_data:
        law = view.known_law
        assert isinstance(law, KroneckerNoise)
    K_0, levels = law.shape, np.diag(law.level_covariance)
    if law.distribution == "uniform" and not is_diagonal(K_0):
        raise NotApplicable(
            "uniform noise that is correlated between attributes is not uniform in any one of them"
        )
    std = np.sqrt(np.clip(np.diag(K_0), 0.0, None))
    if law.distribution == "uniform":
        least = float(np.sqrt(levels.min()))
        return [
            Overlap(NoiseDensity("uniform", float(least * s)), np.sqrt(3.0 * levels) * s)
            for s in std
        ]
    v = view.combined_variance
    return [
        Combined(NoiseDensity("gaussian", float(np.sqrt(v) * s)), view.weights)
        if law.distribution == "gaussian" or s == 0.0 or levels.min() <= 0.0
        else Product.of(law, j)
        for j, s in enumerate(std)
    ]


def reconstructed_priors(
    found: Sequence[Channel],
    blocks: Iterable[list[Array]],
    method: Method,
    bins: int | None,
    domain: Sequence[float] | None,
) -> list[Histogram | None]:
    """Estimate each attribute's distribution from released values.

    None for an attribute that the copies determine.

    Parameters
    ----------
    found : sequence of N Channel
    blocks : iterable of lists of k ndarrays of shape (b, N)
        Iterated twice.
    method : 'em' or 'iteration'
    bins : int or None
        None: 100 to 400, with bins no wider than half the noise deviation.
    domain : [low, high] or None
        Range of the originals. None: the central 99.8 % of released values, and a bin beyond on
        either side.
    """
    values = [_Values(channel, j) for j, channel in enumerate(found)]
    for copies in blocks:
        for value in values:
            value.widen(copies)
    for copies in blocks:
        for value in values:
            value.count(copies)
    return [None if value.channel.exact else value.prior(method, bins, domain) for value in values]


class _Values:
    """Counts of one attribute's perturbed values."""

    def __init__(self, channel: Channel, attribute: int) -> None:
        self.channel, self._j = channel, attribute
        self._low, self._high = np.inf, -np.inf
        self._counts = np.zeros(MOST_CELLS)

    def _of(self, copies: list[Array]) -> Array:
        return self.channel.observed(np.stack([copy[:, self._j] for copy in copies], axis=1))

    def widen(self, copies: list[Array]) -> None:
        y = self._of(copies)
        self._low, self._high = min(self._low, float(y.min())), max(self._high, float(y.max()))

    @property
    def _cells(self) -> Array:
        noise = self.channel.noise
        if noise.on_lattice and not self.channel.exact:
            return lattice_bins(self._low, self._high, MOST_CELLS, noise.unit)
        fine = CELLS_A_DEVIATION * (self._high - self._low) / noise.std if noise.std else 0.0
        return np.linspace(self._low, self._high, int(np.clip(fine, FEWEST_CELLS, MOST_CELLS)) + 1)

    def count(self, copies: list[Array]) -> None:
        cells = self._cells
        count, width = len(cells) - 1, (cells[-1] - cells[0]) or 1.0
        place = (self._of(copies) - cells[0]) * (count / width)  # equal cells need no search
        self._counts[:count] += np.bincount(
            np.minimum(place.astype(np.intp), count - 1), minlength=count
        )

    def prior(self, method: Method, bins: int | None, domain: Sequence[float] | None) -> Histogram:
        cells = self._cells
        edges, counts = self._edges(cells, bins, domain), self._counts[: len(cells) - 1]
        return _fitted(
            ((cells[:-1] + cells[1:]) / 2.0).tobytes(),
            counts.tobytes(),
            edges.tobytes(),
            self.channel.noise,
            method,
        )

    def _edges(self, cells: Array, bins: int | None, domain: Sequence[float] | None) -> Array:
        noise = self.channel.noise
        if domain is not None and noise.on_lattice:
            return lattice_bins(domain[0], domain[1], bins or MOST_BINS, noise.unit)
        if domain is not None:
            return np.linspace(domain[0], domain[1], (bins or 100) + 1)
        counts = self._counts[: len(cells) - 1]
        cumulative = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        low, high = np.interp([CORE, 1.0 - CORE], cumulative, cells)
        count = bins or int(np.clip(np.ceil(2.0 * (high - low) / noise.std), 100, MOST_BINS))
        core = (
            lattice_bins(low, high, bins or MOST_BINS, noise.unit)
            if noise.on_lattice
            else np.linspace(low, high, count - 1)
        )
        beyond = noise.unit * np.ceil(noise.std / noise.unit) if noise.on_lattice else noise.std
        reached = np.concatenate([cells[[0, -1]], core])
        return np.unique(np.concatenate([[reached.min() - beyond], core, [reached.max() + beyond]]))


@lru_cache(maxsize=256)
def _fitted(
    y: bytes, counts: bytes, edges: bytes, noise: NoiseDensity, method: Method
) -> Histogram:
    """Call ``reconstruct`` with arrays as bytes, cached across attacks."""
    return reconstruct(np.frombuffer(y), np.frombuffer(counts), np.frombuffer(edges), noise, method)


def posterior_mass(prior: Histogram, likelihood: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the bins' posterior, and the mask of explained rows.

    Shapes (b, B) and (b,).
    """
    mass = likelihood * prior.mass
    total = mass.sum(axis=1)
    explained = total > 0
    return mass / np.where(explained, total, 1.0)[:, None], explained


def read_off(
    estimate: Callable[[Histogram, Channel, Array], Array],
    prior: Histogram,
    channel: Channel,
    rows: int,
    fine: int = FINE,
) -> Estimate:
    """Return an estimate as a function of copies, tabulated if that is faster.

    Parameters
    ----------
    estimate : callable
        Of prior, channel and copies of shape (b, k); returns shape (b,) or (e, b).
    rows : int
        Expected rows. The grid has fewer than half as many points and covers the prior's bins.
        Copies beyond are estimated directly.
    fine : int
        Grid points per standard deviation of the noise.
    """

    def direct(copies: Array) -> Array:
        parts = np.array_split(copies, max(1, len(copies) // CHUNK_ROWS))
        return np.concatenate([estimate(prior, channel, part) for part in parts], axis=-1)

    low, high = prior.edges[0], prior.edges[-1]
    if channel.noise.on_lattice:
        return lambda copies: each_once(direct, copies)
    if not channel.smooth or 2 * fine * (high - low) > channel.noise.std * (rows - 2):
        return direct
    grid, step = np.linspace(
        low, high, int(np.ceil(fine * (high - low) / channel.noise.std)) + 1, retstep=True
    )
    table = read_off(estimate, prior, channel.alone(), 0)(grid[:, None])
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


def each_once(estimate: Estimate, copies: Array) -> Array:
    """Estimate each distinct combination of copies once."""
    found, place = np.unique(copies, axis=0, return_inverse=True)
    return np.asarray(estimate(found)[..., place.ravel()])


class ByAttribute(Reconstruction):
    """Estimate each attribute separately."""

    def __init__(self, estimates: Sequence[Estimate]) -> None:
        self._estimates = estimates

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return each attribute's estimates, shape (b, N)."""
        return np.stack(
            [
                estimate(y)
                for estimate, y in zip(self._estimates, by_attribute(copies), strict=True)
            ],
            axis=1,
        )


def estimated_by_attribute(
    estimate: Callable[[Histogram, Channel, Array], Array],
    found: Sequence[Channel],
    priors: Sequence[Histogram | None],
    rows: int,
    fine: int = FINE,
) -> ByAttribute:
    """Return one estimator for each attribute under its own prior.

    A prior of None means that the copies determine the value.
    """
    return ByAttribute(
        [
            channel.value if prior is None else read_off(estimate, prior, channel, rows, fine)
            for channel, prior in zip(found, priors, strict=True)
        ]
    )


def by_attribute(copies: Sequence[Array]) -> list[Array]:
    """Regroup k copies of shape (b, N) into N arrays of shape (b, k)."""
    return [np.stack([copy[:, j] for copy in copies], axis=1) for j in range(copies[0].shape[1])]
