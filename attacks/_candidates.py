"""Posterior of one attribute over candidates for its value: what the law of the noise says of them, and what last digits say.

| symbol | meaning | shape |
| --- | --- | --- |
| ``c, p_c`` | candidates and their prior | (C,) |
| ``f_c`` | likelihood of c by the law of the noise (``_channel``) | (b, C) |
| ``r_ic`` | ``ratio`` of copy i; 1 in a share ``STRAY`` of values, and in all where no generator was found out | (b, C) |
| ``q_c`` | ``∝ p_c f_c Π_i r_ic`` | (b, C) |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from auditor.numerics.last_digits import STRAY, Generator, ratio
from auditor.plugin import Array, UnpairedRecords, View
from auditor.schemes.increments.process import as_fraction

from ._channel import Channel

MOST_CANDIDATES = 4096
FARTHEST = 10.0
"""Deviations from the mean beyond which no original is looked for."""
EM_STEPS = 5
"""Few: a prior learnt for longer from few records follows their noise."""
UNLIKELY = 1e-9
"""Least prior of a candidate, in shares of an equal one: a normal one would forget long tails."""


def prior_of(view: View, j: int, step: float) -> tuple[Array, Array] | None:
    """Return candidates and their prior, shapes (C,); None of too many, or of one."""
    if isinstance(view.given, UnpairedRecords):
        values, counts = np.unique(view.given.original[:, j], return_counts=True)
        return (values, counts / counts.sum()) if 1 < len(values) <= MOST_CANDIDATES else None
    mean, covariance = view.data_moments
    mu, std = float(mean[j]), float(np.sqrt(max(covariance[j, j], 0.0)))
    first, last = np.floor((mu - FARTHEST * std) / step), np.ceil((mu + FARTHEST * std) / step)
    if not 0.0 < std or not 1 < last - first < MOST_CANDIDATES:
        return None
    whole, power = as_fraction(np.array([step]))  # of cents the doubles that are written so, and not multiples of 0.01
    values = np.arange(first, last + 1.0) * whole / power
    prior = np.exp(-0.5 * ((values - mu) / std) ** 2)
    return values, shares(prior / prior.sum() + UNLIKELY / len(values))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Candidates of one attribute, weighed by law and last digits."""

    values: Array = field(repr=False)
    prior: Array = field(repr=False)
    channel: Channel = field(repr=False)
    made: tuple[tuple[int, Generator, float], ...] = ()
    """Of each copy with a generator that was found out its place, the generator, and the grid its values lie on."""

    def weights(self, copies: Array) -> Array:
        """Return ``q_c``, shape (b, C); rows that the law explains by no candidate are 0."""
        return shares(self._joint(copies))

    def fitted(self, copies: Array) -> Posterior:
        """Return it with the prior that makes the copies likelier, by expectation–maximisation."""
        likelihood, p = self._joint(copies) / self.prior, self.prior
        for _ in range(EM_STEPS):
            p = shares(shares(likelihood * p).mean(axis=0) + UNLIKELY * self.prior)
        return Posterior(self.values, p, self.channel, self.made)

    def _joint(self, copies: Array) -> Array:
        log_f = self.channel.log_likelihood(copies, self.values) + np.log(self.prior)
        top = log_f.max(axis=1, keepdims=True)
        joint = np.where(np.isfinite(top), np.exp(log_f - np.where(np.isfinite(top), top, 0.0)), 0.0)
        row, column = np.nonzero(joint > 1e-12)
        for place, generator, grid in self.made:
            joint[row, column] *= STRAY + (1.0 - STRAY) * ratio(copies[row, place], self.values[column], generator, grid)
        return np.asarray(joint)


def shares(parts: Array) -> Array:
    """Return parts over their sum along the last axis; 0 where that is 0."""
    total = parts.sum(axis=-1, keepdims=True)
    return np.asarray(parts / np.where(total > 0, total, 1.0))
