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
from functools import cached_property, reduce

import numpy as np

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import Array, Arrays, Flags, Indices, NoiseDensity, unprinted

from ._channel import Channel, Combined, alone

BINS = {1: 100, 2: 24, 3: 12}
"""Bins per direction, by the number of directions. Time grows with the number of cells."""
COUNTED = 3
"""Cells of released values per bin. Their width adds little to the noise."""
MOST_STEPS, GAIN = 500, 3.0
"""EM stops when a step gains less log-likelihood, in nats over all records. Run to convergence, it
makes spikes."""
LEAST = 1e-250
"""Likelihood below which a cell of released values counts as impossible."""
FINE, BEYOND, MOST_TABLED = 128, 4.0, 2**14
"""Points of a table per noise deviation, deviations beyond the bins, and most points."""
FINEST = 1e-6
"""Least noise deviation relative to the range, for exact copies."""


@unprinted
class Axis:
    """One axis of a grid.

    ``place`` is the index of its direction.
    """

    place: int
    channel: Channel
    edges: Array

    def of(self, copies: Arrays) -> Array:
        """Copies along this direction, shape (b, k)."""
        return np.stack([copy[:, self.place] for copy in copies], axis=1)

    @cached_property
    def _table(self) -> tuple[Array, Array, Array]:
        std = self.channel.noise.std
        low, high = self.edges[0] - BEYOND * std, self.edges[-1] + BEYOND * std
        y = np.linspace(low, high, int(FINE * (high - low) / std) + 1)
        return y, *alone(self.channel).within(y[:, None], self.edges)

    def within(self, copies: Arrays, parts: Sequence[int] = (0, 1)) -> list[Array]:
        """``parts`` of each bin's mean likelihood and mean value.

        A smooth channel's table is four times as fast, and off by under 1/250 of a deviation.
        """
        own, width = self.of(copies), self.edges[-1] - self.edges[0]
        if not self.channel.smooth or FINE * width > MOST_TABLED * self.channel.noise.std:
            found = self.channel.within(own, self.edges)
            return [found[part] for part in parts]
        y, *table = self._table
        place = np.rint((self.channel.value(own) - y[0]) / (y[1] - y[0]))
        place = np.clip(place, 0, len(y) - 1).astype(int)
        return [table[part].take(place, axis=0) for part in parts]

    @property
    def given_away(self) -> bool:
        return bool(self.channel.noise.std <= FINEST * (self.edges[-1] - self.edges[0]))

    def touched(self, low: Array, high: Array) -> Flags:
        """Bins that intervals of shape (b,) touch, shape (b, B)."""
        return (self.edges[:-1] <= high[:, None]) & (self.edges[1:] >= low[:, None])


@unprinted
class Grid:
    """A group's joint distribution.

    ``mass`` is ``π``, sum 1.
    """

    axes: Sequence[Axis]
    mass: Array

    @property
    def places(self) -> list[int]:
        """Indices of its directions."""
        return [axis.place for axis in self.axes]

    @classmethod
    def fitted(
        cls, channels: Sequence[Channel], copies: Arrays, places: Indices, bins: int | None
    ) -> Grid:
        """Fit the grid by EM to copies, (n, N), along some directions."""
        count = bins or BINS[len(places)]
        axes, cells, values, L = [], [], [], []
        for place in places.tolist():
            y = np.stack([copy[:, place] for copy in copies], axis=1)
            channel, least = channels[place], FINEST * float(np.ptp(y) or 1.0)
            if channel.noise.std < least:
                channel = Combined(NoiseDensity("gaussian", least), np.eye(1, y.shape[1])[0])
            values.append(channel.observed(y))
            axes.append(Axis(place, channel, spaced(values[-1], count, channel.noise.std)))
            cells.append(spaced(values[-1], COUNTED * count, 0.0))
            middle = (cells[-1][:-1] + cells[-1][1:]) / 2.0
            L.append(channel.noise.likelihood(middle, axes[-1].edges))
        counts = np.histogramdd(np.stack(values, axis=1), cells)[0]
        return cls(axes, reconstructed(counts, L, [axis.edges for axis in axes]))

    def posterior(self, copies: Arrays) -> tuple[list[Array], Flags]:
        """Bins' probabilities, and the mask of explained rows.

        p arrays of shape (b, B_j), and shape (b,).
        """
        L = [axis.within(copies, [0])[0] for axis in self.axes]
        P, scale = self._weighed(L)
        return [P_j * scale[:, None] for P_j in P], scale > 0

    def means(self, copies: Arrays) -> Array:
        """Posterior means, (b, p).

        From the copies alone if no cell explains a row.
        """
        values = [axis.channel.value(axis.of(copies)) for axis in self.axes]
        if all(axis.given_away for axis in self.axes):
            return np.stack(values, axis=1)
        L, inside = zip(*(axis.within(copies) for axis in self.axes), strict=True)
        P, scale = self._weighed(L)
        found = [
            np.where(scale > 0, scale * np.einsum("ib,ib->i", P_j, M), value)
            for P_j, M, value in zip(P, inside, values, strict=True)
        ]
        return np.stack(found, axis=1)

    def _weighed(self, L: Arrays) -> tuple[list[Array], Array]:
        P = [L_j * besides(self.mass, L, j) for j, L_j in enumerate(L)]
        total = P[0].sum(axis=1)
        return P, quotient(1.0, total, where=total > LEAST)

    def of_cells(self, chosen: Sequence[Flags]) -> Array:
        """Probability of cells in all p masks, shape (b,).

        Masks have shape (b, B_j).
        """
        factors = [each.astype(float) for each in chosen]
        return np.einsum("ib,ib->i", factors[0], besides(self.mass, factors, 0))


def spaced(values: Array, count: int, beyond: float) -> Array:
    """At most ``count + 1`` ascending edges.

    To ``beyond`` the values on either side. Half are evenly spaced, half at quantiles.
    """
    low, high = float(values.min()), float(values.max())
    reach = max(beyond, FINEST * ((high - low) or 1.0))
    even = np.linspace(low - reach, high + reach, count - count // 2 + 1)
    within = np.quantile(values, np.arange(1, count // 2 + 1) / (count // 2 + 1))
    return np.unique(np.concatenate([even, within]))


def reconstructed(
    counts: Array, L: Arrays, edges: Arrays, steps: int = MOST_STEPS, gain: float = GAIN
) -> Array:
    """``π``, shape (B_1, …, B_p), by EM from counts of released values.

    Parameters
    ----------
    counts : ndarray of shape (C_1, …, C_p)
    L : sequence of p ndarrays of shapes (C_j, B_j)
        Likelihood of each cell of released values given each bin.
    edges : sequence of p ndarrays
        Of the bins; EM starts with a flat density.
    steps : int
    gain : float
        Least rise of the log-likelihood, in nats, that continues.
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
        ratio = quotient(counts, mixed, where=possible)
        mass = mass * along(ratio, [matrix.T for matrix in L])
        mass /= mass.sum()
    return mass


def along(tensor: Array, matrices: Arrays) -> Array:
    """Apply one matrix to each axis of a tensor."""
    for matrix in matrices:  # each moves its axis to the end
        rest = tensor.shape[1:]
        tensor = (tensor.reshape(len(tensor), -1).T @ matrix.T).reshape(*rest, len(matrix))
    return tensor


def besides(mass: Array, factors: Arrays, j: int) -> Array:
    """``Σ π(b) Π_{i≠j} F_i(b_i)``, shape (b, B_j).

    From p factors of shapes (b, B_i).
    """
    rest = [factor for i, factor in enumerate(factors) if i != j] or [np.ones((len(factors[0]), 1))]
    others = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), rest)
    return others @ np.moveaxis(mass, j, -1).reshape(-1, mass.shape[j])
