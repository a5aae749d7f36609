"""The distribution of two or three attributes together, flat in every cell of a grid: learnt by EM, and what it says of a record.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``L_j(y, b)`` | likelihood of bin b of direction j, averaged over the bin | (B_j,) | agrawal2001 |
| ``π`` | reconstructed probability of each cell of the grid | (B_1, …, B_p) | domingo2004 |
| step | ``π(b) ← π(b)/n Σ_y Π_j L_j(y, b_j) / Σ_b' π(b') Π_j L_j(y, b'_j)`` | | domingo2004; agrawal2001 with p directions |
| ``P(b | y)`` | ``∝ π(b) Π_j L_j(y, b_j)`` | (B_1, …, B_p) | liu2008, section 3.6 |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy  # its parts are imported when they are first used

from attacks._channel import Channel
from attacks._grid_axis import Axis, Bins, smoothed, spaced
from auditor.plugin import Array, Indices

BINS = {1: 100, 2: 24, 3: 12}
"""Of each direction, by how many there are: every step of EM goes through all cells, and so does every record."""
COUNTED = 3
"""Cells of released values for each bin: their width adds little to the noise."""
MOST_STEPS, GAIN = 500, 3.0
"""EM stops when a step gains less log-likelihood than this, in nats over all records: run to convergence, it makes spikes."""
LEAST = 1e-250
"""Likelihood below which nothing can have led to a cell of released values."""
COARSE = 8
"""Points to each deviation of Gaussian noise between which posterior means are interpolated: right to a hundredth of one."""


@dataclass(frozen=True)
class Grid:
    """A group's distribution.

    Attributes
    ----------
    axes : sequence of p Axis
    mass : ndarray of shape (B_1, …, B_p)
        ``π``, sum 1.
    surface : Surface or None
        What interpolates posterior means, if that is less work.
    """

    axes: Sequence[Axis] = field(repr=False)
    mass: Array = field(repr=False)
    surface: Surface | None = field(repr=False, default=None)

    @property
    def places(self) -> list[int]:
        """Which directions it spans."""
        return [axis.place for axis in self.axes]

    @classmethod
    def fitted(cls, channels: Sequence[Channel], copies: Sequence[Array], places: Indices, bins: int | None) -> Grid:
        """Return what EM makes of rows of copies, each of shape (n, N), along the directions at these places."""
        count = bins or BINS[len(places)]
        axes, cells, values = [], [], []
        for place in places.tolist():
            y = np.stack([copy[:, place] for copy in copies], axis=1)
            channel = smoothed(channels[place], float(np.ptp(y)))
            values.append(channel.observed(y))
            axes.append(Axis(place, channel, spaced(values[-1], count, channel.noise.std)))
            cells.append(spaced(values[-1], COUNTED * count, 0.0))
        counts = np.histogramdd(np.stack(values, axis=1), cells)[0]
        L = [axis.channel.noise.likelihood((c[:-1] + c[1:]) / 2.0, axis.edges) for axis, c in zip(axes, cells, strict=True)]
        return cls(axes, reconstructed(counts, L, [axis.edges for axis in axes]))

    def tabled(self, rows: int) -> Grid:
        """Return the grid with tables of likelihoods and of means where so many rows are more work."""
        found = replace(self, axes=[axis.tabled(rows) for axis in self.axes])
        return replace(found, surface=surface_of(found, rows)) if all(axis.table for axis in found.axes) else found

    def posterior(self, each: Sequence[Array]) -> tuple[list[Array], list[Array], Bins]:
        """Return the bins' probabilities, p arrays of shape (b, B_j), the means, p of shape (b,), and which rows are explained, (b,)."""
        L, weighed = zip(*(axis.weights(y) for axis, y in zip(self.axes, each, strict=True)), strict=True)
        others = [besides(self.mass, L, j) for j in range(len(L))]
        total = np.einsum("ib,ib->i", L[0], others[0])
        explained = total > LEAST
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=explained)
        means = [scale * np.einsum("ib,ib->i", M, R) for M, R in zip(weighed, others, strict=True)]
        return [L_j * R * scale[:, None] for L_j, R in zip(L, others, strict=True)], means, explained

    def means(self, each: Sequence[Array]) -> Array:
        """Return posterior means, shape (b, p); what the copies alone say where no cell explains them."""
        values = np.stack([axis.channel.value(y) for axis, y in zip(self.axes, each, strict=True)], axis=1)
        if self.surface is not None:
            found = self.surface.at(values)
        else:
            _, means, explained = self.posterior(each)
            found = np.where(explained, means, np.nan).T
        return np.where(np.isnan(found), values, found)

    def of_cells(self, chosen: Sequence[Bins]) -> Array:
        """Return the probability of the cells that are chosen in every direction, shape (b,), from p arrays of shape (b, B_j)."""
        factors = [each.astype(np.float64) for each in chosen]
        return np.asarray(np.einsum("ib,ib->i", factors[0], besides(self.mass, factors, 0)))


@dataclass(frozen=True)
class Surface:
    """Posterior means at released values on a grid of even steps.

    Attributes
    ----------
    first, step : ndarrays of shape (p,)
    means : sequence of p ndarrays of shape (P_1, …, P_p)
        NaN where no cell explains the value.
    """

    first: Array
    step: Array
    means: Sequence[Array] = field(repr=False)

    def at(self, values: Array) -> Array:
        """Return the means between points, shape (b, p), linear along each direction; NaN beyond the grid and beside NaN."""
        place = ((values - self.first) / self.step).T
        found = [scipy.ndimage.map_coordinates(mean, place, order=1, mode="constant", cval=np.nan) for mean in self.means]
        return np.stack(found, axis=1)


def surface_of(grid: Grid, rows: int) -> Surface | None:
    """Return what interpolates posterior means, of ``COARSE`` points to a deviation; None where there are hardly more rows."""
    sides = [np.linspace(low, high, min(int(points) + 2, rows)) for low, high, points in (axis.points(COARSE) for axis in grid.axes)]
    if np.prod([len(side) for side in sides]) > 0.75 * rows:
        return None
    single = [replace(axis, channel=axis.channel.alone()) for axis in grid.axes]
    L, weighed = zip(*(axis.weights(side[:, None]) for axis, side in zip(single, sides, strict=True)), strict=True)
    total = along(grid.mass, L)  # Σ π(b) Π_j L_j(y_j, b_j), for all points of the grid one direction after the other
    sums = [along(grid.mass, [weighed[i] if i == j else L[i] for i in range(len(L))]) for j in range(len(L))]
    means = [np.divide(each, total, out=np.full_like(total, np.nan), where=total > LEAST) for each in sums]
    return Surface(np.array([side[0] for side in sides]), np.array([side[1] - side[0] for side in sides]), means)


def reconstructed(counts: Array, L: Sequence[Array], edges: Sequence[Array], steps: int = MOST_STEPS, gain: float = GAIN) -> Array:
    """Return ``π``, shape (B_1, …, B_p), by EM from counts of released values.

    Parameters
    ----------
    counts : ndarray of shape (C_1, …, C_p)
    L : sequence of p ndarrays of shapes (C_j, B_j)
        Likelihood of each cell of released values given each bin.
    edges : sequence of p ndarrays
        Of the bins; EM starts with a flat density.
    steps : int
        At most.
    gain : float
        Nats of log-likelihood that a step must gain for another to follow.
    """
    mass = np.ones(())
    for e in edges:
        mass = np.multiply.outer(mass, np.diff(e) / (e[-1] - e[0]))
    last = -np.inf
    for _ in range(steps):
        mixed = along(mass, L)
        possible = (counts > 0) & (mixed > LEAST)
        if not possible.any():
            break
        likelihood = float((counts[possible] * np.log(mixed[possible])).sum())
        if likelihood - last < gain:
            break
        last = likelihood
        ratio = np.divide(counts, mixed, out=np.zeros_like(mixed), where=possible)
        mass = mass * along(ratio, [matrix.T for matrix in L])
        mass /= mass.sum()
    return mass


def along(tensor: Array, matrices: Sequence[Array]) -> Array:
    """Return a tensor with one matrix applied to each of its axes."""
    for axis, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)
    return tensor


def besides(mass: Array, factors: Sequence[Array], j: int) -> Array:
    """Return ``Σ π(b) Π_{i≠j} F_i(b_i)`` over all bins but direction j's, shape (b, B_j), from p factors of shapes (b, B_i)."""
    others = np.ones((len(factors[0]), 1))
    for i, factor in enumerate(factors):
        if i != j:
            others = (others[:, :, None] * factor[:, None, :]).reshape(len(factor), others.shape[1] * factor.shape[1])
    return np.asarray(others @ np.moveaxis(mass, j, -1).reshape(-1, mass.shape[j]))
