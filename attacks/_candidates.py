"""Posterior over candidate values from the noise law and the last digits.

| symbol | meaning | shape |
| --- | --- | --- |
| ``c, p_c`` | candidates and their prior | (C,) |
| ``f_c`` | likelihood of c by the law of the noise (``_channel``) | (b, C) |
| ``r_ic`` | ``ratio`` of copy i; 1 in a share ``STRAY`` of values, and everywhere if no generator was identified | (b, C) |
| ``q_c`` | ``∝ p_c f_c Π_i r_ic`` | (b, C) |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from auditor.numerics.last_digits import STRAY, Generator, ratio
from auditor.plugin import Array, UnpairedRecords, View
from auditor.schemes.base.increments import as_fraction

from ._channel import Channel

MOST_CANDIDATES = 4096
FARTHEST = 10.0
"""Candidates lie within this many standard deviations of the mean."""
EM_STEPS = 5
"""Few steps: with few records, a longer fit of the prior overfits the noise."""
UNLIKELY = 1e-9
"""Smallest prior of a candidate relative to a uniform prior. It allows tails longer than normal
ones."""


def prior_of(view: View, j: int, step: float) -> tuple[Array, Array] | None:
    """Return candidates and prior, shapes (C,).

    None if there are too many candidates or only one.
    """
    if isinstance(view.given, UnpairedRecords):
        values, counts = np.unique(view.given.original[:, j], return_counts=True)
        return (values, counts / counts.sum()) if 1 < len(values) <= MOST_CANDIDATES else None
    mean, covariance = view.data_moments
    mu, std = float(mean[j]), float(np.sqrt(max(covariance[j, j], 0.0)))
    first, last = np.floor((mu - FARTHEST * std) / step), np.ceil((mu + FARTHEST * std) / step)
    if not 0.0 < std or not 1 < last - first < MOST_CANDIDATES:
        return None
    # multiples of 0.01 are not the doubles that are written as cents
    whole, power = as_fraction(np.array([step]))
    values = np.arange(first, last + 1.0) * whole / power
    prior = np.exp(-0.5 * ((values - mu) / std) ** 2)
    return values, shares(prior / prior.sum() + UNLIKELY / len(values))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Candidates of one attribute, weighted by noise law and last digits."""

    values: Array = field(repr=False)
    prior: Array = field(repr=False)
    channel: Channel = field(repr=False)
    made: tuple[tuple[int, Generator, float], ...] = ()
    """Copy index, generator and grid of each copy with an identified generator."""

    def weights(self, copies: Array) -> Array:
        """Return ``q_c``, shape (b, C); a row is 0 if no candidate is possible."""
        return shares(self._joint(copies))

    def fitted(self, copies: Array) -> Posterior:
        """Return the posterior with its prior refitted to the copies by EM."""
        likelihood, p = self._joint(copies) / self.prior, self.prior
        for _ in range(EM_STEPS):
            p = shares(shares(likelihood * p).mean(axis=0) + UNLIKELY * self.prior)
        return Posterior(self.values, p, self.channel, self.made)

    def _joint(self, copies: Array) -> Array:
        log_f = self.channel.log_likelihood(copies, self.values) + np.log(self.prior)
        top = log_f.max(axis=1, keepdims=True)
        joint = np.where(
            np.isfinite(top), np.exp(log_f - np.where(np.isfinite(top), top, 0.0)), 0.0
        )
        row, column = np.nonzero(joint > 1e-12)
        for place, generator, grid in self.made:
            joint[row, column] *= STRAY + (1.0 - STRAY) * ratio(
                copies[row, place], self.values[column], generator, grid
            )
        return np.asarray(joint)


def shares(parts: Array) -> Array:
    """Normalise along the last axis; a sum of 0 leaves zeros."""
    total = parts.sum(axis=-1, keepdims=True)
    return np.asarray(parts / np.where(total > 0, total, 1.0))
