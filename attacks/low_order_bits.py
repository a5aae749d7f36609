"""Exclude originals by the last digits of released floating-point values.

Bayes' rule weights the candidates that last digits do not exclude.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``c`` | candidates: multiples of ``step``, or values of a known sample | (C,) | |
| ``p_c`` | their prior: normal with the data's moments, or the sample's shares; refitted by 5 EM steps | (C,) | |
| ``f_c`` | density of the copies at c by the law of their noise | (b, C) | |
| ``r_ic`` | likelihood ratio of copy i's last digits: 0 if no noise of the generator leads from c to ``y_i`` | (b, C) | ``ratio`` |
| ``q_c`` | ``∝ p_c f_c Π_i r_ic`` | (b, C) | mironov2012 |
| ``x̂`` | ``Σ q_c c`` | (b,) | |

The generator of each copy's noise is the most likely one. ``r`` is 1 if a smooth law rounded to
doubles or to a public grid is as likely. Attributes are treated one at a time. With more than 4,096
candidates the estimate is linear. *Not checked*: a copy is ``x + z`` by one addition; digits of a
copy drawn from another mislead.

Reference: jin2022. ``attacks: all`` omits this attack, which needs ``step``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import quotient
from auditor.numerics.statistics import (
    STRAY,
    Generator,
    generators,
    grid_of_digits,
    likeliest,
    ratio,
)
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    NotApplicable,
    Pair,
    PluginParameters,
    Reconstruction,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    scipy,
    stream,
    unprinted,
)
from auditor.schemes.divisible_noise import as_fraction

from ._channel import Channel, by_attribute, channels, joint_of
from ._fits import some_rows

FITTED_CELLS, TRIED_CELLS = 2**18, 2**16
"""Rows times candidates used to fit the prior, and to identify each copy's generator."""
Step = Annotated[float, Field(gt=0, allow_inf_nan=False)]


MOST_CANDIDATES = 4096
FARTHEST = 10.0
"""Candidates lie within this many standard deviations of the mean."""
EM_STEPS = 5
"""Few steps: with few records, a longer fit of the prior overfits the noise."""
UNLIKELY = 1e-9
"""Smallest prior of a candidate relative to a uniform prior. It allows tails longer than normal
ones."""


@register
class LowOrderBits(RowAttack):
    """Exclude originals by last digits, and weight the remaining candidates."""

    name = "low-order-bits"
    attack_kind = "last digits"
    combines = True
    reference = "mironov2012"
    knowledge = ("perfect", "estimated", "known-sample")
    cost = Cost(2e-3, 5e-6)
    assumes = "The adversary knows the law of the noise, and of what step originals are multiples, or a sample of their values."
    wins = (
        "Wins on columns of few values with noise straight from a generator of doubles, the more the more copies are independent; "
        "finds nothing in copies on a public grid, which every original can lead to."
    )
    trial = MappingProxyType({"step": 1.0})

    class Parameters(PluginParameters):
        """Public properties of the originals."""

        step: Step | dict[str, Step]
        """what originals are whole multiples of: one number, or one by attribute, else 1; not asked of a known sample"""
        digits: bool = True
        """false: by the law alone, for comparison"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        found, counting = channels(view), [view.copies.index(copy) for copy in view.counting]
        alone = {place: channels(view.coalition((view.copies[place],))) for place in counting}
        steps = [self._step(name) for name in view.attributes]
        priors = [prior_of(view, j, step) for j, step in enumerate(steps)]
        if all(prior is None for prior in priors):
            raise NotApplicable(
                "every attribute may have more than 4,096 values, or has one alone; state a coarser step, if any"
            )
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        held = by_attribute(np.split(rows, len(view.copies), axis=1))
        columns = []
        for j, (prior, channel, copies) in enumerate(zip(priors, found, held, strict=True)):
            read = (
                {place: each[j] for place, each in alone.items()} if self.parameters.digits else {}
            )
            columns.append(
                _linear(view, channel, j)
                if prior is None or channel.exact
                else _fitted(prior, channel, copies, read)
            )
        return _Candidates(columns)

    def _step(self, attribute: str) -> float:
        step = self.parameters.step
        return step if isinstance(step, float) else float(step.get(attribute, 1.0))


def _fitted(prior: Pair, channel: Channel, copies: Array, read: Mapping[int, Channel]) -> Column:
    some, many = (
        copies[: max(16, cells // len(prior[0]))] for cells in (TRIED_CELLS, FITTED_CELLS)
    )
    made = (_found_out(prior, place, alone, some) for place, alone in read.items())
    posterior = Posterior(*prior, channel, tuple(one for one in made if one is not None)).fitted(
        many
    )

    def column(y: Array) -> Pair:
        pieces = np.array_split(y, max(1, len(y) * len(prior[0]) // FITTED_CELLS))
        q = np.concatenate([posterior.weights(piece) for piece in pieces])
        explained, number = q.sum(axis=1) > 0.5, np.exp(scipy.special.entr(q).sum(axis=1))
        x = np.where(explained, q @ posterior.values, channel.value(y))
        return x, np.where(explained, number, np.nan)

    return column


def _found_out(
    prior: Pair, place: int, alone: Channel, copies: Array
) -> tuple[int, Generator, float] | None:
    if alone.exact or alone.noise.on_lattice:
        return None
    y, tried = copies[:, place], generators(alone.noise.distribution, alone.noise.std)
    grid = grid_of_digits(y)
    found = likeliest(y, prior[0], Posterior(*prior, alone).weights(y[:, None]), tried, grid)
    return None if found is None else (place, found, grid)


Column = Callable[[Array], Pair]
"""Map one attribute's copies, shape (b, k), to estimates and numbers of candidates, shapes (b,);
NaN: unknown."""


def _linear(view: View, channel: Channel, j: int) -> Column:
    if isinstance(view.given, UnpairedRecords):
        values = view.given.original[:, j]
        mu, variance = float(values.mean()), float(values.var())
    else:
        mu, variance = (
            float(part) for part in (view.data_moments[0][j], view.data_moments[1][j, j])
        )
    total = variance + channel.noise.std**2
    gain = variance / total if total > 0 else 1.0
    return lambda y: (mu + gain * (channel.value(y) - mu), np.full(len(y), np.nan))


@unprinted
class _Candidates(Reconstruction):
    columns: Sequence[Column]

    def _found(self, copies: Arrays, which: int) -> Array:
        each = zip(self.columns, by_attribute(copies), strict=True)
        return np.stack([column(y)[which] for column, y in each], axis=1)

    def rows(self, copies: Arrays) -> Array:
        return self._found(copies, 0)

    def candidates(self, copies: Arrays) -> Array | None:
        return self._found(copies, 1)


def prior_of(view: View, j: int, step: float) -> Pair | None:
    """Candidates and prior, (C,); None if one or too many."""
    if isinstance(view.given, UnpairedRecords):
        values, counts = np.unique(view.given.original[:, j], return_counts=True)
        return (values, counts / counts.sum()) if 1 < len(values) <= MOST_CANDIDATES else None
    mean, covariance = view.data_moments
    mu, std = float(mean[j]), float(np.sqrt(max(covariance[j, j], 0.0)))
    first, last = np.floor((mu - FARTHEST * std) / step), np.ceil((mu + FARTHEST * std) / step)
    if not 0.0 < std or not 1 < last - first < MOST_CANDIDATES:
        return None
    # multiples of 0.01 are not the doubles of cents
    whole, power = as_fraction(np.array([step]))
    values = np.arange(first, last + 1.0) * whole / power
    prior = np.exp(-0.5 * ((values - mu) / std) ** 2)
    return values, shares(prior / prior.sum() + UNLIKELY / len(values))


@unprinted
class Posterior:
    """Candidates of one attribute, weighted by noise law and last digits."""

    values: Array
    prior: Array
    channel: Channel
    made: tuple[tuple[int, Generator, float], ...] = ()
    """Copy index, generator and grid of each copy with an identified generator."""

    def weights(self, copies: Array) -> Array:
        """``q_c``, shape (b, C); a row is 0 if no candidate is possible."""
        return shares(self._joint(copies))

    def fitted(self, copies: Array) -> Posterior:
        """Posterior with its prior refitted to the copies by EM."""
        likelihood, p = self._joint(copies) / self.prior, self.prior
        for _ in range(EM_STEPS):
            p = shares(shares(likelihood * p).mean(axis=0) + UNLIKELY * self.prior)
        return Posterior(self.values, p, self.channel, self.made)

    def _joint(self, copies: Array) -> Array:
        joint = joint_of(self.channel, copies, self.values, self.prior)
        row, column = np.nonzero(joint > 1e-12)
        for place, generator, grid in self.made:
            joint[row, column] *= STRAY + (1.0 - STRAY) * ratio(
                copies[row, place], self.values[column], generator, grid
            )
        return joint


def shares(parts: Array) -> Array:
    """Normalise along the last axis; a sum of 0 leaves zeros."""
    return quotient(parts, parts.sum(axis=-1, keepdims=True))
