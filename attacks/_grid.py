"""Joint distribution of two or three attributes on a grid, fitted by EM.

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
from functools import reduce
from itertools import product

import numpy as np

from auditor.plugin import Array, Indices

from ._channel import Channel
from ._grid_axis import Axis, Bins, smoothed, spaced

BINS = {1: 100, 2: 24, 3: 12}
"""Bins per direction, by the number of directions. Time grows with the number of cells."""
COUNTED = 3
"""Cells of released values per bin. Their width adds little to the noise."""
MOST_STEPS, GAIN = 500, 3.0
"""EM stops when a step gains less log-likelihood, in nats over all records. Run to convergence, it
makes spikes."""
LEAST = 1e-250
"""Likelihood below which a cell of released values counts as impossible."""
COARSE = 8
"""Interpolation points per deviation of Gaussian noise. Posterior means are right to a hundredth of
a deviation."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A group's joint distribution.

    Attributes
    ----------
    axes : sequence of p Axis
    mass : ndarray of shape (B_1, …, B_p)
        ``π``, sum 1.
    surface : Surface or None
        Interpolates posterior means, if faster.
    """

    axes: Sequence[Axis] = field(repr=False)
    mass: Array = field(repr=False)
    surface: Surface | None = field(repr=False, default=None)

    @property
    def places(self) -> list[int]:
        """Indices of its directions."""
        return [axis.place for axis in self.axes]

    @classmethod
    def fitted(
        cls, channels: Sequence[Channel], copies: Sequence[Array], places: Indices, bins: int | None
    ) -> Grid:
        """Fit the grid by EM to copies, shapes (n, N), along some directions."""
        count = bins or BINS[len(places)]
        axes, cells, values = [], [], []
        for place in places.tolist():
            y = np.stack([copy[:, place] for copy in copies], axis=1)
            channel = smoothed(channels[place], float(np.ptp(y)))
            values.append(channel.observed(y))
            axes.append(Axis(place, channel, spaced(values[-1], count, channel.noise.std)))
            cells.append(spaced(values[-1], COUNTED * count, 0.0))
        counts = np.histogramdd(np.stack(values, axis=1), cells)[0]
        L = [
            axis.channel.noise.likelihood((c[:-1] + c[1:]) / 2.0, axis.edges)
            for axis, c in zip(axes, cells, strict=True)
        ]
        return cls(axes, reconstructed(counts, L, [axis.edges for axis in axes]))

    def tabled(self, rows: int) -> Grid:
        """Return the grid with tables and surface if they save time."""
        found = replace(self, axes=[axis.tabled(rows) for axis in self.axes])
        return (
            replace(found, surface=surface_of(found, rows))
            if all(axis.table for axis in found.axes)
            else found
        )

    def posterior(self, each: Sequence[Array]) -> tuple[list[Array], Bins]:
        """Return the bins' probabilities, and the mask of explained rows.

        p arrays of shape (b, B_j), and shape (b,).
        """
        L = [axis.likelihoods(y) for axis, y in zip(self.axes, each, strict=True)]
        others, scale = self._others(L)
        for L_j, R in zip(L, others, strict=True):
            R *= L_j
            R *= scale[:, None]
        return others, scale > 0

    def means(self, each: Sequence[Array]) -> Array:
        """Return posterior means, shape (b, p).

        A row that no cell explains gets the estimate from its copies alone.
        """
        values = np.stack([axis.channel.value(y) for axis, y in zip(self.axes, each, strict=True)])
        if all(axis.given_away for axis in self.axes):
            return np.asarray(values.T)
        if self.surface is not None:
            found = self.surface.at(values)
        else:
            L, weighed = zip(
                *(axis.weights(y) for axis, y in zip(self.axes, each, strict=True)), strict=True
            )
            others, scale = self._others(L)
            means = np.stack(
                [scale * np.einsum("ib,ib->i", M, R) for M, R in zip(weighed, others, strict=True)]
            )
            found = np.where(scale > 0, means, np.nan)
        return np.where(np.isnan(found), values, found).T

    def _others(self, L: Sequence[Array]) -> tuple[list[Array], Array]:
        """Return ``besides`` of each direction, and 1/total; 0 if unexplained."""
        others = [besides(self.mass, L, j) for j in range(len(L))]
        total = np.einsum("ib,ib->i", L[0], others[0])
        return others, np.divide(1.0, total, out=np.zeros_like(total), where=total > LEAST)

    def of_cells(self, chosen: Sequence[Bins]) -> Array:
        """Return the probability of the chosen cells, shape (b,).

        ``chosen`` holds p masks of shape (b, B_j); a cell is chosen if it is in every direction.
        """
        factors = [each.astype(np.float64) for each in chosen]
        return np.asarray(np.einsum("ib,ib->i", factors[0], besides(self.mass, factors, 0)))


@dataclass(frozen=True, eq=False)
class Surface:
    """Posterior means at released values on an evenly spaced grid.

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
        """Interpolate the means at values, shape (p, b).

        NaN beyond the grid or next to NaN. ``scipy.ndimage.map_coordinates`` of order 1 takes four
        times as long.
        """
        last = np.array(self.means[0].shape)[:, None] - 1
        place = (values - self.first[:, None]) / self.step[:, None]
        low = np.clip(place, 0, last - 1).astype(np.intp)
        found = linear(self.means, low, place - low)
        found[:, ((place < 0) | (place > last)).any(axis=0)] = np.nan
        return found


def linear(tables: Sequence[Array], low: Indices, share: Array) -> Array:
    """Interpolate tables of p axes at ``low + share``, shape (len(tables), b).

    ``low`` and ``share`` have shape (p, b).

    Examples
    --------
    >>> linear([np.array([[0.0, 1.0], [10.0, 11.0]])], np.array([[0], [0]]), np.array([[0.5], [0.25]]))
    array([[5.25]])
    """
    shape = tables[0].shape
    first = np.ravel_multi_index(tuple(low), shape)
    steps = [int(np.prod(shape[j + 1 :])) for j in range(len(shape))]
    found = []
    for table in tables:
        corners = [
            table.take(first + int(np.dot(corner, steps)))
            for corner in product((0, 1), repeat=len(shape))
        ]
        # the last axis first: corners that differ along it are adjacent in the list
        for t in share[::-1]:
            corners = [a + t * (b - a) for a, b in zip(corners[::2], corners[1::2], strict=True)]
        found += corners
    return np.stack(found)


def surface_of(grid: Grid, rows: int) -> Surface | None:
    """Return a surface with ``COARSE`` points per deviation.

    None if rows are too few. All axes need tables.
    """
    sides = [
        np.linspace(low, high, min(int(points) + 2, rows))
        for low, high, points in (axis.points(COARSE) for axis in grid.axes)
    ]
    if np.prod([len(side) for side in sides]) > 0.75 * rows:
        return None
    tables = [axis.table for axis in grid.axes if axis.table]
    L, weighed = zip(
        *(table.nearest(side) for table, side in zip(tables, sides, strict=True)), strict=True
    )
    # Σ π(b) Π_j L_j(y_j, b_j) at all grid points, one direction after the other
    total = along(grid.mass, L)
    sums = [
        along(grid.mass, [weighed[i] if i == j else L[i] for i in range(len(L))])
        for j in range(len(L))
    ]
    means = [
        np.divide(each, total, out=np.full(total.shape, np.nan), where=total > LEAST)
        for each in sums
    ]
    return Surface(
        np.array([side[0] for side in sides]),
        np.array([side[1] - side[0] for side in sides]),
        means,
    )


def reconstructed(
    counts: Array,
    L: Sequence[Array],
    edges: Sequence[Array],
    steps: int = MOST_STEPS,
    gain: float = GAIN,
) -> Array:
    """Return ``π``, shape (B_1, …, B_p), by EM from counts of released values.

    Parameters
    ----------
    counts : ndarray of shape (C_1, …, C_p)
    L : sequence of p ndarrays of shapes (C_j, B_j)
        Likelihood of each cell of released values given each bin.
    edges : sequence of p ndarrays
        Of the bins; EM starts with a flat density.
    steps : int
        Most steps.
    gain : float
        Nats of log-likelihood that a step must gain to continue.
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
    """Apply one matrix to each axis of a tensor."""
    for axis, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)
    return tensor


def besides(mass: Array, factors: Sequence[Array], j: int) -> Array:
    """Return ``Σ π(b) Π_{i≠j} F_i(b_i)`` over all directions but j.

    Shape (b, B_j), from p factors of shapes (b, B_i).
    """
    rest = [factor for i, factor in enumerate(factors) if i != j] or [np.ones((len(factors[0]), 1))]
    others = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), rest)
    return np.asarray(others @ np.moveaxis(mass, j, -1).reshape(-1, mass.shape[j]))
