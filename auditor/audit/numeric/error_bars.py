"""Errors of any attack, their error bars and the gains over single copies, from sums over row groups or from other draws.

A collusion gain is ``1 − error/alone``, ``alone`` being the error of the best copy that the
coalition holds. Errors whose bars follow from the law are in
``auditor.audit.numeric.linear_errors``; other draws are made in ``auditor.audit.numeric.redraws``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.stacked_maps import Members
from auditor.numerics.statistics import Z_95, jackknife_error, quantile
from auditor.process.deferred import scipy
from auditor.results.evidence import SAME
from auditor.results.records import ErrorBar
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array, Coalition


@dataclass(frozen=True)
class Paired:
    """Gains over single copies, with error bars; arrays of shape (B, N + 1), the last column for all attributes together."""

    gain: Array = field(repr=False)
    std_error: Array = field(repr=False)
    degrees: Array = field(repr=False)


@dataclass(frozen=True)
class Figure:
    """One figure of every coalition and attribute; arrays of shape (B, N + 1), the last column for all attributes together.

    Attributes
    ----------
    value, std_error, theory : ndarray
        NaN where there is no error bar or no theory.
    below, above : ndarray
        How far the 95 % interval reaches from the value, either way.
    """

    value: Array = field(repr=False)
    std_error: Array = field(repr=False)
    below: Array = field(repr=False)
    above: Array = field(repr=False)
    theory: Array = field(repr=False)

    @classmethod
    def symmetric(
        cls, value: Array, std_error: Array, quantile: Array | float, theory: Array | None = None
    ) -> Figure:
        """Return a figure whose interval reaches so many standard errors either way."""
        reach = quantile * std_error
        return cls(
            value,
            std_error,
            reach,
            reach,
            np.full_like(value, np.nan) if theory is None else theory,
        )

    def over(self, scale: Array) -> Figure:
        """Return the figure in units of the attributes' variances."""
        return Figure(*(getattr(self, each.name) / scale for each in fields(self)))

    def root(self) -> Figure:
        """Return the square root of a figure of at least 0, its standard error by the delta method; an exact rebuild has none."""
        root = np.sqrt(self.value)
        slope = np.divide(0.5, root, out=np.zeros_like(root), where=root > 0)
        # The interval of the square, so that both cover alike in few rows too.
        low, high = (
            np.sqrt(np.clip(self.value - self.below, 0.0, None)),
            np.sqrt(self.value + self.above),
        )
        return Figure(root, self.std_error * slope, root - low, high - root, np.sqrt(self.theory))


@dataclass(frozen=True)
class Errors:
    """Errors of one attack under one state of knowledge, coalition by coalition.

    Attributes
    ----------
    distortion : Figure
        Mean squared errors, in squared data units.
    gain : Figure
        Collusion gain over the best copy alone.
    bar : ErrorBar
        Where the error bars come from.
    paired : Paired, optional
        Gain over a copy that was chosen before anything was measured.
    """

    distortion: Figure
    gain: Figure
    bar: ErrorBar
    paired: Paired | None = None

    def expecting(self, theory: Array) -> Errors:
        """Return the errors beside this theory of the distortion."""
        return replace(self, distortion=replace(self.distortion, theory=theory))

    def under(self, law: Errors | None) -> Errors:
        """Return the errors beside the theory of others, if there are any."""
        if law is None:
            return self
        return replace(
            self.expecting(law.distortion.theory), gain=replace(self.gain, theory=law.gain.theory)
        )

    def steady(self, again: Array, scale: Array) -> Errors:
        """Return the errors without the bars of those that other draws, shape (R, B, N), show to vary by more than a third of themselves.

        For attacks that invert what they learnt, whose errors have no mean where what is inverted
        may be near 0.
        """
        figure = self.distortion
        wild = figure.std_error > np.maximum(
            MOST_UNSTEADY * with_total(again).mean(axis=0), EXACT * scale
        )
        bars = {
            name: np.where(wild, np.nan, getattr(figure, name))
            for name in ("std_error", "below", "above")
        }
        return replace(self, distortion=replace(figure, **bars))


def with_total(each: Array) -> Array:
    """Append the mean over attributes, shape (..., N) → (..., N + 1)."""
    return np.concatenate([each, each.mean(axis=-1, keepdims=True)], axis=-1)


def least_noise(coalitions: Sequence[Coalition], law: NoiseLaw, K_X: Array) -> NDArray[np.intp]:
    """Return, by coalition, the place of its copy with least noise by law, as a share of the data's variance, shape (B,).

    The copy whose *measured* error is least is the luckiest of several nearly as good, and a gain
    over it is biased downward. A test of what pooling buys needs a copy that was chosen before
    anything was measured.
    """
    N = law.width
    noise_share = (np.diag(law.covariance).reshape(-1, N) / np.diag(K_X)).sum(axis=1)
    singles = {
        coalition[0]: place for place, coalition in enumerate(coalitions) if len(coalition) == 1
    }
    return np.array(
        [
            singles[min(coalition, key=lambda copy: noise_share[copy - 1])]
            for coalition in coalitions
        ],
        dtype=np.intp,
    )


def from_groups(
    coalitions: Sequence[Coalition],
    sums: Array,
    counts: Sequence[int],
    variances: Array,
    compared: NDArray[np.intp] | None = None,
    bar: ErrorBar = "jackknife",
) -> Errors:
    """Return errors of any attack from its squared errors summed by row group.

    Parameters
    ----------
    coalitions : sequence of tuple of int
        Every member of a coalition must be there as a coalition of its own.
    sums : ndarray of shape (G, B, N)
        Squared errors, summed over the rows of each group.
    counts : sequence of int
        Rows in each group.
    variances : ndarray of shape (N,)
        Each attribute's variance in the table.
    compared : ndarray of shape (B,) or None
        As for ``audit_linear``.
    bar : 'jackknife' or 'replicates-needed'
        Leave out groups of rows, the attack held; or give no error bars, as that does not see what
        all rows share.
    """
    scale = with_total(variances)
    distortion = rounded_off(with_total(sums.sum(axis=0) / sum(counts)), scale)
    best = Members.of(coalitions).best(distortion)
    nothing = np.full_like(distortion, np.nan)
    degrees = np.full_like(distortion, max(1, len(counts) - 1))

    def against(single: NDArray[np.intp]) -> tuple[Array, Paired]:
        gain = collusion_gain(distortion, np.take_along_axis(distortion, single, axis=0), scale)
        both = (
            _jackknife(with_total(sums), counts, single, scale)
            if bar == "jackknife"
            else (nothing, nothing)
        )
        return both[0], Paired(gain, both[1], degrees)

    std_error, own = against(best)
    paired = (
        None
        if compared is None
        else against(np.broadcast_to(compared[:, None], distortion.shape))[1]
    )
    t = scipy.special.stdtrit(degrees, 0.975)
    return Errors(
        Figure.symmetric(distortion, std_error, t),
        Figure.symmetric(own.gain, own.std_error, t),
        bar,
        paired,
    )


def from_redraws(
    coalitions: Sequence[Coalition],
    distortion: Array,
    again: Array,
    scale: Array,
    compared: NDArray[np.intp] | None = None,
    rounding: Array | float = 0.0,
    noisy: bool = True,
) -> Errors:
    """Return errors of any attack with error bars from other draws of the same release.

    Parameters
    ----------
    coalitions : sequence of tuple of int
    distortion, again : ndarrays of shape (B, N + 1) and (R, B, N + 1)
        Mean squared errors as measured, and in R other draws; the last column is all attributes
        together.
    scale : ndarray of shape (N + 1,)
        The attributes' variances, and their mean.
    compared : ndarray of shape (B,) or None
        As for ``audit_linear``.
    rounding : ndarray, optional
        How far rounding moves each error.
    noisy : bool
        Whether the copies have noise.
    """
    members, R = Members.of(coalitions), len(again)

    def gains(errors: Array, single: NDArray[np.intp]) -> Array:
        return collusion_gain(errors, np.take_along_axis(errors, single, axis=0), scale)

    def steady(denominators: Array, spread: Array) -> Array:
        """The spread of gains over single copies with these errors; NaN where the ratio has no mean to speak of."""
        held = denominators.std(axis=0, ddof=1) <= MOST_UNSTEADY * denominators.mean(axis=0)
        return np.where(held if noisy else held.all(axis=-1, keepdims=True), spread, np.nan)

    # The best copy is chosen anew in every draw, as an adversary would: a gain's spread includes
    # which copy happened to be best.
    best = [members.best(errors) for errors in again]
    gain, other = (
        gains(distortion, members.best(distortion)),
        np.array(list(map(gains, again, best))),
    )
    alone = np.array([np.take_along_axis(*pair, axis=0) for pair in zip(again, best, strict=True)])
    spread, (below, above) = np.hypot(_deviation(again), rounding), reaches(distortion, again)
    gain_error = steady(alone, other.std(axis=0, ddof=1))
    nothing, paired = np.full_like(distortion, np.nan), None
    if compared is not None:
        pair = np.broadcast_to(compared[:, None], distortion.shape)
        pairs = np.array([gains(errors, pair) for errors in again])
        paired = Paired(
            gains(distortion, pair),
            steady(again[:, compared], pairs.std(axis=0, ddof=1)),
            np.full_like(distortion, R - 1),
        )
    below, above = np.maximum(below, Z_95 * rounding), np.maximum(above, Z_95 * rounding)
    low, high = (np.where(np.isnan(gain_error), np.nan, reach) for reach in reaches(gain, other))
    return Errors(
        Figure(distortion, spread, below, above, nothing),
        Figure(gain, gain_error, low, high, nothing),
        "redraws",
        paired,
    )


MOST_UNSTEADY = 1 / 3
"""Standard deviation of a best copy's error, as a share of the error, from which one release tells no gain over it.

A gain is a ratio. The law of a ratio whose denominator comes near 0 has tails as heavy as Cauchy's,
and no mean that an interval could hold: one draw in fifty is a hundred times the others.

Of copies without noise, as a matrix makes them, one says what all do: a gain is 0 but in the rare
draws in which components are taken for one another. One such attribute then speaks for the others
too, which the same draws move; few redraws that miss them would pass for their law."""


def reaches(figure: Array, again: Array) -> tuple[Array, Array]:
    """Return how far 95 % intervals about a figure reach down and up, given R other draws of it, shape (R, …).

    The interval is to hold the mean over draws, which the redraws estimate with standard error
    ``s/√R``. It is extrapolated in two steps:

    - it reaches as far as 85 % of draws lie from their mean (``t_{0.925}(R−1) · s``), which holds a
      normal figure 85 times in 100;
    - where the figure is further off than that, it reaches past the redraws' mean by
      ``t_{0.75}(R−1) · s/√R``, so that the true mean is held three times in four there too.

    Of normal figures 0.85 + 0.15 · 0.75 = 96 % are held so. Where draws fall into two clusters, as
    of a filter that keeps now one direction, now two, the figure of the common cluster is near the
    mean, and that of the rarer one is held three times in four; a symmetric interval of ``t_{0.975}
    s`` would miss the mean every time the figure fell into the rarer one.
    """
    R, mean, spread = len(again), again.mean(axis=0), _deviation(again)
    reach, mean_reach = quantile(0.925, R - 1) * spread, quantile(0.75, R - 1) * spread / np.sqrt(R)
    same = (spread == 0) & (again[0] == figure)  # their mean is so but for its own rounding
    low, high = (
        np.maximum(reach, figure - mean + mean_reach),
        np.maximum(reach, mean - figure + mean_reach),
    )
    return np.where(same, 0.0, low), np.where(same, 0.0, high)


def _deviation(again: Array) -> Array:
    """Return standard deviations over draws, shape (…); 0 of draws that are all the same, whose mean may be rounded."""
    return np.where(np.ptp(again, axis=0) > 0, again.std(axis=0, ddof=1), 0.0)


EXACT = 1e-12
"""A squared error below this share of the variance is rounding: the attack has rebuilt the
attribute exactly."""


def rounded_off(error: Array, variance: Array, rounding: Array | float = 0.0) -> Array:
    """Return squared errors with those that are nothing but rounding set to 0, so that an exact rebuild is 0 on every machine.

    Parameters
    ----------
    error, variance : ndarrays that broadcast
        Squared errors, and the attributes' variances, of one unit.
    rounding : ndarray, optional
        How far rounding moves each error, where that is more than usual.
    """
    return np.where(error > np.maximum(EXACT * variance, rounding), error, 0.0)


def collusion_gain(
    error: Array, alone: Array, variance: Array, doubt: Array | float = 0.0
) -> Array:
    """Return ``1 − error/alone``, 0 up to rounding; where the copy alone is exact already nothing is left to gain.

    Parameters
    ----------
    error, alone, variance : ndarrays that broadcast
        Squared errors of the coalition and of its best copy, and the attribute's variance, all of
        one unit.
    doubt : ndarray, optional
        How far rounding may have moved the difference of the two errors, where that is more than
        usual.
    """
    known = np.broadcast_to(alone > EXACT * variance, error.shape)
    gain = 1.0 - np.divide(error, alone, out=np.ones_like(error), where=known)
    least = np.maximum(SAME, np.divide(doubt, alone, out=np.zeros_like(error), where=known))
    return np.where(np.abs(gain) <= least, 0.0, gain)  # what is not known stays so


def _jackknife(
    sums: Array, counts: Sequence[int], best: NDArray[np.intp], scale: Array
) -> tuple[Array, Array]:
    """Return jackknife errors of distortion and gain, shapes (B, N + 1), the maps held as they are; NaN for a single group."""
    if len(counts) < 2:
        nothing = np.full(best.shape, np.nan)
        return nothing, nothing
    rows = np.array(counts, dtype=np.float64)[:, None, None]
    left_out = (sums.sum(axis=0) - sums) / (rows.sum() - rows)
    alone = np.take_along_axis(left_out, best[None], axis=1)
    return jackknife_error(left_out), jackknife_error(collusion_gain(left_out, alone, scale))
