"""Joint distribution analysis: reconstruct how originals are distributed in two or three attributes at once, and find the rare among them.

A salary of 90,000 is common, and so is an age of 20; both together are one person. Noise may hide each of them in a crowd and leave the
person alone, as cells are the emptier the more attributes span them: the higher the dimension, the more likely is disclosure.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``p`` | attributes taken together | | domingo2004 |
| ``T`` | directions in which the noise of p attributes is independent; the identity if theirs is | (p, p) | |
| ``L_j(y, b)`` | likelihood of bin b of direction j, averaged over the bin | (B_j,) | agrawal2001, section 3 |
| ``π`` | reconstructed probability of each cell of the grid | (B_1, …, B_p) | domingo2004 |
| step | ``π(b) ← π(b)/n Σ_y Π_j L_j(y, b_j) / Σ_b' π(b') Π_j L_j(y, b'_j)`` | | domingo2004; agrawal2001 with p directions |
| ``P(b | y)`` | ``∝ π(b) Π_j L_j(y, b_j)`` | (B_1, …, B_p) | liu2008, section 3.6 |
| ``x̂`` | mean of ``P(· | y)`` | (p,) | |
| region | for each direction the shortest interval with ``1 − (1 − c)/p`` of ``P(· | y)``: together they have c or more | p intervals | |
| claim | the region, if ``n`` times the ``π`` of all cells that it touches, or ought to, is at most ``rare`` | | liu2008, section 3.6 |

Where Gaussian noise is finer than the bins, an interval is ``y`` and what noise leaves about it with as much probability.

Attributes are taken ``dimensions`` at a time in the table's order (``data: columns:`` puts those side by side that belong together). Of
several groups' regions the one thought emptiest is claimed. How many records are claimed so, and how many lie where it is claimed, are
``rare_claimed`` and ``rare_disclosed``; a claim made at random would be right for ``rare`` records in n.

Coloured noise is no way out: its directions are found from its covariance, and of noise like the data the distribution is reconstructed
all the same (liu2008, section 3.7). Gaussian noise may have any covariance; any other law must be independent between attributes.

Reference: liu2008, sections 3.6 and 3.7, after domingo2004. Wins where attributes together leave space empty that each of them fills; with
one dimension it is ``map-estimate`` with a reconstructed prior, and it loses to attacks that see all attributes where these are many. Fails
under noise as large as the data, which leaves nobody in a rare cell. More ``bins`` find more, up to the noise's size, in more time. A grid
is learnt from the noise that it is then used on, so that claims under noise wider than its cells are right less often than ``confidence``
says: whom noise moved out of a crowd looks rare. How often is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray
from pydantic import Field, model_validator

from attacks._channel import Channel, Combined
from attacks._fastica import some_rows
from attacks._posterior import channels
from attacks.distribution_analysis import shortest
from attacks.mixture_estimate import least_noise, normal_prior
from auditor.numerics.linear_algebra import regression
from auditor.plugin import (
    Array,
    Cost,
    Indices,
    NoiseDensity,
    PluginParameters,
    Reconstruction,
    Regions,
    RowAttack,
    View,
    register,
    stream,
)

Bins = NDArray[np.bool_]
"""Which of some bins, or of some rows."""
BINS = {1: 100, 2: 24, 3: 12}
"""Of each direction, by how many there are: every step of EM goes through all cells, and so does every record."""
MOST_CELLS = 2**16
COUNTED = 3
"""Cells of released values for each bin: their width adds little to the noise."""
MOST_STEPS, GAIN = 500, 3.0
"""EM stops when a step gains less log-likelihood than this, in nats over all records: run to convergence, it makes spikes."""
FINEST = 1e-6
"""Least deviation of the noise, in shares of the range: of copies that give a value away."""
LEAST = 1e-250
"""Likelihood below which nothing can have led to a cell of released values."""
CHUNK_ROWS, READ_ROWS = 1024, 8192
"""Rows at once, of which every bin is looked at, or a mean is read off a surface: so many as stay in the cache."""
COARSE = 8
"""Points to each deviation of Gaussian noise between which posterior means are interpolated: right to a hundredth of one."""
FINE, MOST_TABLED = 128, 2**15
"""Points of a table of likelihoods for each deviation of Gaussian noise, and at most: a record is taken for the point nearest to it, which
moves its estimate by less than a 250th of a deviation."""


@register
class JointDistributionAnalysis(RowAttack):
    """Reconstructs the distribution of two or three attributes together, and claims where records are that few are like."""

    name = "joint-distribution-analysis"
    combines = True
    cost = Cost(1.5e-2, 1.2e-6)
    reference = "liu2008, section 3.7"
    assumes = "The adversary knows the law of the noise, and that records are independent draws of one distribution."
    wins = (
        "Wins on attributes that together leave space empty, whatever the colour of the noise, and finds the rare records in it; under "
        "noise as large as the data it claims hardly anybody."
    )

    class Parameters(PluginParameters):
        """The grid, and what counts as rare."""

        dimensions: Annotated[int, Field(ge=1, le=3)] = Field(2, description="attributes taken together")
        bins: Annotated[int, Field(ge=2)] | None = Field(None, description="bins of each; by default 100, 24 or 12")
        rare: Annotated[float, Field(gt=0)] = Field(5.0, description="most records that a claimed region may be thought to have")
        confidence: Annotated[float, Field(gt=0, lt=1)] = Field(0.95, description="posterior probability of a claimed region")

        @model_validator(mode="after")
        def _small(self) -> Any:
            cells = (self.bins or 0) ** self.dimensions
            if cells > MOST_CELLS:
                most = int(MOST_CELLS ** (1.0 / self.dimensions) + 1e-9)
                raise ValueError(f"makes a grid of {cells:,} cells; {self.dimensions} dimensions may have {most:,} bins each")
            return self

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the posterior on grids that are learnt from the coalition's copies."""
        given = self.parameters
        starts = range(0, view.width, given.dimensions)
        groups = [np.arange(start, min(start + given.dimensions, view.width)) for start in starts]
        seen = directions(view, groups)
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"), lambda copies: np.hstack(seen.copies(copies)))
        y = np.split(rows, rows.shape[1] // view.width, axis=1)
        n = view.released.count
        grids = [Grid.learnt(seen.channels, [copy[:, group] for copy in y], group, given.bins) for group in groups]
        return OnGrids(seen, [grid.tabled(n) for grid in grids], given.rare / n, given.confidence)


@dataclass(frozen=True)
class Directions:
    """Directions in which noise is independent, group by group, and what copies say along each.

    Attributes
    ----------
    W : ndarray of shape (N, kN) or None
        Of the combination that says all under Gaussian noise; None: the copies are looked at as they are.
    T, back : ndarrays of shape (N, N)
        From attributes to directions, and back.
    channels : sequence of N Channel
    """

    W: Array | None = field(repr=False)
    T: Array = field(repr=False)
    back: Array = field(repr=False)
    channels: Sequence[Channel] = field(repr=False)

    def copies(self, copies: Sequence[Array]) -> list[Array]:
        """Return the copies, or their combination alone, along the directions, shapes (b, N)."""
        return [np.asarray(np.hstack(copies) @ self.W.T @ self.T.T)] if self.W is not None else list(copies)


def directions(view: View, groups: Sequence[Indices]) -> Directions:
    """Return the directions of every group's noise.

    Raises
    ------
    NotApplicable
        The law of the noise is unknown, or is neither Gaussian nor independent between attributes.
    """
    identity = np.eye(view.width)
    if view.law is not None and view.law.distribution != "gaussian":
        return Directions(None, identity, identity, channels(view))
    W = least_noise(view)
    Sigma_r = normal_prior(view, W)[2]
    T, std = identity.copy(), np.zeros(view.width)
    for group in groups:
        T[np.ix_(group, group)], std[group] = independent(Sigma_r[np.ix_(group, group)])
    return Directions(W, T, np.asarray(np.linalg.inv(T)), [Combined(NoiseDensity("gaussian", float(s)), np.ones(1)) for s in std])


def independent(Sigma: Array) -> tuple[Array, Array]:
    """Return ``T``, with ones on its diagonal and zeros above, and deviations, shape (p,), such that ``T z`` has independent entries.

    Each attribute less its regression on those before it; ``Sigma``, of shape (p, p), may be singular.

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


@dataclass(frozen=True)
class Grid:
    """A group's distribution, flat in every cell of a grid.

    Attributes
    ----------
    places : ndarray of shape (p,)
        Which directions it spans.
    channels : sequence of p Channel
    edges : sequence of p ndarrays of shapes (B_j + 1,)
    mass : ndarray of shape (B_1, …, B_p)
        ``π``, sum 1.
    tables : sequence of p Tables or None
        What is looked up, if that is less work.
    surface : Surface or None
        What interpolates posterior means, if that is.
    """

    places: Indices = field(repr=False)
    channels: Sequence[Channel] = field(repr=False)
    edges: Sequence[Array] = field(repr=False)
    mass: Array = field(repr=False)
    tables: Sequence[Table | None] = field(repr=False)
    surface: Surface | None = field(repr=False, default=None)

    @classmethod
    def learnt(cls, every: Sequence[Channel], copies: Sequence[Array], places: Indices, bins: int | None) -> Grid:
        """Return what EM makes of rows of copies, each of shape (n, p), along the directions at these places."""
        count = bins or BINS[len(places)]
        found, edges, cells, values = [], [], [], []
        for j, place in enumerate(places):
            each = np.stack([copy[:, j] for copy in copies], axis=1)
            channel = told_apart(every[place], float(np.ptp(each)))
            found.append(channel)
            values.append(channel.observed(each))
            edges.append(spaced(values[-1], count, channel.noise.std))
            cells.append(spaced(values[-1], COUNTED * count, 0.0))
        counts = np.histogramdd(np.stack(values, axis=1), cells)[0]
        L = [channel.noise.likelihood((c[:-1] + c[1:]) / 2.0, e) for channel, c, e in zip(found, cells, edges, strict=True)]
        return cls(places, found, edges, reconstructed(counts, L, edges), [None] * len(places))

    def tabled(self, rows: int) -> Grid:
        """Return the grid with tables of likelihoods where so many rows are more work."""
        tables = [table_of(*each, rows) for each in zip(self.channels, self.edges, strict=True)]
        every = [table for table in tables if table is not None]
        return replace(self, tables=tables, surface=surface_of(self, every, rows) if len(every) == len(tables) else None)

    def along(self, copies: Sequence[Array]) -> list[Array]:
        """Return what the copies have of each direction, p arrays of shape (b, k)."""
        return [np.stack([copy[:, place] for copy in copies], axis=1) for place in self.places]

    def posterior(self, each: Sequence[Array]) -> tuple[list[Array], list[Array], Bins]:
        """Return the bins' probabilities, p arrays of shape (b, B_j), the means, p of shape (b,), and which rows are explained, (b,)."""
        parts = zip(self.channels, self.edges, self.tables, each, strict=True)
        L, weighed = zip(*(weights(c, y, e) if t is None else t.look_up(c.value(y)) for c, e, t, y in parts), strict=True)
        others = [besides(self.mass, L, j) for j in range(len(L))]
        total = np.einsum("ib,ib->i", L[0], others[0])
        explained = total > LEAST
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=explained)
        means = [scale * np.einsum("ib,ib->i", M, R) for M, R in zip(weighed, others, strict=True)]
        return [L_j * R * scale[:, None] for L_j, R in zip(L, others, strict=True)], means, explained

    def of_cells(self, chosen: Sequence[Bins]) -> Array:
        """Return the probability of the cells that are chosen in every direction, shape (b,), from p arrays of shape (b, B_j)."""
        factors = [each.astype(np.float64) for each in chosen]
        return np.asarray(np.einsum("ib,ib->i", factors[0], besides(self.mass, factors, 0)))

    def touched(self, low: Sequence[Array], high: Sequence[Array]) -> list[Bins]:
        """Return which bins bounds of shape (b,) touch in each of the p directions."""
        return [(e[:-1] <= b[:, None]) & (e[1:] >= a[:, None]) for e, a, b in zip(self.edges, low, high, strict=True)]


@dataclass(frozen=True)
class Table:
    """What ``weights`` returns of released values a step apart, for noise of which one number says all."""

    first: float
    step: float
    L: Array = field(repr=False)
    weighed: Array = field(repr=False)

    def look_up(self, y: Array) -> tuple[Array, Array]:
        """Return the rows of the values nearest to y."""
        place = np.clip(np.rint((y - self.first) / self.step), 0, len(self.L) - 1).astype(np.intp)
        return self.L[place], self.weighed[place]


def table_of(channel: Channel, edges: Array, rows: int) -> Table | None:
    """Return a table that reaches four deviations beyond the bins; None where rows are fewer than twice its points."""
    beyond = 4.0 * channel.noise.std
    points = int(FINE * (edges[-1] - edges[0] + 2.0 * beyond) / channel.noise.std) + 1
    if not channel.smooth or points > min(MOST_TABLED, rows // 2):
        return None
    grid, step = np.linspace(edges[0] - beyond, edges[-1] + beyond, points, retstep=True)
    return Table(float(grid[0]), float(step), *weights(channel.alone(), grid[:, None], edges))


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


def surface_of(grid: Grid, tables: Sequence[Table], rows: int) -> Surface | None:
    """Return what interpolates posterior means, of ``COARSE`` points to a deviation; None where there are hardly more rows."""
    axes = []
    for channel, edges in zip(grid.channels, grid.edges, strict=True):
        beyond = 4.0 * channel.noise.std
        points = int(COARSE * (edges[-1] - edges[0] + 2.0 * beyond) / channel.noise.std) + 2
        axes.append(np.linspace(edges[0] - beyond, edges[-1] + beyond, min(points, rows)))
    if np.prod([len(axis) for axis in axes]) > 0.75 * rows:
        return None
    L, weighed = zip(*(table.look_up(axis) for table, axis in zip(tables, axes, strict=True)), strict=True)
    total = along(grid.mass, L)  # Σ π(b) Π_j L_j(y_j, b_j), for all points of the grid one direction after the other
    sums = [along(grid.mass, [weighed[i] if i == j else L[i] for i in range(len(L))]) for j in range(len(L))]
    means = [np.divide(each, total, out=np.full_like(total, np.nan), where=total > LEAST) for each in sums]
    return Surface(np.array([axis[0] for axis in axes]), np.array([axis[1] - axis[0] for axis in axes]), means)


def weights(channel: Channel, copies: Array, edges: Array) -> tuple[Array, Array]:
    """Return each bin's likelihood, shape (b, B), and the same times the value's mean within the bin."""
    if channel.noise.std <= FINEST * (edges[-1] - edges[0]):  # given away: in the one bin that the value lies in
        y = channel.value(copies)
        place = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, len(edges) - 2)
        L = np.zeros((len(y), len(edges) - 1))
        L[np.arange(len(y)), place] = 1.0
        return L, L * y[:, None]
    L, means = channel.within(copies, edges)
    return L, L * means


def told_apart(channel: Channel, spread: float) -> Channel:
    """Return a channel that is not exact: what copies give away has noise of a millionth of their range."""
    least = FINEST * (spread or 1.0)
    return Combined(NoiseDensity("gaussian", least), np.eye(1)[0]) if channel.noise.std < least else channel


def spaced(values: Array, count: int, beyond: float) -> Array:
    """Return at most ``count + 1`` rising edges over the values and ``beyond`` on either side: half of them even, half at quantiles."""
    low, high = float(values.min()), float(values.max())
    reach = max(beyond, FINEST * ((high - low) or 1.0))
    even = np.linspace(low - reach, high + reach, count - count // 2 + 1)
    within = np.quantile(values, np.arange(1, count // 2 + 1) / (count // 2 + 1))
    return np.unique(np.concatenate([even, within]))


def beyond(channel: Channel, share: float) -> float:
    """Return how far Gaussian noise reaches with that probability; infinite for other laws."""
    return float(scipy.special.ndtri(0.5 + share / 2.0)) * channel.noise.std if channel.smooth else np.inf


def shorter(ends: tuple[Array, Array], y: Array, reach: float) -> tuple[Array, Array]:
    """Return both ends of an interval, or ``y ± reach`` where that is the shorter: bins cannot tell what is finer than they are."""
    fine = 2.0 * reach < ends[1] - ends[0]
    return np.where(fine, y - reach, ends[0]), np.where(fine, y + reach, ends[1])


def reconstructed(counts: Array, L: Sequence[Array], edges: Sequence[Array], steps: int = MOST_STEPS) -> Array:
    """Return ``π``, shape (B_1, …, B_p), by EM from counts of released values.

    Parameters
    ----------
    counts : ndarray of shape (C_1, …, C_p)
    L : sequence of p ndarrays of shapes (C_j, B_j)
        Likelihood of each cell of released values given each bin.
    edges : sequence of p ndarrays
        Of the bins; EM starts with a flat density.
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
        if likelihood - last < GAIN:
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


class OnGrids(Reconstruction):
    """Posterior means, intervals and claims, each group on its own grid."""

    def __init__(self, seen: Directions, grids: Sequence[Grid], rare: float, confidence: float) -> None:
        self._seen, self._grids, self._rare, self._confidence = seen, grids, rare, confidence

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return posterior means; what the copies alone say where no cell explains them."""
        size = CHUNK_ROWS if any(grid.surface is None for grid in self._grids) else READ_ROWS
        return self._in_parts(copies, self._means, size) @ self._seen.back.T

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array]:
        """Return both ends of intervals, shapes (b, N); under coloured noise of all that the directions' intervals leave, which is more."""
        low, high = np.moveaxis(self._in_parts(copies, lambda each: self._bounds(each, confidence)), -1, 0)
        plus, minus = np.clip(self._seen.back, 0.0, None), np.clip(self._seen.back, None, 0.0)
        return low @ plus.T + high @ minus.T, high @ plus.T + low @ minus.T

    def regions(self, copies: Sequence[Array]) -> Regions:
        """Return the emptiest group's region of every record, claimed where it is rare."""
        low, high = np.moveaxis(self._in_parts(copies, self._rarest), -1, 0)
        return Regions(self._seen.T, low, high, ~np.isnan(low[:, 0]))

    def _in_parts(self, copies: Sequence[Array], found: Callable[[list[Array]], Array], size: int = CHUNK_ROWS) -> Array:
        starts = range(0, max(1, len(copies[0])), size)
        return np.concatenate([found(self._seen.copies([copy[start : start + size] for copy in copies])) for start in starts])

    def _means(self, copies: Sequence[Array]) -> Array:
        out = np.empty_like(copies[0])
        for grid in self._grids:
            each = grid.along(copies)
            values = np.stack([channel.value(y) for channel, y in zip(grid.channels, each, strict=True)], axis=1)
            if grid.surface is None:
                _, means, explained = grid.posterior(each)
                found = np.where(explained, means, np.nan).T
            else:
                found = grid.surface.at(values)
            out[:, grid.places] = np.where(np.isnan(found), values, found)
        return out

    def _bounds(self, copies: Sequence[Array], confidence: float) -> Array:
        """Return bounds along each direction, shape (b, N, 2)."""
        out = np.empty((*copies[0].shape, 2))
        for grid in self._grids:
            each = grid.along(copies)
            P, _, explained = grid.posterior(each)
            for place, channel, e, y, P_j in zip(grid.places, grid.channels, grid.edges, each, P, strict=True):
                out[:, place] = np.stack(bounds(channel, e, y, P_j, explained, confidence), axis=1)
        return out

    def _rarest(self, copies: Sequence[Array]) -> Array:
        """Return the bounds that are claimed along each direction, shape (b, N, 2), infinite beside the group's; NaN where none is rare."""
        out, least = np.full((*copies[0].shape, 2), np.nan), np.full(len(copies[0]), self._rare)
        for grid in self._grids:
            each, p = grid.along(copies), grid.places.size
            share = 1.0 - (1.0 - self._confidence) / p
            P, _, explained = grid.posterior(each)
            # What has more than the share left out ought to be touched: it settles for nearly all records that they are in a crowd.
            likely = [P_j > 1.0 - share for P_j in P]
            (maybe,) = np.nonzero(explained & (grid.of_cells(likely) <= least))
            ends = [
                bounds(channel, e, y[maybe], P_j[maybe], explained[maybe], share)
                for channel, e, y, P_j in zip(grid.channels, grid.edges, each, P, strict=True)
            ]
            touched = grid.touched(*zip(*ends, strict=True))
            thought = grid.of_cells([a | b[maybe] for a, b in zip(touched, likely, strict=True)])
            rare = thought <= least[maybe]
            found, least[maybe[rare]] = maybe[rare], thought[rare]
            out[found] = -np.inf, np.inf
            out[found[:, None], grid.places] = np.stack([np.stack(end, axis=1) for end in ends], axis=1)[rare]
        return out


def bounds(channel: Channel, edges: Array, y: Array, P: Array, explained: Bins, share: float) -> tuple[Array, Array]:
    """Return both ends of each row's interval along one direction, shapes (b,); a point where no bin explains the row."""
    alone = channel.value(y)
    told = np.where(explained[:, None], P, 1.0 / P.shape[1])
    low, high = channel.cut(y, *shorter(shortest(told, edges, share), alone, beyond(channel, share)))
    return np.where(explained, low, alone), np.where(explained, high, alone)
