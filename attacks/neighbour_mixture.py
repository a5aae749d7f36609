"""Joint posterior mean given a record and the prediction of it from other rows.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``u_t`` | row t of the coalition's combined copy, in coordinates with independent noise of variances s | (r,) | ``mixture_estimate`` |
| ``d_t`` | posterior mean of ``u_t`` given row t alone, and its normal scores | (2r,) | ``mixture_estimate`` |
| ``w_t`` | best linear prediction of ``u_t`` from other rows and lines, by taps fitted without row t's fold | (r,) | ``serial_filter`` |
| ``c_t`` | predictions by one chain per attribute, in the coordinates of u | (r,) | ``_chain`` |
| ``f_t`` | ``c_t``, 1, and means of d in ``WINDOWS`` without row t | (F,) | |
| ``g_t`` | by shown column and pair: shrunk means of ``u_t`` in other parts of the group, or in near rows | (J, r) | ``fitted_groups`` |
| ``P_t`` | nonnegative sum of ``g_t`` and the best average of ``w_t`` and ``c_t`` with a ridge regression of the rest on f | (r,) | |
| ``p_t`` | leading principal components of the predictions that are better than the mean | (c,) | |
| ``v_t`` | ``[u_t, p_t]``, of noise variances ``[s, 0]`` | (r + c,) | |
| ``α, m, V`` | mixture of the noise-free v, by extreme deconvolution; its size maximises the likelihood of u given p | | bovy2011 |
| ``x̂_t`` | average of means given the filter, ``u_t``, ``v_t``, all ``P_t`` (linear), one attribute's, and the chain | (N,) | bovy2011 |
| risk | ``E(x̂ − y)² + 2 tr(∂x̂/∂y Sigma_r)`` by attribute, and the coefficients' noise: the weights minimise it | | stein1981 |

Rows are neighbours in the table's order (``order:`` sorts it).
``P_t`` is fitted without row t's fold and free of its noise. Fitted to at most
20,000 rows, chains to 2,048 of the first block. In a panel of units of equally
many rows, windows and chains stay within units. If neither filter nor chains nor groups use other
rows, or ``P`` saves less than ``LEAST_SAVED`` of a linear error, the attack is ``mixture-estimate``.
The share that clearer copies know from other rows bounds the saving from noisier copies of the release.

Reference: bovy2011; huang2005, section 3, for serial dependence. Wins on ordered records of skewed,
clustered or heaped attributes, random walks, cycles and codes of designs, households and panels,
and where shown columns (``shown:``, ``unit:``, the calendar of ``order:``) group or order similar
records. Other noise is treated as Gaussian.
*Not checked*: independent noise between rows, and constant dependence along the rows.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.numerics.linear_algebra import clip_to_psd, descending_eigen, quotient, regression
from auditor.plugin import (
    Array,
    Cost,
    Estimated,
    Indices,
    Perfect,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
    stream,
    unprinted,
)

from ._chain import FEW, INDEPENDENT, MOVES, OVERLAP, Chain, estimates, fitted_chain, independent
from ._deconvolution import Mixture, NoisyRows, Posterior
from ._fits import MOST_ROWS, fitted_once
from ._lattice import OnLattices, least_risk
from ._spectra import FOLDS
from .mixture_estimate import (
    MixtureEstimate,
    PosteriorMean,
    Seen,
    fitted_prior,
    gaussian,
    on_lattices,
)
from .serial_filter import LEAST_NOISE, Filtered, SerialFilter
from .trend_smoother import check_rows, smoothed

WINDOWS = (1, 3, 8, 20, 60)
"""Rows on either side of a mean."""
MOST_WINDOWED = 12
"""Coordinates with means among the features, the most alike in adjacent rows."""
LEVELS = (np.arange(200) + 0.5) / 200
"""Quantiles of a map to normal scores."""
FEWEST_ROWS = 100
RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
"""Tried ridges per row, in units of the features' variance."""
STRETCH = 2_000
"""Least rows of a stretch, whose neighbours are read too."""
PREDICTED = (2, 8)
"""Numbers of components ``c``, one mixture each. More cost rows per covariance."""
SURE_OF = 3.0
"""Standard errors by which a prediction must be better than the mean."""
LEAST_SAVED, FEW_ROWS = 0.01, 5_000
"""Least share of an attribute's linear error that predictions must save; rows of a first look."""
MOST_SHOWN, MOST_PAIRED = 20, 8
"""Most shown columns that group records, and that do so in pairs."""
FEW_NUMBERS, NEAREST = 4, (5, 9, 17, 33, 65)
"""Most shown numbers that group records in pairs, and numbers of nearest rows that are averaged."""
GROUP_ALARM = 1e-3
"""Chance that groups without differences show some."""
CHAINED = 10.0
"""Approximate number of fitted coefficients of a chain."""
TINY = 1e-300
PROBE = 1e-3
"""Step of numerical derivatives, in deviations of the noise."""
Estimate = Callable[[], Array]
"""Function to estimates of shape (b, N)."""
Stretch = tuple[int, Sequence[Array], Indices]
"""Copies from a place of the table, and rows with all neighbours."""


@register
class NeighbourMixture(RowAttack):
    """Mixture over a record and its prediction from other rows."""

    name = "neighbour-mixture"
    attack_kind = "serial"
    serial = combines = True
    cost = Cost(2e-2, 6e-6)
    reference = "bovy2011; huang2005, section 3"
    knowledge = (Perfect.name, Estimated.name)
    assumes = (
        "Rows follow one another (time, place, a sorted file), or shown columns group them; the adversary knows the law of the noise, "
        "which is independent between rows; the prior is learnt from the copies."
    )
    wins = (
        "Wins on ordered records whose attributes are skewed, clustered or heaped, and where groups by shown columns differ; on normal "
        "data it is close to serial-filter, on records in no order and no groups it is mixture-estimate."
    )

    class Parameters(PluginParameters):
        """Size of the mixture."""

        components: Annotated[int, Field(ge=2, le=64)] = Field(
            16, description="most components of the mixture"
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        check_rows(view, 1, sys.maxsize)
        most, count = self.parameters.components, view.released.count
        mixture = MixtureEstimate(MixtureEstimate.Parameters(components=most))
        seen = Seen.of(view)
        s = 1.0 - seen.pencil.share
        if count < FEWEST_ROWS or not s.any() or view.starts.get("alone"):
            return mixture.fit(view, blocks)
        filtered = SerialFilter(SerialFilter.Parameters()).fit(view, blocks)
        groups = [*fitted_groups(shown_values(view), map(seen.coordinates, blocks))]
        release, basis = view.starts.setdefault("release", {}), seen.pencil.basis
        undecided = "alone" not in view.starts
        bound = np.ones(1) if groups else release.get("known", np.ones(1))
        if undecided and saved(bound, s, basis) < LEAST_SAVED:
            view.starts["alone"] = True
            return mixture.fit(view, blocks)
        start = seen.coordinates(next(iter(blocks)))
        others, noise = bool(groups or filtered.serial_rows), basis**2 @ s
        chains = fitted_chains(view, seen.values(start), noise, filtered.lines.period, others)
        if not (others or any(chain.dependent for chain in chains)):
            return mixture.fit(view, blocks)
        alone = gaussian(mixture, view, blocks)
        alike = np.abs((start[1:] * start[:-1]).mean(axis=0))
        windowed = np.argsort(-alike, kind="stable")[:MOST_WINDOWED]
        smooth, own = np.zeros((0, 0, s.size)), 0.0 * s
        if len(start) == count <= FEW_ROWS:
            x, h = smoothed(start.T, s, trend=False)
            rest = quotient(x - h * start.T, 1.0 - h, where=1.0 - h > LEAST_NOISE)
            smooth, own = np.array([x.T, rest.T]), h.mean(axis=1)
        spread = start[:: max(1, len(start) // MOST_ROWS)]
        knots = np.quantile(alone.posterior.mean(spread)[:, windowed], LEVELS, axis=0)
        near = Neighbourhood(alone, filtered, chains, windowed, knots, count, groups, smooth)
        for most_rows in (FEW_ROWS, MOST_ROWS)[not undecided or count <= MOST_ROWS :]:
            some = [*samples(near.reach, blocks, min(1.0, most_rows / count))]
            rows = near.of(some)
            u = rows.u
            alike = rows.f[:, : rows.f.shape[1] - len(groups) * u.shape[1]]
            B = ridge_by_fold(
                alike, u, rows.fold, len(WINDOWS) * windowed.size, 2 + len(smooth) // 2
            )
            B = with_groups(B, rows.f, u, rows.fold)
            P = predicted(rows.f, rows.fold, B)
            known = u.var(axis=0) - ((u - P) ** 2).mean(axis=0)
            known = np.clip(known / np.maximum(1.0 - s, TINY), 0.0, 1.0)
            release["known"] = np.minimum(known.max(), release.get("known", np.ones(1)))
            if undecided and saved(known, s, basis) < LEAST_SAVED:
                view.starts["alone"] = True
                return mixture.fit(view, blocks)
        view.starts["alone"] = False
        unit, A_1 = by_unit(seen)
        if "predictions" not in view.starts:
            maps = useful(u, P)
            maps.append(maps[0] @ maps[0].T @ A_1.T)
            view.starts["predictions"] = [seen.pencil.inverse.T @ to for to in maps]
        *joint, single = (basis.T @ each for each in view.starts["predictions"])
        posteriors, each = list[tuple[OnLattices, Array]](), list[OnLattices]()
        for to in joint:
            prior, v = joined(u, P @ to, s, np.diag(1.0 - s))
            if posteriors:
                A = scipy.linalg.block_diag(basis, np.eye(to.shape[1]))
                prior = fitted_prior(self.name, prior, v, A, most, (v.u, v.s, A))
            A = np.hstack([basis, np.zeros((view.width, to.shape[1]))])
            kind = f"{self.name} {len(posteriors)}"
            posteriors.append((on_lattices(view, kind, prior, v, A, seen.mu), to))
        noise = A_1**2 @ s
        for a, pair in enumerate(np.stack([(u @ A_1.T).T, (P @ single).T], axis=2)):
            K = A_1[[a]] * (1.0 - s) @ A_1[[a]].T
            prior, v = joined(pair[:, :1], pair[:, 1:], noise[a : a + 1], K)
            kind = f"{self.name} {view.attributes[a]}"
            prior = fitted_prior(kind, prior, v, np.eye(2), most, (v.u, v.s))
            A = np.array([[unit[a], 0.0]])
            each.append(on_lattices(view, kind, prior, v, A, seen.mu[a : a + 1], a))
        made = WithNeighbours(near, B, posteriors, single, each, np.zeros((0, 0)))
        z = stream(view.seed, self.name, "probe").normal(size=u.shape) * np.sqrt(s)
        moved, step = u + PROBE * z, PROBE * z @ basis.T
        stirred = rows._replace(
            u=moved,
            d=alone.posterior.mean(moved),
            wiener=rows.wiener + step @ filtered.own.T,
            smooth=rows.smooth + (PROBE * z * own @ basis.T)[:, : rows.smooth.shape[1]],
            chained=rows.chained + step * rows.share,
        )
        here, there = ([one() for one in made.each(those, P)] for those in (rows, stirred))
        # fitted coefficients pass more noise, as in Mallows' C_p
        joints = [alone.placed.first, *(one for one, _ in posteriors)]
        fitted = [filtered.lines.leverage * len(u), *(one.parameters for one in joints)]
        fitted += [np.hstack([one.parameters for one in each])]
        fitted += [np.full(view.width, CHAINED)] * (1 + len(smooth) // 2)
        slopes = [
            ((b - a) * step).mean(axis=0) / PROBE**2 + unit**2 * noise * k / len(u)
            for a, b, k in zip(here, there, fitted, strict=True)
        ]
        weights = least_risk(np.array(here) - seen.values(u), np.array(slopes))
        return replace(made, weights=weights)


class Rows(NamedTuple):
    """Rows with features of others.

    Attributes
    ----------
    u, d : ndarrays of shape (b, r)
    f : ndarray of shape (b, F)
    wiener, chained, share : ndarrays of shape (b, N)
        Estimates of filter and chains, and the share of an entry in its chain's estimate.
    smooth : ndarray of shape (b, N)
        Estimates by Matérn spectra, or shape (b, 0) without.
    fold : ndarray of shape (b,)
    """

    u: Array
    d: Array
    f: Array
    wiener: Array
    chained: Array
    share: Array
    smooth: Array
    fold: Indices


@unprinted
class Neighbourhood:
    """Rows of copies in coordinates, and the features of other rows.

    Windows average the coordinates ``windowed`` of d within groups of ``group`` rows; ``knots``, shape
    (200, d), are their quantiles. The table has ``count`` rows.
    """

    alone: PosteriorMean
    filtered: Filtered
    chains: Sequence[Chain]
    windowed: Indices
    knots: Array
    count: int
    groups: Sequence[Groups | Near]
    smooth: Array

    @property
    def reach(self) -> int:
        """Rows before and after a row that its features depend on."""
        return max(self.filtered.neighbours, OVERLAP, *WINDOWS)

    def folds(self, rows: Indices) -> Indices:
        """Folds, quarters of the table.

        Neighbours' features contain a row's own noise, so few may be in other folds.
        """
        return np.clip(rows * FOLDS // self.count, 0, FOLDS - 1)

    def of(self, stretches: Iterable[Stretch]) -> Rows:
        """Rows of all stretches."""
        held, seen = list(stretches), self.alone.seen
        u = [seen.coordinates(copies) for _, copies, _ in held]
        y = ((seen.values(each), first) for each, (first, *_) in zip(u, held, strict=True))
        parts = map(self._with_others, held, u, estimates(self.chains, y))
        return Rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _with_others(self, stretch: Stretch, u: Array, along: Array) -> Rows:
        first, copies, rows = stretch
        seen, filtered = self.alone.seen, self.filtered.at(first)
        fold, d = self.folds(first + np.arange(len(u))), self.alone.posterior.mean(u)
        near = d[:, self.windowed]
        near = np.hstack([near, normal_scores(near, self.knots)])
        means = around(near, rows, first, filtered.lines.period)
        wiener, w = filtered.crossed(copies, fold)
        c, chained, share = along[:, rows]
        w, c = ((each - seen.mu) @ seen.pencil.inverse.T for each in (w[rows], c))
        m = smooth = w[:, :0]
        if len(self.smooth):
            x, m = self.smooth[:, first + rows]
            smooth = seen.values(x)
        f = np.hstack([w, m, c, np.ones((len(rows), 1)), means])
        f = np.hstack([f, *(g.at(first + rows) for g in self.groups)])
        return Rows(u[rows], d[rows], f, wiener[rows], chained, share, smooth, fold[rows])


class Groups(NamedTuple):
    """Groups of records in ``FOLDS`` parts, and predictions of a part by the others.

    Attributes
    ----------
    parts : ndarray of shape (n,)
        ``FOLDS`` times the group, plus the part.
    effects : ndarray of shape (FOLDS K, r)
    """

    parts: Indices
    effects: Array

    def at(self, rows: Indices) -> Array:
        """Predictions of some rows, shape (b, r)."""
        return self.effects[self.parts[rows]]


class Near(NamedTuple):
    """Rows near by shown numbers.

    Attributes
    ----------
    points : ndarray of shape (n, d)
    tree : cKDTree
        Of the points.
    u : ndarray of shape (n, r)
    weights : ndarray of shape (len(NEAREST), r)
        Of the means of other rows among the nearest.
    """

    points: Array
    tree: Any
    u: Array
    weights: Array

    def means(self, rows: Indices) -> Array:
        """Means of other rows among the nearest, shape (len(NEAREST), b, r)."""
        near = self.tree.query(self.points[rows], min(NEAREST[-1], len(self.u)))[1]
        others = (near != rows[:, None]).astype(np.float64)
        sums = [
            (np.einsum("bk,bkr->br", others[:, :k], self.u[near[:, :k]]), others[:, :k].sum(axis=1))
            for k in NEAREST
        ]
        return np.array([total / count[:, None] for total, count in sums])

    def at(self, rows: Indices) -> Array:
        """Predictions of some rows, shape (b, r)."""
        return np.asarray(np.einsum("kr,kbr->br", self.weights, self.means(rows)))


def fitted_groups(
    shown: Sequence[NDArray[np.generic]], blocks: Iterable[Array]
) -> Iterator[Groups | Near]:
    """Yield groups by shown columns whose means of u differ, and by pairs of the first of these.

    Also near rows by shown numbers. ``blocks`` yields rows of u.
    """
    if not shown:
        return
    u, kept, numbers = np.concatenate([*blocks]), list[Indices](), list[Array]()
    for values in shown[:MOST_SHOWN]:
        if values.dtype.kind == "f":
            ranks = np.argsort(np.argsort(values, kind="stable"))
            numbers.append(ranks / len(ranks))
            values = ranks // math.isqrt(len(ranks))
        codes = np.unique(values, return_inverse=True)[1]
        if (found := random_effects(codes, u)) is not None:
            kept.append(codes)
            yield found
    for a, b in combinations(kept[:MOST_PAIRED], 2):
        codes = np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]
        if (found := random_effects(codes, u)) is not None:
            yield found
    for some in combinations(numbers[:FEW_NUMBERS], 2):
        if (near := near_rows(np.column_stack(some), u)) is not None:
            yield near


def near_rows(points: Array, u: Array) -> Near | None:
    """Near rows by points, shape (n, d), or None if u does not resemble them.

    Each coordinate of u uses the mean of least error in evenly spread rows.
    """
    near = Near(points, scipy.spatial.cKDTree(points), u, np.zeros((len(NEAREST), u.shape[1])))
    rows = np.arange(0, len(u), math.ceil(len(u) / FEW_ROWS))
    means, own = near.means(rows), u[rows]
    share = np.clip((means * own).sum(axis=1) / ((means**2).sum(axis=1) + TINY), 0.0, 1.0)
    agreed = share[:, None] * means * own
    sure = agreed.sum(axis=1) > SURE_OF * np.sqrt(2.0 * (agreed**2).sum(axis=1))
    best = np.argmin(((own - share[:, None] * means) ** 2).mean(axis=1), axis=0)
    chosen = (np.arange(len(NEAREST))[:, None] == best) & sure
    near.weights[chosen] = share[chosen]
    return near if chosen.any() else None


def random_effects(codes: Indices, u: Array) -> Groups | None:
    """Groups by codes from 0, or None if their means do not differ.

    ``E[u] = Σ u / (m + ω²/τ²)`` by m rows in other parts, with the variances τ² between and ω² within
    groups by analysis of variance.
    """
    K, n = codes.max() + 1, len(codes)
    if not 1 < K < n:
        return None
    # parts of at most FOLDS rows have one each
    parts = FOLDS * codes + np.argsort(np.argsort(codes, kind="stable")) % FOLDS
    m, *sums = (np.bincount(parts, x, FOLDS * K).reshape(K, FOLDS) for x in (None, *u.T))
    size, each = m.sum(axis=1), np.stack(sums, axis=2)
    total = each.sum(axis=1)
    between = (total**2 / size[:, None]).sum(axis=0)
    within = ((u**2).sum(axis=0) - between) / (n - K) + TINY
    excess = (between - total.sum(axis=0) ** 2 / n) / (K - 1) - within
    chance = scipy.special.fdtrc(K - 1, n - K, 1.0 + excess / within)
    ratio = (n - size @ size / n) / (K - 1) * within / np.maximum(excess, TINY)
    effects = (total[:, None] - each) / ((size[:, None] - m)[:, :, None] + ratio)
    effects = effects.reshape(FOLDS * K, -1)
    # under long tails F is large by chance; a pair of rows counts twice
    agreed = u * effects[parts]
    sure = agreed.sum(axis=0) > SURE_OF * np.sqrt(2.0 * (agreed**2).sum(axis=0))
    sure &= chance * u.shape[1] * MOST_SHOWN**2 < GROUP_ALARM
    return Groups(parts.astype(np.int32), effects * sure) if sure.any() else None


def shown_values(view: View) -> list[NDArray[np.generic]]:
    """Shown columns of numbers and codes."""
    found = [each.values for each in view.shown() if each.copy in (0, *view.copies)]
    return [values for values in found if values.dtype.kind != "U"]


def with_groups(B: Array, f: Array, u: Array, fold: Indices) -> Array:
    """``B`` with nonnegative weights of predictions by groups, the last features.

    A negative weight would find the row's own value, which others' sums lack.
    """
    F, r = B.shape[1:]
    own = predicted(f[:, :F], fold, B)
    made = np.zeros((FOLDS, f.shape[1], r))
    made[:, :F] = B
    for k, i in product(range(FOLDS), range(r)) if f.shape[1] > F else ():
        rest = fold != k
        X = np.column_stack([own[rest, i], f[rest, F + i :: r]])
        w = scipy.optimize.nnls(X, u[rest, i])[0]
        made[k, :F, i] *= w[0]
        made[k, F + i :: r, i] = w[1:]
    return made


def fitted_chains(view: View, y: Array, s: Array, group: int, needed: bool) -> list[Chain]:
    """Each attribute's chain, of noise variances ``s``; none if all rows are independent.

    All if ``needed``. Noise adds no dependence: rows without memory in clearer copies have none.
    Likewise for chains, if the clearer noise spans a step of the grid, and for moves that do not
    predict, if it spans a step between points.
    """
    release, found = view.starts.setdefault("release", {}), list[Chain]()
    pairs: dict[int, tuple[float, float]] = view.starts.setdefault("chains", {})
    for a, column in enumerate(y.T):
        if a not in pairs | release and independent(column):
            release[a] = INDEPENDENT
    starts = [pairs.get(a, release.get(a)) for a in range(s.size)]
    if not needed and {*starts} == {INDEPENDENT}:
        return found
    for a, (noise, start) in enumerate(zip(s, starts, strict=True)):
        free = release.get(("moves", a), True)
        make = partial(fitted_chain, y[:, a], float(noise), group, start, free)
        kind = "chain", group, start, free
        chain, pairs[a] = fitted_once(make, kind, y[:, a], s[a : a + 1])
        found.append(chain)
        if not chain.dependent and chain.s >= (chain.x[1] - chain.x[0]) ** 2:
            release[a] = pairs[a]
        if pairs[a] != MOVES and FEW * noise >= y[:, a].var():
            release["moves", a] = False
    return found


@unprinted
class GivenPredictions(NoisyRows):
    """Rows whose likelihood is conditional on noise-free entries."""

    sure_of = SURE_OF

    def part(self, where: NDArray[np.generic] | slice) -> GivenPredictions:
        return GivenPredictions(self.u[where], self.s, self.fourth)

    def chances(self, prior: Mixture) -> tuple[Array, Array]:
        q, found = super().chances(prior)
        return q, found - Posterior(prior, self.s).without(self.s > 0.0).chances(self.u)[1]


def samples(reach: int, blocks: Iterable[list[Array]], share: float) -> Iterator[Stretch]:
    """Yield evenly spread stretches of rows, with ``reach`` rows on either side."""
    first = 0
    for copies in blocks:
        n = len(copies[0])
        count = 1 if share == 1.0 else max(1, round(n * share / max(STRETCH, 4 * reach)))
        for start in (k * n // count for k in range(count)):
            low, stop = max(0, start - reach), start + max(1, round(n * share / count))
            stretch = [copy[low : stop + reach] for copy in copies]
            yield first + low, stretch, np.arange(start - low, min(stop, n) - low)
        first += n


def joined(u: Array, p: Array, s: Array, K: Array) -> tuple[Mixture, NoisyRows]:
    """Normal prior of ``[u, p]``, with covariance K of u, and its rows."""
    v, s = np.hstack([u, p]), np.append(s, np.zeros(p.shape[1]))
    covariance = np.cov(v.T, bias=True)
    V, k = covariance - np.diag(s), len(K)
    found, s_u = np.diag(covariance)[:k], s[:k]
    explained = np.diag(regression(covariance[:k, k:], covariance[k:, k:]) @ covariance[k:, :k])
    # Var(x | p) from residuals of u on p errs by 2(found − explained)²/n, from K by 4 s explained/n
    sure = np.flatnonzero((found - explained) ** 2 > 2.0 * s_u * explained)
    V[np.ix_(sure, sure)] = K[np.ix_(sure, sure)]
    V = clip_to_psd(V, covariance)
    return Mixture(np.ones(1), v.mean(axis=0)[None], V[None]), GivenPredictions(
        v, s, np.zeros_like(s)
    )


def by_unit(seen: Seen) -> tuple[Array, Array]:
    """Each attribute's deviation, and the map of ``u`` to attributes."""
    unit = np.linalg.norm(seen.pencil.basis, axis=1)
    unit = np.where(unit > 0.0, unit, 1.0)
    return unit, seen.pencil.basis / unit[:, None]


@dataclass(eq=False, repr=False)
class WithNeighbours(Reconstruction):
    """Average of posterior means given a row and predictions of it.

    Attributes
    ----------
    B : ndarray of shape (FOLDS, F, r)
        Predictions of ``u`` from features.
    posteriors : sequence of (OnLattices, ndarray of shape (r, c))
        Given predictions too, each with the map from all predictions to its own.
    single : ndarray of shape (r, N)
        From all predictions to each attribute's own.
    alone : sequence of N OnLattices
        Given an attribute and its prediction.
    weights : ndarray of shape (E, N)
    """

    near: Neighbourhood
    B: Array
    posteriors: Sequence[tuple[OnLattices, Array]]
    single: Array
    alone: Sequence[OnLattices]
    weights: Array
    first: int = 0

    def __post_init__(self) -> None:
        self.neighbours = self.near.reach

    def at(self, first: int) -> WithNeighbours:
        return replace(self, first=first)

    def rows(self, copies: Sequence[Array]) -> Array:
        rows = self.near.of([(self.first, copies, np.arange(len(copies[0])))])
        found = np.zeros(copies[0].shape)
        each = self.each(rows, predicted(rows.f, rows.fold, self.B))
        for estimate, weight in zip(each, self.weights, strict=True):
            if weight.any():
                found += weight * estimate()
        return found

    def each(self, rows: Rows, P: Array) -> list[Estimate]:
        """Functions to each estimate in data units, the filter's first."""
        A_1, u = by_unit(self.near.alone.seen)[1], rows.u
        pairs = np.stack([(u @ A_1.T).T, (P @ self.single).T], axis=2)

        def alone() -> Array:
            found = [one.mean(pair) for one, pair in zip(self.alone, pairs, strict=True)]
            return np.hstack(found)

        own = partial(self.near.alone.placed.mean, u)
        joint = [partial(one.mean, np.hstack([u, P @ to])) for one, to in self.posteriors]
        smooth = [lambda: rows.smooth] * bool(rows.smooth.size)
        return [lambda: rows.wiener, own, *joint, alone, lambda: rows.chained, *smooth]


def normal_scores(values: Array, knots: Array) -> Array:
    """Map columns to normal scores by quantiles."""
    pairs, scores = zip(values.T, knots.T, strict=True), scipy.special.ndtri(LEVELS)
    return np.stack([np.interp(column, each, scores) for column, each in pairs], axis=1)


def around(values: Array, rows: Indices, first: int, group: int) -> Array:
    """Means of windows about rows, without the rows.

    Shape (len(rows), d len(WINDOWS)). Of values, shape (b, d), from place ``first`` of the table.
    Windows end with groups of ``group`` rows, and with the values.
    """
    sums = np.pad(np.cumsum(values, axis=0), ((1, 0), (0, 0)))
    start, own, found = rows - (rows + first) % group, values.take(rows, 0), []
    end, start = np.minimum(start + group, len(values)), np.maximum(start, 0)
    for w in WINDOWS:
        low, high = np.maximum(rows - w, start), np.minimum(rows + w + 1, end)
        others = sums.take(high, 0) - sums.take(low, 0) - own
        found.append(others / np.maximum(high - low - 1, 1)[:, None])
    return np.stack(found, axis=2).reshape(len(rows), -1)


def ridge_by_fold(f: Array, u: Array, fold: Indices, scores: int = 0, centres: int = 2) -> Array:
    """``B``, shape (FOLDS, F, r), each without the rows of its fold.

    Shrunk to the best average of the first ``centres`` predictions of r features each. Of least error
    out of fold, by coordinate, with or without the last ``scores`` features. A line's share of a row is
    known exactly, so another coefficient of a prediction but the last would find the row's own value.
    """
    r = u.shape[1]
    centre, average = np.zeros((f.shape[1], r)), f[:, :r]
    centre[:r] = np.eye(r)
    for k in range(1, centres):
        c = f[:, k * r : (k + 1) * r]
        share = ((u - c) * (average - c)).sum(axis=0) / (((average - c) ** 2).sum(axis=0) + TINY)
        share = np.clip(share, 0.0, 1.0)
        centre *= share
        centre[k * r : (k + 1) * r] = np.diag(1.0 - share)
        average = share * average + (1.0 - share) * c
    fixed = (centres - 1) * r
    rest, used = u - f @ centre, f[:, fixed:]
    parts = [(used[fold == k], rest[fold == k]) for k in range(FOLDS)]
    grams = np.array([a.T @ a for a, _ in parts])
    crossed = np.array([a.T @ b for a, b in parts])
    variances = len(u) * (used.var(axis=0) + 1e-9)
    B, least = np.tile(centre, (FOLDS, 1, 1)), np.full(r, np.inf)
    for ridge, more in product(RIDGES, (1.0, 1e3) if scores else (1.0,)):
        penalty = ridge * variances
        penalty[len(penalty) - scores :] *= more
        penalised = grams.sum(axis=0) - grams + np.diag(penalty)
        tried = np.linalg.solve(penalised, crossed.sum(axis=0) - crossed)
        error = ((predicted(used, fold, tried) - rest) ** 2).mean(axis=0)
        better = error < least
        B[:, fixed:, better] = centre[fixed:, better] + tried[:, :, better]
        least = np.minimum(least, error)
    return B


def predicted(f: Array, fold: Indices, B: Array) -> Array:
    """``P``, shape (b, r)."""
    every = (f @ np.hstack(list(B))).reshape(len(f), len(B), -1)
    return every[np.arange(len(f)), fold]


def saved(known: Array, s: Array, basis: Array) -> float:
    """Largest share of an attribute's linear error that predictions save.

    ``known`` is their share of the noise-free variance, (r,). Other rows of noisier copies know no
    more, so clearer copies' largest share gives a bound.
    """
    left = (1.0 - s) * (1.0 - known)
    errors = basis**2 @ np.stack([(1.0 - s) * s, left * s / np.maximum(left + s, TINY)], axis=1)
    return float((1.0 - errors[:, 1] / np.maximum(errors[:, 0], TINY)).max())


def useful(u: Array, P: Array) -> list[Array]:
    """Maps, (r, c), to useful predictions, or the best, and their components."""
    gain = (u - u.mean(axis=0)) ** 2 - (u - P) ** 2
    z = np.sqrt(len(u)) * gain.mean(axis=0) / (gain.std(axis=0) + TINY)
    sure = np.flatnonzero(z >= min(SURE_OF, z.max()))
    own, sizes = np.eye(u.shape[1])[:, sure], sorted({min(size, sure.size) for size in PREDICTED})
    return [own, *(own @ components(P[:, sure], size) for size in sizes)]


def components(P: Array, most: int) -> Array:
    """Map to the leading standardised components of predictions."""
    values, Q = descending_eigen(np.atleast_2d(np.cov(P.T, bias=True)))
    kept = values[:most] > 1e-9 * values[0]
    return Q[:, :most][:, kept] / np.sqrt(values[:most][kept])
