"""Errors of any attack, their error bars, and redraws of the release.

A collusion gain is ``1 − error/alone``, with ``alone`` the error of the coalition's best copy.

| error bar | used for | module |
| --- | --- | --- |
| closed form | known maps under a law | ``auditor.audit.numeric.linear_errors`` |
| redraws of the release | estimated maps, attacks on rows | ``from_redraws`` |
| jackknife over row groups, as draws | files, which cannot be drawn again | ``from_groups`` |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.audit.numeric.moment_pass import key_of
from auditor.audit.numeric.views import Gathered
from auditor.base.types import Array, Coalitions, Flags, Indices
from auditor.numerics.blocks import BLOCK_VALUES, Moments
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import Z_95, quantile
from auditor.results.records import SAME, ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw, psd_root

EXACT = 1e-12
"""Squared errors below this share of the variance are rounding errors of an exact rebuild."""
MOST_UNSTEADY = 1 / 3
"""Largest coefficient of variation of a best copy's error for which one release yields a gain.

A ratio with a denominator near 0 has no mean. Copies without noise carry equal information: their
gain is 0 except in rare draws that confuse components in all attributes, so one decides for all."""


class Paired(NamedTuple):
    """Gains over single copies, (B, N + 1), all attributes last."""

    gain: Array
    std_error: Array
    degrees: float


class Figure(NamedTuple):
    """One figure of every coalition and attribute; arrays of shape (B, N + 1).

    Attributes
    ----------
    value, std_error, theory : ndarray
        NaN if unknown.
    below, above : ndarray
        Distances to the ends of the 95 % interval.
    """

    value: Array
    std_error: Array
    below: Array
    above: Array
    theory: Array

    @classmethod
    def normal(
        cls, value: Array, std_error: Array | float = np.nan, theory: Array | float = np.nan
    ) -> Figure:
        """Normal figure with a symmetric interval."""
        error, theory = (np.broadcast_to(each, value.shape) for each in (std_error, theory))
        return cls(value, error, Z_95 * error, Z_95 * error, theory)

    def over(self, scale: Array) -> Figure:
        """Figure divided by the attributes' variances."""
        return Figure(*(each / scale for each in self))

    def root(self) -> Figure:
        """Square root, with a standard error by the delta method; 0 at 0."""
        root = np.sqrt(self.value)
        # the interval's root: equal coverage for few rows
        low = np.sqrt(np.clip(self.value - self.below, 0.0, None))
        high = np.sqrt(self.value + self.above)
        return Figure(
            root,
            self.std_error * quotient(0.5, root),
            root - low,
            high - root,
            np.sqrt(self.theory),
        )


class Errors(NamedTuple):
    """Errors of one attack and state of knowledge, by coalition.

    Attributes
    ----------
    distortion : Figure
        Mean squared errors, in squared data units.
    gain : Figure
        Collusion gain over the best copy alone.
    bar : ErrorBar
        Source of the error bars.
    paired : Paired, optional
        Gain over a copy chosen by the law.
    """

    distortion: Figure
    gain: Figure
    bar: ErrorBar
    paired: Paired | None = None

    def expecting(self, theory: Array) -> Errors:
        """Errors with this theory of the distortion."""
        return self._replace(distortion=self.distortion._replace(theory=theory))

    def under(self, law: Errors | None) -> Errors:
        """Errors with the theory of others, if any."""
        if law is None:
            return self
        gain = self.gain._replace(theory=law.gain.theory)
        return self.expecting(law.distortion.theory)._replace(gain=gain)


def holding(coalitions: Coalitions, copies: int) -> Flags:
    """Whether each coalition holds each copy, shape (B, M)."""
    held = np.zeros((len(coalitions), copies), dtype=bool)
    for members, one in zip(held, coalitions, strict=True):
        members[np.array(one) - 1] = True
    return held


class Members(NamedTuple):
    """Membership of copies; each is also a coalition of its own.

    Attributes
    ----------
    singles : ndarray of shape (M,)
        Places of the single copies, by copy number.
    held : ndarray of shape (B, M)
        Whether a coalition holds the copy.
    """

    singles: Indices
    held: Flags

    @classmethod
    def of(cls, coalitions: Coalitions) -> Members:
        """Membership of some coalitions."""
        alone = dict(sorted((one[0], k) for k, one in enumerate(coalitions) if len(one) == 1))
        held = holding(coalitions, max(alone))[:, np.array([*alone]) - 1]
        return cls(np.array([*alone.values()]), held)

    def best(self, each: Array) -> Indices:
        """Place of each coalition's member with the least figure, (B, c)."""
        alone = each[self.singles]
        least = [np.where(self.held, column, np.inf).argmin(axis=1) for column in alone.T]
        return np.asarray(self.singles[np.stack(least, axis=1)], dtype=np.intp)


def with_total(each: Array) -> Array:
    """Append the mean over attributes, shape (..., N) → (..., N + 1)."""
    return np.concatenate([each, each.mean(axis=-1, keepdims=True)], axis=-1)


def of_copy(errors: Array, place: Indices) -> Array:
    """Errors of single copies, shape (..., B, N + 1), by their places, (B, 1) or (B, N + 1)."""
    return np.take_along_axis(errors, np.broadcast_to(place, errors.shape), axis=-2)


def least_noise(coalitions: Coalitions, law: NoiseLaw, K_X: Array) -> Indices:
    """Place of each coalition's copy with least noise by law, shape (B, 1).

    A copy chosen by *measured* error would bias the gain downward.
    """
    N = law.width
    share = (np.diag(law.covariance).reshape(-1, N) / np.diag(K_X)).sum(axis=1)
    return Members.of(coalitions).best(share[[one[0] - 1 for one in coalitions], None])


def from_groups(
    coalitions: Coalitions,
    sums: Array,
    counts: Sequence[int],
    variances: Array,
    compared: Indices | None = None,
    bar: ErrorBar = "jackknife",
) -> Errors:
    """Errors of any attack from squared errors by row group.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Each member is also a coalition of its own.
    sums : ndarray of shape (G, B, N)
        Sums of squared errors by row group.
    counts : sequence of int
        Rows in each group.
    variances : ndarray of shape (N,)
        Each attribute's variance in the table.
    compared : ndarray of shape (B, 1) or None
        Places of the single copies for ``Errors.paired``.
    bar : 'jackknife' or 'replicates-needed'
        Leave out groups of rows with fixed maps; or no error bars, as for randomness that all rows
        share.
    """
    scale, rows = with_total(variances), np.array(counts, dtype=np.float64)[:, None, None]
    distortion = rounded_off(with_total(sums.sum(axis=0) / rows.sum()), scale)
    G, sums = len(counts), with_total(sums)
    both = np.array([sums, np.minimum(sums, scale * rows)])
    left_out = (both.sum(axis=1, keepdims=True) - both) / np.maximum(rows.sum() - rows, 1.0)
    if bar != "jackknife" or G < 2:
        G, left_out = 2, np.full((2, 2, *distortion.shape), np.nan)
    # (G − 1)/G Σ d² is the variance of draws with deviations (G − 1)/√G d
    share, bounded = (G - 1) ** 2 / G, both[1].sum(axis=0) / rows.sum()
    apart = bounded, as_draws(bounded, left_out[1], share)
    facts = distortion, left_out[0], scale, compared
    return from_redraws(coalitions, *facts, share=share, bounded=apart)._replace(bar=bar)


def from_redraws(
    coalitions: Coalitions,
    distortion: Array,
    again: Array,
    scale: Array,
    compared: Indices | None = None,
    rounding: Array | float = 0.0,
    noisy: bool = True,
    share: float = 1.0,
    bounded: tuple[Array, Array] | None = None,
) -> Errors:
    """Errors of any attack with error bars from other draws of the release.

    Parameters
    ----------
    distortion, again : ndarrays of shape (B, N + 1) and (R, B, N + 1)
        Mean squared errors, measured and in R other draws.
    scale : ndarray of shape (N + 1,)
        The attributes' variances, and their mean.
    compared : ndarray of shape (B, 1) or None
        As for ``from_groups``.
    rounding : ndarray, optional
        Rounding error of each error.
    noisy : bool
        Whether the copies have noise.
    share : float
        Factor of the variance: the share of the records drawn again, if not all.
    bounded : pair of ndarrays, optional
        Errors that are at most ``scale``, measured and in other draws, for the lower end.
    """
    members, part = Members.of(coalitions), share != 1.0
    # ratios are taken where deviations are smaller
    again = as_draws(distortion, again, min(share, 1.0))
    possible, wider = np.maximum(again, 0.0), max(share, 1.0)
    again = as_draws(distortion, again, wider)

    def steady(denominators: Array, gains: Array) -> Array:
        """Spread of gains; NaN if a denominator may be near 0, unless each draw's gain is 0."""
        held = denominators.std(axis=0, ddof=1) <= MOST_UNSTEADY * denominators.mean(axis=0)
        held = held | (gains == 0).all(axis=0) if noisy else held.all(axis=-1, keepdims=True)
        return np.where(held, gains.std(axis=0, ddof=1) * np.sqrt(wider), np.nan)

    # every draw chooses the best copy again
    bests = np.array([of_copy(errors, members.best(errors)) for errors in possible])
    others = collusion_gain(possible, bests, scale)
    gain = gain_over(distortion, members.best(distortion), scale)
    gain_error, paired = steady(bests, others), None
    if compared is not None:
        paired = Paired(
            gain_over(distortion, compared, scale),
            steady(of_copy(possible, compared), gain_over(possible, compared, scale)),
            len(again) - 1.0,
        )
    below, above = (np.maximum(each, Z_95 * rounding) for each in reaches(distortion, again, part))
    bounded = bounded or (np.minimum(distortion, scale), np.minimum(again, scale))
    least = bounded[0] - reaches(*bounded, part)[0] - Z_95 * rounding
    below = np.minimum(below, np.maximum(distortion - least, 0.0))
    others = as_draws(gain, others, wider)
    low, high = (
        np.where(np.isnan(gain_error), np.nan, reach) for reach in reaches(gain, others, part)
    )
    nothing = np.full_like(distortion, np.nan)
    return Errors(
        Figure(distortion, np.hypot(_deviation(again), rounding), below, above, nothing),
        Figure(gain, gain_error, low, high, nothing),
        "redraws",
        paired,
    )


def redraw_bars(
    figure: Array, again: Array, share: float, most: float = np.inf
) -> tuple[Array, Array, Array]:
    """Standard error and ``reaches`` of a figure, at most ``most`` for the lower end.

    See ``from_redraws``.
    """
    part, kept = share != 1.0, np.minimum(figure, most)
    below = figure - kept + reaches(kept, as_draws(kept, np.minimum(again, most), share), part)[0]
    again = as_draws(figure, again, share)
    usual, above = reaches(figure, again, part)
    return _deviation(again), np.minimum(usual, below), above


def as_draws(figure: Array, again: Array, share: float) -> Array:
    """Draws about a figure, (R, …), with a ``share`` of the variance of others."""
    return again if share == 1.0 else figure + (again - again.mean(axis=0)) * np.sqrt(share)


def reaches(figure: Array, again: Array, centred: bool = False) -> tuple[Array, Array]:
    """Distances of 95 % interval ends from a figure, given R redraws, (R, …).

    The interval is ``t_{0.925}(R−1) · s``, which contains the mean over draws for 85 % of normal
    figures. For a figure further off it ends ``t_{0.75}(R−1) · s/√R`` past the redraws' mean.
    Coverage is 0.85 + 0.15 · 0.75 = 96 %, also if draws form two clusters. ``centred`` redraws
    show the spread alone, with the interval ``t_{0.975}(R−1) · s``.
    """
    R, mean, spread = len(again), again.mean(axis=0), _deviation(again)
    reach = quantile(0.975 if centred else 0.925, R - 1) * spread
    mean_reach = quantile(0.75, R - 1) * spread / np.sqrt(R)
    same = (spread == 0) & (again[0] == figure)  # then the mean differs by rounding only
    low = np.maximum(reach, figure - mean + mean_reach)
    high = np.maximum(reach, mean - figure + mean_reach)
    return np.where(same, 0.0, low), np.where(same, 0.0, high)


def _deviation(again: Array) -> Array:
    return np.where(np.ptp(again, axis=0) == 0, 0.0, again.std(axis=0, ddof=1))


def rounded_off(error: Array, variance: Array, rounding: Array | float = 0.0) -> Array:
    """Squared errors, 0 if at most their rounding.

    Parameters
    ----------
    error, variance : ndarrays that broadcast
        Squared errors and the attributes' variances, in one unit.
    rounding : ndarray, optional
        Rounding error of each error, if larger than usual.
    """
    return np.where(error > np.maximum(EXACT * variance, rounding), error, 0.0)


def gain_over(error: Array, place: Indices, variance: Array, doubt: Array | float = 0.0) -> Array:
    """``collusion_gain`` over the copies at some places (``of_copy``)."""
    return collusion_gain(error, of_copy(error, place), variance, doubt)


def collusion_gain(
    error: Array, alone: Array, variance: Array, doubt: Array | float = 0.0
) -> Array:
    """``1 − error/alone``; 0 up to rounding, or if the copy is exact.

    Parameters
    ----------
    error, alone, variance : ndarrays that broadcast
        Squared errors of the coalition and its best copy, and the attribute's variance.
    doubt : ndarray, optional
        Rounding error of the difference of the errors, if larger than usual.
    """
    known = alone > EXACT * variance
    gain = 1.0 - quotient(error, alone, 1.0, known)
    least = np.maximum(SAME, quotient(doubt, alone, where=known))
    return np.where(np.abs(gain) <= least, 0.0, gain)  # NaN stays


# -- Redraws of moments, for error bars of linear attacks with estimates ---------------------------


def seed_of(seed: int, scheme: str, replicate: int, number: int) -> int:
    """Seed of a redraw of a release."""
    return int(stream(seed, "redraw", scheme, replicate, number).integers(2**63))


def redrawn_moments(original: Moments, law: NoiseLaw, rng: np.random.Generator) -> Moments:
    """Moments of ``[X, X + Z_1 … X + Z_M]`` with other noise.

    ``original`` are moments of X alone, and ``law`` is the law of Z.
    """
    n, N = original.count, original.size
    q = law.copies * N
    corner, total = np.full((1, 1), float(n)), original.total
    A = np.block([[corner, total[None]], [total[:, None], original.products]])
    G = rng.standard_normal((N + 1, q))
    # Cochran: UᵀU is GᵀG along [1, X], plus an independent Wishart matrix of the other n − N − 1
    # dimensions
    UU = G.T @ G + wishart(max(n - N - 1, 0), q, rng)
    # Var Σ u² is (2 + κ) n, and 2n for Gaussian components: stretch the diagonal about n
    if law.excess_kurtosis is not None:
        stretch = np.sqrt(1.0 + law.excess_kurtosis / 2.0)
        UU[np.diag_indices(q)] = np.clip(n + (np.diag(UU) - n) * stretch, 0.0, None)
    across, ZZ = law.coloured(psd_root(A) @ G), law.coloured(law.coloured(UU).T)
    # [X, Y_1 … Y_M] = X H + [0, Z_1 … Z_M], H the identity M + 1 times
    times = law.copies + 1
    total, products = np.tile(total, times), np.tile(original.products, (times, times))
    total[N:] += across[0]
    XZ = np.tile(across[1:], (times, 1))
    products[:, N:] += XZ
    products[N:] += XZ.T
    products[N:, N:] += ZZ
    return Moments(n, total, products)


def wishart(degrees: int, size: int, rng: np.random.Generator) -> Array:
    """Wishart draw with identity scale, shape (size, size), perhaps singular.

    Bartlett's decomposition ``T Tᵀ``: T lower triangular, standard normal below and ``√χ²(degrees −
    i)`` on the diagonal.
    """
    if degrees <= size:
        rows = rng.standard_normal((degrees, size))
        return rows.T @ rows
    T = np.tril(rng.standard_normal((size, size)), -1)
    T[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    return T @ T.T


def redrawn(
    gathered: Gathered, knowledge: Knowledge, law: NoiseLaw, seeds: Iterable[int]
) -> Iterator[Gathered]:
    """Yield one adversary's moments of a release in other draws.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise, before copies were transformed.
    seeds : iterable of int
        One for each draw of noise and matrices.
    """
    table, key = gathered.release.table, key_of(knowledge)
    original = Moments.merge(gathered.groups).parts([1], table.width)
    draw, held = gathered.rows.draw(knowledge), None
    # by shape alone: files and tables in memory agree
    if draw is not None and table.rows * table.width <= BLOCK_VALUES:
        held = table.read(0, table.rows) - gathered.release.moments.mean
    for seed in seeds:
        rng = stream(seed, "moments")
        if draw is None:
            yield gathered.redrawn({}, redrawn_moments(original, law, rng), seed)
            continue
        known = gathered.whole.chosen[key]
        if held is not None:
            given = Moments.of(held[rng.permutation(len(held))[: len(draw.rows)]])
        else:
            some = (known.folds[k] for k in rng.integers(0, len(known.folds), len(known.folds)))
            given = Moments.merge(some).parts([1], table.width)
        rest = redrawn_moments(original - given, law, rng)
        chosen = redrawn_moments(given, law, rng)
        seen = {key: replace(known, parts={0: chosen}, by_group={0: chosen})}
        yield gathered.redrawn(seen, Moments.merge([chosen, rest]), seed)
