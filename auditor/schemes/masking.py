"""Masks: rounding, top coding, sampling, resampling, swapping, factors, groups.

Random functions of the whole table. Multiplicative noise alone has a law:

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | ``v_i``, variance of copy i's factor; ``logs``: of its logarithm | scalar | kim2003 |
| ``f`` | ``1 + √v g``; ``logs``: ``exp(√v g − v/2)``, of mean 1; g standard normal | (n, N) | |
| ``y`` | ``x·f`` | (N,) | |
| ``K_Z`` | ``diag(w_1, …, w_M) ⊗ diag(E[x_j²])``, w the variance of f: v, or ``e^v − 1`` | (MN, MN) | |

``Z = X(f − 1)`` has mean 0, is uncorrelated with X, and has covariance ``K_Z``: enough for linear
attacks, not for densities. Zeros are unperturbed. ``logs`` releases every sign; else factors may be
negative (kim2003 truncates). Fails under collusion.

Groups have k or more similar records, replaced by means or draws: MDAV (maximum distance to average
vector), nearest neighbours, or runs of ranks. Time grows with ``n²/k``: seconds for n = 20,000, k = 3.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal, NamedTuple

import numpy as np

from auditor.base import AuditorError, counted, did_you_mean
from auditor.base.types import Array, Arrays, Flags, Indices, Levels, Shape
from auditor.data.table import DataUse, Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.random_streams import Rng, stream
from auditor.numerics.statistics import rows_by_value, standardised
from auditor.registry import PluginParameters, register
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, LevelRange, MadeCopies, Scheme, TableMoments
from auditor.schemes.corner_wave import noise_stream, snap


class MaskedScheme(Scheme):
    """Base of the schemes ``Y_i = mask(X, level_i)``."""

    family = "additive"
    needs_table = True

    @abstractmethod
    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        """One copy of a table, shape (n, N), rows in place."""

    def sampler(
        self, levels: Levels, table: TableMoments, key: Key, existing: int = 0
    ) -> MadeCopies:
        whole = self.table
        self.check_levels(levels[existing:])
        name = "masked", key.scheme, key.replicate
        made = [
            self.mask(whole.values, level, stream(key.seed, *name, copy))
            for copy, level in enumerate(levels[existing:], start=existing + 1)
        ]
        return MadeCopies(made, row_blocks(whole.rows, whole.width))


@register
class Rounding(MaskedScheme):
    """Values rounded to multiples of a base (level = base in deviations).

    | symbol | meaning |
    | --- | --- |
    | level | base ``b``, in standard deviations of each column |
    | ``o`` | origin: 0, or uniform on [0, b) per copy and column |
    | ``y`` | ``o + b·round(t)``, ``t = (x − o)/b``; ``unbiased``: ``o + b·(⌊t⌋ + [u < t − ⌊t⌋])``, u uniform |

    A copy discloses an interval of width b: error ``b²/12``. Unbiased rounding averages out.
    """

    name = "rounding"
    claims = "Nothing under collusion: a value lies in the intersection of all intervals. One copy gives each value up to the base."
    reference = "dalenius1981; hundepool2012, chapter 3"
    assumes = "The base is coarse relative to the recording step, and recipients never pool copies of other bases or origins."
    level_of_original = 0.0
    trial_levels = (0.5, 1.0, 0.7)

    class Parameters(PluginParameters):
        """Rounding rule and origin."""

        to: Literal["nearest", "unbiased"] = "nearest"
        """the nearest multiple, or one of the two around with no bias"""
        origin: Literal["zero", "random"] = "zero"
        """whether multiples count from 0 or from a secret place in every copy"""

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        base = level * X.std(axis=0)
        origin = (
            base * rng.random(X.shape[1])
            if self.parameters.origin == "random"
            else np.zeros(X.shape[1])
        )
        return rounded(X, base, origin, rng if self.parameters.to == "unbiased" else None)


def rounded(X: Array, base: Array, origin: Array, rng: Rng | None = None) -> Array:
    """Values rounded to multiples of a base, shape (n, N).

    Unbiased with a generator; base 0 changes nothing.

    Examples
    --------
    >>> rounded(np.array([[12.0], [18.0]]), np.array([10.0]), np.array([0.0])).ravel().tolist()
    [10.0, 20.0]
    """
    step = np.where(base > 0, base, 1.0)
    t = (X - origin) / step
    multiple = np.rint(t) if rng is None else np.floor(t) + (rng.random(X.shape) < t - np.floor(t))
    return np.where(base > 0, origin + step * multiple, X)


CODED = "the share of records coded at an end"


@register
class TopCoding(MaskedScheme):
    """Values beyond a quantile replaced by one code (level = share coded).

    | symbol | meaning |
    | --- | --- |
    | level | share ``α`` coded at each end |
    | ``y`` | ``x`` up to the quantile ``c`` at ``1 − α``, else ``c`` or ``E[X | X > c]`` |

    A share ``1 − α`` of values is unperturbed.
    """

    name = "top-coding"
    claims = "Pooled copies disclose as much as the copy with the smallest coded share; values that are not coded are unperturbed."
    reference = "hundepool2012, chapter 3"
    assumes = "Only extreme values need protection."
    trial_levels = (0.1, 0.3, 0.2)

    class Parameters(PluginParameters):
        """Ends to code, and the code."""

        ends: Literal["top", "bottom", "both"] = "top"
        """which end of every column is coded"""
        code: Literal["quantile", "mean"] = "quantile"
        """the quantile, or the mean of what is coded: totals stay"""

    @property
    def level_range(self) -> LevelRange:  # type: ignore[override]
        if self.parameters.ends == "both":
            return LevelRange(f"{CODED} at each of both, above 0 and at most 0.5", 0.0, 0.5, (0.0,))
        return LevelRange(f"{CODED}, above 0 and below 1", 0.0, 1.0, (0.0, 1.0))

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y, ends, mean = X, self.parameters.ends, self.parameters.code == "mean"
        if ends != "bottom":
            Y = np.where(
                X > (c := np.quantile(X, 1.0 - level, axis=0)), code_of(X, X > c, c, mean), Y
            )
        if ends != "top":
            Y = np.where(X < (c := np.quantile(X, level, axis=0)), code_of(X, X < c, c, mean), Y)
        return Y


def code_of(X: Array, beyond: Flags, quantile: Array, mean: bool) -> Array:
    """Quantile, or mean beyond it, (N,)."""
    count = beyond.sum(axis=0)
    return np.where(
        mean & (count > 0), np.where(beyond, X, 0.0).sum(axis=0) / np.maximum(count, 1), quantile
    )


@register
class Sampling(MaskedScheme):
    """A random share of records (level) unperturbed. Broken under collusion.

    Other rows hold the sample's mean: error ``1 − f`` of the variance. Pooled copies disclose a
    share ``1 − Π(1 − f_i)``.
    """

    name = "sampling"
    claims = "No protection for sampled records, full protection for all others; pooled copies release the records of every sample."
    reference = "skinner1994; hundepool2012, chapter 3"
    assumes = "The adversary does not know which records are sampled, and recipients never pool their copies."
    level_of_original = 1.0
    level_range = LevelRange(
        "the share of records released, above 0 and at most 1", high=1.0, excluded=(0.0,)
    )
    trial_levels = (0.3, 0.8, 0.5)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        sampled = rng.permutation(len(X))[: math.ceil(level * len(X))]
        Y = np.tile(X[sampled].mean(axis=0), (len(X), 1))
        Y[sampled] = X[sampled]
        return Y


@register
class Resampling(MaskedScheme):
    """Values replaced by means of equal rank in t samples (level = t).

    ``y = (1/t) Σ_s x*_s(r)``, ``x*_s(r)`` the value of the record's rank in bootstrap sample s.
    Large tables are protected only in the tails. Pooled copies average.
    """

    name = "resampling"
    claims = "Nothing under collusion, and little alone: every record keeps its rank, and quantiles of many records are accurate."
    reference = "heer1993; hundepool2012, chapter 3"
    assumes = "There are few records, so a sample's quantiles differ from the original's."
    level_range = LevelRange("the number of samples, an integer of at least 1", low=1, whole=True)
    trial_levels = (1.0, 5.0, 3.0)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            samples = np.sort(x[rng.integers(0, len(x), (int(level), len(x)))], axis=1)
            Y[np.argsort(x, kind="stable"), j] = samples.mean(axis=0)
        return Y


@register
class DataSwapping(MaskedScheme):
    """A share of each column's values (level) swapped between random records.

    Pairs are random, anew for every column and copy. ``within``: pairs agree in an unperturbed
    column.
    """

    name = "data-swapping"
    claims = "Nothing under collusion: two of three copies agree on most originals. Every column keeps its values."
    reference = "dalenius1982; hundepool2012, chapter 3"
    assumes = "Doubt about the owner of a value is enough protection, and recipients never pool their copies."
    level_of_original = 0.0
    level_range = LevelRange("the share of values exchanged, at least 0 and at most 1", high=1.0)
    trial_levels = (0.2, 0.6, 0.4)

    class Parameters(PluginParameters):
        """Restriction on the pairs."""

        within: str | None = None
        """column whose value both records of a pair have; it is not swapped itself"""

    def check_table(self, table: Table, asked: DataUse) -> None:
        super().check_table(table, asked)
        self._kept(table)

    def _kept(self, table: Table) -> int | None:
        name = self.parameters.within
        if name is not None and name not in table.attributes:
            raise AuditorError(
                f"within: there is no attribute {name!r}{did_you_mean(name, table.attributes)}"
            )
        return None if name is None else table.attributes.index(name)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y, kept = X.copy(), None if self.table is None else self._kept(self.table)
        strata = [np.arange(len(X))] if kept is None else rows_by_value(X[:, kept])
        for j in (column for column in range(X.shape[1]) if column != kept):
            for rows in strata:
                one, other = pairs(rows, level, rng)
                Y[one, j], Y[other, j] = X[other, j], X[one, j]
        return Y


def pairs(rows: Indices, share: float, rng: Rng) -> tuple[Indices, Indices]:
    """``⌊share · n / 2⌋`` random pairs of rows as two arrays."""
    half = int(share * len(rows) / 2)
    chosen = rng.permutation(rows)[: 2 * half]
    return chosen[:half], chosen[half:]


SWAP, SHIFT = 5e-7, 2e-11
"""Seconds per exchange, and per rank of the window."""


@register
class RankSwapping(MaskedScheme):
    """Values swapped with others at most a share p of ranks away (level p).

    A free i is exchanged with a random free j of ``i + 1 … i + ⌊p n⌋``. Pooled copies disclose
    intersections of rank intervals.
    """

    name = "rank-swapping"
    claims = "Nothing under collusion: a value's rank lies in the intersection of all intervals. Every column keeps its values."
    reference = "moore1996; hundepool2012, chapter 3"
    assumes = "Values of similar rank differ in size, and recipients never pool their copies."
    level_of_original = 0.0
    level_range = LevelRange(
        "p, the share of all ranks that a value may move, at least 0 and at most 1", high=1.0
    )
    trial_levels = (0.05, 0.2, 0.1)

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        return sum((SWAP + SHIFT * level * rows) * rows * width for level in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        Y = np.empty_like(X)
        for j, x in enumerate(X.T):
            order = np.argsort(x, kind="stable")
            Y[order, j] = x[order[partners(len(x), int(level * len(x)), rng)]]
        return Y


def partners(n: int, window: int, rng: Rng) -> Indices:
    """Each rank's partner at most ``window`` away, or itself, (n,)."""
    other, u = np.arange(n), rng.random(n).tolist()
    # free ranks from `free[first]`: a new search per window is a hundred times as slow
    free, first, end = list[int](), 0, 0
    while first < len(free) or end < n:
        i = free[first] if first < len(free) else end
        stop = min(i + window + 1, n)
        free.extend(range(end, stop))
        first, end = first + 1, max(end, stop)
        if first < len(free):
            j = free.pop(first + int(u[i] * (len(free) - first)))
            other[i], other[j] = j, i
    return other


FAR_FROM_ZERO = 1e-3
"""Relative size above which a value determines its factor."""


@register
class MultiplicativeNoise(Scheme):
    """Values times random factors of mean 1. Broken under collusion.

    Level: the factor's variance.
    """

    name = "multiplicative-noise"
    family = "additive"
    claims = "Nothing under collusion: the error falls with every copy pooled. One copy's errors are in proportion to the values."
    reference = "kim2003; hundepool2012, chapter 3"
    assumes = "Values are above 0 and spread over orders of magnitude, and recipients never pool their copies."
    on_grid = True
    level_of_original = 0.0

    class Parameters(PluginParameters):
        """Distribution of the factors."""

        logs: bool = False
        """whether normal noise is added to the logarithms; unbiased on the original scale"""

    @property
    def distribution(self) -> str:
        return "unstated"

    def law(self, levels: Levels, table: TableMoments) -> KroneckerNoise:
        w = np.asarray(levels, dtype=float)
        w = np.expm1(w) if self.parameters.logs else w
        squares = np.diag(table.covariance) + table.mean**2
        return KroneckerNoise(np.diag(w), np.diag(squares), distribution="unstated")

    def drawn_apart(
        self, levels: Levels, x: Array, copies: Arrays
    ) -> tuple[Array, list[Array], KroneckerNoise]:
        """Rows in column units, sum with ``√v g``, law.

        Without rows near 0.
        """
        unit = np.sqrt(np.square(x).mean(axis=0))
        rows = (np.abs(x) > FAR_FROM_ZERO * unit).all(axis=1)
        ratios = [copy[rows] / x[rows] for copy in copies]
        if self.parameters.logs:
            drawn = [
                np.log(ratio) + level / 2.0 for ratio, level in zip(ratios, levels, strict=True)
            ]
        else:
            drawn = [ratio - 1.0 for ratio in ratios]
        points = x[rows] / unit
        return (
            points,
            [points + noise for noise in drawn],
            KroneckerNoise(np.diag(levels), np.eye(x.shape[1])),
        )

    def sampler(
        self, levels: Levels, table: TableMoments, key: Key, existing: int = 0
    ) -> FactorSampler:
        return FactorSampler(levels, key, self.parameters.logs)


class FactorSampler(NamedTuple):
    """Multiplies rows by factors."""

    levels: Levels
    key: Key
    logs: bool
    in_order: bool = True

    def block(self, index: int, x: Array, out: Arrays, existing: int = 0) -> None:
        for copy, level in enumerate(self.levels[existing:], start=existing + 1):
            y, rng = out[copy - 1], noise_stream(self.key, index, copy, level)
            np.multiply(x, factors(level, x.shape, rng, self.logs), out=y)
            if self.key.grid and level > 0:
                snap(y, np.array(self.key.grid))


def factors(level: float, shape: Shape, rng: Rng, logs: bool) -> Array:
    """Factors ``1 + √v g``, or ``exp(√v g − v/2)`` with ``logs``."""
    noise = np.sqrt(level) * rng.standard_normal(shape)
    return np.exp(noise - level / 2.0) if logs else 1.0 + noise


# -- Groups of k or more similar records -----------------------------------------------------------


NEAREST, NEAREST_VALUE, GROUP = 3e-8, 4e-9, 6e-5
"""Seconds per comparison with a group's centre, per value, and per group redrawn.
"""


class GroupScheme(MaskedScheme):
    """Base of schemes whose level is k, the least size of a group."""

    level_range = LevelRange(
        "k, the least size of a group, an integer of at least 2", low=2, whole=True
    )
    trial_levels = (3.0, 10.0, 5.0)

    def check_levels(self, levels: Levels) -> None:
        super().check_levels(levels)
        most = max(levels, default=0)
        if self.table is not None and self.table.rows < most:
            raise AuditorError(
                f"{self.name} needs at least {counted(int(most), 'record')} at level {most:g}; the table has "
                f"{self.table.rows:,}"
            )


def grouping_seconds(rows: int, width: int, k: float) -> float:
    """Approximate seconds of MDAV on one core."""
    return (NEAREST + NEAREST_VALUE * width) * rows**2 / k


def mdav(Z: Array, k: int) -> Indices:
    """Groups by MDAV (domingo2002, fixed size), shape (n,).

    Alternately around the record furthest from the remaining mean, and the one furthest from it.
    The last group has up to 2k − 1 records.
    """
    g, left, made = np.zeros(len(Z), dtype=int), np.arange(len(Z)), 0

    def group(centre: Array) -> None:
        nonlocal left, made
        near = least(_squares(Z[left], centre), k)
        g[left[near]], left, made = made, np.delete(left, near), made + 1

    while len(left) >= 2 * k:
        far = Z[left[_squares(Z[left], Z[left].mean(axis=0)).argmax()]]
        opposite = Z[left[_squares(Z[left], far).argmax()]]
        group(far)
        if len(left) >= 2 * k:
            group(opposite)
    g[left] = made
    return g


def nearest_to_random(Z: Array, k: int, rng: Rng) -> Indices:
    """Groups of k around random records, shape (n,).

    The last join their nearest group. Source: aggarwal2004, static condensation.
    """
    order = rng.permutation(len(Z))
    # random memory order is 1.5 times as slow
    Z, left = Z[order], np.arange(len(Z))
    g, centres = np.zeros(len(Z), dtype=int), list[Array]()
    while len(left) >= k:
        near = least(_squares(Z[left], Z[left[0]]), k)
        g[left[near]] = len(centres)
        centres.append(Z[left[near]].mean(axis=0))
        left = np.delete(left, near)
    for row in left:
        g[row] = _squares(np.array(centres), Z[row]).argmin()
    return g[np.argsort(order)]


def runs(x: Array, k: int) -> Indices:
    """Runs of k in ascending order, the last of up to 2k − 1, (n,).

    Examples
    --------
    >>> runs(np.array([30.0, 10.0, 20.0, 50.0, 40.0]), 2).tolist()
    [1, 0, 0, 1, 1]
    """
    g = np.empty(len(x), dtype=int)
    g[np.argsort(x, kind="stable")] = np.minimum(np.arange(len(x)) // k, len(x) // k - 1)
    return g


def least(x: Array, k: int) -> Indices:
    """Places of the k least numbers, shape (k,); ties in order."""
    bound = np.partition(x, k - 1)[k - 1]
    below = np.flatnonzero(x < bound)
    return np.concatenate([below, np.flatnonzero(x == bound)[: k - below.size]])


def means(X: Array, g: Indices) -> Array:
    """Every record's group mean, shape (n, N)."""
    sums = np.zeros((g.max() + 1, X.shape[1]))
    np.add.at(sums, g, X)
    return (sums / np.bincount(g)[:, None])[g]


def _squares(Z: Array, centre: Array) -> Array:
    return np.square(Z - centre).sum(axis=1)


@register
class Condensation(GroupScheme):
    """Groups of k records (level = k) replaced by draws of their moments.

    ``y = m + P Λ^½ u``, m the group's mean, ``P Λ Pᵀ`` its covariance (divisor its size), u
    independent and uniform on ±√3. Pooled copies average out.
    """

    name = "condensation"
    claims = "Nothing under collusion: pooled draws average to their groups' means. No row of a copy is an original record."
    reference = "aggarwal2004; liu2008, section 1"
    assumes = "Records of a group differ widely, and recipients never pool their copies."

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        return sum(grouping_seconds(rows, width, k) / 2.0 + GROUP * rows / k for k in levels)

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        g, Y = nearest_to_random(standardised(X), int(level), rng), np.empty_like(X)
        for number in range(g.max() + 1):
            rows = np.flatnonzero(g == number)
            Y[rows] = drawn_alike(X[rows], rng)
        return Y


def drawn_alike(group: Array, rng: Rng) -> Array:
    """Draws with a group's mean and covariance (divisor k), (k, N)."""
    values, P = np.linalg.eigh(np.atleast_2d(np.cov(group.T, ddof=0)))
    u = np.sqrt(12.0) * (rng.random(group.shape) - 0.5)
    return group.mean(axis=0) + (u * np.sqrt(np.clip(values, 0.0, None))) @ P.T


@register
class MicroAggregation(GroupScheme):
    """Records, or each column's values, replaced by means of k (level = k).

    ``mdav``: groups of whole records, by distance in standard deviations, k-anonymous in all
    columns. ``univariate``: runs of k ranks per column, with little protection. Copies of two k
    give two means.
    """

    name = "micro-aggregation"
    claims = "By whole records: at least k records share each row of one copy. Nothing under collusion, and nothing column by column."
    reference = "domingo2002; hundepool2012, chapter 3"
    assumes = "Records of a group differ widely, so their mean discloses none of them, and recipients never pool copies of several k."

    class Parameters(PluginParameters):
        """Unit of grouping: records or columns."""

        method: Literal["mdav", "univariate"] = "mdav"
        """mdav: whole records; univariate: each column by itself"""

    def making_seconds(self, levels: Levels, rows: int, width: int) -> float:
        return (
            sum(grouping_seconds(rows, width, k) for k in levels)
            if self.parameters.method == "mdav"
            else 0.0
        )

    def mask(self, X: Array, level: float, rng: Rng) -> Array:
        if self.parameters.method == "mdav":
            return means(X, mdav(standardised(X), int(level)))
        return np.hstack([means(x[:, None], runs(x, int(level))) for x in X.T])
