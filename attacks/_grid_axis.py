"""One axis of a grid: bins, and the likelihood ``L_j(y, b)`` of each bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, Indices, NoiseDensity

from ._channel import Channel, Combined

Bins = NDArray[np.bool_]
"""Mask of bins or rows."""
FINEST = 1e-6
"""Least noise deviation relative to the range, for exact copies."""
BEYOND = 4.0
"""Deviations of the noise by which tables extend beyond the bins."""
FINE, MOST_TABLED = 128, 2**15
"""Points of a likelihood table per deviation of Gaussian noise, and in total. Rounding to the nearest point moves an estimate by less
than 1/250 of a deviation."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a grid.

    Attributes
    ----------
    place : int
        Index of its direction.
    channel : Channel
    edges : ndarray of shape (B + 1,)
    table : Table or None
        Precomputed likelihoods, if faster.
    """

    place: int
    channel: Channel = field(repr=False)
    edges: Array = field(repr=False)
    table: Table | None = field(repr=False, default=None)

    def of(self, copies: Sequence[Array]) -> Array:
        """Return the copies along this direction, shape (b, k)."""
        return np.stack([copy[:, self.place] for copy in copies], axis=1)

    @property
    def given_away(self) -> bool:
        """Whether copies are exact, so one bin holds all likelihood."""
        return bool(self.channel.noise.std <= FINEST * (self.edges[-1] - self.edges[0]))

    def likelihoods(self, y: Array) -> Array:
        """Return each bin's likelihood, shape (b, B), from copies of shape (b, k)."""
        if self.table is not None:
            return np.asarray(self.table.L[self.table.place(self.channel.value(y))])
        return (
            self._in_one_bin(self.channel.value(y))
            if self.given_away
            else self.channel.likelihood(y, self.edges)
        )

    def weights(self, y: Array) -> tuple[Array, Array]:
        """Return each bin's likelihood, and its product with the bin's mean value.

        Shapes (b, B), from copies of shape (b, k).
        """
        if self.table is not None:
            place = self.table.place(self.channel.value(y))
            return self.table.L[place], self.table.weighed[place]
        if self.given_away:
            L, means = self._in_one_bin(self.channel.value(y)), self.channel.value(y)[:, None]
        else:
            L, means = self.channel.within(y, self.edges)
        return L, L * means

    def _in_one_bin(self, value: Array) -> Array:
        place = np.clip(
            np.searchsorted(self.edges, value, side="right") - 1, 0, len(self.edges) - 2
        )
        return np.asarray(np.eye(len(self.edges) - 1)[place])

    def touched(self, low: Array, high: Array) -> Bins:
        """Return the bins that intervals of shape (b,) touch, shape (b, B)."""
        return (self.edges[:-1] <= high[:, None]) & (self.edges[1:] >= low[:, None])

    def points(self, fine: int) -> tuple[float, float, float]:
        """Return both ends of a table and its number of points."""
        std = self.channel.noise.std
        low, high = self.edges[0] - BEYOND * std, self.edges[-1] + BEYOND * std
        return low, high, fine * (self.edges[-1] - self.edges[0] + 2.0 * BEYOND * std) / std

    def tabled(self, rows: int) -> Axis:
        """Return the axis with a table if there are enough rows."""
        low, high, points = self.points(FINE)
        if not self.channel.smooth or int(points) + 1 > min(MOST_TABLED, rows // 2):
            return self
        grid, step = np.linspace(low, high, int(points) + 1, retstep=True)
        return replace(
            self, table=Table(grid, float(step), replace(self, channel=self.channel.alone()))
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Likelihoods of evenly spaced released values, computed on first use."""

    values: Array = field(repr=False)
    step: float
    axis: Axis = field(repr=False)

    @cached_property
    def L(self) -> Array:
        """Each bin's likelihood, shape (P, B)."""
        return self.axis.likelihoods(self.values[:, None])

    @cached_property
    def weighed(self) -> Array:
        """Likelihood times the mean within the bin, shape (P, B)."""
        return self.axis.weights(self.values[:, None])[1]

    def nearest(self, y: Array) -> tuple[Array, Array]:
        """Return ``weights`` of the values nearest to y, shapes (b, B), for few y."""
        return self.axis.weights(self.values[self.place(y)][:, None])

    def place(self, y: Array) -> Indices:
        """Return the indices of the values nearest to y."""
        return np.asarray(
            np.clip(np.rint((y - self.values[0]) / self.step), 0, len(self.values) - 1),
            dtype=np.intp,
        )


def smoothed(channel: Channel, spread: float) -> Channel:
    """Return a noisy channel: exact copies get a millionth of their range."""
    least = FINEST * (spread or 1.0)
    return (
        Combined(NoiseDensity("gaussian", least), np.eye(1)[0])
        if channel.noise.std < least
        else channel
    )


def spaced(values: Array, count: int, beyond: float) -> Array:
    """Return at most ``count + 1`` ascending edges that cover the values.

    They extend ``beyond`` on either side. Half are evenly spaced, half at quantiles.
    """
    low, high = float(values.min()), float(values.max())
    reach = max(beyond, FINEST * ((high - low) or 1.0))
    even = np.linspace(low - reach, high + reach, count - count // 2 + 1)
    within = np.quantile(values, np.arange(1, count // 2 + 1) / (count // 2 + 1))
    return np.unique(np.concatenate([even, within]))
