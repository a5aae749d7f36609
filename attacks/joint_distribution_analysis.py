r"""Joint posteriors of two or three attributes on a grid.

Joint distribution of two or three attributes on a grid, fitted by EM.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``L_j(y, b)`` | likelihood of bin b of direction j, averaged over the bin | (B_j,) | agrawal2001 |
| ``π`` | reconstructed probability of each cell of the grid | (B_1, …, B_p) | domingo2004 |
| step | ``π(b) ← π(b)/n Σ_y Π_j L_j(y, b_j) / Σ_b' π(b') Π_j L_j(y, b'_j)`` | | domingo2004; agrawal2001 with p directions |
| ``P(b | y)`` | ``∝ π(b) Π_j L_j(y, b_j)`` | (B_1, …, B_p) | liu2008, section 3.6 |

Joint distribution analysis of two or three attributes at once.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | attributes analysed together | | domingo2004 |
| ``T`` | directions with independent noise; the identity if the p attributes' noise is independent | (p, p) | |
| ``π, P(b | y)`` | prior and posterior of each cell of the grid (``joint_distribution_analysis``) | (B_1, …, B_p) | domingo2004 |
| ``x̂`` | mean of ``P(· | y)`` | (p,) | |
| region | per direction the shortest interval with ``1 − (1 − c)/p`` of ``P(· | y)``: jointly at least c | p intervals | |
| claim | the region, if ``n`` times the ``π`` of all its cells and all likely cells is at most ``rare`` | | liu2008, section 3.6 |

If Gaussian noise is finer than the bins, an interval is the noise's quantile interval about ``y``.
Attributes are grouped ``dimensions`` at a time in the table's order. The group with the emptiest
region is claimed. A random claim is correct for ``rare`` records in n.

Gaussian noise may have any covariance (liu2008, section 3.7). Any other law must be independent
between attributes.

Reference: domingo2004. The grid is fitted to the noise that it is used on, so claims under noise wider
than its cells are correct less often than ``confidence``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from auditor.adversary.view import LEAST_LIKELIHOOD, expected_mass
from auditor.numerics.linear_algebra import quotient, regression
from auditor.numerics.statistics import root
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Flags,
    Indices,
    NoiseDensity,
    Pair,
    PluginParameters,
    Reconstruction,
    Regions,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

from ._channel import Channel, Combined, alone, channels
from ._fits import some_rows
from .attribute_posterior import shortest
from .mixture_estimate import least_noise, normal_prior

BINS = {1: 100, 2: 24, 3: 12}
"""Bins per direction, by the number of directions. Time grows with the number of cells."""
COUNTED = 3
"""Cells of released values per bin. Their width adds little to the noise."""
MOST_STEPS, GAIN = 500, 3.0
"""EM stops when a step gains less log-likelihood, in nats over all records. Run to convergence, it
makes spikes."""
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
        edges = [axis.edges for axis in axes]
        return cls(axes, expected_mass(counts, L, edges, MOST_STEPS, GAIN)[0])

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
        return P, quotient(1.0, total, where=total > LEAST_LIKELIHOOD)

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


def besides(mass: Array, factors: Arrays, j: int) -> Array:
    """``Σ π(b) Π_{i≠j} F_i(b_i)``, shape (b, B_j).

    From p factors of shapes (b, B_i).
    """
    rest = [factor for i, factor in enumerate(factors) if i != j] or [np.ones((len(factors[0]), 1))]
    others = reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), rest)
    return others @ np.moveaxis(mass, j, -1).reshape(-1, mass.shape[j])


MOST_CELLS = 2**16
CHUNK_ROWS = 4096


@register
class JointDistributionAnalysis(RowAttack):
    """Joint distribution of a few attributes, with claims of rare records."""

    name = "joint-distribution-analysis"
    combines = True
    cost = Cost(1e-2, 8e-7)
    reference = "liu2008, section 3.7"
    assumes = "The adversary knows the law of the noise, and that records are independent draws of one distribution."
    wins = (
        "Wins on attributes that together leave space empty, whatever the colour of the noise, and finds the rare records in it; under "
        "noise as large as the data it claims hardly anybody."
    )

    class Parameters(PluginParameters):
        """Grid and threshold of rarity."""

        dimensions: int = Field(2, ge=1, le=3)
        """attributes taken together"""
        bins: int | None = Field(None, ge=2)
        """bins of each; by default 100, 24 or 12"""
        rare: PositiveFloat = 5.0
        """most records that a claimed region may be thought to have"""
        confidence: float = Field(0.95, gt=0, lt=1)
        """posterior probability of a claimed region"""

        @model_validator(mode="after")
        def _small(self) -> Any:
            cells = (self.bins or 0) ** self.dimensions
            if cells > MOST_CELLS:
                most = int(MOST_CELLS ** (1.0 / self.dimensions) + 1e-9)
                raise ValueError(
                    f"makes a grid of {cells:,} cells; {self.dimensions} dimensions may have {most:,} bins each"
                )
            return self

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        given = self.parameters
        starts = range(0, view.width, given.dimensions)
        groups = [np.arange(start, min(start + given.dimensions, view.width)) for start in starts]
        seen = directions(view, groups)
        rows = some_rows(
            blocks,
            stream(view.seed, self.name, "rows"),
            lambda copies: np.hstack(seen.copies(copies)),
        )
        y = np.split(rows, rows.shape[1] // view.width, axis=1)
        n = view.released.count
        grids = [Grid.fitted(seen.channels, y, group, given.bins) for group in groups]
        return OnGrids(seen, grids, given.rare / n, given.confidence)


@unprinted
class OnGrids(Reconstruction):
    """Posterior means, intervals and claims, one grid per group."""

    seen: Directions
    grids: Sequence[Grid]
    rare: float
    confidence: float

    def rows(self, copies: Arrays) -> Array:
        return self._in_parts(copies, self._means) @ self.seen.back.T

    def intervals(self, copies: Arrays, confidence: float) -> Pair:
        """Both ends.

        Under coloured noise the box of the directions' intervals.
        """
        low, high = np.moveaxis(
            self._in_parts(copies, lambda each: self._bounds(each, confidence)), -1, 0
        )
        plus, minus = np.clip(self.seen.back, 0.0, None), np.clip(self.seen.back, None, 0.0)
        return low @ plus.T + high @ minus.T, high @ plus.T + low @ minus.T

    def regions(self, copies: Arrays) -> Regions:
        low, high = np.moveaxis(self._in_parts(copies, self._rarest), -1, 0)
        return Regions(self.seen.T, low, high, ~np.isnan(low[:, 0]))

    def _in_parts(self, copies: Arrays, found: Callable[[list[Array]], Array]) -> Array:
        starts = range(0, max(1, len(copies[0])), CHUNK_ROWS)
        parts = ([copy[start : start + CHUNK_ROWS] for copy in copies] for start in starts)
        return np.concatenate([found(self.seen.copies(part)) for part in parts])

    def _means(self, copies: Arrays) -> Array:
        out = np.empty_like(copies[0])
        for grid in self.grids:
            out[:, grid.places] = grid.means(copies)
        return out

    def _bounds(self, copies: Arrays, confidence: float) -> Array:
        out = np.empty((*copies[0].shape, 2))
        for grid in self.grids:
            P, explained = grid.posterior(copies)
            for axis, P_j in zip(grid.axes, P, strict=True):
                found = bounds(axis, axis.of(copies), P_j, explained, confidence)
                out[:, axis.place] = np.stack(found, axis=1)
        return out

    def _rarest(self, copies: Arrays) -> Array:
        """Claimed bounds along each direction, (b, N, 2).

        NaN without a claim.
        """
        out, least = np.full((*copies[0].shape, 2), np.nan), np.full(len(copies[0]), self.rare)
        for grid in self.grids:
            share = 1.0 - (1.0 - self.confidence) / len(grid.axes)
            P, explained = grid.posterior(copies)
            # excludes nearly all records
            likely = [P_j > 1.0 - share for P_j in P]
            (maybe,) = np.nonzero(explained & (grid.of_cells(likely) <= least))
            if not maybe.size:
                continue
            ends = [
                bounds(axis, axis.of(copies)[maybe], P_j[maybe], explained[maybe], share)
                for axis, P_j in zip(grid.axes, P, strict=True)
            ]
            touched = [axis.touched(*end) for axis, end in zip(grid.axes, ends, strict=True)]
            thought = grid.of_cells([a | b[maybe] for a, b in zip(touched, likely, strict=True)])
            rare = thought <= least[maybe]
            found, least[maybe[rare]] = maybe[rare], thought[rare]
            out[found] = -np.inf, np.inf
            out[found[:, None], grid.places] = np.stack(
                [np.stack(end, axis=1) for end in ends], axis=1
            )[rare]
        return out


def bounds(axis: Axis, y: Array, P: Array, explained: Flags, share: float) -> Pair:
    """Both ends of each row's interval along one direction.

    A point if unexplained.
    """
    channel = axis.channel
    alone = channel.value(y)
    low, high = shortest(np.where(explained[:, None], P, 1.0 / P.shape[1]), axis.edges, share)
    if channel.smooth:  # the interval of finer noise may be shorter
        noise, end = channel.noise, 0.5 + share / 2.0
        reach = root(lambda t: float(noise.cdf(np.array(t))) - end, 0.0, 40.0 * noise.std)
        fine = 2.0 * reach < high - low
        low, high = np.where(fine, alone - reach, low), np.where(fine, alone + reach, high)
    low, high = channel.possible(y, low, high)
    return np.where(explained, low, alone), np.where(explained, high, alone)


@unprinted
class Directions:
    """Directions with independent noise, and one channel for each.

    Attributes
    ----------
    TW : ndarray of shape (N, kN) or None
        From copies to the sufficient combination along the directions; None: unchanged.
    T, back : ndarrays of shape (N, N)
        From attributes to directions, and back.
    channels : sequence of N Channel
    """

    TW: Array | None
    T: Array
    back: Array
    channels: Sequence[Channel]

    def copies(self, copies: Arrays) -> list[Array]:
        """Copies, or their sufficient combination, along the directions."""
        if self.TW is None:
            return list(copies)
        parts = np.split(self.TW, len(copies), axis=1)
        found = sum(part @ copy.T for copy, part in zip(copies, parts, strict=True))
        return [np.asarray(found).T]


def directions(view: View, groups: Sequence[Indices]) -> Directions:
    """Directions with independent noise within every group.

    ``NotApplicable`` if there is no law, or one neither Gaussian nor independent.
    """
    identity = np.eye(view.width)
    if view.law is not None and view.law.distribution != "gaussian":
        return Directions(None, identity, identity, channels(view))
    W = least_noise(view)
    Sigma_r = normal_prior(view, W)[2]
    T, std = identity.copy(), np.zeros(view.width)
    for group in groups:
        T[np.ix_(group, group)], std[group] = independent(Sigma_r[np.ix_(group, group)])
    return Directions(
        T @ W,
        T,
        np.asarray(np.linalg.inv(T)),
        [Combined(NoiseDensity("gaussian", float(s)), np.ones(1)) for s in std],
    )


def independent(Sigma: Array) -> Pair:
    """``T``, unit lower triangular, and the deviations of ``T z``.

    ``T z`` has independent entries: each attribute less its regression on the attributes before it.
    ``Sigma``, shape (p, p), may be singular.

    Examples
    --------
    >>> T, std = independent(np.array([[4.0, 2.0], [2.0, 2.0]]))
    >>> T.tolist(), std.tolist()
    ([[1.0, 0.0], [-0.5, 1.0]], [2.0, 1.0])
    """
    T = np.eye(len(Sigma))
    for j in range(1, len(Sigma)):
        T[j, :j] = -regression(Sigma[j : j + 1, :j], Sigma[:j, :j])
    return T, np.sqrt(np.clip(np.einsum("ij,jk,ik->i", T, Sigma, T), 0.0, None))
